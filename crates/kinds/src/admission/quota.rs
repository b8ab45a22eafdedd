//! The plugin ResourceQuota: what objects take of quotas, and when there is not enough.

use super::quota_usage::{Counted, in_scope, unsaid};
use super::totals::{Amounts, add, amounts, sum};
use crate::quantity::Quantity;
use crate::read::Read;
use jiff::Timestamp;
use object::{Map, Value};
use std::collections::BTreeMap;

/// What is created or changed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The group of the resource.
    pub group: &'a str,
    /// Its name.
    pub plural: &'a str,
    /// The subresource; often empty.
    pub subresource: &'a str,
    /// The object as it is to be.
    pub object: &'a Value,
    /// The object as it is; none for a create.
    pub old: Option<&'a Value>,
    /// The time.
    pub now: Timestamp,
}

impl Request<'_> {
    fn counted(&self) -> Counted<'_> {
        Counted { group: self.group, plural: self.plural }
    }

    /// Whether such a request can take anything of a quota.
    pub fn counts(&self) -> bool {
        match self.old {
            None => self.subresource.is_empty(),
            Some(_) => self.counted().changes(self.subresource),
        }
    }

    /// What the request takes in addition to what the object takes already; what is given back is negative.
    fn delta(&self) -> Amounts {
        let counted = self.counted();
        let mut out = counted.usage(self.object, self.now);
        if let Some(old) = self.old {
            for (name, before) in counted.usage(old, self.now) {
                let held = out.get(&name).copied().unwrap_or(Quantity::of_integer(0));
                out.insert(name, held.minus(before));
            }
        }
        out.retain(|_, amount| !amount.sign().is_eq());
        out
    }
}

/// What an object takes, by the names that quotas have for it.
pub fn usage(group: &str, plural: &str, object: &Value, now: Timestamp) -> BTreeMap<String, Quantity> {
    Counted { group, plural }.usage(object, now)
}

/// Whether a quota's resource of this name (`count/pods`, `requests.cpu`) is about objects of a resource.
pub fn is_about(group: &str, plural: &str, name: &str) -> bool {
    Counted { group, plural }.takes(name)
}

/// Whether an object is within all scopes of a quota. Only pods are within any.
pub fn within_scopes(quota: &Value, group: &str, plural: &str, object: &Value) -> bool {
    let spec = quota.sub("spec");
    let pods = group.is_empty() && plural == "pods";
    let plain = spec.strings("scopes").into_iter().all(|scope| pods && in_scope(object, scope, "Exists", &[]));
    plain
        && spec
            .sub("scopeSelector")
            .list("matchExpressions")
            .iter()
            .all(|e| pods && in_scope(object, e.text("scopeName"), e.text("operator"), &e.strings("values")))
}

/// What a request makes of a quota: the `status.used` that it has then, nothing where it stays as it is.
///
/// # Errors
/// Why the request is forbidden.
pub fn charge(quota: &Value, request: &Request<'_>) -> Result<Option<Map>, String> {
    let counted = request.counted();
    let status = quota.sub("status");
    let (hard, used) = (amounts(status.members("hard")), amounts(status.members("used")));
    let names: Vec<&str> = hard.keys().map(String::as_str).filter(|name| counted.takes(name)).collect();
    if names.is_empty() || !within_scopes(quota, request.group, request.plural, request.object) {
        return Ok(None);
    }
    let quota = quota.name();
    if request.group.is_empty()
        && request.plural == "pods"
        && let Some(missing) = unsaid(request.object, &names)
    {
        return Err(format!("failed quota: {quota}: must specify {missing}"));
    }
    if names.iter().any(|name| !used.contains_key(*name)) {
        return Err(format!("status unknown for quota: {quota}, resources: {}", names.join(",")));
    }
    let delta = request.delta();
    let requested: Amounts = delta.into_iter().filter(|(name, _)| hard.contains_key(name)).collect();
    if requested.is_empty() {
        return Ok(None);
    }
    let then = |name: &str, amount: Quantity| used.get(name).map_or(amount, |held| sum(*held, amount));
    let exceeded: Vec<&str> = requested
        .iter()
        .filter(|(name, amount)| hard.get(*name).is_some_and(|most| then(name, **amount) > *most))
        .map(|(name, _)| name.as_str())
        .collect();
    if !exceeded.is_empty() {
        let shown = |amounts: &Amounts| {
            let parts = exceeded.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)));
            parts.collect::<Vec<_>>().join(",")
        };
        let (requested, used, hard) = (shown(&requested), shown(&used), shown(&hard));
        return Err(format!("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {hard}"));
    }
    let mut now = used.clone();
    add(&mut now, &requested);
    let changed = now.iter().any(|(name, amount)| used.get(name) != Some(amount));
    Ok(changed.then(|| now.iter().map(|(name, amount)| (name.as_str(), Value::from(amount.to_string()))).collect()))
}

/// The `status.used` of a quota after a request that [`charge`] charged did not take place.
pub fn refund(quota: &Value, request: &Request<'_>) -> Map {
    let mut used = amounts(quota.sub("status").members("used"));
    for (name, amount) in request.delta() {
        if let Some(held) = used.get_mut(&name) {
            *held = held.minus(amount);
        }
    }
    used.iter().map(|(name, amount)| (name.as_str(), Value::from(amount.to_string()))).collect()
}

/// What is wrong with amounts of an object: those that are negative.
pub fn negative(request: &Request<'_>) -> Option<String> {
    let usage = request.counted().usage(request.object, request.now);
    let names: Vec<&str> = usage.iter().filter(|(_, a)| a.sign().is_lt()).map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("quota usage is negative for resource(s): {}", names.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn quota(spec: &str, hard: &str, used: &str) -> Value {
        value(&format!(r#"{{"metadata":{{"name":"q"}},"spec":{spec},"status":{{"hard":{hard},"used":{used}}}}}"#))
    }

    fn charged(quota: &Value, group: &str, plural: &str, object: &str) -> Result<String, String> {
        let object = value(object);
        let now = Timestamp::UNIX_EPOCH;
        let request = Request { group, plural, subresource: "", object: &object, old: None, now };
        charge(quota, &request).map(|used| used.map(|u| json::to_string(&Value::Object(u))).unwrap_or_default())
    }

    #[test]
    fn objects_are_counted() {
        let held =
            quota("{}", r#"{"count/configmaps":"2","secrets":"1"}"#, r#"{"count/configmaps":"1","secrets":"0"}"#);
        let used = charged(&held, "", "configmaps", "{}").unwrap();
        assert_eq!(used, r#"{"count/configmaps":"2","secrets":"0"}"#);
        assert_eq!(charged(&held, "apps", "deployments", "{}").unwrap(), "");
        let full = quota("{}", r#"{"count/foos.x.io":"1"}"#, r#"{"count/foos.x.io":"1"}"#);
        let why = charged(&full, "x.io", "foos", "{}").unwrap_err();
        let wanted =
            "exceeded quota: q, requested: count/foos.x.io=1, used: count/foos.x.io=1, limited: count/foos.x.io=1";
        assert_eq!(why, wanted);
        let unknown = quota("{}", r#"{"count/secrets":"1"}"#, "{}");
        let why = charged(&unknown, "", "secrets", "{}").unwrap_err();
        assert_eq!(why, "status unknown for quota: q, resources: count/secrets");
    }

    #[test]
    fn pods_say_what_a_quota_is_about() {
        let held = quota(
            "{}",
            r#"{"limits.memory":"1Gi","pods":"2","requests.cpu":"1"}"#,
            r#"{"limits.memory":"256Mi","pods":"1","requests.cpu":"600m"}"#,
        );
        let pod = |resources: &str| format!(r#"{{"spec":{{"containers":[{{"name":"c","resources":{resources}}}]}}}}"#);
        let why = charged(&held, "", "pods", &pod("{}")).unwrap_err();
        assert_eq!(why, "failed quota: q: must specify limits.memory for: c; requests.cpu for: c");
        let why = charged(&held, "", "pods", &pod(r#"{"requests":{"cpu":"500m"},"limits":{"memory":"1Gi"}}"#));
        let wanted = "exceeded quota: q, requested: limits.memory=1Gi,requests.cpu=500m, used: limits.memory=256Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1";
        assert_eq!(why.unwrap_err(), wanted);
        let used = charged(&held, "", "pods", &pod(r#"{"requests":{"cpu":"0.4"},"limits":{"memory":"0.5Gi"}}"#));
        assert_eq!(used.unwrap(), r#"{"limits.memory":"768Mi","pods":"2","requests.cpu":"1"}"#);
    }

    #[test]
    fn scopes_choose_pods() {
        for (spec, pod, counts) in [
            (r#"{"scopes":["BestEffort"]}"#, r#"{"spec":{"containers":[{"name":"c"}]}}"#, true),
            (r#"{"scopes":["NotBestEffort"]}"#, r#"{"spec":{"containers":[{"name":"c"}]}}"#, false),
            (r#"{"scopes":["Terminating"]}"#, r#"{"spec":{"activeDeadlineSeconds":5}}"#, true),
            (
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["hi"]}]}}"#,
                r#"{"spec":{"priorityClassName":"hi"}}"#,
                true,
            ),
            (
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["hi"]}]}}"#,
                r#"{"spec":{"priorityClassName":"lo"}}"#,
                false,
            ),
        ] {
            let held = quota(spec, r#"{"pods":"1"}"#, r#"{"pods":"0"}"#);
            assert_eq!(!charged(&held, "", "pods", pod).unwrap().is_empty(), counts, "{spec} {pod}");
        }
    }

    #[test]
    fn pods_that_have_ended_take_a_place_only() {
        let count = |pod: &str| usage("", "pods", &value(pod), Timestamp::UNIX_EPOCH).len();
        assert_eq!(count(r#"{"status":{"phase":"Succeeded"}}"#), 1);
        assert_eq!(count(r#"{"spec":{"containers":[]}}"#), 2);
    }

    #[test]
    fn claims_and_services_take_by_class_and_type() {
        let now = Timestamp::UNIX_EPOCH;
        let shown = |plural: &str, object: &str| {
            let all = usage("", plural, &value(object), now);
            all.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
        };
        let claim = r#"{"spec":{"storageClassName":"fast","resources":{"requests":{"storage":"1Gi"}}}}"#;
        let wanted = "count/persistentvolumeclaims=1,fast.storageclass.storage.k8s.io/persistentvolumeclaims=1,fast.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi";
        assert_eq!(shown("persistentvolumeclaims", claim), wanted);
        let service = r#"{"spec":{"type":"LoadBalancer","ports":[{"port":1},{"port":2}]}}"#;
        assert_eq!(
            shown("services", service),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"
        );
    }

    #[test]
    fn changes_are_charged_by_what_they_add_and_given_back() {
        let held = quota("{}", r#"{"requests.storage":"5Gi"}"#, r#"{"requests.storage":"3Gi"}"#);
        let claim = |size: &str| value(&format!(r#"{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}"#));
        let (old, new) = (claim("1Gi"), claim("2Gi"));
        let request = Request {
            group: "",
            plural: "persistentvolumeclaims",
            subresource: "",
            object: &new,
            old: Some(&old),
            now: Timestamp::UNIX_EPOCH,
        };
        assert!(request.counts());
        let used = charge(&held, &request).unwrap().unwrap();
        assert_eq!(used.get("requests.storage").unwrap().as_str(), Some("4Gi"));
        let charged = quota("{}", "{}", r#"{"requests.storage":"4Gi"}"#);
        assert_eq!(refund(&charged, &request).get("requests.storage").unwrap().as_str(), Some("3Gi"));
    }
}
