//! Carrying out the steps of a workflow.

use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use object::{Map, Value, map};
use tokio::sync::Mutex;

use super::clusters::Fleet;
use super::declared::{Component, components, text, texts};
use super::dispatch::{Dispatcher, dispatch, side_by_side};
use super::health::{self, Health};
use super::placement::{Placement, Policy, overridden, placements};
use super::render::{Context, Definitions, render};
use super::tracker::Entry;
use super::workflow::{Phase, Run, Step, StepOutcome};
use super::write::Writer;

/// What became of a component in one place: how it is, and the live workload.
type Brought = Result<(Service, Value), String>;

/// How many components are brought to one place at a time (upstream's default for `parallelism`).
const PARALLELISM: usize = 5;

/// What the steps of one application share.
pub struct Executor<'a> {
    /// The application, as it is rendered.
    pub application: &'a Value,
    /// Its definitions.
    pub definitions: &'a dyn Definitions,
    /// The clusters.
    pub fleet: &'a Fleet,
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
    /// A component of which nothing can be known, and why.
    fn unknown(component: &Component, placement: &Placement, workload: Option<&Value>, why: &str) -> Self {
        Service::of(component, placement, workload, Health::unknown(why))
    }

    fn of(component: &Component, placement: &Placement, workload: Option<&Value>, health: Health) -> Self {
        let of = |key: &str| workload.and_then(|workload| workload.str_at(&[key])).unwrap_or_default().to_owned();
        Service {
            name: component.name.clone(),
            placement: placement.clone(),
            workload: (of("apiVersion"), of("kind")),
            health,
            traits: component.traits.iter().map(|attached| attached.kind.clone()).collect(),
        }
    }

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
    pub async fn execute(&mut self, step: &Step, run: &Run, dispatcher: &mut Dispatcher<'_>) -> StepOutcome {
        let outcome = match step.kind.as_str() {
            "suspend" => {
                let wait = step.properties.str_at(&["duration"]).and_then(super::workflow::duration);
                return StepOutcome::Suspended(wait.and_then(|wait| Duration::try_from(wait).ok()));
            }
            "apply-component" => self.apply_component(step, run, dispatcher).await,
            "deploy" => {
                let properties = run.filled(step, step.properties.clone());
                let waits = properties.get("auto").and_then(Value::as_bool) == Some(false);
                if waits && run.state(&step.name).phase == Phase::Pending {
                    return StepOutcome::Suspended(None);
                }
                self.deploy(&properties, dispatcher).await
            }
            other => Err(format!("workflow step type {other} is not supported")),
        };
        outcome.unwrap_or_else(StepOutcome::Failed)
    }

    async fn apply_component(
        &mut self,
        step: &Step,
        run: &Run,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<StepOutcome, String> {
        let properties = &step.properties;
        let name = properties.str_at(&["component"]).unwrap_or(&step.name);
        let component = components(self.application)?.into_iter().find(|component| component.name == name);
        let mut component = component.ok_or_else(|| format!("component {name} not found"))?;
        // What is taken from others are properties of the component.
        component.properties = run.filled(step, component.properties);
        let placement = Placement { cluster: text(properties, "cluster"), namespace: text(properties, "namespace") };
        if !placement.cluster.is_empty() && !self.fleet.has(&placement.cluster) {
            return Err(format!("failed to get cluster {}: no such cluster", placement.cluster));
        }
        let placement = Placement { cluster: self.fleet.name_now(&placement.cluster).into(), ..placement };
        let writer = dispatcher.writer;
        let brought =
            self.bring(&component, &placement, !step.outputs.is_empty(), writer, &Mutex::new(dispatcher)).await;
        self.note(brought)
    }

    /// Renders, dispatches, and looks whether all is well. What cannot be brought because its cluster cannot be asked is
    /// not known to be well; that is no failure.
    async fn bring(
        &self,
        component: &Component,
        placement: &Placement,
        wants_output: bool,
        writer: Writer<'_>,
        dispatcher: &Mutex<&mut Dispatcher<'_>>,
    ) -> Brought {
        let away = |why: String| Ok((Service::unknown(component, placement, None, &why), Value::Null));
        if let Some(why) = self.fleet.trouble(&placement.cluster) {
            return away(why);
        }
        let mut context = self.context.clone();
        placement.cluster.clone_into(&mut context.cluster);
        if !placement.namespace.is_empty() {
            placement.namespace.clone_into(&mut context.namespace);
        }
        let objects = render(component, self.definitions, &context)?;
        let brought = match dispatch(writer, dispatcher, objects.clone()).await {
            Ok(()) => observe(component, placement, &objects, wants_output, writer).await,
            Err(error) => Err(error),
        };
        match (brought, self.fleet.trouble(&placement.cluster)) {
            (Err(_), Some(why)) => away(why),
            (brought, _) => brought,
        }
    }

    /// Notes what became of a component in one place.
    fn note(&mut self, brought: Brought) -> Result<StepOutcome, String> {
        let (service, output) = brought?;
        let outcome = match &service.health {
            Health { healthy: true, .. } => StepOutcome::Succeeded(output),
            Health { message, .. } => StepOutcome::Waiting(format!("wait healthy: {message}")),
        };
        self.services.retain(|known| (&known.name, &known.placement) != (&service.name, &service.placement));
        self.services.push(service);
        Ok(outcome)
    }

    /// Deploys the components to where the topologies say, as the overrides change them, everywhere at once; what depends
    /// on others after those are healthy.
    async fn deploy(&mut self, properties: &Value, dispatcher: &mut Dispatcher<'_>) -> Result<StepOutcome, String> {
        let policies = self.policies(properties)?;
        let placements = placements(&policies, self.fleet)?;
        let components = overridden(components(self.application)?, &policies)?;
        let writer = dispatcher.writer;
        let dispatcher = Mutex::new(dispatcher);
        let places = placements.iter().map(|placement| self.deploy_to(placement, &components, writer, &dispatcher));
        let places = join_all(places).await;
        let mut waiting = Vec::new();
        let mut errors = Vec::new();
        for (brought, left) in places {
            for brought in brought {
                let name = brought.as_ref().map(|(service, _)| service.name.clone()).unwrap_or_default();
                match self.note(brought) {
                    Ok(StepOutcome::Waiting(message)) => waiting.push(format!("{name}: {message}")),
                    Ok(_) => {}
                    Err(error) => errors.push(error),
                }
            }
            waiting.extend(left.iter().map(|name| format!("{name}: wait dependents")));
        }
        errors.dedup();
        if !errors.is_empty() {
            return Err(errors.join("; "));
        }
        Ok(if waiting.is_empty() {
            StepOutcome::Succeeded(Value::Null)
        } else {
            StepOutcome::Waiting(waiting.join(", "))
        })
    }

    /// Brings components to one place, each after those that it needs; what became of each, and which have to wait for
    /// others.
    async fn deploy_to(
        &self,
        placement: &Placement,
        components: &[Component],
        writer: Writer<'_>,
        dispatcher: &Mutex<&mut Dispatcher<'_>>,
    ) -> (Vec<Brought>, Vec<String>) {
        let mut all = Vec::new();
        let mut healthy: Vec<(&str, &str)> = Vec::new();
        let mut left: Vec<&Component> = components.iter().collect();
        // Each round brings those whose needs are met; a round that brings nothing ends it.
        loop {
            let is_met = |component: &Component, need: &str| {
                healthy.contains(&(need, "")) || healthy.contains(&(need, &component.replica_key))
            };
            let (ready, rest): (Vec<&Component>, Vec<&Component>) =
                left.into_iter().partition(|component| component.depends_on.iter().all(|need| is_met(component, need)));
            left = rest;
            if ready.is_empty() {
                let left = left.into_iter().map(|component| component.name.clone()).collect();
                return (all, left);
            }
            let work = ready.into_iter().map(|component| async move {
                (component, self.bring(component, placement, false, writer, dispatcher).await)
            });
            let work: Vec<BoxFuture<'_, _>> = work.map(FutureExt::boxed).collect();
            let done: Vec<(&Component, Brought)> = stream::iter(work).buffered(PARALLELISM).collect().await;
            for (component, brought) in done {
                if brought.as_ref().is_ok_and(|(service, _)| service.health.healthy) {
                    healthy.push((&component.name, &component.replica_key));
                }
                all.push(brought);
            }
        }
    }

    /// The policies that a deploy step names, and those that it writes down itself.
    fn policies(&self, properties: &Value) -> Result<Vec<Policy>, String> {
        let list = |value: Option<&'_ Value>| -> Vec<Policy> {
            let items = value.and_then(Value::as_array).unwrap_or_default();
            items.iter().enumerate().map(|(index, policy)| Policy::read(policy, index)).collect()
        };
        let all = list(self.application.at(&["spec", "policies"]));
        let find = |name: String| {
            let policy = all.iter().find(|policy| policy.name == name).cloned();
            policy.ok_or_else(|| format!("policy {name} not found"))
        };
        let mut named = texts(properties, "policies").into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
        named.extend(list(properties.get("inlinePolicies")));
        Ok(named)
    }

    /// Looks at the health of every component as it was rendered last, without applying anything, everywhere at once.
    /// What cannot be known is told as unknown.
    pub async fn look(&mut self, placements: &[(Component, Placement)], dispatcher: &Dispatcher<'_>) {
        let kept = dispatcher.kept();
        let fleet = self.fleet;
        let work = placements.iter().map(|(component, placement)| {
            let objects: Vec<Value> = kept
                .values()
                .filter(|entry| entry.component == component.name && entry.cluster == placement.cluster)
                .filter(|entry| {
                    let namespace = &entry.identity.namespace;
                    [placement.namespace.as_str(), ""].contains(&namespace.as_str()) || placement.namespace.is_empty()
                })
                .filter_map(|entry| entry.raw.clone())
                .collect();
            // What has nothing in another cluster any more is not there.
            let is_there = !objects.is_empty() || placement.cluster.is_empty();
            let work = async move {
                if !is_there {
                    return None;
                }
                let seen = match fleet.trouble(&placement.cluster) {
                    Some(why) => Err(why),
                    None => observe(component, placement, &objects, false, dispatcher.writer).await,
                };
                Some(match seen {
                    Ok((service, _)) => service,
                    Err(error) => {
                        let why = fleet.trouble(&placement.cluster).unwrap_or(error);
                        Service::unknown(component, placement, objects.first(), &why)
                    }
                })
            };
            (placement.cluster.as_str().into(), work.boxed())
        });
        let services = side_by_side(work.collect()).await;
        self.services.extend(services.into_iter().flatten());
    }
}

/// What the live objects of a component say, and the live workload.
async fn observe(
    component: &Component,
    placement: &Placement,
    objects: &[Value],
    wants_output: bool,
    writer: Writer<'_>,
) -> Brought {
    let mut health = Health::good();
    let mut output = Value::Null;
    let workload = objects.first();
    for (index, object) in objects.iter().enumerate() {
        let Some(entry) = Entry::of(object) else { continue };
        // What has no status needs no look, unless a step wants to take something from it.
        if !has_status(object) && (index > 0 || !wants_output) {
            continue;
        }
        let cluster = writer.fleet.site(&entry.cluster)?.cluster;
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
    let service = Service::of(component, placement, workload, health);
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
