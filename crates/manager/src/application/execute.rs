//! Carrying out the steps of a workflow.

use std::time::Duration;

use object::{Map, Value, map};

use super::declared::{Attached, Component, components, text, texts};
use super::dispatch::Dispatcher;
use super::health::{self, Health};
use super::render::{Context, Definitions, render};
use super::tracker::Entry;
use super::workflow::{Step, StepOutcome};

/// Where a component goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The cluster; empty for the one in which the application is.
    pub cluster: String,
    /// The namespace; empty for that of the application.
    pub namespace: String,
}

/// What the steps of one application share.
pub struct Executor<'a> {
    /// The application, as it is rendered.
    pub application: &'a Value,
    /// Its definitions.
    pub definitions: &'a dyn Definitions,
    /// What templates see.
    pub context: Context,
    /// What is known of the components' health; collected on the way.
    pub services: Vec<Service>,
}

/// What is known of one component in one place: an entry of `status.services`.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The component.
    pub name: String,
    /// Where it is.
    pub placement: Placement,
    /// The kind of its workload, as `apiVersion` and `kind`.
    pub workload: (String, String),
    /// How it is.
    pub health: Health,
    /// Its traits.
    pub traits: Vec<String>,
}

impl Service {
    /// The entry of `status.services`.
    pub fn to_value(&self, app_namespace: &str) -> Value {
        let namespace = if self.placement.namespace.is_empty() { app_namespace } else { &self.placement.namespace };
        let mut out = map! {
            "name" => self.name.as_str(),
            "namespace" => namespace,
            "healthy" => self.health.healthy,
            "workloadHealthy" => self.health.healthy,
            "workloadDefinition" => map! { "apiVersion" => self.workload.0.as_str(), "kind" => self.workload.1.as_str() },
        };
        if !self.placement.cluster.is_empty() {
            out.insert("cluster", self.placement.cluster.as_str());
        }
        if !self.health.message.is_empty() {
            out.insert("message", self.health.message.as_str());
        }
        if !self.traits.is_empty() {
            let traits: Vec<Map> = self
                .traits
                .iter()
                .map(|kind| map! { "type" => kind.as_str(), "healthy" => self.health.healthy })
                .collect();
            out.insert("traits", traits);
        }
        out.into()
    }
}

impl Executor<'_> {
    /// Carries out one step.
    pub async fn execute(&mut self, step: &Step, properties: &Value, dispatcher: &mut Dispatcher<'_>) -> StepOutcome {
        let outcome = match step.kind.as_str() {
            "suspend" => {
                let wait = properties.str_at(&["duration"]).and_then(super::workflow::duration);
                return StepOutcome::Suspended(wait.and_then(|wait| Duration::try_from(wait).ok()));
            }
            "apply-component" => self.apply_component(step, properties, dispatcher).await,
            "deploy" => self.deploy(properties, dispatcher).await,
            other => Err(format!("workflow step type {other} is not supported")),
        };
        outcome.unwrap_or_else(StepOutcome::Failed)
    }

    async fn apply_component(
        &mut self,
        step: &Step,
        properties: &Value,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<StepOutcome, String> {
        let name = properties.str_at(&["component"]).unwrap_or(&step.name);
        let all = components(self.application)?;
        let component = all.iter().find(|component| component.name == name);
        let component = component.ok_or_else(|| format!("component {name} not found"))?;
        let placement = Placement { cluster: text(properties, "cluster"), namespace: text(properties, "namespace") };
        self.bring(component, &placement, !step.outputs.is_empty(), dispatcher).await
    }

    /// Renders, dispatches, and looks whether all is well.
    async fn bring(
        &mut self,
        component: &Component,
        placement: &Placement,
        wants_output: bool,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<StepOutcome, String> {
        let mut context = self.context.clone();
        placement.cluster.clone_into(&mut context.cluster);
        if !placement.namespace.is_empty() {
            placement.namespace.clone_into(&mut context.namespace);
        }
        let objects = render(component, self.definitions, &context)?;
        dispatcher.dispatch(objects.clone()).await?;
        let (service, output) = observe(component, placement, &objects, wants_output, dispatcher).await?;
        let outcome = if service.health.healthy {
            StepOutcome::Succeeded(output)
        } else {
            StepOutcome::Waiting(format!("wait healthy: {}", service.health.message))
        };
        self.services.retain(|known| (&known.name, &known.placement) != (&service.name, &service.placement));
        self.services.push(service);
        Ok(outcome)
    }

    /// Deploys the components to where the topologies say, as the overrides change them; what depends on others after
    /// those are healthy.
    async fn deploy(&mut self, properties: &Value, dispatcher: &mut Dispatcher<'_>) -> Result<StepOutcome, String> {
        let policies = self.policies(&texts(properties, "policies"))?;
        let placements = placements(&policies)?;
        let components = overridden(components(self.application)?, &policies)?;
        let mut waiting = Vec::new();
        let mut errors = Vec::new();
        for placement in &placements {
            let mut healthy: Vec<&str> = Vec::new();
            let mut left: Vec<&Component> = components.iter().collect();
            // Each round brings those whose needs are met; a round that brings nothing ends it.
            loop {
                let (ready, rest): (Vec<&Component>, Vec<&Component>) = left
                    .into_iter()
                    .partition(|component| component.depends_on.iter().all(|need| healthy.contains(&need.as_str())));
                left = rest;
                if ready.is_empty() {
                    break;
                }
                for component in ready {
                    match self.bring(component, placement, false, dispatcher).await {
                        Ok(StepOutcome::Succeeded(_)) => healthy.push(&component.name),
                        Ok(StepOutcome::Waiting(message)) => waiting.push(format!("{}: {message}", component.name)),
                        Ok(_) => {}
                        Err(error) => errors.push(error),
                    }
                }
            }
            waiting.extend(left.iter().map(|component| format!("{}: wait dependents", component.name)));
        }
        if !errors.is_empty() {
            return Err(errors.join("; "));
        }
        Ok(if waiting.is_empty() {
            StepOutcome::Succeeded(Value::Null)
        } else {
            StepOutcome::Waiting(waiting.join(", "))
        })
    }

    /// The policies of these names, as `(type, properties)`.
    fn policies(&self, names: &[String]) -> Result<Vec<(String, Value)>, String> {
        let all = self.application.at(&["spec", "policies"]).and_then(Value::as_array).unwrap_or_default();
        let find = |name: &String| {
            let policy = all.iter().find(|policy| policy.str_at(&["name"]) == Some(name));
            let policy = policy.ok_or_else(|| format!("policy {name} not found"))?;
            Ok((text(policy, "type"), policy.get("properties").cloned().unwrap_or_default()))
        };
        names.iter().map(find).collect()
    }

    /// Looks at the health of every component as it was rendered last, without applying anything.
    pub async fn look(
        &mut self,
        placements: &[(Component, Placement)],
        dispatcher: &Dispatcher<'_>,
    ) -> Result<(), String> {
        for (component, placement) in placements {
            let cluster = if placement.cluster == "local" { "" } else { &placement.cluster };
            let kept = dispatcher.kept();
            let objects: Vec<Value> = kept
                .values()
                .filter(|entry| entry.component == component.name && entry.cluster == cluster)
                .filter(|entry| {
                    let namespace = &entry.identity.namespace;
                    [placement.namespace.as_str(), ""].contains(&namespace.as_str()) || placement.namespace.is_empty()
                })
                .filter_map(|entry| entry.raw.clone())
                .collect();
            let (service, _) = observe(component, placement, &objects, false, dispatcher).await?;
            self.services.push(service);
        }
        Ok(())
    }
}

/// The clusters and namespaces that topologies name.
fn placements(policies: &[(String, Value)]) -> Result<Vec<Placement>, String> {
    let mut all: Vec<Placement> = Vec::new();
    for (_, properties) in policies.iter().filter(|(kind, _)| kind == "topology") {
        let namespace = text(properties, "namespace");
        let selector = ["clusterLabelSelector", "clusterSelector"].iter().find_map(|key| properties.get(key));
        if selector.is_some() {
            return Err("topology: clusterLabelSelector matches no cluster".to_owned());
        }
        let mut clusters = texts(properties, "clusters");
        if clusters.is_empty() {
            clusters.push(String::new());
        }
        for cluster in clusters {
            let cluster = if cluster == "local" { String::new() } else { cluster };
            let placement = Placement { cluster, namespace: namespace.clone() };
            if !all.contains(&placement) {
                all.push(placement);
            }
        }
    }
    if all.is_empty() {
        all.push(Placement::default());
    }
    Ok(all)
}

/// The components, as override and replication policies change them, in the order of the policies.
fn overridden(mut all: Vec<Component>, policies: &[(String, Value)]) -> Result<Vec<Component>, String> {
    for (kind, properties) in policies {
        let selector = texts(properties, "selector");
        match kind.as_str() {
            "override" => {
                for patch in properties.get("components").and_then(Value::as_array).unwrap_or_default() {
                    override_by(&mut all, patch);
                }
                if !selector.is_empty() {
                    all.retain(|component| selector.contains(&component.name));
                }
            }
            "replication" => {
                let keys = texts(properties, "keys");
                all = all
                    .into_iter()
                    .flat_map(|component| {
                        let is_meant = selector.is_empty() || selector.contains(&component.name);
                        let copies: Vec<Component> = if is_meant && !keys.is_empty() {
                            keys.iter().map(|key| Component { replica_key: key.clone(), ..component.clone() }).collect()
                        } else {
                            vec![component]
                        };
                        copies
                    })
                    .collect();
            }
            _ => {}
        }
    }
    Ok(all)
}

fn override_by(all: &mut Vec<Component>, patch: &Value) {
    let (name, kind) = (text(patch, "name"), text(patch, "type"));
    let matches = |component: &Component| match name.split_once('*') {
        _ if name.is_empty() => kind.is_empty() || component.kind == kind,
        Some((head, tail)) => component.name.starts_with(head) && component.name.ends_with(tail),
        None => component.name == name,
    };
    let mut is_met = false;
    for component in all.iter_mut().filter(|component| matches(component)) {
        is_met = true;
        let properties = patch.get("properties").cloned();
        if !kind.is_empty() && component.kind != kind {
            component.kind.clone_from(&kind);
            component.properties = properties.unwrap_or_default();
        } else if let Some(properties) = properties {
            component.properties = patch::merge::apply(std::mem::take(&mut component.properties), properties);
        }
        for changed in patch.get("traits").and_then(Value::as_array).unwrap_or_default() {
            let attached = Attached::read(changed);
            let known = component.traits.iter().position(|known| known.kind == attached.kind);
            let is_off = changed.get("disable").and_then(Value::as_bool) == Some(true);
            match (known, is_off) {
                (Some(position), true) => _ = component.traits.remove(position),
                (Some(position), false) => {
                    let known = &mut component.traits[position].properties;
                    *known = patch::merge::apply(std::mem::take(known), attached.properties);
                }
                (None, true) => {}
                (None, false) => component.traits.push(attached),
            }
        }
    }
    if !is_met && !name.is_empty() && !name.contains('*') && !kind.is_empty() {
        all.push(Component::read(patch));
    }
}

/// What the live objects of a component say, and the live workload.
async fn observe(
    component: &Component,
    placement: &Placement,
    objects: &[Value],
    wants_output: bool,
    dispatcher: &Dispatcher<'_>,
) -> Result<(Service, Value), String> {
    let mut health = Health::good();
    let mut output = Value::Null;
    let workload = objects.first();
    for (index, object) in objects.iter().enumerate() {
        let Some(entry) = Entry::of(object) else { continue };
        // What has no status needs no look, unless a step wants to take something from it.
        if !has_status(object) && (index > 0 || !wants_output) {
            continue;
        }
        let cluster = dispatcher.writer.cluster(&entry.cluster)?;
        let live = cluster.get(&entry.identity).await.map_err(|error| error.to_string())?;
        let found = match &live {
            Some(live) => health::of(live),
            None => Health { healthy: false, message: format!("{} not found", super::dispatch::named(&entry)) },
        };
        if health.healthy && (!found.healthy || health.message.is_empty()) {
            health = found;
        }
        if index == 0 {
            output = live.unwrap_or_default();
        }
    }
    let of = |key: &str| workload.and_then(|workload| workload.str_at(&[key])).unwrap_or_default().to_owned();
    let service = Service {
        name: component.name.clone(),
        placement: placement.clone(),
        workload: (of("apiVersion"), of("kind")),
        health,
        traits: component.traits.iter().map(|attached| attached.kind.clone()).collect(),
    };
    Ok((service, output))
}

/// Kinds whose objects say nothing of their own health.
fn has_status(object: &Value) -> bool {
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    !matches!(
        kind,
        "ConfigMap" | "Secret" | "ServiceAccount" | "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn overrides_change_select_and_copy_components() {
        let application = parse(
            r#"{"spec":{"components":[{"name":"web","type":"t","properties":{"a":1,"b":{"c":1}},"traits":[{"type":"x"},{"type":"y"}]},{"name":"db","type":"t"}]}}"#,
        );
        let with = |policies: &str| {
            let policies = parse(policies);
            let policies: Vec<(String, Value)> = policies
                .as_array()
                .unwrap_or_default()
                .iter()
                .map(|p| (text(p, "type"), p.get("properties").cloned().unwrap_or_default()))
                .collect();
            let all = overridden(components(&application).unwrap_or_default(), &policies).unwrap_or_default();
            let told: Vec<String> = all
                .iter()
                .map(|c| format!("{}{}:{}:{}", c.name, c.replica_key, c.kind, json::to_string(&c.properties)))
                .collect();
            told.join(" ")
        };
        for (policies, expected) in [
            (
                r#"[{"type":"override","properties":{"components":[{"name":"web","properties":{"b":{"c":2}}}]}}]"#,
                r#"web:t:{"a":1,"b":{"c":2}} db:t:null"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"properties":{"z":1}}],"selector":["db"]}}]"#,
                r#"db:t:{"z":1}"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"name":"w*","type":"u","properties":{"z":1}}]}}]"#,
                r#"web:u:{"z":1} db:t:null"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"name":"new","type":"u"}]}}]"#,
                r#"web:t:{"a":1,"b":{"c":1}} db:t:null new:u:null"#,
            ),
            (
                r#"[{"type":"replication","properties":{"keys":["x","y"],"selector":["db"]}}]"#,
                r#"web:t:{"a":1,"b":{"c":1}} dbx:t:null dby:t:null"#,
            ),
        ] {
            assert_eq!(with(policies), expected, "{policies}");
        }
    }

    #[test]
    fn topologies_name_places() {
        let of = |properties: &str| placements(&[("topology".to_owned(), parse(properties))]);
        let place = |cluster: &str, namespace: &str| Placement { cluster: cluster.into(), namespace: namespace.into() };
        assert_eq!(of(r#"{"clusters":["local","eu"],"namespace":"x"}"#), Ok(vec![place("", "x"), place("eu", "x")]));
        assert_eq!(of("{}"), Ok(vec![place("", "")]));
        assert!(of(r#"{"clusterLabelSelector":{"a":"b"}}"#).is_err());
    }
}
