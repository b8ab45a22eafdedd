//! `/metrics`: counters in the Prometheus text form, under upstream's names where they exist.

use crate::Server;
use crate::answer::{Response, bytes_of_type};
use crate::catalogue::{Catalogue, Resource};
use crate::limits;
use crate::request::{RequestInfo, Verb};
use http::Method;
use http::request::Parts;
use prometheus::core::Collector;
use prometheus::{Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, TextEncoder};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;
use store::Histogram;

/// The counters of one server.
pub struct Metrics {
    requests: Option<IntCounterVec>,
    durations: Option<HistogramVec>,
    in_flight: Option<IntGaugeVec>,
    watches: Option<IntGauge>,
}

impl Default for Metrics {
    /// Counters at zero.
    fn default() -> Self {
        // The names are constants that Prometheus takes; were one not, its counter would be missing, and nothing else.
        let labels = ["verb", "group", "version", "resource", "subresource", "scope", "code"];
        let buckets = vec![0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0];
        Metrics {
            requests: IntCounterVec::new(
                Opts::new("apiserver_request_total", "Requests by verb, resource and code of the answer."),
                &labels,
            )
            .ok(),
            durations: HistogramVec::new(
                HistogramOpts::new("apiserver_request_duration_seconds", "Time to answer, watches left out.")
                    .buckets(buckets),
                &["verb"],
            )
            .ok(),
            in_flight: IntGaugeVec::new(
                Opts::new("apiserver_current_inflight_requests", "Requests that are being answered."),
                &["request_kind"],
            )
            .ok(),
            watches: IntGauge::new("apiserver_longrunning_requests", "Watches that are open.").ok(),
        }
    }
}

impl Metrics {
    /// Counts a request in; the guard counts it out.
    pub(crate) fn begin(&self, info: &RequestInfo) -> InFlight {
        let kind = if limits::is_mutating(info) { "mutating" } else { "readOnly" };
        let gauge = self.in_flight.as_ref().map(|g| g.with_label_values(&[kind]));
        if let Some(gauge) = &gauge {
            gauge.inc();
        }
        InFlight(gauge)
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, catalogue: &Catalogue, info: &RequestInfo, code: u16, took: Duration) {
        // What clients make up must not make series without end.
        let verb = match (info.is_resource, info.verb) {
            (false, _) => known_method(&info.method).to_owned(),
            (true, Verb::Create) => "POST".to_owned(),
            (true, Verb::Update) => "PUT".to_owned(),
            (true, verb) => verb.name().to_uppercase(),
        };
        let resource = catalogue.resource(&info.group, &info.version, &info.resource);
        let has_part = |r: &Resource| info.subresource.is_empty() || r.subresource(&info.subresource).is_some();
        let known = resource.is_some_and(|r| has_part(r));
        let scope = match (info.name.as_str(), info.namespace.as_str()) {
            _ if !known => "",
            ("", "") => "cluster",
            ("", _) => "namespace",
            _ => "resource",
        };
        let part = |text: &'_ str| if known { text.to_owned() } else { String::new() };
        let (group, version) = (part(&info.group), part(&info.version));
        let (resource, subresource) = (part(&info.resource), part(&info.subresource));
        if let Some(requests) = &self.requests {
            let code = code.to_string();
            requests.with_label_values(&[&verb, &group, &version, &resource, &subresource, scope, &code]).inc();
        }
        if let (Some(durations), false) = (&self.durations, info.verb == Verb::Watch) {
            durations.with_label_values(&[&verb]).observe(took.as_secs_f64());
        }
    }

    /// Forgets what was counted of a resource that is served no more.
    pub(crate) fn forget(&self, group: &str, version: &str, resource: &str) {
        let Some(requests) = &self.requests else { return };
        for family in requests.collect() {
            for metric in family.get_metric() {
                let labels: HashMap<&str, &str> = metric.get_label().iter().map(|l| (l.name(), l.value())).collect();
                let is = |label: &str, value: &str| labels.get(label) == Some(&value);
                if is("group", group) && is("version", version) && is("resource", resource) {
                    // One that is gone already is as good.
                    let _ = requests.remove(&labels);
                }
            }
        }
    }

    /// A watch that is open as long as the guard lives.
    pub(crate) fn watch(&self) -> InFlight {
        if let Some(watches) = &self.watches {
            watches.inc();
        }
        InFlight(self.watches.clone())
    }
}

/// Something that is counted while it lasts.
pub(crate) struct InFlight(Option<IntGauge>);

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            gauge.dec();
        }
    }
}

/// The name of a method, if it is one that anything here knows.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The answer, if the path is this page.
pub fn respond(server: &Server, info: &RequestInfo, _parts: &Parts) -> Option<Response> {
    if info.path.trim_end_matches('/') != "/metrics" {
        return None;
    }
    let metrics = &server.metrics;
    let mut families = Vec::new();
    families.extend(metrics.requests.iter().flat_map(Collector::collect));
    families.extend(metrics.durations.iter().flat_map(Collector::collect));
    families.extend(metrics.in_flight.iter().flat_map(Collector::collect));
    families.extend(metrics.watches.iter().flat_map(Collector::collect));
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = TextEncoder::new().encode(&families, &mut text);
    let mut text = String::from_utf8(text).unwrap_or_default();
    limits(&mut text, server);
    store(&mut text, server);
    process(&mut text);
    Some(bytes_of_type(200, "text/plain; version=0.0.4; charset=utf-8", text))
}

/// Requests that wait for their turn, and that were turned away.
fn limits(text: &mut String, server: &Server) {
    let (waiting, refused) = ("apiserver_current_inqueue_requests", "apiserver_dropped_requests_total");
    let _ = writeln!(text, "# HELP {waiting} Requests that wait until others are answered.\n# TYPE {waiting} gauge");
    for (kind, count, _) in server.turnstiles.figures() {
        let _ = writeln!(text, "{waiting}{{request_kind=\"{kind}\"}} {count}");
    }
    let _ =
        writeln!(text, "# HELP {refused} Requests turned away because there were too many.\n# TYPE {refused} counter");
    for (kind, _, count) in server.turnstiles.figures() {
        let _ = writeln!(text, "{refused}{{request_kind=\"{kind}\"}} {count}");
    }
}

/// What the store tells of itself.
fn store(text: &mut String, server: &Server) {
    let stats = server.store().stats();
    let mut gauge = |name: &str, help: &str, value: u64| sample(text, name, "gauge", help, value as f64);
    gauge("apiserver_storage_size_bytes", "Bytes of the store's files.", stats.disk_bytes);
    gauge("stanchion_store_keys", "Objects that are stored.", stats.keys);
    gauge("stanchion_store_live_bytes", "Bytes of the stored objects.", stats.live_bytes);
    gauge("stanchion_store_history_events", "Changes kept for watches and exact reads.", stats.history_events);
    gauge("stanchion_store_history_bytes", "Bytes kept only for the history.", stats.history_bytes);
    gauge("stanchion_store_watches", "Watches of the store.", stats.watches);
    gauge("stanchion_store_revision", "The latest revision.", server.store().revision());
    sample(text, "stanchion_store_writes_total", "counter", "Writes committed.", stats.writes as f64);
    let name = "stanchion_store_sync_duration_seconds";
    let _ = writeln!(text, "# HELP {name} Time to make a commit durable.\n# TYPE {name} histogram");
    let mut below = 0;
    for (bound, count) in Histogram::BOUNDS.iter().zip(stats.sync.buckets) {
        below += count;
        let _ = writeln!(text, "{name}_bucket{{le=\"{}\"}} {below}", *bound as f64 / 1e6);
    }
    let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {}", stats.sync.count);
    let _ = writeln!(text, "{name}_sum {}\n{name}_count {}", stats.sync.sum.as_secs_f64(), stats.sync.count);
}

/// What the system tells of the process (Linux only).
fn process(text: &mut String) {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let field = |name: &str| -> Option<f64> {
        let line = status.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    if let Some(kilobytes) = field("VmRSS:") {
        sample(text, "process_resident_memory_bytes", "gauge", "Resident memory.", kilobytes * 1024.0);
    }
    if let Some(threads) = field("Threads:") {
        sample(text, "process_threads", "gauge", "Threads.", threads);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        sample(text, "process_open_fds", "gauge", "Open files and sockets.", open.count() as f64);
    }
}

fn sample(text: &mut String, name: &str, kind: &str, help: &str, value: f64) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_that_is_gone_leaves_no_series() {
        let metrics = Metrics::default();
        let requests = metrics.requests.as_ref().unwrap();
        for (resource, code) in [("as", "200"), ("as", "404"), ("bs", "200")] {
            requests.with_label_values(&["GET", "g", "v1", resource, "", "cluster", code]).inc();
        }
        metrics.forget("g", "v1", "as");
        let left: Vec<usize> = requests.collect().iter().map(|family| family.get_metric().len()).collect();
        assert_eq!(left, [1]);
    }
}
