//! The checker: gives every node a type, resolves names and overloads, and reports what does not fit.
//!
//! The algorithm, its messages and their places are those of cel-go 0.23: Hindley-Milner style unification with
//! dyn as a wildcard, all overloads that may fit kept, no stop at the first error.

mod aggregates;
mod calls;
mod unify;

use std::fmt;
use std::sync::Arc;

use crate::ast::{Ast, Expr, ExprId, ExprKind, Literal, SourceInfo};
use crate::checked::{CheckedAst, Reference};
use crate::env::{Env, Ident};
use crate::issues::Issues;
use crate::types::{Kind, Type};
use crate::validators;

use unify::Unifier;

/// Checks a parsed expression against an environment.
///
/// # Errors
///
/// Everything that does not fit. The environment's [`validators`](crate::env::Validators) run only when nothing
/// else is wrong, and their findings are errors as well.
pub fn check(env: &Env, ast: Ast) -> Result<CheckedAst, Issues> {
    let Ast { mut expr, source } = ast;
    let nodes = source.positions.len();
    let mut checker = Checker {
        env,
        types: vec![None; nodes],
        references: vec![None; nodes],
        unifier: Unifier::default(),
        scope: Vec::new(),
        errors: Vec::new(),
    };
    checker.check(&mut expr);
    let Checker { mut types, references, unifier, errors, .. } = checker;
    if !errors.is_empty() {
        return Err(issues(&source, errors));
    }
    for ty in types.iter_mut().flatten() {
        *ty = unifier.substitute(ty, true);
    }
    let checked = CheckedAst { ast: Ast { expr, source }, types, references };
    let findings = validators::run(env.validators(), &checked);
    if findings.is_empty() { Ok(checked) } else { Err(issues(&checked.ast.source, findings)) }
}

fn issues(source: &SourceInfo, found: Vec<(ExprId, String)>) -> Issues {
    let mut issues = Issues::new(source.text.clone());
    for (id, message) in found {
        issues.report_at(source.positions.get(id as usize).copied().unwrap_or(u32::MAX), message);
    }
    issues
}

struct Checker<'a> {
    env: &'a Env,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    unifier: Unifier,
    /// Variables of the comprehensions around the node being checked, innermost last.
    scope: Vec<(Arc<str>, Type)>,
    errors: Vec<(ExprId, String)>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Literal(literal) => {
                let ty = literal_type(literal);
                self.set_type(expr.id, ty);
            }
            ExprKind::Ident(_) => self.check_ident(expr),
            ExprKind::Select(_) => self.check_select(expr),
            ExprKind::Call(_) => self.check_call(expr),
            ExprKind::List(list) => self.check_list(expr.id, list),
            ExprKind::Map(entries) => self.check_map(expr.id, entries),
            ExprKind::Struct(message) => self.check_struct(expr.id, message),
            ExprKind::Comprehension(comprehension) => self.check_comprehension(expr.id, comprehension),
        }
    }

    fn check_ident(&mut self, expr: &mut Expr) {
        let ExprKind::Ident(name) = &mut expr.kind else { return };
        match self.lookup_ident(name) {
            Some(ident) => {
                *name = ident.name.clone();
                self.resolve_to(expr.id, ident);
            }
            None => {
                self.errors.push((expr.id, undeclared(name)));
                self.set_type(expr.id, Type::Error);
            }
        }
    }

    fn check_select(&mut self, expr: &mut Expr) {
        if let Some(ident) = self.qualified_name(expr).and_then(|name| self.lookup_ident(&name)) {
            expr.kind = ExprKind::Ident(ident.name.clone());
            self.resolve_to(expr.id, ident);
            return;
        }
        let ExprKind::Select(select) = &mut expr.kind else { return };
        let mut ty = self.check_field(expr.id, &mut select.operand, &select.field, false);
        if select.test_only {
            ty = Type::Bool;
        }
        let ty = self.unifier.substitute(&ty, false);
        self.set_type(expr.id, ty);
    }

    /// The type of a field, after the check of the operand. Fields of optionals, and fields selected optionally,
    /// are optional.
    fn check_field(&mut self, id: ExprId, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.unifier.substitute(self.type_of(operand.id), false);
        let (target, is_optional) = match operand_type.optional_value() {
            Some(value) => (value, true),
            None => (&operand_type, false),
        };
        let result = match target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(name) => self.lookup_field(id, name, field).unwrap_or(Type::Error),
            Type::Var(_) | Type::Param(_) => {
                // The variable is dyn from here on, so that nothing narrower is assigned to it later.
                self.unifier.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            _ => {
                if !target.is_dyn_or_error() {
                    self.errors.push((id, format!("type '{target}' does not support field selection")));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn lookup_field(&mut self, id: ExprId, object: &str, field: &str) -> Option<Type> {
        if let Some(ty) = self.env.field_type(object, field) {
            return Some(ty);
        }
        let message = if self.env.has_object(object) {
            format!("undefined field '{field}'")
        } else {
            format!("unexpected failed resolution of '{object}'")
        };
        self.errors.push((id, message));
        None
    }

    fn lookup_ident(&self, name: &str) -> Option<Ident> {
        let local = name.strip_prefix('.').unwrap_or(name);
        match self.scope.iter().rev().find(|(variable, _)| &**variable == local) {
            Some((name, ty)) => Some(Ident { name: name.clone(), ty: ty.clone(), value: None }),
            None => self.env.ident(name),
        }
    }

    /// `a.b.c` for a chain of selections from an identifier, if it may be the name of something as a whole.
    fn qualified_name(&self, expr: &Expr) -> Option<String> {
        let mut fields = 0;
        let mut at = expr;
        let root = loop {
            match &at.kind {
                ExprKind::Select(select) if !select.test_only => {
                    fields += 1;
                    at = &select.operand;
                }
                ExprKind::Ident(root) => break root,
                _ => return None,
            }
        };
        let is_local = self.scope.iter().any(|(variable, _)| variable == root);
        if !self.env.may_qualify(root, is_local) {
            return None;
        }
        let mut parts = Vec::with_capacity(fields);
        at = expr;
        while let ExprKind::Select(select) = &at.kind {
            parts.push(&*select.field);
            at = &select.operand;
        }
        let mut name = String::from(&**root);
        for part in parts.iter().rev() {
            name.push('.');
            name.push_str(part);
        }
        Some(name)
    }

    fn resolve_to(&mut self, id: ExprId, ident: Ident) {
        self.set_type(id, ident.ty);
        self.set_reference(id, Reference::Ident { name: ident.name, value: ident.value });
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let actual = self.type_of(id).clone();
        if !self.unifier.assignable(expected, &actual) {
            self.mismatch(id, expected, &actual);
        }
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        self.errors.push((id, type_mismatch(expected, actual)));
    }

    fn set_type(&mut self, id: ExprId, ty: Type) {
        put(&mut self.types, id, ty);
    }

    fn set_reference(&mut self, id: ExprId, reference: Reference) {
        put(&mut self.references, id, reference);
    }

    fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).and_then(Option::as_ref).unwrap_or(&Type::Error)
    }
}

/// `expected type 'A' but found 'B'`
pub(crate) fn type_mismatch(expected: impl fmt::Display, actual: impl fmt::Display) -> String {
    format!("expected type '{expected}' but found '{actual}'")
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn put<T>(into: &mut Vec<Option<T>>, id: ExprId, value: T) {
    let at = id as usize;
    if at >= into.len() {
        into.resize_with(at + 1, || None);
    }
    if let Some(slot) = into.get_mut(at) {
        *slot = Some(value);
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Whether a type is one the language gives a message name to, by its kind.
fn is_well_known(ty: &Type) -> Option<&'static str> {
    let nullable = matches!(ty, Type::Wrapper(_));
    Some(match ty.kind() {
        Kind::Any => "google.protobuf.Any",
        Kind::Timestamp => "google.protobuf.Timestamp",
        Kind::Duration => "google.protobuf.Duration",
        Kind::Dyn => "google.protobuf.Value",
        Kind::Null => "google.protobuf.NullValue",
        Kind::Bool if nullable => "google.protobuf.BoolValue",
        Kind::Bytes if nullable => "google.protobuf.BytesValue",
        Kind::Double if nullable => "google.protobuf.DoubleValue",
        Kind::Int if nullable => "google.protobuf.Int64Value",
        Kind::String if nullable => "google.protobuf.StringValue",
        Kind::Uint if nullable => "google.protobuf.UInt64Value",
        Kind::List if matches!(ty.element(), Some(Type::Dyn)) => "google.protobuf.ListValue",
        Kind::Map if matches!(ty.entry(), Some((Type::String, Type::Dyn))) => "google.protobuf.Struct",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::VariableDecl;
    use crate::library::ExpressionSet;
    use crate::parse::{ParserOptions, parse};

    fn env() -> Env {
        Env::kubernetes(ExpressionSet::New).with_variables([
            VariableDecl::new("i", Type::Int),
            VariableDecl::new("s", Type::String),
            VariableDecl::new("l", Type::list(Type::String)),
            VariableDecl::new("m", Type::map(Type::String, Type::Int)),
            VariableDecl::new("d", Type::Dyn),
            VariableDecl::new("a.b", Type::Bool),
        ])
    }

    fn checked(text: &str) -> Result<CheckedAst, Issues> {
        check(&env(), parse(text, &ParserOptions::default()).expect("the text parses"))
    }

    #[test]
    fn results_have_types() {
        for (text, ty) in [
            ("i + 1", "int"),
            ("d + 1", "int"),
            ("d + d", "dyn"),
            ("d.x.y", "dyn"),
            ("l[0]", "string"),
            ("m.x", "int"),
            ("has(m.x)", "bool"),
            ("m.?x", "optional_type(int)"),
            ("l[?0].orValue('x')", "string"),
            ("l.map(x, size(x))", "list(int)"),
            ("l.transformMap(k, v, v)", "map(int, string)"),
            ("l.transformList(k, v, k)", "list(int)"),
            ("m.map(k, k)", "list(string)"),
            ("[]", "list(dyn)"),
            ("[] + l", "list(string)"),
            ("{'x': i}", "map(string, int)"),
            ("[?m.?x]", "list(int)"),
            ("a.b", "bool"),
            ("i < 1.5", "bool"),
            ("type(i)", "type(int)"),
            ("ip('::1')", "net.IP"),
            ("optional.of(l).value()", "list(string)"),
            ("google.protobuf.Int64Value{value: 1}", "wrapper(int)"),
            ("i == 1 ? l : []", "list(string)"),
            ("duration('1h') + timestamp(0)", "timestamp"),
        ] {
            let checked = checked(text).unwrap_or_else(|issues| panic!("{text}: {issues}"));
            assert_eq!(checked.result_type().to_string(), ty, "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_where_it_is() {
        for (text, column, message) in [
            ("x", 1, "undeclared reference to 'x' (in container '')"),
            ("i.x", 2, "type 'int' does not support field selection"),
            ("i + s", 3, "found no matching overload for '_+_' applied to '(int, string)'"),
            ("i.size()", 7, "found no matching overload for 'size' applied to 'int.()'"),
            ("s.reverse()", 10, "undeclared reference to 'reverse' (in container '')"),
            ("d && i", 6, "expected type 'bool' but found 'int'"),
            (
                "i.all(x, true)",
                1,
                "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
            ),
            ("i == null", 3, "found no matching overload for '_==_' applied to '(int, null)'"),
            ("int{}", 4, "'int' is not a message type"),
            ("i{}", 2, "'int' is not a type"),
            ("google.protobuf.Duration{x: 1}", 27, "undefined field 'x'"),
            (
                "google.protobuf.Duration{seconds: '1'}",
                33,
                "expected type of field 'seconds' is 'int' but provided type is 'string'",
            ),
            ("quantity('1').x", 14, "unexpected failed resolution of 'kubernetes.Quantity'"),
            ("[?i]", 3, "expected type 'optional_type(int)' but found 'int'"),
            ("[1, 's']", 5, "expected type 'int' but found 'string'"),
            ("duration('1x')", 10, "invalid duration argument"),
            ("s.matches('[')", 11, "invalid matches argument"),
            (
                "'%d'.format([s])",
                14,
                "error during formatting: decimal clause can only be used on integers, was given string",
            ),
        ] {
            let issues = checked(text).expect_err(text);
            let issue = issues.iter().next().expect("there is an issue");
            assert_eq!((issue.location.column + 1, issue.message.as_str()), (column, message), "{text}");
            assert_eq!(issues.len(), 1, "{text}: {issues}");
        }
    }

    #[test]
    fn names_and_calls_know_what_they_resolved_to() {
        let name = checked("a.b").expect("it checks");
        assert!(matches!(&name.expr().kind, ExprKind::Ident(name) if &**name == "a.b"));
        assert!(name.mentions("a.b") && !name.mentions("a"));
        let call = checked("sets.contains(l, l)").expect("it checks");
        assert!(matches!(&call.expr().kind, ExprKind::Call(call) if call.target.is_none()));
        assert_eq!(&*call.overloads(call.expr().id)[0].id, "list_sets_contains_list");
        let sum = checked("d + 1").expect("it checks");
        assert_eq!(sum.overloads(sum.expr().id).len(), 1);
        let sums = checked("d + d").expect("it checks");
        assert_eq!(sums.overloads(sums.expr().id).len(), 9);
    }

    #[test]
    fn a_variable_of_a_comprehension_hides_others_and_ends_with_it() {
        assert!(checked("l.all(i, i == 'x') && i == 1").is_ok());
        assert!(checked("l.all(x, true) && x == 1").is_err());
    }
}
