//! What policies of both sorts say: which requests they are about.

use super::params::ParamKind;
use crate::admission::matching::Criteria;
use object::Value;

/// Which requests a policy is about, and with which parameters.
#[derive(Debug)]
pub(super) struct Policy {
    /// Its name.
    pub name: String,
    /// Which requests it is about.
    pub criteria: Criteria,
    /// Whether what cannot be told refuses a request.
    pub required: bool,
    /// The kind of its parameters.
    pub param_kind: Option<ParamKind>,
}

impl Policy {
    fn read(policy: &Value) -> Self {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        Policy {
            name: policy.name().to_owned(),
            criteria: Criteria::of_policy(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            required: spec.str_at(&["failurePolicy"]) != Some("Ignore"),
            param_kind: spec.get("paramKind").filter(|kind| !kind.is_null()).map(ParamKind::read),
        }
    }
}

/// A sort of policies.
pub(super) trait Sort: Sized {
    /// What the keys of policies start with.
    const POLICIES: &'static str;
    /// What the keys of bindings start with.
    const BINDINGS: &'static str;

    /// Reads a policy; `policy` is what it shares with the other sort.
    fn read(policy: Policy, spec: Value) -> Self;

    /// What it shares with the other sort.
    fn policy(&self) -> &Policy;
}

/// Reads a policy of a sort.
pub(super) fn read<S: Sort>(policy: &Value) -> S {
    S::read(Policy::read(policy), policy.get("spec").cloned().unwrap_or_default())
}
