//! The kinds under load: twenty, one of them custom.

use object::{Value, json};

/// The namespaces that the load is in.
pub const NAMESPACES: [&str; 4] = ["soak-0", "soak-1", "soak-2", "soak-3"];
/// How many names a namespace has for the objects of a kind; few, so that clients meet.
pub const NAMES: usize = 8;
/// The name of the custom kind's definition.
pub const WIDGETS: &str = "widgets.soak.example.com";

/// A kind.
#[derive(Debug)]
pub struct Kind {
    /// `v1` or `GROUP/VERSION`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// What its objects have beside `metadata`.
    rest: &'static str,
    /// A change of the status, where there is one.
    pub status: Option<&'static str>,
}

const TEMPLATE: &str = r#"{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}}"#;

const fn kind(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    rest: &'static str,
    status: Option<&'static str>,
) -> Kind {
    Kind { api_version, kind, plural, rest, status }
}

/// All kinds. `TEMPLATE` stands for the template of a pod.
pub const KINDS: [Kind; 20] = [
    kind("v1", "ConfigMap", "configmaps", r#""data":{"a":"1","b":"some text that is a little longer"}"#, None),
    kind("v1", "Secret", "secrets", r#""type":"Opaque","data":{"password":"c2VjcmV0"}"#, None),
    kind("v1", "ServiceAccount", "serviceaccounts", r#""automountServiceAccountToken":false"#, None),
    kind("v1", "Service", "services", r#""spec":{"selector":{"app":"a"},"ports":[{"name":"http","port":80}]}"#, None),
    kind(
        "v1",
        "Endpoints",
        "endpoints",
        r#""subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":80}]}]"#,
        None,
    ),
    kind(
        "v1",
        "Pod",
        "pods",
        r#""spec":{"containers":[{"name":"c","image":"nginx:1"}]}"#,
        Some(r#"{"message":"MARK"}"#),
    ),
    kind("v1", "PodTemplate", "podtemplates", r#""template":TEMPLATE"#, None),
    kind(
        "apps/v1",
        "Deployment",
        "deployments",
        r#""spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":TEMPLATE}"#,
        Some(r#"{"conditions":[{"type":"Available","status":"True","message":"MARK"}]}"#),
    ),
    kind(
        "apps/v1",
        "StatefulSet",
        "statefulsets",
        r#""spec":{"serviceName":"s","selector":{"matchLabels":{"app":"a"}},"template":TEMPLATE}"#,
        Some(r#"{"replicas":0,"conditions":[{"type":"Soaked","status":"True","message":"MARK"}]}"#),
    ),
    kind(
        "apps/v1",
        "DaemonSet",
        "daemonsets",
        r#""spec":{"selector":{"matchLabels":{"app":"a"}},"template":TEMPLATE}"#,
        Some(r#"{"conditions":[{"type":"Soaked","status":"True","message":"MARK"}]}"#),
    ),
    kind(
        "apps/v1",
        "ReplicaSet",
        "replicasets",
        r#""spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"template":TEMPLATE}"#,
        Some(r#"{"conditions":[{"type":"Soaked","status":"True","message":"MARK"}]}"#),
    ),
    kind(
        "batch/v1",
        "Job",
        "jobs",
        r#""spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx:1"}]}}}"#,
        None,
    ),
    kind(
        "batch/v1",
        "CronJob",
        "cronjobs",
        r#""spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx:1"}]}}}}}"#,
        None,
    ),
    kind(
        "networking.k8s.io/v1",
        "Ingress",
        "ingresses",
        r#""spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}"#,
        None,
    ),
    kind(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        r#""spec":{"podSelector":{},"policyTypes":["Ingress"]}"#,
        None,
    ),
    kind(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "roles",
        r#""rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]"#,
        None,
    ),
    kind(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
        r#""roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"u"}]"#,
        None,
    ),
    kind(
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        r#""spec":{"holderIdentity":"h","leaseDurationSeconds":15}"#,
        None,
    ),
    kind(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        r#""spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"a"}}}"#,
        None,
    ),
    kind(
        "soak.example.com/v1",
        "Widget",
        "widgets",
        r#""spec":{"size":1,"parts":[{"name":"wheel","count":4}]}"#,
        Some(r#"{"phase":"MARK"}"#),
    ),
];

/// The place of the custom kind in [`KINDS`].
pub const WIDGET: usize = KINDS.len() - 1;
/// The place of ConfigMaps in [`KINDS`].
pub const CONFIG_MAP: usize = 0;
/// The place of Deployments in [`KINDS`].
pub const DEPLOYMENT: usize = 7;

impl Kind {
    /// Whether a definition makes it.
    pub fn is_custom(&self) -> bool {
        self.api_version == KINDS[WIDGET].api_version
    }

    /// The path of the kind in all namespaces.
    pub fn everywhere(&self) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        format!("{root}/{}/{}", self.api_version, self.plural)
    }

    /// The path of the kind in a namespace.
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        format!("{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
    }

    /// The text of an object; `mark` makes it differ from others.
    pub fn object(&self, name: &str, team: &str, mark: &str) -> String {
        format!(
            r#"{{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{name}","labels":{{"team":"{team}"}},"annotations":{{"soak.example.com/mark":"{mark}"}}}},{}}}"#,
            self.api_version,
            self.kind,
            self.rest.replace("TEMPLATE", TEMPLATE)
        )
    }

    /// The text of a merge patch of the status.
    pub fn status_patch(&self, mark: &str) -> Option<String> {
        self.status.map(|status| format!(r#"{{"status":{}}}"#, status.replace("MARK", mark)))
    }
}

/// The text of a definition. Its objects may have keyed `parts`, and a rule says how large `size` may be.
pub fn definition(group: &str, plural: &str, kind: &str) -> String {
    let text = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.{group}"}},
        "spec":{{"group":"{group}","scope":"Namespaced","names":{{"plural":"{plural}","kind":"{kind}"}},
        "versions":[{{"name":"v1","served":true,"storage":true,"subresources":{{"status":{{}}}},
        "schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
            "spec":{{"type":"object","x-kubernetes-validations":[{{"rule":"self.size < 1000","message":"too large"}}],
                "required":["size"],"properties":{{"size":{{"type":"integer"}},"note":{{"type":"string"}},
                "parts":{{"type":"array","maxItems":100,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
                    "items":{{"type":"object","required":["name"],"properties":{{"name":{{"type":"string"}},"count":{{"type":"integer"}}}}}}}}}}}},
            "status":{{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}}}]}}}}"#
    );
    json::parse(text.as_bytes()).map_or(text, |value: Value| json::to_string(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_json() {
        for kind in &KINDS {
            assert!(json::parse(kind.object("n", "red", "m").as_bytes()).is_ok(), "{}", kind.kind);
            assert!(kind.status_patch("m").is_none_or(|text| json::parse(text.as_bytes()).is_ok()), "{}", kind.kind);
        }
        assert!(json::parse(definition("g", "ps", "P").as_bytes()).is_ok());
        assert_eq!((KINDS[CONFIG_MAP].kind, KINDS[DEPLOYMENT].kind), ("ConfigMap", "Deployment"));
    }
}
