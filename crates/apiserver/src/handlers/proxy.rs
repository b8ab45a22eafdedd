//! The subresource `proxy` of pods, services and nodes, as far as it can be answered without reaching them: who is
//! meant is looked up, and then said to be out of reach. This server connects to nobody on a client's behalf.

use super::Request;
use super::streams::node_address;
use crate::answer::{Outcome, Response};
use crate::registry::{self, Stored};
use object::status::Qualified;
use object::{Status, Value, go};
use std::net::IpAddr;

/// Answers for what the path names.
pub(crate) async fn handle(request: &mut Request<'_>) -> Outcome<Response> {
    let target = match request.resource.plural.as_str() {
        "nodes" => node(request).await?,
        "services" => service(request).await?,
        _ => pod(request).await?,
    };
    let why = format!("error trying to reach service: dial tcp {target}: this server connects to no pods and nodes");
    Err(Status::new(503, "ServiceUnavailable", why).into())
}

/// An object of the core group in the request's namespace; 404 if it is not there.
async fn find(request: &Request<'_>, plural: &str, name: &str) -> Outcome<Value> {
    let resource = request.catalogue.resource("", "v1", plural);
    let found = match resource {
        Some(resource) => {
            let key = registry::key(resource, &request.info.namespace, name);
            request.server.store.get(&key, None).await.map_err(registry::read_failure)?
        }
        None => None,
    };
    let object = found.and_then(|e| Stored::read(e.value)).map(|s| s.value(0));
    object.ok_or_else(|| Status::not_found(Qualified { group: "", name: plural }, name).into())
}

/// `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`, as name and port.
fn split(id: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    match parts.as_slice() {
        [name] => Some((*name, "")),
        [name, port] => Some((*name, *port)),
        ["" | "http" | "https", name, port] => Some((*name, *port)),
        _ => None,
    }
    .filter(|(name, _)| !name.is_empty())
}

async fn node(request: &Request<'_>) -> Outcome<String> {
    let Some((name, port)) = split(&request.info.name) else {
        return Err(Status::bad_request(format!("invalid node request {}", go::quote(&request.info.name))).into());
    };
    let node = find(request, "nodes", name).await?;
    node_address(&node, port).map_err(|why| Status::unknown(why).into())
}

async fn pod(request: &Request<'_>) -> Outcome<String> {
    let Some((name, port)) = split(&request.info.name) else {
        return Err(Status::bad_request(format!("invalid pod request {}", go::quote(&request.info.name))).into());
    };
    let pod = find(request, "pods", name).await?;
    let address = pod.str_at(&["status", "podIP"]).unwrap_or_default();
    if !address.parse::<IpAddr>().is_ok_and(is_global_unicast) {
        return Err(Status::bad_request("address not allowed").into());
    }
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array).unwrap_or_default();
    let ports = containers.iter().filter_map(|c| c.get("ports").and_then(Value::as_array)).flatten();
    let first = ports.filter_map(|p| p.get("containerPort").and_then(Value::as_int)).next();
    let first = first.map(|p| p.to_string()).unwrap_or_default();
    Ok(host(address, if port.is_empty() { &first } else { port }))
}

async fn service(request: &Request<'_>) -> Outcome<String> {
    let id = request.info.name.as_str();
    let unavailable = |why: String| Status::new(503, "ServiceUnavailable", why).into();
    let Some((name, port)) = split(id) else {
        return Err(Status::bad_request(format!("invalid service request {}", go::quote(id))).into());
    };
    let mut port = port.to_owned();
    let service = find(request, "services", name).await?;
    if let Ok(number) = port.parse::<i64>() {
        let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
        let declared = ports.iter().find(|p| p.get("port").and_then(Value::as_int) == Some(number));
        let Some(declared) = declared else {
            let name = go::quote(name);
            return Err(unavailable(format!("no service port {number} found for service {name}")));
        };
        port = declared.str_at(&["name"]).unwrap_or_default().to_owned();
    }
    let endpoints = find(request, "endpoints", name).await?;
    let subsets = endpoints.get("subsets").and_then(Value::as_array).unwrap_or_default();
    if subsets.is_empty() {
        return Err(unavailable(format!("no endpoints available for service {}", go::quote(name))));
    }
    let reached = subsets.iter().find_map(|subset| {
        let list = |key: &str| subset.get(key).and_then(Value::as_array).unwrap_or_default();
        let found = list("ports").iter().find(|p| p.str_at(&["name"]).unwrap_or_default() == port)?;
        // Only pods are proxied to.
        let pods = list("addresses").iter().filter(|a| a.str_at(&["targetRef", "kind"]) == Some("Pod"));
        let address = pods.filter_map(|a| a.str_at(&["ip"])).next()?;
        let number = found.get("port").and_then(Value::as_int).unwrap_or(0);
        Some(host(address, &number.to_string()))
    });
    reached.ok_or_else(|| unavailable(format!("no endpoints available for service {}", go::quote(id))))
}

fn is_global_unicast(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(address.is_loopback() || address.is_multicast() || address.is_unspecified() || link_local)
}

/// A host and port as Go joins them.
fn host(address: &str, port: &str) -> String {
    match (address.contains(':'), port.is_empty()) {
        (true, true) => format!("[{address}]"),
        (true, false) => format!("[{address}]:{port}"),
        (false, true) => address.to_owned(),
        (false, false) => format!("{address}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_a_scheme_and_a_port() {
        for (id, wanted) in [
            ("a", Some(("a", ""))),
            ("a:http", Some(("a", "http"))),
            ("https:a:443", Some(("a", "443"))),
            (":a:", Some(("a", ""))),
            ("ftp:a:1", None),
            ("a:b:c:d", None),
            (":1", None),
        ] {
            assert_eq!(split(id), wanted, "{id}");
        }
    }

    #[test]
    fn addresses_of_machines_themselves_are_not_reached() {
        for (address, allowed) in
            [("10.0.0.1", true), ("127.0.0.1", false), ("169.254.169.254", false), ("fe80::1", false)]
        {
            assert_eq!(is_global_unicast(address.parse().unwrap()), allowed, "{address}");
        }
    }
}
