//! What pods ask for and nodes have, and what is left.

use crate::pods;
use kinds::quantity::Quantity;
use kinds::read::Read;
use object::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Amounts by resource, in thousandths.
pub type Amounts = BTreeMap<String, i128>;

fn amounts(list: &Map) -> Amounts {
    let amount = |v: &Value| match v {
        Value::Int(n) => Some(i128::from(*n) * 1000),
        other => Quantity::parse(other.as_str()?).ok().map(|q| i128::from(q.milli_value())),
    };
    list.iter().filter_map(|(name, value)| Some((name.to_owned(), amount(value)?))).collect()
}

/// What a pod asks for: the sum of its containers, or what its largest initial one asks for.
pub fn of_pod(pod: &Value) -> Amounts {
    let spec = pod.sub("spec");
    let requests = |c: &Value| amounts(c.sub("resources").members("requests"));
    let mut out = Amounts::new();
    let add = |out: &mut Amounts, more: Amounts| {
        more.into_iter().for_each(|(name, amount)| *out.entry(name).or_default() += amount);
    };
    let (sidecars, initial): (Vec<&Value>, Vec<&Value>) =
        spec.list("initContainers").iter().partition(|c| c.text("restartPolicy") == "Always");
    spec.list("containers").iter().chain(sidecars).for_each(|c| add(&mut out, requests(c)));
    for container in initial {
        for (name, amount) in requests(container) {
            let held = out.entry(name).or_default();
            *held = amount.max(*held);
        }
    }
    add(&mut out, amounts(spec.members("overhead")));
    out
}

/// What a node has for pods.
pub fn of_node(node: &Value) -> Amounts {
    let status = node.sub("status");
    let allocatable = status.members("allocatable");
    amounts(if allocatable.is_empty() { status.members("capacity") } else { allocatable })
}

/// What pods take of nodes.
#[derive(Debug, Default)]
pub struct Ledger {
    pods: HashMap<String, (String, Amounts)>,
    nodes: HashMap<String, Amounts>,
}

impl Ledger {
    /// A pod is as it is now.
    pub fn put(&mut self, pod: &Value) {
        let node = pod.sub("spec").text("nodeName");
        if node.is_empty() || pods::is_terminal(pod) {
            // One that was given a node just now may not show it yet.
            if pods::is_terminal(pod) {
                self.remove(pod.meta_str("uid"));
            }
            return;
        }
        self.assign(pod, node);
    }

    /// A pod is given a node.
    pub fn assign(&mut self, pod: &Value, node: &str) {
        let uid = pod.meta_str("uid");
        if self.pods.get(uid).is_some_and(|(held, _)| held == node) {
            return;
        }
        self.remove(uid);
        let mut taken = of_pod(pod);
        taken.insert("pods".to_owned(), 1000);
        let sums = self.nodes.entry(node.to_owned()).or_default();
        taken.iter().for_each(|(name, amount)| *sums.entry(name.clone()).or_default() += amount);
        self.pods.insert(uid.to_owned(), (node.to_owned(), taken));
    }

    /// A pod is gone.
    pub fn remove(&mut self, uid: &str) {
        let Some((node, taken)) = self.pods.remove(uid) else { return };
        let Some(sums) = self.nodes.get_mut(&node) else { return };
        for (name, amount) in taken {
            *sums.entry(name).or_default() -= amount;
        }
    }

    /// How much of a resource is taken of a node.
    pub fn taken(&self, node: &str, resource: &str) -> i128 {
        self.nodes.get(node).and_then(|sums| sums.get(resource)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn pods_take_what_they_ask_for() {
        let pod = json::parse(
            br#"{"metadata":{"uid":"u"},"spec":{"nodeName":"n","overhead":{"cpu":"10m"},
            "containers":[{"resources":{"requests":{"cpu":"100m","memory":"1Ki"}}},{"resources":{"requests":{"cpu":1}}}],
            "initContainers":[{"resources":{"requests":{"memory":"2Ki"}}},{"restartPolicy":"Always","resources":{"requests":{"cpu":"5m"}}}]}}"#,
        )
        .unwrap();
        let asked = of_pod(&pod);
        assert_eq!((asked["cpu"], asked["memory"]), (1115, 2048 * 1000));
        let mut ledger = Ledger::default();
        ledger.put(&pod);
        ledger.put(&pod);
        assert_eq!((ledger.taken("n", "cpu"), ledger.taken("n", "pods")), (1115, 1000));
        ledger.remove("u");
        assert_eq!(ledger.taken("n", "cpu"), 0);
    }
}
