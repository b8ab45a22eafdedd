//! What `metadata.managedFields` tells of who manages an object.

use object::{Map, Value};

use crate::parent;
use crate::tracking;

/// The entry of `manager` that came by apply, outside of subresources.
pub fn applied<'a>(live: &'a Value, manager: &str) -> Option<&'a Value> {
    entries(live).iter().find(|entry| is_applied_by(entry, manager))
}

/// When `manager` last changed something by apply, as the object says.
pub fn last_apply<'a>(live: &'a Value, manager: &str) -> Option<&'a str> {
    applied(live, manager)?.get("time")?.as_str()
}

/// Where the entry of [`applied`] stands.
pub(crate) fn position(live: &Value, manager: &str) -> Option<usize> {
    entries(live).iter().position(|entry| is_applied_by(entry, manager))
}

/// Whether `manager` owns the mark of who created the object: it came with the object, or was shared by who brought it.
pub fn owns_provenance(live: &Value, manager: &str) -> bool {
    applied(live, manager).is_some_and(|entry| keys(entry, "labels").iter().any(|key| key == tracking::CREATED_BY))
}

/// Whether an object that `manager` just applied, and believed absent, was indeed made by that apply: then nobody else
/// owns anything of it.
pub fn is_sole(live: &Value, manager: &str) -> bool {
    entries(live).iter().all(|entry| is_applied_by(entry, manager))
}

/// Whether the apply of `manager`, or of those who are no longer there, brought the object into being, as well as that can
/// be told afterwards: no other manager's entry is as old as the object, or `manager`'s own is. Times have a resolution of
/// one second; no subresource makes an object.
pub fn came_first(live: &Value, manager: &str) -> bool {
    applied(live, manager).is_some_and(|entry| is_first(live, entry)) || came_first_without(live, manager, manager)
}

/// Whether `heir` is known by the object alone as the one whose it is once `leaving`, who made it, has nothing of it any more.
pub fn inherits(live: &Value, heir: &str, leaving: &str) -> bool {
    owns_provenance(live, heir) && came_first_without(live, heir, leaving)
}

fn came_first_without(live: &Value, manager: &str, leaving: &str) -> bool {
    let is_other = |entry: &&Value| !is_applied_by(entry, manager) && !is_applied_by(entry, leaving);
    !entries(live).iter().filter(is_other).any(|entry| is_first(live, entry))
}

fn is_first(live: &Value, entry: &Value) -> bool {
    let born = live.at(&["metadata", "creationTimestamp"]).and_then(Value::as_str);
    !has_subresource(entry) && entry.get("time").and_then(Value::as_str) == born
}

/// The permits, other than `manager`, that own more of the object than marks.
pub fn other_permits<'a>(live: &'a Value, manager: &'a str) -> impl Iterator<Item = &'a str> {
    entries(live).iter().filter(|entry| has_content(entry)).filter_map(move |entry| {
        let other = entry.get("manager")?.as_str()?;
        (other != manager && parent::is_permit_manager(other)).then_some(other)
    })
}

/// Whether somebody other than `manager` owns the label or annotation `key`.
pub(crate) fn is_shared(live: &Value, manager: &str, field: &str, key: &str) -> bool {
    let others = entries(live).iter().filter(|entry| !is_applied_by(entry, manager));
    others.into_iter().any(|entry| keys(entry, field).iter().any(|known| known == key))
}

/// The keys of labels or annotations that an entry owns.
pub(crate) fn keys(entry: &Value, field: &str) -> Vec<String> {
    let owned = entry.at(&["fieldsV1", "f:metadata", &format!("f:{field}")]).and_then(Value::as_object);
    owned.iter().flat_map(|owned| owned.keys()).filter_map(|key| key.strip_prefix("f:")).map(str::to_owned).collect()
}

/// Whether somebody applies `field`'s owner `manager` declaratively, or through a subresource: an owner who will come
/// back, unlike one who edited the object once.
pub(crate) fn is_declarative(live: &Value, manager: &str) -> bool {
    entries(live).iter().any(|entry| {
        entry.get("manager").and_then(Value::as_str) == Some(manager)
            && (entry.get("operation").and_then(Value::as_str) == Some("Apply") || has_subresource(entry))
    })
}

/// Whether an entry owns more than tracking labels.
fn has_content(entry: &Value) -> bool {
    let members = |value: &Value| value.as_object().map(Map::len).unwrap_or_default();
    let outside =
        entry.get("fieldsV1").and_then(Value::as_object).is_some_and(|f| f.keys().any(|key| key != "f:metadata"));
    let metadata = entry.at(&["fieldsV1", "f:metadata"]).and_then(Value::as_object);
    let labels = keys(entry, "labels");
    outside
        || labels.iter().any(|key| !tracking::is_tracking_label(key))
        || metadata.is_some_and(|metadata| metadata.iter().any(|(key, value)| key != "f:labels" && members(value) > 0))
}

fn is_applied_by(entry: &Value, manager: &str) -> bool {
    let text = |key| entry.get(key).and_then(Value::as_str);
    text("manager") == Some(manager) && text("operation") == Some("Apply") && !has_subresource(entry)
}

fn has_subresource(entry: &Value) -> bool {
    entry.get("subresource").and_then(Value::as_str).is_some_and(|subresource| !subresource.is_empty())
}

fn entries(live: &Value) -> &[Value] {
    live.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default()
}
