//! The resources of the group `admissionregistration.k8s.io`. What their CEL expressions say is checked elsewhere.

mod matching;
mod policy;
mod webhook;

use crate::resource::Resource;

pub(crate) const RESOURCES: &[Resource] = &[webhook::MUTATING, policy::POLICIES, policy::BINDINGS, webhook::VALIDATING];
