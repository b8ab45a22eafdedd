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

/// Whether a network holds an address of the same family.
pub(crate) fn contains((network, length): (IpAddr, u8), address: IpAddr) -> bool {
    let bits = |a: IpAddr| match a {
        IpAddr::V4(a) => u128::from(u32::from(a)) << 96,
        IpAddr::V6(a) => u128::from(a),
    };
    let mask = if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length)) };
    network.is_ipv4() == address.is_ipv4() && (bits(network) ^ bits(address)) & mask == 0
}
