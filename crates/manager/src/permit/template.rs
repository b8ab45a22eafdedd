//! ResourcePermitTemplate and GlobalResourcePermitTemplate: what their objects say.

use super::params::check_schema;
use crate::block::{self, Reference, list};
use crate::condition::{ApplyCondition, ApprovalCondition, Mode};
use crate::replication::Account;
use object::selector::Labels;
use object::{Value, duration};
use std::time::Duration;
use template::{Functions, Template, Tree};

/// A name that parameters and context may not have.
const RESERVED: &str = "request";

/// A template of permits.
#[derive(Debug)]
pub struct PermitTemplate {
    /// What it makes.
    pub blocks: Vec<PermitBlock>,
    /// Objects that it sees, with the name it sees them under.
    pub context: Vec<(String, Reference)>,
    /// The schema of parameters.
    pub schema: Option<Value>,
    /// How long a permit lasts if it does not say.
    pub default_duration: Option<String>,
    /// How long a permit may last.
    pub max_duration: Option<Duration>,
    /// How long a permit is kept when it is over, as it is written.
    pub keep_for: Option<String>,
    /// The rules of approval, as they are written.
    pub approvals: Value,
    /// Whether a permit is approved without a reviewer.
    pub auto: bool,
    /// The account that it names, where it is whole.
    pub account: Option<Account>,
    /// Which namespaces may use it; any of these. None means all.
    pub namespaces: Option<Vec<Labels>>,
}

/// A block of a template.
#[derive(Debug)]
pub struct PermitBlock {
    /// The policy as it is written, with its condition.
    pub policy: Value,
    /// Objects whose strings are templates.
    pub targets: Vec<Tree>,
    /// A template of YAML documents.
    pub template: Option<Template>,
}

impl PermitTemplate {
    /// Reads a template, and checks everything that can be checked without a permit.
    ///
    /// # Errors
    ///
    /// The first problem, with its path.
    pub fn read(object: &Value) -> Result<Self, String> {
        let nothing = Value::Null;
        let spec = object.get("spec").unwrap_or(&nothing);
        let text = |key: &str| spec.str_at(&[key]).filter(|t| !t.is_empty());
        let mut blocks = Vec::new();
        for (i, block) in list(spec, &["resources"]).iter().enumerate() {
            blocks.push(read_block(block, &format!("spec.resources[{i}]"))?);
        }
        if blocks.is_empty() {
            return Err("spec.resources: Required value".to_owned());
        }
        let context = block::context(spec).map_err(|e| format!("spec.{e}"))?;
        if context.iter().any(|(index, _)| index == RESERVED) {
            return Err(format!("spec.context.resources: the index {RESERVED:?} is reserved"));
        }
        let schema = spec.get("paramSchema").filter(|s| !s.is_null()).cloned();
        if let Some(schema) = &schema {
            check_schema(schema).map_err(|e| format!("spec.{e}"))?;
            names_are_apart(schema, &context)?;
        }
        let read = |key: &str| text(key).map(|t| duration::go(t).map_err(|e| format!("spec.{key}: {e}"))).transpose();
        let (default, max) = (read("defaultDuration")?, read("maxDuration")?);
        if default.zip(max).is_some_and(|(default, max)| default > max) {
            return Err("spec.defaultDuration: must not exceed maxDuration".to_owned());
        }
        if let Some(keep) = text("keepFor") {
            duration::extended(keep).map_err(|e| format!("spec.keepFor: {e}"))?;
        }
        let approvals = spec.get("approvals").cloned().unwrap_or_default();
        for (i, approver) in list(&approvals, &["approvers"]).iter().enumerate() {
            if approver.str_at(&["name"]).is_none_or(str::is_empty) {
                return Err(format!("spec.approvals.approvers[{i}].name: Required value"));
            }
        }
        for (i, condition) in list(&approvals, &["conditions"]).iter().enumerate() {
            ApprovalCondition::new(condition.as_str().unwrap_or_default())
                .map_err(|e| format!("spec.approvals.conditions[{i}]: Invalid value: {e}"))?;
        }
        let namespaces = match spec.get("namespaceSelectors").and_then(Value::as_array) {
            None => None,
            Some(all) => {
                let all: Result<Vec<Labels>, String> = all.iter().map(Labels::from_object).collect();
                Some(all.map_err(|e| format!("spec.namespaceSelectors: {e}"))?)
            }
        };
        Ok(PermitTemplate {
            blocks,
            context,
            schema,
            default_duration: text("defaultDuration").map(str::to_owned),
            max_duration: max,
            keep_for: text("keepFor").map(str::to_owned),
            auto: approvals.get("auto").and_then(Value::as_bool).unwrap_or(false),
            approvals,
            account: account(spec, object.namespace()),
            namespaces,
        })
    }

    /// Whether permits of a namespace may use the template.
    pub fn is_for(&self, namespace: &Value) -> bool {
        self.namespaces.as_ref().is_none_or(|all| all.iter().any(|s| s.matches_object(namespace)))
    }

    /// Checks a permit's parameters against the schema and the names that are taken.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn check_params(&self, params: &Value) -> Result<(), String> {
        super::params::validate(self.schema.as_ref(), params)?;
        let names = params.as_object();
        for name in names.iter().flat_map(|n| n.keys()) {
            if name == RESERVED || self.context.iter().any(|(index, _)| index == name) {
                return Err(format!("params.{name}: the name is taken"));
            }
        }
        Ok(())
    }

    /// Checks how long a permit is to last.
    ///
    /// # Errors
    ///
    /// It is no duration, or too long a one. None at all, or zero, lasts for ever, which is too long if there is a limit.
    pub fn check_duration(&self, duration: Option<&str>) -> Result<(), String> {
        let length = match duration.filter(|d| !d.is_empty()) {
            Some(text) => duration::go(text).map_err(|e| format!("duration: {e}"))?,
            None => Duration::ZERO,
        };
        match self.max_duration {
            Some(max) if length > max || length.is_zero() => {
                Err(format!("duration: must be at most {}", duration::to_text(max)))
            }
            _ => Ok(()),
        }
    }
}

fn read_block(block: &Value, path: &str) -> Result<PermitBlock, String> {
    let policy = block.get("policy").cloned().unwrap_or_default();
    if let Some(condition) = policy.str_at(&["condition"]) {
        ApplyCondition::new(condition, Mode::Stored)
            .map_err(|e| format!("{path}.policy.condition: Invalid value: {e}"))?;
    }
    let mut targets = Vec::new();
    for (i, target) in list(block, &["targets"]).iter().enumerate() {
        let name = format!("targets[{i}]");
        targets.push(Tree::parse(&name, target, Functions::Sprig).map_err(|e| format!("{path}.{name}: {e}"))?);
    }
    let template = match block.str_at(&["template"]).filter(|t| !t.is_empty()) {
        Some(text) => {
            let parsed = Template::parse("template", text, Functions::Sprig);
            Some(parsed.map_err(|e| format!("{path}.template: {e}"))?)
        }
        None => None,
    };
    if targets.is_empty() && template.is_none() {
        return Err(format!("{path}: targets or template must be set"));
    }
    Ok(PermitBlock { policy, targets, template })
}

fn names_are_apart(schema: &Value, context: &[(String, Reference)]) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in properties.iter().flat_map(|p| p.keys()) {
        if name == RESERVED || context.iter().any(|(index, _)| index == name) {
            return Err(format!("spec.paramSchema.properties.{name}: the name is taken"));
        }
    }
    Ok(())
}

fn account(spec: &Value, namespace: &str) -> Option<Account> {
    let text = |key| spec.str_at(&["impersonation", key]).filter(|t| !t.is_empty());
    let name = text("name")?;
    let namespace = if namespace.is_empty() { text("namespace")? } else { namespace };
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(spec: &str) -> Result<PermitTemplate, String> {
        PermitTemplate::read(
            &yaml::parse(format!("{{metadata: {{name: t, namespace: ns}}, spec: {spec}}}").as_bytes()).unwrap(),
        )
    }

    #[test]
    fn what_can_be_checked_is_checked() {
        let ok = "resources: [{template: x}]";
        assert!(read(&format!("{{{ok}, defaultDuration: 1h, maxDuration: 2h, keepFor: 1d}}")).is_ok());
        for (spec, problem) in [
            ("{}", "spec.resources: Required value"),
            ("{resources: [{}]}", "spec.resources[0]: targets or template must be set"),
            (
                "{resources: [{template: '{{ x }}'}]}",
                "spec.resources[0].template: template: template:1: function \"x\" not defined",
            ),
            (
                "{resources: [{targets: [{kind: '{{ end }}'}]}]}",
                "spec.resources[0].targets[0]: template: targets[0].kind:1: unexpected {{end}}",
            ),
            (
                "{resources: [{template: x, policy: {condition: '1'}}]}",
                "spec.resources[0].policy.condition: Invalid value: must evaluate to bool but got int",
            ),
            (
                &format!("{{{ok}, defaultDuration: 3h, maxDuration: 2h}}"),
                "spec.defaultDuration: must not exceed maxDuration",
            ),
            (
                &format!("{{{ok}, approvals: {{approvers: [{{kind: User, name: ''}}]}}}}"),
                "spec.approvals.approvers[0].name: Required value",
            ),
            (&format!("{{{ok}, approvals: {{conditions: ['nope']}}}}"), "spec.approvals.conditions[0]: Invalid value"),
            (
                &format!("{{{ok}, paramSchema: {{properties: {{request: {{}}}}}}}}"),
                "spec.paramSchema.properties.request: the name is taken",
            ),
            (
                &format!(
                    "{{{ok}, paramSchema: {{properties: {{a: {{}}}}}}, context: {{resources: [{{kind: A, index: a}}]}}}}"
                ),
                "spec.paramSchema.properties.a: the name is taken",
            ),
        ] {
            let got = read(spec).unwrap_err();
            assert!(got.starts_with(problem), "{spec}: {got}");
        }
    }

    #[test]
    fn durations_stay_within_the_limit() {
        let t = read("{resources: [{template: x}], maxDuration: 2h}").unwrap();
        assert_eq!(t.check_duration(Some("2h")), Ok(()));
        for bad in [Some("2h1s"), Some("0s"), None, Some("1d")] {
            assert!(t.check_duration(bad).is_err(), "{bad:?}");
        }
        let unlimited = read("{resources: [{template: x}]}").unwrap();
        assert_eq!((unlimited.check_duration(None), unlimited.check_duration(Some("0s"))), (Ok(()), Ok(())));
    }
}
