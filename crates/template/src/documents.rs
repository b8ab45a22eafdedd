//! The objects in a rendered text.

use crate::Error;
use object::{Value, yaml};
use std::fmt::Write;

/// The objects of a text of YAML documents. Documents with neither `apiVersion` nor `kind` are left out.
///
/// # Errors
///
/// Where the text is no YAML: the complaint, and the text with its lines numbered.
pub fn documents(text: &str) -> Result<Vec<Value>, Error> {
    let all = yaml::parse_all(text.as_bytes()).map_err(|complaint| {
        let mut message = format!("failed to decode rendered template: {complaint}");
        for (i, line) in text.lines().enumerate() {
            let _ = write!(message, "\n{:4} | {line}", i + 1);
        }
        Error(message)
    })?;
    let has = |v: &Value, key| v.str_at(&[key]).is_some_and(|s| !s.is_empty());
    Ok(all.into_iter().map(|(v, _)| v).filter(|v| has(v, "apiVersion") || has(v, "kind")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_without_a_type_are_left_out() {
        let found = documents("---\nkind: A\n---\n# nothing\n---\nx: 1\n---\napiVersion: v1\nkind: B\n").unwrap();
        let kinds: Vec<_> = found.iter().filter_map(|v| v.str_at(&["kind"])).collect();
        assert_eq!(kinds, ["A", "B"]);
    }

    #[test]
    fn a_broken_text_is_shown_with_numbers() {
        let error = documents("kind: A\n  b: [\n").unwrap_err().to_string();
        assert!(error.ends_with("\n   1 | kind: A\n   2 |   b: ["), "{error}");
    }
}
