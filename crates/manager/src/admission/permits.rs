//! Permits, before they are written.

use super::Request;
use crate::block::list;
use crate::manager::Shared;
use crate::permit::record::phase;
use crate::permit::review::review;
use crate::permit::template::PermitTemplate;
use crate::permit::{Phase, approval};
use crate::tenancy::is_terminating;
use jiff::Timestamp;
use object::Value;
use std::sync::Arc;

/// Says who asks, and builds statuses that people write.
pub(super) fn mutate(shared: &Shared, request: &Request<'_>, sub: &str, object: &mut Value) -> Result<bool, String> {
    match (request.operation, sub) {
        ("CREATE", "") => {
            let requester = request.actor();
            let changed = object.at(&["spec", "requester"]) != Some(&requester);
            object.set_at(&["spec", "requester"], requester);
            Ok(changed)
        }
        ("UPDATE", "") => {
            let requester = request.old.and_then(|o| o.at(&["spec", "requester"])).cloned().unwrap_or_default();
            let changed = object.at(&["spec", "requester"]) != Some(&requester);
            object.set_at(&["spec", "requester"], requester);
            Ok(changed)
        }
        ("UPDATE", "status") if !shared.is_controller(request.user) => {
            let Some(old) = request.old else { return Ok(false) };
            let template = template(shared, old).and_then(|t| PermitTemplate::read(&t).ok());
            let status = review(old, object, &request.actor(), template.as_ref(), request.now)?;
            let changed = object.get("status") != Some(&status);
            object.set_at(&["status"], status);
            Ok(changed)
        }
        _ => Ok(false),
    }
}

/// The template of a permit, as the server has it.
fn template(shared: &Shared, permit: &Value) -> Option<Arc<Value>> {
    let name = permit.str_at(&["spec", "template", "name"])?;
    match permit.str_at(&["spec", "template", "kind"])? {
        "ResourcePermitTemplate" => shared.permit_templates.get(permit.namespace(), name),
        "GlobalResourcePermitTemplate" => shared.global_permit_templates.get("", name),
        _ => None,
    }
}

/// Whether a permit may be asked for.
pub(super) fn validate(shared: &Shared, request: &Request<'_>, object: &Value) -> Result<(), String> {
    if request.operation != "CREATE" {
        let was = request.old.and_then(|o| o.at(&["spec", "template"]));
        return if object.at(&["spec", "template"]) == was {
            Ok(())
        } else {
            Err("spec.template is immutable".to_owned())
        };
    }
    let named = |key| object.str_at(&["spec", "template", key]).unwrap_or_default();
    let mut permit = object.clone();
    permit.set_at(&["metadata", "namespace"], request.namespace.into());
    let Some(found) = template(shared, &permit) else {
        return Err(format!("{} {:?} not found", named("kind"), named("name")));
    };
    let template = PermitTemplate::read(&found)?;
    if template.namespaces.is_some() {
        let generation = found.at(&["metadata", "generation"]);
        let is_current = found.at(&["status", "observedGeneration"]) == generation;
        let allowed = list(&found, &["status", "namespaces"]).iter().any(|n| n.as_str() == Some(request.namespace));
        if !is_current || !allowed {
            return Err(format!("template {:?} is not for namespace {:?}", found.name(), request.namespace));
        }
    }
    let params = object.at(&["spec", "params"]).cloned().unwrap_or_else(|| Value::Object(object::Map::new()));
    template.check_params(&params)?;
    let length = object.str_at(&["spec", "duration"]).or(template.default_duration.as_deref());
    template.check_duration(length)?;
    if let Some(start) = object.str_at(&["spec", "startTime"]) {
        let start: Timestamp = start.parse().map_err(|_| "spec.startTime: must be a time".to_owned())?;
        if start <= request.now {
            return Err("spec.startTime: must be in the future".to_owned());
        }
    }
    if template.auto { approval::check(&template.approvals, object, None) } else { Ok(()) }
}

/// Whether a permit may be deleted.
pub(super) fn delete(shared: &Shared, request: &Request<'_>) -> Result<(), String> {
    let Some(old) = request.old else { return Ok(()) };
    let namespace = shared.tenancy.namespace(request.namespace);
    if shared.is_controller(request.user)
        || shared.is_administrator(request)
        || namespace.is_none_or(|n| is_terminating(&n))
    {
        return Ok(());
    }
    let phase = phase(old);
    if !phase.may_be_deleted() {
        let shown = if phase == Phase::New { "uninitialised" } else { phase.name() };
        return Err(format!("a permit in phase {shown} must expire first"));
    }
    let keep = old.str_at(&["status", "keepUntil"]).and_then(|t| t.parse::<Timestamp>().ok());
    match keep.filter(|keep| phase == Phase::Expired && *keep > request.now) {
        Some(keep) => Err(format!("the permit is kept until {keep}")),
        None => Ok(()),
    }
}
