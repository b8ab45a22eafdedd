//! Checks on an expression that type-checks already: literal arguments, literals of mixed types, format strings.

mod format_string;
mod literals;

use crate::ast::{Call, Expr, ExprId, ExprKind, ListExpr, MapEntry};
use crate::check::type_mismatch;
use crate::checked::CheckedAst;
use crate::env::Validators;
use crate::types::Type;

/// What is wrong, by the node to blame.
pub(crate) fn run(validators: Validators, checked: &CheckedAst) -> Vec<(ExprId, String)> {
    let mut walk = Walk { validators, checked, findings: Vec::new() };
    walk.visit(checked.expr(), false);
    walk.findings
}

struct Walk<'a> {
    validators: Validators,
    checked: &'a CheckedAst,
    findings: Vec<(ExprId, String)>,
}

impl<'a> Walk<'a> {
    /// `exempt`: somewhere inside a call of `format`, whose arguments may be of mixed types.
    fn visit(&mut self, expr: &Expr, exempt: bool) {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => self.visit(&select.operand, exempt),
            ExprKind::Call(call) => {
                self.check_call(expr, call);
                let exempt = exempt || &*call.function == "format";
                for part in call.target.iter().chain(&call.args) {
                    self.visit(part, exempt);
                }
            }
            ExprKind::List(list) => {
                if self.validators.homogeneous_aggregates && !exempt {
                    self.check_list(list);
                }
                for element in &list.elements {
                    self.visit(element, exempt);
                }
            }
            ExprKind::Map(entries) => {
                if self.validators.homogeneous_aggregates && !exempt {
                    self.check_map(entries);
                }
                for entry in entries {
                    self.visit(&entry.key, exempt);
                    self.visit(&entry.value, exempt);
                }
            }
            ExprKind::Struct(message) => {
                for field in &message.fields {
                    self.visit(&field.value, exempt);
                }
            }
            ExprKind::Comprehension(fold) => {
                for part in [&fold.range, &fold.accu_init, &fold.condition, &fold.step, &fold.result] {
                    self.visit(part, exempt);
                }
            }
        }
    }

    fn check_call(&mut self, expr: &Expr, call: &Call) {
        if self.validators.literals
            && let Some(argument) = literals::malformed(call)
        {
            self.findings.push((argument, format!("invalid {} argument", call.function)));
        }
        if self.validators.format_strings {
            self.findings.extend(format_string::check(self.checked, expr.id, call));
        }
    }

    /// Reports the first element that differs from the first.
    fn check_list(&mut self, list: &ListExpr) {
        let mut optional = list.optional.iter().peekable();
        let mut first: Option<&Type> = None;
        for (i, element) in list.elements.iter().enumerate() {
            let is_optional = optional.next_if(|at| **at as usize == i).is_some();
            let ty = self.part_type(element, is_optional);
            match first {
                None => first = Some(ty),
                Some(first) if first.is_equivalent(ty) => {}
                Some(first) => {
                    self.findings.push((element.id, type_mismatch(first, ty)));
                    return;
                }
            }
        }
    }

    /// Reports every key and value that differs from the first.
    fn check_map(&mut self, entries: &[MapEntry]) {
        let mut first: Option<(&Type, &Type)> = None;
        for entry in entries {
            let key = self.checked.type_of(entry.key.id);
            let value = self.part_type(&entry.value, entry.optional);
            let Some((first_key, first_value)) = first else {
                first = Some((key, value));
                continue;
            };
            if !first_key.is_equivalent(key) {
                self.findings.push((entry.key.id, type_mismatch(first_key, key)));
            }
            if !first_value.is_equivalent(value) {
                self.findings.push((entry.value.id, type_mismatch(first_value, value)));
            }
        }
    }

    fn part_type(&self, part: &Expr, is_optional: bool) -> &'a Type {
        let ty = self.checked.type_of(part.id);
        if is_optional { ty.optional_value().unwrap_or(ty) } else { ty }
    }
}
