//! `validatingadmissionpolicy-status-controller`: says in the status of a ValidatingAdmissionPolicy what is odd about its
//! expressions, given the schemas of what it is about.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use apiserver::admission::policies::check_types;
use client::resources::VALIDATING_ADMISSION_POLICIES;
use client::{Cache, Patch, PatchParams, Result};
use object::{Map, Value, map};
use std::sync::Arc;
use std::time::Duration;

/// Checks policies; the keys are theirs.
pub struct PolicyStatus {
    context: Context,
    policies: Arc<Cache>,
}

impl Controller for PolicyStatus {
    const NAME: &'static str = "validatingadmissionpolicy-status-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let policies = wiring.cache(&VALIDATING_ADMISSION_POLICIES);
        wiring.on_those(&policies, is_unchecked);
        PolicyStatus { context: wiring.context().clone(), policies }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(policy) = self.policies.get_key(key).filter(|policy| is_unchecked(policy)) else { return Ok(None) };
        let warnings = check_types(&self.context.server().catalogue(), &policy);
        let warnings = warnings.into_iter().map(|w| map! { "fieldRef" => w.field, "warning" => w.text });
        let warnings: Vec<Map> = warnings.collect();
        let checking = if warnings.is_empty() {
            Map::new()
        } else {
            map! { "expressionWarnings" => warnings }
        };
        let object = Value::Object(map! {
            "apiVersion" => VALIDATING_ADMISSION_POLICIES.api_version(),
            "kind" => "ValidatingAdmissionPolicy",
            "metadata" => map! { "name" => policy.name() },
            "status" => map! { "observedGeneration" => generation(&policy), "typeChecking" => checking },
        });
        let patch = Patch::Apply { object, manager: Self::NAME.to_owned(), force: true };
        let api = self.context.api(&VALIDATING_ADMISSION_POLICIES);
        match api.patch("", policy.name(), &patch, &PatchParams::status()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(None),
        }
    }
}

/// Whether a policy changed since it was checked.
fn is_unchecked(policy: &Value) -> bool {
    let observed = policy.at(&["status", "observedGeneration"]).and_then(Value::as_int).unwrap_or_default();
    generation(policy) > observed
}

fn generation(policy: &Value) -> i64 {
    policy.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default()
}
