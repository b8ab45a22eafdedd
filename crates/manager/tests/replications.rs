//! TenantResource and GlobalTenantResource, against the real server.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, GTR, PATIENCE, TR, data, gtr, tr};
use object::Value;

const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'cm', namespace: elsewhere}, data: {tenant: '{{tenant.name}}', ns: '{{ namespace }}', none: '{{nothing}}'}}";

#[tokio::test]
async fn tenants_say_which_namespaces_they_have_and_owners_get_their_roles() {
    let f = Fixture::new().await;
    let tenant = "capsule.clastix.io/v1beta2/Tenant";
    let solar =
        f.until(tenant, "", "solar", |t| t.is_some_and(|t| t.at(&["status", "size"]) == Some(&Value::Int(2)))).await;
    assert_eq!(solar.at(&["status", "namespaces"]), Some(&Value::from(vec!["solar-a", "solar-b"])));
    assert_eq!(solar.str_at(&["status", "state"]), Some("Active"));
    f.ready(tenant, "", "solar", "True", "").await;
    let bindings = f
        .resource(&object::yaml::parse(b"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}").unwrap())
        .await;
    let mut all = Vec::new();
    for _ in 0..100 {
        all = f.client.api(&bindings).list("solar-b", &client::ListParams::default()).await.unwrap().items;
        if all.len() == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut roles: Vec<_> = all.iter().map(|b| b.str_at(&["roleRef", "name"]).unwrap()).collect();
    roles.sort_unstable();
    assert_eq!(roles, ["admin", "capsule-namespace-deleter"]);
    // What others delete comes back.
    let name = all[0].name();
    f.client.api(&bindings).delete("solar-b", name, &client::DeleteParams::default()).await.unwrap();
    f.until("rbac.authorization.k8s.io/v1/RoleBinding", "solar-b", name, |b| {
        b.is_some_and(|b| b.meta_str("uid") != all[0].meta_str("uid"))
    })
    .await;
    f.merge(tenant, "", "solar", "spec: {owners: [], cordoned: true}").await;
    f.until("rbac.authorization.k8s.io/v1/RoleBinding", "solar-b", name, |b| b.is_none()).await;
    f.until(tenant, "", "solar", |t| t.is_some_and(|t| t.str_at(&["status", "state"]) == Some("Cordoned"))).await;
}

#[tokio::test]
async fn raw_items_and_generators_reach_every_namespace_of_the_tenant_and_only_those() {
    let f = Fixture::new().await;
    f.apply(&tr("r", &format!("resources:\n- rawItems: [{MAP}]\n  additionalMetadata: {{labels: {{team: '{{{{tenant.name}}}}'}}}}\n- generators:\n  - template: |\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {{name: gen}}\n      data:\n        ns: {{{{ .namespace.metadata.name | quote }}}}\n        tenant: {{{{ .tenant.metadata.name | upper }}}}\n"))).await;
    for namespace in ["solar-a", "solar-b"] {
        let cm = f.there(namespace, "cm").await;
        assert_eq!(
            (data(&cm, "tenant"), data(&cm, "ns"), data(&cm, "none")),
            (Some("solar"), Some(namespace), Some(""))
        );
        assert_eq!(
            (cm.label("team"), cm.label("projectcapsule.dev/managed-by")),
            (Some("solar"), Some("replications"))
        );
        let generated = f.there(namespace, "gen").await;
        assert_eq!((data(&generated, "ns"), data(&generated, "tenant")), (Some(namespace), Some("SOLAR")));
    }
    let parent = f.ready(TR, "solar-a", "r", "True", "reconciled").await;
    assert_eq!(parent.at(&["status", "size"]), Some(&Value::Int(4)));
    assert_eq!(parent.meta_list("finalizers"), ["controller.projectcapsule.dev/finalize"]);
    assert!(f.find("ConfigMap", "wind-a", "cm").await.is_none());
    // A namespace that comes gets its objects, one that goes from the tenant loses them.
    f.namespace("solar-c", "solar").await;
    f.there("solar-c", "cm").await;
    f.namespace("solar-b", "wind").await;
    f.gone("solar-b", "cm").await;
    // What others change or delete is put back.
    f.delete("ConfigMap", "solar-a", "cm").await;
    f.there("solar-a", "cm").await;
    f.merge("ConfigMap", "solar-a", "cm", "data: {ns: hacked}").await;
    f.until("ConfigMap", "solar-a", "cm", |o| o.is_some_and(|o| data(o, "ns") == Some("solar-a"))).await;
    // What is no longer declared goes, and everything with its parent.
    f.merge(TR, "solar-a", "r", &format!("spec: {{resources: [{{rawItems: [{MAP}]}}]}}")).await;
    f.gone("solar-a", "gen").await;
    f.delete(TR, "solar-a", "r").await;
    f.gone("solar-a", "cm").await;
    f.until(TR, "solar-a", "r", |o| o.is_none()).await;
}

#[tokio::test]
async fn a_parent_that_is_left_alone_is_not_written() {
    let f = Fixture::new().await;
    f.apply(&tr("r", &format!("resyncPeriod: 1s\nresources:\n- rawItems: [{MAP}]"))).await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    let version = |o: Option<Value>| o.unwrap().meta_str("resourceVersion").to_owned();
    let before = (version(f.find(TR, "solar-a", "r").await), version(f.find("ConfigMap", "solar-b", "cm").await));
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    assert_eq!(
        before,
        (version(f.find(TR, "solar-a", "r").await), version(f.find("ConfigMap", "solar-b", "cm").await))
    );
}

#[tokio::test]
async fn global_resources_select_tenants_and_know_three_scopes() {
    let f = Fixture::new().await;
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'all-{{tenant.name}}'}, rules: []}";
    f.apply(&gtr("ns", &format!("tenantSelector: {{matchLabels: {{energy: renewable}}}}\nresources:\n- rawItems: [{MAP}, {role}]\n  namespaceSelector: {{matchExpressions: [{{key: name, operator: NotIn, values: [solar-b]}}]}}"))).await;
    let parent = f.ready(GTR, "", "ns", "True", "reconciled").await;
    assert_eq!(parent.at(&["status", "selectedTenants"]), Some(&Value::from(vec!["solar", "wind"])));
    // A cluster-scoped object that several namespaces render alike is one target of its tenant.
    assert_eq!(parent.at(&["status", "size"]), Some(&Value::Int(4)));
    f.there("wind-a", "cm").await;
    assert!(f.find("ConfigMap", "solar-b", "cm").await.is_none());
    assert!(f.find("rbac.authorization.k8s.io/v1/ClusterRole", "", "all-wind").await.is_some());

    f.apply(&gtr("tenant", "scope: Tenant\nresources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: 'of-{{tenant.name}}', namespace: default}}]")).await;
    f.ready(GTR, "", "tenant", "True", "").await;
    f.there("default", "of-solar").await;
    f.there("default", "of-wind").await;
    f.apply(&gtr("none", "scope: None\nresources:\n- generators: [{template: \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: once, namespace: default}\\ndata: {t: '{{ .tenant }}'}\"}]")).await;
    f.ready(GTR, "", "none", "True", "").await;
    let once = f.there("default", "once").await;
    assert_eq!(data(&once, "t"), Some(""));
    assert_eq!(once.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map(<[Value]>::len), Some(1));
    f.apply(&gtr(
        "placeless",
        "scope: None\nresources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]",
    ))
    .await;
    f.ready(GTR, "", "placeless", "False", "needs a metadata.namespace").await;
    // A tenant that is no longer selected loses what it got.
    f.merge("capsule.clastix.io/v1beta2/Tenant", "", "wind", "metadata: {labels: {energy: null}}").await;
    f.gone("wind-a", "cm").await;
    f.until(GTR, "", "ns", |o| {
        o.is_some_and(|o| o.at(&["status", "selectedTenants"]) == Some(&Value::from(vec!["solar"])))
    })
    .await;
}

#[tokio::test]
async fn what_fails_to_render_or_is_not_allowed_changes_nothing() {
    let f = Fixture::new().await;
    f.apply(&tr("r", &format!("resources:\n- rawItems: [{MAP}]"))).await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    for (block, message) in [
        (
            "generators: [{template: '{{ fail \"broken\" }}'}]",
            "error running generator: template: generators[0]:1:3: executing",
        ),
        (
            "generators: [{template: '{{ .tenant.nope.deeper }}', missingKey: error}]",
            "map has no entry for key \"nope\"",
        ),
        ("generators: [{template: '{{ end }}'}]", "spec.resources[0].generators[0].template: "),
        (
            "rawItems: [{apiVersion: v1, kind: Namespace, metadata: {name: evil}}]",
            "cluster-scoped kind Namespace is not allowed",
        ),
        ("rawItems: [{apiVersion: v1, metadata: {name: evil}}]", "0/raw-0"),
        (
            "context: {resources: [{apiVersion: v1, kind: ConfigMap, namespace: wind-a, index: x}]}\n  generators: [{template: ''}]",
            "reading ConfigMap from namespace \"wind-a\" is not allowed",
        ),
        (
            "namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: gone, namespace: solar-a, optional: false}]",
            "ConfigMap \"gone\" not found",
        ),
    ] {
        f.apply(&tr("r", &format!("resources:\n- {block}"))).await;
        f.ready(TR, "solar-a", "r", "False", message).await;
        assert!(f.find("ConfigMap", "solar-a", "cm").await.is_some(), "{message}");
    }
    let error = f.try_apply(&tr("r", "resources:\n- policy: {condition: 'object.x'}")).await.unwrap_err();
    assert!(error.to_string().contains("spec.resources[0].policy.condition: Invalid value"), "{error}");
    // One target that fails stops no other.
    f.apply(&tr("r", "resources:\n- rawItems: [{apiVersion: nope/v1, kind: Nope, metadata: {name: x}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: good}}]")).await;
    f.ready(TR, "solar-a", "r", "False", "applying of 2 resources failed").await;
    f.there("solar-b", "good").await;
    f.gone("solar-a", "cm").await;
}

#[tokio::test]
async fn objects_are_copied_from_where_they_are() {
    let f = Fixture::new().await;
    f.apply("{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: solar-a, labels: {copy: me, keep: me}}, data: {k: dg==}}").await;
    f.apply(&tr("r", "resources:\n- namespacedItems: [{apiVersion: v1, kind: Secret, namespace: solar-a, selector: {matchLabels: {copy: me}}}]\n- context: {resources: [{apiVersion: v1, kind: Secret, namespace: solar-a, name: pull, index: pulls}]}\n  generators: [{template: \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: seen}\\ndata: {k: '{{ (index .pulls 0).data.k | b64dec }}'}\"}]")).await;
    let copy = f.until("Secret", "solar-b", "pull", |o| o.is_some()).await;
    assert_eq!((data(&copy, "k"), copy.label("keep"), copy.label("copy")), (Some("dg=="), Some("me"), None));
    assert_eq!(data(&f.there("solar-b", "seen").await, "k"), Some("v"));
    f.ready(TR, "solar-a", "r", "True", "").await;
    assert!(f.find("Secret", "solar-a", "pull").await.unwrap().label("copy").is_some());
}

#[tokio::test]
async fn service_accounts_do_the_work_and_need_the_rights() {
    let f = Fixture::new().await;
    f.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: solar-a}}").await;
    f.apply(&tr("r", &format!("resyncPeriod: 1s\nserviceAccount: {{name: runner}}\nresources:\n- rawItems: [{MAP}]")))
        .await;
    let parent = f.ready(TR, "solar-a", "r", "False", "applying of 2 resources failed").await;
    assert_eq!(parent.str_at(&["status", "serviceAccount", "namespace"]), Some("solar-a"));
    f.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: runner}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: runner, namespace: solar-a}]}").await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    f.there("solar-b", "cm").await;
    // The configuration gives an account to those that name none.
    f.apply("{apiVersion: capsule.clastix.io/v1beta2, kind: CapsuleConfiguration, metadata: {name: default}, spec: {impersonation: {tenantDefaultServiceAccount: default}}}").await;
    f.apply(&tr("powerless", "resources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}]"))
        .await;
    f.ready(TR, "solar-a", "powerless", "False", "applying of 2 resources failed").await;
}

#[tokio::test]
async fn dependencies_and_cordons_hold_things_back() {
    let f = Fixture::new().await;
    f.apply(&tr("second", &format!("dependsOn: [{{name: first}}]\nresources:\n- rawItems: [{MAP}]"))).await;
    f.ready(TR, "solar-a", "second", "False", "dependency first not found").await;
    f.apply(&tr("first", "resources:\n- rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}]")).await;
    f.ready(TR, "solar-a", "second", "True", "").await;
    f.there("solar-b", "cm").await;
    f.merge(TR, "solar-a", "first", "spec: {cordoned: true, resources: []}").await;
    let is_cordoned =
        |o: &Value| manager::status::condition(o, "Cordoned").is_some_and(|c| c.str_at(&["status"]) == Some("True"));
    f.until(TR, "solar-a", "first", |o| o.is_some_and(is_cordoned)).await;
    assert!(f.find("ConfigMap", "solar-b", "first").await.is_some());
    // A cordon does not hold back the end.
    f.delete(TR, "solar-a", "first").await;
    f.gone("solar-b", "first").await;
}

#[tokio::test]
async fn conditions_let_objects_be_made_once() {
    let f = Fixture::new().await;
    let spec = |value: &str, protect: bool| {
        tr(
            "r",
            &format!(
                "resources:\n- policy: {{condition: 'object == null', protect: {protect}}}\n  rawItems: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: cm}}, data: {{v: {value}}}}}]"
            ),
        )
    };
    f.apply(&spec("one", true)).await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    assert_eq!(data(&f.there("solar-b", "cm").await, "v"), Some("one"));
    f.apply(&spec("two", false)).await;
    let skipped = |o: &Value| {
        let items = o.at(&["status", "processedItems"]).and_then(Value::as_array).unwrap_or_default();
        !items.is_empty()
            && items.iter().all(|i| {
                i.str_at(&["status", "message"]) == Some("ConditionNotMet: apply skipped")
                    && i.at(&["status", "policy", "protect"]) == Some(&Value::Bool(false))
            })
    };
    f.until(TR, "solar-a", "r", |o| o.is_some_and(skipped)).await;
    let cm = f.there("solar-b", "cm").await;
    assert_eq!((data(&cm, "v"), cm.label("projectcapsule.dev/protected-by")), (Some("one"), None));
}

#[tokio::test]
async fn what_is_protected_is_changed_by_nobody_else() {
    let f = Fixture::new().await;
    f.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: solar-a}}").await;
    f.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: runner}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: runner, namespace: solar-a}]}").await;
    f.apply(&tr("r", &format!("serviceAccount: {{name: runner}}\nresources:\n- rawItems: [{MAP}]"))).await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    let person = f.person("carol").await;
    let maps = person.api(&client::resources::CONFIG_MAPS);
    let edit = |patch: &str| client::Patch::Merge(object::yaml::parse(patch.as_bytes()).unwrap());
    let params = client::PatchParams::default();
    for patch in ["data: {ns: evil}", "metadata: {labels: {projectcapsule.dev/protected-by: null}}"] {
        let error = maps.patch("solar-b", "cm", &edit(patch), &params).await.unwrap_err();
        assert!(error.to_string().contains("protected by TenantResource solar-a/r"), "{error}");
    }
    assert!(maps.delete("solar-b", "cm", &client::DeleteParams::default()).await.unwrap_err().is_forbidden());
    // The account that manages it may, and so may everybody once it is not protected.
    let runner = f.client.acting_as("system:serviceaccount:solar-a:runner", &["system:authenticated"]);
    runner
        .api(&client::resources::CONFIG_MAPS)
        .patch("solar-b", "cm", &edit("metadata: {labels: {a: b}}"), &params)
        .await
        .unwrap();
    let accounts = person.api(&client::resources::SERVICE_ACCOUNTS);
    let error = accounts.delete("solar-a", "runner", &client::DeleteParams::default()).await.unwrap_err();
    assert!(error.to_string().contains("the service account is used by TenantResource solar-a/r"), "{error}");
    // Labels alone protect nothing, and cannot be forged.
    let forged = "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: solar-b, labels: {projectcapsule.dev/protected-by: replications}}}";
    let error = f.apply_as(&person, forged).await.unwrap_err();
    assert!(error.to_string().contains("is set by the controller only"), "{error}");
    f.apply(&tr(
        "r",
        &format!("serviceAccount: {{name: runner}}\nresources:\n- policy: {{protect: false}}\n  rawItems: [{MAP}]"),
    ))
    .await;
    f.ready(TR, "solar-a", "r", "True", "").await;
    let mut edited = maps.patch("solar-b", "cm", &edit("metadata: {labels: {c: d}}"), &params).await;
    for _ in 0..PATIENCE {
        if !edited.as_ref().is_err_and(client::Error::is_forbidden) {
            break;
        }
        // What admission knows may be a moment old.
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        edited = maps.patch("solar-b", "cm", &edit("metadata: {labels: {c: d}}"), &params).await;
    }
    edited.unwrap();
    // A role binding of a tenant is its controller's.
    let bindings = person.api(
        &f.resource(&object::yaml::parse(b"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}").unwrap())
            .await,
    );
    let all = bindings.list("solar-b", &client::ListParams::default()).await.unwrap().items;
    let error = bindings.delete("solar-b", all[0].name(), &client::DeleteParams::default()).await.unwrap_err();
    assert!(error.to_string().contains("managed by a Tenant"), "{error}");
}
