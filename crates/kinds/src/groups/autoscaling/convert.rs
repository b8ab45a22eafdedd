//! `autoscaling/v1` and `autoscaling/v2`: version 1 knows only the use of CPU; what else there is stands in annotations,
//! as JSON with the fields of version 1 in Go's order.

use super::cpu;
use crate::read::Read;
use object::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

/// A field of a metric: the path in version 2 and the name in version 1.
type Names = &'static [(&'static [&'static str], &'static str)];

/// The sources of metrics with their fields in Go's order. `T` stands for `target` in a specification and `current`
/// in a status, and the prefix of the field's name follows.
const SOURCES: [(&str, Names); 5] = [
    (
        "object",
        &[
            (&["describedObject"], "target"),
            (&["metric", "name"], "metricName"),
            (&["T", "value"], "+Value"),
            (&["metric", "selector"], "selector"),
            (&["T", "averageValue"], "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            (&["metric", "name"], "metricName"),
            (&["T", "averageValue"], "+AverageValue"),
            (&["metric", "selector"], "selector"),
        ],
    ),
    (
        "resource",
        &[
            (&["name"], "name"),
            (&["T", "averageUtilization"], "+AverageUtilization"),
            (&["T", "averageValue"], "+AverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            (&["name"], "name"),
            (&["T", "averageUtilization"], "+AverageUtilization"),
            (&["T", "averageValue"], "+AverageValue"),
            (&["container"], "container"),
        ],
    ),
    (
        "external",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["T", "value"], "+Value"),
            (&["T", "averageValue"], "+AverageValue"),
        ],
    ),
];

/// Whether a list holds what is wanted or what is.
#[derive(Clone, Copy)]
enum Side {
    Target,
    Current,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Target => "target",
            Side::Current => "current",
        }
    }

    fn path(self, path: &'static [&'static str]) -> Vec<&'static str> {
        path.iter().map(|p| if *p == "T" { self.word() } else { p }).collect()
    }

    fn name(self, name: &str) -> String {
        match name.strip_prefix('+') {
            Some(rest) => format!("{}{rest}", self.word()),
            None => name.to_owned(),
        }
    }
}

/// A JSON object with its members in the order given.
fn ordered(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
    format!("{{{}}}", members.join(","))
}

/// Members of an object in the order of their names in `keys`, those that are there.
fn pick(value: &Value, keys: &[&str]) -> String {
    let members: Vec<(&str, String)> =
        keys.iter().filter(|k| value.has(k)).map(|k| (*k, json::to_string(value.sub(k)))).collect();
    ordered(&members)
}

fn write_metric(metric: &Value, side: Side) -> String {
    let mut members = vec![("type", json::to_string(metric.sub("type")))];
    for (source, fields) in SOURCES.iter().filter(|(s, _)| metric.has(s)) {
        let value = metric.sub(source);
        let mut inner: Vec<(String, String)> = Vec::new();
        for (path, name) in *fields {
            let Some(found) = value.at(&side.path(path)).filter(|v| !v.is_null()) else { continue };
            let text =
                if *name == "target" { pick(found, &["kind", "name", "apiVersion"]) } else { json::to_string(found) };
            inner.push((side.name(name), text));
        }
        let inner: Vec<(&str, String)> = inner.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
        members.push((source, ordered(&inner)));
    }
    ordered(&members)
}

fn read_metric(metric: &Value, side: Side) -> Value {
    let mut out = Value::Null;
    out.set_at(&["type"], metric.sub("type").clone());
    for (source, fields) in SOURCES.iter().filter(|(s, _)| metric.has(s)) {
        let value = metric.sub(source);
        let mut inner = Value::Object(Map::new());
        for (path, name) in *fields {
            if let Some(found) = value.get(&side.name(name)).filter(|v| !v.is_null()) {
                inner.set_at(&side.path(path), found.clone());
            }
        }
        if let Side::Target = side {
            let target = inner.sub("target");
            let kind = if target.has("averageUtilization") {
                "Utilization"
            } else if target.has("averageValue") {
                "AverageValue"
            } else {
                "Value"
            };
            inner.set_at(&["target", "type"], kind.into());
        }
        out.set_at(&[source], inner);
    }
    out
}

fn write_rules(rules: &Value) -> String {
    let mut members: Vec<(&str, String)> = ["stabilizationWindowSeconds", "selectPolicy"]
        .into_iter()
        .filter(|k| rules.has(k))
        .map(|k| (k, json::to_string(rules.sub(k))))
        .collect();
    let policies: Vec<String> =
        rules.list("policies").iter().map(|p| pick(p, &["type", "value", "periodSeconds"])).collect();
    members.push(("policies", format!("[{}]", policies.join(","))));
    ordered(&members)
}

pub(super) fn to_stored(object: &mut Value) {
    object.set_at(&["apiVersion"], "autoscaling/v2".into());
    let annotated = |object: &Value, key: &str| object.annotation(key).and_then(|a| json::parse(a.as_bytes()).ok());
    let list = |value: Option<Value>, side: Side| -> Vec<Value> {
        let value = value.unwrap_or_default();
        value.as_array().unwrap_or_default().iter().map(|m| read_metric(m, side)).collect()
    };
    let mut metrics: Vec<Value> = Vec::new();
    if let Some(percent) = object.sub("spec").opt_int("targetCPUUtilizationPercentage") {
        metrics.push(cpu(percent));
    }
    metrics.extend(list(annotated(object, METRICS), Side::Target));
    if metrics.is_empty() {
        metrics.push(cpu(80));
    }
    object.set_at(&["spec", "metrics"], Value::Array(metrics));
    object.remove_at(&["spec", "targetCPUUtilizationPercentage"]);
    if let Some(behavior) = annotated(object, BEHAVIOR) {
        object.set_at(&["spec", "behavior"], behavior);
    }
    if let Some(conditions) = annotated(object, CONDITIONS) {
        object.set_at(&["status", "conditions"], conditions);
    }
    let mut current = list(annotated(object, CURRENT), Side::Current);
    if let Some(percent) = object.sub("status").opt_int("currentCPUUtilizationPercentage") {
        let mut status = Value::Null;
        status.set_at(&["type"], "Resource".into());
        status.set_at(&["resource", "name"], "cpu".into());
        status.set_at(&["resource", "current", "averageUtilization"], Value::Int(percent));
        current.insert(0, status);
    }
    object.remove_at(&["status", "currentCPUUtilizationPercentage"]);
    object.set_at(&["status", "currentMetrics"], if current.is_empty() { Value::Null } else { Value::Array(current) });
    for key in [METRICS, BEHAVIOR, CONDITIONS, CURRENT] {
        object.remove_at(&["metadata", "annotations", key]);
    }
}

pub(super) fn from_stored(object: &mut Value) {
    object.set_at(&["apiVersion"], "autoscaling/v1".into());
    let is_cpu = |metric: &Value, part: &str| {
        let resource = metric.sub("resource");
        (resource.text("name") == "cpu").then(|| resource.sub(part).opt_int("averageUtilization")).flatten()
    };
    let mut annotations: Vec<(&str, String)> = Vec::new();
    for (parent, key, side, plain, annotation) in [
        ("spec", "metrics", Side::Target, "targetCPUUtilizationPercentage", METRICS),
        ("status", "currentMetrics", Side::Current, "currentCPUUtilizationPercentage", CURRENT),
    ] {
        let Some(Value::Array(metrics)) = object.remove_at(&[parent, key]) else { continue };
        let mut percent = None;
        let mut others: Vec<String> = Vec::new();
        for metric in &metrics {
            match is_cpu(metric, side.word()) {
                Some(value) if percent.is_none() => percent = Some(value),
                _ => others.push(write_metric(metric, side)),
            }
        }
        if let Some(percent) = percent {
            object.set_at(&[parent, plain], Value::Int(percent));
        }
        if !others.is_empty() {
            annotations.push((annotation, format!("[{}]", others.join(","))));
        }
    }
    if let Some(behavior) = object.remove_at(&["spec", "behavior"]).filter(|b| !b.is_null()) {
        let members: Vec<(&str, String)> = ["scaleUp", "scaleDown"]
            .into_iter()
            .filter(|k| behavior.has(k))
            .map(|k| (k, write_rules(behavior.sub(k))))
            .collect();
        annotations.push((BEHAVIOR, ordered(&members)));
    }
    if let Some(Value::Array(conditions)) = object.remove_at(&["status", "conditions"]) {
        let keys = ["type", "status", "lastTransitionTime", "reason", "message"];
        let list: Vec<String> = conditions.iter().map(|c| pick(c, &keys)).collect();
        if !list.is_empty() {
            annotations.push((CONDITIONS, format!("[{}]", list.join(","))));
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        for key in ["currentReplicas", "desiredReplicas"] {
            status.get_or_insert(key, || Value::Int(0));
        }
    }
    for (key, value) in annotations {
        object.metadata_mut().object_entry("annotations").insert(key, value);
    }
}
