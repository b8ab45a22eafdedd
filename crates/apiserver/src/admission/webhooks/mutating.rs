//! Webhooks that may change an object. They are called one after the other, each sees what the one before made; those
//! that ask for it are called once more when somebody changed something afterwards.

use super::Refusal;
use super::conditions;
use super::configured::Hook;
use super::review::Call;
use crate::Server;
use crate::admission::Attributes;
use crate::admission::matching::{Current, Matching, Place};
use crate::admission::rounds::Reinvocation;
use crate::answer::Outcome;
use crate::webhooks::WebhookClient;
use object::{Status, Value, go, json};
use patch::json_patch::JsonPatch;
use std::time::Instant;

/// How webhooks are called.
#[derive(Clone, Copy)]
pub(super) struct Calls<'a> {
    /// By whom.
    pub client: &'a WebhookClient,
    /// Whether what a webhook changes is owned by it.
    pub attribute: bool,
}

/// Lets webhooks change the object of a request; tells whether one did.
pub(super) async fn dispatch(
    calls: Calls<'_>,
    server: &Server,
    hooks: &[Hook],
    attributes: Attributes<'_>,
    object: Option<&mut Value>,
    reinvocation: &mut Reinvocation,
    warnings: &mut Vec<String>,
) -> Outcome<bool> {
    let mut matching = Matching::new(server, attributes);
    let mut current = Current::new(&matching, object.as_deref());
    for hook in hooks {
        if reinvocation.runs(&hook.uid) {
            one(calls, hook, &mut matching, &mut current, reinvocation, warnings).await?;
        }
    }
    current.finish(&matching, object).await
}

/// Calls one webhook, if it is to be called.
async fn one(
    calls: Calls<'_>,
    hook: &Hook,
    matching: &mut Matching<'_>,
    current: &mut Current<'_>,
    reinvocation: &mut Reinvocation,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let called = matching.meant(&hook.criteria, current.object.as_ref(), current.old.as_ref()).await?;
    let Some(place) = called else { return Ok(()) };
    current.bring_to(matching, &place).await?;
    // What a client's object says that it is counts for nothing here; what a webhook makes of it does.
    let odd = |object: &&mut Value| object.str_at(&["kind"]) != Some(&place.kind.2);
    if let Some(object) = current.object.as_mut().filter(|object| !current.changed && odd(object)) {
        object.set_at(&["kind"], place.kind.2.as_str().into());
    }
    let (object, old) = (current.object.as_ref(), current.old.as_ref());
    if !conditions::hold(matching, hook, &place, object, old)? {
        return Ok(());
    }
    let request = Value::Object(matching.request(&place));
    let options = matching.attributes.options;
    let call = Call { client: calls.client, hook, mutating: true, request: &request, object, old, options };
    let began = Instant::now();
    let answer = call.send(warnings).await;
    super::count(matching, hook, true, &answer, began);
    let changed = match answer {
        Ok(answer) => match answer.patch {
            Some(patch) => apply(calls.attribute, hook, matching, current, &patch).await,
            None => Ok(false),
        },
        Err(refusal) => Err(refusal),
    };
    if let Ok(true) = changed {
        reinvocation.changed();
    }
    if hook.reinvoked {
        reinvocation.ran(&hook.uid);
    }
    match changed {
        Ok(_) => Ok(()),
        Err(Refusal::Call(why)) if !hook.required => {
            tracing::warn!(webhook = hook.name, why, "a webhook cannot be called; the request goes on");
            Ok(())
        }
        Err(Refusal::Call(why)) => Err(Status::internal(why).into()),
        Err(Refusal::Request(failure)) => Err(failure),
    }
}

/// Applies a webhook's patch; tells whether the object is another one then.
async fn apply(
    attribute: bool,
    hook: &Hook,
    matching: &Matching<'_>,
    current: &mut Current<'_>,
    patch: &[u8],
) -> Result<bool, Refusal> {
    let read = json::parse(patch).map_err(|e| e.to_string()).and_then(JsonPatch::read);
    let patch = read.map_err(Status::internal)?;
    if patch.is_empty() {
        return Ok(false);
    }
    let Some(object) = &current.object else {
        let name = go::quote(&hook.name);
        let why = format!(
            "admission webhook {name} attempted to modify the object, which is not supported for this operation"
        );
        return Err(Status::internal(why).into());
    };
    let mut new = patch.apply(object.clone()).map_err(Status::internal)?;
    decode(matching, &current.place, &mut new).map_err(Status::internal)?;
    let changed = new != *object;
    if attribute && changed {
        new = matching.attribute(&current.place, object, new, &hook.name).await;
    }
    current.object = Some(new);
    current.changed = true;
    Ok(changed)
}

/// Reads what a patch made as an object of the version, with its defaults.
fn decode(matching: &Matching<'_>, place: &Place, object: &mut Value) -> Result<(), String> {
    if !matches!(object, Value::Object(_)) {
        const TYPE: &str =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let kind = go::json_kind(object);
        let error = format!("json: cannot unmarshal {kind} into Go value of type {TYPE}");
        return Err(format!("couldn't get version/kind; json parse error: {error}"));
    }
    let custom = matching.attributes.resource.is_custom();
    if object.str_at(&["kind"]).unwrap_or_default().is_empty() {
        if custom {
            return Err(format!("Object 'Kind' is missing in '{}'", json::to_string(object)));
        }
        object.set_at(&["kind"], place.kind.2.as_str().into());
    }
    if !custom && object.str_at(&["apiVersion"]).unwrap_or_default().is_empty() {
        object.set_at(&["apiVersion"], place.api_version().into());
    }
    matching.complete(place, object).map(drop)
}
