//! ServiceAccounts.

use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Subresource, Version};
use crate::table;
use object::Value;

pub(super) const SERVICE_ACCOUNTS: Resource = Resource {
    short_names: &["sa"],
    subresources: &[Subresource {
        group: "authentication.k8s.io",
        version: "v1",
        ..Subresource::new("token", "TokenRequest", &["create"])
    }],
    columns: &[Column::NAME, Column::new("Secrets", "string"), Column::AGE],
    cells: |object, now| {
        let count = object.list("secrets").len() as i64;
        vec![object.name().into(), Value::Int(count), table::age(object, now)]
    },
    strategy: Strategy { returns_deleted: true, ..Strategy::PLAIN },
    ..Resource::new(
        "",
        "ServiceAccount",
        "serviceaccounts",
        &[Version::stored("v1", "io.k8s.api.core.v1.ServiceAccount")],
    )
};
