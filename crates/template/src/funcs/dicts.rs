//! Sprig's functions on dictionaries.

use super::{Table, arg, strval, text};
use crate::value::{Dict, MAX_NESTING, Result, TOO_DEEP, Val};
use crate::world::World;
use compact_str::CompactString;
use std::collections::BTreeMap;

pub(super) const TABLE: Table = &[
    ("dict", "a*", dict),
    ("get", "ms", |w, a| {
        let found = as_dict(a, 0).and_then(|d| w.heap.get(d, &text(a, 1)));
        Ok(found.unwrap_or_else(|| Val::str("")))
    }),
    ("set", "msa", |w, a| {
        let Some(dict) = as_dict(a, 0) else { return Err("assignment to entry in nil map".to_owned()) };
        let (key, value) = (text(a, 1).as_ref().into(), arg(a, 2));
        w.heap.change(dict)?.insert(key, value);
        Ok(arg(a, 0))
    }),
    ("unset", "ms", |w, a| {
        if let Some(dict) = as_dict(a, 0) {
            w.heap.change(dict)?.remove(&*text(a, 1));
        }
        Ok(arg(a, 0))
    }),
    ("hasKey", "ms", |w, a| Ok(Val::Bool(as_dict(a, 0).is_some_and(|d| w.heap.get(d, &text(a, 1)).is_some())))),
    ("pluck", "sm*", |w, a| {
        let key = text(a, 0);
        let found = (1..a.len()).filter_map(|i| w.heap.get(as_dict(a, i)?, &key)).collect();
        w.heap.list(found)
    }),
    ("keys", "m*", |w, a| {
        let mut keys = Vec::new();
        for i in 0..a.len() {
            if let Some(d) = as_dict(a, i) {
                keys.extend(w.heap.members(d).into_iter().map(|(k, _)| k.to_string()));
            }
        }
        w.heap.strings(keys)
    }),
    ("values", "m", |w, a| {
        let values = as_dict(a, 0).map(|d| w.heap.members(d)).unwrap_or_default();
        w.heap.list(values.into_iter().map(|(_, v)| v).collect())
    }),
    ("pick", "ms*", |w, a| {
        let picked = (1..a.len())
            .filter_map(|i| {
                let key = text(a, i);
                Some((CompactString::from(&*key), w.heap.get(as_dict(a, 0)?, &key)?))
            })
            .collect();
        w.heap.dict(picked)
    }),
    ("omit", "ms*", |w, a| {
        let mut members = copy(w, a, 0);
        for i in 1..a.len() {
            members.remove(&*text(a, i));
        }
        w.heap.dict(members)
    }),
    ("merge", "mm*", |w, a| merge_all(w, a, false)),
    ("mustMerge", "mm*", |w, a| merge_all(w, a, false)),
    ("mergeOverwrite", "mm*", |w, a| merge_all(w, a, true)),
    ("mustMergeOverwrite", "mm*", |w, a| merge_all(w, a, true)),
    ("deepCopy", "a", |w, a| deep_copy(w, &arg(a, 0), 0)),
    ("mustDeepCopy", "a", |w, a| deep_copy(w, &arg(a, 0), 0)),
    ("dig", "a*", dig),
];

fn as_dict<'a>(a: &[Val<'a>], i: usize) -> Option<Dict<'a>> {
    match a.get(i) {
        Some(Val::Map(d)) => Some(*d),
        _ => None,
    }
}

fn copy<'a>(w: &World<'a>, a: &[Val<'a>], i: usize) -> BTreeMap<CompactString, Val<'a>> {
    as_dict(a, i).map(|d| w.heap.members(d).into_iter().collect()).unwrap_or_default()
}

fn dict<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut members = BTreeMap::new();
    for pair in a.chunks(2) {
        let key = strval(&w.heap, &arg(pair, 0))?;
        members.insert(key.into(), pair.get(1).cloned().unwrap_or_else(|| Val::str("")));
    }
    w.heap.dict(members)
}

/// Merges into the first dictionary, which is changed.
fn merge_all<'a>(w: &mut World<'a>, a: &[Val<'a>], overwrite: bool) -> Result<Val<'a>> {
    let Some(target) = as_dict(a, 0) else { return Ok(Val::Nil) };
    for i in 1..a.len() {
        if let Some(source) = as_dict(a, i) {
            merge(w, target, source, overwrite, 0)?;
        }
    }
    Ok(arg(a, 0))
}

fn merge<'a>(w: &mut World<'a>, target: Dict<'a>, source: Dict<'a>, overwrite: bool, depth: usize) -> Result<()> {
    if depth > MAX_NESTING {
        return Err(TOO_DEEP.to_owned());
    }
    if w.heap.same(target, source) {
        return Ok(());
    }
    for (key, value) in w.heap.members(source) {
        w.heap.charge(64)?;
        match (w.heap.get(target, &key), &value) {
            (Some(Val::Map(t)), Val::Map(s)) => merge(w, t, *s, overwrite, depth + 1)?,
            (old, _) => {
                let keep =
                    old.is_some_and(
                        |o| if overwrite { super::empty(&w.heap, &value) } else { !super::empty(&w.heap, &o) },
                    );
                if !keep {
                    w.heap.change(target)?.insert(key, value);
                }
            }
        }
    }
    Ok(())
}

fn deep_copy<'a>(w: &mut World<'a>, val: &Val<'a>, depth: usize) -> Result<Val<'a>> {
    if depth > MAX_NESTING {
        return Err(TOO_DEEP.to_owned());
    }
    match val {
        Val::Nil if depth == 0 => Err("invalid memory address or nil pointer dereference".to_owned()),
        Val::List(list) => {
            let elem = w.heap.list_elem(*list);
            let mut items = w.heap.items(*list);
            for item in &mut items {
                *item = deep_copy(w, item, depth + 1)?;
            }
            w.heap.list_of(elem, items)
        }
        Val::Map(dict) => {
            let elem = w.heap.dict_elem(*dict);
            let mut members = BTreeMap::new();
            for (key, value) in w.heap.members(*dict) {
                members.insert(key, deep_copy(w, &value, depth + 1)?);
            }
            w.heap.dict_of(elem, members)
        }
        other => Ok(other.clone()),
    }
}

/// `dig "a" "b" default dict`
fn dig<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let [path @ .., default, dict] = a else { return Err("dig needs at least three arguments".to_owned()) };
    if path.is_empty() {
        return Err("dig needs at least three arguments".to_owned());
    }
    let mut at = dict.clone();
    for (i, key) in path.iter().enumerate() {
        let Val::Map(d) = &at else {
            let got = w.heap.type_name(&at);
            return Err(format!("interface conversion: interface {{}} is {got}, not map[string]interface {{}}"));
        };
        let Val::Str(key) = key else {
            let got = w.heap.type_name(key);
            return Err(format!("interface conversion: interface {{}} is {got}, not string"));
        };
        match w.heap.get(*d, &key.text()) {
            Some(next) => at = next,
            None => return Ok(default.clone()),
        }
        if i + 1 < path.len() && at.is_nil() {
            return Ok(default.clone());
        }
    }
    Ok(at)
}
