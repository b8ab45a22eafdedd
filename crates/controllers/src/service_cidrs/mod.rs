//! `service-cidr-controller`: a ServiceCIDR is ready when it is there, and stays until no service has an address that
//! is in none other.

mod rules;

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use crate::pods::{is_deleting, seconds, time};
use client::cache::Selection;
use client::resources::{IP_ADDRESSES, SERVICE_CIDRS};
use client::{Cache, Patch, PatchParams, Result};
use kinds::net::Network;
use kinds::read::Read;
use object::{Map, Value, map};
use rules::{is_needed, networks};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What holds a ServiceCIDR.
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// How long after a deletion servers may still give addresses that are in it.
const GRACE: Duration = Duration::from_secs(10);
/// Only the addresses that servers made keep a range.
const GIVEN: &str = "ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io";
const READY: &str = "Kubernetes Service CIDR is ready";
const IN_USE: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

/// Looks after ServiceCIDRs; the keys are theirs.
pub struct ServiceCidrs {
    context: Context,
    ranges: Arc<Cache>,
    addresses: Arc<Cache>,
}

impl Controller for ServiceCidrs {
    const NAME: &'static str = "service-cidr-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let ranges = wiring.cache(&SERVICE_CIDRS);
        let given = Selection { label_selector: GIVEN.to_owned(), metadata_only: true, ..Selection::default() };
        let addresses = wiring.cache_of(&IP_ADDRESSES, given);
        let all = ranges.clone();
        wiring.on(&ranges, move |change, queue| {
            queue.add(change.key());
            // A range that comes may set others free that it overlaps.
            if change.old.is_none() {
                let own = networks(change.object());
                let touches = |range: &Value| networks(range).iter().any(|p| own.iter().any(|o| o.overlaps(p)));
                all.list().iter().filter(|range| touches(range)).for_each(|range| queue.add(range.name().to_owned()));
            }
        });
        let all = ranges.clone();
        wiring.on(&addresses, move |change, queue| {
            // Only a range that is going away depends on them.
            if let Ok(address) = change.object().name().parse::<IpAddr>() {
                let holds = |range: &Value| networks(range).iter().any(|p| p.gives(address));
                let going = all.list().into_iter().filter(|range| is_deleting(range) && holds(range));
                going.for_each(|range| queue.add(range.name().to_owned()));
            }
        });
        ServiceCidrs { context: wiring.context().clone(), ranges, addresses }
    }

    async fn sync(&self, name: &str) -> Result<Option<Duration>> {
        let Some(range) = self.ranges.get_key(name) else { return Ok(None) };
        let outcome = if is_deleting(&range) { self.let_go(&range).await } else { self.keep(&range).await };
        match outcome {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome,
        }
    }
}

impl ServiceCidrs {
    async fn keep(&self, range: &Value) -> Result<Option<Duration>> {
        if !range.meta_list("finalizers").contains(&FINALIZER) {
            self.patch(range, map! { "finalizers" => vec![FINALIZER] }).await?;
        }
        self.tell(range, "True", "", READY).await?;
        Ok(None)
    }

    async fn let_go(&self, range: &Value) -> Result<Option<Duration>> {
        let all: Vec<(String, Vec<Network>)> =
            self.ranges.list().iter().map(|range| (range.name().to_owned(), networks(range))).collect();
        let addresses = self.addresses.list();
        let given = addresses.iter().filter_map(|address| address.name().parse().ok());
        if is_needed(range.name(), &all, given) {
            self.tell(range, "False", "Terminating", IN_USE).await?;
            return Ok(None);
        }
        let since = time(range.sub("metadata"), "deletionTimestamp");
        let end = since.and_then(|since| since.checked_add(GRACE).ok());
        if let Some(left) = end.and_then(|end| Duration::try_from(end.duration_since(self.context.now())).ok())
            && !left.is_zero()
        {
            return Ok(Some(left));
        }
        if range.meta_list("finalizers").contains(&FINALIZER) {
            self.patch(range, map! { "$deleteFromPrimitiveList/finalizers" => vec![FINALIZER] }).await?;
        }
        Ok(None)
    }

    async fn patch(&self, range: &Value, metadata: Map) -> Result<()> {
        let patch = Patch::Strategic(map! { "metadata" => metadata }.into());
        self.context.api(&SERVICE_CIDRS).patch("", range.name(), &patch, &PatchParams::default()).await.map(drop)
    }

    /// Says in the status whether addresses are given from a range.
    async fn tell(&self, range: &Value, status: &str, reason: &str, message: &str) -> Result<()> {
        let conditions = range.sub("status").list("conditions");
        let said = |c: &&Value| c.text("type") == "Ready" && c.text("status") == status && c.text("message") == message;
        if conditions.iter().any(|c| said(&c)) {
            return Ok(());
        }
        let now = seconds(self.context.now());
        let condition = map! {
            "type" => "Ready", "status" => status, "reason" => reason, "message" => message, "lastTransitionTime" => now,
        };
        let object = Value::Object(map! {
            "apiVersion" => SERVICE_CIDRS.api_version(),
            "kind" => "ServiceCIDR",
            "metadata" => map! { "name" => range.name() },
            "status" => map! { "conditions" => vec![condition] },
        });
        let patch = Patch::Apply { object, manager: Self::NAME.to_owned(), force: true };
        self.context.api(&SERVICE_CIDRS).patch("", range.name(), &patch, &PatchParams::status()).await.map(drop)
    }
}
