//! The subresource `scale` of built-in workloads.

use crate::table;
use object::Value;

/// The selector of a workload's pods as a scale shows it: as text, empty where it selects everything.
///
/// ```
/// use object::json;
/// let selector = json::parse(br#"{"matchLabels": {"a": "b"}}"#).unwrap();
/// assert_eq!(kinds::scale::selector(&selector), "a=b");
/// ```
pub fn selector(selector: &Value) -> String {
    let text = match selector {
        // Replication controllers have a plain map of labels.
        Value::Object(labels) if labels.values().all(|v| v.as_str().is_some()) => table::labels(labels),
        selector => table::selector(selector),
    };
    if text == table::NONE { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn selectors_are_printed_as_upstream_does() {
        for (text, shown) in [
            ("null", ""),
            ("{}", ""),
            (r#"{"b":"2","a":"1"}"#, "a=1,b=2"),
            (
                r#"{"matchLabels":{"m":"1"},"matchExpressions":[{"key":"z","operator":"In","values":["b","a"]},
                {"key":"n","operator":"NotIn","values":["a"]},{"key":"e","operator":"Exists"},
                {"key":"d","operator":"DoesNotExist"},{"key":"a","operator":"In","values":["one"]}]}"#,
                "a in (one),!d,e,m=1,n notin (a),z in (a,b)",
            ),
        ] {
            assert_eq!(selector(&json::parse(text.as_bytes()).unwrap()), shown, "{text}");
        }
    }
}
