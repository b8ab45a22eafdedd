//! The objects of a request in the versions in which webhooks and policies see them.

use super::{Kind, Matching, Place};
use crate::answer::Outcome;
use object::Value;
use std::collections::HashMap;

/// The objects of a request, each version of them made once.
pub(crate) struct Versions<'v> {
    own: Place,
    object: Option<&'v Value>,
    old: Option<&'v Value>,
    /// By the kind of the objects.
    converted: HashMap<Kind, (Option<Value>, Option<Value>)>,
}

impl<'v> Versions<'v> {
    /// The objects as they were sent.
    pub fn new(matching: &Matching<'v>, object: Option<&'v Value>) -> Self {
        Versions { own: matching.place(), object, old: matching.attributes.old, converted: HashMap::new() }
    }

    /// Makes sure that the objects are there in a version.
    pub async fn prepare(&mut self, matching: &Matching<'_>, place: &Place) -> Outcome<()> {
        if place.kind == self.own.kind || self.converted.contains_key(&place.kind) {
            return Ok(());
        }
        let object = convert(matching, self.object, &self.own, place).await?;
        let old = convert(matching, self.old, &self.own, place).await?;
        self.converted.insert(place.kind.clone(), (object, old));
        Ok(())
    }

    /// The object and the old one as they were sent.
    pub fn sent(&self) -> (Option<&'v Value>, Option<&'v Value>) {
        (self.object, self.old)
    }

    /// The object and the old one in a version that was prepared.
    pub fn get(&self, place: &Place) -> (Option<&Value>, Option<&Value>) {
        match self.converted.get(&place.kind) {
            Some((object, old)) => (object.as_ref(), old.as_ref()),
            None => (self.object, self.old),
        }
    }
}

async fn convert(matching: &Matching<'_>, object: Option<&Value>, from: &Place, to: &Place) -> Outcome<Option<Value>> {
    match object {
        Some(object) => matching.convert(object.clone(), from, to).await.map(Some),
        None => Ok(None),
    }
}
