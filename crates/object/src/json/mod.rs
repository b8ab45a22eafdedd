//! JSON, read and written as the API server's Go libraries do it.
//!
//! Reading keeps integers apart from floats, lets the last of repeated keys win, replaces broken UTF-8 by U+FFFD and
//! words its errors as Go's `encoding/json` does. [`parse_strict`] also tells which keys were repeated; [`ordered`]
//! keeps the members in the order of the text.

pub mod ordered;

use crate::scan::{self, below, equal, every};
use crate::{Map, Value, go};
use compact_str::CompactString;
use std::fmt;

/// How deep arrays and objects may nest. (Go allows 10,000; no schema describes such an object.)
pub const MAX_DEPTH: usize = 1000;

/// Why a text is not JSON, in Go's words, and where: the offset in bytes that was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
    /// The offset in bytes at which reading stopped.
    pub offset: usize,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Reads one JSON value; only white space may follow it.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    parse_noting(text).map(|(value, _)| value)
}

/// Like [`parse`], and beside the value whether any object has a key more than once.
pub fn parse_noting(text: &[u8]) -> Result<(Value, bool), Error> {
    let mut reader = Reader::new(text);
    let value = reader.value()?;
    reader.end_of_document()?;
    Ok((value, reader.repeats))
}

/// Like [`parse`], and beside the value the paths of the repeated keys, see [`ordered::Ordered::repeated`].
pub fn parse_strict(text: &[u8]) -> Result<(Value, Vec<String>), Error> {
    let (value, repeats) = parse_noting(text)?;
    let repeated = if repeats { ordered::Ordered::parse(text)?.repeated() } else { Vec::new() };
    Ok((value, repeated))
}

struct Reader<'t> {
    text: &'t [u8],
    /// The whole text, if it is valid UTF-8: then its strings need not be looked at one by one.
    valid: Option<&'t str>,
    at: usize,
    depth: usize,
    /// The members of the objects that are being read, and the items of the arrays: each is allocated once, when its
    /// size is known.
    members: Vec<(CompactString, Value)>,
    items: Vec<Value>,
    /// Whether any key was repeated.
    repeats: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t [u8]) -> Self {
        Reader {
            text,
            valid: std::str::from_utf8(text).ok(),
            at: 0,
            depth: 0,
            members: Vec::new(),
            items: Vec::new(),
            repeats: false,
        }
    }

    /// Refuses what follows the value.
    fn end_of_document(&mut self) -> Result<(), Error> {
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.unexpected("after top-level value"));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value, Error> {
        self.skip_space();
        match self.text.get(self.at) {
            None => Err(self.end()),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn object(&mut self) -> Result<Value, Error> {
        let first = self.members.len();
        let mut more = self.enter(b'}')?;
        while more {
            let key = self.key()?;
            let value = self.value()?;
            self.members.push((key, value));
            more = self.another(b'}', "after object key:value pair")?;
        }
        let members: Vec<(CompactString, Value)> = self.members.drain(first..).collect();
        let count = members.len();
        let members = Map::from(members);
        self.repeats |= members.len() < count;
        Ok(Value::Object(members))
    }

    fn array(&mut self) -> Result<Value, Error> {
        let first = self.items.len();
        let mut more = self.enter(b']')?;
        while more {
            let item = self.value()?;
            self.items.push(item);
            more = self.another(b']', "after array element")?;
        }
        Ok(Value::Array(self.items.drain(first..).collect()))
    }

    /// Goes into a collection; tells whether there is anything in it before the bracket that ends it.
    // The steps of reading a collection are functions, and the loop over them is not: it recurses, and stacks are small.
    fn enter(&mut self, end: u8) -> Result<bool, Error> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("exceeded max depth".to_owned()));
        }
        self.skip_space();
        if self.text.get(self.at) == Some(&end) {
            self.leave();
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads a key and the colon behind it.
    fn key(&mut self) -> Result<CompactString, Error> {
        self.skip_space();
        match self.text.get(self.at) {
            None => return Err(self.end()),
            Some(b'"') => {}
            Some(_) => return Err(self.unexpected("looking for beginning of object key string")),
        }
        let key = self.string()?;
        self.skip_space();
        match self.text.get(self.at) {
            None => return Err(self.end()),
            Some(b':') => self.at += 1,
            Some(_) => return Err(self.unexpected("after object key")),
        }
        Ok(key)
    }

    /// Goes over what stands behind a member or item; tells whether another one follows.
    fn another(&mut self, end: u8, place: &str) -> Result<bool, Error> {
        self.skip_space();
        match self.text.get(self.at) {
            None => Err(self.end()),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(b) if *b == end => {
                self.leave();
                Ok(false)
            }
            Some(_) => Err(self.unexpected(place)),
        }
    }

    fn leave(&mut self) {
        self.at += 1;
        self.depth -= 1;
    }

    fn string(&mut self) -> Result<CompactString, Error> {
        self.at += 1;
        let start = self.at;
        // Most strings have no escapes: find the end first and take the bytes as they are.
        let rest = &self.text[start..];
        let stop = scan::position(rest, ends_plain_text);
        match stop {
            Some(n) if rest[n] == b'"' => {
                self.at = start + n + 1;
                Ok(match self.valid.and_then(|text| text.get(start..start + n)) {
                    Some(text) => text.into(),
                    None => CompactString::from_utf8_lossy(&rest[..n]),
                })
            }
            _ => self.string_with_escapes(start),
        }
    }

    fn string_with_escapes(&mut self, start: usize) -> Result<CompactString, Error> {
        let mut bytes = Vec::new();
        self.at = start;
        loop {
            let Some(&b) = self.text.get(self.at) else { return Err(self.end()) };
            match b {
                b'"' => {
                    self.at += 1;
                    return Ok(CompactString::from_utf8_lossy(&bytes));
                }
                b'\\' => {
                    self.at += 1;
                    self.escape(&mut bytes)?;
                }
                0..0x20 => return Err(self.unexpected("in string literal")),
                _ => {
                    bytes.push(b);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let Some(&b) = self.text.get(self.at) else { return Err(self.end()) };
        let plain = match b {
            b'"' | b'\\' | b'/' => b,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.at += 1;
                let unit = self.hex4()?;
                let c = self.code_point(unit);
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        bytes.push(plain);
        self.at += 1;
        Ok(())
    }

    /// Joins a surrogate pair; a surrogate alone becomes U+FFFD, as in Go.
    fn code_point(&mut self, unit: u32) -> char {
        if (0xd800..0xdc00).contains(&unit) && self.text[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            if let Ok(low @ 0xdc00..0xe000) = self.hex4() {
                return char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}');
            }
            self.at = before;
        }
        char::from_u32(unit).unwrap_or('\u{fffd}')
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(&b) = self.text.get(self.at) else { return Err(self.end()) };
            let Some(digit) = (b as char).to_digit(16) else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        let mut float = false;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            None => return Err(self.end()),
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) => return Err(self.unexpected("in numeric literal")),
        }
        if self.text.get(self.at) == Some(&b'.') {
            float = true;
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            float = true;
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if !float && let Ok(i) = text.parse::<i64>() {
            return Ok(Value::Int(i));
        }
        match text.parse::<f64>() {
            Ok(f) if f.is_finite() => Ok(Value::Float(f)),
            _ => Err(self.error(format!("json: cannot unmarshal number {text} into Go value of type float64"))),
        }
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, place: &str) -> Result<(), Error> {
        match self.text.get(self.at) {
            None => Err(self.end()),
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(_) => Err(self.unexpected(place)),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        for expected in word.bytes() {
            match self.text.get(self.at) {
                None => return Err(self.end()),
                Some(&b) if b == expected => self.at += 1,
                Some(_) => {
                    let expected = go::quote_char(expected as char);
                    return Err(self.unexpected(&format!("in literal {word} (expecting {expected})")));
                }
            }
        }
        Ok(value)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    fn unexpected(&self, place: &str) -> Error {
        let c = self.text.get(self.at).map_or('\u{fffd}', |b| *b as char);
        let c = match c {
            '"' => "'\"'".to_owned(),
            c => go::quote_char(c),
        };
        self.error(format!("invalid character {c} {place}"))
    }

    fn end(&self) -> Error {
        self.error("unexpected end of JSON input".to_owned())
    }

    fn error(&self, message: String) -> Error {
        Error { message, offset: self.at }
    }
}

/// The JSON text of a value: no spaces, keys sorted, `<`, `>`, `&` escaped as Go's encoder does.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

/// [`to_string`] as bytes.
pub fn to_vec(value: &Value) -> Vec<u8> {
    to_string(value).into_bytes()
}

/// Appends the JSON text of a value.
pub fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(i) => {
            let _ = fmt::Write::write_fmt(out, format_args!("{i}"));
        }
        Value::Float(f) => out.push_str(&go::json_float(*f)),
        Value::String(s) => write_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (k, v)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(out, k);
                out.push(':');
                write(out, v);
            }
            out.push('}');
        }
    }
}

/// Appends a string as a JSON literal.
pub fn write_string(out: &mut String, s: &str) {
    out.reserve(s.len() + 2);
    out.push('"');
    let (mut clean, mut from) = (0, 0);
    // What needs no escape, which is most, is passed over many bytes at a time.
    while let Some(step) = scan::position(&s.as_bytes()[from..], may_need_escape) {
        let i = from + step;
        from = i + 1;
        let b = s.as_bytes()[i];
        let escape: &str = match b {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            b'<' => "\\u003c",
            b'>' => "\\u003e",
            b'&' => "\\u0026",
            0xe2 if s[i..].starts_with('\u{2028}') => "\\u2028",
            0xe2 if s[i..].starts_with('\u{2029}') => "\\u2029",
            0..0x20 => {
                out.push_str(&s[clean..i]);
                let _ = fmt::Write::write_fmt(out, format_args!("\\u{b:04x}"));
                clean = i + 1;
                continue;
            }
            _ => continue,
        };
        out.push_str(&s[clean..i]);
        out.push_str(escape);
        clean = i + if b == 0xe2 { 3 } else { 1 };
    }
    out.push_str(&s[clean..]);
    out.push('"');
}

/// Marks the bytes that are more than the text of a string: the quote at its end, an escape, a control character.
#[inline(always)]
fn ends_plain_text(word: u64) -> u64 {
    equal(word, b'"') | equal(word, b'\\') | below(word, 0x20)
}

/// Marks the bytes that Go escapes, or the first of such a character.
#[inline(always)]
fn may_need_escape(word: u64) -> u64 {
    // Two pairs differ in one bit: `"` and `&`, `<` and `>`.
    let pairs = equal(word & !every(4), b'"') | equal(word | every(2), b'>');
    pairs | equal(word, b'\\') | equal(word, 0xe2) | below(word, 0x20)
}

#[cfg(test)]
mod tests;
