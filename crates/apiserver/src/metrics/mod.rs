//! `/metrics`: counters in the Prometheus text form, under upstream's names where they exist.

mod page;
mod process;

pub use page::of_process;
pub(crate) use page::respond;

use crate::catalogue::{Catalogue, Resource};
use crate::limits;
use crate::request::{RequestInfo, Verb};
use http::Method;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts};
use std::collections::HashMap;
use std::time::Duration;

/// What tells the series of requests apart, as upstream; where the parts of a resource stand is [`PLACE`]'s.
const LABELS: [&str; 7] = ["verb", "group", "version", "resource", "subresource", "scope", "code"];
/// The same of what has no answer yet, or of all answers together.
const PLACE: [&str; 6] = ["verb", "group", "version", "resource", "subresource", "scope"];
/// Upper bounds in seconds: upstream's, and three for what is faster than its fastest.
const SECONDS: [f64; 26] = [
    0.0005, 0.001, 0.0025, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Upper bounds in seconds for webhooks (upstream's).
const WEBHOOK_SECONDS: [f64; 7] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0];

/// The counters of one server.
pub(crate) struct Metrics {
    requests: Option<IntCounterVec>,
    durations: Option<HistogramVec>,
    in_flight: Option<IntGaugeVec>,
    watches: Option<IntGaugeVec>,
    webhooks: Option<HistogramVec>,
}

impl Default for Metrics {
    /// Counters at zero.
    fn default() -> Self {
        // The names are constants that Prometheus takes; were one not, its counter would be missing, and nothing else.
        let opts = |name: &str, help: &str| Opts::new(name, help).const_label("component", "apiserver");
        let histogram =
            |name: &str, help: &str, seconds: &[f64]| HistogramOpts::new(name, help).buckets(seconds.to_vec());
        let requests = opts("apiserver_request_total", "Requests by verb, resource and code of the answer.");
        let durations = histogram("apiserver_request_duration_seconds", "Time to answer, watches left out.", &SECONDS);
        let watches = opts("apiserver_longrunning_requests", "Requests that last, such as watches, and are open.");
        let webhooks = histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Time that admission webhooks took, by name.",
            &WEBHOOK_SECONDS,
        );
        Metrics {
            requests: IntCounterVec::new(requests.const_label("dry_run", ""), &LABELS).ok(),
            durations: HistogramVec::new(
                durations.const_label("component", "apiserver").const_label("dry_run", ""),
                &PLACE,
            )
            .ok(),
            in_flight: IntGaugeVec::new(
                Opts::new("apiserver_current_inflight_requests", "Requests that are being answered."),
                &["request_kind"],
            )
            .ok(),
            watches: IntGaugeVec::new(watches, &PLACE).ok(),
            webhooks: HistogramVec::new(webhooks, &["name", "operation", "rejected", "type"]).ok(),
        }
    }
}

impl Metrics {
    /// Counts a request in; the guard counts it out.
    pub fn begin(&self, info: &RequestInfo) -> InFlight {
        let kind = if limits::is_mutating(info) { "mutating" } else { "readOnly" };
        InFlight::new(self.in_flight.as_ref().map(|g| g.with_label_values(&[kind])))
    }

    /// Counts an answer.
    pub fn answered(&self, catalogue: &Catalogue, info: &RequestInfo, code: u16, took: Duration) {
        let [verb, group, version, resource, subresource, scope] = place(catalogue, info);
        if let Some(requests) = &self.requests {
            let code = code.to_string();
            requests.with_label_values(&[verb, group, version, resource, subresource, scope, &code]).inc();
        }
        if let (Some(durations), false) = (&self.durations, info.verb == Verb::Watch) {
            let labels = [verb, group, version, resource, subresource, scope];
            durations.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }

    /// Forgets what was counted of a resource that is served no more.
    pub fn forget(&self, group: &str, version: &str, resource: &str) {
        let is_gone = |labels: &HashMap<&str, &str>| {
            [("group", group), ("version", version), ("resource", resource)]
                .iter()
                .all(|(label, value)| labels.get(label) == Some(value))
        };
        drop_series(self.requests.as_ref(), is_gone);
        drop_series(self.durations.as_ref(), is_gone);
        drop_series(self.watches.as_ref(), is_gone);
    }

    /// A watch that is open as long as the guard lives.
    pub fn watch(&self, resource: &Resource, info: &RequestInfo) -> InFlight {
        let labels = ["WATCH", &*resource.group, &resource.version, &resource.plural, "", scope(info)];
        InFlight::new(self.watches.as_ref().map(|watches| watches.with_label_values(&labels)))
    }

    /// Counts a call of an admission webhook.
    pub fn called(&self, webhook: &str, operation: &str, mutating: bool, rejected: bool, took: Duration) {
        if let Some(webhooks) = &self.webhooks {
            let rejected = if rejected { "true" } else { "false" };
            let labels = [webhook, operation, rejected, webhook_type(mutating)];
            webhooks.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }

    /// Forgets those webhooks of a type that are not configured any more.
    pub fn keep_webhooks(&self, mutating: bool, is_configured: impl Fn(&str) -> bool) {
        drop_series(self.webhooks.as_ref(), |labels| {
            labels.get("type") == Some(&webhook_type(mutating))
                && !labels.get("name").is_some_and(|name| is_configured(name))
        });
    }

    /// All of them that have a value.
    fn families(&self) -> Vec<MetricFamily> {
        let mut out = Vec::new();
        out.extend(self.requests.iter().flat_map(Collector::collect));
        out.extend(self.durations.iter().flat_map(Collector::collect));
        out.extend(self.in_flight.iter().flat_map(Collector::collect));
        out.extend(self.watches.iter().flat_map(Collector::collect));
        out.extend(self.webhooks.iter().flat_map(Collector::collect));
        // What has none cannot be written.
        out.retain(|family| !family.get_metric().is_empty());
        out
    }
}

/// What upstream calls the two types of webhooks here.
fn webhook_type(mutating: bool) -> &'static str {
    if mutating { "admit" } else { "validating" }
}

/// Removes the series whose labels are such.
fn drop_series<B: MetricVecBuilder>(series: Option<&MetricVec<B>>, are: impl Fn(&HashMap<&str, &str>) -> bool) {
    let Some(series) = series else { return };
    for family in series.collect() {
        for metric in family.get_metric() {
            let mut labels: HashMap<&str, &str> = metric.get_label().iter().map(|l| (l.name(), l.value())).collect();
            if are(&labels) {
                labels.remove("component");
                labels.remove("dry_run");
                // One that is gone already is as good.
                let _ = series.remove(&labels);
            }
        }
    }
}

/// The labels of a request. What clients make up must not make series without end.
fn place<'i>(catalogue: &Catalogue, info: &'i RequestInfo) -> [&'i str; 6] {
    let verb = match (info.is_resource, info.verb) {
        (false, _) | (true, Verb::Other) => known_method(&info.method),
        (true, Verb::Get) => "GET",
        (true, Verb::List) => "LIST",
        (true, Verb::Watch) => "WATCH",
        (true, Verb::Create) => "POST",
        (true, Verb::Update) => "PUT",
        (true, Verb::Patch) => "PATCH",
        (true, Verb::Delete) => "DELETE",
        (true, Verb::DeleteCollection) => "DELETECOLLECTION",
    };
    let resource = catalogue.resource(&info.group, &info.version, &info.resource);
    let has_part = |r: &Resource| info.subresource.is_empty() || r.subresource(&info.subresource).is_some();
    if !resource.is_some_and(|r| has_part(r)) {
        return [verb, "", "", "", "", ""];
    }
    [verb, &info.group, &info.version, &info.resource, &info.subresource, scope(info)]
}

fn scope(info: &RequestInfo) -> &'static str {
    match (info.name.as_str(), info.namespace.as_str()) {
        ("", "") => "cluster",
        ("", _) => "namespace",
        _ => "resource",
    }
}

/// Something that is counted while it lasts.
pub(crate) struct InFlight(Option<IntGauge>);

impl InFlight {
    fn new(gauge: Option<IntGauge>) -> Self {
        if let Some(gauge) = &gauge {
            gauge.inc();
        }
        InFlight(gauge)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_leaves_no_series() {
        let metrics = Metrics::default();
        let requests = metrics.requests.as_ref().unwrap();
        let durations = metrics.durations.as_ref().unwrap();
        for (resource, code) in [("as", "200"), ("as", "404"), ("bs", "200")] {
            requests.with_label_values(&["GET", "g", "v1", resource, "", "cluster", code]).inc();
            durations.with_label_values(&["GET", "g", "v1", resource, "", "cluster"]).observe(1.0);
        }
        metrics.called("a", "CREATE", true, false, Duration::ZERO);
        metrics.called("b", "CREATE", false, true, Duration::ZERO);
        metrics.forget("g", "v1", "as");
        metrics.keep_webhooks(true, |_| false);
        let left: Vec<(String, usize)> =
            metrics.families().iter().map(|f| (f.name().to_owned(), f.get_metric().len())).collect();
        let left: Vec<(&str, usize)> = left.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(
            left,
            [
                ("apiserver_request_total", 1),
                ("apiserver_request_duration_seconds", 1),
                ("apiserver_admission_webhook_admission_duration_seconds", 1)
            ]
        );
    }
}
