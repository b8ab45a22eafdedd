//! Whoever makes load balancers: Services that want one get an address.

use crate::{Context, Controller, Wiring, pods};
use client::resources::SERVICES;
use client::{Cache, Result};
use kinds::read::Read;
use object::{Value, map};
use std::sync::Arc;
use std::time::Duration;

/// Gives load balancers to Services.
pub struct Balancers {
    context: Context,
    services: Arc<Cache>,
}

impl Controller for Balancers {
    const NAME: &'static str = "simulated-load-balancers";
    /// One after the other, so that no address is given twice.
    const WORKERS: usize = 1;

    fn new(wiring: &mut Wiring) -> Self {
        let services = wiring.cache(&SERVICES);
        wiring.on_own(&services);
        Balancers { context: wiring.context().clone(), services }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(service) = self.services.get_key(key) else { return Ok(None) };
        let wants = service.sub("spec").text("type") == "LoadBalancer"
            && !service.sub("spec").has("loadBalancerClass")
            && !pods::is_deleting(&service);
        if !wants || !ingress(&service).is_empty() {
            return Ok(None);
        }
        let all = self.services.list();
        let used: Vec<&str> = all.iter().flat_map(|s| ingress(s)).map(|i| i.text("ip")).collect();
        let address = (1..=u16::MAX).map(address).find(|a| !used.contains(&a.as_str())).unwrap_or_else(|| address(1));
        let mut new = (*service).clone();
        let entry = map! { "ip" => address, "ipMode" => "VIP" };
        new.set_at(&["status", "loadBalancer", "ingress"], vec![entry].into());
        self.context.api(&SERVICES).update_status(&new).await?;
        Ok(None)
    }
}

fn ingress(service: &Value) -> &[Value] {
    service.sub("status").sub("loadBalancer").list("ingress")
}

/// An address of a range for tests.
fn address(number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    format!("198.18.{high}.{low}")
}
