//! Names, group and scope.

use super::text;
use object::field::{FieldError, Path};
use object::names::{dns1035_label, dns1123_subdomain};
use object::{Map, Value};

pub(super) fn group_and_scope(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let at = path.child("group");
    let complaints = dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !complaints.is_empty() {
        errors.push(FieldError::invalid(&at, group, complaints.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(&at, group, "should be a domain with at least one dot"));
    }
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        scope => errors.push(FieldError::not_supported(&path.child("scope"), scope, &["Cluster", "Namespaced"])),
    }
}

/// Names that a spec must have.
pub(super) fn required(names: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if name(names, key).is_empty() {
            errors.push(FieldError::required(&path.child(key), ""));
        }
    }
}

/// The names themselves, in the spec and in the status.
pub(super) fn validate(names: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["plural", "singular"] {
        let name = name(names, key);
        if !name.is_empty() {
            label(name, &path.child(key), errors);
        }
    }
    for key in ["kind", "listKind"] {
        let name = name(names, key);
        let complaints = dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !complaints.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
            errors.push(FieldError::invalid(&path.child(key), name, detail));
        }
    }
    for key in ["shortNames", "categories"] {
        let names = names.get(key).and_then(Value::as_array).unwrap_or_default();
        let path = path.child(key);
        for (i, name) in names.iter().enumerate() {
            label(name.as_str().unwrap_or_default(), &path.index(i), errors);
        }
    }
    let list_kind = name(names, "listKind");
    if !list_kind.is_empty() && name(names, "kind") == list_kind {
        errors.push(FieldError::invalid(&path.child("listKind"), list_kind, "kind and listKind may not be the same"));
    }
}

/// A DNS label of RFC 1035.
pub(super) fn label(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let complaints = dns1035_label(name);
    if !complaints.is_empty() {
        errors.push(FieldError::invalid(path, name, complaints.join(",")));
    }
}

/// What may not change.
pub(super) fn immutable(definition: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let spec = Path::ROOT.child("spec");
    let names = spec.child("names");
    let mut fields =
        vec![(spec.child("group"), &["spec", "group"][..]), (names.child("plural"), &["spec", "names", "plural"])];
    if is_established(old) {
        fields.push((spec.child("scope"), &["spec", "scope"]));
        fields.push((names.child("kind"), &["spec", "names", "kind"]));
    }
    for (path, field) in fields {
        let value = definition.at(field);
        if value != old.at(field) {
            errors.push(FieldError::invalid(&path, value, "field is immutable"));
        }
    }
}

pub(super) fn is_established(definition: &Value) -> bool {
    crate::crd::condition(definition, "Established").is_some_and(|c| text(c, "status") == "True")
}

fn name<'n>(names: &'n Map, key: &str) -> &'n str {
    names.get(key).and_then(Value::as_str).unwrap_or_default()
}
