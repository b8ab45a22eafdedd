//! What no recording shows: whose fields webhooks' changes are where the flag asks for it, and ownership across versions
//! that a webhook converts.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::case::Case;
use compat::run::replay;
use compat::server::Server;
use object::json;
use std::path::Path;

/// Replays one case against a server of its own.
fn check(flags: &[&str], case: &str) {
    let value = json::parse(case.as_bytes()).expect("the case is JSON");
    let case = Case { id: value.str_at(&["id"]).unwrap_or_default().to_owned(), about: String::new(), value };
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), flags).expect("the server starts");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for outcome in runtime.block_on(replay(&server.target, vec![case], 1)) {
        assert!(outcome.differences.is_empty(), "{}", outcome.differences.join("\n"));
    }
}

#[test]
fn changes_are_owned_by_the_webhook_where_the_flag_asks_for_it() {
    let case = |owners: &str| {
        format!(
            r#"{{"id": "attributed", "hooks": {{"a": {{"patch": [{{"op": "add", "path": "/data/b", "value": "2"}}]}}}},
            "steps": [
                {{"send": "POST /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "quiet": true,
                  "body": {{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                    "metadata": {{"name": "own"}}, "webhooks": [{{"name": "a.example.com", "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "clientConfig": {{"url": "{{{{hook:a}}}}", "caBundle": "{{{{ca}}}}"}},
                    "rules": [{{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}}]}}]}}}},
                {{"send": "POST /api/v1/namespaces/default/configmaps?fieldManager=me", "keep": ["managedFields"],
                  "body": {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "own"}}, "data": {{"a": "1"}}}},
                  "pick": ["data", "metadata.managedFields.*.manager", "metadata.managedFields.*.fieldsV1"],
                  "expect": {{"code": 201, "body": {{"data": {{"a": "1", "b": "2"}}, {owners}}}}}}}
            ]}}"#
        )
    };
    check(
        &[],
        &case(
            r#""metadata.managedFields.*.manager": ["me"],
               "metadata.managedFields.*.fieldsV1": [{"f:data": {".": {}, "f:a": {}}}]"#,
        ),
    );
    check(
        &["--attribute-webhook-changes"],
        &case(
            r#""metadata.managedFields.*.manager": ["a.example.com", "me"],
               "metadata.managedFields.*.fieldsV1": [{"f:data": {"f:b": {}}}, {"f:data": {".": {}, "f:a": {}}}]"#,
        ),
    );
}

#[test]
fn fields_change_hands_across_versions_that_a_webhook_converts() {
    let version = |name: &str, field: &str, storage: bool| {
        format!(
            r#"{{"name": "{name}", "served": true, "storage": {storage}, "schema": {{"openAPIV3Schema": {{"type": "object",
            "properties": {{"spec": {{"type": "object", "properties": {{"{field}": {{"type": "string"}}}}}}}}}}}}}}"#
        )
    };
    let (v1, v2) = (version("v1", "a", true), version("v2", "b", false));
    let case = r#"{"id": "across", "hooks": {"c": {"convert": {"v1": [["move", "/spec/b", "/spec/a"]], "v2": [["move", "/spec/a", "/spec/b"]]}}},
        "steps": [
            {"send": "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", "quiet": true,
             "body": {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.own.example.com"}, "spec": {"group": "own.example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"}, "versions": [VERSIONS],
                "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": "{{hook:c}}", "caBundle": "{{ca}}"}}}}}},
            {"send": "PATCH /apis/own.example.com/v1/namespaces/default/widgets/w?fieldManager=one", "type": "apply",
             "body": {"apiVersion": "own.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": "1"}},
             "pick": ["spec"], "expect": {"code": 201, "body": {"spec": {"a": "1"}}}},
            {"send": "PATCH /apis/own.example.com/v2/namespaces/default/widgets/w?fieldManager=two", "type": "apply",
             "body": {"apiVersion": "own.example.com/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"b": "2"}},
             "pick": ["message"],
             "expect": {"code": 409, "body": {"message": "Apply failed with 1 conflict: conflict with \"one\": .spec.a"}}},
            {"send": "PATCH /apis/own.example.com/v2/namespaces/default/widgets/w?fieldManager=two&force=true", "type": "apply",
             "body": {"apiVersion": "own.example.com/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"b": "2"}},
             "keep": ["managedFields"], "pick": ["spec", "metadata.managedFields.*.manager"],
             "expect": {"code": 200, "body": {"spec": {"b": "2"}, "metadata.managedFields.*.manager": ["two"]}}}
        ]}"#;
    check(&[], &case.replace("VERSIONS", &format!("{v1}, {v2}")));
}
