//! The versions of a definition: names, schemas, subresources, columns, selectable fields.

use super::{Context, Hoisted, SchemaCost, flag, go_form, list, names, openapi, text};
use crate::json_path;
use crate::structural::{Structural, Type};
use object::field::{FieldError, Path, Shown};
use object::{Value, go};
use std::collections::HashSet;

/// Gives what the rules of each schema cost.
pub(super) fn validate(
    hoisted: &Hoisted<'_>,
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> Vec<SchemaCost> {
    let mut costs = Vec::new();
    let old = context.old;
    let at = path.child("versions");
    set_of_versions(hoisted, path, errors);
    let shared_status = has_status(hoisted.shared(hoisted.subresources, "subresources"));
    for (i, version) in hoisted.versions.iter().enumerate() {
        let at = at.index(i);
        deprecation(version, &at, errors);
        let schema = Hoisted::schema_of(version.get("schema"));
        if schema.is_none() {
            let field = "schema.openAPIV3Schema";
            errors.push(FieldError::required(&at.child(field), "schemas are required"));
        }
        let subresources = version.get("subresources");
        if !hoisted.schema {
            let status = has_status(subresources) || shared_status;
            let about = (status, unchanged(version, old));
            let rules = openapi::validate_schema(schema, about, context, &at.child("schema"), errors);
            costs.push(SchemaCost { versions: vec![text(version, "name").to_owned()], rules });
        }
        if !hoisted.subresources {
            scale(subresources, &at.child("subresources"), errors);
        }
        if !hoisted.columns {
            columns(list(version, "additionalPrinterColumns"), &at, errors);
        }
        if !hoisted.selectable {
            let missing = "selectableFields may only be set when version.schema.openAPIV3Schema is not included";
            let own = schema.filter(|_| !hoisted.schema);
            selectable(list(version, "selectableFields"), own, missing, &at, errors);
        }
    }
    let schema = Hoisted::schema_of(hoisted.shared(hoisted.schema, "schema"));
    let any_status = hoisted.versions.iter().any(|version| has_status(version.get("subresources")));
    let same = hoisted.versions.iter().all(|version| unchanged(version, old));
    let rules = openapi::validate_schema(schema, (any_status, same), context, &path.child("validation"), errors);
    if hoisted.schema {
        let versions = hoisted.versions.iter().map(|version| text(version, "name").to_owned()).collect();
        costs.push(SchemaCost { versions, rules });
    }
    scale(hoisted.shared(hoisted.subresources, "subresources"), &path.child("subresources"), errors);
    if let Some(shared) = hoisted.versions.first() {
        if hoisted.columns {
            columns(list(shared, "additionalPrinterColumns"), path, errors);
        }
        if hoisted.selectable {
            let missing = "selectableFields may only be set when validations.schema is included";
            selectable(list(shared, "selectableFields"), schema, missing, path, errors);
        }
    }
    costs
}

/// Whether the version has the schema that it has in `old`.
fn unchanged(version: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old.and_then(|old| old.at(&["spec", "versions"])).and_then(Value::as_array) else { return false };
    old.iter().any(|o| text(o, "name") == text(version, "name") && o.get("schema") == version.get("schema"))
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|s| s.get("status").is_some())
}

fn set_of_versions(hoisted: &Hoisted<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = path.child("versions");
    let mut seen = HashSet::new();
    let mut unique = true;
    for (i, version) in hoisted.versions.iter().enumerate() {
        let name = text(version, "name");
        unique &= seen.insert(name);
        names::label(name, &at.index(i).child("name"), errors);
    }
    let storage = hoisted.versions.iter().filter(|version| flag(version, "storage")).count();
    if !unique {
        errors.push(FieldError::invalid(&at, go_form::versions(hoisted), "must contain unique version names"));
    }
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&at, go_form::versions(hoisted), detail));
    }
    if let Some(first) = hoisted.versions.first().map(|version| text(version, "name")).filter(|name| !name.is_empty()) {
        names::label(first, &path.child("version"), errors);
    }
}

fn deprecation(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let path = path.child("deprecationWarning");
    let mut invalid = |detail: String| errors.push(FieldError::invalid(&path, warning, detail));
    if !flag(version, "deprecated") {
        return invalid("can only be set for deprecated versions".to_owned());
    }
    if warning.len() > 256 {
        invalid("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        invalid("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !go::is_print(*c)) {
        let printable = "must only contain printable UTF-8 characters";
        invalid(format!("{printable}; non-printable character found at index {at}"));
    }
}

fn scale(subresources: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.and_then(|s| s.get("scale")) else { return };
    let path = path.child("scale");
    for (key, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let at = path.child(key);
        let value = text(scale, key);
        if value.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if simple_path(value, &at, errors) && !is_below(value, root) {
            errors.push(FieldError::invalid(&at, value, format!("should be a json path under {root}")));
        }
    }
    let value = text(scale, "labelSelectorPath");
    let at = path.child("labelSelectorPath");
    if !value.is_empty() && simple_path(value, &at, errors) && !is_below(value, ".spec") && !is_below(value, ".status")
    {
        errors.push(FieldError::invalid(&at, value, "should be a json path under either .spec or .status"));
    }
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}

fn simple_path(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let simple = value.starts_with('.');
    if !simple {
        errors.push(FieldError::invalid(path, value, "must be a simple json path starting with ."));
    }
    simple
}

fn columns(columns: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: &str = "boolean,date,integer,number,string";
    const FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";
    let path = path.child("additionalPrinterColumns");
    for (i, column) in columns.iter().enumerate() {
        let path = path.index(i);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let (kind, at) = (text(column, "type"), path.child("type"));
        if kind.is_empty() {
            errors.push(FieldError::required(&at, format!("must be one of {TYPES}")));
        } else if !TYPES.split(',').any(|t| t == kind) {
            errors.push(FieldError::invalid(&at, kind, format!("must be one of {TYPES}")));
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.split(',').any(|f| f == format) {
            errors.push(FieldError::invalid(&path.child("format"), format, format!("must be one of {FORMATS}")));
        }
        let (json_path, at) = (text(column, "jsonPath"), path.child("JSONPath"));
        if json_path.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else {
            simple_path(json_path, &at, errors);
        }
    }
}

fn selectable(
    fields: &[Value],
    schema: Option<&Value>,
    missing: &str,
    parent: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = parent.child("selectableFields");
    if fields.is_empty() {
        return;
    }
    let Some(schema) = schema else { return errors.push(FieldError::invalid(&path, "", missing)) };
    let structural = match Structural::new(schema) {
        Ok(structural) => structural,
        Err(error) => {
            let at = parent.child("schema.openAPIV3Schema");
            errors.push(FieldError::invalid(&at, "", error));
            // Upstream goes on without a schema.
            Structural::default()
        }
    };
    let mut unique = HashSet::new();
    for (i, field) in fields.iter().enumerate() {
        let value = text(field, "jsonPath");
        let at = path.index(i);
        let at = at.child("jsonPath");
        if value.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let found = match json_path::resolve(value, structural.root(), false) {
            Ok(found) => found,
            Err(error) => {
                errors.push(FieldError::invalid(&at, value, format!("is an invalid path: {error}")));
                continue;
            }
        };
        if found.field == "metadata" || found.field.starts_with("metadata.") {
            errors.push(FieldError::invalid(&at, value, "must not point to fields in metadata"));
        }
        if !matches!(found.node.typ(), Some(Type::String | Type::Boolean | Type::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&at, value, detail));
        }
        if !unique.insert(found.field) {
            errors.push(FieldError::duplicate(&at, value));
        }
    }
    if unique.len() > 8 {
        errors.push(FieldError::too_many(&path, unique.len(), 8));
    }
}

/// The versions that objects were stored in.
pub(super) fn stored(stored: &[Value], hoisted: &Hoisted<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if stored.is_empty() {
        let none = Shown::raw("[]string(nil)");
        return errors.push(FieldError::invalid(path, none, "must have at least one stored version"));
    }
    let names: HashSet<&str> = hoisted.versions.iter().map(|version| text(version, "name")).collect();
    let stored: Vec<&str> = stored.iter().filter_map(Value::as_str).collect();
    for version in hoisted.versions.iter().filter(|version| flag(version, "storage")) {
        let name = text(version, "name");
        if !stored.contains(&name) {
            let names: Vec<String> = stored.iter().map(|name| (*name).to_owned()).collect();
            errors.push(FieldError::invalid(path, &names[..], format!("must have the storage version {name}")));
        }
    }
    for (i, name) in stored.iter().enumerate().filter(|(_, name)| !names.contains(**name)) {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(i), *name, detail));
    }
}
