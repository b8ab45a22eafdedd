//! A user with few rights tries to read, write, escalate, act as others, forge tokens and smuggle. Each attempt is a row;
//! whatever the answer, the secret stays secret and the roles, bindings and secrets stay as they were.

#![allow(clippy::unwrap_used)]

mod owners;
mod patches;
mod tokens;
mod webhooks;

use compat::client::{Client, Request, Response};
use compat::server::Server;
use std::path::Path;

/// What the secret holds; no answer to the attacker may contain it (or its base64 form).
const TREASURE: &str = "the-treasure";
const TREASURE_BASE64: &str = "dGhlLXRyZWFzdXJl";

/// What the administrator sets up: path and body.
const SETUP: &[(&str, &str)] = &[
    ("/api/v1/namespaces", r#"{"metadata":{"name":"attack"}}"#),
    ("/api/v1/namespaces/attack/secrets", r#"{"metadata":{"name":"s"},"stringData":{"k":"the-treasure"}}"#),
    ("/api/v1/namespaces/default/secrets", r#"{"metadata":{"name":"s"},"stringData":{"k":"the-treasure"}}"#),
    ("/api/v1/namespaces/attack/configmaps", r#"{"metadata":{"name":"c"},"data":{"a":"1"}}"#),
    ("/api/v1/namespaces/attack/serviceaccounts", r#"{"metadata":{"name":"strong"}}"#),
    ("/api/v1/namespaces/attack/serviceaccounts", r#"{"metadata":{"name":"weak"}}"#),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/attack/roles",
        r#"{"metadata":{"name":"worker"},"rules":[
            {"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch","create","update","patch","delete"]},
            {"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["get","list","create","update","patch"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/attack/rolebindings",
        r#"{"metadata":{"name":"worker"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"worker"},
            "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/attack/roles",
        r#"{"metadata":{"name":"strong"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["*"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/attack/rolebindings",
        r#"{"metadata":{"name":"strong"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"strong"},
            "subjects":[{"kind":"ServiceAccount","name":"strong"}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        r#"{"metadata":{"name":"roles-author"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],
            "resources":["clusterroles","clusterrolebindings"],"verbs":["get","list","create","update","patch"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        r#"{"metadata":{"name":"roles-author"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",
            "name":"roles-author"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
];

/// An attempt of alice: the code that answers it, the method, the path, further headers (`a: b; c: d`) and the body.
type Row = (u16, &'static str, &'static str, &'static str, &'static str);

const NS: &str = "/api/v1/namespaces/attack";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// `NS` and `RBAC` stand for the paths above.
const READING: &[Row] = &[
    (403, "GET", "NS/secrets/s", "", ""),
    (403, "GET", "NS/secrets", "", ""),
    (403, "HEAD", "NS/secrets/s", "", ""),
    (403, "GET", "/api/v1/secrets", "", ""),
    (403, "GET", "/api/v1/namespaces/default/secrets/s", "", ""),
    (403, "GET", "/api/v1/namespaces/default/configmaps", "", ""),
    (403, "GET", "NS/secrets?watch=true&timeoutSeconds=1", "", ""),
    (403, "GET", "NS/secrets/s?watch=true&timeoutSeconds=1", "", ""),
    (403, "GET", "/api/v1/watch/namespaces/attack/secrets?timeoutSeconds=1", "", ""),
    (403, "GET", "/api/v1/watch/namespaces/attack/secrets/s?timeoutSeconds=1", "", ""),
    (403, "GET", "NS/secrets?fieldSelector=metadata.name%3Ds", "", ""),
    (403, "GET", "NS/secrets?limit=1", "", ""),
    (403, "GET", "NS/secrets", "accept: application/json;as=Table;v=v1;g=meta.k8s.io", ""),
    (403, "GET", "NS/secrets/s", "accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ""),
    (403, "GET", "NS/secrets/s/", "", ""),
    (403, "GET", "/api/v1//namespaces/attack/secrets/s", "", ""),
    (403, "GET", "//api/v1/namespaces/attack/secrets/s", "", ""),
    (403, "GET", "NS//secrets/s", "", ""),
    (403, "GET", "NS/configmaps/../secrets/s", "", ""),
    (403, "GET", "NS/configmaps/%2e%2e/secrets/s", "", ""),
    (400, "GET", "NS/configmaps/..%2fsecrets%2fs", "", ""),
    (403, "GET", "NS/Secrets/s", "", ""),
    (403, "GET", "NS/secrets%00/s", "", ""),
    (403, "GET", "NS%2fsecrets/s", "", ""),
    (403, "POST", "NS/secrets/s", "x-http-method-override: GET", ""),
    (403, "GET", "NS/pods/p/log", "", ""),
    (403, "GET", "NS/serviceaccounts/strong", "", ""),
    (403, "GET", "/metrics", "", ""),
    (403, "GET", "/openid/v1/jwks", "", ""),
    (403, "GET", "/.well-known/openid-configuration", "", ""),
    (403, "GET", "/debug/pprof/", "", ""),
    (403, "GET", "/logs/", "", ""),
];

const WRITING: &[Row] = &[
    (403, "POST", "NS/secrets", "", r#"{"metadata":{"name":"new"}}"#),
    (403, "POST", "NS/secrets?dryRun=All", "", r#"{"metadata":{"name":"new"}}"#),
    (403, "PUT", "NS/secrets/s", "", r#"{"metadata":{"name":"s"}}"#),
    (403, "PATCH", "NS/secrets/s", "content-type: application/merge-patch+json", r#"{"data":null}"#),
    (
        403,
        "PATCH",
        "NS/secrets/s",
        "content-type: application/json-patch+json",
        r#"[{"op":"test","path":"/data/k","value":"x"}]"#,
    ),
    (
        403,
        "PATCH",
        "NS/secrets/s?fieldManager=m&force=true",
        "content-type: application/apply-patch+yaml",
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}"#,
    ),
    (
        403,
        "PATCH",
        "NS/secrets/new?fieldManager=m",
        "content-type: application/apply-patch+yaml",
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"new"}}"#,
    ),
    (403, "DELETE", "NS/secrets/s", "", ""),
    (403, "DELETE", "NS/secrets", "", ""),
    (403, "DELETE", "NS/configmaps", "", ""),
    (403, "POST", "/api/v1/namespaces/default/configmaps", "", r#"{"metadata":{"name":"new"}}"#),
    // What the body says is not what the path says.
    (400, "POST", "NS/configmaps", "", r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"new"}}"#),
    (
        400,
        "POST",
        "NS/configmaps",
        "",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new","namespace":"default"}}"#,
    ),
    (400, "PUT", "NS/configmaps/c", "", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}"#),
    (
        400,
        "PUT",
        "NS/configmaps/c",
        "",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}"#,
    ),
    (
        400,
        "PATCH",
        "NS/configmaps/c",
        "content-type: application/merge-patch+json",
        r#"{"metadata":{"namespace":"default"}}"#,
    ),
    (400, "PATCH", "NS/configmaps/c", "content-type: application/merge-patch+json", r#"{"metadata":{"name":"other"}}"#),
    (
        400,
        "PATCH",
        "NS/configmaps/c?fieldManager=m",
        "content-type: application/apply-patch+yaml",
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}"#,
    ),
    (422, "POST", "NS/configmaps", "", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"../secrets/s"}}"#),
    // Subresources are rights of their own.
    (403, "POST", "NS/serviceaccounts/strong/token", "", r#"{"spec":{}}"#),
    (
        403,
        "PUT",
        "/api/v1/namespaces/attack/finalize",
        "",
        r#"{"metadata":{"name":"attack"},"spec":{"finalizers":[]}}"#,
    ),
    (403, "PUT", "/api/v1/namespaces/attack/status", "", r#"{"metadata":{"name":"attack"}}"#),
    (
        403,
        "PATCH",
        "/api/v1/namespaces/attack",
        "content-type: application/merge-patch+json",
        r#"{"metadata":{"labels":{"a":"b"}}}"#,
    ),
    (403, "DELETE", "/api/v1/namespaces/attack", "", ""),
    (403, "PUT", "NS/configmaps/c/status", "", r#"{"metadata":{"name":"c"}}"#),
    (
        403,
        "PATCH",
        "/apis/apps/v1/namespaces/attack/deployments/d/scale",
        "content-type: application/merge-patch+json",
        r#"{"spec":{"replicas":9}}"#,
    ),
    (403, "POST", "NS/pods/p/eviction", "", r#"{"metadata":{"name":"p"}}"#),
    (403, "POST", "NS/pods/p/binding", "", r#"{"metadata":{"name":"p"},"target":{"name":"n"}}"#),
    (403, "POST", "NS/pods/p/exec?command=sh", "", ""),
    (403, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "{}"),
    (403, "POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "", "{}"),
    (403, "PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", "", "{}"),
    (403, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", r#"{"spec":{"user":"admin"}}"#),
    (
        403,
        "POST",
        "/apis/authorization.k8s.io/v1/namespaces/attack/localsubjectaccessreviews",
        "",
        r#"{"spec":{"user":"admin"}}"#,
    ),
    (403, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", r#"{"spec":{"token":"admintoken"}}"#),
];

const ESCALATING: &[Row] = &[
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles?dryRun=All",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "",
        r#"{"metadata":{"generateName":"new-"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":[""],"resources":["configmaps","secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":[""],"resources":["configmaps/*"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/roles",
        "content-type: application/yaml",
        "metadata: {name: new}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n",
    ),
    (403, "POST", "RBAC/namespaces/default/roles", "", r#"{"metadata":{"name":"new"},"rules":[]}"#),
    (
        403,
        "PUT",
        "RBAC/namespaces/attack/roles/worker",
        "",
        r#"{"metadata":{"name":"worker"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "PUT",
        "RBAC/namespaces/attack/roles/made-by-put",
        "",
        r#"{"metadata":{"name":"made-by-put"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/roles/worker",
        "content-type: application/merge-patch+json",
        r#"{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/roles/worker",
        "content-type: application/strategic-merge-patch+json",
        r#"{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/roles/worker",
        "content-type: application/json-patch+json",
        r#"[{"op":"add","path":"/rules/0/resources/-","value":"secrets"}]"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/roles/worker?fieldManager=m&force=true",
        "content-type: application/apply-patch+yaml",
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"worker"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/roles/applied?fieldManager=m",
        "content-type: application/apply-patch+yaml",
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"applied"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    // Bindings to what is there already.
    (
        403,
        "POST",
        "RBAC/namespaces/attack/rolebindings",
        "",
        r#"{"metadata":{"name":"new"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"strong"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/rolebindings",
        "",
        r#"{"metadata":{"name":"new"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/namespaces/attack/rolebindings",
        "",
        r#"{"metadata":{"name":"new"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}"#,
    ),
    (
        404,
        "POST",
        "RBAC/namespaces/attack/rolebindings",
        "",
        r#"{"metadata":{"name":"new"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"to-be-made"}}"#,
    ),
    (
        403,
        "POST",
        "RBAC/clusterrolebindings",
        "",
        r#"{"metadata":{"name":"new"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/rolebindings/strong",
        "content-type: application/merge-patch+json",
        r#"{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/rolebindings/strong",
        "content-type: application/json-patch+json",
        r#"[{"op":"add","path":"/subjects/-","value":{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}}]"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/namespaces/attack/rolebindings/worker",
        "content-type: application/merge-patch+json",
        r#"{"roleRef":{"name":"strong"}}"#,
    ),
    (
        422,
        "PATCH",
        "RBAC/namespaces/attack/rolebindings/worker",
        "content-type: application/merge-patch+json",
        r#"{"roleRef":{"kind":"ClusterRole","name":"roles-author"}}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/clusterrolebindings/cluster-admin",
        "content-type: application/merge-patch+json",
        r#"{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/clusterrolebindings/system:basic-user",
        "content-type: application/merge-patch+json",
        r#"{"roleRef":{"name":"cluster-admin"}}"#,
    ),
    // Roles that take up others, and roles that others take up.
    (
        403,
        "POST",
        "RBAC/clusterroles",
        "",
        r#"{"metadata":{"name":"new"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"kubernetes.io/bootstrapping":"rbac-defaults"}}]},"rules":[]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/clusterroles/roles-author",
        "content-type: application/merge-patch+json",
        r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"kubernetes.io/bootstrapping":"rbac-defaults"}}]}}"#,
    ),
    (
        403,
        "POST",
        "RBAC/clusterroles",
        "",
        r#"{"metadata":{"name":"new","labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/clusterroles/system:controller:generic-garbage-collector",
        "content-type: application/merge-patch+json",
        r#"{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}"#,
    ),
    (
        403,
        "PATCH",
        "RBAC/clusterroles/view",
        "content-type: application/merge-patch+json",
        r#"{"aggregationRule":null}"#,
    ),
    (
        403,
        "POST",
        "RBAC/clusterroles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/clusterroles",
        "",
        r#"{"metadata":{"name":"new"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}"#,
    ),
    (
        403,
        "POST",
        "RBAC/clusterrolebindings",
        "",
        r#"{"metadata":{"name":"new"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:controller:clusterrole-aggregation-controller"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]}"#,
    ),
];

const POSING: &[Row] = &[
    (403, "GET", "NS/secrets/s", "impersonate-user: admin", ""),
    (403, "GET", "NS/secrets/s", "Impersonate-User: alice; Impersonate-Group: system:masters", ""),
    (403, "GET", "NS/secrets/s", "impersonate-user: alice", ""),
    (403, "GET", "NS/secrets/s", "impersonate-user: system:serviceaccount:attack:strong", ""),
    (403, "GET", "NS/secrets/s", "impersonate-user: system:anonymous", ""),
    (403, "GET", "/api", "impersonate-user: alice; impersonate-uid: x", ""),
    (403, "GET", "/api", "impersonate-user: alice; impersonate-extra-scopes: all", ""),
    (500, "GET", "NS/secrets/s", "impersonate-group: system:masters", ""),
    (500, "GET", "NS/secrets/s", "impersonate-uid: admin", ""),
    (500, "GET", "NS/secrets/s", "impersonate-extra-a: b", ""),
    (500, "GET", "NS/secrets/s", "impersonate-user: ; impersonate-group: system:masters", ""),
    (403, "GET", "NS/secrets/s", "x-remote-user: admin; x-remote-group: system:masters", ""),
    (401, "GET", "NS/secrets/s", "authorization: Bearer nonsense", ""),
    (401, "GET", "NS/secrets/s", "authorization: Bearer ADMINTOKEN", ""),
    (401, "GET", "NS/secrets/s", "authorization: Bearer admintoken,alicetoken", ""),
    (403, "GET", "NS/secrets/s", "authorization: Basic YWRtaW46YWRtaW50b2tlbg==", ""),
    (403, "GET", "NS/secrets/s", "authorization: ", ""),
    // {"alg":"none"} {"iss":"https://kubernetes.default.svc","aud":["https://kubernetes.default.svc"],"exp":9999999999,…}
    (
        401,
        "GET",
        "NS/secrets/s",
        "authorization: Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMiLCJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3ZjIl0sImV4cCI6OTk5OTk5OTk5OSwia3ViZXJuZXRlcy5pbyI6eyJuYW1lc3BhY2UiOiJhdHRhY2siLCJzZXJ2aWNlYWNjb3VudCI6eyJuYW1lIjoic3Ryb25nIiwidWlkIjoieCJ9fX0.",
        "",
    ),
    (
        401,
        "GET",
        "NS/secrets/s",
        "authorization: Bearer eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "",
    ),
];

/// What bob is given: subresources, and nothing but them.
const PARTS: &[(&str, &str)] = &[
    (
        "/api/v1/namespaces",
        r#"{"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}"#,
    ),
    (
        "/api/v1/namespaces/attack/pods",
        r#"{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"serviceAccountName":"weak","containers":[{"name":"c","image":"i"}]}}"#,
    ),
    ("/api/v1/namespaces/strict/pods", r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        r#"{"metadata":{"name":"parts"},"rules":[
            {"apiGroups":[""],"resources":["pods/resize","pods/ephemeralcontainers","pods/binding","pods/eviction"],"verbs":["*"]},
            {"apiGroups":[""],"resources":["pods"],"verbs":["create"]},
            {"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests"],"verbs":["create"]},
            {"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests/status","certificatesigningrequests/approval"],"verbs":["*"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        r#"{"metadata":{"name":"parts"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",
            "name":"parts"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}"#,
    ),
    (
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        r#"{"metadata":{"name":"c"},"spec":{"signerName":"example.com/s","usages":["client auth"],"request":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWU1IOENBUUF3SFRFTk1Bc0dBMVVFQXd3RWFtRnVaVEVNTUFvR0ExVUVDZ3dEWkdWMk1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVBWnl1Y3QxZk1RZVgwUEc4Mkc1czNHSnNYTHpyWk93eEtrbGQvMUhGCktrMmJGVVZQaEZuWm90ZVkrRVNleEhpeVl3UWhhNS9qak1yVU1YMVV1VlVsSDZBQU1Bb0dDQ3FHU000OUJBTUMKQTBrQU1FWUNJUUNGUTBwTmczUWc5SEtwRFdOQVlmNDJiUUhaQytjM2dBak1zRDRwTjJrcllnSWhBT3BPMjlxZQpCdE1CN3NjTitzZ2J0N2dLSjRYNGlxTmxwU1M4Ly9INzQ3UXkKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="}}"#,
    ),
];

const MERGE: &str = "content-type: application/merge-patch+json";

/// Smuggling through a subresource what only the object itself may be changed by.
const SMUGGLING: &[Row] = &[
    (403, "PATCH", "NS/pods/p", MERGE, r#"{"metadata":{"labels":{"a":"z"}}}"#),
    // Taken, and nothing of it is.
    (
        200,
        "PATCH",
        "NS/pods/p/resize",
        MERGE,
        r#"{"metadata":{"labels":{"a":"z"},"finalizers":["x.io/y"],"ownerReferences":[]},"spec":{"serviceAccountName":"strong","nodeName":"n","hostPID":true},"status":{"phase":"Running"}}"#,
    ),
    (
        200,
        "PATCH",
        "NS/pods/p/ephemeralcontainers",
        MERGE,
        r#"{"metadata":{"labels":{"a":"z"}},"spec":{"serviceAccountName":"strong","nodeName":"n","containers":[{"name":"c","image":"j"}]}}"#,
    ),
    // A container for debugging is measured as every other.
    (
        403,
        "PATCH",
        "/api/v1/namespaces/strict/pods/p/ephemeralcontainers",
        MERGE,
        r#"{"spec":{"ephemeralContainers":[{"name":"d","image":"i","securityContext":{"privileged":true}}]}}"#,
    ),
    (
        403,
        "POST",
        "/api/v1/namespaces/strict/pods",
        "",
        r#"{"metadata":{"name":"q"},"spec":{"hostPID":true,"containers":[{"name":"c","image":"i"}]}}"#,
    ),
    // Who is meant is said by the path.
    (400, "POST", "NS/pods/p/eviction", "", r#"{"metadata":{"name":"q"}}"#),
    (400, "POST", "NS/pods/p/eviction", "", r#"{"metadata":{"name":"p","namespace":"strict"}}"#),
    (400, "POST", "NS/pods/p/binding", "", r#"{"metadata":{"name":"q"},"target":{"name":"n"}}"#),
    (400, "POST", "NS/pods/p/binding", "", r#"{"metadata":{"name":"p","namespace":"strict"},"target":{"name":"n"}}"#),
    (403, "POST", "NS/bindings", "", r#"{"metadata":{"name":"p"},"target":{"name":"n"}}"#),
    (400, "POST", "NS/pods/p/eviction", "", r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#),
    (
        409,
        "POST",
        "NS/pods/p/eviction",
        "",
        r#"{"metadata":{"name":"p"},"deleteOptions":{"preconditions":{"uid":"x"}}}"#,
    ),
    (201, "POST", "NS/pods/p/eviction?dryRun=All", "", r#"{"metadata":{"name":"p"}}"#),
    (
        500,
        "POST",
        "NS/pods/p/eviction?dryRun=All",
        "",
        r#"{"metadata":{"name":"p"},"deleteOptions":{"dryRun":["None"]}}"#,
    ),
    (403, "DELETE", "NS/pods/p", "", ""),
    (403, "GET", "NS/pods/p/proxy/", "", ""),
    (403, "GET", "/api/v1/nodes/n/proxy/metrics", "", ""),
    (403, "POST", "NS/serviceaccounts/strong/token", "", r#"{"spec":{}}"#),
    // Approving takes a right over the signer, and the status approves nothing.
    (
        403,
        "PATCH",
        "CSR/c/approval",
        MERGE,
        r#"{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}}"#,
    ),
    (
        422,
        "PATCH",
        "CSR/c/status",
        MERGE,
        r#"{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}}"#,
    ),
    (422, "PATCH", "CSR/c/status", MERGE, r#"{"status":{"certificate":"eA=="}}"#),
    (403, "PATCH", "CSR/c", MERGE, r#"{"spec":{"signerName":"kubernetes.io/kube-apiserver-client"}}"#),
];

/// What must not change.
const GUARDED: &[&str] = &[
    "/api/v1/secrets",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/api/v1/pods",
];

struct Attack {
    _server: Server,
    client: Client,
}

impl Attack {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// On a server with flags of its own.
    async fn with(flags: &[&str]) -> Self {
        let server = Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), flags).unwrap();
        let client = Client::new(server.target.clone());
        let mut attack = Attack { _server: server, client };
        for (path, body) in SETUP {
            let answer = attack.send("admintoken", "POST", path, "", body).await;
            assert_eq!(answer.code, 201, "{path} {:?}", answer.body);
        }
        attack
    }

    async fn send(&mut self, token: &str, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let mut all: Vec<(String, String)> = Vec::new();
        for header in headers.split("; ").filter(|h| !h.is_empty()) {
            let (name, value) = header.split_once(':').unwrap();
            all.push((name.to_owned(), value.trim().to_owned()));
        }
        let has = |name: &str| all.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let (typed, authorized) = (has("content-type"), has("authorization"));
        if !typed {
            all.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if !authorized {
            all.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        let path = path.replacen("NS", NS, 1).replacen("RBAC", RBAC, 1);
        let path = path.replacen("CSR", "/apis/certificates.k8s.io/v1/certificatesigningrequests", 1);
        let body = Some(body.as_bytes().to_vec()).filter(|b| !b.is_empty());
        self.client.send(&Request { method: method.to_owned(), path, headers: all, body }).await.unwrap()
    }

    /// Everything that must not change.
    async fn guarded(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        for path in GUARDED {
            let answer = self.send("admintoken", "GET", path, "", "").await;
            let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            out.extend(value["items"].as_array().unwrap().iter().map(ToString::to_string));
        }
        out
    }

    async fn run(self, rows: &[Row]) {
        self.run_as("alicetoken", rows).await;
    }

    async fn run_as(mut self, token: &str, rows: &[Row]) {
        self.try_all(token, rows).await;
    }

    /// Sends the rows; the answers have to be theirs, and nothing that is guarded may have changed.
    async fn try_all(&mut self, token: &str, rows: &[Row]) {
        let before = self.guarded().await;
        let mut through = Vec::new();
        for (code, method, path, headers, body) in rows {
            let answer = self.send(token, method, path, headers, body).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let leaks = text.contains(TREASURE) || text.contains(TREASURE_BASE64);
            if answer.code != *code || leaks {
                through
                    .push(format!("{method} {path} [{headers}] {body}\n  {} instead of {code}: {text}", answer.code));
            }
        }
        assert!(through.is_empty(), "{} of {} rows:\n{}", through.len(), rows.len(), through.join("\n"));
        assert_eq!(before, self.guarded().await);
    }
}

/// What a successful answer holds.
fn read(answer: &Response) -> serde_json::Value {
    assert!(answer.code < 300, "{} {}", answer.code, String::from_utf8_lossy(&answer.body));
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn nothing_is_smuggled_through_subresources() {
    let mut attack = Attack::new().await;
    for (path, body) in PARTS {
        let answer = attack.send("admintoken", "POST", path, "", body).await;
        assert_eq!(answer.code, 201, "{path} {}", String::from_utf8_lossy(&answer.body));
    }
    attack.run_as("bobtoken", SMUGGLING).await;
}

#[tokio::test]
async fn nothing_is_read() {
    Attack::new().await.run(READING).await;
}

#[tokio::test]
async fn nothing_is_written() {
    Attack::new().await.run(WRITING).await;
}

#[tokio::test]
async fn no_rights_are_gained() {
    Attack::new().await.run(ESCALATING).await;
}

#[tokio::test]
async fn nobody_is_impersonated() {
    Attack::new().await.run(POSING).await;
}

/// What a user holds can be handed on; what a token or a binding gives ends with it.
#[tokio::test]
async fn rights_that_are_there_work_and_end_with_their_binding() {
    let mut attack = Attack::new().await;
    let roles = "RBAC/namespaces/attack/roles";
    let own = r#"{"metadata":{"name":"own"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}"#;
    assert_eq!(attack.send("alicetoken", "POST", roles, "", own).await.code, 201);
    let strong = "impersonate-user: system:serviceaccount:attack:strong";
    let admin = attack.send("admintoken", "GET", "NS/secrets/s", strong, "").await;
    assert_eq!(admin.code, 200);
    let token = attack.send("admintoken", "POST", "NS/serviceaccounts/strong/token", "", r#"{"spec":{}}"#).await;
    let token: serde_json::Value = serde_json::from_slice(&token.body).unwrap();
    let token = token["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(attack.send(&token, "GET", "NS/secrets/s", "", "").await.code, 200);
    assert_eq!(attack.send(&token, "GET", "/api/v1/namespaces/default/secrets/s", "", "").await.code, 403);
    let foreign = r#"{"spec":{"audiences":["elsewhere"]}}"#;
    let foreign = attack.send("admintoken", "POST", "NS/serviceaccounts/strong/token", "", foreign).await;
    let foreign: serde_json::Value = serde_json::from_slice(&foreign.body).unwrap();
    let foreign = foreign["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(attack.send(&foreign, "GET", "NS/secrets/s", "", "").await.code, 401);
    let binding = "RBAC/namespaces/attack/rolebindings/strong";
    assert_eq!(attack.send("admintoken", "DELETE", binding, "", "").await.code, 200);
    assert_eq!(attack.send(&token, "GET", "NS/secrets/s", "", "").await.code, 403);
    assert_eq!(attack.send("admintoken", "DELETE", "NS/serviceaccounts/strong", "", "").await.code, 200);
    assert_eq!(attack.send(&token, "GET", "/api", "", "").await.code, 401);
}

/// Roles made of others have the rights of those as soon as the write is answered, and lose them so.
#[tokio::test]
async fn aggregated_roles_follow_at_once() {
    let mut attack = Attack::new().await;
    let path = "RBAC/clusterroles";
    let sum =
        r#"{"metadata":{"name":"sum"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"sum":"yes"}}]}}"#;
    assert_eq!(attack.send("admintoken", "POST", path, "", sum).await.code, 201);
    let binding = r#"{"metadata":{"name":"sum"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"sum"},
        "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}"#;
    assert_eq!(attack.send("admintoken", "POST", "RBAC/clusterrolebindings", "", binding).await.code, 201);
    assert_eq!(attack.send("bobtoken", "GET", "NS/secrets/s", "", "").await.code, 403);
    let part = r#"{"metadata":{"name":"part","labels":{"sum":"yes"}},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#;
    assert_eq!(attack.send("admintoken", "POST", path, "", part).await.code, 201);
    assert_eq!(attack.send("bobtoken", "GET", "NS/secrets/s", "", "").await.code, 200);
    assert_eq!(attack.send("admintoken", "DELETE", "RBAC/clusterroles/part", "", "").await.code, 200);
    assert_eq!(attack.send("bobtoken", "GET", "NS/secrets/s", "", "").await.code, 403);
}
