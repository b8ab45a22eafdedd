//! Loading the objects that references name, as the identity that works for a parent.

use crate::block::Reference;
use crate::render::sanitise;
use client::{Client, Error, ListParams};
use keeper::{Identity, Kind};
use object::selector::{Condition, Labels};
use object::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use template::fast::{self, Lookup};

/// How many objects come in one piece of a list.
const PAGE: u32 = 500;

/// Loads objects for one run; what was loaded once is not asked for again.
pub struct Loader {
    client: Client,
    loaded: HashMap<Query, Arc<Vec<Value>>>,
    /// The versions of objects that were looked at by name, empty for those that are not there.
    seen: HashMap<keeper::ObjectKey, String>,
}

/// A reference after substitution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Query {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    selector: String,
}

impl Loader {
    /// Loads through this client.
    pub fn new(client: Client) -> Self {
        Loader { client, loaded: HashMap::new(), seen: HashMap::new() }
    }

    /// The objects of a reference, without what belongs to no template. `namespace` is where the reference looks if it
    /// names none; `may_read` says whether a namespace may be read; an empty one stands for what is in none.
    ///
    /// # Errors
    ///
    /// The server refuses, or a named object that must be there is not.
    pub async fn load(
        &mut self,
        reference: &Reference,
        names: &impl Lookup,
        namespace: &str,
        may_read: &impl Fn(&str) -> bool,
    ) -> Result<Arc<Vec<Value>>, String> {
        let render = |text: &Option<String>| text.as_deref().map(|t| fast::render(t, names)).filter(|t| !t.is_empty());
        let failed = |e: Error| format!("loading {} {}: {e}", reference.api_version, reference.kind);
        let resource = self.client.resource_of(&reference.api_version, &reference.kind).await.map_err(failed)?;
        let Some(resource) = resource else {
            return Err(format!("no matches for kind {:?} in version {:?}", reference.kind, reference.api_version));
        };
        let mut place = render(&reference.namespace).unwrap_or_else(|| namespace.to_owned());
        if !resource.namespaced {
            place.clear();
            if !may_read("") {
                let kind = &reference.kind;
                return Err(format!(
                    "reading {kind}, which is in no namespace, is not allowed without a service account"
                ));
            }
        } else if !may_read(&place) {
            return Err(format!("reading {} from namespace {place:?} is not allowed", reference.kind));
        }
        let selector = match &reference.selector {
            Some(selector) => selector_text(&Labels::from_object(&fast::tree(selector, names))?),
            None => String::new(),
        };
        let query = Query {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            namespace: place,
            name: render(&reference.name).unwrap_or_default(),
            selector,
        };
        if let Some(known) = self.loaded.get(&query) {
            return Ok(known.clone());
        }
        let api = self.client.api(&resource);
        let mut objects = Vec::new();
        if query.name.is_empty() {
            let mut params =
                ListParams { label_selector: query.selector.clone(), limit: PAGE, ..ListParams::default() };
            loop {
                let page = api.list(&query.namespace, &params).await.map_err(failed)?;
                objects.extend(page.items);
                if page.continue_token.is_empty() {
                    break;
                }
                params.continue_token = page.continue_token;
            }
        } else {
            objects.extend(api.find(&query.namespace, &query.name).await.map_err(failed)?);
            if objects.is_empty() && !reference.optional {
                return Err(format!("{} {:?} not found", reference.kind, query.name));
            }
            let kind = Kind::new(&query.api_version, &query.kind);
            let (namespace, name) = (query.namespace.as_str().into(), query.name.as_str().into());
            let version = objects.first().map_or("", |o| o.meta_str("resourceVersion")).to_owned();
            self.seen.insert(Identity { kind, namespace, name }.object(), version);
        }
        for object in &mut objects {
            sanitise(object);
            // Items of lists do not say what they are.
            object.set_at(&["apiVersion"], query.api_version.as_str().into());
            object.set_at(&["kind"], query.kind.as_str().into());
        }
        let objects = Arc::new(objects);
        self.loaded.insert(query, objects.clone());
        Ok(objects)
    }

    /// The objects of a context by their index; what is empty is left out.
    ///
    /// # Errors
    ///
    /// Those of [`Loader::load`].
    pub async fn context(
        &mut self,
        references: &[(String, Reference)],
        names: &impl Lookup,
        namespace: &str,
        may_read: &impl Fn(&str) -> bool,
    ) -> Result<Map, String> {
        let mut context = Map::new();
        for (index, reference) in references {
            let objects = self.load(reference, names, namespace, may_read).await?;
            if !objects.is_empty() {
                context.insert(index.as_str(), Value::Array(objects.to_vec()));
            }
        }
        Ok(context)
    }

    /// The version of an object that was looked at by its name; empty if it was not there, none if it was not looked at.
    pub fn seen(&self, object: &Value) -> Option<&str> {
        Some(self.seen.get(&Identity::of(object)?.object())?)
    }

    /// Whether objects of a kind live in namespaces; none if the kind is not served.
    ///
    /// # Errors
    ///
    /// The server cannot be asked.
    pub async fn is_namespaced(&self, object: &Value) -> Result<Option<bool>, String> {
        let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
        let resource = self.client.resource_of(text("apiVersion"), text("kind")).await.map_err(|e| e.to_string())?;
        Ok(resource.map(|r| r.namespaced))
    }
}

/// A selector in the form that requests have.
fn selector_text(selector: &Labels) -> String {
    let terms = selector.requirements().iter().map(|r| {
        let key = &r.key;
        match &r.condition {
            Condition::In(values) => format!("{key} in ({})", values.join(",")),
            Condition::NotIn(values) => format!("{key} notin ({})", values.join(",")),
            Condition::Exists => key.clone(),
            Condition::Missing => format!("!{key}"),
            Condition::Above(n) => format!("{key}>{n}"),
            Condition::Below(n) => format!("{key}<{n}"),
        }
    });
    terms.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_read_back_from_their_text() {
        for text in ["a in (b)", "a notin (b,c)", "a", "!a", "a>1,b<2"] {
            let selector = Labels::parse(text).unwrap();
            assert_eq!(Labels::parse(&selector_text(&selector)), Ok(selector));
        }
    }
}
