//! Objects as CEL values: a schema node interprets plain values in place.

use super::decl::declares_meta;
use super::names::{escape, unescape};
use crate::format::{parse_date, parse_date_time, parse_duration};
use crate::structural::{ListType, Node, Structural, Type};
use crate::typed::base64_error;
use cel::value::{
    AdaptedList, Data, Duration, Error, List, ListAdapter, ListSemantics, Map, MapAdapter, Octets, Result, Timestamp,
    Value as Cel,
};
use object::{Value, go};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// A value as its schema types it. What does not fit the schema is an error, which an expression meets when it looks.
pub(super) fn adapt<'a>(node: &'a Node, value: &'a Value) -> Result<Cel<'a>> {
    if value.is_null() {
        return if node.nullable() {
            Ok(Cel::Null)
        } else {
            Err(Error::new("invalid data, got null for schema with nullable=false"))
        };
    }
    if node.int_or_string() {
        return match value {
            Value::String(text) => Ok(Cel::borrowed(text)),
            Value::Int(i) => Ok(Cel::Int(*i)),
            _ => Err(Error::new("invalid data, expected XIntOrString value to be either a string or integer")),
        };
    }
    let wrong =
        |wanted: &str| Err(Error::new(format!("invalid data, expected {wanted}, got {}", go::type_name(value))));
    match (node.typ(), value) {
        (Some(Type::Object), Value::Object(_)) => Ok(Cel::Map(Map::Adapted { adapter: node, data: value })),
        (Some(Type::Object), _) => {
            Err(Error::new("invalid data, expected a map for the provided schema with type=object"))
        }
        (Some(Type::Array), Value::Array(_)) => {
            Ok(Cel::List(List::Adapted(AdaptedList { adapter: node, data: value })))
        }
        (Some(Type::Array), _) => {
            Err(Error::new("invalid data, expected an array for the provided schema with type=array"))
        }
        (Some(Type::String), Value::String(text)) => string(node, text),
        (Some(Type::String), _) => wrong("string"),
        (Some(Type::Number), Value::Int(i)) => Ok(Cel::Double(*i as f64)),
        (Some(Type::Number), Value::Float(f)) => Ok(Cel::Double(*f)),
        (Some(Type::Number), _) => wrong("float"),
        (Some(Type::Integer), Value::Int(i)) => Ok(Cel::Int(*i)),
        (Some(Type::Integer), _) => wrong("int"),
        (Some(Type::Boolean), Value::Bool(b)) => Ok(Cel::Bool(*b)),
        (Some(Type::Boolean), _) => wrong("bool"),
        (None, _) => Err(Error::new(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        )),
    }
}

fn string<'a>(node: &'a Node, text: &'a str) -> Result<Cel<'a>> {
    let invalid = |what: &str, why: &str| Err(Error::new(format!("Invalid {what} {text}: {why}")));
    match node.format() {
        Some("duration") => match parse_duration(text) {
            Some(nanos) => Ok(Cel::Duration(Duration(nanos))),
            None => invalid("duration", &format!("unable to parse {text} as duration")),
        },
        Some("date") => match parse_date(text).and_then(|_| parse_date_time(&format!("{text}T00:00:00Z"))) {
            Some((seconds, _, _)) => Ok(Cel::Timestamp(Timestamp::new(seconds, 0, 0))),
            None => invalid("date formatted string", "cannot parse"),
        },
        Some("date-time") => match parse_date_time(text) {
            Some((seconds, nanos, offset)) => Ok(Cel::Timestamp(Timestamp::new(seconds, nanos, offset))),
            None => invalid("date-time formatted string", "cannot parse"),
        },
        Some("byte") => match decode_url_safe(text) {
            Ok(octets) => Ok(Cel::Bytes(Octets::Shared(octets.into()))),
            Err(at) => invalid("byte formatted string", &format!("illegal base64 data at input byte {at}")),
        },
        _ => Ok(Cel::borrowed(text)),
    }
}

fn decode_url_safe(text: &str) -> std::result::Result<Vec<u8>, usize> {
    use base64::Engine;
    if let Some(at) = base64_error(text, b"-_") {
        return Err(at);
    }
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let lenient = base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::URL_SAFE, lenient);
    engine.decode(text).map_err(|_| 0)
}

fn value(data: &Data) -> &Value {
    data.downcast_ref().unwrap_or(&Value::Null)
}

/// What is known of `metadata` where a resource's schema leaves it out.
static META: LazyLock<Structural> = LazyLock::new(|| {
    implied(r#"{"type":"object","properties":{"name":{"type":"string"},"generateName":{"type":"string"}}}"#)
});

static TEXT: LazyLock<Structural> = LazyLock::new(|| implied(r#"{"type":"string"}"#));

fn implied(schema: &str) -> Structural {
    object::json::parse(schema.as_bytes()).ok().and_then(|schema| Structural::new(&schema).ok()).unwrap_or_default()
}

impl Node {
    /// Whether members are fields, named in expressions, and not keys of a map.
    fn has_fields(&self) -> bool {
        self.is_resource() || self.properties().len() > 0 || self.additional_schema().is_none()
    }

    /// The schema of a field, by the property's own name.
    fn field(&self, name: &str) -> Option<&Node> {
        if self.is_resource() && matches!(name, "apiVersion" | "kind" | "metadata") && !declares_meta(self) {
            return Some(if name == "metadata" { META.root() } else { TEXT.root() });
        }
        self.property(name)
    }

    /// Value and schema of the member that `key` means in an expression.
    fn member<'a>(&'a self, data: &'a Data, key: &str) -> Option<(&'a Value, &'a Node)> {
        let members = value(data).as_object()?;
        if self.has_fields() {
            let name = unescape(key)?;
            // A null field counts as one that is not there.
            let value = members.get(&name).filter(|v| !v.is_null())?;
            return Some((value, self.field(&name)?));
        }
        Some((members.get(key)?, self.additional_schema()?))
    }
}

impl MapAdapter for Node {
    fn len(&self, data: &Data) -> usize {
        value(data).as_object().map_or(0, object::Map::len)
    }

    fn get<'a>(&'a self, data: &'a Data, key: &str) -> Option<Result<Cel<'a>>> {
        self.member(data, key).map(|(value, node)| adapt(node, value))
    }

    fn contains(&self, data: &Data, key: &str) -> bool {
        self.member(data, key).is_some()
    }

    fn key<'a>(&'a self, data: &'a Data, index: usize) -> Option<&'a str> {
        let (key, _) = value(data).as_object()?.iter().nth(index)?;
        (!self.has_fields() || self.field(key).is_some()).then_some(key)
    }

    fn is_typed(&self) -> bool {
        true
    }

    fn equals(&self, data: &Data, other: &Map<'_>) -> Option<Result<bool>> {
        self.has_fields().then(|| self.equal_objects(value(data), other))
    }
}

impl Node {
    fn equal_objects(&self, own: &Value, other: &Map<'_>) -> Result<bool> {
        let Some(members) = own.as_object() else { return Ok(false) };
        if members.len() != other.len() {
            return Ok(false);
        }
        for (name, value) in members.iter() {
            let Some(node) = self.field(name) else {
                // What the schema does not know is compared as it stands.
                let Map::Adapted { data, .. } = other else { return Err(Error::no_such_overload()) };
                let same = data.downcast_ref::<Value>().and_then(|v| v.get(name)).is_none_or(|v| v == value);
                if !same {
                    return Ok(false);
                }
                continue;
            };
            let spelled = escape(name).unwrap_or_else(|| name.into());
            let Some(theirs) = other.find_str(&spelled) else { return Ok(false) };
            if !adapt(node, value)?.equals(&theirs?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl ListAdapter for Node {
    fn len(&self, data: &Data) -> usize {
        value(data).as_array().map_or(0, <[Value]>::len)
    }

    fn get<'a>(&'a self, data: &'a Data, index: usize) -> Result<Cel<'a>> {
        match (value(data).as_array().and_then(|items| items.get(index)), self.items()) {
            (Some(item), Some(node)) => adapt(node, item),
            _ => Err(Error::new("invalid array type, expected Items with a non-empty Schema")),
        }
    }

    fn is_typed(&self) -> bool {
        true
    }

    fn semantics(&self) -> Option<&dyn ListSemantics> {
        matches!(self.list_type(), Some(ListType::Set | ListType::Map)).then_some(self as &dyn ListSemantics)
    }
}

impl ListSemantics for Node {
    fn equals(&self, list: &List<'_>, other: &List<'_>) -> Result<bool> {
        if list.len() != other.len() {
            return Ok(false);
        }
        let mut own = HashMap::with_capacity(list.len());
        for item in list.iter() {
            let item = item?;
            own.insert(self.identity(&item), item);
        }
        for item in other.iter() {
            let item = item?;
            let Some(mine) = own.get(&self.identity(&item)) else { return Ok(false) };
            if self.list_type() == Some(ListType::Map) && !mine.equals(&item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn add<'a>(&'a self, list: &List<'a>, other: &List<'a>) -> Result<Cel<'a>> {
        let mut out: Vec<Cel<'a>> = list.iter().collect::<Result<_>>()?;
        let mut places: HashMap<String, usize> =
            out.iter().enumerate().map(|(i, item)| (self.identity(item), i)).collect();
        for item in other.iter() {
            let item = item?;
            match places.get(&self.identity(&item)).and_then(|place| out.get_mut(*place)) {
                // Of a set the first stays, of a list with keys the last counts.
                Some(place) if self.list_type() == Some(ListType::Map) => *place = item,
                Some(_) => {}
                None => {
                    places.insert(self.identity(&item), out.len());
                    out.push(item);
                }
            }
        }
        Ok(Cel::List(List::Ruled(Arc::new(out), self)))
    }
}

impl Node {
    /// A text that tells the items of a set, or of a list with keys, apart.
    fn identity(&self, item: &Cel<'_>) -> String {
        match (self.list_type(), item) {
            (Some(ListType::Map), Cel::Map(map)) => {
                let keys = self.list_map_keys().iter();
                let parts: Vec<String> = keys
                    .map(|key| match escape(key).and_then(|key| map.find_str(&key)) {
                        Some(Ok(value)) => format!("{value:?}"),
                        _ => String::new(),
                    })
                    .collect();
                format!("{parts:?}")
            }
            _ => format!("{item:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Version;
    use object::{Value, json};

    /// The first error of `rule` over an object, or nothing.
    fn check(rule: &str) -> Option<String> {
        let properties = r#"{"s":{"type":"array","items":{"type":"string"}},"m":{"type":"object","additionalProperties":{"type":"string"}},
            "o":{"type":"object","properties":{"a":{"type":"string"}}},"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}"#;
        let mut definition =
            json::parse(br#"{"spec":{"group":"g","scope":"Cluster","names":{"kind":"K"},"versions":[{"name":"v1"}]}}"#)
                .ok()?;
        let mut schema = json::parse(format!(r#"{{"type":"object","properties":{properties}}}"#).as_bytes()).ok()?;
        let rule = json::parse(br#"[{}]"#).ok().and_then(|mut rules| {
            rules.as_array_mut()?.first_mut()?.set_at(&["rule"], Value::from(rule.to_owned()));
            Some(rules)
        })?;
        schema.set_at(&["x-kubernetes-validations"], rule);
        let versions = definition.get_mut("spec")?.get_mut("versions")?.as_array_mut()?;
        versions.first_mut()?.set_at(&["schema", "openAPIV3Schema"], schema);
        let version = Version::new(&definition, "v1").ok()??;
        let object = json::parse(
            br#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"s":["a"],"m":{"k":"v"},"o":{"a":"x"},"l":[{"a":"x"}]}"#,
        );
        version.validate(&object.ok()?).errors.first().map(|error| error.detail.to_string())
    }

    #[test]
    fn typed_lists_and_maps_refuse_what_is_of_another_kind() {
        const OVERLOAD: &str = "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: ";
        for rule in [
            "dyn(self.s) == dyn('a')",
            "dyn(self.m) == dyn([1])",
            "dyn(self.o) == dyn(1)",
            "self.l.exists(x, dyn(x) == dyn(1))",
            "dyn(1) in dyn(self.l)",
            "dyn(1) in dyn(self.m)",
            "self.m[dyn(1)] == 'v'",
            "self.m[?dyn(1)].hasValue()",
        ] {
            assert_eq!(check(rule), Some(format!("{OVERLOAD}{rule}")), "{rule}");
        }
        for (rule, error) in [
            ("self.s[dyn(0u)] == 'a'", "unsupported index: 0 evaluating rule: "),
            ("self.s[dyn(self.o)] == 'a'", "invalid qualifier type: *common.unstructuredMap evaluating rule: "),
        ] {
            assert_eq!(check(rule), Some(format!("{error}{rule}")), "{rule}");
        }
        for rule in [
            "dyn(self.s) != dyn('a')",
            "dyn('a') != dyn(self.s)",
            "dyn(self.o) != null",
            "!(dyn(self.o) in [dyn(1)])",
            "!(dyn(1) in dyn(self.s))",
        ] {
            assert_eq!(check(rule), None, "{rule}");
        }
    }
}
