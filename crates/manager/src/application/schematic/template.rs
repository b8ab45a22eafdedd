//! Templates whose strings are Go templates.

use object::{Value, map};
use template::{Data, Functions, Settings, Tree};

use super::{Renderer, data};

/// `schematic.template`: its strings are Go templates over `.parameter` and `.context`.
pub(super) struct Structured;

impl Renderer for Structured {
    fn fill(&self, place: &str, tree: &Value, parameter: &Value, context: &Value) -> Result<Value, String> {
        let data = data(parameter, context);
        // A tree that is nothing but a reference is lifted like any member.
        let mut tree: Value = map! { "tree" => tree.clone() }.into();
        let mut values = Vec::new();
        lift(&mut tree, &data, &mut values, 0);
        let Some(tree) = tree.remove_at(&["tree"]) else { return Ok(Value::Null) };
        let tree = Tree::parse(place, &tree, Functions::Sprig).map_err(|error| error.to_string())?;
        let mut filled = tree.render(&Data::from(&data), &Settings::default()).map_err(|error| error.to_string())?;
        lower(&mut filled, &values);
        Ok(filled)
    }
}

/// The mark of a string that stands for a value; no text of a definition can hold it.
const MARK: char = '\u{0}';

/// Puts marks in place of strings that are nothing but a reference, and their values into `values`. Fields without a
/// value are taken out.
fn lift(tree: &mut Value, data: &Value, values: &mut Vec<Value>, depth: usize) {
    // Objects are never nested so deep; what is, is left to the template.
    if depth > 200 {
        return;
    }
    match tree {
        Value::Object(members) => members.retain(|_, member| {
            let found = member.as_str().and_then(reference).map(|path| data.at(&path).cloned());
            match found {
                None => lift(member, data, values, depth + 1),
                Some(None | Some(Value::Null)) => return false,
                Some(Some(value)) => {
                    *member = format!("{MARK}{}", values.len()).into();
                    values.push(value);
                }
            }
            true
        }),
        Value::Array(items) => {
            for item in items {
                match item.as_str().and_then(reference).and_then(|path| data.at(&path).cloned()) {
                    None => lift(item, data, values, depth + 1),
                    Some(value) => {
                        *item = format!("{MARK}{}", values.len()).into();
                        values.push(value);
                    }
                }
            }
        }
        _ => {}
    }
}

fn lower(tree: &mut Value, values: &[Value]) {
    match tree {
        Value::Object(members) => members.values_mut().for_each(|member| lower(member, values)),
        Value::Array(items) => items.iter_mut().for_each(|item| lower(item, values)),
        Value::String(text) => {
            let index = text.strip_prefix(MARK).and_then(|index| index.parse::<usize>().ok());
            if let Some(value) = index.and_then(|index| values.get(index)) {
                *tree = value.clone();
            }
        }
        _ => {}
    }
}

/// The path of a string such as `{{ .parameter.image }}`, if it is nothing else.
fn reference(text: &str) -> Option<Vec<&str>> {
    let path = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim().strip_prefix('.')?;
    let is_name = |step: &&str| !step.is_empty() && step.chars().all(|c| c.is_alphanumeric() || c == '_');
    let steps: Vec<&str> = path.split('.').collect();
    (steps.len() > 1 && steps.iter().all(is_name)).then_some(steps)
}
