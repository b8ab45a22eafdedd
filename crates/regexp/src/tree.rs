//! The tree of a parsed pattern, with the figures Go's limits are about.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, Look, Repetition};

/// The largest size of a pattern, in instructions of Go's program: 128 MiB of 40 bytes each.
pub(crate) const MAX_SIZE: u64 = (128 << 20) / 40;
/// The largest height of a tree.
pub(crate) const MAX_HEIGHT: u32 = 1000;
/// How often a repetition may repeat, nested ones multiplied.
pub(crate) const MAX_REPEAT: u64 = 1000;

/// A part of a pattern.
#[derive(Debug)]
pub(crate) struct Node {
    pub hir: Hir,
    /// Whether this is a single code point, which is written into its neighbour's node in Go.
    pub is_char: bool,
    /// How many instructions of Go's program the part takes.
    pub size: u64,
    /// How deep the part is in Go's tree.
    pub height: u32,
    /// The product of nested repetitions.
    pub repeats: u64,
}

/// `x*`, `x+`, `x?` or `x{n,m}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Star,
    Plus,
    Quest,
    Counted(u32, Option<u32>),
}

impl Node {
    fn leaf(hir: Hir) -> Node {
        Node { hir, is_char: false, size: 1, height: 1, repeats: 1 }
    }

    pub fn empty() -> Node {
        Node::leaf(Hir::empty())
    }

    pub fn look(look: Look) -> Node {
        Node::leaf(Hir::look(look))
    }

    pub fn any(dot: Dot) -> Node {
        Node::leaf(Hir::dot(dot))
    }

    pub fn class(class: ClassUnicode) -> Node {
        Node::leaf(Hir::class(Class::Unicode(class)))
    }

    /// A code point; none for a surrogate, which matches nothing in UTF-8.
    pub fn char(c: Option<char>, fold: bool) -> Node {
        let hir = match c {
            None => Hir::fail(),
            Some(c) if fold => {
                let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
                // Fails only without Unicode tables, which this crate always has.
                let _ = class.try_case_fold_simple();
                Hir::class(Class::Unicode(class))
            }
            Some(c) => Hir::literal(c.encode_utf8(&mut [0; 4]).as_bytes()),
        };
        Node { is_char: true, ..Node::leaf(hir) }
    }

    /// A group that captures in Go. What is captured is never asked for, so only the figures know of it.
    pub fn capture(self) -> Node {
        Node { is_char: false, size: self.size + 2, height: self.height + 1, ..self }
    }

    pub fn repeat(self, quantifier: Quantifier, greedy: bool) -> Node {
        let sub = self.size;
        let (min, max, size) = match quantifier {
            Quantifier::Star => (0, None, sub + 2),
            Quantifier::Plus => (1, None, sub + 1),
            Quantifier::Quest => (0, Some(1), sub + 1),
            Quantifier::Counted(0, None) => (0, None, sub + 2),
            Quantifier::Counted(min, None) => (min, None, u64::from(min).saturating_mul(sub).saturating_add(1)),
            Quantifier::Counted(min, Some(max)) => {
                (min, Some(max), u64::from(max).saturating_mul(sub).saturating_add(u64::from(max - min)))
            }
        };
        let repeats = match quantifier {
            Quantifier::Counted(_, Some(0)) => 1,
            Quantifier::Counted(min, max) => self.repeats.saturating_mul(u64::from(max.unwrap_or(min).max(1))),
            _ => self.repeats,
        };
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(self.hir) });
        Node { hir, is_char: false, size: size.max(1), height: self.height + 1, repeats }
    }

    pub fn concat(parts: Vec<Node>) -> Node {
        Node::join(parts, 0, Hir::concat)
    }

    pub fn alternate(ways: Vec<Node>) -> Node {
        Node::join(ways, 1, Hir::alternation)
    }

    fn join(mut parts: Vec<Node>, between: u64, make: impl FnOnce(Vec<Hir>) -> Hir) -> Node {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let all_chars = between == 0 && parts.iter().all(|part| part.is_char) && !parts.is_empty();
        let between = between * (parts.len() as u64).saturating_sub(1);
        let size = parts.iter().fold(between, |size, part| size.saturating_add(part.size)).max(1);
        let below = parts.iter().map(|part| part.height).max().unwrap_or(0);
        // A run of code points is one node.
        let height = if all_chars { 1 } else { below + 1 };
        let repeats = parts.iter().map(|part| part.repeats).max().unwrap_or(1);
        let hir = make(parts.into_iter().map(|part| part.hir).collect());
        Node { hir, is_char: false, size, height, repeats }
    }
}
