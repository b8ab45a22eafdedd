//! JSON patch (RFC 6902), as `evanphx/json-patch` v4 applies it.
//!
//! Its quirks are kept, because clients live with them: `replace` sets a missing member, `copy` of a missing member
//! sets null, negative indices count from the end, a path without the leading slash loses its first part, `replace`
//! of the whole document by a scalar does nothing, and `test` takes a missing member for null, on both sides.

use std::fmt;

use object::{Map, Value, go, json};

/// What all copies of one patch may add to the document, in bytes of JSON: the API server's limit.
pub const MAX_COPIED: usize = 3 << 20;

/// A patch that was read but not checked: operations that make no sense fail when they are reached.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Map>,
}

/// Why a patch does not apply. (The API server keeps this to itself and says `the server rejected our request due to
/// an error in our request`.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// Whether a `test` operation found another value than the one it named.
    pub fn is_failed_test(&self) -> bool {
        self.0.ends_with(FAILED_TEST)
    }
}

const FAILED_TEST: &str = "failed: test failed";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl JsonPatch {
    /// Reads a patch without looking at the operations; fails in the words of Go's `encoding/json`.
    pub fn read(patch: Value) -> Result<Self, String> {
        let items = list(patch, "jsonpatch.Patch")?;
        let operations = items.into_iter().map(|item| operation(item, "jsonpatch.Operation"));
        Ok(Self { operations: operations.collect::<Result<_, _>>()? })
    }

    /// Checks a patch as field validation wants it: the types of the operations' members are errors, in the words of
    /// Go's `encoding/json`; unknown members are returned, as `json patch unknown field "[0].x"`.
    pub fn check(patch: &Value) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        for (index, item) in list_ref(patch, "[]handlers.jsonPatchOp")?.iter().enumerate() {
            let members = match item {
                Value::Object(members) => members,
                Value::Null => continue,
                other => return Err(cannot_read(other, "Go value of type handlers.jsonPatchOp")),
            };
            for (name, value) in members.iter() {
                match (name, value) {
                    ("op" | "path" | "from", Value::String(_) | Value::Null) | ("value", _) => {}
                    ("op" | "path" | "from", other) => {
                        return Err(cannot_read(other, &format!("Go struct field jsonPatchOp.{name} of type string")));
                    }
                    _ => unknown.push(format!("json patch unknown field \"[{index}].{name}\"")),
                }
            }
        }
        Ok(unknown)
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Carries out the operations in order; all or, after an error, none.
    pub fn apply(&self, mut document: Value) -> Result<Value, Error> {
        let mut copied = 0;
        // No document nests deeper than this: what is added is added to the sum, and counted when that is too much.
        let mut bound = depth(&document);
        for operation in &self.operations {
            let parts = |name| operation.get(name).and_then(Value::as_str).map_or(0, |path| path.matches('/').count());
            let added = match operation.get("from") {
                Some(_) => bound.saturating_sub(parts("from")),
                None => operation.get("value").map_or(0, depth),
            };
            bound = bound.max(parts("path") + added);
            apply_one(&mut document, operation, &mut copied)?;
            if bound > json::MAX_DEPTH {
                bound = depth(&document);
                if bound > json::MAX_DEPTH {
                    return Err(Error("the document nests too deeply".into()));
                }
            }
        }
        Ok(document)
    }
}

/// How deep a value nests; 0 for a scalar.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    deepest
}

fn list(value: Value, target: &str) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        other => list_ref(&other, target).map(<[Value]>::to_vec),
    }
}

fn list_ref<'a>(value: &'a Value, target: &str) -> Result<&'a [Value], String> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(&[]),
        other => Err(cannot_read(other, &format!("Go value of type {target}"))),
    }
}

fn operation(value: Value, target: &str) -> Result<Map, String> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        other => Err(cannot_read(&other, &format!("Go value of type {target}"))),
    }
}

fn cannot_read(value: &Value, target: &str) -> String {
    format!("json: cannot unmarshal {} into {target}", go::json_kind(value))
}

/// Why an operation fails within the document.
enum Failed {
    /// Nothing is at the path, or at what leads there.
    Missing,
    /// The rest of the text.
    Because(String),
}

fn apply_one(document: &mut Value, operation: &Map, copied: &mut usize) -> Result<(), Error> {
    let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let value = || operation.get("value").cloned().unwrap_or_default();
    // The library's words, which differ from operation to operation.
    let failed = |missing: String, other: String| {
        move |failed: Failed| match failed {
            Failed::Missing => Error(format!("{kind} operation does not apply: {missing}: missing value")),
            Failed::Because(why) => Error(format!("error {other}: {why}")),
        }
    };
    match kind {
        "add" => {
            let path = text(operation, kind, "path")?;
            let words = failed(format!("doc is missing path: {path:?}"), format!("in add for path: '{path}'"));
            add(document, path, value()).map_err(words)
        }
        "remove" => {
            let path = text(operation, kind, "path")?;
            let words = failed(format!("doc is missing path: {path:?}"), format!("in remove for path: '{path}'"));
            remove(document, path).map(drop).map_err(words)
        }
        "replace" => {
            let path = text(operation, kind, "path")?;
            let words = failed(format!("doc is missing path: {path}"), format!("in remove for path: '{path}'"));
            replace(document, path, value()).map_err(words)
        }
        "move" => {
            let from = text(operation, kind, "from")?;
            let words = |missing: &str, at: &str| {
                failed(format!("doc is missing {missing} path: {at}"), format!("in move for path: '{at}'"))
            };
            let moved = remove(document, from).map_err(words("from", from))?;
            let path = text(operation, kind, "path")?;
            add(document, path, moved).map_err(words("destination", path))
        }
        "copy" => {
            let from = text(operation, kind, "from")?;
            let words = failed(format!("doc is missing from path: {from}"), format!("in copy for from: '{from}'"));
            let original = get(document, from).map_err(words)?;
            let path = text(operation, kind, "path")?;
            let copy = original.cloned().unwrap_or_default();
            if original.is_some() {
                *copied += json::to_vec(&copy).len();
            }
            if *copied > MAX_COPIED {
                return Err(Error(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
                )));
            }
            let words =
                failed(format!("doc is missing destination path: {path}"), "while adding value during copy".to_owned());
            add(document, path, copy).map_err(words)
        }
        "test" => {
            let path = text(operation, kind, "path")?;
            let words = failed(format!("is missing path: {path}"), format!("in test for path: '{path}'"));
            let found = if path.is_empty() { Some(&*document) } else { get(document, path).map_err(words)? };
            match (found, operation.get("value")) {
                (None, None | Some(Value::Null)) => Ok(()),
                (Some(Value::Null), None) if !path.is_empty() => Ok(()),
                (Some(found), Some(wanted)) if found == wanted => Ok(()),
                _ => Err(Error(format!("testing value {path} {FAILED_TEST}"))),
            }
        }
        _ => Err(Error(format!("Unexpected kind: {kind}"))),
    }
}

fn text<'a>(operation: &'a Map, kind: &str, member: &str) -> Result<&'a str, Error> {
    let text = operation.get(member).and_then(Value::as_str);
    text.ok_or_else(|| Error(format!("{kind} operation failed to decode {member}: missing value")))
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Failed> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&key, items.len() + 1)?;
            items.insert(at, value);
        }
        container => drop(members(container)?.insert(key, value)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Failed> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            Ok(items.remove(at))
        }
        container => {
            let removed = members(container)?.remove(&key);
            removed.ok_or_else(|| Failed::Because(format!("Unable to remove nonexistent key: {key}: missing value")))
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), Failed> {
    if path.is_empty() {
        if matches!(value, Value::Object(_) | Value::Array(_)) {
            *document = value;
        }
        return Ok(());
    }
    let (container, key) = container(document, path)?;
    match container {
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            if let Some(item) = items.get_mut(at) {
                *item = value;
            }
        }
        container => drop(members(container)?.insert(key, value)),
    }
    Ok(())
}

/// What is at a path; `None` for a missing member of an object.
fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, Failed> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            Ok(items.get(at))
        }
        container => Ok(members(container)?.get(&key)),
    }
}

/// What holds the last part of a path, and that part.
fn container<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Failed> {
    let missing = || Failed::Missing;
    // The first part is what stands before the leading slash: nothing, and ignored if it is something.
    let (_, parts) = path.split_once('/').ok_or_else(missing)?;
    let (way, key) = parts.rsplit_once('/').map_or((None, parts), |(way, key)| (Some(way), key));
    let mut container = document;
    for part in way.into_iter().flat_map(|way| way.split('/')) {
        let part = unescape(part);
        container = match container {
            Value::Array(items) => {
                let at = index(&part, items.len()).map_err(|_| missing())?;
                items.get_mut(at).ok_or_else(missing)?
            }
            Value::Object(members) => members.get_mut(&part).ok_or_else(missing)?,
            _ => return Err(missing()),
        };
    }
    Ok((container, unescape(key)))
}

fn members(container: &mut Value) -> Result<&mut Map, Failed> {
    container.as_object_mut().ok_or(Failed::Missing)
}

/// An index below `len`; negative ones count from `len`.
fn index(key: &str, len: usize) -> Result<usize, Failed> {
    let number: i64 =
        key.parse().map_err(|_| Failed::Because(format!("strconv.Atoi: parsing {key:?}: invalid syntax")))?;
    let from_start =
        if number < 0 { i64::try_from(len).ok().and_then(|len| len.checked_add(number)) } else { Some(number) };
    let at = from_start.and_then(|number| usize::try_from(number).ok()).filter(|at| *at < len);
    at.ok_or_else(|| Failed::Because(format!("Unable to access invalid index: {number}: invalid index referenced")))
}

fn unescape(part: &str) -> String {
    // One pass, as a replacer does it: `~01` is `~1`.
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let (text, len) = match tail.as_bytes().get(1) {
            Some(b'0') => ("~", 2),
            Some(b'1') => ("/", 2),
            _ => ("~", 1),
        };
        out.push_str(text);
        rest = tail.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(document: &str, patch: &str) -> Result<String, String> {
        let patch = JsonPatch::read(json::parse(patch.as_bytes()).unwrap())?;
        let document = json::parse(document.as_bytes()).unwrap();
        patch.apply(document).map(|patched| json::to_string(&patched)).map_err(|error| error.to_string())
    }

    #[test]
    fn operations_do_what_the_library_does() {
        let document = r#"{"a":1,"l":["x","y"],"m":{"k":null,"s/~t":"v"}}"#;
        for (operation, expected) in [
            (r#"{"op":"add","path":"/b","value":2}"#, r#"{"a":1,"b":2,"l":["x","y"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"add","path":"/b"}"#, r#"{"a":1,"b":null,"l":["x","y"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"add","path":"/l/-","value":"z"}"#, r#"{"a":1,"l":["x","y","z"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"add","path":"/l/1","value":"z"}"#, r#"{"a":1,"l":["x","z","y"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"add","path":"/l/-1","value":"z"}"#, r#"{"a":1,"l":["x","y","z"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"add","path":"/l/-3","value":"z"}"#, r#"{"a":1,"l":["z","x","y"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"remove","path":"/l/-1"}"#, r#"{"a":1,"l":["x"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"remove","path":"/m/s~1~0t"}"#, r#"{"a":1,"l":["x","y"],"m":{"k":null}}"#),
            (r#"{"op":"remove","path":"/m/k"}"#, r#"{"a":1,"l":["x","y"],"m":{"s/~t":"v"}}"#),
            (r#"{"op":"replace","path":"/zz","value":1}"#, r#"{"a":1,"l":["x","y"],"m":{"k":null,"s/~t":"v"},"zz":1}"#),
            (r#"{"op":"replace","path":"x/a","value":2}"#, r#"{"a":2,"l":["x","y"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"replace","path":"/l/+01","value":2}"#, r#"{"a":1,"l":["x",2],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"replace","path":"","value":{}}"#, "{}"),
            (r#"{"op":"replace","path":"","value":[]}"#, "[]"),
            (r#"{"op":"replace","path":"","value":1}"#, document),
            (r#"{"op":"move","from":"/a","path":"/l/0"}"#, r#"{"l":[1,"x","y"],"m":{"k":null,"s/~t":"v"}}"#),
            (r#"{"op":"copy","from":"/a","path":"/m/k"}"#, r#"{"a":1,"l":["x","y"],"m":{"k":1,"s/~t":"v"}}"#),
            (r#"{"op":"copy","from":"/zz","path":"/m"}"#, r#"{"a":1,"l":["x","y"],"m":null}"#),
            (r#"{"op":"test","path":"/a","value":1}"#, document),
            (r#"{"op":"test","path":"/l","value":["x","y"]}"#, document),
            (r#"{"op":"test","path":"/m/k","value":null}"#, document),
            (r#"{"op":"test","path":"/zz","value":null}"#, document),
            (r#"{"op":"test","path":"/zz"}"#, document),
            (r#"{"op":"test","path":"/m/k"}"#, document),
        ] {
            assert_eq!(apply(document, &format!("[{operation}]")).as_deref(), Ok(expected), "{operation}");
        }
        assert_eq!(apply(document, "[]").as_deref(), Ok(document));
        assert_eq!(apply(document, "null").as_deref(), Ok(document));
    }

    #[test]
    fn operations_that_do_not_apply_are_errors() {
        let document = r#"{"a":1,"l":["x","y"],"m":{}}"#;
        for operation in [
            r#"{"op":"remove","path":"/zz"}"#,
            r#"{"op":"remove","path":""}"#,
            r#"{"op":"remove","path":"/"}"#,
            r#"{"op":"add","path":"","value":{}}"#,
            r#"{"op":"add","path":"a","value":{}}"#,
            r#"{"op":"add","path":"/q/r","value":1}"#,
            r#"{"op":"add","path":"/a/r","value":1}"#,
            r#"{"op":"add","path":"/l/3","value":1}"#,
            r#"{"op":"add","path":"/l/-4","value":1}"#,
            r#"{"op":"add","path":"/l/x","value":1}"#,
            r#"{"op":"add","path":"/l/99999999999999999999","value":1}"#,
            r#"{"op":"remove","path":"/l/-"}"#,
            r#"{"op":"remove","path":"/l/2"}"#,
            r#"{"op":"replace","path":"/l/2","value":1}"#,
            r#"{"op":"replace","path":"/l/-","value":1}"#,
            r#"{"op":"move","from":"/zz","path":"/b"}"#,
            r#"{"op":"move","from":"/m","path":"/m/x"}"#,
            r#"{"op":"copy","from":"/l/2","path":"/b"}"#,
            r#"{"op":"test","path":"/a","value":1.0}"#,
            r#"{"op":"test","path":"/a"}"#,
            r#"{"op":"test","path":"/m","value":null}"#,
            r#"{"op":"add","value":1}"#,
            r#"{"op":"add","path":5,"value":1}"#,
            r#"{"op":"what","path":"/a"}"#,
            r#"{"path":"/a"}"#,
            "null",
        ] {
            assert!(apply(document, &format!("[{operation}]")).is_err(), "{operation}");
        }
    }

    #[test]
    fn copies_are_bounded() {
        let copies: Vec<String> = (0..50).map(|n| format!(r#"{{"op":"copy","from":"/a","path":"/c{n}"}}"#)).collect();
        let document = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
        let error = apply(&document, &format!("[{}]", copies.join(","))).unwrap_err();
        assert!(error.starts_with("Unable to complete the copy"), "{error}");
    }

    #[test]
    fn a_document_does_not_nest_without_bound() {
        let wrap = r#"{"op":"add","path":"/b","value":{}},{"op":"move","from":"/a","path":"/b/a"},{"op":"move","from":"/b","path":"/a"}"#;
        let wrapped = |times| apply(r#"{"a":{}}"#, &format!("[{}]", vec![wrap; times].join(",")));
        assert!(wrapped(400).is_ok());
        assert_eq!(wrapped(3000), Err("the document nests too deeply".into()));
    }

    #[test]
    fn what_is_not_a_patch_is_said_in_the_words_of_go() {
        for (patch, read, check) in [
            (
                r#"{"op":"x"}"#,
                "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
                "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                "[1]",
                "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
                "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
            ),
            (
                r#"[{"op":5}]"#,
                "Unexpected kind: unknown",
                "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            ),
        ] {
            assert_eq!(apply("{}", patch), Err(read.into()));
            assert_eq!(JsonPatch::check(&json::parse(patch.as_bytes()).unwrap()), Err(check.into()));
        }
        let patch = json::parse(br#"[{"op":"add","path":"/a","value":{},"zz":1}]"#).unwrap();
        assert_eq!(JsonPatch::check(&patch), Ok(vec![r#"json patch unknown field "[0].zz""#.into()]));
    }

    #[test]
    fn escapes_are_undone_in_one_pass() {
        for (part, expected) in [("a~1b", "a/b"), ("~01", "~1"), ("~~", "~~"), ("~2", "~2"), ("~", "~"), ("", "")] {
            assert_eq!(unescape(part), expected);
        }
    }
}
