//! Addresses, as Kubernetes' lenient copies of Go's parsers read them: leading zeros in IPv4 are decimal.

/// An IP address in 16 bytes; IPv4 as `::ffff:a.b.c.d`. Zones are refused.
pub(crate) fn parse_ip(text: &str) -> Option<[u8; 16]> {
    match text.bytes().find(|b| matches!(b, b'.' | b':')) {
        Some(b'.') => parse_ipv4(text).map(|v4| {
            let mut out = [0; 16];
            out[10..12].fill(0xff);
            out[12..].copy_from_slice(&v4);
            out
        }),
        Some(_) => parse_ipv6(text),
        None => None,
    }
}

fn parse_ipv4(text: &str) -> Option<[u8; 4]> {
    let mut out = [0; 4];
    let mut parts = text.split('.');
    for byte in &mut out {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let digits = part.trim_start_matches('0');
        *byte = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    }
    parts.next().is_none().then_some(out)
}

fn parse_ipv6(text: &str) -> Option<[u8; 16]> {
    let (head, tail) = match text.find("::") {
        Some(at) => (&text[..at], Some(&text[at + 2..])),
        None => (text, None),
    };
    let head = groups(head, tail.is_none())?;
    let Some(tail) = tail else {
        return head.try_into().ok();
    };
    let tail = groups(tail, true)?;
    // The ellipsis stands for at least one group.
    if head.len() + tail.len() > 14 {
        return None;
    }
    let mut out = [0; 16];
    out[..head.len()].copy_from_slice(&head);
    out[16 - tail.len()..].copy_from_slice(&tail);
    Some(out)
}

/// The bytes of groups between colons; the last may be an IPv4 address where `v4` is true.
fn groups(text: &str, v4: bool) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut out = Vec::new();
    let mut parts = text.split(':').peekable();
    while let Some(part) = parts.next() {
        if v4 && parts.peek().is_none() && part.contains('.') {
            out.extend(parse_ipv4(part)?);
        } else {
            if part.is_empty() || part.len() > 4 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            out.extend(u16::from_str_radix(part, 16).ok()?.to_be_bytes());
        }
    }
    Some(out)
}

/// An address and a prefix length that fits it.
pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    parse_ip(address).is_some()
        && !length.is_empty()
        && length.bytes().all(|b| b.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|n| n <= most)
}

/// 6, 8 or 20 bytes, in pairs of digits with `:` or `-`, or in groups of four with `.`.
pub(crate) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (size, separator) = match (bytes.get(2), bytes.get(4)) {
        (Some(b':'), _) => (2, ':'),
        (Some(b'-'), _) => (2, '-'),
        (_, Some(b'.')) => (4, '.'),
        _ => return false,
    };
    let mut digits = 0;
    for part in text.split(separator) {
        if part.len() != size || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        digits += size;
    }
    matches!(digits, 12 | 16 | 40)
}
