//! Errors about a part of an object, as upstream's `field` package makes and prints them.

use crate::{Value, go};
use std::fmt;

/// A path to a field. It borrows its parent, so that walking down an object allocates nothing; it is rendered only
/// when an error is made.
///
/// ```
/// use object::field::Path;
/// let spec = Path::ROOT.child("spec");
/// let ports = spec.child("ports");
/// assert_eq!(ports.index(0).child("name").to_string(), "spec.ports[0].name");
/// assert_eq!(spec.key("a.b").to_string(), "spec[a.b]");
/// assert_eq!(Path::ROOT.to_string(), "<nil>");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'p> {
    Root,
    Name(&'p str),
    Index(usize),
    Key(&'p str),
}

impl Path<'static> {
    /// The object itself; prints as `<nil>`.
    pub const ROOT: Path<'static> = Path { parent: None, segment: Segment::Root };
}

impl<'p> Path<'p> {
    /// The field `name` of this one: `.name`. A name may hold dots and thus several fields.
    pub fn child<'q>(&'q self, name: &'q str) -> Path<'q> {
        Path { parent: Some(self), segment: Segment::Name(name) }
    }

    /// An item of a list: `[index]`.
    pub fn index<'q>(&'q self, index: usize) -> Path<'q> {
        Path { parent: Some(self), segment: Segment::Index(index) }
    }

    /// A value of a map: `[key]`.
    pub fn key<'q>(&'q self, key: &'q str) -> Path<'q> {
        Path { parent: Some(self), segment: Segment::Key(key) }
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        matches!(self.segment, Segment::Root)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chain = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            chain.push(path.segment);
            at = path.parent;
        }
        if chain.len() == 1 && self.is_root() {
            return f.write_str("<nil>");
        }
        let mut first = true;
        for segment in chain.into_iter().rev() {
            match segment {
                Segment::Root => continue,
                Segment::Name(n) if first => f.write_str(n)?,
                Segment::Name(n) => write!(f, ".{n}")?,
                Segment::Index(i) => write!(f, "[{i}]")?,
                Segment::Key(k) => write!(f, "[{k}]")?,
            }
            first = false;
        }
        Ok(())
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// A value is missing.
    Required,
    /// A value repeats another.
    Duplicate,
    /// A value is malformed or out of range.
    Invalid,
    /// A value is none of those supported.
    NotSupported,
    /// A value is allowed in general, but not here.
    Forbidden,
    /// A value has too many characters or bytes.
    TooLong,
    /// A list or map has too many items.
    TooMany,
    /// A value is of the wrong type.
    TypeInvalid,
    /// What a value refers to does not exist.
    NotFound,
    /// The server is at fault.
    Internal,
}

impl ErrorKind {
    /// The reason of a `Status` cause.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooMany => "Too many",
            ErrorKind::NotFound => "Not found",
            ErrorKind::Internal => "Internal error",
        }
    }
}

/// A value as an error shows it: strings quoted, numbers and booleans bare, null as `"null"`, the rest in Go's syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

impl Shown {
    /// Text that is shown as it stands, for values that Go prints through a type of its own.
    pub fn raw(text: impl Into<String>) -> Self {
        Shown(text.into())
    }
}

impl From<&Value> for Shown {
    fn from(value: &Value) -> Self {
        Shown(match value {
            Value::Null => "\"null\"".to_owned(),
            Value::String(s) => go::quote(s),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => go::plain(value),
            Value::Array(_) | Value::Object(_) => go::syntax(value),
        })
    }
}

impl From<Option<&Value>> for Shown {
    fn from(value: Option<&Value>) -> Self {
        value.unwrap_or(&Value::Null).into()
    }
}

impl From<&str> for Shown {
    fn from(value: &str) -> Self {
        Shown(go::quote(value))
    }
}

impl From<&String> for Shown {
    fn from(value: &String) -> Self {
        Shown(go::quote(value))
    }
}

impl From<i64> for Shown {
    fn from(value: i64) -> Self {
        Shown(value.to_string())
    }
}

impl From<bool> for Shown {
    fn from(value: bool) -> Self {
        Shown(value.to_string())
    }
}

impl From<&[String]> for Shown {
    fn from(value: &[String]) -> Self {
        Shown(go::string_list(value))
    }
}

/// An error about one field. Prints as `spec.replicas: Invalid value: -1: must be positive`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The field, rendered; empty for an error without one.
    pub field: String,
    /// The offending value, where the kind shows one.
    pub value: Option<Shown>,
    /// What people are told beside it.
    pub detail: String,
}

impl FieldError {
    fn new(kind: ErrorKind, path: &Path<'_>, value: Option<Shown>, detail: impl Into<String>) -> Self {
        FieldError { kind, field: path.to_string(), value, detail: detail.into() }
    }

    /// `Required value: DETAIL`
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, None, detail)
    }

    /// `Duplicate value: VALUE`
    pub fn duplicate(path: &Path<'_>, value: impl Into<Shown>) -> Self {
        Self::new(ErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// `Invalid value: VALUE: DETAIL`
    pub fn invalid(path: &Path<'_>, value: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// `Invalid value: VALUE: DETAIL`, for a value of the wrong type.
    pub fn type_invalid(path: &Path<'_>, value: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, path, Some(value.into()), detail)
    }

    /// `Unsupported value: VALUE: supported values: "a", "b"`, in the order given.
    pub fn not_supported<S: AsRef<str>>(path: &Path<'_>, value: impl Into<Shown>, supported: &[S]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| go::quote(s.as_ref())).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// `Forbidden: DETAIL`
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, None, detail)
    }

    /// `Too long: may not be more than MAX bytes`; a negative maximum prints `value is too long`.
    pub fn too_long(path: &Path<'_>, max: i64) -> Self {
        let detail = if max < 0 { "value is too long".to_owned() } else { format!("may not be more than {max} bytes") };
        Self::new(ErrorKind::TooLong, path, None, detail)
    }

    /// `Too many: COUNT: must have at most MAX items`
    pub fn too_many(path: &Path<'_>, count: usize, max: i64) -> Self {
        let detail = if max < 0 { "has too many items".to_owned() } else { format!("must have at most {max} items") };
        Self::new(ErrorKind::TooMany, path, Some((count as i64).into()), detail)
    }

    /// `Not found: VALUE`
    pub fn not_found(path: &Path<'_>, value: impl Into<Shown>) -> Self {
        Self::new(ErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// `Internal error: DETAIL`
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, path, None, detail)
    }

    /// The message without the field: what a `Status` cause carries.
    pub fn body(&self) -> String {
        let mut out = self.kind.text().to_owned();
        if let Some(Shown(value)) = &self.value {
            out.push_str(": ");
            out.push_str(value);
        }
        if !self.detail.is_empty() || matches!(self.kind, ErrorKind::Forbidden | ErrorKind::Internal) {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

/// Joins errors as Go's aggregate prints them: repeated texts once; one alone plain, several as `[a, b]`.
pub fn aggregate<S: ToString>(errors: &[S]) -> String {
    let mut seen = std::collections::HashSet::new();
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.retain(|text| seen.insert(text.clone()));
    if texts.len() == 1 { texts.remove(0) } else { format!("[{}]", texts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_prints_as_upstream() {
        let spec = Path::ROOT.child("spec");
        let p = spec.child("a");
        for (error, text) in [
            (FieldError::required(&p, ""), "spec.a: Required value"),
            (FieldError::required(&p, "why"), "spec.a: Required value: why"),
            (FieldError::duplicate(&p, "x"), "spec.a: Duplicate value: \"x\""),
            (FieldError::invalid(&p, 5, "why"), "spec.a: Invalid value: 5: why"),
            (FieldError::invalid(&p, &Value::Null, "why"), "spec.a: Invalid value: \"null\": why"),
            (
                FieldError::not_supported(&p, "x", &["b", "a"]),
                "spec.a: Unsupported value: \"x\": supported values: \"b\", \"a\"",
            ),
            (FieldError::forbidden(&p, "why"), "spec.a: Forbidden: why"),
            (FieldError::too_long(&p, 4), "spec.a: Too long: may not be more than 4 bytes"),
            (FieldError::too_many(&p, 5, 4), "spec.a: Too many: 5: must have at most 4 items"),
            (FieldError::not_found(&p, "x"), "spec.a: Not found: \"x\""),
            (FieldError::internal(&p, "why"), "spec.a: Internal error: why"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn an_aggregate_names_each_text_once() {
        assert_eq!(aggregate(&["a"]), "a");
        assert_eq!(aggregate(&["a", "b", "a"]), "[a, b]");
    }
}
