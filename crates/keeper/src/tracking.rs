//! The labels and annotations that say who manages an object: what is taken out of rendered objects, what an apply
//! puts in, what goes in the end.
//!
//! They are part of what a parent applies, so that the server counts who still says so: a label of two parents stays
//! until the second leaves. Where a label names one family and two want it, the later joins the value that is there.

use object::{Map, Value, map};

use crate::managed;
use crate::parent::{Family, Parent};

/// Label: the family that created the object.
pub const CREATED_BY: &str = "projectcapsule.dev/created-by";
/// Label: the family that manages the object.
pub const MANAGED_BY: &str = "projectcapsule.dev/managed-by";
/// Value of [`MANAGED_BY`] on what another controller keeps as it is: that is adopted by nobody.
pub const OF_ANOTHER: &str = "controller";
/// Label: the family that protects the object.
pub const PROTECTED_BY: &str = "projectcapsule.dev/protected-by";
/// Prefix of the labels by which each family protects for itself; the value is `true`.
pub const PROTECTION_PREFIX: &str = "protection.projectcapsule.dev/";
/// Annotation: the service account that may write a permit's target.
pub const SERVICE_ACCOUNT: &str = "projectcapsule.dev/resourcepermit-service-account";
/// Label: the application that made the object; see [`Family::application`].
pub const APPLICATION: &str = "app.kubernetes.io/managed-by";
/// Label of targets of versions before server-side apply.
pub const LEGACY: &str = "capsule.clastix.io/resources";

/// The selector of everything that parents manage, for the watches that heal.
pub const SELECTOR: &str = "projectcapsule.dev/managed-by in (replications,resource-permit)";

/// Whether a label belongs to the tracking.
pub fn is_tracking_label(key: &str) -> bool {
    matches!(key, CREATED_BY | MANAGED_BY | PROTECTED_BY | LEGACY) || key.starts_with(PROTECTION_PREFIX)
}

/// Whether a field, as errors write it (`.metadata.labels.projectcapsule.dev/managed-by`), belongs to the tracking.
pub(crate) fn is_tracking_field(field: &str) -> bool {
    match (field.strip_prefix(".metadata.labels."), field.strip_prefix(".metadata.annotations.")) {
        (Some(label), _) => is_tracking_label(label),
        (_, Some(annotation)) => annotation == SERVICE_ACCOUNT,
        _ => false,
    }
}

/// Takes what a rendered object says of its own tracking out of it, so that nothing rendered can forge provenance;
/// and what no apply may say: version, uid, managed fields, times, status.
pub fn strip(object: &mut Value) {
    if let Some(labels) =
        object.get_mut("metadata").and_then(|meta| meta.get_mut("labels")).and_then(Value::as_object_mut)
    {
        labels.retain(|key, _| !is_tracking_label(key));
    }
    object.remove_at(&["metadata", "annotations", SERVICE_ACCOUNT]);
    for field in [
        "resourceVersion",
        "uid",
        "managedFields",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ] {
        object.remove_at(&["metadata", field]);
    }
}

/// Who else has to do with the object, as far as the tracking depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Another parent's item says that it created the object.
    pub created: bool,
}

/// Puts the tracking into an object that is about to be applied by `parent`: provenance if it is `created` (or shared
/// with who created it), the manager, and protection if `protect`.
pub fn mark(object: &mut Value, live: Option<&Value>, parent: &Parent, created: bool, protect: bool, others: Others) {
    let own = parent.family.label();
    let present = |key| {
        let value = live.and_then(|live| live.label(key));
        Family::ALL.into_iter().map(Family::label).find(|label| value == Some(label))
    };
    let labels = object.object_entry("metadata").object_entry("labels");
    match present(CREATED_BY) {
        Some(creator) if created || others.created => _ = labels.insert(CREATED_BY, creator),
        None if created => _ = labels.insert(CREATED_BY, own),
        _ => {}
    }
    labels.insert(MANAGED_BY, present(MANAGED_BY).unwrap_or(own));
    if protect {
        labels.insert(PROTECTED_BY, present(PROTECTED_BY).unwrap_or(own));
        labels.insert(format!("{PROTECTION_PREFIX}{own}"), "true");
        if let Some(account) = &parent.service_account {
            object.set_at(&["metadata", "annotations", SERVICE_ACCOUNT], account.as_str().into());
        }
    }
    if let Some(reference) = parent.owner_reference.as_ref().filter(|_| created) {
        let references = object.object_entry("metadata").get_or_insert("ownerReferences", || Value::Array(Vec::new()));
        if let Some(references) = references.as_array_mut() {
            references.retain(|known| known.get("uid") != reference.get("uid"));
            references.push(reference.clone());
        }
    }
}

/// What a JSON patch of the tracking is made from: the operations, or nothing if the object is as it should be.
pub type Operations = Vec<Value>;

/// The patch that takes all tracking off an object that nobody manages any more, and the parent's owner reference;
/// guarded by the version of `live`.
pub fn forget(live: &Value, parent: &Parent) -> Operations {
    let mut operations = Vec::new();
    let application = live.label(APPLICATION).filter(|value| Some(*value) == parent.family.application());
    let is_ours = |key: &str| is_tracking_label(key) || key == APPLICATION && application.is_some();
    remove_labels(live, is_ours, &mut operations);
    remove_at(live, "annotations", SERVICE_ACCOUNT, &mut operations);
    if let Some(position) = owner_reference(live, parent) {
        operations.push(operation("remove", &["metadata", "ownerReferences", &position.to_string()], None));
    }
    guarded(live, operations)
}

/// The patch that takes the label of versions before server-side apply off an object.
pub fn forget_legacy(live: &Value) -> Operations {
    let mut operations = Vec::new();
    remove_labels(live, |key| key == LEGACY, &mut operations);
    guarded(live, operations)
}

/// The patch that makes the tracking of an object whose content is left alone what `policy` asks for: protection on,
/// or off unless `keep_protection` says that another of the family needs it.
pub fn reprotect(live: &Value, parent: &Parent, protect: bool, keep_protection: bool) -> Operations {
    let own = parent.family.label();
    let marker = format!("{PROTECTION_PREFIX}{own}");
    let mut operations = Vec::new();
    if protect {
        let mut wanted = vec![("labels", marker.as_str(), "true")];
        if live.label(PROTECTED_BY).is_none() {
            wanted.push(("labels", PROTECTED_BY, own));
        }
        if let Some(account) = &parent.service_account {
            wanted.push(("annotations", SERVICE_ACCOUNT, account));
        }
        for (field, key, value) in wanted {
            if live.at(&["metadata", field, key]).and_then(Value::as_str) != Some(value) {
                if live.at(&["metadata", field]).is_none() && !operations.iter().any(|made| is_at(made, field)) {
                    operations.push(operation("add", &["metadata", field], Some(Map::new().into())));
                }
                operations.push(operation("add", &["metadata", field, key], Some(value.into())));
            }
        }
    } else if !keep_protection {
        remove_labels(live, |key| key == marker, &mut operations);
        let survivor = Family::ALL.into_iter().find(|family| {
            *family != parent.family && live.label(&format!("{PROTECTION_PREFIX}{}", family.label())).is_some()
        });
        match survivor {
            _ if live.label(PROTECTED_BY) != Some(own) => {}
            Some(family) => {
                operations.push(operation("add", &["metadata", "labels", PROTECTED_BY], Some(family.label().into())))
            }
            None => remove_labels(live, |key| key == PROTECTED_BY, &mut operations),
        }
        if parent.service_account.is_some() {
            remove_at(live, "annotations", SERVICE_ACCOUNT, &mut operations);
        }
    }
    guarded(live, operations)
}

/// The patch by which `manager` stops owning the tracking, while its content stays and stays its own: for an orphaned
/// object that others manage too. Labels that only `manager` owned are taken off, and so is, if its parent `created` the
/// object, the provenance: what is orphaned is nobody's to delete.
pub fn disown(live: &Value, manager: &str, created: bool) -> Operations {
    let Some(index) = managed::position(live, manager) else { return Vec::new() };
    let Some(entry) = live.at(&["metadata", "managedFields"]).and_then(Value::as_array).and_then(|all| all.get(index))
    else {
        return Vec::new();
    };
    let mut fields = entry.get("fieldsV1").cloned().unwrap_or_default();
    let mut operations = Vec::new();
    for (parent, keys) in
        [("f:labels", managed::keys(entry, "labels")), ("f:annotations", managed::keys(entry, "annotations"))]
    {
        let field = parent.trim_start_matches("f:");
        for key in keys.iter().filter(|key| is_tracking_label(key) || key.as_str() == SERVICE_ACCOUNT) {
            fields.remove_at(&["f:metadata", parent, &format!("f:{key}")]);
            if created && key == CREATED_BY || !managed::is_shared(live, manager, field, key) {
                remove_at(live, field, key, &mut operations);
            }
        }
    }
    if Some(&fields) == entry.get("fieldsV1") {
        return Vec::new();
    }
    let index = index.to_string();
    operations.push(operation("replace", &["metadata", "managedFields", &index, "fieldsV1"], Some(fields)));
    guarded(live, operations)
}

fn owner_reference(live: &Value, parent: &Parent) -> Option<usize> {
    let uid = parent.owner_reference.as_ref()?.get("uid")?;
    live.at(&["metadata", "ownerReferences"])?.as_array()?.iter().position(|known| known.get("uid") == Some(uid))
}

fn remove_labels(live: &Value, which: impl Fn(&str) -> bool, operations: &mut Operations) {
    let labels = live.at(&["metadata", "labels"]).and_then(Value::as_object);
    for key in labels.iter().flat_map(|labels| labels.keys()).filter(|key| which(key)) {
        operations.push(operation("remove", &["metadata", "labels", key], None));
    }
}

fn remove_at(live: &Value, field: &str, key: &str, operations: &mut Operations) {
    if live.at(&["metadata", field, key]).is_some() {
        operations.push(operation("remove", &["metadata", field, key], None));
    }
}

/// The operations behind a test of the version they were made for; none stay none.
fn guarded(live: &Value, operations: Operations) -> Operations {
    if operations.is_empty() {
        return operations;
    }
    let test = operation("test", &["metadata", "resourceVersion"], Some(live.meta_str("resourceVersion").into()));
    std::iter::once(test).chain(operations).collect()
}

fn operation(op: &str, path: &[&str], value: Option<Value>) -> Value {
    let path: String = path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect();
    let mut operation = map! { "op" => op, "path" => path };
    if let Some(value) = value {
        operation.insert("value", value);
    }
    operation.into()
}

fn is_at(operation: &Value, field: &str) -> bool {
    operation.get("path").and_then(Value::as_str) == Some(format!("/metadata/{field}").as_str())
}
