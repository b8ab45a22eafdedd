//! Everything that can be wrong with a definition.
//!
//! Upstream converts a definition to an internal form before it looks at it: what is the same in all versions moves
//! up to the spec. The fields of errors name that form, so the same is done here ([`Hoisted`]).

mod conversion;
mod defaults;
mod go_form;
mod names;
mod openapi;
mod rules;
mod structural;
mod versions;

pub use rules::RuleCost;

use crate::stack;
use object::field::{FieldError, Path};
use object::{Map, Value, metadata};

/// Checks a definition that is to be created; it has its defaults and its status.
pub fn validate(definition: &Value) -> Vec<FieldError> {
    stack::with_room(stack::depth(definition), || {
        let mut errors = metadata_errors(definition);
        validate_spec(definition, &Context { old: None, explain: false }, &mut errors);
        validate_status(definition, true, &mut errors);
        approval(definition, None, &mut errors);
        errors
    })
}

/// What the rules of a schema cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaCost {
    /// The versions that have the schema.
    pub versions: Vec<String>,
    /// Its rules and message expressions.
    pub rules: Vec<RuleCost>,
}

/// What the rules of a definition are estimated to cost, and why. The schemas must be valid but for their rules.
pub fn rule_costs(definition: &Value) -> Vec<SchemaCost> {
    stack::with_room(stack::depth(definition), || {
        validate_spec(definition, &Context { old: None, explain: true }, &mut Vec::new())
    })
}

/// What a check is made for.
pub(super) struct Context<'c> {
    /// The definition that is to be replaced.
    old: Option<&'c Value>,
    /// Whether it is of interest why rules cost what they cost.
    explain: bool,
}

/// Checks what is to take the place of `old`.
pub fn validate_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    let depth = stack::depth(definition).max(stack::depth(old));
    stack::with_room(depth, || {
        let mut errors = metadata_update_errors(definition, old);
        validate_spec(definition, &Context { old: Some(old), explain: false }, &mut errors);
        names::immutable(definition, old, &mut errors);
        validate_status(definition, true, &mut errors);
        approval(definition, Some(old), &mut errors);
        errors
    })
}

/// Checks a write of the status subresource.
pub fn validate_status_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = metadata_update_errors(definition, old);
    validate_status(definition, false, &mut errors);
    errors
}

fn members<'v>(value: &'v Value, key: &str) -> &'v Map {
    static NONE: Map = Map::new();
    value.get(key).and_then(Value::as_object).unwrap_or(&NONE)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn metadata_errors(definition: &Value) -> Vec<FieldError> {
    let path = Path::ROOT.child("metadata");
    let meta = members(definition, "metadata");
    let mut errors = metadata::validate(meta, false, object::names::dns1123_subdomain, &path);
    let names = definition.at(&["spec", "names", "plural"]).and_then(Value::as_str).unwrap_or_default();
    let required = format!("{names}.{}", definition.str_at(&["spec", "group"]).unwrap_or_default());
    for key in ["name", "generateName"] {
        let name = meta.get(key).and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && name != required {
            errors.push(FieldError::invalid(&path.child(key), name, "must be spec.names.plural+\".\"+spec.group"));
        }
    }
    errors
}

fn metadata_update_errors(definition: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::ROOT.child("metadata");
    metadata::validate_update(members(definition, "metadata"), members(old, "metadata"), &path)
}

/// A spec in upstream's internal form: whether each part that a version may have is the same in all of them.
pub(super) struct Hoisted<'d> {
    spec: &'d Value,
    versions: &'d [Value],
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl<'d> Hoisted<'d> {
    fn new(spec: &'d Value) -> Self {
        let versions = list(spec, "versions");
        let same = |key: &str| match versions {
            [] => false,
            [first, rest @ ..] => rest.iter().all(|version| version.get(key) == first.get(key)),
        };
        Hoisted {
            spec,
            versions,
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }

    /// What all versions share, where they do.
    fn shared(&self, hoisted: bool, key: &str) -> Option<&'d Value> {
        self.versions.first().filter(|_| hoisted)?.get(key)
    }

    fn schema_of(value: Option<&'d Value>) -> Option<&'d Value> {
        value?.get("openAPIV3Schema")
    }
}

fn validate_spec(definition: &Value, context: &Context<'_>, errors: &mut Vec<FieldError>) -> Vec<SchemaCost> {
    let old = context.old;
    static NULL: Value = Value::Null;
    let spec = definition.get("spec").unwrap_or(&NULL);
    let path = Path::ROOT.child("spec");
    let hoisted = Hoisted::new(spec);
    names::group_and_scope(spec, &path, errors);
    let costs = versions::validate(&hoisted, context, &path, errors);
    names::required(members(spec, "names"), &path.child("names"), errors);
    names::validate(members(spec, "names"), &path.child("names"), errors);
    conversion::validate(spec, old, &path.child("conversion"), errors);
    if flag(spec, "preserveUnknownFields") && hoisted.versions.iter().any(defaults::mentioned) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), true, detail));
    }
    if flag(spec, "preserveUnknownFields")
        && !old.is_some_and(|old| old.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)))
    {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), true, detail));
    }
    costs
}

/// The names in the status and, except in a write of the status itself, the stored versions.
fn validate_status(definition: &Value, stored: bool, errors: &mut Vec<FieldError>) {
    static NULL: Value = Value::Null;
    let path = Path::ROOT.child("status");
    let status = definition.get("status").unwrap_or(&NULL);
    names::validate(members(status, "acceptedNames"), &path.child("acceptedNames"), errors);
    if !stored {
        return;
    }
    let spec = definition.get("spec").unwrap_or(&NULL);
    versions::stored(list(status, "storedVersions"), &Hoisted::new(spec), &path.child("storedVersions"), errors);
}

const APPROVED: &str = "api-approved.kubernetes.io";

/// How the annotation of a definition in a protected group says that it was reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The annotation is missing.
    Missing,
    /// It names a URL.
    Approved,
    /// It starts with `unapproved`.
    Bypassed,
    /// It is neither.
    Invalid,
}

/// Whether groups of this name belong to the Kubernetes community.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// What the annotation `api-approved.kubernetes.io` says, and a sentence about it.
pub fn approval_state(definition: &Value) -> (Approval, String) {
    let value = definition.at(&["metadata", "annotations", APPROVED]).and_then(Value::as_str).unwrap_or_default();
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    if value.is_empty() {
        return (Approval::Missing, format!("protected groups must have approval annotation \"{APPROVED}\", {see}"));
    }
    if value.starts_with("unapproved") {
        return (Approval::Bypassed, format!("not approved: {}", object::go::quote(value)));
    }
    match object::url::Url::parse_request(value) {
        Ok(url) if !url.scheme.is_empty() && !url.host.is_empty() => {
            (Approval::Approved, format!("approved in {value}"))
        }
        _ => {
            let how = "with either a URL or a reason starting with \"unapproved\"";
            (Approval::Invalid, format!("protected groups must have approval annotation \"{APPROVED}\" {how}, {see}"))
        }
    }
}

fn approval(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !is_protected(definition.str_at(&["spec", "group"]).unwrap_or_default()) {
        return;
    }
    let (state, reason) = approval_state(definition);
    if old.is_some_and(|old| approval_state(old).0 == state) {
        return;
    }
    let (metadata, key) = (Path::ROOT.child("metadata"), APPROVED);
    let annotations = metadata.child("annotations");
    let path = annotations.key(key);
    match state {
        Approval::Missing => errors.push(FieldError::required(&path, reason)),
        Approval::Invalid => {
            let value = definition.at(&["metadata", "annotations", APPROVED]);
            errors.push(FieldError::invalid(&path, value, reason));
        }
        Approval::Approved | Approval::Bypassed => {}
    }
}
