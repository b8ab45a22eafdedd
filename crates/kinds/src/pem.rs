//! Blocks of PEM as Go finds them: what is none is passed over.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// The types of the blocks of a text, in their order: `CERTIFICATE`, `RSA PRIVATE KEY`.
pub(crate) fn types(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = line_start(rest, BEGIN)?;
            let inside = rest.get(start + BEGIN.len()..)?;
            // What is not whole may hold one that is.
            rest = inside;
            let (first, body) = inside.split_once('\n').unwrap_or((inside, ""));
            let Some(name) = first.trim_end().strip_suffix(DASHES) else { continue };
            let Some(end) = line_start(body, END) else { continue };
            let (content, last) = body.split_at(end);
            let Some(after) = last.strip_prefix(END).and_then(|last| last.strip_prefix(name)) else { continue };
            let Some(after) = after.strip_prefix(DASHES) else { continue };
            if is_content(content) {
                rest = after;
                return Some(name);
            }
        }
    })
}

/// Where a line begins so.
fn line_start(text: &str, prefix: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text.get(at..)?.find(prefix) {
        let place = at + found;
        if place == 0 || text.as_bytes().get(place - 1) == Some(&b'\n') {
            return Some(place);
        }
        at = place + prefix.len();
    }
    None
}

/// Whether lines are headers, if there are any, and base64.
fn is_content(content: &str) -> bool {
    let lines = content.lines().skip_while(|line| line.contains(':'));
    let text: String = lines.flat_map(|line| line.chars().filter(|c| !c.is_ascii_whitespace())).collect();
    STANDARD.decode(text).is_ok()
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
        ] {
            assert_eq!(types(&text).collect::<Vec<_>>(), wanted, "{text}");
        }
    }
}
