//! The resources of the group `autoscaling`.

mod convert;
mod rules;

use crate::read::{Read, default_text, default_to, object_mut};
use crate::resource::{Column, Conversion, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::{Map, Value, map};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[Subresource::status("HorizontalPodAutoscaler")],
    columns: &[
        Column::NAME,
        Column::new("Reference", "string"),
        Column::new("Targets", "string"),
        Column::new("MinPods", "string"),
        Column::new("MaxPods", "string"),
        Column::new("Replicas", "string"),
        Column::AGE,
    ],
    cells,
    strategy: Strategy {
        generation: Generation::None,
        drop_disabled,
        validate: rules::validate,
        validate_update: |new, _| rules::validate(new),
        validate_status: rules::validate_status,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        &[
            Version::stored("v2", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler").with_default(default),
            Version {
                default: |object| {
                    if let Some(spec) = object_mut(object, &["spec"]) {
                        default_to(spec, "minReplicas", 1);
                    }
                },
                convert: Some(Conversion { to_stored: convert::to_stored, from_stored: convert::from_stored }),
                ..Version::stored("v1", "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler")
            },
        ],
    )
}];

/// The metric that is watched where none is named.
fn cpu(percent: i64) -> Value {
    map! {
        "type" => "Resource",
        "resource" => map! { "name" => "cpu", "target" => map! { "type" => "Utilization", "averageUtilization" => percent } },
    }
    .into()
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "minReplicas", 1);
    if spec.list("metrics").is_empty() {
        spec.set_at(&["metrics"], Value::Array(vec![cpu(80)]));
    }
    if let Some(behavior) = object_mut(spec, &["behavior"]) {
        default_behavior(behavior);
    }
}

fn default_behavior(behavior: &mut Value) {
    let policy =
        |kind: &str, value: i64| -> Value { map! { "type" => kind, "value" => value, "periodSeconds" => 15 }.into() };
    for (direction, policies) in
        [("scaleUp", vec![policy("Pods", 4), policy("Percent", 100)]), ("scaleDown", vec![policy("Percent", 100)])]
    {
        default_to(behavior, direction, Map::new());
        let Some(rules) = object_mut(behavior, &[direction]) else { continue };
        if direction == "scaleUp" {
            default_to(rules, "stabilizationWindowSeconds", 0);
        }
        default_text(rules, "selectPolicy", "Max");
        default_to(rules, "policies", Value::Array(policies));
    }
}

/// Drops how far a metric may be off, which is off.
fn drop_disabled(object: &mut Value, old: &Value) {
    const DIRECTIONS: [&str; 2] = ["scaleDown", "scaleUp"];
    let behavior = |scaler: &Value, direction: &str| scaler.sub("spec").sub("behavior").sub(direction).has("tolerance");
    if DIRECTIONS.iter().any(|direction| behavior(old, direction)) {
        return;
    }
    for direction in DIRECTIONS {
        if behavior(object, direction) {
            object.remove_at(&["spec", "behavior", direction, "tolerance"]);
        }
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let target = spec.sub("scaleTargetRef");
    let min = spec.opt_int("minReplicas").map_or("<unset>".to_owned(), |m| m.to_string());
    vec![
        object.name().into(),
        format!("{}/{}", target.text("kind"), target.text("name")).into(),
        targets(spec.list("metrics"), status.list("currentMetrics")).into(),
        min.into(),
        Value::Int(spec.int("maxReplicas")),
        Value::Int(status.int("currentReplicas")),
        table::age(object, now),
    ]
}

/// The first two metrics, current over wanted.
fn targets(wanted: &[Value], current: &[Value]) -> String {
    if wanted.is_empty() {
        return "<none>".to_owned();
    }
    let mut list: Vec<String> = Vec::new();
    for (i, metric) in wanted.iter().take(2).enumerate() {
        let part = rules::source_of(metric).unwrap_or("resource");
        let named = matches!(part, "resource" | "containerResource");
        let source = metric.sub(part);
        let target = source.sub("target");
        let status = current.get(i).map_or(&Value::Null, |c| c.sub(part));
        let now = status.sub("current");
        // Of a metric that has been read the value is shown even where it is missing, as Go prints a missing one; only
        // averages of external and object metrics may be unknown still.
        let text = |key: &str, strict: bool| match now.text(key) {
            "" if strict || status.is_null() => "<unknown>".to_owned(),
            "" => "<nil>".to_owned(),
            value => value.to_owned(),
        };
        let percent = |of: &Value, none: &str| {
            of.opt_int("averageUtilization").map_or_else(|| none.to_owned(), |percent| format!("{percent}%"))
        };
        let average = target.text("averageValue");
        let shown = match (named || part == "pods", average.is_empty()) {
            (true, false) => format!("{}/{average}", text("averageValue", false)),
            (true, true) => format!("{}/{}", percent(now, "<unknown>"), percent(target, "<auto>")),
            (false, false) => format!("{}/{average} (avg)", text("averageValue", true)),
            (false, true) => format!("{}/{}", text("value", false), target.text("value")),
        };
        list.push(if named { format!("{}: {shown}", source.text("name")) } else { shown });
    }
    let text = list.join(", ");
    if wanted.len() > 2 { format!("{text} + {} more...", wanted.len() - 2) } else { text }
}
