//! JSON patch (RFC 6902) as the library json-patch v4 does it, with its liberties: `replace` adds a member that is
//! missing, `copy` of one that is missing adds a null, negative indices count from the end, and what stands before the
//! first slash of a path does not count.

use crate::{Error, go_word};
use object::{Value, json};

/// The most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Applies the operations of a JSON patch one after the other.
pub fn json_patch(patch: &[u8], document: Value) -> Result<Value, Error> {
    let malformed = |why: String| Error::Malformed(format!("error decoding patch: {why}"));
    let operations = match json::parse(patch).map_err(|e| malformed(e.to_string()))? {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => {
            let word = go_word(&other);
            return Err(malformed(format!(
                "json: cannot unmarshal {word} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    if operations.len() > MAX_OPERATIONS {
        let count = operations.len();
        return Err(Error::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        )));
    }
    let mut document = document;
    for operation in &operations {
        if !matches!(operation, Value::Object(_) | Value::Null) {
            let word = go_word(operation);
            return Err(malformed(format!("json: cannot unmarshal {word} into Go value of type handlers.jsonPatchOp")));
        }
        apply(&mut document, operation).ok_or(Error::Unfit)?;
    }
    Ok(document)
}

fn apply(document: &mut Value, operation: &Value) -> Option<()> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let path = text("path")?;
    match text("op")? {
        "add" => add(document, path, operation.get("value")?.clone()),
        "remove" => take(document, path).map(|_| ()),
        "replace" => replace(document, path, operation.get("value").cloned().unwrap_or_default()),
        "move" => {
            let value = take(document, text("from")?)?;
            add(document, path, value)
        }
        "copy" => {
            let value = find_for_copy(document, text("from")?)?;
            add(document, path, value)
        }
        "test" => test(document, path, operation.get("value").unwrap_or(&Value::Null)),
        _ => None,
    }
}

/// The keys of a path, decoded. Whatever stands before the first slash does not count.
fn keys(path: &str) -> Option<Vec<String>> {
    let decode = |key: &str| key.replace("~1", "/").replace("~0", "~");
    let (_, keys) = path.split_once('/')?;
    Some(keys.split('/').map(decode).collect())
}

/// The container that holds what a path names, and the last key.
fn container<'v>(document: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let mut keys = keys(path)?;
    let last = keys.pop()?;
    let mut value = document;
    for key in &keys {
        value = match value {
            Value::Object(members) => members.get_mut(key)?,
            Value::Array(items) => {
                let at = index(key, items.len())?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    matches!(value, Value::Object(_) | Value::Array(_)).then_some((value, last))
}

/// An index of a list; negative ones count from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    let at = if number < 0 { number.checked_add(length as i64)? } else { number };
    usize::try_from(at).ok()
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(members) => {
            members.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let number: i64 = key.parse().ok()?;
            // A negative index counts from the end of the longer list.
            let at = index(&key, items.len() + usize::from(number < 0))?;
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn take(document: &mut Value, path: &str) -> Option<Value> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(members) => members.remove(&key),
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            (at < items.len()).then(|| items.remove(at))
        }
        _ => None,
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return None;
        }
        *document = value;
        return Some(());
    }
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(members) => {
            members.insert(key, value);
        }
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            *items.get_mut(at)? = value;
        }
        _ => return None,
    }
    Some(())
}

/// What a path names; a missing member is null.
fn find_for_copy(document: &mut Value, path: &str) -> Option<Value> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(members) => Some(members.get(&key).cloned().unwrap_or_default()),
        Value::Array(items) => items.get(index(&key, items.len())?).cloned(),
        _ => None,
    }
}

fn test(document: &mut Value, path: &str, wanted: &Value) -> Option<()> {
    if path.is_empty() {
        return (document == wanted).then_some(());
    }
    let (container, key) = container(document, path)?;
    let found = match container {
        Value::Object(members) => members.get(&key).cloned().unwrap_or_default(),
        Value::Array(items) => items.get(index(&key, items.len())?)?.clone(),
        _ => return None,
    };
    same(&found, wanted).then_some(())
}

/// Equality of documents: numbers by what they are worth.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(i), Value::Float(f)) | (Value::Float(f), Value::Int(i)) => *i as f64 == *f,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((ak, av), (bk, bv))| ak == bk && same(av, bv))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(document: &str, patch: &str) -> Result<String, Error> {
        let document = json::parse(document.as_bytes()).unwrap();
        json_patch(patch.as_bytes(), document).map(|v| json::to_string(&v))
    }

    #[test]
    fn operations_change_the_document() {
        for (document, patch, result) in [
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":2}]"#, r#"{"a":1,"b":2}"#),
            (
                r#"{"l":[1,3]}"#,
                r#"[{"op":"add","path":"/l/1","value":2},{"op":"add","path":"/l/-","value":4}]"#,
                r#"{"l":[1,2,3,4]}"#,
            ),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"/z","value":2}]"#, r#"{"a":1,"z":2}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"x/a","value":2}]"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"[{"op":"copy","from":"/zz","path":"/b"}]"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, r#"{"b":1}"#),
            (r#"{"l":[1,2]}"#, r#"[{"op":"remove","path":"/l/-1"}]"#, r#"{"l":[1]}"#),
            (r#"{"a/b":{"~":1}}"#, r#"[{"op":"test","path":"/a~1b/~0","value":1.0}]"#, r#"{"a/b":{"~":1}}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{}}]"#, "{}"),
        ] {
            assert_eq!(patched(document, patch).as_deref(), Ok(result), "{patch}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for patch in [
            r#"[{"op":"remove","path":"/zz"}]"#,
            r#"[{"op":"remove","path":""}]"#,
            r#"[{"op":"add","path":"","value":{}}]"#,
            r#"[{"op":"add","path":"/q/r","value":1}]"#,
            r#"[{"op":"add","path":"/l/5","value":1}]"#,
            r#"[{"op":"add","path":"/l/x","value":1}]"#,
            r#"[{"op":"test","path":"/a","value":2}]"#,
            r#"[{"op":"move","from":"/zz","path":"/b"}]"#,
            r#"[{}]"#,
        ] {
            assert_eq!(patched(r#"{"a":1,"l":[1]}"#, patch), Err(Error::Unfit), "{patch}");
        }
    }

    #[test]
    fn malformed_patches_are_told_as_upstream_does() {
        let text = |patch: &str| patched("{}", patch).unwrap_err().to_string();
        assert_eq!(
            text("{}"),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        );
        assert_eq!(text("["), "error decoding patch: unexpected end of JSON input");
        let many = format!("[{}]", vec!["{}"; 10_001].join(","));
        assert_eq!(text(&many), "The allowed maximum operations in a JSON patch is 10000, got 10001");
    }
}
