//! What an Application declares, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

use cel::env::Env;
use object::{Map, Value};

use super::expression::{Expression, environment};
use super::field;

/// A component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Component {
    /// Its name; no other component has it.
    pub name: String,
    /// Its definition.
    pub kind: String,
    /// The parameters.
    pub properties: Value,
    /// The components that must be healthy first.
    pub depends_on: Vec<String>,
    /// What is attached to it.
    pub traits: Vec<Attached>,
    /// What it takes from the outputs of others: name and place in the properties.
    pub inputs: Vec<(String, String)>,
    /// What it gives: name and path of the value in its objects.
    pub outputs: Vec<(String, String)>,
    /// The key that a replication policy set; empty for none.
    pub replica_key: String,
}

/// A trait of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attached {
    /// Its definition.
    pub kind: String,
    /// The parameters.
    pub properties: Value,
}

impl Component {
    /// Reads a component.
    pub fn read(component: &Value) -> Self {
        let traits = component.get("traits").and_then(Value::as_array).unwrap_or_default();
        Component {
            name: text(component, "name"),
            kind: text(component, "type"),
            properties: component.get("properties").cloned().unwrap_or_default(),
            depends_on: texts(component, "dependsOn"),
            traits: traits.iter().map(Attached::read).collect(),
            inputs: inputs(component),
            outputs: outputs(component),
            replica_key: text(component, "replicaKey"),
        }
    }

    /// Whether another component gives something that this one takes.
    pub fn takes_from(&self, giver: &Component) -> bool {
        let gives = |name: &str| giver.outputs.iter().any(|(given, _)| given == name);
        self.inputs.iter().any(|(from, _)| gives(from))
    }
}

impl Attached {
    pub(crate) fn read(attached: &Value) -> Self {
        let properties = attached.get("properties").cloned().unwrap_or_default();
        Attached { kind: text(attached, "type"), properties }
    }
}

/// The components of an application.
///
/// # Errors
///
/// If two have one name, or one has none.
pub fn components(application: &Value) -> Result<Vec<Component>, String> {
    let declared = application.at(&["spec", "components"]).and_then(Value::as_array).unwrap_or_default();
    let components: Vec<Component> = declared.iter().map(Component::read).collect();
    for (index, component) in components.iter().enumerate() {
        if component.name.is_empty() {
            return Err(format!("spec.components[{index}].name: Required value"));
        }
        if components[..index].iter().any(|other| other.name == component.name) {
            return Err(format!("spec.components[{index}].name: Duplicate value: {:?}", component.name));
        }
    }
    Ok(components)
}

/// Which components each component needs: those it depends on, and those whose outputs it takes.
pub(crate) fn depends(application: &Value) -> HashMap<String, Vec<String>> {
    let all = components(application).unwrap_or_default();
    let needs = |component: &Component| {
        let given = all.iter().filter(|giver| component.takes_from(giver)).map(|giver| giver.name.clone());
        component.depends_on.iter().cloned().chain(given).collect()
    };
    all.iter().map(|component| (component.name.clone(), needs(component))).collect()
}

/// What a component or a step takes: name and place in the properties.
pub(crate) fn inputs(of: &Value) -> Vec<(String, String)> {
    pairs(of, "inputs", "from", "parameterKey")
}

/// What a component or a step gives: name and path of the value.
pub(crate) fn outputs(of: &Value) -> Vec<(String, String)> {
    pairs(of, "outputs", "name", "valueFrom")
}

fn pairs(of: &Value, list: &str, first: &str, second: &str) -> Vec<(String, String)> {
    let items = of.get(list).and_then(Value::as_array).unwrap_or_default();
    items.iter().map(|item| (text(item, first), text(item, second))).collect()
}

/// What the expressions of outputs may look at.
static NAMES: LazyLock<Env> = LazyLock::new(|| environment(&["output", "outputs", "context"]));

/// What `outputs` give of an `output`, which has the live objects of a component, or what a step came to, and what
/// templates see. Their values are paths, or CEL, which reads what is joined by `+`, and texts in quotes, as CUE does.
pub(crate) fn given(outputs: &[(String, String)], output: &Value) -> Map {
    let part = |key| output.get(key).unwrap_or(&Value::Null);
    let value = |path: &str| {
        let expression = Expression::new(path, &NAMES).ok();
        let variables = ["output", "outputs", "context"].map(|name| (name, part(name)));
        let value = expression.and_then(|expression| expression.value(&variables).ok());
        value.filter(|value| !value.is_null()).or_else(|| {
            let path = field::steps(path.strip_prefix("context.").unwrap_or(path));
            // A path that does not say of what is one of the workload.
            let of_workload = || field::at(output.get("output")?, &path);
            field::at(output, &path).or_else(of_workload).cloned()
        })
    };
    outputs.iter().filter_map(|(name, path)| Some((name.as_str(), value(path)?))).collect()
}

/// `properties`, with what `inputs` take put in, as far as it was given.
pub(crate) fn filled(inputs: &[(String, String)], given: &Map, mut properties: Value) -> Value {
    for (from, key) in inputs.iter().filter(|(_, key)| !key.is_empty()) {
        let key = key.strip_prefix("properties.").unwrap_or(key);
        if let Some(value) = given.get(from) {
            field::put(&mut properties, &field::steps(key), value.clone());
        }
    }
    properties
}

/// The name of a definition without the version that may follow it.
pub(crate) fn bare(kind: &str) -> &str {
    kind.split('@').next().unwrap_or_default()
}

/// The name of a definition, and the version that may follow it.
pub(crate) fn versioned(kind: &str) -> (&str, Option<&str>) {
    match kind.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (kind, None),
    }
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn texts(value: &Value, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn outputs_are_paths_texts_and_what_is_joined() {
        let output = json::parse(
            br#"{"output":{"a-b":{"c":"1"},"status":{"conditions":[{"type":"Ready","status":"True"}]}},"context":{"name":"app"}}"#,
        );
        let output = output.unwrap_or_default();
        for (path, expected) in [
            ("output.status.conditions[0].type + '=' + output.status.conditions[0].status", r#""Ready=True""#),
            ("\"text\"", r#""text""#),
            ("context.name", r#""app""#),
            ("output.a-b.c", r#""1""#),
            ("status.conditions[0].type", r#""Ready""#),
            ("context.output.status.conditions[0].type", r#""Ready""#),
            ("output.status.none", ""),
        ] {
            let given = given(&[("x".to_owned(), path.to_owned())], &output);
            assert_eq!(given.get("x").map(json::to_string).unwrap_or_default(), expected, "{path}");
        }
    }
}
