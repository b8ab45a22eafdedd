//! The resources of the group `coordination.k8s.io`.

use crate::check::{self, Errors};
use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::{FieldError, Path};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    columns: &[Column::NAME, Column::new("Holder", "string"), Column::AGE],
    cells: |object, now| {
        let holder = object.sub("spec").text("holderIdentity");
        vec![object.name().into(), holder.into(), table::age(object, now)]
    },
    strategy: Strategy {
        create_on_update: true,
        unconditional_update: false,
        drop_disabled,
        validate,
        validate_update: |new, _| validate(new),
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "coordination.k8s.io",
        "Lease",
        "leases",
        &[Version::stored("v1", "io.k8s.api.coordination.v1.Lease")],
    )
}];

/// Drops how candidates agree on a leader, which is off.
fn drop_disabled(object: &mut Value, old: &Value) {
    for key in ["strategy", "preferredHolder"] {
        if object.sub("spec").has(key) && !old.sub("spec").has(key) {
            object.remove_at(&["spec", key]);
        }
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    check::positive(object.sub("spec"), "leaseDurationSeconds", &path, &mut out);
    check::not_negative(object.sub("spec"), "leaseTransitions", &path, &mut out);
    let spec = object.sub("spec");
    let strategy = spec.text("strategy");
    if spec.has("strategy") {
        // Upstream names the field twice.
        let at = path.child("strategy");
        let at = at.child("strategy");
        if strategy.contains('/') {
            check::label_name(strategy, &at, &mut out);
        } else if strategy != "OldestEmulationVersion" {
            out.push(FieldError::not_supported(&at, strategy, &["OldestEmulationVersion"]));
        }
    }
    if !spec.text("preferredHolder").is_empty() && strategy.is_empty() {
        let why = "may only be specified if `strategy` is defined";
        out.push(FieldError::forbidden(&path.child("preferredHolder"), why));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn leases_say_how_candidates_agree() {
        let odd = object::names::qualified_name("a.io/-").remove(0);
        for (spec, expected) in [
            (r#""leaseDurationSeconds":1,"leaseTransitions":0"#, vec![]),
            (
                r#""leaseDurationSeconds":0,"leaseTransitions":-1"#,
                vec![
                    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0".to_owned(),
                    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0".to_owned(),
                ],
            ),
            (r#""strategy":"OldestEmulationVersion","preferredHolder":"a""#, vec![]),
            (r#""strategy":"a.io/b""#, vec![]),
            (
                r#""strategy":"x""#,
                vec![
                    r#"spec.strategy.strategy: Unsupported value: "x": supported values: "OldestEmulationVersion""#
                        .to_owned(),
                ],
            ),
            (r#""strategy":"a.io/-""#, vec![format!(r#"spec.strategy.strategy: Invalid value: "a.io/-": {odd}"#)]),
            (
                r#""preferredHolder":"a""#,
                vec!["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined".to_owned()],
            ),
        ] {
            let found = validate(&json::parse(format!(r#"{{"spec":{{{spec}}}}}"#).as_bytes()).unwrap());
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{spec}");
        }
    }
}
