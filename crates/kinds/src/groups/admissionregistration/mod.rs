//! The resources of the group `admissionregistration.k8s.io`. What their CEL expressions say is checked elsewhere.

mod matching;
mod mutating;
mod policy;
mod webhook;

use crate::resource::Resource;

pub(crate) const RESOURCES: &[Resource] = &[webhook::MUTATING, policy::POLICIES, policy::BINDINGS, webhook::VALIDATING];

/// What is served only where it is switched on.
pub(crate) const OPTIONAL: &[Resource] = &[mutating::POLICIES, mutating::BINDINGS];
