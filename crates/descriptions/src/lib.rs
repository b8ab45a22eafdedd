//! What the fields of built-in kinds are, in words: the texts that `kubectl explain` shows.
//!
//! The texts come from the types of the crate `k8s-openapi`, which is read when this crate is built. They lie compressed
//! in the program and are unpacked when somebody asks, so that they cost no memory while nobody does.
//!
//! ```
//! let texts = descriptions::read();
//! let mut schema = object::json::parse(br#"{"properties":{"data":{"type":"object"}}}"#).unwrap();
//! texts.describe("io.k8s.api.core.v1.ConfigMap", &mut schema);
//! assert!(schema.str_at(&["description"]).unwrap().starts_with("ConfigMap holds configuration data"));
//! assert!(schema.str_at(&["properties", "data", "description"]).is_some());
//! ```

use flate2::read::ZlibDecoder;
use object::Value;
use std::collections::HashMap;
use std::io::Read;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/texts.zlib"));

/// The texts of all definitions.
#[derive(Debug, Default)]
pub struct Descriptions(HashMap<String, Definition>);

#[derive(Debug, Default)]
struct Definition {
    text: String,
    fields: HashMap<String, String>,
}

/// Unpacks the texts; this takes some milliseconds.
pub fn read() -> Descriptions {
    let mut text = String::new();
    if ZlibDecoder::new(PACKED).read_to_string(&mut text).is_err() {
        return Descriptions::default();
    }
    let mut out: HashMap<String, Definition> = HashMap::new();
    let mut name = "";
    for line in text.lines() {
        match line.strip_prefix('\t') {
            Some(field) => {
                if let (Some((field, text)), Some(definition)) = (field.split_once('\t'), out.get_mut(name)) {
                    definition.fields.insert(field.to_owned(), unescape(text));
                }
            }
            None => {
                let (first, text) = line.split_once('\t').unwrap_or((line, ""));
                name = first;
                out.entry(name.to_owned()).or_default().text = unescape(text);
            }
        }
    }
    Descriptions(out)
}

/// The build script writes a line break as `\n`.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.next() == Some('n') => out.push('\n'),
            other => out.push(other),
        }
    }
    out
}

impl Descriptions {
    /// The text of a definition, named as in OpenAPI documents; `field` empty means the definition itself.
    pub fn get(&self, definition: &str, field: &str) -> Option<&str> {
        let definition = self.0.get(definition)?;
        let text = if field.is_empty() { &definition.text } else { definition.fields.get(field)? };
        (!text.is_empty()).then_some(text)
    }

    /// Puts a definition's texts into its schema: one for itself, one for each property.
    pub fn describe(&self, definition: &str, schema: &mut Value) {
        if let Some(text) = self.get(definition, "") {
            schema.set_at(&["description"], text.into());
        }
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
        for (field, property) in properties.iter_mut() {
            if let Some(text) = self.get(definition, field) {
                property.set_at(&["description"], text.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_their_fields_have_texts() {
        let texts = read();
        for (definition, field, begins) in [
            ("io.k8s.api.core.v1.Pod", "", "Pod is a collection of containers"),
            ("io.k8s.api.apps.v1.DeploymentSpec", "replicas", "Number of desired pods."),
            ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "uid", "UID is the unique in time"),
        ] {
            let text = texts.get(definition, field).unwrap_or_default();
            assert!(text.starts_with(begins), "{definition} {field}: {text}");
        }
        assert_eq!(texts.get("io.k8s.api.core.v1.Pod", "nonsense"), None);
    }

    #[test]
    fn line_breaks_and_backslashes_come_back() {
        assert_eq!(unescape(r"a\nb\\nc\\"), "a\nb\\nc\\");
    }
}
