//! Whether two patches want different things of the same member.

use std::collections::HashMap;

use object::{Map, Value, go};

use super::lists::{ItemKind, item_kind};
use super::{DIRECTIVE, Error, MERGE, REPLACE, RETAIN_KEYS, Schema, Shape, is_same_type};

/// Whether `left` and `right`, patches of an object of the type `schema`, set a member differently.
pub(super) fn have_conflicts<S: Schema>(left: &Map, right: &Map, schema: &S) -> Result<bool, Error> {
    if left.get(DIRECTIVE) != right.get(DIRECTIVE) {
        return Ok(true);
    }
    for (key, left) in left.iter().filter(|(key, _)| *key != DIRECTIVE && *key != RETAIN_KEYS) {
        let Some(right) = right.get(key) else { continue };
        let differs = match (left, right) {
            (Value::Object(left), Value::Object(right)) => {
                let member = schema.member(key, Shape::Object)?;
                if member.strategies()?.1 == REPLACE {
                    left.get(DIRECTIVE) != right.get(DIRECTIVE)
                } else {
                    have_conflicts(left, right, &member.schema)?
                }
            }
            // The order of lists is no content.
            (Value::Array(_), Value::Array(_)) if key.starts_with('$') => false,
            (Value::Array(left), Value::Array(right)) => {
                let member = schema.member(key, Shape::List)?;
                let is_merged = member.strategies()?.1 == MERGE;
                lists_have_conflicts(left, right, &member.schema, is_merged.then_some(&*member.merge_key))?
            }
            (left, right) => !is_same_type(left, right) || left != right,
        };
        if differs {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lists_have_conflicts<S: Schema>(
    left: &[Value],
    right: &[Value],
    schema: &S,
    merge_key: Option<&str>,
) -> Result<bool, Error> {
    if left.is_empty() && right.is_empty() {
        return Ok(false);
    }
    let kind = item_kind(&[left, right])?;
    let Some(merge_key) = merge_key else {
        return match kind {
            ItemKind::Objects if left.len() == right.len() => any_conflict(left.iter().zip(right), schema),
            ItemKind::Scalars => Ok(sorted(left) != sorted(right)),
            ItemKind::Objects => Ok(true),
        };
    };
    if kind == ItemKind::Scalars {
        // Merged lists of scalars never conflict.
        return Ok(false);
    }
    let mut by_key = HashMap::new();
    for item in right {
        let key = item.get(merge_key).ok_or_else(|| Error::no_merge_key(item, merge_key))?;
        by_key.insert(go::plain(key), item);
    }
    let mut pairs = Vec::new();
    for item in left {
        let key = item.get(merge_key).ok_or_else(|| Error::no_merge_key(item, merge_key))?;
        pairs.extend(by_key.get(&go::plain(key)).map(|other| (item, *other)));
    }
    any_conflict(pairs.into_iter(), schema)
}

fn any_conflict<'a, S: Schema>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>, schema: &S) -> Result<bool, Error> {
    for (left, right) in pairs {
        let differs = match (left, right) {
            (Value::Object(left), Value::Object(right)) => have_conflicts(left, right, schema)?,
            (left, right) => left != right,
        };
        if differs {
            return Ok(true);
        }
    }
    Ok(false)
}

fn sorted(list: &[Value]) -> Vec<String> {
    let mut list: Vec<String> = list.iter().map(go::plain).collect();
    list.sort();
    list
}
