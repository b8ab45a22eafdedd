//! Sprig's conversions and defaults.

use super::{Table, arg, empty, int, text};
use crate::literal::{parse_float, parse_int};
use crate::print::plain;
use crate::value::{Elem, Heap, Result, Special, Val};
use crate::world::World;

pub(super) const TABLE: Table = &[
    ("atoi", "s", |_, a| Ok(Val::int(text(a, 0).parse::<i64>().unwrap_or(0)))),
    ("int", "a", |_, a| Ok(Val::int(to_int(&arg(a, 0))))),
    ("int64", "a", |_, a| Ok(Val::int64(to_int(&arg(a, 0))))),
    ("float64", "a", |_, a| Ok(Val::Float(to_float(&arg(a, 0))))),
    ("toDecimal", "a", |w, a| {
        let digits = plain(&w.heap, &arg(a, 0))?;
        Ok(Val::int64(i64::from_str_radix(&digits, 8).unwrap_or(0)))
    }),
    ("default", "aa*", |w, a| match a.get(1) {
        Some(given) if !empty(&w.heap, given) => Ok(given.clone()),
        _ => Ok(arg(a, 0)),
    }),
    ("empty", "a", |w, a| Ok(Val::Bool(empty(&w.heap, &arg(a, 0))))),
    ("coalesce", "a*", |w, a| Ok(a.iter().find(|v| !empty(&w.heap, v)).cloned().unwrap_or(Val::Nil))),
    ("all", "a*", |w, a| Ok(Val::Bool(a.iter().all(|v| !empty(&w.heap, v))))),
    ("any", "a*", |w, a| Ok(Val::Bool(a.iter().any(|v| !empty(&w.heap, v))))),
    ("ternary", "aab", |_, a| Ok(if matches!(arg(a, 2), Val::Bool(true)) { arg(a, 0) } else { arg(a, 1) })),
    ("fail", "s", |_, a| Err(text(a, 0).into_owned())),
    ("until", "i", |w, a| {
        let count = int(a, 0);
        steps(w, 0, count, if count < 0 { -1 } else { 1 })
    }),
    ("untilStep", "iii", |w, a| steps(w, int(a, 0), int(a, 1), int(a, 2))),
    ("seq", "i*", seq),
];

/// `cast.ToInt64`: what is no number is 0.
pub(super) fn to_int(val: &Val<'_>) -> i64 {
    match val {
        Val::Int(i, _) => *i,
        Val::Float(f) => *f as i64,
        Val::Bool(b) => i64::from(*b),
        Val::Str(s) => {
            let text = s.text();
            // A fraction of zeros is none, and leading zeros make no octal number.
            let whole = match text.split_once('.') {
                Some((whole, zeros)) if !whole.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
                _ => &text,
            };
            let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |d| ("-", d));
            let trimmed = digits.trim_start_matches('0');
            if trimmed.is_empty() || trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                parse_int(&format!("{sign}{}", if trimmed.is_empty() { "0" } else { trimmed }))
                    .filter(|_| !digits.is_empty())
            } else {
                parse_int(whole)
            }
            .unwrap_or(0)
        }
        Val::Special(s) => match **s {
            Special::Duration(d) => d,
            _ => 0,
        },
        _ => 0,
    }
}

/// `cast.ToFloat64`: what is no number is 0.
pub(super) fn to_float(val: &Val<'_>) -> f64 {
    match val {
        Val::Int(i, _) => *i as f64,
        Val::Float(f) => *f,
        Val::Bool(b) => f64::from(u8::from(*b)),
        Val::Str(s) => parse_float(&s.text()).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn numbers<'a>(heap: &mut Heap<'a>, from: i64, to: i64, step: i64) -> Result<Vec<i64>> {
    if (to < from) != (step < 0) || step == 0 || to == from {
        return Ok(Vec::new());
    }
    let count = from.abs_diff(to).div_ceil(step.unsigned_abs());
    heap.charge(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(8))?;
    let mut out = Vec::new();
    let mut i = from;
    while (step > 0 && i < to) || (step < 0 && i > to) {
        out.push(i);
        match i.checked_add(step) {
            Some(next) => i = next,
            None => break,
        }
    }
    Ok(out)
}

fn steps<'a>(w: &mut World<'a>, from: i64, to: i64, step: i64) -> Result<Val<'a>> {
    let items = numbers(&mut w.heap, from, to, step)?;
    w.heap.list_of(Elem::Int, items.into_iter().map(Val::int).collect())
}

/// Numbers as the shell's `seq` prints them.
fn seq<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (from, to, step) = match a.len() {
        1 => (1, int(a, 0), None),
        2 => (int(a, 0), int(a, 1), None),
        3 => (int(a, 0), int(a, 2), Some(int(a, 1))),
        _ => return Ok(Val::str("")),
    };
    let down = to < from;
    let end = to.saturating_add(if down { -1 } else { 1 });
    let step = match step {
        Some(step) if down && step > 0 => return Ok(Val::str("")),
        Some(step) => step,
        None => {
            if down {
                -1
            } else {
                1
            }
        }
    };
    let items = numbers(&mut w.heap, from, end, step)?;
    let items: Vec<String> = items.iter().map(i64::to_string).collect();
    w.heap.string(items.join(" "))
}

/// The items of a list of anything, or what Sprig says of what is none.
pub(super) fn items_of<'a>(heap: &Heap<'a>, val: &Val<'a>, what: &str) -> Result<Vec<Val<'a>>> {
    match val {
        Val::List(list) => Ok(heap.items(*list)),
        other => Err(format!("Cannot {what} type {}", other.kind())),
    }
}
