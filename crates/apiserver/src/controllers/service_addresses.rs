//! The objects that say which addresses services have: the ServiceCIDR `kubernetes`, which is the first of the ranges
//! that they are from, and an IPAddress for each that is given away.
//!
//! What is free is known from the services themselves; these objects show it, and keep others from what they name. What
//! does not fit together is mended from time to time.

use crate::Server;
use crate::allocation::{ADDRESSES, SERVICES, ranges};
use crate::answer::{Failure, Outcome};
use crate::handlers::time;
use crate::registry::{self, Stored};
use http::Method;
use object::{Map, Value, map};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use store::{Expect, ListOptions, Range, ReadError, Write};

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
    let catalogue = server.catalogue();
    let Some(resource) = catalogue.resource("networking.k8s.io", "v1", "servicecidrs") else { return Ok(()) };
    let range = Value::Object(map! {
        "apiVersion" => "networking.k8s.io/v1",
        "kind" => "ServiceCIDR",
        "metadata" => map! { "name" => ranges::DEFAULT },
        "spec" => map! { "cidrs" => vec![ranges::DEFAULT_CIDR] },
    });
    let mut range = server.new_object(resource, range, "kube-apiserver")?;
    let condition = map! {
        "type" => "Ready",
        "status" => "True",
        "reason" => "",
        "message" => "Kubernetes default Service CIDR is ready",
        "lastTransitionTime" => time((server.options.clock)()),
    };
    range.set_at(&["status", "conditions"], Value::Array(vec![Value::Object(condition)]));
    let stored = Stored::new(&range, resource.strategy.fingerprint());
    server.write_first(vec![Write::put(key, Expect::Absent, stored.raw().clone())]).await
}

/// Called after each write of a service. What the store's replica has is enough: it has that write, and what it lacks of
/// others' is mended in time.
pub(super) async fn follow(server: &Arc<Server>, key: &str) {
    let Some((namespace, name)) = key.strip_prefix(SERVICES).and_then(|place| place.split_once('/')) else { return };
    let Some((before, given)) = before_and_now(server, key, name) else { return };
    let owner = (namespace.to_owned(), name.to_owned());
    for address in &given {
        make(server, address, &owner).await;
    }
    for address in before.iter().filter(|address| !given.contains(address)) {
        let Ok(Some(object)) = held(server, &format!("{ADDRESSES}{address}")) else { continue };
        if is_ours(&object) && parent(&object) == owner {
            remove(server, &object).await;
        }
    }
}

/// The addresses that a service may have had until it was written, and those that it has.
fn before_and_now(server: &Server, key: &str, name: &str) -> Option<(Vec<String>, Vec<String>)> {
    let now = || Some(held(server, key).ok()?.iter().flat_map(addresses).collect::<Vec<String>>());
    if !server.options.shared {
        // What is noted is never older than what was noted before.
        let mut known = server.service_addresses.lock();
        let given = now()?;
        let before = if given.is_empty() { known.remove(key) } else { known.insert(key.into(), given.clone()) };
        return Some((before.unwrap_or_default(), given));
    }
    // Others write services too: only the IPAddresses say which this one had. The service is read after them, so that no
    // address that it got meanwhile is taken for one that it had.
    let page = server.store.replica().list(&Range::prefix(ADDRESSES), &ListOptions::default()).ok()?;
    let name = format!("\"{name}\"");
    let mentions = page.entries.iter().filter(|e| memchr::memmem::find(&e.value, name.as_bytes()).is_some());
    let before = mentions.filter_map(|entry| entry.key.strip_prefix(ADDRESSES)).map(str::to_owned).collect();
    Some((before, now()?))
}

/// An object as the store's replica has it.
fn held(server: &Server, key: &str) -> Result<Option<Value>, ReadError> {
    let entry = server.store.replica().get(key, None)?;
    Ok(entry.and_then(|entry| Stored::read(entry.value)).map(|stored| stored.value(0)))
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
    if !server.options.shared {
        note(&mut server.service_addresses.lock(), &services);
    }
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

/// Notes the addresses of services of which nothing is known: what is known was noted at a write, and is newer.
fn note(known: &mut HashMap<store::Key, Vec<String>>, services: &[Value]) {
    for service in services {
        let given: Vec<String> = addresses(service).collect();
        if !given.is_empty() {
            let key = format!("{SERVICES}{}/{}", service.namespace(), service.name());
            known.entry(key.as_str().into()).or_insert(given);
        }
    }
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
    if !matches!(server.store.replica().get(&format!("{ADDRESSES}{address}"), None), Ok(None)) {
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
    fn what_was_noted_at_a_write_stays() {
        let service = |name: &str| {
            let text =
                format!(r#"{{"metadata":{{"namespace":"a","name":"{name}"}},"spec":{{"clusterIPs":["10.0.0.9"]}}}}"#);
            json::parse(text.as_bytes()).unwrap()
        };
        let key = |name: &str| store::Key::from(format!("{SERVICES}a/{name}").as_str());
        let mut known = HashMap::from([(key("written"), vec!["10.0.0.8".to_owned()])]);
        note(&mut known, &[service("written"), service("new")]);
        assert_eq!(known[&key("written")], ["10.0.0.8"]);
        assert_eq!(known[&key("new")], ["10.0.0.9"]);
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
