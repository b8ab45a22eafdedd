//! The wire form of a field set, `fieldsV1`.
//!
//! A JSON object whose keys are steps: `f:NAME` a field, `k:{"a":1}` a list-map key, `v:"x"` a set value, `i:3` an
//! index, and `.` for "the path to here is in the set too". A path without children is `{}`.

use crate::path::PathElement;
use crate::set::{FieldSet, Node};
use compact_str::CompactString;
use object::{Map, Value, json};
use std::fmt;

/// Why a `fieldsV1` could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldsError(String);

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FieldsError {}

impl FieldSet {
    /// Reads a `fieldsV1`. Steps of an unknown type are left out, as a later version may know them; anything else that
    /// is not of the form is an error.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, FieldsError> {
        read(fields).map(|(set, _)| set)
    }

    /// The `fieldsV1` of this set.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(write(self, false))
    }

    /// Reads the text of a `fieldsV1`.
    pub fn from_text(text: &[u8]) -> Result<FieldSet, FieldsError> {
        let value = json::parse(text).map_err(|e| FieldsError(e.to_string()))?;
        FieldSet::from_fields_v1(&value)
    }

    /// The text of the `fieldsV1` in canonical order: on each level `.` first, then the elements in their order, which
    /// for list-map keys and set values is by value and not by text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        write_text(self, false, &mut out);
        out
    }
}

/// The set below, and whether the path to here is itself a member.
fn read(fields: &Value) -> Result<(FieldSet, bool), FieldsError> {
    let members = match fields {
        Value::Null => return Ok((FieldSet::new(), true)),
        Value::Object(members) => members,
        other => return Err(FieldsError(format!("expect {{ or n, but found {}", json::to_string(other)))),
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(members.len());
    for (key, below) in members.iter() {
        if key == "." {
            member = true;
        } else if let Some(element) = read_element(key)? {
            let (children, member) = read(below)?;
            nodes.push(Node { element, member, children });
        }
    }
    let set = FieldSet::from_nodes(nodes);
    member |= set.is_empty();
    Ok((set, member))
}

/// Reads one step, `None` where its type is unknown.
pub(crate) fn read_element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    if key.len() < 2 {
        return Err(FieldsError("key must be 2 characters long:".to_owned()));
    }
    if key.as_bytes()[1] != b':' {
        return Err(FieldsError(format!("missing colon: {key}")));
    }
    let (kind, text) = (key.as_bytes()[0], &key[2..]);
    if let Some(element) = simple_element(kind, text) {
        return Ok(Some(element));
    }
    let parse = || json::parse(text.as_bytes()).map_err(|e| FieldsError(e.to_string()));
    Ok(Some(match kind {
        b'f' => PathElement::Field(text.into()),
        b'v' => PathElement::Value(number_as_read(parse()?)),
        b'k' => match parse()? {
            Value::Object(fields) => {
                PathElement::Key(fields.into_iter().map(|(name, value)| (name, number_as_read(value))).collect())
            }
            Value::Null => PathElement::Key(Vec::new()),
            other => return Err(FieldsError(format!("expect {{ or n, but found {}", json::to_string(&other)))),
        },
        b'i' => match text.parse() {
            Ok(index) => PathElement::Index(index),
            Err(_) => {
                return Err(FieldsError(format!("strconv.Atoi: parsing {}: invalid syntax", object::go::quote(text))));
            }
        },
        _ => return Ok(None),
    }))
}

/// The common forms, read without a JSON reader: `k:{"name":"x"}` and `v:"x"` without escapes.
fn simple_element(kind: u8, text: &str) -> Option<PathElement> {
    // Without branches, so that many bytes are looked at together.
    let plain = |b: u8| (b >= 0x20) & (b != b'"') & (b != b'\\');
    let simple = |s: &str| s.bytes().fold(true, |all, b| all & plain(b));
    match kind {
        b'v' => {
            let value = text.strip_prefix('"')?.strip_suffix('"')?;
            simple(value).then(|| PathElement::Value(value.into()))
        }
        b'k' => {
            let (name, value) = text.strip_prefix("{\"")?.strip_suffix("\"}")?.split_once('"')?;
            let value = value.strip_prefix(":\"")?;
            (simple(name) && simple(value)).then(|| PathElement::Key(vec![(name.into(), value.into())]))
        }
        _ => None,
    }
}

/// Upstream reads every number of a key as a float, which conflicts then print (`1e+06`). Integers that a float cannot
/// hold stay what they are, so that the ownership of such items is not lost.
fn number_as_read(value: Value) -> Value {
    match value {
        Value::Int(i) if i.unsigned_abs() <= 1 << 53 => Value::Float(i as f64),
        other => other,
    }
}

fn write(set: &FieldSet, member: bool) -> Map {
    let mut out = Vec::with_capacity(set.nodes().len() + usize::from(member));
    if member && !set.is_empty() {
        out.push((CompactString::const_new("."), Value::Object(Map::new())));
    }
    out.extend(set.nodes().iter().map(|n| (element_key(&n.element), Value::Object(write(&n.children, n.member)))));
    out.into()
}

fn write_text(set: &FieldSet, member: bool, out: &mut String) {
    out.push('{');
    let mut first = true;
    if member && !set.is_empty() {
        out.push_str("\".\":{}");
        first = false;
    }
    for n in set.nodes() {
        if !first {
            out.push(',');
        }
        first = false;
        json::write_string(out, &element_key(&n.element));
        out.push(':');
        write_text(&n.children, n.member, out);
    }
    out.push('}');
}

/// The room for most keys of list items, in bytes.
const KEY: usize = 64;

/// The key of one step.
pub(crate) fn element_key(element: &PathElement) -> CompactString {
    match element {
        PathElement::Field(name) => {
            let mut out = CompactString::with_capacity(name.len() + 2);
            out.push_str("f:");
            out.push_str(name);
            out
        }
        PathElement::Key(fields) => {
            let mut out = String::with_capacity(KEY);
            out.push_str("k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json::write_string(&mut out, name);
                out.push(':');
                json::write(&mut out, value);
            }
            out.push('}');
            out.into()
        }
        PathElement::Value(value) => {
            let mut out = String::with_capacity(KEY);
            out.push_str("v:");
            json::write(&mut out, value);
            out.into()
        }
        PathElement::Index(i) => compact_str::format_compact!("i:{i}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_in_canonical_order() {
        for text in [
            "{}",
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}},"f:c":{"k:{\"name\":\"x\",\"port\":80}":{".":{},"f:v":{}},"v:\"s\"":{},"i:3":{}}}"#,
            r#"{"f:l":{"v:1":{},"v:2.5":{},"v:10":{},"v:true":{}}}"#,
        ] {
            assert_eq!(FieldSet::from_text(text.as_bytes()).unwrap().to_text(), text);
        }
    }

    #[test]
    fn what_is_unknown_is_left_out_and_what_is_broken_is_an_error() {
        let set = FieldSet::from_text(br#"{"f:a":{"x:b":{}},"y:1":{"f:z":{}},"f:n":null}"#).unwrap();
        assert_eq!(set.to_text(), r#"{"f:a":{},"f:n":{}}"#);
        for text in [
            r#""s""#,
            "[]",
            r#"{"f:a":1}"#,
            r#"{"a":{}}"#,
            r#"{"ab":{}}"#,
            r#"{"v:x":{}}"#,
            r#"{"k:[]":{}}"#,
            r#"{"i:x":{}}"#,
        ] {
            assert!(FieldSet::from_text(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_in_keys_print_as_floats_once_read() {
        let set = FieldSet::from_text(br#"{"f:l":{"v:1000000":{}}}"#).unwrap();
        assert_eq!(set.paths()[0].to_string(), ".l[=1e+06]");
        assert_eq!(set.to_text(), r#"{"f:l":{"v:1000000":{}}}"#);
        let big = FieldSet::from_text(br#"{"v:9223372036854775807":{}}"#).unwrap();
        assert_eq!(big.to_text(), r#"{"v:9223372036854775807":{}}"#);
    }
}
