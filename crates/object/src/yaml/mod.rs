//! YAML, read as the API server reads it: YAML 1.1 scalars (`yes` is true, `0777` is octal), merge keys, errors in the
//! words of Go's yaml package, and then everything as JSON would have it (`1.0` is the integer 1).

mod fast;
mod scalar;

use crate::{Map, Value, go, json, scan};
use compact_str::CompactString;
use fast::Fast;
use saphyr_parser::{Event, Parser, ScanError, Span, StrInput};
use scalar::{key_name, scalar};
use std::collections::{BTreeMap, HashSet};

/// How much the aliases of a document may add, as [`weight`] has it. Beyond that it is a bomb.
const MAX_ALIASED: usize = 100_000;
/// How much the anchors of a document may hold, each with all that is in it: anchors within anchors are kept again and
/// again.
const MAX_ANCHORED: usize = 2_000_000;

/// How many repeated keys are complained about.
const MAX_REPEATED: usize = 1000;

/// Reads the first document of a text. Of repeated keys the last one wins.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    parse_strict(text).map(|(value, _)| value)
}

/// Like [`parse`], and beside the value the complaints about repeated keys, the first thousand of them:
/// `line 7: key "a" already set in map`.
pub fn parse_strict(text: &[u8]) -> Result<(Value, Vec<String>), String> {
    let text = utf8(text)?;
    reject_leading_tab(text)?;
    if let Some(value) = plain_json(text) {
        return Ok((value, Vec::new()));
    }
    if let Some(value) = Fast::new(text).and_then(|mut fast| fast.document()) {
        return Ok((value.map(|(value, _)| value).unwrap_or_default(), Vec::new()));
    }
    read_first(text)
}

/// The first document of a text, by the reader that reads everything.
fn read_first(text: &str) -> Result<(Value, Vec<String>), String> {
    let mut reader = Reader::new(text);
    let value = reader.document()?.unwrap_or_default();
    Ok((value, reader.repeated))
}

/// Reads every document of a text, each with the line (from 1) on which its content starts. Empty documents are left out.
pub fn parse_all(text: &[u8]) -> Result<Vec<(Value, usize)>, String> {
    let text = utf8(text)?;
    if let Some(all) = Fast::new(text).and_then(Fast::documents) {
        return Ok(all);
    }
    read_all(text)
}

/// Every document of a text, by the reader that reads everything.
fn read_all(text: &str) -> Result<Vec<(Value, usize)>, String> {
    let mut reader = Reader::new(text);
    let mut out = Vec::new();
    while let Some(value) = reader.document()? {
        if !value.is_null() {
            out.push((value, reader.first_line));
        }
    }
    Ok(out)
}

/// The line (from 1) on which the value at a path stands: the n-th document (from 0, empty ones not counted) of a text,
/// then keys and list indices written out. Where the path leaves what is there, the line of the last part found.
pub fn locate(text: &str, document: usize, path: &[&str]) -> Option<usize> {
    let mut reader = Reader::new(text);
    reader.lines = Some(BTreeMap::new());
    let mut seen = 0;
    loop {
        let value = reader.document().ok()??;
        if value.is_null() {
            continue;
        }
        if seen == document {
            let lines = reader.lines.as_ref()?;
            let full: Vec<String> = path.iter().map(|s| (*s).to_owned()).collect();
            return (0..=full.len()).rev().find_map(|n| lines.get(&full[..n]).copied());
        }
        seen += 1;
        reader.lines = Some(BTreeMap::new());
    }
}

/// The value of a document that is JSON, which is read much faster. Nothing where YAML might read it in another way, or
/// where there is something to complain about.
fn plain_json(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(step) = scan::position(bytes.get(at..)?, may_differ) {
        let found = at + step;
        at = found + 1;
        let alike = match bytes.get(found)? {
            b'\n' => true,
            b'\\' => {
                at += 1;
                matches!(bytes.get(found + 1), Some(b'"' | b'\\' | b'n' | b't'))
            }
            // A quoted merge key.
            b'<' => found.checked_sub(1).is_none_or(|before| bytes.get(before) != Some(&b'"')),
            _ => false,
        };
        if !alike {
            return None;
        }
    }
    let (value, repeated) = json::parse_strict(text.as_bytes()).ok()?;
    (repeated.is_empty() && !holds_float(&value)).then_some(value)
}

/// Marks what JSON and YAML may read differently: all but printable ASCII, escapes, and what may be a merge key.
#[inline(always)]
fn may_differ(word: u64) -> u64 {
    let other = scan::below(word, b' ') | scan::equal(word, 0x7f) | word & scan::every(0x80);
    other | scan::equal(word, b'\\') | scan::equal(word, b'<')
}

fn holds_float(value: &Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Float(_) => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    false
}

/// Go's reader takes no tab where the first token is expected.
fn reject_leading_tab(text: &str) -> Result<(), String> {
    for (i, line) in text.lines().enumerate() {
        match line.trim_start_matches(' ').chars().next() {
            None | Some('#') => {}
            Some('\t') if i == 0 => return Err("yaml: found character that cannot start any token".to_owned()),
            Some('\t') => return Err(format!("yaml: line {}: found character that cannot start any token", i + 1)),
            Some(_) => return Ok(()),
        }
    }
    Ok(())
}

fn utf8(text: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(text).map_err(|e| {
        let offset = e.valid_up_to();
        let why =
            if e.error_len().is_some() { "invalid leading UTF-8 octet" } else { "incomplete UTF-8 octet sequence" };
        format!("yaml: offset {offset}: {why}")
    })
}

struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    repeated: Vec<String>,
    anchors: BTreeMap<usize, Value>,
    aliased: usize,
    anchored: usize,
    first_line: usize,
    /// The line of each value by path, when somebody asked for it.
    lines: Option<BTreeMap<Vec<String>, usize>>,
    path: Vec<String>,
}

/// A collection that is being read.
enum Open {
    List {
        items: Vec<Value>,
        anchor: usize,
    },
    Object {
        members: Vec<(CompactString, Value)>,
        /// The keys so far.
        names: HashSet<CompactString>,
        merged: Vec<Value>,
        key: Option<Key>,
        /// The line on which the value of the last key starts.
        value_line: usize,
        anchor: usize,
    },
}

enum Key {
    Name(CompactString),
    Merge,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Reader {
            text,
            parser: Parser::new_from_str(text),
            repeated: Vec::new(),
            anchors: BTreeMap::new(),
            aliased: 0,
            anchored: 0,
            first_line: 0,
            lines: None,
            path: Vec::new(),
        }
    }

    fn event(&mut self) -> Result<Option<(Event<'t>, Span)>, String> {
        self.parser.next_event().transpose().map_err(|e| error_text(&e, self.text))
    }

    /// The next document, or nothing after the last one.
    fn document(&mut self) -> Result<Option<Value>, String> {
        loop {
            match self.event()? {
                None | Some((Event::StreamEnd, _)) => return Ok(None),
                Some((Event::DocumentStart(_), _)) => break,
                Some(_) => {}
            }
        }
        self.anchors.clear();
        let mut open: Vec<Open> = Vec::new();
        let mut first = true;
        loop {
            let Some((event, span)) = self.event()? else { return Ok(None) };
            let line = span.start.line();
            if first {
                self.first_line = line;
                first = false;
            }
            if let Some(Open::Object { key: Some(_), value_line, .. }) = open.last_mut() {
                *value_line = line;
            }
            let done = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    if let Some(Open::Object { key: key @ None, .. }) = open.last_mut() {
                        let name = key_name(&text, style, tag.as_deref())?;
                        if anchor != 0 {
                            self.anchors.insert(anchor, Value::from(&*text));
                        }
                        *key = Some(name);
                        continue;
                    }
                    let value = scalar(&text, style, tag.as_deref())?;
                    self.mark(&open, line);
                    self.remember(anchor, &value)?;
                    value
                }
                Event::SequenceStart(anchor, _) => {
                    self.enter(&mut open, line, Open::List { items: Vec::new(), anchor })?;
                    continue;
                }
                Event::MappingStart(anchor, _) => {
                    let (members, names) = (Vec::new(), HashSet::new());
                    let object =
                        Open::Object { members, names, merged: Vec::new(), key: None, value_line: line, anchor };
                    self.enter(&mut open, line, object)?;
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let Some(closed) = open.pop() else {
                        return Err("yaml: unknown problem parsing YAML content".into());
                    };
                    self.path.pop();
                    self.close(closed)?
                }
                Event::Alias(anchor) => self.alias(anchor)?,
                Event::DocumentEnd => return Ok(Some(Value::Null)),
                _ => continue,
            };
            if open.is_empty() {
                return Ok(Some(done));
            }
            self.put(&mut open, done)?;
        }
    }

    fn enter(&mut self, open: &mut Vec<Open>, line: usize, collection: Open) -> Result<(), String> {
        if let Some(Open::Object { key: None, .. }) = open.last() {
            return Err("error converting YAML to JSON: unsupported map key".to_owned());
        }
        if open.len() >= json::MAX_DEPTH {
            return Err("yaml: exceeded max depth".to_owned());
        }
        self.mark(open, line);
        self.path.push(step(open));
        open.push(collection);
        Ok(())
    }

    fn mark(&mut self, open: &[Open], line: usize) {
        if let Some(lines) = &mut self.lines {
            let mut path: Vec<String> = self.path.get(1..).unwrap_or_default().to_vec();
            if !open.is_empty() {
                path.push(step(open));
            }
            lines.insert(path, line);
        }
    }

    fn remember(&mut self, anchor: usize, value: &Value) -> Result<(), String> {
        if anchor != 0 {
            self.anchored += weight(value);
            if self.anchored > MAX_ANCHORED {
                return Err("yaml: document contains excessive aliasing".to_owned());
            }
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize) -> Result<Value, String> {
        let value = self.anchors.get(&anchor).ok_or("yaml: unknown anchor referenced")?.clone();
        self.aliased += weight(&value);
        if self.aliased > MAX_ALIASED {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        Ok(value)
    }

    fn close(&mut self, closed: Open) -> Result<Value, String> {
        let (value, anchor) = match closed {
            Open::List { items, anchor } => (Value::Array(items), anchor),
            Open::Object { members, merged, anchor, .. } => {
                let mut object: Map = members.into_iter().collect();
                for other in merged {
                    for (k, v) in other.as_object().into_iter().flat_map(Map::iter) {
                        if !object.contains_key(k) {
                            object.insert(k, v.clone());
                        }
                    }
                }
                (Value::Object(object), anchor)
            }
        };
        self.remember(anchor, &value)?;
        Ok(value)
    }

    /// Puts a value that is read to its end into the innermost open collection.
    fn put(&mut self, open: &mut [Open], value: Value) -> Result<(), String> {
        match open.last_mut() {
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Object { members, names, merged, key, value_line, .. }) => match key.take() {
                Some(Key::Name(name)) => {
                    if !names.insert(name.clone()) && self.repeated.len() < MAX_REPEATED {
                        // Go complains when the value is there, and of the value's line.
                        let quoted = go::quote(&name);
                        self.repeated.push(format!("line {value_line}: key {quoted} already set in map"));
                    }
                    members.push((name, value));
                }
                Some(Key::Merge) => match value {
                    Value::Object(_) => merged.push(value),
                    Value::Array(items) if items.iter().all(|i| i.as_object().is_some()) => merged.extend(items),
                    _ => return Err("yaml: map merge requires map or sequence of maps as the value".to_owned()),
                },
                // An alias in the place of a key.
                None => match value {
                    Value::String(name) => *key = Some(Key::Name(name)),
                    other => *key = Some(Key::Name(go::plain(&other).into())),
                },
            },
            None => {}
        }
        Ok(())
    }
}

/// The step from the innermost open collection to the value that comes next.
fn step(open: &[Open]) -> String {
    match open.last() {
        Some(Open::List { items, .. }) => items.len().to_string(),
        Some(Open::Object { key: Some(Key::Name(name)), .. }) => name.to_string(),
        _ => String::new(),
    }
}

/// How much memory a value takes, in units of about 32 bytes: how many values there are, and how long their texts.
fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => 1 + members.iter().map(|(k, v)| k.len() / 32 + weight(v)).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 32,
        _ => 1,
    }
}

/// An error of the scanner or parser in the words of Go's yaml package.
fn error_text(error: &ScanError, text: &str) -> String {
    let info = error.info();
    // The context that comes before the problem is not printed there.
    let problem = match info.split_once(", ") {
        Some((context, problem)) if context.starts_with("while ") => problem,
        _ => info,
    };
    let line = error.marker().line();
    // Go counts a parser's lines from 0 and a scanner's from 1, and prints none for the first.
    let (problem, line) = match problem {
        p if p.starts_with("did not find expected") || p.starts_with("expected ',' or") => {
            let p = if p.starts_with("expected") { format!("did not find {p}") } else { p.to_owned() };
            (p, line.saturating_sub(1))
        }
        p if p.starts_with("tab") || p.contains("a tab") => {
            // In a scalar the marker is where that starts, not where the tab is.
            let within = info.starts_with("while scanning a plain scalar");
            let after = text.lines().skip(line).position(|l| within && l.trim_start_matches(' ').starts_with('\t'));
            let line = line + after.map_or(0, |lines| lines + 1);
            ("found a tab character that violates indentation".to_owned(), line)
        }
        p if p.starts_with("unexpected character") => ("found character that cannot start any token".to_owned(), line),
        "simple key expected" => ("could not find expected ':'".to_owned(), line),
        p if p.starts_with("found unknown anchor") => ("unknown anchor referenced".to_owned(), 0),
        p => (p.to_owned(), line),
    };
    let scanner = !problem.starts_with("did not find expected");
    if line == 0 || scanner && line == 1 { format!("yaml: {problem}") } else { format!("yaml: line {line}: {problem}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(yaml: &str) -> String {
        json::to_string(&parse(yaml.as_bytes()).unwrap())
    }

    #[test]
    fn scalars_are_yaml_1_1() {
        for (yaml, expected) in [
            ("a: yes", r#"{"a":true}"#),
            ("on: 1", r#"{"true":1}"#),
            ("n: 1", r#"{"false":1}"#),
            ("a: 0777", r#"{"a":511}"#),
            ("a: 0x1f", r#"{"a":31}"#),
            ("a: 1_000", r#"{"a":1000}"#),
            ("a: 1.0", r#"{"a":1}"#),
            ("a: 1.5e3", r#"{"a":1500}"#),
            ("a: .5", r#"{"a":0.5}"#),
            ("a: 1.2.3", r#"{"a":"1.2.3"}"#),
            ("a: 2001-01-01", r#"{"a":"2001-01-01"}"#),
            ("a: ~", r#"{"a":null}"#),
            ("a: 'yes'", r#"{"a":"yes"}"#),
            ("a: !!str 1", r#"{"a":"1"}"#),
            ("a: !!binary aGk=", r#"{"a":"hi"}"#),
            ("1: x", r#"{"1":"x"}"#),
            ("a: 08", r#"{"a":8}"#),
        ] {
            assert_eq!(text(yaml), expected, "{yaml}");
        }
    }

    #[test]
    fn anchors_and_merge_keys_are_followed() {
        assert_eq!(text("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3"), r#"{"a":{"b":1,"c":2},"d":{"b":3,"c":2}}"#);
        let bomb = format!(
            "a: &a [x]\n{}",
            (0..40)
                .map(|i| format!(
                    "a{i}: &b{i} [*{p}, *{p}, *{p}]\n",
                    p = if i == 0 { "a".to_owned() } else { format!("b{}", i - 1) }
                ))
                .collect::<String>()
        );
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 100].join(", "));
        for bomb in [bomb, long] {
            assert_eq!(parse(bomb.as_bytes()).unwrap_err(), "yaml: document contains excessive aliasing");
        }
    }

    #[test]
    fn json_reads_the_same_the_short_way() {
        for json in [
            r#"{"a":"1","b":[true,null,-5,{"c":"x\\ny"}],"":{}}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e3}"#,
            r#"{"<<":{"a":1}}"#,
            r#"{"a":"\u00e9"}"#,
            "{\n  \"a\": \"b c\"\n}\n",
        ] {
            let spaced = format!("# as YAML\n{json}");
            assert_eq!(parse(json.as_bytes()), parse(spaced.as_bytes()), "{json}");
        }
    }

    #[test]
    fn a_tab_cannot_start_a_document() {
        for (text, error) in [
            ("\t", "yaml: found character that cannot start any token"),
            ("# x\n\ta: 1", "yaml: line 2: found character that cannot start any token"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), error, "{text:?}");
        }
    }

    #[test]
    fn repeated_keys_are_told_with_their_line() {
        let (value, repeated) = parse_strict(b"a: 1\nb: 2\na: 3").unwrap();
        assert_eq!(json::to_string(&value), r#"{"a":3,"b":2}"#);
        assert_eq!(repeated, ["line 3: key \"a\" already set in map"]);
        // Go tells the line of the value, when it has read the value.
        let (_, repeated) = parse_strict(b"a: 1\na:\n  b:\n    - 1\n  b:\n\n    - 2\n").unwrap();
        assert_eq!(repeated, ["line 7: key \"b\" already set in map", "line 3: key \"a\" already set in map"]);
    }

    #[test]
    fn several_documents_are_read_with_their_lines() {
        let all = parse_all(b"# head\n---\na: 1\n---\n---\nb: 2\n").unwrap();
        assert_eq!(
            all.iter().map(|(v, l)| (json::to_string(v), *l)).collect::<Vec<_>>(),
            [("{\"a\":1}".to_owned(), 3), ("{\"b\":2}".to_owned(), 6)]
        );
        assert_eq!(parse(b"").unwrap(), Value::Null);
    }

    #[test]
    fn a_path_is_found_by_its_line() {
        let text = "a: 1\nspec:\n  list:\n  - x: 1\n  - x: 2\n---\nb:\n  c: 1\n";
        assert_eq!(locate(text, 0, &["spec", "list", "1", "x"]), Some(5));
        assert_eq!(locate(text, 0, &["spec", "none"]), Some(3));
        assert_eq!(locate(text, 1, &["b", "c"]), Some(8));
    }

    #[test]
    fn errors_are_worded_as_in_go() {
        for (yaml, error) in [
            ("a: b: c", "yaml: mapping values are not allowed in this context"),
            ("a: .inf", "json: unsupported value: +Inf"),
            ("@", "yaml: found character that cannot start any token"),
            ("a: *x", "yaml: unknown anchor referenced"),
        ] {
            assert_eq!(parse(yaml.as_bytes()).unwrap_err(), error, "{yaml}");
        }
        let deep = "[".repeat(3000);
        assert!(parse(deep.as_bytes()).is_err());
    }
}
