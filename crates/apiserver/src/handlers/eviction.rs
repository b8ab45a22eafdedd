//! The subresource `eviction` of pods: a deletion that disruption budgets can refuse.

use super::Request;
use super::delete;
use super::own_kind::{self, OwnKind};
use super::reviews;
use super::write;
use crate::Server;
use crate::answer::{Failure, Outcome, Response};
use crate::controllers::set_condition;
use crate::registry::{self, Stored};
use crate::request::delete::DeleteOptions;
use crate::request::options::{self, WriteOptions};
use crate::strategy::Part;
use http::Method;
use object::selector::Labels;
use object::status::Qualified;
use object::{Map, Status, Value, map};
use std::sync::Arc;
use store::{ListOptions, Range};

const KIND: OwnKind = OwnKind { group: "policy", name: "Eviction", versions: &["v1", "v1beta1"] };
/// How often a budget or pod that somebody else writes at the same time is tried.
const TRIES: usize = 20;
/// How many pods a budget may wait for to end.
const MAX_DISRUPTED: usize = 2000;
/// Why a pod cannot be evicted now.
const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Evicts the pod that the path names.
pub(crate) async fn create(request: &mut Request<'_>) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Create)?;
    let mut eviction = own_kind::read(request, KIND, options.validation)?;
    write::match_namespace(request, &mut eviction)?;
    let name = request.info.name.clone();
    write::check_place(request, &name).await?;
    let eviction = reviews::admitted(request, Part::Other("eviction"), eviction, &options).await?;
    if eviction.name() != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object").into());
    }
    let wanted = delete_options(&eviction, &options)?;
    let tries = if wanted.version.is_some() { 1 } else { TRIES };
    for attempt in 1..=tries {
        match evict(request, &wanted).await {
            Err(Failure::Status(status)) if status.code == 409 && attempt < tries => {}
            Err(failure) => return Err(failure),
            Ok(()) => break,
        }
    }
    Ok(own_kind::success(request))
}

/// What the eviction says of the deletion; dry run may stand in the URL too.
fn delete_options(eviction: &Value, options: &WriteOptions) -> Outcome<DeleteOptions> {
    let given = eviction.get("deleteOptions").filter(|o| !o.is_null());
    let mut object = given.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let runs: Vec<String> = object
        .get("dryRun")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if options.dry_run && runs.is_empty() {
        object.set_at(&["dryRun"], vec!["All"].into());
    } else if options.dry_run && runs != ["All"] {
        let runs = runs.join(" ");
        let why = format!("Non-matching dry-run options in request and content: [All] and [{runs}]");
        return Err(Status::unknown(why).into());
    }
    DeleteOptions::of_object(object)
}

/// One try. A conflict may be tried again.
async fn evict(request: &mut Request<'_>, wanted: &DeleteOptions) -> Outcome<()> {
    let server = request.server.clone();
    let shown = super::get::read(request).await?;
    let pod = server.load(&request.resource, &shown.stored, shown.version).await?;
    let phase = pod.str_at(&["status", "phase"]).unwrap_or_default();
    let going = !pod.meta_str("deletionTimestamp").is_empty();
    let ended = matches!(phase, "Succeeded" | "Failed");
    if ended || going || phase == "Pending" {
        // What does not run yet must not have become ready meanwhile.
        let version = (!ended && !going).then_some(shown.version);
        return remove(request, wanted, version).await;
    }
    let mut version = None;
    let mut budget_name = String::new();
    match budgets(&server, &pod).await?.as_slice() {
        [] => {}
        [budget] => {
            budget_name = budget.name().to_owned();
            if may_go_unready(budget, &pod) {
                version = Some(shown.version);
            } else {
                count_off(&server, budget.clone(), &pod, wanted.dry_run, request.now).await?;
            }
        }
        _ => {
            let why =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::unknown(why).into());
        }
    }
    match remove(request, wanted, version).await {
        Err(Failure::Status(status)) if status.code == 409 && version.is_some() && wanted.version.is_none() => {
            Err(later(&budget_name).into())
        }
        outcome => outcome,
    }
}

/// 429 while a budget does not know yet what it allows.
fn later(budget: &str) -> Status {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    Status::new(429, "TooManyRequests", VIOLATION).with_cause("DisruptionBudget", "", why).retry_after(10)
}

/// The budgets of a pod.
async fn budgets(server: &Server, pod: &Value) -> Outcome<Vec<Value>> {
    let prefix = format!("/registry/poddisruptionbudgets/{}/", pod.namespace());
    let page = server.store.list(&Range::prefix(prefix.as_str()), ListOptions::default()).await;
    let entries = page.map_err(registry::read_failure)?.entries;
    let all = entries.into_iter().filter_map(|e| Some(Stored::read(e.value)?.value(e.mod_revision)));
    Ok(all.filter(|budget| covers(budget, pod)).collect())
}

/// Whether a budget is about a pod; one without a selector is about none.
fn covers(budget: &Value, pod: &Value) -> bool {
    let Some(selector) = budget.at(&["spec", "selector"]) else { return false };
    let labels = pod.metadata().and_then(|m| m.get("labels")).and_then(Value::as_object);
    Labels::from_object(selector).is_ok_and(|s| !s.requirements().is_empty() && s.matches(labels))
}

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or(0)
}

/// Whether a pod that is not ready may go without being counted.
fn may_go_unready(budget: &Value, pod: &Value) -> bool {
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let ready = |c: &Value| c.str_at(&["type"]) == Some("Ready") && c.str_at(&["status"]) == Some("True");
    if conditions.iter().any(ready) {
        return false;
    }
    if budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow") {
        return true;
    }
    let (current, wanted) =
        (number(budget, &["status", "currentHealthy"]), number(budget, &["status", "desiredHealthy"]));
    current >= wanted && wanted > 0
}

/// Takes one off the disruptions that a budget allows, or says why that cannot be.
async fn count_off(
    server: &Arc<Server>,
    mut budget: Value,
    pod: &Value,
    dry_run: bool,
    now: jiff::Timestamp,
) -> Outcome<()> {
    let path = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{}", pod.namespace(), budget.name());
    for attempt in 1..=TRIES {
        take(&mut budget, pod.name(), now)?;
        if dry_run {
            return Ok(());
        }
        match server.own_request(Method::PUT, &format!("{path}/status"), Some(&budget)).await {
            Ok(_) => return Ok(()),
            Err(Failure::Object(409, _)) if attempt < TRIES => {
                budget = server.own_request(Method::GET, &path, None).await?;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// The budget after the disruption of one more pod.
fn take(budget: &mut Value, pod: &str, now: jiff::Timestamp) -> Outcome<()> {
    let name = budget.name().to_owned();
    let qualified = Qualified { group: "policy", name: "poddisruptionbudget" };
    if number(budget, &["status", "observedGeneration"]) < number(budget, &["metadata", "generation"]) {
        return Err(later(&name).into());
    }
    let allowed = number(budget, &["status", "disruptionsAllowed"]);
    if allowed < 0 {
        return Err(Status::forbidden(qualified, &name, "pdb disruptions allowed is negative").into());
    }
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|d| d.len() > MAX_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(qualified, &name, why).into());
    }
    if allowed == 0 {
        let (wanted, current) =
            (number(budget, &["status", "desiredHealthy"]), number(budget, &["status", "currentHealthy"]));
        let why = format!("The disruption budget {name} needs {wanted} healthy pods and has {current} currently");
        let status = Status::new(429, "TooManyRequests", VIOLATION).with_cause("DisruptionBudget", "", why);
        return Err(status.into());
    }
    let time = super::time(now);
    budget.set_at(&["status", "disruptionsAllowed"], Value::Int(allowed - 1));
    budget.set_at(&["status", "disruptedPods", pod], time.as_str().into());
    if allowed == 1 {
        let mut conditions =
            budget.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        set_condition(&mut conditions, "DisruptionAllowed", "False", "InsufficientPods", "", &time);
        let observed = number(budget, &["status", "observedGeneration"]);
        let condition = conditions.iter_mut().find(|c| c.str_at(&["type"]) == Some("DisruptionAllowed"));
        if let Some(condition) = condition.filter(|_| observed != 0) {
            condition.set_at(&["observedGeneration"], Value::Int(observed));
        }
        budget.set_at(&["status", "conditions"], Value::Array(conditions));
    }
    Ok(())
}

/// Says in the pod's status why it goes, and deletes it. Admission was asked about the eviction, and is not about this.
async fn remove(request: &mut Request<'_>, wanted: &DeleteOptions, version: Option<u64>) -> Outcome<()> {
    let mut options = wanted.clone();
    if let (None, Some(version)) = (&options.version, version) {
        options.version = Some(version.to_string());
    }
    let key = request.key();
    if !options.dry_run {
        let marked = mark(request, &key, &options).await?;
        if options.version.is_some() {
            options.version = Some(marked.to_string());
        }
    }
    delete::unasked(request, &key, &options).await
}

/// Sets the condition `DisruptionTarget`. Gives the pod's version then.
async fn mark(request: &Request<'_>, key: &str, options: &DeleteOptions) -> Outcome<u64> {
    let server = request.server;
    let time = super::time(request.now);
    let mut refusal = None;
    let marked = server
        .rewrite(key, |pod| {
            refusal = delete::preconditions(request, pod, options).err();
            if refusal.is_some() {
                return None;
            }
            let mut pod = pod.clone();
            let held = pod.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
            let mut conditions = held.to_vec();
            let before = conditions.clone();
            pod_condition(
                &mut conditions,
                map! {
                    "type" => "DisruptionTarget", "status" => "True", "reason" => "EvictionByEvictionAPI",
                    "message" => "Eviction API: evicting",
                },
                &time,
            );
            if conditions == before {
                return None;
            }
            pod.set_at(&["status", "conditions"], Value::Array(conditions));
            Some(pod)
        })
        .await?;
    match (refusal, marked) {
        (Some(refusal), _) => Err(refusal),
        (None, None) => Err(request.not_found()),
        (None, Some((_, version))) => {
            server.committed(&request.resource, key).await;
            Ok(version)
        }
    }
}

/// Sets a condition of a pod; the time of its last change is new when its status is.
pub(super) fn pod_condition(conditions: &mut Vec<Value>, mut condition: Map, now: &str) {
    let same = |c: &&mut Value| c.get("type") == condition.get("type");
    let held = conditions.iter_mut().find(same);
    let since = held.as_ref().filter(|h| h.get("status") == condition.get("status"));
    let since = since.and_then(|h| h.str_at(&["lastTransitionTime"])).unwrap_or(now).to_owned();
    let probe = held.as_ref().and_then(|h| h.get("lastProbeTime")).cloned().unwrap_or_default();
    condition.insert("lastProbeTime", probe);
    condition.insert("lastTransitionTime", since);
    match held {
        Some(held) => *held = Value::Object(condition),
        None => conditions.push(Value::Object(condition)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn taken(status: &str) -> Result<Value, String> {
        let mut budget = value(&format!(r#"{{"metadata":{{"generation":2,"name":"b"}},"status":{status}}}"#));
        match take(&mut budget, "p", jiff::Timestamp::UNIX_EPOCH) {
            Ok(()) => Ok(budget),
            Err(Failure::Status(status)) => {
                let details = status.details.unwrap_or_default();
                Err(details.causes.first().map_or(status.message, |c| c.message.clone()))
            }
            Err(_) => Err(String::new()),
        }
    }

    #[test]
    fn a_budget_counts_down_and_refuses_at_zero() {
        let budget = taken(r#"{"observedGeneration":2,"disruptionsAllowed":1}"#).unwrap();
        assert_eq!(number(&budget, &["status", "disruptionsAllowed"]), 0);
        assert_eq!(budget.str_at(&["status", "disruptedPods", "p"]), Some("1970-01-01T00:00:00Z"));
        assert_eq!(
            budget.at(&["status", "conditions"]).unwrap().as_array().unwrap()[0].str_at(&["reason"]),
            Some("InsufficientPods")
        );
        let why = taken(r#"{"observedGeneration":2,"desiredHealthy":2,"currentHealthy":1}"#).unwrap_err();
        assert_eq!(why, "The disruption budget b needs 2 healthy pods and has 1 currently");
        let why = taken(r#"{"observedGeneration":1,"disruptionsAllowed":1}"#).unwrap_err();
        assert_eq!(why, "The disruption budget b is still being processed by the server.");
        let why = taken(r#"{"observedGeneration":2,"disruptionsAllowed":-1}"#).unwrap_err();
        assert!(why.ends_with("pdb disruptions allowed is negative"), "{why}");
    }

    #[test]
    fn budgets_without_a_selector_cover_nothing() {
        let pod = value(r#"{"metadata":{"labels":{"a":"b"}}}"#);
        for (spec, wanted) in [
            (r#"{}"#, false),
            (r#"{"selector":{}}"#, false),
            (r#"{"selector":{"matchLabels":{"a":"b"}}}"#, true),
            (r#"{"selector":{"matchLabels":{"a":"c"}}}"#, false),
        ] {
            assert_eq!(covers(&value(&format!(r#"{{"spec":{spec}}}"#)), &pod), wanted, "{spec}");
        }
    }

    #[test]
    fn pods_that_are_not_ready_go_by_policy() {
        let unready = value(r#"{"status":{}}"#);
        let ready = value(r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#);
        let healthy = value(r#"{"status":{"currentHealthy":2,"desiredHealthy":2}}"#);
        let disrupted = value(r#"{"status":{"currentHealthy":1,"desiredHealthy":2}}"#);
        let always = value(r#"{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}"#);
        assert!(may_go_unready(&healthy, &unready) && may_go_unready(&always, &unready));
        assert!(!may_go_unready(&disrupted, &unready) && !may_go_unready(&always, &ready));
    }
}
