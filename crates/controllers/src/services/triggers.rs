//! When what changed a Service's endpoints happened, which an annotation tells for measurements.

use crate::pods;
use jiff::Timestamp;
use kinds::read::Read;
use object::Value;
use parking_lot::Mutex;
use std::collections::HashMap;

/// The annotation.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The times that were known of each Service when it was last looked at.
#[derive(Debug, Default)]
pub struct Triggers(Mutex<HashMap<String, Known>>);

#[derive(Debug, Default)]
struct Known {
    service: Option<Timestamp>,
    pods: HashMap<String, Timestamp>,
    /// What was found and not told yet.
    pending: Option<Timestamp>,
}

impl Triggers {
    /// The earliest time among those that are new since they were last told: that of the Service's creation, and those
    /// when its pods became ready or unready.
    pub fn newest<'p>(&self, service: &Value, pods: impl IntoIterator<Item = &'p Value>) -> Option<Timestamp> {
        let key = client::cache::key(service);
        let mut all = self.0.lock();
        let old = all.remove(&key).unwrap_or_default();
        let created = pods::time(service.sub("metadata"), "creationTimestamp");
        let mut new = Known { service: created, pods: HashMap::new(), pending: None };
        let fresh = created.filter(|time| old.service.is_none_or(|old| old < *time));
        let mut earliest = [old.pending, fresh].into_iter().flatten().min();
        for pod in pods {
            let Some(time) = pods::condition(pod, "Ready").and_then(|c| pods::time(c, "lastTransitionTime")) else {
                continue;
            };
            if old.pods.get(pod.name()).is_none_or(|old| *old < time) {
                earliest = Some(earliest.map_or(time, |other| other.min(time)));
            }
            new.pods.insert(pod.name().to_owned(), time);
        }
        new.pending = earliest;
        all.insert(key, new);
        earliest
    }

    /// What was found of a Service is told, or need not be.
    pub fn told(&self, key: &str) {
        if let Some(known) = self.0.lock().get_mut(key) {
            known.pending = None;
        }
    }

    /// A Service is gone.
    pub fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

/// Sets the annotation, or takes it away.
pub fn annotate(object: &mut Value, trigger: Option<Timestamp>) {
    match trigger {
        Some(time) => {
            object.metadata_mut().object_entry("annotations").insert(TRIGGER_TIME, time.to_string());
        }
        None => {
            object.remove_at(&["metadata", "annotations", TRIGGER_TIME]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_time_is_told_once() {
        let parse = |text: &str| json::parse(text.as_bytes()).unwrap();
        let service = parse(r#"{"metadata":{"name":"s","creationTimestamp":"2026-01-01T00:00:05Z"}}"#);
        let pod = |second: u8| {
            parse(&format!(
                r#"{{"metadata":{{"name":"p"}},"status":{{"conditions":[{{"type":"Ready","lastTransitionTime":"2026-01-01T00:00:0{second}Z"}}]}}}}"#
            ))
        };
        let triggers = Triggers::default();
        let newest = |pods: &[Value]| {
            let found = triggers.newest(&service, pods).map(|t| t.as_second() % 10);
            // A write that failed tells it later.
            assert_eq!(found, triggers.newest(&service, pods).map(|t| t.as_second() % 10));
            triggers.told("s");
            found
        };
        let base = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second() % 10;
        assert_eq!(newest(&[]), Some(base + 5));
        assert_eq!(newest(&[]), None);
        assert_eq!(newest(&[pod(3)]), Some(base + 3));
        assert_eq!(newest(&[pod(3)]), None);
        assert_eq!(newest(&[pod(4)]), Some(base + 4));
    }
}
