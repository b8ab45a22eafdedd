//! When a range is needed.

use kinds::read::Read;
use object::Value;
use std::net::IpAddr;

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    is_v4: bool,
    /// The bits of the address, those of IPv4 at the end.
    address: u128,
    length: u32,
}

impl Prefix {
    /// Reads `10.0.0.0/24`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let is_v4 = address.is_ipv4();
        let length = length.parse().ok().filter(|length| *length <= width(is_v4))?;
        let mut prefix = Prefix { is_v4, address: bits(address), length };
        prefix.address &= !prefix.hosts();
        Some(prefix)
    }

    /// The bits that differ within it.
    fn hosts(&self) -> u128 {
        u128::MAX.checked_shr(128 - (width(self.is_v4) - self.length)).unwrap_or(0)
    }

    /// Whether services can get an address from it: not the network's own, and of IPv4 not the last one.
    pub fn gives(&self, address: IpAddr) -> bool {
        let number = bits(address);
        let is_within = self.is_v4 == address.is_ipv4() && number & !self.hosts() == self.address;
        is_within && number != self.address && !(self.is_v4 && number == self.address | self.hosts())
    }

    /// Whether the two have addresses in common.
    pub fn overlaps(&self, other: &Prefix) -> bool {
        let hosts = self.hosts().max(other.hosts());
        self.is_v4 == other.is_v4 && (self.address ^ other.address) & !hosts == 0
    }

    /// Whether it has all addresses of another.
    fn covers(&self, other: &Prefix) -> bool {
        self.overlaps(other) && self.length <= other.length
    }
}

fn width(is_v4: bool) -> u32 {
    if is_v4 { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The networks of a ServiceCIDR.
pub(super) fn prefixes(range: &Value) -> Vec<Prefix> {
    range.sub("spec").strings("cidrs").into_iter().filter_map(Prefix::parse).collect()
}

/// Whether a range, of all that there are by name, may not go: it is not within others, and a service has an address
/// that is in no other.
pub(super) fn is_needed(name: &str, all: &[(String, Vec<Prefix>)], given: impl Iterator<Item = IpAddr>) -> bool {
    let own = all.iter().find(|(n, _)| n == name).map_or(&[][..], |(_, prefixes)| prefixes);
    let others = || all.iter().filter(|(n, _)| n != name).flat_map(|(_, prefixes)| prefixes);
    if own.iter().all(|prefix| others().any(|other| other.covers(prefix))) {
        return false;
    }
    let mut given = given;
    given.any(|address| own.iter().any(|p| p.gives(address)) && !others().any(|p| p.gives(address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_goes_when_no_address_is_lost_with_it() {
        for (what, own, other, address, needed) in [
            ("nothing given", "10.0.0.0/24", "", "", false),
            ("its address", "10.0.0.0/24", "", "10.0.0.9", true),
            ("another's address", "10.0.0.0/24", "", "10.0.1.9", false),
            ("within a larger one", "10.0.0.0/24", "10.0.0.0/16", "10.0.0.9", false),
            ("the same twice", "10.0.0.0/24", "10.0.0.0/24", "10.0.0.9", false),
            ("its address is in a smaller one too", "10.0.0.0/16", "10.0.0.0/24", "10.0.0.9", false),
            ("a smaller one has it not", "10.0.0.0/16", "10.0.0.0/24", "10.0.1.9", true),
            ("the end of a smaller one is nobody's there", "10.0.0.0/16", "10.0.0.0/24", "10.0.0.255", true),
            ("one of two families is held", "10.0.0.0/24,fd00::/108", "10.0.0.0/16", "fd00::9", true),
            ("the held one of two", "10.0.0.0/24,fd00::/108", "10.0.0.0/16", "10.0.0.9", false),
        ] {
            let parse = |text: &str| text.split(',').filter_map(Prefix::parse).collect::<Vec<_>>();
            let all = [("own".to_owned(), parse(own)), ("other".to_owned(), parse(other))];
            assert_eq!(is_needed("own", &all, address.parse().into_iter()), needed, "{what}");
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
            assert_eq!(Prefix::parse(network).unwrap().gives(address.parse().unwrap()), gives, "{network} {address}");
        }
        let overlap = |a: &str, b: &str| Prefix::parse(a).unwrap().overlaps(&Prefix::parse(b).unwrap());
        assert!(overlap("10.0.0.0/24", "10.0.0.0/8") && overlap("10.0.0.0/8", "10.0.0.0/24"));
        assert!(!overlap("10.0.0.0/24", "10.0.1.0/24") && !overlap("0.0.0.0/0", "::/0"));
    }
}
