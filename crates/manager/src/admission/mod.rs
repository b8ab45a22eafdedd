//! What the manager has to say before something is written: defaults and checks of its own kinds, and the protection of
//! what it manages. Decisions follow from what the server has; nothing is asked for.
//!
//! A server in the same process calls [`Admission`]. Other servers send AdmissionReviews ([`review`]) where a registration
//! ([`registration`]) tells them to.

mod applications;
mod namespaces;
mod permits;
mod protection;
pub mod registration;
pub mod review;

pub(crate) use protection::{BY_PENDING, BY_PROTECTED, pending, protected, reduce};

use crate::application::kinds::APPLICATIONS;
use crate::block::policy;
use crate::condition::{ApplyCondition, Mode};
use crate::kinds::{
    GLOBAL_PERMIT_TEMPLATES, GLOBAL_TENANT_RESOURCES, GROUP, PERMIT_TEMPLATES, PERMITS, TENANT_RESOURCES,
};
use crate::manager::Shared;
use crate::permit::template::PermitTemplate;
use crate::{block, block::legacy_policy};
use jiff::Timestamp;
use object::{Value, map};
use std::sync::{Arc, OnceLock};

const STARTING: &str = "the manager is starting; try again";

/// A write, before it happens.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'a str,
    /// The group of the resource.
    pub group: &'a str,
    /// The plural of the resource.
    pub resource: &'a str,
    /// The kind of the resource.
    pub kind: &'a str,
    /// The subresource; often empty.
    pub subresource: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// The name; empty until one is generated.
    pub name: &'a str,
    /// Who writes.
    pub user: &'a str,
    /// The groups of who writes.
    pub groups: &'a [String],
    /// The object as it is; none for a create.
    pub old: Option<&'a Value>,
    /// The time.
    pub now: Timestamp,
}

impl Request<'_> {
    /// Whoever writes, as permits record it.
    fn actor(&self) -> Value {
        let kind = if self.user.starts_with("system:serviceaccount:") { "ServiceAccount" } else { "User" };
        let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        map! { "name" => self.user, "type" => kind, "groups" => groups }.into()
    }
}

/// The manager's part in admission. A clone is the same. Before the manager runs, everything passes but permits.
#[derive(Clone, Default)]
pub struct Admission {
    shared: Arc<OnceLock<Arc<Shared>>>,
    authenticates: bool,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

impl Admission {
    /// Whether Applications are carried out as whoever declares them; they are not by default.
    pub fn authenticating(self, authenticates: bool) -> Self {
        Admission { authenticates, ..self }
    }

    /// Whether Applications are carried out as whoever declares them.
    pub fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// Whether decisions follow from what the server has.
    pub fn is_ready(&self) -> bool {
        self.shared.get().is_some()
    }

    /// From now on decisions follow from what these caches hold.
    pub(crate) fn begin(&self, shared: &Arc<Shared>) {
        // A second manager in one process would be a mistake of the program; the first one stays.
        let _ = self.shared.set(shared.clone());
    }

    /// Gives an object what it lacks, and puts right what its writer may not say. Gives whether it changed.
    ///
    /// # Errors
    ///
    /// Why the write is not possible.
    pub fn mutate(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, String> {
        if request.group != GROUP {
            return self.mutate_others(request, object);
        }
        let Some(shared) = self.shared.get() else {
            let is_permit = request.resource == PERMITS.plural;
            return if is_permit { Err(STARTING.to_owned()) } else { Ok(false) };
        };
        let stamped = namespaces::stamp(shared, request, object);
        let changed = match (request.resource, request.subresource) {
            (r, "") if r == TENANT_RESOURCES.plural || r == GLOBAL_TENANT_RESOURCES.plural => Ok(add_policies(object)),
            (r, sub) if r == PERMITS.plural => permits::mutate(shared, request, sub, object),
            _ => Ok(false),
        };
        changed.map(|changed| changed || stamped)
    }

    /// What is not of the manager's own kinds: namespaces go to tenants, what is in them is labelled.
    fn mutate_others(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, String> {
        let is_application =
            (request.group, request.resource, request.subresource) == (&*APPLICATIONS.group, &*APPLICATIONS.plural, "");
        match self.shared.get() {
            None if is_application && self.authenticates => Err(STARTING.to_owned()),
            None => Ok(false),
            Some(shared) if is_application && self.authenticates && !shared.is_controller(request.user) => {
                let stamped = namespaces::stamp(shared, request, object);
                Ok(applications::mutate(request, object)? || stamped)
            }
            Some(shared) if (request.group, request.resource) == ("", "namespaces") => {
                namespaces::mutate(shared, request, object)
            }
            Some(shared) => Ok(namespaces::stamp(shared, request, object)),
        }
    }

    /// Whether a write may happen; `object` is what will be stored, none for a delete.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub fn validate(&self, request: &Request<'_>, object: Option<&Value>) -> Result<(), String> {
        let Some(shared) = self.shared.get() else { return Ok(()) };
        protection::check(shared, request, object)?;
        if (request.group, request.resource) == ("", "namespaces") {
            return namespaces::validate(shared, request, object);
        }
        if request.group == GROUP && request.subresource == "status" {
            return statuses(shared, request);
        }
        if request.group != GROUP || !request.subresource.is_empty() {
            return Ok(());
        }
        let Some(object) = object else {
            return if request.resource == PERMITS.plural { permits::delete(shared, request) } else { Ok(()) };
        };
        match request.resource {
            r if r == TENANT_RESOURCES.plural || r == GLOBAL_TENANT_RESOURCES.plural => conditions(object),
            r if r == PERMIT_TEMPLATES.plural || r == GLOBAL_PERMIT_TEMPLATES.plural => {
                conditions(object)?;
                PermitTemplate::read(object).map(drop)
            }
            r if r == PERMITS.plural => permits::validate(shared, request, object),
            _ => Ok(()),
        }
    }
}

/// What a status says of who works for a parent, and of what it manages, is believed: nobody else may say it.
fn statuses(shared: &Shared, request: &Request<'_>) -> Result<(), String> {
    let is_believed = [&TENANT_RESOURCES, &GLOBAL_TENANT_RESOURCES].iter().any(|kind| request.resource == kind.plural);
    match is_believed && !shared.is_controller(request.user) && !shared.is_administrator(request) {
        true => Err("only the controller writes this status".to_owned()),
        false => Ok(()),
    }
}

/// Gives every block a policy that has none, from the fields of older versions.
fn add_policies(object: &mut Value) -> bool {
    let policy = legacy_policy(object.get("spec").unwrap_or(&Value::Null)).to_value();
    let blocks = object.get_mut("spec").and_then(|s| s.get_mut("resources")).and_then(Value::as_array_mut);
    let mut changed = false;
    for block in blocks.into_iter().flatten() {
        if block.get("policy").is_none_or(Value::is_null) {
            block.set_at(&["policy"], policy.clone());
            changed = true;
        }
    }
    changed
}

/// Whether the conditions of all blocks are such as may be written today.
fn conditions(object: &Value) -> Result<(), String> {
    for (i, block) in block::list(object, &["spec", "resources"]).iter().enumerate() {
        let place = |e: String| format!("spec.resources[{i}].{e}");
        policy(block).map_err(place)?;
        if let Some(text) = block.str_at(&["policy", "condition"]) {
            ApplyCondition::new(text, Mode::New).map_err(|e| place(format!("policy.condition: Invalid value: {e}")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn blocks_without_a_policy_get_one_once() {
        let mut object =
            yaml::parse(b"spec: {pruningOnDelete: false, resources: [{}, {policy: {creation: Merge}}]}").unwrap();
        assert!(add_policies(&mut object));
        let blocks = block::list(&object, &["spec", "resources"]).to_vec();
        assert_eq!(blocks[0].str_at(&["policy", "deletion"]), Some("Orphan"));
        assert_eq!(object::json::to_string(blocks[1].get("policy").unwrap()), r#"{"creation":"Merge"}"#);
        assert!(!add_policies(&mut object));
    }
}
