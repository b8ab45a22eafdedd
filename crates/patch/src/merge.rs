//! Merge patch (RFC 7386), as `evanphx/json-patch` v4 applies and makes it.

use std::convert::Infallible;

use object::{Map, Value};

use crate::join::join;

/// The text of the API server's error for a patch that is neither an object nor an array.
pub const INVALID_PATCH: &str = "Invalid JSON Patch";

/// Lays `patch` over `target`: members that are null are taken away, objects are merged, everything else replaces.
///
/// Nulls in lists are values: they stay.
pub fn apply(target: Value, patch: Value) -> Value {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => Value::Object(apply_map(target, patch)),
        (Value::Object(_), patch) => patch,
        (_, mut patch) => {
            prune(&mut patch);
            patch
        }
    }
}

/// As [`apply`], for a patch as it came in a request: only an object or an array is one.
pub fn apply_document(target: Value, mut patch: Value) -> Result<Value, &'static str> {
    match patch {
        Value::Object(_) => Ok(apply(target, patch)),
        Value::Array(_) => {
            prune(&mut patch);
            Ok(patch)
        }
        _ => Err(INVALID_PATCH),
    }
}

/// The merge patch that makes `modified` of `original`.
///
/// A list is in the patch when it differs, and also when it holds nulls: the library never finds those equal.
pub fn diff(original: &Map, modified: &Map) -> Map {
    let mut patch = Vec::new();
    for (key, new) in modified.iter() {
        match (original.get(key), new) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let inner = diff(old, new);
                if !inner.is_empty() {
                    patch.push((key, Value::Object(inner)));
                }
            }
            (Some(Value::Null), Value::Null) => {}
            (Some(old), new) if is_same(old, new) => {}
            (_, new) => patch.push((key, new.clone())),
        }
    }
    patch.extend(original.keys().filter(|key| !modified.contains_key(key)).map(|key| (key, Value::Null)));
    patch.into_iter().collect()
}

/// The merge patch of a client-side apply: takes away what `original` (the configuration applied last) has and
/// `modified` (the new one) has not, sets what differs between `current` (the live object) and `modified`, and leaves
/// alone what only `current` has.
pub fn three_way(original: &Map, modified: &Map, current: &Map) -> Map {
    let changes = keep(diff(current, modified), false);
    let deletions = keep(diff(original, modified), true);
    apply_map(deletions, changes)
}

fn apply_map(target: Map, patch: Map) -> Map {
    let joined = join::<Infallible>(target, patch, |_, old, new| {
        Ok(match (old, new) {
            (old, None) => old,
            (_, Some(Value::Null)) => None,
            (None | Some(Value::Null), Some(mut new)) => {
                prune(&mut new);
                Some(new)
            }
            (Some(old), Some(new)) => Some(apply(old, new)),
        })
    });
    match joined {
        Ok(map) => map,
        Err(never) => match never {},
    }
}

/// Takes all nulls out of objects, those within lists too. The items of lists stay, null or not.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            prune(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|((key, left), (other, right))| key == other && is_same(left, right))
        }
        (left, right) => left == right,
    }
}

/// Of a patch only the deletions, or only the rest. An object set to be empty is a value.
fn keep(patch: Map, deletions: bool) -> Map {
    let kept = patch.into_iter().filter_map(|(key, value)| match value {
        Value::Null => deletions.then_some((key, Value::Null)),
        Value::Object(members) if !members.is_empty() => {
            let members = keep(members, deletions);
            (!members.is_empty()).then_some((key, Value::Object(members)))
        }
        value => (!deletions).then_some((key, value)),
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json::{parse, to_string};

    fn map(text: &str) -> Map {
        let Ok(Value::Object(map)) = parse(text.as_bytes()) else { panic!("{text}") };
        map
    }

    #[test]
    fn a_patch_sets_takes_away_and_replaces() {
        // The examples of RFC 7386, appendix A, where the library follows it.
        for (target, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            // Its own ways.
            ("{}", r#"{"a":[1,null,{"b":null}]}"#, r#"{"a":[1,null,{}]}"#),
            (r#"{"a":[2]}"#, r#"{"a":[1,null]}"#, r#"{"a":[1,null]}"#),
            (r#"{"a":{}}"#, r#"{"a":[1,null]}"#, r#"{"a":[1,null]}"#),
            (r#"{"a":null}"#, r#"{"a":{"b":null}}"#, r#"{"a":{}}"#),
        ] {
            let patched = apply_document(parse(target.as_bytes()).unwrap(), parse(patch.as_bytes()).unwrap());
            assert_eq!(to_string(&patched.unwrap()), expected, "{target} {patch}");
        }
        assert_eq!(apply_document(Value::Null, Value::Null), Err("Invalid JSON Patch"));
        assert_eq!(apply_document(Value::Null, Value::Int(1)), Err("Invalid JSON Patch"));
    }

    #[test]
    fn a_difference_is_the_patch_that_makes_it() {
        for (original, modified, expected) in [
            (r#"{"a":1,"b":{"c":1,"d":2}}"#, r#"{"b":{"c":1,"d":3},"e":1}"#, r#"{"a":null,"b":{"d":3},"e":1}"#),
            (r#"{"a":[1,{"b":2}]}"#, r#"{"a":[1,{"b":2}]}"#, "{}"),
            (r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, r#"{"a":[1,2]}"#),
            (r#"{"a":1}"#, r#"{"a":"1"}"#, r#"{"a":"1"}"#),
            (r#"{"a":null}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":null}"#, r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":[null]}"#, r#"{"a":[null]}"#, r#"{"a":[null]}"#),
        ] {
            assert_eq!(to_string(&Value::Object(diff(&map(original), &map(modified)))), expected);
        }
    }

    #[test]
    fn a_client_side_apply_leaves_alone_what_others_set() {
        let original = map(r#"{"gone":1,"kept":1,"m":{"x":1,"y":1},"was":{"a":1}}"#);
        let modified = map(r#"{"kept":2,"m":{"y":1},"new":{},"l":[1]}"#);
        let current = map(r#"{"gone":1,"kept":1,"m":{"x":1,"y":1,"theirs":1},"theirs":1,"was":{"a":1},"l":[1]}"#);
        let patch = three_way(&original, &modified, &current);
        assert_eq!(to_string(&Value::Object(patch)), r#"{"gone":null,"kept":2,"m":{"x":null},"new":{},"was":null}"#);
    }
}
