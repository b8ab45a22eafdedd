//! The resources of the group `admissionregistration.k8s.io`. What their CEL expressions
//! say is checked elsewhere.
//!
//! Source of rules, texts and their order: `pkg/apis/admissionregistration/validation/validation.go`.

mod binding;
mod expressions;
mod matching;
mod mutating;
mod policy;
#[cfg(test)]
mod tests;
mod webhook;

use crate::resource::Resource;

pub(crate) const RESOURCES: &[Resource] =
    &[webhook::MUTATING, policy::POLICIES, binding::BINDINGS, webhook::VALIDATING];

/// What is served only where it is switched on.
pub(crate) const OPTIONAL: &[Resource] = &[mutating::POLICIES, mutating::BINDINGS];
