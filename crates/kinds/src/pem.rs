//! Blocks of PEM as Go finds them: what is around them or is not whole is passed over.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// A block of PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'t> {
    /// What it is called: `CERTIFICATE`, `RSA PRIVATE KEY`.
    pub label: &'t str,
    /// Whether there are lines like `Key: value` before the content.
    pub has_headers: bool,
    /// The content.
    pub content: Vec<u8>,
}

/// The blocks of a text, in their order. Each line is looked at a fixed number of times, however many of them begin a
/// block.
pub fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (before, end) = rest.split_at(first_line(rest, END)?);
            let end = end.strip_prefix(END)?;
            rest = end;
            // No block holds the beginning of another.
            let Some(begin) = last_line(before, BEGIN) else { continue };
            let inside = before.get(begin + BEGIN.len()..).and_then(|inside| inside.split_once('\n'));
            let Some((first, lines)) = inside else { continue };
            let Some(label) = first.trim_end().strip_suffix(DASHES) else { continue };
            let Some(after) = end.strip_prefix(label).and_then(|end| end.strip_prefix(DASHES)) else { continue };
            if let Some((has_headers, content)) = content(lines) {
                rest = after;
                return Some(Block { label, has_headers, content });
            }
        }
    })
}

/// Where the first line begins that begins so.
fn first_line(text: &str, prefix: &str) -> Option<usize> {
    text.match_indices(prefix).map(|(at, _)| at).find(|at| begins_line(text, *at))
}

/// Where the last line begins that begins so.
fn last_line(text: &str, prefix: &str) -> Option<usize> {
    text.rmatch_indices(prefix).map(|(at, _)| at).find(|at| begins_line(text, *at))
}

fn begins_line(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}

/// What the lines within a block say, if they are headers (whether there are any is told) and base64.
fn content(lines: &str) -> Option<(bool, Vec<u8>)> {
    let mut lines = lines.lines().peekable();
    let mut has_headers = false;
    while lines.next_if(|line| line.contains(':')).is_some() {
        has_headers = true;
    }
    let text: String = lines.flat_map(|line| line.chars().filter(|c| !c.is_ascii_whitespace())).collect();
    Some((has_headers, STANDARD.decode(text).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_among_other_text() {
        let block = |name: &str, content: &str| format!("-----BEGIN {name}-----\n{content}\n-----END {name}-----\n");
        for (text, wanted) in [
            (String::new(), vec![]),
            ("-----BEGIN ".to_owned(), vec![]),
            (block("A", "YQ=="), vec!["A"]),
            (format!("text\n{}more\n{}", block("A", "YQ=="), block("B C", "YQ==")), vec!["A", "B C"]),
            (block("A", "K: v\n\nYQ=="), vec!["A"]),
            (format!("{}{}", block("A", "?"), block("B", "YQ==")), vec!["B"]),
            (format!("x{}", block("A", "YQ==")), vec![]),
            ("-----BEGIN A-----\nYQ==\n-----END B-----\n".to_owned(), vec![]),
            (format!("-----BEGIN A-----\n{}-----END A-----\n", block("B", "YQ==")), vec!["B"]),
            (format!("-----END A-----\n{}", block("B", "")), vec!["B"]),
            (format!("-----BEGIN A-----\n{}", block("A", "YQ==")), vec!["A"]),
        ] {
            assert_eq!(blocks(&text).map(|block| block.label).collect::<Vec<_>>(), wanted, "{text}");
        }
    }

    #[test]
    fn headers_are_told_from_the_content() {
        for (lines, wanted) in [
            ("YQ==\r\nYg==", None),
            ("Y Q\r\n==\n", Some((false, b"a".to_vec()))),
            ("K: v\n\nYQ==\n", Some((true, b"a".to_vec()))),
            ("", Some((false, Vec::new()))),
        ] {
            assert_eq!(content(lines), wanted, "{lines}");
        }
    }
}
