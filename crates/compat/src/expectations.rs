//! Which cases are known to fail: one file a theme, a case a line, `ID: WHY`. The lists only shrink. Where `WHY` begins with
//! "sometimes", the case depends on which of two goes first, and may pass as well.

use crate::run::Outcome;
use std::collections::BTreeMap;
use std::path::Path;

/// How the reason of a case begins that passes now and then.
const SOMETIMES: &str = "sometimes";

/// The cases of a theme that are known to fail, each with the reason.
#[derive(Debug, Default)]
pub struct KnownFailures(BTreeMap<String, String>);

/// What came of a theme, beside what was expected.
#[derive(Debug, Default)]
pub struct Verdict {
    /// How many cases passed.
    pub passed: usize,
    /// How many failed as known.
    pub known: usize,
    /// Cases that failed and are not on the list.
    pub unexpected: Vec<String>,
    /// Cases on the list that pass by now and must leave it.
    pub mended: Vec<String>,
}

impl KnownFailures {
    /// Reads a list; a file that is not there is an empty one.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
        KnownFailures(
            lines
                .map(|l| l.split_once(": ").unwrap_or((l, "")))
                .map(|(id, why)| (id.trim().to_owned(), why.to_owned()))
                .collect(),
        )
    }

    /// Whether a case is on the list.
    pub fn names(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Holds outcomes against the list.
    pub fn judge(&self, outcomes: &[Outcome]) -> Verdict {
        let mut verdict = Verdict::default();
        for outcome in outcomes {
            match (outcome.differences.is_empty(), self.0.get(&outcome.id)) {
                (true, None) => verdict.passed += 1,
                (true, Some(why)) if why.starts_with(SOMETIMES) => verdict.passed += 1,
                (true, Some(_)) => verdict.mended.push(outcome.id.clone()),
                (false, Some(_)) => verdict.known += 1,
                (false, None) => verdict.unexpected.push(outcome.id.clone()),
            }
        }
        verdict
    }

    /// Writes the list that fits the outcomes; reasons that were given stay.
    pub fn write(&self, path: &Path, outcomes: &[Outcome], why: &str) -> std::io::Result<()> {
        let lines: Vec<String> = outcomes
            .iter()
            .filter(|o| !o.differences.is_empty())
            .map(|o| format!("{}: {}\n", o.id, self.0.get(&o.id).map_or(why, String::as_str)))
            .collect();
        if lines.is_empty() {
            return match std::fs::remove_file(path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        }
        std::fs::write(path, lines.concat())
    }
}
