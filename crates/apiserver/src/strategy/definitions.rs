//! CustomResourceDefinitions: a built-in kind whose rules are those of the crate `schema`.

use super::{Builtin, Checked, Column, Part, ScalePaths, Strategy, Writer};
use crate::ownership::Kind;
use jiff::Timestamp;
use object::field::Path;
use object::{Map, Value, metadata, names};
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
        *object = decoded.definition;
        crd::default(object);
        Ok(decoded.unknown)
    }

    fn present(&self, _object: &mut Value) {}

    fn load(&self, _object: &mut Value) {}

    fn save(&self, object: &mut Value) -> u64 {
        self.base.save(object)
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
        let path = Path::ROOT.child("metadata");
        let empty = Map::new();
        let meta = object.metadata().unwrap_or(&empty);
        let mut errors = metadata::validate(meta, false, names::dns1123_subdomain, &path);
        errors.extend(crd::validate(object));
        Checked { errors, warnings: Vec::new() }
    }

    fn validate_update(&self, object: &Value, old: &Value, part: Part) -> Checked {
        let path = Path::ROOT.child("metadata");
        let empty = Map::new();
        let (meta, old_meta) = (object.metadata().unwrap_or(&empty), old.metadata().unwrap_or(&empty));
        let mut errors = metadata::validate_update(meta, old_meta, &path);
        errors.extend(match part {
            Part::Status => crd::validate_status_update(object, old),
            _ => crd::validate_update(object, old),
        });
        Checked { errors, warnings: Vec::new() }
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
