//! Which expressions of webhooks and policies are compiled, and which of them were there before.

use crate::check::Errors;
use crate::expressions::{Compiler, Expression, Fault, Purpose};
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};
use std::collections::HashSet;

/// Lists of expressions whose old texts are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    Conditions,
    Validations,
    Messages,
    Annotations,
    /// Those of apply configurations; upstream looks up JSON patches among them too.
    Mutations,
}

/// Compiles the expressions of one object.
pub(super) struct Checker<'a> {
    compiler: &'a mut dyn Compiler,
    known: HashSet<(Known, &'a str)>,
    /// Whether there are parameters.
    params: bool,
    /// Whether there are variables.
    variables: bool,
}

impl<'a> Checker<'a> {
    /// For webhooks, which have conditions alone.
    pub fn of_webhooks(old: Option<&'a Value>, compiler: &'a mut dyn Compiler) -> Self {
        let mut checker = Checker { compiler, known: HashSet::new(), params: false, variables: false };
        for webhook in old.map(|old| old.list("webhooks")).unwrap_or_default() {
            checker.learn(Known::Conditions, webhook, "matchConditions", "expression");
        }
        checker
    }

    /// For a policy with this `spec`. Mutating ones know `variables` even where they have none.
    pub fn of_policy(spec: &Value, old: Option<&'a Value>, mutating: bool, compiler: &'a mut dyn Compiler) -> Self {
        let (params, variables) = (spec.has("paramKind"), mutating || !spec.list("variables").is_empty());
        let mut checker = Checker { compiler, known: HashSet::new(), params, variables };
        let Some(old) = old.map(|old| old.sub("spec")) else { return checker };
        checker.learn(Known::Conditions, old, "matchConditions", "expression");
        checker.learn(Known::Validations, old, "validations", "expression");
        checker.learn(Known::Messages, old, "validations", "messageExpression");
        checker.learn(Known::Annotations, old, "auditAnnotations", "valueExpression");
        let mutations = old.list("mutations").iter().map(|m| m.sub("applyConfiguration").text("expression"));
        checker.known.extend(mutations.map(|text| (Known::Mutations, text)));
        checker
    }

    fn learn(&mut self, group: Known, owner: &'a Value, list: &str, field: &str) {
        self.known.extend(owner.list(list).iter().map(|item| (group, item.text(field))));
    }

    /// Compiles an expression that is not blank. Upstream trims some, and shows and compares some so.
    pub fn check(&mut self, purpose: Purpose<'_>, written: &str, path: &Path<'_>, out: &mut Errors) {
        let trimmed = written.trim();
        let (group, text, shown, key) = match purpose {
            Purpose::Condition => (Known::Conditions, trimmed, trimmed, trimmed),
            Purpose::Variable(_) | Purpose::Validation => (Known::Validations, written, written, written),
            Purpose::Message => (Known::Messages, written, written, written),
            Purpose::Annotation => (Known::Annotations, trimmed, written, written),
            Purpose::Apply | Purpose::JsonPatch => (Known::Mutations, trimmed, trimmed, written),
        };
        let expression = Expression {
            text,
            purpose,
            params: self.params,
            variables: self.variables && purpose != Purpose::Condition,
            stored: self.known.contains(&(group, key)),
        };
        match self.compiler.compile(&expression) {
            Ok(()) => {}
            Err(Fault::Invalid(why)) => out.push(FieldError::invalid(path, shown, why)),
            Err(Fault::Internal(why)) => out.push(FieldError::internal(path, why)),
        }
    }
}
