//! What somebody with few rights tries who may declare TenantResources in a namespace of the tenant `solar`: to reach beyond
//! it, to take what is declared for all, to have the manager delete what is not theirs, to keep it busy for ever.

#![allow(clippy::unwrap_used)]

mod common;

use base64::Engine;
use common::{Fixture, GTR, TR, data, gtr, tr};
use object::{Value, json};

const TENANT: &str = "capsule.clastix.io/v1beta2/Tenant";
const BINDING: &str = "rbac.authorization.k8s.io/v1/RoleBinding";

/// A ConfigMap as a raw item.
fn map(name: &str, rest: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}{rest}}}}}")
}

/// The ConfigMap `theirs` of the tenant `wind`, made by an administrator.
async fn theirs(f: &Fixture) -> Value {
    f.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: wind-a}, data: {secret: treasure}}")
        .await
}

#[tokio::test]
async fn nothing_is_read_or_written_outside_of_the_tenant() {
    let f = Fixture::new().await;
    let before = theirs(&f).await;
    let reads = |block: &str| format!("resources:\n- {block}\n  generators: [{{template: '{}'}}]", map("got", ""));
    for (name, spec, why) in [
        (
            "context",
            reads("context: {resources: [{apiVersion: v1, kind: ConfigMap, namespace: wind-a, index: x}]}"),
            "reading ConfigMap from namespace \"wind-a\" is not allowed",
        ),
        (
            "context-of-all",
            reads("context: {resources: [{apiVersion: v1, kind: ConfigMap, namespace: '', name: theirs, index: x}]}")
                .replace("metadata: {name: got}", r#"metadata: {name: seen}, data: {found: "{{ toJson . | b64enc }}"}"#),
            "",
        ),
        (
            "context-of-the-cluster",
            reads("context: {resources: [{apiVersion: v1, kind: Namespace, index: x}]}"),
            "reading Namespace, which is in no namespace, is not allowed without a service account",
        ),
        (
            "copies",
            "resources:\n- namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: wind-a, name: theirs}]".to_owned(),
            "reading ConfigMap from namespace \"wind-a\" is not allowed",
        ),
        (
            "copies-by-a-forged-name",
            "resources:\n- namespacedItems: [{apiVersion: v1, kind: ConfigMap, namespace: 'x/../wind-a', name: theirs}]".to_owned(),
            "is not allowed",
        ),
        (
            "of-the-cluster",
            "resources:\n- rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: mine}}]".to_owned(),
            "cluster-scoped kind ClusterRole is not allowed",
        ),
        (
            "path",
            "resources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: '../../wind-a/configmaps/theirs'}}]".to_owned(),
            "applying of 2 resources failed",
        ),
    ] {
        f.apply(&tr(name, &spec)).await;
        let status = if why.is_empty() { "True" } else { "False" };
        f.ready(TR, "solar-a", name, status, why).await;
    }
    // Where an item says that it is does not matter.
    f.apply(&tr(
        "elsewhere",
        &format!(
            "resources:\n- policy: {{creation: Merge, force: true}}\n  rawItems: [{}]",
            map("theirs", ", namespace: wind-a")
        ),
    ))
    .await;
    f.ready(TR, "solar-a", "elsewhere", "True", "").await;
    f.there("solar-b", "theirs").await;
    let seen = f.there("solar-a", "seen").await;
    let seen = base64::engine::general_purpose::STANDARD.decode(data(&seen, "found").unwrap()).unwrap();
    let seen = String::from_utf8(seen).unwrap();
    assert!(seen.contains("solar-a") && !seen.contains("treasure"), "{seen}");
    let after = f.there("wind-a", "theirs").await;
    assert_eq!(after.meta_str("resourceVersion"), before.meta_str("resourceVersion"));
    assert!(f.find("rbac.authorization.k8s.io/v1/ClusterRole", "", "mine").await.is_none());
}

#[tokio::test]
async fn what_is_declared_for_all_and_what_the_tenant_has_is_not_taken_by_force() {
    let f = Fixture::new().await;
    f.apply(&gtr(
        "rule",
        "resources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rule}, data: {mode: strict}}]",
    ))
    .await;
    f.ready(GTR, "", "rule", "True", "").await;
    f.there("solar-a", "rule").await;
    let loose = "resources:\n- policy: {creation: Merge, force: true}\n  rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rule}, data: {mode: loose}}]";
    f.apply(&tr("loose", loose)).await;
    f.ready(TR, "solar-a", "loose", "False", "applying of 2 resources failed").await;
    assert_eq!(data(&f.there("solar-a", "rule").await, "mode"), Some("strict"));

    let binding = |b: Option<&Value>| b.is_some_and(|b| b.label("projectcapsule.dev/managed-by") == Some("controller"));
    let tenant = f.find(TENANT, "", "solar").await.unwrap();
    assert_eq!(tenant.at(&["status", "size"]), Some(&Value::Int(2)));
    let bindings = client::Resource::known("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true);
    let mut all = Vec::new();
    for _ in 0..common::PATIENCE {
        all = f.client.api(&bindings).list("solar-a", &client::ListParams::default()).await.unwrap().items;
        if !all.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let own = all.iter().find(|b| binding(Some(b))).unwrap();
    let stolen = format!(
        "resources:\n- policy: {{creation: Merge, force: true}}\n  rawItems: [{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: '{}'}}, roleRef: {}, subjects: [{{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}}]}}]",
        own.name(),
        json::to_string(own.get("roleRef").unwrap())
    );
    f.apply(&tr("stolen", &stolen)).await;
    f.ready(TR, "solar-a", "stolen", "False", "applying of 2 resources failed").await;
    let after = f.until(BINDING, "solar-a", own.name(), binding).await;
    assert_eq!(after.get("subjects"), own.get("subjects"));
}

#[tokio::test]
async fn forged_marks_and_statuses_delete_nothing_and_name_nobody() {
    let f = Fixture::new().await;
    let before = theirs(&f).await;
    // What the manager made for somebody else looks like its own.
    f.apply(&gtr("made", &format!("resources:\n- rawItems: [{}]", map("made", "")))).await;
    let made = f.there("wind-a", "made").await;
    let marks =
        ", labels: {projectcapsule.dev/created-by: replications, projectcapsule.dev/managed-by: resource-permit}";
    f.apply(&tr("r", &format!("resources:\n- rawItems: [{}]", map("marked", marks)))).await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    let marked = f.there("solar-a", "marked").await;
    assert_eq!(marked.label("projectcapsule.dev/managed-by"), Some("replications"));
    let mallory = f.person("mallory").await;
    let resource = manager::kinds::TENANT_RESOURCES;
    for status in [
        "serviceAccount: {name: default, namespace: kube-system}",
        "processedItems: [{version: v1, kind: ConfigMap, name: theirs, namespace: wind-a, status: {type: Ready, created: true, lastApply: '2026-01-01T00:00:00Z', clusterScoped: false}}]",
        "processedItems: [{version: v1, kind: ConfigMap, name: made, namespace: wind-a, status: {type: Ready, created: true, lastApply: '2026-01-01T00:00:00Z', clusterScoped: false}}]",
    ] {
        let patch = object::yaml::parse(format!("status: {{{status}}}").as_bytes()).unwrap();
        let patch = client::Patch::Merge(patch);
        let written = mallory.api(&resource).patch("solar-a", "r", &patch, &client::PatchParams::status()).await;
        assert!(written.unwrap_err().to_string().contains("only the controller writes this status"), "{status}");
    }
    f.delete(TR, "solar-a", "r").await;
    f.until(TR, "solar-a", "r", |o| o.is_none()).await;
    f.gone("solar-a", "marked").await;
    let after = f.there("wind-a", "theirs").await;
    assert_eq!(after.meta_str("resourceVersion"), before.meta_str("resourceVersion"));
    assert_eq!(f.there("wind-a", "made").await.meta_str("uid"), made.meta_str("uid"));
}

#[tokio::test]
async fn nothing_grows_without_end() {
    let f = Fixture::new().await;
    // A declaration that declares others, which would declare others.
    let inner = tr("deepest", "resources: []").replace('\n', "\\n");
    let middle = json::to_string(
        &object::yaml::parse(
            tr("middle", &format!("resources:\n- generators: [{{template: \"{inner}\"}}]")).as_bytes(),
        )
        .unwrap(),
    );
    f.apply(&tr("outer", &format!("resources:\n- rawItems: [{middle}]"))).await;
    f.ready(TR, "solar-b", "middle", "False", "cannot declare objects that declare more").await;
    assert!(f.find(TR, "solar-b", "deepest").await.is_none());

    // More than can be kept, for ever, or too much at once.
    let many = "{{range until 11000}}{apiVersion: v1, kind: ConfigMap, metadata: {name: c{{.}}}}\\n---\\n{{end}}";
    let endless = "{{define \\\"t\\\"}}{{template \\\"t\\\"}}{{end}}{{template \\\"t\\\"}}";
    let large = "{{range until 100}}{{repeat 1000000 \\\"x\\\"}}{{end}}";
    let slow = "{{range until 100}}{{bcrypt \\\"x\\\" | trunc 1}}{{end}}";
    for (name, template, why) in [
        ("many", many, "more than 20000 objects"),
        ("endless", endless, "exceeded maximum template depth"),
        ("large", large, "too large"),
        ("slow", slow, "too many or too large values"),
    ] {
        f.apply(&tr(name, &format!("resources:\n- generators: [{{template: \"{template}\"}}]"))).await;
        f.ready(TR, "solar-a", name, "False", why).await;
    }
    // Nobody else waits for that.
    f.apply(&tr("small", &format!("resources:\n- rawItems: [{}]", map("small", "")))).await;
    f.ready(TR, "solar-a", "small", "True", "").await;
}
