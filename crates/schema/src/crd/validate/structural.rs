//! The rules that make a schema structural.

use super::openapi::MAX_ERRORS;
use super::{flag, list, members, text};
use object::field::{FieldError, Path};
use object::{Map, Value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Checks a whole schema. It has a structural form already; errors come sorted by text, as upstream sorts them.
pub(super) fn validate(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn has(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|v| !v.is_null())
}

fn invariants(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() > MAX_ERRORS {
        return;
    }
    let kind = text(schema, "type");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    match schema.get("items") {
        Some(items) if !items.is_null() => invariants(items, Level::Item, &path.child("items"), errors),
        _ if kind == "array" => errors.push(FieldError::required(&path.child("items"), "must be specified")),
        _ => {}
    }
    let properties = members(schema, "properties");
    let at = path.child("properties");
    for (name, property) in properties.iter() {
        invariants(property, Level::Field, &at.key(name), errors);
    }
    let additional = schema.get("additionalProperties");
    if let Some(additional @ Value::Object(_)) = additional {
        invariants(additional, Level::Field, &path.child("additionalProperties"), errors);
    }
    if int_or_string {
        for (key, set) in
            [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
        {
            if set {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(&path.child(key), true, detail));
            }
        }
    }
    let all_of_first = list(schema, "allOf").first();
    let skip_any_of = is_int_or_string(list(schema, "anyOf"));
    let skip_nested = all_of_first.is_some_and(|first| is_int_or_string(list(first, "anyOf")));
    value_validation(schema, skip_any_of, skip_nested, path, errors);

    let at = path.child("type");
    if embedded && kind != "object" {
        errors.push(wrong_type(&at, kind, "must be object if x-kubernetes-embedded-resource is true"));
    } else if kind.is_empty() && !int_or_string && !preserve {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&at, format!("must not be empty {place}")));
    }
    if embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at, kind, "must be object at the root"));
    }
    if level == Level::Root && additional.is_some() {
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), "must not be used at the root"));
    }
    if embedded && !preserve && properties.is_empty() {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), detail));
    }
    let resource = level == Level::Root || embedded;
    resource_members(properties, resource, level, &path.child("properties"), errors);
}

fn wrong_type(path: &Path<'_>, kind: &str, detail: &str) -> FieldError {
    if kind.is_empty() { FieldError::required(path, detail) } else { FieldError::invalid(path, kind, detail) }
}

/// `kind`, `apiVersion` and `metadata` of a resource are what they are everywhere.
fn resource_members(properties: &Map, resource: bool, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["kind", "apiVersion"] {
        if let Some(property) = properties.get(key).filter(|p| resource && text(p, "type") != "string") {
            let at = path.key(key);
            errors.push(FieldError::invalid(&at.child("type"), text(property, "type"), "must be string"));
        }
    }
    let Some(metadata) = properties.get("metadata") else { return };
    let at = path.key("metadata");
    if resource && text(metadata, "type") != "object" {
        errors.push(FieldError::invalid(&at.child("type"), text(metadata, "type"), "must be object"));
    }
    if level == Level::Root && says_more_than_names(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(&at, detail));
    }
}

fn says_more_than_names(metadata: &Value) -> bool {
    // These have no place in a structural schema, or are checked elsewhere.
    const IGNORED: [&str; 4] = ["type", "default", "externalDocs", "example"];
    metadata.as_object().into_iter().flat_map(Map::iter).any(|(key, value)| match (key, value) {
        ("properties", Value::Object(properties)) => {
            !properties.keys().all(|name| matches!(name, "name" | "generateName"))
        }
        _ => !IGNORED.contains(&key),
    })
}

/// The one form in which branches may name types: `anyOf: [{type: integer}, {type: string}]`.
fn is_int_or_string(branches: &[Value]) -> bool {
    let only_type = |branch: &Value, kind: &str| {
        text(branch, "type") == kind
            && branch.as_object().is_some_and(|m| m.keys().all(|k| matches!(k, "type" | "externalDocs" | "example")))
    };
    matches!(branches, [first, second] if only_type(first, "integer") && only_type(second, "string"))
}

fn value_validation(
    schema: &Value,
    skip_any_of: bool,
    skip_nested: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (key, branches) in [("anyOf", !skip_any_of), ("allOf", true), ("oneOf", true)] {
        let at = path.child(key);
        for (i, branch) in list(schema, key).iter().enumerate().filter(|_| branches) {
            nested(branch, key == "allOf" && i == 0 && skip_nested, &at.index(i), errors);
        }
    }
    if let Some(branch) = schema.get("not") {
        nested(branch, false, &path.child("not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Some(error) = (!pattern.is_empty()).then(|| regexp::Regexp::new(pattern).err()).flatten() {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern, detail));
    }
}

/// A branch may only validate values.
fn nested(branch: &Value, skip_any_of: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    if errors.len() > MAX_ERRORS {
        return;
    }
    value_validation(branch, skip_any_of, false, path, errors);
    if let Some(items) = branch.get("items").filter(|v| v.as_object().is_some()) {
        nested(items, false, &path.child("items"), errors);
    }
    let properties = members(branch, "properties");
    let at = path.child("properties");
    for (name, property) in properties.iter() {
        nested(property, false, &at.key(name), errors);
    }
    for (key, detail) in [
        ("type", EMPTY),
        ("additionalProperties", UNDEFINED),
        ("default", UNDEFINED),
        ("title", EMPTY),
        ("description", EMPTY),
        ("nullable", FALSE),
        ("x-kubernetes-preserve-unknown-fields", FALSE),
        ("x-kubernetes-embedded-resource", FALSE),
        ("x-kubernetes-int-or-string", FALSE),
        ("x-kubernetes-list-map-keys", EMPTY),
        ("x-kubernetes-list-type", UNDEFINED),
        ("x-kubernetes-map-type", UNDEFINED),
        ("x-kubernetes-validations", EMPTY),
    ] {
        if has(branch, key) {
            errors.push(FieldError::forbidden(&path.child(key), detail));
        }
    }
    if properties.contains_key("metadata") {
        errors.push(FieldError::forbidden(&at.key("metadata"), "must not be specified in a nested context"));
    }
}

/// What the branches at the root mention must be there outside of them.
fn completeness(
    branches: &Value,
    schema: Option<&Value>,
    path: &Path<'_>,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(branch) = branches.get("not") {
        nested_completeness(branch, schema, path, &at.child("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let at = at.child(key);
        for (i, branch) in list(branches, key).iter().enumerate() {
            nested_completeness(branch, schema, path, &at.index(i), errors);
        }
    }
}

fn nested_completeness(
    branch: &Value,
    schema: Option<&Value>,
    path: &Path<'_>,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        return errors.push(FieldError::required(path, format!("because it is defined in {at}")));
    };
    completeness(branch, Some(schema), path, at, errors);
    if let Some(items) = branch.get("items").filter(|v| v.as_object().is_some()) {
        let inner = schema.get("items").filter(|v| v.as_object().is_some());
        nested_completeness(items, inner, &path.child("items"), &at.child("items"), errors);
    }
    let (path, at) = (path.child("properties"), at.child("properties"));
    for (name, property) in members(branch, "properties").iter() {
        let inner = members(schema, "properties").get(name);
        nested_completeness(property, inner, &path.key(name), &at.key(name), errors);
    }
}
