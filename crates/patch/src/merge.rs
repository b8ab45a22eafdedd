//! Merge patch (RFC 7386).

use crate::{Error, go_word};
use object::{Map, Value, json};

/// Applies a merge patch: members of the patch replace those of the document, `null` takes them away.
pub fn merge(patch: &[u8], document: Value) -> Result<Value, Error> {
    let patch = json::parse(patch).map_err(|e| Error::Malformed(format!("error decoding patch: {e}")))?;
    match patch {
        Value::Object(patch) => {
            let mut document = document;
            merge_into(&mut document, patch);
            Ok(document)
        }
        Value::Null => Err(Error::Malformed("Invalid JSON Patch".to_owned())),
        other => {
            let word = go_word(&other);
            let why = format!(
                "error decoding patch: json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
            );
            Err(Error::Malformed(why))
        }
    }
}

fn merge_into(document: &mut Value, patch: Map) {
    if !matches!(document, Value::Object(_)) {
        *document = Value::Object(Map::new());
    }
    let Value::Object(members) = document else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                members.remove(&key);
            }
            Value::Object(patch) => match members.get_mut(&key) {
                Some(inner @ Value::Object(_)) => merge_into(inner, patch),
                _ => {
                    let mut inner = Value::Object(Map::new());
                    merge_into(&mut inner, patch);
                    members.insert(key, inner);
                }
            },
            value => {
                members.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(document: &str, patch: &str) -> Result<String, String> {
        let document = json::parse(document.as_bytes()).unwrap();
        merge(patch.as_bytes(), document).map(|v| json::to_string(&v)).map_err(|e| e.to_string())
    }

    #[test]
    fn members_are_set_replaced_and_taken_away() {
        for (document, patch, result) in [
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"a":null,"b":{"d":3}}"#, r#"{"b":{"c":2,"d":3}}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[3]}"#, r#"{"a":[3]}"#),
            (r#"{"a":1}"#, r#"{"a":{"b":null,"c":1}}"#, r#"{"a":{"c":1}}"#),
            (r#"{}"#, r#"{"x":null}"#, "{}"),
        ] {
            assert_eq!(merged(document, patch).as_deref(), Ok(result));
        }
    }

    #[test]
    fn malformed_patches_are_told_as_upstream_does() {
        for (patch, text) in [
            ("{", "error decoding patch: unexpected end of JSON input"),
            ("[]", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
            ("null", "Invalid JSON Patch"),
        ] {
            assert_eq!(merged("{}", patch), Err(text.to_owned()));
        }
    }
}
