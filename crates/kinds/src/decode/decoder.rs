//! The decoder itself, over values and over texts.

use super::source::{Opened, Source};
use super::{Decoded, Issue};
use crate::definitions::{Definition, Field, Schema, Type};
use crate::go_time::{self, Layout};
use crate::quantity::Quantity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compact_str::CompactString;
use object::json::ordered::Ordered;
use object::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;

/// How many issues are told at most, as upstream.
const MAX_ISSUES: usize = 100;

/// How many entries of maps are looked at again, because a text repeats the map: each time costs as much as the map holds.
const MAX_AGAIN: usize = 1_000_000;

/// Where the decoder is in the document.
enum Step {
    Field(CompactString),
    Index(usize),
}

#[derive(Default)]
pub(super) struct Decoder {
    /// What strict reading does not let pass.
    issues: Vec<Issue>,
    /// The first value of a wrong type. Go reads on and reports it in the end.
    saved: Option<String>,
    /// The struct fields on the way: what errors name.
    fields: Vec<&'static str>,
    /// Everything on the way: what issues name.
    path: Vec<Step>,
    /// The innermost struct.
    structure: &'static str,
    /// How many entries of repeated maps were looked at again.
    again: usize,
}

impl Decoder {
    /// Decodes a whole document.
    pub(super) fn document<S: Source>(
        mut self,
        definition: &'static Definition,
        document: Opened<S>,
    ) -> Result<Decoded, String> {
        let object = match document {
            Opened::Object(members) => Value::Object(S::structure(&mut self, definition, members, None)?),
            Opened::Scalar(Value::Null, _) => Value::Object(definition.zero()),
            other => {
                let kind = other.kind();
                return Err(format!("json: cannot unmarshal {kind} into Go value of type {}", definition.go_name()));
            }
        };
        match self.saved {
            Some(error) => Err(error),
            None => Ok(Decoded { object, issues: self.issues }),
        }
    }

    /// A structure whose members are sorted by their names.
    pub(super) fn sorted_structure(&mut self, definition: &'static Definition, members: Map) -> Result<Map, String> {
        let outer = std::mem::replace(&mut self.structure, definition.type_name());
        let mut out: Vec<(_, Value)> = Vec::with_capacity(members.len() + 2);
        // Both the members and the fields are sorted: one walk over both.
        let mut fields = definition.fields.iter().peekable();
        for (key, value) in members {
            while let Some(field) = fields.next_if(|f| f.name < key.as_str()) {
                out.extend(field.zero().map(|zero| (field.name.into(), zero)));
            }
            let Some(field) = fields.next_if(|f| f.name == key.as_str()) else {
                self.report(Issue::Unknown, &key);
                continue;
            };
            match self.field(field, value, None)? {
                Some(value) => out.push((key, value)),
                None => out.extend(field.zero().map(|zero| (key, zero))),
            }
        }
        for field in fields {
            out.extend(field.zero().map(|zero| (field.name.into(), zero)));
        }
        self.structure = outer;
        Ok(out.into())
    }

    /// A structure whose members are in the order of the text; what repeats a field goes on with what it holds already.
    pub(super) fn ordered_structure(
        &mut self,
        definition: &'static Definition,
        members: Vec<(CompactString, Ordered<'_>)>,
        before: Option<Map>,
    ) -> Result<Map, String> {
        let outer = std::mem::replace(&mut self.structure, definition.type_name());
        let mut out = before.unwrap_or_default();
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in members {
            let Some(field) = definition.field(&key) else {
                self.report(Issue::Unknown, &key);
                continue;
            };
            if seen.contains(&field.name) {
                self.report(Issue::Repeated, &key);
            } else {
                seen.push(field.name);
            }
            let before = out.remove(&key);
            if let Some(value) = self.field(field, value, before)? {
                out.insert(key, value);
            }
        }
        for field in definition.fields.iter().filter(|f| !out.contains_key(f.name)).collect::<Vec<_>>() {
            if let Some(zero) = field.zero() {
                out.insert(field.name, zero);
            }
        }
        self.structure = outer;
        Ok(out)
    }

    /// The value of a field, or nothing if Go leaves it out.
    fn field<S: Source>(
        &mut self,
        field: &'static Field,
        source: S,
        before: Option<Value>,
    ) -> Result<Option<Value>, String> {
        self.fields.push(field.name);
        self.path.push(Step::Field(CompactString::const_new(field.name)));
        let opened = source.open();
        let value = match opened {
            Opened::Scalar(Value::Null, _) => {
                let emptied = field.pointer || matches!(field.schema.ty, Type::List(_) | Type::Map(_));
                before.filter(|_| !emptied)
            }
            opened => self.value(&field.schema, opened, before, field.go_type)?,
        };
        self.path.pop();
        self.fields.pop();
        Ok(value.filter(|v| field.pointer || !field.omit_empty || !is_zero(v, &field.schema.ty)))
    }

    /// Decodes into what was there before. That stays where nothing is said (null) or something of a wrong type.
    fn value<S: Source>(
        &mut self,
        schema: &'static Schema,
        opened: Opened<S>,
        before: Option<Value>,
        go_name: &'static str,
    ) -> Result<Option<Value>, String> {
        let definition = schema.ty.definition();
        let ty = match definition {
            Some(d) if !d.is_structure() => &d.schema.ty,
            _ => &schema.ty,
        };
        Ok(match (ty, opened) {
            (_, Opened::Scalar(Value::Null, _)) => before,
            (Type::Ref(_), opened @ Opened::Object(_)) => Some(match (definition, opened) {
                (Some(d), Opened::Object(members)) => {
                    Value::Object(S::structure(self, d, members, before.and_then(into_map))?)
                }
                (_, opened) => opened.into_value(),
            }),
            (Type::List(item), Opened::Array(items)) => Some(Value::Array(self.list(item, items, before, go_name)?)),
            (Type::Map(inner), Opened::Object(members)) => {
                Some(Value::Object(self.map::<S>(inner, members, before, go_name)?))
            }
            (Type::String, Opened::Scalar(value @ Value::String(_), _)) => Some(value),
            (Type::Bool, Opened::Scalar(value @ Value::Bool(_), _)) => Some(value),
            (Type::Int64, Opened::Scalar(value @ Value::Int(_), _)) => Some(value),
            (Type::Int32, Opened::Scalar(Value::Int(i), _)) if i32::try_from(i).is_ok() => Some(Value::Int(i)),
            (Type::Double, Opened::Scalar(value @ (Value::Int(_) | Value::Float(_)), _)) => Some(value),
            (Type::IntOrString, Opened::Scalar(value @ Value::String(_), _)) => Some(value),
            (Type::IntOrString, Opened::Scalar(Value::Int(i), _)) if i32::try_from(i).is_ok() => Some(Value::Int(i)),
            // The type reads itself, and its error ends the decoding.
            (Type::IntOrString, opened) => return Err(self.wrong_type(&opened, "int32", true)),
            (Type::Quantity, Opened::Scalar(Value::String(text), _)) => Some(Quantity::printed(text.trim())?.into()),
            (Type::Quantity, opened) => {
                let text = opened.number().unwrap_or_else(|| json::to_string(&opened.into_value()));
                Some(Quantity::printed(&text)?.into())
            }
            (Type::DateTime, Opened::Scalar(Value::String(text), _)) => {
                let micros = definition.is_some_and(|d| d.type_name() == "MicroTime");
                let layout = if micros { Layout::Micros } else { Layout::Seconds };
                Some(go_time::normalise(&text, layout)?.into())
            }
            (Type::DateTime, opened) => return Err(self.wrong_type(&opened, "string", false)),
            (Type::Bytes, Opened::Scalar(Value::String(text), _)) => match read_base64(&text) {
                Ok(bytes) => Some(STANDARD.encode(bytes).into()),
                Err(at) => {
                    self.saved.get_or_insert_with(|| format!("illegal base64 data at input byte {at}"));
                    before
                }
            },
            (Type::Bytes, Opened::Array(items)) => {
                let bytes: Vec<u8> = items.into_iter().map(|item| self.byte(item.open())).collect();
                Some(STANDARD.encode(bytes).into())
            }
            (Type::Any, opened) => Some(self.raw(definition, opened)?),
            (Type::Object, opened) => Some(opened.into_value()),
            (ty, opened) => {
                if self.saved.is_none() {
                    let name = if go_name.is_empty() { go_type(ty, definition).into() } else { Cow::Borrowed(go_name) };
                    self.saved = Some(self.wrong_type(&opened, &name, is_number(ty)));
                }
                before
            }
        })
    }

    /// A byte that is written as a number.
    fn byte<S: Source>(&mut self, opened: Opened<S>) -> u8 {
        match &opened {
            Opened::Scalar(Value::Null, _) => return 0,
            Opened::Scalar(Value::Int(i), _) if let Ok(byte) = u8::try_from(*i) => return byte,
            _ => {}
        }
        let error = self.wrong_type(&opened, "uint8", true);
        self.saved.get_or_insert(error);
        0
    }

    /// The items of a list, each decoded into the one that was there before.
    fn list<S: Source>(
        &mut self,
        item: &'static Schema,
        sources: Vec<S>,
        before: Option<Value>,
        go_name: &'static str,
    ) -> Result<Vec<Value>, String> {
        let mut before = match before {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        }
        .into_iter();
        let go_name = item_of(go_name);
        let mut out = Vec::with_capacity(sources.len());
        for (i, source) in sources.into_iter().enumerate() {
            self.path.push(Step::Index(i));
            let value = self.value(item, source.open(), before.next(), go_name)?;
            self.path.pop();
            out.push(value.unwrap_or_else(|| zero(&item.ty)));
        }
        Ok(out)
    }

    /// The entries of a map, beside those that were there before.
    fn map<S: Source>(
        &mut self,
        inner: &'static Schema,
        members: S::Members,
        before: Option<Value>,
        go_name: &'static str,
    ) -> Result<Map, String> {
        let quantities = is_quantity(inner);
        // The path is for issues, and scalars have none.
        let leads_on = !quantities && matches!(inner.ty, Type::Ref(_) | Type::List(_) | Type::Map(_));
        let go_name = value_of(go_name);
        let mut seen: HashSet<CompactString> = HashSet::new();
        let members = members.into_iter();
        let mut out: Vec<(CompactString, Value)> = Vec::with_capacity(members.size_hint().0);
        out.extend(before.and_then(into_map).into_iter().flatten());
        self.again += out.len();
        if self.again > MAX_AGAIN {
            return Err(format!("{} is repeated too often", self.fields.join(".")));
        }
        for (key, source) in members {
            if S::ORDERED && !seen.insert(key.clone()) {
                self.report(Issue::Repeated, &key);
            }
            if leads_on {
                self.path.push(Step::Field(key.clone()));
            }
            let value = self.value(inner, source.open(), None, go_name)?.unwrap_or_else(|| zero(&inner.ty));
            if leads_on {
                self.path.pop();
            }
            out.push((key, if quantities { rounded(value) } else { value }));
        }
        Ok(out.into())
    }

    /// Values that a type of its own reads: raw JSON, or the schema of a schema.
    fn raw<S: Source>(&mut self, definition: Option<&'static Definition>, opened: Opened<S>) -> Result<Value, String> {
        let Some(definition) = definition else { return Ok(opened.into_value()) };
        let name = definition.type_name();
        let props = definition.name.replace(name, "JSONSchemaProps");
        let Some(props) = crate::definitions().get(&props).filter(|_| name != "JSON") else {
            return Ok(opened.into_value());
        };
        // Decoded by a decoder of its own: unknown fields are not reported, and errors are told of the place outside.
        let inner = |opened: Opened<S>| {
            let decoded = Decoder::default().document(props, opened);
            decoded.map(|decoded| decoded.object).map_err(|error| self.told_here(error))
        };
        match opened {
            opened @ Opened::Object(_) => inner(opened),
            Opened::Array(items) if name == "JSONSchemaPropsOrArray" => {
                let items: Result<Vec<Value>, String> = items.into_iter().map(|item| inner(item.open())).collect();
                Ok(Value::Array(items?))
            }
            Opened::Scalar(value @ (Value::Bool(_) | Value::Null), _) => Ok(value),
            _ if name == "JSONSchemaPropsOrBool" => Err("boolean or JSON schema expected".to_owned()),
            other => Ok(other.into_value()),
        }
    }

    /// The error of an inner decoder, with this one's place in the place of its own.
    fn told_here(&self, error: String) -> String {
        let parts = error.strip_prefix("json: cannot unmarshal ").and_then(|rest| {
            let (kind, rest) = rest.split_once(" into Go ")?;
            Some((kind, rest.rsplit_once(" of type ")?.1))
        });
        match parts {
            Some((kind, go_type)) => self.type_error(kind, go_type),
            None => error,
        }
    }

    fn wrong_type<S: Source>(&self, given: &Opened<S>, go_type: &str, literal: bool) -> String {
        let kind = match given.number().filter(|_| literal) {
            Some(number) => format!("number {number}"),
            None => given.kind().to_owned(),
        };
        self.type_error(&kind, go_type)
    }

    fn type_error(&self, kind: &str, go_type: &str) -> String {
        let (structure, fields) = (self.structure, self.fields.join("."));
        format!("json: cannot unmarshal {kind} into Go struct field {structure}.{fields} of type {go_type}")
    }

    /// Notes what strict reading does not let pass, once each.
    fn report(&mut self, what: fn(String) -> Issue, key: &str) {
        if self.issues.len() >= MAX_ISSUES {
            return;
        }
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => {
                    let _ = write!(path, ".{name}");
                }
                Step::Index(i) => {
                    let _ = write!(path, "[{i}]");
                }
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        let issue = what(path);
        if !self.issues.contains(&issue) {
            self.issues.push(issue);
        }
    }
}

/// The name of the type of a list's items; empty where it is not known.
pub(super) fn item_of(go_name: &str) -> &str {
    go_name.strip_prefix("[]").unwrap_or_default()
}

/// The name of the type of a map's values; empty where it is not known.
pub(super) fn value_of(go_name: &str) -> &str {
    go_name.strip_prefix("map[").and_then(|rest| rest.split_once(']')).map_or("", |(_, value)| value)
}

fn into_map(value: Value) -> Option<Map> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// Whether a map's values are quantities.
fn is_quantity(values: &Schema) -> bool {
    matches!(&values.ty, Type::Ref(to) if to.name().ends_with(".Quantity"))
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int32 | Type::Int64 | Type::Double)
}

/// Whether Go's `omitempty` leaves a scalar out.
pub(super) fn is_zero(value: &Value, ty: &Type) -> bool {
    match value {
        _ if matches!(ty, Type::Ref(_)) => false,
        Value::Array(_) | Value::Object(_) => false,
        Value::String(s) => s.is_empty(),
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::Bool(b) => !b,
        Value::Null => true,
    }
}

/// The zero value of an item.
fn zero(ty: &Type) -> Value {
    match ty {
        Type::String | Type::Bytes => "".into(),
        Type::Int32 | Type::Int64 | Type::Double => Value::Int(0),
        Type::Bool => Value::Bool(false),
        Type::Ref(_) => match ty.definition() {
            Some(d) if !d.fields.is_empty() => Value::Object(d.zero()),
            Some(d) if matches!(d.schema.ty, Type::Quantity) => "0".into(),
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

/// A quantity rounded up to thousandths; one that needs no rounding stays as it is printed.
fn rounded(value: Value) -> Value {
    match value.as_str().map(Quantity::parse) {
        Some(Ok(quantity)) if quantity.rounded_to_milli() != quantity => quantity.rounded_to_milli().to_string().into(),
        _ => value,
    }
}

/// A type as Go's errors print it.
pub(super) fn go_type(ty: &Type, definition: Option<&Definition>) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Double => "float64".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::List(item) => format!("[]{}", go_type(&item.ty, item.ty.definition())),
        Type::Map(inner) if is_quantity(inner) => "v1.ResourceList".to_owned(),
        Type::Map(inner) => format!("map[string]{}", go_type(&inner.ty, inner.ty.definition())),
        Type::Ref(_) => match definition {
            Some(d) if d.type_name() == "Quantity" => "resource.Quantity".to_owned(),
            Some(d) => d.go_name().to_owned(),
            None => "struct {}".to_owned(),
        },
        _ => "interface {}".to_owned(),
    }
}

/// Standard base64 as Go reads it: line breaks are skipped; the error is the offset of the first bad byte.
pub(super) fn read_base64(text: &str) -> Result<Vec<u8>, usize> {
    let breaks = ['\r', '\n'];
    let clean: Cow<'_, str> = if text.contains(breaks) { text.replace(breaks, "").into() } else { text.into() };
    STANDARD.decode(&*clean).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
        // Go tells where the group of four starts that is not whole, or where more padding would be.
        base64::DecodeError::InvalidPadding if clean.ends_with('=') => clean.len(),
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => clean.len() / 4 * 4,
    })
}
