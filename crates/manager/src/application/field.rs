//! Paths to fields, as policies and workflows write them.

use object::Value;

/// A step of a path such as `spec.template.spec.containers[0].image`.
pub(super) enum Step<'a> {
    /// A member of an object.
    Member(&'a str),
    /// An item of a list.
    Item(usize),
}

/// The steps of a path.
pub(super) fn steps(path: &str) -> Vec<Step<'_>> {
    let parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    parts
        .map(|part| match part.strip_suffix(']').map(str::parse) {
            Some(Ok(index)) => Step::Item(index),
            _ => Step::Member(part.trim_end_matches(']').trim_matches(['"', '\''])),
        })
        .collect()
}

/// The value where a path leads.
pub(super) fn at<'a>(value: &'a Value, steps: &[Step<'_>]) -> Option<&'a Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Member(name) => value.get(name),
        Step::Item(index) => value.as_array()?.get(*index),
    })
}

/// Puts a value where a path leads; items that are not there are not made.
pub(super) fn put(value: &mut Value, steps: &[Step<'_>], new: Value) {
    match steps {
        [] => *value = new,
        [Step::Member(name), rest @ ..] => {
            if !matches!(value, Value::Object(_)) {
                *value = Value::Object(object::Map::new());
            }
            if let Some(members) = value.as_object_mut() {
                put(members.get_or_insert(name, Value::default), rest, new);
            }
        }
        [Step::Item(index), rest @ ..] => {
            if let Some(item) = value.as_array_mut().and_then(|items| items.get_mut(*index)) {
                put(item, rest, new);
            }
        }
    }
}
