//! The subresource `ephemeralcontainers` of pods: containers are added, nothing else changes.

use crate::check::Errors;
use crate::pod;
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, go};

/// Takes from a sent pod nothing but its ephemeral containers: the rest stays as in `old`. The metadata that says who
/// writes which version is kept.
pub fn prepare(object: &mut Value, old: &Value) {
    take(object, old, |sent, kept| {
        put(kept, &["spec", "ephemeralContainers"], sent.at(&["spec", "ephemeralContainers"]).cloned());
    });
}

/// Takes from a sent pod what `copy` takes (from the first pod to the second) and the metadata that says who writes
/// which version; the rest stays as in `old`. The generation counts changes of the spec.
pub(crate) fn take(object: &mut Value, old: &Value, copy: impl FnOnce(&Value, &mut Value)) {
    let mut kept = old.clone();
    copy(object, &mut kept);
    for key in ["managedFields", "resourceVersion"] {
        put(&mut kept, &["metadata", key], object.remove_at(&["metadata", key]));
    }
    if kept.sub("spec") != old.sub("spec") {
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0);
        kept.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
    *object = kept;
}

fn put(object: &mut Value, path: &[&str], value: Option<Value>) {
    match value {
        Some(value) => object.set_at(path, value),
        None => {
            object.remove_at(path);
        }
    }
}

/// Checks such a change: the pod as a whole, and that no container that was there is gone or another.
pub fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::new();
    pod::validate_pod(new, &mut out);
    let spec = Path::ROOT.child("spec");
    let path = spec.child("ephemeralContainers");
    let now = new.sub("spec").list("ephemeralContainers");
    for before in old.sub("spec").list("ephemeralContainers") {
        let name = go::quote(before.text("name"));
        match now.iter().find(|c| c.text("name") == before.text("name")) {
            None => out.push(FieldError::forbidden(
                &path,
                format!("existing ephemeral containers {name} may not be removed\n"),
            )),
            Some(container) if container != before => out.push(FieldError::forbidden(
                &path,
                format!("existing ephemeral containers {name} may not be changed\n"),
            )),
            Some(_) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_ephemeral_containers_are_taken() {
        let old = value(r#"{"metadata":{"generation":1,"name":"p"},"spec":{"nodeName":"n"}}"#);
        let mut new = value(
            r#"{"metadata":{"name":"p","resourceVersion":"7"},"spec":{"ephemeralContainers":[{"name":"e"}],"nodeName":"m"}}"#,
        );
        prepare(&mut new, &old);
        let wanted = r#"{"metadata":{"generation":2,"name":"p","resourceVersion":"7"},"spec":{"ephemeralContainers":[{"name":"e"}],"nodeName":"n"}}"#;
        assert_eq!(json::to_string(&new), wanted);
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        let old = value(r#"{"spec":{"ephemeralContainers":[{"image":"i","name":"e"}]}}"#);
        let gone = validate(&value(r#"{"spec":{}}"#), &old);
        assert!(gone.iter().any(|e| e.body().contains("existing ephemeral containers \"e\" may not be removed")));
        let other = validate(&value(r#"{"spec":{"ephemeralContainers":[{"image":"j","name":"e"}]}}"#), &old);
        assert!(other.iter().any(|e| e.body().contains("existing ephemeral containers \"e\" may not be changed")));
    }
}
