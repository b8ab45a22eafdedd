//! The kinds of `capsule.clastix.io/v1beta2`, and the definitions that make a server serve them.

use client::{Client, Error, Patch, PatchParams, Resource};
use object::Value;
use std::time::Duration;

/// The group of all kinds.
pub const GROUP: &str = "capsule.clastix.io";

/// Tenants.
pub const TENANTS: Resource = known("tenants", "Tenant", false);
/// Resources of one tenant.
pub const TENANT_RESOURCES: Resource = known("tenantresources", "TenantResource", true);
/// Resources of many tenants.
pub const GLOBAL_TENANT_RESOURCES: Resource = known("globaltenantresources", "GlobalTenantResource", false);
/// Permits.
pub const PERMITS: Resource = known("resourcepermits", "ResourcePermit", true);
/// Templates of permits in one namespace.
pub const PERMIT_TEMPLATES: Resource = known("resourcepermittemplates", "ResourcePermitTemplate", true);
/// Templates of permits everywhere.
pub const GLOBAL_PERMIT_TEMPLATES: Resource =
    known("globalresourcepermittemplates", "GlobalResourcePermitTemplate", false);
/// The configuration, an object called `default`.
pub const CONFIGURATIONS: Resource = known("capsuleconfigurations", "CapsuleConfiguration", false);

/// Definitions.
const DEFINITIONS: Resource =
    Resource::known("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false);

const fn known(plural: &'static str, kind: &'static str, namespaced: bool) -> Resource {
    Resource::known(GROUP, "v1beta2", plural, kind, namespaced)
}

/// The CustomResourceDefinitions of all kinds.
///
/// # Errors
///
/// None, unless the file that comes with the program is broken.
pub fn definitions() -> Result<Vec<Value>, String> {
    listed(include_bytes!("definitions.yaml"))
}

/// What a file of definitions lists.
pub(crate) fn listed(file: &[u8]) -> Result<Vec<Value>, String> {
    let mut file = object::yaml::parse(file)?;
    match file.remove_at(&["definitions"]) {
        Some(Value::Array(all)) => Ok(all),
        _ => Err("there are no definitions".to_owned()),
    }
}

/// Makes the server serve the kinds, and waits until it does.
///
/// # Errors
///
/// The server refuses a definition, or its names.
pub async fn install(client: &Client) -> Result<(), Error> {
    let all = definitions().map_err(Error::Content)?;
    serve(client, &all).await
}

/// Makes the server serve the kinds of these definitions, and waits until it does.
pub(crate) async fn serve(client: &Client, all: &[Value]) -> Result<(), Error> {
    let api = client.api(&DEFINITIONS);
    for definition in all {
        let apply = Patch::Apply { object: definition.clone(), manager: MANAGER.to_owned(), force: true };
        api.patch("", definition.name(), &apply, &PatchParams::default()).await?;
    }
    for definition in all {
        while !is_established(&api.get("", definition.name()).await?) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().any(|c| c.str_at(&["type"]) == Some("Established") && c.str_at(&["status"]) == Some("True"))
}

/// The field manager of what belongs to the manager itself, and to tenants.
pub const MANAGER: &str = "projectcapsule.dev/controller";
