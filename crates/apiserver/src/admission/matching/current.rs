//! The objects of a request while steps change one of them, each seeing them in its version.

use super::{Matching, Place};
use crate::answer::Outcome;
use object::{Status, Value, go};

/// The objects of a request, in the version of whoever saw them last.
pub(crate) struct Current<'a> {
    own: Place,
    /// The version.
    pub place: Place,
    /// The object; none for a delete.
    pub object: Option<Value>,
    /// The object as it was; none for a create.
    pub old: Option<Value>,
    /// What `old` was before any conversion.
    original: Option<&'a Value>,
    /// Whether somebody changed the object.
    pub changed: bool,
}

impl<'a> Current<'a> {
    /// The objects as they were sent.
    pub fn new(matching: &Matching<'a>, object: Option<&Value>) -> Self {
        let original = matching.attributes.old;
        let own = matching.place();
        let (object, old) = (object.cloned(), original.cloned());
        Current { place: own.clone(), own, object, old, original, changed: false }
    }

    /// Gives back what became of the object, in the version in which it was sent; tells whether it was changed.
    pub async fn finish(mut self, matching: &Matching<'_>, object: Option<&mut Value>) -> Outcome<bool> {
        if !self.changed {
            return Ok(false);
        }
        let own = self.own.clone();
        self.bring_to(matching, &own).await?;
        if let (Some(object), Some(new)) = (object, self.object) {
            check_version(&new, &own)?;
            *object = new;
        }
        Ok(true)
    }

    /// Converts the objects to another version.
    pub async fn bring_to(&mut self, matching: &Matching<'_>, place: &Place) -> Outcome<()> {
        if self.place.kind == place.kind {
            self.place = place.clone();
            return Ok(());
        }
        if let Some(object) = self.object.take() {
            self.object = Some(matching.convert(object, &self.place, place).await?);
        }
        if let Some(original) = self.original {
            self.old = Some(matching.convert(original.clone(), &matching.place(), place).await?);
        }
        self.place = place.clone();
        Ok(())
    }
}

/// An error if an object left its version.
fn check_version(object: &Value, place: &Place) -> Outcome<()> {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
    let wanted = place.api_version();
    if text("apiVersion") == wanted {
        return Ok(());
    }
    let (version, kind) = (text("apiVersion"), text("kind"));
    let why =
        format!("{version}, Kind={kind} is unstructured and is not suitable for converting to {}", go::quote(&wanted));
    Err(Status::unknown(why).into())
}
