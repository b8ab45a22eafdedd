//! Admission webhooks: those that MutatingWebhookConfigurations and ValidatingWebhookConfigurations name.
//!
//! The configurations are read when the server starts and whenever one is written, before that write is answered.
//! Where there are none, a request costs nothing more.

mod conditions;
mod configured;
mod mutating;
mod review;
mod validating;

use self::configured::{Configured, Hook};
use super::latest::Latest;
use super::matching::Matching;
use super::plugins::{Plugin, Plugins};
use super::{Admission, Attributes, Phase, Rounds, Step};
use crate::Server;
use crate::answer::Failure;
use crate::catalogue::Resource;
use crate::metrics::Called;
use crate::registry;
use crate::webhooks::WebhookClient;
use object::{Status, Value};
use std::sync::Arc;
use std::time::Instant;

/// The kinds that webhooks are never called for, lest nobody could mend them.
const EXEMPT: [&str; 6] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Calls the configured webhooks.
pub struct Webhooks {
    client: Arc<WebhookClient>,
    configured: Latest<Configured>,
    attribute: bool,
    mutating: bool,
    validating: bool,
}

impl Webhooks {
    /// Webhooks that are called by a client. `attribute` is whether what a webhook changes is owned by it, not by the
    /// one who writes.
    pub fn new(client: Arc<WebhookClient>, attribute: bool) -> Self {
        Webhooks { client, configured: Latest::default(), attribute, mutating: true, validating: true }
    }

    /// Only those whose plugin is on.
    pub fn switched(self, plugins: Plugins) -> Self {
        Webhooks {
            mutating: plugins.has(Plugin::MutatingAdmissionWebhook),
            validating: plugins.has(Plugin::ValidatingAdmissionWebhook),
            ..self
        }
    }
}

impl Admission for Webhooks {
    fn mutate_in<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a mut Value>,
        rounds: &'a mut Rounds,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        Box::pin(async move {
            let configured = self.configured.get();
            if configured.mutating.is_empty() {
                return Ok(false);
            }
            let calls = mutating::Calls { client: &self.client, attribute: self.attribute };
            let reinvocation = rounds.of_webhooks();
            mutating::dispatch(calls, server, &configured.mutating, attributes, object, reinvocation, warnings).await
        })
    }

    fn validate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        Box::pin(async move {
            let configured = self.configured.get();
            if configured.validating.is_empty() {
                return Ok(());
            }
            validating::dispatch(&self.client, server, &configured.validating, attributes, object, warnings).await
        })
    }

    fn name(&self, phase: Phase) -> &'static str {
        let plugin = match phase {
            Phase::Mutate => Plugin::MutatingAdmissionWebhook,
            Phase::Validate => Plugin::ValidatingAdmissionWebhook,
        };
        plugin.name()
    }

    fn concerns(&self, resource: &Resource) -> bool {
        let configured = self.configured.look();
        !configured.is_empty()
            && !(resource.group == "admissionregistration.k8s.io" && EXEMPT.contains(&resource.plural.as_str()))
            && configured.concern(&resource.group, &resource.plural)
    }

    fn configure<'a>(&'a self, server: &'a Server) -> Step<'a, ()> {
        Box::pin(self.configured.renew(async |_| {
            let mut configured = Configured::read(&*server.store).await.map_err(registry::read_failure)?;
            for (mutating, on, hooks) in
                [(true, self.mutating, &mut configured.mutating), (false, self.validating, &mut configured.validating)]
            {
                if !on {
                    hooks.clear();
                }
                server.metrics.admission.keep_webhooks(mutating, |name| hooks.iter().any(|hook| hook.name == name));
            }
            Ok(configured)
        }))
    }
}

/// Counts the call of a webhook that began then.
fn count<T>(matching: &Matching<'_>, hook: &Hook, mutating: bool, answer: &Result<T, Refusal>, began: Instant) {
    let outcome = match answer {
        Ok(_) => Called::Admitted,
        Err(Refusal::Call(_)) if !hook.required => Called::Ignored,
        Err(Refusal::Call(_)) => Called::Failed,
        Err(Refusal::Request(failure)) => Called::Refused(failure.code()),
    };
    let operation = matching.attributes.operation;
    matching.server.metrics.admission.called(&hook.name, operation, mutating, outcome, began.elapsed());
}

/// Why a call of a webhook did not let a request pass.
enum Refusal {
    /// It could not be called, or did not answer as it should: a matter of the failure policy.
    Call(String),
    /// It refused, or its answer cannot be used.
    Request(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Request(failure)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Refusal::Request(status.into())
    }
}
