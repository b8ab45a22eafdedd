//! Which nodes the spec of a pod asks for, and which taints it bears.

use kinds::read::Read;
use object::Value;

/// The one field of a node that terms can name.
pub(crate) const NODE_NAME: &str = "metadata.name";

/// Whether a toleration is for a taint.
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let any_or_same = |key: &str| toleration.text(key).is_empty() || toleration.text(key) == taint.text(key);
    any_or_same("effect")
        && any_or_same("key")
        && match toleration.text("operator") {
            "" | "Equal" => toleration.text("value") == taint.text("value"),
            "Exists" => true,
            _ => false,
        }
}

/// Whether a node is what the selector and the required affinity of a pod's spec ask for.
pub(crate) fn is_selected(spec: &Value, node: &Value) -> bool {
    let labels = node.sub("metadata").members("labels");
    if !spec.members("nodeSelector").iter().all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    let required = spec.sub("affinity").sub("nodeAffinity").sub("requiredDuringSchedulingIgnoredDuringExecution");
    required.is_null() || required.list("nodeSelectorTerms").iter().any(|term| matches(term, node))
}

/// Whether a node satisfies a term; an empty one is satisfied by none.
fn matches(term: &Value, node: &Value) -> bool {
    let (labels, fields) = (term.list("matchExpressions"), term.list("matchFields"));
    let label = |key: &str| node.label(key);
    let field = |key: &str| (key == NODE_NAME).then(|| node.name());
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|e| holds(e, label(e.text("key"))))
        && fields.iter().all(|e| holds(e, field(e.text("key"))))
}

/// Whether a requirement holds for a value.
fn holds(requirement: &Value, value: Option<&str>) -> bool {
    let values = requirement.strings("values");
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = |holds: fn(i64, i64) -> bool| {
        let limit = values.first().and_then(|v| number(v));
        value.and_then(number).zip(limit).is_some_and(|(value, limit)| holds(value, limit))
    };
    match requirement.text("operator") {
        "In" => value.is_some_and(|v| values.contains(&v)),
        "NotIn" => value.is_none_or(|v| !values.contains(&v)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(|value, limit| value > limit),
        "Lt" => compared(|value, limit| value < limit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn nodes_are_selected_by_labels_and_affinity() {
        let node = value(r#"{"metadata":{"name":"n1","labels":{"a":"b","size":"7"}}}"#);
        let terms = |terms: &str| {
            format!(
                r#"{{"affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{terms}]}}}}}}}}"#
            )
        };
        for (spec, selected) in [
            ("{}".to_owned(), true),
            (r#"{"nodeSelector":{"a":"b"}}"#.to_owned(), true),
            (r#"{"nodeSelector":{"a":"c"}}"#.to_owned(), false),
            (terms(""), false),
            (terms("{}"), false),
            (terms(r#"{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}"#), true),
            (terms(r#"{"matchExpressions":[{"key":"x","operator":"NotIn","values":["b"]}]}"#), true),
            (terms(r#"{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#), true),
            (terms(r#"{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]}"#), false),
            (terms(r#"{"matchExpressions":[{"key":"size","operator":"Gt","values":["6"]}]}"#), true),
            (terms(r#"{"matchExpressions":[{"key":"size","operator":"Lt","values":["x"]}]}"#), false),
            (terms(r#"{"matchExpressions":[{"key":"a","operator":"Odd"}]}"#), false),
            (terms(r#"{},{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}"#), true),
            (terms(r#"{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}"#), false),
        ] {
            assert_eq!(is_selected(&value(&spec), &node), selected, "{spec}");
        }
    }

    #[test]
    fn tolerations_are_for_keys_values_and_effects() {
        let taint = value(r#"{"key":"k","value":"v","effect":"NoSchedule"}"#);
        for (toleration, tolerated) in [
            (r#"{"operator":"Exists"}"#, true),
            (r#"{"key":"k","operator":"Exists","effect":"NoSchedule"}"#, true),
            (r#"{"key":"k","value":"v"}"#, true),
            (r#"{"key":"k","operator":"Equal","value":"v"}"#, true),
            (r#"{"key":"k","value":"w"}"#, false),
            (r#"{"key":"l","operator":"Exists"}"#, false),
            (r#"{"key":"k","operator":"Exists","effect":"NoExecute"}"#, false),
            (r#"{"key":"k","operator":"Odd"}"#, false),
        ] {
            assert_eq!(tolerates(&value(toleration), &taint), tolerated, "{toleration}");
        }
    }
}
