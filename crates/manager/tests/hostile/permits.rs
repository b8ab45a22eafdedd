//! By templates of permits in a namespace, and permits that are asked for and approved by their own authors.

use crate::common::{Fixture, GTR, PATIENCE, data, gtr};
use crate::{attacker, strong};
use client::{Client, Patch, PatchParams};
use object::{Value, yaml};

const PERMIT: &str = "capsule.clastix.io/v1beta2/ResourcePermit";

/// Writes a template `t` and asks by it, as the attacker.
async fn ask(f: &Fixture, who: &Client, name: &str, spec: &str, more: &str) {
    let template = format!(
        "{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate, metadata: {{name: {name}, namespace: solar-a}}, spec: {spec}}}"
    );
    f.apply_as(who, &template).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let permit = format!(
        "{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {{name: {name}, namespace: solar-a}}, spec: {{template: {{kind: ResourcePermitTemplate, name: {name}}}{more}}}, status: {{phase: Approved, review: {{verdict: Approved}}}}}}"
    );
    // The template may be a moment old where admission looks.
    for _ in 0..PATIENCE {
        match f.apply_as(who, &permit).await {
            Err(error) if error.is_forbidden() => tokio::time::sleep(std::time::Duration::from_millis(25)).await,
            answer => return drop(answer.unwrap_or_else(|error| panic!("{name}: {error}"))),
        }
    }
    panic!("{name}: it stays forbidden");
}

async fn approve(who: &Client, name: &str, more: &str) -> client::Result<Value> {
    let status = yaml::parse(format!("status: {{phase: Approved{more}}}").as_bytes()).unwrap();
    who.api(&manager::kinds::PERMITS).patch("solar-a", name, &Patch::Merge(status), &PatchParams::status()).await
}

fn phase(permit: Option<&Value>) -> &str {
    permit.and_then(|p| p.str_at(&["status", "phase"])).unwrap_or_default()
}

/// What the attacker's template makes, and why it does not.
const ATTEMPTS: &[(&str, &str, &str)] = &[
    (
        "cluster-binding",
        "{resources: [{targets: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}]}]}",
        "cluster-scoped kind ClusterRoleBinding is not allowed without a service account",
    ),
    (
        "binding",
        "{resources: [{targets: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}]}]}",
        "kind RoleBinding of rbac.authorization.k8s.io is not allowed without a service account",
    ),
    (
        "elsewhere",
        "{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: stray, namespace: wind-a}}]}]}",
        "writing ConfigMap to namespace \"wind-a\" is not allowed without a service account",
    ),
    (
        "elsewhere-by-a-parameter",
        "{resources: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: stray, namespace: {{ .params.to }}}}'}]}",
        "writing ConfigMap to namespace \"kube-system\" is not allowed without a service account",
    ),
    (
        "secrets",
        "{context: {resources: [{apiVersion: v1, kind: Secret, namespace: default, index: s}]}, resources: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}, data: {x: {{ toJson .context.resources.s | quote }}}}'}]}",
        "reading Secret from namespace \"default\" is not allowed",
    ),
    (
        "secrets-by-a-parameter",
        "{context: {resources: [{apiVersion: v1, kind: Secret, namespace: '{{ to }}', index: s}]}, resources: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}'}]}",
        "reading Secret from namespace \"kube-system\" is not allowed",
    ),
    (
        "the-cluster",
        "{context: {resources: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, index: s}]}, resources: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}'}]}",
        "reading ClusterRole, which is in no namespace, is not allowed without a service account",
    ),
    (
        "permits",
        "{approvals: {auto: true}, resources: [{targets: [{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: 'p-{{ uuidv4 }}'}, spec: {template: {kind: ResourcePermitTemplate, name: permits}}}]}]}",
        "kind ResourcePermit of capsule.clastix.io is not allowed without a service account",
    ),
    (
        "application",
        "{resources: [{targets: [{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {name: x}}]}]}",
        "kind Application of core.oam.dev is not allowed without a service account",
    ),
    (
        "quota",
        "{resources: [{policy: {creation: Merge, force: true}, targets: [{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit}, spec: {hard: {pods: '9'}}}]}]}",
        "kind ResourceQuota is not taken over (creation: Merge) without a service account",
    ),
    (
        "endless",
        "{resources: [{template: '{{define \"t\"}}{{template \"t\"}}{{end}}{{template \"t\"}}'}]}",
        "exceeded maximum template depth",
    ),
    (
        "large",
        "{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {x: '{{ repeat 2000000 \"x\" }}'}}]}]}",
        "larger than 1 MiB together",
    ),
    (
        "many",
        "{resources: [{template: \"{{ range until 20000 }}{apiVersion: v1, kind: ConfigMap, metadata: {name: c{{ . }}}}\\n---\\n{{ end }}\"}]}",
        "larger than 1 MiB together",
    ),
    (
        "slow",
        "{resources: [{template: '{{ range until 100 }}{{ bcrypt \"x\" | trunc 1 }}{{ end }}'}]}",
        "too many or too large values",
    ),
    (
        "no-name",
        "{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x-}}]}]}",
        "has no metadata.name",
    ),
];

#[tokio::test]
async fn whoever_writes_a_template_in_a_namespace_gets_nothing_but_what_is_the_tenants() {
    let f = Fixture::new().await;
    let mallory = attacker(&f).await;
    f.apply("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, stringData: {k: treasure}}").await;
    for (name, spec, why) in ATTEMPTS {
        ask(&f, &mallory, name, spec, ", params: {to: kube-system}").await;
        let is_told = |permit: &Value| {
            let ready = manager::status::condition(permit, "Ready");
            ready.is_some_and(|c| {
                c.str_at(&["status"]) == Some("False") && c.str_at(&["message"]).unwrap().contains(why)
            })
        };
        let permit = f.until(PERMIT, "solar-a", name, |o| o.is_some_and(is_told)).await;
        assert_eq!(phase(Some(&permit)), "Created", "{name}");
        assert!(!object::json::to_string(&permit).contains("dHJlYXN1cmU"), "{name}");
        let error = approve(&mallory, name, "").await.unwrap_err().to_string();
        assert!(error.contains("invalid transition from Created to Approved"), "{name}: {error}");
    }
    for (kind, namespace, name) in [
        ("ConfigMap", "wind-a", "stray"),
        ("ConfigMap", "kube-system", "stray"),
        ("ConfigMap", "solar-a", "stray"),
        ("rbac.authorization.k8s.io/v1/ClusterRoleBinding", "", "x"),
        ("rbac.authorization.k8s.io/v1/RoleBinding", "solar-a", "x"),
    ] {
        assert!(f.find(kind, namespace, name).await.is_none(), "{kind} {namespace}/{name}");
    }
    // An account of another namespace is not to be had: that of a name is the namespace's own.
    let map = "{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}";
    f.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: strong, namespace: kube-system}}").await;
    ask(&f, &mallory, "account", &format!("{{impersonation: {{name: strong}}, resources: [{map}]}}"), "").await;
    let failed = f.until(PERMIT, "solar-a", "account", |o| phase(o) == "Failed").await;
    let message = failed.str_at(&["status", "failure", "message"]);
    assert_eq!(message, Some("service account solar-a/strong not found"));
}

#[tokio::test]
async fn what_is_declared_for_all_is_not_taken_by_a_permit() {
    let f = Fixture::new().await;
    let mallory = attacker(&f).await;
    let rule =
        "resources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rule}, data: {mode: strict}}]";
    f.apply(&gtr("rule", rule)).await;
    f.ready(GTR, "", "rule", "True", "").await;
    let loose = "{approvals: {auto: true}, resources: [{policy: {creation: Merge, force: true}, targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rule}, data: {mode: loose}}]}]}";
    ask(&f, &mallory, "loose", loose, "").await;
    let failed = f.until(PERMIT, "solar-a", "loose", |o| phase(o) == "Failed").await;
    assert!(failed.str_at(&["status", "failure", "message"]).unwrap().contains("conflict"));
    assert_eq!(data(&f.there("solar-a", "rule").await, "mode"), Some("strict"));
}

#[tokio::test]
async fn permits_that_permits_make_make_no_more() {
    let f = Fixture::new().await;
    let mallory = attacker(&f).await;
    strong(&f).await;
    let spec = "{impersonation: {name: strong}, approvals: {auto: true}, resources: [{targets: [{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: '{{ .request.name }}-more'}, spec: {template: {kind: ResourcePermitTemplate, name: grows}}}]}]}";
    ask(&f, &mallory, "grows", spec, "").await;
    f.until(PERMIT, "solar-a", "grows", |o| phase(o) == "Active").await;
    let is_told = |permit: &Value| {
        let ready = manager::status::condition(permit, "Ready");
        ready.is_some_and(|c| {
            c.str_at(&["message"]).unwrap().contains("what a permit made cannot make what declares more")
        })
    };
    let second = f.until(PERMIT, "solar-a", "grows-more", |o| o.is_some_and(is_told)).await;
    assert_eq!(second.str_at(&["spec", "requester", "name"]), Some("system:serviceaccount:solar-a:strong"));
    assert!(f.find(PERMIT, "solar-a", "grows-more-more").await.is_none());
}

#[tokio::test]
async fn nobody_approves_in_anothers_name_or_for_longer() {
    let f = Fixture::new().await;
    let mallory = attacker(&f).await;
    // The administrator's template.
    f.apply("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {name: g}, spec: {defaultDuration: 10m, maxDuration: 1h, approvals: {approvers: [{kind: User, name: alice}, {kind: Group, name: ops}], conditions: ['reviewer.name != requester.name']}, resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: made}}]}]}}").await;
    f.ready("capsule.clastix.io/v1beta2/GlobalResourcePermitTemplate", "", "g", "True", "").await;
    let permit = "{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: p, namespace: solar-a}, spec: {template: {kind: GlobalResourcePermitTemplate, name: g}, requester: {name: alice, type: User, groups: [ops]}}, status: {phase: Approved, review: {verdict: Approved, reviewer: {name: alice}}}}";
    for _ in 0..PATIENCE {
        if !f.apply_as(&mallory, permit).await.is_err_and(|error| error.is_forbidden()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let asked = f.until(PERMIT, "solar-a", "p", |o| phase(o) == "Requested").await;
    assert_eq!(asked.str_at(&["spec", "requester", "name"]), Some("mallory"));
    let alice = f.person("alice").await;
    for (who, more, why) in [
        (&mallory, "", "\"mallory\" is not an approver"),
        (&mallory, ", review: {reviewer: {name: alice, type: User, groups: [ops]}}", "\"mallory\" is not an approver"),
        (&mallory, ", request: {approvals: {approvers: []}}", "written by the controller only"),
        (&mallory, ", request: {approvals: null}", "written by the controller only"),
        (
            &mallory,
            ", request: {resources: [{targets: [{apiVersion: v1, kind: Secret, metadata: {name: x}}]}]}",
            "written by the controller only",
        ),
        (
            &mallory,
            ", request: {impersonation: {name: default, namespace: kube-system}}",
            "written by the controller only",
        ),
        (&alice, ", request: {duration: 2h}", "must be at most 1h0m0s"),
        (&alice, ", request: {duration: 0s}", "must be at most 1h0m0s"),
        (&alice, ", request: {duration: forever}", "invalid duration"),
        (&alice, ", request: {startTime: '2000-01-01T00:00:00Z'}", "must not have passed"),
        (&alice, ", request: {keepFor: 99999999999999999w}", "invalid duration"),
    ] {
        let error = approve(who, "p", more).await.map(|_| more).unwrap_err().to_string();
        assert!(error.contains(why), "{more}: {error}");
    }
    let edit = async |patch: &str, params: PatchParams| {
        let patch = Patch::Merge(yaml::parse(patch.as_bytes()).unwrap());
        mallory.api(&manager::kinds::PERMITS).patch("solar-a", "p", &patch, &params).await
    };
    // Past the subresource nothing of the status is written.
    edit("status: {phase: Active, request: {approvals: null}}", PatchParams::default()).await.unwrap();
    edit("spec: {requester: {name: somebody}}", PatchParams::default()).await.unwrap();
    for status in
        ["{request: {duration: 100h}}", "{keepUntil: '2000-01-01T00:00:00Z'}", "{transitions: []}", "{conditions: []}"]
    {
        let error = edit(&format!("status: {status}"), PatchParams::status()).await.unwrap_err().to_string();
        assert!(error.contains("only lifecycle transitions are possible"), "{status}: {error}");
    }
    assert!(f.find("ConfigMap", "solar-a", "made").await.is_none());
    approve(&alice, "p", ", review: {reviewer: {name: bob}, verdict: Denied}, processedItems: [{version: v1, kind: Secret, name: s, namespace: default, status: {created: true}}]").await.unwrap();
    let active = f.until(PERMIT, "solar-a", "p", |o| phase(o) == "Active").await;
    assert_eq!(active.str_at(&["status", "review", "reviewer", "name"]), Some("alice"));
    assert_eq!(active.str_at(&["spec", "requester", "name"]), Some("mallory"));
    assert_eq!(active.at(&["status", "size"]), Some(&Value::Int(1)));
    assert_eq!(active.str_at(&["status", "request", "duration"]), Some("10m"));
}
