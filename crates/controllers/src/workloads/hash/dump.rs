//! A template of pods as Go's `spew` dumps it for hashing: every field with its type, addresses left out.
//!
//! `types.txt` lists the types: a line for the name of a structure, then a line a field with its name in Go, its name in
//! JSON (`-` for an embedded structure) and its type. A type with a dot is a string with a name of its own.

use object::{Map, Value};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

struct Field {
    name: &'static str,
    key: &'static str,
    ty: &'static str,
}

static TYPES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let mut types: HashMap<&str, Vec<Field>> = HashMap::new();
    let mut current = "";
    for line in include_str!("types.txt").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, key, ty] => types.entry(current).or_default().push(Field { name, key, ty }),
            [name] => current = name,
            _ => {}
        }
    }
    types
});

static NULL: Value = Value::Null;

/// A template of pods as Go dumps it.
pub(super) fn pod_template(template: &Value) -> String {
    let mut out = String::with_capacity(4096);
    value("PodTemplateSpec", template, true, &mut out);
    out
}

/// A value of a type; with its type's name before it, unless that is clear from what stands around it.
fn value(ty: &str, v: &Value, named: bool, out: &mut String) {
    if let Some(inner) = ty.strip_prefix('*') {
        if named {
            let _ = write!(out, "(*{})", go_name(inner));
        }
        return if v.is_null() { out.push_str("<nil>") } else { value(inner, v, false, out) };
    }
    if named {
        let _ = write!(out, "({})", go_name(ty));
    }
    if let Some(item) = ty.strip_prefix("[]") {
        return match v.as_array().unwrap_or_default() {
            [] => out.push_str("<nil>"),
            items => {
                out.push('[');
                for (i, v) in items.iter().enumerate() {
                    space(i, out);
                    value(item, v, false, out);
                }
                out.push(']');
            }
        };
    }
    match ty {
        "map" | "ResourceList" => match v.as_object() {
            Some(members) if !members.is_empty() => map(members, ty == "ResourceList", out),
            _ => out.push_str("<nil>"),
        },
        "bool" => out.push_str(if v.as_bool() == Some(true) { "true" } else { "false" }),
        "int32" | "int64" => {
            let _ = write!(out, "{}", v.as_int().unwrap_or_default());
        }
        "Time" => out.push_str("{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"),
        "Quantity" => quantity(v, out),
        "IntOrString" => {
            let (kind, text) = v.as_str().map_or((0, ""), |s| (1, s));
            let number = v.as_int().unwrap_or_default();
            let _ = write!(out, "{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}");
        }
        name => match TYPES.get(name) {
            Some(fields) => structure(fields, v, out),
            None => out.push_str(v.as_str().unwrap_or_default()),
        },
    }
}

fn structure(fields: &[Field], v: &Value, out: &mut String) {
    out.push('{');
    for (i, field) in fields.iter().enumerate() {
        space(i, out);
        out.push_str(field.name);
        out.push(':');
        let member = if field.key == "-" { v } else { v.get(field.key).unwrap_or(&NULL) };
        value(field.ty, member, true, out);
    }
    out.push('}');
}

fn map(members: &Map, quantities: bool, out: &mut String) {
    out.push_str("map[");
    for (i, (key, v)) in members.iter().enumerate() {
        space(i, out);
        out.push_str(key);
        out.push(':');
        if quantities { quantity(v, out) } else { out.push_str(v.as_str().unwrap_or_default()) }
    }
    out.push(']');
}

fn space(i: usize, out: &mut String) {
    if i > 0 {
        out.push(' ');
    }
}

/// The name of a type in Go.
fn go_name(ty: &str) -> String {
    if let Some(item) = ty.strip_prefix("[]") {
        return format!("[]{}", go_name(item));
    }
    match ty {
        "map" => "map[string]string".to_owned(),
        "Quantity" => "resource.Quantity".to_owned(),
        "IntOrString" => "intstr.IntOrString".to_owned(),
        _ if ty.starts_with(|c: char| c.is_ascii_uppercase()) => format!("v1.{ty}"),
        _ => ty.to_owned(),
    }
}

/// A quantity as it was read: its digits and scale, and its text.
fn quantity(v: &Value, out: &mut String) {
    let number;
    let text = match v {
        Value::String(s) => s.as_str(),
        Value::Int(i) => {
            number = i.to_string();
            &number
        }
        _ => "",
    };
    let (value, scale, format) = digits(text);
    let _ = write!(
        out,
        "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} \
         d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text} Format:(resource.Format){format}}}"
    );
}

/// The digits of a quantity, the power of ten that they count, and the format's name; nothing where there is no text.
fn digits(text: &str) -> (i64, i64, &'static str) {
    if text.is_empty() {
        return (0, 0, "");
    }
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let value = format!("{whole}{fraction}").parse::<i64>().unwrap_or_default();
    let places = i64::try_from(fraction.len()).unwrap_or_default();
    let binary = |power: u32| (value.saturating_mul(1i64.checked_shl(power).unwrap_or(i64::MAX)), -places, "BinarySI");
    let decimal = |scale: i64| (value, scale - places, "DecimalSI");
    match suffix {
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "" => decimal(0),
        exponent => {
            let exponent = exponent.get(1..).and_then(|e| e.parse::<i64>().ok()).unwrap_or_default();
            (value, exponent.saturating_sub(places), "DecimalExponent")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn dumped(ty: &str, text: &str) -> String {
        let mut out = String::new();
        value(ty, &json::parse(text.as_bytes()).unwrap(), true, &mut out);
        out
    }

    #[test]
    fn values_are_dumped_with_their_types() {
        for (ty, text, want) in [
            ("*int64", "null", "(*int64)<nil>"),
            ("*int64", "30", "(*int64)30"),
            ("[]string", "[]", "([]string)<nil>"),
            ("[]v1.Capability", r#"["A","B"]"#, "([]v1.Capability)[A B]"),
            ("map", r#"{"b":"2","a":"1"}"#, "(map[string]string)map[a:1 b:2]"),
            ("v1.PullPolicy", r#""Always""#, "(v1.PullPolicy)Always"),
            ("*HostAlias", r#"{"ip":"1"}"#, "(*v1.HostAlias){IP:(string)1 Hostnames:([]string)<nil>}"),
            ("[]HostAlias", "[{}]", "([]v1.HostAlias)[{IP:(string) Hostnames:([]string)<nil>}]"),
            ("IntOrString", "80", "(intstr.IntOrString){Type:(intstr.Type)0 IntVal:(int32)80 StrVal:(string)}"),
        ] {
            assert_eq!(dumped(ty, text), want);
        }
    }

    #[test]
    fn quantities_keep_their_digits_and_text() {
        for (text, want) in [
            ("100m", (100, -3, "DecimalSI")),
            ("1", (1, 0, "DecimalSI")),
            ("1.5", (15, -1, "DecimalSI")),
            ("64Mi", (67_108_864, 0, "BinarySI")),
            ("2k", (2, 3, "DecimalSI")),
            ("1e3", (1, 3, "DecimalExponent")),
        ] {
            assert_eq!(digits(text), want, "{text}");
        }
    }

    #[test]
    fn every_type_that_a_field_names_is_listed() {
        let scalars = ["string", "bool", "int32", "int64", "map", "ResourceList", "Time", "Quantity", "IntOrString"];
        for (name, fields) in TYPES.iter() {
            for field in fields {
                let ty = field.ty.trim_start_matches("[]").trim_start_matches('*');
                let known = ty.contains('.') || scalars.contains(&ty) || TYPES.contains_key(ty);
                assert!(known || ty == "ManagedFieldsEntry", "{name}.{}: {ty}", field.name);
            }
        }
    }
}
