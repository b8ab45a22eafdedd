//! What people may do to a permit's status. They only say which phase they want; everything else is built here.

use super::phase::{Actor, Phase};
use super::record::{Transition, phase, reason_by, with_transitions};
use super::{approval, template::PermitTemplate};
use crate::status::is_ready;
use jiff::Timestamp;
use object::{Value, duration, map};

/// What of the request a reviewer may adjust.
const ADJUSTABLE: [&str; 3] = ["duration", "startTime", "keepFor"];

/// The status that follows from what somebody wrote. `actor` has `name`, `type` and `groups`; `template` is the permit's, if
/// it still is there.
///
/// # Errors
///
/// Why it is not possible.
pub fn review(
    old: &Value,
    new: &Value,
    actor: &Value,
    template: Option<&PermitTemplate>,
    now: Timestamp,
) -> Result<Value, String> {
    let nothing = Value::Object(object::Map::new());
    let (was, wanted) = (old.get("status").unwrap_or(&nothing), new.get("status").unwrap_or(&nothing));
    let from = phase(old);
    let Some(to) = wanted.str_at(&["phase"]).and_then(Phase::of) else {
        return Err("unknown phase".to_owned());
    };
    for key in ["resources", "impersonation", "template", "approvals"] {
        let path = ["request", key];
        if wanted.at(&path).filter(|v| !v.is_null()) != was.at(&path).filter(|v| !v.is_null()) {
            return Err(format!("status.request.{key} is written by the controller only"));
        }
    }
    if from == to {
        return if was == wanted { Ok(was.clone()) } else { Err("only lifecycle transitions are possible".to_owned()) };
    }
    if !matches!(to, Phase::Approved | Phase::Denied | Phase::Active | Phase::Expired | Phase::Retrying) {
        return Err(format!("phase {to} is set by the controller only"));
    }
    if !from.may_become(to, Actor::User) {
        return Err(format!("invalid transition from {from} to {to}"));
    }
    let mut status = was.clone();
    let said = wanted.str_at(&["review", "message"]).unwrap_or_default();
    let verdict = |status: &mut Value, verdict: &str| {
        let mut review = map! { "reviewer" => actor.clone(), "verdict" => verdict };
        if !said.is_empty() {
            review.insert("message", said);
        }
        status.set_at(&["review"], review.into());
    };
    let what = match to {
        Phase::Approved => {
            adjust(&mut status, wanted, template, now)?;
            if !is_ready(old) {
                return Err("the request is not ready for review".to_owned());
            }
            let mut permit = old.clone();
            permit.set_at(&["status"], status.clone());
            let rules = was.at(&["request", "approvals"]).cloned().unwrap_or_default();
            approval::check(&rules, &permit, Some(actor))?;
            verdict(&mut status, "Approved");
            "Approved"
        }
        Phase::Denied => {
            verdict(&mut status, "Denied");
            status.set_at(&["transitions"], denied(was, actor, said, now));
            status.set_at(&["phase"], to.name().into());
            return Ok(status);
        }
        Phase::Active => {
            // The controller activates what is approved as soon as its time has come; that is not for others to change.
            let start = was.str_at(&["request", "startTime"]).and_then(|t| t.parse::<Timestamp>().ok());
            return match start.filter(|start| *start > now) {
                Some(start) => Err(format!("the request starts at {start}")),
                None => Ok(status),
            };
        }
        Phase::Retrying => {
            if was.get("failure").is_none_or(Value::is_null) {
                return Err("there is nothing to retry".to_owned());
            }
            // As the original spells it.
            "RetryPermited"
        }
        _ => "Expired",
    };
    let reason = reason_by(what, actor);
    let step = Transition { phase: to, actor, reason: &reason, message: said, time: now };
    status.set_at(&["transitions"], with_transitions(Some(was), &[step]));
    status.set_at(&["phase"], to.name().into());
    Ok(status)
}

fn denied(was: &Value, actor: &Value, message: &str, time: Timestamp) -> Value {
    let step = Transition { phase: Phase::Denied, actor, reason: "DeniedByReviewer", message, time };
    with_transitions(Some(was), &[step])
}

/// Takes over what a reviewer adjusted, within the limits.
fn adjust(status: &mut Value, wanted: &Value, template: Option<&PermitTemplate>, now: Timestamp) -> Result<(), String> {
    for key in ADJUSTABLE {
        let path = ["request", key];
        let text = wanted.str_at(&path).filter(|t| !t.is_empty());
        if text == status.str_at(&path) {
            continue;
        }
        let Some(text) = text else { continue };
        match key {
            "duration" => match template {
                Some(template) => template.check_duration(Some(text))?,
                // Without the template there is no limit but what was asked for.
                None => {
                    let asked = status.str_at(&path).map(duration::go).transpose()?.unwrap_or_default();
                    let now = duration::go(text)?;
                    if now.is_zero() || !asked.is_zero() && now > asked {
                        return Err("duration: must not be longer than what was asked for".to_owned());
                    }
                }
            },
            "keepFor" => drop(duration::extended(text).map_err(|e| format!("keepFor: {e}"))?),
            _ => {
                let start: Timestamp = text.parse().map_err(|_| "startTime: must be a time".to_owned())?;
                if start < now {
                    return Err("startTime: must not have passed".to_owned());
                }
            }
        }
        let text = text.to_owned();
        status.set_at(&path, text.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(text: &str) -> Value {
        yaml::parse(text.as_bytes()).unwrap()
    }

    const OLD: &str = "{spec: {requester: {name: bob}}, status: {phase: Requested, conditions: [{type: Ready, status: 'True'}], request: {duration: 1h, approvals: {conditions: ['reviewer.name != requester.name']}, resources: [{targets: [{kind: A}]}]}}}";

    fn reviewed(old: &str, change: &str, who: &str) -> Result<Value, String> {
        let old = read(old);
        let mut new = old.clone();
        for (key, value) in read(change).as_object().unwrap().iter() {
            let path: Vec<&str> = std::iter::once("status").chain(key.split('.')).collect();
            new.set_at(&path, value.clone());
        }
        let actor = read(&format!("{{name: {who}, type: User, groups: [g]}}"));
        review(&old, &new, &actor, None, "2026-01-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_review_is_built_from_the_old_status() {
        let status = reviewed(
            OLD,
            "{phase: Approved, review.message: fine, request.duration: 30m, size: 7, active: {from: x}}",
            "alice",
        )
        .unwrap();
        assert_eq!(status.str_at(&["phase"]), Some("Approved"));
        assert_eq!(
            (status.str_at(&["request", "duration"]), status.get("size"), status.get("active")),
            (Some("30m"), None, None)
        );
        assert_eq!(
            (status.str_at(&["review", "verdict"]), status.str_at(&["review", "reviewer", "name"])),
            (Some("Approved"), Some("alice"))
        );
        assert_eq!(
            status.at(&["transitions"]).and_then(Value::as_array).and_then(|t| t[0].str_at(&["reason"])),
            Some("ApprovedByUser")
        );
    }

    #[test]
    fn what_is_not_a_step_of_the_life_is_refused() {
        for (old, change, who, problem) in [
            (OLD, "{phase: Approved}", "bob", "no approval condition is met"),
            (OLD, "{size: 3}", "alice", "only lifecycle transitions"),
            (
                OLD,
                "{phase: Approved, request.resources: []}",
                "alice",
                "status.request.resources is written by the controller",
            ),
            (OLD, "{phase: Active}", "alice", "invalid transition from Requested to Active"),
            (OLD, "{phase: Created}", "alice", "set by the controller only"),
            (OLD, "{phase: Nope}", "alice", "unknown phase"),
            (OLD, "{phase: Approved, request.duration: 2h}", "alice", "must not be longer"),
            (OLD, "{phase: Approved, request.startTime: '2025-01-01T00:00:00Z'}", "alice", "must not have passed"),
            (&OLD.replace("'True'", "'False'"), "{phase: Approved}", "alice", "not ready for review"),
            (
                &OLD.replace("Requested", "Expired"),
                "{phase: Approved}",
                "alice",
                "invalid transition from Expired to Approved",
            ),
            (
                &OLD.replace("Requested", "Denied"),
                "{phase: Approved}",
                "alice",
                "invalid transition from Denied to Approved",
            ),
            (&OLD.replace("Requested", "Failed"), "{phase: Retrying}", "alice", "nothing to retry"),
        ] {
            let got = reviewed(old, change, who).unwrap_err();
            assert!(got.contains(problem), "{change}: {got}");
        }
        for (old, to) in [(OLD, "Denied"), (OLD, "Expired"), (&OLD.replace("Requested", "Active"), "Expired")] {
            assert_eq!(reviewed(old, &format!("{{phase: {to}}}"), "bob").unwrap().str_at(&["phase"]), Some(to));
        }
    }
}
