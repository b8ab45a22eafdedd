//! The expressions of webhooks and policies that are written: whether they compile and give what they are for.

use super::expression::{Compiled, Failed, Names, compile, condition, environment};
use super::patches::{JSON_PATCH, OBJECT};
use super::variables::VariableTypes;
use cel::library::ExpressionSet;
use cel::types::Type;
use kinds::expressions::{Compiler, Expression, Fault, Purpose};
use std::sync::Arc;

/// Compiles the expressions of one object. Those that it had before may use all that the server knows.
#[derive(Debug, Default)]
pub struct WrittenExpressions {
    /// The variables so far.
    types: Arc<VariableTypes>,
}

impl Compiler for WrittenExpressions {
    fn compile(&mut self, expression: &Expression<'_>) -> Result<(), Fault> {
        let compiled = self.compiled(expression);
        if let Purpose::Variable(name) = expression.purpose {
            self.types.declare(name, compiled.as_ref().ok().map(|c| &c.ty));
        }
        match compiled {
            Ok(_) => Ok(()),
            Err(Failed::Invalid(why)) => Err(Fault::Invalid(why)),
            Err(Failed::Internal(why)) => Err(Fault::Internal(why)),
        }
    }
}

impl WrittenExpressions {
    fn compiled(&self, expression: &Expression<'_>) -> Result<Compiled, Failed> {
        let &Expression { text, purpose, params, variables, stored } = expression;
        let set = if stored { ExpressionSet::Stored } else { ExpressionSet::New };
        if purpose == Purpose::Condition && !params {
            return condition(text, set);
        }
        let names = Names {
            authorizer: purpose != Purpose::Message,
            params,
            variables,
            patches: matches!(purpose, Purpose::Apply | Purpose::JsonPatch),
        };
        let types: &[Type] = match purpose {
            Purpose::Condition | Purpose::Validation => &[Type::Bool],
            Purpose::Variable(_) => &[],
            Purpose::Message => &[Type::String],
            Purpose::Annotation => &[Type::String, Type::Null],
            Purpose::Apply => &[Type::object(OBJECT)],
            Purpose::JsonPatch => &[Type::list(Type::object(JSON_PATCH))],
        };
        compile(&environment(set, names, &self.types), text, types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Expression<'_> =
        Expression { text: "", purpose: Purpose::Validation, params: false, variables: false, stored: false };

    fn why(expressions: &mut WrittenExpressions, purpose: Purpose<'_>, text: &str) -> String {
        match expressions.compile(&Expression { text, purpose, ..PLAIN }) {
            Ok(()) => String::new(),
            Err(Fault::Invalid(why) | Fault::Internal(why)) => why,
        }
    }

    #[test]
    fn expressions_give_what_they_are_for() {
        let apply = "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}";
        let patch = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]";
        for (purpose, text, expected) in [
            (Purpose::Condition, "1", "must evaluate to bool but got int"),
            (Purpose::Condition, "authorizer.path('/').check('get').allowed()", ""),
            (Purpose::Validation, "1", "must evaluate to bool but got int"),
            (Purpose::Validation, "object.x", "must evaluate to bool but got dyn"),
            (Purpose::Validation, "variables.x", "undeclared reference to 'variables'"),
            (Purpose::Validation, "params.x", "undeclared reference to 'params'"),
            (Purpose::Validation, "'a'.find('(') == ''", "program instantiation failed: error parsing regexp"),
            (Purpose::Message, "5", "must evaluate to string but got int"),
            (Purpose::Message, "authorizer.path('/').check('get').reason()", "undeclared reference to 'authorizer'"),
            (Purpose::Annotation, "1", "must evaluate to one of [string null_type] but got int"),
            (Purpose::Annotation, "null", ""),
            (Purpose::Variable("x"), "[object]", ""),
            (Purpose::Apply, apply, ""),
            (Purpose::Apply, "object.x ? Object{} : Object{?a: optional.none()}", ""),
            (Purpose::Apply, "'teapot'", "must evaluate to Object but got string"),
            (Purpose::Apply, "Object.spec{}", "must evaluate to Object but got Object.spec"),
            (Purpose::Apply, "Objects{}", "undeclared reference to 'Objects'"),
            (Purpose::JsonPatch, patch, ""),
            (Purpose::JsonPatch, "[]", "must evaluate to list(JSONPatch) but got list(dyn)"),
            (
                Purpose::JsonPatch,
                "[JSONPatch{op: 1}]",
                "expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            (Purpose::JsonPatch, "[JSONPatch{ops: ''}]", "undefined field 'ops'"),
        ] {
            let why = why(&mut WrittenExpressions::default(), purpose, text);
            assert!(why.contains(expected) && why.is_empty() == expected.is_empty(), "{purpose:?} {text}: {why}");
        }
    }

    #[test]
    fn variables_can_be_used_by_what_follows() {
        let mut expressions = WrittenExpressions::default();
        let mut errors = |purpose, text| {
            let expression = Expression { text, purpose, params: true, variables: true, stored: false };
            expressions.compile(&expression).err()
        };
        assert_eq!(errors(Purpose::Variable("a"), "1"), None);
        assert_eq!(errors(Purpose::Variable("b"), "variables.a + 1 > params.n"), None);
        assert_eq!(errors(Purpose::Validation, "variables.b"), None);
        assert!(errors(Purpose::Variable("wrong"), "nope").is_some());
        // What does not compile may be anything.
        assert_eq!(errors(Purpose::Validation, "variables.wrong.x == 1"), None);
        assert!(errors(Purpose::Validation, "variables.a").is_some());
        assert!(errors(Purpose::Validation, "variables.none").is_some());
    }
}
