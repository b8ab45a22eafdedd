//! What an Application declares, read once.

use object::Value;

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
            replica_key: text(component, "replicaKey"),
        }
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
