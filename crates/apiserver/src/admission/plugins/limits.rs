//! LimitRanger: finds the limit ranges of a namespace.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use kinds::admission::limits;
use object::Value;

async fn ranges(asked: Asked<'_>) -> Outcome<Vec<Value>> {
    asked.list(&format!("/registry/limitranges/{}/", asked.namespace))
}

/// Gives a new pod the defaults of its namespace.
pub(super) async fn set_defaults(asked: Asked<'_>, pod: &mut Value) -> Outcome<()> {
    if asked.creates() && asked.has(Plugin::LimitRanger) {
        ranges(asked).await?.iter().for_each(|range| limits::set_defaults(range, pod));
    }
    Ok(())
}

/// Refuses what is out of range. Of pods only their creation and resizing matter.
pub(super) async fn check(asked: Asked<'_>, object: &Value) -> Outcome<()> {
    let plural = asked.resource.plural.as_str();
    let matters = asked.creates()
        || match plural {
            "pods" => asked.subresource == "resize",
            _ => asked.updates(),
        };
    let going = asked.old.is_some_and(|old| !old.meta_str("deletionTimestamp").is_empty());
    if !matters || going || !asked.has(Plugin::LimitRanger) {
        return Ok(());
    }
    for range in ranges(asked).await? {
        let mut violations = limits::violations(&range, plural, object);
        let mut seen = std::collections::HashSet::new();
        violations.retain(|v| seen.insert(v.clone()));
        if !violations.is_empty() {
            return Err(asked.forbid(object, &object::field::aggregate(&violations)));
        }
    }
    Ok(())
}
