//! `endpointslicemirroring-controller`: keeps EndpointSlices that say the same as Endpoints objects made by hand.

use super::address::Family;
use super::reconcile::{Changes, Frame, Group, reconcile};
use super::slice::{MANAGED_BY, SERVICE_NAME};
use super::slices::{Slices, own_key};
use super::triggers::TRIGGER_TIME;
use crate::written::SOON;
use crate::{Context, Controller, Wiring};
use client::events::{EventType, Recorder};
use client::resources::{ENDPOINTS, SERVICES};
use client::{Cache, Result};
use kinds::read::Read;
use object::{Map, Value, map};
use std::sync::Arc;
use std::time::Duration;

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The most addresses of a subset.
const MOST: usize = 1000;
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Mirrors Endpoints.
pub struct Mirroring {
    context: Context,
    services: Arc<Cache>,
    endpoints: Arc<Cache>,
    slices: Slices,
    recorder: Recorder,
}

impl Controller for Mirroring {
    const NAME: &'static str = "endpointslice-mirroring-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (services, endpoints) = (wiring.cache(&SERVICES), wiring.cache(&ENDPOINTS));
        wiring.on(&services, own_key);
        wiring.on(&endpoints, own_key);
        let slices = Slices::new(wiring, MANAGER);
        let recorder = context.recorder("endpoint-slice-mirroring-controller");
        Mirroring { context, services, endpoints, slices, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(existing) = self.slices.of(key) else { return Ok(Some(SOON)) };
        let endpoints = self.endpoints.get_key(key).filter(|e| is_mirrored(e));
        let service = self.services.get_key(key).filter(|s| s.sub("spec").members("selector").is_empty());
        let (Some(endpoints), Some(_)) = (endpoints, service) else {
            if let Some(first) = existing.first() {
                let delete = existing.iter().map(|s| (**s).clone()).collect();
                let named = map! { "metadata" => map! { "name" => first.label(SERVICE_NAME), "namespace" => first.namespace() } };
                let changes = Changes { delete, ..Changes::default() };
                self.slices.apply(&self.context, &named.into(), changes, None).await?;
            }
            return Ok(None);
        };
        let mirror = mirror(&endpoints);
        self.tell(&endpoints, &mirror);
        let held: Vec<&Value> = existing.iter().map(|s| &**s).collect();
        let changes = changes(&endpoints, &held, mirror.groups);
        self.slices.apply(&self.context, &endpoints, changes, None).await?;
        Ok(None)
    }
}

impl Mirroring {
    fn tell(&self, endpoints: &Value, mirror: &Mirror) {
        let warn = |reason: &str, message: &str| self.recorder.event(endpoints, EventType::Warning, reason, message);
        if mirror.invalid > 0 {
            let count = mirror.invalid;
            let message = format!("Skipped {count} invalid IP addresses when mirroring to EndpointSlices");
            warn("InvalidIPAddress", &message);
        }
        if mirror.surplus > 0 {
            let message = format!(
                "A max of {MOST} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                mirror.surplus
            );
            warn("TooManyAddressesToMirror", &message);
        }
    }
}

/// Whether Endpoints are made by hand, and nobody asks for them to be left alone.
fn is_mirrored(endpoints: &Value) -> bool {
    endpoints.label(SKIP) != Some("true") && endpoints.annotation(LEADER).is_none()
}

/// What is to be mirrored.
#[derive(Debug, Default, PartialEq)]
struct Mirror {
    groups: Vec<Group>,
    invalid: usize,
    surplus: usize,
}

fn mirror(endpoints: &Value) -> Mirror {
    let mut out = Mirror::default();
    for subset in endpoints.list("subsets") {
        let ports: Vec<Value> = subset.list("ports").iter().map(mirrored_port).collect();
        let mut added = 0;
        for (field, ready) in [("addresses", true), ("notReadyAddresses", false)] {
            for address in subset.list(field) {
                if added >= MOST {
                    out.surplus += 1;
                    continue;
                }
                let Some(family) = Family::of(address.text("ip")) else {
                    out.invalid += 1;
                    continue;
                };
                added += 1;
                let group = out.groups.iter().position(|g| g.family == family.name() && g.ports == ports);
                let group = group.unwrap_or_else(|| {
                    let ports = ports.clone();
                    out.groups.push(Group { family: family.name(), ports, endpoints: Vec::new() });
                    out.groups.len() - 1
                });
                if let Some(group) = out.groups.get_mut(group) {
                    group.endpoints.push(mirrored_address(address, ready));
                }
            }
        }
    }
    out
}

fn mirrored_port(port: &Value) -> Value {
    let mut out = map! {
        "name" => port.text("name"), "protocol" => super::address::protocol(port), "port" => port.int("port"),
    };
    if port.has("appProtocol") {
        out.insert("appProtocol", port.text("appProtocol"));
    }
    out.into()
}

fn mirrored_address(address: &Value, ready: bool) -> Value {
    let mut out = map! {
        "addresses" => vec![address.text("ip")], "conditions" => map! { "ready" => ready },
    };
    for field in ["targetRef", "nodeName", "hostname"] {
        if let Some(value) = address.get(field).filter(|v| !v.is_null()) {
            out.insert(field, value.clone());
        }
    }
    out.into()
}

fn changes(endpoints: &Value, existing: &[&Value], groups: Vec<Group>) -> Changes {
    let mut labels: Map = endpoints.sub("metadata").members("labels").clone();
    labels.insert(SERVICE_NAME, endpoints.name());
    labels.insert(MANAGED_BY, MANAGER);
    let mut annotations = endpoints.sub("metadata").members("annotations").clone();
    annotations.retain(|key, _| !matches!(key, TRIGGER_TIME | LAST_APPLIED));
    let frame = Frame { owner: endpoints, kind: "Endpoints", labels, annotations: Some(annotations), most: MOST };
    let mut all = Changes::default();
    for family in [Family::V4, Family::V6] {
        let name = family.name();
        let held: Vec<&Value> = existing.iter().copied().filter(|s| s.text("addressType") == name).collect();
        let groups = groups.iter().filter(|g| g.family == name).cloned().collect();
        let found = reconcile(&frame, name, &held, groups, false);
        all.create.extend(found.create);
        all.update.extend(found.update);
        all.delete.extend(found.delete);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn addresses_are_mirrored_by_family_and_ports() {
        let endpoints = json::parse(
            br#"{"metadata":{"name":"s","namespace":"n","uid":"u","labels":{"l":"v"},"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"x"}},
            "subsets":[{"addresses":[{"ip":"192.0.2.7"},{"ip":"fd00::1"},{"ip":"x"}],"notReadyAddresses":[{"ip":"192.0.2.8","hostname":"h"}],"ports":[{"port":80}]}]}"#,
        )
        .unwrap();
        let mirror = mirror(&endpoints);
        assert_eq!((mirror.invalid, mirror.groups.len()), (1, 2));
        let changes = changes(&endpoints, &[], mirror.groups);
        let families: Vec<&str> = changes.create.iter().map(|s| s.text("addressType")).collect();
        assert_eq!(families, ["IPv4", "IPv6"]);
        let first = changes.create.first().unwrap();
        assert_eq!(
            (first.label("l"), first.label(SERVICE_NAME), first.annotation("a")),
            (Some("v"), Some("s"), Some("b"))
        );
        assert_eq!(first.annotation(LAST_APPLIED), None);
        let endpoints: Vec<String> = first.list("endpoints").iter().map(json::to_string).collect();
        assert_eq!(
            endpoints,
            [
                r#"{"addresses":["192.0.2.7"],"conditions":{"ready":true}}"#,
                r#"{"addresses":["192.0.2.8"],"conditions":{"ready":false},"hostname":"h"}"#
            ]
        );
    }
}
