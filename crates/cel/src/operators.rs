//! The internal names of operators, as they appear in trees and in error messages.

/// `c ? t : f`
pub const CONDITIONAL: &str = "_?_:_";
/// `a && b`
pub const LOGICAL_AND: &str = "_&&_";
/// `a || b`
pub const LOGICAL_OR: &str = "_||_";
/// `!a`
pub const LOGICAL_NOT: &str = "!_";
/// `a == b`
pub const EQUALS: &str = "_==_";
/// `a != b`
pub const NOT_EQUALS: &str = "_!=_";
/// `a < b`
pub const LESS: &str = "_<_";
/// `a <= b`
pub const LESS_EQUALS: &str = "_<=_";
/// `a > b`
pub const GREATER: &str = "_>_";
/// `a >= b`
pub const GREATER_EQUALS: &str = "_>=_";
/// `a + b`
pub const ADD: &str = "_+_";
/// `a - b`
pub const SUBTRACT: &str = "_-_";
/// `a * b`
pub const MULTIPLY: &str = "_*_";
/// `a / b`
pub const DIVIDE: &str = "_/_";
/// `a % b`
pub const MODULO: &str = "_%_";
/// `-a`
pub const NEGATE: &str = "-_";
/// `a[b]`
pub const INDEX: &str = "_[_]";
/// `a[?b]`
pub const OPT_INDEX: &str = "_[?_]";
/// `a.?b`
pub const OPT_SELECT: &str = "_?._";
/// `a in b`
pub const IN: &str = "@in";
/// Holds the loop of a comprehension until its condition is false; never written by people.
pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";

/// How tightly a binary or the conditional operator binds; a smaller number binds tighter. None for other functions.
pub fn precedence(function: &str) -> Option<u8> {
    Some(match function {
        CONDITIONAL => 8,
        LOGICAL_OR => 7,
        LOGICAL_AND => 6,
        EQUALS | NOT_EQUALS | LESS | LESS_EQUALS | GREATER | GREATER_EQUALS | IN => 5,
        ADD | SUBTRACT => 4,
        MULTIPLY | DIVIDE | MODULO => 3,
        _ => return None,
    })
}

/// The way a unary or binary operator is written. None for other functions.
pub fn symbol(function: &str) -> Option<&'static str> {
    Some(match function {
        LOGICAL_AND => "&&",
        LOGICAL_OR => "||",
        LOGICAL_NOT => "!",
        EQUALS => "==",
        NOT_EQUALS => "!=",
        LESS => "<",
        LESS_EQUALS => "<=",
        GREATER => ">",
        GREATER_EQUALS => ">=",
        ADD => "+",
        SUBTRACT | NEGATE => "-",
        MULTIPLY => "*",
        DIVIDE => "/",
        MODULO => "%",
        IN => "in",
        _ => return None,
    })
}
