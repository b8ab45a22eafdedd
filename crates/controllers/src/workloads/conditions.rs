//! Conditions in a status.

use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value, map};

/// The condition of a type.
pub(crate) fn find<'v>(status: &'v Value, ty: &str) -> Option<&'v Value> {
    status.list("conditions").iter().find(|c| c.text("type") == ty)
}

/// A new condition that came to be just now. `lastUpdateTime` is set where the kind has it.
pub(crate) fn new(ty: &str, status: &str, reason: &str, message: &str, now: Timestamp, has_update_time: bool) -> Map {
    let now = super::meta::time_text(now);
    let mut condition = map! {
        "type" => ty, "status" => status, "lastTransitionTime" => now.as_str(), "reason" => reason, "message" => message,
    };
    if has_update_time {
        condition.insert("lastUpdateTime", now);
    }
    condition
}

/// Puts a condition in, unless one of the same status and reason is there. The time of the last transition stays when
/// the status does.
pub(crate) fn set(status: &mut Value, mut condition: Map) {
    let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    let ty = text("type").to_owned();
    if let Some(current) = find(status, &ty)
        && current.text("status") == text("status")
    {
        if current.text("reason") == text("reason") {
            return;
        }
        let since = current.text("lastTransitionTime").to_owned();
        condition.insert("lastTransitionTime", since);
    }
    remove(status, &ty);
    let list = status.make_list("conditions");
    list.push(condition.into());
}

/// Takes the condition of a type away.
pub(crate) fn remove(status: &mut Value, ty: &str) {
    let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    list.retain(|c| c.text("type") != ty);
    if list.is_empty() {
        status.remove_at(&["conditions"]);
    }
}

trait MakeList {
    fn make_list(&mut self, key: &str) -> &mut Vec<Value>;
}

impl MakeList for Value {
    fn make_list(&mut self, key: &str) -> &mut Vec<Value> {
        if self.get(key).and_then(Value::as_array).is_none() {
            self.set_at(&[key], Value::Array(Vec::new()));
        }
        match self.get_mut(key) {
            Some(Value::Array(list)) => list,
            _ => unreachable!("made a list just above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::meta::tests::value;
    use super::*;

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_stays() {
        let mut status =
            value(r#"{"conditions":[{"type":"A","status":"True","reason":"x","lastTransitionTime":"t"}]}"#);
        let before = status.clone();
        set(&mut status, new("A", "True", "x", "other", Timestamp::UNIX_EPOCH, false));
        assert_eq!(status, before);
        set(&mut status, new("A", "True", "y", "m", Timestamp::UNIX_EPOCH, true));
        let a = find(&status, "A").unwrap();
        assert_eq!((a.text("reason"), a.text("lastTransitionTime")), ("y", "t"));
        assert_eq!(a.text("lastUpdateTime"), "1970-01-01T00:00:00Z");
        set(&mut status, new("A", "False", "y", "m", Timestamp::UNIX_EPOCH, false));
        assert_eq!(find(&status, "A").unwrap().text("lastTransitionTime"), "1970-01-01T00:00:00Z");
        remove(&mut status, "A");
        assert_eq!(status, value("{}"));
    }
}
