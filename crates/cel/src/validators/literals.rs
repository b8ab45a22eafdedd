//! Literal arguments that could never be converted or compiled.

use crate::ast::{Call, ExprId, ExprKind, Literal};
use crate::value::{Duration, Timestamp};

/// The first argument of a call of `duration`, `timestamp` or `matches`, if it is a literal the function refuses.
///
/// Only the first argument is looked at, as in cel-go: in `matches(text, pattern)` that is the text.
pub(super) fn malformed(call: &Call) -> Option<ExprId> {
    let check: fn(&Literal) -> bool = match &*call.function {
        "duration" => is_duration,
        "timestamp" => is_timestamp,
        "matches" => is_regex,
        _ => return None,
    };
    let argument = call.args.first()?;
    match &argument.kind {
        ExprKind::Literal(literal) if !check(literal) => Some(argument.id),
        _ => None,
    }
}

fn is_duration(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => Duration::parse(text).is_some(),
        // `duration(int)` and, for null goes with durations, `duration(null)` are declared but always fail.
        _ => false,
    }
}

fn is_timestamp(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => Timestamp::parse(text).is_some_and(Timestamp::in_range),
        Literal::Int(seconds) => Timestamp::new(*seconds, 0, 0).in_range(),
        _ => false,
    }
}

fn is_regex(literal: &Literal) -> bool {
    match literal {
        Literal::String(pattern) => regexp::Regexp::new(pattern).is_ok(),
        _ => true,
    }
}
