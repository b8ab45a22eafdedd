//! The page itself: what is counted, and what is asked of others when somebody looks.

use super::process;
use crate::Server;
use crate::answer::{Response, bytes_of_type};
use crate::health;
use crate::limits::{Figures, USERS};
use crate::request::RequestInfo;
use prometheus::{Encoder, TextEncoder};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use store::{Histogram, Range};

/// The answer, if the path is this page.
pub(crate) async fn respond(server: &Server, info: &RequestInfo) -> Option<Response> {
    if info.path.trim_end_matches('/') != "/metrics" {
        return None;
    }
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let mut families = server.metrics.families();
    server.turnstiles.waits().add_to(&mut families);
    let _ = TextEncoder::new().encode(&families, &mut text);
    let mut page = Page(String::from_utf8(text).unwrap_or_default());
    limits(&mut page, server);
    health(&mut page, server);
    objects(&mut page, server);
    store(&mut page, server);
    if let Some(log) = &server.options.audit {
        page.sample("apiserver_audit_event_total", "counter", "Audit events.", log.events());
        let errors = log.errors().map(|(plugin, count)| (format!("plugin=\"{plugin}\""), count));
        let help = "Audit events that did not arrive, by where they were to go.";
        page.series("apiserver_audit_error_total", "counter", help, errors);
    }
    let labels = format!("git_version=\"{}\",platform=\"{}\"", health::git_version(), health::platform());
    page.series("kubernetes_build_info", "gauge", "What runs, as its labels.", [(labels, 1)]);
    process::write(&mut page);
    (server.options.more_metrics)(&mut page.0);
    Some(bytes_of_type(200, "text/plain; version=0.0.4; charset=utf-8", page.0))
}

/// Adds what the system tells of the process (Linux only) to a text in the Prometheus form.
pub fn of_process(text: &mut String) {
    let mut page = Page(std::mem::take(text));
    process::write(&mut page);
    *text = page.0;
}

/// A page in the text form.
pub(super) struct Page(String);

impl Page {
    /// One value.
    pub fn sample(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }

    /// Values by their labels.
    fn series<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (String, V)>,
    ) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
        }
    }

    /// Histograms by their labels.
    fn histogram(&mut self, name: &str, help: &str, all: &[(String, Histogram)]) {
        let text = &mut self.0;
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (labels, figures) in all {
            let (comma, open, close) = if labels.is_empty() { ("", "", "") } else { (",", "{", "}") };
            let mut below = 0;
            for (bound, count) in Histogram::BOUNDS.iter().zip(figures.buckets) {
                below += count;
                let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{}\"}} {below}", *bound as f64 / 1e6);
            }
            let (count, sum) = (figures.count, figures.sum.as_secs_f64());
            let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{open}{labels}{close} {sum}\n{name}_count{open}{labels}{close} {count}");
        }
    }
}

/// Requests that wait for their turn, and that were turned away.
fn limits(page: &mut Page, server: &Server) {
    let figures = server.turnstiles.figures();
    let mut by_kind = |name: &str, kind: &str, help: &str, value: fn(&Figures) -> u64| {
        let values = figures.iter().map(|(name, figures)| (format!("request_kind=\"{name}\""), value(figures)));
        page.series(name, kind, help, values);
    };
    let inqueue = "Requests that wait until others are answered.";
    by_kind("apiserver_current_inqueue_requests", "gauge", inqueue, |f| f.waiting as u64);
    let dropped = "Requests turned away as too many.";
    by_kind("apiserver_dropped_requests_total", "counter", dropped, |f| f.overfull + f.late);
    let mut by_level = |name: &str, kind: &str, help: &str, value: fn(&Figures) -> u64| {
        let label = |level: &str| format!("flow_schema=\"{USERS}\",priority_level=\"{level}\"");
        page.series(name, kind, help, figures.iter().map(|(level, figures)| (label(level), value(figures))));
    };
    let executing = "Requests that are being answered, those left out that need not wait for a turn.";
    by_level("apiserver_flowcontrol_current_executing_requests", "gauge", executing, |f| f.inside as u64);
    by_level("apiserver_flowcontrol_current_executing_seats", "gauge", executing, |f| f.inside as u64);
    by_level("apiserver_flowcontrol_current_inqueue_requests", "gauge", inqueue, |f| f.waiting as u64);
    let dispatched = "Requests that had their turn.";
    by_level("apiserver_flowcontrol_dispatched_requests_total", "counter", dispatched, |f| f.dispatched);
    let limits = figures.iter().map(|(level, figures)| (format!("priority_level=\"{level}\""), figures.most));
    let name = "apiserver_flowcontrol_nominal_limit_seats";
    page.series(name, "gauge", "How many requests are answered at the same time.", limits);
    let rejected = figures.iter().flat_map(|(level, figures)| {
        let label = |why: &str| format!("flow_schema=\"{USERS}\",priority_level=\"{level}\",reason=\"{why}\"");
        [(label("queue-full"), figures.overfull), (label("time-out"), figures.late)]
    });
    let name = "apiserver_flowcontrol_rejected_requests_total";
    page.series(name, "counter", "Requests turned away, by reason.", rejected);
}

fn health(page: &mut Page, server: &Server) {
    let of = |kind: &'static str| {
        let checks = health::checks(server, kind).into_iter();
        checks.map(move |c| (format!("name=\"{}\",type=\"{kind}\"", c.name), u8::from(c.failure.is_none())))
    };
    let all = ["healthz", "livez", "readyz"].into_iter().flat_map(of);
    page.series("kubernetes_healthcheck", "gauge", "Health checks that pass.", all);
}

/// How many objects of each resource are stored.
fn objects(page: &mut Page, server: &Server) {
    let catalogue = server.catalogue();
    // Resources that are stored at one place are counted once.
    let mut places: BTreeMap<&str, String> = BTreeMap::new();
    for resource in catalogue.resources().filter(|resource| !resource.list_kind.is_empty()) {
        places.entry(&resource.storage.prefix).or_insert_with(|| match resource.storage.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        });
    }
    let mut counts = Vec::with_capacity(places.len());
    for (prefix, name) in places {
        counts.push((format!("resource=\"{name}\""), server.store.replica().count(&Range::prefix(prefix))));
    }
    page.series("apiserver_storage_objects", "gauge", "Objects that are stored, by resource.", counts);
}

/// What the store tells of itself.
fn store(page: &mut Page, server: &Server) {
    let stats = server.store().stats();
    // The label that upstream gives to the only storage that there is.
    let size = [("storage_cluster_id=\"etcd-0\"".to_owned(), stats.disk_bytes)];
    page.series("apiserver_storage_size_bytes", "gauge", "Bytes of the store's files.", size);
    let mut gauge = |name: &str, help: &str, value: u64| page.sample(name, "gauge", help, value);
    gauge("stanchion_store_keys", "Objects that are stored.", stats.keys);
    gauge("stanchion_store_live_bytes", "Bytes of the stored objects.", stats.live_bytes);
    gauge("stanchion_store_history_events", "Changes kept for watches and exact reads.", stats.history_events);
    gauge("stanchion_store_history_bytes", "Bytes kept only for the history.", stats.history_bytes);
    gauge("stanchion_store_watches", "Watches of the store.", stats.watches);
    gauge("stanchion_store_revision", "The latest revision.", server.store().revision());
    page.sample("stanchion_store_writes_total", "counter", "Writes committed.", stats.writes);
    let name = "stanchion_store_sync_duration_seconds";
    page.histogram(name, "Time to make a commit durable.", &[(String::new(), stats.sync)]);
    if !stats.requests.is_empty() {
        let labels = |operation, kind| format!("operation=\"{operation}\",type=\"{kind}\"");
        let requests = stats.requests.into_iter().map(|(operation, kind, figures)| (labels(operation, kind), figures));
        let requests: Vec<_> = requests.collect();
        page.histogram("etcd_request_duration_seconds", "Time that etcd took, by what it was asked.", &requests);
    }
}
