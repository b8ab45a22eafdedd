//! Patterns that are known only when an expression runs.

use regexp::Regexp;

use crate::runtime::regex::RegexFunction;
use crate::value::Result;

/// How many patterns an evaluation keeps: loops use one or a few again and again.
const KEPT: usize = 8;

/// The patterns an evaluation compiled last. Compiling takes longer than most rules run.
#[derive(Default)]
pub(super) struct Patterns {
    compiled: Vec<Regexp>,
}

impl Patterns {
    /// `pattern`, compiled now or before.
    pub(super) fn compiled(&mut self, function: RegexFunction, pattern: &str) -> Result<&Regexp> {
        let known = self.compiled.iter().position(|known| known.as_str() == pattern);
        if let Some(at) = known {
            return Ok(&self.compiled[at]);
        }
        let compiled = function.compile(pattern)?;
        if self.compiled.len() == KEPT {
            // The oldest stands first.
            self.compiled.remove(0);
        }
        Ok(self.compiled.push_mut(compiled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_found_again_and_the_oldest_make_place() {
        let mut patterns = Patterns::default();
        for round in 0..3 {
            for index in 0..20 {
                let pattern = format!("^a{{{index}}}$");
                let compiled = patterns.compiled(RegexFunction::Matches, &pattern);
                assert!(compiled.is_ok_and(|compiled| compiled.is_match(&"a".repeat(index))), "{round} {index}");
            }
        }
        assert_eq!(patterns.compiled.len(), KEPT);
        assert!(patterns.compiled(RegexFunction::Find, "(").is_err());
    }
}
