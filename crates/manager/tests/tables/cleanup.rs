//! Section 2.5: what is left when something is no longer wanted.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

const THEIRS: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}, data: {a: b}}";
const UNMARKED: &str = "{metadata: {labels: {projectcapsule.dev/created-by: null, projectcapsule.dev/managed-by: null, projectcapsule.dev/protected-by: null, protection.projectcapsule.dev/replications: null}}}";
const TR: &str = "capsule.clastix.io/v1beta2/TenantResource solar-a/NAME";
const GTR: &str = "capsule.clastix.io/v1beta2/GlobalTenantResource NAME";

#[tokio::test]
async fn the_matrix_is_as_in_2_5() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.5 Remove, created: deleted", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("2.5 Remove, adopted: our fields and marks go, theirs stay", &[
            Foreign(THEIRS),
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: null}}"),
            Is("ConfigMap solar-b/NAME", UNMARKED),
        ]),
        ("2.5 Orphan, created: object and fields stay without marks and owner", &[
            Global("resources: [{policy: {deletion: Orphan}, rawItems: [{MAP, data: {k: v}}]}]"),
            Global("resources: []"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}, metadata: {ownerReferences: null}}"),
            Is("ConfigMap solar-b/NAME", UNMARKED),
        ]),
        ("2.5 Orphan, adopted: fields stay without marks", &[
            Foreign(THEIRS),
            Declare("resources: [{policy: {creation: Merge, deletion: Orphan}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: v}}"),
            Is("ConfigMap solar-b/NAME", UNMARKED),
        ]),
        ("2.5 deleting the parent is the same", &[
            Foreign(THEIRS),
            Declare("resources: [{policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Delete(TR),
            Is("ConfigMap solar-a/NAME", GONE),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: null}}"),
            Is(TR, GONE),
        ]),
        ("2.5 never applied: nothing is written", &[
            Foreign(THEIRS),
            Note("ConfigMap solar-b/NAME"),
            Fails("resources: [{rawItems: [{MAP, data: {k: v}}]}]", "applying of 1"),
            Declare("resources: []"),
            Says("{status: {size: 0}, metadata: {finalizers: null}}"),
            Still("ConfigMap solar-b/NAME", "{data: {a: b}}"),
        ]),
        ("2.5 the object is gone", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Edit(TR, "spec: {cordoned: true}"),
            Says("{status: {conditions: [{}, {type: Cordoned, status: 'True'}]}}"),
            Delete("ConfigMap solar-b/NAME"),
            Delete(TR),
            Is(TR, GONE),
        ]),
        ("2.5 shared and adopted: the marks stay with who remains, and go with the last", &[
            Foreign(THEIRS),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {x: z}}]}]"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: null, x: z}, metadata: {labels: {projectcapsule.dev/managed-by: replications, projectcapsule.dev/protected-by: replications}}}"),
            Global("resources: []"),
            Is("ConfigMap solar-b/NAME", "{data: {a: b, k: null, x: null}}"),
            Is("ConfigMap solar-b/NAME", UNMARKED),
        ]),
        ("2.5 an item of older versions with pruningOnDelete: false is only disowned", &[
            Declare("{pruningOnDelete: false, resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP, data: {k: v}}]}]}"),
            Edit(TR, "spec: {cordoned: true}"),
            Says("{status: {conditions: [{}, {type: Cordoned, status: 'True'}]}}"),
            EditStatus(TR, "status: {processedItems: [{version: v1, kind: ConfigMap, name: NAME, namespace: solar-b, tenant: solar, origin: 0/raw-0, status: {type: Ready, status: 'True', created: true, clusterScoped: false, lastApply: '2026-01-01T00:00:00Z'}}]}"),
            Delete(TR),
            Is(TR, GONE),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}}"),
            Is("ConfigMap solar-b/NAME", UNMARKED),
        ]),
        ("2.5 a replacement that others made is left alone", &[
            Declare("resources: [{rawItems: [{MAP, data: {k: v}}]}]"),
            Edit(TR, "spec: {cordoned: true}"),
            Says("{status: {conditions: [{}, {type: Cordoned, status: 'True'}]}}"),
            Delete("ConfigMap solar-b/NAME"),
            Foreign(THEIRS),
            Note("ConfigMap solar-b/NAME"),
            Delete(TR),
            Is(TR, GONE),
            Still("ConfigMap solar-b/NAME", "{data: {a: b}}"),
        ]),
        ("2.5 an object with a finalizer of its own is waited for", &[
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, finalizers: [example.com/wait]}}]}]"),
            Delete(TR),
            Is(TR, "{status: {processedItems: [{status: {message: waiting for resource deletion}}]}}"),
            Edit("ConfigMap solar-b/NAME", "metadata: {finalizers: []}"),
            Is(TR, GONE),
        ]),
        ("2.5 a change of deletion counts once it was carried out", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            Declare("resources: [{policy: {deletion: Orphan}, rawItems: [{MAP}]}]"),
            Says("{status: {processedItems: [{status: {policy: {deletion: Orphan}}}, {status: {policy: {deletion: Orphan}}}]}}"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", UNMARKED),
            Note("ConfigMap solar-b/NAME"),
            Same("ConfigMap solar-b/NAME"),
        ]),
        ("2.5 a change of deletion that failed does not count", &[
            Declare("resources: [{rawItems: [{MAP, data: {k: v}}]}]"),
            Fails("resources: [{policy: {deletion: Orphan}, rawItems: [{MAP, data: {'not a key': v}}]}]", "applying of 2"),
            Declare("resources: []"),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
        ("2.5 a created object that another still wants is handed over, not deleted (9.2)", &[
            Global("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, rawItems: [{MAP, data: {k: v}}]}]"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge}, rawItems: [{MAP, data: {x: z}}]}]"),
            Note("ConfigMap solar-b/NAME"),
            Delete(GTR),
            Is(GTR, GONE),
            Is("ConfigMap solar-b/NAME", "{data: {k: null, x: z}}"),
            Same("ConfigMap solar-b/NAME"),
            Delete(TR),
            Is("ConfigMap solar-b/NAME", GONE),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn what_is_left_of_permits_is_as_in_2_5() {
    let f = Fixture::new().await;
    check(&f, &[
        ("2.5 a permit waits for objects with finalizers (2 s)", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, finalizers: [example.com/wait]}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Move("alice", "{phase: Expired}"),
            Permit("{status: {processedItems: [{status: {message: waiting for resource deletion}}]}}"),
            Edit("ConfigMap solar-a/NAME", "metadata: {finalizers: []}"),
            Permit(GONE),
        ]),
        ("2.5 a permit that goes leaves the marks of others, and others leave those of the permit", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-a}, data: {a: b}}"),
            Declare("resources: [{namespaceSelector: {matchLabels: {name: solar-a}}, policy: {creation: Merge}, rawItems: [{MAP, data: {k: v}}]}]"),
            Template("{approvals: {auto: true}, resources: [{policy: {creation: Merge}, targets: [{MAP, data: {p: q}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {labels: {protection.projectcapsule.dev/replications: 'true', protection.projectcapsule.dev/resource-permit: 'true'}}}"),
            Declare("resources: []"),
            Is("ConfigMap solar-a/NAME", "{data: {a: b, k: null, p: q}, metadata: {labels: {protection.projectcapsule.dev/replications: null, protection.projectcapsule.dev/resource-permit: 'true', projectcapsule.dev/protected-by: resource-permit}}}"),
            Move("alice", "{phase: Expired}"),
            Is("ConfigMap solar-a/NAME", "{data: {a: b, p: null}}"),
            Is("ConfigMap solar-a/NAME", UNMARKED),
        ]),
        ("2.5 Orphan of a permit takes the application's label off too (2.2)", &[
            Template("{approvals: {auto: true}, resources: [{policy: {deletion: Orphan}, targets: [{MAP, data: {p: q}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {labels: {app.kubernetes.io/managed-by: resource-permit-controller}}}"),
            Move("alice", "{phase: Expired}"),
            Permit(GONE),
            Is("ConfigMap solar-a/NAME", "{data: {p: q}, metadata: {labels: {app.kubernetes.io/managed-by: null, projectcapsule.dev/managed-by: null, protection.projectcapsule.dev/resource-permit: null}, annotations: {projectcapsule.dev/resourcepermit-service-account: null}}}"),
        ]),
    ])
    .await;
}
