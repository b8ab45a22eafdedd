//! How components are, as their live objects tell.

use object::{Map, Value, map};

use super::declared::{Component, bare};
use super::dispatch::named;
use super::health::{self, Health};
use super::names;
use super::placement::Placement;
use super::render::{AUXILIARY, Context, Definitions, is_later};
use super::schematic::Schematic;
use super::tracker::Entry;
use super::write::Writer;

/// What became of a component in one place: how it is, and its live objects as far as they were looked at.
pub type Brought = Result<(Service, Live), String>;

/// Live objects of a component, as templates see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// The workload.
    pub output: Value,
    /// Further objects, by name.
    pub outputs: Map,
}

impl Live {
    /// Puts the objects into a context.
    pub fn put_into(&self, context: &mut Value) {
        context.set_at(&["output"], self.output.clone());
        context.set_at(&["outputs"], self.outputs.clone().into());
    }

    /// The objects alone.
    pub fn to_value(&self) -> Value {
        map! { "output" => self.output.clone(), "outputs" => self.outputs.clone() }.into()
    }
}

/// How something is, with what a definition says beside that.
#[derive(Clone, Debug, Default, PartialEq)]
struct Told {
    health: Health,
    details: Map,
}

/// How a trait is.
#[derive(Clone, Debug, PartialEq)]
pub struct TraitHealth {
    kind: String,
    told: Told,
    /// It is brought when its component is healthy.
    is_pending: bool,
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
    /// How it is, with its traits.
    pub health: Health,
    /// How the workload is.
    told: Told,
    /// Its traits.
    pub traits: Vec<TraitHealth>,
}

impl Service {
    /// A component of which nothing can be known, and why.
    pub fn unknown(component: &Component, placement: &Placement, workload: Option<&Value>, why: &str) -> Self {
        let told = Told { health: Health::unknown(why), details: Map::new() };
        let traits = component.traits.iter();
        let traits = traits
            .map(|attached| TraitHealth { kind: attached.kind.clone(), told: told.clone(), is_pending: false })
            .collect();
        Service::of(component, placement, workload, told, traits)
    }

    fn of(
        component: &Component,
        placement: &Placement,
        workload: Option<&Value>,
        told: Told,
        traits: Vec<TraitHealth>,
    ) -> Self {
        let of = |key: &str| workload.and_then(|workload| workload.str_at(&[key])).unwrap_or_default().to_owned();
        let ailing = traits.iter().find(|of_trait| !of_trait.is_pending && !of_trait.told.health.healthy);
        let health = match ailing {
            Some(ailing) if told.health.healthy => ailing.told.health.clone(),
            _ => told.health.clone(),
        };
        Service {
            name: component.name.clone(),
            placement: placement.clone(),
            workload: (of("apiVersion"), of("kind")),
            health,
            told,
            traits,
        }
    }

    /// The entry of `status.services`.
    pub fn to_value(&self, app_namespace: &str) -> Value {
        let namespace = if self.placement.namespace.is_empty() { app_namespace } else { &self.placement.namespace };
        let mut out = map! {
            "name" => self.name.as_str(),
            "namespace" => namespace,
            "healthy" => self.health.healthy,
            "workloadHealthy" => self.told.health.healthy,
            "workloadDefinition" => map! { "apiVersion" => self.workload.0.as_str(), "kind" => self.workload.1.as_str() },
        };
        if !self.placement.cluster.is_empty() {
            out.insert("cluster", self.placement.cluster.as_str());
        }
        if !self.health.message.is_empty() {
            out.insert("message", self.health.message.as_str());
        }
        if !self.told.details.is_empty() {
            out.insert("details", self.told.details.clone());
        }
        if !self.traits.is_empty() {
            out.insert("traits", self.traits.iter().map(TraitHealth::to_map).collect::<Vec<Map>>());
        }
        out.into()
    }
}

impl TraitHealth {
    fn to_map(&self) -> Map {
        let mut out = map! { "type" => self.kind.as_str(), "healthy" => self.told.health.healthy && !self.is_pending };
        if self.is_pending {
            out.insert("pending", true);
        }
        if !self.told.health.message.is_empty() {
            out.insert("message", self.told.health.message.as_str());
        }
        if !self.told.details.is_empty() {
            out.insert("details", self.told.details.clone());
        }
        out
    }
}

/// What objects of a component are looked at for.
pub struct Look<'a> {
    /// The component.
    pub component: &'a Component,
    /// Its definition, if there is one.
    pub definition: Option<&'a Value>,
    /// The definitions of its traits.
    pub definitions: &'a dyn Definitions,
    /// Where it is.
    pub placement: &'a Placement,
    /// What templates see.
    pub context: &'a Context,
    /// Whether somebody wants the live objects, whatever their health.
    pub wants_output: bool,
}

impl Look<'_> {
    /// What the live objects of a component say. `objects` are those that were rendered.
    ///
    /// # Errors
    ///
    /// If it cannot be known.
    pub async fn at(&self, objects: &[Value], writer: Writer<'_>) -> Brought {
        self.at_known(objects, &[], writer).await
    }

    /// [`Look::at`], where some objects were read a moment ago: `are_live` says which.
    ///
    /// # Errors
    ///
    /// If it cannot be known.
    pub(super) async fn at_known(&self, objects: &[Value], are_live: &[bool], writer: Writer<'_>) -> Brought {
        let judge = judging(self.definition);
        let mut seen = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            let part = Part::of(object);
            let is_judged = match part {
                Part::Workload | Part::Other(_) => judge.is_some(),
                Part::Trait(kind, _) => judging(self.definitions.of_trait(kind)).is_some(),
            };
            // What has no status needs no look, unless somebody wants to take something from it.
            let live = if are_live.get(index) == Some(&true) {
                Some(Ok(object.clone()))
            } else if has_status(object) || is_judged || self.wants_output {
                let entry = Entry::of(object).ok_or("an object has no apiVersion, kind or name")?;
                let cluster = writer.site(&entry.cluster)?.cluster;
                let live = cluster.get(&entry.identity).await.map_err(|error| error.to_string())?;
                Some(live.ok_or_else(|| format!("{} not found", named(&entry))))
            } else {
                None
            };
            seen.push((part, live));
        }
        let live = |part: Part<'_>| {
            seen.iter().find(|(known, _)| *known == part).and_then(|(_, live)| live.as_ref()?.as_ref().ok())
        };
        let workload = objects.iter().find(|object| Part::of(object) == Part::Workload);
        let outputs = seen.iter().filter_map(|(part, live)| match (part, live) {
            (Part::Other(name) | Part::Trait(_, name), Some(Ok(live))) => Some((*name, live.clone())),
            _ => None,
        });
        let all = Live { output: live(Part::Workload).cloned().unwrap_or_default(), outputs: outputs.collect() };
        let mut context = self.context.to_value(self.component);
        all.put_into(&mut context);
        let told = |is_meant: &dyn Fn(&Part<'_>) -> bool, judge: Option<&Schematic<'_>>, properties: &Value| {
            let own = || seen.iter().filter(|(part, _)| is_meant(part)).filter_map(|(_, live)| live.as_ref());
            if let Some(verdict) = judge.and_then(|judge| judge.health(properties, context.clone())) {
                // What is not there is not well, whatever its definition says.
                let missing = own().find_map(|live| live.as_ref().err());
                return match missing {
                    Some(missing) => Told { health: Health::bad(missing), details: verdict.details },
                    None => Told {
                        health: Health { healthy: verdict.healthy, message: verdict.message },
                        details: verdict.details,
                    },
                };
            }
            let mut health = Health::good();
            for found in own() {
                let found = found.as_ref().map_or_else(|missing| Health::bad(missing), health::of);
                if health.healthy && (!found.healthy || health.message.is_empty()) {
                    health = found;
                }
            }
            Told { health, details: Map::new() }
        };
        let of_workload =
            told(&|part| matches!(part, Part::Workload | Part::Other(_)), judge.as_ref(), &self.component.properties);
        let traits = self.component.traits.iter().map(|attached| {
            let kind = bare(&attached.kind);
            let definition = self.definitions.of_trait(&attached.kind);
            let is_own = |part: &Part<'_>| matches!(part, Part::Trait(of, _) if *of == kind);
            let is_pending = definition.is_some_and(is_later) && !seen.iter().any(|(part, _)| is_own(part));
            let told = if is_pending {
                Told { health: Health::bad("waiting for component healthy"), details: Map::new() }
            } else {
                told(&is_own, judging(definition).as_ref(), &attached.properties)
            };
            TraitHealth { kind: attached.kind.clone(), told, is_pending }
        });
        let service = Service::of(self.component, self.placement, workload, of_workload, traits.collect());
        Ok((service, all))
    }
}

/// The schematic of a definition, if it says anything of health.
fn judging(definition: Option<&Value>) -> Option<Schematic<'_>> {
    Schematic::of(definition?).ok().filter(Schematic::has_health)
}

/// What an object is to its component.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part<'a> {
    Workload,
    Other(&'a str),
    Trait(&'a str, &'a str),
}

impl<'a> Part<'a> {
    fn of(object: &'a Value) -> Self {
        let label = |name| object.label(name).unwrap_or_default();
        match (label(names::TRAIT_TYPE), label(names::TRAIT_RESOURCE)) {
            ("", _) => Part::Workload,
            (AUXILIARY, name) => Part::Other(name),
            (kind, name) => Part::Trait(kind, name),
        }
    }
}

/// Kinds whose objects say nothing of their own health.
fn has_status(object: &Value) -> bool {
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    !matches!(
        kind,
        "ConfigMap" | "Secret" | "ServiceAccount" | "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding"
    )
}
