//! Names of a definition: which of them it gets, given those that others of its group have.

use super::condition::Condition;
use object::{Map, Value};
use std::collections::HashSet;

/// What comes of a definition's wish for names.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// The new `status.acceptedNames`: each name that is free, and for the others the one it had.
    pub names: Value,
    /// The condition `NamesAccepted`.
    pub accepted: Condition,
    /// The condition `Established` as it is before the definition is served: what it was once it was true.
    pub established: Condition,
}

/// Decides about the names of `definition`. `group` are the definitions of its group; their accepted names are taken.
/// Whether `definition` itself is among them does not matter.
pub fn accept_names<'d>(definition: &Value, group: impl IntoIterator<Item = &'d Value>) -> Acceptance {
    static NONE: Map = Map::new();
    let (mut resources, mut kinds) = (HashSet::new(), HashSet::new());
    let others: Vec<&Value> = group.into_iter().collect();
    for names in others.iter().copied().chain([definition]).filter_map(|d| d.at(&["status", "acceptedNames"])) {
        resources.extend(["plural", "singular"].iter().filter_map(|key| names.str_at(&[key])));
        resources.extend(list(names.get("shortNames")));
        kinds.extend(["kind", "listKind"].iter().filter_map(|key| names.str_at(&[key])));
    }
    let spec = definition.at(&["spec", "names"]).and_then(Value::as_object).unwrap_or(&NONE);
    let had = definition.at(&["status", "acceptedNames"]).and_then(Value::as_object).unwrap_or(&NONE);
    let mut names = had.clone();
    let mut conflict: Option<(&str, String)> = None;
    let text = |names: &Map, key: &str| names.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for (key, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let used = if key.ends_with("ind") { &kinds } else { &resources };
        let complaints: Vec<String> = if key == "shortNames" {
            let own: Vec<&str> = list(had.get(key)).collect();
            list(spec.get(key)).filter(|name| !own.contains(name) && used.contains(name)).map(in_use).collect()
        } else {
            let wanted = text(spec, key);
            let taken = wanted != text(had, key) && used.contains(wanted.as_str());
            if taken { vec![in_use(&wanted)] } else { Vec::new() }
        };
        if complaints.is_empty() {
            take(&mut names, spec, key);
        } else {
            // Of several conflicts the last one is told, as upstream does.
            conflict = Some((reason, object::field::aggregate(&complaints)));
        }
    }
    take(&mut names, spec, "categories");
    let accepted = match conflict {
        None => Condition::new("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => Condition::new("NamesAccepted", false, reason, &message),
    };
    let old = super::condition(definition, "Established").map(Condition::from_value);
    let mut established =
        old.unwrap_or_else(|| Condition::new("Established", false, "NotAccepted", "not all names are accepted"));
    if !established.is_true() && accepted.is_true() {
        established = Condition::new("Established", false, "Installing", "the initial names have been accepted");
    }
    Acceptance { names: Value::Object(names), accepted, established }
}

/// The condition `Established` of a definition that is served.
pub fn established() -> Condition {
    Condition::new("Established", true, "InitialNamesAccepted", "the initial names have been accepted")
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", object::go::quote(name))
}

fn take(names: &mut Map, spec: &Map, key: &str) {
    match spec.get(key) {
        Some(value) => {
            names.insert(key, value.clone());
        }
        None => {
            names.remove(key);
        }
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn free_names_are_taken_and_conflicts_are_told() {
        let other = json::parse(
            br#"{"status":{"acceptedNames":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList","shortNames":["f"]}}}"#,
        )
        .unwrap();
        let own = json::parse(
            br#"{"spec":{"names":{"plural":"bars","singular":"foo","kind":"Bar","listKind":"FooList","shortNames":["f","b"],"categories":["all"]}},"status":{"acceptedNames":{"plural":"","kind":""}}}"#,
        )
        .unwrap();
        let free = accept_names(&own, []);
        assert!(free.accepted.is_true());
        assert_eq!(&free.names, own.at(&["spec", "names"]).unwrap());
        let taken = accept_names(&own, [&other]);
        assert_eq!(json::to_string(&taken.names), r#"{"categories":["all"],"kind":"Bar","plural":"bars"}"#);
        assert_eq!(taken.accepted.reason, "ListKindConflict");
        assert_eq!(taken.accepted.message, "\"FooList\" is already in use");
        assert_eq!(taken.established.reason, "NotAccepted");
    }
}
