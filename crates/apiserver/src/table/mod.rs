//! Tables: what `kubectl get` shows.

mod json_path;

pub use json_path::JsonPath;

use crate::strategy::{Column, Strategy};
use jiff::Timestamp;
use object::{Map, Value, go, json, map};

/// What each row of a table carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Include {
    /// Nothing.
    None,
    /// The metadata, as a `PartialObjectMetadata`.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Reads the parameter `includeObject`; `None` for what it may not be.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::None,
            "Object" => Include::Object,
            _ => return None,
        })
    }
}

/// The cell of a custom column of a type; null where there is nothing, or something else than the type.
pub fn custom_cell(ty: &str, path: &JsonPath, object: &Value, now: Timestamp) -> Value {
    let found = path.find(object);
    let Some(value) = found.first().copied() else { return Value::Null };
    match (ty, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Int(i)) => Value::Int(*i),
        ("integer", Value::Float(f)) => Value::Int(*f as i64),
        ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Array(_) | Value::Object(_)) => Value::from(json::to_string(value)),
        ("string", other) => Value::from(go::plain(other)),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(_) => Value::from(kinds::table::since(Some(value), now)),
            Err(_) => Value::from("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// A row: the cells of an object, and what is included of it.
///
/// `worked` is the object as its strategy works on it, `sent` as clients see it.
pub fn row(
    strategy: &dyn Strategy,
    worked: &Value,
    sent: &Value,
    include: Include,
    version: &str,
    now: Timestamp,
) -> Value {
    let object = match include {
        Include::None => Value::Null,
        Include::Metadata => partial(sent, version),
        Include::Object => sent.clone(),
    };
    let mut row = map! { "cells" => strategy.cells(worked, now), "object" => object };
    if let Some(kinds::Ended { reason, message }) = strategy.ended(worked) {
        let ended = map! { "type" => "Completed", "status" => "True", "reason" => reason, "message" => message };
        row.insert("conditions", vec![Value::Object(ended)]);
    }
    Value::Object(row)
}

/// Only the metadata of an object; `version` is the version of `meta.k8s.io` that the client asks for.
pub fn partial(object: &Value, version: &str) -> Value {
    Value::Object(map! {
        "kind" => "PartialObjectMetadata",
        "apiVersion" => format!("meta.k8s.io/{version}"),
        "metadata" => object.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new())),
    })
}

/// A table of rows. `metadata` is the list's, or has the version of the one object; without columns (in the later
/// events of a watch) they are null.
pub fn table(columns: Option<&[Column]>, rows: Vec<Value>, metadata: Map, version: &str) -> Value {
    let columns = columns.map(|columns| {
        let of = |c: &Column| {
            Value::Object(map! {
                "name" => c.name.as_str(), "type" => c.ty.as_str(), "format" => c.format.as_str(),
                "description" => c.description.as_str(), "priority" => c.priority,
            })
        };
        columns.iter().map(of).collect::<Vec<Value>>()
    });
    Value::Object(map! {
        "kind" => "Table",
        "apiVersion" => format!("meta.k8s.io/{version}"),
        "metadata" => metadata,
        "columnDefinitions" => columns,
        "rows" => Value::Array(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_type_of_their_column() {
        let object = json::parse(br#"{"s":"x","i":3,"f":1.5,"b":true,"l":["p"],"d":"nonsense"}"#).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        for (ty, path, wanted) in [
            ("string", ".s", "\"x\""),
            ("string", ".l", "\"[\\\"p\\\"]\""),
            ("string", ".i", "\"3\""),
            ("integer", ".f", "1"),
            ("integer", ".s", "null"),
            ("number", ".f", "1.5"),
            ("boolean", ".b", "true"),
            ("date", ".d", r#""\u003cinvalid\u003e""#),
            ("string", ".nope", "null"),
        ] {
            let cell = custom_cell(ty, &JsonPath::parse(path).unwrap(), &object, now);
            assert_eq!(json::to_string(&cell), wanted, "{ty} {path}");
        }
    }
}
