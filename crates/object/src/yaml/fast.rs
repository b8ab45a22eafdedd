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
        // Without branches, so that many are looked at together.
        let has_usual_bytes = bytes.iter().fold(true, |usual, b| usual & ((*b == b'\n') | (b' '..=b'~').contains(b)));
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
mod tests;
