//! From text to tree.
//!
//! [`parse`] reads cel-go's grammar with optional syntax (`a.?b`, `[?e]`, `{?k: v}`), expands the macros, and notes the
//! position of every node. A right text takes one quick pass of a hand-written parser. A wrong one is read again by
//! a second parser, which does what the parser generated for cel-go does on errors, so that the messages are the same
//! to the letter.
//!
//! ```
//! use cel::parse::{ParserOptions, parse};
//!
//! let ast = parse("self.replicas <= 3", &ParserOptions::default())?;
//! assert_eq!(ast.source.positions[ast.expr.id as usize], 14);
//!
//! let issues = parse("1 +", &ParserOptions::default()).unwrap_err();
//! assert!(issues.to_string().starts_with("ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting "));
//! # Ok::<(), cel::issues::Issues>(())
//! ```

mod builder;
mod fast;
mod lexer;
mod literal;
mod macros;
mod names;
mod recover;

pub use names::is_reserved;

use crate::ast::Ast;
use crate::issues::Issues;
use crate::source::Location;
use std::sync::Arc;

/// How many rules of one kind may be under way, and how deep a tree may be.
const MAX_DEPTH: u32 = 250;

/// The longest text, in code points.
const MAX_CODE_POINTS: usize = 100_000;

/// What the parser does besides parsing.
#[derive(Clone, Debug, Default)]
pub struct ParserOptions {
    /// Keep the macro calls as they were written in [`SourceInfo::macro_calls`](crate::ast::SourceInfo::macro_calls), for
    /// [`unparse`](crate::unparse::unparse). Costs a copy of each macro's arguments.
    pub keep_macro_calls: bool,
}

/// Parses an expression.
///
/// The tree's depth is bounded (some hundreds of nodes), so walking it recursively is safe.
///
/// # Errors
///
/// Everything that is wrong with the text, as cel-go words it. When there is anything, there is no tree.
pub fn parse(source: &str, options: &ParserOptions) -> Result<Ast, Issues> {
    let text: Arc<str> = Arc::from(source);
    if source.len() > MAX_CODE_POINTS {
        let size = source.chars().count();
        if size > MAX_CODE_POINTS {
            let mut issues = Issues::new(text);
            let limit = MAX_CODE_POINTS;
            issues.report(
                Location::NONE,
                format!("expression code point size exceeds limit: size: {size}, limit {limit}"),
            );
            return Err(issues);
        }
    }
    match fast::parse(&text, options.keep_macro_calls) {
        Ok(ast) => Ok(ast),
        Err(fast::GiveUp) => Err(recover::explain(&text)),
    }
}
