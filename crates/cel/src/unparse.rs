//! From tree to text.
//!
//! The text is laid out as cel-go's unparser does it: one blank around operators, double quotes, parentheses only where
//! they count, a line break behind a `&&` or `||` past column 80. Unlike cel-go's, it always parses to the tree it came
//! from.
//!
//! Macros are printed as calls if the parser kept them:
//!
//! ```
//! use cel::parse::{ParserOptions, parse};
//! use cel::unparse::unparse;
//!
//! let ast = parse("self.all(x,(x>0)&&has(x.y))", &ParserOptions { keep_macro_calls: true })?;
//! assert_eq!(unparse(&ast)?, "self.all(x, x > 0 && has(x.y))");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::ast::{Ast, Call, Expr, ExprKind, Literal, SourceInfo};
use crate::operators as op;
use std::fmt::{self, Write};

/// Where a line is broken.
const WRAP_COLUMN: usize = 80;

/// A tree that no text stands for: the expansion of a macro whose call was not kept, or a constant like NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expression cannot be written as text")
    }
}

impl std::error::Error for Unprintable {}

type Result<T> = std::result::Result<T, Unprintable>;

/// Prints a parsed expression.
///
/// # Errors
///
/// When no text stands for the tree; see [`Unprintable`].
pub fn unparse(ast: &Ast) -> Result<String> {
    unparse_part(&ast.expr, &ast.source)
}

/// Prints a part of a parsed expression.
///
/// # Errors
///
/// When no text stands for the tree; see [`Unprintable`].
pub fn unparse_part(expr: &Expr, source: &SourceInfo) -> Result<String> {
    let mut printer = Printer { source, out: String::new(), line_start: 0 };
    printer.expr(expr)?;
    Ok(printer.out)
}

struct Printer<'a> {
    source: &'a SourceInfo,
    out: String,
    line_start: usize,
}

impl<'a> Printer<'a> {
    /// What is printed for a node: the macro call it came from, or itself.
    fn written(&self, expr: &'a Expr) -> &'a Expr {
        self.source.macro_calls.get(&expr.id).unwrap_or(expr)
    }

    /// The call a node is, unless it is printed as a macro.
    fn call_of(&self, expr: &'a Expr) -> Option<&'a Call> {
        match &expr.kind {
            ExprKind::Call(call) if !self.source.macro_calls.contains_key(&expr.id) => Some(call),
            _ => None,
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn expr(&mut self, expr: &'a Expr) -> Result<()> {
        let expr = self.written(expr);
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal)?,
            ExprKind::Ident(name) => self.put(name),
            ExprKind::Select(select) if select.test_only => {
                self.put("has(");
                self.receiver(&select.operand)?;
                self.put(".");
                self.put(&select.field);
                self.put(")");
            }
            ExprKind::Select(select) => {
                self.receiver(&select.operand)?;
                self.put(".");
                self.put(&select.field);
            }
            ExprKind::Call(call) => self.call(call)?,
            ExprKind::List(list) => {
                self.put("[");
                for (i, element) in list.elements.iter().enumerate() {
                    self.separator(i);
                    self.question(u32::try_from(i).is_ok_and(|i| list.optional.contains(&i)));
                    self.expr(element)?;
                }
                self.put("]");
            }
            ExprKind::Map(entries) => {
                self.put("{");
                for (i, entry) in entries.iter().enumerate() {
                    self.separator(i);
                    self.question(entry.optional);
                    self.expr(&entry.key)?;
                    self.put(": ");
                    self.expr(&entry.value)?;
                }
                self.put("}");
            }
            ExprKind::Struct(message) => {
                self.put(&message.type_name);
                self.put("{");
                for (i, field) in message.fields.iter().enumerate() {
                    self.separator(i);
                    self.question(field.optional);
                    self.put(&field.name);
                    self.put(": ");
                    self.expr(&field.value)?;
                }
                self.put("}");
            }
            ExprKind::Comprehension(_) => return Err(Unprintable),
        }
        Ok(())
    }

    fn separator(&mut self, index: usize) {
        if index > 0 {
            self.put(", ");
        }
    }

    fn question(&mut self, optional: bool) {
        if optional {
            self.put("?");
        }
    }

    fn nested(&mut self, expr: &'a Expr, nested: bool) -> Result<()> {
        if nested {
            self.put("(");
        }
        self.expr(expr)?;
        if nested {
            self.put(")");
        }
        Ok(())
    }

    fn call(&mut self, call: &'a Call) -> Result<()> {
        let function = &*call.function;
        match (function, call.args.as_slice(), &call.target) {
            (op::CONDITIONAL, [condition, yes, no], None) => {
                self.nested(condition, self.is_wide(condition))?;
                self.put(" ? ");
                self.nested(yes, self.is_wide(yes))?;
                self.put(" : ");
                self.nested(no, self.is_wide(no))
            }
            (op::OPT_SELECT, [operand, field], None) => {
                let ExprKind::Literal(Literal::String(field)) = &field.kind else { return Err(Unprintable) };
                self.receiver(operand)?;
                self.put(".?");
                self.put(field);
                Ok(())
            }
            (op::INDEX | op::OPT_INDEX, [operand, index], None) => {
                self.receiver(operand)?;
                self.put(if function == op::INDEX { "[" } else { "[?" });
                self.expr(index)?;
                self.put("]");
                Ok(())
            }
            (op::LOGICAL_NOT | op::NEGATE, [operand], None) => {
                self.put(if function == op::NEGATE { "-" } else { "!" });
                self.nested(operand, self.is_wide(operand) || self.is_signed(operand, function == op::NEGATE))
            }
            (op::LOGICAL_AND | op::LOGICAL_OR, [left, right], None) => self.chain(function, left, right),
            (_, [left, right], None) => match op::symbol(function) {
                Some(symbol) => {
                    self.nested(left, self.is_looser(function, left))?;
                    self.infix(function, symbol);
                    self.nested(right, self.is_looser(function, right) || self.is_peer(function, right))
                }
                None => self.function(call),
            },
            _ => self.function(call),
        }
    }

    fn function(&mut self, call: &'a Call) -> Result<()> {
        if let Some(target) = &call.target {
            self.receiver(target)?;
            self.put(".");
        }
        self.put(&call.function);
        self.put("(");
        for (i, arg) in call.args.iter().enumerate() {
            self.separator(i);
            self.expr(arg)?;
        }
        self.put(")");
        Ok(())
    }

    /// What a selection, an index or a method applies to.
    fn receiver(&mut self, expr: &'a Expr) -> Result<()> {
        let is_operation = self.call_of(expr).is_some_and(|call| {
            call.target.is_none() && (op::precedence(&call.function).is_some() || op::symbol(&call.function).is_some())
        });
        self.nested(expr, is_operation)
    }

    /// Prints `&&` or `||`. A chain that the parser would balance to this very tree needs no parentheses.
    fn chain(&mut self, function: &str, left: &'a Expr, right: &'a Expr) -> Result<()> {
        let is_balanced = self.chain_length(function, left, right).is_some();
        let symbol = op::symbol(function).unwrap_or_default();
        let same = |printer: &Self, side| printer.call_of(side).is_some_and(|call| *call.function == *function);
        self.nested(left, self.is_looser(function, left) || (!is_balanced && same(self, left)))?;
        self.infix(function, symbol);
        self.nested(right, self.is_looser(function, right) || (!is_balanced && same(self, right)))
    }

    /// How many terms a chain has that the parser would make this tree of; none for another tree.
    fn chain_length(&self, function: &str, left: &'a Expr, right: &'a Expr) -> Option<usize> {
        let length = |side| match self.call_of(side) {
            Some(call) if *call.function == *function => match call.args.as_slice() {
                [left, right] => self.chain_length(function, left, right),
                _ => None,
            },
            _ => Some(1),
        };
        let (left, right) = (length(left)?, length(right)?);
        (left == (left + right - 1) / 2 + 1).then_some(left + right)
    }

    fn infix(&mut self, function: &str, symbol: &str) {
        self.put(" ");
        let line = (self.out.len() - 1).saturating_sub(self.line_start) + function.len();
        let wraps = line >= WRAP_COLUMN && matches!(function, op::LOGICAL_AND | op::LOGICAL_OR);
        if wraps {
            self.line_start = self.out.len() - 1;
        }
        self.put(symbol);
        self.put(if wraps { "\n" } else { " " });
    }

    /// Whether this is a call of two or more arguments, which cel-go puts in parentheses in some places.
    fn is_wide(&self, expr: &'a Expr) -> bool {
        self.call_of(expr).is_some_and(|call| call.args.len() >= 2)
    }

    /// Whether a sign or negation before this would change its meaning.
    fn is_signed(&self, expr: &'a Expr, minus: bool) -> bool {
        let is_unary = self.call_of(expr).is_some_and(|call| matches!(&*call.function, op::NEGATE | op::LOGICAL_NOT));
        is_unary || (minus && self.starts_with_number(expr))
    }

    /// Whether the text starts with a number, which would take a minus before it for its sign.
    fn starts_with_number(&self, expr: &'a Expr) -> bool {
        let mut at = expr;
        loop {
            at = match &self.written(at).kind {
                ExprKind::Literal(Literal::Int(_) | Literal::Double(_)) => return true,
                ExprKind::Select(select) if !select.test_only => &select.operand,
                ExprKind::Call(call) => match (&call.target, call.args.first()) {
                    (Some(target), _) => target,
                    (None, Some(first)) if matches!(&*call.function, op::INDEX | op::OPT_INDEX | op::OPT_SELECT) => {
                        first
                    }
                    _ => return false,
                },
                _ => return false,
            };
        }
    }

    fn is_looser(&self, function: &str, expr: &'a Expr) -> bool {
        self.call_of(expr).is_some_and(|call| op::precedence(&call.function) > op::precedence(function))
    }

    fn is_peer(&self, function: &str, expr: &'a Expr) -> bool {
        self.call_of(expr).is_some_and(|call| op::precedence(&call.function) == op::precedence(function))
    }

    fn literal(&mut self, literal: &Literal) -> Result<()> {
        let out = &mut self.out;
        let written = match literal {
            Literal::Null => write!(out, "null"),
            Literal::Bool(value) => write!(out, "{value}"),
            Literal::Int(value) => write!(out, "{value}"),
            Literal::Uint(value) => write!(out, "{value}u"),
            Literal::Double(value) if value.is_finite() => double(out, *value),
            Literal::Double(_) => return Err(Unprintable),
            Literal::String(value) => quoted(out, value),
            Literal::Bytes(value) => {
                out.push_str("b\"");
                value.iter().try_for_each(|b| write!(out, "\\{b:03o}")).and_then(|()| out.write_str("\""))
            }
        };
        written.map_err(|fmt::Error| Unprintable)
    }
}

/// The shortest form that reads as the same double, as Go's `%g` with at least one decimal.
fn double(out: &mut String, value: f64) -> fmt::Result {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        write!(out, "{value:?}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs())
    }
}

fn quoted(out: &mut String, text: &str) -> fmt::Result {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' ' => out.push(' '),
            _ if c.is_ascii_control() => write!(out, "\\x{:02x}", u32::from(c))?,
            _ if c.is_control() || c.is_whitespace() => write!(out, "\\u{:04x}", u32::from(c))?,
            _ => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{ParserOptions, parse};
    use proptest::prelude::*;

    fn options() -> ParserOptions {
        ParserOptions { keep_macro_calls: true }
    }

    fn printed(text: &str) -> String {
        unparse(&parse(text, &options()).expect(text)).expect(text)
    }

    #[test]
    fn texts_are_laid_out() {
        for (text, expected) in [
            ("a+b*c-(d-e)", "a + b * c - (d - e)"),
            ("(a+b)*c", "(a + b) * c"),
            ("a&&(b||c)", "a && (b || c)"),
            ("a && (b && c)", "a && (b && c)"),
            ("a && b && c && d", "a && b && c && d"),
            ("a?b:c?d:e", "a ? b : (c ? d : e)"),
            ("-(1)", "-(1)"),
            ("-(-1)", "-(-1)"),
            ("!(!a)", "!(!a)"),
            ("(-a).b", "(-a).b"),
            ("-(1.f())", "-(1.f())"),
            ("(a+b).c[?0].?d", "(a + b).c[?0].?d"),
            ("[1,?b]", "[1, ?b]"),
            ("{'a':1,?b:c}", "{\"a\": 1, ?b: c}"),
            (".a.B{c:1,?d:e}", ".a.B{c: 1, ?d: e}"),
            ("1e100 + 2.0 + 1e-7", "1e+100 + 2.0 + 1e-07"),
            ("b'\\x00é' + b''", "b\"\\000\\303\\251\" + b\"\""),
            ("'\\n\\u00a0\\'\"é'", "\"\\n\\u00a0'\\\"é\""),
            ("a.exists_one(x,has(x.y)&&x.map(z,z>0,-z)==[])", "a.exists_one(x, has(x.y) && x.map(z, z > 0, -z) == [])"),
            ("!a.all(x, x)", "!a.all(x, x)"),
            ("a.optMap(x, x + 1).orValue(0)", "a.optMap(x, x + 1).orValue(0)"),
        ] {
            assert_eq!(printed(text), expected);
        }
    }

    #[test]
    fn long_lines_break_behind_logical_operators() {
        let name = "a".repeat(60);
        assert_eq!(printed(&format!("{name} + {name} && b || c")), format!("{name} + {name} &&\nb || c"));
    }

    #[test]
    fn expansions_of_unknown_macros_are_unprintable() {
        let ast = parse("a.all(x, x)", &ParserOptions::default()).expect("a macro");
        assert_eq!(unparse(&ast), Err(Unprintable));
    }

    /// The tree without identities and positions.
    fn shape(expr: &Expr) -> String {
        format!("{expr:?}").split(" id: ").map(|part| part.split_once(',').map_or(part, |(_, rest)| rest)).collect()
    }

    fn text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "[a-z]{1,3}".prop_filter("not reserved", |w| !crate::parse::is_reserved(w)),
            any::<i64>().prop_map(|i| i.to_string()),
            any::<u64>().prop_map(|i| format!("{i}u")),
            (-1e300..1e300).prop_map(|d: f64| format!("{d:e}")),
            any::<String>().prop_map(|s| {
                let mut out = String::new();
                quoted(&mut out, &s).expect("a string takes all");
                out
            }),
            proptest::collection::vec(any::<u8>(), 0..4)
                .prop_map(|b| format!("b'{}'", b.iter().map(|b| format!("\\x{b:02x}")).collect::<String>())),
            Just("null".to_owned()),
            Just("true".to_owned()),
        ];
        leaf.prop_recursive(6, 40, 4, |inner| {
            let op = proptest::sample::select(vec!["+", "-", "*", "/", "%", "==", "<", "in", "&&", "||"]);
            let wrap = prop_oneof![inner.clone(), inner.clone().prop_map(|e| format!("({e})"))];
            prop_oneof![
                (wrap.clone(), op, wrap.clone()).prop_map(|(a, o, b)| format!("{a} {o} {b}")),
                (wrap.clone(), wrap.clone(), wrap.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : {c}")),
                wrap.clone().prop_map(|a| format!("!({a})")),
                wrap.clone().prop_map(|a| format!("-({a})")),
                wrap.clone().prop_map(|a| format!("({a}).f")),
                wrap.clone().prop_map(|a| format!("({a}).?f")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("({a}).m({b}, 1)")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("[{a}, ?{b}]")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("M.N{{x: {a}, ?y: {b}}}")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("({a}).all(x, {b})")),
                (wrap.clone(), wrap.clone()).prop_map(|(a, b)| format!("({a}).optMap(x, {b})")),
                wrap.prop_map(|a| format!("has(({a}).f)")),
            ]
        })
    }

    proptest! {
        #[test]
        fn printed_text_parses_to_the_same_tree(text in text()) {
            let ast = parse(&text, &options()).map_err(|e| TestCaseError::fail(e.to_string()))?;
            let again = unparse(&ast).map_err(|e| TestCaseError::fail(e.to_string()))?;
            let reparsed = parse(&again, &options()).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(shape(&ast.expr), shape(&reparsed.expr), "{} printed as {}", text, again);
        }
    }
}
