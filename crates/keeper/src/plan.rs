//! What to do with one target: pure functions of the live object, the inventory and the policy.

use compact_str::CompactString;
use object::Value;

use crate::item::Item;
use crate::managed;
use crate::parent::Parent;
use crate::policy::{Creation, Deletion, Policy};
use crate::tracking::{self, Operations};

/// A target, and who it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The inventory's entry; a new one has the default state.
    pub item: &'a Item,
    /// The field manager of the parent for it.
    pub manager: &'a str,
    /// The parent.
    pub parent: &'a Parent,
}

/// What other claims on the object mean for this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rivals {
    /// Another item says that it created the object, and stays.
    pub created: bool,
    /// The item that created the object is being released, or was: the object is handed over.
    pub handed_over: bool,
}

/// Whether `target` created the object that lives, rather than adopted it.
///
/// The inventory knows, unless a crash came between the write and its record. Then the object tells: its provenance is
/// part of what the parent applied when it made it, or shares with the parent, of whatever family, that made it and left.
/// The label alone proves nothing; nor does the inventory, once the object was replaced by one that bears no trace of the
/// parent.
pub fn is_created(live: &Value, target: Target<'_>, rivals: Rivals) -> bool {
    let Target { item, manager, .. } = target;
    if rivals.handed_over {
        return true;
    }
    if item.state.created {
        return is_ours(live, target);
    }
    live.label(tracking::LEGACY).is_some() && live.label(tracking::CREATED_BY).is_none()
        || !rivals.created && managed::owns_provenance(live, manager) && managed::came_first(live, manager)
}

/// Whether the object bears a trace of the parent: fields it applied, or the mark of its making where the inventory
/// says that it made it. An object without is a replacement that somebody else made.
pub fn is_ours(live: &Value, target: Target<'_>) -> bool {
    let Target { item, manager, parent } = target;
    managed::applied(live, manager).is_some()
        || item.state.created && live.label(tracking::CREATED_BY) == Some(parent.family.label())
}

/// Whether `target` may be applied to what lives: `created` of the outcome, or why not.
pub fn adopt(live: Option<&Value>, target: Target<'_>, creation: Creation, rivals: Rivals) -> Result<bool, String> {
    let Some(live) = live else { return Ok(true) };
    if is_created(live, target, rivals) {
        return Ok(true);
    }
    if live.label(tracking::MANAGED_BY) == Some(tracking::OF_ANOTHER) {
        return Err(format!("object {} is kept by another controller and cannot be adopted", Described(target.item)));
    }
    let was_adopted = target.item.state.last_apply.is_some() && managed::applied(live, target.manager).is_some();
    match creation {
        Creation::Merge => Ok(false),
        Creation::Owner if was_adopted => Ok(false),
        Creation::Owner => Err(format!("object {} exists and cannot be adopted", Described(target.item))),
    }
}

/// Whether a conflict about fields may be settled by force although the policy does not ask for it: when those who own
/// the fields only edited what this parent created (drift, to be repaired), changed nothing but tracking, or are
/// leaving. Whoever applies declaratively or scales keeps what he has.
pub fn is_drift(
    live: &Value,
    created: bool,
    conflicts: &[crate::cluster::FieldConflict<'_>],
    is_leaving: impl Fn(&str) -> bool,
) -> bool {
    !conflicts.is_empty()
        && conflicts.iter().all(|conflict| {
            tracking::is_tracking_field(conflict.field)
                || is_leaving(conflict.manager)
                || created && !conflict.with_subresource && !managed::is_declarative(live, conflict.manager)
        })
}

/// Who else wants an object that a parent lets go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heirs {
    /// Nobody.
    #[default]
    None,
    /// Another item that was not applied yet, or did not record yet that the object is its own: it is given time to take
    /// the object over.
    Waiting,
    /// Another item that owns fields already.
    Holding,
}

/// What releasing a target takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Release {
    /// Nothing: the object is gone, or is not the parent's.
    Forget,
    /// It cannot be done now; why.
    Wait(&'static str),
    /// The object is deleted, if it still is the one that was looked at.
    Delete {
        /// Its uid.
        uid: CompactString,
        /// Its version.
        resource_version: CompactString,
    },
    /// The tracking is changed; then, if `fields` go too, an apply of nothing but the identity takes them.
    Disown {
        /// The JSON patch; may be empty.
        operations: Operations,
        /// Whether the parent's fields go.
        fields: bool,
    },
}

/// What is to become of a target when its parent lets go of it.
pub fn deletion(Item { state, .. }: &Item, parent: &Parent) -> Deletion {
    // What was never recorded in full was at least wanted under the ordinary policy.
    let applied_before_policies = state.policy.is_none() && state.last_apply.is_some();
    match applied_before_policies && !parent.prune_without_policy {
        true => Deletion::Orphan,
        false => state.policy.unwrap_or_default().deletion,
    }
}

/// What releasing `target` takes. `live` is the object as it is.
///
/// `family_protects`: another of the parent's family protects the object.
pub fn release(
    live: Option<&Value>,
    target: Target<'_>,
    heirs: Heirs,
    rivals: Rivals,
    family_protects: bool,
) -> Release {
    let Some(live) = live else { return Release::Forget };
    let Target { item, manager, parent } = target;
    if !is_ours(live, target) {
        return Release::Forget;
    }
    let created = is_created(live, target, rivals);
    let deleting = live.at(&["metadata", "deletionTimestamp"]).is_some();
    match (heirs, deletion(item, parent)) {
        (Heirs::Waiting, Deletion::Remove) => Release::Wait("waiting for another parent to take the object over"),
        (Heirs::Holding, Deletion::Remove) => {
            Release::Disown { operations: tracking::reprotect(live, parent, false, family_protects), fields: true }
        }
        (Heirs::Holding | Heirs::Waiting, Deletion::Orphan) => {
            Release::Disown { operations: tracking::disown(live, manager, created), fields: false }
        }
        (Heirs::None, Deletion::Orphan) => {
            Release::Disown { operations: tracking::forget(live, parent), fields: false }
        }
        (Heirs::None, Deletion::Remove) if created && deleting => Release::Wait("waiting for resource deletion"),
        (Heirs::None, Deletion::Remove) if created => Release::Delete {
            uid: live.meta_str("uid").into(),
            resource_version: live.meta_str("resourceVersion").into(),
        },
        (Heirs::None, Deletion::Remove) => Release::Disown { operations: tracking::forget(live, parent), fields: true },
    }
}

/// What a condition that says no leaves to do: the tracking that follows the policy, on an object that is the parent's.
pub fn skip(live: Option<&Value>, target: Target<'_>, policy: Policy, family_protects: bool) -> Option<Operations> {
    let live = live.filter(|live| managed::applied(live, target.manager).is_some())?;
    Some(tracking::reprotect(live, target.parent, policy.protect, family_protects))
}

/// `apiVersion/kind namespace/name` in parentheses, as upstream's texts have it.
struct Described<'a>(&'a Item);

impl std::fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({})", self.0.identity)
    }
}
