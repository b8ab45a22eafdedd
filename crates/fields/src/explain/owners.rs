//! An object with its owners.

use super::{list, owners_of};
use crate::managed::{ManagerId, Managers};
use crate::path::{FieldPath, PathElement};
use crate::schema::{TypeId, TypeSchema};
use crate::typed;
use object::{Value, json};
use std::fmt;

/// An object as YAML, line by line, with the managers of what each line shows. `metadata.managedFields` is left out.
///
/// Prints each line with its managers in a comment:
///
/// ```text
/// spec:
///   replicas: 3        # hpa (update, scale)
///   image: a:1         # alice, bob
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The lines, from the top.
    pub lines: Vec<Line>,
}

/// One line of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The YAML, indented.
    pub text: String,
    /// What the line shows: a field; for the first line of a list item the item and its first field.
    pub paths: Vec<FieldPath>,
    /// Who owns that; each once, in the order of their identifiers.
    pub managers: Vec<ManagerId>,
}

impl Owners {
    /// Explains an object. Sets that are named in another version than the object's are taken as they stand.
    pub fn of(schema: &TypeSchema, object: &Value, managers: &Managers) -> Self {
        let mut walk = Walk { schema, managers, lines: Vec::new(), path: Vec::new() };
        walk.members(Some(schema.root()), object, 0, None);
        Owners { lines: walk.lines }
    }
}

impl fmt::Display for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |l: &Line| l.text.chars().count();
        // A few long lines do not push all comments to the right.
        let column = self.lines.iter().map(width).filter(|w| *w <= 60).max().unwrap_or(0);
        for line in &self.lines {
            if line.managers.is_empty() {
                writeln!(f, "{}", line.text)?;
            } else {
                writeln!(f, "{:column$}  # {}", line.text, list(&line.managers))?;
            }
        }
        Ok(())
    }
}

struct Walk<'a> {
    schema: &'a TypeSchema,
    managers: &'a Managers,
    lines: Vec<Line>,
    path: Vec<PathElement>,
}

impl Walk<'_> {
    /// The lines of a map's members. The first one stands behind the dash of a list item, if `dash` is given: the
    /// item's own path.
    fn members(&mut self, ty: Option<TypeId>, value: &Value, indent: usize, mut dash: Option<FieldPath>) {
        let map = ty.and_then(|ty| self.schema.atom(ty).map.as_ref());
        let hidden = self.path.as_slice() == [PathElement::field("metadata")];
        for (key, value) in value.as_object().into_iter().flat_map(object::Map::iter) {
            if hidden && key == "managedFields" {
                continue;
            }
            self.path.push(PathElement::field(key));
            let ty = map.and_then(|m| m.type_of(key));
            let mut paths: Vec<FieldPath> = dash.take().into_iter().collect();
            let lead = if paths.is_empty() { " ".repeat(indent) } else { format!("{}- ", " ".repeat(indent - 2)) };
            paths.push(FieldPath(self.path.clone()));
            self.value(ty, value, &format!("{lead}{}:", plain_key(key)), indent, paths);
            self.path.pop();
        }
    }

    /// The line that begins with `lead`, and what is below it.
    fn value(&mut self, ty: Option<TypeId>, value: &Value, lead: &str, indent: usize, paths: Vec<FieldPath>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                self.line(lead.to_owned(), paths);
                self.members(ty, value, indent + 2, None);
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(lead.to_owned(), paths);
                self.items(ty, items, indent);
            }
            scalar => self.line(format!("{lead} {}", plain(scalar)), paths),
        }
    }

    fn items(&mut self, ty: Option<TypeId>, items: &[Value], indent: usize) {
        let list = ty.and_then(|ty| self.schema.atom(ty).list.as_ref());
        for (i, item) in items.iter().enumerate() {
            let element = list.and_then(|l| typed::item_element(self.schema, l, i, item));
            self.path.push(element.unwrap_or(PathElement::Index(i as i64)));
            let path = FieldPath(self.path.clone());
            let ty = list.map(|l| l.element);
            match item {
                Value::Object(members) if !members.is_empty() => self.members(ty, item, indent + 2, Some(path)),
                _ => self.value(ty, item, &format!("{}-", " ".repeat(indent)), indent, vec![path]),
            }
            self.path.pop();
        }
    }

    fn line(&mut self, text: String, paths: Vec<FieldPath>) {
        let mut managers: Vec<ManagerId> =
            paths.iter().flat_map(|p| owners_of(self.managers, p.elements())).cloned().collect();
        managers.sort();
        managers.dedup();
        self.lines.push(Line { text, paths, managers });
    }
}

/// A scalar or an empty container as YAML. Strings that another reader could take for something else are quoted.
fn plain(value: &Value) -> String {
    match value {
        Value::String(s) if is_plain(s) => s.to_string(),
        other => json::to_string(other),
    }
}

fn plain_key(key: &str) -> String {
    if is_plain(key) { key.to_owned() } else { json::to_string(&Value::from(key)) }
}

fn is_plain(s: &str) -> bool {
    const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];
    s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && s.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c))
        && !s.ends_with(':')
        && !WORDS.iter().chain(&["null"]).any(|w| s.eq_ignore_ascii_case(w))
}
