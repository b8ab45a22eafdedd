//! Permits from the request to the end, against the real server.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, PATIENCE, data};
use object::Value;

const RP: &str = "capsule.clastix.io/v1beta2/ResourcePermit";
const MAP: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'cm-{{ .name }}'}, data: {by: '{{ .request.username }}'}}";

async fn template(f: &Fixture, spec: &str) {
    f.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate, metadata: {{name: t, namespace: solar-a}}, spec: {spec}}}")).await;
    f.ready("capsule.clastix.io/v1beta2/ResourcePermitTemplate", "solar-a", "t", "True", "").await;
}

async fn request(f: &Fixture, name: &str, more: &str) {
    // The template may be a moment old where admission looks.
    soon(async || try_request(f, name, more).await).await;
}

/// What is forbidden for a moment is accepted soon.
async fn soon(ask: impl AsyncFn() -> client::Result<Value>) {
    for _ in 0..PATIENCE {
        match ask().await {
            Err(error) if error.is_forbidden() => tokio::time::sleep(std::time::Duration::from_millis(25)).await,
            answer => return drop(answer.unwrap()),
        }
    }
    panic!("it stays forbidden");
}

/// Asks as bob.
async fn try_request(f: &Fixture, name: &str, more: &str) -> client::Result<Value> {
    let bob = f.client.acting_as("bob", &["system:masters"]);
    f.apply_as(&bob, &format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {{name: {name}, namespace: solar-a}}, spec: {{template: {{kind: ResourcePermitTemplate, name: t}}, requester: {{name: somebody-else, type: System}}{more}}}}}")).await
}

async fn move_to(f: &Fixture, name: &str, status: &str) {
    try_move(&f.client.acting_as("alice", &["system:masters"]), name, status).await.unwrap();
}

async fn try_move(who: &client::Client, name: &str, status: &str) -> client::Result<Value> {
    let resource = manager::kinds::PERMITS;
    let patch = client::Patch::Merge(object::yaml::parse(format!("status: {status}").as_bytes()).unwrap());
    who.api(&resource).patch("solar-a", name, &patch, &client::PatchParams::status()).await
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
    template(&f, &format!("{{resources: [{{targets: [{MAP}]}}], defaultDuration: 1h, maxDuration: 1h}}")).await;
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
    move_to(&f, "p", "{phase: Approved, review: {message: fine}}").await;
    let permit = phase(&f, "p", "Active").await;
    assert_eq!(permit.str_at(&["status", "review", "reviewer", "name"]), Some("alice"));
    let cm = f.there("solar-a", "cm-x").await;
    assert_eq!(cm.annotation("projectcapsule.dev/active-until"), permit.str_at(&["status", "active", "until"]));
    assert_eq!(cm.label("app.kubernetes.io/managed-by"), Some("resource-permit-controller"));
    assert_eq!(permit.meta_list("finalizers").len(), 1);
    // While it is active, it is kept as it is.
    f.merge("ConfigMap", "solar-a", "cm-x", "data: {by: evil}").await;
    f.until("ConfigMap", "solar-a", "cm-x", |o| o.is_some_and(|o| data(o, "by") == Some("bob"))).await;
    move_to(&f, "p", "{phase: Expired}").await;
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
    let bad = try_request(&f, "bad", ", reason: none, params: {name: y}").await.unwrap_err();
    assert!(bad.to_string().contains("no approval condition is met"), "{bad}");
    // Ended early, it is kept for a while.
    move_to(&f, "good", "{phase: Expired}").await;
    f.gone("solar-a", "cm-x").await;
    let kept = f.until(RP, "solar-a", "good", |o| o.is_some_and(|o| o.at(&["status", "keepUntil"]).is_some())).await;
    assert_eq!((ready(&kept).0, kept.at(&["status", "size"])), ("True", Some(&Value::Int(0))));
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_and_what_cannot_be_prepared_says_why() {
    let f = Fixture::new().await;
    let refused = async |name: &str, more: &str, why: &str| {
        let mut said = String::new();
        for _ in 0..PATIENCE {
            let error = try_request(&f, name, more).await.unwrap_err();
            said = error.to_string();
            if error.is_forbidden() && said.contains(why) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("{said}");
    };
    refused("early", ", params: {name: x}", "ResourcePermitTemplate \"t\" not found").await;
    template(&f, &format!("{{maxDuration: 1h, defaultDuration: 1h, resources: [{{targets: [{MAP}, {{apiVersion: v1, kind: ConfigMap, metadata: {{name: '{{{{ .other }}}}'}}}}]}}], paramSchema: {{type: object, properties: {{name: {{type: string, maxLength: 1}}}}}}}}")).await;
    refused("p", ", params: {name: xx}", "params.name: does not satisfy").await;
    refused("p", ", params: {name: x}, duration: 2h", "duration: must be at most 1h0m0s").await;
    refused("p", ", params: {name: x}, startTime: '2020-01-01T00:00:00Z'", "must be in the future").await;
    request(&f, "p", ", params: {name: x}").await;
    let says = |what: &'static str| {
        move |o: Option<&Value>| {
            o.is_some_and(|o| {
                manager::status::condition(o, "Ready").is_some_and(|c| c.str_at(&["message"]).unwrap().contains(what))
            })
        }
    };
    let permit = f.until(RP, "solar-a", "p", says("map has no entry for key \"other\"")).await;
    assert_eq!(permit.str_at(&["status", "phase"]), Some("Created"));
    assert_eq!(permit.str_at(&["spec", "requester", "name"]), Some("bob"));
    template(&f, &format!("{{resources: [{{targets: [{MAP}]}}]}}")).await;
    f.merge(RP, "solar-a", "p", "metadata: {labels: {try: again}}").await;
    phase(&f, "p", "Requested").await;
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
async fn statuses_are_written_by_reviewers_only_as_the_table_allows() {
    let f = Fixture::new().await;
    template(
        &f,
        &format!("{{resources: [{{targets: [{MAP}]}}], approvals: {{approvers: [{{kind: User, name: alice}}]}}}}"),
    )
    .await;
    request(&f, "p", ", params: {name: x}").await;
    phase(&f, "p", "Requested").await;
    let (mallory, alice) = (f.person("mallory").await, f.person("alice").await);
    for (who, status, why) in [
        (&mallory, "{phase: Approved}", "\"mallory\" is not an approver"),
        (&alice, "{phase: Active}", "invalid transition from Requested to Active"),
        (&alice, "{phase: Failed}", "set by the controller only"),
        (&alice, "{size: 5}", "only lifecycle transitions are possible"),
        (&alice, "{phase: Approved, request: {resources: []}}", "written by the controller only"),
    ] {
        let error = try_move(who, "p", status).await.unwrap_err();
        assert!(error.is_forbidden() && error.to_string().contains(why), "{status}: {error}");
    }
    assert!(f.find("ConfigMap", "solar-a", "cm-x").await.is_none());
    try_move(&alice, "p", "{phase: Approved, active: {from: '2020-01-01T00:00:00Z'}}").await.unwrap();
    let active = phase(&f, "p", "Active").await;
    assert_ne!(active.str_at(&["status", "active", "from"]), Some("2020-01-01T00:00:00Z"));
    // What is active must expire before it can be deleted, and what it made is nobody else's.
    let permits = alice.api(&manager::kinds::PERMITS);
    let error = permits.delete("solar-a", "p", &client::DeleteParams::default()).await.unwrap_err();
    assert!(error.to_string().contains("a permit in phase Active must expire first"), "{error}");
    let error = alice
        .api(&client::resources::CONFIG_MAPS)
        .delete("solar-a", "cm-x", &client::DeleteParams::default())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("protected by ResourcePermit solar-a/p"), "{error}");
    try_move(&alice, "p", "{phase: Expired}").await.unwrap();
    f.gone("solar-a", "cm-x").await;
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
    let broken = f.try_apply("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {name: g}, spec: {resources: [{template: '{{ end }}'}]}}").await.unwrap_err();
    assert!(broken.to_string().contains("unexpected {{end}}"), "{broken}");
    // A permit of the global template may reach other namespaces, and what is cluster-scoped.
    apply("{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: wind-a}}, {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'wide'}, rules: []}]}], approvals: {auto: true}}").await;
    f.ready(global, "", "g", "True", "").await;
    soon(async || {
        f.try_apply("{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: p, namespace: solar-a}, spec: {template: {kind: GlobalResourcePermitTemplate, name: g}}}").await
    })
    .await;
    let permit = phase(&f, "p", "Active").await;
    assert_eq!(permit.at(&["status", "size"]), Some(&Value::Int(2)));
    f.there("wind-a", "far").await;
    move_to(&f, "p", "{phase: Expired}").await;
    f.until("rbac.authorization.k8s.io/v1/ClusterRole", "", "wide", |o| o.is_none()).await;
    f.gone("wind-a", "far").await;
}

#[tokio::test]
async fn a_permit_goes_with_its_namespace_and_is_kept_as_long_as_was_said_otherwise() {
    let f = Fixture::new().await;
    let spec =
        format!("{{defaultDuration: 1h, keepFor: 1h, approvals: {{auto: true}}, resources: [{{targets: [{MAP}]}}]}}");
    template(&f, &spec).await;
    request(&f, "p", ", params: {name: x}").await;
    let active = phase(&f, "p", "Active").await;
    // Ended early, it is kept until when it said.
    move_to(&f, "p", "{phase: Expired}").await;
    f.gone("solar-a", "cm-x").await;
    let expired = phase(&f, "p", "Expired").await;
    let keep = |permit: &Value| permit.str_at(&["status", "keepUntil"]).map(str::to_owned);
    assert_eq!(keep(&expired), keep(&active));
    assert!(keep(&active).is_some());

    request(&f, "q", ", params: {name: y}").await;
    phase(&f, "q", "Active").await;
    let bob = f.person("bob").await;
    let permits = bob.api(&manager::kinds::PERMITS);
    for name in ["p", "q"] {
        assert!(permits.delete("solar-a", name, &client::DeleteParams::default()).await.unwrap_err().is_forbidden());
    }
    f.delete("Namespace", "", "solar-a").await;
    for name in ["p", "q"] {
        soon(async || permits.delete("solar-a", name, &client::DeleteParams::default()).await).await;
        f.until(RP, "solar-a", name, |o| o.is_none()).await;
    }
    f.gone("solar-a", "cm-y").await;
}

#[tokio::test]
async fn people_are_told_of_each_step_once_and_of_what_is_missing() {
    let f = Fixture::new().await;
    template(&f, &format!("{{resources: [{{targets: [{MAP}]}}]}}")).await;
    request(&f, "p", ", params: {name: x}").await;
    phase(&f, "p", "Requested").await;
    move_to(&f, "p", "{phase: Approved, review: {message: fine}}").await;
    phase(&f, "p", "Active").await;
    request(&f, "q", "").await;
    let is_told = |o: Option<&Value>| o.is_some_and(|o| manager::status::condition(o, "Ready").is_some());
    let asked = f.until(RP, "solar-a", "q", |o| is_told(o) && ready(o.unwrap()).0 == "False").await;
    assert!(ready(&asked).1.starts_with("parameter \"name\" is missing: resources[0]: "), "{}", ready(&asked).1);
    let events = client::Resource::known("", "v1", "events", "Event", true);
    let expected = [
        "p PendingReview bob User: Requested by bob",
        "p ApprovedByUser alice User: Approved by alice fine",
        "p ActivatedBySystem capsule-controller System: Active by capsule-controller",
        "q TemplateRenderingFailed  : parameter \"name\" is missing",
    ];
    let mut told = Vec::new();
    for _ in 0..PATIENCE {
        let all = f.client.api(&events).list("solar-a", &client::ListParams::default()).await.unwrap().items;
        let mut found: Vec<&Value> =
            all.iter().filter(|e| e.str_at(&["involvedObject", "kind"]) == Some("ResourcePermit")).collect();
        // Each permit's own are in order.
        found.sort_by_key(|e| e.name().to_owned());
        let text = |e: &Value, path: &[&str]| e.str_at(path).unwrap_or_default().to_owned();
        told = found
            .iter()
            .map(|e| {
                let label = |key| e.label(key).unwrap_or_default();
                let (actor, kind) =
                    (label("event.projectcapsule.dev/actor"), label("event.projectcapsule.dev/actor-kind"));
                let message = text(e, &["message"]);
                let message = message.split(": resources").next().unwrap_or_default().to_owned();
                format!("{} {} {actor} {kind}: {message}", text(e, &["involvedObject", "name"]), text(e, &["reason"]))
            })
            .collect();
        if told.len() >= expected.len() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(told, expected);
}
