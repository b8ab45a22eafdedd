//! The subresource `scale` of built-in workloads: `autoscaling/v1`, `Scale`.

use crate::read::Read;
use crate::table;
use object::field::{FieldError, Path};
use object::{Map, Value, map};

/// The scale of a workload.
///
/// ```
/// use object::json;
/// let set = json::parse(br#"{"metadata": {"name": "a"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}}"#).unwrap();
/// let scale = kinds::scale::of(&set);
/// assert_eq!(scale.at(&["spec", "replicas"]), Some(&object::Value::Int(2)));
/// assert_eq!(scale.str_at(&["status", "selector"]), Some("a=b"));
/// ```
pub fn of(object: &Value) -> Value {
    let meta: Map = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
        .into_iter()
        .filter_map(|key| Some((key, object.at(&["metadata", key])?.clone())))
        .collect();
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    // Replication controllers have a plain map for a selector.
    let selector = match spec.sub("selector") {
        Value::Object(m) if m.values().all(|v| v.as_str().is_some()) => table::labels(m),
        selector => table::selector(selector),
    };
    let mut wanted = Map::new();
    if spec.int("replicas") != 0 {
        wanted.insert("replicas", spec.int("replicas"));
    }
    let mut actual = map! { "replicas" => status.int("replicas") };
    if selector != "<none>" {
        actual.insert("selector", selector);
    }
    map! {
        "kind" => "Scale", "apiVersion" => "autoscaling/v1", "metadata" => meta, "spec" => wanted, "status" => actual,
    }
    .into()
}

/// Writes the wanted number of replicas of a scale into a workload.
pub fn apply(object: &mut Value, scale: &Value) {
    object.set_at(&["spec", "replicas"], Value::Int(scale.sub("spec").int("replicas")));
}

/// Checks a decoded scale.
pub fn validate(scale: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    crate::check::not_negative(scale.sub("spec"), "replicas", &Path::ROOT.child("spec"), &mut out);
    out
}
