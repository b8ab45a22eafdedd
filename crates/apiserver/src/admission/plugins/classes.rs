//! DefaultStorageClass and DefaultIngressClass: claims and ingresses that name no class get the default one.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use object::Value;

/// Gives a new claim the default class of storage.
pub(super) async fn default_storage(asked: Asked<'_>, claim: &mut Value) -> Outcome<()> {
    const MARKS: [&str; 2] =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let named = claim.at(&["spec", "storageClassName"]).is_some_and(|n| !n.is_null())
        || claim.at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]).is_some();
    if named || !asked.creates() || !asked.has(Plugin::DefaultStorageClass) {
        return Ok(());
    }
    if let Some(class) = default(asked.list("/registry/storageclasses/")?, &MARKS) {
        claim.set_at(&["spec", "storageClassName"], class.into());
    }
    Ok(())
}

/// Gives a new ingress the default class.
pub(super) async fn default_ingress(asked: Asked<'_>, ingress: &mut Value) -> Outcome<()> {
    let named = ingress.at(&["spec", "ingressClassName"]).is_some_and(|n| !n.is_null())
        || ingress.at(&["metadata", "annotations", "kubernetes.io/ingress.class"]).is_some();
    if named || !asked.creates() || !asked.has(Plugin::DefaultIngressClass) {
        return Ok(());
    }
    let classes = asked.list("/registry/ingressclasses/")?;
    if let Some(class) = default(classes, &["ingressclass.kubernetes.io/is-default-class"]) {
        ingress.set_at(&["spec", "ingressClassName"], class.into());
    }
    Ok(())
}

/// The newest of the classes that are marked; of those of one age the first by name.
fn default(classes: Vec<Value>, marks: &[&str]) -> Option<String> {
    let marked = |class: &Value| marks.iter().any(|m| class.str_at(&["metadata", "annotations", m]) == Some("true"));
    let order =
        |class: &Value| (std::cmp::Reverse(class.meta_str("creationTimestamp").to_owned()), class.name().to_owned());
    classes.into_iter().filter(marked).min_by_key(order).map(|class| class.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn the_newest_default_wins() {
        let class = |name: &str, time: &str, mark: &str| {
            let text = format!(
                r#"{{"metadata":{{"name":"{name}","creationTimestamp":"{time}","annotations":{{"m":"{mark}"}}}}}}"#
            );
            json::parse(text.as_bytes()).unwrap()
        };
        let classes = vec![
            class("a", "2024-01-01T00:00:00Z", "true"),
            class("c", "2025-01-01T00:00:00Z", "true"),
            class("b", "2025-01-01T00:00:00Z", "true"),
            class("d", "2026-01-01T00:00:00Z", "false"),
        ];
        assert_eq!(default(classes, &["m"]).as_deref(), Some("b"));
        assert_eq!(default(Vec::new(), &["m"]), None);
    }
}
