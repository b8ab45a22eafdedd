//! Section 7: what users of the original reported, done right. Rows are named after the reports.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

const TR: &str = "capsule.clastix.io/v1beta2/TenantResource solar-a/NAME";

#[tokio::test]
async fn what_users_reported_is_right() {
    let f = Fixture::new().await;
    check(&f, &[
        ("525 objects reach every namespace of the tenant", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Says("{status: {processedItems: [{namespace: solar-a}, {namespace: solar-b}]}}"),
            Is("ConfigMap wind-a/NAME", GONE),
        ]),
        ("222 a shared Secret that is deleted comes back", &[
            Foreign("{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: default}, stringData: {k: v}}"),
            Global("resources: [{namespacedItems: [{apiVersion: v1, kind: Secret, name: NAME, namespace: default}]}]"),
            Delete("Secret wind-a/NAME"),
            Is("Secret wind-a/NAME", "{data: {k: dg==}}"),
        ]),
        ("688 names of tenant and namespace in manifests", &[
            Declare("resources: [{rawItems: [{MAP, data: {x: '{{tenant.name}}/{{namespace}}'}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {x: solar/solar-b}}"),
        ]),
        ("697, 2090 cluster-scoped objects, without a namespace in the request", &[
            Global("{tenantSelector: {matchLabels: {energy: renewable}}, resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'NAME-{{namespace}}'}}]}]}"),
            Is("rbac.authorization.k8s.io/v1/ClusterRole NAME-solar-b", "{metadata: {namespace: null}}"),
        ]),
        ("732 owners change nothing between two resyncs", &[
            Declare("{resyncPeriod: 1h, resources: [{rawItems: [{MAP}]}]}"),
            DeleteRefused("mallory", "ConfigMap solar-b/NAME", "protected"),
        ]),
        ("764 what nobody manages may be deleted, a Tenant too", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: NAME}, spec: {owners: []}}"),
            DeleteBy("mallory", "capsule.clastix.io/v1beta2/Tenant NAME"),
        ]),
        ("781 copies have no owner", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: default, ownerReferences: [{apiVersion: v1, kind: Namespace, name: default, uid: nobody}]}}"),
            Global("resources: [{policy: {}, namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME, namespace: default}]}]"),
            Is("ConfigMap wind-a/NAME", "{metadata: {ownerReferences: [{kind: GlobalTenantResource}]}}"),
        ]),
        ("916 labels and annotations of raw items and copies stay", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-c, namespace: solar-a, labels: {a: b}, annotations: {c: d}}}"),
            Declare("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-c, namespace: solar-a}], rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: {a: b}, annotations: {c: d}}}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {a: b}, annotations: {c: d}}}"),
            Is("ConfigMap solar-b/NAME-c", "{metadata: {labels: {a: b}, annotations: {c: d}}}"),
        ]),
        ("de587919 a source that changed is copied again", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-a}, data: {k: v}}"),
            Declare("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME, namespace: solar-a}]}]"),
            Edit("ConfigMap solar-a/NAME", "data: {k: w}"),
            Edit(TR, "metadata: {annotations: {reconcile.projectcapsule.dev/requestedAt: x}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: w}}"),
        ]),
        ("985 labels of others stay", &[
            Declare("resources: [{policy: {protect: false}, rawItems: [{MAP, data: {k: v}}]}]"),
            EditBy("mallory", "ConfigMap solar-b/NAME", "metadata: {labels: {mine: x}}"),
            Declare("resources: [{policy: {protect: false}, rawItems: [{MAP, data: {k: w}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: w}, metadata: {labels: {mine: x}}}"),
        ]),
        ("1387 no additional metadata, no labels", &[
            Declare("resources: [{additionalMetadata: {}, rawItems: [{MAP}]}, {additionalMetadata: {labels: {a: b}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]"),
            Is("ConfigMap solar-b/NAME-2", "{metadata: {labels: {a: b}}}"),
        ]),
        ("1572 labels of one block do not reach another", &[
            Declare("resources: [{additionalMetadata: {labels: {a: b}}, rawItems: [{MAP}]}, {rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {a: b}}}"),
            Is("ConfigMap solar-b/NAME-2", "{metadata: {labels: {a: null}}}"),
        ]),
        ("1470, 2029 an account without rights does nothing", &[
            Foreign("{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}"),
            Fails("{serviceAccount: {name: NAME}, resources: [{rawItems: [{MAP}]}]}", "applying of 2"),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("1938 what failed is in the status, and when the rest was applied", &[
            Fails("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-a}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-b}, data: {'not a key': x}}]}]", "applying of 1"),
            Says("{status: {processedItems: [{name: NAME-a, status: {status: 'True', lastApply: ~T}}, {name: NAME-b, status: {status: 'False', message: '~not a key'}}]}}"),
        ]),
        ("proxy 886 a resync that finds all well writes nothing, whatever labels others set", &[
            Declare("{resyncPeriod: 1s, resources: [{policy: {protect: false}, rawItems: [{MAP}]}]}"),
            EditBy("mallory", "ConfigMap solar-b/NAME", "metadata: {labels: {capsule.clastix.io/managed-by: solar}}"),
            Wait,
            Note("ConfigMap solar-b/NAME"),
            Wait,
            Wait,
            Wait,
            Wait,
            Still("ConfigMap solar-b/NAME", "{metadata: {labels: {capsule.clastix.io/managed-by: solar}}}"),
        ]),
        ("1181 an inventory whose objects were made anew by others deletes nothing of theirs", &[
            Declare("{resyncPeriod: 1h, resources: [{rawItems: [{MAP, data: {k: v}}]}]}"),
            Edit(TR, "spec: {cordoned: true}"),
            Says("{status: {conditions: [{}, {status: 'True'}]}}"),
            Delete("ConfigMap solar-b/NAME"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {theirs: x}}"),
            Edit(TR, "spec: {cordoned: false, resources: []}"),
            Says("{status: {size: 0}}"),
            Is("ConfigMap solar-b/NAME", "{data: {theirs: x}}"),
        ]),
        ("24 pruning takes nothing of users that bears the labels", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-user, namespace: solar-b, labels: {projectcapsule.dev/created-by: replications, projectcapsule.dev/managed-by: replications, capsule.clastix.io/resources: x}}}"),
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", GONE),
            Is("ConfigMap solar-b/NAME-user", "{}"),
        ]),
        ("1058 a user's label makes nothing undeletable", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: default, labels: {capsule.clastix.io/tenant: solar, projectcapsule.dev/managed-by: controller}}}"),
            DeleteBy("mallory", "ConfigMap default/NAME"),
        ]),
        ("465 a block that is taken out takes its objects with it", &[
            Declare("resources: [{rawItems: [{MAP}]}, {rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]"),
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Is("ConfigMap solar-b/NAME-2", GONE),
            Is("ConfigMap solar-b/NAME", "{}"),
        ]),
        ("2101 a namespace in the status that is no more breaks nothing", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP}]}]"),
            EditStatus(TR, "status: {size: 2, processedItems: [{version: v1, kind: ConfigMap, name: NAME, namespace: nowhere, tenant: solar, origin: 0/raw-0, status: {type: Ready, status: 'True', created: true, clusterScoped: false, lastApply: '2026-01-01T00:00:00Z', policy: {creation: Owner, protect: true, force: false, deletion: Remove}}}]}"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP, data: {k: v}}]}]"),
            Says("{status: {processedItems: [{namespace: solar-b}]}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}}"),
        ]),
    ])
    .await;
    // By itself, since the tenant has another namespace then.
    check(&f, &[
        ("2080 a namespace that comes is served at once, though the TenantResource is in another", &[
            Declare("{resyncPeriod: 1h, resources: [{namespaceSelector: {matchLabels: {row: NAME}}, rawItems: [{MAP}]}]}"),
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-later, labels: {capsule.clastix.io/tenant: solar, row: NAME}}}"),
            Is("ConfigMap NAME-later/NAME", "{}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn many_parents_at_once_share_nothing() {
    // 1263, 1800: the original crashed when it rendered side by side.
    let f = Fixture::new().await;
    for i in 0..20 {
        f.apply(&crate::common::gtr(&format!("many-{i}"), &format!("resources: [{{additionalMetadata: {{labels: {{of: 'many-{i}'}}}}, generators: [{{template: '{{apiVersion: v1, kind: ConfigMap, metadata: {{name: many-{i}}}, data: {{x: \"{{{{ set .tenant \"x\" {i} | len }}}}\"}}}}'}}]}}]"))).await;
    }
    for i in 0..20 {
        let name = format!("many-{i}");
        f.ready(crate::common::GTR, "", &name, "True", "").await;
        assert_eq!(f.there("wind-a", &name).await.label("of"), Some(name.as_str()));
    }
}
