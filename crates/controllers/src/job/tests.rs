//! The rules of Jobs together: pods in, plan and status out.

use super::account::{account, finish};
use super::assess::{Assessment, Input, assess};
use super::backoff::Backoff;
use super::plan::{Plan, plan};
use super::pod::Pod;
use super::spec::Spec;
use super::status::Status;
use jiff::Timestamp;
use kinds::read::Read;
use object::{Value, json};
use std::collections::HashSet;

const NOW: &str = "2026-01-01T01:00:00Z";

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// `uid:PHASE`, then `!` for one that is being deleted, `-` for one without finalizer, `#N` for its index, `~N` for N
/// earlier failures of the index.
fn pod(text: &str) -> Value {
    let (uid, rest) = text.split_once(':').unwrap();
    let phase = rest.split(['!', '-', '#', '~']).next().unwrap();
    let number =
        |mark: char| rest.split_once(mark).map(|(_, n)| n.chars().take_while(char::is_ascii_digit).collect::<String>());
    let mut pod = parse(&format!(
        r#"{{"metadata":{{"name":"{uid}","uid":"{uid}","creationTimestamp":"2026-01-01T00:00:00Z"}},"status":{{"phase":"{phase}"}}}}"#
    ));
    if rest.contains('!') {
        pod.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
    }
    if !rest.contains('-') {
        pod.set_at(&["metadata", "finalizers"], vec![super::pod::TRACKING].into());
    }
    for (mark, annotation) in [('#', super::pod::INDEX), ('~', super::pod::FAILURES)] {
        if let Some(n) = number(mark) {
            pod.set_at(&["metadata", "annotations", annotation], n.into());
        }
    }
    pod
}

struct Case {
    job: Value,
    pods: Vec<Value>,
}

impl Case {
    fn new(spec: &str, status: &str, pods: &str) -> Case {
        let job = parse(&format!(r#"{{"metadata":{{"name":"j"}},"spec":{spec},"status":{status}}}"#));
        Case { job, pods: pods.split_whitespace().map(pod).collect() }
    }

    fn run<T>(&self, look: impl FnOnce(&Spec<'_>, &[Pod<'_>], Assessment) -> T) -> T {
        let pods: Vec<Pod<'_>> = self.pods.iter().map(Pod::new).collect();
        let (spec, status) = (Spec::of(&self.job), Status::of(&self.job));
        let (released, now) = (HashSet::new(), NOW.parse().unwrap());
        let backoff = Backoff::default();
        let found = assess(&Input { spec: &spec, pods: &pods, status: &status, released: &released, backoff, now });
        look(&spec, &pods, found)
    }

    fn plan(&self) -> Plan {
        self.run(|spec, pods, found| plan(spec, pods, &found, NOW.parse().unwrap()))
    }

    fn end(&self) -> Option<String> {
        self.run(|_, _, found| found.finished.map(|c| format!("{} {}", c.kind, c.reason)))
    }

    /// The status that is written first, and whether the Job ends once the finalizers are gone.
    fn accounted(&self) -> (String, bool) {
        self.run(|spec, pods, found| {
            let (mut status, now): (_, Timestamp) = (Status::of(&self.job), NOW.parse().unwrap());
            let done = account(spec, false, pods, &found, &mut status, &HashSet::new(), now);
            let mut written = status.put_on(&Value::Null);
            written.remove_at(&["status", "conditions"]);
            let mut with_finalizer = done.with_finalizer.clone();
            done.release.iter().for_each(|i| {
                with_finalizer.remove(pods.get(*i).unwrap().uid());
            });
            status.count_released(&with_finalizer);
            let ended = finish(done.finished.as_ref(), found.terminating, &mut status, now);
            (json::to_string(written.sub("status")), ended)
        })
    }
}

#[test]
fn as_many_pods_run_as_are_wanted() {
    let indexed = r#"{"completionMode":"Indexed","completions":4,"parallelism":2}"#;
    for (spec, status, pods, expected) in [
        (r#"{"completions":1,"parallelism":1}"#, "{}", "", Plan::Create(1)),
        (r#"{"completions":1,"parallelism":1}"#, "{}", "a:Running", Plan::Nothing),
        (r#"{"completions":5,"parallelism":3}"#, r#"{"succeeded":4}"#, "", Plan::Create(1)),
        (r#"{"completions":5,"parallelism":3}"#, "{}", "a:Succeeded b:Running", Plan::Create(2)),
        (r#"{"completions":5,"parallelism":1}"#, "{}", "a:Running b:Pending", Plan::Delete(vec![1])),
        (r#"{"completions":5,"parallelism":0}"#, "{}", "a:Running", Plan::Delete(vec![0])),
        (r#"{"parallelism":3}"#, "{}", "a:Running", Plan::Create(2)),
        (r#"{"parallelism":3}"#, "{}", "a:Running b:Succeeded", Plan::Nothing),
        (r#"{"completions":1,"parallelism":1,"suspend":true}"#, "{}", "a:Running", Plan::Delete(vec![0])),
        (r#"{"completions":1,"parallelism":1,"suspend":true}"#, "{}", "", Plan::Delete(vec![])),
        (r#"{"completions":1,"parallelism":1}"#, "{}", "a:Running!", Plan::Create(1)),
        (r#"{"completions":1,"parallelism":1,"podReplacementPolicy":"Failed"}"#, "{}", "a:Running!", Plan::Nothing),
        (r#"{"completions":9999,"parallelism":9999}"#, "{}", "", Plan::Create(500)),
        (indexed, "{}", "", Plan::CreateIndexes(vec![0, 1])),
        (indexed, r#"{"completedIndexes":"0-2"}"#, "", Plan::CreateIndexes(vec![3])),
        (indexed, "{}", "a:Running#1", Plan::CreateIndexes(vec![0])),
        (indexed, "{}", "a:Running#1 b:Pending#1", Plan::Delete(vec![1])),
        (indexed, "{}", "a:Running#1 b:Running#7 c:Running", Plan::Delete(vec![2, 1])),
    ] {
        assert_eq!(Case::new(spec, status, pods).plan(), expected, "{spec} {status} {pods}");
    }
}

#[test]
fn indexes_that_failed_are_not_tried_again() {
    let spec =
        r#"{"completionMode":"Indexed","completions":3,"parallelism":3,"backoffLimit":99,"backoffLimitPerIndex":1}"#;
    for (pods, expected) in [
        ("a:Failed#0", Plan::CreateIndexes(vec![0, 1, 2])),
        ("a:Failed#0~1", Plan::CreateIndexes(vec![1, 2])),
        ("a:Failed#0~1 b:Succeeded#1 c:Running#2", Plan::Nothing),
    ] {
        assert_eq!(Case::new(spec, "{}", pods).plan(), expected, "{pods}");
    }
}

#[test]
fn a_job_ends_for_a_reason() {
    let one = r#"{"completions":1,"parallelism":1,"backoffLimit":1}"#;
    let policy = r#"{"completions":1,"backoffLimit":0,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[]},
        {"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]}}"#;
    let indexed = r#"{"completionMode":"Indexed","completions":2,"backoffLimit":99,"backoffLimitPerIndex":0"#;
    for (spec, status, pods, expected) in [
        (one.to_owned(), "{}", "a:Failed", None),
        (one.to_owned(), "{}", "a:Failed b:Failed", Some("FailureTarget BackoffLimitExceeded")),
        (one.to_owned(), r#"{"failed":1}"#, "a:Running!", Some("FailureTarget BackoffLimitExceeded")),
        (one.to_owned(), r#"{"failed":1}"#, "a:Failed-", None),
        (policy.to_owned(), "{}", "a:Running!", None),
        (r#"{"activeDeadlineSeconds":60}"#.to_owned(), r#"{"startTime":"2026-01-01T00:59:01Z"}"#, "", None),
        (
            r#"{"activeDeadlineSeconds":60}"#.to_owned(),
            r#"{"startTime":"2026-01-01T00:59:00Z"}"#,
            "",
            Some("FailureTarget DeadlineExceeded"),
        ),
        (
            r#"{"activeDeadlineSeconds":60,"suspend":true}"#.to_owned(),
            r#"{"startTime":"2026-01-01T00:59:00Z"}"#,
            "",
            None,
        ),
        (format!("{indexed}}}"), "{}", "a:Failed#0 b:Running#1", None),
        (format!("{indexed}}}"), "{}", "a:Failed#0 b:Succeeded#1", Some("FailureTarget FailedIndexes")),
        (
            format!(r#"{indexed},"maxFailedIndexes":0}}"#),
            "{}",
            "a:Failed#0",
            Some("FailureTarget MaxFailedIndexesExceeded"),
        ),
        (
            format!(r#"{indexed},"successPolicy":{{"rules":[{{"succeededCount":1}}]}}}}"#),
            "{}",
            "a:Succeeded#0",
            Some("SuccessCriteriaMet SuccessPolicy"),
        ),
        (
            one.to_owned(),
            r#"{"conditions":[{"type":"FailureTarget","status":"True","reason":"X"}]}"#,
            "",
            Some("Failed X"),
        ),
    ] {
        assert_eq!(Case::new(&spec, status, pods).end().as_deref(), expected, "{spec} {status} {pods}");
    }
}

#[test]
fn ended_pods_are_accounted_for() {
    let plain = r#"{"completions":9,"backoffLimit":0}"#;
    let indexed = r#"{"completionMode":"Indexed","completions":3,"backoffLimit":9}"#;
    for (spec, status, pods, written, ended) in [
        (plain, "{}", "a:Running", r#"{"uncountedTerminatedPods":{}}"#, false),
        (plain, "{}", "a:Succeeded", r#"{"uncountedTerminatedPods":{"succeeded":["a"]}}"#, false),
        (
            plain,
            r#"{"uncountedTerminatedPods":{"succeeded":["a"]}}"#,
            "a:Succeeded-",
            r#"{"succeeded":1,"uncountedTerminatedPods":{}}"#,
            false,
        ),
        (plain, "{}", "a:Failed b:Running", r#"{"uncountedTerminatedPods":{"failed":["a","b"]}}"#, true),
        (plain, "{}", "a:Failed b:Failed!", r#"{"uncountedTerminatedPods":{"failed":["a","b"]}}"#, true),
        (plain, "{}", "a:Failed b:Running!", r#"{"uncountedTerminatedPods":{"failed":["a","b"]}}"#, false),
        (
            indexed,
            r#"{"completedIndexes":"0","succeeded":1}"#,
            "a:Succeeded#1 b:Succeeded#1 c:Succeeded#9",
            r#"{"completedIndexes":"0,1","succeeded":2,"uncountedTerminatedPods":{}}"#,
            false,
        ),
    ] {
        let case = Case::new(spec, status, pods);
        assert_eq!(case.accounted(), (written.to_owned(), ended), "{spec} {status} {pods}");
    }
}

#[test]
fn no_object_makes_the_rules_panic() {
    for spec in [
        "{}",
        "null",
        r#"{"completions":-1,"parallelism":-5}"#,
        r#"{"completions":9223372036854775807,"parallelism":9223372036854775807,"completionMode":"Indexed","backoffLimitPerIndex":-1}"#,
        r#"{"completionMode":"Indexed","completions":3,"successPolicy":{"rules":[{"succeededIndexes":"0-9223372036854775807"}]}}"#,
    ] {
        for status in
            ["{}", "null", r#"{"completedIndexes":"0-9223372036854775807,-,--,5-1","failed":9223372036854775000}"#]
        {
            for pods in ["", "a:Running#0 b:Failed#9223372036854775807 c:Succeeded!~9223372036854775807 d:Failed-"] {
                let case = Case::new(spec, status, pods);
                let _ = (case.plan(), case.end(), case.accounted());
            }
        }
    }
}
