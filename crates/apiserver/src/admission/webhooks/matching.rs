//! Whether a webhook is called for a request, and in which version of the resource.

use super::configured::{Asked, Hook};
use crate::Server;
use crate::admission::authorizer::{Check, Who};
use crate::admission::cel::{Judgement, Variables, judge};
use crate::admission::{Attributes, NAMESPACES};
use crate::answer::{Failure, Outcome};
use crate::catalogue::{Catalogue, Resource, api_version};
use crate::registry;
use crate::strategy::Part;
use object::field::aggregate;
use object::status::Qualified;
use object::{Map, Status, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// What the conditions of one webhook may cost together.
const BUDGET: u64 = 2_500_000;

/// A request that webhooks are called for, with what they ask of it more than once.
pub(super) struct Matching<'a> {
    server: &'a Server,
    /// What the request does.
    pub attributes: Attributes<'a>,
    /// What is served now.
    catalogue: Arc<Catalogue>,
    namespace_labels: Option<Option<Map>>,
    equivalents: Option<Vec<Arc<Resource>>>,
}

/// A version of the request's resource: the one that a webhook is called for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The group of the resource.
    pub group: String,
    /// The version of the resource.
    pub version: String,
    /// The group, version and kind of the objects.
    pub kind: (String, String, String),
}

impl Place {
    fn of(resource: &Resource, subresource: &str) -> Self {
        let kind = match resource.subresource(subresource) {
            Some(subresource) => (subresource.group.clone(), subresource.version.clone(), subresource.kind.clone()),
            None => (resource.group.clone(), resource.version.clone(), resource.kind.clone()),
        };
        Place { group: resource.group.clone(), version: resource.version.clone(), kind }
    }

    /// The `apiVersion` of the objects.
    pub fn api_version(&self) -> String {
        api_version(&self.kind.0, &self.kind.1)
    }
}

impl<'a> Matching<'a> {
    /// A request.
    pub fn new(server: &'a Server, attributes: Attributes<'a>) -> Self {
        Matching { server, attributes, catalogue: server.catalogue(), namespace_labels: None, equivalents: None }
    }

    /// The version in which the request was made.
    pub fn place(&self) -> Place {
        Place::of(self.attributes.resource, self.attributes.subresource)
    }

    /// The version for which a webhook is called; none if it is not called. The conditions are judged separately.
    pub async fn call(&mut self, hook: &Hook, object: Option<&Value>, old: Option<&Value>) -> Outcome<Option<Place>> {
        let namespace = self.in_namespace(hook, object).await;
        if matches!(namespace, Ok(false)) {
            return Ok(None);
        }
        let objects = match &hook.objects {
            Ok(selector) => {
                let matches = |object: Option<&Value>| object.is_some_and(|o| selector.matches_object(o));
                if !selector.is_empty() && !matches(object) && !matches(old) {
                    return Ok(None);
                }
                Ok(())
            }
            Err(why) => Err(Failure::from(Status::internal(why))),
        };
        let Some(place) = self.ruled(hook) else { return Ok(None) };
        namespace?;
        objects?;
        Ok(Some(place))
    }

    /// The version for which the rules of a webhook want it to be called.
    fn ruled(&mut self, hook: &Hook) -> Option<Place> {
        let attributes = self.attributes;
        let resource = attributes.resource;
        let asked = Asked {
            operation: attributes.operation,
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: attributes.subresource,
            namespace: self.namespace(),
        };
        if hook.rules.iter().any(|rule| rule.matches(asked)) {
            return Some(self.place());
        }
        if !hook.equivalent {
            return None;
        }
        let catalogue = &self.catalogue;
        let equivalents = self.equivalents.get_or_insert_with(|| equivalents(catalogue, resource));
        let found = hook.rules.iter().find_map(|rule| {
            equivalents.iter().find(|r| {
                let has = asked.subresource.is_empty() || r.subresource(asked.subresource).is_some();
                let asked = Asked { group: &r.group, version: &r.version, resource: &r.plural, ..asked };
                has && rule.matches(asked)
            })
        })?;
        Some(Place::of(found, attributes.subresource))
    }

    /// The namespace of the request; for a namespace that is its name.
    pub fn namespace(&self) -> &'a str {
        let attributes = self.attributes;
        if self.is_namespace() { attributes.name } else { attributes.namespace }
    }

    fn is_namespace(&self) -> bool {
        self.attributes.resource.group.is_empty() && self.attributes.resource.plural == "namespaces"
    }

    /// Whether the webhook is called in the namespace of the request.
    async fn in_namespace(&mut self, hook: &Hook, object: Option<&Value>) -> Outcome<bool> {
        let namespace = self.namespace();
        if namespace.is_empty() && !self.is_namespace() {
            return Ok(true);
        }
        let selector = hook.namespaces.as_ref().map_err(|why| Failure::from(Status::internal(why)))?;
        let written = self.is_namespace() && self.attributes.subresource.is_empty();
        if let Some(object) = object.filter(|_| written) {
            // The labels that it is to have.
            return Ok(selector.matches_object(object));
        }
        if self.namespace_labels.is_none() {
            self.namespace_labels = Some(self.labels(namespace).await?);
        }
        let labels = self.namespace_labels.as_ref().and_then(Option::as_ref);
        Ok(selector.matches(labels))
    }

    /// The labels of a namespace.
    async fn labels(&self, namespace: &str) -> Outcome<Option<Map>> {
        let entry = self.server.store.get(&format!("{NAMESPACES}{namespace}"), None).await;
        let Some(entry) = entry.map_err(registry::read_failure)? else {
            return Err(Status::not_found(Qualified { group: "", name: "namespaces" }, namespace).into());
        };
        Ok(registry::stored(&entry)?.labels())
    }

    /// Whether the conditions of a webhook hold for the request, whose objects are in the webhook's version.
    pub fn conditions(&self, hook: &Hook, place: &Place, object: Option<&Value>, old: Option<&Value>) -> Outcome<bool> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let attributes = self.attributes;
        let resource = attributes.resource;
        let mut request = super::review::request(self, place);
        // Conditions see the request without its objects; dry runs are told of either way.
        request.set_at(&["options"], attributes.options.clone());
        let who = Who::new(self.server.options.authorizer.clone(), Arc::new(attributes.user.clone()));
        let check = Check::new(who.clone(), &resource.group, &resource.plural);
        let variables = Variables {
            object: object.unwrap_or(&Value::Null),
            old: old.unwrap_or(&Value::Null),
            request: &request,
            resource: check.with(attributes.subresource, self.namespace(), attributes.name),
            who,
        };
        match judge(&hook.conditions, &variables, BUDGET) {
            Judgement::Match => Ok(true),
            Judgement::Other => Ok(false),
            Judgement::Errors(_) if !hook.required => Ok(false),
            Judgement::Errors(errors) => {
                Err(Status::forbidden(resource.qualified(), attributes.name, &aggregate(&errors)).into())
            }
        }
    }

    /// Reads an object that a patch made in a version: defaults come, and what built-in kinds do not know goes. The
    /// error is Go's text.
    pub fn complete(&self, place: &Place, object: &mut Value) -> Result<(), String> {
        let resource = self.catalogue.resource(&place.group, &place.version, &self.attributes.resource.plural);
        let Some(resource) = resource else { return Ok(()) };
        let whole = (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str());
        // Of other objects, such as scales, and of custom ones that are no longer what they were, nothing is known.
        let (group, version, kind) = &place.kind;
        let is = |key: &str, wanted: &str| object.str_at(&[key]) == Some(wanted);
        let unchanged = is("apiVersion", &resource.api_version()) && is("kind", &resource.kind);
        if whole != (group.as_str(), version.as_str(), kind.as_str()) || !unchanged && resource.is_custom() {
            return Ok(());
        }
        if !unchanged {
            return Err(another(object, &resource.kind));
        }
        if resource.is_custom() {
            return resource.strategy.adopt(object);
        }
        resource.strategy.receive(object, false)?;
        resource.strategy.present(object);
        Ok(())
    }

    /// Lets a webhook own what it changed. Of objects in other versions than the request's nothing is told.
    pub async fn attribute(&self, place: &Place, before: &Value, after: Value, manager: &str) -> Value {
        let attributes = self.attributes;
        let part = match attributes.subresource {
            "" => Part::Main,
            "status" => Part::Status,
            _ => return after,
        };
        if *place != self.place() {
            return after;
        }
        let ownership = attributes.resource.strategy.ownership();
        let conversions = ownership.conversions();
        loop {
            let now = attributes.now.as_second();
            let owned = ownership.updated(part, before, after.clone(), manager, now, conversions.as_ref());
            if !self.server.convert_missing(attributes.resource, conversions.as_deref()).await {
                return owned;
            }
        }
    }

    /// An object of a version of the resource in another one.
    pub async fn convert(&self, object: Value, from: &Place, to: &Place) -> Outcome<Value> {
        if from.kind == to.kind {
            return Ok(object);
        }
        let plural = &self.attributes.resource.plural;
        let find = |place: &Place| {
            let found = self.catalogue.resource(&place.group, &place.version, plural);
            found.cloned().ok_or_else(|| {
                let (group, version) = (&place.group, &place.version);
                Failure::from(Status::internal(format!(
                    "unable to convert to {group}/{version}, Resource={plural}: unknown kind"
                )))
            })
        };
        let (from, resource) = (find(from)?, find(to)?);
        if from.is_custom() {
            return self.server.convert_as_sent(&from, object, &to.api_version()).await;
        }
        let mut object = object;
        from.strategy.receive(&mut object, false).map_err(Status::internal)?;
        resource.strategy.present(&mut object);
        Ok(object)
    }
}

/// What upstream says of an object that a patch made one of another kind.
fn another(object: &Value, wanted: &str) -> String {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let Some((_, other)) = kinds::find_kind(group, version, kind) else {
        let (kind, api_version) = (object::go::quote(kind), object::go::quote(api_version));
        let scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";
        return format!("no kind {kind} is registered for version {api_version} in scheme \"{scheme}\"");
    };
    let read = other.definition().map(|definition| kinds::decode(definition, object.clone()));
    match read {
        Some(Err(why)) => why,
        _ => format!("converting ({version}.{kind}) to (core.{wanted}): unknown conversion"),
    }
}

/// The other versions of a resource, in the order in which they are looked at.
fn equivalents(catalogue: &Catalogue, resource: &Resource) -> Vec<Arc<Resource>> {
    let same = |r: &&Arc<Resource>| {
        let itself = (&r.group, &r.version) == (&resource.group, &resource.version);
        !itself && r.plural == resource.plural && r.storage.prefix == resource.storage.prefix
    };
    let mut found: Vec<Arc<Resource>> = catalogue.resources().filter(same).cloned().collect();
    if let Some(definition) = &resource.definition {
        let versions = definition.versions().iter().enumerate();
        let order: HashMap<&str, usize> = versions.map(|(i, v)| (v.version.as_str(), i)).collect();
        found.sort_by_key(|r| order.get(r.version.as_str()).copied());
    }
    found
}
