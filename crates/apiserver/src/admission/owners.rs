//! The plugin `OwnerReferencesPermissionEnforcement`: who gives an object owners has to be allowed to delete it, and who
//! lets it hold up an owner's deletion has to be allowed to change that owner's finalizers.

use super::{Admission, Attributes, Phase, Step, forbidden};
use crate::Server;
use crate::admission::plugins::Plugin;
use crate::answer::Outcome;
use crate::authorize::{self, Decision};
use crate::catalogue::Resource;
use object::Value;

/// Guards owner references.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnerReferences;

impl Admission for OwnerReferences {
    fn validate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        _warnings: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        Box::pin(async move {
            // The status of a pod changes no owners.
            let of_status = attributes.resource.plural == "pods" && attributes.subresource == "status";
            match object {
                Some(object) if !of_status => check(server, attributes, object).await,
                _ => Ok(()),
            }
        })
    }

    fn name(&self, _: Phase) -> &'static str {
        Plugin::OwnerReferencesPermissionEnforcement.name()
    }

    fn concerns(&self, _: &Resource) -> bool {
        true
    }

    fn mutates(&self, _: &Resource) -> bool {
        false
    }
}

async fn check(server: &Server, attributes: Attributes<'_>, object: &Value) -> Outcome<()> {
    let (new, old) = (references(object), attributes.old.map(references).unwrap_or_default());
    if new == old {
        return Ok(());
    }
    let resource = attributes.resource;
    let wish = authorize::Attributes {
        user: attributes.user,
        verb: "delete",
        group: &resource.group,
        version: &resource.version,
        resource: &resource.plural,
        subresource: attributes.subresource,
        name: attributes.name,
        namespace: attributes.namespace,
        path: "",
    };
    let refuse = |why: String| Err(forbidden(attributes, Some(object), &why).into());
    let authorizer = &server.options.authorizer;
    if let Decision::Deny(reason) = authorizer.authorize(wish).await {
        return refuse(format!("cannot set an ownerRef on a resource you can't delete: {reason}, <nil>"));
    }
    let catalogue = server.catalogue();
    for reference in new.iter().filter(|r| blocks(r)) {
        let uid = reference.str_at(&["uid"]);
        if old.iter().any(|known| known.str_at(&["uid"]) == uid && blocks(known)) {
            continue;
        }
        let text = |key: &str| reference.str_at(&[key]).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let (group, name) = version.split_once('/').unwrap_or(("", version));
        let Some(owner) = catalogue.kind(group, name, kind) else {
            return refuse(format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} Kind \
                 {kind}: no matches for kind {} in version {}",
                object::go::quote(kind),
                object::go::quote(version)
            ));
        };
        let wish = authorize::Attributes {
            verb: "update",
            group: &owner.group,
            version: &owner.version,
            resource: &owner.plural,
            subresource: "finalizers",
            name: text("name"),
            namespace: if owner.namespaced { attributes.namespace } else { "" },
            ..wish
        };
        if let Decision::Deny(reason) = authorizer.authorize(wish).await {
            return refuse(format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: \
                 {reason}, <nil>"
            ));
        }
    }
    Ok(())
}

fn references(object: &Value) -> &[Value] {
    object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default()
}

fn blocks(reference: &Value) -> bool {
    reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}
