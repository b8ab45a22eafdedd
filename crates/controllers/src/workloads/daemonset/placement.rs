//! On which nodes the pods of a DaemonSet run.

use super::super::{meta, pods};
use crate::fit::{NODE_NAME, is_selected, tolerates};
use kinds::read::Read;
use object::{Value, map};

/// Taints of nodes that a DaemonSet's pods bear: key and effect.
const BORNE: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// A taint that only pods in the node's own network bear.
const WITHOUT_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Whether a pod runs on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// It is made if it is not there.
    pub(super) should_run: bool,
    /// It may stay if it is there.
    pub(super) may_stay: bool,
}

/// What a DaemonSet asks of nodes.
pub(super) struct Placement<'d> {
    spec: &'d Value,
    tolerations: Vec<Value>,
}

impl<'d> Placement<'d> {
    /// What this DaemonSet asks.
    pub(super) fn new(set: &'d Value) -> Self {
        let spec = meta::template(set).sub("spec");
        Placement { spec, tolerations: tolerations(spec) }
    }

    /// Whether the pod runs on this node.
    pub(super) fn on(&self, node: &Value) -> Fit {
        let wanted = self.spec.text("nodeName");
        if !(wanted.is_empty() || wanted == node.name()) || !is_selected(self.spec, node) {
            return Fit { should_run: false, may_stay: false };
        }
        let taints = meta::spec(node).list("taints");
        let borne = |taint: &Value| self.tolerations.iter().any(|t| tolerates(t, taint));
        let bears = |effects: &[&str]| taints.iter().filter(|taint| effects.contains(&taint.text("effect"))).all(borne);
        Fit { should_run: bears(&["NoSchedule", "NoExecute"]), may_stay: bears(&["NoExecute"]) }
    }
}

/// The tolerations of a spec of pods with those that every DaemonSet's pods have.
pub(super) fn tolerations(spec: &Value) -> Vec<Value> {
    let mut all = spec.list("tolerations").to_vec();
    let host = spec.flag("hostNetwork").then_some(WITHOUT_NETWORK);
    for (key, effect) in BORNE.into_iter().chain(host) {
        let new: Value = map! { "key" => key, "operator" => "Exists", "effect" => effect }.into();
        let same = |t: &Value| ["key", "operator", "effect", "value"].iter().all(|f| t.text(f) == new.text(f));
        if all.iter().any(same) {
            all.iter_mut().filter(|t| same(t)).for_each(|t| t.clone_from(&new));
        } else {
            all.push(new);
        }
    }
    all
}

/// The affinity of a pod that may run on one node only.
pub(super) fn bind(affinity: &Value, node: &str) -> Value {
    let expression = map! { "key" => NODE_NAME, "operator" => "In", "values" => vec![node] };
    let term = map! { "matchFields" => vec![expression] };
    let mut affinity = affinity.clone();
    let path = ["nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    affinity.set_at(&path, vec![term].into());
    affinity
}

/// The node that a pod runs on, or may only run on.
pub(super) fn target(pod: &Value) -> Option<&str> {
    match pods::node(pod) {
        "" => {}
        node => return Some(node),
    }
    let affinity = meta::spec(pod).sub("affinity").sub("nodeAffinity");
    let terms = affinity.sub("requiredDuringSchedulingIgnoredDuringExecution").list("nodeSelectorTerms");
    terms.iter().flat_map(|term| term.list("matchFields")).find_map(|expression| {
        let one = expression.text("key") == NODE_NAME && expression.text("operator") == "In";
        match expression.list("values") {
            [node] if one => node.as_str(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn set(spec: &str) -> Value {
        value(&format!(r#"{{"spec":{{"template":{{"spec":{spec}}}}}}}"#))
    }

    fn node(labels: &str, taints: &str) -> Value {
        value(&format!(r#"{{"metadata":{{"name":"n1","labels":{labels}}},"spec":{{"taints":{taints}}}}}"#))
    }

    fn fit(spec: &str, node: &Value) -> (bool, bool) {
        let set = set(spec);
        let fit = Placement::new(&set).on(node);
        (fit.should_run, fit.may_stay)
    }

    #[test]
    fn nodes_are_chosen_by_name_and_labels() {
        let n = node(r#"{"a":"b"}"#, "[]");
        for (spec, fits) in [
            ("{}", true),
            (r#"{"nodeName":"n1"}"#, true),
            (r#"{"nodeName":"n2"}"#, false),
            (r#"{"nodeSelector":{"a":"b"}}"#, true),
            (r#"{"nodeSelector":{"a":"c"}}"#, false),
        ] {
            assert_eq!(fit(spec, &n), (fits, fits), "{spec}");
        }
    }

    #[test]
    fn taints_keep_pods_away_or_drive_them_out() {
        let taint = |key: &str, effect: &str| node("{}", &format!(r#"[{{"key":"{key}","effect":"{effect}"}}]"#));
        for (node, fits) in [
            (taint("x", "NoSchedule"), (false, true)),
            (taint("x", "NoExecute"), (false, false)),
            (taint("x", "PreferNoSchedule"), (true, true)),
            (taint("node.kubernetes.io/not-ready", "NoExecute"), (true, true)),
            (taint("node.kubernetes.io/not-ready", "NoSchedule"), (false, true)),
            (taint("node.kubernetes.io/unschedulable", "NoSchedule"), (true, true)),
            (taint("node.kubernetes.io/network-unavailable", "NoSchedule"), (false, true)),
        ] {
            assert_eq!(fit("{}", &node), fits, "{node:?}");
        }
        let host = r#"{"hostNetwork":true}"#;
        assert_eq!(fit(host, &taint("node.kubernetes.io/network-unavailable", "NoSchedule")), (true, true));
        assert_eq!(fit(r#"{"tolerations":[{"operator":"Exists"}]}"#, &taint("x", "NoExecute")), (true, true));
        assert_eq!(fit(r#"{"tolerations":[{"key":"x","value":"v"}]}"#, &taint("x", "NoExecute")), (false, false));
    }

    #[test]
    fn own_tolerations_are_kept_and_none_is_there_twice() {
        let spec = value(
            r#"{"tolerations":[{"key":"x","operator":"Exists"},
            {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}]}"#,
        );
        let all = tolerations(&spec);
        assert_eq!(all.len(), 7);
        assert!(all.iter().all(|t| !t.has("tolerationSeconds")));
    }

    #[test]
    fn pods_are_bound_by_affinity() {
        let bound: Value = map! { "spec" => map! { "affinity" => bind(&Value::Null, "n1") } }.into();
        assert_eq!(target(&bound), Some("n1"));
        assert_eq!(target(&value(r#"{"spec":{"nodeName":"n2"}}"#)), Some("n2"));
        assert_eq!(target(&value("{}")), None);
    }
}
