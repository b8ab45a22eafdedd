//! What admission took, and what it refused.

use super::family::{Counters, Histograms, NONE};
use crate::admission::Phase;
use prometheus::proto::MetricFamily;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Upper bounds in seconds for plugins, and for all of them together (upstream's).
const PLUGIN_SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// The same for webhooks.
const WEBHOOK_SECONDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// The same for policies.
const POLICY_SECONDS: [f64; 5] = [5e-7, 1e-3, 1e-2, 1e-1, 1.0];
/// What upstream calls what came of a policy.
const POLICY: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];

/// The counters of admission.
pub(crate) struct Admission {
    controllers: Histograms,
    steps: Histograms,
    webhooks: Histograms,
    rejections: Counters,
    open: Counters,
    checks: Counters,
    check_durations: Histograms,
}

/// What came of the call of a webhook.
#[derive(Clone, Copy)]
pub(crate) enum Called {
    /// The request may go on.
    Admitted,
    /// The webhook could not be called; the request goes on.
    Ignored,
    /// The webhook could not be called, and that refuses the request.
    Failed,
    /// The webhook refused the request with this code.
    Refused(u16),
}

impl Default for Admission {
    fn default() -> Self {
        Admission {
            controllers: Histograms::new(
                "apiserver_admission_controller_admission_duration_seconds",
                "Time that admission plugins took, by name.",
                NONE,
                &["name", "operation", "rejected", "type"],
                &PLUGIN_SECONDS,
            ),
            steps: Histograms::new(
                "apiserver_admission_step_admission_duration_seconds",
                "Time that webhooks, policies and plugins that may be configured took together.",
                NONE,
                &["operation", "rejected", "type"],
                &PLUGIN_SECONDS,
            ),
            webhooks: Histograms::new(
                "apiserver_admission_webhook_admission_duration_seconds",
                "Time that admission webhooks took, by name.",
                NONE,
                &["name", "operation", "rejected", "type"],
                &WEBHOOK_SECONDS,
            ),
            rejections: Counters::new(
                "apiserver_admission_webhook_rejection_count",
                "Requests that admission webhooks refused, or that were refused because one could not be called.",
                NONE,
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
            open: Counters::new(
                "apiserver_admission_webhook_fail_open_count",
                "Requests that went on though an admission webhook could not be called.",
                NONE,
                &["name", "type"],
            ),
            checks: Counters::new(
                "apiserver_validating_admission_policy_check_total",
                "What validating policies objected to, by policy, binding and what was done.",
                NONE,
                &POLICY,
            ),
            check_durations: Histograms::new(
                "apiserver_validating_admission_policy_check_duration_seconds",
                "Time that the evaluation of a validating policy took which objected.",
                NONE,
                &POLICY,
                &POLICY_SECONDS,
            ),
        }
    }
}

/// Does something; tells whether it failed, as a label has it, and how many seconds it took.
async fn timed<T, E>(doing: impl Future<Output = Result<T, E>>, tell: impl FnOnce(&str, f64)) -> Result<T, E> {
    let began = Instant::now();
    let outcome = doing.await;
    tell(flag(outcome.is_err()), began.elapsed().as_secs_f64());
    outcome
}

impl Admission {
    /// Does what a plugin does, and counts how long that takes; of one without a name nothing is counted.
    pub async fn during<T, E>(
        &self,
        name: &str,
        operation: &str,
        phase: Phase,
        doing: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        timed(doing, |rejected, seconds| {
            if !name.is_empty() {
                self.controllers.observe(&[name, operation, rejected, phase_type(phase)], seconds);
            }
        })
        .await
    }

    /// Does what all plugins do that may be configured, and counts how long that takes.
    pub async fn during_all<T, E>(
        &self,
        operation: &str,
        phase: Phase,
        doing: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        timed(doing, |rejected, seconds| self.steps.observe(&[operation, rejected, phase_type(phase)], seconds)).await
    }

    /// Counts a call of an admission webhook.
    pub fn called(&self, webhook: &str, operation: &str, mutating: bool, outcome: Called, took: Duration) {
        let ty = webhook_type(mutating);
        let rejected = flag(matches!(outcome, Called::Failed | Called::Refused(_)));
        self.webhooks.observe(&[webhook, operation, rejected, ty], took.as_secs_f64());
        match outcome {
            Called::Admitted => {}
            Called::Ignored => self.open.count(&[webhook, ty]),
            Called::Failed => self.rejections.count(&[webhook, ty, operation, "calling_webhook_error", "503"]),
            // Codes that are none make one series, as upstream.
            Called::Refused(code) => {
                self.rejections.count(&[webhook, ty, operation, "no_error", &code.min(600).to_string()]);
            }
        }
    }

    /// Counts what a binding did about a policy's objection.
    pub fn objected(&self, policy: &str, binding: &str, failed: bool, action: &str, took: Duration) {
        let error = if failed { "invalid_error" } else { "no_error" };
        let labels = [policy, binding, error, action];
        self.checks.count(&labels);
        self.check_durations.observe(&labels, took.as_secs_f64());
    }

    /// Forgets those webhooks of a type that are not configured any more.
    pub fn keep_webhooks(&self, mutating: bool, is_configured: impl Fn(&str) -> bool) {
        let is_gone = |labels: &HashMap<&str, &str>| {
            labels.get("type") == Some(&webhook_type(mutating))
                && !labels.get("name").is_some_and(|name| is_configured(name))
        };
        self.webhooks.drop_those(is_gone);
        self.rejections.drop_those(is_gone);
        self.open.drop_those(is_gone);
    }

    /// Forgets those validating policies that are not bound any more.
    pub fn keep_policies(&self, is_bound: impl Fn(&str) -> bool) {
        let is_gone = |labels: &HashMap<&str, &str>| !labels.get("policy").is_some_and(|policy| is_bound(policy));
        self.checks.drop_those(is_gone);
        self.check_durations.drop_those(is_gone);
    }

    /// Adds all that have a value.
    pub fn add_to(&self, families: &mut Vec<MetricFamily>) {
        self.controllers.add_to(families);
        self.steps.add_to(families);
        self.webhooks.add_to(families);
        self.rejections.add_to(families);
        self.open.add_to(families);
        self.checks.add_to(families);
        self.check_durations.add_to(families);
    }
}

/// What upstream calls a phase.
fn phase_type(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutate => "admit",
        Phase::Validate => "validate",
    }
}

/// What upstream calls the two types of webhooks here.
fn webhook_type(mutating: bool) -> &'static str {
    if mutating { "admit" } else { "validating" }
}

fn flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
