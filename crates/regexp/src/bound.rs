//! How large a program can get, told from the tree alone.

use regex_syntax::hir::{Class, Hir, HirKind};

/// More than any state of a program takes, with what it points to, in bytes.
const STATE: u64 = 64;
/// More states than one range of code points takes: it is a dozen sequences of UTF-8 at most, of up to four bytes.
const STATES_OF_RANGE: u64 = 48;

/// The most memory that the program of `hir` may take, in bytes. Never too little, often far too much.
pub(crate) fn bound(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => STATE,
        HirKind::Literal(literal) => STATE.saturating_mul(literal.0.len() as u64 + 1),
        HirKind::Class(Class::Bytes(class)) => STATE.saturating_mul(class.ranges().len() as u64 + 1),
        HirKind::Class(Class::Unicode(class)) => {
            (STATE * STATES_OF_RANGE).saturating_mul(class.ranges().len() as u64 + 1)
        }
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min)) + 2;
            bound(&repetition.sub).saturating_add(2 * STATE).saturating_mul(times)
        }
        HirKind::Capture(capture) => bound(&capture.sub).saturating_add(2 * STATE),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(STATE, |sum, part| sum.saturating_add(bound(part)).saturating_add(STATE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build, parse};

    #[test]
    fn programs_are_never_larger() {
        let patterns = [
            "",
            "abc",
            "^[a-z0-9-]{3,200}$",
            r"\pL{1,50}",
            "(?i)(a|bc|[^d-f])*x{7}",
            r"(((\w{2}){3}){4}){5}",
            r"[^\x00]",
        ];
        for pattern in patterns {
            let hir = parse::parse(pattern).unwrap();
            let most = bound(&hir);
            let took = build(&hir).unwrap().memory_usage();
            // The program is held forwards and backwards, beside what does not depend on its size.
            assert!(took as u64 <= 2 * most + (64 << 10), "{pattern}: {took} of {most}");
        }
    }
}
