//! Addresses and node ports of services: those that are asked for are checked, the others chosen.
//!
//! Addresses are from the [`ranges`] that ServiceCIDRs say. What is in use is read from the services themselves
//! ([`taken`]), so that nothing is ever lost or left over; an IPAddress of somebody else keeps an address from them too.
//! While one is written that gets something, no other is on this server; where another server was faster, the store
//! refuses the write ([`store::Claim`]), and it is chosen again.

pub(crate) mod ranges;
mod taken;
mod wanted;

pub(crate) use taken::Taken;

use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::auth::UserInfo;
use crate::catalogue::Resource;
use crate::registry;
use object::field::{FieldError, Path};
use object::status::Qualified;
use object::{Status, Value};
use ranges::{Span, choose};
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use store::{Claim, ListOptions, Range, Replica};
use taken::Used;
use tokio::sync::{Mutex, OwnedMutexGuard};
use wanted::Wanted;

/// Where services are kept.
pub(crate) const SERVICES: &str = "/registry/services/";
/// Where IPAddresses are kept.
pub(crate) const ADDRESSES: &str = "/registry/ipaddresses/";

/// The address of the server itself, by which programs inside a cluster find it: nobody else gets it.
pub(crate) const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The node ports.
const PORTS: RangeInclusive<u32> = 30000..=32767;
/// The first of the ports that a dry run is told of: upstream does not look for something free then.
const DRY_PORT: u32 = 32768;
/// The lower ports are left to those who ask for one, as long as there are others.
const FIRST_PORT: u32 = 30086;

/// What is known of what is taken, by whoever's turn it is.
pub(crate) type Turnstile = Arc<Mutex<Taken>>;

/// What an object got; keep it until the object is stored.
#[derive(Debug, Default)]
pub(crate) struct Allocation(Option<Turn>);

#[derive(Debug)]
struct Turn {
    taken: OwnedMutexGuard<Taken>,
    claim: Option<Claim>,
}

/// What is decided about, for the store.
const CLAIM: &str = "services";

/// What is about to be written, and by whom.
pub(crate) struct Writing<'a> {
    /// The server.
    pub server: &'a Server,
    /// The resource.
    pub resource: &'a Resource,
    /// Who writes.
    pub user: &'a UserInfo,
    /// What is stored, if something is.
    pub old: Option<&'a Value>,
    /// Whether nothing is stored in the end, so that nothing is looked for.
    pub dry_run: bool,
}

impl Allocation {
    /// Whether objects of a resource may get something.
    pub fn concerns(resource: &Resource) -> bool {
        is_services(resource) || is_addresses(resource)
    }

    /// Gives a valid service that is to be stored the addresses and ports that it needs. A new IPAddress must not be a
    /// service's. Other kinds stay as they are.
    pub async fn complete(&mut self, writing: &Writing<'_>, object: &mut Value) -> Outcome<()> {
        if is_services(writing.resource) {
            let wanted = Wanted::of(object, writing.old);
            if wanted.is_nothing() { Ok(()) } else { self.give(writing, object, &wanted).await }
        } else if is_addresses(writing.resource) && writing.old.is_none() && *writing.user != UserInfo::server() {
            self.spare(writing, object).await
        } else {
            Ok(())
        }
    }

    /// Takes the turn, if it is not taken, and reads what services have.
    async fn take(&mut self, writing: &Writing<'_>) -> Outcome<&mut Turn> {
        let store = &*writing.server.store;
        let mut turn = match self.0.take() {
            Some(turn) => turn,
            None => {
                let taken = writing.server.allocations.clone().lock_owned().await;
                // A dry run decides nothing.
                let claim =
                    if writing.dry_run { None } else { store.claim(CLAIM).await.map_err(registry::read_failure)? };
                Turn { taken, claim }
            }
        };
        let page = store.list(&Range::prefix(SERVICES), ListOptions::default()).await;
        turn.taken.refresh(page.map_err(registry::read_failure)?.entries);
        Ok(self.0.insert(turn))
    }

    async fn give(&mut self, writing: &Writing<'_>, service: &mut Value, wanted: &Wanted) -> Outcome<()> {
        let store = &*writing.server.store;
        let turn = self.take(writing).await?;
        let own = registry::key(writing.resource, service.namespace(), service.name());
        let mut used = turn.taken.without(writing.old.is_some().then_some(&*own));
        let mut ranges = Vec::new();
        if wanted.address.is_some() {
            // Both are as new as the services that were read for the turn: the store need not be asked again.
            ranges = ranges::ready(store.replica())?;
            used.more = kept(store.replica())?;
            used.more.insert(OWN_ADDRESS.into());
        }
        let updates = writing.old.is_some();
        Chooser { ranges: &ranges, used: &used, dry_run: writing.dry_run, updates }.complete(service, wanted)
    }

    /// 409 for the IPAddress of a service that is about to be made by the server.
    async fn spare(&mut self, writing: &Writing<'_>, address: &Value) -> Outcome<()> {
        let Some(wanted) = number(address.name()) else { return Ok(()) };
        let turn = self.take(writing).await?;
        if turn.taken.has_address(wanted) {
            return Err(Status::already_exists(writing.resource.qualified(), address.name()).into());
        }
        Ok(())
    }

    /// With what the object is to be written.
    pub fn claim(&self) -> Option<Claim> {
        self.0.as_ref().and_then(|turn| turn.claim.clone())
    }
}

/// Whether a resource is that of services.
pub(crate) fn is_services(resource: &Resource) -> bool {
    resource.plural == "services" && resource.group.is_empty()
}

fn is_addresses(resource: &Resource) -> bool {
    resource.plural == "ipaddresses" && resource.group == "networking.k8s.io"
}

/// The addresses that there are IPAddresses of, whoever made them.
fn kept(replica: &Replica) -> Outcome<HashSet<u32>> {
    let page = replica.list(&Range::prefix(ADDRESSES), &ListOptions::default()).map_err(registry::read_failure)?;
    Ok(page.entries.iter().filter_map(|entry| number(entry.key.strip_prefix(ADDRESSES)?)).collect())
}

fn ports(service: &Value) -> impl Iterator<Item = &Value> {
    service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default().iter()
}

fn node_port(port: &Value) -> i64 {
    port.get("nodePort").and_then(Value::as_int).unwrap_or(0)
}

fn number(address: &str) -> Option<u32> {
    address.parse::<Ipv4Addr>().ok().map(u32::from)
}

/// Decides what a service gets.
struct Chooser<'a> {
    ranges: &'a [Span],
    used: &'a Used<'a>,
    dry_run: bool,
    /// Whether the service is there already: its new ports share none with those that it has, as upstream's.
    updates: bool,
}

impl Chooser<'_> {
    fn complete(&self, service: &mut Value, wanted: &Wanted) -> Outcome<()> {
        match &wanted.address {
            None => {}
            Some(Some(address)) => {
                if let Some(why) = self.refuses_address(address) {
                    let why = format!("failed to allocate IP {address}: {why}");
                    let all = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
                    let all: Vec<String> = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                    let root = Path::ROOT;
                    let error = FieldError::invalid(&root.child("spec").child("clusterIPs"), &all[..], why);
                    return Err(invalid(service, error));
                }
            }
            Some(None) => {
                let Some(free) = self.free_address()? else {
                    return Err(Status::internal("failed to allocate a serviceIP: range is full").into());
                };
                let address = Ipv4Addr::from(free).to_string();
                service.set_at(&["spec", "clusterIP"], Value::from(address.as_str()));
                service.set_at(&["spec", "clusterIPs"], Value::from(vec![address]));
            }
        }
        self.complete_ports(service, wanted)
    }

    /// Why an address that is asked for cannot be given.
    fn refuses_address(&self, address: &str) -> Option<String> {
        let number = number(address);
        let is_held = number.is_some_and(|n| self.ranges.iter().any(|range| range.holds(n)));
        match (number, self.ranges.first()) {
            (Some(n), _) if is_held => {
                let taken = !self.dry_run && self.used.address(n);
                taken.then(|| "provided IP is already allocated".to_owned())
            }
            // Upstream asks one range alone then.
            (_, Some(range)) if self.dry_run => Some(format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {range}"
            )),
            _ => Some("the provided network does not match the current range".to_owned()),
        }
    }

    /// An address for a service that asks for none. In a dry run upstream does not look for a free one.
    fn free_address(&self) -> Outcome<Option<u32>> {
        if self.dry_run {
            return Ok(self.ranges.first().map(|range| range.network()));
        }
        for range in self.ranges {
            let free = choose(range.addresses(), range.first_chosen(), |n| self.used.address(n))?;
            if free.is_some() {
                return Ok(free);
            }
        }
        Ok(None)
    }

    fn complete_ports(&self, service: &mut Value, wanted: &Wanted) -> Outcome<()> {
        let root = Path::ROOT;
        let spec = root.child("spec");
        let mut dry_ports = DRY_PORT..;
        let mut free_port = |own: &Own| match self.dry_run {
            true => Ok(dry_ports.next()),
            false => choose(PORTS, FIRST_PORT, |port| self.used.port(port) || own.has(port)),
        };
        let full = || Status::internal("failed to allocate a nodePort: range is full");
        let mut own = Own::of(service);
        if own.lacking(&wanted.ports, self.updates) > PORTS.count() {
            return Err(full().into());
        }
        let mut given: HashSet<u32> = HashSet::new();
        for index in &wanted.ports {
            let Some((port, number)) = own.ports.get(*index).copied() else { continue };
            let taken = match u32::try_from(number) {
                Ok(0) => port.filter(|_| !self.updates).and_then(|port| own.of_sibling(port)),
                asked => {
                    // Ports of the service itself that differ in their protocol share one.
                    let why = refuses_port(asked.ok(), |port| self.used.port(port) || given.contains(&port));
                    let shares = own.places.get(&number).is_some_and(|first| first < index);
                    if let Some(why) = why.filter(|_| !shares) {
                        let (list, at) = (spec.child("ports"), "nodePort");
                        let item = list.index(*index);
                        let error = FieldError::invalid(&item.child(at), number, why);
                        return Err(invalid(service, error));
                    }
                    asked.ok()
                }
            };
            // What later ports ask for is not given away.
            let number = taken.map(Some).map_or_else(|| free_port(&own), Ok)?.ok_or_else(full)?;
            given.insert(number);
            own.note(*index, i64::from(number));
            let list = service.get_mut("spec").and_then(|s| s.get_mut("ports"));
            if let Some(Value::Array(list)) = list
                && let Some(port) = list.get_mut(*index)
            {
                port.set_at(&["nodePort"], Value::Int(i64::from(number)));
            }
        }
        let Some(asked) = wanted.health else { return Ok(()) };
        if asked == 0 {
            let free = free_port(&own)?.ok_or_else(full)?;
            service.set_at(&["spec", "healthCheckNodePort"], Value::Int(i64::from(free)));
        } else if let Some(why) = refuses_port(u32::try_from(asked).ok(), |port| self.used.port(port) || own.has(port))
        {
            let why = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
            return Err(Status::internal(why).into());
        }
        Ok(())
    }
}

/// The ports of a service, with the node ports that they have or ask for.
#[derive(Debug, Default)]
struct Own {
    /// Number and node port of each, which is 0 when it has none.
    ports: Vec<(Option<i64>, i64)>,
    /// The place of the first that has a node port.
    places: HashMap<i64, usize>,
    /// By their numbers the place of the first that has any node port, and that one.
    siblings: HashMap<i64, (usize, i64)>,
}

impl Own {
    fn of(service: &Value) -> Self {
        let number = |port: &Value| port.get("port").and_then(Value::as_int);
        let mut own = Own { ports: ports(service).map(|p| (number(p), node_port(p))).collect(), ..Own::default() };
        for index in 0..own.ports.len() {
            if let Some((_, held)) = own.ports.get(index).copied().filter(|(_, held)| *held != 0) {
                own.note(index, held);
            }
        }
        own
    }

    /// Gives the port at a place a node port.
    fn note(&mut self, index: usize, held: i64) {
        let Some((port, before)) = self.ports.get_mut(index) else { return };
        *before = held;
        let place = self.places.entry(held).or_insert(index);
        *place = index.min(*place);
        if let Some(port) = *port {
            let first = self.siblings.entry(port).or_insert((index, held));
            *first = (index, held).min(*first);
        }
    }

    fn has(&self, held: u32) -> bool {
        self.places.contains_key(&held.into())
    }

    /// The node port of another port of the service with the same number, of another protocol.
    fn of_sibling(&self, port: i64) -> Option<u32> {
        self.siblings.get(&port).and_then(|(_, held)| u32::try_from(*held).ok())
    }

    /// How many node ports have to be found for the ports at some places; `each` is whether none is shared.
    fn lacking(&self, places: &[usize], each: bool) -> usize {
        let lack = places.iter().filter_map(|index| self.ports.get(*index)).filter(|(_, held)| *held == 0);
        if each {
            return lack.count();
        }
        let numbers: HashSet<i64> = lack.filter_map(|(port, _)| *port).collect();
        numbers.iter().filter(|port| !self.siblings.contains_key(port)).count()
    }
}

/// Why a port that is asked for cannot be given.
fn refuses_port(port: Option<u32>, used: impl Fn(u32) -> bool) -> Option<&'static str> {
    match port {
        Some(port) if PORTS.contains(&port) => used(port).then_some("provided port is already allocated"),
        _ => Some("provided port is not in the valid range. The range of valid ports is 30000-32767"),
    }
}

fn invalid(service: &Value, error: FieldError) -> Failure {
    Status::invalid(Qualified { group: "", name: "Service" }, service.name(), &[error]).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    /// A service with what it gets beside another, from some ranges.
    fn from_ranges(ranges: &[&str], service: &str, other: &str, dry_run: bool) -> Result<Value, String> {
        let mut service = value(service);
        let taken = Taken::default().with("other", &value(other));
        let wanted = Wanted::of(&service, None);
        let ranges: Vec<Span> = ranges.iter().filter_map(|cidr| Span::parse(cidr)).collect();
        let used = taken.without(None);
        match (Chooser { ranges: &ranges, used: &used, dry_run, updates: false }).complete(&mut service, &wanted) {
            Ok(()) => Ok(service),
            Err(Failure::Status(status)) => Err(status.message),
            Err(_) => Err(String::new()),
        }
    }

    fn allocated(service: &str, other: &str) -> Result<Value, String> {
        from_ranges(&[ranges::DEFAULT_CIDR], service, other, false)
    }

    #[test]
    fn what_is_missing_is_chosen() {
        let service = r#"{"spec":{"type":"NodePort","ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"},{"port":80}]}}"#;
        let service = allocated(service, "{}").unwrap();
        let address = number(service.str_at(&["spec", "clusterIP"]).unwrap()).unwrap();
        assert!((0x0a00_0011..=0x0a00_00fe).contains(&address));
        let ports: Vec<i64> = ports(&service).map(node_port).collect();
        assert_eq!(ports[0], ports[1]);
        assert_ne!(ports[0], ports[2]);
        assert!(ports.iter().all(|p| (30086..=32767).contains(p)));
    }

    #[test]
    fn ports_that_come_later_share_none() {
        let mut service = value(
            r#"{"spec":{"type":"NodePort","clusterIP":"None","ports":[{"port":53,"nodePort":30002},{"port":53}]}}"#,
        );
        let taken = Taken::default();
        let used = taken.without(None);
        let wanted = Wanted::of(&service, Some(&value(r#"{"spec":{"ports":[{"nodePort":30002}]}}"#)));
        let chooser = Chooser { ranges: &[], used: &used, dry_run: false, updates: true };
        assert!(chooser.complete(&mut service, &wanted).is_ok());
        let ports: Vec<i64> = ports(&service).map(node_port).collect();
        assert!(ports[0] == 30002 && ports[1] != 30002 && ports[1] != 0, "{ports:?}");
    }

    #[test]
    fn a_dry_run_is_told_of_something_without_a_search() {
        let service = r#"{"spec":{"type":"NodePort","ports":[{"port":1},{"port":2}]}}"#;
        let service = from_ranges(&[ranges::DEFAULT_CIDR], service, "{}", true).unwrap();
        assert_eq!(service.str_at(&["spec", "clusterIP"]), Some("10.0.0.0"));
        assert_eq!(ports(&service).map(node_port).collect::<Vec<_>>(), [32768, 32769]);
    }

    #[test]
    fn what_is_asked_for_has_to_be_free_and_in_range() {
        let used = r#"{"spec":{"clusterIPs":["10.0.0.9"],"ports":[{"nodePort":30001}]}}"#;
        let asks = |address: &str| {
            format!(r#"{{"spec":{{"type":"ClusterIP","clusterIP":"{address}","clusterIPs":["{address}"]}}}}"#)
        };
        let (one, two): (&[&str], &[&str]) = (&["10.0.0.0/24"], &["10.0.0.0/24", "10.1.0.0/28"]);
        const NETWORK: &str = "the provided network does not match the current range";
        const TAKEN: &str = "provided IP is already allocated";
        const DRY: &str = "the provided IP (10.2.0.9) is not in the valid range. The range of valid IPs is 10.0.0.0/24";
        for (ranges, address, dry_run, why) in [
            (one, "10.0.0.9", false, TAKEN),
            (one, "10.0.0.8", false, ""),
            (one, "10.0.0.9", true, ""),
            (one, "10.1.0.9", false, NETWORK),
            (two, "10.1.0.9", false, ""),
            (two, "10.1.0.15", false, NETWORK),
            (two, "10.2.0.9", true, DRY),
            (one, "10.0.0.0", false, NETWORK),
            (&[], "10.0.0.8", false, NETWORK),
        ] {
            let wrong = from_ranges(ranges, &asks(address), used, dry_run).err().unwrap_or_default();
            let start = format!("Invalid value: []string{{\"{address}\"}}: failed to allocate IP {address}: ");
            assert_eq!(wrong.split_once(&start).map_or("", |(_, why)| why), why, "{address}: {wrong}");
        }
        let port = r#"{"spec":{"type":"NodePort","clusterIP":"None","ports":[{"port":1,"nodePort":30001}]}}"#;
        assert!(allocated(port, used).unwrap_err().ends_with("provided port is already allocated"));
    }

    #[test]
    fn ports_share_with_the_first_of_their_number_and_no_more_are_given_than_there_are() {
        let service = r#"{"spec":{"type":"NodePort","clusterIP":"None","ports":[{"port":53},{"port":53,"nodePort":30002},
            {"port":53,"nodePort":30001},{"port":80,"nodePort":30001},{"port":80}]}}"#;
        let service = allocated(service, "{}").unwrap();
        assert_eq!(ports(&service).map(node_port).collect::<Vec<_>>(), [30002, 30002, 30001, 30001, 30001]);
        for dry_run in [false, true] {
            for (count, fits) in [(2768, true), (2769, false), (60_000, false)] {
                let all: Vec<String> =
                    (1..=count).map(|port| format!(r#"{{"port":{port}}},{{"port":{port}}}"#)).collect();
                let service =
                    format!(r#"{{"spec":{{"type":"NodePort","clusterIP":"None","ports":[{}]}}}}"#, all.join(","));
                let got = from_ranges(&[], &service, "{}", dry_run).map(|_| ());
                let full = "Internal error occurred: failed to allocate a nodePort: range is full";
                assert_eq!(got, if fits { Ok(()) } else { Err(full.to_owned()) }, "{count} {dry_run}");
            }
        }
    }

    #[test]
    fn a_range_is_used_when_those_before_it_are_full() {
        let service = r#"{"spec":{"type":"ClusterIP"}}"#;
        let other = r#"{"spec":{"clusterIPs":["10.0.0.1","10.0.0.2"]}}"#;
        let got = |ranges: &[&str]| {
            let got = from_ranges(ranges, service, other, false)?;
            Ok(got.str_at(&["spec", "clusterIP"]).unwrap_or_default().to_owned())
        };
        assert_eq!(got(&["10.0.0.0/30", "fd00::/108", "10.9.0.4/30"]).map(|a| a.starts_with("10.9.0.")), Ok(true));
        let full = "Internal error occurred: failed to allocate a serviceIP: range is full";
        for ranges in [&["10.0.0.0/30"][..], &[], &["10.9.0.0/31"]] {
            assert_eq!(got(ranges), Err(full.to_owned()));
        }
    }
}
