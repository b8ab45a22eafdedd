//! Sprig's functions on slash-separated paths and on URLs. None of them looks at files or the network.

use super::{Table, arg, strval, text};
use crate::value::{Result, Val};
use crate::world::World;
use compact_str::CompactString;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

pub(super) const TABLE: Table = &[
    ("base", "s", |w, a| w.heap.string(base(&text(a, 0)))),
    ("dir", "s", |w, a| w.heap.string(dir(&text(a, 0)))),
    ("clean", "s", |w, a| w.heap.string(clean(&text(a, 0)))),
    ("ext", "s", |w, a| {
        let path = text(a, 0);
        let name = path.rsplit('/').next().unwrap_or_default();
        w.heap.string(name.rfind('.').map_or("", |i| &name[i..]))
    }),
    ("isAbs", "s", |_, a| Ok(Val::Bool(text(a, 0).starts_with('/')))),
    ("urlParse", "s", url_parse),
    ("urlJoin", "m", url_join),
];

/// `path.Base`
fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    match path.trim_end_matches('/').rsplit('/').next() {
        None | Some("") => "/".to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// `path.Dir`
fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |i| i + 1)])
}

/// `path.Clean`
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut out: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match out.last() {
                Some(last) if *last != ".." => {
                    out.pop();
                }
                _ if rooted => {}
                _ => out.push(".."),
            },
            part => out.push(part),
        }
    }
    let joined = out.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// The parts of a URL in a dictionary.
fn url_parse<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let whole = text(a, 0);
    let (rest, fragment) = whole.split_once('#').unwrap_or((&whole, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((s, r))
            if s.starts_with(|c: char| c.is_ascii_alphabetic())
                && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) =>
        {
            (s.to_lowercase(), r)
        }
        Some(("", _)) => return Err(format!("unable to parse url: parse {whole:?}: missing protocol scheme")),
        _ => (String::new(), rest),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut authority, mut path, mut opaque) = ("", rest, "");
    if let Some(after) = rest.strip_prefix("//") {
        let end = after.find('/').unwrap_or(after.len());
        (authority, path) = after.split_at(end);
    } else if !scheme.is_empty() && !rest.starts_with('/') {
        (path, opaque) = ("", rest);
    }
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let bare = host
        .strip_prefix('[')
        .and_then(|h| h.split_once(']'))
        .map_or_else(|| host.split_once(':').map_or(host, |(h, _)| h), |(h, _)| h);
    let path = percent_decode_str(path).decode_utf8_lossy().into_owned();
    let members: [(&str, &str); 8] = [
        ("scheme", &scheme),
        ("host", host),
        ("hostname", bare),
        ("path", &path),
        ("query", query),
        ("opaque", opaque),
        ("fragment", fragment),
        ("userinfo", user),
    ];
    let mut out = BTreeMap::new();
    for (key, value) in members {
        out.insert(CompactString::from(key), w.heap.string(value)?);
    }
    w.heap.dict(out)
}

/// A URL from its parts.
fn url_join<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let Val::Map(dict) = arg(a, 0) else { return Ok(Val::str("")) };
    let part = |key: &str| match w.heap.get(dict, key) {
        Some(v) => strval(&w.heap, &v),
        None => Ok(String::new()),
    };
    let (scheme, host, path) = (part("scheme")?, part("host")?, part("path")?);
    let (query, opaque, fragment, user) = (part("query")?, part("opaque")?, part("fragment")?, part("userinfo")?);
    let mut out = String::new();
    if !scheme.is_empty() {
        out += &format!("{scheme}:");
    }
    if !opaque.is_empty() {
        out += &opaque;
    } else {
        if !host.is_empty() || !user.is_empty() {
            let user = if user.is_empty() { user } else { user + "@" };
            out += &format!("//{user}{host}");
            if !path.is_empty() && !path.starts_with('/') {
                out.push('/');
            }
        }
        out += &path;
    }
    if !query.is_empty() {
        out += &format!("?{query}");
    }
    if !fragment.is_empty() {
        out += &format!("#{fragment}");
    }
    w.heap.string(out)
}
