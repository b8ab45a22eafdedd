//! What a server says of the columns of its tables.

use crate::resource::Resource;
use std::borrow::Cow;

/// A line a column, `RESOURCE|COLUMN|TEXT`, with `*` for every resource; `\n` and `\\` are escaped. The texts are those
/// of a 1.33 server's answers.
static TEXT: &str = include_str!("columns.txt");

impl Resource {
    /// The descriptions of [`Resource::columns`], in their order; empty where a server gives none.
    pub fn column_descriptions(&self) -> Vec<Cow<'static, str>> {
        let mut out = vec![Cow::Borrowed(""); self.columns.len()];
        for line in TEXT.lines() {
            let mut parts = line.splitn(3, '|');
            let (Some(resource), Some(name), Some(text)) = (parts.next(), parts.next(), parts.next()) else { continue };
            if resource != "*" && resource != self.plural {
                continue;
            }
            for (column, description) in self.columns.iter().zip(&mut out).filter(|(c, _)| c.name == name) {
                let own = resource != "*";
                if own || description.is_empty() || matches!(column.name, "Name" | "Age") {
                    *description = unescape(text);
                }
            }
        }
        out
    }
}

fn unescape(text: &'static str) -> Cow<'static, str> {
    if text.contains('\\') { text.replace("\\n", "\n").replace("\\\\", "\\").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_column_has_a_description() {
        for resource in crate::resources().filter(|r| r.storage.is_some()) {
            for (column, text) in resource.columns.iter().zip(resource.column_descriptions()) {
                assert!(!text.is_empty(), "{} {}", resource.plural, column.name);
            }
        }
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let now = "2025-01-01T00:00:00Z".parse().unwrap();
        for resource in crate::resources() {
            let object = object::Value::Object(resource.stored_definition().map(|d| d.zero()).unwrap_or_default());
            assert_eq!((resource.cells)(&object, now).len(), resource.columns.len(), "{}", resource.plural);
        }
    }
}
