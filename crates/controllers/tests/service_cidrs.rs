//! How ServiceCIDRs come and go.

#![allow(clippy::unwrap_used)]

use apiserver::{Options, Server};
use client::resources::{SERVICE_CIDRS, SERVICES};
use client::{Api, DeleteParams};
use controllers::{Context, Settings, start};
use object::{Value, json};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

fn object(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// Waits until a range is such; it may be gone.
async fn until(api: &Api, name: &str, is_such: impl Fn(Option<&Value>) -> bool) {
    for _ in 0..3000 {
        if is_such(api.find("", name).await.unwrap().as_ref()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{name} does not become what it should be");
}

fn ready(range: Option<&Value>) -> (&str, &str) {
    let conditions = range.and_then(|r| r.at(&["status", "conditions"])?.as_array()).unwrap_or_default();
    let text = |key| conditions.first().and_then(|c| c.str_at(&[key])).unwrap_or_default();
    (text("status"), text("reason"))
}

#[tokio::test]
async fn a_range_stays_as_long_as_services_have_addresses_from_it() {
    let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
    let offset = Arc::new(Mutex::new(jiff::SignedDuration::ZERO));
    let told = offset.clone();
    let clock: apiserver::Clock = Arc::new(move || jiff::Timestamp::now() + *told.lock());
    let server = Server::new(store, Options::default()).await.unwrap();
    let context = Context::new(server, Settings { clock, ..Settings::default() });
    let _running = start(&context, |name| name == "service-cidr-controller");
    let (ranges, services) = (context.client().api(&SERVICE_CIDRS), context.client().api(&SERVICES));
    let range = object(r#"{"metadata":{"name":"more"},"spec":{"cidrs":["10.7.0.0/28"]}}"#);
    ranges.create("", &range).await.unwrap();
    let finalizer = "networking.k8s.io/service-cidr-finalizer";
    let held = |range: Option<&Value>| range.is_some_and(|r| r.meta_list("finalizers").contains(&finalizer));
    until(&ranges, "more", |range| held(range) && ready(range) == ("True", "")).await;
    until(&ranges, "kubernetes", |range| held(range) && ready(range) == ("True", "")).await;
    let service = object(r#"{"metadata":{"name":"a"},"spec":{"clusterIP":"10.7.0.9","ports":[{"port":80}]}}"#);
    services.create("default", &service).await.unwrap();
    ranges.delete("", "more", &DeleteParams::default()).await.unwrap();
    until(&ranges, "more", |range| ready(range) == ("False", "Terminating")).await;
    *offset.lock() = jiff::SignedDuration::from_secs(20);
    services.delete("default", "a", &DeleteParams::default()).await.unwrap();
    until(&ranges, "more", |range| range.is_none()).await;
}
