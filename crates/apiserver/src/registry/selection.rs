//! Which objects of a collection a request is about.

use super::Stored;
use crate::answer::Outcome;
use crate::catalogue::Resource;
use crate::request::options::ListOptions;
use object::Status;
use object::selector::{Fields, Labels};
use std::borrow::Cow;

/// What objects must match. Name and namespace are told from the key, labels from the head of the stored form; an
/// object is read only for selectors of other fields.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    labels: Labels,
    fields: Fields,
    /// Whether a term is about something else than name and namespace.
    reads: bool,
}

impl Selection {
    /// Checks that the resource knows the fields; 400 if not.
    pub fn new(resource: &Resource, options: &ListOptions) -> Outcome<Self> {
        let mut reads = false;
        for term in options.fields.terms() {
            // Kinds without namespaces may not know of them.
            let is_place = match term.field.as_str() {
                "metadata.name" => true,
                "metadata.namespace" => resource.namespaced,
                _ => false,
            };
            if !is_place {
                resource.strategy.knows_field(&term.field).map_err(Status::bad_request)?;
                reads |= term.field != "metadata.namespace";
            }
        }
        Ok(Selection { labels: options.labels.clone(), fields: options.fields.clone(), reads })
    }

    /// Whether it is everything.
    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that can match, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.fields.required("metadata.name")
    }

    /// Whether an object matches.
    pub fn matches(&self, resource: &Resource, key: &str, stored: &Stored) -> bool {
        if self.is_all() {
            return true;
        }
        if !self.labels.is_empty() && !self.labels.matches(stored.labels().as_ref()) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let (namespace, name) = place(resource, key);
        let object = self.reads.then(|| {
            let mut object = stored.value(0);
            if !super::is_current(resource, stored) {
                resource.strategy.load(&mut object);
            }
            object
        });
        self.fields.matches(|field| match (field, &object) {
            ("metadata.name", _) => Cow::Borrowed(name),
            ("metadata.namespace", _) => Cow::Borrowed(namespace),
            (field, Some(object)) => Cow::Owned(resource.strategy.field(object, field).into_owned()),
            (_, None) => Cow::Borrowed(""),
        })
    }
}

/// Namespace and name of the object at a key.
pub fn place<'k>(resource: &Resource, key: &'k str) -> (&'k str, &'k str) {
    let rest = key.strip_prefix(resource.storage.prefix.as_str()).unwrap_or(key);
    if resource.namespaced { rest.split_once('/').unwrap_or(("", rest)) } else { ("", rest) }
}
