//! What a webhook makes of a request is judged like the request: it gives its sender no rights, and moves nothing.

use compat::case::Case;
use compat::run::replay;
use compat::server::Server;
use object::json;
use std::path::Path;

/// Bob may write config maps and roles. What he sends is changed by a webhook that means well with him.
const CASE: &str = r#"{"id": "attack-webhooks", "hooks": {
    "rights": {"patch": [{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}}]},
    "binds": {"patch": [{"op": "replace", "path": "/subjects/0/name", "value": "bob"}, {"op": "replace", "path": "/roleRef/name", "value": "cluster-admin"}]},
    "moves": {"patch": [{"op": "replace", "path": "/metadata/namespace", "value": "default"}]},
    "turns": {"patch": [{"op": "replace", "path": "/kind", "value": "Secret"}]}},
  "steps": [
    {"send": "POST /apis/rbac.authorization.k8s.io/v1/clusterroles", "quiet": true, "body": {"metadata": {"name": "helped"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["get", "create"]}]}},
    {"send": "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "quiet": true, "body": {"metadata": {"name": "helped"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "helped"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]}},
    {"send": "POST /api/v1/namespaces", "quiet": true, "body": {"metadata": {"name": "attack"}}},
    {"send": "POST /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "quiet": true, "body": {
        "metadata": {"name": "helping"}, "webhooks": [
            WEBHOOK(rights, rbac.authorization.k8s.io, roles), WEBHOOK(binds, rbac.authorization.k8s.io, rolebindings)]}},
    {"send": "POST /apis/rbac.authorization.k8s.io/v1/namespaces/attack/roles", "as": "bob", "pick": ["reason"],
        "body": {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]},
        "expect": {"code": 403, "body": {"reason": "Forbidden"}}},
    {"send": "POST /apis/rbac.authorization.k8s.io/v1/namespaces/attack/rolebindings", "as": "bob", "pick": ["reason"],
        "body": {"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "helped"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]},
        "expect": {"code": 403, "body": {"reason": "Forbidden"}}},
    {"send": "GET /apis/rbac.authorization.k8s.io/v1/namespaces/attack/roles", "pick": ["items"], "expect": {"code": 200, "body": {"items": []}}},
    {"send": "GET /apis/rbac.authorization.k8s.io/v1/namespaces/attack/rolebindings", "pick": ["items"], "expect": {"code": 200, "body": {"items": []}}},
    {"send": "DELETE /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/helping", "quiet": true},
    {"send": "POST /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "quiet": true, "body": {
        "metadata": {"name": "moving"}, "webhooks": [WEBHOOK(moves, , configmaps)]}},
    {"send": "POST /api/v1/namespaces/attack/configmaps", "as": "bob", "pick": ["reason"], "body": {"metadata": {"name": "moved"}},
        "expect": {"code": 400, "body": {"reason": "BadRequest"}}},
    {"send": "GET /api/v1/namespaces/default/configmaps/moved", "pick": ["reason"], "expect": {"code": 404, "body": {"reason": "NotFound"}}},
    {"send": "DELETE /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/moving", "quiet": true},
    {"send": "POST /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "quiet": true, "body": {
        "metadata": {"name": "turning"}, "webhooks": [WEBHOOK(turns, , configmaps)]}},
    {"send": "POST /api/v1/namespaces/attack/configmaps", "as": "bob", "pick": ["reason"], "body": {"metadata": {"name": "turned"}},
        "expect": {"code": 500, "body": {"reason": "InternalError"}}},
    {"send": "GET /api/v1/namespaces/attack/secrets/turned", "pick": ["reason"], "expect": {"code": 404, "body": {"reason": "NotFound"}}}
  ]}"#;

#[test]
fn webhooks_smuggle_nothing() {
    let webhook = |name: &str, group: &str, resource: &str| {
        format!(
            r#"{{"name": "{name}.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {{"url": "{{{{hook:{name}}}}}", "caBundle": "{{{{ca}}}}"}},
                "rules": [{{"apiGroups": ["{group}"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["{resource}"]}}]}}"#
        )
    };
    let mut case = CASE.to_owned();
    while let Some((before, rest)) = case.split_once("WEBHOOK(") {
        let (inner, after) = rest.split_once(')').unwrap();
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        case = format!("{before}{}{after}", webhook(parts[0], parts[1], parts[2]));
    }
    let value = json::parse(case.as_bytes()).unwrap();
    let case = Case { id: "attack-webhooks".to_owned(), about: String::new(), value };
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), &[]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for outcome in runtime.block_on(replay(&server.target, vec![case], 1)) {
        assert!(outcome.differences.is_empty(), "{}", outcome.differences.join("\n"));
    }
}
