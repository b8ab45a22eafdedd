//! The schemas of definitions' resources as OpenAPI publishes them.

use crate::catalogue::{Definition, Resource};
use kinds::definitions::Dialect;
use object::Value;
use schema::openapi::{self, publish};

/// The name of a schema: the group's parts in reverse, the version and the kind.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.rsplit('.').collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The schemas of a resource's objects and of their lists, by name.
pub(super) fn schemas(
    definition: &Definition,
    resource: &Resource,
    dialect: Dialect,
) -> impl Iterator<Item = (String, Value)> {
    let dialect = match dialect {
        Dialect::V2 => openapi::Dialect::V2,
        Dialect::V3 => openapi::Dialect::V3,
    };
    let published = publish(&definition.object(), &resource.version, dialect);
    published.into_iter().flat_map(|p| [(p.name, p.object), (p.list_name, p.list)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reversed_groups() {
        assert_eq!(name("example.com", "v1", "Foo"), "com.example.v1.Foo");
    }
}
