//! Everything that a TenantResource or GlobalTenantResource declares, rendered.

use crate::block::Block;
use crate::lanes;
use crate::load::Loader;
use crate::reach;
use crate::render::{self, Moment, Names, Rendered, sanitise};
use crate::replication::{Replication, Scope};
use crate::tenancy::Tenancy;
use client::{Client, Clock};
use keeper::Desired;
use object::selector::Labels;
use object::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use template::Data;

/// The name that stands for the tenant of what is rendered once.
const NO_TENANT: &str = "None";
/// How many objects one parent may declare, and how large they may be together as JSON, in bytes: more than its status could
/// list, and no more than the program can hold for many parents at once.
const MOST: usize = 20_000;
const LARGEST: usize = 32 << 20;
/// The label of objects that are copies themselves.
const CREATED_BY: &str = "projectcapsule.dev/created-by";

/// What was collected.
pub struct Collected {
    /// The targets.
    pub desired: Vec<Desired>,
    /// The names of the tenants that a GlobalTenantResource selects.
    pub tenants: Vec<String>,
}

/// What a block is rendered for.
struct Turn<'a> {
    tenant: Option<&'a Value>,
    tenant_name: &'a str,
    namespace: Option<&'a Value>,
}

impl Turn<'_> {
    fn names(&self) -> Names<'_> {
        let tenant = if self.tenant.is_some() { self.tenant_name } else { "" };
        Names { tenant, namespace: self.namespace.map_or("", Value::name) }
    }
}

/// Collects what a parent declares, reading through `client`; what it declares for namespaces perhaps for `only` some.
///
/// # Errors
///
/// Anything that cannot be read or rendered. Then nothing is known of what is declared, and nothing must be done.
pub async fn collect(
    parent: &Replication,
    metadata: &Value,
    tenancy: &Tenancy,
    client: Client,
    clock: &Clock,
    moment: Moment,
    only: Option<&BTreeSet<String>>,
) -> Result<Collected, String> {
    let loader = Loader::new(client);
    let desired = Vec::new();
    let mut collector = Collector { parent, metadata, tenancy, loader, clock, moment, only, desired, size: 0 };
    if !parent.namespace.is_empty() {
        let name = tenancy.tenant_of(&parent.namespace);
        let tenant = name.as_deref().and_then(|name| tenancy.tenant(name));
        let Some(tenant) = tenant else {
            return Err(format!("namespace {:?} belongs to no tenant", parent.namespace));
        };
        collector.tenant(&tenant).await?;
        return Ok(Collected { desired: collector.desired, tenants: Vec::new() });
    }
    let tenants = tenancy.select(&parent.tenants);
    match parent.scope {
        Scope::None => {
            let turn = Turn { tenant: None, tenant_name: NO_TENANT, namespace: None };
            collector.turn(&turn, |_| true).await?;
        }
        Scope::Tenant => {
            for tenant in &tenants {
                let clean = sanitised(tenant);
                let turn = Turn { tenant: Some(&clean), tenant_name: tenant.name(), namespace: None };
                collector.turn(&turn, |_| true).await?;
            }
        }
        Scope::Namespace => {
            for tenant in &tenants {
                collector.tenant(tenant).await?;
            }
        }
    }
    let tenants = tenants.iter().map(|t| t.name().to_owned()).collect();
    Ok(Collected { desired: collector.desired, tenants })
}

fn sanitised(object: &Arc<Value>) -> Value {
    let mut object = Value::clone(object);
    sanitise(&mut object);
    object
}

struct Collector<'a> {
    parent: &'a Replication,
    metadata: &'a Value,
    tenancy: &'a Tenancy,
    loader: Loader,
    clock: &'a Clock,
    moment: Moment,
    only: Option<&'a BTreeSet<String>>,
    desired: Vec<Desired>,
    /// How large these are.
    size: usize,
}

impl Collector<'_> {
    /// Renders for every namespace of a tenant.
    async fn tenant(&mut self, tenant: &Arc<Value>) -> Result<(), String> {
        let clean = sanitised(tenant);
        for namespace in self.tenancy.namespaces(tenant.name()) {
            if self.only.is_some_and(|only| !only.contains(namespace.name())) {
                continue;
            }
            let labels = namespace.at(&["metadata", "labels"]).and_then(Value::as_object).cloned();
            let namespace = sanitised(&namespace);
            let turn = Turn { tenant: Some(&clean), tenant_name: tenant.name(), namespace: Some(&namespace) };
            self.turn(&turn, |selector| selector.matches(labels.as_ref())).await?;
        }
        Ok(())
    }

    async fn turn(&mut self, turn: &Turn<'_>, selects: impl Fn(&Labels) -> bool) -> Result<(), String> {
        let parent = self.parent;
        let mut copied = HashSet::new();
        for (number, block) in parent.blocks.iter().enumerate() {
            if selects(&block.namespaces) {
                let place = |e| format!("spec.resources[{number}]: {e}");
                self.block(number, block, turn, &mut copied).await.map_err(place)?;
            }
        }
        Ok(())
    }

    async fn block(
        &mut self,
        number: usize,
        block: &Block,
        turn: &Turn<'_>,
        copied: &mut HashSet<(String, String)>,
    ) -> Result<(), String> {
        let names = turn.names();
        let namespace = names.namespace;
        let (tenancy, tenant, parent) = (self.tenancy, names.tenant, self.parent);
        let is_global = parent.namespace.is_empty();
        // Whoever declares something in a namespace reads nothing of the cluster by the rights of the manager.
        let may_read = |place: &str| match place {
            _ if is_global => true,
            "" => parent.account.is_some(),
            place => tenancy.tenant_of(place).as_deref() == Some(tenant),
        };
        let mut rendered = render::raw_items(number, block, &names);
        if !block.generators.is_empty() {
            let context = self.loader.context(&block.context, &names, namespace, &may_read).await?;
            let data = self.data(turn, &context);
            for (i, generator) in block.generators.iter().enumerate() {
                let made = lanes::compute(|| render::generator((number, i), generator, &data, &self.moment))?;
                rendered.extend(made);
            }
        }
        if turn.namespace.is_some() {
            for reference in &block.namespaced_items {
                for source in self.loader.load(reference, &names, namespace, &may_read).await?.iter() {
                    let key = (reference.kind.clone(), source.name().to_owned());
                    let is_copy = source.label(CREATED_BY) == Some(keeper::Family::Replications.label());
                    if is_copy || source.namespace() == namespace || !copied.insert(key) {
                        continue;
                    }
                    let object = render::copy(source, reference);
                    rendered.push(Rendered { object, origin: "replica".to_owned() });
                }
            }
        }
        for mut target in rendered {
            render::add_metadata(&mut target.object, block, &names);
            self.place(&mut target, turn).await?;
            if !is_global && self.parent.account.is_none() {
                reach::within_rights(&target.object, &block.policy).map_err(|e| format!("{}: {e}", target.origin))?;
            }
            self.size += object::json::to_string(&target.object).len();
            if self.desired.len() >= MOST || self.size > LARGEST {
                return Err(format!("more than {MOST} objects, or {} MiB of them, are declared", LARGEST >> 20));
            }
            let rendered_from = match &block.condition {
                Some(_) => self.loader.seen(&target.object).map(Into::into),
                None => None,
            };
            self.desired.push(Desired {
                object: target.object,
                tenant: turn.tenant_name.into(),
                origin: target.origin.into(),
                policy: block.policy,
                condition: block.condition.clone().map(|c| c.into_keeper(self.clock.clone())),
                rendered_from,
            });
        }
        Ok(())
    }

    fn data<'d>(&'d self, turn: &Turn<'d>, context: &'d Map) -> Data<'d> {
        let mut members: Vec<(&str, &Value)> = context.iter().collect();
        members.extend(turn.tenant.map(|t| ("tenant", t)));
        members.extend(turn.namespace.map(|n| ("namespace", n)));
        members.push(("replications", self.metadata));
        Data::Members(members)
    }

    /// Sees to it that an object is where its parent may write.
    async fn place(&self, target: &mut Rendered, turn: &Turn<'_>) -> Result<(), String> {
        let origin = &target.origin;
        let object = &mut target.object;
        for key in ["apiVersion", "kind"] {
            if object.str_at(&[key]).is_none_or(str::is_empty) {
                return Err(format!("{origin}: {key} is missing"));
            }
        }
        if object.name().is_empty() {
            return Err(format!("{origin}: metadata.name is missing"));
        }
        let kind = object.str_at(&["kind"]).unwrap_or_default().to_owned();
        let namespaced = self.loader.is_namespaced(object).await?;
        match (namespaced, turn.namespace) {
            (Some(false), _) if !self.parent.namespace.is_empty() => {
                Err(format!("{origin}: cluster-scoped kind {kind} is not allowed"))
            }
            (Some(false), _) => {
                object.remove_at(&["metadata", "namespace"]);
                Ok(())
            }
            (_, Some(namespace)) => {
                object.set_at(&["metadata", "namespace"], namespace.name().into());
                Ok(())
            }
            (Some(true), None) if object.namespace().is_empty() => {
                Err(format!("{origin}: kind {kind} needs a metadata.namespace"))
            }
            _ => Ok(()),
        }
    }
}
