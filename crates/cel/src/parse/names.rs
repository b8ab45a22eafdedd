//! Names that many trees share, made once.

use crate::operators as op;
use crate::parse::lexer::Kind;
use std::sync::{Arc, LazyLock};

/// The hidden accumulator of the macros' expansions.
pub(crate) const ACCUMULATOR: &str = "@result";

macro_rules! names {
    ($($field:ident = $text:expr;)*) => {
        /// The shared names.
        #[derive(Debug)]
        pub(crate) struct Names {
            $(pub $field: Arc<str>,)*
        }

        /// The shared names.
        pub(crate) static NAMES: LazyLock<Names> = LazyLock::new(|| Names { $($field: Arc::from($text),)* });
    };
}

names! {
    accumulator = ACCUMULATOR;
    unused = "#unused";
    conditional = op::CONDITIONAL;
    and = op::LOGICAL_AND;
    or = op::LOGICAL_OR;
    not = op::LOGICAL_NOT;
    negate = op::NEGATE;
    equals = op::EQUALS;
    not_equals = op::NOT_EQUALS;
    less = op::LESS;
    less_equals = op::LESS_EQUALS;
    greater = op::GREATER;
    greater_equals = op::GREATER_EQUALS;
    is_in = op::IN;
    add = op::ADD;
    subtract = op::SUBTRACT;
    multiply = op::MULTIPLY;
    divide = op::DIVIDE;
    modulo = op::MODULO;
    index = op::INDEX;
    opt_index = op::OPT_INDEX;
    opt_select = op::OPT_SELECT;
    not_strictly_false = op::NOT_STRICTLY_FALSE;
    map_insert = "cel.@mapInsert";
    has_value = "hasValue";
    value = "value";
    optional_of = "optional.of";
    optional_none = "optional.none";
}

impl Names {
    /// The function of a relation, if the word is one.
    pub fn relation(&self, kind: Kind) -> Option<&Arc<str>> {
        Some(match kind {
            Kind::Equals => &self.equals,
            Kind::NotEquals => &self.not_equals,
            Kind::Less => &self.less,
            Kind::LessEquals => &self.less_equals,
            Kind::Greater => &self.greater,
            Kind::GreaterEquals => &self.greater_equals,
            Kind::In => &self.is_in,
            _ => return None,
        })
    }

    /// The function of a sum, if the word is one.
    pub fn sum(&self, kind: Kind) -> Option<&Arc<str>> {
        match kind {
            Kind::Plus => Some(&self.add),
            Kind::Minus => Some(&self.subtract),
            _ => None,
        }
    }

    /// The function of a product, if the word is one.
    pub fn product(&self, kind: Kind) -> Option<&Arc<str>> {
        match kind {
            Kind::Star => Some(&self.multiply),
            Kind::Slash => Some(&self.divide),
            Kind::Percent => Some(&self.modulo),
            _ => None,
        }
    }
}

/// Whether the word may not name a variable or a function.
pub fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "false"
            | "for"
            | "function"
            | "if"
            | "import"
            | "in"
            | "let"
            | "loop"
            | "package"
            | "namespace"
            | "null"
            | "return"
            | "true"
            | "var"
            | "void"
            | "while"
    )
}
