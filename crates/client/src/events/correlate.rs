//! Which events are repeated, similar or too many (client-go's `EventCorrelator`).

use super::{name, seconds};
use jiff::Timestamp;
use object::{Map, Value, map};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// How many events, groups and sources are remembered.
const REMEMBERED: usize = 4096;
/// From how many different messages on similar events are told as one.
const SIMILAR: usize = 10;
/// Similar events farther apart than this, in seconds, are not told as one.
const SIMILAR_SECONDS: i64 = 600;
/// How many events of an object and a reason are told at once, and how many seconds each further one takes.
const BURST: f64 = 25.0;
const SECONDS_EACH: f64 = 300.0;

/// What becomes of an event.
pub(super) enum Step {
    /// It is created.
    Create,
    /// One like it is there and is changed by this strategic merge patch.
    Count(Map),
}

/// What it takes to be the same event.
type Key = Vec<String>;

#[derive(Default)]
pub(super) struct Correlator {
    similar: Memory<Key, Similar>,
    seen: Memory<Key, Seen>,
    budgets: Memory<Key, Budget>,
}

struct Similar {
    messages: HashSet<String>,
    last: i64,
}

#[derive(Clone)]
struct Seen {
    name: String,
    count: i64,
    first: String,
}

struct Budget {
    left: f64,
    at: i64,
}

/// Remembers the latest keys only.
struct Memory<K, V> {
    held: HashMap<K, (u64, V)>,
    clock: u64,
}

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Memory { held: HashMap::new(), clock: 0 }
    }
}

impl<K: Hash + Eq + Clone, V> Memory<K, V> {
    fn get_or_insert(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        self.clock += 1;
        if self.held.len() >= REMEMBERED && !self.held.contains_key(key) {
            // Half of them go at once, so that this is seldom.
            let mut times: Vec<u64> = self.held.values().map(|(time, _)| *time).collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            self.held.retain(|_, (time, _)| *time > middle);
        }
        let (time, value) = self.held.entry(key.clone()).or_insert_with(|| (0, make()));
        *time = self.clock;
        value
    }
}

impl Correlator {
    /// The event as it is to be told, its key, and how; nothing if there were too many.
    pub(super) fn correlate(&mut self, event: Value, now: Timestamp) -> Option<(Value, Key, Step)> {
        let (mut event, key) = self.gather(event, now);
        let seen = self.seen.get_or_insert(&key, || Seen { name: String::new(), count: 0, first: String::new() });
        seen.count += 1;
        let mut step = Step::Create;
        if seen.count > 1 {
            let last = seconds(now);
            event.metadata_mut().insert("name", seen.name.as_str());
            event.set_at(&["count"], Value::Int(seen.count));
            event.set_at(&["firstTimestamp"], Value::from(seen.first.as_str()));
            event.set_at(&["lastTimestamp"], Value::from(last.as_str()));
            let message = event.str_at(&["message"]).unwrap_or_default();
            step = Step::Count(map! { "count" => seen.count, "lastTimestamp" => last, "message" => message });
        } else {
            seen.name = event.name().to_owned();
            seen.first = event.str_at(&["firstTimestamp"]).unwrap_or_default().to_owned();
        }
        self.allowed(&event, now).then_some((event, key, step))
    }

    /// An event was created: the next one like it counts this one.
    pub(super) fn created(&mut self, key: Key, created: &Value) {
        let count = created.get("count").and_then(Value::as_int).unwrap_or(1);
        let first = created.str_at(&["firstTimestamp"]).unwrap_or_default().to_owned();
        let seen = self.seen.get_or_insert(&key, || Seen { name: String::new(), count, first });
        seen.name = created.name().to_owned();
    }

    /// Tells many events that differ in the message alone as one.
    fn gather(&mut self, mut event: Value, now: Timestamp) -> (Value, Key) {
        let group = key(&event, &[&["type"], &["reason"], &["reportingComponent"], &["reportingInstance"]]);
        let message = event.str_at(&["message"]).unwrap_or_default().to_owned();
        let at = now.as_second();
        let similar = self.similar.get_or_insert(&group, || Similar { messages: HashSet::new(), last: at });
        if at - similar.last > SIMILAR_SECONDS {
            similar.messages.clear();
        }
        similar.last = at;
        similar.messages.insert(message.clone());
        if similar.messages.len() < SIMILAR {
            let key = key(&event, &[&["involvedObject", "fieldPath"], &["type"], &["reason"], &["message"]]);
            return (event, key);
        }
        // Any of them makes room for the next message.
        if let Some(one) = similar.messages.iter().next().cloned() {
            similar.messages.remove(&one);
        }
        let name = name(event.str_at(&["involvedObject", "name"]).unwrap_or_default(), now);
        event.metadata_mut().insert("name", name);
        event.set_at(&["message"], Value::from(format!("(combined from similar events): {message}")));
        (event, group)
    }

    /// Whether the object's events of this reason are not too many. (The recorded controller manager lets an object's other
    /// events pass when those of one reason are too many.)
    fn allowed(&mut self, event: &Value, now: Timestamp) -> bool {
        let at = now.as_second();
        let budget = self.budgets.get_or_insert(&key(event, &[&["type"], &["reason"]]), || Budget { left: BURST, at });
        budget.left = (budget.left + (at - budget.at) as f64 / SECONDS_EACH).min(BURST);
        budget.at = at;
        let allowed = budget.left >= 1.0;
        if allowed {
            budget.left -= 1.0;
        }
        allowed
    }
}

/// The source and the object of an event, and these texts of it.
fn key(event: &Value, more: &[&[&str]]) -> Key {
    let object = ["kind", "namespace", "name", "uid", "apiVersion"];
    let text = |path: &[&str]| event.str_at(path).unwrap_or_default().to_owned();
    let mut out = vec![text(&["source", "component"]), text(&["source", "host"])];
    out.extend(object.iter().map(|part| text(&["involvedObject", part])));
    out.extend(more.iter().map(|path| text(path)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(message: &str) -> Value {
        Value::Object(map! {
            "metadata" => map! { "name" => "a.1", "namespace" => "default" }, "message" => message, "reason" => "R",
            "type" => "Normal", "count" => 1i64, "involvedObject" => map! { "name" => "a" },
        })
    }

    fn count(step: &Step) -> i64 {
        match step {
            Step::Create => 1,
            Step::Count(change) => change.get("count").and_then(Value::as_int).unwrap(),
        }
    }

    #[test]
    fn the_same_event_is_counted() {
        let mut correlator = Correlator::default();
        let now = Timestamp::UNIX_EPOCH;
        for expected in 1..=3 {
            let (_, _, step) = correlator.correlate(event("m"), now).unwrap();
            assert_eq!(count(&step), expected);
        }
        assert!(matches!(correlator.correlate(event("other"), now), Some((_, _, Step::Create))));
    }

    #[test]
    fn the_tenth_similar_event_is_told_with_the_following_ones() {
        let mut correlator = Correlator::default();
        let now = Timestamp::UNIX_EPOCH;
        for i in 1..10 {
            correlator.correlate(event(&format!("m{i}")), now).unwrap();
        }
        for (i, expected) in [(10, 1), (11, 2)] {
            let (event, _, step) = correlator.correlate(event(&format!("m{i}")), now).unwrap();
            assert_eq!(event.str_at(&["message"]), Some(format!("(combined from similar events): m{i}").as_str()));
            assert_eq!(count(&step), expected);
        }
    }

    #[test]
    fn no_object_gets_more_than_a_burst() {
        let mut correlator = Correlator::default();
        let now = Timestamp::UNIX_EPOCH;
        let told = (0..40).filter(|_| correlator.correlate(event("m"), now).is_some()).count();
        assert_eq!(told, 25);
        let later = Timestamp::from_second(300).unwrap();
        assert!(correlator.correlate(event("m"), later).is_some());
    }
}
