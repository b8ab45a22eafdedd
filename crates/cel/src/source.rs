//! Source text by line and column, counted in code points as cel-go counts them.

use std::fmt;
use std::sync::Arc;

/// A place in a source text. Lines start at 1, columns at 0, both count code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The line, from 1; -1 for [`Location::NONE`].
    pub line: i32,
    /// The column, from 0, in code points; -1 for [`Location::NONE`].
    pub column: i32,
}

impl Location {
    /// No place in particular. Prints as `-1:0`.
    pub const NONE: Location = Location { line: -1, column: -1 };
}

impl fmt::Display for Location {
    /// Prints `line:column` with both counted from 1, as error texts do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, i64::from(self.column) + 1)
    }
}

/// A text with the beginnings of its lines.
///
/// ```
/// use cel::source::{Location, Source};
/// let source = Source::new("a &&\n b");
/// assert_eq!(source.location(6), Location { line: 2, column: 1 });
/// assert_eq!(source.line(2), Some(" b"));
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    text: Arc<str>,
    /// For each line: its first byte and its first code point.
    starts: Vec<(usize, u32)>,
}

impl Source {
    /// Splits `text` into lines at each line feed.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let mut starts = vec![(0, 0)];
        let (mut bytes, mut points) = (0usize, 0u32);
        for line in text.split_inclusive('\n') {
            bytes += line.len();
            points = points.saturating_add(u32::try_from(line.chars().count()).unwrap_or(u32::MAX));
            if line.ends_with('\n') {
                starts.push((bytes, points));
            }
        }
        Source { text, starts }
    }

    /// The whole text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The place of the code point `offset`; an offset behind the end counts on in the last line.
    pub fn location(&self, offset: u32) -> Location {
        let line = self.starts.partition_point(|&(_, start)| start <= offset).max(1);
        let start = self.starts.get(line - 1).map_or(0, |s| s.1);
        Location {
            line: i32::try_from(line).unwrap_or(i32::MAX),
            column: i32::try_from(offset - start).unwrap_or(i32::MAX),
        }
    }

    /// The text of a line (from 1) without its line feed. None outside the text and for an empty text.
    pub fn line(&self, line: i32) -> Option<&str> {
        if self.text.is_empty() {
            return None;
        }
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let start = self.starts.get(index)?.0;
        let rest = self.text.get(start..)?;
        Some(rest.split('\n').next().unwrap_or(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns_of_code_points() {
        let source = Source::new("aé\n\nx");
        let cases = [(0, (1, 0)), (1, (1, 1)), (2, (1, 2)), (3, (2, 0)), (4, (3, 0)), (5, (3, 1)), (9, (3, 5))];
        for (offset, (line, column)) in cases {
            assert_eq!(source.location(offset), Location { line, column }, "{offset}");
        }
        assert_eq!(
            [source.line(0), source.line(1), source.line(2), source.line(3), source.line(4)],
            [None, Some("aé"), Some(""), Some("x"), None]
        );
    }
}
