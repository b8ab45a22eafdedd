//! Sections 2.1 to 2.4: who manages, how it is marked, what may be taken.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{CREATED, check};

const REPLICA: &str = "{metadata: {labels: {projectcapsule.dev/created-by: replications, projectcapsule.dev/managed-by: replications, projectcapsule.dev/protected-by: replications, protection.projectcapsule.dev/replications: 'true'}, ownerReferences: null}}";
const UNMARKED: &str = "{metadata: {labels: null}}";
const ADOPTED: &str =
    "{metadata: {labels: {projectcapsule.dev/created-by: null, projectcapsule.dev/managed-by: replications}}}";

#[tokio::test]
async fn managers_and_marks_are_as_in_2_1_and_2_2() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.1 a manager for each namespace, which does not hang on the place in the parent", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {managedFields: [{manager: ~/solar-b/solar/0/, operation: Apply}]}}"),
            Note("ConfigMap solar-b/NAME"),
            Declare("resources: [{rawItems: []}, {namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-0}}, {MAP, data: {k: v}}]}]"),
            Same("ConfigMap solar-b/NAME"),
            Is("ConfigMap solar-b/NAME", "{metadata: {managedFields: [{manager: ~/solar-b/solar/0/}]}}"),
        ]),
        ("2.1 a permit's manager is named after the permit", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP, data: {k: v}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {managedFields: [{manager: ~projectcapsule.dev/resource/resourcepermit/, operation: Apply}]}}"),
        ]),
        ("2.1 what is no content is written by a manager of its own", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null', protect: false}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {condition: 'object == null', protect: true}, rawItems: [{MAP, data: {k: w}}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {managedFields: [{manager: ~/solar-b/solar/, operation: Apply}, {manager: projectcapsule.dev/resource/controller, operation: Update}]}}"),
        ]),
        ("2.2 created-by, managed-by, protected-by of what is created", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Is("ConfigMap solar-b/NAME", REPLICA),
        ]),
        ("2.2 no created-by on what is adopted", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-b/NAME", ADOPTED),
        ]),
        ("2.2 the label of versions before server-side apply counts as created, and goes", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b, labels: {capsule.clastix.io/resources: x}}, data: {a: b}}"),
            Declare("resources: [{rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {capsule.clastix.io/resources: null, projectcapsule.dev/created-by: replications}}}"),
            Says("{status: {processedItems: [{status: {created: true}}, {status: {created: true}}]}}"),
        ]),
        ("2.2 the annotation that asks for a run goes after it", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Edit("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME", "metadata: {annotations: {reconcile.projectcapsule.dev/requestedAt: now}}"),
            Says("{metadata: {annotations: {reconcile.projectcapsule.dev/requestedAt: null}}}"),
        ]),
        ("2.2 the finalizer is there exactly while something is managed", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Says("{metadata: {finalizers: [controller.projectcapsule.dev/finalize]}}"),
            Declare("resources: []"),
            Says("{metadata: {finalizers: null}, status: {size: 0}}"),
        ]),
        ("2.2 the finalizer that somebody takes away comes back", &[
            Declare("{resyncPeriod: 1h, resources: [{rawItems: [{MAP}]}]}"),
            Edit("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME", "metadata: {finalizers: []}"),
            Says("{metadata: {finalizers: [controller.projectcapsule.dev/finalize]}}"),
        ]),
        ("2.2 the finalizer of a permit that somebody takes away comes back", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Edit("capsule.clastix.io/v1beta2/ResourcePermit solar-a/NAME", "metadata: {finalizers: []}"),
            Permit("{metadata: {finalizers: [controller.projectcapsule.dev/finalize]}}"),
        ]),
        ("2.2 the finalizer of older versions is migrated", &[
            Declare("resources: []"),
            Edit("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME", "metadata: {finalizers: [capsule.clastix.io/resources]}"),
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Says("{metadata: {finalizers: [controller.projectcapsule.dev/finalize]}}"),
        ]),
        ("2.2 a GlobalTenantResource refers to itself on what it created, and on nothing else", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: wind-a}, data: {a: b}}"),
            Global("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-a/NAME", "{metadata: {ownerReferences: [{kind: GlobalTenantResource, name: NAME, controller: null, blockOwnerDeletion: null}]}}"),
            Is("ConfigMap wind-a/NAME", "{metadata: {ownerReferences: null}}"),
        ]),
        ("2.2 rendered marks are taken out", &[
            Declare("resources: [{policy: {protect: false}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: {projectcapsule.dev/created-by: resource-permit, projectcapsule.dev/protected-by: resource-permit, capsule.clastix.io/resources: x, mine: x}, annotations: {projectcapsule.dev/resourcepermit-service-account: evil}}}], additionalMetadata: {labels: {projectcapsule.dev/managed-by: controller}}}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {annotations: null, labels: {projectcapsule.dev/created-by: replications, projectcapsule.dev/managed-by: replications, projectcapsule.dev/protected-by: null, capsule.clastix.io/resources: null, mine: x}}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn what_may_be_taken_is_as_in_2_3() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.3 absent: created", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP}]}]"),
            Says(CREATED),
        ]),
        ("2.3 the item says created", &[
            Declare("resources: [{rawItems: [{MAP, data: {k: v}}]}]"),
            Edit("ConfigMap solar-b/NAME", "{metadata: {labels: {projectcapsule.dev/created-by: null}}, data: {k: hacked}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {labels: {projectcapsule.dev/created-by: replications}}}"),
            Says("{status: {processedItems: [{status: {created: true}}, {status: {created: true}}]}}"),
        ]),
        ("2.3 the label created-by alone proves nothing (9.1)", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b, labels: {projectcapsule.dev/created-by: replications}}, data: {a: b}}"),
            Note("ConfigMap solar-b/NAME"),
            Fails("resources: [{rawItems: [{MAP, data: {k: v}}]}]", "applying of 1 resources failed"),
            Still("ConfigMap solar-b/NAME", "{data: {a: b, k: null}}"),
        ]),
        ("2.3 our manager applied it before: a run that died is taken up", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Note("ConfigMap solar-b/NAME"),
            EditStatus("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME", "status: {processedItems: [], size: 0}"),
            Declare("resources: [{rawItems: [{MAP}]}, {}]"),
            Says("{status: {processedItems: [{status: {created: true}}, {status: {created: true}}]}}"),
            Same("ConfigMap solar-b/NAME"),
        ]),
        ("2.3 foreign, Merge: adopted", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: v}}"),
            Says("{status: {processedItems: [{namespace: solar-a, status: {created: true}}, {namespace: solar-b, status: {created: false}}]}}"),
        ]),
        ("2.3 foreign, Owner: refused, nothing written", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Note("ConfigMap solar-b/NAME"),
            Fails("resources: [{rawItems: [{MAP, data: {k: v}}]}]", "applying of 1 resources failed"),
            Says("{status: {processedItems: [{status: {status: 'True'}}, {status: {status: 'False', message: object (v1/ConfigMap solar-b/NAME) exists and cannot be adopted, lastApply: null}}]}}"),
            Still("ConfigMap solar-b/NAME", UNMARKED),
        ]),
        ("2.3 (1) a kind that is not served", &[
            Fails("resources: [{rawItems: [{apiVersion: nope/v1, kind: Nope, metadata: {name: NAME}}]}]", "applying of 2 resources failed"),
            Says("{status: {processedItems: [{status: {message: '~no matches for kind'}}, {status: {status: 'False'}}]}}"),
        ]),
        ("2.3 (1) a cluster-scoped object has no namespace", &[
            Global("{scope: None, resources: [{rawItems: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAME, namespace: solar-a}}]}]}"),
            GlobalSays("{status: {processedItems: [{namespace: null, kind: ClusterRole, status: {clusterScoped: true, created: true}}]}}"),
        ]),
        ("2.3 (8) the time of the last apply is that of the object", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP}]}]"),
            Says("{status: {processedItems: [{status: {lastApply: ~T}}]}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn policies_mean_what_2_4_says() {
    let f = Fixture::new().await;
    const THEIRS: &str =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {k: theirs, a: b}}";
    check(&f, &[
        ("2.4 Merge creates what is absent", &[
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {labels: {projectcapsule.dev/created-by: replications}}}"),
        ]),
        ("2.4 Merge shares fields of the same value", &[
            Foreign(THEIRS),
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: theirs}}]}]"),
        ]),
        ("2.4 force: false: another value is a conflict", &[
            Foreign(THEIRS),
            Fails("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]", "applying of 1 resources failed"),
            Says("{status: {processedItems: [{}, {status: {message: '~conflict with \"somebody\"'}}]}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: theirs, a: b}}"),
        ]),
        ("2.4 force: true takes the field", &[
            Foreign(THEIRS),
            Declare("resources: [{policy: {creation: Merge, force: true}, rawItems: [{MAP, data: {k: v}}]}]"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v, a: b}}"),
        ]),
        ("2.4 force: true passes no validation", &[
            Fails("resources: [{policy: {force: true}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {'not a key': v}}]}]", "applying of 2 resources failed"),
        ]),
        ("2.4 protect: true marks", &[
            Declare("resources: [{policy: {protect: true}, rawItems: [{MAP}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {projectcapsule.dev/protected-by: replications}}}"),
        ]),
        ("2.4 protect unset marks", &[
            Declare("resources: [{policy: {}, rawItems: [{MAP}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {projectcapsule.dev/protected-by: replications}}}"),
        ]),
        ("2.4 protect: false takes the mark away", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Declare("resources: [{policy: {protect: false}, rawItems: [{MAP}]}]"),
            Is("ConfigMap solar-b/NAME", "{metadata: {labels: {projectcapsule.dev/protected-by: null, protection.projectcapsule.dev/replications: null, projectcapsule.dev/managed-by: replications}}}"),
            EditBy("mallory", "ConfigMap solar-b/NAME", "metadata: {labels: {mine: x}}"),
        ]),
        ("2.4 Merge to Owner: what was adopted stays adopted", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}"),
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: [{policy: {creation: Owner}, rawItems: [{MAP, data: {k: v}}]}]"),
            Says("{status: {processedItems: [{status: {created: true}}, {status: {created: false, policy: {creation: Owner}}}]}}"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: null}}"),
        ]),
        ("2.4 a second parent does not become the owner of what the first one made (9.1)", &[
            Declare("resources: [{rawItems: [{MAP, data: {k: v}}]}]"),
            GlobalFails("{tenantSelector: {matchLabels: {capsule.clastix.io/tenant: none}}, resources: [{}], dependsOn: [{name: nobody}]}", "dependency nobody not found"),
            GlobalFails("{resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP, data: {x: z}}]}]}", "applying of 1 resources failed"),
            GlobalSays("{status: {processedItems: [{status: {created: false, message: ~cannot be adopted}}]}}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v, x: null}}"),
        ]),
    ])
    .await;
}
