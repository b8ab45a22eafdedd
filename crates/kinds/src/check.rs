//! Checks that several kinds share, with upstream's sentences.

use crate::gostruct;
use crate::quantity::Quantity;
use crate::read::Read;
use object::field::{FieldError, Path, Shown};
use object::names::{self, NameCheck};
use object::{Map, Value, go, selector};

pub(crate) type Errors = Vec<FieldError>;

pub(crate) const IMMUTABLE: &str = "field is immutable";
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// The errors of a name check, at a path.
pub(crate) fn name(check: NameCheck, value: &str, path: &Path<'_>, out: &mut Errors) {
    out.extend(check(value).into_iter().map(|why| FieldError::invalid(path, value, why)));
}

/// `must be greater than or equal to 0`
pub(crate) fn not_negative(object: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    if let Some(value) = object.opt_int(key).filter(|v| *v < 0) {
        out.push(FieldError::invalid(&path.child(key), value, NOT_NEGATIVE));
    }
}

/// `must be greater than 0`
pub(crate) fn positive(object: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    if let Some(value) = object.opt_int(key).filter(|v| *v <= 0) {
        out.push(FieldError::invalid(&path.child(key), value, "must be greater than 0"));
    }
}

/// A required string.
pub(crate) fn required(object: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    if object.text(key).is_empty() {
        out.push(FieldError::required(&path.child(key), ""));
    }
}

/// A required string, which must be a name.
pub(crate) fn required_name(check: NameCheck, object: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    match object.text(key) {
        "" => out.push(FieldError::required(&path.child(key), "")),
        value => name(check, value, &path.child(key), out),
    }
}

/// A string that must be one of a few, in the order in which the message lists them.
pub(crate) fn one_of(object: &Value, key: &str, supported: &[&str], path: &Path<'_>, out: &mut Errors) {
    if !supported.contains(&object.text(key)) {
        out.push(FieldError::not_supported(&path.child(key), object.text(key), supported));
    }
}

/// A string that must be one of a few, and required with that.
pub(crate) fn required_one_of(object: &Value, key: &str, supported: &[&str], path: &Path<'_>, out: &mut Errors) {
    if object.text(key).is_empty() {
        out.push(FieldError::required(&path.child(key), ""));
    } else {
        one_of(object, key, supported, path, out);
    }
}

/// An error about a value that is not shown.
pub(crate) fn without_value(path: &Path<'_>, why: impl Into<String>) -> FieldError {
    FieldError { value: None, ..FieldError::invalid(path, "", why) }
}

/// A name with a domain in front: `acme.io/foo`.
pub(crate) fn domain_prefixed(value: &str, path: &Path<'_>, out: &mut Errors) {
    if value.is_empty() {
        out.push(FieldError::required(path, ""));
        return;
    }
    let Some((domain, rest)) = value.split_once('/').filter(|(d, r)| !d.is_empty() && !r.is_empty()) else {
        out.push(FieldError::invalid(path, value, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
        return;
    };
    name(names::dns1123_subdomain, domain, path, out);
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let why = names::pattern_text("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        out.push(FieldError::invalid(path, rest, why));
    }
}

/// A part that an update may not change, of a type that errors show plainly.
pub(crate) fn immutable(new: &Value, old: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    let (new, old) = (new.sub(key), old.sub(key));
    if new != old {
        out.push(FieldError::invalid(&path.child(key), new, IMMUTABLE));
    }
}

/// The keys of ConfigMaps and Secrets.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    const PATTERN: &str = "[-._a-zA-Z0-9]+";
    let mut out = Vec::new();
    if key.len() > 253 {
        out.push(names::max_length_text(253));
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        let text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        out.push(names::pattern_text(text, PATTERN, &["key.name", "KEY_NAME", "key-name"]));
    }
    match key {
        "." => out.push("must not be '.'".to_owned()),
        ".." => out.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => out.push("must not start with '..'".to_owned()),
        _ => {}
    }
    out
}

/// The number of a port.
pub(crate) fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// The name of a port (IANA service name).
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 15 {
        out.push(names::max_length_text(15));
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        out.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        out.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        out.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        out.push("must not begin or end with a hyphen".to_owned());
    }
    out
}

/// A port by number or name.
pub(crate) fn port_or_name(value: &Value, path: &Path<'_>, out: &mut Errors) {
    match value {
        Value::String(s) => out.extend(port_name(s).into_iter().map(|why| FieldError::invalid(path, s.as_str(), why))),
        value => {
            let port = value.as_int().unwrap_or_default();
            out.extend(port_number(port).map(|why| FieldError::invalid(path, port, why)));
        }
    }
}

/// `spec.selector` and its like: a label selector as a structure.
pub(crate) fn label_selector(value: &Value, path: &Path<'_>, out: &mut Errors) {
    checked_selector(value, true, path, out);
}

/// A label selector whose requirements may name values that no label can have.
pub(crate) fn label_selector_of_any_values(value: &Value, path: &Path<'_>, out: &mut Errors) {
    checked_selector(value, false, path, out);
}

fn checked_selector(value: &Value, strict: bool, path: &Path<'_>, out: &mut Errors) {
    let labels = path.child("matchLabels");
    out.extend(object::metadata::validate_labels(value.members("matchLabels"), &labels));
    let expressions = path.child("matchExpressions");
    for (i, expression) in value.list("matchExpressions").iter().enumerate() {
        let at = expressions.index(i);
        let values = expression.list("values");
        match expression.text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                out.push(FieldError::required(&at.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                out.push(FieldError::forbidden(&at.child("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => out.push(FieldError::invalid(&at.child("operator"), other, "not a valid selector operator")),
        }
        label_name(expression.text("key"), &at.child("key"), out);
        let values = if strict { values } else { &[] };
        for (j, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let values = at.child("values");
            let at = values.index(j);
            out.extend(names::label_value(value).into_iter().map(|why| FieldError::invalid(&at, value, why)));
        }
    }
}

/// The key of a label, or another qualified name.
pub(crate) fn label_name(value: &str, path: &Path<'_>, out: &mut Errors) {
    out.extend(names::qualified_name(value).into_iter().map(|why| FieldError::invalid(path, value, why)));
}

/// Whether a label selector that is a structure selects labels; an absent one selects nothing.
pub(crate) fn selector_matches(selector: &Value, labels: &Map) -> bool {
    selector.as_object().is_some() && selector::Labels::from_object(selector).is_ok_and(|s| s.matches(Some(labels)))
}

/// A map of strings in Go's syntax: `map[string]string{"a":"b"}`.
pub(crate) fn go_string_map(map: &Map) -> String {
    let pairs: Vec<String> =
        map.iter().map(|(k, v)| format!("{}:{}", go::quote(k), go::quote(v.as_str().unwrap_or_default()))).collect();
    format!("map[string]string{{{}}}", pairs.join(", "))
}

/// A list of a named string type in Go's syntax: `[]core.ResourceQuotaScope{"a"}`.
pub(crate) fn go_list(ty: &str, items: &[&str]) -> Shown {
    let quoted: Vec<String> = items.iter().map(|s| go::quote(s)).collect();
    Shown::raw(format!("[]{ty}{{{}}}", quoted.join(", ")))
}

/// A percentage such as `25%`: its number.
pub(crate) fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// An integer that is not negative, or a percentage.
pub(crate) fn positive_int_or_percent(value: &Value, path: &Path<'_>, out: &mut Errors) {
    match value {
        Value::String(s) if percent(s).is_none() => {
            let text = "a valid percent string must be a numeric string followed by an ending '%'";
            let why = names::pattern_text(text, "[0-9]+%", &["1%", "93%"]);
            out.push(FieldError::invalid(path, Shown::raw(gostruct::int_or_string(value)), why));
        }
        Value::Int(i) if *i < 0 => out.push(FieldError::invalid(path, *i, NOT_NEGATIVE)),
        _ => {}
    }
}

/// `must not be greater than 100%`
pub(crate) fn not_more_than_all(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if let Some(s) = value.as_str()
        && percent(s).is_some_and(|p| p > 100)
    {
        out.push(FieldError::invalid(
            path,
            Shown::raw(gostruct::int_or_string(value)),
            "must not be greater than 100%",
        ));
    }
}

/// The quantity of a decoded field.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

/// `must be greater than or equal to 0`, for quantities.
pub(crate) fn quantity_not_negative(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if let Some(quantity) = quantity(value)
        && quantity.sign().is_lt()
    {
        out.push(FieldError::invalid(path, quantity.to_string().as_str(), NOT_NEGATIVE));
    }
}

/// The number of an integer or percentage, with Go's reading of a malformed one as 0.
pub(crate) fn int_or_percent(value: &Value) -> i64 {
    match value {
        Value::String(s) => percent(s).unwrap_or(0),
        value => value.as_int().unwrap_or_default(),
    }
}

/// Changes of a label selector, which is shown as Go's structure.
pub(crate) fn immutable_selector(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    if new.sub("selector") != old.sub("selector") {
        let shown = gostruct::label_selector(new.sub("selector"));
        out.push(FieldError::invalid(&path.child("selector"), shown, IMMUTABLE));
    }
}
