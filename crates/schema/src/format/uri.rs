//! What Go's `url.ParseRequestURI` takes.

/// Whether `text` is an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let rest = match rest.split_once('?') {
        Some((before, _)) => before,
        None => rest,
    };
    if !rest.starts_with('/') {
        // `mailto:x` is opaque; without a scheme a request URI must be a path.
        return scheme;
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if scheme => {
            let (authority, path) = match after.find('/') {
                Some(at) => after.split_at(at),
                None => (after, ""),
            };
            if !is_authority(authority) {
                return false;
            }
            path
        }
        // Go reads an authority after a scheme only, or where there are not three slashes; in a request URI without a
        // scheme two slashes are part of the path.
        _ => rest,
    };
    is_unescapable(path, |_| true)
}

/// Whether there is a scheme, and what follows it. `None` for a broken one.
fn scheme(text: &str) -> Option<(bool, &str)> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' => return Some((false, text)),
            b':' if i == 0 => return None,
            b':' => return Some((true, &text[i + 1..])),
            _ => return Some((false, text)),
        }
    }
    Some((false, text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let user_fits = user.is_none_or(|user| {
        user.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b))
            && is_unescapable(user, |_| true)
    });
    user_fits && is_host(host)
}

fn is_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.rsplit_once(']') else { return false };
        return is_port(port) && (address.contains("%25") || host_bytes_fit(address));
    }
    let port_fits = host.rfind(':').is_none_or(|at| is_port(&host[at..]));
    port_fits && host_bytes_fit(host)
}

fn host_bytes_fit(host: &str) -> bool {
    host.bytes().all(|b| b >= 0x80 || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&b))
        // In a host only bytes beyond ASCII may be escaped.
        && is_unescapable(host, |byte| byte >= 0x80)
}

fn is_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether each `%` is followed by two hexadecimal digits of a byte that is allowed.
fn is_unescapable(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.match_indices('%').all(|(at, _)| {
        text.get(at + 1..at + 3)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .is_some_and(&allowed)
    })
}
