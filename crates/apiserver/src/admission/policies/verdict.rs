//! What a policy says of a request, with one parameter.

use super::definition::{Definition, Expressions, INVALID, Validation};
use crate::admission::cel::{Judgement, OUT_OF_BUDGET, POLICY_BUDGET, Run, Scope, judge};
use cel::value::Value as Cel;
use object::field::aggregate;

/// The most bytes of a message that was worked out.
const MAX_MESSAGE: usize = 5 * 1024;
/// The most bytes of an annotation's value.
const MAX_ANNOTATION: usize = 10 * 1024;

/// What came of a policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// What speaks against the request, to be acted upon as the binding says.
    pub objections: Vec<Objection>,
    /// Errors of annotations, which refuse the request whatever the binding says.
    pub errors: Vec<String>,
    /// What is to be recorded: keys and values.
    pub annotations: Vec<(String, String)>,
}

/// What speaks against a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Objection {
    /// The place of the validation in the policy.
    pub index: usize,
    /// What the client is told.
    pub message: String,
    /// The reason of the answer.
    pub reason: &'static str,
    /// Whether it is that something could not be evaluated.
    pub failed: bool,
}

impl Verdict {
    /// The policy as a whole could not be evaluated.
    fn failed(policy: &Definition, why: String) -> Self {
        let objection = Objection { index: 0, message: why, reason: INVALID, failed: true };
        let objections = if policy.policy.required { vec![objection] } else { Vec::new() };
        Verdict { objections, ..Verdict::default() }
    }
}

/// Evaluates a policy. `conditions` is what its conditions look at.
pub(super) fn reach(policy: &Definition, conditions: Scope<'_>, scope: Scope<'_>) -> Verdict {
    let expressions = policy.expressions();
    if !expressions.conditions.is_empty() {
        let run = Run::new(conditions, &expressions.variables);
        match judge(&expressions.conditions, &run) {
            Judgement::Match => {}
            Judgement::Other => return Verdict::default(),
            Judgement::Errors(errors) => return Verdict::failed(policy, aggregate(&errors)),
        }
    }
    // Only validations may ask for rights.
    let others = Scope { authorizer: None, ..scope };
    let (objections, annotations) = match validate(policy, expressions, scope, others) {
        Ok(objections) => (objections, annotate(expressions, others)),
        Err(why) => return Verdict::failed(policy, why),
    };
    let annotations = match annotations {
        Ok(annotations) => annotations,
        Err(why) => return Verdict::failed(policy, why),
    };
    let mut verdict = Verdict { objections, ..Verdict::default() };
    for (key, value) in annotations {
        match value {
            Ok(Some(value)) => verdict.annotations.push((key.to_owned(), value)),
            Ok(None) => {}
            Err(why) if policy.policy.required => verdict.errors.push(why),
            Err(_) => {}
        }
    }
    verdict
}

/// What the validations of a policy object to; the error is that the budget is spent.
fn validate(
    policy: &Definition,
    expressions: &Expressions,
    scope: Scope<'_>,
    of_messages: Scope<'_>,
) -> Result<Vec<Objection>, String> {
    let mut budget = POLICY_BUDGET;
    let run = Run::new(scope, &expressions.variables);
    let mut results = Vec::with_capacity(expressions.validations.len());
    for validation in &expressions.validations {
        let result = run.evaluate(&validation.expression, &mut budget).map_err(|_| OUT_OF_BUDGET.to_owned())?;
        results.push(result.map(|value| matches!(value, Cel::Bool(true))));
    }
    // Messages are worked out whether they are needed or not: what they cost counts.
    let run = Run::new(of_messages, &expressions.variables);
    let (mut messages, mut spent) = (Vec::with_capacity(results.len()), false);
    for validation in &expressions.validations {
        let message = match &validation.message_expression {
            Some(expression) => run.evaluate(expression, &mut budget),
            None => Ok(Err(String::new())),
        };
        match message {
            Ok(message) => messages.push(message.ok().and_then(|m| m.as_str().map(|text| text.trim().to_owned()))),
            Err(_) => {
                spent = true;
                break;
            }
        }
    }
    let mut objections = Vec::new();
    let mut messages = messages.into_iter();
    for (index, (validation, result)) in expressions.validations.iter().zip(results).enumerate() {
        let message = messages.next().flatten();
        let (error, message, reason) = match result {
            Err(why) => (true, why, INVALID),
            Ok(_) if spent => (true, format!("failed messageExpression: {OUT_OF_BUDGET}"), INVALID),
            Ok(true) => continue,
            Ok(false) => (false, told(validation, message), validation.reason),
        };
        if !error || policy.policy.required {
            objections.push(Objection { index, message, reason, failed: error });
        }
    }
    Ok(objections)
}

/// What the client is told of a validation that failed.
fn told(validation: &Validation, worked_out: Option<String>) -> String {
    let fit = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    worked_out.filter(fit).unwrap_or_else(|| validation.message.clone())
}

/// The annotations: keys and values, if there are any. The outer error is that the budget is spent.
type Annotations<'e> = Vec<(&'e str, Result<Option<String>, String>)>;

fn annotate<'e>(expressions: &'e Expressions, scope: Scope<'_>) -> Result<Annotations<'e>, String> {
    let mut budget = POLICY_BUDGET;
    let run = Run::new(scope, &expressions.variables);
    let mut all = Vec::with_capacity(expressions.annotations.len());
    for annotation in &expressions.annotations {
        let value = run.evaluate(&annotation.value, &mut budget).map_err(|_| OUT_OF_BUDGET.to_owned())?;
        let value = value.map(|value| {
            let mut text = value.as_str().unwrap_or_default().trim();
            if text.len() > MAX_ANNOTATION {
                let cut = (0..=MAX_ANNOTATION).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                text = text.get(..cut).unwrap_or_default();
            }
            Some(text.to_owned()).filter(|text| !text.is_empty())
        });
        all.push((annotation.key.as_str(), value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::authorizer::{Check, Who};
    use crate::auth::UserInfo;
    use crate::authorize::AlwaysAllow;
    use object::{Value, json};
    use std::sync::Arc;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    /// What a policy with a spec says of an object.
    fn verdict(spec: &str, object: &str) -> Verdict {
        let policy: Definition = crate::admission::policies::policy::read(&value(&format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#
        )));
        let (object, params) = (value(object), value(r#"{"max":3}"#));
        let who = Who::new(Arc::new(AlwaysAllow), Arc::new(UserInfo::default()));
        let check = Check::new(who.clone(), "g", "r");
        let scope = Scope {
            object: &object,
            old: &Value::Null,
            request: &Value::Null,
            namespace: &Value::Null,
            params: &params,
            authorizer: Some((&who, &check)),
        };
        reach(&policy, scope, scope)
    }

    fn messages(spec: &str, object: &str) -> Vec<String> {
        verdict(spec, object)
            .objections
            .into_iter()
            .map(|o| format!("{} {} {}", o.index, o.reason, o.message))
            .collect()
    }

    #[test]
    fn each_validation_that_fails_objects_with_its_message() {
        let spec = r#"{"validations":[
            {"expression":" object.n > 1 "},
            {"expression":"object.n == 1"},
            {"expression":"object.n > 2","message":" more ","reason":"Forbidden"},
            {"expression":"object.n > 3","message":"m","messageExpression":"' n is ' + string(object.n)"},
            {"expression":"object.n > 4","message":"m","messageExpression":"'a\\nb'"},
            {"expression":"object.n > 5","messageExpression":"object.nope + 'x'"},
            {"expression":"object.n > params.max","message":"m","messageExpression":"''"}],"paramKind":{}}"#;
        let expected = [
            "0 Invalid failed expression: object.n > 1",
            "2 Forbidden more",
            "3 Invalid n is 1",
            "4 Invalid m",
            "5 Invalid failed expression: object.n > 5",
            "6 Invalid m",
        ];
        assert_eq!(messages(spec, r#"{"n":1}"#), expected);
        assert_eq!(messages(spec, r#"{"n":9}"#), ["1 Invalid failed expression: object.n == 1"]);
    }

    #[test]
    fn errors_object_unless_they_are_ignored() {
        let spec = |policy: &str| {
            format!(
                r#"{{"failurePolicy":"{policy}","validations":[{{"expression":"object.x == 1"}},{{"expression":"false"}}]}}"#
            )
        };
        let error = "0 Invalid expression 'object.x == 1' resulted in error: no such key: x";
        let failed = "1 Invalid failed expression: false";
        assert_eq!(messages(&spec("Fail"), "{}"), [error, failed]);
        assert_eq!(messages(&spec("Ignore"), "{}"), [failed]);
    }

    #[test]
    fn conditions_decide_whether_the_policy_applies() {
        let spec = |condition: &str, policy: &str| {
            format!(
                r#"{{"failurePolicy":"{policy}","matchConditions":[{{"expression":"{condition}"}}],"validations":[{{"expression":"false"}}]}}"#
            )
        };
        let failed = "0 Invalid failed expression: false";
        let error = "0 Invalid expression 'object.x' resulted in error: no such key: x";
        for (condition, policy, expected) in
            [("object.n == 1", "Fail", &[failed][..]), ("object.n == 2", "Fail", &[]), ("object.x == 2", "Ignore", &[])]
        {
            assert_eq!(messages(&spec(condition, policy), r#"{"n":1}"#), expected, "{condition}");
        }
        let errors = messages(&spec("object.x == 1", "Fail"), r#"{"n":1}"#);
        assert_eq!(errors, [error.replace("object.x'", "object.x == 1'")]);
    }

    #[test]
    fn messages_and_annotations_cannot_ask_for_rights() {
        let allowed = "authorizer.group('').resource('x').check('get').allowed()";
        let spec = format!(
            r#"{{"validations":[{{"expression":"{allowed}"}},{{"expression":"false","messageExpression":"string({allowed})"}}],
                "auditAnnotations":[{{"key":"k","valueExpression":"string({allowed})"}}]}}"#
        );
        let verdict = verdict(&spec, "{}");
        assert_eq!(verdict.objections.len(), 1);
        assert_eq!(verdict.objections[0].message, "failed expression: false");
        assert!(verdict.errors[0].ends_with("no such attribute(s): authorizer"), "{verdict:?}");
    }

    #[test]
    fn annotations_are_strings_that_are_not_blank() {
        let spec = r#"{"auditAnnotations":[{"key":"a","valueExpression":"' v '"},{"key":"b","valueExpression":"null"},
            {"key":"c","valueExpression":"'  '"},{"key":"d","valueExpression":"object.s + 'y'"}]}"#;
        let verdict = verdict(spec, r#"{"s":"x"}"#);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(verdict.annotations, [pair("a", "v"), pair("d", "xy")]);
    }

    #[test]
    fn a_spent_budget_is_one_objection_in_place_of_all_others() {
        let object = format!(r#"{{"s":"{}","t":"{}"}}"#, "s".repeat(60_000), "t".repeat(1000));
        // 0.1 x 60,000 x 0.1 x 1,000
        let dear = "!object.s.contains(object.t)";
        let validation = format!(r#"{{"expression":"{dear}"}}"#);
        let with = |first: &str, count: usize| {
            let all = vec![validation.as_str(); count].join(",");
            messages(&format!(r#"{{"validations":[{first},{all}]}}"#), &object)
        };
        assert_eq!(with(r#"{"expression":"false","message":"m"}"#, 5), ["0 Invalid m"]);
        assert_eq!(with(r#"{"expression":"false","message":"m"}"#, 20), [format!("0 Invalid {OUT_OF_BUDGET}")]);
        // What messages cost counts as well, even where nobody needs them.
        let message = format!(r#"{{"expression":"true","messageExpression":"string({dear})"}}"#);
        let all = vec![message.as_str(); 20].join(",");
        let spent = messages(&format!(r#"{{"validations":[{all}]}}"#), &object);
        assert_eq!(spent.len(), 20);
        assert_eq!(spent[0], format!("0 Invalid failed messageExpression: {OUT_OF_BUDGET}"));
    }
}
