//! The stored form of an object: its JSON as it is served in the storage version, without `resourceVersion`, behind a
//! small head that says where its parts are.
//!
//! The version of an object is the revision of its last write, which is not known while it is written; the head says
//! where it belongs, so that an answer is three copies of bytes. It also says where the metadata and labels are, so
//! that selectors and metadata-only clients cost no reading of the whole, and names the schema that the object went
//! through: as long as that is the present one, what is stored is what is served.

use bytes::Bytes;
use compact_str::CompactString;
use object::{Map, Value, json};
use std::cell::Cell;

/// The first byte: the layout of the head.
const LAYOUT: u8 = 1;
/// Bytes of the head: the layout, the fingerprint, the version's place and style, and four spans.
const HEAD: usize = 1 + 8 + 4 + 1 + 4 * 8;

/// Where the version goes, and which comma goes with it.
const COMMA_AFTER: u8 = 0;
const COMMA_BEFORE: u8 = 1;
const NO_COMMA: u8 = 2;
/// The object has no metadata: it is served as it is.
const NOWHERE: u8 = 3;

/// The most room, in bytes, that a thread keeps for the next object it writes.
const MAX_SCRATCH: usize = 64 * 1024;

thread_local! {
    /// Where objects are written, so that each is then kept in no more room than it takes.
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// A stored object. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct Stored {
    raw: Bytes,
    fingerprint: u64,
    version_at: usize,
    style: u8,
    api_version: (usize, usize),
    metadata: (usize, usize),
    labels: (usize, usize),
    kind: (usize, usize),
}

impl Stored {
    /// Reads the head of what the store holds; nothing if it is not of this layout.
    pub fn read(raw: Bytes) -> Option<Self> {
        let head: [u8; HEAD] = *raw.first_chunk()?;
        if head[0] != LAYOUT {
            return None;
        }
        let number = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        let fingerprint = u64::from_le_bytes(*head.get(1..9)?.first_chunk()?);
        let span = |at: usize| (HEAD + number(at), HEAD + number(at + 4));
        let stored = Stored {
            fingerprint,
            version_at: HEAD + number(9),
            style: head[13],
            api_version: span(14),
            metadata: span(22),
            labels: span(30),
            kind: span(38),
            raw,
        };
        let end = stored.raw.len();
        let sound = |s: (usize, usize)| s.0 <= s.1 && s.1 <= end;
        (stored.version_at <= end
            && sound(stored.api_version)
            && sound(stored.metadata)
            && sound(stored.labels)
            && sound(stored.kind))
        .then_some(stored)
    }

    /// Puts an object into the stored form; its `resourceVersion` is left out.
    pub fn new(object: &Value, fingerprint: u64) -> Self {
        let mut out = SCRATCH.take();
        out.clear();
        // The head is filled in at the end; a string holds it until then.
        out.push_str(HEAD_SPACE);
        let mut parts = Places {
            version: (HEAD, NOWHERE),
            api_version: (HEAD, HEAD),
            metadata: (HEAD, HEAD),
            labels: (HEAD, HEAD),
            kind: (HEAD, HEAD),
        };
        match object {
            Value::Object(members) => write_object(&mut out, members, &mut parts),
            other => json::write(&mut out, other),
        }
        let mut raw = out.as_bytes().to_vec();
        if out.capacity() <= MAX_SCRATCH {
            SCRATCH.set(out);
        }
        let mut head = Vec::with_capacity(HEAD);
        head.push(LAYOUT);
        head.extend_from_slice(&fingerprint.to_le_bytes());
        let relative = |at: usize| (at.saturating_sub(HEAD) as u32).to_le_bytes();
        head.extend_from_slice(&relative(parts.version.0));
        head.push(parts.version.1);
        for (start, end) in [parts.api_version, parts.metadata, parts.labels, parts.kind] {
            head.extend_from_slice(&relative(start));
            head.extend_from_slice(&relative(end));
        }
        if let Some(space) = raw.get_mut(..HEAD) {
            space.copy_from_slice(&head);
        }
        Stored {
            raw: raw.into(),
            fingerprint,
            version_at: parts.version.0,
            style: parts.version.1,
            api_version: parts.api_version,
            metadata: parts.metadata,
            labels: parts.labels,
            kind: parts.kind,
        }
    }

    /// What the store keeps.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The schema that the object went through.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The JSON without the version.
    pub fn json(&self) -> &[u8] {
        self.raw.get(HEAD..).unwrap_or_default()
    }

    /// The object's `apiVersion`.
    pub fn api_version(&self) -> &str {
        let text = std::str::from_utf8(self.span(self.api_version)).unwrap_or_default();
        text.trim_matches('"')
    }

    /// Whether the object's `apiVersion` is that of a group and version.
    pub fn is_of(&self, group: &str, version: &str) -> bool {
        match self.api_version().rsplit_once('/') {
            Some((own_group, own_version)) => own_group == group && own_version == version,
            None => group.is_empty() && self.api_version() == version,
        }
    }

    /// How many bytes [`Stored::write`] appends, nearly.
    pub fn len_hint(&self) -> usize {
        self.raw.len() + 32
    }

    /// Appends the JSON with its version; 0 leaves the version out.
    pub fn write(&self, out: &mut Vec<u8>, version: u64) {
        self.write_span((HEAD, self.raw.len()), out, version);
    }

    /// Appends the JSON with its version, and another `apiVersion`.
    pub fn write_as(&self, out: &mut Vec<u8>, version: u64, api_version: &str) {
        let (start, end) = self.api_version;
        if start == end {
            return self.write(out, version);
        }
        out.extend_from_slice(self.span((HEAD, start)));
        out.push(b'"');
        out.extend_from_slice(api_version.as_bytes());
        out.push(b'"');
        self.write_span((end, self.raw.len()), out, version);
    }

    /// Appends the JSON with its version but without `apiVersion` and `kind`, as it stands in the lists of built-in
    /// kinds.
    pub fn write_untyped(&self, out: &mut Vec<u8>, version: u64) {
        let mut skipped = [("\"apiVersion\":".len(), self.api_version), ("\"kind\":".len(), self.kind)];
        skipped.sort_unstable_by_key(|(_, span)| span.0);
        let mut at = HEAD;
        for (name, (start, end)) in skipped.into_iter().filter(|(_, (start, end))| start != end) {
            self.write_span((at, start.saturating_sub(name).max(at)), out, version);
            at = end;
            // The comma after it goes too; where it is the last member, the one before stays out.
            match self.raw.get(at) {
                Some(b',') => at += 1,
                _ if out.last() == Some(&b',') => {
                    out.pop();
                }
                _ => {}
            }
        }
        self.write_span((at, self.raw.len()), out, version);
    }

    /// Appends the JSON of the metadata with the version.
    pub fn write_metadata(&self, out: &mut Vec<u8>, version: u64) {
        if self.style == NOWHERE {
            out.extend_from_slice(b"{}");
        } else {
            self.write_span(self.metadata, out, version);
        }
    }

    fn write_span(&self, (start, end): (usize, usize), out: &mut Vec<u8>, version: u64) {
        if version == 0 || self.style == NOWHERE || self.version_at < start || self.version_at > end {
            out.extend_from_slice(self.span((start, end)));
            return;
        }
        out.extend_from_slice(self.span((start, self.version_at)));
        if self.style == COMMA_BEFORE {
            out.push(b',');
        }
        out.extend_from_slice(b"\"resourceVersion\":\"");
        push_number(out, version);
        out.push(b'"');
        if self.style == COMMA_AFTER {
            out.push(b',');
        }
        out.extend_from_slice(self.span((self.version_at, end)));
    }

    /// The whole object; `version` 0 leaves its version out.
    pub fn value(&self, version: u64) -> Value {
        // What was written by this module reads back.
        let mut value = json::parse(self.json()).unwrap_or_default();
        if version != 0 && self.style != NOWHERE {
            value.metadata_mut().insert("resourceVersion", version.to_string());
        }
        value
    }

    /// The metadata without the version.
    pub fn metadata(&self) -> Map {
        parse_map(self.span(self.metadata))
    }

    /// Some members of the metadata, without reading the others.
    pub fn metadata_of(&self, wanted: &[&str]) -> Map {
        super::scan::members(self.span(self.metadata), wanted)
    }

    /// The uid.
    pub fn uid(&self) -> Option<CompactString> {
        let metadata = self.span(self.metadata);
        // By its name it stands last.
        if let Some(uid) = super::scan::last_string(metadata, "uid") {
            return Some(uid.into());
        }
        match super::scan::members(metadata, &["uid"]).remove("uid") {
            Some(Value::String(uid)) => Some(uid),
            _ => None,
        }
    }

    /// The labels; nothing where there are none.
    pub fn labels(&self) -> Option<Map> {
        let span = self.span(self.labels);
        (!span.is_empty()).then(|| parse_map(span))
    }

    fn span(&self, (start, end): (usize, usize)) -> &[u8] {
        self.raw.get(start..end).unwrap_or_default()
    }
}

const HEAD_SPACE: &str = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const _: () = assert!(HEAD_SPACE.len() == HEAD);

struct Places {
    version: (usize, u8),
    api_version: (usize, usize),
    metadata: (usize, usize),
    labels: (usize, usize),
    kind: (usize, usize),
}

fn write_object(out: &mut String, members: &Map, places: &mut Places) {
    out.push('{');
    for (i, (key, value)) in members.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        json::write_string(out, key);
        out.push(':');
        let start = out.len();
        match (key, value) {
            ("metadata", Value::Object(metadata)) => {
                write_metadata(out, metadata, places);
                places.metadata = (start, out.len());
            }
            _ => json::write(out, value),
        }
        match key {
            "apiVersion" => places.api_version = (start, out.len()),
            "kind" => places.kind = (start, out.len()),
            _ => {}
        }
    }
    out.push('}');
}

fn write_metadata(out: &mut String, members: &Map, places: &mut Places) {
    const VERSION: &str = "resourceVersion";
    out.push('{');
    let mut first = true;
    let mut placed = false;
    for (key, value) in members.iter().filter(|(k, _)| *k != VERSION) {
        if !first {
            out.push(',');
        }
        first = false;
        if !placed && key > VERSION {
            places.version = (out.len(), COMMA_AFTER);
            placed = true;
        }
        json::write_string(out, key);
        out.push(':');
        let start = out.len();
        json::write(out, value);
        if key == "labels" && matches!(value, Value::Object(_)) {
            places.labels = (start, out.len());
        }
    }
    if !placed {
        places.version = (out.len(), if first { NO_COMMA } else { COMMA_BEFORE });
    }
    out.push('}');
}

fn parse_map(text: &[u8]) -> Map {
    match json::parse(text) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Appends a number in decimal.
pub fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn served(text: &str) -> String {
        let stored = Stored::new(&object(text), 7);
        let stored = Stored::read(stored.raw().clone()).unwrap();
        let mut out = Vec::new();
        stored.write(&mut out, 42);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_version_is_put_in_its_place() {
        for (given, wanted) in [
            (
                r#"{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"9","uid":"u"}}"#,
                r#"{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"42","uid":"u"}}"#,
            ),
            (r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a","resourceVersion":"42"}}"#),
            (r#"{"metadata":{"uid":"a"}}"#, r#"{"metadata":{"resourceVersion":"42","uid":"a"}}"#),
            (r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"42"}}"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("5", "5"),
        ] {
            assert_eq!(served(given), wanted);
        }
    }

    #[test]
    fn parts_are_found_without_reading_the_whole() {
        let stored =
            Stored::new(&object(r#"{"a":1,"apiVersion":"x/v1","metadata":{"labels":{"l":"1"},"uid":"u"}}"#), 7);
        let stored = Stored::read(stored.raw().clone()).unwrap();
        assert_eq!((stored.api_version(), stored.fingerprint()), ("x/v1", 7));
        assert_eq!(json::to_string(&Value::Object(stored.labels().unwrap())), r#"{"l":"1"}"#);
        let mut out = Vec::new();
        stored.write_as(&mut out, 3, "x/v2");
        stored.write_metadata(&mut out, 3);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"a":1,"apiVersion":"x/v2","metadata":{"labels":{"l":"1"},"resourceVersion":"3","uid":"u"}}{"labels":{"l":"1"},"resourceVersion":"3","uid":"u"}"#
        );
    }

    #[test]
    fn the_type_can_be_left_out() {
        for (given, wanted) in [
            (
                r#"{"a":1,"apiVersion":"v1","data":{},"kind":"K","metadata":{"uid":"u"}}"#,
                r#"{"a":1,"data":{},"metadata":{"resourceVersion":"3","uid":"u"}}"#,
            ),
            (r#"{"apiVersion":"v1","kind":"K"}"#, "{}"),
            (r#"{"a":1,"kind":"K"}"#, r#"{"a":1}"#),
        ] {
            let stored = Stored::new(&object(given), 7);
            let mut out = Vec::new();
            stored.write_untyped(&mut out, 3);
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }

    #[test]
    fn other_bytes_are_not_read() {
        assert!(Stored::read(Bytes::from_static(b"{}")).is_none());
        assert!(Stored::read(Bytes::from(vec![1u8; 60])).is_none());
        assert!(Stored::read(Bytes::new()).is_none());
    }
}
