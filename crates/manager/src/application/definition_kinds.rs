//! The kinds of definitions.

use client::Resource;
use object::Value;

use super::kinds::{COMPONENT_DEFINITIONS, POLICY_DEFINITIONS, TRAIT_DEFINITIONS, WORKFLOW_STEP_DEFINITIONS};

/// A kind of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionKind {
    /// Of components.
    Component,
    /// Of traits.
    Trait,
    /// Of policies.
    Policy,
    /// Of steps.
    WorkflowStep,
}

impl DefinitionKind {
    /// All of them.
    pub const ALL: [DefinitionKind; 4] =
        [DefinitionKind::Component, DefinitionKind::Trait, DefinitionKind::Policy, DefinitionKind::WorkflowStep];

    /// The `definitionType` of its revisions.
    pub fn name(self) -> &'static str {
        match self {
            DefinitionKind::Component => "Component",
            DefinitionKind::Trait => "Trait",
            DefinitionKind::Policy => "Policy",
            DefinitionKind::WorkflowStep => "WorkflowStep",
        }
    }

    /// The definitions.
    pub fn resource(self) -> Resource {
        match self {
            DefinitionKind::Component => COMPONENT_DEFINITIONS,
            DefinitionKind::Trait => TRAIT_DEFINITIONS,
            DefinitionKind::Policy => POLICY_DEFINITIONS,
            DefinitionKind::WorkflowStep => WORKFLOW_STEP_DEFINITIONS,
        }
    }

    /// The member of a revision's specification that holds the definition.
    pub(super) fn member(self) -> &'static str {
        match self {
            DefinitionKind::Component => "componentDefinition",
            DefinitionKind::Trait => "traitDefinition",
            DefinitionKind::Policy => "policyDefinition",
            DefinitionKind::WorkflowStep => "workflowStepDefinition",
        }
    }

    /// The label of a revision that names its definition, as KubeVela calls it.
    pub fn label(self) -> &'static str {
        match self {
            DefinitionKind::Component => "componentdefinition.oam.dev/name",
            DefinitionKind::Trait => "trait.oam.dev/name",
            DefinitionKind::Policy => "policydefinition.oam.dev/name",
            DefinitionKind::WorkflowStep => "workflowstepdefinition.oam.dev/name",
        }
    }

    /// The definition that a revision holds.
    pub fn held(self, revision: &Value) -> Option<Value> {
        let is_meant = revision.str_at(&["spec", "definitionType"]) == Some(self.name());
        revision.at(&["spec", self.member()]).filter(|_| is_meant).cloned()
    }
}
