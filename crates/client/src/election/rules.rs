//! What a lease says, and what a candidate may do about it: functions without I/O.

use object::{Map, Value, map};
use std::time::Duration;

/// What a `Lease` says of who leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Who leads; empty if nobody does.
    pub(super) holder: String,
    pub(super) duration_seconds: i64,
    /// When the holder began to lead.
    pub(super) acquired: String,
    /// When the holder last said that it leads.
    pub(super) renewed: String,
    /// How often the holder changed.
    pub(super) transitions: i64,
}

impl Record {
    /// What a lease says.
    pub(super) fn of(lease: &Value) -> Record {
        let text = |key: &str| lease.str_at(&["spec", key]).unwrap_or_default().to_owned();
        let number = |key: &str| lease.at(&["spec", key]).and_then(Value::as_int).unwrap_or_default();
        Record {
            holder: text("holderIdentity"),
            duration_seconds: number("leaseDurationSeconds"),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
            transitions: number("leaseTransitions"),
        }
    }

    /// A lease that says this. What else stands in the one that is there stays.
    pub(super) fn write_to(&self, lease: &Value) -> Value {
        let mut lease = lease.clone();
        let mut spec = lease.get("spec").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
        spec.insert("holderIdentity", self.holder.as_str());
        spec.insert("leaseDurationSeconds", self.duration_seconds);
        spec.insert("acquireTime", self.acquired.as_str());
        spec.insert("renewTime", self.renewed.as_str());
        spec.insert("leaseTransitions", self.transitions);
        lease.set_at(&["spec"], Value::Object(spec));
        lease
    }

    /// The record by which a leader goes, so that others need not wait. A lease's duration cannot be nothing.
    pub(super) fn released(&self, now: &str) -> Record {
        Record {
            holder: String::new(),
            duration_seconds: 1,
            acquired: now.to_owned(),
            renewed: now.to_owned(),
            transitions: self.transitions,
        }
    }
}

/// The lease of an election in which nobody has stood yet.
pub(super) fn fresh(namespace: &str, name: &str) -> Value {
    Value::Object(map! {
        "apiVersion" => "coordination.k8s.io/v1",
        "kind" => "Lease",
        "metadata" => map! { "name" => name, "namespace" => namespace },
    })
}

/// What a candidate would write to lead, or to go on leading; nothing while somebody else leads. `held` is what the
/// lease says (nothing if there is none), and `unchanged` for how long it has said just that, by the candidate's own
/// clock: times in the record are other machines', and count for nothing.
pub(super) fn next(
    identity: &str,
    lease: Duration,
    held: Option<&Record>,
    unchanged: Duration,
    now: &str,
) -> Option<Record> {
    let mut next = Record {
        holder: identity.to_owned(),
        duration_seconds: i64::try_from(lease.as_secs()).unwrap_or(i64::MAX),
        acquired: now.to_owned(),
        renewed: now.to_owned(),
        transitions: 0,
    };
    let Some(held) = held else { return Some(next) };
    if held.holder == identity {
        next.acquired.clone_from(&held.acquired);
        next.transitions = held.transitions;
    } else if held.holder.is_empty() || unchanged >= lease {
        next.transitions = held.transitions.saturating_add(1);
    } else {
        return None;
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn held(holder: &str) -> Record {
        Record {
            holder: holder.to_owned(),
            duration_seconds: 15,
            acquired: "then".to_owned(),
            renewed: "later".to_owned(),
            transitions: 4,
        }
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_silent_for_its_duration() {
        let seconds = Duration::from_secs;
        for (holder, silent, transitions, acquired) in [
            (None, 0, Some(0), "now"),
            (Some(""), 0, Some(5), "now"),
            (Some("b"), 14, None, ""),
            (Some("b"), 15, Some(5), "now"),
            (Some("a"), 0, Some(4), "then"),
            (Some("a"), 99, Some(4), "then"),
        ] {
            let record = holder.map(held);
            let next = next("a", LEASE, record.as_ref(), seconds(silent), "now");
            assert_eq!(next.as_ref().map(|n| n.transitions), transitions, "{holder:?} {silent}");
            if let Some(next) = next {
                assert_eq!(
                    (next.holder.as_str(), next.acquired.as_str(), next.renewed.as_str()),
                    ("a", acquired, "now")
                );
            }
        }
    }

    #[test]
    fn what_else_stands_in_a_lease_stays() {
        let mut lease = held("a").write_to(&fresh("n", "l"));
        lease.set_at(&["spec", "strategy"], "x".into());
        lease.set_at(&["metadata", "labels"], Value::Object(map! { "k" => "v" }));
        let released = held("a").released("now").write_to(&lease);
        assert_eq!(released.str_at(&["spec", "strategy"]), Some("x"));
        assert_eq!(released.str_at(&["metadata", "labels", "k"]), Some("v"));
        let record = Record::of(&released);
        assert_eq!((record.holder.as_str(), record.duration_seconds, record.transitions), ("", 1, 4));
    }
}
