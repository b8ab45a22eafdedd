//! Go's syntax for the few structures that error messages show.

mod diff;
mod template;
mod types;

pub(crate) use diff::{diff, pod_spec_diff};
pub(crate) use template::pod_template;
pub(crate) use types::{CLAIM, VOLUME_SOURCE};

use crate::check::go_string_map;
use crate::read::Read;
use object::field::Shown;
use object::{Value, go};

/// A label selector: `v1.LabelSelector{MatchLabels:…}`.
pub(crate) fn label_selector(selector: &Value) -> Shown {
    if selector.as_object().is_none() {
        return (&Value::Null).into();
    }
    let labels = match selector.members("matchLabels") {
        labels if labels.is_empty() => "map[string]string(nil)".to_owned(),
        labels => go_string_map(labels),
    };
    let expressions = match selector.list("matchExpressions") {
        [] => "[]v1.LabelSelectorRequirement(nil)".to_owned(),
        list => {
            let shown: Vec<String> = list
                .iter()
                .map(|e| {
                    let values = match e.strings("values") {
                        values if values.is_empty() => "[]string(nil)".to_owned(),
                        values => go::string_list(&values),
                    };
                    format!(
                        "v1.LabelSelectorRequirement{{Key:{}, Operator:{}, Values:{values}}}",
                        go::quote(e.text("key")),
                        go::quote(e.text("operator"))
                    )
                })
                .collect();
            format!("[]v1.LabelSelectorRequirement{{{}}}", shown.join(", "))
        }
    };
    Shown::raw(format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}"))
}

/// Labels as a field of their own: `map[string]string{"a":"b"}`.
pub(crate) fn labels(labels: &object::Map) -> Shown {
    Shown::raw(if labels.is_empty() { "map[string]string(nil)".to_owned() } else { go_string_map(labels) })
}

/// `intstr.IntOrString{Type:0, IntVal:1, StrVal:""}`
pub(crate) fn int_or_string(value: &Value) -> String {
    match value {
        Value::String(s) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{}}}", go::quote(s)),
        value => format!("intstr.IntOrString{{Type:0, IntVal:{}, StrVal:\"\"}}", value.as_int().unwrap_or_default()),
    }
}
