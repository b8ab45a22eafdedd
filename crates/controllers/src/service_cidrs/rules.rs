//! When a range is needed.

use kinds::net::Network;
use kinds::read::Read;
use object::Value;
use std::net::IpAddr;

/// The networks of a ServiceCIDR.
pub(super) fn networks(range: &Value) -> Vec<Network> {
    range.sub("spec").strings("cidrs").into_iter().filter_map(Network::parse).collect()
}

/// Whether a range, of all that there are by name, may not go: it is not within others, and a service has an address
/// that is in no other.
pub(super) fn is_needed(name: &str, all: &[(String, Vec<Network>)], given: impl Iterator<Item = IpAddr>) -> bool {
    let own = all.iter().find(|(n, _)| n == name).map_or(&[][..], |(_, networks)| networks);
    let others = || all.iter().filter(|(n, _)| n != name).flat_map(|(_, networks)| networks);
    if own.iter().all(|network| others().any(|other| other.covers(network))) {
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
            let parse = |text: &str| text.split(',').filter_map(Network::parse).collect::<Vec<_>>();
            let all = [("own".to_owned(), parse(own)), ("other".to_owned(), parse(other))];
            assert_eq!(is_needed("own", &all, address.parse().into_iter()), needed, "{what}");
        }
    }
}
