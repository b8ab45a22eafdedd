//! Checks of HorizontalPodAutoscalers.

use crate::check::{self, Errors};
use crate::pod::resources::container_resource_name;
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};

pub(super) fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let min = spec.opt_int("minReplicas");
    let max = spec.int("maxReplicas");
    if let Some(min) = min.filter(|m| *m < 1) {
        let why = "must be greater than or equal to 1";
        out.push(FieldError::invalid(&path.child("minReplicas"), min, why));
    }
    if max < 1 {
        out.push(FieldError::invalid(&path.child("maxReplicas"), max, "must be greater than 0"));
    }
    if min.is_some_and(|min| max < min) {
        let why = "must be greater than or equal to `minReplicas`";
        out.push(FieldError::invalid(&path.child("maxReplicas"), max, why));
    }
    reference(spec.sub("scaleTargetRef"), &path.child("scaleTargetRef"), &mut out);
    metrics(spec.list("metrics"), min, &path.child("metrics"), &mut out);
    if spec.has("behavior") {
        let at = path.child("behavior");
        for direction in ["scaleUp", "scaleDown"] {
            let rules = spec.sub("behavior").sub(direction);
            if spec.sub("behavior").has(direction) {
                scaling_rules(rules, &at.child(direction), &mut out);
            }
        }
    }
    out
}

/// Checks a reference to an object of whatever version.
fn reference(to: &Value, path: &Path<'_>, out: &mut Errors) {
    for key in ["kind", "name"] {
        check::required_name(names::path_segment, to, key, path, out);
    }
}

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// The types and their sources, in the order in which upstream looks into them.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

/// The field of a metric that has the source of its type, if there is such a type.
pub(super) fn source_of(metric: &Value) -> Option<&'static str> {
    SOURCES.into_iter().find(|(kind, _)| *kind == metric.text("type")).map(|(_, key)| key)
}

fn metrics(list: &[Value], min: Option<i64>, path: &Path<'_>, out: &mut Errors) {
    let mut beyond_pods = false;
    for (i, metric) in list.iter().enumerate() {
        beyond_pods |= metric.has("object") || metric.has("external");
        one_metric(metric, &path.index(i), out);
    }
    if min == Some(0) && !beyond_pods {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        out.push(FieldError::forbidden(path, why));
    }
}

fn one_metric(metric: &Value, path: &Path<'_>, out: &mut Errors) {
    let kind = metric.text("type");
    let at = path.child("type");
    if kind.is_empty() {
        out.push(FieldError::required(&at, "must specify a metric source type"));
    }
    if !TYPES.contains(&kind) {
        out.push(FieldError::not_supported(&at, kind, &TYPES));
    }
    let present: Vec<&str> = SOURCES.into_iter().map(|(_, key)| key).filter(|key| metric.has(key)).collect();
    // Upstream looks into one source alone, whether or not it is that of the type.
    if let Some(first) = present.first() {
        source(first, metric.sub(first), &path.child(first), out);
    }
    let expected = source_of(metric);
    match expected {
        // Upstream finds this twice: no such type, and no source of that type.
        None => out.push(FieldError::not_supported(&at, kind, &TYPES)),
        Some(key) if !metric.has(key) => {
            let why = "must populate information for the given metric source";
            out.push(FieldError::required(&path.child(key), why));
        }
        Some(_) => {}
    }
    if present.len() > 1 {
        for other in present.into_iter().filter(|key| Some(*key) != expected) {
            out.push(FieldError::forbidden(&path.child(other), "must populate the given metric source only"));
        }
    }
}

fn source(kind: &str, source: &Value, path: &Path<'_>, out: &mut Errors) {
    let target = source.sub("target");
    let at = path.child("target");
    match kind {
        "resource" | "containerResource" => {
            if source.text("name").is_empty() {
                out.push(FieldError::required(&path.child("name"), "must specify a resource name"));
            } else if kind == "containerResource" {
                container_resource_name(source.text("name"), &path.child("name"), out);
            }
            if kind == "containerResource" {
                if source.text("container").is_empty() {
                    out.push(FieldError::required(&path.child("container"), "must specify a container"));
                } else {
                    check::name(names::dns1123_label, source.text("container"), &path.child("container"), out);
                }
            }
            metric_target(target, &at, out);
            match (target.has("averageUtilization"), target.has("averageValue")) {
                (false, false) => {
                    let why = "must set either a target raw value or a target utilization";
                    out.push(FieldError::required(&at.child("averageUtilization"), why));
                }
                (true, true) => {
                    let why = "may not set both a target raw value and a target utilization";
                    out.push(FieldError::forbidden(&at.child("averageValue"), why));
                }
                _ => {}
            }
        }
        _ => {
            if kind == "object" {
                reference(source.sub("describedObject"), &path.child("describedObject"), out);
            }
            let metric = path.child("metric");
            if source.sub("metric").text("name").is_empty() {
                out.push(FieldError::required(&metric.child("name"), "must specify a metric name"));
            } else {
                check::name(names::path_segment, source.sub("metric").text("name"), &metric.child("name"), out);
            }
            metric_target(target, &at, out);
            let set = (target.has("value"), target.has("averageValue"));
            match (kind, set) {
                ("pods", (_, false)) => {
                    let why = "must specify a positive target averageValue";
                    out.push(FieldError::required(&at.child("averageValue"), why));
                }
                ("object" | "external", (false, false)) => {
                    let why = if kind == "object" {
                        "must set either a target value or averageValue"
                    } else {
                        "must set either a target value for metric or a per-pod target"
                    };
                    out.push(FieldError::required(&at.child("averageValue"), why));
                }
                ("external", (true, true)) => {
                    let why = "may not set both a target value for metric and a per-pod target";
                    out.push(FieldError::forbidden(&at.child("value"), why));
                }
                _ => {}
            }
        }
    }
}

fn metric_target(target: &Value, path: &Path<'_>, out: &mut Errors) {
    let kind = target.text("type");
    if kind.is_empty() {
        out.push(FieldError::required(&path.child("type"), "must specify a metric target type"));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        out.push(FieldError::invalid(&path.child("type"), kind, why));
    }
    for key in ["value", "averageValue"] {
        if let Some(quantity) = check::quantity(target.sub(key)).filter(|q| !q.sign().is_gt()) {
            out.push(FieldError::invalid(&path.child(key), quantity.to_string().as_str(), "must be positive"));
        }
    }
    check::positive(target, "averageUtilization", path, out);
}

fn scaling_rules(rules: &Value, path: &Path<'_>, out: &mut Errors) {
    if let Some(window) = rules.opt_int("stabilizationWindowSeconds") {
        let at = path.child("stabilizationWindowSeconds");
        if window < 0 {
            out.push(FieldError::invalid(&at, window, "must be greater than or equal to zero"));
        }
        if window > 3600 {
            out.push(FieldError::invalid(&at, window, "must be less than or equal to 3600"));
        }
    }
    if rules.has("selectPolicy") {
        check::one_of(rules, "selectPolicy", &["Disabled", "Max", "Min"], path, out);
    }
    let policies = path.child("policies");
    if rules.list("policies").is_empty() {
        out.push(FieldError::required(&policies, "must specify at least one Policy"));
    }
    for (i, policy) in rules.list("policies").iter().enumerate() {
        let at = policies.index(i);
        check::one_of(policy, "type", &["Percent", "Pods"], &at, out);
        for key in ["value", "periodSeconds"] {
            if policy.int(key) <= 0 {
                out.push(FieldError::invalid(&at.child(key), policy.int(key), "must be greater than zero"));
            }
        }
        if policy.int("periodSeconds") > 1800 {
            let why = "must be less than or equal to 1800";
            out.push(FieldError::invalid(&at.child("periodSeconds"), policy.int("periodSeconds"), why));
        }
    }
}

pub(super) fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    check::not_negative(new.sub("status"), "currentReplicas", &path, &mut out);
    check::not_negative(new.sub("status"), "desiredReplicas", &path, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_metric(metric: &str) -> Vec<String> {
        let metric = object::yaml::parse(metric.as_bytes()).unwrap();
        let mut out = Errors::new();
        one_metric(&metric, &Path::ROOT.child("m"), &mut out);
        out.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_metric_has_the_one_source_of_its_type() {
        const NO_TYPE: &str = r#"m.type: Required value: must specify a metric source type"#;
        const UNKNOWN: &str = r#"supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#;
        const RESOURCE: &str = "resource: {name: cpu, target: {type: Utilization, averageUtilization: 5}}";
        const PODS: &str = "pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}}";
        let unknown = |kind: &str| format!(r#"m.type: Unsupported value: "{kind}": {UNKNOWN}"#);
        let only = |source: &str| format!("m.{source}: Forbidden: must populate the given metric source only");
        let missing = "m.resource: Required value: must populate information for the given metric source".to_owned();
        let rows: [(String, Vec<String>); 7] = [
            (format!("{{type: Resource, {RESOURCE}}}"), vec![]),
            (format!("{{{RESOURCE}}}"), vec![NO_TYPE.to_owned(), unknown(""), unknown("")]),
            (format!("{{type: X, {RESOURCE}}}"), vec![unknown("X"), unknown("X")]),
            // One source of another type is no source too many.
            (format!("{{type: Resource, {PODS}}}"), vec![missing]),
            (format!("{{type: Resource, {RESOURCE}, {PODS}}}"), vec![only("pods")]),
            (
                format!("{{type: X, {RESOURCE}, {PODS}}}"),
                vec![unknown("X"), unknown("X"), only("pods"), only("resource")],
            ),
            // Of two sources only the first one is looked into.
            (
                "{type: Pods, resource: {}, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}}}"
                    .to_owned(),
                vec![only("resource")],
            ),
        ];
        for (metric, expected) in rows {
            assert_eq!(of_metric(&metric), expected, "{metric}");
        }
    }

    #[test]
    fn what_a_source_is_about_is_checked() {
        let errors = of_metric(
            "{type: Object, object: {describedObject: {kind: a/b, name: ''}, metric: {name: m, selector: {matchLabels: {'-': ''}}}, target: {value: 1}}}",
        );
        let expected = [
            r#"m.object.describedObject.kind: Invalid value: "a/b": may not contain '/'"#,
            "m.object.describedObject.name: Required value",
            "m.object.target.type: Required value: must specify a metric target type",
            r#"m.object.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue"#,
        ];
        assert_eq!(errors, expected);
    }
}
