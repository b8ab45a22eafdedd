//! Conditions of a definition's status.

use object::{Map, Value, map};

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The type: `Established`, `NamesAccepted`, `Terminating`, …
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A reason for machines.
    pub reason: String,
    /// An explanation for people.
    pub message: String,
}

impl Condition {
    /// A condition that is true or false.
    pub fn new(kind: &str, status: bool, reason: &str, message: &str) -> Self {
        Condition {
            kind: kind.to_owned(),
            status: if status { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Reads a condition of a status.
    pub fn from_value(value: &Value) -> Self {
        let text = |key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
        Condition { kind: text("type"), status: text("status"), reason: text("reason"), message: text("message") }
    }

    /// Whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    fn to_value(&self, since: &str) -> Value {
        let mut out: Map = map! {
            "type" => self.kind.as_str(), "status" => self.status.as_str(), "lastTransitionTime" => since,
        };
        for (key, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                out.insert(key, text.as_str());
            }
        }
        Value::Object(out)
    }
}

/// The condition of a type, among those of a definition's status.
pub fn condition<'d>(definition: &'d Value, kind: &str) -> Option<&'d Value> {
    let conditions = definition.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// Sets a condition in the status of a definition. `now` (RFC 3339, UTC) becomes its time where its status changes.
pub fn set_condition(definition: &mut Value, condition: &Condition, now: &str) {
    let old = self::condition(definition, &condition.kind);
    let since = old
        .filter(|old| old.str_at(&["status"]) == Some(&condition.status))
        .and_then(|old| old.str_at(&["lastTransitionTime"]))
        .unwrap_or(now)
        .to_owned();
    let new = condition.to_value(&since);
    let status = definition.object_entry("status");
    let conditions = status.get_or_insert("conditions", || Value::Array(Vec::new()));
    if conditions.is_null() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|c| c.str_at(&["type"]) == Some(&condition.kind)) {
        Some(place) => *place = new,
        None => conditions.push(new),
    }
}

/// Takes a condition away.
pub fn remove_condition(definition: &mut Value, kind: &str) {
    let conditions = definition.get_mut("status").and_then(|status| status.get_mut("conditions"));
    if let Some(conditions) = conditions.and_then(Value::as_array_mut) {
        conditions.retain(|condition| condition.str_at(&["type"]) != Some(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_changes_with_the_status_only() {
        let mut definition = object::json::parse(br#"{"status":{"conditions":null}}"#).unwrap();
        set_condition(&mut definition, &Condition::new("Established", false, "A", "a"), "2020-01-01T00:00:00Z");
        set_condition(&mut definition, &Condition::new("Established", false, "B", "b"), "2021-01-01T00:00:00Z");
        let found = condition(&definition, "Established").unwrap();
        assert_eq!(found.str_at(&["reason"]), Some("B"));
        assert_eq!(found.str_at(&["lastTransitionTime"]), Some("2020-01-01T00:00:00Z"));
        set_condition(&mut definition, &Condition::new("Established", true, "C", "c"), "2022-01-01T00:00:00Z");
        let found = condition(&definition, "Established").unwrap();
        assert_eq!(found.str_at(&["lastTransitionTime"]), Some("2022-01-01T00:00:00Z"));
        remove_condition(&mut definition, "Established");
        assert!(condition(&definition, "Established").is_none());
    }
}
