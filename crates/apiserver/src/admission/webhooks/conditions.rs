//! The conditions of a webhook, judged for a request.

use super::configured::Hook;
use crate::admission::cel::{Judgement, Run, Scope, Variables, judge};
use crate::admission::matching::{Matching, Place};
use crate::answer::Outcome;
use object::field::aggregate;
use object::{Status, Value};

/// Whether the conditions of a webhook hold for the request, whose objects are in the webhook's version.
pub(super) fn hold(
    matching: &Matching<'_>,
    hook: &Hook,
    place: &Place,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Outcome<bool> {
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let mut request = matching.request_of_expressions(place);
    // Conditions see the kind of the webhook's version, and the resource of the request's.
    request.set_at(&["resource"], matching.resource(&matching.place()));
    let (who, check) = matching.authorizer();
    let scope = Scope {
        object: object.unwrap_or(&Value::Null),
        old: old.unwrap_or(&Value::Null),
        request: &request,
        namespace: &Value::Null,
        params: &Value::Null,
        authorizer: Some((&who, &check)),
    };
    let none = Variables::default();
    let run = Run::new(scope, &none);
    match judge(&hook.conditions, &run) {
        Judgement::Match => Ok(true),
        Judgement::Other => Ok(false),
        Judgement::Errors(_) if !hook.required => Ok(false),
        Judgement::Errors(errors) => {
            let attributes = matching.attributes;
            let why = aggregate(&errors);
            Err(Status::forbidden(attributes.resource.qualified(), attributes.name, &why).into())
        }
    }
}
