//! Policies that change an application before it is carried out: PolicyDefinitions of `scope: Application`.

use std::collections::BTreeMap;
use std::sync::Arc;

use client::events::EventType;
use object::{Map, Value, map};

use super::controller::Controller;
use super::declared::bare;
use super::definition_kinds::DefinitionKind;
use super::definitions::{SYSTEM_NAMESPACE, is_shaping};
use super::schematic::Schematic;
use super::{names, policy};

/// The definitions of policies that an application names, by that name.
pub(super) type Pinned = BTreeMap<String, Arc<Value>>;

/// An application as its policies make it.
pub(super) struct Shaped {
    /// The application.
    pub application: Value,
    /// What templates see as `context.custom`.
    pub custom: Map,
    /// For the status: which policies had a part in it.
    pub applied: Vec<Map>,
}

/// A policy that is to be applied.
struct Shaping {
    definition: Arc<Value>,
    name: String,
    properties: Value,
    /// Whether the application names it.
    is_explicit: bool,
}

impl Controller {
    /// The definitions of policies that an application names, with or without a version, and that change it. What was made
    /// a moment ago is asked for.
    ///
    /// # Errors
    ///
    /// If there is no definition for a policy that is no built-in one, or one that changes no applications, or the server
    /// cannot tell.
    pub(super) async fn pinned_policies(&self, application: &Value) -> Result<Pinned, String> {
        let mut pinned = Pinned::new();
        let declared = application.at(&["spec", "policies"]).and_then(Value::as_array).unwrap_or_default();
        for policy in declared {
            let kind = policy.str_at(&["type"]).unwrap_or_default();
            let told = |why: &str| Err(format!("policy {}: {why}", policy.str_at(&["name"]).unwrap_or(kind)));
            let is_built_in = policy::BUILT_IN.contains(&bare(kind));
            if is_built_in && !kind.contains('@') {
                continue;
            }
            let found = self.catalogue.find(DefinitionKind::Policy, application.namespace(), kind, true).await;
            match found.map_err(|error| error.to_string())? {
                Some(found) if is_shaping(&found) => drop(pinned.insert(kind.to_owned(), found)),
                _ if is_built_in => {}
                Some(_) => {
                    return told(&format!(
                        "definition {kind} has not the scope Application; policies bring no objects"
                    ));
                }
                None => {
                    return told(&format!("policy definition {kind} not found, and no built-in policy has that name"));
                }
            }
        }
        Ok(pinned)
    }

    /// An application as its policies make it, those of everybody and its own; each sees what those before it made. They
    /// come by priority, the lowest first; of one priority those of everybody come first.
    ///
    /// # Errors
    ///
    /// If a policy that the application names cannot be applied. One of everybody is left out, and told of.
    pub(super) fn shaped(&self, application: Value, pinned: &Pinned) -> Result<Shaped, String> {
        let mut shaped = Shaped { application, custom: Map::new(), applied: Vec::new() };
        let definitions = self.catalogue.shaping();
        if definitions.is_empty() && pinned.is_empty() {
            return Ok(shaped);
        }
        for shaping in all(&shaped.application, &definitions, pinned)? {
            let kind = shaping.definition.name();
            match apply(&mut shaped, &shaping) {
                Ok(is_applied) => {
                    let mut told = map! { "name" => shaping.name.as_str(), "type" => kind, "applied" => is_applied };
                    told.insert("namespace", shaping.definition.namespace());
                    shaped.applied.push(told);
                }
                Err(why) if shaping.is_explicit => return Err(format!("policy {}: {why}", shaping.name)),
                Err(why) => {
                    let message = format!("policy {kind}: {why}");
                    self.tell(&shaped.application, EventType::Warning, "GlobalPolicyFailed", &message);
                }
            }
        }
        Ok(shaped)
    }
}

/// The policies that shape an application, in their order.
fn all(application: &Value, definitions: &[Arc<Value>], pinned: &Pinned) -> Result<Vec<Shaping>, String> {
    let is_global = |definition: &Value| definition.at(&["spec", "global"]).and_then(Value::as_bool) == Some(true);
    let namespaces = [application.namespace(), SYSTEM_NAMESPACE];
    let mut all = Vec::new();
    if application.annotation(names::SKIP_GLOBAL) != Some("true") {
        let mut global: Vec<&Arc<Value>> =
            definitions.iter().filter(|d| is_global(d) && namespaces.contains(&d.namespace())).collect();
        global.sort_by_key(|definition| definition.name().to_owned());
        all.extend(global.into_iter().map(|definition| Shaping {
            definition: definition.clone(),
            name: definition.name().to_owned(),
            properties: Value::Null,
            is_explicit: false,
        }));
    }
    let declared = application.at(&["spec", "policies"]).and_then(Value::as_array).unwrap_or_default();
    for policy in declared {
        let kind = policy.str_at(&["type"]).unwrap_or_default();
        let of = |namespace: &&str| definitions.iter().find(|d| d.name() == kind && d.namespace() == *namespace);
        let Some(definition) = pinned.get(kind).or_else(|| namespaces.iter().find_map(of)) else { continue };
        if is_global(definition) {
            return Err(format!("policy {kind} is for every application and cannot be named by one"));
        }
        all.push(Shaping {
            definition: definition.clone(),
            name: policy.str_at(&["name"]).filter(|name| !name.is_empty()).unwrap_or(kind).to_owned(),
            properties: policy.get("properties").cloned().unwrap_or_default(),
            is_explicit: true,
        });
    }
    let priority =
        |shaping: &Shaping| shaping.definition.at(&["spec", "priority"]).and_then(Value::as_int).unwrap_or_default();
    all.sort_by_key(priority);
    Ok(all)
}

/// Applies a policy; whether it had anything to say.
fn apply(shaped: &mut Shaped, shaping: &Shaping) -> Result<bool, String> {
    let application = &shaped.application;
    let part = |path: &[&str]| application.at(path).cloned().unwrap_or_default();
    let context = map! {
        "name" => application.name(),
        "appName" => application.name(),
        "namespace" => application.namespace(),
        "appLabels" => part(&["metadata", "labels"]),
        "appAnnotations" => part(&["metadata", "annotations"]),
        "appComponents" => part(&["spec", "components"]),
        "appPolicies" => part(&["spec", "policies"]),
        "appWorkflow" => part(&["spec", "workflow"]),
        "custom" => shaped.custom.clone(),
        "policyName" => shaping.name.as_str(),
        "policyType" => shaping.definition.name(),
    };
    let output = Schematic::of(&shaping.definition)?.render(&shaping.properties, &context.into())?;
    let Some(output) = output.main else { return Ok(false) };
    let members = output.as_object().ok_or("what is rendered is no object")?;
    for (key, value) in members.iter() {
        match key {
            "components" | "policies" | "workflow" => shaped.application.set_at(&["spec", key], value.clone()),
            "labels" | "annotations" => {
                let added = value.as_object().ok_or_else(|| format!("{key}: must be an object"))?;
                let known = shaped.application.object_entry("metadata").object_entry(key);
                added.iter().for_each(|(name, value)| drop(known.insert(name, value.clone())));
            }
            "ctx" => {
                let added = value.as_object().ok_or("ctx: must be an object")?;
                added.iter().for_each(|(name, value)| drop(shaped.custom.insert(name, value.clone())));
            }
            other => {
                return Err(format!(
                    "output.{other}: unknown; there are components, policies, workflow, labels, annotations and ctx"
                ));
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{json, yaml};

    fn parse(text: &str) -> Value {
        yaml::parse(text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn policies_change_an_application_in_their_order() {
        let definitions: Vec<Arc<Value>> = [
            r#"{metadata: {name: late, namespace: n}, spec: {scope: Application, priority: 9, schematic: {cel: {output: {labels: {seen: "${appNames(context)}"}}}}}}"#,
            r#"{metadata: {name: team, namespace: n}, spec: {scope: Application, priority: 5, schematic: {cel: {output: {components: "${context.appComponents + [{'name': parameter.add, 'type': 't'}]}", ctx: {team: "${parameter.team}"}}}}}}"#,
            r#"{metadata: {name: all, namespace: vela-system}, spec: {scope: Application, global: true, priority: 7, schematic: {cel: {output: {labels: {last: "${context.appComponents[size(context.appComponents) - 1].name}-${context.custom.team}"}}}}}}"#,
            r#"{metadata: {name: all, namespace: other}, spec: {scope: Application, global: true, schematic: {cel: {output: {x: 1}}}}}"#,
        ]
        .iter()
        .map(|text| Arc::new(parse(text)))
        .collect();
        let application = parse(
            r#"{metadata: {name: app, namespace: n}, spec: {components: [{name: a, type: t}], policies: [{name: p, type: team, properties: {add: b, team: red}}, {type: topology}]}}"#,
        );
        let order = |application: &Value| {
            let all = all(application, &definitions, &Pinned::new()).unwrap_or_default();
            all.iter().map(|shaping| shaping.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(&application), "p all");
        let mut shaped = Shaped { application: application.clone(), custom: Map::new(), applied: Vec::new() };
        for shaping in all(&application, &definitions, &Pinned::new()).unwrap_or_default() {
            assert_eq!(apply(&mut shaped, &shaping), Ok(true), "{}", shaping.name);
        }
        assert_eq!(shaped.application.label("last"), Some("b-red"));
        assert_eq!(json::to_string(&Value::from(shaped.custom.clone())), r#"{"team":"red"}"#);
        let mut alone = application.clone();
        alone.set_at(&["metadata", "annotations", names::SKIP_GLOBAL], "true".into());
        assert_eq!(order(&alone), "p");
        let named = parse("{metadata: {name: app, namespace: n}, spec: {policies: [{type: all}]}}");
        assert!(all(&named, &definitions, &Pinned::new()).is_err());
        let late = parse("{metadata: {name: app, namespace: n}, spec: {policies: [{type: late}]}}");
        let shaping = all(&late, &definitions, &Pinned::new()).unwrap_or_default();
        let failed = apply(&mut shaped, &shaping[1]);
        assert!(failed.is_err_and(|why| {
            why.contains("schematic.cel.output.labels.seen: 1:9: undeclared reference to 'appNames'")
        }));
    }
}
