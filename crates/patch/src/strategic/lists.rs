//! Merging and ordering lists.

use std::collections::{HashMap, HashSet};

use object::{Value, go, json};

use super::apply::{Mode, merge_map};
use super::{DELETE, DIRECTIVE, ELEMENT_ORDER, Error, GO_MAP, MERGE, REPLACE, Schema, is_same_type};

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Objects,
    Scalars,
}

/// A value by which items are told apart. Values of different types are never the same.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Identity {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    /// Floats and what upstream cannot compare, by their JSON.
    Other(String),
}

impl Identity {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::String(value) => Self::Text(value.to_string()),
            other => Self::Other(json::to_string(other)),
        }
    }

    /// The identity of a list's item: its merge key's value, or the scalar itself.
    fn of_item(item: &Value, merge_key: &str, kind: ItemKind) -> Self {
        match kind {
            ItemKind::Objects => item.get(merge_key).map_or(Self::Null, Self::of),
            ItemKind::Scalars => Self::of(item),
        }
    }
}

/// The items' common kind; they must be of one type.
pub(super) fn item_kind(lists: &[&[Value]]) -> Result<ItemKind, Error> {
    let mut items = lists.iter().flat_map(|list| list.iter());
    let Some(first) = items.next() else {
        return Err(Error::internal("no elements in any of the given slices".into()));
    };
    if matches!(first, Value::Array(_)) {
        return Err(Error::nested_lists());
    }
    if !items.all(|item| is_same_type(first, item)) {
        let shown: Vec<String> = lists.iter().map(|list| go::plain(&Value::Array(list.to_vec()))).collect();
        return Err(Error::internal(format!("list element types are not identical: [{}]", shown.join(" "))));
    }
    Ok(if matches!(first, Value::Object(_)) { ItemKind::Objects } else { ItemKind::Scalars })
}

/// How one list is merged.
pub(super) struct Lists<'a, S> {
    pub schema: &'a S,
    pub merge_key: &'a str,
    pub mode: Mode,
}

impl<S: Schema> Lists<'_, S> {
    /// The merged list, ordered: the patch's items in its order, the others in theirs.
    pub fn merge(&self, original: Vec<Value>, patch: Vec<Value>, is_deletion: bool) -> Result<Vec<Value>, Error> {
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        let kind = item_kind(&[&original, &patch])?;
        if kind == ItemKind::Scalars {
            let in_patch: HashSet<Identity> = patch.iter().map(Identity::of).collect();
            if is_deletion && self.mode == Mode::Apply {
                return Ok(original.into_iter().filter(|item| !in_patch.contains(&Identity::of(item))).collect());
            }
            let mut seen = HashSet::new();
            let both = original.iter().chain(&patch).filter(|item| seen.insert(Identity::of(item)));
            let merged = both.cloned().collect();
            // Without a merge key even where one is declared: scalars have none.
            return in_order(merged, &patch, &original, self.merge_key, kind);
        }
        if self.merge_key.is_empty() {
            let kind = self.schema.go_kind();
            return Err(Error::internal(format!("cannot merge lists without merge key for {kind}")));
        }
        let (original, patch) = self.special_items(original, patch)?;
        let keys: Vec<Value> = original.iter().map(|item| self.stub(item)).collect();
        let order: Vec<Value> = patch.iter().map(|item| self.stub(item)).collect();
        let merged = self.plain_items(original, patch)?;
        in_order(merged, &order, &keys, self.merge_key, kind)
    }

    /// Carries out the directives among the patch's items; gives the list without what they delete, and the patch
    /// without them.
    fn special_items(&self, mut original: Vec<Value>, patch: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>), Error> {
        let mut plain = Vec::with_capacity(patch.len());
        let mut deleted = HashSet::new();
        let mut replace = false;
        for item in patch {
            match item.get(DIRECTIVE) {
                None => plain.push(item),
                Some(directive) => match directive.as_str() {
                    Some(DELETE) => {
                        let key = item.get(self.merge_key);
                        deleted.insert(Identity::of(key.ok_or_else(|| Error::no_merge_key(&item, self.merge_key))?));
                    }
                    Some(REPLACE) => replace = true,
                    Some(MERGE) => {
                        return Err(Error::internal("merging lists cannot yet be specified in the patch".into()));
                    }
                    _ => return Err(Error::unknown_directive(directive, &item)),
                },
            }
        }
        if replace {
            return Ok((plain, Vec::new()));
        }
        if !deleted.is_empty() {
            original.retain(|item| item.get(self.merge_key).is_none_or(|key| !deleted.contains(&Identity::of(key))));
        }
        Ok((original, plain))
    }

    /// Merges each of the patch's items into the one with its key, or appends it.
    fn plain_items(&self, mut original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, Error> {
        let mut places: HashMap<Identity, usize> = HashMap::new();
        for (place, item) in original.iter().enumerate() {
            if let Some(key) = item.get(self.merge_key) {
                places.entry(Identity::of(key)).or_insert(place);
            }
        }
        for item in patch {
            let key = item.get(self.merge_key).ok_or_else(|| Error::no_merge_key(&item, self.merge_key))?;
            let identity = Identity::of(key);
            match (places.get(&identity).and_then(|place| original.get_mut(*place)), item) {
                (Some(Value::Object(own)), Value::Object(item)) => {
                    *own = merge_map(std::mem::take(own), item, self.schema, self.mode)?;
                }
                (_, item) => {
                    places.insert(identity, original.len());
                    original.push(item);
                }
            }
        }
        Ok(original)
    }

    /// Just the merge key of an item.
    fn stub(&self, item: &Value) -> Value {
        let key = item.get(self.merge_key).map(|key| (self.merge_key, key.clone()));
        Value::Object(key.into_iter().collect())
    }
}

/// Orders a merged list: what `order` names in its order, the rest in `server_order`, woven together by
/// `server_order` where both are in it.
pub(super) fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    server_order: &[Value],
    merge_key: &str,
    kind: ItemKind,
) -> Result<Vec<Value>, Error> {
    if kind == ItemKind::Objects && !merge_key.is_empty() {
        findable(&merged, order, merge_key)?;
        require_keys(merge_key, &[&merged, order])?;
    }
    let places = |list: &[Value]| {
        let mut places = HashMap::new();
        for (place, item) in list.iter().enumerate() {
            places.entry(Identity::of_item(item, merge_key, kind)).or_insert(place);
        }
        places
    };
    let (order, server_order) = (places(order), places(server_order));
    // Each item with its place in `order`, if it has one, and its place on the server.
    let (mut ordered, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let identity = Identity::of_item(&item, merge_key, kind);
        let server = server_order.get(&identity).copied();
        match order.get(&identity) {
            Some(place) => ordered.push((*place, server, item)),
            None => others.push((server, item)),
        }
    }
    let last = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str) == Some(DELETE);
    ordered.sort_by_key(|(place, _, item)| (last(item), *place));
    others.sort_by_key(|(place, item)| (last(item), place.unwrap_or(usize::MAX)));
    let mut woven = Vec::with_capacity(ordered.len() + others.len());
    let (mut ordered, mut others) = (ordered.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), ordered.peek()) {
            (Some((other, _)), Some((_, ordered, _))) => matches!((other, ordered), (Some(o), Some(p)) if o < p),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        let next =
            if other_first { others.next().map(|(_, item)| item) } else { ordered.next().map(|(_, _, item)| item) };
        woven.extend(next);
    }
    Ok(woven)
}

/// Each of the merged items is looked for in `order`, which fails where something that is no object comes before it.
fn findable(merged: &[Value], order: &[Value], merge_key: &str) -> Result<(), Error> {
    let Some(stranger) = order.iter().position(|item| !matches!(item, Value::Object(_))) else { return Ok(()) };
    let before: HashSet<Identity> =
        order[..stranger].iter().filter_map(|i| i.get(merge_key)).map(Identity::of).collect();
    for item in merged {
        let key = item.get(merge_key).ok_or_else(|| Error::no_merge_key(item, merge_key))?;
        if !before.contains(&Identity::of(key)) {
            return Err(Error::internal(format!("value for key {stranger} is not a map")));
        }
    }
    Ok(())
}

/// Every item must be an object with the merge key.
pub(super) fn require_keys(merge_key: &str, lists: &[&[Value]]) -> Result<(), Error> {
    for item in lists.iter().flat_map(|list| list.iter()) {
        match item {
            Value::Object(members) if members.contains_key(merge_key) => {}
            Value::Object(_) => return Err(Error::no_merge_key(item, merge_key)),
            other => return Err(Error::wrong_type(GO_MAP, other)),
        }
    }
    Ok(())
}

/// Whether two items have the same merge key, or are the same scalar.
pub(super) fn is_same_item(left: &Value, right: &Value, merge_key: &str) -> Result<bool, Error> {
    if merge_key.is_empty() {
        return Ok(left == right);
    }
    require_keys(merge_key, &[std::slice::from_ref(left), std::slice::from_ref(right)])?;
    Ok(left.get(merge_key) == right.get(merge_key))
}

/// The items of a patch's list must be among those of its `$setElementOrder` list, in the same order.
pub(super) fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), Error> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut items = Vec::with_capacity(patch.len());
    for item in patch {
        match item {
            _ if merge_key.is_empty() => items.push(item),
            Value::Object(members) => {
                if members.get(DIRECTIVE).and_then(Value::as_str) != Some(DELETE) {
                    items.push(item);
                }
            }
            other => return Err(Error::wrong_type(GO_MAP, other)),
        }
    }
    let mut places = order.iter();
    for item in items {
        let has_directive = item.get(DIRECTIVE).is_some();
        if has_directive {
            continue;
        }
        loop {
            match places.next() {
                Some(place) if is_same_item(item, place, merge_key)? => break,
                Some(_) => {}
                None => {
                    return Err(Error::internal(format!(
                        "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
                        go::plain(&Value::Array(patch.to_vec())),
                        go::plain(&Value::Array(order.to_vec()))
                    )));
                }
            }
        }
    }
    Ok(())
}
