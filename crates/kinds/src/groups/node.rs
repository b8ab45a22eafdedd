//! The resources of the group `node.k8s.io`.

use crate::check::{self, Errors};
use crate::pod;
use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Version};
use crate::table;
use object::field::Path;
use object::{Value, map, metadata, names};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    namespaced: false,
    columns: &[Column::NAME, Column::new("Handler", "string"), Column::AGE],
    cells: |object, now| vec![object.name().into(), object.text("handler").into(), table::age(object, now)],
    strategy: Strategy {
        unconditional_update: false,
        validate,
        validate_update,
        warnings: |object, _| {
            let labels = object.sub("scheduling").members("nodeSelector").keys();
            labels.filter_map(|key| Some(format!("scheduling.nodeSelector: {}", pod::old_label(key)?))).collect()
        },
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "node.k8s.io",
        "RuntimeClass",
        "runtimeclasses",
        &[Version::stored("v1", "io.k8s.api.node.v1.RuntimeClass")],
    )
}];

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    check::name(names::dns1123_label, object.text("handler"), &Path::ROOT.child("handler"), &mut out);
    if object.has("overhead") {
        // Upstream takes the overhead for the limits of a container.
        let limits = map! { "limits" => object.sub("overhead").sub("podFixed").clone() };
        pod::resources::container_resources(&limits.into(), &Path::ROOT.child("overhead"), &mut out);
    }
    let scheduling = object.sub("scheduling");
    let path = Path::ROOT.child("scheduling");
    out.extend(metadata::validate_labels(scheduling.members("nodeSelector"), &path.child("nodeSelector")));
    pod::tolerations(scheduling.list("tolerations"), &path.child("tolerations"), &mut out);
    out
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    check::immutable(new, old, "handler", &Path::ROOT, &mut out);
    out
}
