//! The kinds of `core.oam.dev`, and the definitions that make a server serve them.

use client::{Client, Error, Resource};
use object::Value;

/// Applications.
pub const APPLICATIONS: Resource = known("v1beta1", "applications", "Application", true);
/// Revisions of applications.
pub const REVISIONS: Resource = known("v1beta1", "applicationrevisions", "ApplicationRevision", true);
/// Trackers.
pub const TRACKERS: Resource = known("v1beta1", "resourcetrackers", "ResourceTracker", false);
/// Definitions of components.
pub const COMPONENT_DEFINITIONS: Resource = known("v1beta1", "componentdefinitions", "ComponentDefinition", true);
/// Definitions of traits.
pub const TRAIT_DEFINITIONS: Resource = known("v1beta1", "traitdefinitions", "TraitDefinition", true);
/// Definitions of policies.
pub const POLICY_DEFINITIONS: Resource = known("v1beta1", "policydefinitions", "PolicyDefinition", true);
/// Definitions of steps of workflows.
pub const WORKFLOW_STEP_DEFINITIONS: Resource =
    known("v1beta1", "workflowstepdefinitions", "WorkflowStepDefinition", true);
/// Revisions of definitions.
pub const DEFINITION_REVISIONS: Resource = known("v1beta1", "definitionrevisions", "DefinitionRevision", true);
/// Policies outside of applications.
pub const POLICIES: Resource = known("v1alpha1", "policies", "Policy", true);
/// Workflows outside of applications.
pub const WORKFLOWS: Resource = known("v1alpha1", "workflows", "Workflow", true);

const fn known(version: &'static str, plural: &'static str, kind: &'static str, namespaced: bool) -> Resource {
    Resource::known("core.oam.dev", version, plural, kind, namespaced)
}

/// The CustomResourceDefinitions of all kinds.
///
/// # Errors
///
/// None, unless the file that comes with the program is broken.
pub fn definitions() -> Result<Vec<Value>, String> {
    crate::kinds::listed(include_bytes!("definitions.yaml"))
}

/// Makes the server serve the kinds, and waits until it does.
///
/// # Errors
///
/// The server refuses a definition, or its names.
pub async fn install(client: &Client) -> Result<(), Error> {
    let all = definitions().map_err(Error::Content)?;
    crate::kinds::serve(client, &all).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_definition() {
        let names: Vec<String> = definitions().unwrap_or_default().iter().map(|d| d.name().to_owned()).collect();
        for kind in
            [&APPLICATIONS, &REVISIONS, &TRACKERS, &COMPONENT_DEFINITIONS, &TRAIT_DEFINITIONS, &POLICIES, &WORKFLOWS]
        {
            let name = format!("{}.core.oam.dev", kind.plural);
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
    }
}
