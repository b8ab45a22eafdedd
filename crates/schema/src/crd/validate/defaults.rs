//! Defaults must be what the schema takes: pruned, and valid by its keywords and rules.

use super::rules;
use crate::metadata::{self, Malformed};
use crate::structural::{Node, Structural};
use crate::{check, embedded, prune};
use object::field::{FieldError, Path, aggregate};
use object::{Map, Value};

/// Checks all defaults of a structural schema.
pub(super) fn validate(schema: &Value, structural: &Structural, path: &Path<'_>) -> Vec<FieldError> {
    // Most schemas have none.
    if !mentioned(schema) {
        return Vec::new();
    }
    let mut walk = Walk { errors: Vec::new(), budget: rules::Budget::default() };
    let root = Surroundings { node: structural.root(), steps: Vec::new() };
    walk.node(structural.root(), true, &root, false, path);
    walk.errors
}

/// Whether `default` stands anywhere in a schema or version.
pub(super) fn mentioned(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if members.contains_key("default") {
                    return true;
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

#[derive(Clone)]
enum Step {
    Key(String),
    Item,
}

/// The resource that a default inside of metadata belongs to, and the way from it to the default.
#[derive(Clone)]
struct Surroundings<'s> {
    node: &'s Node,
    steps: Vec<Step>,
}

impl<'s> Surroundings<'s> {
    fn with(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Surroundings { node: self.node, steps }
    }

    /// A resource that has `value` at the place.
    fn around(&self, value: &Value) -> Value {
        let mut out = value.clone();
        for step in self.steps.iter().rev() {
            out = match step {
                Step::Key(key) => Value::Object([(key.as_str(), out)].into_iter().collect()),
                Step::Item => Value::Array(vec![out]),
            };
        }
        if !matches!(out, Value::Object(_)) {
            out = Value::Object(Map::new());
        }
        for (key, text) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            out.object_or_insert(key, text);
        }
        out
    }
}

trait ObjectOrInsert {
    fn object_or_insert(&mut self, key: &str, text: &str);
}

impl ObjectOrInsert for Value {
    fn object_or_insert(&mut self, key: &str, text: &str) {
        if let Some(members) = self.as_object_mut() {
            members.get_or_insert(key, || Value::from(text));
        }
    }
}

struct Walk {
    errors: Vec<FieldError>,
    budget: rules::Budget,
}

impl Walk {
    fn node(&mut self, node: &Node, root: bool, around: &Surroundings<'_>, inside_meta: bool, path: &Path<'_>) {
        let resource = root || node.embedded();
        let own = Surroundings { node, steps: Vec::new() };
        let (around, inside_meta) = if resource { (&own, false) } else { (around, inside_meta) };
        if let Some(default) = node.default_value() {
            let at = path.child("default");
            if inside_meta {
                self.inside_meta(node, default, around, &at);
            } else {
                self.plain(node, root, default, &at);
            }
        }
        if let Some(items) = node.items() {
            self.node(items, false, &around.with(Step::Item), inside_meta, &path.child("items"));
        }
        let at = path.child("properties");
        for (name, property) in node.properties() {
            let meta = inside_meta || resource && matches!(name, "metadata" | "apiVersion" | "kind");
            self.node(property, false, &around.with(Step::Key(name.to_owned())), meta, &at.key(name));
        }
    }

    fn plain(&mut self, node: &Node, root: bool, default: &Value, path: &Path<'_>) {
        let resource = root || node.embedded();
        let mut pruned = default.clone();
        if prune::prune_part(node, &mut pruned, resource) {
            self.errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        }
        let mut coerced = default.clone();
        if let Err(error) = metadata::coerce_part(node, &mut coerced, Malformed::Refuse, resource, path) {
            return self.errors.push(error);
        }
        let found = embedded::validate(node, &coerced, resource, path);
        if !found.is_empty() {
            return self.errors.extend(found);
        }
        self.values(node, &coerced, path);
    }

    fn inside_meta(&mut self, node: &Node, default: &Value, around: &Surroundings<'_>, path: &Path<'_>) {
        let mut object = around.around(default);
        let refused = match metadata::coerce_part(around.node, &mut object, Malformed::Refuse, true, &Path::ROOT) {
            Err(error) => Some(error.to_string()),
            Ok(_) => {
                let found = embedded::validate(around.node, &object, true, &Path::ROOT);
                (!found.is_empty()).then(|| aggregate(&found))
            }
        };
        match refused {
            Some(why) => {
                self.errors.push(FieldError::invalid(path, default, format!("must result in valid metadata: {why}")));
            }
            None => self.values(node, default, path),
        }
    }

    /// The default against keywords, and against rules as if it were created and as if it stayed.
    fn values(&mut self, node: &Node, default: &Value, path: &Path<'_>) {
        let found = check::check_default(node, default, path);
        if !found.is_empty() {
            return self.errors.extend(found);
        }
        self.errors.extend(self.budget.check_default(node, default, path));
    }
}
