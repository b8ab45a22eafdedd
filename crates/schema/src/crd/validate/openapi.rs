//! The general rules for a schema.

use super::{defaults, flag, go_form, list, members, rules, structural, text};
use crate::structural::Structural;
use object::Value;
use object::field::{FieldError, Path, Shown};

/// What may stand at the root of a schema when `status` is a subresource, in the order in which upstream lists it.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Where looking for further errors ends. Upstream knows no such limit; whoever reads on is not helped.
pub(super) const MAX_ERRORS: usize = 10_000;

/// Checks the schema of a version, or that of all of them; `path` is the parent of `openAPIV3Schema`.
///
/// `status` tells whether `status` is a subresource, `unchanged` whether the schema is what it was in the definition
/// that is updated. Gives what the rules cost.
pub(super) fn validate_schema(
    schema: Option<&Value>,
    (status, unchanged): (bool, bool),
    context: &super::Context<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> Vec<rules::RuleCost> {
    let Some(schema) = schema else { return Vec::new() };
    let path = path.child("openAPIV3Schema");
    let before = errors.len();
    if status {
        root_with_status(schema, &path, errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
    }
    let mut unstructural = None;
    let mut structural = None;
    let mut compile_rules = false;
    match Structural::new(schema) {
        Err(error) => unstructural = Some(error),
        Ok(made) => {
            let found = structural::validate(schema, &path);
            let found = if found.is_empty() { defaults::validate(schema, &made, &path) } else { found };
            compile_rules = found.is_empty();
            errors.extend(found);
            structural = Some(made);
        }
    }
    let valid = structural.as_ref().filter(|_| compile_rules);
    let mut rules = valid.map(|made| rules::Rules::new(made, unchanged, context.explain, context.old));
    let walk = Walk {
        path: &path,
        root: true,
        defaults: None,
        inside_meta: false,
        uncorrelatable: None,
        cardinality: rules::Cardinality::ONCE,
    };
    let mut found = Vec::new();
    validate(schema, walk, structural.as_ref().map(Structural::root), rules.as_mut(), &mut found);
    errors.extend(found);
    let mut costs = Vec::new();
    if let Some(rules) = rules {
        let found;
        (found, costs) = rules.finish(&path);
        errors.extend(found);
    }
    if let Some(error) = unstructural.filter(|_| errors.len() == before) {
        errors.push(FieldError::invalid(&path, "", error));
    }
    costs
}

fn root_with_status(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // Upstream looks at the fields in the order of its struct and stops at the first that is not allowed.
    for key in go_form::SCHEMA_ORDER {
        if !schema.get(key).is_some_and(|v| !v.is_null()) {
            continue;
        }
        if key == "type" {
            if text(schema, "type") != "object" {
                let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
                errors.push(FieldError::invalid(&path.child("type"), text(schema, "type"), detail));
                return;
            }
        } else if !AT_ROOT.iter().any(|(allowed, _)| *allowed == key) {
            let allowed: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
            let allowed = allowed.join(" ");
            let detail = format!(
                "only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            );
            errors.push(FieldError::invalid(path, go_form::schema(schema), detail));
            return;
        }
    }
}

/// Where a schema stands in the whole.
#[derive(Clone, Copy)]
struct Walk<'w> {
    path: &'w Path<'w>,
    root: bool,
    /// Where defaults are forbidden, why.
    defaults: Option<&'w str>,
    /// Below the metadata of a resource.
    inside_meta: bool,
    /// The highest list above whose items have no old values.
    uncorrelatable: Option<&'w Path<'w>>,
    cardinality: rules::Cardinality<'w>,
}

impl<'w> Walk<'w> {
    fn below<'v>(self, path: &'v Path<'v>) -> Walk<'v>
    where
        'w: 'v,
    {
        Walk { path, root: false, ..self }
    }
}

/// Checks a schema and those below it. `node` is its compiled form; inside branches there is none. Where there is a
/// `compiler`, rules are compiled.
fn validate<'s>(
    schema: &Value,
    walk: Walk<'_>,
    node: Option<&'s crate::Node>,
    mut compiler: Option<&mut rules::Rules<'s>>,
    errors: &mut Vec<FieldError>,
) {
    // Errors of this schema and of those below it: while there are any its rules are not looked at.
    let before = errors.len();
    if before > MAX_ERRORS {
        return;
    }
    keywords(schema, walk, errors);
    children(schema, walk, node, compiler.as_deref_mut(), errors);
    extensions(schema, walk.path, errors);
    list_type(schema, walk.path, errors);
    rules::fields(schema, node, walk.path, errors);
    if let (Some(node), Some(compiler)) = (node, compiler)
        && !node.rules().is_empty()
        && errors.len() == before
    {
        compiler.compile(node, walk.path, walk.uncorrelatable, walk.cardinality);
    }
}

fn keywords(schema: &Value, walk: Walk<'_>, errors: &mut Vec<FieldError>) {
    let path = walk.path;
    let has = |key: &str| schema.get(key).is_some_and(|v| !v.is_null());
    if let Some(reason) = walk.defaults.filter(|_| has("default")) {
        errors.push(FieldError::forbidden(&path.child("default"), format!("must not be set {reason}")));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if has(key) {
            errors.push(FieldError::forbidden(&path.child(key), format!("{key} is not supported")));
        }
    }
    let kind = text(schema, "type");
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&path.child("type"), detail));
    }
    if schema.get("items").and_then(Value::as_array).is_some() {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&path.child("items"), detail));
    }
    if walk.inside_meta && flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(&path.child("x-kubernetes-embedded-resource"), detail));
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
    let additional = schema.get("additionalProperties");
    if !members(schema, "properties").is_empty() && additional.is_some_and(|a| *a != Value::Bool(true)) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
}

fn children<'s>(
    schema: &Value,
    walk: Walk<'_>,
    node: Option<&'s crate::Node>,
    mut compiler: Option<&mut rules::Rules<'s>>,
    errors: &mut Vec<FieldError>,
) {
    let path = walk.path;
    if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
        let at = path.child("additionalProperties");
        let mut below = walk.below(&at);
        if walk.inside_meta {
            below.defaults = Some("inside additionalProperties applying to object metadata");
        }
        let unbounded = rules::Unbounded { path, around: walk.cardinality.unbounded };
        match schema.get("maxProperties").and_then(Value::as_int) {
            Some(limit) => below.cardinality = walk.cardinality.within(limit),
            None => below.cardinality.unbounded = Some(&unbounded),
        }
        let node = node.and_then(crate::Node::additional_schema);
        validate(additional, below, node, compiler.as_deref_mut(), errors);
    }
    let resource = walk.root || flag(schema, "x-kubernetes-embedded-resource");
    let at = path.child("properties");
    for (name, property) in members(schema, "properties").iter() {
        let at = at.key(name);
        let mut below = walk.below(&at);
        let reason = format!("in top-level {name}");
        if resource && matches!(name, "apiVersion" | "kind" | "metadata") {
            below.inside_meta = true;
            if walk.root {
                below.defaults = Some(&reason);
            }
        }
        let node = node.and_then(|node| node.property(name));
        validate(property, below, node, compiler.as_deref_mut(), errors);
    }
    for key in ["patternProperties", "definitions", "dependencies"] {
        let at = path.child(key);
        for (name, inner) in members(schema, key).iter().filter(|(_, v)| v.as_object().is_some()) {
            validate(inner, walk.below(&at.key(name)), None, None, errors);
        }
    }
    for key in ["additionalItems", "not"] {
        if let Some(inner @ Value::Object(_)) = schema.get(key) {
            validate(inner, walk.below(&path.child(key)), None, None, errors);
        }
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        let at = path.child(key);
        for (i, branch) in list(schema, key).iter().enumerate() {
            validate(branch, walk.below(&at.index(i)), None, None, errors);
        }
    }
    let at = path.child("items");
    let mut below = walk.below(&at);
    if text(schema, "x-kubernetes-list-type") != "map" {
        below.uncorrelatable = below.uncorrelatable.or(Some(path));
    }
    let unbounded = rules::Unbounded { path, around: walk.cardinality.unbounded };
    match schema.get("maxItems").and_then(Value::as_int) {
        Some(limit) => below.cardinality = walk.cardinality.within(limit),
        None => below.cardinality.unbounded = Some(&unbounded),
    }
    match schema.get("items") {
        Some(items @ Value::Object(_)) => {
            validate(items, below, node.and_then(crate::Node::items), compiler, errors);
        }
        Some(Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                validate(item, below.below(&at.index(i)), None, None, errors);
            }
        }
        _ => {}
    }
}

fn extensions(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&at, false, "must be true or undefined"));
    }
    for (key, of, values) in [
        ("x-kubernetes-map-type", "object", &["atomic", "granular"][..]),
        ("x-kubernetes-list-type", "array", &["atomic", "set", "map"]),
    ] {
        let Some(value) = schema.get(key).and_then(Value::as_str) else { continue };
        if kind != of {
            errors.push(required_or_invalid(&path.child("type"), kind, format!("must be {of} if {key} is specified")));
        }
        if !values.contains(&value) {
            errors.push(FieldError::not_supported(&path.child(key), value, values));
        }
    }
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    if !keys.is_empty() && list_type != Some("map") {
        let at = path.child("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(&at, detail),
            Some(value) => FieldError::invalid(&at, value, detail),
        });
    }
}

fn required_or_invalid(path: &Path<'_>, value: &str, detail: String) -> FieldError {
    if value.is_empty() { FieldError::required(path, detail) } else { FieldError::invalid(path, value, detail) }
}

/// What the items of sets and map lists must be.
fn list_type(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "x-kubernetes-list-type");
    let items = schema.get("items").filter(|items| !items.is_null());
    let single = items.filter(|items| items.as_object().is_some());
    let at = path.child("items");
    match kind {
        "set" => {
            let Some(item) = single else { return };
            nullable_items(item, kind, &at, errors);
            let (key, atomic) = match text(item, "type") {
                "array" => ("x-kubernetes-list-type", matches!(text(item, "x-kubernetes-list-type"), "" | "atomic")),
                "object" => ("x-kubernetes-map-type", text(item, "x-kubernetes-map-type") == "atomic"),
                _ => return,
            };
            if !atomic {
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                // Upstream shows the list type for maps too.
                errors.push(FieldError::invalid(&at.child(key), item.get("x-kubernetes-list-type"), detail));
            }
        }
        "map" => {
            if list(schema, "x-kubernetes-list-map-keys").is_empty() {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                errors.push(FieldError::required(&path.child("x-kubernetes-list-map-keys"), detail));
            }
            match (items, single) {
                (None, _) => {
                    errors.push(FieldError::required(&at, "must have a schema if x-kubernetes-list-type is map"));
                }
                (Some(items), None) => {
                    let detail = "must only have a single schema if x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(&at, go_form::items(items), detail));
                }
                (_, Some(item)) => {
                    if text(item, "type") != "object" {
                        let detail = "must be object if parent array's x-kubernetes-list-type is map";
                        errors.push(FieldError::invalid(&at.child("type"), text(item, "type"), detail));
                    } else {
                        map_keys(schema, item, path, errors);
                    }
                    nullable_items(item, kind, &at, errors);
                    map_key_values(schema, item, &at, errors);
                }
            }
        }
        _ => {}
    }
}

fn nullable_items(item: &Value, kind: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if flag(item, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
}

fn map_keys(schema: &Value, item: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let keys: Vec<&str> = list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
    let owned: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let shown = || Shown::from(&owned[..]);
    let at = path.child("x-kubernetes-list-map-keys");
    let items = path.child("items");
    let properties = items.child("properties");
    let mut seen = std::collections::HashSet::new();
    for key in keys {
        match members(item, "properties").get(key) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let property = properties.key(key);
                // Upstream shows the type of the item, not that of the key.
                errors.push(FieldError::invalid(&property.child("type"), text(item, "type"), detail));
            }
            Some(_) => {}
            None => {
                errors.push(FieldError::invalid(&at, shown(), "entries must all be names of item properties"));
            }
        }
        if !seen.insert(key) {
            errors.push(FieldError::invalid(&at, shown(), "must not contain duplicate entries"));
        }
    }
}

fn map_key_values(schema: &Value, item: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = path.child("properties");
    let required = list(item, "required");
    for key in list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str) {
        let Some(property) = members(item, "properties").get(key) else { continue };
        let at = at.key(key);
        if property.get("default").is_none() && !required.iter().any(|name| name.as_str() == Some(key)) {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&at.child("default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
    }
}
