//! URLs, read and taken apart as Go's `net/url` does.

use std::any::Any;

use super::number::quote;
use crate::value::{Error, Map, Opaque, Result, Value};

/// A URL: type `kubernetes.URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<String>,
    host: String,
    escaped_path: String,
    query: String,
    /// A question mark without a query: equal URLs agree in it.
    force_query: bool,
    /// `scheme:/path`, without `//`.
    omit_host: bool,
}

/// Which characters an escape may stand for and which must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    User,
    Path,
    Query,
}

impl Url {
    /// Reads an absolute URI or an absolute path, as Go's `url.ParseRequestURI`. The error is Go's, with the URL.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        Url::read(text).map_err(|why| format!("parse {}: {why}", quote(text)))
    }

    fn read(text: &str) -> std::result::Result<Self, String> {
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() {
            return Err("empty url".to_owned());
        }
        let mut url = Url {
            scheme: String::new(),
            opaque: String::new(),
            user: None,
            host: String::new(),
            escaped_path: String::new(),
            query: String::new(),
            force_query: false,
            omit_host: false,
        };
        if text == "*" {
            "*".clone_into(&mut url.escaped_path);
            return Ok(url);
        }
        let (scheme, mut rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        match rest.split_once('?') {
            Some((head, "")) => {
                url.force_query = true;
                rest = head;
            }
            Some((head, query)) => {
                query.clone_into(&mut url.query);
                rest = head;
            }
            None => {}
        }
        if !rest.starts_with('/') {
            if url.scheme.is_empty() {
                return Err("invalid URI for request".to_owned());
            }
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if !url.scheme.is_empty() {
            if let Some(tail) = rest.strip_prefix("//") {
                let (authority, path) = tail.split_at(tail.find('/').unwrap_or(tail.len()));
                rest = path;
                let (user, host) = match authority.rsplit_once('@') {
                    Some((user, host)) => (Some(user), host),
                    None => (None, authority),
                };
                url.host = parse_host(host)?;
                if let Some(user) = user {
                    if !user.bytes().all(is_user_byte) {
                        return Err("net/url: invalid userinfo".to_owned());
                    }
                    for part in user.splitn(2, ':') {
                        unescape(part, Part::User)?;
                    }
                    url.user = Some(user.to_owned());
                }
            } else {
                url.omit_host = true;
            }
        }
        let path = unescape(rest, Part::Path)?;
        url.escaped_path = if is_valid_path(rest) { rest.to_owned() } else { escape_path(&path) };
        Ok(url)
    }

    fn split_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if is_optional_port(&self.host[colon..]) => (&self.host[..colon], &self.host[colon + 1..]),
            _ => (&*self.host, ""),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    /// The parameters of the query in order of first appearance; parts that cannot be read are left out.
    fn parameters(&self) -> Vec<(String, Vec<String>)> {
        let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
        let mut positions = std::collections::HashMap::new();
        for part in self.query.split('&') {
            if part.is_empty() || part.contains(';') {
                continue;
            }
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) else { continue };
            let (key, value) = (lossy(key), lossy(value));
            let at = *positions.entry(key.clone()).or_insert(parameters.len());
            match parameters.get_mut(at) {
                Some((_, values)) => values.push(value),
                None => parameters.push((key, vec![value])),
            }
        }
        parameters
    }
}

fn lossy(octets: Vec<u8>) -> String {
    String::from_utf8(octets).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn split_scheme(text: &str) -> std::result::Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn is_optional_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

fn parse_host(host: &str) -> std::result::Result<String, String> {
    if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        let port = &host[end + 1..];
        if !is_optional_port(port) {
            return Err(format!("invalid port {} after host", quote(port)));
        }
        if let Some(zone) = host[..end].find("%25") {
            let mut octets = unescape(&host[..zone], Part::Host)?;
            octets.extend(unescape(&host[zone..end], Part::Zone)?);
            octets.extend(unescape(&host[end..], Part::Host)?);
            return Ok(lossy(octets));
        }
    } else if let Some(colon) = host.rfind(':') {
        let port = &host[colon..];
        if !is_optional_port(port) {
            return Err(format!("invalid port {} after host", quote(port)));
        }
    }
    unescape(host, Part::Host).map(lossy)
}

fn is_user_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
}

fn unescape(text: &str, part: Part) -> std::result::Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let invalid = |escape: &[u8]| format!("invalid URL escape {}", quote(&String::from_utf8_lossy(escape)));
    let mut octets = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let escape = bytes.get(at..(at + 3).min(bytes.len())).unwrap_or_default();
                let digit = |index: usize| escape.get(index).and_then(|b| char::from(*b).to_digit(16));
                let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(invalid(escape)) };
                let octet = (high * 16 + low) as u8;
                let refused = match part {
                    Part::Host => high < 8 && escape != b"%25",
                    Part::Zone => escape != b"%25" && octet != b' ' && must_escape_in_host(octet),
                    _ => false,
                };
                if refused {
                    return Err(invalid(escape));
                }
                octets.push(octet);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => octets.push(b' '),
            byte => {
                if matches!(part, Part::Host | Part::Zone) && byte.is_ascii() && must_escape_in_host(*byte) {
                    return Err(format!("invalid character {} in host name", quote(&char::from(*byte).to_string())));
                }
                octets.push(*byte);
            }
        }
        at += 1;
    }
    Ok(octets)
}

fn must_escape_in_host(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte))
}

/// Whether a path may stand as it was written.
fn is_valid_path(path: &str) -> bool {
    path.bytes().all(|b| b.is_ascii_alphanumeric() || b"!$&'()*+,;=:@[]%-_.~/".contains(&b))
}

fn escape_path(path: &[u8]) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(byte) {
            escaped.push(char::from(*byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

impl Opaque for Url {
    fn type_name(&self) -> &'static str {
        "kubernetes.URL"
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `url(text)`
pub(crate) fn url<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Url::parse(text)
            .map(Value::opaque)
            .map_err(|why| Error::new(format!("URL parse error during conversion from string: {why}"))),
        _ => Err(Error::mismatch()),
    }
}

/// `isURL(text)`
pub(crate) fn is_url<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(Url::parse(text).is_ok())),
        _ => Err(Error::mismatch()),
    }
}

fn only<'s>(args: &'s [Value<'_>]) -> Result<&'s Url> {
    match args {
        [value] => value.downcast().ok_or_else(Error::mismatch),
        _ => Err(Error::mismatch()),
    }
}

/// `url.getScheme()`
pub(crate) fn scheme<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::shared(&*only(args)?.scheme))
}

/// `url.getHost()`
pub(crate) fn host<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::shared(&*only(args)?.host))
}

/// `url.getHostname()`
pub(crate) fn hostname<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::shared(only(args)?.split_port().0))
}

/// `url.getPort()`
pub(crate) fn port<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::shared(only(args)?.split_port().1))
}

/// `url.getEscapedPath()`
pub(crate) fn escaped_path<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::shared(&*only(args)?.escaped_path))
}

/// `url.getQuery()`
pub(crate) fn query<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let entries = only(args)?
        .parameters()
        .into_iter()
        .map(|(key, values)| (Value::shared(key), Value::list(values.into_iter().map(Value::shared).collect())));
    Ok(Value::Map(Map::new(entries)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_as_go_does() {
        for (text, parts) in [
            ("https://user:pw@ex.com:8443/p/a?q=1", ("https", "ex.com:8443", "ex.com", "8443", "/p/a")),
            ("https://[::1]:8080/", ("https", "[::1]:8080", "::1", "8080", "/")),
            ("HTTP://EX.com", ("http", "EX.com", "EX.com", "", "")),
            ("https://ex.com/a b", ("https", "ex.com", "ex.com", "", "/a%20b")),
            ("https://ex.com/a%2fb(é)", ("https", "ex.com", "ex.com", "", "/a/b%28%C3%A9%29")),
            ("/path?x=1", ("", "", "", "", "/path")),
            ("mailto:a@b", ("mailto", "", "", "", "")),
            ("http://", ("http", "", "", "", "")),
        ] {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{error}"));
            let (hostname, port) = url.split_port();
            assert_eq!((&*url.scheme, &*url.host, hostname, port, &*url.escaped_path), parts, "{text}");
        }
    }

    #[test]
    fn mistakes_carry_gos_texts() {
        for (text, expected) in [
            ("", "parse \"\": empty url"),
            ("a b", "parse \"a b\": invalid URI for request"),
            ("://x", "parse \"://x\": missing protocol scheme"),
            ("http://a b", "parse \"http://a b\": invalid character \" \" in host name"),
            ("http://a:b", "parse \"http://a:b\": invalid port \":b\" after host"),
            ("http://%zz/", "parse \"http://%zz/\": invalid URL escape \"%zz\""),
            ("http://[::1", "parse \"http://[::1\": missing ']' in host"),
            ("http://a/\u{7f}", "parse \"http://a/\\x7f\": net/url: invalid control character in URL"),
        ] {
            assert_eq!(Url::parse(text).err().as_deref(), Some(expected));
        }
    }

    #[test]
    fn queries_keep_repeated_values_and_drop_what_cannot_be_read() {
        let url = Url::parse("http://a/?q=1&r=&q=2&a;b&%zz=1&s=b+c%20d").unwrap_or_else(|error| panic!("{error}"));
        let expected = vec![
            ("q".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            ("r".to_owned(), vec![String::new()]),
            ("s".to_owned(), vec!["b c d".to_owned()]),
        ];
        assert_eq!(url.parameters(), expected);
    }
}
