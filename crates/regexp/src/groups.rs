//! Patterns whose groups are asked for.

use crate::{Error, MAX_PROGRAM, parse, too_large};
use regex_automata::meta;
use std::ops::Range;

/// A compiled regular expression that says what its groups matched. Takes more memory and time than [`crate::Regexp`].
#[derive(Clone, Debug)]
pub struct Groups {
    program: meta::Regex,
    /// From group 1 on.
    names: Vec<Option<Box<str>>>,
}

impl Groups {
    /// Compiles `pattern`, written in Go's syntax.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Regexp::new`].
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let (hir, names) = parse::parse_groups(pattern).map_err(|(what, part)| Error::new(what, &part))?;
        let program = meta::Builder::new()
            .configure(meta::Config::new().nfa_size_limit(Some(MAX_PROGRAM)))
            .build_from_hir(&hir)
            .map_err(|_| too_large(pattern))?;
        Ok(Groups { program, names })
    }

    /// The number of the group with a name.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n.as_deref() == Some(name)).map(|i| i + 1)
    }

    /// All successive non-overlapping matches, each with the byte ranges of the whole and of every group.
    pub fn find_iter<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Vec<Option<Range<usize>>>> + 't {
        self.program
            .captures_iter(text)
            .map(|c| (0..c.group_len()).map(|i| c.get_group(i).map(|s| s.range())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbered_by_their_opening_and_named() {
        let groups = Groups::new("((?P<y>[0-9]+)-(?:x|(z)))").unwrap();
        assert_eq!((groups.group("y"), groups.group("n")), (Some(2), None));
        let found: Vec<_> = groups.find_iter("a 12-x 3-z").collect();
        assert_eq!(found[0], [Some(2..6), Some(2..6), Some(2..4), None]);
        assert_eq!(found[1], [Some(7..10), Some(7..10), Some(7..8), Some(9..10)]);
    }
}
