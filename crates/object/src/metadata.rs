//! `metadata`: its rules, the same for every kind (apimachinery's `ValidateObjectMeta`), and short ways to its fields.

use crate::field::{FieldError, Path, Shown};
use crate::names::{self, NameCheck};
use crate::{Map, Value, go};

/// The most bytes that the keys and values of all annotations may take together.
pub const MAX_ANNOTATIONS: usize = 256 * 1024;

impl Value {
    /// `metadata`, if it is an object.
    pub fn metadata(&self) -> Option<&Map> {
        self.get("metadata")?.as_object()
    }

    /// `metadata` for change; made where it is missing.
    pub fn metadata_mut(&mut self) -> &mut Map {
        self.object_entry("metadata")
    }

    /// A string of `metadata`; empty where there is none.
    pub fn meta_str(&self, field: &str) -> &str {
        self.metadata().and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`, or an empty string.
    pub fn name(&self) -> &str {
        self.meta_str("name")
    }

    /// `metadata.namespace`, or an empty string.
    pub fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }

    /// A list of strings in `metadata`, such as `finalizers`; items that are no strings are left out.
    pub fn meta_list(&self, field: &str) -> Vec<&str> {
        let items = self.metadata().and_then(|m| m.get(field)).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).collect()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "labels"])?.get(key)?.as_str()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "annotations"])?.get(key)?.as_str()
    }
}

/// Checks `metadata` as every create does.
///
/// `namespaced` is the kind's scope, `name_check` its rule for names. `meta` is the decoded metadata: types are right.
pub fn validate(meta: &Map, namespaced: bool, name_check: NameCheck, path: &Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default();
    let (name, generate_name, namespace) = (text("name"), text("generateName"), text("namespace"));
    if !generate_name.is_empty() {
        let complaints = names::generate_name(generate_name, name_check);
        out.extend(complaints.into_iter().map(|m| FieldError::invalid(&path.child("generateName"), generate_name, m)));
    }
    let name_path = path.child("name");
    if name.is_empty() {
        out.push(FieldError::required(&name_path, "name or generateName is required"));
    } else {
        out.extend(name_check(name).into_iter().map(|m| FieldError::invalid(&name_path, name, m)));
    }
    let namespace_path = path.child("namespace");
    match (namespaced, namespace) {
        (true, "") => out.push(FieldError::required(&namespace_path, "")),
        (true, ns) => {
            out.extend(names::dns1123_label(ns).into_iter().map(|m| FieldError::invalid(&namespace_path, ns, m)));
        }
        (false, "") => {}
        (false, _) => out.push(FieldError::forbidden(&namespace_path, "not allowed on this type")),
    }
    if let Some(generation) = meta.get("generation").and_then(Value::as_int).filter(|g| *g < 0) {
        out.push(FieldError::invalid(&path.child("generation"), generation, "must be greater than or equal to 0"));
    }
    validate_common(meta, path, &mut out);
    out.extend(validate_finalizers(meta, &path.child("finalizers")));
    out.extend(validate_managed_fields(meta, &path.child("managedFields")));
    out
}

/// Checks the changes of `metadata` as every update does. Both are decoded.
pub fn validate_update(new: &Map, old: &Map, path: &Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    if present(old.get("deletionTimestamp")) {
        let (new, old) = (strings(new.get("finalizers")), strings(old.get("finalizers")));
        let mut added: Vec<&str> = new.into_iter().filter(|f| !old.contains(f)).collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
            out.push(FieldError::forbidden(&path.child("finalizers"), format!("{why} {}", go::string_list(&added))));
        }
    }
    if new.get("resourceVersion").and_then(Value::as_str).unwrap_or_default().is_empty() {
        let version = path.child("resourceVersion");
        out.push(FieldError::invalid(&version, Shown::raw("0x0"), "must be specified for an update"));
    }
    let generation = |m: &Map| m.get("generation").and_then(Value::as_int).unwrap_or(0);
    if generation(new) < generation(old) {
        out.push(FieldError::invalid(&path.child("generation"), generation(new), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        let text = |m: &Map| m.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text(new) != text(old) {
            out.push(FieldError::invalid(&path.child(field), &text(new), "field is immutable"));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        let (new, old) = (new.get(field), old.get(field));
        if new.filter(|v| !v.is_null()) != old.filter(|v| !v.is_null()) {
            out.push(FieldError::invalid(&path.child(field), shown_time(new), "field is immutable"));
        }
    }
    let grace = "deletionGracePeriodSeconds";
    let (new_grace, old_grace) = (new.get(grace).filter(|v| !v.is_null()), old.get(grace).filter(|v| !v.is_null()));
    if new_grace != old_grace {
        out.push(FieldError::invalid(&path.child(grace), new_grace, "field is immutable"));
    }
    validate_common(new, path, &mut out);
    out.extend(validate_managed_fields(new, &path.child("managedFields")));
    out
}

/// A time as Go's `time.Time` prints itself; `"null"` where there is none.
fn shown_time(value: Option<&Value>) -> Shown {
    match value.and_then(Value::as_str) {
        Some(s) => match s.strip_suffix('Z').and_then(|s| s.split_once('T')) {
            Some((date, time)) => Shown::raw(format!("{date} {time} +0000 UTC")),
            None => s.into(),
        },
        None => (&Value::Null).into(),
    }
}

/// Whether a field is there and not null.
fn present(value: Option<&Value>) -> bool {
    value.is_some_and(|v| !v.is_null())
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

fn validate_common(meta: &Map, path: &Path<'_>, out: &mut Vec<FieldError>) {
    if let Some(labels) = meta.get("labels").and_then(Value::as_object) {
        out.extend(validate_labels(labels, &path.child("labels")));
    }
    if let Some(annotations) = meta.get("annotations").and_then(Value::as_object) {
        out.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    if let Some(owners) = meta.get("ownerReferences").and_then(Value::as_array) {
        out.extend(validate_owner_references(owners, &path.child("ownerReferences")));
    }
}

/// Checks the keys and values of labels.
pub fn validate_labels(labels: &Map, path: &Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    for (key, value) in labels.iter() {
        out.extend(names::qualified_name(key).into_iter().map(|m| FieldError::invalid(path, key, m)));
        let value = value.as_str().unwrap_or_default();
        out.extend(names::label_value(value).into_iter().map(|m| FieldError::invalid(path, value, m)));
    }
    out
}

/// Checks the keys of annotations (case does not matter) and their size together.
pub fn validate_annotations(annotations: &Map, path: &Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.iter() {
        size += key.len() + value.as_str().map_or(0, str::len);
        let complaints = names::qualified_name(&key.to_lowercase());
        out.extend(complaints.into_iter().map(|m| FieldError::invalid(path, key, m)));
    }
    if size > MAX_ANNOTATIONS {
        out.push(FieldError::too_long(path, MAX_ANNOTATIONS as i64));
    }
    out
}

fn validate_owner_references(owners: &[Value], path: &Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let text = |owner: &Value, key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut controllers: Vec<String> = Vec::new();
    for owner in owners {
        let (api_version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
        let version = match api_version.split('/').collect::<Vec<_>>()[..] {
            [version] | [_, version] => version.to_owned(),
            _ => String::new(),
        };
        if version.is_empty() {
            out.push(FieldError::invalid(&path.child("apiVersion"), &api_version, "version must not be empty"));
        }
        for (field, value) in [("kind", &kind), ("name", &text(owner, "name")), ("uid", &text(owner, "uid"))] {
            if value.is_empty() {
                out.push(FieldError::invalid(&path.child(field), value, format!("{field} must not be empty")));
            }
        }
        if api_version == "v1" && kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            out.push(FieldError::invalid(path, Shown::raw(owner_syntax(owner)), why));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            controllers.push(format!("{kind}/{}", text(owner, "name")));
        }
    }
    for second in controllers.iter().skip(1) {
        let first = &controllers[0];
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let all: Vec<String> = owners.iter().map(owner_syntax).collect();
        out.push(FieldError::invalid(path, Shown::raw(format!("[]v1.OwnerReference{{{}}}", all.join(", "))), why));
    }
    out
}

/// An owner reference in Go's syntax.
fn owner_syntax(owner: &Value) -> String {
    let text = |key: &str| go::quote(owner.get(key).and_then(Value::as_str).unwrap_or_default());
    let pointer = |key: &str| if owner.get(key).and_then(Value::as_bool).is_some() { go::ADDRESS } else { "nil" };
    format!(
        "v1.OwnerReference{{APIVersion:{}, Kind:{}, Name:{}, UID:{}, Controller:(*bool)({}), BlockOwnerDeletion:(*bool)({})}}",
        text("apiVersion"),
        text("kind"),
        text("name"),
        text("uid"),
        pointer("controller"),
        pointer("blockOwnerDeletion")
    )
}

/// Whether a finalizer has a domain, or is one of those that Kubernetes itself knows.
pub fn is_qualified_finalizer(name: &str) -> bool {
    name.contains('/') || matches!(name, "kubernetes" | "orphan" | "foregroundDeletion")
}

/// Checks the finalizers' names, and that not both garbage collection policies are asked for.
pub fn validate_finalizers(meta: &Map, path: &Path<'_>) -> Vec<FieldError> {
    let finalizers = strings(meta.get("finalizers"));
    let mut out = Vec::new();
    for finalizer in &finalizers {
        let complaints = names::qualified_name(finalizer);
        out.extend(complaints.into_iter().map(|m| FieldError::invalid(path, *finalizer, m)));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        out.push(FieldError::invalid(path, Shown::raw(go::string_list(&finalizers)), why));
    }
    out
}

fn validate_managed_fields(meta: &Map, path: &Path<'_>) -> Vec<FieldError> {
    let entries = meta.get("managedFields").and_then(Value::as_array).unwrap_or_default();
    let mut out = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let path = path.index(i);
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            out.push(FieldError::invalid(&path.child("operation"), operation, "must be `Apply` or `Update`"));
        }
        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            out.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        out.extend(validate_field_manager(text("manager"), &path.child("manager")));
        if text("subresource").len() > 256 {
            out.push(FieldError::too_long(&path.child("subresource"), 256));
        }
    }
    out
}

/// Checks the name of a field manager: at most 128 bytes, all of them printable.
pub fn validate_field_manager(manager: &str, path: &Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    if manager.len() > 128 {
        out.push(FieldError::too_long(path, 128));
    }
    for (i, c) in manager.char_indices() {
        if !go::is_print(c) {
            let why = format!("invalid character U+{:04X} (at position {i})", c as u32);
            out.push(FieldError::invalid(path, manager, why));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn meta(text: &str) -> Map {
        match json::parse(text.as_bytes()).unwrap() {
            Value::Object(m) => m,
            _ => Map::new(),
        }
    }

    fn check(text: &str) -> Vec<String> {
        let errors = validate(&meta(text), true, names::dns1123_subdomain, &Path::ROOT.child("metadata"));
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn good_metadata_passes() {
        let good =
            r#"{"name":"a","namespace":"b","labels":{"x.io/y":"z"},"annotations":{"UP":""},"finalizers":["a.io/b"]}"#;
        assert_eq!(check(good), Vec::<String>::new());
    }

    #[test]
    fn each_rule_has_its_sentence() {
        for (text, error) in [
            (r#"{"namespace":"b"}"#, "metadata.name: Required value: name or generateName is required"),
            (r#"{"name":"a"}"#, "metadata.namespace: Required value"),
            (
                r#"{"name":"a","namespace":"b","generation":-1}"#,
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                r#"{"name":"a","namespace":"b","finalizers":["orphan","foregroundDeletion"]}"#,
                r#"metadata.finalizers: Invalid value: []string{"orphan", "foregroundDeletion"}: finalizer orphan and foregroundDeletion cannot be both set"#,
            ),
            (
                r#"{"name":"a","namespace":"b","ownerReferences":[{"apiVersion":"a/b/c","kind":"K","name":"n","uid":"u"}]}"#,
                r#"metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty"#,
            ),
            (
                r#"{"name":"a","namespace":"b","managedFields":[{"manager":"z\u0007","operation":"Apply"}]}"#,
                r#"metadata.managedFields[0].manager: Invalid value: "z\a": invalid character U+0007 (at position 1)"#,
            ),
        ] {
            assert_eq!(check(text), [error], "{text}");
        }
    }

    #[test]
    fn what_an_update_may_not_change() {
        let old = meta(r#"{"name":"a","uid":"1","generation":2,"deletionTimestamp":"2001-01-01T00:00:00Z"}"#);
        let new = meta(r#"{"name":"a","uid":"2","generation":1,"finalizers":["x.io/b"],"resourceVersion":"1"}"#);
        let errors = validate_update(&new, &old, &Path::ROOT.child("metadata"));
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/b"}"#,
                "metadata.generation: Invalid value: 1: must not be decremented",
                r#"metadata.uid: Invalid value: "2": field is immutable"#,
                r#"metadata.deletionTimestamp: Invalid value: "null": field is immutable"#,
            ]
        );
    }
}
