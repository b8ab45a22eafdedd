//! Literal arguments that could never be converted or compiled.

use crate::ast::{Call, ExprId, ExprKind, Literal};

/// The first argument of a call of `duration`, `timestamp` or `matches`, if it is a literal the function refuses.
///
/// Only the first argument is looked at, as in cel-go: in `matches(text, pattern)` that is the text.
pub(super) fn malformed(call: &Call) -> Option<ExprId> {
    let check: fn(&Literal) -> bool = match &*call.function {
        "matches" => is_regex,
        _ => return None,
    };
    let argument = call.args.first()?;
    match &argument.kind {
        ExprKind::Literal(literal) if !check(literal) => Some(argument.id),
        _ => None,
    }
}

fn is_regex(literal: &Literal) -> bool {
    match literal {
        Literal::String(pattern) => regexp::Regexp::new(pattern).is_ok(),
        _ => true,
    }
}
