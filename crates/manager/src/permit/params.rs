//! Parameters against the JSON Schema (2020-12) of a template, with CEL rules.

use super::{form, rules};
use object::{Value, json};
use std::collections::HashSet;

/// How deep schemas and values may nest.
const MAX_DEPTH: usize = 64;
/// How many checks one validation may take, so that references cannot multiply.
const MAX_CHECKS: usize = 100_000;
/// How many of them a pattern and a rule count as, which are read anew each time.
const PATTERN: usize = 50;
const RULE: usize = 200;

/// The keywords whose values are schemas.
const SCHEMAS: [&str; 9] = [
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
];
/// The keywords whose values are lists of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// The keywords whose values are schemas by name.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "dependentSchemas"];
/// Keywords under which a value may or may not match: rules are no good there.
const BRANCHES: [&str; 8] = ["not", "if", "then", "else", "anyOf", "oneOf", "$defs", "dependentSchemas"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Checks a schema of parameters.
///
/// # Errors
///
/// What is wrong with it, with its path.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    check_schema_at(schema, "paramSchema")
}

/// Checks a schema that stands at `path`.
///
/// # Errors
///
/// What is wrong with it, with its path.
pub fn check_schema_at(schema: &Value, path: &str) -> Result<(), String> {
    check_node(schema, path, true, 0)?;
    references(schema, schema, 0).map_err(|what| format!("{path}: {what}"))
}

fn check_node(node: &Value, path: &str, structural: bool, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("{path}: nests too deeply"));
    }
    let Some(members) = node.as_object() else {
        return if node.as_bool().is_some() { Ok(()) } else { Err(format!("{path}: must be an object or a boolean")) };
    };
    if let Some(types) = node.get("type") {
        let named = |t: &Value| t.as_str().is_some_and(|t| TYPES.contains(&t));
        let ok = named(types) || types.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(named));
        if !ok {
            return Err(format!("{path}.type: Invalid value: {}", json::to_string(types)));
        }
    }
    for key in ["pattern"] {
        if let Some(pattern) = node.str_at(&[key]) {
            pattern_of(pattern).map_err(|e| format!("{path}.{key}: {e}"))?;
        }
    }
    for key in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        if node.get(key).is_some_and(|v| number(v).is_none_or(|n| n < 0.0)) {
            return Err(format!("{path}.{key}: must be a number that is not negative"));
        }
    }
    if node.get("required").is_some_and(|r| r.as_array().is_none_or(|all| !all.iter().all(|v| v.as_str().is_some()))) {
        return Err(format!("{path}.required: must be a list of strings"));
    }
    if members.contains_key("x-kubernetes-validations") {
        if !structural {
            return Err(format!("{path}.x-kubernetes-validations: not possible under {}", BRANCHES.join(", ")));
        }
        rules::check(node).map_err(|e| format!("{path}.{e}"))?;
    }
    form::check(node).map_err(|e| format!("{path}.{e}"))?;
    for (key, value) in members.iter() {
        let structural = structural && !BRANCHES.contains(&key);
        let place = format!("{path}.{key}");
        if SCHEMAS.contains(&key) {
            check_node(value, &place, structural, depth + 1)?;
        } else if LISTS.contains(&key) {
            let list = value.as_array().filter(|l| !l.is_empty()).ok_or(format!("{place}: must be a list"))?;
            for (i, item) in list.iter().enumerate() {
                check_node(item, &format!("{place}[{i}]"), structural, depth + 1)?;
            }
        } else if MAPS.contains(&key) {
            for (name, item) in value.as_object().ok_or(format!("{place}: must be an object"))?.iter() {
                if key == "patternProperties" {
                    pattern_of(name).map_err(|e| format!("{place}: {e}"))?;
                }
                check_node(item, &format!("{place}.{name}"), structural, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Sees to it that every reference leads somewhere within the schema.
fn references(root: &Value, node: &Value, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH * 2 {
        return Ok(());
    }
    if let Some(target) = node.str_at(&["$ref"]) {
        resolve(root, target).ok_or_else(|| format!("reference {target:?} leads nowhere"))?;
    }
    let children: Vec<&Value> = match node {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    children.into_iter().try_for_each(|c| references(root, c, depth + 1))
}

fn resolve<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    let pointer = target.strip_prefix('#')?;
    pointer.split('/').skip(1).try_fold(root, |at, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match at {
            Value::Object(m) => m.get(&part),
            Value::Array(a) => a.get(part.parse::<usize>().ok()?),
            _ => None,
        }
    })
}

/// Validates parameters; without a schema everything is fine.
///
/// # Errors
///
/// All problems, joined.
pub fn validate(schema: Option<&Value>, params: &Value) -> Result<(), String> {
    validate_at(schema, params, "params")
}

/// Validates parameters that stand at `path`; without a schema everything is fine.
///
/// # Errors
///
/// All problems, joined.
pub fn validate_at(schema: Option<&Value>, params: &Value, path: &str) -> Result<(), String> {
    let Some(schema) = schema.filter(|s| !s.is_null()) else { return Ok(()) };
    let mut check = Check { root: schema, left: MAX_CHECKS };
    let mut errors = Vec::new();
    check.node(schema, params, path, &mut errors, 0);
    errors.truncate(20);
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

struct Check<'a> {
    root: &'a Value,
    left: usize,
}

/// The checks that one node takes for a value.
fn cost(node: &Value, value: &Value) -> usize {
    let count = |value: &Value, key: &str| value.get(key).map_or(0, |v| v.as_array().map_or(1, <[Value]>::len));
    let members = |value: Option<&Value>| value.and_then(Value::as_object).map_or(0, object::Map::len);
    let patterns = members(node.get("patternProperties")) * members(Some(value));
    1 + PATTERN * (count(node, "pattern") + patterns) + RULE * count(node, "x-kubernetes-validations")
}

impl<'a> Check<'a> {
    fn matches(&mut self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let mut errors = Vec::new();
        self.node(schema, value, "", &mut errors, depth + 1);
        errors.is_empty()
    }

    fn node(&mut self, schema: &'a Value, value: &Value, path: &str, errors: &mut Vec<String>, depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            errors.push(format!("{path}: the schema is too deep to check"));
            self.left = 0;
            return;
        }
        self.left = self.left.saturating_sub(cost(schema, value));
        if schema.as_bool() == Some(false) {
            errors.push(format!("{path}: not allowed"));
        }
        if schema.as_object().is_none() {
            return;
        }
        if let Some(target) = schema.str_at(&["$ref"]) {
            match resolve(self.root, target) {
                Some(node) => self.node(node, value, path, errors, depth + 1),
                None => errors.push(format!("{path}: reference {target:?} leads nowhere")),
            }
        }
        let mut wrong = |what: String| errors.push(format!("{path}: {what}"));
        if let Some(types) = schema.get("type") {
            let wanted: Vec<&str> = match types {
                Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            if !wanted.iter().any(|t| is_type(value, t)) {
                wrong(format!("must be of type {}", wanted.join(" or ")));
                return;
            }
        }
        if let Some(all) = schema.get("enum").and_then(Value::as_array)
            && !all.iter().any(|v| same(v, value))
        {
            let all: Vec<String> = all.iter().map(json::to_string).collect();
            wrong(format!("must be one of {}", all.join(", ")));
        }
        if schema.get("const").is_some_and(|c| !same(c, value)) {
            wrong("is not the only value allowed".to_owned());
        }
        if let Some(n) = number(value) {
            let limit = |key: &str| schema.get(key).and_then(number);
            for (key, bad) in [
                ("minimum", limit("minimum").is_some_and(|l| n < l)),
                ("maximum", limit("maximum").is_some_and(|l| n > l)),
                ("exclusiveMinimum", limit("exclusiveMinimum").is_some_and(|l| n <= l)),
                ("exclusiveMaximum", limit("exclusiveMaximum").is_some_and(|l| n >= l)),
                ("multipleOf", limit("multipleOf").is_some_and(|l| l > 0.0 && (n / l).fract().abs() > 1e-9)),
            ] {
                if bad {
                    wrong(format!(
                        "does not satisfy {key} {}",
                        schema.get(key).map(json::to_string).unwrap_or_default()
                    ));
                }
            }
        }
        if let Some(text) = value.as_str() {
            sizes(schema, text.chars().count(), ["minLength", "maxLength"], &mut wrong);
            if let Some(pattern) = schema.str_at(&["pattern"])
                && !pattern_of(pattern).is_ok_and(|p| p.is_match(text))
            {
                wrong(format!("does not match pattern {pattern:?}"));
            }
            if let Some(format) = schema.str_at(&["format"])
                && !is_format(format, text)
            {
                wrong(format!("is not a valid {format}"));
            }
        }
        self.children(schema, value, path, errors, depth);
        self.combinations(schema, value, path, errors, depth);
        if errors.is_empty() {
            rules::violations(schema, value, path, errors);
        }
    }

    fn children(&mut self, schema: &'a Value, value: &Value, path: &str, errors: &mut Vec<String>, depth: usize) {
        match value {
            Value::Array(items) => {
                sizes(schema, items.len(), ["minItems", "maxItems"], &mut |w| errors.push(format!("{path}: {w}")));
                if schema.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
                    let mut seen = HashSet::new();
                    if !items.iter().all(|i| seen.insert(json::to_string(i))) {
                        errors.push(format!("{path}: items must be unique"));
                    }
                }
                let prefix = schema.get("prefixItems").and_then(Value::as_array).unwrap_or_default();
                for (i, item) in items.iter().enumerate() {
                    if let Some(node) = prefix.get(i).or_else(|| schema.get("items")) {
                        self.node(node, item, &format!("{path}[{i}]"), errors, depth + 1);
                    }
                }
                if let Some(node) = schema.get("contains")
                    && !items.iter().any(|i| self.matches(node, i, depth))
                {
                    errors.push(format!("{path}: lacks an item that it must contain"));
                }
            }
            Value::Object(members) => {
                sizes(schema, members.len(), ["minProperties", "maxProperties"], &mut |w| {
                    errors.push(format!("{path}: {w}"));
                });
                for name in schema.get("required").and_then(Value::as_array).unwrap_or_default() {
                    if name.as_str().is_some_and(|n| !members.contains_key(n)) {
                        errors.push(format!("{path}.{}: Required value", name.as_str().unwrap_or_default()));
                    }
                }
                for (name, member) in members.iter() {
                    let place = format!("{path}.{name}");
                    let mut known = false;
                    if let Some(node) = schema.at(&["properties", name]) {
                        known = true;
                        self.node(node, member, &place, errors, depth + 1);
                    }
                    let patterns = schema.get("patternProperties").and_then(Value::as_object);
                    for (pattern, node) in patterns.iter().flat_map(|p| p.iter()) {
                        if pattern_of(pattern).is_ok_and(|p| p.is_match(name)) {
                            known = true;
                            self.node(node, member, &place, errors, depth + 1);
                        }
                    }
                    if let (false, Some(node)) = (known, schema.get("additionalProperties")) {
                        self.node(node, member, &place, errors, depth + 1);
                    }
                    if let Some(node) = schema.get("propertyNames") {
                        self.node(node, &Value::from(name), &place, errors, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn combinations(&mut self, schema: &'a Value, value: &Value, path: &str, errors: &mut Vec<String>, depth: usize) {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        for node in list("allOf").unwrap_or_default() {
            self.node(node, value, path, errors, depth + 1);
        }
        if let Some(any) = list("anyOf")
            && !any.iter().any(|n| self.matches(n, value, depth))
        {
            errors.push(format!("{path}: matches none of anyOf"));
        }
        if let Some(one) = list("oneOf")
            && one.iter().filter(|n| self.matches(n, value, depth)).count() != 1
        {
            errors.push(format!("{path}: must match exactly one of oneOf"));
        }
        if schema.get("not").is_some_and(|n| self.matches(n, value, depth)) {
            errors.push(format!("{path}: matches what it must not"));
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.matches(condition, value, depth) { "then" } else { "else" };
            if let Some(node) = schema.get(branch) {
                self.node(node, value, path, errors, depth + 1);
            }
        }
    }
}

fn sizes(schema: &Value, size: usize, [least, most]: [&str; 2], wrong: &mut impl FnMut(String)) {
    let limit = |key: &str| schema.get(key).and_then(number);
    if limit(least).is_some_and(|l| (size as f64) < l) || limit(most).is_some_and(|l| size as f64 > l) {
        wrong(format!("does not satisfy {least} or {most}"));
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(i) => Some(*i as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match (value, name) {
        (Value::Float(f), "integer") => f.fract() == 0.0,
        (Value::Int(_), "number") => true,
        _ => value.type_name() == name,
    }
}

fn pattern_of(pattern: &str) -> Result<regexp::Regexp, String> {
    regexp::Regexp::new(pattern).map_err(|e| e.to_string())
}

/// The formats that are checked; others are remarks.
fn is_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "email" => text.split_once('@').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty()),
        "uuid" => pattern_of("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$").is_ok_and(|p| p.is_match(text)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(text: &str) -> Value {
        yaml::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn parameters_are_checked_against_the_schema() {
        let schema = read(
            "{type: object, required: [name], additionalProperties: false, properties: {name: {type: string, pattern: '^[a-z]+$', maxLength: 5}, num: {type: integer, minimum: 1}, l: {type: array, items: {enum: [a, b]}, uniqueItems: true}, o: {$ref: '#/$defs/o'}, x: {oneOf: [{type: string}, {type: integer}]}}, $defs: {o: {type: object, properties: {k: {const: v}}}}, x-kubernetes-validations: [{rule: \"!has(self.num) || self.num < 10\", message: num is too large}, {rule: 'self == oldSelf'}]}",
        );
        check_schema(&schema).unwrap();
        for (params, problem) in [
            ("{name: abc, num: 3, l: [a, b], o: {k: v}, x: 1}", ""),
            ("{}", "params.name: Required value"),
            ("{name: ABC}", "params.name: does not match pattern"),
            ("{name: abcdef}", "params.name: does not satisfy minLength or maxLength"),
            ("{name: a, num: 0}", "params.num: does not satisfy minimum 1"),
            ("{name: a, num: x}", "params.num: must be of type integer"),
            ("{name: a, num: 12}", "params: num is too large"),
            ("{name: a, l: [a, a]}", "params.l: items must be unique"),
            ("{name: a, l: [c]}", "params.l[0]: must be one of \"a\", \"b\""),
            ("{name: a, o: {k: w}}", "params.o.k: is not the only value allowed"),
            ("{name: a, x: true}", "params.x: must match exactly one of oneOf"),
            ("{name: a, more: 1}", "params.more: not allowed"),
            ("[]", "params: must be of type object"),
        ] {
            let got = validate(Some(&schema), &read(params));
            let got = got.err().unwrap_or_default();
            assert!(if problem.is_empty() { got.is_empty() } else { got.contains(problem) }, "{params}: {got}");
        }
        assert_eq!(validate(None, &read("{a: 1}")), Ok(()));
    }

    #[test]
    fn schemas_that_cannot_be_are_refused() {
        for (schema, problem) in [
            ("{type: nope}", "paramSchema.type: Invalid value"),
            ("{properties: {a: {pattern: '('}}}", "paramSchema.properties.a.pattern: error parsing regexp"),
            ("{properties: {a: 1}}", "paramSchema.properties.a: must be an object or a boolean"),
            ("{$ref: '#/$defs/x'}", "leads nowhere"),
            ("{x-kubernetes-validations: []}", "must be a list that is not empty"),
            (
                "{x-kubernetes-validations: [{rule: 'self.', message: m}]}",
                "x-kubernetes-validations[0].rule: Invalid value",
            ),
            ("{x-kubernetes-validations: [{rule: 'true', extra: m}]}", "unknown field \"extra\""),
            ("{anyOf: [{x-kubernetes-validations: [{rule: 'true'}]}]}", "not possible under"),
        ] {
            let got = check_schema(&read(schema)).unwrap_err();
            assert!(got.contains(problem), "{schema}: {got}");
        }
    }

    #[test]
    fn references_in_circles_end() {
        let schema = read("{$ref: '#/$defs/a', $defs: {a: {anyOf: [{$ref: '#/$defs/a'}, {$ref: '#/$defs/a'}]}}}");
        assert!(validate(Some(&schema), &read("{}")).is_err());
    }
}
