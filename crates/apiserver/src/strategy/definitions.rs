//! CustomResourceDefinitions: a built-in kind whose rules are those of the crate `schema`.

use super::{Builtin, Checked, Column, Part, ScalePaths, Strategy, Writer};
use crate::ownership::Kind;
use crate::request::body::Text;
use jiff::Timestamp;
use object::Value;
use schema::crd;
use std::borrow::Cow;

/// The strategy of CustomResourceDefinitions.
#[derive(Debug)]
pub struct Definitions {
    base: Builtin,
}

impl Definitions {
    /// On top of what the catalogue says of the kind.
    pub fn new(base: Builtin) -> Self {
        Definitions { base }
    }
}

impl Strategy for Definitions {
    fn receive(&self, object: &mut Value, _track: bool) -> Result<Vec<String>, String> {
        let decoded = crd::decode(object)?;
        *object = completed(decoded.definition);
        Ok(decoded.unknown)
    }

    fn receive_text(&self, object: &mut Value, text: Text<'_>, track: bool) -> Result<Vec<String>, String> {
        if !text.repeats
            && let Ok(decoded) = crd::decode(object)
            && decoded.unknown.is_empty()
        {
            *object = completed(decoded.definition);
            return Ok(Vec::new());
        }
        // The order of the text matters where anything is wrong.
        let issues = self.base.decode_text(object, Text { repeats: true, ..text })?;
        self.receive(object, track)?;
        Ok(issues)
    }

    fn receive_unstructured(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let issues = self.base.conform(object)?;
        // What the types of schemas read themselves is left.
        self.receive(object, false).map_err(|error| format!("error decoding from json: {error}"))?;
        Ok(issues)
    }

    fn present(&self, _object: &mut Value) {}

    fn load(&self, _object: &mut Value) {}

    fn save(&self, _object: &mut Value) -> u64 {
        self.base.fingerprint()
    }

    fn fingerprint(&self) -> u64 {
        self.base.fingerprint()
    }

    fn prepare_create(&self, object: &mut Value, _writer: Writer<'_>) {
        crd::prepare_create(object);
    }

    fn prepare_update(&self, object: &mut Value, old: &Value, part: Part, _writer: Writer<'_>) {
        match part {
            Part::Status => crd::prepare_status_update(object, old),
            _ => crd::prepare_update(object, old),
        }
    }

    fn validate(&self, object: &Value) -> Checked {
        Checked { errors: crd::validate(object), ..Checked::default() }
    }

    fn validate_update(&self, object: &Value, old: &Value, part: Part) -> Checked {
        let errors = match part {
            Part::Status => crd::validate_status_update(object, old),
            _ => crd::validate_update(object, old),
        };
        Checked { errors, ..Checked::default() }
    }

    fn knows_field(&self, field: &str) -> Result<(), String> {
        self.base.knows_field(field)
    }

    fn field<'o>(&self, object: &'o Value, field: &str) -> Cow<'o, str> {
        self.base.field(object, field)
    }

    fn columns(&self) -> Vec<Column> {
        self.base.columns()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        self.base.cells(object, now)
    }

    fn ownership(&self) -> &Kind {
        self.base.ownership()
    }

    fn scale(&self) -> Option<ScalePaths> {
        None
    }
}

/// A decoded definition with its defaults.
fn completed(mut definition: Value) -> Value {
    crd::default(&mut definition);
    default_stored_versions(&mut definition);
    definition
}

/// A definition without stored versions stores its storage version.
fn default_stored_versions(definition: &mut Value) {
    let held = definition.at(&["status", "storedVersions"]).and_then(Value::as_array);
    let storage = super::storage_version(definition).to_owned();
    if held.is_none_or(<[Value]>::is_empty) && !storage.is_empty() && definition.get("status").is_some() {
        definition.set_at(&["status", "storedVersions"], Value::from(vec![storage]));
    }
}
