//! The service `kubernetes` in the namespace `default`, by which programs inside a cluster find the server.

use super::service_addresses;
use crate::Server;
use crate::allocation::OWN_ADDRESS;
use crate::answer::Failure;
use crate::handlers::{time, uid};
use crate::registry::{self, Stored};
use object::{Map, Value, map};
use std::net::SocketAddr;
use std::sync::Arc;
use store::{Expect, Write};

/// Makes the service if it is not there, and lets its endpoints be the address by which clients reach the server. A
/// server that nobody reaches by an address has none. Services have a range of addresses in any case.
pub(crate) async fn ensure(server: &Arc<Server>) -> Result<(), Failure> {
    if let Ok(address) = server.options.advertised.parse::<SocketAddr>() {
        ensure_service(server, address).await?;
    }
    service_addresses::ensure(server).await
}

async fn ensure_service(server: &Arc<Server>, address: SocketAddr) -> Result<(), Failure> {
    let cluster_ip = OWN_ADDRESS.to_string();
    let port = i64::from(address.port());
    let service = map! {
        "clusterIP" => cluster_ip.as_str(),
        "clusterIPs" => vec![cluster_ip.as_str()],
        "internalTrafficPolicy" => "Cluster",
        "ipFamilies" => vec!["IPv4"],
        "ipFamilyPolicy" => "SingleStack",
        "ports" => vec![map! { "name" => "https", "port" => 443i64, "protocol" => "TCP", "targetPort" => port }],
        "sessionAffinity" => "None",
        "type" => "ClusterIP",
    };
    let labels = map! { "component" => "apiserver", "provider" => "kubernetes" };
    let service = map! { "spec" => service, "status" => map! { "loadBalancer" => Map::new() } };
    put(server, "v1", "Service", "services", map! { "labels" => labels }, service, false).await?;
    let port = |port: i64| vec![map! { "name" => "https", "port" => port, "protocol" => "TCP" }];
    let number = i64::from(address.port());
    let subset = map! { "addresses" => vec![map! { "ip" => address.ip().to_string() }], "ports" => port(number) };
    let meta = map! { "labels" => map! { "endpointslice.kubernetes.io/skip-mirror" => "true" } };
    put(server, "v1", "Endpoints", "endpoints", meta, map! { "subsets" => vec![subset] }, true).await?;
    let endpoint = map! { "addresses" => vec![address.ip().to_string()], "conditions" => map! { "ready" => true } };
    let slice = map! {
        "addressType" => if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints" => vec![endpoint],
        "ports" => port(number),
    };
    let meta = map! { "labels" => map! { "kubernetes.io/service-name" => "kubernetes" }, "generation" => 1i64 };
    put(server, "discovery.k8s.io/v1", "EndpointSlice", "endpointslices", meta, slice, true).await
}

/// Stores an object called `kubernetes`; one that is there is left alone unless `replace` is true and it has something
/// else. `own` is what its metadata has beside what every object's has.
async fn put(
    server: &Arc<Server>,
    api_version: &str,
    kind: &str,
    plural: &str,
    own: Map,
    content: Map,
    replace: bool,
) -> Result<(), Failure> {
    let key = format!("/registry/{plural}/default/kubernetes");
    let there = server.store.get(&key, None).await.map_err(registry::read_failure)?;
    let mut meta = own;
    let expect = match there {
        None => {
            meta.insert("name", "kubernetes");
            meta.insert("namespace", "default");
            meta.insert("uid", uid()?);
            meta.insert("creationTimestamp", time((server.options.clock)()));
            Expect::Absent
        }
        Some(_) if !replace => return Ok(()),
        Some(entry) => {
            let old = registry::stored(&entry)?.value(0);
            if content.iter().all(|(key, value)| old.get(key) == Some(value)) {
                return Ok(());
            }
            meta = old.metadata().cloned().unwrap_or(meta);
            if let Some(Value::Int(generation)) = meta.get_mut("generation") {
                *generation += 1;
            }
            Expect::Revision(entry.mod_revision)
        }
    };
    let mut object = Value::Object(content);
    object.set_at(&["metadata"], Value::Object(meta));
    object.set_at(&["apiVersion"], api_version.into());
    object.set_at(&["kind"], kind.into());
    let catalogue = server.catalogue();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let fingerprint = catalogue.resource(group, version, plural).map_or(1, |r| r.strategy.fingerprint());
    let stored = Stored::new(&object, fingerprint);
    server.write_first(vec![Write::put(key, expect, stored.raw().clone())]).await
}
