//! What a permit's status keeps of its life.

use super::phase::Phase;
use crate::status::rfc3339;
use jiff::Timestamp;
use object::{Map, Value, map};

/// The actor of the controller's own steps.
pub fn system() -> Value {
    map! { "name" => "capsule-controller", "type" => "System" }.into()
}

/// A step of a permit.
#[derive(Clone, Debug)]
pub struct Transition<'a> {
    /// The phase it came to.
    pub phase: Phase,
    /// Who did it: `name` and `type`.
    pub actor: &'a Value,
    /// A word.
    pub reason: &'a str,
    /// For people.
    pub message: &'a str,
    /// When.
    pub time: Timestamp,
}

/// The phase of a permit; unknown ones are none.
pub fn phase(permit: &Value) -> Phase {
    permit.str_at(&["status", "phase"]).and_then(Phase::of).unwrap_or(Phase::New)
}

/// The transitions of a status with more of them; nothing that is there changes.
pub fn with_transitions(status: Option<&Value>, more: &[Transition<'_>]) -> Value {
    let old = status.and_then(|s| s.get("transitions")).and_then(Value::as_array).unwrap_or_default();
    let more = more.iter().map(|t| {
        let mut actor = Map::new();
        for key in ["name", "type"] {
            if let Some(text) = t.actor.get(key) {
                actor.insert(key, text.clone());
            }
        }
        let mut entry = map! {
            "type" => t.phase.name(), "timestamp" => rfc3339(t.time), "actor" => actor, "reason" => t.reason,
        };
        if !t.message.is_empty() {
            entry.insert("message", t.message);
        }
        Value::from(entry)
    });
    Value::Array(old.iter().cloned().chain(more).collect())
}

/// Whether people are told of a transition by an event.
pub fn is_told(phase: Phase) -> bool {
    matches!(phase, Phase::Requested | Phase::Approved | Phase::Denied | Phase::Active | Phase::Expired)
}

/// `By<Type>` reasons: `ApprovedBySystem`, `ExpiredByUser`.
pub fn reason_by(what: &str, actor: &Value) -> String {
    format!("{what}By{}", actor.str_at(&["type"]).unwrap_or("User"))
}

/// A name as the value of a label: as it is, or made legal and told apart by a hash.
pub fn actor_label(name: &str) -> String {
    if !name.is_empty() && object::names::label_value(name).is_empty() {
        return name.to_owned();
    }
    let legal: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let trimmed: String = legal.trim_matches(['-', '_', '.']).chars().take(54).collect();
    let trimmed = trimmed.trim_end_matches(['-', '_', '.']);
    let prefix = if trimmed.is_empty() { "actor" } else { trimmed };
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let hash: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_are_only_added() {
        let actor: Value = map! { "name" => "a", "type" => "User", "groups" => vec!["x"] }.into();
        let step =
            Transition { phase: Phase::Denied, actor: &actor, reason: "r", message: "", time: Timestamp::UNIX_EPOCH };
        let first = with_transitions(None, std::slice::from_ref(&step));
        let second = with_transitions(Some(&map! { "transitions" => first.clone() }.into()), &[step]);
        let all = second.as_array().unwrap();
        assert_eq!((all.len(), Some(&all[0])), (2, first.as_array().and_then(|f| f.first())));
        assert_eq!(
            object::json::to_string(&all[1]),
            r#"{"actor":{"name":"a","type":"User"},"reason":"r","timestamp":"1970-01-01T00:00:00Z","type":"Denied"}"#
        );
    }

    #[test]
    fn actors_fit_into_labels() {
        for (name, label) in [
            ("alice", "alice"),
            ("system:serviceaccount:a:b", "system_serviceaccount_a_b-a9cb9430"),
            ("::", "actor-71546855"),
            ("", "actor-e3b0c442"),
        ] {
            assert_eq!(actor_label(name), label);
        }
        assert!(actor_label(&"x:".repeat(60)).len() <= 63);
    }
}
