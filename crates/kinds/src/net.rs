//! Addresses and networks, as Go reads them.

use crate::check::Errors;
use object::field::{FieldError, Path};
use object::go;
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

/// The warning about an address that is in no standard form; of one that cannot be read nothing is said.
pub(crate) fn ip_warning(text: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let Some(ip) = parse_ip(text) else { return };
    let plain = unmapped(ip);
    if text.parse::<IpAddr>().is_err() || is_mapped(ip) {
        let why = "will be considered invalid in a future Kubernetes release";
        out.push(format!("{path}: non-standard IP address {} {why}: use \"{plain}\"", go::quote(text)));
    } else if ip.is_ipv6() && ip.to_string() != text {
        let quoted = go::quote(text);
        out.push(format!("{path}: IPv6 address {quoted} should be in RFC 5952 canonical format (\"{ip}\")"));
    }
}

/// The same for a network, and about bits beyond its prefix.
pub(crate) fn cidr_warning(text: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let Some((address, length)) = parse_cidr(text) else { return };
    let (ip, prefix) = text.split_once('/').unwrap_or_default();
    let (quoted, before) = (go::quote(text), out.len());
    // Go takes a mapped address for one of IPv4, with as many bits less.
    let plain = unmapped(address);
    let (length, width) = match (is_mapped(address), plain) {
        (true, _) => (length.saturating_sub(96), 32),
        (false, IpAddr::V4(_)) => (length, 32),
        (false, IpAddr::V6(_)) => (length, 128),
    };
    let network = network(plain, length);
    if network != plain {
        let should = format!("(should be \"{network}/{length}\" or \"{plain}/{width}\"?)");
        out.push(format!("{path}: CIDR value {quoted} is ambiguous in this context {should}"));
    }
    if ip.parse::<IpAddr>().is_err() || prefix.len() > 1 && prefix.starts_with('0') || is_mapped(address) {
        let why = "will be considered invalid in a future Kubernetes release";
        out.push(format!("{path}: non-standard CIDR value {quoted} {why}: use \"{network}/{length}\""));
    }
    let canonical = format!("{address}/{length}");
    if out.len() == before && address.is_ipv6() && canonical != text {
        out.push(format!("{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format (\"{canonical}\")"));
    }
}

/// The IPv4 address that one of IPv6 stands for, or the address itself.
fn unmapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// The first address of a network.
fn network(ip: IpAddr, length: u8) -> IpAddr {
    let first = bits(ip) & mask(length);
    match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(first >> 96).unwrap_or_default())),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(first)),
    }
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

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    length: u8,
}

impl Network {
    /// Reads `10.0.0.0/24`; bits of the address beyond the prefix count for nothing.
    pub fn parse(cidr: &str) -> Option<Self> {
        let (address, length) = parse_cidr(cidr)?;
        Some(Network { first: network(address, length), length })
    }

    /// The first address, which is the network's own.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// How many bits all addresses begin with.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether services can get an address from it: not the network's own, and of IPv4 not the last one.
    pub fn gives(&self, address: IpAddr) -> bool {
        let is_last = address.is_ipv4() && (bits(address) | mask(self.length)) >> 96 == u128::from(u32::MAX);
        contains((self.first, self.length), address) && address != self.first && !is_last
    }

    /// Whether the two have addresses in common.
    pub fn overlaps(&self, other: &Network) -> bool {
        contains((self.first, self.length.min(other.length)), other.first)
    }

    /// Whether it has all addresses of another.
    pub fn covers(&self, other: &Network) -> bool {
        self.length <= other.length && self.overlaps(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_are_on_their_way_out_are_named() {
        let path = Path::ROOT.child("a");
        let future = "will be considered invalid in a future Kubernetes release";
        for (text, warning) in [
            ("10.0.0.1", String::new()),
            ("fd00::1", String::new()),
            ("nope", String::new()),
            ("010.0.0.1", format!("a: non-standard IP address \"010.0.0.1\" {future}: use \"10.0.0.1\"")),
            ("::ffff:1.2.3.4", format!("a: non-standard IP address \"::ffff:1.2.3.4\" {future}: use \"1.2.3.4\"")),
            ("FD00::1", "a: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")".to_owned()),
        ] {
            let mut out = Vec::new();
            ip_warning(text, &path, &mut out);
            assert_eq!(out.concat(), warning, "{text}");
        }
        for (text, warning) in [
            ("10.0.0.0/8", String::new()),
            ("fd00::/64", String::new()),
            (
                "10.0.0.1/8",
                "a: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"
                    .to_owned(),
            ),
            ("010.0.0.0/8", format!("a: non-standard CIDR value \"010.0.0.0/8\" {future}: use \"10.0.0.0/8\"")),
            (
                "FD00::/64",
                "a: IPv6 CIDR value \"FD00::/64\" should be in RFC 5952 canonical format (\"fd00::/64\")".to_owned(),
            ),
        ] {
            let mut out = Vec::new();
            cidr_warning(text, &path, &mut out);
            assert_eq!(out.concat(), warning, "{text}");
        }
    }

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

    #[test]
    fn networks_give_all_addresses_but_their_ends() {
        for (network, address, gives) in [
            ("10.0.0.0/24", "10.0.0.1", true),
            ("10.0.0.0/24", "10.0.0.0", false),
            ("10.0.0.0/24", "10.0.0.255", false),
            ("10.0.0.0/24", "10.0.1.1", false),
            ("fd00::/120", "fd00::ff", true),
            ("fd00::/120", "fd00::", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::/0", "1.2.3.4", false),
            ("10.0.0.7/32", "10.0.0.7", false),
        ] {
            assert_eq!(Network::parse(network).unwrap().gives(address.parse().unwrap()), gives, "{network} {address}");
        }
        let overlap = |a: &str, b: &str| Network::parse(a).unwrap().overlaps(&Network::parse(b).unwrap());
        assert!(overlap("10.0.0.0/24", "10.0.0.0/8") && overlap("10.0.0.0/8", "10.0.0.0/24"));
        assert!(!overlap("10.0.0.0/24", "10.0.1.0/24") && !overlap("0.0.0.0/0", "::/0"));
    }
}
