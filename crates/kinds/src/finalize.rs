//! The subresource `finalize` of namespaces: the finalizers in their spec change, their status does not.

use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Map, Value, metadata, names};

/// Keeps the status that a namespace has.
pub fn prepare(object: &mut Value, old: &Value) {
    object.set_at(&["status"], old.get("status").cloned().unwrap_or_default());
}

/// Checks such a change, metadata first.
pub fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let empty = Map::new();
    let (meta, before) = (new.metadata().unwrap_or(&empty), old.metadata().unwrap_or(&empty));
    let mut out = metadata::validate_update(meta, before, &Path::ROOT.child("metadata"));
    let spec = Path::ROOT.child("spec");
    let path = spec.child("finalizers");
    for (i, finalizer) in new.sub("spec").strings("finalizers").into_iter().enumerate() {
        finalizer_name(finalizer, &path.index(i), &mut out);
    }
    out
}

/// Checks the name of a finalizer: one with a domain, or one of Kubernetes' own.
pub(crate) fn finalizer_name(finalizer: &str, path: &Path<'_>, out: &mut Errors) {
    check::name(names::qualified_name, finalizer, path, out);
    check_domain(finalizer, path, out);
}

/// Checks that a finalizer has a domain where it is none of Kubernetes' own.
pub(crate) fn check_domain(finalizer: &str, path: &Path<'_>, out: &mut Errors) {
    if !metadata::is_qualified_finalizer(finalizer) {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        out.push(FieldError::invalid(path, finalizer, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn finalizers_in_a_namespace_have_a_domain_or_are_known() {
        const WHY: &str = "name is neither a standard finalizer name nor is it fully qualified";
        for (finalizers, wanted) in [
            (r#"["kubernetes","a.io/b"]"#, vec![]),
            ("[]", vec![]),
            (r#"["kubernetes","mine"]"#, vec![format!("spec.finalizers[1]: Invalid value: \"mine\": {WHY}")]),
        ] {
            let parse = |text: String| json::parse(text.as_bytes()).unwrap();
            let new = parse(format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"finalizers":{finalizers}}}}}"#));
            let errors = validate(&new, &new);
            let found: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.body())).collect();
            let found: Vec<String> = found.into_iter().filter(|e| e.starts_with("spec")).collect();
            assert_eq!(found, wanted, "{finalizers}");
        }
    }
}
