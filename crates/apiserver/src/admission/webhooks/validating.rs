//! Webhooks that may refuse a request. They are called side by side.

use super::Refusal;
use super::conditions;
use super::configured::Hook;
use super::review::Call;
use crate::Server;
use crate::admission::Attributes;
use crate::admission::matching::{Matching, Place, Versions};
use crate::answer::Outcome;
use crate::webhooks::WebhookClient;
use futures_util::future::join_all;
use object::{Status, Value};
use std::time::Instant;

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
    let mut versions = Versions::new(&matching, object);
    let mut calls: Vec<(&Hook, Place)> = Vec::new();
    for hook in hooks {
        let meant = matching.meant(&hook.criteria, object, attributes.old).await?;
        let Some(place) = meant else { continue };
        versions.prepare(&matching, &place).await?;
        let (object, old) = versions.get(&place);
        if conditions::hold(&matching, hook, &place, object, old)? {
            calls.push((hook, place));
        }
    }
    let (matching, versions) = (&matching, &versions);
    let answers = calls.iter().map(|(hook, place)| async move {
        let mut warnings = Vec::new();
        let (object, old) = versions.get(place);
        let request = Value::Object(matching.request(place));
        let options = attributes.options;
        let call = Call { client, hook, mutating: false, request: &request, object, old, options };
        let began = Instant::now();
        let answer = call.send(&mut warnings).await;
        super::count(matching, hook, false, &answer, began);
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
