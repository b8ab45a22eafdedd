//! Holding a request against the policies that are bound.

use super::binding::{Action, Binding};
use super::configured::{self, Configured};
use super::definition::{Definition, INVALID};
use super::params;
use super::select::{self, Seen};
use super::verdict::{self, Objection, Verdict};
use crate::Server;
use crate::admission::matching::{Matching, Versions};
use crate::admission::{Attributes, forbidden};
use crate::answer::Outcome;
use crate::audit;
use object::{Status, Value, json, map};
use std::time::{Duration, Instant};

/// The first thing that refuses the request.
struct Denial {
    message: String,
    reason: &'static str,
}

/// What a request comes to.
struct Findings<'w> {
    denial: Option<Denial>,
    warnings: &'w mut Vec<String>,
    /// What the present policy wants recorded: keys, each with its values.
    annotations: Vec<(String, Vec<String>)>,
}

type Bound = configured::Bound<Definition>;

/// Refuses what a policy refuses. The warnings of policies are told in any case.
pub(super) async fn dispatch(
    server: &Server,
    configured: &Configured<Definition>,
    attributes: Attributes<'_>,
    object: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let mut matching = Matching::new(server, attributes);
    let mut versions = Versions::new(&matching, object);
    let mut findings = Findings { denial: None, warnings, annotations: Vec::new() };
    for bound in &configured.bound {
        one(server, bound, &mut matching, &mut versions, &mut findings).await?;
        for (key, values) in findings.annotations.drain(..) {
            audit::annotate(&format!("{}/{key}", bound.policy.policy.name), || values.join(", "));
        }
    }
    match findings.denial {
        Some(denial) => Err(refusal(attributes, object, denial).into()),
        None => Ok(()),
    }
}

/// Holds the request against one policy.
async fn one(
    server: &Server,
    bound: &Bound,
    matching: &mut Matching<'_>,
    versions: &mut Versions<'_>,
    findings: &mut Findings<'_>,
) -> Outcome<()> {
    let policy = &*bound.policy;
    let (object, old) = versions.sent();
    let meant = match select::meant(matching, &policy.policy, object, old).await {
        Ok(Some(meant)) => meant,
        Ok(None) => return Ok(()),
        Err(why) => {
            findings.misconfigured(bound, None, why);
            return Ok(());
        }
    };
    let place = &meant.place;
    for binding in &bound.bindings {
        let params = match select::params(server, matching, binding, &meant, object, old).await {
            Ok(params) if params.is_empty() => continue,
            Ok(params) => params,
            Err(why) => {
                findings.misconfigured(bound, Some(binding), why);
                continue;
            }
        };
        if let Err(failure) = versions.prepare(matching, place).await {
            let why = format!("failed to convert object version: {}", params::text(failure));
            findings.misconfigured(bound, Some(binding), why);
            continue;
        }
        let namespace = match policy.expressions().namespace {
            true => matching.namespace_object().await?,
            false => Value::Null,
        };
        let (who, check) = matching.authorizer();
        let seen = Seen::new(matching, place, &who, &check);
        let objects = versions.get(place);
        for param in &params {
            let (scope, conditions) = seen.scopes(objects, &namespace, param);
            let began = Instant::now();
            let verdict = verdict::reach(policy, conditions, scope);
            count(server, bound, binding, &verdict, began.elapsed());
            findings.act(bound, binding, verdict);
        }
    }
    Ok(())
}

/// Counts what a binding does about a verdict.
fn count(server: &Server, bound: &Bound, binding: &Binding, verdict: &Verdict, took: Duration) {
    for objection in &verdict.objections {
        for action in &binding.actions {
            let (policy, failed) = (&bound.policy.policy.name, objection.failed);
            let action = match action {
                Action::Deny => "deny",
                Action::Warn => "warn",
                Action::Audit => "audit",
            };
            server.metrics.admission.objected(policy, &binding.name, failed, action, took);
        }
    }
}

impl Findings<'_> {
    /// A policy or binding that cannot be applied.
    fn misconfigured(&mut self, bound: &Bound, binding: Option<&Binding>, why: String) {
        if !bound.policy.policy.required {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.deny(bound, binding, &format!("failed to configure {what}: {why}"), INVALID);
    }

    /// Does what a binding asks for.
    fn act(&mut self, bound: &Bound, binding: &Binding, verdict: Verdict) {
        for objection in verdict.objections {
            for action in &binding.actions {
                let (policy, binding_name, message) = (&bound.policy.policy.name, &binding.name, &objection.message);
                match action {
                    Action::Deny => self.deny(bound, Some(binding), message, objection.reason),
                    Action::Warn => self.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding_name}': {message}"
                    )),
                    Action::Audit => audit::annotate(FAILURE, || failure(bound, binding, &objection)),
                }
            }
        }
        for (key, value) in verdict.annotations {
            match self.annotations.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) if values.contains(&value) => {}
                Some((_, values)) => values.push(value),
                None => self.annotations.push((key, vec![value])),
            }
        }
        for why in verdict.errors {
            self.deny(bound, Some(binding), &why, INVALID);
        }
    }

    fn deny(&mut self, bound: &Bound, binding: Option<&Binding>, message: &str, reason: &'static str) {
        if self.denial.is_some() {
            return;
        }
        let policy = &bound.policy.policy.name;
        let with = binding.map(|b| format!(" with binding '{}'", b.name)).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
        self.denial = Some(Denial { message, reason });
    }
}

/// The key under which a failed validation is recorded.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A failed validation as it is recorded.
fn failure(bound: &Bound, binding: &Binding, objection: &Objection) -> String {
    let actions: Vec<Value> = binding.actions.iter().map(|action| Value::from(action.name())).collect();
    let failure = map! {
        "message" => objection.message.as_str(),
        "policy" => bound.policy.policy.name.as_str(),
        "binding" => binding.name.as_str(),
        "expressionIndex" => objection.index as i64,
        "validationActions" => actions,
    };
    json::to_string(&Value::Array(vec![Value::Object(failure)]))
}

/// The answer to a request that is refused.
fn refusal(attributes: Attributes<'_>, object: Option<&Value>, denial: Denial) -> Status {
    let mut status = forbidden(attributes, object, &denial.message);
    status.reason = denial.reason;
    status.code = match denial.reason {
        "Forbidden" => 403,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.with_cause("", "", denial.message)
}
