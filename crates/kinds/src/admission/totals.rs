//! What a pod asks for as a whole.

use crate::quantity::Quantity;
use crate::read::Read;
use object::{Map, Value};
use std::collections::BTreeMap;

/// Amounts by the name of the resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a list of resources; what is no quantity is left out.
pub(crate) fn amounts(list: &Map) -> Amounts {
    list.iter().filter_map(|(name, value)| Some((name.to_owned(), Quantity::parse(value.as_str()?).ok()?))).collect()
}

/// The sum, written as the first is unless that is zero.
pub(crate) fn sum(a: Quantity, b: Quantity) -> Quantity {
    if a.sign().is_eq() { b } else { a.plus(b) }
}

/// Adds amounts up.
pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = to.get(name).map_or(*amount, |held| sum(*held, *amount));
        to.insert(name.clone(), total);
    }
}

/// Raises amounts to others where these are more.
pub(crate) fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|held| amount > held) {
            to.insert(name.clone(), *amount);
        }
    }
}

/// The sum over containers, or what its start needs if that is more. `of` gives what a container asks for.
pub(crate) fn total(spec: &Value, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut all = Amounts::new();
    for container in spec.list("containers") {
        add(&mut all, &of(container));
    }
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for container in spec.list("initContainers") {
        let mut own = of(container);
        if container.text("restartPolicy") == "Always" {
            add(&mut all, &own);
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        raise(&mut start, &own);
    }
    raise(&mut all, &start);
    all
}

/// A part of a container's resources: `requests` or `limits`.
pub(crate) fn of_container(container: &Value, part: &str) -> Amounts {
    amounts(container.sub("resources").members(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_pod_needs_what_runs_at_once() {
        let spec = json::parse(
            br#"{"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}],
            "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
            {"resources":{"requests":{"cpu":"2","memory":"1Gi"}}}]}"#,
        )
        .unwrap();
        let all = total(&spec, |c| of_container(c, "requests"));
        let shown: Vec<String> = all.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(shown, ["cpu=3", "memory=1Gi"]);
    }
}
