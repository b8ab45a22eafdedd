//! The objects that must be what they are, so that no request is without a place.

use super::bootstrap::{self, MANDATORY};
use crate::check::Errors;
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};

/// Checks a FlowSchema; `path` is that of its specification.
pub(super) fn schema(object: &Value, path: &Path<'_>, out: &mut Errors) {
    let (name, spec) = (object.name(), object.sub("spec"));
    if MANDATORY.contains(&name) && fixed(bootstrap::flow_schemas(), name).is_some_and(|fixed| fixed != *spec) {
        out.push(FieldError::invalid(path, spec, format!("spec of '{name}' must equal the fixed value")));
    }
}

/// Checks a PriorityLevelConfiguration; how much an exempt one lends is for administrators to say.
pub(super) fn level(object: &Value, path: &Path<'_>, out: &mut Errors) {
    let name = object.name();
    if !MANDATORY.contains(&name) {
        return;
    }
    let Some(mut fixed) = fixed(bootstrap::priority_levels(), name) else { return };
    let (mut spec, mut except) = (object.sub("spec").clone(), "");
    if name == "exempt" {
        except = " except the 'spec.exempt' field";
        for spec in [&mut fixed, &mut spec] {
            spec.remove_at(&["exempt"]);
        }
    }
    if fixed != spec {
        let why = format!("spec of '{name}'{except} must equal the fixed value");
        out.push(FieldError::invalid(path, object.sub("spec"), why));
    }
}

fn fixed(objects: Vec<Value>, name: &str) -> Option<Value> {
    objects.into_iter().find(|object| object.name() == name).map(|object| object.sub("spec").clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_cluster_needs_stays_as_it_is() {
        let complaints = |plural: &str, objects: Vec<Value>, name: &str, at: &[&str], value: Value| {
            let mut object = objects.into_iter().find(|o| o.name() == name).unwrap();
            object.set_at(at, value);
            let (resource, _) = crate::find("flowcontrol.apiserver.k8s.io", "v1", plural).unwrap();
            let found = resource.validate(&object);
            found.iter().map(|e| e.detail.clone()).collect::<Vec<_>>()
        };
        let schema = |name: &str, precedence: i64| {
            complaints(
                "flowschemas",
                bootstrap::flow_schemas(),
                name,
                &["spec", "matchingPrecedence"],
                precedence.into(),
            )
        };
        assert_eq!(schema("catch-all", 9000), ["spec of 'catch-all' must equal the fixed value"]);
        assert_eq!(schema("service-accounts", 8000), [""; 0]);
        let level = |name: &str, at: &[&str], number: i64| {
            complaints("prioritylevelconfigurations", bootstrap::priority_levels(), name, at, number.into())
        };
        let shares = ["spec", "limited", "nominalConcurrencyShares"];
        assert_eq!(level("catch-all", &shares, 6), ["spec of 'catch-all' must equal the fixed value"]);
        assert_eq!(level("system", &shares, 6), [""; 0]);
        assert_eq!(level("exempt", &["spec", "exempt", "lendablePercent"], 6), [""; 0]);
    }
}
