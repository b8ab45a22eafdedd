//! Sprig's functions on regular expressions, in Go's syntax.

use super::{Table, int, text};
use crate::value::{Result, Val};
use crate::world::World;
use regexp::Regexp;

pub(super) const TABLE: Table = &[
    ("regexMatch", "ss", |w, a| is_match(w, a).or(Ok(Val::Bool(false)))),
    ("mustRegexMatch", "ss", is_match),
    ("regexFind", "ss", find),
    ("mustRegexFind", "ss", find),
    ("regexFindAll", "ssi", find_all),
    ("mustRegexFindAll", "ssi", find_all),
    ("regexReplaceAll", "sss", |w, a| replace(w, a, true)),
    ("mustRegexReplaceAll", "sss", |w, a| replace(w, a, true)),
    ("regexReplaceAllLiteral", "sss", |w, a| replace(w, a, false)),
    ("mustRegexReplaceAllLiteral", "sss", |w, a| replace(w, a, false)),
    ("regexSplit", "ssi", split),
    ("mustRegexSplit", "ssi", split),
    ("regexQuoteMeta", "s", |w, a| {
        let s = text(a, 0);
        let mut out = String::with_capacity(s.len());
        for c in s.chars() {
            if r"\.+*?()|[]{}^$".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
        w.heap.string(out)
    }),
];

/// Compiles a pattern; that costs, since a loop may do it again and again.
fn compile(w: &mut World<'_>, pattern: &str) -> Result<Regexp> {
    w.heap.charge(1024 + pattern.len() * 16)?;
    Regexp::new(pattern).map_err(|e| e.to_string())
}

fn is_match<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(compile(w, &text(a, 0))?.is_match(&text(a, 1))))
}

fn find<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let regexp = compile(w, &text(a, 0))?;
    let s = text(a, 1);
    w.heap.string(regexp.find(&s).and_then(|r| s.get(r)).unwrap_or(""))
}

fn limit(n: i64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn find_all<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let regexp = compile(w, &text(a, 0))?;
    let s = text(a, 1);
    let found: Vec<String> =
        regexp.find_iter(&s).take(limit(int(a, 2))).filter_map(|r| s.get(r)).map(str::to_owned).collect();
    w.heap.strings(found)
}

fn split<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let regexp = compile(w, &text(a, 0))?;
    let s = text(a, 1);
    let n = limit(int(a, 2));
    if n == 0 {
        return Ok(Val::Nil);
    }
    if !regexp.as_str().is_empty() && s.is_empty() {
        return w.heap.strings([""]);
    }
    // As Go's Split: what stands between the matches, but no empty part at the start for an empty match there.
    let mut out: Vec<String> = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for range in regexp.find_iter(&s) {
        if out.len() + 1 == n {
            break;
        }
        end = range.start;
        if range.end != 0 {
            out.push(s.get(begin..end).unwrap_or_default().to_owned());
        }
        begin = range.end;
    }
    if end != s.len() {
        out.push(s.get(begin..).unwrap_or_default().to_owned());
    }
    w.heap.strings(out)
}

/// Every match replaced; in what takes its place `$1` and `${name}` stand for groups if `expand`.
fn replace<'a>(w: &mut World<'a>, a: &[Val<'a>], expand: bool) -> Result<Val<'a>> {
    let (pattern, s, with) = (text(a, 0), text(a, 1), text(a, 2));
    w.heap.charge(1024 + pattern.len() * 16)?;
    let regexp = regexp::Groups::new(&pattern).map_err(|e| e.to_string())?;
    let mut out = String::new();
    let mut last = 0;
    for groups in regexp.find_iter(&s) {
        let Some(whole) = groups.first().cloned().flatten() else { continue };
        out.push_str(s.get(last..whole.start).unwrap_or_default());
        let before = out.len();
        if expand {
            expand_into(&mut out, &with, &s, &regexp, &groups);
        } else {
            out.push_str(&with);
        }
        w.heap.charge(out.len() - before)?;
        last = whole.end;
    }
    out.push_str(s.get(last..).unwrap_or_default());
    w.heap.string(out)
}

fn expand_into(
    out: &mut String,
    with: &str,
    s: &str,
    regexp: &regexp::Groups,
    groups: &[Option<std::ops::Range<usize>>],
) {
    let mut rest = with;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            out.push('$');
            continue;
        };
        let number = name.parse::<usize>().ok().or_else(|| regexp.group(name));
        if let Some(range) = number.and_then(|n| groups.get(n).cloned().flatten()) {
            out.push_str(s.get(range).unwrap_or_default());
        }
        rest = after;
    }
    out.push_str(rest);
}

/// The name after a `$`, with or without braces, and what follows.
fn reference(rest: &str) -> Option<(&str, &str)> {
    let word = |c: char| c == '_' || c.is_alphanumeric();
    if let Some(inner) = rest.strip_prefix('{') {
        let (name, after) = inner.split_once('}')?;
        return (!name.is_empty() && name.chars().all(word)).then_some((name, after));
    }
    let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
    (end > 0).then(|| rest.split_at(end))
}
