//! Laying a patch over an object.

use object::{Map, Value};

use super::lists::{self, Lists};
use super::{
    DELETE, DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, Error, GO_LIST, Member, REPLACE, RETAIN_KEYS, Schema, Shape,
    directive_target, is_same_type,
};
use crate::join::join;

/// Lays `patch` over `original`, an object of the type `schema`.
pub fn apply<S: Schema>(original: Map, patch: Map, schema: &S) -> Result<Map, Error> {
    merge_map(original, patch, schema, Mode::Apply)
}

/// What a merge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The patch changes an object: its directives are carried out.
    Apply,
    /// The patch is added to another patch: its directives and nulls stay.
    Combine,
}

pub(super) fn merge_map<S: Schema>(mut original: Map, mut patch: Map, schema: &S, mode: Mode) -> Result<Map, Error> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some(REPLACE) => Ok(patch),
            Some(DELETE) => Ok(Map::new()),
            _ => {
                patch.insert(DIRECTIVE, directive.clone());
                Err(Error::unknown_directive(&directive, &Value::Object(patch)))
            }
        };
    }
    retain_keys(&mut original, &mut patch, mode)?;
    element_orders(&mut original, &mut patch, schema, mode)?;
    if mode == Mode::Apply {
        delete_from_lists(&mut original, &mut patch, schema)?;
    }
    join(original, patch, |key, old, new| merge_member(key, old, new, schema, mode))
}

fn merge_member<S: Schema>(
    key: &str,
    old: Option<Value>,
    new: Option<Value>,
    schema: &S,
    mode: Mode,
) -> Result<Option<Value>, Error> {
    match (old, new) {
        (old, None) => Ok(old),
        (_, Some(Value::Null)) => Ok((mode == Mode::Combine).then_some(Value::Null)),
        // The lists of deletions are handed on as they are.
        (_, Some(new)) if mode == Mode::Combine && key.starts_with(DELETE_FROM_LIST) => Ok(Some(new)),
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let member = schema.member(key, Shape::Object)?;
            let (_, strategy) = member.strategies()?;
            if strategy == REPLACE {
                return Ok(Some(Value::Object(new)));
            }
            merge_map(old, new, &member.schema, mode).map(|merged| Some(Value::Object(merged)))
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            let member = schema.member(key, Shape::List)?;
            merge_list_member(old, new, &member, false, mode).map(|merged| Some(Value::Array(merged)))
        }
        (old, Some(mut new)) => {
            let replaces_type = old.is_none_or(|old| !is_same_type(&old, &new));
            if replaces_type && mode == Mode::Apply {
                discard_nulls(&mut new);
            }
            Ok(without_directives(new))
        }
    }
}

pub(super) fn merge_list_member<S: Schema>(
    original: Vec<Value>,
    patch: Vec<Value>,
    member: &Member<S>,
    is_deletion: bool,
    mode: Mode,
) -> Result<Vec<Value>, Error> {
    let (_, strategy) = member.strategies()?;
    // What is to be deleted is deleted, however the list is merged otherwise.
    if strategy != super::MERGE && !is_deletion {
        return Ok(patch);
    }
    Lists { schema: &member.schema, merge_key: &member.merge_key, mode }.merge(original, patch, is_deletion)
}

/// Carries out `$retainKeys`: members not named in it go.
fn retain_keys(original: &mut Map, patch: &mut Map, mode: Mode) -> Result<(), Error> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    if mode == Mode::Combine {
        return match original.get(RETAIN_KEYS) {
            Some(own) if *own != keys => Err(Error::internal(format!(
                "{} and {} are not deep equal: this may happen when calculating the 3-way diff patch",
                object::go::plain(own),
                object::go::plain(&keys)
            ))),
            Some(_) => Ok(()),
            None => {
                original.insert(RETAIN_KEYS, keys);
                Ok(())
            }
        };
    }
    let keys: Option<std::collections::HashSet<&str>> = match &keys {
        Value::Array(keys) => Some(keys.iter().filter_map(Value::as_str).collect()),
        _ => None,
    };
    let keys = keys.ok_or_else(Error::bad_retain_keys)?;
    let is_named = |(key, value): (&str, &Value)| {
        value.is_null() || key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER) || keys.contains(key)
    };
    if !patch.iter().all(is_named) {
        return Err(Error::bad_retain_keys());
    }
    original.retain(|key, _| keys.contains(key));
    Ok(())
}

/// Carries out `$setElementOrder/…`: merges the list it is about and orders it.
fn element_orders<S: Schema>(original: &mut Map, patch: &mut Map, schema: &S, mode: Mode) -> Result<(), Error> {
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).map(str::to_owned).collect();
    for directive in orders {
        let Some(order) = patch.remove(&directive) else { continue };
        if mode == Mode::Combine {
            match original.get(&directive) {
                Some(own) if *own != order => return Err(Error::bad_element_order()),
                Some(_) => {}
                None => drop(original.insert(directive.as_str(), order.clone())),
            }
        }
        let order = into_list(order)?;
        let key = directive_target(&directive, ELEMENT_ORDER).ok_or_else(Error::bad_element_order)?;
        let old = original.remove(key).map(into_list).transpose()?;
        let new = patch.remove(key).map(into_list).transpose()?;
        let member = schema.member(key, Shape::List)?;
        member.strategies()?;
        lists::check_order(new.as_deref().unwrap_or_default(), &order, &member.merge_key)?;
        let server_order = old.clone().unwrap_or_default();
        let kind = lists::item_kind(&[&server_order, new.as_deref().unwrap_or_default()]);
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_list_member(old, new, &member, false, mode)?,
        };
        let ordered = lists::in_order(merged, &order, &server_order, &member.merge_key, kind?)?;
        original.insert(key, ordered);
    }
    Ok(())
}

/// Carries out `$deleteFromPrimitiveList/…`.
fn delete_from_lists<S: Schema>(original: &mut Map, patch: &mut Map, schema: &S) -> Result<(), Error> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(DELETE_FROM_LIST)).map(str::to_owned).collect();
    for directive in directives {
        let Some(deletions) = patch.remove(&directive) else { continue };
        let key = directive_target(&directive, DELETE_FROM_LIST).ok_or_else(Error::bad_primitive_list)?;
        match (original.get_mut(key), deletions) {
            (Some(_), Value::Null) => drop(original.remove(key)),
            (Some(Value::Array(own)), Value::Array(deletions)) => {
                let member = schema.member(key, Shape::List)?;
                *own = merge_list_member(std::mem::take(own), deletions, &member, true, Mode::Apply)?;
            }
            // Of another type than what is there, or nothing there to delete from: no effect.
            _ => {}
        }
    }
    Ok(())
}

fn into_list(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(Error::wrong_type(GO_LIST, &other)),
    }
}

/// Takes out members that are null, also in the items of lists; items that are null stay.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, member| {
            discard_nulls(member);
            !member.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// The value without the objects that carry a directive; `None` if it is one itself.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            if members.contains_key(DIRECTIVE) {
                return None;
            }
            let kept = members.into_iter().filter_map(|(key, member)| Some((key, without_directives(member)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}
