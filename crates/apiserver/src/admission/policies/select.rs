//! Which policies and bindings are meant by a request, and what their expressions see of it.

use super::binding::Binding;
use super::params;
use super::policy::Policy;
use crate::Server;
use crate::admission::authorizer::{Check, Who};
use crate::admission::cel::Scope;
use crate::admission::matching::{Matching, Place};
use crate::catalogue::Resource;
use object::Value;
use std::sync::Arc;

/// What a policy makes of a request that it is about.
pub(super) struct Meant {
    /// The version in which it sees the request.
    pub place: Place,
    /// Where its parameters are.
    params: Option<Arc<Resource>>,
}

/// Whether a policy is about a request. The error says why the policy cannot be applied.
pub(super) async fn meant(
    matching: &mut Matching<'_>,
    policy: &Policy,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Meant>, String> {
    let place = matching.meant(&policy.criteria, object, old).await.map_err(params::text)?;
    let Some(place) = place else { return Ok(None) };
    let params = policy.param_kind.as_ref().map(|kind| kind.resource(&matching.catalogue)).transpose()?;
    Ok(Some(Meant { place, params }))
}

/// The parameters with which a binding applies a policy to a request; empty if it does not. The error says why the
/// binding cannot be applied.
pub(super) async fn params(
    server: &Server,
    matching: &mut Matching<'_>,
    binding: &Binding,
    meant: &Meant,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Vec<Value>, String> {
    if let Some(criteria) = &binding.criteria {
        let meant = matching.meant(criteria, object, old).await.map_err(params::text)?;
        if meant.is_none() {
            return Ok(Vec::new());
        }
    }
    match (&meant.params, &binding.params) {
        (Some(resource), Some(reference)) => params::find(server, resource, reference, matching.namespace()).await,
        // Parameters that are not asked for, or not given.
        _ => Ok(vec![Value::Null]),
    }
}

/// A request as expressions see it.
pub(super) struct Seen<'m> {
    /// With the resource that the policy names.
    request: Value,
    /// With the resource of the request.
    conditions: Value,
    who: &'m Who,
    check: &'m Check,
}

impl<'m> Seen<'m> {
    /// As a policy sees it that sees it in a version.
    pub fn new(matching: &Matching<'_>, place: &Place, who: &'m Who, check: &'m Check) -> Self {
        let request = matching.request_of_expressions(place);
        let mut conditions = request.clone();
        conditions.set_at(&["resource"], matching.resource(&matching.place()));
        Seen { request, conditions, who, check }
    }

    /// What validations look at, and what conditions look at.
    pub fn scopes<'o>(
        &'o self,
        (object, old): (Option<&'o Value>, Option<&'o Value>),
        namespace: &'o Value,
        params: &'o Value,
    ) -> (Scope<'o>, Scope<'o>) {
        let scope = Scope {
            object: object.unwrap_or(&Value::Null),
            old: old.unwrap_or(&Value::Null),
            request: &self.request,
            namespace,
            params,
            authorizer: Some((self.who, self.check)),
        };
        (scope, Scope { request: &self.conditions, namespace: &Value::Null, ..scope })
    }
}
