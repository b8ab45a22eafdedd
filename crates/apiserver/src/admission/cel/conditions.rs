//! Match conditions: expressions that all have to be true.

use super::CONDITIONS_BUDGET;
use super::expression::Expression;
use super::run::{OUT_OF_BUDGET, Run};
use cel::value::Value as Cel;

/// What came of conditions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// All are true.
    Match,
    /// One is false.
    Other,
    /// None is false, and these could not be told.
    Errors(Vec<String>),
}

/// Evaluates conditions within their budget.
pub(crate) fn judge<'o>(conditions: &'o [Expression], run: &'o Run<'o>) -> Judgement {
    let (mut errors, mut budget, mut other) = (Vec::new(), CONDITIONS_BUDGET, false);
    // All of them count for the budget, even where one is false already.
    for condition in conditions {
        match run.evaluate(condition, &mut budget) {
            Err(_) => return Judgement::Errors(vec![OUT_OF_BUDGET.to_owned()]),
            Ok(Ok(Cel::Bool(false))) => other = true,
            Ok(Ok(_)) => {}
            Ok(Err(why)) => errors.push(why),
        }
    }
    match (other, errors.is_empty()) {
        (true, _) => Judgement::Other,
        (false, true) => Judgement::Match,
        (false, false) => Judgement::Errors(errors),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scope, Variables};
    use super::*;
    use crate::admission::authorizer::{Check, Who};
    use crate::auth::UserInfo;
    use crate::authorize::AlwaysAllow;
    use object::{Value, json};
    use std::sync::Arc;

    fn judged(expressions: &[&str]) -> Judgement {
        let value = |text: &str| json::parse(text.as_bytes()).unwrap();
        let conditions: Vec<Expression> = expressions.iter().map(|e| Expression::condition(e)).collect();
        let who = Who::new(Arc::new(AlwaysAllow), Arc::new(UserInfo::default()));
        let check = Check::new(who.clone(), "g", "r");
        let (object, request) =
            (value(r#"{"spec":{"n":1,"l":[1,2]}}"#), value(r#"{"operation":"CREATE","kind":{"group":"g"}}"#));
        let scope = Scope {
            object: &object,
            old: &Value::Null,
            request: &request,
            namespace: &Value::Null,
            params: &Value::Null,
            authorizer: Some((&who, &check)),
        };
        let variables = Variables::default();
        let run = Run::new(scope, &variables);
        judge(&conditions, &run)
    }

    #[test]
    fn conditions_are_judged_together() {
        let errors = |texts: &[&str]| Judgement::Errors(texts.iter().map(|t| (*t).to_owned()).collect());
        for (expressions, expected) in [
            (&["object.spec.n == 1", "oldObject == null", "object.spec.l.all(x, x > 0)"][..], Judgement::Match),
            (&["request.operation == 'CREATE' && request.kind.group == 'g'"], Judgement::Match),
            (&["object.spec.m == 1", "false"], Judgement::Other),
            (&["object.spec.m == 1"], errors(&["expression 'object.spec.m == 1' resulted in error: no such key: m"])),
            (&["authorizer.group('').resource('pods').check('get').allowed()"], Judgement::Match),
            (&["authorizer.requestResource.check('get').allowed()"], Judgement::Match),
        ] {
            assert_eq!(judged(expressions), expected, "{expressions:?}");
        }
    }
}
