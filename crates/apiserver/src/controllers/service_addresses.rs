//! The objects that say which addresses services have: the ServiceCIDR `kubernetes`, which is the range that they are
//! from, and an IPAddress for each that is given away.
//!
//! What is free is known from the services themselves; these objects only show it. (Upstream it is the other way round,
//! so that IPAddresses of others keep addresses from being given away, and further ServiceCIDRs add to them.)

use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::handlers::time;
use crate::registry::{self, Stored};
use http::Method;
use object::{Value, map};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use store::{ListOptions, Range};

const SERVICES: &str = "/registry/services/";
const ADDRESSES: &str = "/registry/ipaddresses/";
const RANGES: &str = "/registry/servicecidrs/";
/// The range of services' addresses.
const RANGE: &str = "10.0.0.0/24";
/// Who makes the objects, as upstream's allocator calls itself.
const MANAGED_BY: &str = "ipallocator.k8s.io";

/// Makes the range and the addresses that are missing, and takes away those that no service has.
pub(super) async fn ensure(server: &Arc<Server>) -> Result<(), Failure> {
    let there = server.store.get(&format!("{RANGES}kubernetes"), None).await.map_err(registry::read_failure)?;
    if there.is_none() {
        make_range(server).await?;
    }
    let mut wanted = BTreeMap::new();
    for service in all(server, SERVICES).await? {
        wanted.extend(addresses(&service).map(|address| (address, owner(&service))));
    }
    for address in all(server, ADDRESSES).await?.iter().filter(|a| is_ours(a)) {
        if wanted.get(address.name()).is_some_and(|owner| *owner == parent(address)) {
            wanted.remove(address.name());
        } else {
            remove(server, address.name()).await;
        }
    }
    for (address, owner) in wanted {
        make(server, &address, &owner).await;
    }
    Ok(())
}

async fn make_range(server: &Arc<Server>) -> Outcome<()> {
    let range = Value::Object(map! {
        "apiVersion" => "networking.k8s.io/v1",
        "kind" => "ServiceCIDR",
        "metadata" => map! { "name" => "kubernetes" },
        "spec" => map! { "cidrs" => vec![RANGE] },
    });
    server.own_request(Method::POST, "/apis/networking.k8s.io/v1/servicecidrs", Some(&range)).await?;
    let condition = map! {
        "type" => "Ready",
        "status" => "True",
        "reason" => "",
        "message" => "Kubernetes default Service CIDR is ready",
        "lastTransitionTime" => time((server.options.clock)()),
    };
    let ready = |range: &Value| {
        let mut range = range.clone();
        range.set_at(&["status", "conditions"], Value::Array(vec![Value::Object(condition.clone())]));
        Some(range)
    };
    server.rewrite(&format!("{RANGES}kubernetes"), ready).await.map(drop)
}

/// Called after each write of a service.
pub(super) async fn follow(server: &Arc<Server>, key: &str) {
    let Ok(entry) = server.store.get(key, None).await else { return };
    let service = entry.and_then(|entry| Stored::read(entry.value)).map(|stored| stored.value(0));
    let given: Vec<String> = service.iter().flat_map(addresses).collect();
    if let Some(service) = &service
        && !given.is_empty()
    {
        for address in given {
            make(server, &address, &owner(service)).await;
        }
        return;
    }
    // It has none, and may have had some.
    let Some((namespace, name)) = key.strip_prefix(SERVICES).and_then(|place| place.split_once('/')) else { return };
    let owner = (namespace.to_owned(), name.to_owned());
    for address in all(server, ADDRESSES).await.unwrap_or_default() {
        if is_ours(&address) && parent(&address) == owner {
            remove(server, address.name()).await;
        }
    }
}

async fn all(server: &Server, prefix: &str) -> Outcome<Vec<Value>> {
    let page =
        server.store.list(&Range::prefix(prefix), ListOptions::default()).await.map_err(registry::read_failure)?;
    Ok(page.entries.into_iter().filter_map(|entry| Some(Stored::read(entry.value)?.value(0))).collect())
}

/// The addresses that a service has.
fn addresses(service: &Value) -> impl Iterator<Item = String> {
    let list = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(|a| Some(a.as_str()?.parse::<IpAddr>().ok()?.to_string()))
}

/// Namespace and name of a service.
fn owner(service: &Value) -> (String, String) {
    (service.namespace().to_owned(), service.name().to_owned())
}

/// Namespace and name of the service that an address is of.
fn parent(address: &Value) -> (String, String) {
    let text = |key: &str| address.str_at(&["spec", "parentRef", key]).unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn is_ours(address: &Value) -> bool {
    address.str_at(&["metadata", "labels", "ipaddress.kubernetes.io/managed-by"]) == Some(MANAGED_BY)
}

async fn make(server: &Arc<Server>, address: &str, (namespace, name): &(String, String)) {
    if !matches!(server.store.get(&format!("{ADDRESSES}{address}"), None).await, Ok(None)) {
        return;
    }
    let labels = map! {
        "ipaddress.kubernetes.io/ip-family" => if address.contains(':') { "IPv6" } else { "IPv4" },
        "ipaddress.kubernetes.io/managed-by" => MANAGED_BY,
    };
    let parent = map! { "resource" => "services", "namespace" => namespace.as_str(), "name" => name.as_str() };
    let object = Value::Object(map! {
        "apiVersion" => "networking.k8s.io/v1",
        "kind" => "IPAddress",
        "metadata" => map! { "name" => address, "labels" => labels },
        "spec" => map! { "parentRef" => parent },
    });
    let made = server.own_request(Method::POST, "/apis/networking.k8s.io/v1/ipaddresses", Some(&object)).await;
    if let Err(failure) = made {
        tracing::warn!(?failure, address, "the IPAddress of a service cannot be made");
    }
}

async fn remove(server: &Arc<Server>, address: &str) {
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{address}");
    if let Err(failure) = server.own_request(Method::DELETE, &path, None).await {
        tracing::warn!(?failure, address, "the IPAddress of a service cannot be removed");
    }
}
