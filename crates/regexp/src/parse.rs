//! The parser of Go's pattern syntax, as `regexp.Compile` reads it.
//!
//! The pattern is read once from left to right with a stack of open groups. Errors are found in Go's order and carry the
//! part of the pattern that Go shows.

use crate::class;
use crate::tree::{MAX_HEIGHT, MAX_REPEAT, MAX_SIZE, Node, Quantifier};
use regex_syntax::hir::{Capture, ClassUnicode, ClassUnicodeRange, Dot, Hir, Look};

/// The most ranges of classes a pattern may have. Go allows eight times as many.
const MAX_RANGES: usize = 2 << 20;

/// What is wrong, and the part of the pattern to show.
pub(crate) type Wrong = (&'static str, String);

/// The names of groups from 1 on, where they have one.
pub(crate) type Names = Vec<Option<Box<str>>>;

const INVALID_RANGE: &str = "invalid character class range";
const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_PERL: &str = "invalid or unsupported Perl syntax";
const INVALID_REPEAT: &str = "invalid repeat count";
const MISSING_ARGUMENT: &str = "missing argument to repetition operator";

/// The flags `(?imsU)`.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_newline: bool,
    swap_greed: bool,
}

/// An open group.
#[derive(Debug, Default)]
struct Group {
    /// The flags outside.
    flags: Flags,
    captures: bool,
    /// Its number, if groups are asked for.
    number: Option<u32>,
    /// The finished alternatives.
    ways: Vec<Node>,
    /// The parts of the current alternative.
    parts: Vec<Node>,
    /// How many code points in a row end the current alternative.
    run: usize,
}

struct Parser<'p> {
    pattern: &'p str,
    /// Where the next thing starts.
    at: usize,
    flags: Flags,
    groups: Vec<Group>,
    /// The innermost group.
    group: Group,
    /// How many nodes Go would have made, less those it would have made anew from old ones.
    nodes: u64,
    /// The product of all counts seen.
    repeats: u64,
    /// Whether the cheap bounds on the size no longer do.
    sized: bool,
    ranges: usize,
    /// The names of the groups so far, if they are asked for.
    names: Option<Names>,
}

/// Parses a pattern.
pub(crate) fn parse(pattern: &str) -> Result<Hir, Wrong> {
    Ok(parser(pattern).parse()?.0)
}

/// Parses a pattern whose groups are asked for. The names are those of the groups from 1 on.
pub(crate) fn parse_groups(pattern: &str) -> Result<(Hir, Names), Wrong> {
    let (hir, names) = Parser { names: Some(Vec::new()), ..parser(pattern) }.parse()?;
    Ok((hir, names.unwrap_or_default()))
}

fn parser(pattern: &str) -> Parser<'_> {
    Parser {
        pattern,
        at: 0,
        flags: Flags::default(),
        groups: Vec::new(),
        group: Group::default(),
        nodes: 0,
        repeats: 1,
        sized: false,
        ranges: 0,
        names: None,
    }
}

impl<'p> Parser<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn from(&self, start: usize) -> String {
        self.pattern.get(start..self.at).unwrap_or_default().to_owned()
    }

    fn peek(&self) -> Option<u8> {
        self.pattern.as_bytes().get(self.at).copied()
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn parse(mut self) -> Result<(Hir, Option<Names>), Wrong> {
        // Where the last thing started, if it was a repetition.
        let mut last_repeat = None;
        while let Some(b) = self.peek() {
            let start = self.at;
            let mut repeat = None;
            match b {
                b'(' if self.rest().starts_with("(?") => self.perl_group()?,
                b'(' => {
                    self.at += 1;
                    self.open_capture(None);
                }
                b'|' => {
                    self.at += 1;
                    self.nodes += 1;
                    self.end_way()?;
                }
                b')' => {
                    self.at += 1;
                    self.close()?;
                }
                b'^' => self.assertion(1, if self.flags.multi_line { Look::StartLF } else { Look::Start })?,
                b'$' => self.assertion(1, if self.flags.multi_line { Look::EndLF } else { Look::End })?,
                b'.' => {
                    self.at += 1;
                    let dot = if self.flags.dot_newline { Dot::AnyChar } else { Dot::AnyCharExceptLF };
                    self.push(Node::any(dot))?;
                }
                b'[' => self.class()?,
                b'*' | b'+' | b'?' => {
                    self.at += 1;
                    let quantifier = match b {
                        b'*' => Quantifier::Star,
                        b'+' => Quantifier::Plus,
                        _ => Quantifier::Quest,
                    };
                    self.repeat(quantifier, start, last_repeat)?;
                    repeat = Some(start);
                }
                b'{' => match self.counts() {
                    None => {
                        self.at = start + 1;
                        self.literal(Some('{'))?;
                    }
                    Some((min, max)) => {
                        let (Some(min), Some(max)) = (min, max) else {
                            return Err((INVALID_REPEAT, self.from(start)));
                        };
                        if u64::from(min) > MAX_REPEAT
                            || max.is_some_and(|max| u64::from(max) > MAX_REPEAT || min > max)
                        {
                            return Err((INVALID_REPEAT, self.from(start)));
                        }
                        self.repeat(Quantifier::Counted(min, max), start, last_repeat)?;
                        repeat = Some(start);
                    }
                },
                b'\\' => self.backslash()?,
                _ => {
                    let c = self.next_char();
                    self.literal(c)?;
                }
            }
            last_repeat = repeat;
        }
        self.end_way()?;
        if !self.groups.is_empty() {
            return Err(("missing closing )", self.pattern.to_owned()));
        }
        let ways = std::mem::take(&mut self.group.ways);
        let node = Node::alternate(ways);
        self.check(&node)?;
        Ok((node.hir, self.names))
    }

    /// Opens a group that captures, in Go; `name` is its name.
    fn open_capture(&mut self, name: Option<&str>) {
        self.open(true);
        if let Some(names) = &mut self.names {
            names.push(name.map(Into::into));
            self.group.number = u32::try_from(names.len()).ok();
        }
    }

    fn open(&mut self, captures: bool) {
        self.nodes += 1;
        let group = Group { flags: self.flags, captures, ..Group::default() };
        self.groups.push(std::mem::replace(&mut self.group, group));
    }

    /// Ends an alternative.
    fn end_way(&mut self) -> Result<(), Wrong> {
        let parts = std::mem::take(&mut self.group.parts);
        self.group.run = 0;
        let way = if parts.is_empty() { Node::empty() } else { Node::concat(parts) };
        self.check(&way)?;
        self.group.ways.push(way);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Wrong> {
        self.end_way()?;
        let Some(outer) = self.groups.pop() else {
            return Err(("unexpected )", self.pattern.to_owned()));
        };
        let inner = std::mem::replace(&mut self.group, outer);
        self.flags = inner.flags;
        let node = Node::alternate(inner.ways);
        self.check(&node)?;
        let node = self.numbered(node, inner.number);
        let node = if inner.captures { node.capture() } else { Node { is_char: false, ..node } };
        self.nodes = self.nodes.saturating_sub(1);
        self.push(node)
    }

    /// The part as a group that is asked for.
    fn numbered(&self, node: Node, number: Option<u32>) -> Node {
        let Some(index) = number else { return node };
        let name = self.names.as_ref().and_then(|names| names.get(index as usize - 1).cloned().flatten());
        Node { hir: Hir::capture(Capture { index, name, sub: Box::new(node.hir) }), ..node }
    }

    /// Adds a part to the current alternative.
    fn push(&mut self, node: Node) -> Result<(), Wrong> {
        self.nodes += 1;
        if node.is_char {
            self.group.run += 1;
            if self.group.run > 2 {
                // Go puts code points in a row into one node.
                self.nodes -= 1;
            }
        } else {
            self.group.run = 0;
        }
        self.check(&node)?;
        self.group.parts.push(node);
        Ok(())
    }

    /// Applies Go's limits to a new node.
    fn check(&mut self, node: &Node) -> Result<(), Wrong> {
        self.sized |= self.nodes >= MAX_SIZE / self.repeats.clamp(1, MAX_SIZE);
        if (self.sized && node.size > MAX_SIZE) || self.ranges > MAX_RANGES {
            return Err(("expression too large", self.pattern.to_owned()));
        }
        if node.height > MAX_HEIGHT {
            return Err(("expression nests too deeply", self.pattern.to_owned()));
        }
        Ok(())
    }

    fn assertion(&mut self, width: usize, look: Look) -> Result<(), Wrong> {
        self.at += width;
        self.push(Node::look(look))
    }

    fn literal(&mut self, c: Option<char>) -> Result<(), Wrong> {
        self.push(Node::char(c, self.flags.fold))
    }

    fn class_node(&mut self, class: ClassUnicode) -> Result<(), Wrong> {
        self.ranges += class.ranges().len();
        self.push(Node::class(class))
    }

    /// Applies a quantifier that starts at `start` and was read up to here.
    fn repeat(&mut self, quantifier: Quantifier, start: usize, last_repeat: Option<usize>) -> Result<(), Wrong> {
        let mut greedy = !self.flags.swap_greed;
        if self.peek() == Some(b'?') {
            self.at += 1;
            greedy = !greedy;
        }
        if let Some(last) = last_repeat {
            return Err(("invalid nested repetition operator", self.from(last)));
        }
        let Some(node) = self.group.parts.pop() else {
            return Err((MISSING_ARGUMENT, self.from(start)));
        };
        self.group.run = 0;
        self.nodes += 1;
        if let Quantifier::Counted(min, max) = quantifier {
            let count = u64::from(max.unwrap_or(min).max(1));
            self.repeats = self.repeats.saturating_mul(count).min(MAX_SIZE);
        }
        let node = node.repeat(quantifier, greedy);
        self.check(&node)?;
        if matches!(quantifier, Quantifier::Counted(min, max) if min >= 2 || max >= Some(2))
            && node.repeats > MAX_REPEAT
        {
            return Err((INVALID_REPEAT, self.from(start)));
        }
        self.group.parts.push(node);
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; none if it is something else. A number too large is none of its own.
    #[allow(clippy::type_complexity)]
    fn counts(&mut self) -> Option<(Option<u32>, Option<Option<u32>>)> {
        self.at += 1;
        let min = self.count()?;
        let max = if self.peek()? == b',' {
            self.at += 1;
            if self.peek()? == b'}' { Some(None) } else { self.count()?.map(Some) }
        } else {
            min.map(Some)
        };
        if self.peek()? != b'}' {
            return None;
        }
        self.at += 1;
        Some((min, max))
    }

    /// Reads a number without leading zeros.
    fn count(&mut self) -> Option<Option<u32>> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest.get(..digits).filter(|n| !n.is_empty() && (*n == "0" || !n.starts_with('0')))?;
        self.at += digits;
        Some(number.parse().ok().filter(|n| *n < 1_000_000_000))
    }

    /// Reads what starts with `(?`: a named group, flags, or a group with flags.
    fn perl_group(&mut self) -> Result<(), Wrong> {
        let (start, rest) = (self.at, self.rest());
        let name_at = if rest.starts_with("(?P<") && rest.len() > 4 {
            Some(4)
        } else if rest.starts_with("(?<") && rest.len() > 3 {
            Some(3)
        } else {
            None
        };
        if let Some(name_at) = name_at {
            const INVALID: &str = "invalid named capture";
            let Some(end) = rest.find('>') else {
                return Err((INVALID, rest.to_owned()));
            };
            let name = rest.get(name_at..end).unwrap_or_default();
            self.at += end + 1;
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return Err((INVALID, self.from(start)));
            }
            self.open_capture(Some(name));
            return Ok(());
        }
        self.at += 2;
        let mut flags = self.flags;
        let (mut on, mut saw_flag) = (true, false);
        while let Some(c) = self.next_char() {
            match c {
                'i' => flags.fold = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_newline = on,
                'U' => flags.swap_greed = on,
                '-' if on => {
                    (on, saw_flag) = (false, false);
                    continue;
                }
                ':' | ')' if on || saw_flag => {
                    if c == ':' {
                        self.open(false);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err((INVALID_PERL, self.from(start)))
    }

    fn backslash(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        let rest = self.rest();
        match rest.as_bytes().get(1) {
            Some(b'A') => return self.assertion(2, Look::Start),
            Some(b'b') => return self.assertion(2, Look::WordAscii),
            Some(b'B') => return self.assertion(2, Look::WordAsciiNegate),
            Some(b'z') => return self.assertion(2, Look::End),
            Some(b'C') => {
                self.at += 2;
                return Err((INVALID_ESCAPE, self.from(start)));
            }
            Some(b'Q') => {
                let quoted = rest.get(2..).unwrap_or_default();
                let (quoted, width) = quoted.split_once("\\E").map_or((quoted, 0), |(quoted, _)| (quoted, 2));
                self.at += 2 + quoted.len() + width;
                for c in quoted.chars() {
                    self.literal(Some(c))?;
                }
                return Ok(());
            }
            _ => {}
        }
        if let Some(class) = self.unicode_class()? {
            return self.class_node(class);
        }
        if let Some(class) = self.perl_class() {
            return self.class_node(class);
        }
        let c = self.escape()?;
        self.literal(char::from_u32(c))
    }

    /// A class as the flags want it, negated or not.
    fn adapted(&self, mut class: ClassUnicode, negated: bool) -> ClassUnicode {
        if self.flags.fold {
            class::fold(&mut class);
        }
        if negated {
            class.negate();
        }
        class
    }

    /// Reads `\d`, `\D` and the like, if one is here.
    fn perl_class(&mut self) -> Option<ClassUnicode> {
        let letter = self.rest().strip_prefix('\\')?.bytes().next()?;
        let class = class::perl(letter.to_ascii_lowercase())?;
        self.at += 2;
        Some(self.adapted(class, letter.is_ascii_uppercase()))
    }

    /// Reads `\pL`, `\P{Greek}` and the like, if one is here.
    fn unicode_class(&mut self) -> Result<Option<ClassUnicode>, Wrong> {
        let (start, rest) = (self.at, self.rest());
        let mut negated = match rest.as_bytes() {
            [b'\\', b'p', ..] => false,
            [b'\\', b'P', ..] => true,
            _ => return Ok(None),
        };
        self.at += 2;
        let name = if self.peek() == Some(b'{') {
            let Some(end) = rest.find('}') else {
                return Err((INVALID_RANGE, rest.to_owned()));
            };
            self.at = start + end + 1;
            rest.get(3..end)
        } else {
            self.next_char();
            rest.get(2..self.at - start)
        };
        let mut name = name.unwrap_or_default();
        if let Some(positive) = name.strip_prefix('^') {
            (negated, name) = (!negated, positive);
        }
        let class = class::unicode(name).ok_or_else(|| (INVALID_RANGE, self.from(start)))?;
        Ok(Some(self.adapted(class, negated)))
    }

    /// Reads `[:alpha:]` or `[:^alpha:]`, if one is here.
    fn posix_class(&mut self) -> Result<Option<ClassUnicode>, Wrong> {
        let (start, rest) = (self.at, self.rest());
        let Some((name, _)) = rest.strip_prefix("[:").and_then(|inner| inner.split_once(":]")) else {
            return Ok(None);
        };
        self.at += name.len() + 4;
        let (negated, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let class = class::posix(name).ok_or_else(|| (INVALID_RANGE, self.from(start)))?;
        Ok(Some(self.adapted(class, negated)))
    }

    /// Reads `[...]`.
    fn class(&mut self) -> Result<(), Wrong> {
        let start = self.at;
        self.at += 1;
        let negated = self.peek() == Some(b'^');
        if negated {
            self.at += 1;
        }
        // Collected as ranges: a union of classes for each would be quadratic.
        let mut ranges: Vec<ClassUnicodeRange> = Vec::new();
        let mut folded: Vec<ClassUnicodeRange> = Vec::new();
        let mut first = true;
        while first || self.peek() != Some(b']') {
            first = false;
            if let Some(class) = self.posix_class()? {
                ranges.extend_from_slice(class.ranges());
                continue;
            }
            if let Some(class) = self.unicode_class()? {
                ranges.extend_from_slice(class.ranges());
                if ranges.len() > MAX_RANGES {
                    return Err(("expression too large", self.pattern.to_owned()));
                }
                continue;
            }
            if let Some(class) = self.perl_class() {
                ranges.extend_from_slice(class.ranges());
                continue;
            }
            let item = self.at;
            let from = self.class_char(start)?;
            let mut to = from;
            if let [b'-', after, ..] = self.rest().as_bytes()
                && *after != b']'
            {
                self.at += 1;
                to = self.class_char(start)?;
                if to < from {
                    return Err((INVALID_RANGE, self.from(item)));
                }
            }
            folded.extend(scalar_range(from, to));
        }
        self.at += 1;
        let mut class = ClassUnicode::new(folded);
        if self.flags.fold {
            class::fold(&mut class);
        }
        ranges.extend_from_slice(class.ranges());
        let mut class = ClassUnicode::new(ranges);
        if negated {
            class.negate();
        }
        self.class_node(class)
    }

    fn class_char(&mut self, class: usize) -> Result<u32, Wrong> {
        if self.peek() == Some(b'\\') {
            return self.escape();
        }
        match self.next_char() {
            Some(c) => Ok(u32::from(c)),
            None => Err(("missing closing ]", self.from(class))),
        }
    }

    /// Reads an escaped code point. It may be a surrogate.
    fn escape(&mut self) -> Result<u32, Wrong> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.next_char() else {
            return Err(("trailing backslash at end of expression", String::new()));
        };
        let octal = |b: Option<u8>| b.filter(|b| (b'0'..=b'7').contains(b));
        match c {
            '0'..='7' if c == '0' || octal(self.peek()).is_some() => {
                let mut value = u32::from(c) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = octal(self.peek()) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                return Ok(value);
            }
            'x' => {
                if let Some(value) = self.hexadecimal() {
                    return Ok(value);
                }
            }
            'a' => return Ok(7),
            'f' => return Ok(12),
            'n' => return Ok(10),
            'r' => return Ok(13),
            't' => return Ok(9),
            'v' => return Ok(11),
            _ if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok(u32::from(c)),
            _ => {}
        }
        Err((INVALID_ESCAPE, self.from(start)))
    }

    /// Reads what follows `\x`; on an error, up to where Go would.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next_char()?;
        if first != '{' {
            let second = self.next_char()?;
            return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
        }
        let (mut value, mut digits) = (0u32, 0);
        loop {
            let c = self.next_char()?;
            if c == '}' {
                return (digits > 0).then_some(value);
            }
            value = value * 16 + c.to_digit(16)?;
            if value > u32::from(char::MAX) {
                return None;
            }
            digits += 1;
        }
    }
}

/// The code points from one to another that are no surrogates.
fn scalar_range(from: u32, to: u32) -> Option<ClassUnicodeRange> {
    let from = if (0xD800..=0xDFFF).contains(&from) { 0xE000 } else { from };
    let to = if (0xD800..=0xDFFF).contains(&to) { 0xD7FF } else { to };
    if from > to {
        return None;
    }
    Some(ClassUnicodeRange::new(char::from_u32(from)?, char::from_u32(to)?))
}
