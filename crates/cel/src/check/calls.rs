//! Calls: which function, which overloads, which result.

use std::sync::Arc;

use crate::ast::{Call, Expr, ExprId, ExprKind, Literal};
use crate::checked::Reference;
use crate::env::{FunctionDecl, OverloadDecl};
use crate::operators;
use crate::types::Type;

use super::unify::instantiate;
use super::{Checker, undeclared};

impl Checker<'_> {
    pub(super) fn check_call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call(call) = &mut expr.kind else { return };
        if &*call.function == operators::OPT_SELECT {
            self.check_opt_select(id, call);
            return;
        }
        for arg in &mut call.args {
            self.check(arg);
        }
        // `a.b.c()` is the function `a.b.c` if there is one, otherwise a method of `a.b`.
        if let Some(target) = &mut call.target {
            if let Some(name) = self.qualified_name(target)
                && let Some(function) = self.env.function(&format!("{name}.{}", call.function))
            {
                call.function = function.name.clone();
                call.target = None;
                self.resolve(id, function, call);
                return;
            }
            self.check(target);
        }
        match self.env.function(&call.function) {
            Some(function) => {
                if call.target.is_none() {
                    call.function = function.name.clone();
                }
                self.resolve(id, function, call);
            }
            None => {
                self.set_type(id, Type::Error);
                self.errors.push((id, undeclared(&call.function)));
            }
        }
    }

    fn check_opt_select(&mut self, id: ExprId, call: &mut Call) {
        let is_member = call.target.is_some();
        let count = call.args.len();
        let ([operand, field], false) = (call.args.as_mut_slice(), is_member) else {
            let style = if is_member { " member call with" } else { "" };
            let message =
                format!("unsupported optional field selection: incorrect signature.{style} argument count: {count}");
            self.errors.push((id, message));
            return;
        };
        let ExprKind::Literal(Literal::String(name)) = &field.kind else {
            self.errors.push((field.id, "unsupported optional field selection".to_owned()));
            return;
        };
        let ty = self.check_field(id, operand, name, true);
        let ty = self.unifier.substitute(&ty, false);
        self.set_type(id, ty);
        let overload = self.env.function(operators::OPT_SELECT).and_then(|function| function.overloads.first());
        if let Some(overload) = overload {
            self.set_reference(id, Reference::Overload(overload.clone()));
        }
    }

    fn resolve(&mut self, id: ExprId, function: &FunctionDecl, call: &Call) {
        let is_member = call.target.is_some();
        let args: Vec<Type> = call.target.iter().chain(&call.args).map(|arg| self.type_of(arg.id).clone()).collect();
        if let operators::LOGICAL_AND | operators::LOGICAL_OR = &*function.name {
            self.resolve_logical(id, function, call, &args);
            return;
        }
        let mut found: Option<(Type, Reference)> = None;
        for overload in function.overloads.iter().filter(|overload| overload.member == is_member) {
            let Some(result) = self.try_overload(overload, &args) else { continue };
            found = Some(match found {
                None => (result, Reference::Overload(overload.clone())),
                Some((first, reference)) => {
                    let ty = if first.is_dyn() || result == first { first } else { Type::Dyn };
                    (ty, and(reference, overload.clone()))
                }
            });
        }
        match found {
            Some((ty, reference)) => {
                self.set_type(id, ty);
                self.set_reference(id, reference);
            }
            None => {
                let args: Vec<Type> = args.iter().map(|arg| self.unifier.substitute(arg, true)).collect();
                let signature = signature(&args, is_member);
                let message = format!("found no matching overload for '{}' applied to '{signature}'", function.name);
                self.errors.push((id, message));
                self.set_type(id, Type::Error);
            }
        }
    }

    /// `&&` and `||` report each operand that is not a bool, at the operand.
    fn resolve_logical(&mut self, id: ExprId, function: &FunctionDecl, call: &Call, args: &[Type]) {
        let mut fits = true;
        for (arg, ty) in call.target.iter().chain(&call.args).zip(args) {
            if !self.unifier.assignable(ty, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, ty);
                fits = false;
            }
        }
        match function.overloads.first() {
            Some(overload) if fits => {
                self.set_type(id, Type::Bool);
                self.set_reference(id, Reference::Overload(overload.clone()));
            }
            _ => self.set_type(id, Type::Error),
        }
    }

    /// The result of the overload with these arguments, if they fit.
    fn try_overload(&mut self, overload: &OverloadDecl, args: &[Type]) -> Option<Type> {
        let params = &overload.type_params;
        if params.is_empty() {
            return self.unifier.all_assignable(args, &overload.args).then(|| overload.result.clone());
        }
        let first = self.unifier.reserve(params.len());
        if overload.args.len() != args.len() {
            return None;
        }
        let expected: Vec<Type> = overload.args.iter().map(|arg| instantiate(arg, params, first)).collect();
        if !self.unifier.all_assignable(args, &expected) {
            return None;
        }
        Some(self.unifier.substitute(&instantiate(&overload.result, params, first), false))
    }
}

fn and(reference: Reference, overload: Arc<OverloadDecl>) -> Reference {
    match reference {
        Reference::Overload(first) => Reference::Overloads(vec![first, overload]),
        Reference::Overloads(mut overloads) => {
            overloads.push(overload);
            Reference::Overloads(overloads)
        }
        Reference::Ident { .. } => Reference::Overload(overload),
    }
}

/// `(int, string)`, or `string.(int)` for a method.
fn signature(args: &[Type], is_member: bool) -> String {
    let mut text = String::new();
    let mut args = args.iter();
    if is_member && let Some(receiver) = args.next() {
        text = format!("{receiver}.");
    }
    text.push('(');
    for (i, arg) in args.enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        text.push_str(&arg.to_string());
    }
    text.push(')');
    text
}
