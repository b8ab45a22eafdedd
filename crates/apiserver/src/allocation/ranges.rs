//! The ranges that addresses of services are from: what ServiceCIDRs say.

use crate::answer::Outcome;
use crate::registry::{self, Stored};
use kinds::net::Network;
use object::{Status, Value};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use store::{ListOptions, Range, Replica};

/// Where ServiceCIDRs are kept.
pub(crate) const SERVICE_CIDRS: &str = "/registry/servicecidrs/";
/// The ServiceCIDR that every cluster has.
pub(crate) const DEFAULT: &str = "kubernetes";
/// Its range.
pub(crate) const DEFAULT_CIDR: &str = "10.0.0.0/24";

/// A range of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    network: u32,
    length: u32,
}

impl Span {
    /// Reads `10.0.0.0/24`. Services have IPv4 addresses only, so that ranges of others count for nothing, as on a
    /// single-stack server upstream.
    pub fn parse(cidr: &str) -> Option<Self> {
        let network = Network::parse(cidr)?;
        let IpAddr::V4(first) = network.first() else { return None };
        Some(Span { network: first.into(), length: network.length().into() })
    }

    /// The first address of all, which nobody gets.
    pub fn network(self) -> u32 {
        self.network
    }

    fn size(self) -> u64 {
        1 << (32 - self.length)
    }

    /// What services can have: all but the network's own address and the last one.
    pub fn addresses(self) -> RangeInclusive<u32> {
        let last = u64::from(self.network) + self.size() - 1;
        let last = u32::try_from(last).unwrap_or(u32::MAX);
        self.network.saturating_add(1)..=last.saturating_sub(1)
    }

    /// The lower addresses are left to those who ask for one, as long as there are others: a sixteenth of the range,
    /// 16 to 256 of them (KEP 3070).
    pub fn first_chosen(self) -> u32 {
        let kept = if self.size() <= 16 { 0 } else { (self.size() / 16).clamp(16, 256) };
        self.network.saturating_add(1).saturating_add(u32::try_from(kept).unwrap_or(u32::MAX))
    }

    /// Whether services can have an address.
    pub fn holds(self, address: u32) -> bool {
        self.addresses().contains(&address)
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.length)
    }
}

/// The ranges that may be given from, that of the cluster first, the others by name.
pub(super) fn ready(replica: &Replica) -> Outcome<Vec<Span>> {
    let page = replica.list(&Range::prefix(SERVICE_CIDRS), &ListOptions::default());
    let objects = page.map_err(registry::read_failure)?.entries.into_iter().map(|entry| Stored::read(entry.value));
    let mut ranges: Vec<Value> = objects.flatten().map(|stored| stored.value(0)).filter(is_ready).collect();
    ranges.sort_by_key(|range| range.name() != DEFAULT);
    Ok(ranges.iter().flat_map(cidrs).filter_map(Span::parse).collect())
}

/// The ranges of a ServiceCIDR.
pub(crate) fn cidrs(range: &Value) -> impl Iterator<Item = &str> {
    range.at(&["spec", "cidrs"]).and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// A ServiceCIDR without a condition is taken to be ready: its controller may not run.
fn is_ready(range: &Value) -> bool {
    let conditions = range.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let ready = conditions.iter().find(|c| c.str_at(&["type"]) == Some("Ready"));
    range.meta_str("deletionTimestamp").is_empty() && ready.is_none_or(|c| c.str_at(&["status"]) == Some("True"))
}

/// A number that is free, from `first` on if there is one.
pub(super) fn choose(range: RangeInclusive<u32>, first: u32, used: impl Fn(u32) -> bool) -> Outcome<Option<u32>> {
    let (start, end) = range.into_inner();
    let first = first.max(start);
    if first > end {
        return Ok((start..=end).find(|n| !used(*n)));
    }
    let mut random = [0u8; 4];
    getrandom::fill(&mut random).map_err(Status::internal)?;
    let begin = first + u32::from_le_bytes(random) % (end - first + 1);
    Ok((begin..=end).chain(first..begin).chain(start..first).find(|n| !used(*n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_range_are_nobodys_and_its_beginning_is_kept() {
        for (cidr, addresses, chosen) in [
            ("10.0.0.0/24", "10.0.0.1..10.0.0.254", "10.0.0.17"),
            ("10.0.0.0/28", "10.0.0.1..10.0.0.14", "10.0.0.1"),
            ("10.0.0.0/27", "10.0.0.1..10.0.0.30", "10.0.0.17"),
            ("10.96.0.0/12", "10.96.0.1..10.111.255.254", "10.96.1.1"),
            ("0.0.0.0/0", "0.0.0.1..255.255.255.254", "0.0.1.1"),
            ("10.0.0.7/24", "10.0.0.1..10.0.0.254", "10.0.0.17"),
        ] {
            let span = Span::parse(cidr).unwrap();
            let (first, last) = span.addresses().into_inner();
            assert_eq!(format!("{}..{}", Ipv4Addr::from(first), Ipv4Addr::from(last)), addresses, "{cidr}");
            assert_eq!(Ipv4Addr::from(span.first_chosen()).to_string(), chosen, "{cidr}");
        }
        for cidr in ["10.0.0.4/31", "10.0.0.4/32", "255.255.255.255/32"] {
            assert!(Span::parse(cidr).unwrap().addresses().is_empty(), "{cidr}");
        }
        for cidr in ["fd00::/108", "10.0.0.0", "10.0.0.0/33", "x/8"] {
            assert_eq!(Span::parse(cidr), None, "{cidr}");
        }
    }

    #[test]
    fn numbers_before_the_first_are_chosen_last() {
        assert_eq!(choose(1..=4, 3, |n| n > 3).ok().flatten(), Some(3));
        assert!(matches!(choose(1..=4, 3, |n| n > 2), Ok(Some(1 | 2))));
        assert!(matches!(choose(1..=4, 3, |_| true), Ok(None)));
        assert!(matches!(choose(RangeInclusive::new(5, 3), 6, |_| false), Ok(None)));
    }
}
