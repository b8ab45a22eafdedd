//! Which names a definition gets: those that no other definition of its group has (upstream's naming and establishing
//! controllers).

use super::set_condition;
use object::{Map, Value, go};
use std::collections::HashMap;

/// The names that the definitions of a group have, with how many times each is used.
#[derive(Debug, Default)]
pub(super) struct Taken {
    resources: HashMap<String, usize>,
    kinds: HashMap<String, usize>,
}

impl Taken {
    /// Adds the accepted names of a definition.
    pub fn add(&mut self, definition: &Value) {
        for_each_name(definition, |is_kind, name| {
            let used = if is_kind { &mut self.kinds } else { &mut self.resources };
            *used.entry(name.to_owned()).or_default() += 1;
        });
    }

    /// Takes away what [`Taken::add`] added for the same definition.
    pub fn remove(&mut self, definition: &Value) {
        for_each_name(definition, |is_kind, name| {
            let used = if is_kind { &mut self.kinds } else { &mut self.resources };
            match used.get_mut(name) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(used.remove(name)),
            }
        });
    }
}

/// Calls with each accepted name of a definition, and whether it is that of a kind.
fn for_each_name(definition: &Value, mut each: impl FnMut(bool, &str)) {
    let Some(names) = definition.at(&["status", "acceptedNames"]) else { return };
    for (is_kind, key) in [(false, "plural"), (false, "singular"), (true, "kind"), (true, "listKind")] {
        each(is_kind, names.str_at(&[key]).unwrap_or_default());
    }
    let short = names.get("shortNames").and_then(Value::as_array).unwrap_or_default();
    short.iter().filter_map(Value::as_str).for_each(|name| each(false, name));
}

/// The status of a definition, given the names that its group has; nothing if it stays as it is.
pub(super) fn status(definition: &Value, taken: &Taken, now: &str) -> Option<Value> {
    let before = definition.get("status").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut status = before.clone();
    let (names, conflict) = names(definition, taken);
    status.set_at(&["acceptedNames"], names);
    let mut conditions = before.get("conditions").and_then(Value::as_array).unwrap_or_default().to_vec();
    match &conflict {
        Some((reason, message)) => set_condition(&mut conditions, "NamesAccepted", "False", reason, message, now),
        None => set_condition(&mut conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
    }
    if !holds(&conditions, "Established") {
        let (status, reason, message) = match conflict {
            Some(_) => ("False", "NotAccepted", "not all names are accepted"),
            None => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        };
        set_condition(&mut conditions, "Established", status, reason, message, now);
    }
    approval(definition, &mut conditions, now);
    status.set_at(&["conditions"], Value::Array(conditions));
    (status != before).then_some(status)
}

/// Whether a condition is true.
pub(super) fn holds(conditions: &[Value], ty: &str) -> bool {
    conditions.iter().any(|c| c.str_at(&["type"]) == Some(ty) && c.str_at(&["status"]) == Some("True"))
}

/// The names that a definition gets, and the last conflict: its reason and message.
fn names(definition: &Value, group: &Taken) -> (Value, Option<(&'static str, String)>) {
    let empty = Value::Object(Map::new());
    let wanted = definition.at(&["spec", "names"]).unwrap_or(&empty);
    let held = definition.at(&["status", "acceptedNames"]).unwrap_or(&empty);
    let text = |names: &Value, key: &str| names.str_at(&[key]).unwrap_or_default().to_owned();
    let list = |names: &Value, key: &str| -> Vec<String> {
        let items = names.get(key).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let Taken { resources, kinds } = group;
    let taken = |wanted: &str, held: &str, used: &HashMap<String, usize>| -> Option<String> {
        (wanted != held && used.contains_key(wanted)).then(|| format!("{} is already in use", go::quote(wanted)))
    };
    let mut out = held.clone();
    let mut conflict = None;
    let mut one = |key: &str, used: &HashMap<String, usize>, reason: &'static str, conflict: &mut Option<_>| {
        let (wanted, held) = (text(wanted, key), text(held, key));
        match taken(&wanted, &held, used) {
            Some(message) => *conflict = Some((reason, message)),
            None if wanted.is_empty() => {
                out.remove_at(&[key]);
            }
            None => out.set_at(&[key], Value::from(wanted)),
        }
    };
    one("plural", resources, "PluralConflict", &mut conflict);
    one("singular", resources, "SingularConflict", &mut conflict);
    let (short, held_short) = (list(wanted, "shortNames"), list(held, "shortNames"));
    let mut short_names = held_short.clone();
    if short != held_short {
        let fresh = short.iter().filter(|s| !held_short.contains(s));
        let errors: Vec<String> = fresh.filter_map(|s| taken(s, "", resources)).collect();
        if errors.is_empty() {
            short_names = short;
        } else {
            conflict = Some(("ShortNamesConflict", object::field::aggregate(&errors)));
        }
    }
    one("kind", kinds, "KindConflict", &mut conflict);
    one("listKind", kinds, "ListKindConflict", &mut conflict);
    for (key, names) in [("shortNames", short_names), ("categories", list(wanted, "categories"))] {
        if names.is_empty() {
            out.remove_at(&[key]);
        } else {
            out.set_at(&[key], Value::from(names));
        }
    }
    (out, conflict)
}

/// Groups of the Kubernetes community need an approval.
fn approval(definition: &Value, conditions: &mut Vec<Value>, now: &str) {
    let group = definition.str_at(&["spec", "group"]).unwrap_or_default();
    let protected =
        ["k8s.io", "kubernetes.io"].iter().any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if !protected {
        return;
    }
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let text = definition.annotation(ANNOTATION).unwrap_or_default();
    let (status, reason, message) = if text.is_empty() {
        let message = format!(
            "protected groups must have approval annotation {}, see https://github.com/kubernetes/enhancements/pull/1111",
            go::quote(ANNOTATION)
        );
        ("False", "MissingAnnotation", message)
    } else if text.starts_with("unapproved") {
        ("False", "UnapprovedAnnotation", format!("not approved: {}", go::quote(text)))
    } else if text.contains("://") {
        ("True", "ApprovedAnnotation", format!("approved in {text}"))
    } else {
        let message = format!(
            "protected groups must have approval annotation {} with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111",
            go::quote(ANNOTATION)
        );
        ("False", "InvalidAnnotation", message)
    };
    set_condition(conditions, "KubernetesAPIApprovalPolicyConformant", status, reason, &message, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn definition(kind: &str, plural: &str, short: &str) -> Value {
        let text = format!(
            r#"{{"spec":{{"group":"x.io","names":{{"kind":"{kind}","plural":"{plural}","singular":"{plural}1","listKind":"{kind}List","shortNames":["{short}"]}}}},"status":{{"acceptedNames":{{"plural":"","kind":""}}}}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_first_gets_the_name_and_the_second_waits() {
        let mut taken = Taken::default();
        let mut first = definition("Widget", "widgets", "wd");
        let status_ = status(&first, &taken, "T").unwrap();
        first.set_at(&["status"], status_);
        taken.add(&first);
        assert!(holds(first.at(&["status", "conditions"]).unwrap().as_array().unwrap(), "Established"));
        let second = definition("Widget", "gizmos", "wd");
        taken.add(&second);
        let waiting = status(&second, &taken, "T").unwrap();
        let names = waiting.get("acceptedNames").unwrap();
        assert_eq!(
            json::to_string(names),
            r#"{"kind":"","listKind":"WidgetList","plural":"gizmos","singular":"gizmos1"}"#
                .replace("\"listKind\":\"WidgetList\",", "")
        );
        let conditions = waiting.get("conditions").unwrap().as_array().unwrap();
        assert!(!holds(conditions, "Established"));
        assert_eq!(status(&first, &taken, "T"), None);
        taken.remove(&first);
        let named = status(&second, &taken, "T").unwrap();
        assert!(holds(named.get("conditions").unwrap().as_array().unwrap(), "Established"));
    }
}
