//! The plugin `NodeRestriction`: a node, which is who `system:node:NAME` in the group `system:nodes` is, changes nothing
//! but its own objects, and those that run on it.

mod audiences;

use super::{Admission, Attributes, Phase, Step, forbidden};
use crate::Server;
use crate::admission::plugins::Plugin;
use crate::answer::{Failure, Outcome};
use crate::auth::UserInfo;
use crate::authorize::{self, Decision};
use crate::catalogue::Resource;
use crate::registry::{self, Stored};
use object::status::Qualified;
use object::{Map, Status, Value, go, json};
use std::collections::BTreeSet;

const USER: &str = "system:node:";
const GROUP: &str = "system:nodes";

/// Restricts nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeRestriction;

impl Admission for NodeRestriction {
    fn mutate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a mut Value>,
        _warnings: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        Box::pin(async move {
            if let Some(node) = node(attributes.user) {
                let request = Asked { server, attributes, object: object.as_deref(), node };
                request.check().await?;
            }
            Ok(false)
        })
    }

    fn name(&self, _: Phase) -> &'static str {
        Plugin::NodeRestriction.name()
    }

    fn concerns(&self, resource: &Resource) -> bool {
        matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            ("", "pods" | "nodes" | "persistentvolumeclaims" | "serviceaccounts")
                | ("coordination.k8s.io", "leases")
                | ("storage.k8s.io", "csinodes")
        )
    }
}

/// The name of the node that a user is; empty for one whose name says none.
fn node(user: &UserInfo) -> Option<&str> {
    user.name.strip_prefix(USER).filter(|_| user.in_group(GROUP))
}

/// A request of a node.
struct Asked<'a> {
    server: &'a Server,
    attributes: Attributes<'a>,
    object: Option<&'a Value>,
    node: &'a str,
}

impl Asked<'_> {
    async fn check(&self) -> Outcome<()> {
        let attributes = self.attributes;
        if self.node.is_empty() {
            let user = go::quote(&attributes.user.name);
            return self.refuse(&format!("could not determine node from user {user}"));
        }
        match (attributes.resource.plural.as_str(), attributes.subresource) {
            ("pods", "") => self.check_pod().await,
            ("pods", "status") => self.check_pod_status(),
            ("pods", "eviction") => self.check_eviction().await,
            ("pods", other) => {
                let other = go::quote(other);
                self.refuse(&format!("unexpected pod subresource {other}, only 'status' and 'eviction' are allowed"))
            }
            ("nodes", _) => self.check_node(),
            ("persistentvolumeclaims", "status") => self.check_claim_status(),
            ("persistentvolumeclaims", _) => self.refuse("may only update PVC status"),
            ("serviceaccounts", "token") if attributes.operation == "CREATE" => self.check_token().await,
            ("leases", _) if attributes.namespace != "kube-node-lease" => {
                self.refuse("can only access leases in the \"kube-node-lease\" system namespace")
            }
            ("leases", _) if self.name() != self.node => {
                self.refuse("can only access node lease with the same name as the requesting node")
            }
            ("csinodes", _) if self.name() != self.node => {
                self.refuse("can only access CSINode with the same name as the requesting node")
            }
            _ => Ok(()),
        }
    }

    fn refuse(&self, why: &str) -> Outcome<()> {
        Err(forbidden(self.attributes, self.object, why).into())
    }

    /// Refuses in words that name the node.
    fn deny(&self, why: &str) -> Outcome<()> {
        self.refuse(&format!("node {} {why}", go::quote(self.node)))
    }

    /// The name of what is written.
    fn name(&self) -> &str {
        match self.attributes.name {
            "" => self.object.map(Value::name).unwrap_or_default(),
            name => name,
        }
    }

    /// An object of the core group; 404 if it is not there.
    async fn get(&self, plural: &str, namespace: &str, name: &str) -> Outcome<Value> {
        let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        let entry = self.server.store.get(&format!("/registry/{plural}/{place}"), None).await;
        let stored = entry.map_err(registry::read_failure)?.and_then(|entry| Stored::read(entry.value));
        let missing = || Failure::from(Status::not_found(Qualified { group: "", name: plural }, name));
        stored.map(|stored| stored.value(0)).ok_or_else(missing)
    }

    async fn check_pod(&self) -> Outcome<()> {
        match (self.attributes.operation, self.object, self.attributes.old) {
            ("CREATE", Some(pod), _) => self.check_mirror(pod).await,
            ("DELETE", _, Some(pod)) if runs_on(pod, self.node) => Ok(()),
            ("DELETE", _, Some(_)) => self.deny("can only delete pods with spec.nodeName set to itself"),
            (operation, _, _) => {
                let (operation, node) = (go::quote(operation), go::quote(self.node));
                self.refuse(&format!(
                    "unexpected operation {operation}, node {node} can only create and delete mirror pods"
                ))
            }
        }
    }

    /// A pod that a node makes stands for one that it runs by itself.
    async fn check_mirror(&self, pod: &Value) -> Outcome<()> {
        const MIRROR: &str = "kubernetes.io/config.mirror";
        if pod.at(&["metadata", "annotations", MIRROR]).is_none() {
            let (mirror, node) = (go::quote(MIRROR), go::quote(self.node));
            let why = format!("pod does not have {mirror} annotation, node {node} can only create mirror pods");
            return self.refuse(&why);
        }
        if !runs_on(pod, self.node) {
            return self.deny("can only create pods with spec.nodeName set to itself");
        }
        let owners = pod.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
        let owner = match owners {
            [owner] => owner,
            [] => return self.deny("can only create pods with an owner reference set to itself"),
            _ => return self.deny("can only create pods with a single owner reference set to itself"),
        };
        let is = |key: &str, wanted: &str| owner.str_at(&[key]) == Some(wanted);
        let set = |key: &str| owner.get(key).and_then(Value::as_bool) == Some(true);
        if !is("apiVersion", "v1") || !is("kind", "Node") || !is("name", self.node) {
            return self.deny("can only create pods with an owner reference set to itself");
        }
        if !set("controller") {
            return self.deny("can only create pods with a controller owner reference set to itself");
        }
        if set("blockOwnerDeletion") {
            return self.deny("must not set blockOwnerDeletion on an owner reference");
        }
        let node = self.get("nodes", "", self.node).await?;
        let (said, uid) = (owner.str_at(&["uid"]).unwrap_or_default(), node.meta_str("uid"));
        if said != uid {
            return self.refuse(&format!("node {} UID mismatch: expected {said} got {uid}", self.node));
        }
        if pod.str_at(&["spec", "serviceAccountName"]).is_some_and(|name| !name.is_empty()) {
            return self.deny("can not create pods that reference a service account");
        }
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        for (keys, what) in REFERENCES {
            if mentions(spec, keys) {
                return self.deny(&format!("can not create pods that reference {what}"));
            }
        }
        Ok(())
    }

    fn check_pod_status(&self) -> Outcome<()> {
        let (Some(old), Some(new)) = (self.attributes.old, self.object) else {
            return self.refuse(&format!("unexpected operation {}", go::quote(self.attributes.operation)));
        };
        if !runs_on(old, self.node) {
            return self.deny("can only update pod status for pods with spec.nodeName set to itself");
        }
        if !modified_labels(old, new).is_empty() {
            return self.deny("cannot update labels through pod status");
        }
        const CLAIMS: [&str; 2] = ["status", "resourceClaimStatuses"];
        let list = |pod: &Value| pod.at(&CLAIMS).and_then(Value::as_array).unwrap_or_default().to_vec();
        if list(old) != list(new) {
            return self.deny("cannot update resource claim statues");
        }
        Ok(())
    }

    async fn check_eviction(&self) -> Outcome<()> {
        let name = self.name();
        if name.is_empty() {
            return self.refuse("could not determine pod from request data");
        }
        let pod = self.get("pods", self.attributes.namespace, name).await?;
        if runs_on(&pod, self.node) {
            return Ok(());
        }
        self.refuse(&format!("node {} can only evict pods with spec.nodeName set to itself", self.node))
    }

    fn check_node(&self) -> Outcome<()> {
        if self.name() != self.node {
            let (node, other) = (go::quote(self.node), go::quote(self.attributes.name));
            return self.refuse(&format!("node {node} is not allowed to modify node {other}"));
        }
        let Some(new) = self.object else { return Ok(()) };
        let part = |object: &Value, path: &[&str]| object.at(path).cloned().filter(|v| !v.is_null());
        let source = part(new, &["spec", "configSource"]);
        let Some(old) = self.attributes.old else {
            if source.is_some() {
                return self.deny("is not allowed to create pods with a non-nil configSource");
            }
            let labels = forbidden_labels(modified_labels(&Value::Null, new));
            if labels.is_empty() {
                return Ok(());
            }
            return self.deny(&format!("is not allowed to set the following labels: {}", labels.join(", ")));
        };
        if source.is_some() && source != part(old, &["spec", "configSource"]) {
            return self.deny("is not allowed to update configSource to a new non-nil configSource");
        }
        for (path, what) in [(&["spec", "taints"], "taints"), (&["metadata", "ownerReferences"], "ownerReferences")] {
            if part(new, path) != part(old, path) {
                return self.deny(&format!("is not allowed to modify {what}"));
            }
        }
        let labels = forbidden_labels(modified_labels(old, new));
        if labels.is_empty() {
            return Ok(());
        }
        self.refuse(&format!("is not allowed to modify labels: {}", labels.join(", ")))
    }

    fn check_claim_status(&self) -> Outcome<()> {
        let (Some(old), Some(new)) = (self.attributes.old, self.object) else {
            return self.refuse(&format!("unexpected operation {}", go::quote(self.attributes.operation)));
        };
        let rest = |claim: &Value| {
            let mut claim = claim.clone();
            for key in ["resourceVersion", "managedFields"] {
                claim.remove_at(&["metadata", key]);
            }
            for key in ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"] {
                claim.remove_at(&["status", key]);
            }
            claim
        };
        let (old, new) = (rest(old), rest(new));
        if old == new {
            return Ok(());
        }
        // Upstream shows the difference in a form that is not meant to be stable.
        let difference = format!("-{}, +{}", json::to_string(&old), json::to_string(&new));
        self.deny(&format!(
            "is not allowed to update fields other than status.capacity and status.conditions: {difference}"
        ))
    }

    async fn check_token(&self) -> Outcome<()> {
        let reference = self.object.and_then(|request| request.at(&["spec", "boundObjectRef"]));
        let text = |key: &str| reference.and_then(|r| r.str_at(&[key])).unwrap_or_default();
        let name = text("name");
        if text("apiVersion") != "v1" || text("kind") != "Pod" || name.is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        let uid = text("uid");
        if uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.get("pods", self.attributes.namespace, name).await?;
        if uid != pod.meta_str("uid") {
            return self.refuse(&format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            ));
        }
        if !runs_on(&pod, self.node) {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        self.check_audience(&pod).await
    }

    /// A token is for somebody whom the pod names, or for whom the node has a right of its own.
    async fn check_audience(&self, pod: &Value) -> Outcome<()> {
        let asked = self.object.and_then(|request| request.at(&["spec", "audiences"])).and_then(Value::as_array);
        let audience = match asked.unwrap_or_default() {
            [] => "",
            [audience] => audience.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        let shown = go::quote(audience);
        match audiences::names(&*self.server.store, pod, audience).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(why) => return self.refuse(&format!("error validating audience {shown}: {why}")),
        }
        let user = self.attributes.user;
        let right = authorize::Attributes {
            user,
            verb: "request-serviceaccounts-token-audience",
            group: "",
            version: "",
            resource: audience,
            subresource: "",
            name: self.name(),
            namespace: self.attributes.namespace,
            path: "",
        };
        if matches!(self.server.options.authorizer.authorize(right).await, Decision::Allow(_)) {
            return Ok(());
        }
        let (name, why) = (&user.name, "is not authorized to request tokens for this audience");
        self.refuse(&format!("audience {shown} not found in pod spec volume, {name} {why}"))
    }
}

fn runs_on(pod: &Value, node: &str) -> bool {
    pod.str_at(&["spec", "nodeName"]) == Some(node)
}

/// The members of a pod's spec, wherever they stand, by which it refers to other objects.
const REFERENCES: [(&[&str], &str); 4] = [
    (
        &[
            "imagePullSecrets",
            "secret",
            "secretName",
            "secretRef",
            "secretKeyRef",
            "controllerPublishSecretRef",
            "nodeStageSecretRef",
            "nodePublishSecretRef",
        ],
        "secrets",
    ),
    (&["configMap", "configMapRef", "configMapKeyRef"], "configmaps"),
    (&["clusterTrustBundle"], "clustertrustbundles"),
    (&["persistentVolumeClaim"], "persistentvolumeclaims"),
];

/// Whether one of some members stands anywhere in a value. (Objects nest as deep as their kind's schema lets them.)
fn mentions(value: &Value, keys: &[&str]) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| keys.contains(&key) || mentions(value, keys)),
        Value::Array(items) => items.iter().any(|item| mentions(item, keys)),
        _ => false,
    }
}

/// The labels that differ.
fn modified_labels(old: &Value, new: &Value) -> BTreeSet<String> {
    let labels = |object: &Value| object.at(&["metadata", "labels"]).and_then(Value::as_object).cloned();
    let (old, new) = (labels(old).unwrap_or_default(), labels(new).unwrap_or_default());
    let differ = |a: &Map, b: &Map| {
        let keys = a.iter().filter(|(key, value)| b.get(key) != Some(value)).map(|(key, _)| key.to_owned());
        keys.collect::<Vec<_>>()
    };
    differ(&old, &new).into_iter().chain(differ(&new, &old)).collect()
}

/// Those of some labels that steer workloads, so that nodes may not set them.
fn forbidden_labels(labels: BTreeSet<String>) -> Vec<String> {
    /// What kubelets say of themselves.
    const KUBELET: [&str; 11] = [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    ];
    let within = |space: &str, of: &str| space == of || space.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let is_forbidden = |label: &String| {
        let space = label.split_once('/').map_or("", |(space, _)| space);
        let of_kubelet = KUBELET.contains(&label.as_str())
            || within(space, "kubelet.kubernetes.io")
            || within(space, "node.kubernetes.io");
        within(space, "node-restriction.kubernetes.io")
            || (within(space, "kubernetes.io") || within(space, "k8s.io")) && !of_kubelet
    };
    labels.into_iter().filter(is_forbidden).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_set_no_labels_that_steer_workloads() {
        let all = |labels: &[&str]| forbidden_labels(labels.iter().map(|l| (*l).to_owned()).collect());
        assert_eq!(
            all(&["a", "e.com/a", "kubernetes.io/os", "node.kubernetes.io/x", "a.kubelet.kubernetes.io/y"]),
            Vec::<String>::new()
        );
        let forbidden = ["a.k8s.io/b", "kubernetes.io/role", "node-restriction.kubernetes.io/x"];
        assert_eq!(all(&forbidden), forbidden);
        assert_eq!(all(&["notkubernetes.io/x"]), Vec::<String>::new());
    }
}
