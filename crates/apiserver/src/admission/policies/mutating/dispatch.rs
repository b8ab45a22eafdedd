//! Letting the policies that are bound change the object of a request.

use super::definition::{Definition, Expressions, Mutation};
use super::patch::{self, Failed};
use crate::Server;
use crate::admission::cel::{Judgement, OUT_OF_BUDGET, POLICY_BUDGET, Run, Scope, Variables, judge};
use crate::admission::matching::{Current, Matching, Place};
use crate::admission::policies::binding::Binding;
use crate::admission::policies::configured::{Bound, Configured};
use crate::admission::policies::params::text;
use crate::admission::policies::select::{self, Seen};
use crate::admission::rounds::Reinvocation;
use crate::admission::{Attributes, forbidden};
use crate::answer::Outcome;
use crate::ownership;
use crate::strategy::unknown_field;
use object::field::aggregate;
use object::{Status, Value, go};

/// A policy that applies to a request, by one of its bindings and with one parameter.
struct Invocation<'c> {
    definition: &'c Definition,
    binding: &'c Binding,
    place: Place,
    param: Value,
}

/// What went wrong with policies: what each says, and whether it is the policy's set-up or its evaluation.
#[derive(Default)]
struct Errors(Vec<(String, bool)>);

/// Lets policies change the object; tells whether one did.
pub(super) async fn dispatch(
    server: &Server,
    configured: &Configured<Definition>,
    attributes: Attributes<'_>,
    object: Option<&mut Value>,
    reinvocation: &mut Reinvocation,
) -> Outcome<bool> {
    let mut matching = Matching::new(server, attributes);
    let mut errors = Errors::default();
    let mut invocations = Vec::new();
    // Which policies apply is settled before any of them changes something.
    for bound in &configured.bound {
        choose(server, bound, &mut matching, object.as_deref(), &mut invocations, &mut errors).await;
    }
    if invocations.is_empty() && errors.0.is_empty() {
        return Ok(false);
    }
    let mut current = Current::new(&matching, object.as_deref());
    for invocation in &invocations {
        one(invocation, &mut matching, &mut current, reinvocation, &mut errors).await?;
    }
    if let Some(refusal) = errors.refusal(attributes, object.as_deref()) {
        return Err(refusal.into());
    }
    current.finish(&matching, object).await
}

/// Finds the bindings by which a policy applies.
async fn choose<'c>(
    server: &Server,
    bound: &'c Bound<Definition>,
    matching: &mut Matching<'_>,
    object: Option<&Value>,
    invocations: &mut Vec<Invocation<'c>>,
    errors: &mut Errors,
) {
    let definition = &*bound.policy;
    let old = matching.attributes.old;
    let meant = match select::meant(matching, &definition.policy, object, old).await {
        Ok(Some(meant)) => meant,
        Ok(None) => return,
        Err(why) => return errors.misconfigured(definition, None, &why),
    };
    for binding in &bound.bindings {
        match select::params(server, matching, binding, &meant, object, old).await {
            Ok(params) => invocations.extend(params.into_iter().map(|param| Invocation {
                definition,
                binding,
                place: meant.place.clone(),
                param,
            })),
            Err(why) => errors.misconfigured(definition, Some(binding), &why),
        }
    }
}

/// Applies a policy.
async fn one(
    invocation: &Invocation<'_>,
    matching: &mut Matching<'_>,
    current: &mut Current<'_>,
    reinvocation: &mut Reinvocation,
    errors: &mut Errors,
) -> Outcome<()> {
    let Invocation { definition, binding, place, param } = invocation;
    let key = format!("{}/{}/{}/{}", definition.policy.name, binding.name, param.namespace(), param.name());
    if !reinvocation.runs(&key) {
        return Ok(());
    }
    if let Err(failure) = current.bring_to(matching, place).await {
        errors.misconfigured(definition, Some(binding), &text(failure));
        return Ok(());
    }
    let expressions = definition.expressions();
    let namespace = match expressions.namespace {
        true => matching.namespace_object().await?,
        false => Value::Null,
    };
    let (who, check) = matching.authorizer();
    let seen = Seen::new(matching, place, &who, &check);
    let old = current.old.as_ref();
    let (_, scope) = seen.scopes((current.object.as_ref(), old), &namespace, param);
    match judged(expressions, scope) {
        Judgement::Match => {}
        Judgement::Other => return Ok(()),
        Judgement::Errors(why) => {
            errors.failed(definition, binding, &aggregate(&why));
            return Ok(());
        }
    }
    let mut changed = false;
    for mutation in &expressions.mutations {
        let Some(object) = &current.object else { break };
        let (scope, _) = seen.scopes((Some(object), old), &namespace, param);
        match mutated(matching, place, mutation, &expressions.variables, scope) {
            Ok(Some(new)) => {
                changed |= new != *object;
                current.object = Some(new);
            }
            Ok(None) => {}
            Err(Failed::Policy(why)) => errors.failed(definition, binding, &why),
            Err(Failed::Request(status)) => return Err((*status).into()),
        }
    }
    if changed {
        current.changed = true;
        reinvocation.changed();
    }
    if definition.reinvoked {
        reinvocation.ran(&key);
    }
    Ok(())
}

/// Whether the conditions of a policy hold.
fn judged(expressions: &Expressions, scope: Scope<'_>) -> Judgement {
    let run = Run::new(scope, &expressions.variables);
    judge(&expressions.conditions, &run)
}

/// What a mutation makes of an object; nothing if it leaves it alone.
fn mutated(
    matching: &Matching<'_>,
    place: &Place,
    mutation: &Mutation,
    variables: &Variables,
    scope: Scope<'_>,
) -> Result<Option<Value>, Failed> {
    let expression = mutation.expression();
    if let Err(why) = &expression.program {
        return Err(Failed::Policy(why.to_string()));
    }
    let (run, mut budget) = (Run::new(scope, variables), POLICY_BUDGET);
    let made = run.evaluate(expression, &mut budget).map_err(|_| OUT_OF_BUDGET.to_owned())??;
    let new = match mutation {
        Mutation::Apply(_) => {
            let (group, version, kind) = &place.kind;
            let schema = ownership::schema_of(matching.resource_in(place), group, version, kind).ok_or_else(|| {
                let why = format!(
                    "Resource kind {group}/{version}, Kind={kind} not found. There can be a delay between when \
                     CustomResourceDefinitions are created and when they are available."
                );
                Failed::from(Status::new(503, "ServiceUnavailable", why))
            })?;
            Some(patch::apply(&schema, &made, scope.object)?)
        }
        Mutation::JsonPatch(_) => patch::json_patch(&made, scope.object)?,
    };
    let Some(mut new) = new else { return Ok(None) };
    let unknown = matching.complete(place, &mut new)?;
    match mutation {
        Mutation::JsonPatch(_) if !unknown.is_empty() => {
            let unknown: Vec<String> = unknown.iter().map(|path| unknown_field(path)).collect();
            let why = format!("strict decoding error: {}", unknown.join(", "));
            Err(Status::internal(why).into())
        }
        _ => Ok(Some(new)),
    }
}

impl Errors {
    /// A policy or binding cannot be applied.
    fn misconfigured(&mut self, definition: &Definition, binding: Option<&Binding>, why: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.add(definition, binding, &format!("failed to configure {what}: {why}"), true);
    }

    /// A policy was applied and failed.
    fn failed(&mut self, definition: &Definition, binding: &Binding, why: &str) {
        self.add(definition, Some(binding), why, false);
    }

    fn add(&mut self, definition: &Definition, binding: Option<&Binding>, why: &str, setup: bool) {
        let policy = &definition.policy;
        if !policy.required {
            return;
        }
        let whose = match binding {
            Some(binding) => format!("policy '{}' with binding '{}'", policy.name, binding.name),
            None => format!("policy {}", go::quote(&policy.name)),
        };
        self.0.push((format!("{whose} denied request: {why}"), setup));
    }

    /// The answer to the request, if there is anything wrong: in upstream's order, set-up first.
    fn refusal(mut self, attributes: Attributes<'_>, object: Option<&Value>) -> Option<Status> {
        self.0.sort_by_key(|(_, setup)| !setup);
        let (first, setup) = self.0.first()?;
        let mut status = forbidden(attributes, object, "");
        status.message.clone_from(first);
        if !setup {
            status.reason = "Invalid";
        }
        Some(self.0.into_iter().fold(status, |status, (message, _)| status.with_cause("", "", message)))
    }
}
