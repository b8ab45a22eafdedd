//! ServiceAccounts.

use crate::read::{Read, list_mut};
use crate::resource::{Column, Resource, Strategy, Subresource, Version};
use crate::table;
use object::{Map, Value};

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
    strategy: Strategy {
        returns_deleted: true,
        prepare_create: |object, _| keep_names(object),
        prepare_update: |object, _, _| keep_names(object),
        warnings,
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "",
        "ServiceAccount",
        "serviceaccounts",
        &[Version::stored("v1", "io.k8s.api.core.v1.ServiceAccount")],
    )
};

/// A reference to a secret is its name.
fn keep_names(object: &mut Value) {
    for secret in list_mut(object, "secrets") {
        let mut kept = Map::new();
        if !secret.text("name").is_empty() {
            kept.insert("name", secret.text("name"));
        }
        *secret = Value::Object(kept);
    }
}

/// The annotation that lets pods mount the account's own secrets only is on its way out.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |object: &Value| object.annotation(ENFORCE).is_some();
    if !has(object) || old.is_some_and(has) {
        return Vec::new();
    }
    let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
    vec![format!("metadata.annotations[{ENFORCE}]: {why}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn references_to_secrets_are_names() {
        let mut object =
            json::parse(br#"{"secrets":[{"kind":"Secret","name":"a","namespace":"n"},{"uid":"u"}]}"#).unwrap();
        keep_names(&mut object);
        assert_eq!(json::to_string(&object), r#"{"secrets":[{"name":"a"},{}]}"#);
    }

    #[test]
    fn who_adds_the_old_annotation_is_warned() {
        let old = json::parse(br#"{"metadata":{}}"#).unwrap();
        let new = json::parse(br#"{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}"#);
        let new = new.unwrap();
        let why = "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate \
                   namespaces to isolate access to mounted secrets";
        for (object, old, wanted) in
            [(&new, None, &[why][..]), (&new, Some(&old), &[why]), (&new, Some(&new), &[]), (&old, None, &[])]
        {
            assert_eq!(warnings(object, old), wanted);
        }
    }
}
