//! How far a permit has come for somebody who waits.

use jiff::Timestamp;
use manager::permit::Phase;
use manager::permit::record::phase;
use manager::status::condition;
use object::Value;

/// For what somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// That somebody looked at it: that it could be prepared.
    Prepared,
    /// That it can be reviewed, or what its template approves by itself is active.
    Reviewable,
    /// That it is active, or will be by itself at a later time.
    Active,
    /// That it is over and everything is cleaned up: it is gone, or kept for the time that its template says.
    Over,
}

/// What somebody who waits learns from a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is as wished; what that is.
    Done(String),
    /// It will not get there by itself; why.
    Failed(String),
    /// Not yet; how far it is.
    Waits(String),
}

/// Looks at a permit; one that is not there any more is none.
pub fn look(permit: Option<&Value>, goal: Goal, now: Timestamp) -> Look {
    let Some(permit) = permit else {
        return match goal {
            Goal::Over => Look::Done("expired and gone".to_owned()),
            _ => Look::Failed("it was deleted".to_owned()),
        };
    };
    let state = phase(permit);
    let ready = condition(permit, "Ready");
    let message = ready.and_then(|c| c.str_at(&["message"])).unwrap_or_default();
    let told = format!("{state}: {message}").trim_start_matches(": ").to_owned();
    let is_wrong = ready.is_some_and(|c| c.str_at(&["status"]) == Some("False"));
    let is_auto = permit.at(&["status", "request", "approvals", "auto"]).and_then(Value::as_bool) == Some(true);
    let start = permit.str_at(&["status", "request", "startTime"]).and_then(|t| t.parse::<Timestamp>().ok());
    match (goal, state) {
        (Goal::Over, Phase::Expired) => over(permit, now),
        (Goal::Over, _) => Look::Waits(told),
        (_, Phase::Active) => match permit.str_at(&["status", "active", "until"]) {
            Some(until) => Look::Done(format!("active until {until}")),
            None => Look::Done("active until somebody expires it".to_owned()),
        },
        (_, Phase::Failed | Phase::Denied | Phase::Expired) => {
            let failure = permit.str_at(&["status", "failure", "message"]).unwrap_or(message);
            Look::Failed(format!("it is {state}: {failure}").trim_end_matches([':', ' ']).to_owned())
        }
        (_, Phase::Approved) if start.is_some_and(|start| start > now) => {
            Look::Done(format!("approved; it begins at {}", start.unwrap_or_default()))
        }
        (Goal::Prepared, Phase::Requested | Phase::Pending | Phase::Approved) => Look::Done("requested".to_owned()),
        (Goal::Reviewable, Phase::Requested | Phase::Pending) if !is_auto => Look::Done("waits for review".to_owned()),
        (Goal::Active, Phase::Requested | Phase::Pending) => Look::Done("waits for review".to_owned()),
        // The controller tries again by itself, but nothing becomes of it unless somebody changes something.
        (_, Phase::Created) if is_wrong => Look::Failed(format!("it cannot be prepared: {message}")),
        _ => Look::Waits(told),
    }
}

/// How far an expired permit is. One that is not kept is deleted by the controller: only when it is gone is everything
/// done, and whoever waits is told the same however often they look.
fn over(permit: &Value, now: Timestamp) -> Look {
    let left = permit.at(&["status", "size"]).and_then(Value::as_int).unwrap_or_default();
    let kept_until = permit.str_at(&["status", "keepUntil"]);
    let is_kept = kept_until.and_then(|t| t.parse::<Timestamp>().ok()).is_some_and(|until| until > now);
    match kept_until {
        _ if left > 0 => Look::Waits(format!("{left} objects are left")),
        Some(until) if is_kept && permit.meta_str("deletionTimestamp").is_empty() => {
            Look::Done(format!("expired; kept until {until}"))
        }
        _ => Look::Waits("it is being deleted".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn somebody_who_waits_is_told_when_to_stop() {
        use Goal::*;
        let done = |t: &str| Look::Done(t.to_owned());
        let failed = |t: &str| Look::Failed(t.to_owned());
        let waits = |t: &str| Look::Waits(t.to_owned());
        for (goal, status, expected) in [
            (Prepared, "{}", waits("")),
            (Prepared, "{phase: Requested}", done("requested")),
            (
                Prepared,
                "{phase: Created, conditions: [{type: Ready, status: 'False', message: bad}]}",
                failed("it cannot be prepared: bad"),
            ),
            (Reviewable, "{phase: Requested}", done("waits for review")),
            (Reviewable, "{phase: Requested, request: {approvals: {auto: true}}}", waits("Requested:")),
            (
                Reviewable,
                "{phase: Created, conditions: [{type: Ready, status: 'False', message: bad}]}",
                failed("it cannot be prepared: bad"),
            ),
            (Reviewable, "{}", waits("")),
            (Active, "{phase: Active, active: {until: x}}", done("active until x")),
            (Active, "{phase: Failed, failure: {message: why}}", failed("it is Failed: why")),
            (
                Active,
                "{phase: Retrying, conditions: [{type: Ready, status: Unknown, message: m}]}",
                waits("Retrying: m"),
            ),
            (
                Active,
                "{phase: Approved, request: {startTime: '2030-01-01T00:00:00Z'}}",
                done("approved; it begins at 2030-01-01T00:00:00Z"),
            ),
            (Over, "{phase: Expired, size: 2}", waits("2 objects are left")),
            (Over, "{phase: Expired, size: 2, keepUntil: '2030-01-01T00:00:00Z'}", waits("2 objects are left")),
            (Over, "{phase: Expired, size: 0}", waits("it is being deleted")),
            (Over, "{phase: Expired, keepUntil: '2025-01-01T00:00:00Z'}", waits("it is being deleted")),
            (
                Over,
                "{phase: Expired, keepUntil: '2030-01-01T00:00:00Z'}",
                done("expired; kept until 2030-01-01T00:00:00Z"),
            ),
            (
                Over,
                "{phase: Expired, keepUntil: '2030-01-01T00:00:00Z'}\nmetadata: {deletionTimestamp: x}",
                waits("it is being deleted"),
            ),
        ] {
            let permit = yaml::parse(format!("status: {status}").as_bytes()).unwrap_or_default();
            let now = "2026-01-01T00:00:00Z".parse().unwrap_or_default();
            let got = match look(Some(&permit), goal, now) {
                Look::Waits(text) => Look::Waits(text.trim().to_owned()),
                other => other,
            };
            assert_eq!(got, expected, "{goal:?} {status}");
        }
        assert_eq!(look(None, Over, Timestamp::UNIX_EPOCH), done("expired and gone"));
    }
}
