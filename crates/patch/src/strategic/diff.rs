//! Making the patch that turns one object into another.

use std::cmp::Ordering;
use std::collections::HashSet;

use object::{Map, Value, go};

use super::apply::{Mode, merge_map};
use super::conflicts::have_conflicts;
use super::lists::{self, Identity, ItemKind, in_order, is_same_item, item_kind, require_keys};
use super::{
    DELETE, DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, Error, ErrorKind, MERGE, REPLACE, RETAIN_KEYS, Schema, Shape,
    is_same_type,
};

/// The patch that makes `modified` of `original`, both of the type `schema`.
pub fn two_way<S: Schema>(original: &Map, modified: &Map, schema: &S) -> Result<Map, Error> {
    diff_maps(original, modified, schema, Options { element_order: true, ..Options::default() })
}

/// The patch of a client-side apply: takes away what `original` (the configuration applied last) has and `modified`
/// (the new one) has not, sets what differs between `current` (the live object) and `modified`, leaves alone what only
/// `current` has. Unless `overwrite`, it is an error if the patch changes what was changed in `current` since.
pub fn three_way<S: Schema>(
    original: &Map,
    modified: &Map,
    current: &Map,
    schema: &S,
    overwrite: bool,
) -> Result<Map, Error> {
    let changes = Options { element_order: true, no_deletions: true, ..Options::default() };
    let delta = diff_maps(current, modified, schema, changes)?;
    let deletions = Options { element_order: true, no_changes: true, ..Options::default() };
    let deletions = diff_maps(original, modified, schema, deletions)?;
    let patch = merge_map(deletions, delta, schema, Mode::Combine)?;
    if !overwrite {
        let changed = diff_maps(original, current, schema, Options::default())?;
        if have_conflicts(&patch, &changed, schema)? {
            let (patch, changed) = (Value::Object(patch), Value::Object(changed));
            let message = format!(
                "patch:\n{}\nconflicts with changes made from original to current:\n{}\n",
                object::json::to_string(&patch),
                object::json::to_string(&changed)
            );
            return Err(Error { kind: ErrorKind::Internal, message });
        }
    }
    Ok(patch)
}

/// What goes into a patch.
#[derive(Clone, Copy, Default)]
struct Options {
    /// Say the order of lists.
    element_order: bool,
    /// Leave out what is new or different.
    no_changes: bool,
    /// Leave out what is gone.
    no_deletions: bool,
    /// Say which members stay.
    retain_keys: bool,
}

fn diff_maps<S: Schema>(original: &Map, modified: &Map, schema: &S, options: Options) -> Result<Map, Error> {
    let mut patch: Vec<(String, Value)> = Vec::new();
    for (key, new) in modified.iter() {
        let Some(old) = original.get(key) else {
            if !options.no_changes {
                patch.push((key.to_owned(), new.clone()));
            }
            continue;
        };
        if key == DIRECTIVE {
            if !matches!((old, new), (Value::String(_), Value::String(_))) {
                return Err(Error::internal(format!("invalid value for special key: {DIRECTIVE}")));
            }
            if old != new {
                patch.push((key.to_owned(), new.clone()));
            }
            continue;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                let member = match schema.member(key, Shape::Object) {
                    Ok(member) => member,
                    Err(_) if old == new => continue,
                    Err(error) => return Err(error),
                };
                let (retain_keys, strategy) = member.strategies()?;
                if strategy == REPLACE {
                    if !options.no_changes {
                        patch.push((key.to_owned(), Value::Object(new.clone())));
                    }
                    continue;
                }
                let inner = diff_maps(old, new, &member.schema, Options { retain_keys, ..options })?;
                if !inner.is_empty() {
                    patch.push((key.to_owned(), Value::Object(inner)));
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                let member = match schema.member(key, Shape::List) {
                    Ok(member) => member,
                    Err(_) if old == new => continue,
                    Err(error) => return Err(error),
                };
                let (retain_keys, strategy) = member.strategies()?;
                if strategy != MERGE {
                    if !options.no_changes && old != new {
                        patch.push((key.to_owned(), Value::Array(new.clone())));
                    }
                    continue;
                }
                let options = Options { retain_keys, ..options };
                let lists = diff_lists(old, new, &member.schema, &member.merge_key, options)?;
                let named = [
                    (key.to_owned(), lists.patch),
                    (format!("{DELETE_FROM_LIST}/{key}"), lists.deletions),
                    (format!("{ELEMENT_ORDER}/{key}"), lists.order),
                ];
                patch.extend(named.into_iter().filter(|(_, list)| !list.is_empty()).map(|(k, l)| (k, Value::Array(l))));
            }
            (old, new) => {
                if !options.no_changes && (old != new || !is_same_type(old, new)) {
                    patch.push((key.to_owned(), new.clone()));
                }
            }
        }
    }
    if !options.no_deletions {
        let gone = original.keys().filter(|key| !modified.contains_key(key));
        patch.extend(gone.map(|key| (key.to_owned(), Value::Null)));
    }
    if options.retain_keys {
        let kept: Vec<Value> =
            modified.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key.into()).collect();
        let clears = || original.iter().any(|(key, value)| !value.is_null() && !modified.contains_key(key));
        if !kept.is_empty() && (!patch.is_empty() || clears()) {
            patch.push((RETAIN_KEYS.to_owned(), Value::Array(kept)));
        }
    }
    Ok(patch.into_iter().collect())
}

/// The parts of a patch that are about one list.
#[derive(Default)]
struct ListPatch {
    patch: Vec<Value>,
    deletions: Vec<Value>,
    order: Vec<Value>,
}

fn diff_lists<S: Schema>(
    original: &[Value],
    modified: &[Value],
    schema: &S,
    merge_key: &str,
    options: Options,
) -> Result<ListPatch, Error> {
    if original.is_empty() {
        let patch = if options.no_changes { Vec::new() } else { modified.to_vec() };
        return Ok(ListPatch { patch, ..ListPatch::default() });
    }
    match item_kind(&[original, modified])? {
        ItemKind::Objects => diff_objects(original, modified, schema, merge_key, options),
        ItemKind::Scalars => diff_scalars(original, modified, merge_key, options),
    }
}

fn diff_objects<S: Schema>(
    original: &[Value],
    modified: &[Value],
    schema: &S,
    merge_key: &str,
    options: Options,
) -> Result<ListPatch, Error> {
    require_keys(merge_key, &[original, modified])?;
    let keyed = |list: &[Value]| {
        let mut keyed: Vec<(String, Value)> =
            list.iter().map(|item| (item.get(merge_key).map(go::plain).unwrap_or_default(), item.clone())).collect();
        // Upstream's comparison calls equal keys smaller, so that its sort puts the later one first.
        keyed.reverse();
        keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
        keyed
    };
    let (old, new) = (keyed(original), keyed(modified));
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    let (mut patch, mut deletions) = (Vec::new(), Vec::new());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some((old, _)), Some((new, _))) => old.cmp(new),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        match order {
            Ordering::Equal => {
                if let (Some((_, Value::Object(old))), Some((_, Value::Object(new)))) = (old.next(), new.next()) {
                    let mut inner = diff_maps(&old, &new, schema, options)?;
                    if !inner.is_empty() {
                        inner.insert(merge_key, new.get(merge_key).cloned().unwrap_or_default());
                        patch.push(Value::Object(inner));
                    }
                }
            }
            Ordering::Greater => patch.extend(new.next().filter(|_| !options.no_changes).map(|(_, item)| item)),
            Ordering::Less => {
                if let Some((_, item)) = old.next().filter(|_| !options.no_deletions) {
                    let key = item.get(merge_key).cloned().unwrap_or_default();
                    let members = [(merge_key, key), (DIRECTIVE, Value::from(DELETE))];
                    deletions.push(Value::Object(members.into_iter().collect()));
                }
            }
        }
    }
    let mut patch = in_order(patch, modified, &[], merge_key, ItemKind::Objects)?;
    let mut is_same_order = original.len() == modified.len();
    for (old, new) in original.iter().zip(modified) {
        is_same_order = is_same_order && is_same_item(old, new, merge_key)?;
    }
    patch.append(&mut deletions);
    let says_order = options.element_order
        && ((!options.no_changes && (!patch.is_empty() || !is_same_order))
            || (!options.no_deletions && !patch.is_empty()));
    let stub = |item: &Value| {
        let key = item.get(merge_key).cloned().unwrap_or_default();
        Value::Object([(merge_key, key)].into_iter().collect())
    };
    let order = if says_order { modified.iter().map(stub).collect() } else { Vec::new() };
    Ok(ListPatch { patch, deletions, order })
}

fn diff_scalars(original: &[Value], modified: &[Value], merge_key: &str, options: Options) -> Result<ListPatch, Error> {
    let sorted = |list: &[Value]| {
        let mut list = list.to_vec();
        list.sort_by_cached_key(go::plain);
        list
    };
    let (old, new) = (sorted(original), sorted(modified));
    // Upstream sorts the original in place and then asks whether it equals the modified list.
    let is_changed = old != modified;
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    let (mut additions, mut deletions) = (Vec::new(), Vec::new());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some(old), Some(new)) => go::plain(old).cmp(&go::plain(new)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        match order {
            Ordering::Equal => drop((old.next(), new.next())),
            Ordering::Less => deletions.extend(old.next().filter(|_| !options.no_deletions)),
            Ordering::Greater => additions.extend(new.next().filter(|_| !options.no_changes)),
        }
    }
    let mut seen = HashSet::new();
    deletions.retain(|item| seen.insert(Identity::of(item)));
    let patch = lists::in_order(additions, modified, &[], merge_key, ItemKind::Scalars)?;
    let says_order = options.element_order
        && ((!options.no_deletions && !deletions.is_empty()) || (!options.no_changes && is_changed));
    let order = if says_order { modified.to_vec() } else { Vec::new() };
    Ok(ListPatch { patch, deletions, order })
}
