//! The stream of an export: lines of JSON. The first says what it is, then comes an object a line, ordered by key, and the
//! last says how many there were, with a checksum of all lines before it.
//!
//! ```json
//! {"format":"stanchion-export","revision":812,"version":1}
//! {"created":15,"key":"/registry/configmaps/default/a","modified":17,"object":{...},"schema":"00c0ffee00c0ffee","writes":2}
//! {"crc32":"8a9136aa","end":true,"objects":1}
//! ```
//!
//! `modified` is the object's `resourceVersion`, `created` that of its creation, `writes` how often it was written;
//! `schema` names what the stored object went through, so that it need not be looked at again. What is no object is given
//! as `value`, in base64.

use apiserver::registry::Stored;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use object::{Map, Value, json, map};
use std::io::Write;
use store::{Entry, Revision};

/// What the first line calls itself.
const FORMAT: &str = "stanchion-export";
/// The version of the format.
const VERSION: i64 = 1;

/// Writes a stream.
pub struct Writer<W> {
    out: W,
    checksum: crc32fast::Hasher,
    objects: i64,
}

impl<W: Write> Writer<W> {
    /// Begins the stream of everything at a revision.
    pub fn new(out: W, revision: Revision) -> std::io::Result<Self> {
        let mut writer = Writer { out, checksum: crc32fast::Hasher::new(), objects: 0 };
        writer.line(map! { "format" => FORMAT, "version" => VERSION, "revision" => number(revision) })?;
        Ok(writer)
    }

    /// Adds an entry.
    pub fn entry(&mut self, entry: &Entry) -> std::io::Result<()> {
        let mut line = map! {
            "key" => &*entry.key,
            "created" => number(entry.create_revision),
            "modified" => number(entry.mod_revision),
            "writes" => number(entry.version),
        };
        // Only what comes out of its line as it was goes in as an object.
        let object = Stored::read(entry.value.clone()).map(|stored| (stored.value(0), stored.fingerprint()));
        match object.filter(|(object, schema)| *Stored::new(object, *schema).raw() == entry.value) {
            Some((object, schema)) => {
                line.insert("schema", format!("{schema:016x}"));
                line.insert("object", object);
            }
            None => drop(line.insert("value", STANDARD.encode(&entry.value))),
        }
        self.objects += 1;
        self.line(line)
    }

    /// Ends the stream.
    pub fn finish(mut self) -> std::io::Result<W> {
        let checksum = format!("{:08x}", self.checksum.clone().finalize());
        self.line(map! { "end" => true, "objects" => self.objects, "crc32" => checksum })?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, line: Map) -> std::io::Result<()> {
        let mut bytes = json::to_vec(&Value::Object(line));
        bytes.push(b'\n');
        self.checksum.update(&bytes);
        self.out.write_all(&bytes)
    }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a whole stream: the revision, and the entries ordered by key. The error names the line.
pub fn read(text: &[u8]) -> Result<(Revision, Vec<Entry>), String> {
    let mut checksum = crc32fast::Hasher::new();
    let mut revision = None;
    let mut entries: Vec<Entry> = Vec::new();
    let mut ended = false;
    for (index, bytes) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let fail = |why: String| format!("line {}: {why}", index + 1);
        if ended {
            return Err(fail("there is more after the end".to_owned()));
        }
        let line = json::parse(bytes).map_err(|error| fail(error.to_string()))?;
        match revision {
            None => revision = Some(head(&line).map_err(fail)?),
            Some(_) if line.get("end").is_some() => {
                end(&line, entries.len(), checksum.clone().finalize()).map_err(fail)?;
                ended = true;
            }
            Some(revision) => {
                let entry = entry(&line, revision).map_err(fail)?;
                if entries.last().is_some_and(|last| last.key >= entry.key) {
                    return Err(fail(format!("the key {} is out of order", entry.key)));
                }
                entries.push(entry);
            }
        }
        checksum.update(bytes);
    }
    match revision {
        Some(revision) if ended => Ok((revision, entries)),
        Some(_) => Err("the stream ends too early: its last line is missing".to_owned()),
        None => Err("the stream is empty".to_owned()),
    }
}

fn head(line: &Value) -> Result<Revision, String> {
    if line.str_at(&["format"]) != Some(FORMAT) {
        return Err("this is no export".to_owned());
    }
    match line.get("version").and_then(Value::as_int) {
        Some(VERSION) => count(line, "revision"),
        version => Err(format!("version {} of the format is not known", version.unwrap_or_default())),
    }
}

fn end(line: &Value, objects: usize, checksum: u32) -> Result<(), String> {
    if count(line, "objects")? != objects as u64 {
        return Err(format!("there should be {} objects, and there are {objects}", count(line, "objects")?));
    }
    match line.str_at(&["crc32"]) == Some(&format!("{checksum:08x}")) {
        true => Ok(()),
        false => Err("the checksum is another one: the stream was changed".to_owned()),
    }
}

fn entry(line: &Value, revision: Revision) -> Result<Entry, String> {
    let key = line.str_at(&["key"]).filter(|key| key.starts_with("/registry/")).ok_or("there is no key")?;
    let value = match (line.get("object"), line.str_at(&["value"])) {
        (Some(object), None) => {
            let schema = line.str_at(&["schema"]).and_then(|text| u64::from_str_radix(text, 16).ok());
            Stored::new(object, schema.ok_or("there is no schema")?).raw().clone()
        }
        (None, Some(value)) => Bytes::from(STANDARD.decode(value).map_err(|error| error.to_string())?),
        _ => return Err("there is neither an object nor a value".to_owned()),
    };
    let entry = Entry {
        key: key.into(),
        value,
        create_revision: count(line, "created")?,
        mod_revision: count(line, "modified")?,
        version: count(line, "writes")?,
    };
    if entry.create_revision > entry.mod_revision || entry.mod_revision > revision {
        return Err(format!("the versions of {key} contradict each other"));
    }
    Ok(entry)
}

/// A number that is at least 1, or 0 where nothing is counted.
fn count(line: &Value, name: &str) -> Result<u64, String> {
    let number = line.get(name).and_then(Value::as_int).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| format!("there is no number {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let object = json::parse(br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#).unwrap();
        let value = Stored::new(&object, 0xc0ffee).raw().clone();
        let entry =
            |key: &str, value| Entry { key: key.into(), value, create_revision: 2, mod_revision: 4, version: 2 };
        vec![entry("/registry/a", value), entry("/registry/b", Bytes::from_static(b"\xff\0other"))]
    }

    fn stream() -> String {
        let mut writer = Writer::new(Vec::new(), 9).unwrap();
        entries().iter().for_each(|entry| writer.entry(entry).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let text = stream();
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains(r#""object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#));
        assert_eq!(read(text.as_bytes()).unwrap(), (9, entries()));
    }

    #[test]
    fn a_stream_that_is_not_whole_is_refused() {
        let text = stream();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (text, why) in [
            (String::new(), "the stream is empty"),
            (lines[..3].concat(), "the stream ends too early: its last line is missing"),
            ([lines[0], lines[1], lines[3]].concat(), "line 3: there should be 2 objects, and there are 1"),
            ([lines[0], lines[2], lines[1], lines[3]].concat(), "line 3: the key /registry/a is out of order"),
            (text.replace("ConfigMap", "ConfigMop"), "line 4: the checksum is another one: the stream was changed"),
            (format!("{text}{{}}"), "line 5: there is more after the end"),
            ("{}".to_owned(), "line 1: this is no export"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err(), why);
        }
    }
}
