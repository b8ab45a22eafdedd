//! Custom resources, over the schemas of their definitions.

use super::{Checked, Column, Part, ScalePaths, Strategy, Writer};
use crate::catalogue::Definition;
use crate::ownership::Kind;
use crate::table::JsonPath;
use jiff::Timestamp;
use object::{Map, Value, go, metadata, names};
use schema::Version;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A custom resource in one version of its definition.
pub struct Custom {
    definition: Arc<Definition>,
    name: String,
    ownership: Kind,
    made: OnceLock<Made>,
}

/// What is made of a definition when the resource is first used.
struct Made {
    version: Arc<Version>,
    storage: Arc<Version>,
    fingerprint: u64,
    stored_fingerprint: u64,
    api_version: String,
    stored_api_version: String,
    columns: Vec<(Column, Option<JsonPath>)>,
    selectable: Vec<(String, Vec<String>)>,
    scale: Option<ScalePaths>,
}

impl Custom {
    /// The strategy of the version `name` of a definition; `ownership` is what field ownership knows of it.
    pub fn new(definition: Arc<Definition>, name: &str, ownership: Kind) -> Self {
        Custom { definition, name: name.to_owned(), ownership, made: OnceLock::new() }
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| Made::new(&self.definition, &self.name))
    }
}

impl Made {
    fn new(about: &Definition, name: &str) -> Self {
        let definition = about.object();
        let compiled = |name: &str| about.versions().iter().find(|v| v.version == name).cloned().unwrap_or_default();
        static NONE: Value = Value::Null;
        let described = describe(&definition, name).unwrap_or(&NONE);
        let stored_name = storage_version(&definition);
        let group = definition.str_at(&["spec", "group"]).unwrap_or_default();
        Made {
            fingerprint: fingerprint(described),
            stored_fingerprint: describe(&definition, stored_name).map_or(0, fingerprint),
            api_version: format!("{group}/{name}"),
            stored_api_version: format!("{group}/{stored_name}"),
            columns: columns(described),
            selectable: selectable(described),
            scale: scale(described),
            version: compiled(name),
            storage: compiled(stored_name),
        }
    }
}

impl Strategy for Custom {
    fn receive(&self, object: &mut Value, track: bool) -> Result<Vec<String>, String> {
        self.made().version.receive(object, track).map_err(|e| e.to_string())
    }

    fn complete(&self, object: &mut Value) -> Result<(), String> {
        // A null among strings is the empty string of Go's maps.
        for key in ["labels", "annotations"] {
            let strings = object.get_mut("metadata").and_then(|m| m.get_mut(key)).and_then(Value::as_object_mut);
            for value in strings.into_iter().flat_map(Map::values_mut).filter(|v| v.is_null()) {
                *value = Value::from("");
            }
        }
        schema::default(&self.made().version.schema, object);
        Ok(())
    }

    fn adopt(&self, object: &mut Value) -> Result<(), String> {
        self.made().version.complete(object).map_err(|e| e.to_string())
    }

    fn present(&self, _object: &mut Value) {}

    fn load(&self, object: &mut Value) {
        self.restore(object);
        if object.str_at(&["apiVersion"]) != Some(&self.made().api_version) {
            self.coerce(object);
        }
    }

    fn restore(&self, object: &mut Value) {
        let version = object.str_at(&["apiVersion"]).unwrap_or_default().rsplit('/').next().unwrap_or_default();
        // What is stored in a version that is gone is taken for one of this version.
        let version = self.definition.versions().iter().find(|v| v.version == version).unwrap_or(&self.made().version);
        version.restore(object);
    }

    fn coerce(&self, object: &mut Value) {
        object.set_at(&["apiVersion"], Value::from(self.made().api_version.as_str()));
        self.made().version.coerce(object);
    }

    fn save(&self, object: &mut Value) -> u64 {
        object.set_at(&["apiVersion"], Value::from(self.made().stored_api_version.as_str()));
        if self.made().api_version == self.made().stored_api_version {
            // Every reader of this version would see the object so.
            self.made().storage.restore(object);
            return self.made().stored_fingerprint;
        }
        self.made().storage.coerce(object);
        // Another version has other defaults, and what is stored has none that its writer did not see.
        let mut restored = object.clone();
        self.made().storage.restore(&mut restored);
        if restored == *object { self.made().stored_fingerprint } else { 0 }
    }

    fn fingerprint(&self) -> u64 {
        self.made().fingerprint
    }

    fn prepare_create(&self, object: &mut Value, _writer: Writer<'_>) {
        if self.made().version.status {
            object.remove_at(&["status"]);
        }
        object.metadata_mut().insert("generation", 1);
    }

    fn prepare_update(&self, object: &mut Value, old: &Value, part: Part, _writer: Writer<'_>) {
        if part == Part::Status {
            let managed = object.remove_at(&["metadata", "managedFields"]);
            let version = object.remove_at(&["metadata", "resourceVersion"]);
            let status = object.remove_at(&["status"]);
            *object = old.clone();
            set_or_remove(object, &["status"], status);
            set_or_remove(object, &["metadata", "managedFields"], managed);
            set_or_remove(object, &["metadata", "resourceVersion"], version);
            return;
        }
        if self.made().version.status {
            set_or_remove(object, &["status"], old.get("status").cloned());
        }
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0);
        let changed = differs(object, old, self.made().version.status);
        object.metadata_mut().insert("generation", generation + i64::from(changed));
    }

    fn validate(&self, object: &Value) -> Checked {
        let outcome = self.made().version.validate(object);
        Checked { errors: outcome.errors, warnings: outcome.warnings, hints: finalizer_warnings(object, &Value::Null) }
    }

    fn validate_update(&self, object: &Value, old: &Value, part: Part) -> Checked {
        let outcome = match part {
            Part::Status => self.made().version.validate_status_update(object, old),
            _ => self.made().version.validate_update(object, old),
        };
        let hints = if part == Part::Status { Vec::new() } else { finalizer_warnings(object, old) };
        Checked { errors: outcome.errors, warnings: outcome.warnings, hints }
    }

    fn knows_field(&self, field: &str) -> Result<(), String> {
        if self.made().selectable.iter().any(|(name, _)| name == field) {
            return Ok(());
        }
        Err(format!("field label not supported: {field}"))
    }

    fn field<'o>(&self, object: &'o Value, field: &str) -> Cow<'o, str> {
        let path = self.made().selectable.iter().find(|(name, _)| name == field).map(|(_, path)| path);
        match path.and_then(|path| at(object, path)) {
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Some(value @ (Value::Bool(_) | Value::Int(_))) => Cow::Owned(go::plain(value)),
            _ => Cow::Borrowed(""),
        }
    }

    fn columns(&self) -> Vec<Column> {
        self.made().columns.iter().map(|(column, _)| column.clone()).collect()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let cell = |(column, path): &(Column, Option<JsonPath>)| match path {
            None => Value::from(object.name()),
            Some(path) => crate::table::custom_cell(&column.ty, path, object, now),
        };
        self.made().columns.iter().map(cell).collect()
    }

    fn ownership(&self) -> &Kind {
        &self.ownership
    }

    fn scale(&self) -> Option<ScalePaths> {
        self.made().scale.clone()
    }
}

/// The entry of a version in a definition.
fn describe<'d>(definition: &'d Value, name: &str) -> Option<&'d Value> {
    let versions = definition.at(&["spec", "versions"])?.as_array()?;
    versions.iter().find(|v| v.str_at(&["name"]) == Some(name))
}

/// The name of the version that is stored.
pub(crate) fn storage_version(definition: &Value) -> &str {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let stored = versions.iter().find(|v| v.get("storage").and_then(Value::as_bool) == Some(true));
    stored.and_then(|v| v.str_at(&["name"])).unwrap_or_default()
}

/// A number for a version's schema: what was stored under the same one needs no pruning and no defaults.
fn fingerprint(version: &Value) -> u64 {
    let schema = version.at(&["schema", "openAPIV3Schema"]);
    let digest = ring::digest::digest(&ring::digest::SHA256, &schema.map(object::json::to_vec).unwrap_or_default());
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    // 0 is the fingerprint of nothing.
    u64::from_le_bytes(first).max(1)
}

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of a version: the name, then those of the definition, or the age where it has none.
fn columns(version: &Value) -> Vec<(Column, Option<JsonPath>)> {
    let text = |v: &Value, key: &str| v.str_at(&[key]).unwrap_or_default().to_owned();
    let column = |name: &str, ty: &str, format: &str, description: &str| Column {
        name: name.to_owned(),
        ty: ty.to_owned(),
        format: format.to_owned(),
        description: description.to_owned(),
        priority: 0,
    };
    let mut out = vec![(column("Name", "string", "name", NAME_DESCRIPTION), None)];
    let own = version.get("additionalPrinterColumns").and_then(Value::as_array).unwrap_or_default();
    if own.is_empty() {
        out.push((column("Age", "date", "", AGE_DESCRIPTION), JsonPath::parse(".metadata.creationTimestamp")));
    }
    for c in own {
        let path = text(c, "jsonPath");
        let mut description = text(c, "description");
        if description.is_empty() {
            description = format!("Custom resource definition column (in JSONPath format): {path}");
        }
        let priority = c.get("priority").and_then(Value::as_int).unwrap_or(0);
        let column =
            Column { priority, ..column(&text(c, "name"), &text(c, "type"), &text(c, "format"), &description) };
        out.push((column, Some(JsonPath::parse(&path).unwrap_or_default())));
    }
    out
}

fn selectable(version: &Value) -> Vec<(String, Vec<String>)> {
    let fields = version.get("selectableFields").and_then(Value::as_array).unwrap_or_default();
    let paths = fields.iter().filter_map(|f| f.str_at(&["jsonPath"]));
    paths.map(|p| (p.trim_start_matches('.').to_owned(), split(p))).collect()
}

fn scale(version: &Value) -> Option<ScalePaths> {
    let scale = version.at(&["subresources", "scale"]).filter(|s| !s.is_null())?;
    let path = |key: &str| scale.str_at(&[key]).map(split);
    Some(ScalePaths {
        spec: path("specReplicasPath").unwrap_or_default(),
        status: path("statusReplicasPath").unwrap_or_default(),
        selector: path("labelSelectorPath").filter(|p| !p.is_empty()),
    })
}

fn split(path: &str) -> Vec<String> {
    path.split('.').filter(|p| !p.is_empty()).map(str::to_owned).collect()
}

/// What stands at a path of member names.
pub fn at<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

fn set_or_remove(object: &mut Value, path: &[&str], value: Option<Value>) {
    match value {
        Some(value) => object.set_at(path, value),
        None => {
            object.remove_at(path);
        }
    }
}

/// Whether anything outside the metadata changed (and outside the status, where that is a subresource).
fn differs(new: &Value, old: &Value, skip_status: bool) -> bool {
    let content = |object: &Value| -> usize {
        let members = object.as_object().into_iter().flat_map(Map::iter);
        members.filter(|(k, _)| counts(k, skip_status)).count()
    };
    let members = new.as_object().into_iter().flat_map(Map::iter);
    content(new) != content(old)
        || members.filter(|(k, _)| counts(k, skip_status)).any(|(key, value)| old.get(key) != Some(value))
}

fn counts(key: &str, skip_status: bool) -> bool {
    key != "metadata" && !(skip_status && key == "status")
}

/// What is odd about the names of finalizers that `old` has not: they should be names, and carry a domain.
fn finalizer_warnings(object: &Value, old: &Value) -> Vec<String> {
    const ADVICE: &str =
        "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
    let known = old.meta_list("finalizers");
    let added: BTreeSet<&str> = object.meta_list("finalizers").into_iter().filter(|f| !known.contains(f)).collect();
    let mut out = Vec::new();
    for finalizer in added {
        let mut say = |why: &str| out.push(format!("metadata.finalizers: {}: {why}", go::quote(finalizer)));
        names::qualified_name(finalizer).iter().for_each(|why| say(why));
        if !metadata::is_qualified_finalizer(finalizer) {
            say(ADVICE);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn new_finalizers_are_warned_of_once_and_in_order() {
        let object = |finalizers: &str| {
            json::parse(format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#).as_bytes()).unwrap()
        };
        let advice = |name: &str| {
            format!(
                "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            )
        };
        for (old, new, wanted) in [
            ("[]", r#"["b","a","b","x.io/c","orphan"]"#, vec![advice("a"), advice("b")]),
            (r#"["b"]"#, r#"["b","a"]"#, vec![advice("a")]),
            (r#"["b","a"]"#, r#"["b"]"#, vec![]),
        ] {
            assert_eq!(finalizer_warnings(&object(new), &object(old)), wanted, "{new}");
        }
    }
}
