//! What services have, as it was last read.

use super::{node_port, number, ports};
use crate::registry::Stored;
use object::Value;
use std::collections::{HashMap, HashSet};
use store::{Entry, Key, Revision};

/// The addresses and node ports of all services. Reading anew costs only what changed.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    services: HashMap<Key, Held>,
    /// How many services have an address.
    addresses: HashMap<u32, u32>,
    /// How often a port is somebody's.
    ports: HashMap<u32, u32>,
    /// Counts the readings.
    round: u64,
}

/// What one service has.
#[derive(Debug, Default)]
struct Held {
    revision: Revision,
    /// In which reading it was there.
    round: u64,
    addresses: Vec<u32>,
    ports: Vec<u32>,
}

impl Held {
    fn of(service: &Value) -> Self {
        let addresses = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
        let health = service.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_int).unwrap_or(0);
        let numbers = ports(service).map(node_port).chain([health]);
        Held {
            addresses: addresses.iter().filter_map(Value::as_str).filter_map(number).collect(),
            ports: numbers.filter(|p| *p != 0).filter_map(|p| u32::try_from(p).ok()).collect(),
            ..Held::default()
        }
    }
}

impl Taken {
    /// Takes over all services as they are now.
    pub fn refresh(&mut self, entries: Vec<Entry>) {
        self.round += 1;
        let count = entries.len();
        for entry in entries {
            match self.services.get_mut(&entry.key) {
                Some(held) if held.revision == entry.mod_revision => held.round = self.round,
                _ => {
                    let service = Stored::read(entry.value).map(|stored| stored.value(0)).unwrap_or_default();
                    self.put(entry.key, &service, entry.mod_revision);
                }
            }
        }
        if self.services.len() > count {
            let round = self.round;
            let gone: Vec<Held> = self.services.extract_if(|_, held| held.round != round).map(|(_, h)| h).collect();
            gone.iter().for_each(|held| self.forget(held));
        }
    }

    fn put(&mut self, key: Key, service: &Value, revision: Revision) {
        let held = Held { revision, round: self.round, ..Held::of(service) };
        held.addresses.iter().for_each(|n| *self.addresses.entry(*n).or_default() += 1);
        held.ports.iter().for_each(|n| *self.ports.entry(*n).or_default() += 1);
        if let Some(old) = self.services.insert(key, held) {
            self.forget(&old);
        }
    }

    fn forget(&mut self, held: &Held) {
        held.addresses.iter().for_each(|n| drop_one(&mut self.addresses, *n));
        held.ports.iter().for_each(|n| drop_one(&mut self.ports, *n));
    }

    /// Whether a service has an address.
    pub fn has_address(&self, address: u32) -> bool {
        self.addresses.contains_key(&address)
    }

    /// What others than a service have.
    pub fn without<'a>(&'a self, own: Option<&str>) -> Used<'a> {
        Used { taken: self, own: own.and_then(|key| self.services.get(key)), more: HashSet::new() }
    }
}

fn drop_one(counts: &mut HashMap<u32, u32>, number: u32) {
    if let Some(count) = counts.get_mut(&number) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&number);
        }
    }
}

/// What a service may not have, because it is somebody's.
#[derive(Debug)]
pub(crate) struct Used<'a> {
    taken: &'a Taken,
    /// What the service has already, which is no hindrance.
    own: Option<&'a Held>,
    /// Addresses that nobody else gets for another reason.
    pub more: HashSet<u32>,
}

impl Used<'_> {
    /// Whether an address is somebody else's.
    pub fn address(&self, address: u32) -> bool {
        let own = self.own.map_or(&[][..], |held| &held.addresses);
        self.more.contains(&address) || is_others(&self.taken.addresses, own, address)
    }

    /// Whether a port is somebody else's.
    pub fn port(&self, port: u32) -> bool {
        is_others(&self.taken.ports, self.own.map_or(&[][..], |held| &held.ports), port)
    }
}

/// Whether somebody has a number more often than oneself.
fn is_others(counts: &HashMap<u32, u32>, own: &[u32], number: u32) -> bool {
    let own = own.iter().filter(|n| **n == number).count();
    counts.get(&number).is_some_and(|count| usize::try_from(*count).is_ok_and(|count| count > own))
}

#[cfg(test)]
impl Taken {
    /// With a service more.
    pub fn with(mut self, key: &str, service: &Value) -> Self {
        self.put(key.into(), service, 1);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn entry(key: &str, service: &str, revision: Revision) -> Entry {
        let value = Stored::new(&json::parse(service.as_bytes()).unwrap(), 1).raw().clone();
        Entry { key: key.into(), value, create_revision: 1, mod_revision: revision, version: 1 }
    }

    #[test]
    fn what_services_have_follows_them() {
        let a = r#"{"spec":{"clusterIPs":["10.0.0.9"],"ports":[{"nodePort":30001},{"nodePort":30001}]}}"#;
        let b = r#"{"spec":{"clusterIPs":["10.0.0.8"],"healthCheckNodePort":30002}}"#;
        let mut taken = Taken::default();
        taken.refresh(vec![entry("a", a, 1), entry("b", b, 2)]);
        let nine = number("10.0.0.9").unwrap();
        assert!(taken.without(None).address(nine) && taken.without(Some("b")).address(nine));
        assert!(!taken.without(Some("a")).address(nine) && !taken.without(Some("a")).port(30001));
        assert!(taken.without(None).port(30001) && taken.without(Some("a")).port(30002));
        // Changed, and gone.
        taken.refresh(vec![entry("a", r#"{"spec":{"clusterIPs":["None"]}}"#, 3), entry("b", b, 2)]);
        assert!(!taken.has_address(nine) && !taken.without(None).port(30001) && taken.without(None).port(30002));
        taken.refresh(vec![entry("a", "{}", 4)]);
        assert!(!taken.without(None).port(30002) && taken.ports.is_empty() && taken.addresses.is_empty());
    }
}
