//! What is wrong with an expression: issues found by the parser, the checker and the validators.
//!
//! [`Issues`] prints as cel-go's `common.Errors` does, so the texts can be compared with those of a Go program:
//!
//! ```
//! use cel::issues::Issues;
//! let mut issues = Issues::new("a +\tb");
//! issues.report_at(4, "undeclared reference to 'b' (in container '')");
//! assert_eq!(issues.to_string(), "ERROR: <input>:1:5: undeclared reference to 'b' (in container '')\n | a + b\n | ....^");
//! ```

use crate::source::{Location, Source};
use std::fmt;
use std::sync::Arc;

/// How many issues are kept and printed; of the others only the number is told.
pub const MAX_ISSUES: usize = 100;

/// The longest source line, in bytes, that is repeated below a message.
const MAX_SNIPPET: usize = 16_384;

/// One thing wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where; [`Location::NONE`] when no place is to blame.
    pub location: Location,
    /// What, without place and source line.
    pub message: String,
}

/// All that is wrong with one source text. Never panics when printed, whatever the locations.
#[derive(Clone, Debug)]
pub struct Issues {
    source: Source,
    issues: Vec<Issue>,
    total: usize,
}

impl Issues {
    /// No issues yet, for the given source text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Issues { source: Source::new(text), issues: Vec::new(), total: 0 }
    }

    /// Adds an issue at a code point of the text. `u32::MAX`, which stands for "no position" in
    /// [`SourceInfo`](crate::ast::SourceInfo), means no place in particular.
    pub fn report_at(&mut self, offset: u32, message: impl Into<String>) {
        let location = if offset == u32::MAX { Location::NONE } else { self.source.location(offset) };
        self.report(location, message);
    }

    /// Adds an issue. Those after the first [`MAX_ISSUES`] are only counted.
    pub fn report(&mut self, location: Location, message: impl Into<String>) {
        self.total += 1;
        if self.total <= MAX_ISSUES {
            self.issues.push(Issue { location, message: message.into() });
        }
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// How many issues were reported, with those not kept.
    pub fn len(&self) -> usize {
        self.total
    }

    /// The issues kept, in the order they were reported.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }

    /// The text the issues are about.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// `Ok(value)` when nothing was reported, otherwise the issues.
    pub fn into_result<T>(self, value: T) -> Result<T, Issues> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    fn fmt_issue(&self, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR: <input>:{}: {}", issue.location, issue.message)?;
        let Some(line) = self.source.line(issue.location.line).filter(|l| l.len() <= MAX_SNIPPET) else {
            return Ok(());
        };
        f.write_str("\n | ")?;
        for c in line.chars() {
            fmt::Write::write_char(f, if c == '\t' { ' ' } else { c })?;
        }
        f.write_str("\n | ")?;
        let mut chars = line.chars();
        for c in chars.by_ref().take(usize::try_from(issue.location.column).unwrap_or(0)) {
            f.write_str(if c.is_ascii() { "." } else { "\u{ff0e}" })?;
        }
        f.write_str(if chars.next().is_none_or(|c| c.is_ascii()) { "^" } else { "\u{ff3e}" })
    }
}

impl fmt::Display for Issues {
    /// All issues by line and column, one below the other, each with its source line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&Issue> = self.issues.iter().collect();
        sorted.sort_by_key(|issue| issue.location);
        for (i, issue) in sorted.into_iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            self.fmt_issue(issue, f)?;
        }
        if self.total > MAX_ISSUES {
            write!(f, "\n{} more errors were truncated", self.total - MAX_ISSUES)?;
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, places: &[(u32, &str)]) -> String {
        let mut issues = Issues::new(text);
        for (offset, message) in places {
            issues.report_at(*offset, *message);
        }
        issues.to_string()
    }

    #[test]
    fn issues_are_sorted_by_place() {
        assert_eq!(
            printed("a\nbc", &[(3, "second"), (0, "first"), (u32::MAX, "nowhere")]),
            "ERROR: <input>:-1:0: nowhere\nERROR: <input>:1:1: first\n | a\n | ^\nERROR: <input>:2:2: second\n | bc\n | .^"
        );
    }

    #[test]
    fn wide_code_points_get_full_width_marks() {
        assert_eq!(printed("é\té", &[(2, "m")]), "ERROR: <input>:1:3: m\n | é é\n | \u{ff0e}.\u{ff3e}");
    }

    #[test]
    fn the_mark_stops_behind_the_last_code_point() {
        assert_eq!(printed("ab", &[(9, "m")]), "ERROR: <input>:1:10: m\n | ab\n | ..^");
    }

    #[test]
    fn an_empty_text_and_a_long_line_are_not_repeated() {
        assert_eq!(printed("", &[(0, "m")]), "ERROR: <input>:1:1: m");
        assert_eq!(printed(&"x".repeat(MAX_SNIPPET + 1), &[(0, "m")]), "ERROR: <input>:1:1: m");
    }

    #[test]
    fn issues_after_the_hundredth_are_counted() {
        let many: Vec<(u32, &str)> = (0..103).map(|_| (0, "m")).collect();
        let text = printed("x", &many);
        assert!(text.ends_with("\n3 more errors were truncated"), "{text}");
        assert_eq!(text.matches("ERROR").count(), 100);
    }
}
