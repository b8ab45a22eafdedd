//! CustomResourceDefinitions: reading, preparing and checking them.

mod accept;
mod condition;
mod prepare;
mod validate;

pub use accept::{Acceptance, accept_names, established};
pub use condition::{Condition, condition, remove_condition, set_condition};
pub use prepare::{default, prepare_create, prepare_status_update, prepare_update};
pub use validate::{
    Approval, RuleCost, SchemaCost, approval_state, is_protected, rule_costs, validate, validate_status_update,
    validate_update,
};

use crate::{stack, typed};
use object::Value;

/// A definition as it was read.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The definition, with known members only, each of its type, as it will be written.
    pub definition: Value,
    /// The paths of members that a definition does not have (`spec.versions[0].schema.openAPIV3Schema.const`).
    pub unknown: Vec<String>,
}

/// Reads a request's body as a CustomResourceDefinition of `apiextensions.k8s.io/v1`.
///
/// The error is what Go's reader says, for example `json: cannot unmarshal string into Go struct field
/// CustomResourceDefinitionVersion.spec.versions.served of type bool`.
pub fn decode(body: &Value) -> Result<Decoded, String> {
    let decoded = stack::with_room(stack::depth(body), || typed::decode(body, &typed::DEFINITION))?;
    Ok(Decoded { definition: decoded.value, unknown: decoded.unknown })
}
