//! Addresses and node ports of services: those that are asked for are checked, the others chosen.
//!
//! What is in use is read from the services themselves, so that nothing is ever lost or left over. While one is written
//! that gets something, no other is on this server; where another server was faster, the store refuses the write
//! ([`store::Claim`]), and it is chosen again.

use crate::answer::{Failure, Outcome};
use crate::catalogue::Resource;
use crate::registry::{self, Stored};
use object::field::{FieldError, Path};
use object::status::Qualified;
use object::{Status, Value};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use store::{Claim, ListOptions, Range, Store};
use tokio::sync::{Mutex, MutexGuard};

/// The addresses of services, 10.0.0.0/24 without the network's own and the last one.
const ADDRESSES: RangeInclusive<u32> = 0x0a00_0001..=0x0a00_00fe;
/// The lower addresses are left to those who ask for one, as long as there are others.
const FIRST_ADDRESS: u32 = 0x0a00_0011;
/// The first address is that of the server itself.
const OWN_ADDRESS: u32 = 0x0a00_0001;
/// The node ports.
const PORTS: RangeInclusive<u32> = 30000..=32767;
/// What a dry run is told that it would get: upstream does not look for something free then.
const DRY_ADDRESS: u32 = 0x0a00_0000;
/// The first of the ports that a dry run is told of.
const DRY_PORT: u32 = 32768;
/// As with addresses.
const FIRST_PORT: u32 = 30086;

static ALLOCATING: Mutex<()> = Mutex::const_new(());

/// What a service got; keep it until the service is stored.
#[derive(Debug, Default)]
pub(crate) struct Allocation(Option<Turn>);

#[derive(Debug)]
struct Turn {
    _alone: MutexGuard<'static, ()>,
    claim: Option<Claim>,
}

/// What is decided about, for the store.
const CLAIM: &str = "services";

impl Allocation {
    /// Whether objects of a resource may get something.
    pub fn concerns(resource: &Resource) -> bool {
        resource.plural == "services" && resource.group.is_empty()
    }

    /// Gives a valid service that is to be stored the addresses and ports that it needs; `old` is the stored one. In a dry
    /// run nothing is looked for. Other kinds stay as they are.
    pub async fn complete(
        &mut self,
        store: &dyn Store,
        resource: &Resource,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Outcome<()> {
        if !Self::concerns(resource) {
            return Ok(());
        }
        let wanted = Wanted::of(service, old);
        if wanted.is_nothing() {
            return Ok(());
        }
        if self.0.is_none() {
            let alone = ALLOCATING.lock().await;
            // A dry run decides nothing.
            let claim = if dry_run { None } else { store.claim(CLAIM).await.map_err(registry::read_failure)? };
            self.0 = Some(Turn { _alone: alone, claim });
        }
        let page = store.list(&Range::prefix(resource.storage.prefix.as_str()), ListOptions::default()).await;
        let own = registry::key(resource, service.namespace(), service.name());
        let mut used = Used::default();
        for entry in page.map_err(registry::read_failure)?.entries {
            if old.is_some() && *entry.key == *own {
                continue;
            }
            if let Some(stored) = Stored::read(entry.value) {
                used.add(&stored.value(0));
            }
        }
        allocate(service, &wanted, used, dry_run)
    }

    /// With what the service is to be written.
    pub fn claim(&self) -> Option<Claim> {
        self.0.as_ref().and_then(|turn| turn.claim.clone())
    }
}

/// What a service lacks, or asks for anew.
#[derive(Debug, Default)]
struct Wanted {
    /// An address: the one asked for, or any.
    address: Option<Option<String>>,
    /// The places of the ports whose node ports are missing or new.
    ports: Vec<usize>,
    /// The port for health checks: the one asked for, or 0 for any.
    health: Option<i64>,
}

impl Wanted {
    fn of(service: &Value, old: Option<&Value>) -> Self {
        let text = |object: &Value, key: &str| object.str_at(&["spec", key]).unwrap_or_default().to_owned();
        let number = |object: &Value| object.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_int).unwrap_or(0);
        let kind = text(service, "type");
        let mut wanted = Wanted::default();
        if !matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
            return wanted;
        }
        let address = text(service, "clusterIP");
        let had = old.map(|old| text(old, "clusterIP")).unwrap_or_default();
        if address.is_empty() {
            wanted.address = Some(None);
        } else if address != "None" && address != had {
            wanted.address = Some(Some(address));
        }
        let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false);
        let before: Vec<i64> = old.map(|old| ports(old).map(node_port).collect()).unwrap_or_default();
        if kind != "ClusterIP" {
            let chooses = kind == "NodePort" || allocates;
            let new = ports(service).enumerate().filter(|(_, port)| match node_port(port) {
                0 => chooses,
                number => !before.contains(&number),
            });
            wanted.ports = new.map(|(i, _)| i).collect();
        }
        if kind == "LoadBalancer" && text(service, "externalTrafficPolicy") == "Local" {
            let had = old.map(number).unwrap_or(0);
            wanted.health = Some(number(service)).filter(|n| *n == 0 || *n != had);
        }
        wanted
    }

    fn is_nothing(&self) -> bool {
        self.address.is_none() && self.ports.is_empty() && self.health.is_none()
    }
}

/// What is taken.
#[derive(Debug, Default)]
struct Used {
    addresses: HashSet<u32>,
    ports: HashSet<u32>,
}

impl Used {
    fn add(&mut self, service: &Value) {
        let addresses = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
        self.addresses.extend(addresses.iter().filter_map(Value::as_str).filter_map(number));
        self.add_ports(service);
    }

    fn add_ports(&mut self, service: &Value) {
        let health = service.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_int).unwrap_or(0);
        let all = ports(service).map(node_port).chain([health]);
        self.ports.extend(all.filter(|p| *p != 0).filter_map(|p| u32::try_from(p).ok()));
    }
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

fn allocate(service: &mut Value, wanted: &Wanted, mut used: Used, dry_run: bool) -> Outcome<()> {
    let mut dry_ports = DRY_PORT..;
    let mut free_port = |used: &HashSet<u32>| match dry_run {
        true => Ok(dry_ports.next()),
        false => choose(&PORTS, FIRST_PORT, used),
    };
    let root = Path::ROOT;
    let spec = root.child("spec");
    used.addresses.insert(OWN_ADDRESS);
    match &wanted.address {
        None => {}
        Some(Some(address)) => {
            let why = match number(address) {
                Some(n) if ADDRESSES.contains(&n) && !used.addresses.contains(&n) => "",
                Some(n) if ADDRESSES.contains(&n) => "provided IP is already allocated",
                _ => "the provided network does not match the current range",
            };
            if !why.is_empty() {
                let why = format!("failed to allocate IP {address}: {why}");
                let all = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
                let all: Vec<String> = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                let error = FieldError::invalid(&spec.child("clusterIPs"), &all[..], why);
                return Err(invalid(service, error));
            }
        }
        Some(None) => {
            let free = match dry_run {
                true => Some(DRY_ADDRESS),
                false => choose(&ADDRESSES, FIRST_ADDRESS, &used.addresses)?,
            };
            let Some(free) = free else {
                return Err(Status::internal("failed to allocate a serviceIP: range is full").into());
            };
            let address = Ipv4Addr::from(free).to_string();
            service.set_at(&["spec", "clusterIP"], Value::from(address.as_str()));
            service.set_at(&["spec", "clusterIPs"], Value::from(vec![address]));
        }
    }
    for index in &wanted.ports {
        let all: Vec<Value> = ports(service).cloned().collect();
        let Some(port) = all.get(*index) else { continue };
        let taken = match u32::try_from(node_port(port)) {
            Ok(0) => port_of_sibling(&all, *index),
            asked => {
                // Ports of the service itself that differ in their protocol share one.
                let why = refusal(asked.ok(), &used.ports);
                let shares = all.iter().take(*index).any(|p| node_port(p) == node_port(port));
                if let Some(why) = why.filter(|_| !shares) {
                    let (list, at) = (spec.child("ports"), "nodePort");
                    let item = list.index(*index);
                    let error = FieldError::invalid(&item.child(at), node_port(port), why);
                    return Err(invalid(service, error));
                }
                asked.ok()
            }
        };
        // What later ports ask for is not given away.
        let mut closed = used.ports.clone();
        closed.extend(all.iter().map(node_port).filter_map(|p| u32::try_from(p).ok()));
        let Some(number) = taken.map(Some).map_or_else(|| free_port(&closed), Ok)? else {
            return Err(Status::internal("failed to allocate a nodePort: range is full").into());
        };
        used.ports.insert(number);
        let list = service.get_mut("spec").and_then(|s| s.get_mut("ports"));
        if let Some(Value::Array(list)) = list
            && let Some(port) = list.get_mut(*index)
        {
            port.set_at(&["nodePort"], Value::Int(i64::from(number)));
        }
    }
    if let Some(asked) = wanted.health {
        let others = used.ports.iter().copied().chain(ports(service).filter_map(|p| u32::try_from(node_port(p)).ok()));
        let others: HashSet<u32> = others.collect();
        if asked == 0 {
            let Some(free) = free_port(&others)? else {
                return Err(Status::internal("failed to allocate a nodePort: range is full").into());
            };
            service.set_at(&["spec", "healthCheckNodePort"], Value::Int(i64::from(free)));
        } else if let Some(why) = refusal(u32::try_from(asked).ok(), &others) {
            let why = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
            return Err(Status::internal(why).into());
        }
    }
    Ok(())
}

/// Why a port that is asked for cannot be given.
fn refusal(port: Option<u32>, used: &HashSet<u32>) -> Option<&'static str> {
    match port {
        Some(port) if PORTS.contains(&port) => used.contains(&port).then_some("provided port is already allocated"),
        _ => Some("provided port is not in the valid range. The range of valid ports is 30000-32767"),
    }
}

/// The node port of another port of the service with the same number, of another protocol.
fn port_of_sibling(all: &[Value], index: usize) -> Option<u32> {
    let port = all.get(index)?.get("port")?;
    let others = all.iter().enumerate().filter(|(i, other)| *i != index && other.get("port") == Some(port));
    others.map(|(_, other)| node_port(other)).find(|p| *p != 0).and_then(|p| u32::try_from(p).ok())
}

/// A number that is free, from `first` on if there is one.
fn choose(range: &RangeInclusive<u32>, first: u32, used: &HashSet<u32>) -> Outcome<Option<u32>> {
    let mut random = [0u8; 4];
    getrandom::fill(&mut random).map_err(Status::internal)?;
    let (first, end) = (first.max(*range.start()), *range.end());
    let start = first + u32::from_le_bytes(random) % (end - first + 1);
    let mut all = (start..=end).chain(first..start).chain(*range.start()..first);
    Ok(all.find(|n| !used.contains(n)))
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

    fn allocated(service: &str, used: &str) -> Result<Value, String> {
        let mut service = value(service);
        let mut taken = Used::default();
        taken.add(&value(used));
        let wanted = Wanted::of(&service, None);
        match allocate(&mut service, &wanted, taken, false) {
            Ok(()) => Ok(service),
            Err(Failure::Status(status)) => Err(status.message),
            Err(_) => Err(String::new()),
        }
    }

    #[test]
    fn what_is_missing_is_chosen() {
        let service = r#"{"spec":{"type":"NodePort","ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"},{"port":80}]}}"#;
        let service = allocated(service, "{}").unwrap();
        let address = number(service.str_at(&["spec", "clusterIP"]).unwrap()).unwrap();
        assert!((FIRST_ADDRESS..=*ADDRESSES.end()).contains(&address));
        let ports: Vec<i64> = ports(&service).map(node_port).collect();
        assert_eq!(ports[0], ports[1]);
        assert_ne!(ports[0], ports[2]);
        assert!(ports.iter().all(|p| (30086..=32767).contains(p)));
    }

    #[test]
    fn a_dry_run_is_told_of_something_without_a_search() {
        let mut service = value(r#"{"spec":{"type":"NodePort","ports":[{"port":1},{"port":2}]}}"#);
        let wanted = Wanted::of(&service, None);
        allocate(&mut service, &wanted, Used::default(), true).map_err(drop).unwrap();
        assert_eq!(service.str_at(&["spec", "clusterIP"]), Some("10.0.0.0"));
        assert_eq!(ports(&service).map(node_port).collect::<Vec<_>>(), [32768, 32769]);
    }

    #[test]
    fn what_is_asked_for_has_to_be_free_and_in_range() {
        let used = r#"{"spec":{"clusterIPs":["10.0.0.9"],"ports":[{"nodePort":30001}]}}"#;
        let taken = r#"{"spec":{"type":"ClusterIP","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"]}}"#;
        let why = allocated(taken, used).unwrap_err();
        assert!(
            why.ends_with(
                "Invalid value: []string{\"10.0.0.9\"}: failed to allocate IP 10.0.0.9: provided IP is already allocated"
            ),
            "{why}"
        );
        let outside = r#"{"spec":{"type":"ClusterIP","clusterIP":"10.1.0.9","clusterIPs":["10.1.0.9"]}}"#;
        assert!(allocated(outside, used).unwrap_err().ends_with("does not match the current range"));
        let port = r#"{"spec":{"type":"NodePort","clusterIP":"None","ports":[{"port":1,"nodePort":30001}]}}"#;
        assert!(allocated(port, used).unwrap_err().ends_with("provided port is already allocated"));
    }

    #[test]
    fn headless_and_external_services_need_nothing() {
        for service in [r#"{"spec":{"type":"ClusterIP","clusterIP":"None"}}"#, r#"{"spec":{"type":"ExternalName"}}"#] {
            assert!(Wanted::of(&value(service), None).is_nothing());
        }
    }
}
