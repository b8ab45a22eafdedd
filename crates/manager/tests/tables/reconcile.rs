//! Sections 2.6 to 2.9: runs, places, sharing, what sets a run off.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

const TR: &str = "capsule.clastix.io/v1beta2/TenantResource solar-a/NAME";

#[tokio::test]
async fn runs_are_as_in_2_6() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.6 (1) what cannot be collected prunes and applies nothing", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Note("ConfigMap solar-b/NAME"),
            Fails("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}, {generators: [{template: '{{ fail \"no\" }}'}]}]", "error running generator"),
            Still("ConfigMap solar-b/NAME", "{}"),
            Is("ConfigMap solar-b/NAME-2", GONE),
        ]),
        ("2.6 (2) what cannot be pruned stops no apply (9.4)", &[
            Foreign("{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}"),
            Foreign("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME-maker}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, patch]}]}"),
            Foreign("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAME-maker}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME-maker}, subjects: [{kind: ServiceAccount, name: NAME, namespace: solar-a}]}"),
            Declare("{serviceAccount: {name: NAME}, resources: [{rawItems: [{MAP}]}]}"),
            Fails("{serviceAccount: {name: NAME}, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]}", "pruning of 2 resources failed"),
            Is("ConfigMap solar-b/NAME-2", "{}"),
            Says("{status: {size: 4, processedItems: [{name: NAME, status: {status: 'False', message: '~pruning failed: '}}, {name: NAME-2, status: {status: 'True'}}, {name: NAME}, {name: NAME-2}]}}"),
        ]),
        ("2.6 (3) one that fails stops no other", &[
            Fails("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-bad}, data: {'not a key': v}}, {MAP}]}]", "applying of 2 resources failed"),
            Is("ConfigMap solar-b/NAME", "{}"),
        ]),
        ("2.6 (4) items are sorted, counted, and observed", &[
            Declare("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-b}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-a}}]}]"),
            Says("{status: {size: 4, processedItems: [{namespace: solar-a, name: NAME-a}, {namespace: solar-a, name: NAME-b}, {namespace: solar-b, name: NAME-a}, {namespace: solar-b, name: NAME-b}], conditions: [{type: Ready, status: 'True', reason: Succeeded, message: reconciled}, {type: Cordoned, status: 'False', reason: Active}]}}"),
        ]),
        ("2.6 a failed apply keeps the policy and the time, and a success clears the message", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {force: true}, rawItems: [{MAP, data: {k: v}}]}]"),
            Fails("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {force: false}, rawItems: [{MAP, data: {'not a key': v}}]}]", "applying of 1"),
            Says("{status: {processedItems: [{status: {status: 'False', lastApply: ~T, created: true, policy: {force: true}, message: '~applying object failed'}}]}}"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {force: false}, rawItems: [{MAP, data: {k: v}}]}]"),
            Says("{status: {processedItems: [{status: {status: 'True', message: null, policy: {force: false}}}]}}"),
        ]),
        ("2.6 a namespace that is terminating is skipped and dropped without an error", &[
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-ends, labels: {capsule.clastix.io/tenant: wind, name: NAME-ends}}}"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: holds, namespace: NAME-ends, finalizers: [example.com/wait]}}"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: NAME-ends}}, rawItems: [{MAP}]}]"),
            GlobalSays("{status: {size: 1}}"),
            Delete("Namespace NAME-ends"),
            GlobalSays("{status: {size: 0, processedItems: [], conditions: [{status: 'True'}, {}]}}"),
            Edit("ConfigMap NAME-ends/holds", "metadata: {finalizers: []}"),
        ]),
        ("2.6 a Namespace that is terminating itself is skipped", &[
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-ends, finalizers: [example.com/wait]}}"),
            Delete("Namespace NAME-ends"),
            Global("{scope: None, resources: [{policy: {creation: Merge}, rawItems: [{apiVersion: v1, kind: Namespace, metadata: {name: NAME-ends, labels: {a: b}}}]}]}"),
            GlobalSays("{status: {size: 0}}"),
            Edit("Namespace NAME-ends", "metadata: {finalizers: []}"),
        ]),
        ("2.6 a namespace that is not there is skipped and dropped", &[
            Global("{scope: None, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: nowhere}}]}]}"),
            GlobalSays("{status: {size: 0}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn places_are_as_in_2_7() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.7 a TenantResource: always the namespace that is gone through", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: wind-a}}]}]"),
            Is("ConfigMap solar-b/NAME", "{}"),
            Is("ConfigMap wind-a/NAME", GONE),
        ]),
        ("2.7 a TenantResource: nothing cluster-scoped, raw", &[
            Fails("resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME}}]}]", "cluster-scoped kind ClusterRole is not allowed"),
        ]),
        ("2.7 a TenantResource: nothing cluster-scoped, generated", &[
            Fails("resources: [{generators: [{template: 'apiVersion: rbac.authorization.k8s.io/v1\n\nkind: ClusterRole\n\nmetadata: {name: NAME}'}]}]", "cluster-scoped kind ClusterRole is not allowed"),
        ]),
        ("2.7 a TenantResource: nothing cluster-scoped, copied", &[
            Fails("resources: [{namespacedItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: view, optional: false}]}]", "not allowed"),
        ]),
        ("2.7 a GlobalTenantResource, Namespace: the namespace that is gone through", &[
            Global("resources: [{namespaceSelector: {matchLabels: {name: wind-a}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-a}}]}]"),
            Is("ConfigMap wind-a/NAME", "{}"),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("2.7 a GlobalTenantResource, Namespace: cluster-scoped, one target however many namespaces (9.3)", &[
            Global("{tenantSelector: {matchLabels: {energy: renewable}}, resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'NAME-{{tenant.name}}'}}]}]}"),
            GlobalSays("{status: {size: 2, processedItems: [{name: NAME-solar, namespace: null}, {name: NAME-wind, namespace: null}]}}"),
        ]),
        ("2.7 a GlobalTenantResource, Tenant: the namespace of the manifest", &[
            Global("{scope: Tenant, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: 'NAME-{{tenant.name}}', namespace: default}}]}]}"),
            Is("ConfigMap default/NAME-solar", "{}"),
            Is("ConfigMap default/NAME-wind", "{}"),
        ]),
        ("2.7 a GlobalTenantResource, None: a namespace is needed", &[
            GlobalFails("{scope: None, resources: [{rawItems: [{MAP}]}]}", "needs a metadata.namespace"),
        ]),
        ("2.7 a TenantResource reads nothing outside its tenant", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-source, namespace: wind-a}}"),
            Fails("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-source, namespace: wind-a}]}]", "reading ConfigMap from namespace \"wind-a\" is not allowed"),
        ]),
        ("2.7 a GlobalTenantResource reads anywhere", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-source, namespace: default}, data: {k: v}}"),
            Global("resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-source, namespace: default}]}]"),
            Is("ConfigMap wind-a/NAME-source", "{data: {k: v}}"),
        ]),
        ("2.7 a permit: the permit's namespace where none is named", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}, {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active, size: 2, processedItems: [{namespace: solar-a}, {namespace: solar-b}]}}"),
        ]),
        ("2.7 a permit: cluster-scoped objects, without a namespace", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalResourcePermitTemplate, metadata: {name: NAME}, spec: {approvals: {auto: true}, resources: [{targets: [{MAP}, {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: default}}, {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME, namespace: solar-a}}]}]}}"),
            Ask(", template: {kind: GlobalResourcePermitTemplate, name: NAME}"),
            Permit("{status: {phase: Active, size: 3, processedItems: [{kind: ClusterRole, namespace: null, status: {clusterScoped: true}}, {namespace: default}, {namespace: solar-a}]}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn objects_are_shared_as_in_2_8() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.8 a raw item and a generator of one parent: two items, two managers", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {raw: x}}], generators: [{template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {gen: z}}'}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {raw: x, gen: z}, metadata: {managedFields: [{manager: ~/solar-b/solar/, operation: Apply}, {manager: ~/solar-b/solar/, operation: Apply}]}}"),
            Says("{status: {size: 2, processedItems: [{origin: 0/raw-0}, {origin: 0/generator-0-0}]}}"),
        ]),
        ("2.8 two parents, other fields: both ready", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {x: z}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v, x: z}}"),
        ]),
        ("2.8 two parents, one field, no force: the second fails, the first value stays", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            GlobalFails("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: w}}]}]", "applying of 1 resources failed"),
            GlobalSays("{status: {processedItems: [{status: {message: ~conflict}}]}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}}"),
        ]),
        ("2.8 two parents, one field, force on the second: the second has it", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge, force: true}, rawItems: [{MAP, data: {k: w}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: w}}"),
            Says("{status: {conditions: [{status: 'False'}, {}]}}"),
        ]),
        ("2.8 two parents adopt: both adopted", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {x: z}}]}]"),
            Says("{status: {processedItems: [{status: {created: false}}]}}"),
            GlobalSays("{status: {processedItems: [{status: {created: false}}]}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn runs_are_set_off_as_in_2_9() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.9 the timer", &[
            Fails("{resyncPeriod: 1s, resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-later, namespace: solar-a, optional: false}]}]}", "not found"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-later, namespace: solar-a}, data: {k: v}}"),
            Is("ConfigMap solar-b/NAME-later", "{data: {k: v}}"),
        ]),
        ("2.9 the annotation", &[
            Fails("{resyncPeriod: 1h, resources: [{namespacedItems: [{apiVersion: v1, kind: ConfigMap, name: NAME-later, namespace: solar-a, optional: false}]}]}", "not found"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-later, namespace: solar-a}, data: {k: v}}"),
            Edit(TR, "metadata: {annotations: {reconcile.projectcapsule.dev/requestedAt: x}}"),
            Is("ConfigMap solar-b/NAME-later", "{data: {k: v}}"),
            Says("{metadata: {annotations: {reconcile.projectcapsule.dev/requestedAt: null}}}"),
        ]),
        ("2.9 a namespace that comes, and one that changes its tenant", &[
            Global("{resyncPeriod: 1h, resources: [{rawItems: [{MAP}], namespaceSelector: {matchLabels: {row: NAME}}}]}"),
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-new, labels: {capsule.clastix.io/tenant: wind, row: NAME}}}"),
            Is("ConfigMap NAME-new/NAME", "{}"),
            GlobalSays("{status: {size: 1}}"),
            Edit("Namespace NAME-new", "metadata: {labels: {capsule.clastix.io/tenant: null}}"),
            Is("ConfigMap NAME-new/NAME", GONE),
        ]),
        ("2.9 a label of a tenant", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: NAME}, spec: {owners: []}}"),
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-own, labels: {capsule.clastix.io/tenant: NAME}}}"),
            Global("{resyncPeriod: 1h, tenantSelector: {matchLabels: {row: NAME}}, resources: [{rawItems: [{MAP}]}]}"),
            Edit("capsule.clastix.io/v1beta2/Tenant NAME", "metadata: {labels: {row: NAME}}"),
            Is("ConfigMap NAME-own/NAME", "{}"),
            Edit("capsule.clastix.io/v1beta2/Tenant NAME", "metadata: {labels: {row: null}}"),
            Is("ConfigMap NAME-own/NAME", GONE),
        ]),
        ("2.9 a dependency that becomes ready, and is gone", &[
            GlobalFails("{resyncPeriod: 1h, dependsOn: [{name: NAME-first}], resources: [{rawItems: [{MAP}]}]}", "dependency NAME-first not found"),
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalTenantResource, metadata: {name: NAME-first}, spec: {resources: [{generators: [{template: '{{ fail \"x\" }}'}]}]}}"),
            GlobalSays("{status: {conditions: [{status: 'False', message: '~not '}, {}]}}"),
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: GlobalTenantResource, metadata: {name: NAME-first}, spec: {resources: []}}"),
            Is("ConfigMap wind-a/NAME", "{}"),
        ]),
        ("2.9 cordoned: nothing applied, nothing pruned", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Note("ConfigMap solar-b/NAME"),
            Edit(TR, "spec: {cordoned: true, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]}"),
            Says("{status: {conditions: [{}, {type: Cordoned, status: 'True', reason: Cordoned, message: is cordoned}]}}"),
            Wait,
            Still("ConfigMap solar-b/NAME", "{}"),
            Is("ConfigMap solar-b/NAME-2", GONE),
            Edit(TR, "spec: {cordoned: false}"),
            Is("ConfigMap solar-b/NAME-2", "{}"),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("2.9 cordoned: a namespace that comes gets nothing", &[
            Global("{resyncPeriod: 1h, resources: [{rawItems: [{MAP}], namespaceSelector: {matchLabels: {row: NAME}}}]}"),
            Edit("capsule.clastix.io/v1beta2/GlobalTenantResource NAME", "spec: {cordoned: true}"),
            GlobalSays("{status: {conditions: [{}, {type: Cordoned, status: 'True'}]}}"),
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-new, labels: {capsule.clastix.io/tenant: wind, row: NAME}}}"),
            Wait,
            Is("ConfigMap NAME-new/NAME", GONE),
            Edit("capsule.clastix.io/v1beta2/GlobalTenantResource NAME", "spec: {cordoned: false}"),
            Is("ConfigMap NAME-new/NAME", "{}"),
        ]),
        ("2.9 cordon and dependencies do not hold back the end", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Edit(TR, "spec: {cordoned: true, dependsOn: [{name: none}]}"),
            Delete(TR),
            Is(TR, GONE),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("2.9 an account that lost its rights holds the end back, and says so", &[
            Foreign("{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}"),
            Foreign("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: NAME, namespace: solar-a}]}"),
            Declare("{resyncPeriod: 1s, serviceAccount: {name: NAME}, resources: [{rawItems: [{MAP}]}]}"),
            Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding NAME"),
            Delete(TR),
            Is(TR, "{status: {conditions: [{status: 'False', message: ~pruning of 2 resources failed}, {}]}}"),
            Is("ConfigMap solar-b/NAME", "{}"),
        ]),
    ])
    .await;
}
