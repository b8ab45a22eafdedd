//! Go's `fmt`: values by verb.

use crate::float;
use crate::value::{Heap, MAX_NESTING, Result, Special, TOO_DEEP, Val};
use object::go;
use std::fmt::Write;

/// The most that printing one value may write, in bytes.
const MAX_TEXT: usize = 16 << 20;

/// The flags of a verb.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flags {
    pub width: Option<usize>,
    pub precision: Option<usize>,
    pub minus: bool,
    pub plus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    /// `%+v`
    pub plus_v: bool,
    /// `%#v`
    pub sharp_v: bool,
}

pub(crate) struct Printer<'h, 'a> {
    heap: &'h Heap<'a>,
    pub out: String,
    pub flags: Flags,
}

/// Values as `fmt.Sprint` prints them: a space between two that are no strings.
pub(crate) fn sprint<'a>(heap: &Heap<'a>, values: &[Val<'a>]) -> Result<String> {
    let mut p = Printer::new(heap);
    let mut previous = true;
    for (i, value) in values.iter().enumerate() {
        let string = matches!(value, Val::Str(_));
        if i > 0 && !string && !previous {
            p.out.push(' ');
        }
        p.arg(value, 'v')?;
        previous = string;
    }
    Ok(p.out)
}

/// Values as `fmt.Sprintln` prints them.
pub(crate) fn sprintln<'a>(heap: &Heap<'a>, values: &[Val<'a>]) -> Result<String> {
    let mut p = Printer::new(heap);
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            p.out.push(' ');
        }
        p.arg(value, 'v')?;
    }
    p.out.push('\n');
    Ok(p.out)
}

/// A value by `%v`.
pub(crate) fn plain<'a>(heap: &Heap<'a>, value: &Val<'a>) -> Result<String> {
    by_verb(heap, value, 'v')
}

/// A value by a verb without flags.
pub(crate) fn by_verb<'a>(heap: &Heap<'a>, value: &Val<'a>, verb: char) -> Result<String> {
    let mut p = Printer::new(heap);
    p.arg(value, verb)?;
    Ok(p.out)
}

impl<'h, 'a> Printer<'h, 'a> {
    pub fn new(heap: &'h Heap<'a>) -> Self {
        Printer { heap, out: String::new(), flags: Flags::default() }
    }

    /// An operand.
    pub fn arg(&mut self, value: &Val<'a>, verb: char) -> Result<()> {
        match (value, verb) {
            (Val::Nil, 'T' | 'v') => self.pad("<nil>"),
            (Val::Nil, _) => {
                let _ = write!(self.out, "%!{verb}(<nil>)");
                Ok(())
            }
            (_, 'T') => {
                let name = self.heap.type_name(value);
                self.string(name, 's', value, 0)
            }
            _ => self.value(value, verb, 0),
        }
    }

    fn value(&mut self, value: &Val<'a>, verb: char, depth: usize) -> Result<()> {
        if depth > MAX_NESTING {
            return Err(TOO_DEEP.to_owned());
        }
        if self.out.len() > MAX_TEXT {
            return Err("a value is too large to print".to_owned());
        }
        match value {
            // Only within something else.
            Val::Nil if self.flags.sharp_v => {
                self.out.push_str("interface {}(nil)");
                Ok(())
            }
            Val::Nil => {
                self.out.push_str("<nil>");
                Ok(())
            }
            Val::Bool(b) => match verb {
                't' | 'v' => self.pad(if *b { "true" } else { "false" }),
                _ => self.bad_verb(verb, value, depth),
            },
            Val::Int(i, t) => self.integer(*i, t.is_unsigned(), verb, value, depth),
            Val::Float(f) => self.float(*f, verb, value, depth),
            Val::Complex(re, im) => self.complex(*re, *im, verb, value, depth),
            Val::Str(s) => match std::str::from_utf8(s.bytes()) {
                Ok(text) => self.string(text, verb, value, depth),
                Err(_) if matches!(verb, 'x' | 'X') => self.hex(s.bytes(), verb),
                Err(_) => self.string(&s.text(), verb, value, depth),
            },
            // Only errors can be wrapped.
            Val::List(_) | Val::Map(_) | Val::Special(_) if verb == 'w' => self.bad_verb(verb, value, depth),
            Val::List(list) => {
                let heap = self.heap;
                self.open(value, "[");
                for i in 0..heap.len(*list) {
                    self.separate(i);
                    if let Some(item) = heap.item(*list, i) {
                        self.value(&item, verb, depth + 1)?;
                    }
                }
                self.close(']');
                Ok(())
            }
            Val::Map(dict) => {
                let heap = self.heap;
                self.open(value, "map[");
                for (i, (key, member)) in heap.members(*dict).iter().enumerate() {
                    self.separate(i);
                    self.string(key, verb, &Val::str(key.as_str()), depth + 1)?;
                    self.out.push(':');
                    self.value(member, verb, depth + 1)?;
                }
                self.close(']');
                Ok(())
            }
            Val::Special(s) => self.special(s, verb, value, depth),
        }
    }

    fn open(&mut self, value: &Val<'a>, plain: &str) {
        if self.flags.sharp_v {
            self.out.push_str(self.heap.type_name(value));
            self.out.push('{');
        } else {
            self.out.push_str(plain);
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.push_str(if self.flags.sharp_v { ", " } else { " " });
        }
    }

    fn close(&mut self, plain: char) {
        self.out.push(if self.flags.sharp_v { '}' } else { plain });
    }

    fn special(&mut self, special: &Special, verb: char, value: &Val<'a>, depth: usize) -> Result<()> {
        let stringable = matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') && !self.flags.sharp_v;
        match special {
            Special::Duration(d) if !stringable => self.integer(*d, false, verb, value, depth),
            Special::Struct(name, fields) => {
                if self.flags.sharp_v {
                    self.out.push_str(name);
                }
                self.out.push('{');
                for (i, (key, text)) in fields.iter().enumerate() {
                    self.separate(i);
                    if self.flags.plus_v || self.flags.sharp_v {
                        let _ = write!(self.out, "{key}:");
                    }
                    self.string(text, verb, &Val::str(text.as_str()), depth + 1)?;
                }
                self.out.push('}');
                Ok(())
            }
            _ => {
                let text = match special {
                    Special::Time(t) => crate::funcs::time::string(t),
                    Special::Duration(d) => crate::funcs::time::duration_string(*d),
                    Special::Version(v) => v.to_string(),
                    Special::Struct(..) => String::new(),
                };
                if stringable || self.flags.sharp_v {
                    self.string(&text, if self.flags.sharp_v { 's' } else { verb }, value, depth)
                } else {
                    self.bad_verb(verb, value, depth)
                }
            }
        }
    }

    fn bad_verb(&mut self, verb: char, value: &Val<'a>, depth: usize) -> Result<()> {
        let _ = write!(self.out, "%!{verb}({}=", self.heap.type_name(value));
        self.value(value, 'v', depth + 1)?;
        self.out.push(')');
        Ok(())
    }

    fn padding(&mut self, count: usize, zero: bool) {
        self.out.extend(std::iter::repeat_n(if zero { '0' } else { ' ' }, count));
    }

    fn pad_with(&mut self, text: &str, zero: bool) -> Result<()> {
        let width = self.flags.width.unwrap_or(0);
        let missing = width.saturating_sub(if width == 0 { 0 } else { text.chars().count() });
        if self.out.len() + missing + text.len() > MAX_TEXT {
            return Err("a value is too large to print".to_owned());
        }
        if self.flags.minus {
            self.out.push_str(text);
            self.padding(missing, false);
        } else {
            self.padding(missing, zero);
            self.out.push_str(text);
        }
        Ok(())
    }

    fn pad(&mut self, text: &str) -> Result<()> {
        self.pad_with(text, self.flags.zero)
    }

    fn string(&mut self, text: &str, verb: char, value: &Val<'a>, depth: usize) -> Result<()> {
        let cut = || match self.flags.precision {
            Some(p) => text.char_indices().nth(p).map_or(text, |(i, _)| &text[..i]),
            None => text,
        };
        match verb {
            'v' | 's' if !(verb == 'v' && self.flags.sharp_v) => {
                let cut = cut();
                self.pad(cut)
            }
            'q' | 'v' => {
                let cut = cut();
                self.quoted(cut)
            }
            'x' | 'X' => self.hex(text.as_bytes(), verb),
            _ => self.bad_verb(verb, value, depth),
        }
    }

    fn quoted(&mut self, text: &str) -> Result<()> {
        let can_backquote =
            || !text.chars().any(|c| c == '`' || c == '\u{feff}' || c == '\u{7f}' || (c < ' ' && c != '\t'));
        let quoted = if self.flags.sharp && can_backquote() {
            format!("`{text}`")
        } else if self.flags.plus {
            ascii(&go::quote(text))
        } else {
            go::quote(text)
        };
        self.pad(&quoted)
    }

    fn hex(&mut self, bytes: &[u8], verb: char) -> Result<()> {
        let length = self.flags.precision.map_or(bytes.len(), |p| p.min(bytes.len()));
        let upper = verb == 'X';
        let prefix = match (self.flags.sharp, upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        let mut text = String::with_capacity(length * 2 + 2);
        for (i, byte) in bytes[..length].iter().enumerate() {
            if i == 0 || self.flags.space {
                text.push_str(if i > 0 { " " } else { "" });
                text.push_str(prefix);
            }
            let _ = if upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
        }
        self.pad(&text)
    }

    fn integer(&mut self, i: i64, unsigned: bool, verb: char, value: &Val<'a>, depth: usize) -> Result<()> {
        let (negative, magnitude) = (!unsigned && i < 0, if unsigned { i as u64 } else { i.unsigned_abs() });
        let as_char = || u32::try_from(i).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
        match verb {
            'v' if self.flags.sharp_v && unsigned => self.digits(negative, format!("{magnitude:x}"), "0x"),
            'v' | 'd' => self.digits(negative, magnitude.to_string(), ""),
            'b' => self.digits(negative, format!("{magnitude:b}"), if self.flags.sharp { "0b" } else { "" }),
            'o' | 'O' => {
                let prefix = match (verb, self.flags.sharp) {
                    ('O', false) => "0o",
                    ('O', true) => "0o0",
                    (_, true) => "0",
                    _ => "",
                };
                self.digits(negative, format!("{magnitude:o}"), prefix)
            }
            'x' => self.digits(negative, format!("{magnitude:x}"), if self.flags.sharp { "0x" } else { "" }),
            'X' => self.digits(negative, format!("{magnitude:X}"), if self.flags.sharp { "0X" } else { "" }),
            'c' => self.pad(as_char().encode_utf8(&mut [0; 4])),
            'q' => {
                let quoted = go::quote_char(as_char());
                let quoted = if self.flags.plus { ascii(&quoted) } else { quoted };
                self.pad(&quoted)
            }
            'U' => {
                let digits = self.flags.precision.unwrap_or(4).max(4);
                let mut text = format!("U+{:0digits$X}", i as u64);
                let char = u32::try_from(i).ok().and_then(char::from_u32);
                if let Some(c) = char.filter(|c| self.flags.sharp && go::is_print(*c)) {
                    let _ = write!(text, " '{c}'");
                }
                self.pad_with(&text, false)
            }
            _ => self.bad_verb(verb, value, depth),
        }
    }

    /// The digits of an integer, with sign, leading zeros and the prefix of the base.
    fn digits(&mut self, negative: bool, digits: String, prefix: &str) -> Result<()> {
        let signed = negative || self.flags.plus || self.flags.space;
        let least = match (self.flags.precision, self.flags.width) {
            (Some(0), _) if digits == "0" => {
                let width = self.flags.width.unwrap_or(0);
                self.padding(width, false);
                return Ok(());
            }
            (Some(p), _) => p,
            (None, Some(w)) if self.flags.zero && !self.flags.minus => w.saturating_sub(usize::from(signed)),
            _ => 0,
        };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        // An octal number that starts with a zero needs no other.
        let prefix = match prefix {
            "0" if zeros.starts_with('0') || digits.starts_with('0') => "",
            "0o0" if zeros.starts_with('0') || digits.starts_with('0') => "0o",
            p => p,
        };
        let sign = match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        self.pad_with(&format!("{sign}{prefix}{zeros}{digits}"), false)
    }

    fn float(&mut self, f: f64, verb: char, value: &Val<'a>, depth: usize) -> Result<()> {
        let (format, default) = match verb {
            'v' => ('g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
            'f' | 'F' => ('f', Some(6)),
            'e' | 'E' => (verb, Some(6)),
            _ => return self.bad_verb(verb, value, depth),
        };
        let precision = self.flags.precision.or(default);
        let text = float::format(f, format, precision);
        let unsigned = text.trim_start_matches(['-', '+']);
        let negative = text.starts_with('-');
        let sign = match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ if f == f64::INFINITY => "+",
            _ => "",
        };
        if !f.is_finite() {
            return self.pad_with(&format!("{sign}{unsigned}"), false);
        }
        let number =
            if self.flags.sharp && format != 'b' { with_point(unsigned, format, precision) } else { unsigned.into() };
        let length = number.len() + sign.len();
        match self.flags.width {
            Some(w) if self.flags.zero && !self.flags.minus && w > length => {
                self.out.push_str(sign);
                self.padding(w - length, true);
                self.out.push_str(&number);
                Ok(())
            }
            _ => self.pad(&format!("{sign}{number}")),
        }
    }

    fn complex(&mut self, re: f64, im: f64, verb: char, value: &Val<'a>, depth: usize) -> Result<()> {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(verb, value, depth);
        }
        let plus = self.flags.plus;
        self.out.push('(');
        self.float(re, verb, value, depth)?;
        self.flags.plus = true;
        self.float(im, verb, value, depth)?;
        self.out.push_str("i)");
        self.flags.plus = plus;
        Ok(())
    }
}

/// The sharp flag's form of a float: always a point, and trailing zeros kept where digits are counted.
fn with_point(number: &str, format: char, precision: Option<usize>) -> String {
    let hex = matches!(format, 'x' | 'X');
    let exponent = number.find(if hex { ['p', 'P'] } else { ['e', 'E'] });
    let (mantissa, tail) = number.split_at(exponent.unwrap_or(number.len()));
    let mut out = mantissa.to_owned();
    let mut missing = if matches!(format, 'g' | 'G' | 'x') { precision.unwrap_or(6) as i64 } else { 0 };
    let mut seen = false;
    for c in mantissa.chars().filter(|c| *c != '.') {
        seen |= c != '0';
        missing -= i64::from(seen);
    }
    if !mantissa.contains('.') {
        missing -= i64::from(mantissa == "0");
        out.push('.');
    }
    out.extend(std::iter::repeat_n('0', usize::try_from(missing).unwrap_or(0)));
    out + tail
}

/// A quoted text with everything beyond ASCII escaped.
fn ascii(quoted: &str) -> String {
    let mut out = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        let _ = match c as u32 {
            0..0x80 => write!(out, "{c}"),
            code @ 0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        };
    }
    out
}
