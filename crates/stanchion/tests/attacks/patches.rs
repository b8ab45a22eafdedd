//! Patches, and what a body says of itself: they reach no further than the object that they are sent to.

use crate::{Attack, MERGE, Row, read};

const JSON_PATCH: &str = "content-type: application/json-patch+json";
const STRATEGIC: &str = "content-type: application/strategic-merge-patch+json";
const APPLY: &str = "content-type: application/apply-patch+yaml";

/// Bob may patch and read config maps, and do nothing else.
const SETUP: &[(&str, &str)] = &[
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/attack/roles",
        r#"{"metadata":{"name":"patcher"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","patch"]}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/attack/rolebindings",
        r#"{"metadata":{"name":"patcher"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"patcher"},
            "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}"#,
    ),
];

const ROWS: &[Row] = &[
    // An apply that would create.
    (
        403,
        "PATCH",
        "NS/configmaps/new?fieldManager=m",
        APPLY,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}"#,
    ),
    (404, "PATCH", "NS/configmaps/new", MERGE, r#"{"data":{"a":"b"}}"#),
    (404, "PATCH", "NS/configmaps/new", STRATEGIC, r#"{"data":{"a":"b"}}"#),
    // Another kind, name, namespace or identity.
    (422, "PATCH", "NS/configmaps/c", MERGE, r#"{"kind":"Secret"}"#),
    (422, "PATCH", "NS/configmaps/c", MERGE, r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role"}"#),
    (
        400,
        "PATCH",
        "NS/configmaps/c",
        JSON_PATCH,
        r#"[{"op":"replace","path":"/metadata/namespace","value":"default"}]"#,
    ),
    (400, "PATCH", "NS/configmaps/c", JSON_PATCH, r#"[{"op":"replace","path":"/metadata/name","value":"d"}]"#),
    (422, "PATCH", "NS/configmaps/c", MERGE, r#"{"metadata":{"uid":"x"}}"#),
    (409, "PATCH", "NS/configmaps/c", MERGE, r#"{"metadata":{"resourceVersion":"1"}}"#),
    // Out of the document.
    (422, "PATCH", "NS/configmaps/c", JSON_PATCH, r#"[{"op":"copy","from":"/../../secrets/s/data","path":"/data"}]"#),
    (422, "PATCH", "NS/configmaps/c", JSON_PATCH, r#"[{"op":"test","path":"/data/a","value":"9"}]"#),
    // What a patch may not, it may not in steps either.
    (403, "PUT", "NS/configmaps/c", "", r#"{"metadata":{"name":"c"}}"#),
    (403, "DELETE", "NS/configmaps/c", "", ""),
    (403, "POST", "NS/configmaps", "", r#"{"metadata":{"name":"new"}}"#),
];

#[tokio::test]
async fn patches_stay_within_their_object() {
    let mut attack = Attack::new().await;
    for (path, body) in SETUP {
        read(&attack.send("admintoken", "POST", path, "", body).await);
    }
    attack.run_as("bobtoken", ROWS).await;
}

/// What the server says of an object is not taken from its body.
#[tokio::test]
async fn what_the_server_says_is_not_taken_from_bodies() {
    let mut attack = Attack::new().await;
    let body = r#"{"metadata":{"name":"own","uid":"chosen","generation":7,"creationTimestamp":"2001-01-01T00:00:00Z",
        "deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":5,"selfLink":"/api/v1/secrets",
        "managedFields":[{"manager":"admin","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}"#;
    let made = read(&attack.send("alicetoken", "POST", "NS/configmaps", "", body).await);
    let meta = &made["metadata"];
    assert_ne!(meta["uid"], "chosen");
    assert_ne!(meta["creationTimestamp"], "2001-01-01T00:00:00Z");
    // (A generation stays: kinds without one of their own take it from whoever writes, as upstream does.)
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        assert!(meta[key].is_null(), "{key}: {meta}");
    }
    assert!(!meta["managedFields"].to_string().contains("admin"), "{meta}");
}
