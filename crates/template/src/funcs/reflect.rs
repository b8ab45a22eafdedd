//! Sprig's questions about types.

use super::{Table, arg, text};
use crate::value::{Heap, MAX_NESTING, Result, TOO_DEEP, Val};

pub(super) const TABLE: Table = &[
    ("typeOf", "a", |w, a| Ok(Val::str(w.heap.type_name(&arg(a, 0))))),
    ("typeIs", "sa", |w, a| Ok(Val::Bool(text(a, 0) == w.heap.type_name(&arg(a, 1))))),
    ("typeIsLike", "sa", |w, a| {
        let name = w.heap.type_name(&arg(a, 1));
        Ok(Val::Bool(text(a, 0) == name || name.strip_prefix('*') == Some(&*text(a, 0))))
    }),
    ("kindOf", "a", |_, a| Ok(Val::str(arg(a, 0).kind()))),
    ("kindIs", "sa", |_, a| Ok(Val::Bool(text(a, 0) == arg(a, 1).kind()))),
    ("deepEqual", "aa", |w, a| deep_equal(&w.heap, &arg(a, 0), &arg(a, 1)).map(Val::Bool)),
];

/// `reflect.DeepEqual`: values of different types are different.
pub(super) fn deep_equal<'a>(heap: &Heap<'a>, a: &Val<'a>, b: &Val<'a>) -> Result<bool> {
    let mut left = 1_000_000;
    equal(heap, a, b, 0, &mut left)
}

fn equal<'a>(heap: &Heap<'a>, a: &Val<'a>, b: &Val<'a>, depth: usize, left: &mut usize) -> Result<bool> {
    *left = left.checked_sub(1).ok_or(TOO_DEEP)?;
    if depth > MAX_NESTING {
        return Err(TOO_DEEP.to_owned());
    }
    Ok(match (a, b) {
        (Val::Nil, Val::Nil) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Int(a, t), Val::Int(b, u)) => a == b && t == u,
        (Val::Float(a), Val::Float(b)) => a == b,
        (Val::Complex(a, b), Val::Complex(c, d)) => a == c && b == d,
        (Val::Str(a), Val::Str(b)) => a.bytes() == b.bytes(),
        (Val::Special(a), Val::Special(b)) => a == b,
        (Val::List(x), Val::List(y)) => {
            if heap.type_name(a) != heap.type_name(b) || heap.len(*x) != heap.len(*y) {
                return Ok(false);
            }
            for (a, b) in heap.items(*x).iter().zip(&heap.items(*y)) {
                if !equal(heap, a, b, depth + 1, left)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(x), Val::Map(y)) => {
            if heap.same(*x, *y) {
                return Ok(true);
            }
            if heap.type_name(a) != heap.type_name(b) || heap.dict_len(*x) != heap.dict_len(*y) {
                return Ok(false);
            }
            for ((k, a), (l, b)) in heap.members(*x).iter().zip(&heap.members(*y)) {
                if k != l || !equal(heap, a, b, depth + 1, left)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}
