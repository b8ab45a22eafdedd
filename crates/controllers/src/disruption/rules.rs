//! What a PodDisruptionBudget allows: rules without requests.

use crate::pods;
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use object::{Map, Value, map};

/// How long after its eviction a pod is expected to be deleted.
pub const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

/// How many pods there should be, and how many of them healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// How many there should be.
    pub pods: i64,
    /// How many must stay healthy.
    pub healthy: i64,
}

/// Whether the budget is a share of what the pods' controllers want, so that their scale has to be asked for.
pub fn needs_scale(budget: &Value) -> bool {
    let spec = budget.sub("spec");
    spec.has("maxUnavailable") || spec.sub("minAvailable").as_str().is_some()
}

/// What a budget expects, if there are so many pods and their controllers want so many.
pub fn expected(budget: &Value, pods: i64, scale: i64) -> Result<Expected, String> {
    let spec = budget.sub("spec");
    if spec.has("maxUnavailable") {
        let unavailable = scaled(spec.sub("maxUnavailable"), scale)?;
        return Ok(Expected { pods: scale, healthy: scale.saturating_sub(unavailable).max(0) });
    }
    match spec.sub("minAvailable") {
        Value::Int(healthy) => Ok(Expected { pods, healthy: *healthy }),
        Value::String(_) => Ok(Expected { pods: scale, healthy: scaled(spec.sub("minAvailable"), scale)? }),
        _ => Ok(Expected { pods: 0, healthy: 0 }),
    }
}

/// A number, or that many percent of `total`, rounded up.
fn scaled(value: &Value, total: i64) -> Result<i64, String> {
    if let Some(number) = value.as_int() {
        return Ok(number);
    }
    let text = value.as_str().unwrap_or_default();
    let percent = text.strip_suffix('%').and_then(|n| n.parse::<i64>().ok());
    let percent = percent.ok_or("invalid value for IntOrString: invalid type: string is not a percentage")?;
    let exact = i128::from(percent) * i128::from(total);
    let up = exact.div_euclid(100) + i128::from(exact.rem_euclid(100) != 0);
    Ok(i64::try_from(up).unwrap_or(i64::MAX))
}

/// The evicted pods that are not yet being deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disrupted {
    /// Their names, and when they were evicted.
    pub pods: Map,
    /// When the first of them is overdue.
    pub recheck: Option<Timestamp>,
    /// The names of those that were expected to be deleted and were not.
    pub overdue: Vec<String>,
}

/// Looks after the pods that were evicted.
pub fn disrupted(budget: &Value, pods: &[&Value], now: Timestamp) -> Disrupted {
    let evicted = budget.sub("status").members("disruptedPods");
    let mut out = Disrupted::default();
    for pod in pods.iter().filter(|p| !pods::is_deleting(p)) {
        let Some(time) = evicted.get(pod.name()) else { continue };
        let at = time.as_str().and_then(|t| t.parse::<Timestamp>().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
        match at.saturating_add(DELETION_TIMEOUT) {
            Ok(end) if end >= now => {
                out.recheck = Some(out.recheck.map_or(end, |other| other.min(end)));
                out.pods.insert(pod.name(), time.clone());
            }
            _ => out.overdue.push(pod.name().to_owned()),
        }
    }
    out
}

/// How many pods are ready and stay.
pub fn healthy(pods: &[&Value], disrupted: &Disrupted) -> i64 {
    let stays = |p: &&&Value| !pods::is_deleting(p) && !disrupted.pods.contains_key(p.name()) && pods::is_ready(p);
    pods.iter().filter(stays).count() as i64
}

/// The budget with its new status; nothing if the status is so already.
pub fn with_status(budget: &Value, expected: Expected, healthy: i64, disrupted: &Map, now: Timestamp) -> Option<Value> {
    let spare = healthy.saturating_sub(expected.healthy);
    let allowed = if expected.pods <= 0 { 0 } else { spare.max(0) };
    let generation = budget.sub("metadata").int("generation");
    let mut status = map! {
        "currentHealthy" => healthy, "desiredHealthy" => expected.healthy, "expectedPods" => expected.pods,
        "disruptionsAllowed" => allowed,
    };
    if generation != 0 {
        status.insert("observedGeneration", generation);
    }
    if !disrupted.is_empty() {
        status.insert("disruptedPods", disrupted.clone());
    }
    let old = budget.sub("status");
    let (holds, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let told = pods::condition(budget, "DisruptionAllowed");
    let told = told.is_some_and(|c| c.text("status") == holds && c.text("reason") == reason);
    let same = |key: &str| old.get(key).filter(|v| !v.is_null()) == status.get(key);
    let evictions = old.members("disruptedPods") == disrupted;
    let numbers = ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed", "observedGeneration"];
    if told && evictions && numbers.iter().all(|key| same(key)) {
        return None;
    }
    let conditions = with_condition(old.list("conditions"), holds, reason, "", generation, now);
    status.insert("conditions", conditions);
    let mut out = budget.clone();
    out.set_at(&["status"], status.into());
    Some(out)
}

/// The budget when its status cannot be found out: nothing may be evicted.
pub fn failed(budget: &Value, why: &str, now: Timestamp) -> Value {
    let status = budget.sub("status");
    let observed = status.int("observedGeneration");
    let conditions = with_condition(status.list("conditions"), "False", "SyncFailed", why, observed, now);
    let mut out = budget.clone();
    out.set_at(&["status", "disruptionsAllowed"], Value::Int(0));
    out.set_at(&["status", "conditions"], conditions.into());
    for number in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        if !out.sub("status").has(number) {
            out.set_at(&["status", number], Value::Int(0));
        }
    }
    out
}

fn with_condition(
    conditions: &[Value],
    holds: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> Vec<Value> {
    let kind = "DisruptionAllowed";
    let mut out = conditions.to_vec();
    let old = out.iter().position(|c| c.text("type") == kind);
    let since = old.and_then(|i| out.get(i)).filter(|c| c.text("status") == holds);
    let since = since.map_or_else(|| pods::seconds(now), |c| c.text("lastTransitionTime").to_owned());
    let mut condition = map! {
        "type" => kind, "status" => holds, "reason" => reason, "message" => message, "lastTransitionTime" => since,
    };
    if generation != 0 {
        condition.insert("observedGeneration", generation);
    }
    match old.and_then(|i| out.get_mut(i)) {
        Some(old) => *old = condition.into(),
        None => out.push(condition.into()),
    }
    out
}

/// How long until the mark of a disruption that did not come is taken off a pod; nothing if there is no such mark.
pub fn stale_disruption_in(pod: &Value, now: Timestamp) -> Option<SignedDuration> {
    let mark = pods::condition(pod, "DisruptionTarget").filter(|c| c.text("status") == "True")?;
    if pods::is_deleting(pod) || pods::is_terminal(pod) || mark.text("reason") == "TerminationByKubelet" {
        return None;
    }
    let since = pods::time(mark, "lastTransitionTime").unwrap_or(Timestamp::UNIX_EPOCH);
    Some((DELETION_TIMEOUT - now.duration_since(since)).max(SignedDuration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_and_shares_are_expected() {
        for (spec, pods, scale, expected_pods, healthy) in [
            (r#"{"minAvailable":2}"#, 3, 0, 3, 2),
            (r#"{"minAvailable":"50%"}"#, 3, 3, 3, 2),
            (r#"{"maxUnavailable":1}"#, 0, 3, 3, 2),
            (r#"{"maxUnavailable":"50%"}"#, 3, 3, 3, 1),
            (r#"{"maxUnavailable":5}"#, 3, 3, 3, 0),
            ("{}", 3, 3, 0, 0),
            ("null", 3, 3, 0, 0),
        ] {
            let budget = parse(&format!(r#"{{"spec":{spec}}}"#));
            let expected_now = Expected { pods: expected_pods, healthy };
            assert_eq!(expected(&budget, pods, scale), Ok(expected_now), "{spec}");
        }
        assert!(expected(&parse(r#"{"spec":{"maxUnavailable":"x"}}"#), 1, 1).is_err());
    }

    #[test]
    fn a_status_is_written_only_when_it_changes() {
        let budget = parse(r#"{"metadata":{"generation":1}}"#);
        let expected = Expected { pods: 3, healthy: 2 };
        let now = at("2026-01-01T00:00:00Z");
        let written = with_status(&budget, expected, 3, &Map::new(), now).unwrap();
        assert_eq!(written.sub("status").int("disruptionsAllowed"), 1);
        let later = at("2026-01-01T00:01:00Z");
        assert_eq!(with_status(&written, expected, 3, &Map::new(), later), None);
        let worse = with_status(&written, expected, 2, &Map::new(), later).unwrap();
        let condition = worse.sub("status").list("conditions").first().unwrap().clone();
        assert_eq!(
            (condition.text("reason"), condition.text("lastTransitionTime")),
            ("InsufficientPods", "2026-01-01T00:01:00Z")
        );
        let none = with_status(&budget, Expected { pods: 0, healthy: 0 }, 0, &Map::new(), now).unwrap();
        assert_eq!(none.sub("status").int("disruptionsAllowed"), 0);
    }

    #[test]
    fn evicted_pods_are_expected_to_go() {
        let budget = parse(
            r#"{"status":{"disruptedPods":{"a":"2026-01-01T00:00:00Z","b":"2026-01-01T00:01:00Z","c":"2026-01-01T00:01:00Z"}}}"#,
        );
        let pod = |name: &str, more: &str| {
            parse(&format!(
                r#"{{"metadata":{{"name":"{name}"{more}}},"status":{{"conditions":[{{"type":"Ready","status":"True"}}]}}}}"#
            ))
        };
        let pods =
            [pod("a", ""), pod("b", ""), pod("c", r#","deletionTimestamp":"2026-01-01T00:01:00Z""#), pod("d", "")];
        let pods: Vec<&Value> = pods.iter().collect();
        let found = disrupted(&budget, &pods, at("2026-01-01T00:02:30Z"));
        assert_eq!((found.pods.len(), found.overdue.as_slice()), (1, ["a".to_owned()].as_slice()));
        assert_eq!(found.recheck, Some(at("2026-01-01T00:03:00Z")));
        assert_eq!(healthy(&pods, &found), 2);
    }

    #[test]
    fn the_mark_of_a_disruption_gets_stale() {
        let pod = |reason: &str, phase: &str| {
            parse(&format!(
                r#"{{"status":{{"phase":"{phase}","conditions":[{{"type":"DisruptionTarget","status":"True","reason":"{reason}","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}}}"#
            ))
        };
        for (reason, phase, now, left) in [
            ("EvictionByEvictionAPI", "Running", "2026-01-01T00:00:30Z", Some(90)),
            ("EvictionByEvictionAPI", "Running", "2026-01-01T00:10:00Z", Some(0)),
            ("EvictionByEvictionAPI", "Failed", "2026-01-01T00:10:00Z", None),
            ("TerminationByKubelet", "Running", "2026-01-01T00:10:00Z", None),
        ] {
            let found = stale_disruption_in(&pod(reason, phase), at(now));
            assert_eq!(found, left.map(SignedDuration::from_secs));
        }
    }
}
