//! The functions of Go's `text/template` itself.

use super::{Table, arg, text};
use crate::escape;
use crate::print;
use crate::printf::sprintf;
use crate::value::{Dict, Elem, IntType, Result, Str, Val};
use crate::world::World;

pub(super) const TABLE: Table = &[
    // These three are run by the executor, which does not evaluate what need not be.
    ("and", "rr*", |_, args| Ok(arg(args, 0))),
    ("or", "rr*", |_, args| Ok(arg(args, 0))),
    ("call", "rr*", |_, _| Err("call of nil".to_owned())),
    ("not", "r", |w, args| Ok(Val::Bool(!w.heap.truth(&arg(args, 0))))),
    ("print", "a*", |w, args| {
        let text = print::sprint(&w.heap, args)?;
        w.heap.string(text)
    }),
    ("println", "a*", |w, args| {
        let text = print::sprintln(&w.heap, args)?;
        w.heap.string(text)
    }),
    ("printf", "sa*", |w, args| {
        let out = sprintf(&w.heap, &text(args, 0), args.get(1..).unwrap_or_default())?;
        w.heap.string(out)
    }),
    ("html", "a*", |w, args| escaped(w, args, escape::html)),
    ("js", "a*", |w, args| escaped(w, args, escape::js)),
    ("urlquery", "a*", |w, args| escaped(w, args, escape::query)),
    ("index", "rr*", index),
    ("slice", "rr*", slice),
    ("len", "r", length),
    ("eq", "rr*", |w, args| eq(w, args).map(Val::Bool)),
    ("ne", "rr", |w, args| eq(w, args).map(|b| Val::Bool(!b))),
    ("lt", "rr", |w, args| less(w, args).map(Val::Bool)),
    ("le", "rr", |w, args| at_most(w, args).map(Val::Bool)),
    ("gt", "rr", |w, args| at_most(w, args).map(|b| Val::Bool(!b))),
    ("ge", "rr", |w, args| less(w, args).map(|b| Val::Bool(!b))),
];

fn escaped<'a>(w: &mut World<'a>, args: &[Val<'a>], escape: fn(&str) -> String) -> Result<Val<'a>> {
    // A nil among them prints as the template would print it.
    let args: Vec<Val> = args.iter().map(|a| if a.is_nil() { Val::str("<no value>") } else { a.clone() }).collect();
    let text = print::sprint(&w.heap, &args)?;
    w.heap.charge(text.len())?;
    w.heap.string(escape(&text))
}

fn index_arg<'a>(w: &World<'a>, index: &Val<'a>, cap: usize) -> Result<usize> {
    match index {
        Val::Int(x, _) => {
            usize::try_from(*x).ok().filter(|x| *x <= cap).ok_or_else(|| format!("index out of range: {x}"))
        }
        Val::Nil => Err("cannot index slice/array with nil".to_owned()),
        other => Err(format!("cannot index slice/array with type {}", w.heap.type_name(other))),
    }
}

fn index<'a>(w: &mut World<'a>, args: &[Val<'a>]) -> Result<Val<'a>> {
    let mut item = arg(args, 0);
    if item.is_nil() {
        return Err("index of untyped nil".to_owned());
    }
    for index in args.get(1..).unwrap_or_default() {
        item = match &item {
            Val::Nil => return Err("index of nil pointer".to_owned()),
            Val::Str(s) => {
                let x = index_arg(w, index, s.bytes().len())?;
                let byte = s.bytes().get(x).ok_or("reflect: string index out of range")?;
                Val::Int(i64::from(*byte), IntType::Uint8)
            }
            Val::List(list) => {
                let x = index_arg(w, index, w.heap.len(*list))?;
                w.heap.item(*list, x).ok_or("reflect: slice index out of range")?
            }
            Val::Map(dict) => member(w, *dict, index)?,
            other => return Err(format!("can't index item of type {}", w.heap.type_name(other))),
        };
    }
    Ok(item)
}

fn member<'a>(w: &World<'a>, dict: Dict<'a>, index: &Val<'a>) -> Result<Val<'a>> {
    let key = match index {
        Val::Str(s) => s.text(),
        Val::Nil => return Err("value is nil; should be of type string".to_owned()),
        other => return Err(format!("value has type {}; should be string", w.heap.type_name(other))),
    };
    Ok(w.heap.get(dict, &key).unwrap_or_else(|| match w.heap.dict_elem(dict) {
        Elem::Any => Val::Nil,
        Elem::Str => Val::str(""),
        Elem::Int => Val::int(0),
    }))
}

fn slice<'a>(w: &mut World<'a>, args: &[Val<'a>]) -> Result<Val<'a>> {
    let item = arg(args, 0);
    let indexes = args.get(1..).unwrap_or_default();
    if item.is_nil() {
        return Err("slice of untyped nil".to_owned());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()));
    }
    let length = match &item {
        Val::Str(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".to_owned()),
        Val::Str(s) => s.bytes().len(),
        Val::List(list) => w.heap.len(*list),
        other => return Err(format!("can't slice item of type {}", w.heap.type_name(other))),
    };
    let mut at = [0, length, length];
    for (place, index) in at.iter_mut().zip(indexes) {
        *place = index_arg(w, index, length)?;
    }
    let [from, to, cap] = at;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}"));
    }
    if to > cap {
        return Err(format!("invalid slice index: {to} > {cap}"));
    }
    match &item {
        Val::Str(s) => Ok(Val::Str(Str::from_bytes(s.bytes().get(from..to).unwrap_or_default()))),
        Val::List(list) => {
            let elem = w.heap.list_elem(*list);
            let items = w.heap.items(*list).get(from..to).unwrap_or_default().to_vec();
            w.heap.list_of(elem, items)
        }
        _ => Ok(Val::Nil),
    }
}

fn length<'a>(w: &mut World<'a>, args: &[Val<'a>]) -> Result<Val<'a>> {
    let length = match &arg(args, 0) {
        Val::Str(s) => s.bytes().len(),
        Val::List(list) => w.heap.len(*list),
        Val::Map(dict) => w.heap.dict_len(*dict),
        // What Go's reflection says when it is asked for the type of nothing.
        Val::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        other => return Err(format!("len of type {}", w.heap.type_name(other))),
    };
    Ok(Val::int(length as i64))
}

/// What values can be compared as.
#[derive(PartialEq, Clone, Copy)]
enum Basic {
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    String,
    None,
}

fn basic(val: &Val) -> Basic {
    match val {
        Val::Bool(_) => Basic::Bool,
        Val::Int(_, t) if t.is_unsigned() => Basic::Uint,
        Val::Int(..) => Basic::Int,
        Val::Float(_) => Basic::Float,
        Val::Complex(..) => Basic::Complex,
        Val::Str(_) => Basic::String,
        Val::Special(s) if matches!(**s, crate::value::Special::Duration(_)) => Basic::Int,
        _ => Basic::None,
    }
}

fn duration_or_int(val: &Val) -> i64 {
    match val {
        Val::Int(i, _) => *i,
        Val::Special(s) => match **s {
            crate::value::Special::Duration(d) => d,
            _ => 0,
        },
        _ => 0,
    }
}

fn eq<'a>(w: &World<'a>, args: &[Val<'a>]) -> Result<bool> {
    let first = arg(args, 0);
    let others = args.get(1..).unwrap_or_default();
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        let truth = match (basic(&first), basic(other)) {
            (Basic::Int | Basic::Uint, Basic::Int | Basic::Uint) => duration_or_int(&first) == duration_or_int(other),
            (a, b) if a != b => {
                if !first.is_nil() && !other.is_nil() {
                    return Err(incompatible(w, &first, other));
                }
                false
            }
            (Basic::None, _) => {
                if first.is_nil() || other.is_nil() {
                    first.is_nil() == other.is_nil()
                } else if first.kind() != other.kind() {
                    return Err(format!(
                        "non-comparable types {}: {}, {}: {}",
                        print::by_verb(&w.heap, &first, 's')?,
                        w.heap.type_name(&first),
                        w.heap.type_name(other),
                        print::plain(&w.heap, other)?
                    ));
                } else {
                    match (&first, other) {
                        (Val::Special(a), Val::Special(b)) => a == b,
                        _ => {
                            return Err(format!(
                                "non-comparable type {}: {}",
                                print::by_verb(&w.heap, other, 's')?,
                                w.heap.type_name(other)
                            ));
                        }
                    }
                }
            }
            _ => match (&first, other) {
                (Val::Bool(a), Val::Bool(b)) => a == b,
                (Val::Float(a), Val::Float(b)) => a == b,
                (Val::Complex(a, b), Val::Complex(c, d)) => a == c && b == d,
                (Val::Str(a), Val::Str(b)) => a.bytes() == b.bytes(),
                _ => false,
            },
        };
        if truth {
            return Ok(true);
        }
    }
    Ok(false)
}

fn incompatible<'a>(w: &World<'a>, a: &Val<'a>, b: &Val<'a>) -> String {
    format!("incompatible types for comparison: {} and {}", w.heap.type_name(a), w.heap.type_name(b))
}

fn less<'a>(w: &World<'a>, args: &[Val<'a>]) -> Result<bool> {
    const BAD: &str = "invalid type for comparison";
    let (a, b) = (arg(args, 0), arg(args, 1));
    match (basic(&a), basic(&b)) {
        (Basic::None, _) | (_, Basic::None) => Err(BAD.to_owned()),
        (Basic::Int | Basic::Uint, Basic::Int | Basic::Uint) => Ok(duration_or_int(&a) < duration_or_int(&b)),
        (x, y) if x != y => Err(incompatible(w, &a, &b)),
        _ => match (&a, &b) {
            (Val::Float(a), Val::Float(b)) => Ok(a < b),
            (Val::Str(a), Val::Str(b)) => Ok(a.bytes() < b.bytes()),
            _ => Err(BAD.to_owned()),
        },
    }
}

fn at_most<'a>(w: &World<'a>, args: &[Val<'a>]) -> Result<bool> {
    Ok(less(w, args)? || eq(w, args)?)
}
