//! What owners of tenants may do with namespaces.

use crate::kinds::{MANAGER, listed};
use client::{Client, Patch, PatchParams, Resource};

const ROLES: Resource = Resource::known("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false);
const ROLE_BINDINGS: Resource =
    Resource::known("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false);

/// Gives owners of tenants the rights that they are to have. A manager that may not give rights leaves that to an
/// administrator.
pub async fn grant(client: &Client) {
    let all = listed(include_bytes!("roles.yaml")).inspect_err(|error| tracing::error!(error, "the roles of owners"));
    for role in all.unwrap_or_default() {
        let api = client.api(&if role.str_at(&["kind"]) == Some("ClusterRole") { ROLES } else { ROLE_BINDINGS });
        let name = role.name().to_owned();
        let apply = Patch::Apply { object: role, manager: MANAGER.to_owned(), force: true };
        if let Err(error) = api.patch("", &name, &apply, &PatchParams::default()).await {
            tracing::warn!(%error, name, "what owners of tenants may do cannot be written");
        }
    }
}
