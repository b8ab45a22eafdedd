//! Webhooks that may refuse a request. They are called side by side.

use super::Refusal;
use super::configured::Hook;
use super::matching::{Matching, Place};
use super::review::{self, Call};
use crate::Server;
use crate::admission::Attributes;
use crate::answer::Outcome;
use crate::webhooks::WebhookClient;
use futures_util::future::join_all;
use object::{Status, Value};
use std::collections::HashMap;

/// The objects of a request in a version.
struct Versioned {
    object: Option<Value>,
    old: Option<Value>,
}

/// Asks the webhooks that are called for a request.
pub(super) async fn dispatch(
    client: &WebhookClient,
    server: &Server,
    hooks: &[Hook],
    attributes: Attributes<'_>,
    object: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let mut matching = Matching::new(server, attributes);
    let own = matching.place();
    let mut converted: HashMap<Place, Versioned> = HashMap::new();
    let mut calls: Vec<(&Hook, Place)> = Vec::new();
    for hook in hooks {
        let Some(place) = matching.call(hook, object, attributes.old).await? else { continue };
        if place.kind != own.kind && !converted.contains_key(&place) {
            let object = convert(&matching, object, &own, &place).await?;
            let old = convert(&matching, attributes.old, &own, &place).await?;
            converted.insert(place.clone(), Versioned { object, old });
        }
        let (object, old) = objects(&converted, &place, object, attributes.old);
        if matching.conditions(hook, &place, object, old)? {
            calls.push((hook, place));
        }
    }
    let (matching, converted) = (&matching, &converted);
    let answers = calls.iter().map(|(hook, place)| async move {
        let mut warnings = Vec::new();
        let (object, old) = objects(converted, place, object, attributes.old);
        let request = review::request(matching, place);
        let options = attributes.options;
        let call = Call { client, hook, mutating: false, request: &request, object, old, options };
        let answer = call.send(&mut warnings).await;
        (answer, warnings)
    });
    let answers = join_all(answers).await;
    let mut refused = None;
    for ((answer, given), (hook, _)) in answers.into_iter().zip(&calls) {
        warnings.extend(given);
        let failure = match answer {
            Ok(_) => continue,
            Err(Refusal::Call(why)) if !hook.required => {
                tracing::warn!(webhook = hook.name, why, "a webhook cannot be called; the request goes on");
                continue;
            }
            Err(Refusal::Call(why)) => Status::internal(why).into(),
            Err(Refusal::Request(failure)) => failure,
        };
        refused.get_or_insert(failure);
    }
    refused.map_or(Ok(()), Err)
}

async fn convert(matching: &Matching<'_>, object: Option<&Value>, from: &Place, to: &Place) -> Outcome<Option<Value>> {
    match object {
        Some(object) => matching.convert(object.clone(), from, to).await.map(Some),
        None => Ok(None),
    }
}

fn objects<'v>(
    converted: &'v HashMap<Place, Versioned>,
    place: &Place,
    object: Option<&'v Value>,
    old: Option<&'v Value>,
) -> (Option<&'v Value>, Option<&'v Value>) {
    match converted.get(place) {
        Some(versioned) => (versioned.object.as_ref(), versioned.old.as_ref()),
        None => (object, old),
    }
}
