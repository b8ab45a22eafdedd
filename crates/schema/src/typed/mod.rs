//! Reading a value as Go's JSON reader puts it into structs: unknown members are dropped (and told), known ones must
//! have their type, and what comes out is what Go would write again.

mod crd;
mod meta;

pub(crate) use crd::DEFINITION;
pub(crate) use meta::OBJECT_META;

use object::{Map, Told, Value, go};

/// A struct: its name in Go and its fields.
pub(crate) struct Struct {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
}

/// A field of a struct.
pub(crate) struct Field {
    json: &'static str,
    ty: Ty,
    /// Left out of the output when empty.
    omit: bool,
    /// A pointer: null is "not there", and a zero that is there is written.
    pointer: bool,
}

/// The type of a field.
pub(crate) enum Ty {
    /// A string; the name of its type in Go.
    Str(&'static str),
    Bool,
    Int32,
    Int64,
    Float,
    /// Base64.
    Bytes,
    Time,
    /// Anything. Numbers come out as Go writes them.
    Any,
    Struct(&'static Struct),
    List(&'static Ty),
    Map(&'static Ty),
    /// `additionalProperties`: a schema or a boolean.
    SchemaOrBool,
    /// `items`: a schema or a list of them.
    SchemaOrArray,
    /// A value of `dependencies`: a schema or a list of strings.
    SchemaOrStrings,
}

const fn optional(json: &'static str, ty: Ty) -> Field {
    Field { json, ty, omit: true, pointer: false }
}

const fn always(json: &'static str, ty: Ty) -> Field {
    Field { json, ty, omit: false, pointer: false }
}

const fn pointer(json: &'static str, ty: Ty) -> Field {
    Field { json, ty, omit: true, pointer: true }
}

const STRING: Ty = Ty::Str("string");

static STRINGS: Ty = Ty::List(&STRING);

/// A value as a struct holds it.
pub(crate) struct Decoded {
    /// What Go would write.
    pub(crate) value: Value,
    /// The paths of members that the structs do not have, in order of their names.
    pub(crate) unknown: Vec<String>,
}

/// Reads `value` as `shape`. The error is Go's text, for example
/// `json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string`.
pub(crate) fn decode(value: &Value, ty: &'static Ty) -> Result<Decoded, String> {
    let mut reader = Reader { saved: None, stack: Vec::new(), owner: None, path: Vec::new(), unknown: Told::default() };
    let read = reader.read(value, ty);
    let value = match read {
        Ok(value) => value,
        Err(abort) => return Err(reader.with_context(abort).to_string()),
    };
    match reader.saved {
        Some(error) => Err(error.to_string()),
        None => Ok(Decoded { value, unknown: reader.unknown.into_vec() }),
    }
}

/// What stops or spoils reading.
enum Failure {
    /// A value of the wrong type: its description, the Go type, and the struct field where it stands.
    Type { value: String, ty: String, field: Option<String> },
    /// Any other text.
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Type { value, ty, field: Some(field) } => {
                write!(f, "json: cannot unmarshal {value} into Go struct field {field} of type {ty}")
            }
            Failure::Type { value, ty, field: None } => {
                write!(f, "json: cannot unmarshal {value} into Go value of type {ty}")
            }
            Failure::Other(text) => f.write_str(text),
        }
    }
}

enum Step<'v> {
    Name(&'v str),
    Index(usize),
}

struct Reader<'v> {
    /// The first error that did not stop the reading.
    saved: Option<Failure>,
    /// The field names from the root to here; map keys and indices do not count.
    stack: Vec<&'static str>,
    /// The struct whose field is being read.
    owner: Option<&'static str>,
    path: Vec<Step<'v>>,
    unknown: Told,
}

impl<'v> Reader<'v> {
    fn read(&mut self, value: &'v Value, ty: &'static Ty) -> Result<Value, Failure> {
        if value.is_null() {
            return Ok(zero(ty));
        }
        let fits = match (ty, value) {
            (Ty::Any, _) => return Ok(as_written(value)),
            (Ty::Str(_), Value::String(_)) | (Ty::Bool, Value::Bool(_)) => return Ok(value.clone()),
            (Ty::Float, Value::Int(_) | Value::Float(_)) => return Ok(as_written(value)),
            (Ty::Int64, Value::Int(_)) => return Ok(value.clone()),
            (Ty::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => return Ok(value.clone()),
            (Ty::Bytes, Value::String(text)) => match base64_error(text, b"+/") {
                None => return Ok(value.clone()),
                Some(at) => {
                    self.save(Failure::Other(format!("illegal base64 data at input byte {at}")));
                    return Ok(Value::Null);
                }
            },
            (Ty::Time, _) => return self.time(value),
            (Ty::Struct(shape), Value::Object(members)) => return self.structure(members, shape),
            (Ty::List(item), Value::Array(items)) => return self.list(items, item),
            (Ty::Map(item), Value::Object(members)) => return self.map(members, item),
            (Ty::SchemaOrBool, Value::Bool(_)) => return Ok(value.clone()),
            (Ty::SchemaOrBool | Ty::SchemaOrArray | Ty::SchemaOrStrings, Value::Object(_)) => {
                return self.nested(value, &crd::SCHEMA_TYPE);
            }
            (Ty::SchemaOrBool, _) => return Err(Failure::Other("boolean or JSON schema expected".to_owned())),
            (Ty::SchemaOrArray, Value::Array(items)) => {
                let read = self.nested(value, &crd::SCHEMA_LIST)?;
                return Ok(if items.is_empty() { Value::Null } else { read });
            }
            (Ty::SchemaOrArray, _) => return Ok(Value::Null),
            (Ty::SchemaOrStrings, Value::Array(_)) => return self.nested(value, &STRINGS),
            (Ty::SchemaOrStrings, _) => return Ok(Value::Null),
            _ => false,
        };
        debug_assert!(!fits);
        self.save(Failure::Type { value: describe(value, ty), ty: go_name(ty), field: None });
        Ok(zero(ty))
    }

    fn structure(&mut self, members: &'v Map, shape: &'static Struct) -> Result<Value, Failure> {
        let owner = self.owner;
        let mut out = Map::new();
        for (name, value) in members.iter() {
            self.path.push(Step::Name(name));
            match shape.fields.iter().find(|f| f.json == name) {
                None => self.unknown.add_with(|| path_text(&self.path)),
                Some(field) => {
                    self.owner = Some(shape.name);
                    self.stack.push(field.json);
                    // The context of an error that stops the reading is where it happened: it is not put back.
                    let read = self.read(value, &field.ty)?;
                    self.stack.pop();
                    self.owner = owner;
                    if field.pointer && !value.is_null()
                        || !field.pointer && !(field.omit && is_empty(&read, &field.ty))
                    {
                        out.insert(name, read);
                    }
                }
            }
            self.path.pop();
        }
        for field in shape.fields.iter().filter(|f| !f.omit) {
            out.get_or_insert(field.json, || zero(&field.ty));
        }
        for field in shape.fields.iter().filter(|f| f.omit && !f.pointer && matches!(f.ty, Ty::Struct(_))) {
            out.get_or_insert(field.json, || zero(&field.ty));
        }
        Ok(Value::Object(out))
    }

    fn list(&mut self, items: &'v [Value], ty: &'static Ty) -> Result<Value, Failure> {
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            self.path.push(Step::Index(i));
            out.push(self.read(item, ty)?);
            self.path.pop();
        }
        Ok(Value::Array(out))
    }

    fn map(&mut self, members: &'v Map, ty: &'static Ty) -> Result<Value, Failure> {
        let mut out = Vec::with_capacity(members.len());
        for (name, value) in members.iter() {
            self.path.push(Step::Name(name));
            out.push((name, self.read(value, ty)?));
            self.path.pop();
        }
        Ok(Value::Object(out.into_iter().collect()))
    }

    fn time(&mut self, value: &Value) -> Result<Value, Failure> {
        let Value::String(text) = value else {
            return Err(Failure::Type { value: describe(value, &STRING), ty: "string".to_owned(), field: None });
        };
        match meta::parse_time(text) {
            Ok(time) => Ok(Value::from(time)),
            Err(error) => Err(Failure::Other(error)),
        }
    }

    /// What a type with a reader of its own reads: errors stop all, and unknown members are not seen.
    fn nested(&mut self, value: &'v Value, ty: &'static Ty) -> Result<Value, Failure> {
        let mut inner =
            Reader { saved: None, stack: Vec::new(), owner: None, path: Vec::new(), unknown: Told::default() };
        let read = match inner.read(value, ty) {
            Ok(read) => read,
            Err(abort) => return Err(inner.with_context(abort)),
        };
        match inner.saved {
            Some(error) => Err(error),
            None => Ok(read),
        }
    }

    fn save(&mut self, failure: Failure) {
        if self.saved.is_none() {
            self.saved = Some(self.with_context(failure));
        }
    }

    fn with_context(&self, failure: Failure) -> Failure {
        match (failure, self.owner) {
            (Failure::Type { value, ty, .. }, Some(owner)) => {
                Failure::Type { value, ty, field: Some(format!("{owner}.{}", self.stack.join("."))) }
            }
            (failure, _) => failure,
        }
    }
}

fn path_text(path: &[Step<'_>]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Name(name) if out.is_empty() => out.push_str(name),
            Step::Name(name) => {
                out.push('.');
                out.push_str(name);
            }
            Step::Index(i) => out.push_str(&format!("[{i}]")),
        }
    }
    out
}

fn zero(ty: &'static Ty) -> Value {
    match ty {
        Ty::Str(_) => Value::from(""),
        Ty::Bool => Value::Bool(false),
        Ty::Int32 | Ty::Int64 | Ty::Float => Value::Int(0),
        Ty::Struct(shape) => {
            let written = shape.fields.iter().filter(|f| !f.omit || (!f.pointer && matches!(f.ty, Ty::Struct(_))));
            Value::Object(written.map(|f| (f.json, zero(&f.ty))).collect())
        }
        _ => Value::Null,
    }
}

fn is_empty(value: &Value, ty: &Ty) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() && !matches!(ty, Ty::Struct(_)),
    }
}

/// A number as it is after Go wrote and read it again: whole floats become integers, as far as Go writes them without
/// an exponent.
fn as_written(value: &Value) -> Value {
    match value {
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9.2e18 => Value::Int(*f as i64),
        Value::Array(items) => Value::Array(items.iter().map(as_written).collect()),
        Value::Object(members) => Value::Object(members.iter().map(|(k, v)| (k, as_written(v))).collect()),
        other => other.clone(),
    }
}

fn describe(value: &Value, ty: &Ty) -> String {
    match value {
        Value::Int(i) if matches!(ty, Ty::Int32 | Ty::Int64 | Ty::Float) => format!("number {i}"),
        Value::Float(f) if matches!(ty, Ty::Int32 | Ty::Int64 | Ty::Float) => format!("number {}", go::json_float(*f)),
        other => go::json_kind(other).to_owned(),
    }
}

fn go_name(ty: &Ty) -> String {
    match ty {
        Ty::Str(name) => (*name).to_owned(),
        Ty::Bool => "bool".to_owned(),
        Ty::Int32 => "int32".to_owned(),
        Ty::Int64 => "int64".to_owned(),
        Ty::Float => "float64".to_owned(),
        Ty::Bytes => "[]uint8".to_owned(),
        Ty::Time => "v1.Time".to_owned(),
        Ty::Any => "v1.JSON".to_owned(),
        Ty::Struct(shape) if shape.name.is_empty() => "struct {}".to_owned(),
        Ty::Struct(shape) => format!("v1.{}", shape.name),
        Ty::List(item) => format!("[]{}", go_name(item)),
        Ty::Map(item) => format!("map[string]{}", go_name(item)),
        Ty::SchemaOrBool => "v1.JSONSchemaPropsOrBool".to_owned(),
        Ty::SchemaOrArray => "v1.JSONSchemaPropsOrArray".to_owned(),
        Ty::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".to_owned(),
    }
}

/// Where Base64 with padding is broken, as Go counts it. Line breaks do not count; `extra` are the characters of the
/// alphabet beside letters and digits.
pub(crate) fn base64_error(text: &str, extra: &[u8; 2]) -> Option<usize> {
    let mut in_quantum = 0;
    let mut bytes = text.bytes().enumerate().filter(|(_, b)| !matches!(b, b'\r' | b'\n'));
    while let Some((at, b)) = bytes.next() {
        if b == b'=' {
            return match in_quantum {
                2 => match bytes.next() {
                    Some((_, b'=')) => bytes.next().map(|(at, _)| at),
                    Some((at, _)) => Some(at),
                    None => Some(text.len()),
                },
                3 => bytes.next().map(|(at, _)| at),
                _ => Some(at),
            };
        }
        if !(b.is_ascii_alphanumeric() || extra.contains(&b)) {
            return Some(at);
        }
        in_quantum = (in_quantum + 1) % 4;
    }
    (in_quantum != 0).then_some(text.len() - in_quantum)
}
