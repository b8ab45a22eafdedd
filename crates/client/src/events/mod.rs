//! Events: what happened to an object, for people.
//!
//! As client-go's recorder: repeated events are counted, many similar ones are told as one, and no object gets more
//! than a burst of 25 and one each five minutes.

mod correlate;

use crate::resources::EVENTS;
use crate::{Api, Client, Clock, Patch, PatchParams};
use correlate::{Correlator, Step};
use object::{Map, Value, map};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::mpsc;

/// How many events may wait to be sent; further ones are lost (client-go's bound).
const WAITING: usize = 1000;

/// How an event is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// All is well.
    Normal,
    /// Something may be wrong.
    Warning,
}

impl EventType {
    fn name(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// What an event bears beside what it tells.
#[derive(Clone, Debug, Default)]
pub struct Marks<'a> {
    /// Its labels.
    pub labels: Map,
    /// Where it is if the object is in no namespace; `default` if empty.
    pub namespace: &'a str,
}

/// Records events of one component. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct Recorder {
    sender: mpsc::Sender<Value>,
    component: Arc<str>,
    clock: Clock,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder for a component. Events are sent in the background, one after the other. Must be called inside a
    /// runtime.
    pub fn new(client: &Client, component: &str, clock: Clock) -> Self {
        let (sender, mut receiver) = mpsc::channel::<Value>(WAITING);
        let api = client.api(&EVENTS);
        let time = clock.clone();
        tokio::spawn(async move {
            let mut correlator = Correlator::default();
            while let Some(event) = receiver.recv().await {
                send(&api, &mut correlator, event, time()).await;
            }
        });
        Recorder { sender, component: component.into(), clock }
    }

    /// A recorder that records nothing: for tests.
    pub fn silent() -> Self {
        Recorder { sender: mpsc::channel(1).0, component: "".into(), clock: Arc::new(jiff::Timestamp::now) }
    }

    /// Tells an event of an object, which has its `apiVersion`, `kind` and `metadata`.
    pub fn event(&self, object: &Value, ty: EventType, reason: &str, message: &str) {
        self.event_about(reference(object), ty, reason, message);
    }

    /// Tells an event of what an object reference names.
    pub fn event_about(&self, involved: Map, ty: EventType, reason: &str, message: &str) {
        self.tell(involved, Marks::default(), ty, reason, message);
    }

    /// Tells an event that bears more than what is told of the object.
    pub fn event_with(&self, object: &Value, marks: Marks<'_>, ty: EventType, reason: &str, message: &str) {
        self.tell(reference(object), marks, ty, reason, message);
    }

    fn tell(&self, involved: Map, marks: Marks<'_>, ty: EventType, reason: &str, message: &str) {
        let now = (self.clock)();
        let text = |key: &str| involved.get(key).and_then(Value::as_str).unwrap_or_default();
        let namespace = match (text("namespace"), marks.namespace) {
            ("", "") => "default",
            ("", namespace) | (namespace, _) => namespace,
        };
        let time = seconds(now);
        let mut metadata = map! { "name" => name(text("name"), now), "namespace" => namespace };
        if !marks.labels.is_empty() {
            metadata.insert("labels", marks.labels);
        }
        let event = map! {
            "apiVersion" => "v1",
            "kind" => "Event",
            "metadata" => metadata,
            "reason" => reason,
            "message" => message,
            "type" => ty.name(),
            "count" => 1i64,
            "firstTimestamp" => time.as_str(),
            "lastTimestamp" => time.as_str(),
            "source" => map! { "component" => &*self.component },
            "reportingComponent" => &*self.component,
            "reportingInstance" => "",
            "involvedObject" => involved,
        };
        if self.sender.try_send(Value::Object(event)).is_err() {
            tracing::debug!(reason, message, "an event is lost");
        }
    }
}

/// The reference to an object that has its `apiVersion`, `kind` and `metadata`.
pub fn reference(object: &Value) -> Map {
    let mut out = Map::new();
    let top = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    for (key, text) in [
        ("apiVersion", top("apiVersion")),
        ("kind", top("kind")),
        ("namespace", object.namespace()),
        ("name", object.name()),
        ("uid", object.meta_str("uid")),
        ("resourceVersion", object.meta_str("resourceVersion")),
    ] {
        if !text.is_empty() {
            out.insert(key, text);
        }
    }
    out
}

/// The longest name that an event can have.
const LONGEST: usize = 253;

/// An event's name: that of the object and the time in nanoseconds, or one more than the last where the clock is coarse.
fn name(object: &str, now: jiff::Timestamp) -> String {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = i64::try_from(now.as_nanosecond()).unwrap_or_default();
    let next = |last: i64| Some(now.max(last.saturating_add(1)));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
    // The name of an object may be as long as a name may be.
    let object = object.get(..LONGEST - 17).map_or(object, |cut| cut.trim_end_matches(['-', '.']));
    format!("{object}.{:x}", now.max(last.saturating_add(1)))
}

/// A time as objects have it, to the second.
fn seconds(now: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Creates an event, or counts it.
async fn send(api: &Api, correlator: &mut Correlator, event: Value, now: jiff::Timestamp) {
    let Some((mut event, key, step)) = correlator.correlate(event, now) else { return };
    if let Step::Count(change) = step {
        let patch = Patch::Strategic(Value::Object(change));
        match api.patch(event.namespace(), event.name(), &patch, &PatchParams::default()).await {
            Ok(_) => return,
            Err(error) if error.is_not_found() => {
                // It has expired: a new one goes on counting.
                let about = event.str_at(&["involvedObject", "name"]).unwrap_or_default();
                let name = name(about, now);
                event.metadata_mut().insert("name", name);
            }
            Err(error) => {
                tracing::debug!(%error, "an event cannot be counted");
                return;
            }
        }
    }
    match api.create(event.namespace(), &event).await {
        Ok(created) => correlator.created(key, &created),
        // Nothing comes into a namespace that goes away.
        Err(error) => tracing::debug!(%error, "an event cannot be created"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_at_the_same_time() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        assert_ne!(name("a", now), name("a", now));
    }
}
