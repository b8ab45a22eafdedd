//! URLs, read as Go's `net/url` reads them, with its error texts.

use crate::go;

/// The parts of a URL that rules are about.
#[derive(Debug, Default)]
pub struct Url {
    /// The scheme in lower case; empty where there is none.
    pub scheme: String,
    /// `user:password` as Go writes it, where there is an `@`.
    pub user: Option<String>,
    /// The host with its port.
    pub host: String,
    /// What follows `?`.
    pub query: Option<String>,
    /// What follows `#`, decoded.
    pub fragment: Option<String>,
}

impl Url {
    /// Go's `url.Parse`. The error reads ``parse "TEXT": WHY``.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (text, None),
        };
        let mut url = parse(rest, false).map_err(|why| format!("parse {}: {why}", go::quote(rest)))?;
        if let Some(fragment) = fragment {
            check_escapes(fragment, |_| true).map_err(|why| format!("parse {}: {why}", go::quote(text)))?;
            url.fragment = Some(decode(fragment));
        }
        Ok(url)
    }

    /// Go's `url.ParseRequestURI`: no fragments, and an absolute path where there is no scheme.
    pub fn parse_request(text: &str) -> Result<Self, String> {
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
            url.user = Some(rewrite_user(user));
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

/// A text with its escapes, which are right, taken away.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let (hex, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        bytes.extend(u8::from_str_radix(hex, 16));
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Go keeps user and password decoded, and escapes them again in its own way.
fn rewrite_user(text: &str) -> String {
    let escape = |text: &str| -> String {
        let text = decode(text);
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.~$&+,;=".contains(b);
        text.bytes().map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
    };
    match text.split_once(':') {
        Some((user, password)) => format!("{}:{}", escape(user), escape(password)),
        None => escape(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_that_go_reads() {
        let url = Url::parse("HTTPS://a%21:p@h:1/x?q=1#f%20g").unwrap();
        assert_eq!((url.scheme.as_str(), url.user.as_deref(), url.host.as_str()), ("https", Some("a%21:p"), "h:1"));
        assert_eq!((url.query.as_deref(), url.fragment.as_deref()), (Some("q=1"), Some("f g")));
        assert_eq!(Url::parse("https://a!@h").unwrap().user.as_deref(), Some("a%21"));
        assert_eq!(Url::parse("https://@h").unwrap().user.as_deref(), Some(""));
        assert_eq!(Url::parse("mailto:x").unwrap().host, "");
    }

    #[test]
    fn errors_are_those_that_go_gives() {
        for (text, why) in [
            ("://", "parse \"://\": missing protocol scheme"),
            ("a b:c", "parse \"a b:c\": first path segment in URL cannot contain colon"),
            ("https://%zz/x", "parse \"https://%zz/x\": invalid URL escape \"%zz\""),
            ("https://h:x/", "parse \"https://h:x/\": invalid port \":x\" after host"),
            ("https://[::1/", "parse \"https://[::1/\": missing ']' in host"),
            ("https://a b/", "parse \"https://a b/\": invalid character \" \" in host name"),
            ("https://a b@h/", "parse \"https://a b@h/\": net/url: invalid userinfo"),
            ("https://h/\n", "parse \"https://h/\\n\": net/url: invalid control character in URL"),
        ] {
            assert_eq!(Url::parse(text).unwrap_err(), why);
        }
        assert_eq!(Url::parse_request("").unwrap_err(), "parse \"\": empty url");
        assert_eq!(Url::parse_request("x").unwrap_err(), "parse \"x\": invalid URI for request");
    }
}
