//! Addresses and networks, as Go reads them.

use crate::check::Errors;
use object::field::{FieldError, Path};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads an address; leading zeros in IPv4 parts, which Go's old parser took, are taken.
pub(crate) fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().filter(|_| !text.contains('%')).map(IpAddr::V6);
    }
    let mut parts = [0u8; 4];
    let mut count = 0;
    for part in text.split('.') {
        if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *parts.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    (count == 4).then(|| IpAddr::V4(Ipv4Addr::from(parts)))
}

/// An address that must be valid.
pub(crate) fn ip(text: &str, path: &Path<'_>, out: &mut Errors) {
    if parse_ip(text).is_none() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        out.push(FieldError::invalid(path, text, why));
    }
}

/// Reads a network: address and length of the prefix.
pub(crate) fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse_ip(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length.is_empty() || length.len() > 3 || !length.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length: u8 = length.parse().ok()?;
    (length <= most).then_some((address, length))
}

/// A network that must be valid.
pub(crate) fn cidr(text: &str, path: &Path<'_>, out: &mut Errors) {
    if parse_cidr(text).is_none() {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        out.push(FieldError::invalid(path, text, why));
    }
}

/// What is wrong with an address that must be in the one form that all write it in.
pub(crate) fn canonical_ip(text: &str) -> Vec<String> {
    let Some(ip) = parse_ip(text) else {
        return vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()];
    };
    if text.parse::<IpAddr>().is_err() {
        return vec!["must not have leading 0s".to_owned()];
    }
    if is_mapped(ip) {
        return vec!["must not be an IPv4-mapped IPv6 address".to_owned()];
    }
    form(text, &ip.to_string())
}

/// The same for a network.
pub(crate) fn canonical_cidr(text: &str) -> Vec<String> {
    let Some((address, length)) = parse_cidr(text) else {
        return vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()];
    };
    let (ip, prefix) = text.split_once('/').unwrap_or_default();
    if ip.parse::<IpAddr>().is_err() || prefix != length.to_string() {
        return vec!["must not have leading 0s in IP or prefix length".to_owned()];
    }
    if is_mapped(address) {
        return vec!["must not have an IPv4-mapped IPv6 address".to_owned()];
    }
    if bits(address) & !mask(length) != 0 {
        return vec!["must not have bits set beyond the prefix length".to_owned()];
    }
    form(text, &format!("{address}/{length}"))
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn form(text: &str, canonical: &str) -> Vec<String> {
    if text == canonical { Vec::new() } else { vec![format!("must be in canonical form (\"{canonical}\")")] }
}

/// The bits of an address, those of IPv4 in front.
fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)) << 96,
        IpAddr::V6(ip) => u128::from(ip),
    }
}

fn mask(length: u8) -> u128 {
    if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length)) }
}

/// Whether a network holds an address of the same family.
pub(crate) fn contains((network, length): (IpAddr, u8), address: IpAddr) -> bool {
    network.is_ipv4() == address.is_ipv4() && (bits(network) ^ bits(address)) & mask(length) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms_are_asked_for() {
        for (text, wrong) in [
            ("10.0.0.1", ""),
            ("fd00::1", ""),
            ("nope", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ("010.0.0.1", "must not have leading 0s"),
            ("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address"),
            ("FD00::1", "must be in canonical form (\"fd00::1\")"),
        ] {
            assert_eq!(canonical_ip(text).concat(), wrong, "{text}");
        }
        for (text, wrong) in [
            ("10.0.0.0/24", ""),
            ("fd00::/112", ""),
            ("10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.1/24", "must not have bits set beyond the prefix length"),
            ("FD00::/112", "must be in canonical form (\"fd00::/112\")"),
        ] {
            assert_eq!(canonical_cidr(text).concat(), wrong, "{text}");
        }
    }
}
