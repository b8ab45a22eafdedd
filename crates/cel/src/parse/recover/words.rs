//! Sets of kinds of words.

use crate::parse::lexer::Kind;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of kinds of words, and of the mark for "the rule may end here".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Words(u64);

impl Words {
    /// Nothing.
    pub const NONE: Words = Words(0);
    /// The end of the rule.
    pub const RULE_END: Words = Words(1 << 63);

    /// A set of some kinds.
    pub const fn of(kinds: &[Kind]) -> Words {
        let (mut bits, mut i) = (0, 0);
        while i < kinds.len() {
            bits |= 1 << kinds[i] as u8;
            i += 1;
        }
        Words(bits)
    }

    pub fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Whether the rule may end here.
    pub fn has_rule_end(self) -> bool {
        self.0 & Self::RULE_END.0 != 0
    }

    pub fn without_rule_end(self) -> Words {
        Words(self.0 & !Self::RULE_END.0)
    }

    /// The kind with the smallest number.
    pub fn first(self) -> Kind {
        Kind::ALL.iter().copied().find(|&kind| self.has(kind)).unwrap_or(Kind::Eof)
    }
}

impl BitOr for Words {
    type Output = Words;
    fn bitor(self, other: Words) -> Words {
        Words(self.0 | other.0)
    }
}

impl BitOrAssign for Words {
    fn bitor_assign(&mut self, other: Words) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Words {
    /// The kinds by number; in braces if there are several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = Kind::ALL.iter().filter(|k| self.has(**k)).map(|k| k.to_string()).collect();
        match names.as_slice() {
            [name] => f.write_str(name),
            _ => write!(f, "{{{}}}", names.join(", ")),
        }
    }
}
