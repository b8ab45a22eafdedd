//! The order of lists after a patch: what was there stays where it was, and what is new comes after it. A strategic merge
//! alone puts what is new first, and with it, for example, a sidecar before the container that it is for.

use object::Value;

/// Fields by which items of lists are told apart, most telling first.
const KEYS: [&str; 8] = ["name", "mountPath", "devicePath", "containerPort", "port", "ip", "key", "uid"];

/// Puts lists of objects in `after` into the order that they have in `before`.
pub(super) fn keep(before: &Value, after: &mut Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, before) in before.iter() {
                if let Some(after) = after.get_mut(key) {
                    keep(before, after);
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let Some(key) = KEYS.into_iter().find(|key| tells_apart(key, before) && tells_apart(key, after)) else {
                return;
            };
            let place = |item: &Value| before.iter().position(|known| known.get(key) == item.get(key));
            after.sort_by_cached_key(|item| place(item).unwrap_or(before.len()));
            for item in after.iter_mut() {
                if let Some(known) = place(item).and_then(|place| before.get(place)) {
                    keep(known, item);
                }
            }
        }
        _ => {}
    }
}

/// Whether all items have a field, each another value in it.
fn tells_apart(key: &str, items: &[Value]) -> bool {
    let values: Option<std::collections::HashSet<String>> =
        items.iter().map(|item| item.get(key).map(object::json::to_string)).collect();
    values.is_some_and(|values| values.len() == items.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn what_is_new_comes_last() {
        for (before, after, expected) in [
            (
                r#"{"l":[{"name":"b","e":[{"name":"y"}]},{"name":"a"}]}"#,
                r#"{"l":[{"name":"c"},{"name":"a"},{"name":"b","e":[{"name":"x"},{"name":"y"}]}]}"#,
                r#"{"l":[{"e":[{"name":"y"},{"name":"x"}],"name":"b"},{"name":"a"},{"name":"c"}]}"#,
            ),
            // One volume may be mounted twice.
            (
                r#"[{"name":"v","mountPath":"/b"},{"name":"v","mountPath":"/a"}]"#,
                r#"[{"name":"v","mountPath":"/c"},{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"}]"#,
                r#"[{"mountPath":"/b","name":"v"},{"mountPath":"/a","name":"v"},{"mountPath":"/c","name":"v"}]"#,
            ),
            (r#"["b","a"]"#, r#"["a","b"]"#, r#"["a","b"]"#),
            (r#"[{"x":1}]"#, r#"[{"x":2},{"x":1}]"#, r#"[{"x":2},{"x":1}]"#),
        ] {
            let parse = |text: &str| json::parse(text.as_bytes()).unwrap_or_default();
            let mut after = parse(after);
            keep(&parse(before), &mut after);
            assert_eq!(json::to_string(&after), expected);
        }
    }
}
