//! Section 9: points that the original leaves open or does badly, as they are decided here. Points 1, 2, 3, 4, 7 and 14
//! stand beside the rows of the tables they are about.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

#[tokio::test]
async fn open_points_are_decided_so() {
    let f = Fixture::new().await;
    check(&f, &[
        ("9.5 two parents that take a field from each other are slowed down, and say so", &[
            Declare("{resyncPeriod: 1h, resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge, force: true}, rawItems: [{MAP, data: {k: v}}]}]}"),
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: NAME-2, namespace: solar-a}, spec: {resyncPeriod: 1h, resources: [{namespaceSelector: {matchLabels: {name: solar-b}}, policy: {creation: Merge, force: true}, rawItems: [{MAP, data: {k: w}}]}]}}"),
            Says("{status: {processedItems: [{status: {status: 'False', message: ~back again and again}}]}}"),
            Note("ConfigMap solar-b/NAME"),
            Delete("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME-2"),
            Is("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME-2", GONE),
            Same("ConfigMap solar-b/NAME"),
        ]),
        ("9.6 blocks in another order delete nothing", &[
            Declare("resources: [{rawItems: [{MAP, data: {k: v}}]}, {rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}]"),
            Note("ConfigMap solar-b/NAME"),
            Declare("resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}}]}, {rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-3}}, {MAP, data: {k: v}}]}]"),
            Still("ConfigMap solar-b/NAME", "{data: {k: v}}"),
            Says("{status: {size: 6, processedItems: [{origin: 1/raw-1}, {}, {}, {}, {}, {}]}}"),
        ]),
        ("9.7 what drifts is put back long before the next resync", &[
            Declare("{resyncPeriod: 1h, resources: [{rawItems: [{MAP, data: {k: v}}]}]}"),
            Edit("ConfigMap solar-b/NAME", "data: {k: w}"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}}"),
            Delete("ConfigMap solar-b/NAME"),
            Is("ConfigMap solar-b/NAME", "{data: {k: v}}"),
        ]),
        ("9.8 a permit that cannot be rendered is tried again when it is touched, and can be taken back", &[
            Template("{resources: [{targets: [{MAP, data: {x: '{{ .nope }}'}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Created, conditions: [{status: 'False'}]}}"),
            Template("{resources: [{targets: [{MAP}]}]}"),
            Edit("capsule.clastix.io/v1beta2/ResourcePermit solar-a/NAME", "metadata: {labels: {touched: x}}"),
            Permit("{status: {phase: Requested}}"),
        ]),
        ("9.9 the application's label of permits", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {labels: {app.kubernetes.io/managed-by: resource-permit-controller}}}"),
        ]),
        ("9.10 one label for all, and a mark for each controller", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Is("ConfigMap solar-a/NAME", "{metadata: {labels: {projectcapsule.dev/protected-by: resource-permit, protection.projectcapsule.dev/resource-permit: 'true'}}}"),
        ]),
        ("9.11 a duration of zero has no end", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(", duration: 0s"),
            Permit("{status: {phase: Active, active: {until: null}}}"),
        ]),
        ("9.12 who asks for the activation of what is approved gets it from the controller", &[
            Template("{resources: [{targets: [{MAP}]}]}"),
            Ask(", startTime: '2999-01-01T00:00:00Z'"),
            Permit("{status: {phase: Requested}}"),
            Move("alice", "{phase: Approved}"),
            MoveRefused("alice", "{phase: Active}", "the request starts at 2999"),
        ]),
        ("9.13 a permit is activated by what was recorded, without its template", &[
            Template("{approvals: {conditions: [\"reviewer.name == 'alice'\"]}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested, request: {approvals: {conditions: [\"reviewer.name == 'alice'\"]}}}}"),
            Delete("capsule.clastix.io/v1beta2/ResourcePermitTemplate solar-a/NAME"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Active}}"),
        ]),
        ("9.16 long names make short managers", &[
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, labels: {capsule.clastix.io/tenant: wind, row: NAME}}}"),
            Global("resources: [{namespaceSelector: {matchLabels: {row: NAME}}, rawItems: [{MAP}]}]"),
            GlobalSays("{status: {size: 1}}"),
        ]),
        ("9.17 nothing leads out of Expired", &[
            Template("{approvals: {auto: true}, keepFor: 1h, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Move("alice", "{phase: Expired}"),
            MoveRefused("alice", "{phase: Approved}", "invalid transition"),
            MoveRefused("alice", "{phase: Active}", "invalid transition"),
            MoveRefused("alice", "{phase: Denied}", "invalid transition"),
            MoveRefused("alice", "{phase: Retrying}", "invalid transition"),
        ]),
    ])
    .await;
}
