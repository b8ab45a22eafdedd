//! `/metrics`: counters in the Prometheus text form, under upstream's names where they exist.

mod admission;
mod family;
mod identity;
mod page;
mod process;

pub(crate) use admission::{Admission, Called};
pub(crate) use family::{Counters, Histograms, NONE};
pub(crate) use identity::Identity;
pub use page::of_process;
pub(crate) use page::respond;

use crate::answer::{Body, Response};
use crate::catalogue::{Catalogue, Resource};
use crate::limits;
use crate::request::{Query, RequestInfo, Verb};
use bytes::Bytes;
use family::{COMPONENT, Gauges};
use http::{HeaderMap, Method, header};
use http_body_util::BodyExt;
use prometheus::proto::MetricFamily;
use prometheus::{Histogram, IntCounter, IntGauge};
use std::collections::HashMap;
use std::time::Duration;

/// What tells the series of requests apart, as upstream.
const LABELS: [&str; 8] = ["verb", "group", "version", "resource", "subresource", "scope", "dry_run", "code"];
/// The same of all answers together.
const TIMED: [&str; 7] = ["verb", "group", "version", "resource", "subresource", "scope", "dry_run"];
/// The same of what has no answer yet, or no effect.
const PLACE: [&str; 6] = ["verb", "group", "version", "resource", "subresource", "scope"];
/// Upper bounds in seconds: upstream's, and three for what is faster than its fastest.
const SECONDS: [f64; 26] = [
    0.0005, 0.001, 0.0025, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Upper bounds in bytes of answers (upstream's).
const SIZES: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// The counters of one server.
pub(crate) struct Metrics {
    /// Those of admission.
    pub admission: Admission,
    /// Those of authentication and authorisation.
    pub identity: Identity,
    requests: Counters,
    durations: Histograms,
    sizes: Histograms,
    in_flight: Gauges,
    watches: Gauges,
    watch_events: Counters,
    deprecated: Gauges,
    health_checks: Counters,
}

impl Default for Metrics {
    /// Counters at zero.
    fn default() -> Self {
        Metrics {
            admission: Admission::default(),
            identity: Identity::default(),
            requests: Counters::new(
                "apiserver_request_total",
                "Requests by verb, resource and code of the answer.",
                COMPONENT,
                &LABELS,
            ),
            durations: Histograms::new(
                "apiserver_request_duration_seconds",
                "Time to answer, watches left out.",
                COMPONENT,
                &TIMED,
                &SECONDS,
            ),
            sizes: Histograms::new(
                "apiserver_response_sizes",
                "Bytes of answers to requests that read, before compression.",
                COMPONENT,
                &PLACE,
                &SIZES,
            ),
            in_flight: Gauges::new(
                "apiserver_current_inflight_requests",
                "Requests that are being answered.",
                NONE,
                &["request_kind"],
            ),
            watches: Gauges::new(
                "apiserver_longrunning_requests",
                "Requests that last, such as watches, and are open.",
                COMPONENT,
                &PLACE,
            ),
            watch_events: Counters::new(
                "apiserver_watch_events_total",
                "Events that were sent to clients that watch.",
                NONE,
                &["group", "version", "kind"],
            ),
            deprecated: Gauges::new(
                "apiserver_requested_deprecated_apis",
                "1 for what was asked for though it is deprecated.",
                NONE,
                &["group", "version", "resource", "subresource", "removed_release"],
            ),
            health_checks: Counters::new(
                "kubernetes_healthchecks_total",
                "Health checks that somebody asked for, by what came of them.",
                NONE,
                &["name", "status", "type"],
            ),
        }
    }
}

impl Metrics {
    /// Counts a request in; the guard counts it out.
    pub fn begin(&self, info: &RequestInfo) -> InFlight {
        InFlight::new(self.in_flight.one(&[limits::kind(info)]))
    }

    /// Counts an answer.
    pub fn answered(&self, catalogue: &Catalogue, asked: Asked<'_>, response: &mut Response, took: Duration) {
        let info = asked.info;
        let [_, group, version, resource, subresource, scope] = place(catalogue, info);
        let verb = if asked.applies() { "APPLY" } else { verb(info) };
        let (dry_run, status) = (asked.dry_run(), response.status());
        self.requests.count(&[verb, group, version, resource, subresource, scope, dry_run, status.as_str()]);
        if info.verb != Verb::Watch {
            let labels = [verb, group, version, resource, subresource, scope, dry_run];
            self.durations.observe(&labels, took.as_secs_f64());
        }
        if info.is_resource && matches!(info.verb, Verb::Get | Verb::List) {
            let labels = [verb, group, version, resource, subresource, scope];
            match response.body_mut() {
                Body::Whole(bytes) => self.sizes.observe(&labels, bytes.len() as f64),
                body => {
                    let Some(histogram) = self.sizes.one(&labels) else { return };
                    let inside = std::mem::replace(body, Body::Whole(Bytes::new()));
                    let mut size = Size { histogram, bytes: 0 };
                    *body = Body::stream(inside.map_frame(move |frame| {
                        size.add(frame.data_ref().map_or(0, Bytes::len));
                        frame
                    }));
                }
            }
        }
    }

    /// Forgets what was counted of a resource that is served no more.
    pub fn forget(&self, of: &Resource) {
        let has = |labels: &HashMap<&str, &str>, last: (&str, &str)| {
            let all = [("group", of.group.as_str()), ("version", of.version.as_str()), last];
            all.iter().all(|(label, value)| labels.get(label) == Some(value))
        };
        let is_gone = |labels: &HashMap<&str, &str>| has(labels, ("resource", &of.plural));
        self.requests.drop_those(is_gone);
        self.durations.drop_those(is_gone);
        self.sizes.drop_those(is_gone);
        self.watches.drop_those(is_gone);
        self.deprecated.drop_those(is_gone);
        self.watch_events.drop_those(|labels| has(labels, ("kind", &of.kind)));
    }

    /// A watch that is open as long as the guard lives, and the counter of its events.
    pub fn watch(&self, resource: &Resource, info: &RequestInfo) -> (InFlight, Option<IntCounter>) {
        let labels = ["WATCH", &*resource.group, &resource.version, &resource.plural, "", scope(info)];
        let events = self.watch_events.one(&[&*resource.group, &resource.version, &resource.kind]);
        (InFlight::new(self.watches.one(&labels)), events)
    }

    /// Notes that something deprecated is used.
    pub fn deprecated(&self, resource: &Resource, subresource: &str) {
        let labels = [&*resource.group, &resource.version, &resource.plural, subresource, ""];
        if let Some(gauge) = self.deprecated.one(&labels) {
            gauge.set(1);
        }
    }

    /// Counts a health check.
    pub fn checked(&self, page: &str, name: &str, is_well: bool) {
        self.health_checks.count(&[name, if is_well { "success" } else { "error" }, page]);
    }

    /// All of them that have a value.
    fn families(&self) -> Vec<MetricFamily> {
        let mut out = Vec::new();
        self.requests.add_to(&mut out);
        self.durations.add_to(&mut out);
        self.sizes.add_to(&mut out);
        self.in_flight.add_to(&mut out);
        self.watches.add_to(&mut out);
        self.watch_events.add_to(&mut out);
        self.deprecated.add_to(&mut out);
        self.health_checks.add_to(&mut out);
        self.admission.add_to(&mut out);
        self.identity.add_to(&mut out);
        out
    }
}

/// A request that is answered.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// What its path says.
    pub info: &'a RequestInfo,
    /// Its parameters.
    pub query: &'a Query,
    /// Its headers.
    pub headers: &'a HeaderMap,
}

impl Asked<'_> {
    /// Whether it is a server-side apply.
    fn applies(self) -> bool {
        let content = || self.headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
        self.info.verb == Verb::Patch
            && self.info.is_resource
            && content().is_some_and(|value| value.starts_with(b"application/apply-patch+"))
    }

    /// What upstream says of `dryRun`.
    fn dry_run(self) -> &'static str {
        let mut all = self.query.all("dryRun").peekable();
        match (all.peek().is_some(), all.all(|value| value == "All")) {
            (false, _) => "",
            (true, true) => "All",
            (true, false) => "invalid",
        }
    }
}

/// Bytes of an answer that is made while it is sent; counted at its end.
struct Size {
    histogram: Histogram,
    bytes: usize,
}

impl Size {
    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }
}

impl Drop for Size {
    fn drop(&mut self) {
        self.histogram.observe(self.bytes as f64);
    }
}

/// The labels of a request. What clients make up must not make series without end.
fn place<'i>(catalogue: &Catalogue, info: &'i RequestInfo) -> [&'i str; 6] {
    let verb = verb(info);
    let resource = catalogue.resource(&info.group, &info.version, &info.resource);
    let has_part = |r: &Resource| info.subresource.is_empty() || r.subresource(&info.subresource).is_some();
    if !resource.is_some_and(|r| has_part(r)) {
        return [verb, "", "", "", "", ""];
    }
    [verb, &info.group, &info.version, &info.resource, &info.subresource, scope(info)]
}

/// What upstream calls what a request does.
fn verb(info: &RequestInfo) -> &'static str {
    match (info.is_resource, info.verb) {
        (false, _) | (true, Verb::Other) => known_method(&info.method),
        (true, Verb::Get) => "GET",
        (true, Verb::List) => "LIST",
        (true, Verb::Watch) => "WATCH",
        (true, Verb::Create) => "POST",
        (true, Verb::Update) => "PUT",
        (true, Verb::Patch) => "PATCH",
        (true, Verb::Delete) => "DELETE",
        (true, Verb::DeleteCollection) => "DELETECOLLECTION",
    }
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
        for (resource, code) in [("deployments", "200"), ("deployments", "404"), ("bs", "200")] {
            metrics.requests.count(&["GET", "apps", "v1", resource, "", "cluster", "", code]);
            metrics.durations.observe(&["GET", "apps", "v1", resource, "", "cluster", ""], 1.0);
        }
        metrics.admission.called("a", "CREATE", true, Called::Failed, Duration::ZERO);
        metrics.admission.called("b", "CREATE", false, Called::Refused(403), Duration::ZERO);
        metrics.admission.objected("p", "b", false, "deny", Duration::ZERO);
        let catalogue = crate::builtin::catalogue(&[]);
        metrics.forget(catalogue.resource("apps", "v1", "deployments").unwrap());
        metrics.admission.keep_webhooks(true, |_| false);
        metrics.admission.keep_policies(|_| false);
        let families = metrics.families();
        let left: Vec<(&str, usize)> = families.iter().map(|f| (f.name(), f.get_metric().len())).collect();
        assert_eq!(
            left,
            [
                ("apiserver_request_total", 1),
                ("apiserver_request_duration_seconds", 1),
                ("apiserver_admission_webhook_admission_duration_seconds", 1),
                ("apiserver_admission_webhook_rejection_count", 1),
                ("authentication_attempts", 1),
                ("authenticated_user_requests", 1),
                ("authorization_attempts_total", 1),
                ("apiserver_client_certificate_expiration_seconds", 1),
            ]
        );
    }

    #[test]
    fn applies_and_dry_runs_are_told_apart() {
        let (method, headers) = (Method::PATCH, |value: &'static str| {
            HeaderMap::from_iter([(header::CONTENT_TYPE, http::HeaderValue::from_static(value))])
        });
        for (content, query, applies, dry_run) in [
            ("application/apply-patch+yaml", "dryRun=All&force=true", true, "All"),
            ("application/merge-patch+json", "", false, ""),
            ("application/apply-patch+cbor", "dryRun=Some", true, "invalid"),
        ] {
            let (query, headers) = (Query::parse(Some(query)), headers(content));
            let info = RequestInfo::new(&method, "/api/v1/namespaces/a/pods/b", &query);
            let asked = Asked { info: &info, query: &query, headers: &headers };
            assert_eq!((asked.applies(), asked.dry_run()), (applies, dry_run), "{content}");
        }
    }
}
