//! The states that a pod goes through, and how its status shows them.

use super::script::{Restarts, Script};
use crate::pods;
use jiff::Timestamp;
use kinds::read::{Read, list_mut};
use object::{Map, Value, map};
use std::time::Duration;

/// How often containers that fail are started again, at first and at last.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_secs(300);

/// Why a pod is not ready.
const NOT_READY: &str = "ContainersNotReady";

/// Where a pod's status has its ephemeral containers.
const EPHEMERAL: &str = "ephemeralContainerStatuses";

/// Where a pod's status has its init containers.
const INITIAL: &str = "initContainerStatuses";

/// What happens next to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Something, after this time.
    After(Duration),
    /// Its containers start.
    Start,
    /// Its containers never start; it says why.
    Wait(String),
    /// Its containers end.
    End,
    /// It gets ready, or is not ready any more.
    Turn(bool),
    /// Containers were added to it, to look into it, and start.
    Join,
    /// It was told to stop and has.
    Remove,
}

/// What happens next to a pod that has a node.
pub fn next(pod: &Value, script: &Script, now: Timestamp) -> Step {
    let since = |time: Option<Timestamp>| -> Duration {
        time.map_or(Duration::ZERO, |t| now.duration_since(t).try_into().unwrap_or_default())
    };
    let left = |whole: Duration, passed: Duration| whole.checked_sub(passed).filter(|d| !d.is_zero());
    let meta = pod.sub("metadata");
    if pods::is_deleting(pod) {
        let grace = Duration::from_secs(meta.int("deletionGracePeriodSeconds").max(0).unsigned_abs());
        let end = pods::time(meta, "deletionTimestamp");
        let told = end.and_then(|end| end.checked_sub(grace).ok());
        let stop = script.stop_after.min(grace);
        return left(stop, since(told)).map_or(Step::Remove, Step::After);
    }
    match pods::phase(pod) {
        "Succeeded" | "Failed" => Step::Rest,
        "Running" => {
            let Some(started) = running_since(pod) else {
                // Failed and not yet started again.
                let (ended, failures) = last_end(pod);
                return left(backoff(failures), since(ended)).map_or(Step::Start, Step::After);
            };
            let end = script.run_for.map(|run_for| left(run_for, since(Some(started))).map_or(Step::End, Step::After));
            let ready = is_to_be_ready(pod, script);
            match end {
                Some(Step::End) => Step::End,
                _ if has_new_ephemeral_containers(pod) => Step::Join,
                _ if pods::is_ready(pod) != ready => Step::Turn(ready),
                end => end.unwrap_or(Step::Rest),
            }
        }
        _ => {
            if let Some(why) = &script.waiting {
                let told = container(pod).is_some_and(|c| c.sub("state").sub("waiting").text("reason") == why);
                return if told { Step::Rest } else { Step::Wait(why.clone()) };
            }
            let bound = pods::condition(pod, "PodScheduled").and_then(|c| pods::time(c, "lastTransitionTime"));
            let bound = bound.or_else(|| pods::time(meta, "creationTimestamp"));
            left(script.start_after, since(bound)).map_or(Step::Start, Step::After)
        }
    }
}

/// Whether a pod that runs is ready: its script says so, and so do all its readiness gates.
fn is_to_be_ready(pod: &Value, script: &Script) -> bool {
    let holds =
        |gate: &Value| pods::condition(pod, gate.text("conditionType")).is_some_and(|c| c.text("status") == "True");
    script.ready && pod.sub("spec").list("readinessGates").iter().all(holds)
}

/// Whether some of a pod's ephemeral containers have no status; they are only ever added, at the end.
fn has_new_ephemeral_containers(pod: &Value) -> bool {
    pod.sub("spec").list("ephemeralContainers").len() > pod.sub("status").list(EPHEMERAL).len()
}

fn container(pod: &Value) -> Option<&Value> {
    pod.sub("status").list("containerStatuses").first()
}

fn running_since(pod: &Value) -> Option<Timestamp> {
    pods::time(container(pod)?.sub("state").sub("running"), "startedAt")
}

/// When containers ended last, and how often they were started again.
fn last_end(pod: &Value) -> (Option<Timestamp>, i64) {
    let Some(container) = container(pod) else { return (None, 0) };
    let ended = container.sub("lastState").sub("terminated");
    (pods::time(ended, "finishedAt"), container.int("restartCount"))
}

fn backoff(restarts: i64) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << restarts.clamp(0, 5)).min(LONGEST_BACKOFF)
}

/// Addresses of a pod and its node.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The pod's.
    pub pod: String,
    /// The node's.
    pub node: String,
}

/// The status of a pod whose containers start (again).
pub fn started(pod: &Value, script: &Script, addresses: &Addresses, now: Timestamp) -> Value {
    let time = pods::seconds(now);
    let restarts = container(pod).filter(|_| pods::phase(pod) == "Running").map(|c| c.int("restartCount") + 1);
    let containers = statuses(pod, "containers", |name| {
        let mut out = map! {
            "ready" => script.ready, "started" => true, "restartCount" => restarts.unwrap_or_default(),
            "state" => map! { "running" => map! { "startedAt" => time.as_str() } },
            "containerID" => format!("simulated://{}-{name}", pod.meta_str("uid")),
        };
        let last = container(pod).map(|c| c.sub("lastState").clone()).filter(|s| !s.is_null());
        out.insert("lastState", last.unwrap_or_else(|| Map::new().into()));
        out
    });
    let ready = is_to_be_ready(pod, script);
    let mut out = status(pod, "Running", ready, if ready { "" } else { NOT_READY }, now);
    set_addresses(&mut out, addresses);
    out.set_at(&["containerStatuses"], containers.into());
    // They run before the others do, and not again when those are started again.
    if !out.has(INITIAL) && pod.sub("spec").has("initContainers") {
        out.set_at(&[INITIAL], initial(pod, &time).into());
    }
    if !out.has("startTime") {
        out.set_at(&["startTime"], time.into());
    }
    out
}

/// The status of a pod that runs and gets ready, or is not ready any more.
pub fn turned(pod: &Value, ready: bool, now: Timestamp) -> Value {
    let mut out = status(pod, "Running", ready, if ready { "" } else { NOT_READY }, now);
    for container in list_mut(&mut out, "containerStatuses") {
        container.set_at(&["ready"], ready.into());
    }
    out
}

/// The status of a pod that runs and whose new ephemeral containers start.
pub fn joined(pod: &Value, now: Timestamp) -> Value {
    let mut out = pod.sub("status").clone();
    let time = pods::seconds(now);
    let all = ephemeral(pod, map! { "running" => map! { "startedAt" => time } });
    let mut there = out.list(EPHEMERAL).to_vec();
    there.extend(all.into_iter().skip(there.len()));
    out.set_at(&[EPHEMERAL], there.into());
    out
}

/// The status of a pod whose containers cannot start.
pub fn waiting(pod: &Value, why: &str, addresses: &Addresses, now: Timestamp) -> Value {
    let containers = statuses(pod, "containers", |_| {
        map! {
            "ready" => false, "started" => false, "restartCount" => 0i64, "lastState" => Map::new(),
            "state" => map! { "waiting" => map! { "reason" => why, "message" => "simulated" } },
        }
    });
    let mut out = status(pod, "Pending", false, NOT_READY, now);
    out.set_at(&["hostIP"], addresses.node.as_str().into());
    out.set_at(&["hostIPs"], vec![map! { "ip" => addresses.node.as_str() }].into());
    out.set_at(&["containerStatuses"], containers.into());
    out
}

/// The status of a pod whose containers end with this code, for good or until they are started again.
pub fn finished(pod: &Value, code: i64, goes_on: bool, now: Timestamp) -> Value {
    let time = pods::seconds(now);
    let since = running_since(pod).map_or_else(|| time.clone(), pods::seconds);
    let reason = if code == 0 { "Completed" } else { "Error" };
    let restarts = container(pod).map(|c| c.int("restartCount")).unwrap_or_default();
    let terminated = || map! { "terminated" => ended(code, reason, &since, &time) };
    let containers = statuses(pod, "containers", |name| {
        let mut out = map! {
            "ready" => false, "started" => false, "restartCount" => restarts,
            "containerID" => format!("simulated://{}-{name}", pod.meta_str("uid")),
        };
        if goes_on {
            let message = "back-off restarting failed container";
            out.insert("state", map! { "waiting" => map! { "reason" => "CrashLoopBackOff", "message" => message } });
            out.insert("lastState", terminated());
        } else {
            out.insert("state", terminated());
            out.insert("lastState", Map::new());
        }
        out
    });
    let (phase, why) = match (goes_on, code) {
        (true, _) => ("Running", NOT_READY),
        (false, 0) => ("Succeeded", "PodCompleted"),
        (false, _) => ("Failed", "PodFailed"),
    };
    let mut out = status(pod, phase, false, why, now);
    out.set_at(&["containerStatuses"], containers.into());
    if !goes_on && out.has(EPHEMERAL) {
        out.set_at(&[EPHEMERAL], ephemeral(pod, terminated()).into());
    }
    if !goes_on {
        list_mut(&mut out, INITIAL).iter_mut().for_each(|sidecar| stop_sidecar(sidecar, &time));
    }
    out
}

/// Ends an init container that still runs: a sidecar is told to stop when the containers have ended for good.
fn stop_sidecar(status: &mut Value, time: &str) {
    let running = status.sub("state").sub("running");
    if running.is_null() {
        return;
    }
    let since = running.text("startedAt").to_owned();
    status.set_at(&["ready"], false.into());
    status.set_at(&["started"], false.into());
    status.set_at(&["state"], map! { "terminated" => ended(0, "Completed", &since, time) }.into());
}

/// How a pod ends that is told to stop: servers end well, others are broken off.
pub fn stop_code(script: &Script) -> i64 {
    if script.restarts == Restarts::Always { 0 } else { 143 }
}

fn ended(code: i64, reason: &str, since: &str, time: &str) -> Map {
    map! { "exitCode" => code, "reason" => reason, "startedAt" => since, "finishedAt" => time }
}

fn set_addresses(status: &mut Value, addresses: &Addresses) {
    for (one, all, ip) in [("podIP", "podIPs", &addresses.pod), ("hostIP", "hostIPs", &addresses.node)] {
        status.set_at(&[one], ip.as_str().into());
        status.set_at(&[all], vec![map! { "ip" => ip.as_str() }].into());
    }
}

/// The statuses of the init containers of a pod whose containers start: they have ended well, and sidecars run on.
fn initial(pod: &Value, time: &str) -> Vec<Value> {
    let sidecars: Vec<&str> = {
        let all = pod.sub("spec").list("initContainers").iter();
        all.filter(|c| c.text("restartPolicy") == "Always").map(|c| c.text("name")).collect()
    };
    statuses(pod, "initContainers", |name| {
        let runs = sidecars.contains(&name);
        let state = if runs {
            map! { "running" => map! { "startedAt" => time } }
        } else {
            map! { "terminated" => ended(0, "Completed", time, time) }
        };
        map! {
            "ready" => true, "started" => runs, "restartCount" => 0i64, "lastState" => Map::new(), "state" => state,
            "containerID" => format!("simulated://{}-{name}", pod.meta_str("uid")),
        }
    })
}

/// The statuses of the containers in a list of the spec.
fn statuses(pod: &Value, list: &str, state: impl Fn(&str) -> Map) -> Vec<Value> {
    let containers = pod.sub("spec").list(list).iter();
    let of = |container: &Value| {
        let image = container.text("image");
        let mut out = state(container.text("name"));
        out.insert("name", container.text("name"));
        out.insert("image", image);
        out.insert("imageID", format!("simulated://{image}"));
        Value::Object(out)
    };
    containers.map(of).collect()
}

/// The statuses of a pod's ephemeral containers, in a state.
fn ephemeral(pod: &Value, state: Map) -> Vec<Value> {
    statuses(pod, "ephemeralContainers", |name| {
        map! {
            "ready" => false, "restartCount" => 0i64, "lastState" => Map::new(), "state" => state.clone(),
            "containerID" => format!("simulated://{}-{name}", pod.meta_str("uid")),
        }
    })
}

/// The status with a phase and the conditions that go with it.
fn status(pod: &Value, phase: &str, ready: bool, why: &str, now: Timestamp) -> Value {
    let mut out = pod.sub("status").clone();
    out.set_at(&["phase"], phase.into());
    let up = phase == "Running" || matches!(phase, "Succeeded" | "Failed");
    for (kind, holds) in [
        ("PodReadyToStartContainers", phase == "Running"),
        ("Initialized", up),
        ("Ready", ready),
        ("ContainersReady", ready),
        ("PodScheduled", true),
    ] {
        let why = if holds || !matches!(kind, "Ready" | "ContainersReady") { "" } else { why };
        set_condition(&mut out, kind, holds, why, now);
    }
    out
}

fn set_condition(status: &mut Value, kind: &str, holds: bool, why: &str, now: Timestamp) {
    let text = if holds { "True" } else { "False" };
    let mut conditions = status.list("conditions").to_vec();
    let old = conditions.iter().position(|c| c.text("type") == kind);
    let since = old.and_then(|i| conditions.get(i)).filter(|c| c.text("status") == text);
    let since = since.map_or_else(|| pods::seconds(now), |c| c.text("lastTransitionTime").to_owned());
    let mut new = map! {
        "type" => kind, "status" => text, "lastProbeTime" => Value::Null, "lastTransitionTime" => since,
    };
    if !why.is_empty() {
        new.insert("reason", why);
    }
    match old.and_then(|i| conditions.get_mut(i)) {
        Some(old) => *old = new.into(),
        None => conditions.push(new.into()),
    }
    status.set_at(&["conditions"], conditions.into());
}

#[cfg(test)]
mod tests {
    use super::super::Simulated;
    use super::*;
    use object::json;

    fn at(second: i64) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start.checked_add(jiff::SignedDuration::from_secs(second)).unwrap()
    }

    fn pod(policy: &str, annotations: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","annotations":{annotations}}},
            "spec":{{"restartPolicy":"{policy}","containers":[{{"name":"c","image":"i"}}]}},"status":{{"phase":"Pending"}}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    fn addresses() -> Addresses {
        Addresses { pod: "10.0.0.1".into(), node: "10.0.0.2".into() }
    }

    fn put(pod: &mut Value, status: Value) {
        pod.set_at(&["status"], status);
    }

    #[test]
    fn a_server_starts_and_stays() {
        let mut pod = pod("Always", "{}");
        let script = Script::of(&pod, &Simulated::default());
        assert_eq!(next(&pod, &script, at(0)), Step::After(Duration::from_secs(1)));
        assert_eq!(next(&pod, &script, at(1)), Step::Start);
        let status = started(&pod, &script, &addresses(), at(1));
        put(&mut pod, status);
        assert!(pods::is_ready(&pod));
        assert_eq!(next(&pod, &script, at(100)), Step::Rest);
        pod.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:02:30Z".into());
        pod.set_at(&["metadata", "deletionGracePeriodSeconds"], Value::Int(30));
        assert_eq!(next(&pod, &script, at(120)), Step::Remove);
    }

    #[test]
    fn a_server_is_ready_as_long_as_it_is_told_and_its_gates_say_so() {
        let mut pod = pod("Always", "{}");
        pod.set_at(&["spec", "readinessGates"], vec![map! { "conditionType" => "x" }].into());
        let script = Script::of(&pod, &Simulated::default());
        let status = started(&pod, &script, &addresses(), at(1));
        put(&mut pod, status);
        assert!(!pods::is_ready(&pod));
        assert_eq!(next(&pod, &script, at(2)), Step::Rest);
        let mut status = pod.sub("status").clone();
        set_condition(&mut status, "x", true, "", at(2));
        put(&mut pod, status);
        assert_eq!(next(&pod, &script, at(2)), Step::Turn(true));
        let status = turned(&pod, true, at(2));
        put(&mut pod, status);
        assert!(pods::is_ready(&pod));
        let script = Script { ready: false, ..script };
        assert_eq!(next(&pod, &script, at(3)), Step::Turn(false));
    }

    #[test]
    fn a_task_ends_as_it_is_told() {
        for (annotations, code, phase) in
            [("{}", 0, "Succeeded"), (r#"{"simulated.stanchion.dev/exit-code":"3"}"#, 3, "Failed")]
        {
            let mut pod = pod("Never", annotations);
            let script = Script::of(&pod, &Simulated::default());
            let status = started(&pod, &script, &addresses(), at(1));
            put(&mut pod, status);
            assert_eq!(next(&pod, &script, at(2)), Step::End);
            let status = finished(&pod, script.exit_code, script.goes_on(), at(2));
            put(&mut pod, status);
            assert_eq!(pods::phase(&pod), phase);
            let ended = pod.sub("status").list("containerStatuses")[0].sub("state").sub("terminated").clone();
            assert_eq!(ended.int("exitCode"), code);
            assert_eq!(next(&pod, &script, at(3)), Step::Rest);
        }
    }

    #[test]
    fn sidecars_run_from_the_start_to_the_end_of_the_other_containers() {
        let mut pod = pod("OnFailure", r#"{"simulated.stanchion.dev/exit-code":"1"}"#);
        let list = r#"[{"name":"init","image":"i"},{"name":"side","image":"i","restartPolicy":"Always"}]"#;
        pod.set_at(&["spec", "initContainers"], json::parse(list.as_bytes()).unwrap());
        let script = Script::of(&pod, &Simulated::default());
        let state = |pod: &Value, at: usize| {
            let status = &pod.sub("status").list(INITIAL)[at];
            let state = status.sub("state");
            let since = ["running", "terminated"].map(|s| state.sub(s).text("startedAt").to_owned()).concat();
            (state.has("running"), status.sub("ready") == &Value::Bool(true), since)
        };
        let first = "2026-01-01T00:00:01Z".to_owned();
        let status = started(&pod, &script, &addresses(), at(1));
        put(&mut pod, status);
        assert_eq!((state(&pod, 0), state(&pod, 1)), ((false, true, first.clone()), (true, true, first.clone())));
        let status = finished(&pod, 1, true, at(2));
        put(&mut pod, status);
        assert_eq!(state(&pod, 1), (true, true, first.clone()));
        let status = started(&pod, &script, &addresses(), at(12));
        put(&mut pod, status);
        assert_eq!(state(&pod, 1), (true, true, first.clone()));
        let status = finished(&pod, 0, false, at(13));
        put(&mut pod, status);
        assert_eq!((state(&pod, 0), state(&pod, 1)), ((false, true, first.clone()), (false, false, first)));
    }

    #[test]
    fn a_server_that_fails_is_started_again_ever_later() {
        let mut pod = pod("Always", r#"{"simulated.stanchion.dev/exit-code":"1"}"#);
        let script = Script::of(&pod, &Simulated::default());
        let status = started(&pod, &script, &addresses(), at(1));
        put(&mut pod, status);
        let status = finished(&pod, 1, true, at(2));
        put(&mut pod, status);
        assert_eq!(next(&pod, &script, at(2)), Step::After(Duration::from_secs(10)));
        assert_eq!(next(&pod, &script, at(12)), Step::Start);
        let status = started(&pod, &script, &addresses(), at(12));
        put(&mut pod, status);
        let status = finished(&pod, 1, true, at(13));
        put(&mut pod, status);
        assert_eq!(pod.sub("status").list("containerStatuses")[0].int("restartCount"), 1);
        assert_eq!(next(&pod, &script, at(13)), Step::After(Duration::from_secs(20)));
    }

    #[test]
    fn containers_are_added_to_a_pod_that_runs_and_end_with_it() {
        let mut pod = pod("Always", "{}");
        let script = Script::of(&pod, &Simulated::default());
        let status = started(&pod, &script, &addresses(), at(1));
        put(&mut pod, status);
        for (names, second) in [(vec!["d"], 2), (vec!["d", "e"], 3)] {
            let list: Vec<Value> = names.iter().map(|name| map! { "name" => *name, "image" => "i" }.into()).collect();
            pod.set_at(&["spec", "ephemeralContainers"], list.into());
            assert_eq!(next(&pod, &script, at(second)), Step::Join);
            let status = joined(&pod, at(second));
            put(&mut pod, status);
            assert_eq!(next(&pod, &script, at(second)), Step::Rest);
        }
        let since = |pod: &Value, state: &str| -> Vec<String> {
            let list = pod.sub("status").list(EPHEMERAL);
            list.iter().map(|c| c.sub("state").sub(state).text("startedAt").to_owned()).collect()
        };
        assert_eq!(since(&pod, "running"), ["2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"]);
        let status = finished(&pod, 0, false, at(9));
        put(&mut pod, status);
        assert_eq!(since(&pod, "terminated").len(), 2);
        assert_eq!(since(&pod, "running"), ["", ""]);
    }

    #[test]
    fn a_pod_may_wait_for_ever() {
        let mut pod = pod("Always", r#"{"simulated.stanchion.dev/waiting":"ImagePullBackOff"}"#);
        let script = Script::of(&pod, &Simulated::default());
        assert_eq!(next(&pod, &script, at(9)), Step::Wait("ImagePullBackOff".into()));
        let status = waiting(&pod, "ImagePullBackOff", &addresses(), at(9));
        put(&mut pod, status);
        assert_eq!(next(&pod, &script, at(9)), Step::Rest);
    }
}
