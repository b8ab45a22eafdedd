//! Regular expressions in Go's RE2 syntax, with Go's error texts and Go's meaning.
//!
//! Kubernetes compiles the patterns of schemas and of CEL's `matches` with Go's `regexp` package. Rust's `regex` crate
//! reads another dialect: `\d` and `\b` know Unicode, `[a&&b]` is an intersection, `\Q..\E` and `\123` are errors. This
//! crate parses Go's syntax itself and hands the result to `regex-automata`, so patterns mean here what they mean there,
//! and a wrong one is refused in the same words:
//!
//! ```
//! use regexp::Regexp;
//!
//! let version = Regexp::new(r"^v\d+(?:(alpha|beta)\d+)?$")?;
//! assert!(version.is_match("v1beta2") && !version.is_match("v١"));
//!
//! let error = Regexp::new("a(b").unwrap_err();
//! assert_eq!(error.to_string(), "error parsing regexp: missing closing ): `a(b`");
//! # Ok::<(), regexp::Error>(())
//! ```
//!
//! Matching takes time linear in the text; the size of a compiled pattern is limited. The program that matches is made
//! when a text is first held against the pattern: most patterns of a cluster's definitions never see one. Names of Unicode categories and
//! scripts are those of Go 1.24.

mod bound;
mod class;
mod groups;
mod parse;
mod tree;

pub use groups::Groups;

use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::Hir;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The most memory a compiled pattern may take, in bytes.
const MAX_PROGRAM: usize = 32 << 20;
/// Patterns whose programs can take no more than this, in bytes, certainly keep the limit.
const SURELY_SMALL: u64 = MAX_PROGRAM as u64 / 8;

/// A compiled regular expression. Cheap to clone and free to share between threads.
#[derive(Clone, Debug)]
pub struct Regexp(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    pattern: String,
    /// What matches, once it has been asked for; none for a pattern that matches nothing because it is too large, which
    /// [`Regexp::new`] has ruled out.
    program: OnceLock<Option<meta::Regex>>,
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

impl Error {
    fn new(what: &str, part: &str) -> Self {
        Error(format!("error parsing regexp: {what}: `{part}`"))
    }
}

impl Regexp {
    /// Compiles `pattern`, written in Go's syntax.
    ///
    /// # Errors
    ///
    /// Those of Go's `regexp.Compile`. A pattern whose program would take more than 32 MiB, some of which Go takes, is
    /// `expression too large`.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let hir = parsed(pattern)?;
        let program = OnceLock::new();
        if bound::bound(&hir) > SURELY_SMALL {
            let _ = program.set(Some(build(&hir).ok_or_else(|| too_large(pattern))?));
        }
        Ok(Regexp(Arc::new(Compiled { pattern: pattern.to_owned(), program })))
    }

    /// The pattern as given.
    pub fn as_str(&self) -> &str {
        &self.0.pattern
    }

    fn program(&self) -> Option<&meta::Regex> {
        // Parsing once more costs less than it would to keep the tree.
        self.0.program.get_or_init(|| build(&parsed(&self.0.pattern).ok()?)).as_ref()
    }

    /// Whether `text` holds a match anywhere.
    pub fn is_match(&self, text: &str) -> bool {
        self.program().is_some_and(|p| p.is_match(text))
    }

    /// The leftmost match as a byte range.
    pub fn find(&self, text: &str) -> Option<std::ops::Range<usize>> {
        self.program()?.find(text).map(|m| m.range())
    }

    /// All successive non-overlapping matches, as Go's `FindAllStringIndex` gives them.
    pub fn find_iter<'t>(&'t self, text: &'t str) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
        self.program().into_iter().flat_map(move |p| p.find_iter(text)).map(|m| m.range())
    }
}

fn parsed(pattern: &str) -> Result<Hir, Error> {
    parse::parse(pattern).map_err(|(what, part)| Error::new(what, &part))
}

fn too_large(pattern: &str) -> Error {
    Error::new("expression too large", pattern)
}

/// The program of a parsed pattern; none if it is too large.
fn build(hir: &Hir) -> Option<meta::Regex> {
    // Only the place of the whole match is ever asked for.
    let config = meta::Config::new().nfa_size_limit(Some(MAX_PROGRAM)).which_captures(WhichCaptures::Implicit);
    meta::Builder::new().configure(config).build_from_hir(hir).ok()
}
