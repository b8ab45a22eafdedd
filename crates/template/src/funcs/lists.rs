//! Sprig's functions on lists.

use super::convert::items_of;
use super::{Table, arg, empty, int};
use crate::value::{Result, Val};
use crate::world::World;

pub(super) const TABLE: Table = &[
    ("list", "a*", |w, a| w.heap.list(a.to_vec())),
    ("tuple", "a*", |w, a| w.heap.list(a.to_vec())),
    ("append", "aa", push),
    ("push", "aa", push),
    ("mustAppend", "aa", push),
    ("mustPush", "aa", push),
    ("prepend", "aa", prepend),
    ("mustPrepend", "aa", prepend),
    ("first", "a", first),
    ("mustFirst", "a", first),
    ("last", "a", last),
    ("mustLast", "a", last),
    ("rest", "a", |w, a| part(w, a, "rest", |items| items.get(1..))),
    ("mustRest", "a", |w, a| part(w, a, "rest", |items| items.get(1..))),
    ("initial", "a", |w, a| part(w, a, "initial", |items| items.split_last().map(|(_, i)| i))),
    ("mustInitial", "a", |w, a| part(w, a, "initial", |items| items.split_last().map(|(_, i)| i))),
    ("reverse", "a", reverse),
    ("mustReverse", "a", reverse),
    ("uniq", "a", uniq),
    ("mustUniq", "a", uniq),
    ("compact", "a", compact),
    ("mustCompact", "a", compact),
    ("without", "aa*", without),
    ("mustWithout", "aa*", without),
    ("has", "aa", has),
    ("mustHas", "aa", has),
    ("slice", "aa*", slice),
    ("mustSlice", "aa*", slice),
    ("concat", "a*", concat),
    ("chunk", "ia", chunk),
    ("mustChunk", "ia", chunk),
];

fn push<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut items = items_of(&w.heap, &arg(a, 0), "push on")?;
    items.push(arg(a, 1));
    w.heap.list(items)
}

fn prepend<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut items = items_of(&w.heap, &arg(a, 0), "prepend on")?;
    items.insert(0, arg(a, 1));
    w.heap.list(items)
}

fn first<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(items_of(&w.heap, &arg(a, 0), "find first on")?.into_iter().next().unwrap_or(Val::Nil))
}

fn last<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(items_of(&w.heap, &arg(a, 0), "find last on")?.pop().unwrap_or(Val::Nil))
}

fn part<'a>(
    w: &mut World<'a>,
    a: &[Val<'a>],
    name: &str,
    take: for<'i> fn(&'i [Val<'a>]) -> Option<&'i [Val<'a>]>,
) -> Result<Val<'a>> {
    let items = items_of(&w.heap, &arg(a, 0), &format!("find {name} on"))?;
    match take(&items) {
        Some(part) => w.heap.list(part.to_vec()),
        None => Ok(Val::Nil),
    }
}

fn reverse<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut items = items_of(&w.heap, &arg(a, 0), "find reverse on")?;
    items.reverse();
    w.heap.list(items)
}

/// Whether a value is among others. Each comparison is paid for, since there may be many.
fn among<'a>(w: &mut World<'a>, needle: &Val<'a>, items: &[Val<'a>]) -> Result<bool> {
    w.heap.charge(items.len())?;
    for item in items {
        if super::reflect::deep_equal(&w.heap, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut out: Vec<Val<'a>> = Vec::new();
    for item in items_of(&w.heap, &arg(a, 0), "find uniq on")? {
        if !among(w, &item, &out)? {
            out.push(item);
        }
    }
    w.heap.list(out)
}

fn compact<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut items = items_of(&w.heap, &arg(a, 0), "compact on")?;
    items.retain(|i| !empty(&w.heap, i));
    w.heap.list(items)
}

fn without<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let omitted = a.get(1..).unwrap_or_default();
    let mut out = Vec::new();
    for item in items_of(&w.heap, &arg(a, 0), "find without on")? {
        if !among(w, &item, omitted)? {
            out.push(item);
        }
    }
    w.heap.list(out)
}

fn has<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    if arg(a, 1).is_nil() {
        return Ok(Val::Bool(false));
    }
    let items = items_of(&w.heap, &arg(a, 1), "find has on")?;
    among(w, &arg(a, 0), &items).map(Val::Bool)
}

fn slice<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let items = match arg(a, 0) {
        Val::List(list) => w.heap.items(list),
        other => return Err(format!("list should be type of slice or array but {}", other.kind())),
    };
    if items.is_empty() {
        return Ok(Val::Nil);
    }
    let bound = |i: usize, default: usize| match a.get(i) {
        Some(v) => {
            usize::try_from(super::convert::to_int(v)).map_err(|_| "reflect.Value.Slice: slice index out of bounds")
        }
        None => Ok(default),
    };
    let (from, to) = (bound(1, 0)?, bound(2, items.len())?);
    match items.get(from..to) {
        Some(part) => w.heap.list(part.to_vec()),
        None => Err("reflect.Value.Slice: slice index out of bounds".to_owned()),
    }
}

fn concat<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut out = Vec::new();
    for list in a {
        let items = items_of(&w.heap, list, "concat")?;
        w.heap.charge(items.len() * size_of::<Val>())?;
        out.extend(items);
    }
    w.heap.list(out)
}

fn chunk<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let items = items_of(&w.heap, &arg(a, 1), "chunk")?;
    let size = usize::try_from(int(a, 0)).ok().filter(|s| *s > 0).ok_or("runtime error: integer divide by zero")?;
    let mut out = Vec::new();
    for part in items.chunks(size) {
        out.push(w.heap.list(part.to_vec())?);
    }
    w.heap.list(out)
}
