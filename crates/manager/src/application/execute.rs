//! Carrying out the steps of a workflow.

use std::borrow::Cow;
use std::time::Duration;

use compact_str::CompactString;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use keeper::Scope;
use object::{Map, Value, map};
use tokio::sync::Mutex;

use super::builtin::{self, Deed};
use super::clusters::Fleet;
use super::declared::{self, Attached, Component, bare, components, filled, text, texts};
use super::dispatch::{Dispatcher, dispatch, named, side_by_side};
use super::health::Health;
use super::kinds::APPLICATIONS;
use super::observe::{Brought, Live, Look, Service};
use super::placement::{Placement, Policy, overridden, placements};
use super::render::{Context, Definitions, is_later, object_of_step, render, render_step};
use super::tracker::Entry;
use super::workflow::{Phase, Run, Step, StepOutcome};
use super::write::Writer;

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

impl Executor<'_> {
    /// Carries out one step.
    pub async fn execute(&mut self, step: &Step, run: &Run, dispatcher: &mut Dispatcher<'_>) -> StepOutcome {
        let outcome = match bare(&step.kind) {
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
                self.deploy(&properties, run, dispatcher).await
            }
            _ => match self.builtin(step, run) {
                Ok(Some((deed, properties))) => self.do_builtin(step, deed, &properties, dispatcher).await,
                Ok(None) => self.apply_defined(step, run, dispatcher).await,
                Err(why) => Err(why),
            },
        };
        match outcome.unwrap_or_else(StepOutcome::Failed) {
            // What a step gives may be what templates see.
            StepOutcome::Succeeded(mut output) if !step.outputs.is_empty() => {
                let application = Component { name: self.context.app.clone(), ..Component::default() };
                output.set_at(&["context"], self.context.to_value(&application));
                StepOutcome::Succeeded(output)
            }
            outcome => outcome,
        }
    }

    /// Dispatches the components of several steps as one, which saves a record for each. What goes wrong is left to the
    /// steps themselves, which find the rest done.
    pub async fn bring_at_once(&self, steps: &[&Step], run: &Run, dispatcher: &mut Dispatcher<'_>) {
        let Ok(all) = components(self.application) else { return };
        let simple = |step: &&&Step| step.kind == "apply-component" && step.inputs.is_empty();
        let own = steps.iter().filter(simple).filter(|step| run.state(&step.name).phase == Phase::Pending);
        let named =
            own.filter(|step| ["cluster", "namespace"].iter().all(|key| text(&step.properties, key).is_empty()));
        let component = |step: &&Step| {
            let name = step.properties.str_at(&["component"]).unwrap_or(&step.name);
            all.iter().find(|component| component.name == name)
        };
        let components: Vec<&Component> = named.filter_map(component).collect();
        if components.len() < 2 {
            return;
        }
        let rendered = components.iter().map(|component| render(component, self.definitions, &self.context, None));
        if let Ok(objects) = rendered.collect::<Result<Vec<Vec<Value>>, String>>() {
            let writer = dispatcher.writer;
            _ = dispatch(writer, &Mutex::new(dispatcher), objects.concat()).await;
        }
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
        let placement = Placement { cluster: self.cluster_of(properties)?, namespace: text(properties, "namespace") };
        let writer = dispatcher.writer;
        let brought =
            self.bring(&component, &placement, !step.outputs.is_empty(), writer, &Mutex::new(dispatcher)).await;
        self.note(brought)
    }

    /// Carries out a step by its definition: its objects are brought, and it is through when they are well.
    async fn apply_defined(
        &mut self,
        step: &Step,
        run: &Run,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<StepOutcome, String> {
        let kind = step.kind.as_str();
        let definition =
            self.definitions.step(kind).ok_or_else(|| format!("workflow step type {kind} is not supported"))?;
        let properties = run.filled(step, step.properties.clone());
        let component =
            Component { name: step.name.clone(), kind: kind.to_owned(), properties, ..Component::default() };
        let objects = render_step(&component, definition, &self.context)?;
        let writer = dispatcher.writer;
        dispatch(writer, &Mutex::new(dispatcher), objects.clone()).await?;
        let look = Look {
            component: &component,
            definition: Some(definition),
            definitions: self.definitions,
            placement: &Placement::default(),
            context: &self.context,
            wants_output: !step.outputs.is_empty(),
        };
        let (service, live) = look.at(&objects, writer).await?;
        Ok(outcome(&service, &live))
    }

    /// What a step does that is built in, and its properties; `None` if it has a definition.
    fn builtin(&self, step: &Step, run: &Run) -> Result<Option<(Deed, Value)>, String> {
        if builtin::replaces(self.definitions.step(&step.kind)) {
            return Ok(None);
        }
        let properties = run.filled(step, step.properties.clone());
        Ok(builtin::deed(&step.kind, &properties)?.map(|deed| (deed, properties)))
    }

    /// Carries out a built-in step.
    async fn do_builtin(
        &self,
        step: &Step,
        deed: Deed,
        properties: &Value,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<StepOutcome, String> {
        let cluster = self.cluster_of(properties)?;
        let mut context = self.context.clone();
        context.cluster = cluster;
        let component =
            Component { name: step.name.clone(), kind: bare(&step.kind).to_owned(), ..Component::default() };
        let writer = dispatcher.writer;
        match deed {
            Deed::Apply(object) => {
                let object = object_of_step(&component, object, &context)?;
                let look = Look {
                    component: &component,
                    definition: None,
                    definitions: self.definitions,
                    placement: &Placement::default(),
                    context: &context,
                    wants_output: !step.outputs.is_empty(),
                };
                dispatch(writer, &Mutex::new(dispatcher), vec![object.clone()]).await?;
                let (service, live) = look.at(&[object], writer).await?;
                Ok(outcome(&service, &live))
            }
            Deed::Read(mut wanted) => {
                if wanted.namespace().is_empty() {
                    wanted.set_at(&["metadata", "namespace"], context.namespace.as_str().into());
                }
                let site = writer.site(&context.cluster)?.cluster;
                let mut entry = Entry::of(&wanted).ok_or("properties name no object")?;
                if site.scope(&entry.identity.kind).await.map_err(|error| error.to_string())? == Some(Scope::Cluster) {
                    entry.identity.namespace = CompactString::default();
                }
                match site.get(&entry.identity).await.map_err(|error| error.to_string())? {
                    Some(live) => Ok(StepOutcome::Succeeded(map! { "output" => map! { "value" => live } }.into())),
                    None => Err(format!("{} not found", named(&entry))),
                }
            }
            Deed::DependOn { namespace, name } => {
                let namespace = if namespace.is_empty() { &context.app_namespace } else { &namespace };
                let found = dispatcher.client.api(&APPLICATIONS).find(namespace, &name).await;
                let found = found.map_err(|error| error.to_string())?;
                let phase = found.as_ref().and_then(|app| app.str_at(&["status", "status"]));
                Ok(match (&found, phase) {
                    (_, Some("running")) => StepOutcome::Succeeded(Value::Null),
                    (None, _) => StepOutcome::Waiting(format!("there is no Application {namespace}/{name} yet")),
                    (_, phase) => {
                        let phase = phase.unwrap_or("not begun");
                        StepOutcome::Waiting(format!("Application {namespace}/{name} is {phase}"))
                    }
                })
            }
        }
    }

    /// The cluster that properties name, by its name of now; empty for the one in which the application is.
    fn cluster_of(&self, properties: &Value) -> Result<String, String> {
        let cluster = text(properties, "cluster");
        if !cluster.is_empty() && !self.fleet.has(&cluster) {
            return Err(format!("failed to get cluster {cluster}: no such cluster"));
        }
        Ok(self.fleet.name_now(&cluster).into())
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
        let away = |why: String| Ok((Service::unknown(component, placement, None, &why), Live::default()));
        if let Some(why) = self.fleet.trouble(&placement.cluster) {
            return away(why);
        }
        let mut context = self.context.clone();
        placement.cluster.clone_into(&mut context.cluster);
        if !placement.namespace.is_empty() {
            placement.namespace.clone_into(&mut context.namespace);
        }
        let is_later = |attached: &Attached| self.definitions.of_trait(&attached.kind).is_some_and(is_later);
        let has_later = component.traits.iter().any(is_later);
        let look = Look {
            component,
            definition: self.definitions.component(&component.kind),
            definitions: self.definitions,
            placement,
            context: &context,
            wants_output: wants_output || has_later,
        };
        let work = async {
            let objects = render(component, self.definitions, &context, None)?;
            dispatch(writer, dispatcher, objects.clone()).await?;
            let (service, live) = look.at(&objects, writer).await?;
            if !has_later || !service.health.healthy {
                return Ok((service, live));
            }
            // What waited for the component.
            let objects = render(component, self.definitions, &context, Some(&live))?;
            dispatch(writer, dispatcher, objects.clone()).await?;
            look.at(&objects, writer).await
        };
        match (work.await, self.fleet.trouble(&placement.cluster)) {
            (Err(_), Some(why)) => away(why),
            (brought, _) => brought,
        }
    }

    /// Notes what became of a component in one place.
    fn note(&mut self, brought: Brought) -> Result<StepOutcome, String> {
        let (service, live) = brought?;
        let outcome = outcome(&service, &live);
        self.services.retain(|known| (&known.name, &known.placement) != (&service.name, &service.placement));
        self.services.push(service);
        Ok(outcome)
    }

    /// Deploys the components to where the topologies say, as the overrides change them, everywhere at once; what depends
    /// on others after those are healthy.
    async fn deploy(
        &mut self,
        properties: &Value,
        run: &Run,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<StepOutcome, String> {
        let policies = self.policies(properties)?;
        let placements = placements(&policies, self.fleet)?;
        let mut components = overridden(components(self.application)?, &policies)?;
        if properties.get("ignoreTerraformComponent").and_then(Value::as_bool) != Some(false) {
            let is_terraform = |definition: &Value| definition.at(&["spec", "schematic", "terraform"]).is_some();
            components.retain(|component| !self.definitions.component(&component.kind).is_some_and(is_terraform));
        }
        let width = properties.get("parallelism").and_then(Value::as_int).and_then(|width| usize::try_from(width).ok());
        let width = width.filter(|width| *width > 0).unwrap_or(PARALLELISM);
        let writer = dispatcher.writer;
        let dispatcher = Mutex::new(dispatcher);
        let places = placements
            .iter()
            .map(|placement| self.deploy_to(placement, &components, (width, &run.outputs), writer, &dispatcher));
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
    /// others. `width` of them at a time; they may take what steps have `given`.
    async fn deploy_to(
        &self,
        placement: &Placement,
        components: &[Component],
        (width, by_steps): (usize, &Map),
        writer: Writer<'_>,
        dispatcher: &Mutex<&mut Dispatcher<'_>>,
    ) -> (Vec<Brought>, Vec<String>) {
        let mut all = Vec::new();
        let mut healthy: Vec<(&str, &str)> = Vec::new();
        let mut left: Vec<&Component> = components.iter().collect();
        let mut given = by_steps.clone();
        // Each round brings those whose needs are met; a round that brings nothing ends it.
        loop {
            let is_met = |component: &Component, need: &str| {
                healthy.contains(&(need, "")) || healthy.contains(&(need, &component.replica_key))
            };
            let is_ready = |component: &&Component| {
                let givers = components.iter().filter(|giver| component.takes_from(giver));
                let mut needs = component.depends_on.iter().chain(givers.map(|giver| &giver.name));
                needs.all(|need| is_met(component, need))
            };
            let (ready, rest): (Vec<&Component>, Vec<&Component>) = left.into_iter().partition(is_ready);
            left = rest;
            if ready.is_empty() {
                let left = left.into_iter().map(|component| component.name.clone()).collect();
                return (all, left);
            }
            let taken = &given;
            let work = ready.into_iter().map(|component| async move {
                let wants_output = !component.outputs.is_empty();
                let mut taking = Cow::Borrowed(component);
                if !component.inputs.is_empty() {
                    let properties = filled(&component.inputs, taken, component.properties.clone());
                    taking.to_mut().properties = properties;
                }
                (component, self.bring(&taking, placement, wants_output, writer, dispatcher).await)
            });
            let work: Vec<BoxFuture<'_, _>> = work.map(FutureExt::boxed).collect();
            let done: Vec<(&Component, Brought)> = stream::iter(work).buffered(width).collect().await;
            for (component, brought) in done {
                if let Ok((Service { health: Health { healthy: true, .. }, .. }, live)) = &brought {
                    healthy.push((&component.name, &component.replica_key));
                    let mut output = live.to_value();
                    output.set_at(&["context"], self.context.to_value(component));
                    for (name, value) in declared::given(&component.outputs, &output) {
                        given.insert(name, value);
                    }
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
        let (fleet, definitions) = (self.fleet, self.definitions);
        let context = &self.context;
        let work = placements.iter().map(|(component, placement)| {
            let entries: Vec<&Entry> = kept
                .values()
                .filter(|entry| entry.component == component.name && entry.cluster == placement.cluster)
                .filter(|entry| {
                    let namespace = &entry.identity.namespace;
                    [placement.namespace.as_str(), ""].contains(&namespace.as_str()) || placement.namespace.is_empty()
                })
                .copied()
                .collect();
            // What has nothing in another cluster any more is not there.
            let is_there = !entries.is_empty() || placement.cluster.is_empty();
            let work = async move {
                if !is_there {
                    return None;
                }
                let objects = match fleet.trouble(&placement.cluster) {
                    Some(why) => Err(why),
                    None => as_declared(&entries, dispatcher.writer).await,
                };
                let first = entries.first().map(|entry| entry.to_object());
                let seen = match objects {
                    Err(why) => Err(why),
                    Ok((objects, are_live)) => {
                        let mut context = context.clone();
                        placement.cluster.clone_into(&mut context.cluster);
                        let definition = definitions.component(&component.kind);
                        let context = &context;
                        let look = Look { component, definition, definitions, placement, context, wants_output: false };
                        look.at_known(&objects, &are_live, dispatcher.writer).await
                    }
                };
                Some(match seen {
                    Ok((service, _)) => service,
                    Err(error) => {
                        let why = fleet.trouble(&placement.cluster).unwrap_or(error);
                        Service::unknown(component, placement, first.as_ref(), &why)
                    }
                })
            };
            (placement.cluster.as_str().into(), work.boxed())
        });
        let services = side_by_side(work.collect()).await;
        self.services.extend(services.into_iter().flatten());
    }
}

/// The objects of entries as they were declared; where only what they are is recorded, as they live, and which these are.
async fn as_declared(entries: &[&Entry], writer: Writer<'_>) -> Result<(Vec<Value>, Vec<bool>), String> {
    let mut objects = Vec::with_capacity(entries.len());
    let mut are_live = Vec::with_capacity(entries.len());
    for entry in entries {
        let live = match entry.raw {
            Some(_) => None,
            None => writer.site(&entry.cluster)?.cluster.get(&entry.identity).await.map_err(|e| e.to_string())?,
        };
        are_live.push(live.is_some());
        objects.push(live.unwrap_or_else(|| entry.to_object()));
    }
    Ok((objects, are_live))
}

/// What a step comes to whose objects are as they are.
fn outcome(service: &Service, live: &Live) -> StepOutcome {
    match &service.health {
        Health { healthy: true, .. } => StepOutcome::Succeeded(live.to_value()),
        Health { message, .. } => StepOutcome::Waiting(format!("wait healthy: {message}")),
    }
}
