//! URLs, read as Go's `net/url` reads them, with its error texts.

use object::go;

/// The parts of a URL that rules are about.
#[derive(Debug, Default)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// `user:password`, where there is an `@`.
    pub(crate) user: Option<String>,
    /// The host with its port.
    pub(crate) host: String,
    pub(crate) query: Option<String>,
    pub(crate) fragment: Option<String>,
}

/// Whether `text` is an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    Url::parse_request(text).is_ok()
}

impl Url {
    /// Go's `url.Parse`. The error reads ``parse "TEXT": WHY``.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (text, None),
        };
        let mut url = parse(rest, false).map_err(|why| format!("parse {}: {why}", go::quote(rest)))?;
        if let Some(fragment) = fragment {
            check_escapes(fragment, |_| true).map_err(|why| format!("parse {}: {why}", go::quote(text)))?;
            url.fragment = Some(fragment.to_owned());
        }
        Ok(url)
    }

    /// Go's `url.ParseRequestURI`: no fragments, and an absolute path where there is no scheme.
    pub(crate) fn parse_request(text: &str) -> Result<Self, String> {
        parse(text, true).map_err(|why| format!("parse {}: {why}", go::quote(text)))
    }
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let rest = match rest.split_once('?') {
        Some((before, query)) => {
            url.query = Some(query.to_owned());
            before
        }
        None => rest,
    };
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    let has_authority = !url.scheme.is_empty() || !request && !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
        let (authority, tail) = match after.find('/') {
            Some(at) => after.split_at(at),
            None => (after, ""),
        };
        read_authority(authority, &mut url)?;
        path = tail;
    }
    check_escapes(path, |_| true)?;
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..i], &text[i + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn read_authority(authority: &str, url: &mut Url) -> Result<(), String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            if !user.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b)) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            check_escapes(user, |_| true)?;
            url.user = Some(user.to_owned());
            host
        }
        None => authority,
    };
    if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        check_port(&host[end + 1..])?;
    } else if let Some(colon) = host.rfind(':') {
        check_port(&host[colon..])?;
    }
    // In a host only bytes beyond ASCII, and what a zone needs, may be escaped.
    let zone = host.starts_with('[') && host.contains("%25");
    check_escapes(host, |byte| byte >= 0x80 || zone)?;
    let wrong =
        host.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"%".contains(*c));
    if let Some(c) = wrong {
        return Err(format!("invalid character {} in host name", go::quote(&c.to_string())));
    }
    url.host = host.to_owned();
    Ok(())
}

fn check_port(port: &str) -> Result<(), String> {
    match port.strip_prefix(':') {
        _ if port.is_empty() => Ok(()),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(()),
        _ => Err(format!("invalid port {} after host", go::quote(port))),
    }
}

/// Each `%` must be followed by two hexadecimal digits of a byte that is allowed.
fn check_escapes(text: &str, allowed: impl Fn(u8) -> bool) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let fits = text
            .get(at + 1..at + 3)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .is_some_and(&allowed);
        if !fits {
            let shown: String = text[at..].chars().take(3).collect();
            return Err(format!("invalid URL escape {}", go::quote(&shown)));
        }
    }
    Ok(())
}
