//! The resources of the group `coordination.k8s.io`.

use crate::check::{self, Errors};
use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::Path;

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
    out
}
