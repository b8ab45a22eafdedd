//! What the manager measures, in the Prometheus text form: Capsule's names for what tenants and permits are, those of
//! client-go and controller-runtime for queues, work and webhooks.

use crate::kinds::{GLOBAL_PERMIT_TEMPLATES, PERMIT_TEMPLATES};
use crate::manager::Shared;
use crate::permit::record::phase;
use client::{Cache, Queue, Queues};
use object::Value;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{Encoder, HistogramOpts, HistogramVec, IntCounterVec, Opts, TextEncoder};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Bounds of times, in seconds.
const TIMES: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0];

/// The manager's measurements. Clones measure together. Before the manager is open there are only counters.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    shared: OnceLock<Arc<Shared>>,
    queues: Queues,
    drifts: Mutex<HashMap<(&'static str, String), Instant>>,
    leads: Mutex<Option<(String, bool)>>,
    /// The names are constants that Prometheus takes; were one not, its counter would be missing, and nothing else.
    reconciled: Option<IntCounterVec>,
    work: Option<HistogramVec>,
    healing: Option<HistogramVec>,
    reviews: Option<IntCounterVec>,
    review_times: Option<HistogramVec>,
}

impl Default for Metrics {
    fn default() -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels).ok();
        let times = |name: &str, help: &str, labels: &[&str]| {
            HistogramVec::new(HistogramOpts::new(name, help).buckets(TIMES.to_vec()), labels).ok()
        };
        let inner = Inner {
            shared: OnceLock::new(),
            queues: Queues::default(),
            drifts: Mutex::default(),
            leads: Mutex::default(),
            reconciled: counter(
                "controller_runtime_reconcile_total",
                "Work on single keys by controller and result.",
                &["controller", "result"],
            ),
            work: times(
                "controller_runtime_reconcile_time_seconds",
                "Time of the work on a single key.",
                &["controller"],
            ),
            healing: times(
                "stanchion_manager_heal_duration_seconds",
                "Time from when others changed an object until it was put back.",
                &["controller"],
            ),
            reviews: counter(
                "controller_runtime_webhook_requests_total",
                "Reviews that were answered, by webhook and code.",
                &["webhook", "code"],
            ),
            review_times: times("controller_runtime_webhook_latency_seconds", "Time to answer a review.", &["webhook"]),
        };
        Metrics { inner: Arc::new(inner) }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// From now on what the caches hold is told.
    pub(crate) fn begin(&self, shared: &Arc<Shared>) {
        // A second manager in one process would be a mistake of the program; the first one stays.
        let _ = self.inner.shared.set(shared.clone());
    }

    /// The queue of a controller.
    pub(crate) fn queue(&self, controller: &'static str, queue: &Queue) {
        self.inner.queues.add(controller, queue);
    }

    /// The queues that are measured; more may be.
    pub fn queues(&self) -> &Queues {
        &self.inner.queues
    }

    /// Work on a key came to its end.
    pub(crate) fn reconciled(&self, controller: &'static str, key: &str, result: &str, took: Duration) {
        if let Some(reconciled) = &self.inner.reconciled {
            reconciled.with_label_values(&[controller, result]).inc();
        }
        if let Some(work) = &self.inner.work {
            work.with_label_values(&[controller]).observe(took.as_secs_f64());
        }
        if result == "error" {
            return;
        }
        let drifted = {
            let mut drifts = self.inner.drifts.lock();
            // Nearly always there are none: then nothing is looked for.
            if drifts.is_empty() { None } else { drifts.remove(&(controller, key.to_owned())) }
        };
        if let (Some(began), Some(healing)) = (drifted, &self.inner.healing) {
            healing.with_label_values(&[controller]).observe(began.elapsed().as_secs_f64());
        }
    }

    /// Others changed what a key manages.
    pub(crate) fn drifted(&self, controller: &'static str, key: &str) {
        self.inner.drifts.lock().entry((controller, key.to_owned())).or_insert_with(Instant::now);
    }

    /// A review was answered (`webhook`: `mutate` or `validate`) with a code.
    pub fn reviewed(&self, webhook: &str, code: u16, took: Duration) {
        if let Some(reviews) = &self.inner.reviews {
            reviews.with_label_values(&[webhook, code.to_string().as_str()]).inc();
        }
        if let Some(times) = &self.inner.review_times {
            times.with_label_values(&[webhook]).observe(took.as_secs_f64());
        }
    }

    /// Whether this manager leads, by the name of the lease.
    pub fn leads(&self, lease: &str, leads: bool) {
        *self.inner.leads.lock() = Some((lease.to_owned(), leads));
    }

    /// Adds everything to a text.
    pub fn write(&self, out: &mut String) {
        let inner = &self.inner;
        let mut families = Vec::new();
        families.extend(inner.reconciled.iter().flat_map(Collector::collect));
        families.extend(inner.work.iter().flat_map(Collector::collect));
        families.extend(inner.healing.iter().flat_map(Collector::collect));
        families.extend(inner.reviews.iter().flat_map(Collector::collect));
        families.extend(inner.review_times.iter().flat_map(Collector::collect));
        families.retain(|family| !family.get_metric().is_empty());
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = TextEncoder::new().encode(&families, &mut text);
        out.push_str(&String::from_utf8(text).unwrap_or_default());
        if let Some((lease, leads)) = inner.leads.lock().as_ref() {
            let mut gauge = Gauge::new(out, "leader_election_master_status", "Whether this manager leads.");
            gauge.sample(&[("name", lease)], i64::from(*leads));
        }
        inner.queues.write(out);
        if let Some(shared) = inner.shared.get() {
            tenants(out, shared);
            parents(out, shared);
            permits(out, &shared.permits);
            inventory(out, shared);
        }
    }
}

/// One gauge with its samples. Without samples nothing is written.
struct Gauge<'a> {
    out: &'a mut String,
    name: &'a str,
    help: &'a str,
    is_begun: bool,
}

impl<'a> Gauge<'a> {
    fn new(out: &'a mut String, name: &'a str, help: &'a str) -> Self {
        Gauge { out, name, help, is_begun: false }
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: i64) {
        let Gauge { name, help, .. } = *self;
        if !std::mem::replace(&mut self.is_begun, true) {
            let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} gauge");
        }
        self.out.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            self.out.push(if i == 0 { '{' } else { ',' });
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.out, "{label}=\"{text}\"");
        }
        let _ = writeln!(self.out, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A sample for each condition of an object: 1 where it is true.
    fn conditions(&mut self, labels: &[(&str, &str)], object: &Value) {
        for condition in object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default() {
            let text = |key| condition.str_at(&[key]).unwrap_or_default();
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("condition", text("type"))]).collect();
            self.sample(&labels, i64::from(text("status") == "True"));
        }
    }
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn tenants(out: &mut String, shared: &Shared) {
    let all = shared.tenancy.tenants();
    let mut conditions = Gauge::new(out, "capsule_tenant_condition", "Conditions of tenants.");
    all.iter().for_each(|tenant| conditions.conditions(&[("tenant", tenant.name())], tenant));
    let mut counts = Gauge::new(out, "capsule_tenant_namespace_count", "Namespaces of tenants.");
    for tenant in &all {
        let size = tenant.at(&["status", "size"]).and_then(Value::as_int).unwrap_or_default();
        counts.sample(&[("tenant", tenant.name())], size);
    }
    let name = "capsule_tenant_namespace_relationship";
    let mut related = Gauge::new(out, name, "Which namespace belongs to which tenant.");
    for tenant in &all {
        for namespace in tenant.at(&["status", "namespaces"]).and_then(Value::as_array).unwrap_or_default() {
            let namespace = namespace.as_str().unwrap_or_default();
            related.sample(&[("tenant", tenant.name()), ("target_namespace", namespace)], 1);
        }
    }
}

/// The conditions of everything that declares objects.
fn parents(out: &mut String, shared: &Shared) {
    let kinds: [(&str, &str, &Arc<Cache>); 4] = [
        ("capsule_resource_condition", "Conditions of TenantResources.", &shared.tenant_resources),
        ("capsule_global_resource_condition", "Conditions of GlobalTenantResources.", &shared.global_tenant_resources),
        ("capsule_resourcepermittemplate_condition", &PERMIT_TEMPLATES.kind, &shared.permit_templates),
        (
            "capsule_globalresourcepermittemplate_condition",
            &GLOBAL_PERMIT_TEMPLATES.kind,
            &shared.global_permit_templates,
        ),
    ];
    for (name, help, cache) in kinds {
        let mut gauge = Gauge::new(out, name, help);
        for object in cache.list() {
            let labels = [("name", object.name()), ("target_namespace", object.namespace())];
            let labels = if object.namespace().is_empty() { &labels[..1] } else { &labels };
            gauge.conditions(labels, &object);
        }
    }
}

fn permits(out: &mut String, permits: &Cache) {
    let mut gauge = Gauge::new(out, "capsule_resourcepermit_phase", "The phases of permits.");
    for permit in permits.list() {
        let phase = phase(&permit);
        let labels = [("name", permit.name()), ("target_namespace", permit.namespace()), ("status", phase.name())];
        gauge.sample(&labels, 1);
    }
}

fn inventory(out: &mut String, shared: &Shared) {
    let mut items = Gauge::new(out, "stanchion_manager_inventory_items", "What parents manage, by their kind.");
    for cache in shared.parents() {
        let all = cache.list();
        let Some(kind) = all.first().and_then(|parent| parent.str_at(&["kind"])).map(str::to_owned) else { continue };
        let size = |parent: &Arc<Value>| parent.at(&["status", "size"]).and_then(Value::as_int).unwrap_or_default();
        items.sample(&[("kind", &kind)], all.iter().map(size).sum());
    }
    let mut objects = Gauge::new(out, "stanchion_manager_objects", "Objects under management.");
    objects.sample(&[], count(shared.keeper.objects()));
    let mut watched =
        Gauge::new(out, "stanchion_manager_watched_kinds", "Kinds that are watched for changes by others.");
    watched.sample(&[], count(shared.keeper.watched()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn work_and_healing_are_measured() {
        let metrics = Metrics::default();
        metrics.queue("permits", &Queue::default());
        metrics.drifted("permits", "ns/p");
        metrics.reconciled("permits", "ns/p", "error", Duration::ZERO);
        metrics.reconciled("permits", "ns/p", "success", Duration::ZERO);
        metrics.reconciled("permits", "ns/p", "success", Duration::ZERO);
        metrics.reviewed("validate", 200, Duration::ZERO);
        metrics.leads("lease", true);
        let mut text = String::new();
        metrics.write(&mut text);
        for line in [
            "controller_runtime_reconcile_total{controller=\"permits\",result=\"success\"} 2\n",
            "stanchion_manager_heal_duration_seconds_count{controller=\"permits\"} 1\n",
            "controller_runtime_webhook_requests_total{code=\"200\",webhook=\"validate\"} 1\n",
            "leader_election_master_status{name=\"lease\"} 1\n",
            "workqueue_depth{name=\"permits\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn conditions_are_gauges_and_labels_are_escaped() {
        let object =
            yaml::parse(b"status: {conditions: [{type: Ready, status: 'True'}, {type: Cordoned, status: 'False'}]}")
                .unwrap();
        let mut text = String::new();
        Gauge::new(&mut text, "m", "Help.").conditions(&[("name", "a\"b\\c")], &object);
        assert_eq!(
            text,
            "# HELP m Help.\n# TYPE m gauge\nm{name=\"a\\\"b\\\\c\",condition=\"Ready\"} 1\nm{name=\"a\\\"b\\\\c\",condition=\"Cordoned\"} 0\n"
        );
    }
}
