//! Owner references and finalizers: they let others delete objects, and keep objects from going.

use crate::{Attack, MERGE, Row, read};
use std::time::Duration;

const JSON_PATCH: &str = "content-type: application/json-patch+json";

const ROWS: &[Row] = &[
    (
        403,
        "PATCH",
        "NS/secrets/s",
        MERGE,
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"x"}]}}"#,
    ),
    (403, "PATCH", "NS/secrets/s", MERGE, r#"{"metadata":{"finalizers":["x.io/y"]}}"#),
    (403, "PATCH", "NS/secrets/s", JSON_PATCH, r#"[{"op":"add","path":"/metadata/finalizers","value":["x.io/y"]}]"#),
    (403, "DELETE", "NS/secrets/s?propagationPolicy=Orphan", "", ""),
    (403, "DELETE", "NS/secrets/s?gracePeriodSeconds=0", "", r#"{"propagationPolicy":"Foreground"}"#),
    (403, "PATCH", "/api/v1/namespaces/attack", MERGE, r#"{"metadata":{"finalizers":["x.io/y"]}}"#),
    (403, "PUT", "/api/v1/namespaces/attack/finalize", "", r#"{"metadata":{"name":"attack"},"spec":{}}"#),
    (403, "PATCH", "/api/v1/namespaces/attack/finalize", MERGE, r#"{"spec":{"finalizers":null}}"#),
    // Owners that cannot be.
    (
        422,
        "PATCH",
        "NS/configmaps/c",
        MERGE,
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":""}]}}"#,
    ),
    (
        422,
        "PATCH",
        "NS/configmaps/c",
        MERGE,
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"s","uid":"x"}]}}"#,
    ),
    (
        422,
        "PATCH",
        "NS/configmaps/c",
        MERGE,
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"a","controller":true},
            {"apiVersion":"v1","kind":"Secret","name":"b","uid":"b","controller":true}]}}"#,
    ),
    (422, "PATCH", "NS/configmaps/c", MERGE, r#"{"metadata":{"finalizers":["nonsense"]}}"#),
];

#[tokio::test]
async fn owners_and_finalizers_of_others_are_theirs() {
    Attack::new().await.run(ROWS).await;
}

/// Who refers to an object as its owner gains nothing over it, and loses only what refers.
#[tokio::test]
async fn a_reference_reaches_no_further_than_who_refers() {
    let mut attack = Attack::new().await;
    let before = attack.guarded().await;
    let mut uids = Vec::new();
    for namespace in ["attack", "default"] {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/s");
        let secret = read(&attack.send("admintoken", "GET", &path, "", "").await);
        uids.push(secret["metadata"]["uid"].as_str().unwrap().to_owned());
    }
    let map = |name: &str, uid: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}","ownerReferences":[{{"apiVersion":"v1","kind":"Secret","name":"s",
                "uid":"{uid}","controller":true,"blockOwnerDeletion":true}}]}}}}"#
        )
    };
    for (name, uid) in [("near", &uids[0]), ("far", &uids[1]), ("nowhere", &"none".to_owned())] {
        read(&attack.send("alicetoken", "POST", "NS/configmaps", "", &map(name, uid)).await);
    }
    // Owners in other namespaces are none.
    for name in ["far", "nowhere"] {
        let path = format!("NS/configmaps/{name}");
        let mut code = 200;
        for _ in 0..200 {
            code = attack.send("alicetoken", "GET", &path, "", "").await.code;
            if code == 404 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(code, 404, "{name} is left");
    }
    for policy in ["Foreground", "Background"] {
        let path = format!("NS/configmaps/near?propagationPolicy={policy}");
        attack.send("alicetoken", "DELETE", &path, "", "").await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(before, attack.guarded().await);
}

/// With the plugin, whoever lets an object hold up its owner needs a right over the owner's finalizers.
#[tokio::test]
async fn owners_are_held_up_only_by_whom_they_let() {
    const ROWS: &[Row] = &[
        (
            403,
            "POST",
            "NS/configmaps",
            "",
            r#"{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u","blockOwnerDeletion":true}]}}"#,
        ),
        (
            403,
            "PATCH",
            "NS/configmaps/c",
            MERGE,
            r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u","blockOwnerDeletion":true}]}}"#,
        ),
        (
            403,
            "POST",
            "NS/configmaps",
            "",
            r#"{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"nowhere/v1","kind":"X","name":"s","uid":"u","blockOwnerDeletion":true}]}}"#,
        ),
        // Roles she may write, and not delete.
        (
            403,
            "PATCH",
            "RBAC/namespaces/attack/roles/worker",
            MERGE,
            r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]}}"#,
        ),
        (
            201,
            "POST",
            "NS/configmaps?dryRun=All",
            "",
            r#"{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u"}]}}"#,
        ),
        (200, "PATCH", "NS/configmaps/c?dryRun=All", MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#),
    ];
    let mut attack = Attack::with(&["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]).await;
    attack.try_all("alicetoken", ROWS).await;
    let body = ROWS[0].4;
    let answer = attack.send("alicetoken", "POST", "NS/configmaps", "", body).await;
    let message = serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()["message"].clone();
    let why = "configmaps \"x\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
               can't set finalizers on: , <nil>";
    assert_eq!(message, why);
}
