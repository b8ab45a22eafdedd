//! Looking up objects in lists of them.

use super::{Table, arg, text};
use crate::value::{Result, Val};
use crate::world::World;
use std::collections::BTreeMap;

pub(super) const TABLE: Table = &[
    ("getResourceByName", "sa", |w, a| get(w, None, &text(a, 0), &arg(a, 1), false)),
    ("mustGetResourceByName", "sa", |w, a| get(w, None, &text(a, 0), &arg(a, 1), true)),
    ("getResourceByNamespacedName", "ssa", |w, a| get(w, Some(&text(a, 0)), &text(a, 1), &arg(a, 2), false)),
];

/// The one object with this name in a list; an empty map if there is none, unless there must be one.
fn get<'a>(w: &mut World<'a>, namespace: Option<&str>, name: &str, list: &Val<'a>, must: bool) -> Result<Val<'a>> {
    let items = match list {
        Val::Nil => Vec::new(),
        Val::List(list) => w.heap.items(*list),
        other => return Err(format!("resources must be a list, got {}", w.heap.type_name(other))),
    };
    let is = |val: &Val<'a>, key: &str, wanted: &str| {
        let Val::Map(object) = val else { return false };
        let Some(Val::Map(metadata)) = w.heap.get(*object, "metadata") else { return false };
        matches!(w.heap.get(metadata, key), Some(Val::Str(s)) if s.text() == wanted)
    };
    let mut found =
        items.into_iter().filter(|i| is(i, "name", name) && namespace.is_none_or(|n| is(i, "namespace", n)));
    let place = namespace.map(|n| format!("{n}/")).unwrap_or_default();
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(format!("more than one resource with the name \"{place}{name}\"")),
        (Some(one), None) => Ok(one),
        _ if must => Err(format!("resource \"{place}{name}\" not found")),
        _ => {
            drop(found);
            w.heap.dict(BTreeMap::new())
        }
    }
}
