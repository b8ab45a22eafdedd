//! The version 2 document in protobuf (messages of `openapi.v2`): the only form in which client-go asks for it.

use object::{Map, Value, json};

/// The media type that clients name, and the one that answers carry.
pub(super) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document of [`super::v2::document`] as a message `Document`.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, document.get("swagger"));
    out.message(2, |info| {
        info.text(1, document.at(&["info", "title"]));
        info.text(2, document.at(&["info", "version"]));
    });
    out.message(8, |paths| {
        for (path, item) in members(document.get("paths")) {
            paths.named(2, path, |value| path_item(value, item));
        }
    });
    out.message(9, |definitions| {
        for (name, definition) in members(document.get("definitions")) {
            definitions.named(1, name, |value| schema(value, definition));
        }
    });
    for requirement in items(document.get("security")) {
        out.message(12, |message| {
            for (name, scopes) in members(Some(requirement)) {
                message.named(1, name, |value| value.texts(1, Some(scopes)));
            }
        });
    }
    out.message(13, |schemes| {
        for (name, scheme) in members(document.get("securityDefinitions")) {
            schemes.named(1, name, |value| {
                value.message(2, |key| {
                    key.text(1, scheme.get("type"));
                    key.text(2, scheme.get("name"));
                    key.text(3, scheme.get("in"));
                });
            });
        }
    });
    out.0
}

fn path_item(out: &mut Message, item: &Value) {
    for (field, method) in
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")]
    {
        if let Some(value) = item.get(method) {
            out.message(field, |message| operation(message, value));
        }
    }
    for value in items(item.get("parameters")) {
        out.message(9, |message| message.message(1, |message| parameter(message, value)));
    }
}

fn operation(out: &mut Message, operation: &Value) {
    out.texts(1, operation.get("tags"));
    out.text(5, operation.get("operationId"));
    out.texts(6, operation.get("produces"));
    out.texts(7, operation.get("consumes"));
    for value in items(operation.get("parameters")) {
        out.message(8, |message| message.message(1, |message| parameter(message, value)));
    }
    out.message(9, |responses| {
        for (code, response) in members(operation.get("responses")) {
            responses.named(1, code, |value| {
                value.message(1, |message| {
                    if let Some(of) = response.get("schema") {
                        message.message(2, |item| item.message(1, |message| schema(message, of)));
                    }
                });
            });
        }
    });
    out.texts(10, operation.get("schemes"));
    extensions(out, 13, operation);
}

fn parameter(out: &mut Message, parameter: &Value) {
    let place = parameter.str_at(&["in"]).unwrap_or_default();
    if place == "body" {
        return out.message(1, |body| {
            body.text(2, parameter.get("name"));
            body.text(3, parameter.get("in"));
            body.flag(4, parameter.get("required"));
            if let Some(of) = parameter.get("schema") {
                body.message(5, |message| schema(message, of));
            }
        });
    }
    // Queries have one field more than paths, which moves the numbers after it.
    let (kind, ty, unique) = if place == "path" { (4, 5, 19) } else { (3, 6, 20) };
    out.message(2, |other| {
        other.message(kind, |message| {
            message.flag(1, parameter.get("required"));
            message.text(2, parameter.get("in"));
            message.text(4, parameter.get("name"));
            message.text(ty, parameter.get("type"));
            message.flag(unique, parameter.get("uniqueItems"));
        });
    });
}

fn schema(out: &mut Message, schema_value: &Value) {
    let Some(of) = schema_value.as_object() else { return };
    for (field, key) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        out.text(field, of.get(key));
    }
    out.any(5, of.get("default"));
    for (field, key) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        out.double(field, of.get(key));
    }
    for (field, key) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        out.flag(field, of.get(key));
    }
    for (field, key) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        out.integer(field, of.get(key));
    }
    out.texts(19, of.get("required"));
    items(of.get("enum")).iter().for_each(|value| out.any(20, Some(value)));
    match of.get("additionalProperties") {
        Some(Value::Bool(allowed)) => out.message(21, |item| item.varint(2, u64::from(*allowed))),
        Some(value) => out.message(21, |item| item.message(1, |message| schema(message, value))),
        None => {}
    }
    if let Some(ty) = of.get("type") {
        out.message(22, |message| message.text(1, Some(ty)));
    }
    if let Some(item) = of.get("items") {
        out.message(23, |message| message.message(1, |message| schema(message, item)));
    }
    if of.get("properties").is_some() {
        out.message(25, |properties| {
            for (name, property) in members(of.get("properties")) {
                properties.named(1, name, |value| schema(value, property));
            }
        });
    }
    extensions(out, 31, schema_value);
}

/// Members whose names begin with `x-`.
fn extensions(out: &mut Message, field: u32, value: &Value) {
    for (name, extension) in members(Some(value)).filter(|(name, _)| name.starts_with("x-")) {
        out.named(field, name, |message| message.text(2, Some(&yaml(extension))));
    }
}

/// JSON is YAML; readers want a line of it.
fn yaml(value: &Value) -> Value {
    Value::from(format!("{}\n", json::to_string(value)))
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

/// A message in the making. Fields that are missing are left out.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.raw_varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.raw_varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.raw_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// An entry of a map: a message with a name and a value.
    fn named(&mut self, field: u32, name: &str, fill: impl FnOnce(&mut Message)) {
        self.message(field, |entry| {
            entry.bytes(1, name.as_bytes());
            entry.message(2, fill);
        });
    }

    fn text(&mut self, field: u32, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u32, value: Option<&Value>) {
        items(value).iter().for_each(|item| self.text(field, Some(item)));
    }

    fn flag(&mut self, field: u32, value: Option<&Value>) {
        if value.and_then(Value::as_bool) == Some(true) {
            self.varint(field, 1);
        }
    }

    fn integer(&mut self, field: u32, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_int) {
            // Negative numbers take ten bytes, as protobuf has it.
            self.varint(field, value.cast_unsigned());
        }
    }

    fn double(&mut self, field: u32, value: Option<&Value>) {
        let value = match value {
            Some(Value::Int(i)) => *i as f64,
            Some(Value::Float(f)) => *f,
            _ => return,
        };
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A value of any kind: a message with its YAML.
    fn any(&mut self, field: u32, value: Option<&Value>) {
        if let Some(value) = value {
            self.message(field, |any| any.text(2, Some(&yaml(value))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::map;

    #[test]
    fn fields_are_written_as_protobuf_has_them() {
        let mut out = Message::default();
        out.text(1, Some(&"ab".into()));
        out.integer(11, Some(&Value::Int(300)));
        out.flag(16, Some(&Value::Bool(true)));
        assert_eq!(out.0, [0x0a, 2, b'a', b'b', 0x58, 0xac, 0x02, 0x80, 0x01, 1]);
    }

    #[test]
    fn a_schema_has_its_type_in_a_message() {
        let mut out = Message::default();
        schema(&mut out, &Value::Object(map! { "type" => "string" }));
        assert_eq!(out.0, [0xb2, 0x01, 8, 0x0a, 6, b's', b't', b'r', b'i', b'n', b'g']);
    }
}
