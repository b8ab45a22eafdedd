//! Collects what is wrong, and ends the work when it is too much.

use crate::issues::Issues;
use crate::source::Location;
use std::sync::Arc;

/// How many syntax errors are reported before the parser gives up.
const MAX_SYNTAX_ERRORS: usize = 100;

/// The work ends here; all there is to say was reported.
#[derive(Debug)]
pub(super) struct Halt;

/// Collects what is wrong.
pub(super) struct Report<'t> {
    text: &'t str,
    issues: Issues,
    syntax_errors: usize,
}

impl<'t> Report<'t> {
    pub fn new(text: &'t Arc<str>) -> Self {
        Report { text, issues: Issues::new(Arc::clone(text)), syntax_errors: 0 }
    }

    /// Something the grammar does not allow, at a byte of the text.
    pub fn syntax_error(&mut self, at: u32, message: String) -> Result<(), Halt> {
        if self.syntax_errors >= MAX_SYNTAX_ERRORS {
            self.error(Some(at), format!("Syntax error: More than {MAX_SYNTAX_ERRORS} syntax errors"));
            return Err(Halt);
        }
        self.syntax_errors += 1;
        self.error(Some(at), format!("Syntax error: {}", reworded(message)));
        Ok(())
    }

    /// Something else, at a byte of the text or, for `None`, at a node that has no place.
    pub fn error(&mut self, at: Option<u32>, message: impl Into<String>) {
        let location =
            at.map_or(Location { line: 1, column: -1 }, |at| super::stream::location(self.text, &self.issues, at));
        self.issues.report(location, message);
    }

    /// A limit was exceeded.
    pub fn limit(&mut self, message: impl Into<String>) -> Halt {
        self.issues.report(Location::NONE, message);
        Halt
    }

    pub fn finish(self) -> Issues {
        self.issues
    }
}

/// cel-go words the selection of a field named like a constant its own way.
fn reworded(message: String) -> String {
    let Some((before, input)) = message.split_once("no viable alternative at input '") else {
        return message;
    };
    for word in ["true", "false", "null"] {
        let mut chars = input.chars();
        if chars.next().is_some_and(|c| c != '\n')
            && let Some(after) = chars.as_str().strip_prefix(word).and_then(|rest| rest.strip_prefix('\''))
        {
            return format!("{before}mismatched input '{word}' expecting IDENTIFIER{after}");
        }
    }
    message
}
