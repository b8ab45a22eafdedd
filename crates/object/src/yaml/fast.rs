//! A quick reader of the YAML that people and programs mostly write: block mappings and sequences of plain and quoted
//! scalars, literal blocks, flow collections on a line. Whatever is more than that it gives back unread, complaints and
//! errors above all, so that there is one place where these are worded.

use super::Key;
use super::scalar::{key_name, scalar};
use crate::{Map, Value};
use compact_str::CompactString;
use saphyr_parser::ScalarStyle;

/// Deeper nesting is left to the other reader.
const MAX_DEPTH: usize = 64;
/// Longer keys are left to the other reader, which refuses some.
const MAX_KEY: usize = 1000;

/// Reads documents of a text. Every method gives `None` where the text is unusual; nothing more can be read then.
pub(super) struct Fast<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// Where reading goes on: within a line, or at its first character that is no space.
    at: usize,
    /// Where the line starts, and its number from 1.
    line_start: usize,
    line: usize,
    /// How many spaces are before the first other character of the line.
    column: usize,
    /// Whether there is nothing more in this document.
    ended: bool,
}

/// What lay between a line with content and the next one.
#[derive(Default)]
struct Gap {
    blank_lines: usize,
    has_comment: bool,
}

impl<'t> Fast<'t> {
    /// Nothing if the text holds characters that mean something elsewhere than in the usual YAML.
    pub fn new(text: &'t str) -> Option<Self> {
        let is_usual = |c: char| match c {
            '\n' | ' '..='~' => true,
            '\u{a0}'.. => !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'),
            _ => false,
        };
        let bytes = text.as_bytes();
        let has_usual_bytes = bytes.iter().all(|b| matches!(b, b'\n' | b' '..=b'~'));
        if !has_usual_bytes && !text.chars().all(is_usual) {
            return None;
        }
        let mut fast = Fast { text, bytes, at: 0, line_start: 0, line: 1, column: 0, ended: false };
        fast.first_line()?;
        Some(fast)
    }

    /// The next document, and the line on which its content starts; within `Some`, nothing after the last one.
    pub fn document(&mut self) -> Option<Option<(Value, usize)>> {
        let had_marker = self.is_marker();
        if had_marker {
            self.at += 3;
            self.next_line()?;
        }
        if self.ended {
            // An empty document is the other reader's.
            return (!had_marker && self.at == self.bytes.len()).then_some(None);
        }
        let line = self.line;
        let value = match self.byte() {
            Some(b'[' | b'{') => {
                let value = self.flow(0, true)?;
                self.end_line()?;
                value
            }
            _ => self.block(None, 0)?,
        };
        self.ended.then_some(Some((value, line)))
    }

    /// All documents.
    pub fn documents(mut self) -> Option<Vec<(Value, usize)>> {
        let mut all = Vec::new();
        while let Some(document) = self.document()? {
            all.push(document);
        }
        Some(all)
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Whether a document starts on this line.
    fn is_marker(&self) -> bool {
        self.at == self.line_start && matches!(self.rest(), [b'-', b'-', b'-'] | [b'-', b'-', b'-', b'\n', ..])
    }

    /// Whether this is the dash of an item.
    fn is_dash(&self) -> bool {
        matches!(self.rest(), [b'-'] | [b'-', b' ' | b'\n', ..])
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().iter().take_while(|b| **b == b' ').count();
    }

    /// Where the line ends.
    fn line_end(&self) -> usize {
        memchr::memchr(b'\n', self.rest()).map_or(self.bytes.len(), |length| self.at + length)
    }

    /// Whether nothing but spaces and a comment is left of the line.
    fn is_line_over(&mut self) -> bool {
        let before = self.at;
        self.skip_spaces();
        match self.byte() {
            None | Some(b'\n') => true,
            Some(b'#') => self.at > before || self.at.checked_sub(1).is_some_and(|i| self.bytes.get(i) == Some(&b' ')),
            _ => false,
        }
    }

    /// Goes to the next line with content; nothing else may be left of this one.
    fn end_line(&mut self) -> Option<Gap> {
        if self.is_line_over() { self.next_line() } else { None }
    }

    fn first_line(&mut self) -> Option<()> {
        let mut gap = Gap::default();
        self.find_content(&mut gap)
    }

    /// Goes to the next line with content, whatever is left of this one.
    fn next_line(&mut self) -> Option<Gap> {
        let mut gap = Gap { has_comment: self.byte() == Some(b'#'), ..Gap::default() };
        self.ended = false;
        self.at = self.line_end();
        self.start_line();
        self.find_content(&mut gap)?;
        Some(gap)
    }

    /// Goes from the end of a line to the start of the next one.
    fn start_line(&mut self) {
        if self.at < self.bytes.len() {
            self.at += 1;
            self.line += 1;
        }
        self.line_start = self.at;
    }

    /// Goes on from the start of a line to the first character of a line with content.
    fn find_content(&mut self, gap: &mut Gap) -> Option<()> {
        loop {
            self.skip_spaces();
            match self.byte() {
                None => {
                    self.ended = true;
                    return Some(());
                }
                Some(b'\n') => gap.blank_lines += 1,
                Some(b'#') => {
                    gap.has_comment = true;
                    self.at = self.line_end();
                }
                Some(_) => break,
            }
            self.start_line();
        }
        self.column = self.at - self.line_start;
        if self.column == 0 && (self.rest().starts_with(b"---") || self.rest().starts_with(b"...")) {
            self.ended = true;
            return self.is_marker().then_some(());
        }
        Some(())
    }

    /// The value that starts on this line, within a collection that starts in the column `parent`.
    fn block(&mut self, parent: Option<usize>, depth: usize) -> Option<Value> {
        let column = self.column;
        if self.is_dash() {
            return self.sequence(column, depth);
        }
        match (self.key()?, parent) {
            (Some(key), _) => self.mapping(column, key, depth),
            (None, Some(parent)) => self.inline(parent, depth),
            (None, None) => None,
        }
    }

    fn sequence(&mut self, column: usize, depth: usize) -> Option<Value> {
        let depth = deeper(depth)?;
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let item = if self.is_line_over() {
                self.next_line()?;
                if !self.ended && self.column > column { self.block(Some(column), depth)? } else { Value::Null }
            } else {
                let inner = self.at - self.line_start;
                match self.is_dash() {
                    true => self.sequence(inner, depth)?,
                    false => match self.key()? {
                        Some(key) => self.mapping(inner, key, depth)?,
                        None => self.inline(column, depth)?,
                    },
                }
            };
            items.push(item);
            if self.ended || self.column < column || self.column == column && !self.is_dash() {
                return Some(Value::Array(items));
            }
            if self.column > column {
                return None;
            }
        }
    }

    /// The mapping in `column`, of whose first key the colon has been read.
    fn mapping(&mut self, column: usize, mut key: CompactString, depth: usize) -> Option<Value> {
        let depth = deeper(depth)?;
        let mut members = Vec::new();
        loop {
            let value = if !self.is_line_over() {
                self.inline(column, depth)?
            } else {
                self.next_line()?;
                match self.column {
                    _ if self.ended => Value::Null,
                    inner if inner > column => self.block(Some(column), depth)?,
                    inner if inner == column && self.is_dash() => self.sequence(column, depth)?,
                    _ => Value::Null,
                }
            };
            members.push((key, value));
            if self.ended || self.column < column {
                return object(members);
            }
            if self.column > column {
                return None;
            }
            key = self.key()??;
        }
    }

    /// The key that starts here, its colon read; within `Some`, nothing if it is no key.
    fn key(&mut self) -> Option<Option<CompactString>> {
        let start = self.at;
        let (text, style) = match self.byte()? {
            b'"' => (self.double_quoted()?, ScalarStyle::DoubleQuoted),
            b'\'' => (self.single_quoted()?, ScalarStyle::SingleQuoted),
            _ if !self.starts_plain() => return Some(None),
            _ => {
                let line = self.bytes.get(self.at..self.line_end()).unwrap_or_default();
                let Some(colon) = colon_of(line) else { return Some(None) };
                self.at += colon;
                (CompactString::from(self.text.get(start..self.at)?.trim_end_matches(' ')), ScalarStyle::Plain)
            }
        };
        match self.rest() {
            [b':'] | [b':', b' ' | b'\n', ..] if text.len() <= MAX_KEY => self.at += 1,
            [b':', ..] => return None,
            _ => {
                self.at = start;
                return Some(None);
            }
        }
        match key_name(&text, style, None) {
            Ok(Key::Name(name)) => Some(Some(name)),
            _ => None,
        }
    }

    /// A value that is no block collection, within a collection in the column `parent`; ends on the next line with
    /// content.
    fn inline(&mut self, parent: usize, depth: usize) -> Option<Value> {
        let value = match self.byte()? {
            b'"' => Value::String(self.double_quoted()?),
            b'\'' => Value::String(self.single_quoted()?),
            b'[' | b'{' => self.flow(depth, false)?,
            b'|' => return self.literal(parent),
            _ => return self.plain(parent),
        };
        self.end_line()?;
        Some(value)
    }

    /// Whether a plain scalar starts here.
    fn starts_plain(&self) -> bool {
        match self.rest() {
            [b'-', next, ..] => next.is_ascii_graphic(),
            [first, ..] => !b"-?:,[]{}#&*!|>'\"%@`".contains(first),
            [] => false,
        }
    }

    /// A plain scalar and the lines that go on with it.
    fn plain(&mut self, parent: usize) -> Option<Value> {
        if !self.starts_plain() {
            return None;
        }
        let (first, mut gap) = self.plain_line()?;
        let mut folded = String::new();
        while !self.ended && self.column > parent {
            // A dash would be text here; that is left to the other reader.
            if gap.has_comment || !self.starts_plain() || self.byte() == Some(b'-') {
                return None;
            }
            if folded.is_empty() {
                folded.push_str(first);
            }
            match gap.blank_lines {
                0 => folded.push(' '),
                lines => folded.extend(std::iter::repeat_n('\n', lines)),
            }
            let (line, next) = self.plain_line()?;
            folded.push_str(line);
            gap = next;
        }
        scalar(if folded.is_empty() { first } else { &folded }, ScalarStyle::Plain, None).ok()
    }

    /// What is left of the line, without its comment, and what comes before the next line.
    fn plain_line(&mut self) -> Option<(&'t str, Gap)> {
        let (start, end) = (self.at, self.line_end());
        let line = self.text.get(start..end)?;
        if colon_of(line.as_bytes()).is_some() {
            return None;
        }
        let text = match line.find(" #") {
            Some(comment) => {
                self.at = start + comment + 1;
                line.get(..comment)?
            }
            None => {
                self.at = end;
                line
            }
        };
        let gap = self.next_line()?;
        Some((text.trim_end_matches(' '), gap))
    }

    /// A scalar in single quotes that ends on the line.
    fn single_quoted(&mut self) -> Option<CompactString> {
        let quoted = self.text.get(self.at + 1..)?;
        let mut text = CompactString::default();
        let mut rest = quoted;
        loop {
            let (part, after) = rest.split_at(rest.find(['\'', '\n'])?);
            text.push_str(part);
            rest = after.strip_prefix('\'')?;
            match rest.strip_prefix('\'') {
                Some(after) => {
                    text.push('\'');
                    rest = after;
                }
                None => break,
            }
        }
        self.at += 1 + quoted.len() - rest.len();
        Some(text)
    }

    /// A scalar in double quotes that ends on the line and has common escapes only.
    fn double_quoted(&mut self) -> Option<CompactString> {
        let quoted = self.text.get(self.at + 1..)?;
        let mut text = CompactString::default();
        let mut rest = quoted;
        loop {
            let (part, after) = rest.split_at(rest.find(['"', '\\', '\n'])?);
            text.push_str(part);
            let mut after = after.chars();
            match after.next()? {
                '"' => {
                    rest = after.as_str();
                    break;
                }
                '\n' => return None,
                _ => {}
            }
            text.push(match after.next()? {
                escaped @ ('"' | '\\') => escaped,
                'n' => '\n',
                't' => '\t',
                _ => return None,
            });
            rest = after.as_str();
        }
        self.at += 1 + quoted.len() - rest.len();
        Some(text)
    }

    /// A literal block within a collection in the column `parent`.
    fn literal(&mut self, parent: usize) -> Option<Value> {
        let end = self.line_end();
        let header = self.text.get(self.at + 1..end)?;
        self.at = end;
        self.start_line();
        let mut indent = None;
        let mut text = String::new();
        while self.at < self.bytes.len() {
            let end = self.line_end();
            let line = self.text.get(self.at..end)?;
            let spaces = line.bytes().take_while(|b| *b == b' ').count();
            if spaces == line.len() {
                // Spaces that would be text.
                if spaces > indent.unwrap_or(0) {
                    return None;
                }
            } else {
                let indent = *indent.get_or_insert(spaces);
                if spaces < indent {
                    break;
                }
                if indent <= parent {
                    return None;
                }
                text.push_str(line.get(indent..)?);
            }
            // A last line that does not end.
            if end == self.bytes.len() {
                return None;
            }
            text.push('\n');
            self.at = end;
            self.start_line();
        }
        indent?;
        let kept = text.trim_end_matches('\n').len();
        match header {
            "" => text.truncate(kept + 1),
            "-" => text.truncate(kept),
            "+" => {}
            _ => return None,
        }
        self.ended = false;
        self.find_content(&mut Gap::default())?;
        Some(Value::String(text.into()))
    }

    /// A flow collection; only one that is the whole document may go over lines.
    fn flow(&mut self, depth: usize, is_root: bool) -> Option<Value> {
        let depth = deeper(depth)?;
        let is_list = self.byte()? == b'[';
        let close = if is_list { b']' } else { b'}' };
        self.at += 1;
        let (mut items, mut members) = (Vec::new(), Vec::new());
        loop {
            self.flow_space(is_root)?;
            if self.byte()? == close {
                break;
            }
            if is_list {
                items.push(self.flow_value(depth, is_root)?);
            } else {
                members.push(self.flow_member(depth, is_root)?);
            }
            self.flow_space(is_root)?;
            match self.byte()? {
                b',' => self.at += 1,
                b if b == close => break,
                _ => return None,
            }
        }
        self.at += 1;
        if is_list { Some(Value::Array(items)) } else { object(members) }
    }

    fn flow_member(&mut self, depth: usize, is_root: bool) -> Option<(CompactString, Value)> {
        let (text, style) = self.flow_scalar()?;
        let Ok(Key::Name(key)) = key_name(&text, style, None) else { return None };
        if key.len() > MAX_KEY {
            return None;
        }
        match self.rest() {
            [b':', b' ' | b'\n', ..] => self.at += 1,
            [b',' | b'}', ..] => return Some((key, Value::Null)),
            _ => return None,
        }
        self.flow_space(is_root)?;
        Some((key, self.flow_value(depth, is_root)?))
    }

    fn flow_value(&mut self, depth: usize, is_root: bool) -> Option<Value> {
        if matches!(self.byte()?, b'[' | b'{') {
            return self.flow(depth, is_root);
        }
        let (text, style) = self.flow_scalar()?;
        scalar(&text, style, None).ok()
    }

    fn flow_scalar(&mut self) -> Option<(CompactString, ScalarStyle)> {
        match self.byte()? {
            b'"' => Some((self.double_quoted()?, ScalarStyle::DoubleQuoted)),
            b'\'' => Some((self.single_quoted()?, ScalarStyle::SingleQuoted)),
            _ => {
                let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"_./+-".contains(b);
                let length = self.rest().iter().take_while(|b| is_plain(b)).count();
                let text = self.text.get(self.at..self.at + length)?;
                if !text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/')) {
                    return None;
                }
                self.at += length;
                Some((text.into(), ScalarStyle::Plain))
            }
        }
    }

    /// Skips what may be between the parts of a flow collection.
    fn flow_space(&mut self, is_root: bool) -> Option<()> {
        self.skip_spaces();
        while self.byte() == Some(b'\n') {
            if !is_root {
                return None;
            }
            self.start_line();
            self.skip_spaces();
        }
        Some(())
    }
}

fn deeper(depth: usize) -> Option<usize> {
    (depth < MAX_DEPTH).then_some(depth + 1)
}

/// Where the colon is that ends a key at the start of a line; nothing if a comment comes before it.
fn colon_of(line: &[u8]) -> Option<usize> {
    let mut before = b' ';
    for (place, b) in line.iter().enumerate() {
        match b {
            b':' if matches!(line.get(place + 1), None | Some(b' ')) => return Some(place),
            b'#' if before == b' ' => return None,
            _ => {}
        }
        before = *b;
    }
    None
}

/// An object, unless a key is there twice.
fn object(members: Vec<(CompactString, Value)>) -> Option<Value> {
    let length = members.len();
    let object: Map = members.into_iter().collect();
    (object.len() == length).then_some(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::super::{read_all, read_first};
    use super::*;
    use proptest::prelude::*;

    fn quick(text: &str) -> Option<Option<(Value, usize)>> {
        Fast::new(text)?.document()
    }

    /// What the quick reader reads, the other one reads alike and without complaints.
    fn is_alike(text: &str) -> Result<(), TestCaseError> {
        if let Some(first) = quick(text) {
            let value = first.map(|(value, _)| value).unwrap_or_default();
            prop_assert_eq!(read_first(text), Ok((value, Vec::new())), "{}", text);
        }
        if let Some(all) = Fast::new(text).and_then(Fast::documents) {
            prop_assert_eq!(read_all(text), Ok(all), "{}", text);
        }
        Ok(())
    }

    #[test]
    fn the_usual_is_read() {
        for text in [
            "",
            "# only\n",
            "apiVersion: v1\nkind: X\nmetadata:\n  name: a # the name\n  labels: {a: b, \"c\": 'd'}\nspec:\n- a\n- b: 1\n  c:\n  - d\n-\n  e: f\n",
            "---\na: |\n  one\n\n    two\nb: |-\n  x\nc: |+\n  y\n\n",
            "a: one\n  two\n\n  three\nb: \"x\\n\\\"y\\\"\"\nc: 'it''s'\n'd e': ~\n? \n".trim_end_matches("? \n"),
            "- - a\n  - b\n-   - c\n- --flag=1\n- -1\n- http://x:80/#y\n",
            "{\"a\": [1, 2.5, true,\n  x], b: {}, c}\n",
            "a: é\nb:\n    text\n  more\n---\nc: 1",
        ] {
            assert!(quick(text).is_some(), "{text}");
            is_alike(text).unwrap();
        }
    }

    #[test]
    fn the_unusual_is_left_to_the_other_reader() {
        for text in [
            "a: 1\na: 2",
            "a: &x 1",
            "a: *x",
            "a: !!str 1",
            "? a\n: b",
            "a: >\n  x\n",
            "a: |2\n    x\n",
            "a: \"x\n  y\"",
            "a: b: c",
            "a:\n - b\n  - c",
            "a: [b,\n  c]",
            "<<: {a: b}",
            "\ta: b",
            "a: b\r\n",
            "%YAML 1.1\n---\na: b",
            "--- a",
            "a: .inf",
            "x",
            "a:\n  b: 1\n c: 2",
            &"- ".repeat(70),
        ] {
            assert!(quick(text).is_none(), "{text:?}");
        }
    }

    /// A line or a part of one.
    fn part() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "\n",
            "\n",
            "\n",
            "\n",
            "\n  ",
            "\n  ",
            "\n    ",
            "\n ",
            " ",
            "  ",
            "- ",
            "- ",
            "-",
            "a: ",
            "b: ",
            "c:",
            "'d': ",
            "\"e\": ",
            "<<: ",
            "x",
            "y z",
            "1",
            "0x1f",
            "1.50",
            "yes",
            "~",
            "null",
            "-1",
            "'q'",
            "'it''s'",
            "\"q\"",
            "\"a\\nb\"",
            "\"\\x41\"",
            "[",
            "]",
            "{",
            "}",
            ", ",
            ",",
            ": ",
            ":",
            "#",
            " # c",
            "|",
            "|-",
            "|+",
            ">",
            "---",
            "---\n",
            "...",
            "&a ",
            "*a",
            "!t ",
            "? ",
            "%",
            "@",
            "é",
            "http://a:1/#b",
            "--x",
            "\t",
            "\r\n",
            "\u{85}",
            "\u{2028}",
            ".",
        ])
    }

    /// A document written as people write it, more or less.
    fn document() -> impl Strategy<Value = String> {
        let scalar = prop::sample::select(vec![
            "x",
            "some words",
            "1",
            "1.5",
            "true",
            "~",
            "",
            "'single'",
            "\"double\"",
            "-x",
            "a:b",
            "x#y",
            "x # c",
            "[a, 1]",
            "{a: b}",
            "[]",
            "{}",
            "{a, b: [c]}",
            "|\n@    one\n@\n@     two\n",
            "|-\n@  one\n\n",
            "|+\n@   x\n\n\n",
            "x\n@  y",
            "x\n\n@   y z",
            "\n@   x",
            ">\n@   x\n",
            "# c",
            "'a' # c",
            "[\"a\", 'b' , c ]",
            "a, b",
            "x]",
            "x - y",
            "\"a\\\\b\"",
        ]);
        // Lines, each with an `@` where the indentation around goes.
        let leaf = scalar.prop_map(|text| vec![text.to_owned()]);
        let nested = leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop::sample::select(vec!["a", "b", "c d", "'e'", "\"f\"", "1", "no", "g/h", "-k"]);
            let gap = prop::sample::select(vec!["", "", "", "", "@# c\n", "\n", "  \n"]);
            let indent = prop::sample::select(vec!["", "", "  ", "  ", " ", "    "]);
            let mapping =
                prop::collection::vec((key, inner.clone(), indent.clone(), gap.clone()), 1..4).prop_map(|members| {
                    let mut text = String::new();
                    for (key, value, indent, gap) in members {
                        text.push_str(gap);
                        text.push_str(&format!("@{key}:{}", under(&value, indent)));
                    }
                    vec![text, String::new()]
                });
            let sequence = prop::collection::vec((inner, indent, gap, any::<bool>()), 1..4).prop_map(|items| {
                let mut text = String::new();
                for (value, indent, gap, compact) in items {
                    text.push_str(gap);
                    match (compact, value.len()) {
                        (true, 2) => {
                            let body = value[0].replace('@', "@  ");
                            text.push_str(&format!("@- {}", body.trim_start_matches(['@', ' '])));
                        }
                        _ => text.push_str(&format!("@-{}", under(&value, indent))),
                    }
                }
                vec![text, String::new()]
            });
            prop_oneof![mapping, sequence]
        });
        nested.prop_map(|lines| lines[0].replace('@', ""))
    }

    /// A value below its key or dash: on the same line if it is a scalar.
    fn under(value: &[String], indent: &str) -> String {
        match value {
            [scalar] => format!(" {}\n", scalar.replace('@', "@  ")),
            [lines, ..] => format!("\n{}", lines.replace('@', &format!("@{indent}"))),
            [] => "\n".to_owned(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_parts_are_read_alike(parts in prop::collection::vec(part(), 0..16)) {
            is_alike(&parts.concat())?;
        }

        #[test]
        fn documents_are_read_alike(text in document(), end in any::<bool>()) {
            is_alike(if end { &text } else { text.trim_end_matches('\n') })?;
        }
    }
}
