//! Sprig's functions on strings.

use super::{Table, arg, int, strslice, strval, text};
use crate::print::plain;
use crate::value::{Elem, Result, Str, Val};
use crate::world::World;
use compact_str::CompactString;
use object::go;
use std::collections::BTreeMap;

pub(super) const TABLE: Table = &[
    ("hello", "", |_, _| Ok(Val::str("Hello!"))),
    ("trim", "s", |w, a| w.heap.string(text(a, 0).trim())),
    ("upper", "s", |w, a| w.heap.string(text(a, 0).to_uppercase())),
    ("lower", "s", |w, a| w.heap.string(text(a, 0).to_lowercase())),
    ("trimAll", "ss", trim_all),
    ("trimall", "ss", trim_all),
    ("trimSuffix", "ss", |w, a| {
        let (suffix, s) = (text(a, 0), text(a, 1));
        w.heap.string(s.strip_suffix(&*suffix).unwrap_or(&s))
    }),
    ("trimPrefix", "ss", |w, a| {
        let (prefix, s) = (text(a, 0), text(a, 1));
        w.heap.string(s.strip_prefix(&*prefix).unwrap_or(&s))
    }),
    ("contains", "ss", |_, a| Ok(Val::Bool(text(a, 1).contains(&*text(a, 0))))),
    ("hasPrefix", "ss", |_, a| Ok(Val::Bool(text(a, 1).starts_with(&*text(a, 0))))),
    ("hasSuffix", "ss", |_, a| Ok(Val::Bool(text(a, 1).ends_with(&*text(a, 0))))),
    ("nospace", "s", |w, a| w.heap.string(text(a, 0).split_whitespace().collect::<String>())),
    ("trunc", "is", trunc),
    ("substr", "iis", substr),
    ("repeat", "is", repeat),
    ("replace", "sss", replace),
    ("quote", "a*", |w, a| quoted(w, a, |s| go::quote(&s))),
    ("squote", "a*", |w, a| quoted(w, a, |s| format!("'{s}'"))),
    ("cat", "a*", cat),
    ("indent", "is", |w, a| indent(w, a, "")),
    ("nindent", "is", |w, a| indent(w, a, "\n")),
    ("plural", "ssi", |w, a| w.heap.string(if int(a, 2) == 1 { text(a, 0) } else { text(a, 1) })),
    ("toString", "a", |w, a| match arg(a, 0) {
        Val::Str(s) => Ok(Val::Str(s)),
        other => {
            let text = strval(&w.heap, &other)?;
            w.heap.string(text)
        }
    }),
    ("toStrings", "a", |w, a| {
        let items = strslice(&w.heap, &arg(a, 0))?;
        w.heap.strings(items)
    }),
    ("join", "sa", |w, a| {
        let items = strslice(&w.heap, &arg(a, 1))?;
        let separator = text(a, 0);
        w.heap.charge(separator.len().saturating_mul(items.len()))?;
        w.heap.string(items.join(&separator))
    }),
    ("sortAlpha", "a", |w, a| {
        let mut items = strslice(&w.heap, &arg(a, 0))?;
        items.sort();
        w.heap.strings(items)
    }),
    ("split", "ss", |w, a| {
        let (separator, s) = (text(a, 0), text(a, 1));
        numbered(w, parts(&s, &separator, None))
    }),
    ("splitn", "sis", |w, a| {
        let (separator, s) = (text(a, 0), text(a, 2));
        numbered(w, parts(&s, &separator, Some(int(a, 1))))
    }),
    ("splitList", "ss", |w, a| {
        let (separator, s) = (text(a, 0), text(a, 1));
        w.heap.strings(parts(&s, &separator, None))
    }),
    ("abbrev", "is", |w, a| {
        let s = text(a, 1);
        let short = abbreviate(&s, 0, int(a, 0));
        w.heap.string(short)
    }),
    ("abbrevboth", "iis", |w, a| {
        let (left, right, s) = (int(a, 0), int(a, 1), text(a, 2));
        let short = if left > 0 && right < 7 { s.into_owned() } else { abbreviate(&s, left, right) };
        w.heap.string(short)
    }),
    ("wrap", "is", |w, a| {
        let s = text(a, 1);
        w.heap.charge(s.len())?;
        w.heap.string(wrap(&s, int(a, 0), "\n", false))
    }),
    ("wrapWith", "iss", |w, a| {
        let (separator, s) = (text(a, 1), text(a, 2));
        w.heap.charge(s.len().saturating_mul(separator.len() + 1))?;
        w.heap.string(wrap(&s, int(a, 0), &separator, true))
    }),
    ("randAlphaNum", "i", |w, a| random(w, a, |b| b.is_ascii_alphanumeric())),
    ("randAlpha", "i", |w, a| random(w, a, |b| b.is_ascii_alphabetic())),
    ("randNumeric", "i", |w, a| random(w, a, |b| b.is_ascii_digit())),
    ("randAscii", "i", |w, a| random(w, a, |b| (32..127).contains(&b))),
    ("shuffle", "s", |w, a| {
        let mut chars: Vec<char> = text(a, 0).chars().collect();
        for i in (1..chars.len()).rev() {
            let j = w.below(i as u64 + 1) as usize;
            chars.swap(i, j);
        }
        w.heap.string(chars.into_iter().collect::<String>())
    }),
];

fn trim_all<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (set, s) = (text(a, 0), text(a, 1));
    w.heap.string(s.trim_matches(|c| set.contains(c)))
}

fn trunc<'a>(_: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (count, s) = (int(a, 0), text(a, 1));
    let bytes = s.as_bytes();
    let part = match usize::try_from(count.unsigned_abs()) {
        Ok(n) if n < bytes.len() => {
            if count < 0 {
                &bytes[bytes.len() - n..]
            } else {
                &bytes[..n]
            }
        }
        _ => bytes,
    };
    Ok(Val::Str(Str::from_bytes(part)))
}

fn substr<'a>(_: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (start, end, s) = (int(a, 0), int(a, 1), text(a, 2));
    let length = s.len() as i64;
    let (from, to) = match (start, end) {
        (..0, end) => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        both => both,
    };
    let part = usize::try_from(from).ok().zip(usize::try_from(to).ok()).and_then(|(f, t)| s.as_bytes().get(f..t));
    match part {
        Some(part) => Ok(Val::Str(Str::from_bytes(part))),
        None if to > length => Err(format!("runtime error: slice bounds out of range [:{to}] with length {length}")),
        None => Err(format!("runtime error: slice bounds out of range [{from}:{to}]")),
    }
}

fn repeat<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (count, s) = (int(a, 0), text(a, 1));
    let Ok(count) = usize::try_from(count) else {
        return Err("strings: negative Repeat count".to_owned());
    };
    w.heap.charge(s.len().saturating_mul(count))?;
    Ok(Val::str(s.repeat(count)))
}

fn replace<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (old, new, s) = (text(a, 0), text(a, 1), text(a, 2));
    w.heap.charge(s.len().saturating_add(1).saturating_mul(new.len() / old.len().max(1) + 1))?;
    w.heap.string(s.replace(&*old, &new))
}

fn quoted<'a>(w: &mut World<'a>, a: &[Val<'a>], quote: fn(String) -> String) -> Result<Val<'a>> {
    let mut out = Vec::new();
    for v in a.iter().filter(|v| !v.is_nil()) {
        out.push(quote(strval(&w.heap, v)?));
    }
    w.heap.string(out.join(" "))
}

fn cat<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let mut out = Vec::new();
    for v in a.iter().filter(|v| !v.is_nil()) {
        out.push(plain(&w.heap, v)?);
    }
    w.heap.string(out.join(" "))
}

fn indent<'a>(w: &mut World<'a>, a: &[Val<'a>], before: &str) -> Result<Val<'a>> {
    let (count, s) = (int(a, 0), text(a, 1));
    let Ok(count) = usize::try_from(count) else {
        return Err("strings: negative Repeat count".to_owned());
    };
    let lines = s.matches('\n').count() + 1;
    w.heap.charge(s.len().saturating_add(count.saturating_mul(lines + 1)))?;
    let pad = " ".repeat(count);
    Ok(Val::str(format!("{before}{pad}{}", s.replace('\n', &format!("\n{pad}")))))
}

/// The parts of a text as `strings.SplitN` gives them; an empty separator splits into characters.
fn parts(s: &str, separator: &str, limit: Option<i64>) -> Vec<String> {
    let limit = match limit {
        Some(0) => return Vec::new(),
        Some(n) => usize::try_from(n).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    if separator.is_empty() {
        let mut out: Vec<String> = Vec::new();
        let mut rest = s;
        while let Some(c) = rest.chars().next() {
            if out.len() + 1 >= limit {
                out.push(rest.to_owned());
                break;
            }
            out.push(c.to_string());
            rest = &rest[c.len_utf8()..];
        }
        return out;
    }
    s.splitn(limit, separator).map(str::to_owned).collect()
}

/// A map with the parts as `_0`, `_1`, ….
fn numbered<'a>(w: &mut World<'a>, parts: Vec<String>) -> Result<Val<'a>> {
    let mut members = BTreeMap::new();
    for (i, part) in parts.into_iter().enumerate() {
        let part = w.heap.string(part)?;
        members.insert(CompactString::from(format!("_{i}")), part);
    }
    w.heap.dict_of(Elem::Str, members)
}

/// A text cut down to `width` bytes with an ellipsis, on both sides if `offset` is beyond the first few.
fn abbreviate(s: &str, offset: i64, width: i64) -> String {
    let (Ok(width), Ok(offset)) = (usize::try_from(width), usize::try_from(offset)) else { return s.to_owned() };
    if width < 4 || s.len() <= width {
        return s.to_owned();
    }
    let cut =
        |from: usize, to: usize| String::from_utf8_lossy(s.as_bytes().get(from..to).unwrap_or_default()).into_owned();
    let offset = offset.min(s.len()).min(s.len() - (width - 3));
    if offset <= 4 {
        return cut(0, width - 3) + "...";
    }
    if width < 7 {
        return s.to_owned();
    }
    if offset + width - 3 < s.len() {
        return format!("...{}...", cut(offset, offset + width - 6));
    }
    format!("...{}", cut(s.len() - (width - 3), s.len()))
}

/// A text in lines of `length` characters; longer words are broken if `hard`.
fn wrap(s: &str, length: i64, separator: &str, hard: bool) -> String {
    let length = usize::try_from(length).unwrap_or(0).max(1);
    let chars: Vec<char> = s.chars().collect();
    let mut out = String::with_capacity(s.len());
    let mut at = 0;
    while chars.len() - at > length {
        if chars[at] == ' ' {
            at += 1;
            continue;
        }
        let space = (at..=at + length).rev().find(|i| chars[*i] == ' ').filter(|i| *i > at);
        let end = match space {
            Some(end) => end,
            None if hard => at + length,
            None => match (at + length..chars.len()).find(|i| chars[*i] == ' ') {
                Some(end) => end,
                None => break,
            },
        };
        out.extend(&chars[at..end]);
        out.push_str(separator);
        at = end + usize::from(chars.get(end) == Some(&' '));
    }
    out.extend(&chars[at..]);
    out
}

fn random<'a>(w: &mut World<'a>, a: &[Val<'a>], allowed: fn(u8) -> bool) -> Result<Val<'a>> {
    let count = usize::try_from(int(a, 0)).unwrap_or(0);
    w.heap.charge(count)?;
    let alphabet: Vec<u8> = (0..128u8).filter(|b| allowed(*b)).collect();
    let mut out = String::with_capacity(count);
    for _ in 0..count {
        let i = w.below(alphabet.len() as u64) as usize;
        out.push(alphabet.get(i).map_or('0', |b| char::from(*b)));
    }
    Ok(Val::str(out))
}
