//! A block of `spec.resources`: what it says, read once for each version of its parent.

use crate::condition::{ApplyCondition, Mode};
use keeper::Policy;
use object::selector::Labels;
use object::{Map, Value};
use std::sync::Arc;
use template::{Functions, MissingKey, Template};

/// A block of a TenantResource or GlobalTenantResource.
#[derive(Debug)]
pub struct Block {
    /// What may be done for its targets.
    pub policy: Policy,
    /// Whether a target may be applied.
    pub condition: Option<Arc<ApplyCondition>>,
    /// Which of a tenant's namespaces it is for.
    pub namespaces: Labels,
    /// Existing objects to copy.
    pub namespaced_items: Vec<Reference>,
    /// Objects with plain substitution.
    pub raw_items: Vec<Value>,
    /// Templates of YAML documents.
    pub generators: Vec<Generator>,
    /// Objects that generators see, with the name they see them under.
    pub context: Vec<(String, Reference)>,
    /// Labels that every target gets.
    pub labels: Map,
    /// Annotations that every target gets.
    pub annotations: Map,
}

/// A template of YAML documents.
#[derive(Debug)]
pub struct Generator {
    /// The template.
    pub template: Template,
    /// What a missing key gives.
    pub missing_key: MissingKey,
}

/// Objects by name or labels.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name; with plain substitution.
    pub name: Option<String>,
    /// The namespace; with plain substitution.
    pub namespace: Option<String>,
    /// Labels, if the name is not given; with plain substitution in its values.
    pub selector: Option<Value>,
    /// Whether the object may be missing, if it is named.
    pub optional: bool,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    ///
    /// It names no kind.
    pub fn read(value: &Value) -> Result<Self, String> {
        let text = |key: &str| value.str_at(&[key]).filter(|t| !t.is_empty()).map(str::to_owned);
        Ok(Reference {
            api_version: text("apiVersion").unwrap_or_else(|| "v1".to_owned()),
            kind: text("kind").ok_or("kind: Required value")?,
            name: text("name"),
            namespace: text("namespace"),
            selector: value.get("selector").filter(|s| !s.is_null()).cloned(),
            optional: value.get("optional").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}

/// Reads `context.resources`: references with the name under which their objects are seen.
///
/// # Errors
///
/// A reference names no kind, or two have one index.
pub fn context(parent: &Value) -> Result<Vec<(String, Reference)>, String> {
    let mut all: Vec<(String, Reference)> = Vec::new();
    for (i, value) in list(parent, &["context", "resources"]).iter().enumerate() {
        let index = value.str_at(&["index"]).filter(|t| !t.is_empty()).map_or_else(|| i.to_string(), str::to_owned);
        if all.iter().any(|(known, _)| *known == index) {
            return Err(format!("context.resources[{i}].index: Duplicate value: {}", object::go::quote(&index)));
        }
        let reference = Reference::read(value).map_err(|e| format!("context.resources[{i}].{e}"))?;
        all.push((index, reference));
    }
    Ok(all)
}

/// The policy of a block without one, from the fields of older versions.
pub fn legacy_policy(spec: &Value) -> Policy {
    let flag = |path: &[&str], default| spec.at(path).and_then(Value::as_bool).unwrap_or(default);
    Policy {
        creation: if flag(&["settings", "adopt"], false) { keeper::Creation::Merge } else { keeper::Creation::Owner },
        protect: true,
        force: flag(&["settings", "force"], false),
        deletion: if flag(&["pruningOnDelete"], true) { keeper::Deletion::Remove } else { keeper::Deletion::Orphan },
    }
}

/// A policy with its condition.
pub type Conditional = (Policy, Option<Arc<ApplyCondition>>);

/// Reads the policy of a block and its condition.
///
/// # Errors
///
/// The condition does not compile; the error begins with `policy.condition`.
pub fn policy(block: &Value) -> Result<Option<Conditional>, String> {
    let Some(value) = block.get("policy").filter(|p| !p.is_null()) else { return Ok(None) };
    let condition = match value.get("condition").and_then(Value::as_str) {
        None => None,
        Some(text) => {
            let condition = ApplyCondition::new(text, Mode::Stored);
            Some(Arc::new(condition.map_err(|e| format!("policy.condition: Invalid value: {e}"))?))
        }
    };
    Ok(Some((Policy::read(value), condition)))
}

impl Block {
    /// Reads a block.
    ///
    /// # Errors
    ///
    /// What cannot be read, with its path in the block.
    pub fn read(block: &Value, spec: &Value) -> Result<Self, String> {
        let (policy, condition) = policy(block)?.unwrap_or_else(|| (legacy_policy(spec), None));
        let namespaces = match block.get("namespaceSelector").filter(|s| !s.is_null()) {
            Some(selector) => Labels::from_object(selector).map_err(|e| format!("namespaceSelector: {e}"))?,
            None => Labels::default(),
        };
        let mut namespaced_items = Vec::new();
        for (i, item) in list(block, &["namespacedItems"]).iter().enumerate() {
            namespaced_items.push(Reference::read(item).map_err(|e| format!("namespacedItems[{i}].{e}"))?);
        }
        let mut generators = Vec::new();
        for (i, generator) in list(block, &["generators"]).iter().enumerate() {
            let name = format!("generators[{i}]");
            let text = generator.str_at(&["template"]).unwrap_or_default();
            let template =
                Template::parse(&name, text, Functions::Sprig).map_err(|e| format!("{name}.template: {e}"))?;
            let missing_key = match generator.str_at(&["missingKey"]) {
                Some("invalid") => MissingKey::Invalid,
                Some("error") => MissingKey::Error,
                _ => MissingKey::Zero,
            };
            generators.push(Generator { template, missing_key });
        }
        let metadata =
            |key| block.at(&["additionalMetadata", key]).and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Block {
            policy,
            condition,
            namespaces,
            namespaced_items,
            raw_items: list(block, &["rawItems"]).to_vec(),
            generators,
            context: context(block)?,
            labels: metadata("labels"),
            annotations: metadata("annotations"),
        })
    }
}

/// A list at a path, empty where there is none.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}
