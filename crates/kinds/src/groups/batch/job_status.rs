//! What is checked when a job's status is written.

use crate::check::{self, Errors};
use crate::gostruct;
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};

/// Checks a written status. What an update leaves as it was may be wrong; what it changes may not.
pub(super) fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        check::not_negative(new.sub("status"), key, &path, &mut out);
    }
    uncounted(new.sub("status"), &path.child("uncountedTerminatedPods"), &mut out);
    conditions(new, old, &path, &mut out);
    times(new, old, &path, &mut out);
    finished(new, old, &path, &mut out);
    counters(new, old, &path, &mut out);
    index_lists(new, old, &path, &mut out);
    out
}

/// Whether a condition holds.
fn is(job: &Value, kind: &str) -> bool {
    job.sub("status").list("conditions").iter().any(|c| c.text("type") == kind && c.text("status") == "True")
}

fn is_finished(job: &Value) -> bool {
    is(job, "Complete") || is(job, "Failed")
}

fn differs(new: &Value, old: &Value, key: &str) -> bool {
    new.sub("status").sub(key) != old.sub("status").sub(key)
}

fn uncounted(status: &Value, path: &Path<'_>, out: &mut Errors) {
    let mut seen = std::collections::HashSet::new();
    for key in ["succeeded", "failed"] {
        let at = path.child(key);
        for (i, uid) in status.sub("uncountedTerminatedPods").strings(key).into_iter().enumerate() {
            if uid.is_empty() {
                out.push(FieldError::invalid(&at.index(i), uid, "must not be empty"));
            } else if !seen.insert(uid) {
                out.push(FieldError::duplicate(&at.index(i), uid));
            }
        }
    }
}

fn conditions(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    let changed = |kind: &str| is(new, kind) != is(old, kind);
    let mut refuse = |why: String| out.push(check::without_value(&path.child("conditions"), why));
    let complete = is(new, "Complete");
    for (other, shown) in [("Failed", "Failed=true"), ("FailureTarget", "FailureTarget=true")] {
        if (changed("Complete") || changed(other)) && complete && is(new, other) {
            refuse(format!("cannot set Complete=True and {shown} conditions"));
        }
    }
    if (changed("Failed") || changed("FailureTarget")) && is(new, "Failed") && !is(new, "FailureTarget") {
        refuse("cannot set Failed=True condition without the FailureTarget=true condition".to_owned());
    }
    let met = is(new, "SuccessCriteriaMet");
    if (changed("Complete") || changed("SuccessCriteriaMet")) && complete && !met {
        refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition".to_owned());
    }
    for other in ["Failed", "FailureTarget"] {
        if met && is(new, other) {
            refuse(format!("cannot set SuccessCriteriaMet=True and {other}=true conditions"));
        }
    }
    if new.sub("spec").has("successPolicy") && !met && complete {
        refuse("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True".to_owned());
    }
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is(old, kind) && !is(new, kind) {
            refuse(format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    if is(old, "SuccessCriteriaMet") && !met {
        refuse("cannot disable the SuccessCriteriaMet=True condition".to_owned());
    }
    if is(old, "Complete") && !is(old, "SuccessCriteriaMet") && met {
        refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions".to_owned());
    }
}

fn times(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    let (status, before) = (new.sub("status"), old.sub("status"));
    let (start, end) = (status.text("startTime"), status.text("completionTime"));
    let (start_changed, end_changed) = (differs(new, old, "startTime"), differs(new, old, "completionTime"));
    let complete_changed = is(new, "Complete") != is(old, "Complete");
    let at = path.child("completionTime");
    if (complete_changed || end_changed) && !end.is_empty() && !is(new, "Complete") {
        let why = "cannot set completionTime when there is no Complete=True condition";
        out.push(FieldError::invalid(&at, gostruct::time(end), why));
    }
    if (complete_changed || end_changed) && end.is_empty() && is(new, "Complete") {
        out.push(FieldError::required(&at, "completionTime is required for Complete jobs"));
    }
    // Times of one form, in UTC: they compare as texts.
    if (start_changed || end_changed) && !start.is_empty() && !end.is_empty() && end < start {
        out.push(FieldError::invalid(&at, gostruct::time(end), "completionTime cannot be set before startTime"));
    }
    if !end.is_empty() && before.has("completionTime") && end_changed {
        out.push(FieldError::invalid(&at, gostruct::time(end), "completionTime cannot be mutated"));
    }
    if start_changed && before.has("startTime") && !new.sub("spec").flag("suspend") {
        let why = "startTime cannot be removed for unsuspended job";
        out.push(FieldError::required(&path.child("startTime"), why));
    }
}

/// A job that is done has no pods any more.
fn finished(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    if !is_finished(new) {
        return;
    }
    let status = new.sub("status");
    let concerns = |key: &str| !is_finished(old) || differs(new, old, key);
    for key in ["active", "terminating"] {
        let count = status.int(key);
        if count > 0 && concerns(key) {
            let why = format!("{key}>0 is invalid for finished job");
            out.push(FieldError::invalid(&path.child(key), count, why));
        }
    }
    if !status.has("startTime") && concerns("startTime") {
        out.push(FieldError::required(&path.child("startTime"), "startTime is required for finished job"));
    }
    let key = "uncountedTerminatedPods";
    let pods = status.sub(key);
    if concerns(key) && !(pods.list("failed").is_empty() && pods.list("succeeded").is_empty()) {
        let why = "uncountedTerminatedPods needs to be empty for finished job";
        out.push(FieldError::invalid(&path.child(key), pods, why));
    }
}

fn counters(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    let (status, before, spec) = (new.sub("status"), old.sub("status"), new.sub("spec"));
    let active = status.int("active");
    if let Some(ready) = status.opt_int("ready").filter(|ready| *ready > active)
        && (differs(new, old, "ready") || active != before.int("active"))
    {
        out.push(FieldError::invalid(&path.child("ready"), ready, "cannot set more ready pods than active"));
    }
    // Jobs with as many pods as completions can be scaled down.
    let elastic = is_indexed(spec) && spec.sub("completions") == spec.sub("parallelism");
    for key in ["failed", "succeeded"].into_iter().filter(|key| *key == "failed" || !elastic) {
        if status.int(key) < before.int(key) {
            let why = format!("cannot decrease the {key} counter");
            out.push(FieldError::invalid(&path.child(key), status.int(key), why));
        }
    }
}

fn is_indexed(spec: &Value) -> bool {
    spec.text("completionMode") == "Indexed"
}

fn index_lists(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    let (status, spec) = (new.sub("status"), new.sub("spec"));
    let (done, failed) = (status.text("completedIndexes"), status.text("failedIndexes"));
    let (done_path, failed_path) = (path.child("completedIndexes"), path.child("failedIndexes"));
    let completions = spec.opt_int("completions");
    let (done_changed, failed_changed) = (differs(new, old, "completedIndexes"), differs(new, old, "failedIndexes"));
    if done_changed {
        if let Some(Err(why)) = completions.map(|c| indexes(done, c)) {
            out.push(FieldError::invalid(&done_path, done, format!("error parsing completedIndexes: {why}")));
        }
        if !done.is_empty() && !is_indexed(spec) {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            out.push(FieldError::invalid(&done_path, done, why));
        }
    }
    if !status.has("failedIndexes") {
        return;
    }
    let limited = spec.has("backoffLimitPerIndex");
    if failed_changed {
        if let Some(Err(why)) = completions.filter(|_| limited).map(|c| indexes(failed, c)) {
            out.push(FieldError::invalid(&failed_path, failed, format!("error parsing failedIndexes: {why}")));
        }
        if !limited {
            let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            out.push(FieldError::invalid(&failed_path, failed, why));
        }
    }
    if (failed_changed || done_changed)
        && let Some(index) = completions.and_then(|c| overlap(done, failed, c))
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        out.push(FieldError::invalid(&failed_path, failed, why));
    }
}

/// The first index that two lists share, whatever else is wrong with them.
fn overlap(done: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter(|t| !t.is_empty()).filter_map(|t| interval(t, completions).ok()).collect()
    };
    let (done, failed) = (intervals(done), intervals(failed));
    let (mut i, mut j) = (0, 0);
    while let (Some(&(a, b)), Some(&(x, y))) = (done.get(i), failed.get(j)) {
        if a <= y && x <= b {
            return Some(a.max(x));
        }
        if a <= x {
            i += 1;
        } else {
            j += 1;
        }
    }
    None
}

/// Counts the indexes of a list such as `0,3-5`, in growing order.
pub(super) fn indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |part: &str| -> Result<i64, String> {
        let quoted = object::go::quote(part);
        let value = part.parse().map_err(|_| format!("cannot convert string to integer for index: {quoted}"))?;
        if value >= completions { Err(format!("too large index: {quoted}")) } else { Ok(value) }
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts[..] {
        [one] => index(one).map(|one| (one, one)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(format!("non-increasing order, previous: {first}, current: {last}"));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            object::go::quote(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn job(status: &str) -> Value {
        json::parse(format!(r#"{{"spec":{{}},"status":{status}}}"#).as_bytes()).unwrap()
    }

    fn condition(kind: &str) -> String {
        format!(r#"{{"type":"{kind}","status":"True"}}"#)
    }

    #[test]
    fn a_status_tells_no_contradictions() {
        let (met, complete, failed) = (condition("SuccessCriteriaMet"), condition("Complete"), condition("Failed"));
        let times = r#""startTime":"2025-01-01T00:00:00Z","completionTime":"2025-01-02T00:00:00Z""#;
        for (new, old, wanted) in [
            (format!(r#"{{"conditions":[{met},{complete}],{times}}}"#), "{}".to_owned(), vec![]),
            (
                format!(r#"{{"conditions":[{complete}],{times}}}"#),
                "{}".to_owned(),
                vec![
                    "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                ],
            ),
            (
                format!(r#"{{"conditions":[{failed}],"startTime":"2025-01-01T00:00:00Z"}}"#),
                "{}".to_owned(),
                vec![
                    "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
                ],
            ),
            (
                r#"{"completionTime":"2025-01-02T00:00:00Z"}"#.to_owned(),
                "{}".to_owned(),
                vec![
                    "status.completionTime: Invalid value: 2025-01-02 00:00:00 +0000 UTC: cannot set completionTime when there is no Complete=True condition",
                ],
            ),
            (
                r#"{"failed":1}"#.to_owned(),
                r#"{"failed":2}"#.to_owned(),
                vec!["status.failed: Invalid value: 1: cannot decrease the failed counter"],
            ),
            (
                r#"{"active":1,"ready":2}"#.to_owned(),
                "{}".to_owned(),
                vec!["status.ready: Invalid value: 2: cannot set more ready pods than active"],
            ),
        ] {
            let found = validate_status(&job(&new), &job(&old));
            let found: Vec<String> = found.iter().map(|e| format!("{}: {}", e.field, e.body())).collect();
            assert_eq!(found, wanted, "{new}");
        }
    }

    #[test]
    fn indexes_are_counted_in_growing_order() {
        for (text, wanted) in [
            ("", Ok(0)),
            ("0,2-4", Ok(4)),
            ("2,1", Err("non-increasing order, previous: 2, current: 1")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            ("9", Err("too large index: \"9\"")),
            ("a", Err("cannot convert string to integer for index: \"a\"")),
        ] {
            assert_eq!(indexes(text, 5), wanted.map_err(str::to_owned), "{text}");
        }
    }
}
