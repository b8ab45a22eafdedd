//! Priority, DefaultTolerationSeconds, TaintNodesByCondition.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use kinds::admission::additions;
use object::{Value, map};

/// What the keys of priority classes start with.
const CLASSES: &str = "/registry/priorityclasses/";

/// Gives a new pod the priority of its class, or of the default class; a changed one keeps what it has.
pub(super) async fn prioritise(asked: Asked<'_>, pod: &mut Value) -> Outcome<()> {
    if !asked.has(Plugin::Priority) || !asked.subresource.is_empty() {
        return Ok(());
    }
    if let Some(old) = asked.old {
        for key in ["priority", "preemptionPolicy"] {
            if let (None, Some(held)) = (pod.at(&["spec", key]), old.at(&["spec", key])) {
                pod.set_at(&["spec", key], held.clone());
            }
        }
        return Ok(());
    }
    let name = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default().to_owned();
    let class = match name.as_str() {
        "" => default_class(asked).await?,
        name => {
            let class = match asked.get(&format!("{CLASSES}{name}")).await? {
                None => kinds::system_priority(name)
                    .map(|value| map! { "metadata" => map! { "name" => name }, "value" => value }.into()),
                class => class,
            };
            if class.is_none() {
                return Err(asked.forbid(pod, &format!("no PriorityClass with name {name} was found")));
            }
            class
        }
    };
    additions::priority(pod, class.as_ref()).map_err(|why| asked.forbid(pod, &why))
}

/// The class of pods that name none: of those marked so, the one of the lowest value.
async fn default_class(asked: Asked<'_>) -> Outcome<Option<Value>> {
    let classes = asked.list(CLASSES)?.into_iter();
    let defaults = classes.filter(|c| c.get("globalDefault").and_then(Value::as_bool) == Some(true));
    Ok(defaults.min_by_key(|c| c.get("value").and_then(Value::as_int).unwrap_or(0)))
}

/// Lets only one class be the default.
pub(super) async fn check_class(asked: Asked<'_>, class: &Value) -> Outcome<()> {
    let is_default = class.get("globalDefault").and_then(Value::as_bool) == Some(true);
    if !is_default || !asked.has(Plugin::Priority) {
        return Ok(());
    }
    match default_class(asked).await? {
        Some(held) if asked.old.is_none() || held.name() != class.name() => {
            let held = held.name();
            let why = format!("PriorityClass {held} is already marked as default. Only one default can exist");
            Err(asked.forbid(class, &why))
        }
        _ => Ok(()),
    }
}

/// Lets a pod stay for a while on a node that is not ready or not reachable.
pub(super) fn tolerate(asked: Asked<'_>, pod: &mut Value) {
    if asked.subresource.is_empty() && asked.has(Plugin::DefaultTolerationSeconds) {
        additions::tolerate(pod);
    }
}

/// Keeps pods away from a new node until somebody says that it is ready.
pub(super) fn taint(asked: Asked<'_>, node: &mut Value) {
    if asked.creates() && asked.has(Plugin::TaintNodesByCondition) {
        additions::taint(node);
    }
}
