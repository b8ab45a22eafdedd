//! Permits from the request to the end, against the real server. Reviews are written here as admission writes them.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, data};
use object::Value;

const RP: &str = "capsule.clastix.io/v1beta2/ResourcePermit";
const MAP: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'cm-{{ .name }}'}, data: {by: '{{ .request.username }}'}}";

async fn template(f: &Fixture, spec: &str) {
    f.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate, metadata: {{name: t, namespace: solar-a}}, spec: {spec}}}")).await;
}

async fn request(f: &Fixture, name: &str, more: &str) {
    f.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {{name: {name}, namespace: solar-a}}, spec: {{template: {{kind: ResourcePermitTemplate, name: t}}, requester: {{name: bob, type: User}}{more}}}}}")).await;
}

async fn move_to(f: &Fixture, name: &str, status: &str) {
    let resource = manager::kinds::PERMITS;
    let patch = client::Patch::Merge(object::yaml::parse(format!("status: {status}").as_bytes()).unwrap());
    f.client.api(&resource).patch("solar-a", name, &patch, &client::PatchParams::status()).await.unwrap();
}

async fn phase(f: &Fixture, name: &str, phase: &str) -> Value {
    f.until(RP, "solar-a", name, |o| o.is_some_and(|o| o.str_at(&["status", "phase"]) == Some(phase))).await
}

fn reasons(permit: &Value) -> Vec<String> {
    let all = permit.at(&["status", "transitions"]).and_then(Value::as_array).unwrap_or_default();
    all.iter().map(|t| format!("{} {}", t.str_at(&["type"]).unwrap(), t.str_at(&["reason"]).unwrap())).collect()
}

fn ready(permit: &Value) -> (&str, &str) {
    let c = manager::status::condition(permit, "Ready").unwrap();
    (c.str_at(&["status"]).unwrap(), c.str_at(&["message"]).unwrap())
}

#[tokio::test]
async fn a_permit_is_prepared_approved_active_and_over() {
    let f = Fixture::new().await;
    template(&f, &format!("{{resources: [{{targets: [{MAP}]}}], defaultDuration: 3s, maxDuration: 1h}}")).await;
    request(&f, "p", ", params: {name: x}").await;
    let permit = phase(&f, "p", "Requested").await;
    assert_eq!(ready(&permit), ("True", "request is ready for review"));
    let target = permit.at(&["status", "request", "resources"]).and_then(Value::as_array).unwrap()[0]
        .at(&["targets"])
        .unwrap()
        .as_array()
        .unwrap()[0]
        .clone();
    assert_eq!((target.name(), target.namespace(), data(&target, "by")), ("cm-x", "solar-a", Some("bob")));
    assert!(f.find("ConfigMap", "solar-a", "cm-x").await.is_none());
    // A later change of the template changes nothing.
    template(
        &f,
        "{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}]}], maxDuration: 1h}",
    )
    .await;
    move_to(&f, "p", "{phase: Approved, review: {verdict: Approved, reviewer: {name: alice, type: User}}}").await;
    let permit = phase(&f, "p", "Active").await;
    let cm = f.there("solar-a", "cm-x").await;
    assert_eq!(cm.annotation("projectcapsule.dev/active-until"), permit.str_at(&["status", "active", "until"]));
    assert_eq!(cm.label("app.kubernetes.io/managed-by"), Some("resource-permit-controller"));
    assert_eq!(permit.meta_list("finalizers").len(), 1);
    // While it is active, it is kept as it is.
    f.merge("ConfigMap", "solar-a", "cm-x", "data: {by: evil}").await;
    f.until("ConfigMap", "solar-a", "cm-x", |o| o.is_some_and(|o| data(o, "by") == Some("bob"))).await;
    f.gone("solar-a", "cm-x").await;
    f.until(RP, "solar-a", "p", |o| o.is_none()).await;
}

#[tokio::test]
async fn an_automatic_permit_needs_nobody_and_its_conditions() {
    let f = Fixture::new().await;
    template(&f, &format!("{{resources: [{{targets: [{MAP}]}}], keepFor: 1h, approvals: {{auto: true, conditions: [\"request.spec.reason == 'fire'\"]}}}}")).await;
    request(&f, "good", ", reason: fire, params: {name: x}").await;
    let permit = phase(&f, "good", "Active").await;
    assert_eq!(
        reasons(&permit),
        ["Created CreatedByUser", "Requested PendingReview", "Approved ApprovedBySystem", "Active ActivatedBySystem"]
    );
    assert_eq!(permit.at(&["status", "active", "until"]), None);
    request(&f, "bad", ", reason: none, params: {name: y}").await;
    let bad = phase(&f, "bad", "Failed").await;
    assert_eq!(bad.str_at(&["status", "failure", "reason"]), Some("ApprovalConditionsFailed"));
    // Ended early, it is kept for a while.
    move_to(&f, "good", "{phase: Expired}").await;
    f.gone("solar-a", "cm-x").await;
    let kept = f.until(RP, "solar-a", "good", |o| o.is_some_and(|o| o.at(&["status", "keepUntil"]).is_some())).await;
    assert_eq!((ready(&kept).0, kept.at(&["status", "size"])), ("True", Some(&Value::Int(0))));
}

#[tokio::test]
async fn what_cannot_be_prepared_says_why_and_recovers() {
    let f = Fixture::new().await;
    request(&f, "p", ", params: {name: x}").await;
    let says = |what: &'static str| {
        move |o: Option<&Value>| {
            o.is_some_and(|o| {
                manager::status::condition(o, "Ready").is_some_and(|c| c.str_at(&["message"]).unwrap().contains(what))
            })
        }
    };
    f.until(RP, "solar-a", "p", says("ResourcePermitTemplate \"t\" not found")).await;
    template(&f, &format!("{{resources: [{{targets: [{MAP}, {{apiVersion: v1, kind: ConfigMap, metadata: {{name: '{{{{ .other }}}}'}}}}]}}]}}")).await;
    f.merge(RP, "solar-a", "p", "metadata: {labels: {try: again}}").await;
    let permit = f.until(RP, "solar-a", "p", says("map has no entry for key \"other\"")).await;
    assert_eq!(permit.str_at(&["status", "phase"]), Some("Created"));
    template(&f, &format!("{{resources: [{{targets: [{MAP}]}}], paramSchema: {{type: object, properties: {{name: {{type: string, maxLength: 1}}}}}}}}")).await;
    f.merge(RP, "solar-a", "p", "metadata: {labels: {try: more}}").await;
    phase(&f, "p", "Requested").await;
    request(&f, "long", ", params: {name: xx}").await;
    f.until(RP, "solar-a", "long", says("params.name: does not satisfy")).await;
}

#[tokio::test]
async fn a_stage_that_fails_can_be_tried_again() {
    let f = Fixture::new().await;
    f.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: solar-a}}").await;
    template(
        &f,
        &format!("{{impersonation: {{name: runner}}, resources: [{{targets: [{MAP}]}}], approvals: {{auto: true}}}}"),
    )
    .await;
    request(&f, "p", ", params: {name: x}").await;
    let failed = phase(&f, "p", "Failed").await;
    assert_eq!(failed.str_at(&["status", "failure", "reason"]), Some("ResourceDryRunFailed"));
    assert!(failed.str_at(&["status", "failure", "message"]).unwrap().contains("forbidden"));
    f.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: runner, namespace: solar-a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: runner, namespace: solar-a}]}").await;
    move_to(&f, "p", "{phase: Retrying}").await;
    let active = phase(&f, "p", "Active").await;
    assert_eq!(active.str_at(&["status", "request", "impersonation", "name"]), Some("runner"));
    assert_eq!(active.at(&["status", "failure"]), None);
    let cm = f.there("solar-a", "cm-x").await;
    assert_eq!(
        cm.annotation("projectcapsule.dev/resourcepermit-service-account"),
        Some("system:serviceaccount:solar-a:runner")
    );
    // Deleted as an administrator does, it cleans up first.
    f.delete(RP, "solar-a", "p").await;
    f.gone("solar-a", "cm-x").await;
    f.until(RP, "solar-a", "p", |o| o.is_none()).await;
}

#[tokio::test]
async fn an_approval_that_no_longer_holds_activates_nothing() {
    let f = Fixture::new().await;
    template(
        &f,
        &format!("{{resources: [{{targets: [{MAP}]}}], approvals: {{approvers: [{{kind: User, name: alice}}]}}}}"),
    )
    .await;
    request(&f, "p", ", params: {name: x}").await;
    phase(&f, "p", "Requested").await;
    move_to(&f, "p", "{phase: Approved, review: {verdict: Approved, reviewer: {name: mallory, type: User}}}").await;
    let failed = phase(&f, "p", "Failed").await;
    assert_eq!(failed.str_at(&["status", "failure", "stage"]), Some("Activation"));
    assert!(f.find("ConfigMap", "solar-a", "cm-x").await.is_none());
}

#[tokio::test]
async fn templates_say_whether_they_are_right_and_where_they_count() {
    let f = Fixture::new().await;
    let global = "capsule.clastix.io/v1beta2/GlobalResourcePermitTemplate";
    let apply = async |spec: &str| {
        f.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {{name: g}}, spec: {spec}}}")).await;
    };
    apply(&format!("{{resources: [{{targets: [{MAP}]}}], namespaceSelectors: [{{matchLabels: {{capsule.clastix.io/tenant: solar}}}}]}}")).await;
    let g = f.ready(global, "", "g", "True", "").await;
    assert_eq!(g.at(&["status", "namespaces"]), Some(&Value::from(vec!["solar-a", "solar-b"])));
    f.namespace("solar-c", "solar").await;
    f.until(global, "", "g", |o| {
        o.is_some_and(|o| o.at(&["status", "namespaces"]).and_then(Value::as_array).is_some_and(|n| n.len() == 3))
    })
    .await;
    apply("{resources: [{template: '{{ end }}'}], namespaceSelectors: []}").await;
    let g = f.ready(global, "", "g", "False", "unexpected {{end}}").await;
    assert_eq!(g.at(&["status", "namespaces"]).and_then(Value::as_array).map(<[Value]>::len), Some(0));
    // A permit of the global template may reach other namespaces, and what is cluster-scoped.
    apply("{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: wind-a}}, {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'wide'}, rules: []}]}], approvals: {auto: true}}").await;
    f.ready(global, "", "g", "True", "").await;
    f.apply("{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: p, namespace: solar-a}, spec: {template: {kind: GlobalResourcePermitTemplate, name: g}}}").await;
    let permit = phase(&f, "p", "Active").await;
    assert_eq!(permit.at(&["status", "size"]), Some(&Value::Int(2)));
    f.there("wind-a", "far").await;
    move_to(&f, "p", "{phase: Expired}").await;
    f.until("rbac.authorization.k8s.io/v1/ClusterRole", "", "wide", |o| o.is_none()).await;
    f.gone("wind-a", "far").await;
}
