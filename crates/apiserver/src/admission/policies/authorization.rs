//! Nobody learns from a policy what they may not read: whoever names a kind of parameters, or parameters, must have leave to
//! read them.
//!
//! Source: `pkg/registry/admissionregistration/*/authz.go`.

use super::params::ParamKind;
use crate::Server;
use crate::auth::{MASTERS, UserInfo};
use crate::authorize::{Attributes, Decision};
use crate::catalogue::Resource;
use crate::registry;
use object::Value;
use object::field::{FieldError, Path};

/// The error of a write of a policy or binding by somebody who may not read its parameters; other kinds pass. `old` is
/// none for a create.
pub(crate) async fn reading_error(
    server: &Server,
    user: &UserInfo,
    resource: &Resource,
    old: Option<&Value>,
    new: &Value,
) -> Option<FieldError> {
    if resource.group != "admissionregistration.k8s.io" {
        return None;
    }
    let spec = Path::ROOT.child("spec");
    let (field, why) = match resource.plural.as_str() {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            ("paramKind", refused_kind(server, user, old, new).await?)
        }
        "validatingadmissionpolicybindings" => {
            ("paramRef", refused_reference(server, user, "validatingadmissionpolicies", new).await?)
        }
        "mutatingadmissionpolicybindings" => {
            ("paramRef", refused_reference(server, user, "mutatingadmissionpolicies", new).await?)
        }
        _ => return None,
    };
    Some(FieldError::forbidden(&spec.child(field), why))
}

fn param_kind(policy: &Value) -> Option<&Value> {
    policy.at(&["spec", "paramKind"]).filter(|kind| !kind.is_null())
}

async fn refused_kind(server: &Server, user: &UserInfo, old: Option<&Value>, new: &Value) -> Option<String> {
    let kind = param_kind(new)?;
    if old.and_then(param_kind) == Some(kind) {
        return None;
    }
    if may(server, user, "get", Some(kind), ("*", "*")).await {
        return None;
    }
    let text = |key: &str| kind.str_at(&[key]).unwrap_or_default();
    Some(format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
        user.go_text(),
        text("kind"),
        text("apiVersion")
    ))
}

/// Upstream compares references by their addresses, so that each update asks.
async fn refused_reference(server: &Server, user: &UserInfo, policies: &str, new: &Value) -> Option<String> {
    let reference = new.at(&["spec", "paramRef"]).filter(|reference| !reference.is_null())?;
    let text = |key: &str| reference.str_at(&[key]).unwrap_or_default();
    let verb = if text("name").is_empty() { "list" } else { "get" };
    let key = format!("/registry/{policies}/{}", new.str_at(&["spec", "policyName"]).unwrap_or_default());
    let policy = match server.store.get(&key, None).await {
        Ok(Some(entry)) => registry::stored(&entry).ok().map(|stored| stored.value(0)),
        _ => None,
    };
    let kind = policy.as_ref().and_then(param_kind);
    if may(server, user, verb, kind, (text("namespace"), text("name"))).await {
        return None;
    }
    // Upstream takes the one for the other.
    let (user, verb) = (verb, user.go_text());
    Some(format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"))
}

/// Whether a user may read a kind's objects. Where it is not known, they must be allowed to read everything.
async fn may(server: &Server, user: &UserInfo, verb: &str, kind: Option<&Value>, place: (&str, &str)) -> bool {
    if user.in_group(MASTERS) {
        return true;
    }
    let (namespace, name) = place;
    let kind = kind.map(ParamKind::read);
    let (group, version) = kind.as_ref().map_or(("*", "*"), ParamKind::group_version);
    let resource = kind.as_ref().and_then(|kind| kind.resource(&server.catalogue()).ok());
    let resource = resource.as_ref().map_or("*", |resource| resource.plural.as_str());
    let attributes = Attributes { user, verb, group, version, resource, subresource: "", name, namespace, path: "" };
    matches!(server.options.authorizer.authorize(attributes).await, Decision::Allow(_))
}
