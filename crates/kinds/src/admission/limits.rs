//! The plugin LimitRanger: what limit ranges give to pods, and what they refuse.

use super::totals::{Amounts, amounts, of_container, total};
use crate::quantity::Quantity;
use crate::read::{Read, list_mut};
use object::{Map, Value, map};

/// Where a pod is told what it was given.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives a pod's containers the requests and limits that a range has as defaults, and says so in an annotation.
pub fn set_defaults(range: &Value, pod: &mut Value) {
    let mut defaults = [("limits", Map::new()), ("requests", Map::new())];
    for limit in range.sub("spec").list("limits").iter().filter(|l| l.text("type") == "Container") {
        for ((_, all), key) in defaults.iter_mut().zip(["default", "defaultRequest"]) {
            limit.members(key).iter().for_each(|(name, amount)| {
                all.insert(name, amount.clone());
            });
        }
    }
    let mut told = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let Some(spec) = pod.get_mut("spec") else { return };
        for container in list_mut(spec, list) {
            let name = container.text("name").to_owned();
            let mut set = |part: &str, defaults: &Map| {
                let missing =
                    defaults.iter().filter(|(k, _)| !container.sub("resources").members(part).contains_key(k));
                let missing: Vec<(String, Value)> = missing.map(|(k, v)| (k.to_owned(), v.clone())).collect();
                let names: Vec<&str> = missing.iter().map(|(k, _)| k.as_str()).collect();
                let names = names.join(", ");
                missing.into_iter().for_each(|(key, amount)| container.set_at(&["resources", part, &key], amount));
                names
            };
            let [limits, requests] = [set("limits", &defaults[0].1), set("requests", &defaults[1].1)];
            for (names, part) in [(requests, "request"), (limits, "limit")] {
                if !names.is_empty() {
                    told.push(format!("{names} {part} for {what} {name}"));
                }
            }
        }
    }
    if !told.is_empty() {
        let text = format!("LimitRanger plugin set: {}", told.join("; "));
        match pod.metadata_mut().get_or_insert("annotations", || Value::Object(Map::new())) {
            Value::Object(annotations) => {
                annotations.insert(ANNOTATION, text);
            }
            other => *other = Value::Object(map! { ANNOTATION => text }),
        }
    }
}

/// Why a range refuses a pod (`pods`) or a claim (`persistentvolumeclaims`); nothing if it does not.
pub fn violations(range: &Value, plural: &str, object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for limit in range.sub("spec").list("limits") {
        let ty = limit.text("type");
        match (plural, ty) {
            ("pods", "Container") => {
                let spec = object.sub("spec");
                for container in spec.list("containers").iter().chain(spec.list("initContainers")) {
                    check(limit, &of_container(container, "requests"), &of_container(container, "limits"), &mut out);
                }
            }
            ("pods", "Pod") => {
                let of = |part: &str| total(object.sub("spec"), |c| of_container(c, part));
                check(limit, &of("requests"), &of("limits"), &mut out);
            }
            ("persistentvolumeclaims", "PersistentVolumeClaim") => {
                let requests = amounts(object.sub("spec").sub("resources").members("requests"));
                for (name, wanted) in &amounts(limit.members("min")) {
                    out.extend(least(ty, name, *wanted, &requests, &Amounts::new()));
                }
                for (name, wanted) in &amounts(limit.members("max")) {
                    out.extend(most_requested(ty, name, *wanted, &requests));
                }
            }
            _ => {}
        }
    }
    out
}

fn check(limit: &Value, requests: &Amounts, limits: &Amounts, out: &mut Vec<String>) {
    let ty = limit.text("type");
    for (name, wanted) in &amounts(limit.members("min")) {
        out.extend(least(ty, name, *wanted, requests, limits));
    }
    for (name, wanted) in &amounts(limit.members("max")) {
        out.extend(most(ty, name, *wanted, requests, limits));
    }
    for (name, wanted) in &amounts(limit.members("maxLimitRequestRatio")) {
        out.extend(ratio(ty, name, *wanted, requests, limits));
    }
}

fn least(ty: &str, name: &str, wanted: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let what = format!("minimum {name} usage per {ty} is {wanted}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{what}.  No request is specified")),
        (Some(request), _) if *request < wanted => Some(format!("{what}, but request is {request}")),
        (_, Some(limit)) if *limit < wanted => Some(format!("{what}, but limit is {limit}")),
        _ => None,
    }
}

fn most(ty: &str, name: &str, wanted: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let what = format!("maximum {name} usage per {ty} is {wanted}");
    match (limits.get(name), requests.get(name)) {
        (None, _) => Some(format!("{what}.  No limit is specified")),
        (Some(limit), _) if *limit > wanted => Some(format!("{what}, but limit is {limit}")),
        (_, Some(request)) if *request > wanted => Some(format!("{what}, but request is {request}")),
        _ => None,
    }
}

fn most_requested(ty: &str, name: &str, wanted: Quantity, requests: &Amounts) -> Option<String> {
    let what = format!("maximum {name} usage per {ty} is {wanted}");
    match requests.get(name) {
        None => Some(format!("{what}.  No request is specified")),
        Some(request) if *request > wanted => Some(format!("{what}, but request is {request}")),
        Some(_) => None,
    }
}

fn ratio(ty: &str, name: &str, wanted: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let what = format!("{name} max limit to request ratio per {ty} is {wanted}");
    let positive = |amounts: &Amounts| amounts.get(name).filter(|a| !a.sign().is_eq()).map(|a| a.milli_value());
    let Some(request) = positive(requests) else {
        return Some(format!("{what}, but no request is specified or request is 0"));
    };
    let Some(limit) = positive(limits) else {
        return Some(format!("{what}, but no limit is specified or limit is 0"));
    };
    let found = limit as f64 / request as f64;
    (found * 1000.0 > wanted.milli_value() as f64).then(|| format!("{what}, but provided ratio is {found:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn range(limit: &str) -> Value {
        value(&format!(r#"{{"spec":{{"limits":[{limit}]}}}}"#))
    }

    fn pod(resources: &str) -> Value {
        value(&format!(r#"{{"spec":{{"containers":[{{"name":"c","resources":{resources}}}]}}}}"#))
    }

    #[test]
    fn defaults_fill_what_is_missing() {
        let range = range(
            r#"{"type":"Container","default":{"cpu":"500m","memory":"1Mi"},"defaultRequest":{"cpu":"250m","memory":"1Mi"}}"#,
        );
        let mut pod = pod(r#"{"requests":{"cpu":"1"}}"#);
        set_defaults(&range, &mut pod);
        let wanted = r#"{"metadata":{"annotations":{"kubernetes.io/limit-ranger":"LimitRanger plugin set: memory request for container c; cpu, memory limit for container c"}},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m","memory":"1Mi"},"requests":{"cpu":"1","memory":"1Mi"}}}]}}"#;
        assert_eq!(json::to_string(&pod), wanted);
        let held = pod.clone();
        set_defaults(&range, &mut pod);
        assert_eq!(pod, held);
    }

    #[test]
    fn what_is_out_of_range_is_told() {
        for (limit, resources, wanted) in [
            (r#""min":{"cpu":"1"}"#, "{}", "minimum cpu usage per Container is 1.  No request is specified"),
            (
                r#""min":{"cpu":"1"}"#,
                r#"{"requests":{"cpu":"50m"}}"#,
                "minimum cpu usage per Container is 1, but request is 50m",
            ),
            (r#""max":{"cpu":"1"}"#, "{}", "maximum cpu usage per Container is 1.  No limit is specified"),
            (
                r#""max":{"memory":"1Gi"}"#,
                r#"{"limits":{"memory":"2Gi"}}"#,
                "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            ),
            (
                r#""maxLimitRequestRatio":{"cpu":"2"}"#,
                r#"{"limits":{"cpu":"3"},"requests":{"cpu":"1"}}"#,
                "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            ),
            (r#""max":{"cpu":"1"}"#, r#"{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}"#, ""),
        ] {
            let range = range(&format!(r#"{{"type":"Container",{limit}}}"#));
            assert_eq!(violations(&range, "pods", &pod(resources)).join("; "), wanted);
        }
        let claim = value(r#"{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}"#);
        let limit = range(r#"{"type":"PersistentVolumeClaim","max":{"storage":"2Gi"}}"#);
        let why = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi";
        assert_eq!(violations(&limit, "persistentvolumeclaims", &claim), [why]);
    }
}
