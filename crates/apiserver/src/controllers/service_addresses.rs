//! The objects that say which addresses services have: the ServiceCIDR `kubernetes`, which is the first of the ranges
//! that they are from, and an IPAddress for each that is given away.
//!
//! What is free is known from the services themselves; these objects show it, and keep others from what they name. What
//! does not fit together is mended from time to time.

use crate::Server;
use crate::allocation::{ADDRESSES, SERVICES, ranges};
use crate::answer::{Failure, Outcome};
use crate::handlers::{time, uid};
use crate::registry::{self, Stored};
use http::Method;
use object::{Map, Value, map};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use store::{Expect, ListOptions, Range, Write, WriteError};

/// Who makes the objects, as upstream's allocator calls itself.
const MANAGED_BY: &str = "ipallocator.k8s.io";
const MANAGED_BY_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
/// How often it is looked whether all is in order, as upstream.
const INTERVAL: Duration = Duration::from_secs(180);

/// Makes the range that is missing, brings addresses in order, and goes on doing so.
pub(super) async fn ensure(server: &Arc<Server>) -> Result<(), Failure> {
    ensure_range(server).await?;
    repair(server).await?;
    let (held, mut stop) = (Arc::downgrade(server), server.stop_signal());
    tokio::spawn(async move {
        while tokio::time::timeout(INTERVAL, stop.changed()).await.is_err() {
            let Some(server) = held.upgrade() else { return };
            if let Err(failure) = repair(&server).await {
                tracing::warn!(?failure, "the addresses of services cannot be looked through");
            }
        }
    });
    Ok(())
}

/// Makes the ServiceCIDR that every cluster has, unless it is there.
pub(super) async fn ensure_range(server: &Arc<Server>) -> Outcome<()> {
    let key = format!("{}{}", ranges::SERVICE_CIDRS, ranges::DEFAULT);
    if server.store.get(&key, None).await.map_err(registry::read_failure)?.is_some() {
        return Ok(());
    }
    let (catalogue, now) = (server.catalogue(), (server.options.clock)());
    let Some(resource) = catalogue.resource("networking.k8s.io", "v1", "servicecidrs") else { return Ok(()) };
    let range = Value::Object(map! {
        "apiVersion" => "networking.k8s.io/v1",
        "kind" => "ServiceCIDR",
        "metadata" => map! { "name" => ranges::DEFAULT, "uid" => uid()?, "creationTimestamp" => time(now) },
        "spec" => map! { "cidrs" => vec![ranges::DEFAULT_CIDR] },
    });
    let mut range = resource.strategy.ownership().created(range, "kube-apiserver", now.as_second());
    let condition = map! {
        "type" => "Ready",
        "status" => "True",
        "reason" => "",
        "message" => "Kubernetes default Service CIDR is ready",
        "lastTransitionTime" => time(now),
    };
    range.set_at(&["status", "conditions"], Value::Array(vec![Value::Object(condition)]));
    let stored = Stored::new(&range, resource.strategy.fingerprint());
    match server.store.write(Write::put(key, Expect::Absent, stored.raw().clone())).await {
        // Another server was faster.
        Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
        Err(error) => Err(registry::write_failure(&error)),
    }
}

/// Called after each write of a service.
pub(super) async fn follow(server: &Arc<Server>, key: &str) {
    let Ok(entry) = server.store.get(key, None).await else { return };
    let service = entry.and_then(|entry| Stored::read(entry.value)).map(|stored| stored.value(0));
    let given: Vec<String> = service.iter().flat_map(addresses).collect();
    if let Some(service) = &service {
        for address in &given {
            make(server, address, &owner(service)).await;
        }
    }
    let Some((namespace, name)) = key.strip_prefix(SERVICES).and_then(|place| place.split_once('/')) else { return };
    for address in before(server, key, name, given.clone()).await {
        if given.contains(&address) {
            continue;
        }
        let Ok(Some(entry)) = server.store.get(&format!("{ADDRESSES}{address}"), None).await else { continue };
        let Some(object) = Stored::read(entry.value).map(|stored| stored.value(0)) else { continue };
        if is_ours(&object) && parent(&object) == (namespace.to_owned(), name.to_owned()) {
            remove(server, &object).await;
        }
    }
}

/// The addresses that a service may have had until it was written; `given` is what it has from now on.
async fn before(server: &Server, key: &str, name: &str, given: Vec<String>) -> Vec<String> {
    let known = if given.is_empty() {
        server.service_addresses.lock().remove(key)
    } else {
        server.service_addresses.lock().insert(key.into(), given)
    };
    // Others write services too: only the IPAddresses say which this one had.
    if !server.options.shared {
        return known.unwrap_or_default();
    }
    let Ok(page) = server.store.list(&Range::prefix(ADDRESSES), ListOptions::default()).await else {
        return Vec::new();
    };
    let name = format!("\"{name}\"");
    let mentions = page.entries.iter().filter(|e| memchr::memmem::find(&e.value, name.as_bytes()).is_some());
    mentions.filter_map(|entry| entry.key.strip_prefix(ADDRESSES)).map(str::to_owned).collect()
}

async fn all(server: &Server, prefix: &str) -> Outcome<Vec<Value>> {
    let page =
        server.store.list(&Range::prefix(prefix), ListOptions::default()).await.map_err(registry::read_failure)?;
    Ok(page.entries.into_iter().filter_map(|entry| Some(Stored::read(entry.value)?.value(0))).collect())
}

/// Brings IPAddresses in order with the services: makes those that are missing or wrong, and takes away those that no
/// service has.
async fn repair(server: &Arc<Server>) -> Outcome<()> {
    // In this order: what is read of services is never older.
    let held = all(server, ADDRESSES).await?;
    let services = all(server, SERVICES).await?;
    let mut known: HashMap<Arc<str>, Vec<String>> = HashMap::new();
    for service in &services {
        let given: Vec<String> = addresses(service).collect();
        if !given.is_empty() {
            known.insert(format!("{SERVICES}{}/{}", service.namespace(), service.name()).into(), given);
        }
    }
    server.service_addresses.lock().extend(known);
    let Repair { wrong, missing } = plan(&held, &services);
    for address in wrong {
        tracing::warn!(address = address.name(), "an IPAddress is not what the services say: it is removed");
        remove(server, address).await;
    }
    for (address, owner) in missing {
        make(server, &address, &owner).await;
    }
    Ok(())
}

/// Namespace and name of a service.
type Owner = (String, String);

/// What brings IPAddresses in order.
#[derive(Debug, Default)]
struct Repair<'a> {
    /// To be removed.
    wrong: Vec<&'a Value>,
    /// To be made then, each for a service.
    missing: BTreeMap<String, Owner>,
}

fn plan<'a>(held: &'a [Value], services: &[Value]) -> Repair<'a> {
    let mut owners: BTreeMap<String, Vec<Owner>> = BTreeMap::new();
    for service in services {
        for address in addresses(service) {
            owners.entry(address).or_default().push(owner(service));
        }
    }
    let mut repair = Repair::default();
    for address in held {
        match owners.get(address.name()) {
            Some(services) => {
                if is_of_service(address) && services.contains(&parent(address)) && is_labelled(address) {
                    owners.remove(address.name());
                } else {
                    repair.wrong.push(address);
                }
            }
            // Those of others are theirs.
            None if is_ours(address) => repair.wrong.push(address),
            None => {}
        }
    }
    let first = |(address, services): (String, Vec<Owner>)| Some((address, services.into_iter().next()?));
    repair.missing = owners.into_iter().filter_map(first).collect();
    repair
}

/// The addresses that a service has.
fn addresses(service: &Value) -> impl Iterator<Item = String> {
    let list = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(|a| Some(a.as_str()?.parse::<IpAddr>().ok()?.to_string()))
}

fn owner(service: &Value) -> Owner {
    (service.namespace().to_owned(), service.name().to_owned())
}

/// Namespace and name of the service that an address is of.
fn parent(address: &Value) -> Owner {
    let text = |key: &str| address.str_at(&["spec", "parentRef", key]).unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Whether an address says that it is a service's.
fn is_of_service(address: &Value) -> bool {
    let text = |key: &str| address.str_at(&["spec", "parentRef", key]).unwrap_or_default();
    text("group").is_empty() && text("resource") == "services"
}

fn is_ours(address: &Value) -> bool {
    address.str_at(&["metadata", "labels", MANAGED_BY_LABEL]) == Some(MANAGED_BY)
}

fn is_labelled(address: &Value) -> bool {
    is_ours(address) && address.str_at(&["metadata", "labels", FAMILY_LABEL]) == Some(family(address.name()))
}

fn family(address: &str) -> &'static str {
    if address.contains(':') { "IPv6" } else { "IPv4" }
}

fn labels(address: &str) -> Map {
    map! { FAMILY_LABEL => family(address), MANAGED_BY_LABEL => MANAGED_BY }
}

async fn make(server: &Arc<Server>, address: &str, (namespace, name): &Owner) {
    if !matches!(server.store.get(&format!("{ADDRESSES}{address}"), None).await, Ok(None)) {
        return;
    }
    let parent = map! { "resource" => "services", "namespace" => namespace.as_str(), "name" => name.as_str() };
    let object = Value::Object(map! {
        "apiVersion" => "networking.k8s.io/v1",
        "kind" => "IPAddress",
        "metadata" => map! { "name" => address, "labels" => labels(address) },
        "spec" => map! { "parentRef" => parent },
    });
    match server.own_request(Method::POST, "/apis/networking.k8s.io/v1/ipaddresses", Some(&object)).await {
        Err(failure) if failure.code() != 409 => {
            tracing::warn!(?failure, address, "the IPAddress of a service cannot be made");
        }
        _ => {}
    }
}

/// Removes an IPAddress, unless it is another one by now.
async fn remove(server: &Arc<Server>, address: &Value) {
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{}", address.name());
    let options = Value::Object(map! { "preconditions" => map! { "uid" => address.meta_str("uid") } });
    match server.own_request(Method::DELETE, &path, Some(&options)).await {
        Err(failure) if !matches!(failure.code(), 404 | 409) => {
            tracing::warn!(?failure, address = address.name(), "the IPAddress of a service cannot be removed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn address(name: &str, labels: Map, parent: &str) -> Value {
        let mut object = json::parse(format!(r#"{{"spec":{{"parentRef":{parent}}}}}"#).as_bytes()).unwrap();
        object.set_at(&["metadata"], Value::Object(map! { "name" => name, "labels" => labels }));
        object
    }

    #[test]
    fn addresses_are_brought_in_order_with_the_services() {
        let service = r#"{"metadata":{"namespace":"a","name":"web"},"spec":{"clusterIPs":["10.0.0.9"]}}"#;
        let services = [json::parse(service.as_bytes()).unwrap()];
        const RIGHT: &str = r#"{"resource":"services","namespace":"a","name":"web"}"#;
        const OTHER: &str = r#"{"resource":"services","namespace":"a","name":"other"}"#;
        const GATEWAY: &str = r#"{"group":"gw.io","resource":"gateways","namespace":"a","name":"web"}"#;
        let none = Map::default();
        for (what, name, labels, parent, removed, made) in [
            ("right", "10.0.0.9", labels("10.0.0.9"), RIGHT, false, false),
            ("of a service that has it not", "10.0.0.9", labels("10.0.0.9"), OTHER, true, true),
            ("of somebody else", "10.0.0.9", labels("10.0.0.9"), GATEWAY, true, true),
            ("without labels", "10.0.0.9", none.clone(), RIGHT, true, true),
            ("of another family", "10.0.0.9", labels("::1"), RIGHT, true, true),
            ("left over", "10.0.0.8", labels("10.0.0.8"), RIGHT, true, true),
            ("of a service that is not there", "10.0.0.8", labels("10.0.0.8"), OTHER, true, true),
            ("turned into another's", "10.0.0.8", labels("10.0.0.8"), GATEWAY, true, true),
            ("another's", "10.0.0.8", none.clone(), GATEWAY, false, true),
        ] {
            let held = [address(name, labels, parent)];
            let repair = plan(&held, &services);
            assert_eq!((!repair.wrong.is_empty(), !repair.missing.is_empty()), (removed, made), "{what}");
        }
    }
}
