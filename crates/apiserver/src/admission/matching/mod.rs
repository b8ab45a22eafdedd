//! Whether a webhook or a policy is about a request, and in which version of the resource it sees it.

mod criteria;
mod current;
mod versions;

pub(crate) use criteria::{Asked, Criteria, Rule};
pub(crate) use current::Current;
pub(crate) use versions::Versions;

use crate::Server;
use crate::admission::authorizer::{Check, Who};
use crate::admission::{Attributes, NAMESPACES};
use crate::answer::{Failure, Outcome};
use crate::auth::UserInfo;
use crate::catalogue::{Catalogue, Resource, api_version};
use crate::registry::{self, Stored};
use crate::strategy::Part;
use object::status::Qualified;
use object::{Map, Status, Value, map};
use std::collections::HashMap;
use std::sync::Arc;
use store::Revision;

/// A request that webhooks or policies may be about, with what they ask of it more than once.
pub(crate) struct Matching<'a> {
    /// The server.
    pub server: &'a Server,
    /// What the request does.
    pub attributes: Attributes<'a>,
    /// What is served now.
    pub catalogue: Arc<Catalogue>,
    stored_namespace: Option<(Stored, Revision)>,
    namespace_labels: Option<Option<Map>>,
    equivalents: Option<Vec<Arc<Resource>>>,
}

/// A version of the request's resource: the one in which a webhook or policy sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The group of the resource.
    pub group: String,
    /// The version of the resource.
    pub version: String,
    /// The kind of the objects.
    pub kind: Kind,
}

/// A group, a version and a kind.
type Kind = (String, String, String);

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
        Matching {
            server,
            attributes,
            catalogue: server.catalogue(),
            stored_namespace: None,
            namespace_labels: None,
            equivalents: None,
        }
    }

    /// The version in which the request was made.
    pub fn place(&self) -> Place {
        Place::of(self.attributes.resource, self.attributes.subresource)
    }

    /// The version in which the request is meant by criteria; none if it is not.
    pub async fn meant(
        &mut self,
        criteria: &Criteria,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Outcome<Option<Place>> {
        // Whatever else goes wrong matters only for what the rules mean.
        let Some(place) = self.ruled(criteria) else { return Ok(None) };
        let namespace = self.in_namespace(criteria, object).await;
        if matches!(namespace, Ok(false)) {
            return Ok(None);
        }
        let objects = match &criteria.objects {
            Ok(selector) => {
                let matches = |object: Option<&Value>| object.is_some_and(|o| selector.matches_object(o));
                if !selector.is_empty() && !matches(object) && !matches(old) {
                    return Ok(None);
                }
                Ok(())
            }
            Err(why) => Err(Failure::from(Status::internal(why))),
        };
        namespace?;
        objects?;
        Ok(Some(place))
    }

    /// The version in which the rules mean the request.
    fn ruled(&mut self, criteria: &Criteria) -> Option<Place> {
        if !criteria.excluded.is_empty() && self.among(&criteria.excluded, criteria.equivalent).is_some() {
            return None;
        }
        match &criteria.rules {
            Some(rules) => self.among(rules, criteria.equivalent),
            None => Some(self.place()),
        }
    }

    /// The version in which one of some rules means the request.
    fn among(&mut self, rules: &[Rule], equivalent: bool) -> Option<Place> {
        let attributes = self.attributes;
        let resource = attributes.resource;
        let asked = Asked {
            operation: attributes.operation,
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: attributes.subresource,
            namespace: self.namespace(),
            name: attributes.name,
        };
        if rules.iter().any(|rule| rule.matches(asked)) {
            return Some(self.place());
        }
        if !equivalent {
            return None;
        }
        let catalogue = &self.catalogue;
        let equivalents = self.equivalents.get_or_insert_with(|| equivalents(catalogue, resource));
        let found = rules.iter().find_map(|rule| {
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

    /// Whether the namespace of the request is meant.
    async fn in_namespace(&mut self, criteria: &Criteria, object: Option<&Value>) -> Outcome<bool> {
        let namespace = self.namespace();
        if namespace.is_empty() && !self.is_namespace() {
            return Ok(true);
        }
        let selector = criteria.namespaces.as_ref().map_err(|why| Failure::from(Status::internal(why)))?;
        if selector.is_empty() {
            return Ok(true);
        }
        let written = self.is_namespace() && self.attributes.subresource.is_empty();
        if let Some(object) = object.filter(|_| written) {
            // The labels that it is to have.
            return Ok(selector.matches_object(object));
        }
        if self.namespace_labels.is_none() {
            self.namespace_labels = Some(self.stored_namespace().await?.0.labels());
        }
        let labels = self.namespace_labels.as_ref().and_then(Option::as_ref);
        Ok(selector.matches(labels))
    }

    /// The namespace of the request as it is stored, with its revision; 404 if it is not there.
    async fn stored_namespace(&mut self) -> Outcome<(Stored, Revision)> {
        if let Some(held) = &self.stored_namespace {
            return Ok(held.clone());
        }
        let namespace = self.namespace();
        let Some(entry) = self.server.known(&format!("{NAMESPACES}{namespace}")).await? else {
            return Err(Status::not_found(Qualified { group: "", name: "namespaces" }, namespace).into());
        };
        let found = (registry::stored(&entry)?, entry.mod_revision);
        self.stored_namespace = Some(found.clone());
        Ok(found)
    }

    /// The namespace of the request as `namespaceObject` shows it: null for what is in none, and for namespaces.
    pub async fn namespace_object(&mut self) -> Outcome<Value> {
        const SHOWN: [&str; 12] = [
            "name",
            "generateName",
            "namespace",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "labels",
            "annotations",
            "finalizers",
        ];
        if self.namespace().is_empty() || self.is_namespace() {
            return Ok(Value::Null);
        }
        let (stored, revision) = self.stored_namespace().await?;
        let Value::Object(mut namespace) = stored.value(revision) else { return Ok(Value::Null) };
        namespace.retain(|key, _| matches!(key, "metadata" | "spec" | "status"));
        if let Some(Value::Object(metadata)) = namespace.get_mut("metadata") {
            metadata.retain(|key, _| SHOWN.contains(&key));
        }
        Ok(Value::Object(namespace))
    }

    /// The request as webhooks and conditions see it, without its objects.
    pub fn request(&self, place: &Place) -> Map {
        let attributes = self.attributes;
        let own = self.place();
        let mut request = map! {
            "kind" => Value::Object(kind(place)),
            "resource" => self.resource(place),
            "requestKind" => Value::Object(kind(&own)),
            "requestResource" => self.resource(&own),
            "operation" => attributes.operation,
            "userInfo" => user_info(attributes.user),
            "dryRun" => attributes.dry_run,
        };
        let texts = [
            ("subResource", attributes.subresource),
            ("requestSubResource", attributes.subresource),
            ("name", attributes.name),
            ("namespace", self.namespace()),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request.insert(key, text);
        }
        request
    }

    /// The request as expressions see it. Dry runs are told of either way.
    pub fn request_of_expressions(&self, place: &Place) -> Value {
        let mut request = self.request(place);
        request.insert("uid", "");
        request.insert("object", Value::Null);
        request.insert("oldObject", Value::Null);
        request.insert("options", self.attributes.options.clone());
        Value::Object(request)
    }

    /// The resource of a version, as requests name it.
    pub fn resource(&self, place: &Place) -> Value {
        Value::Object(map! {
            "group" => place.group.as_str(),
            "version" => place.version.as_str(),
            "resource" => self.attributes.resource.plural.as_str(),
        })
    }

    /// Whom expressions may ask about, and the check of the request's own resource.
    pub fn authorizer(&self) -> (Who, Check) {
        let attributes = self.attributes;
        let resource = attributes.resource;
        let who = Who::new(self.server.options.authorizer.clone(), Arc::new(attributes.user.clone()));
        let check = Check::new(who.clone(), &resource.group, &resource.plural);
        let check = check.with(attributes.subresource, self.namespace(), attributes.name);
        (who, check)
    }

    /// The resource in a version.
    pub fn resource_in(&self, place: &Place) -> Option<&Arc<Resource>> {
        self.catalogue.resource(&place.group, &place.version, &self.attributes.resource.plural)
    }

    /// Reads an object that a patch made in a version: defaults come, and what built-in kinds do not know goes. Gives
    /// what was unknown; the error is Go's text.
    pub fn complete(&self, place: &Place, object: &mut Value) -> Result<Vec<String>, String> {
        let Some(resource) = self.resource_in(place) else { return Ok(Vec::new()) };
        let whole = (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str());
        // Of other objects, such as scales, and of custom ones that are no longer what they were, nothing is known.
        let (group, version, kind) = &place.kind;
        let is = |key: &str, wanted: &str| object.str_at(&[key]) == Some(wanted);
        let unchanged = is("apiVersion", &resource.api_version()) && is("kind", &resource.kind);
        if whole != (group.as_str(), version.as_str(), kind.as_str()) || !unchanged && resource.is_custom() {
            return Ok(Vec::new());
        }
        if !unchanged {
            return Err(another(object, &resource.kind));
        }
        if resource.is_custom() {
            return resource.strategy.adopt(object).map(|()| Vec::new());
        }
        let unknown = resource.strategy.receive(object, true)?;
        resource.strategy.present(object);
        Ok(unknown)
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

fn kind(place: &Place) -> Map {
    let (group, version, kind) = &place.kind;
    map! { "group" => group.as_str(), "version" => version.as_str(), "kind" => kind.as_str() }
}

fn user_info(user: &UserInfo) -> Value {
    let mut info = Map::new();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info.insert(key, text.as_str());
        }
    }
    if !user.groups.is_empty() {
        info.insert("groups", user.groups.clone());
    }
    if !user.extra.is_empty() {
        let extra: Map = user.extra.iter().map(|(k, v)| (k.as_str(), Value::from(v.clone()))).collect();
        info.insert("extra", Value::Object(extra));
    }
    Value::Object(info)
}
