//! Conversions from and to base 64, base 32, JSON and YAML.

use super::{Table, arg, text};
use crate::value::{Heap, Result, Str, Val};
use crate::world::World;
use crate::yaml;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::{Value, json};

pub(super) const TABLE: Table = &[
    ("b64enc", "s", |w, a| w.heap.string(STANDARD.encode(bytes(&arg(a, 0))))),
    ("b64dec", "s", |_, a| {
        // Go passes over line breaks.
        let clean: Vec<u8> = bytes(&arg(a, 0)).iter().copied().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
        Ok(match STANDARD.decode(&clean) {
            Ok(decoded) => Val::Str(Str::from_bytes(&decoded)),
            Err(_) => Val::str(format!("illegal base64 data at input byte {}", illegal(&clean))),
        })
    }),
    ("b32enc", "s", |w, a| w.heap.string(base32(bytes(&arg(a, 0))))),
    ("b32dec", "s", |_, a| {
        Ok(match from_base32(&text(a, 0)) {
            Ok(decoded) => Val::Str(Str::from_bytes(&decoded)),
            Err(at) => Val::str(format!("illegal base32 data at input byte {at}")),
        })
    }),
    ("toJson", "a", |w, a| to_json(w, a, json::to_string)),
    ("mustToJson", "a", |w, a| to_json(w, a, json::to_string)),
    ("toPrettyJson", "a", |w, a| to_json(w, a, |v| pretty(v, 0))),
    ("mustToPrettyJson", "a", |w, a| to_json(w, a, |v| pretty(v, 0))),
    ("toRawJson", "a", |w, a| to_json(w, a, raw)),
    ("mustToRawJson", "a", |w, a| to_json(w, a, raw)),
    ("fromJson", "s", |w, a| from_json(w, a).or(Ok(Val::Nil))),
    ("mustFromJson", "s", from_json),
    ("fromJsonArray", "s", |w, a| array_or_error(from_json, w, a)),
    ("toYaml", "a", to_yaml),
    ("mustToYaml", "a", to_yaml),
    ("toYamlPretty", "a", to_yaml),
    ("fromYaml", "s", |w, a| from_yaml(w, a).or_else(|e| error_dict(&mut w.heap, e))),
    ("mustFromYaml", "s", from_yaml),
    ("fromYamlArray", "s", |w, a| array_or_error(from_yaml, w, a)),
];

/// The bytes of a string.
pub(super) fn bytes<'v>(val: &'v Val<'_>) -> &'v [u8] {
    match val {
        Val::Str(s) => s.bytes(),
        _ => &[],
    }
}

/// A dictionary that says what went wrong, as Helm's conversions answer.
pub(super) fn error_dict<'a>(heap: &mut Heap<'a>, error: String) -> Result<Val<'a>> {
    heap.adopt(Value::Object(object::map! { "Error" => error }))
}

/// What a conversion gives if that is a list; else a list with the error.
fn array_or_error<'a>(convert: super::Run, w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    match convert(w, a) {
        Ok(Val::Nil) => w.heap.list(Vec::new()),
        Ok(list @ Val::List(_)) => Ok(list),
        Ok(other) => {
            let kind = other.kind();
            w.heap.adopt(Value::from(vec![format!("cannot unmarshal {kind} into a list")]))
        }
        Err(e) => w.heap.adopt(Value::from(vec![e])),
    }
}

fn to_json<'a>(w: &mut World<'a>, a: &[Val<'a>], write: fn(&Value) -> String) -> Result<Val<'a>> {
    let value = w.heap.export(&arg(a, 0))?;
    w.heap.string(write(&value))
}

fn from_json<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let text = text(a, 0);
    w.heap.charge(text.len())?;
    let mut value = json::parse(text.as_bytes()).map_err(|e| e.to_string())?;
    floats(&mut value);
    w.heap.adopt(value)
}

/// Go's JSON reads every number as a float.
fn floats(value: &mut Value) {
    match value {
        Value::Int(i) => *value = Value::Float(*i as f64),
        Value::Array(items) => items.iter_mut().for_each(floats),
        Value::Object(members) => members.values_mut().for_each(floats),
        _ => {}
    }
}

fn to_yaml<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let value = w.heap.export(&arg(a, 0))?;
    let text = yaml::to_string(&value);
    w.heap.string(text.trim_end_matches('\n'))
}

fn from_yaml<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let text = text(a, 0);
    w.heap.charge(text.len())?;
    let value = object::yaml::parse(text.as_bytes())?;
    w.heap.adopt(value)
}

/// JSON with `<`, `>` and `&` as they are.
fn raw(value: &Value) -> String {
    json::to_string(value).replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")
}

/// JSON with an indentation of two.
fn pretty(value: &Value, depth: usize) -> String {
    let pad = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    let key = |k: &str| {
        let mut out = String::new();
        json::write_string(&mut out, k);
        out
    };
    let lines: Vec<String> = match value {
        Value::Array(items) => items.iter().map(|i| format!("{pad}{}", pretty(i, depth + 1))).collect(),
        Value::Object(members) => {
            members.iter().map(|(k, v): (&str, &Value)| format!("{pad}{}: {}", key(k), pretty(v, depth + 1))).collect()
        }
        other => return json::to_string(other),
    };
    let (open, close) = if matches!(value, Value::Array(_)) { ('[', ']') } else { ('{', '}') };
    if lines.is_empty() {
        return format!("{open}{close}");
    }
    format!("{open}\n{}\n{end}{close}", lines.join(",\n"))
}

/// Where base 64 stops being it, about as Go counts.
fn illegal(text: &[u8]) -> usize {
    let alphabet = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let end = text.iter().position(|b| !alphabet(b)).unwrap_or(text.len());
    let padding = text[end..].iter().take_while(|b| **b == b'=').count();
    if end + padding == text.len() && padding <= 2 { (text.len() / 4) * 4 } else { end }
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let bits = chunk.iter().enumerate().fold(0u64, |n, (i, b)| n | u64::from(*b) << (32 - 8 * i));
        let used = (chunk.len() * 8).div_ceil(5);
        for i in 0..8 {
            out.push(if i < used { char::from(BASE32[(bits >> (35 - 5 * i) & 31) as usize]) } else { '=' });
        }
    }
    out
}

fn from_base32(text: &str) -> std::result::Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    let digits = text.iter().rposition(|b| *b != b'=').map_or(0, |i| i + 1);
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0u32, 0);
    for (i, b) in text[..digits].iter().enumerate() {
        let digit = BASE32.iter().position(|d| d == b).ok_or(i)? as u32;
        bits = bits << 5 | digit;
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    let whole = text.len().is_multiple_of(8) && matches!(digits % 8, 0 | 2 | 4 | 5 | 7);
    if whole { Ok(out) } else { Err(text.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_32_goes_both_ways() {
        for (plain, coded) in [("", ""), ("f", "MY======"), ("foo", "MZXW6==="), ("foobar", "MZXW6YTBOI======")] {
            assert_eq!(base32(plain.as_bytes()), coded);
            assert_eq!(from_base32(coded), Ok(plain.as_bytes().to_vec()));
        }
        assert_eq!(from_base32("M1======"), Err(1));
    }
}
