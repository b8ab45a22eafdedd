//! Writing YAML as Go's `sigs.k8s.io/yaml` does: members sorted, lists not indented, long texts folded at 80 columns.

use object::{Value, go};

/// Where long texts are folded.
const WIDTH: usize = 80;

/// The YAML text of a value.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => write_block(&mut out, value, 0),
        Value::Array(items) if !items.is_empty() => write_block(&mut out, value, 0),
        other => {
            write_scalar(&mut out, other, 0, 0);
            out.push('\n');
        }
    }
    out
}

/// A map or list with content, at an indentation; the cursor is at the start of a line, indented already.
fn write_block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) => {
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    push_indent(out, indent);
                }
                let start = out.len();
                write_text(out, key, None, indent);
                out.push(':');
                let column = indent + out.len() - start;
                write_member(out, value, indent, column);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    push_indent(out, indent);
                }
                out.push_str("- ");
                match item {
                    Value::Object(members) if !members.is_empty() => write_block(out, item, indent + 2),
                    Value::Array(inner) if !inner.is_empty() => write_block(out, item, indent + 2),
                    scalar => {
                        write_scalar(out, scalar, indent + 2, indent + 2);
                        out.push('\n');
                    }
                }
            }
        }
        _ => {}
    }
}

/// What follows a key and its colon.
fn write_member(out: &mut String, value: &Value, indent: usize, column: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            push_indent(out, indent + 2);
            write_block(out, value, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            push_indent(out, indent);
            write_block(out, value, indent);
        }
        scalar => {
            out.push(' ');
            write_scalar(out, scalar, indent + 2, column + 1);
            out.push('\n');
        }
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(out: &mut String, value: &Value, indent: usize, column: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(f) => out.push_str(&go::float(*f)),
        Value::String(text) => write_text(out, text, Some(column), indent),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// A text; without a column it is a key, which is never folded.
fn write_text(out: &mut String, text: &str, column: Option<usize>, indent: usize) {
    if text.is_empty() || resolves(text) || unprintable(text) {
        return write_quoted(out, text, column, indent);
    }
    if text.contains('\n') {
        if column.is_none() || text.starts_with([' ', '\n', '\t']) || text.contains(" \n") {
            return write_quoted(out, text, column, indent);
        }
        return write_literal(out, text, indent);
    }
    if !plain(text) {
        let mut folder = Folder::new(out, column, indent);
        folder.push('\'');
        for c in text.chars() {
            if c == '\'' {
                folder.push(c);
            }
            folder.push(c);
        }
        folder.push('\'');
        return;
    }
    let mut folder = Folder::new(out, column, indent);
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if c == ' ' && before != ' ' && folder.is_over() && chars.peek().is_some_and(|n| *n != ' ') {
            folder.fold();
        } else {
            folder.push(c);
        }
        before = c;
    }
}

struct Folder<'o> {
    out: &'o mut String,
    column: Option<usize>,
    indent: usize,
}

impl<'o> Folder<'o> {
    fn new(out: &'o mut String, column: Option<usize>, indent: usize) -> Self {
        Folder { out, column, indent }
    }

    fn push(&mut self, c: char) {
        self.out.push(c);
        if let Some(column) = &mut self.column {
            *column += 1;
        }
    }

    fn is_over(&self) -> bool {
        self.column.is_some_and(|c| c > WIDTH)
    }

    fn fold(&mut self) {
        self.out.push('\n');
        push_indent(self.out, self.indent);
        if let Some(column) = &mut self.column {
            *column = self.indent;
        }
    }
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    let body = match text.strip_suffix('\n') {
        Some(body) if body.ends_with('\n') || body.is_empty() => {
            out.push('+');
            body
        }
        Some(body) => body,
        None => {
            out.push('-');
            text
        }
    };
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            push_indent(out, indent);
            out.push_str(line);
        }
    }
}

fn write_quoted(out: &mut String, text: &str, column: Option<usize>, indent: usize) {
    let mut folder = Folder::new(out, column, indent);
    folder.push('"');
    let mut chars = text.chars().peekable();
    let mut first = true;
    let mut before = 'x';
    while let Some(c) = chars.next() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\0' => "\\0",
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\u{b}' => "\\v",
            '\u{c}' => "\\f",
            '\u{1b}' => "\\e",
            '\u{85}' => "\\N",
            '\u{a0}' => "\\_",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            ' ' if !first && before != ' ' && folder.is_over() && chars.peek().is_some() => {
                folder.fold();
                if chars.peek() == Some(&' ') {
                    folder.push('\\');
                }
                before = c;
                continue;
            }
            c if printable(c) => {
                folder.push(c);
                before = c;
                first = false;
                continue;
            }
            c => {
                let code = c as u32;
                let text = match code {
                    0..0x100 => format!("\\x{code:02X}"),
                    0x100..0x1_0000 => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                text.chars().for_each(|c| folder.push(c));
                before = c;
                first = false;
                continue;
            }
        };
        escape.chars().for_each(|c| folder.push(c));
        before = c;
        first = false;
    }
    folder.push('"');
}

fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a1}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        && !matches!(c, '\u{2028}' | '\u{2029}')
}

fn unprintable(text: &str) -> bool {
    text.chars().any(|c| !printable(c) && c != '\n')
}

/// Whether a reader would take the text for something else than a text.
fn resolves(text: &str) -> bool {
    const WORDS: [&str; 26] = [
        "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF", "true",
        "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL", "~",
    ];
    if WORDS.contains(&text) || text == "<<" {
        return true;
    }
    let first = text.chars().next().unwrap_or_default();
    if !(first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return false;
    }
    let lower = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return true;
    }
    is_number(text) || is_time(text) || is_sexagesimal(text)
}

fn is_number(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let body = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(digits) = body.strip_prefix(prefix) {
            return !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        }
    }
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['+', '-']).unwrap_or(e))),
        None => (body, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

/// `12:30:45` is a number of YAML 1.1.
fn is_sexagesimal(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = body.split(':');
    let first = parts.next().is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit() || b == b'_'));
    let mut more = 0;
    let rest = parts.all(|p| {
        more += 1;
        let p = p.split('.').next().unwrap_or_default();
        matches!(p.len(), 1 | 2) && p.bytes().all(|b| b.is_ascii_digit()) && p.parse::<u8>().is_ok_and(|n| n < 60)
    });
    first && rest && more > 0
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|b| b.iter().all(u8::is_ascii_digit));
    if !(digits(0..4) && bytes.get(4) == Some(&b'-')) {
        return false;
    }
    match text.len() {
        10 => digits(5..7) && bytes.get(7) == Some(&b'-') && digits(8..10),
        _ => {
            let date = text.split(['T', 't', ' ']).next().unwrap_or_default();
            let parts: Vec<&str> = date.split('-').collect();
            parts.len() == 3
                && parts.iter().all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
                && date.len() < text.len()
                && text.contains(':')
        }
    }
}

/// Whether a text of one line can stand without quotes.
fn plain(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    let second = chars.next();
    if text.starts_with("---") || text.starts_with("...") || text.starts_with(' ') || text.ends_with(' ') {
        return false;
    }
    match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => return false,
        '?' | ':' | '-' if second.is_none_or(|c| c == ' ') => return false,
        _ => {}
    }
    !(text.contains(": ") || text.ends_with(':') || text.contains(" #"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn values_are_written_as_in_go() {
        let text = br##"{"a":{"b":[{"c":1,"d":[]},"x"],"e":{}},"t":"true","n":"5","s":"a: b","m":"x\ny\n","q":"it's","d":"2020-01-01T00:00:00Z","z":null,"h":"#x","w":"a\nb","f":1.5,"o":"\""}"##;
        let wanted = "a:\n  b:\n  - c: 1\n    d: []\n  - x\n  e: {}\nd: \"2020-01-01T00:00:00Z\"\nf: 1.5\nh: '#x'\nm: |\n  x\n  y\n\"n\": \"5\"\no: '\"'\nq: it's\ns: 'a: b'\nt: \"true\"\nw: |-\n  a\n  b\nz: null\n";
        assert_eq!(to_string(&json::parse(text).unwrap()), wanted);
    }

    #[test]
    fn what_is_written_reads_back() {
        let texts = [
            "", "-", "- a", "a#b", "a #b", "0x1f", "1e3", "12:30", ".5", "null", "\u{1}", "a\tb", "x: ", "%", "...",
            " a",
        ];
        for text in texts.iter().map(|t| t.to_string()).chain([format!("{} b", "word ".repeat(40))]) {
            let value = Value::Array(vec![Value::from(text.as_str())]);
            assert_eq!(object::yaml::parse(to_string(&value).as_bytes()), Ok(value), "{text:?}");
        }
    }
}
