//! What is checked when jobs are created and changed.

use super::job_status::indexes;
use crate::check::{self, Errors};
use crate::read::Read;
use crate::{gostruct, pod};
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};
use std::collections::HashSet;

/// The labels that hold a job's uid, the older first.
pub(super) const UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
/// The labels that hold a job's name, the older first.
pub(super) const NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// Most pods at a time, and most failed indexes, of an indexed job.
const MOST_INDEXES: i64 = 100_000;
/// The same for jobs with more completions than that and a limit for each index.
const MOST_OF_MANY: i64 = 10_000;
const MOST_RULES: usize = 20;

/// Checks a job to be created.
pub(super) fn validate(object: &Value) -> Errors {
    whole(object, true)
}

/// `prefixed` says whether the newer labels are asked for too.
fn whole(object: &Value, prefixed: bool) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    generated_selector(object, prefixed, &mut out);
    spec(object.sub("spec"), &path, &mut out);
    let indexed = object.sub("spec").text("completionMode") == "Indexed";
    if let (true, Some(completions)) = (indexed, object.sub("spec").opt_int("completions").filter(|c| *c > 0)) {
        let example = format!("{}-{}", object.name(), completions - 1);
        if !names::dns1123_label(&example).is_empty() {
            let meta = Path::ROOT.child("metadata");
            let why = format!("will not able to create pod with invalid DNS label: {example}");
            out.push(FieldError::invalid(&meta.child("name"), object.name(), why));
        }
    }
    out
}

/// Where the selector was made by the server, it must be the server's.
fn generated_selector(object: &Value, prefixed: bool, out: &mut Errors) {
    let spec = object.sub("spec");
    if spec.flag("manualSelector") || !spec.has("selector") {
        return;
    }
    let at = Path::ROOT.child("spec");
    let template = at.child("template");
    let meta = template.child("metadata");
    let path = meta.child("labels");
    let labels = spec.sub("template").sub("metadata").members("labels");
    let mut expected = Map::new();
    for (keys, wanted) in [(UID, object.meta_str("uid")), (NAME, object.name())] {
        for key in keys.into_iter().take(if prefixed { 2 } else { 1 }) {
            expected.insert(key, wanted);
            let why = format!("must be '{wanted}'");
            match labels.get(key).and_then(Value::as_str) {
                None => out.push(FieldError::required(&path.key(key), why)),
                Some(value) if value != wanted => {
                    out.push(FieldError::invalid(&path.key(key), gostruct::labels(labels), why));
                }
                Some(_) => {}
            }
        }
    }
    let readable = object::selector::Labels::from_object(spec.sub("selector")).is_ok();
    if readable && !check::selector_matches(spec.sub("selector"), &expected) {
        let shown = gostruct::label_selector(spec.sub("selector"));
        out.push(FieldError::invalid(&at.child("selector"), shown, "`selector` not auto-generated"));
    }
}

/// The specification of a job.
fn spec(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    template_of_job(spec, path, out);
    if !spec.has("selector") {
        out.push(FieldError::required(&path.child("selector"), ""));
    } else {
        check::label_selector(spec.sub("selector"), &path.child("selector"), out);
    }
    let labels = spec.sub("template").sub("metadata").members("labels");
    let readable = object::selector::Labels::from_object(spec.sub("selector")).is_ok();
    if spec.has("selector") && readable && !check::selector_matches(spec.sub("selector"), labels) {
        crate::groups::apps::mismatch(labels, path, out);
    }
}

/// What jobs and templates of jobs are checked for.
pub(super) fn template_of_job(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check::not_negative(spec, key, path, out);
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let why = "when maxFailedIndexes is specified";
        out.push(FieldError::required(&path.child("backoffLimitPerIndex"), why));
    }
    if spec.has("managedBy") {
        let at = path.child("managedBy");
        check::domain_prefixed(spec.text("managedBy"), &at, out);
        if spec.text("managedBy").len() > 63 {
            out.push(FieldError::too_long(&at, 63));
        }
    }
    let indexed = spec.text("completionMode") == "Indexed";
    if spec.has("completionMode") {
        check::one_of(spec, "completionMode", &["NonIndexed", "Indexed"], path, out);
    }
    if indexed {
        indexed_limits(spec, path, out);
    } else if !spec.has("completionMode") || spec.text("completionMode") == "NonIndexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = spec.opt_int(key) {
                out.push(FieldError::invalid(&path.child(key), value, "requires indexed completion mode"));
            }
        }
    }
    if spec.has("podFailurePolicy") {
        failure_policy(spec, &path.child("podFailurePolicy"), out);
    }
    if spec.has("successPolicy") {
        let at = path.child("successPolicy");
        if indexed {
            success_policy(spec, &at, out);
        } else {
            let shown = spec.sub("successPolicy");
            out.push(FieldError::invalid(&at, shown, "requires indexed completion mode"));
        }
    }
    if spec.has("podReplacementPolicy") {
        let both = ["Failed", "TerminatingOrFailed"];
        let policies = if spec.has("podFailurePolicy") { &both[..1] } else { &both[..] };
        check::one_of(spec, "podReplacementPolicy", policies, path, out);
    }
    let template = path.child("template");
    pod::validate_template(spec.sub("template"), &template, out);
    let pods = template.child("spec");
    let at = pods.child("restartPolicy");
    match spec.sub("template").sub("spec").text("restartPolicy") {
        "Never" => {}
        "OnFailure" => {
            if spec.has("podFailurePolicy") {
                let why = "only \"Never\" is supported when podFailurePolicy is specified";
                out.push(FieldError::invalid(&at, "OnFailure", why));
            }
        }
        "Always" | "" => out.push(FieldError::required(&at, "valid values: \"OnFailure\", \"Never\"")),
        other => out.push(FieldError::not_supported(&at, other, &["OnFailure", "Never"])),
    }
}

/// How many pods at a time, and how many failures, an indexed job may have.
fn indexed_limits(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let (completions, parallelism) = (spec.opt_int("completions"), spec.opt_int("parallelism"));
    let failures = spec.opt_int("maxFailedIndexes");
    let mut too_much = |key: &str, value: i64, why: String| {
        out.push(FieldError::invalid(&path.child(key), value, why));
    };
    if let Some(value) = parallelism.filter(|p| *p > MOST_INDEXES) {
        let why = format!("must be less than or equal to {MOST_INDEXES} when completion mode is Indexed");
        too_much("parallelism", value, why);
    }
    if let (Some(completions), Some(value)) = (completions, failures)
        && value > completions
    {
        too_much("maxFailedIndexes", value, "must be less than or equal to completions".to_owned());
    }
    if let Some(value) = failures.filter(|f| *f > MOST_INDEXES) {
        too_much("maxFailedIndexes", value, format!("must be less than or equal to {MOST_INDEXES}"));
    }
    let many = completions.is_some_and(|c| c > MOST_INDEXES) && spec.has("backoffLimitPerIndex");
    for (key, value) in [("parallelism", parallelism), ("maxFailedIndexes", failures)] {
        if let Some(value) = value.filter(|v| many && *v > MOST_OF_MANY) {
            let why = format!(
                "must be less than or equal to {MOST_OF_MANY} when completions are above {MOST_INDEXES} and used \
                 with backoff limit per index"
            );
            too_much(key, value, why);
        }
    }
    if completions.is_none() {
        out.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    if many && failures.is_none() {
        let why = format!("must be specified when completions is above {MOST_INDEXES}");
        out.push(FieldError::required(&path.child("maxFailedIndexes"), why));
    }
}

fn failure_policy(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    let rules = path.child("rules");
    let list = spec.sub("podFailurePolicy").list("rules");
    if list.len() > MOST_RULES {
        out.push(FieldError::too_many(&rules, list.len(), MOST_RULES as i64));
    }
    for (i, rule) in list.iter().enumerate() {
        let at = rules.index(i);
        listed(rule, "action", &ACTIONS, &at, out);
        if rule.text("action") == "FailIndex" && !spec.has("backoffLimitPerIndex") {
            let why = "requires the backoffLimitPerIndex to be set";
            out.push(FieldError::invalid(&at.child("action"), "FailIndex", why));
        }
        let conditions = rule.list("onPodConditions");
        if rule.has("onExitCodes") {
            exit_codes(rule.sub("onExitCodes"), spec.sub("template").sub("spec"), &at.child("onExitCodes"), out);
        }
        pod_conditions(conditions, &at.child("onPodConditions"), out);
        let why = match (rule.has("onExitCodes"), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        out.push(check::without_value(&at, why));
    }
}

/// A value that must be one of a few, with upstream's list in the complaint about a missing one.
fn listed(object: &Value, key: &str, supported: &[&str], path: &Path<'_>, out: &mut Errors) {
    if object.text(key).is_empty() {
        let quoted: Vec<String> = supported.iter().map(|s| go::quote(s)).collect();
        out.push(FieldError::required(&path.child(key), format!("valid values: [{}]", quoted.join(" "))));
    } else {
        check::one_of(object, key, supported, path, out);
    }
}

fn pod_conditions(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    if list.len() > MOST_RULES {
        out.push(FieldError::too_many(path, list.len(), MOST_RULES as i64));
    }
    for (i, pattern) in list.iter().enumerate() {
        let at = path.index(i);
        check::label_name(pattern.text("type"), &at.child("type"), out);
        listed(pattern, "status", &["False", "True", "Unknown"], &at, out);
    }
}

fn exit_codes(codes: &Value, pods: &Value, path: &Path<'_>, out: &mut Errors) {
    const MOST: usize = 255;
    listed(codes, "operator", &["In", "NotIn"], path, out);
    if codes.has("containerName") {
        let name = codes.text("containerName");
        let known = |list: &str| pods.list(list).iter().any(|c| c.text("name") == name);
        if !known("containers") && !known("initContainers") {
            let why = "must be one of the container or initContainer names in the pod template";
            out.push(FieldError::invalid(&path.child("containerName"), name, why));
        }
    }
    let at = path.child("values");
    let values: Vec<i64> = codes.list("values").iter().filter_map(Value::as_int).collect();
    let shown = || {
        let texts: Vec<String> = values.iter().map(i64::to_string).collect();
        Shown::raw(if codes.has("values") { format!("[]int32{{{}}}", texts.join(", ")) } else { "[]int32(nil)".into() })
    };
    if values.is_empty() {
        out.push(FieldError::invalid(&at, shown(), "at least one value is required"));
    } else if values.len() > MOST {
        out.push(FieldError::too_many(&at, values.len(), MOST as i64));
    }
    let mut seen = HashSet::new();
    for (i, value) in values.iter().enumerate() {
        if codes.text("operator") == "In" && *value == 0 {
            out.push(FieldError::invalid(&at.index(i), 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(*value) {
            out.push(FieldError::duplicate(&at.index(i), *value));
        }
    }
    if !values.is_sorted() {
        out.push(FieldError::invalid(&at, shown(), "must be ordered"));
    }
}

fn success_policy(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    const LONGEST: usize = 64 * 1024;
    let rules = path.child("rules");
    let list = spec.sub("successPolicy").list("rules");
    let completions = spec.int("completions");
    if list.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        out.push(FieldError::required(&rules, why));
    }
    if list.len() > MOST_RULES {
        out.push(FieldError::too_many(&rules, list.len(), MOST_RULES as i64));
    }
    for (i, rule) in list.iter().enumerate() {
        let at = rules.index(i);
        let mut total = 0;
        if !rule.has("succeededCount") && !rule.has("succeededIndexes") {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            out.push(FieldError::required(&at, why));
        }
        if rule.has("succeededIndexes") {
            let (text, here) = (rule.text("succeededIndexes"), at.child("succeededIndexes"));
            if text.len() > LONGEST {
                out.push(FieldError::too_long(&here, LONGEST as i64));
            }
            match indexes(text, completions) {
                Ok(count) => total = count,
                Err(why) => {
                    out.push(FieldError::invalid(&here, text, format!("error parsing succeededIndexes: {why}")));
                }
            }
        }
        check::not_negative(rule, "succeededCount", &at, out);
        if let Some(count) = rule.opt_int("succeededCount") {
            let here = at.child("succeededCount");
            if count > completions {
                let why = format!("must be less than or equal to {completions} (the number of specified completions)");
                out.push(FieldError::invalid(&here, count, why));
            }
            if rule.has("succeededIndexes") && count > total {
                let why = format!(
                    "must be less than or equal to {total} (the number of indexes in the specified \
                     succeededIndexes field)"
                );
                out.push(FieldError::invalid(&here, count, why));
            }
        }
    }
}

/// Checks a changed job.
pub(super) fn validate_update(new: &Value, old: &Value) -> Errors {
    let path = Path::ROOT.child("spec");
    let (now, was) = (new.sub("spec"), old.sub("spec"));
    let labels = was.sub("template").sub("metadata").members("labels");
    // Upstream checks the specification twice, and reports what it finds as often.
    let mut out = whole(new, labels.contains_key(UID[1]) && labels.contains_key(NAME[1]));
    spec(now, &path, &mut out);
    if now.text("completionMode") != "Indexed" {
        check::immutable(now, was, "completions", &path, &mut out);
    } else if let Some(completions) = now.opt_int("completions")
        && now.sub("completions") != was.sub("completions")
        && completions != now.int("parallelism")
    {
        let why = "can only be modified in tandem with spec.parallelism";
        out.push(FieldError::invalid(&path.child("completions"), completions, why));
    }
    check::immutable_selector(now, was, &path, &mut out);
    let waits = was.flag("suspend") && !old.sub("status").has("startTime");
    let mut before = was.sub("template").clone();
    if waits {
        scheduling_from(now.sub("template"), &mut before);
    }
    if now.sub("template") != &before {
        let shown = Shown::raw(gostruct::pod_template(now.sub("template")));
        out.push(FieldError::invalid(&path.child("template"), shown, check::IMMUTABLE));
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        check::immutable(now, was, key, &path, &mut out);
    }
    out
}

/// Where and when the pods of a job run may change until it starts.
fn scheduling_from(new: &Value, old: &mut Value) {
    for part in [
        &["spec", "nodeSelector"][..],
        &["spec", "tolerations"],
        &["spec", "schedulingGates"],
        &["spec", "affinity", "nodeAffinity"],
        &["metadata", "annotations"],
        &["metadata", "labels"],
    ] {
        match new.at(part) {
            Some(value) => old.set_at(part, value.clone()),
            None => {
                old.remove_at(part);
            }
        }
    }
    let affinity = ["spec", "affinity"];
    let empty = old.at(&affinity).and_then(Value::as_object).is_some_and(Map::is_empty);
    if empty && new.at(&affinity).is_none() {
        old.remove_at(&affinity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn found(spec: &str) -> Vec<String> {
        let spec = json::parse(spec.as_bytes()).unwrap();
        let mut out = Errors::new();
        template_of_job(&spec, &Path::ROOT.child("spec"), &mut out);
        let own = out.iter().filter(|e| !e.field.starts_with("spec.template"));
        own.map(|e| format!("{}: {}", e.field, e.body())).collect()
    }

    #[test]
    fn jobs_are_checked_in_upstreams_words() {
        for (spec, wanted) in [
            (
                r#"{"backoffLimitPerIndex":1,"completionMode":"NonIndexed"}"#,
                "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
            ),
            (r#"{"completionMode":"Indexed"}"#, "spec.completions: Required value: when completion mode is Indexed"),
            (
                r#"{"maxFailedIndexes":3,"completionMode":"Indexed","completions":2,"backoffLimitPerIndex":1}"#,
                "spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions",
            ),
            (
                r#"{"podFailurePolicy":{"rules":[{"onPodConditions":[{"type":"A","status":"True"}]}]}}"#,
                r#"spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]"#,
            ),
            (
                r#"{"podFailurePolicy":{"rules":[{"action":"Ignore"}]}}"#,
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ),
            (
                r#"{"podFailurePolicy":{"rules":[{"action":"Ignore","onExitCodes":{"operator":"In","values":[2,1]}}]}}"#,
                "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: []int32{2, 1}: must be ordered",
            ),
            (
                r#"{"managedBy":"none"}"#,
                r#"spec.managedBy: Invalid value: "none": must be a domain-prefixed path (such as "acme.io/foo")"#,
            ),
            (
                r#"{"completionMode":"Indexed","completions":3,"successPolicy":{"rules":[{"succeededIndexes":"0-5"}]}}"#,
                r#"spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0-5": error parsing succeededIndexes: too large index: "5""#,
            ),
        ] {
            assert_eq!(found(spec), [wanted], "{spec}");
        }
    }
}
