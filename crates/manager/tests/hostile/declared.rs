//! By TenantResources in a namespace of the tenant `solar`: to reach beyond it, to take what is declared for all, to have the
//! manager delete what is not theirs, to get its rights, to keep it busy for ever.

use crate::common::{Fixture, GTR, PATIENCE, TR, data, gtr, tr};
use crate::{attacker, strong};
use base64::Engine;
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
    for _ in 0..PATIENCE {
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
    f.ready(TR, "solar-a", "stolen", "False", "kind RoleBinding of rbac.authorization.k8s.io is not allowed").await;
    // Nor by an account that has the rights.
    strong(&f).await;
    f.apply(&tr("stolen", &format!("serviceAccount: {{name: strong}}\n{stolen}"))).await;
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
            tr(
                "middle",
                &format!("serviceAccount: {{name: strong}}\nresources:\n- generators: [{{template: \"{inner}\"}}]"),
            )
            .as_bytes(),
        )
        .unwrap(),
    );
    let outer = format!("resources:\n- rawItems: [{middle}]");
    f.apply(&tr("outer", &outer)).await;
    f.ready(TR, "solar-a", "outer", "False", "kind TenantResource of capsule.clastix.io is not allowed").await;
    // By accounts that may.
    strong(&f).await;
    f.apply(&tr("outer", &format!("serviceAccount: {{name: strong}}\n{outer}"))).await;
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

/// What the attacker declares; what it comes to: nothing where it is fulfilled within the tenant.
const ATTEMPTS: &[(&str, &str, &str)] = &[
    // The manager's rights for the attacker.
    (
        "binding",
        "resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}]}]",
        "kind RoleBinding of rbac.authorization.k8s.io is not allowed without a service account",
    ),
    (
        "role",
        "resources: [{generators: [{template: '{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}]}'}]}]",
        "kind Role of rbac.authorization.k8s.io is not allowed without a service account",
    ),
    (
        "binding-of-an-older-version",
        "resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: RoleBinding, metadata: {name: x}}]}]",
        "is not allowed without a service account",
    ),
    (
        "copied-binding",
        "resources: [{namespacedItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, namespace: solar-a}]}]",
        "kind RoleBinding of rbac.authorization.k8s.io is not allowed without a service account",
    ),
    (
        "template-of-permits",
        "resources: [{rawItems: [{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate, metadata: {name: x}, spec: {approvals: {auto: true}, resources: [{targets: [{apiVersion: v1, kind: Secret, metadata: {name: x}}]}]}}]}]",
        "kind ResourcePermitTemplate of capsule.clastix.io is not allowed without a service account",
    ),
    (
        "permit",
        "resources: [{rawItems: [{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: x}, spec: {template: {kind: GlobalResourcePermitTemplate, name: x}}}]}]",
        "kind ResourcePermit of capsule.clastix.io is not allowed without a service account",
    ),
    (
        "as-the-account-of-another-namespace",
        "resources: [{rawItems: [{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: x}, spec: {serviceAccount: {name: strong}, resources: []}}]}]",
        "kind TenantResource of capsule.clastix.io is not allowed without a service account",
    ),
    (
        "itself",
        "resources: [{policy: {creation: Merge, force: true}, generators: [{template: '{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: itself, annotations: {x: \"{{ uuidv4 }}\"}}}'}]}]",
        "kind TenantResource of capsule.clastix.io is not allowed without a service account",
    ),
    (
        "application",
        "resources: [{rawItems: [{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {name: x}, spec: {components: []}}]}]",
        "kind Application of core.oam.dev is not allowed without a service account",
    ),
    // What limits the attacker.
    (
        "quota",
        "resources: [{policy: {creation: Merge, force: true}, rawItems: [{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit}, spec: {hard: {pods: '1000'}}}]}]",
        "kind ResourceQuota is not taken over (creation: Merge) without a service account",
    ),
    (
        "quota-as-owner",
        "resources: [{policy: {force: true}, rawItems: [{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit}, spec: {hard: {pods: '1000'}}}]}]",
        "applying of 1 resources failed",
    ),
    (
        "range",
        "resources: [{policy: {creation: Merge, force: true}, rawItems: [{apiVersion: v1, kind: LimitRange, metadata: {name: x}, spec: {limits: []}}]}]",
        "kind LimitRange is not taken over",
    ),
    // Beyond the tenant.
    (
        "cluster-binding",
        "resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}}]}]",
        "cluster-scoped kind ClusterRoleBinding is not allowed",
    ),
    (
        "definition",
        "resources: [{rawItems: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x.y}}]}]",
        "cluster-scoped kind CustomResourceDefinition is not allowed",
    ),
    (
        "webhook",
        "resources: [{rawItems: [{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: x}}]}]",
        "cluster-scoped kind MutatingWebhookConfiguration is not allowed",
    ),
    (
        "namespace",
        "resources: [{policy: {creation: Merge, force: true}, rawItems: [{apiVersion: v1, kind: Namespace, metadata: {name: wind-a, labels: {capsule.clastix.io/tenant: solar}}}]}]",
        "cluster-scoped kind Namespace is not allowed",
    ),
    (
        "declared-for-all",
        "resources: [{rawItems: [{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalTenantResource, metadata: {name: x}, spec: {resources: []}}]}]",
        "cluster-scoped kind GlobalTenantResource is not allowed",
    ),
    (
        "selector-of-another-tenant",
        "resources: [{namespaceSelector: {matchLabels: {capsule.clastix.io/tenant: wind}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}]}]",
        "",
    ),
    (
        "selector-of-every-namespace",
        "resources: [{namespaceSelector: {matchExpressions: [{key: capsule.clastix.io/tenant, operator: NotIn, values: [solar]}]}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}]}]",
        "",
    ),
    (
        "selector-of-one-namespace",
        "resources: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: wind-a}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}]}]",
        "",
    ),
    (
        "secrets-of-the-system",
        "resources: [{context: {resources: [{apiVersion: v1, kind: Secret, namespace: kube-system}]}, generators: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: stray}}'}]}]",
        "reading Secret from namespace \"kube-system\" is not allowed",
    ),
    (
        "secrets-by-a-selector",
        "resources: [{namespacedItems: [{apiVersion: v1, kind: Secret, namespace: '{{tenant.name}}-a/../default', selector: {matchExpressions: [{key: x, operator: DoesNotExist}]}}]}]",
        "is not allowed",
    ),
    // What is no object of its own.
    (
        "list",
        "resources: [{rawItems: [{apiVersion: v1, kind: List, metadata: {name: x}, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: stray, namespace: wind-a}}]}]}]",
        "applying of 2 resources failed",
    ),
    (
        "token",
        "resources: [{rawItems: [{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: default}}]}]",
        "applying of 2 resources failed",
    ),
    (
        "eviction",
        "resources: [{rawItems: [{apiVersion: policy/v1, kind: Eviction, metadata: {name: x}}]}]",
        "applying of 2 resources failed",
    ),
    (
        "scale",
        "resources: [{rawItems: [{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: x}, spec: {replicas: 9}}]}]",
        "applying of 2 resources failed",
    ),
    (
        "review",
        "resources: [{rawItems: [{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {name: x}}]}]",
        "applying of 2 resources failed",
    ),
    (
        "generated-name",
        "resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x-}}]}]",
        "metadata.name is missing",
    ),
    ("no-kind", "resources: [{rawItems: [{metadata: {name: x}}]}]", "apiVersion is missing"),
    // Others' deletion, and one's own.
    (
        "owner-elsewhere",
        "resources: [{policy: {deletion: Orphan}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: own, finalizers: [x.io/stay], ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: theirs, uid: UID, controller: true, blockOwnerDeletion: true}]}}]}]",
        "",
    ),
    (
        "nobody-to-wait-for",
        "{dependsOn: [{name: nobody-to-wait-for}], resources: []}",
        "dependency nobody-to-wait-for not ready",
    ),
    // Times without an end.
    ("never-again", "{resyncPeriod: 5000000000000000h, resources: []}", ""),
    ("all-the-time", "{resyncPeriod: 1ns, resources: []}", ""),
    ("too-long", "{resyncPeriod: 9000000000000000h, resources: []}", "spec.resyncPeriod: invalid duration"),
    ("before", "{resyncPeriod: -1s, resources: []}", "spec.resyncPeriod: invalid duration"),
];

#[tokio::test]
async fn whoever_declares_in_a_namespace_gets_nothing_but_what_is_the_tenants() {
    let f = Fixture::new().await;
    let mallory = attacker(&f).await;
    let before = theirs(&f).await;
    f.apply(
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit, namespace: solar-a}, spec: {hard: {pods: '1'}}}",
    )
    .await;
    f.apply("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, stringData: {k: treasure}}").await;
    let declare = async |name: &str, spec: &str| {
        let spec = spec.replace("UID", before.meta_str("uid"));
        f.apply_as(&mallory, &tr(name, &spec)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    for (name, spec, why) in ATTEMPTS {
        declare(name, spec).await;
        let status = if why.is_empty() { "True" } else { "False" };
        f.ready(TR, "solar-a", name, status, why).await;
    }
    // As long as names can be, and a little longer.
    for (length, status, why) in [(253, "True", ""), (254, "False", "applying of 2 resources failed")] {
        let name = "n".repeat(length);
        declare(&"x".repeat(253), &format!("resources:\n- rawItems: [{}]", map(&name, ""))).await;
        f.ready(TR, "solar-a", &"x".repeat(253), status, why).await;
    }
    // All of this is over, and everybody else has what they had; whoever comes now is served.
    f.apply_as(&mallory, &tr("last", &format!("resources:\n- rawItems: [{}]", map("last", "")))).await.unwrap();
    f.ready(TR, "solar-a", "last", "True", "").await;
    for (namespace, name) in [("wind-a", "stray"), ("default", "stray"), ("kube-system", "stray")] {
        assert!(f.find("ConfigMap", namespace, name).await.is_none(), "{namespace}/{name}");
    }
    for kind in [
        "rbac.authorization.k8s.io/v1/RoleBinding",
        "rbac.authorization.k8s.io/v1/Role",
        "core.oam.dev/v1beta1/Application",
    ] {
        assert!(f.find(kind, "solar-b", "x").await.is_none(), "{kind}");
    }
    let quota = f.find("ResourceQuota", "solar-a", "limit").await.unwrap();
    assert_eq!(quota.str_at(&["spec", "hard", "pods"]), Some("1"));
    let namespace = f.find("Namespace", "", "wind-a").await.unwrap();
    assert_eq!(namespace.label("capsule.clastix.io/tenant"), Some("wind"));
    assert_eq!(f.there("wind-a", "theirs").await.meta_str("resourceVersion"), before.meta_str("resourceVersion"));
}

#[tokio::test]
async fn what_is_declared_for_all_is_not_taken_by_force_even_where_it_is_not_protected() {
    let f = Fixture::new().await;
    let mallory = attacker(&f).await;
    let rule = "resources:\n- policy: {protect: false}\n  rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rule}, data: {mode: strict}}]";
    f.apply(&gtr("rule", rule)).await;
    f.ready(GTR, "", "rule", "True", "").await;
    let loose = "resources:\n- policy: {creation: Merge, force: true}\n  rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rule}, data: {mode: loose}}]";
    f.apply_as(&mallory, &tr("loose", loose)).await.unwrap();
    f.ready(TR, "solar-a", "loose", "False", "applying of 2 resources failed").await;
    assert_eq!(data(&f.there("solar-b", "rule").await, "mode"), Some("strict"));
}
