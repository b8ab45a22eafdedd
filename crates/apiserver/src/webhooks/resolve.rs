//! From a service to an address that answers for it.

use crate::registry::{self, Stored};
use object::{Value, go};
use std::sync::Arc;
use store::{ListOptions, Range, Store};

const SERVICES: &str = "/registry/services/";
const ENDPOINTS: &str = "/registry/endpoints/";
const SLICES: &str = "/registry/endpointslices/";
/// The label of slices that names their service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Looks services up. Their traffic is not balanced by anything else here, so the addresses of their endpoints are
/// used, as upstream does with `--enable-aggregator-routing`.
pub(super) struct Resolver {
    store: Arc<dyn Store>,
}

impl Resolver {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Resolver { store }
    }

    /// The host and port that answer for a service's port; the error is upstream's text.
    pub async fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
        let quoted = go::quote(name);
        let service = self.get(&format!("{SERVICES}{namespace}/{name}")).await?;
        let Some(service) = service else { return Err(format!("service {quoted} not found")) };
        match service.str_at(&["spec", "type"]).unwrap_or("ClusterIP") {
            "ExternalName" => {
                let host = service.str_at(&["spec", "externalName"]).unwrap_or_default();
                return Ok((host.to_owned(), port));
            }
            "ClusterIP" if service.str_at(&["spec", "clusterIP"]) == Some("None") => {
                return Err("cannot route to service with ClusterIP \"None\"".to_owned());
            }
            "ClusterIP" | "LoadBalancer" | "NodePort" => {}
            other => return Err(format!("unsupported service type {}", go::quote(other))),
        }
        let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
        let found = ports.iter().find(|p| p.get("port").and_then(Value::as_int) == Some(i64::from(port)));
        let Some(found) = found else { return Err(format!("no service port {port} found for service {quoted}")) };
        let port_name = found.str_at(&["name"]).unwrap_or_default();
        if let Some(endpoints) = self.get(&format!("{ENDPOINTS}{namespace}/{name}")).await?
            && let Some(address) = of_endpoints(&endpoints, port_name)
        {
            return Ok(address);
        }
        let page = self.store.list(&Range::prefix(format!("{SLICES}{namespace}/")), ListOptions::default()).await;
        let slices = page.map_err(|e| e.to_string())?.entries;
        let slices = slices.iter().filter_map(|entry| Stored::read(entry.value.clone()));
        let of_service =
            |slice: &Stored| slice.labels().is_some_and(|l| l.get(SERVICE_NAME).and_then(Value::as_str) == Some(name));
        let address = slices.filter(of_service).find_map(|slice| of_slice(&slice.value(0), port_name));
        address.ok_or_else(|| format!("no endpoints available for service {quoted}"))
    }

    async fn get(&self, key: &str) -> Result<Option<Value>, String> {
        let entry = self.store.get(key, None).await.map_err(|e| e.to_string())?;
        let stored = entry.as_ref().and_then(|entry| registry::stored(entry).ok());
        Ok(stored.map(|stored| stored.value(0)))
    }
}

fn port_of(ports: Option<&Value>, name: &str) -> Option<u16> {
    let ports = ports.and_then(Value::as_array)?;
    let port = ports.iter().find(|p| p.str_at(&["name"]).unwrap_or_default() == name)?;
    u16::try_from(port.get("port")?.as_int()?).ok()
}

fn of_endpoints(endpoints: &Value, port_name: &str) -> Option<(String, u16)> {
    endpoints.get("subsets")?.as_array()?.iter().find_map(|subset| {
        let port = port_of(subset.get("ports"), port_name)?;
        let address = subset.get("addresses")?.as_array()?.first()?;
        Some((address.str_at(&["ip"])?.to_owned(), port))
    })
}

fn of_slice(slice: &Value, port_name: &str) -> Option<(String, u16)> {
    let port = port_of(slice.get("ports"), port_name)?;
    let ready = |endpoint: &&Value| endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool) != Some(false);
    let endpoint = slice.get("endpoints")?.as_array()?.iter().find(ready)?;
    Some((endpoint.get("addresses")?.as_array()?.first()?.as_str()?.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn the_port_of_a_name_is_taken() {
        let endpoints = br#"{"subsets":[{"ports":[{"name":"a","port":1}],"addresses":[{"ip":"10.0.0.1"}]},
            {"ports":[{"name":"b","port":2}],"addresses":[{"ip":"10.0.0.2"}]}]}"#;
        let endpoints = json::parse(endpoints).unwrap();
        assert_eq!(of_endpoints(&endpoints, "b"), Some(("10.0.0.2".to_owned(), 2)));
        assert_eq!(of_endpoints(&endpoints, "c"), None);
        let slice = br#"{"ports":[{"name":"","port":8}],"endpoints":[
            {"addresses":["10.0.0.3"],"conditions":{"ready":false}},{"addresses":["10.0.0.4"]}]}"#;
        let slice = json::parse(slice).unwrap();
        assert_eq!(of_slice(&slice, ""), Some(("10.0.0.4".to_owned(), 8)));
    }
}
