//! Section 5: the life of permits.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

const AUTO: &str = "{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}";
const MANUAL: &str = "{maxDuration: 2h, defaultDuration: 1h, keepFor: 1h, resources: [{targets: [{MAP}]}]}";
/// Its account gets its rights when the row says so.
const POWERLESS: &str = "{impersonation: {name: NAME}, approvals: {auto: true}, resources: [{targets: [{MAP}]}]}";
const ACCOUNT: &str = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}";
const RIGHTS: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: NAME, namespace: solar-a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: NAME, namespace: solar-a}]}";
const RP: &str = "capsule.clastix.io/v1beta2/ResourcePermit solar-a/NAME";

#[tokio::test]
async fn phases_follow_each_other_as_in_5_1() {
    let f = Fixture::new().await;
    check(&f, &[
        ("5.1 none, Created, Requested", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested, transitions: [{type: Created, reason: CreatedByUser, actor: {name: bob}}, {type: Requested, reason: PendingReview, actor: {name: bob}}]}}"),
        ]),
        ("5.1 Created, Requested and Approved at once", &[
            Template(AUTO),
            Ask(""),
            Permit("{status: {phase: Active, review: {verdict: Approved, message: Auto Approved}, transitions: [{}, {type: Requested}, {type: Approved, reason: ApprovedBySystem, message: Auto Approved, actor: {name: capsule-controller, type: System}}, {type: Active, reason: ActivatedBySystem}]}}"),
        ]),
        ("5.1 Created, Failed: no account", &[
            Template(POWERLESS),
            Ask(""),
            Permit("{status: {phase: Failed, failure: {stage: Preflight, retryPhase: Requested, reason: ImpersonationFailed}, conditions: [{status: 'False'}]}}"),
        ]),
        ("5.1 Created, Failed: dry run; Failed, Retrying, Requested and on", &[
            Foreign(ACCOUNT),
            Template(POWERLESS),
            Ask(""),
            Permit("{status: {phase: Failed, failure: {stage: Preflight, reason: ResourceDryRunFailed, message: ~forbidden}}}"),
            Foreign(RIGHTS),
            Move("alice", "{phase: Retrying}"),
            Permit("{status: {phase: Active, failure: null, transitions: [{}, {type: Failed}, {type: Retrying, reason: RetryPermitedByUser}, {type: Requested, reason: PendingReview}, {type: Approved}, {type: Active}]}}"),
        ]),
        ("5.1 Retrying, Failed", &[
            Foreign(ACCOUNT),
            Template(POWERLESS),
            Ask(""),
            Permit("{status: {phase: Failed}}"),
            Move("alice", "{phase: Retrying}"),
            Permit("{status: {phase: Failed, transitions: [{}, {type: Failed}, {type: Retrying}, {type: Failed}]}}"),
        ]),
        ("5.1 Created, Created: not to be approved", &[
            Template("{resources: [{targets: [{MAP, data: {x: '{{ .nope }}'}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Created, conditions: [{status: 'False', reason: TemplateRenderingFailed}]}}"),
            MoveRefused("alice", "{phase: Approved}", "invalid transition from Created to Approved"),
        ]),
        ("5.1 Requested, Denied", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Move("alice", "{phase: Denied, review: {message: nope}}"),
            Permit("{status: {phase: Denied, review: {verdict: Denied, message: nope, reviewer: {name: alice, type: User}}, transitions: [{}, {}, {type: Denied, reason: DeniedByReviewer}], conditions: [{status: 'True'}]}}"),
            MoveRefused("alice", "{phase: Approved}", "invalid transition from Denied to Approved"),
        ]),
        ("5.1 Requested, Approved, Active", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Active, transitions: [{}, {}, {type: Approved, reason: ApprovedByUser}, {type: Active, reason: ActivatedBySystem}]}}"),
            Is("ConfigMap solar-a/NAME", "{}"),
        ]),
        ("5.1 Approved, Failed: applying; Retrying, Approved, Active", &[
            Foreign(ACCOUNT),
            Foreign(RIGHTS),
            Template("{impersonation: {name: NAME}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Delete("rbac.authorization.k8s.io/v1/RoleBinding solar-a/NAME"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Failed, failure: {stage: Activation, retryPhase: Approved, reason: ResourceApplyFailed}}}"),
            Foreign(RIGHTS),
            Move("alice", "{phase: Retrying}"),
            Permit("{status: {phase: Active, failure: null, transitions: [{}, {}, {}, {type: Failed}, {type: Retrying}, {type: Approved, reason: RetrySucceeded}, {type: Active}]}}"),
        ]),
        ("5.1 Active, Expired by the clock", &[
            Template("{approvals: {auto: true}, defaultDuration: 1s, keepFor: 1h, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Expired, keepUntil: ~T, transitions: [{}, {}, {}, {}, {type: Expired, reason: ExpiredBySystem}]}}"),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("5.1 Active, Expired by a user", &[
            Template("{approvals: {auto: true}, keepFor: 1h, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Move("alice", "{phase: Expired}"),
            Permit("{status: {phase: Expired, transitions: [{}, {}, {}, {}, {type: Expired, reason: ExpiredByUser}], conditions: [{status: 'True'}], size: 0}}"),
            MoveRefused("alice", "{phase: Approved}", "invalid transition from Expired to Approved"),
            MoveRefused("alice", "{phase: Retrying}", "invalid transition from Expired to Retrying"),
        ]),
        ("5.1 the phase that is there already is no step", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Note(RP),
            Move("alice", "{phase: Requested}"),
            Still(RP, "{status: {phase: Requested}}"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn what_may_be_asked_for_is_as_in_5_2() {
    let f = Fixture::new().await;
    const LIMITED: &str = "{maxDuration: 1h, paramSchema: {type: object, required: [x], properties: {x: {type: string}}}, approvals: {auto: true, conditions: [\"request.spec.reason == 'fire'\"]}, resources: [{targets: [{MAP}]}]}";
    check(
        &f,
        &[
            (
                "5.2 the requester is who asks",
                &[
                    Template(MANUAL),
                    Ask(""),
                    Permit("{spec: {requester: {name: bob, type: User, groups: ['system:authenticated']}}}"),
                ],
            ),
            (
                "5.2 an unknown kind of template",
                &[AskRefused(", template: {kind: Nope, name: x}", "Unsupported value: \"Nope\"")],
            ),
            ("5.2 no such template", &[AskRefused("", "not found")]),
            (
                "5.2 no such global template",
                &[AskRefused(", template: {kind: GlobalResourcePermitTemplate, name: NAME}", "not found")],
            ),
            ("5.2 parameters", &[Template(LIMITED), AskRefused(", reason: fire, duration: 1h", "params")]),
            (
                "5.2 duration",
                &[
                    Template(LIMITED),
                    AskRefused(", reason: fire, params: {x: z}, duration: 2h", "duration: must be at most 1h0m0s"),
                ],
            ),
            (
                "5.2 start",
                &[
                    Template(LIMITED),
                    AskRefused(
                        ", reason: fire, params: {x: z}, duration: 1h, startTime: '2020-01-01T00:00:00Z'",
                        "must be in the future",
                    ),
                ],
            ),
            (
                "5.2 conditions of an automatic template",
                &[
                    Template(LIMITED),
                    AskRefused(", reason: water, params: {x: z}, duration: 1h", "no approval condition is met"),
                ],
            ),
            (
                "5.2 all is well",
                &[
                    Template(LIMITED),
                    Ask(", reason: fire, params: {x: z}, duration: 1h"),
                    Permit("{status: {phase: Active}}"),
                ],
            ),
            (
                "5.2 the template of a permit stays",
                &[
                    Template(MANUAL),
                    Ask(""),
                    Permit("{status: {phase: Requested}}"),
                    EditRefused("bob", RP, "spec: {template: {name: other}}", "immutable"),
                ],
            ),
            (
                "5.2 and so does who asked",
                &[
                    Template(MANUAL),
                    Ask(""),
                    EditBy("mallory", RP, "spec: {requester: {name: mallory}}"),
                    Permit("{spec: {requester: {name: bob}}}"),
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn snapshots_and_reviews_are_as_in_5_3_and_5_4() {
    let f = Fixture::new().await;
    check(&f, &[
        ("5.3 what is recorded", &[
            Template(MANUAL),
            Ask(", duration: 30m"),
            Permit("{status: {request: {duration: 30m, keepFor: 1h, startTime: ~T, template: {kind: ResourcePermitTemplate, name: NAME, resourceVersion: '~'}, resources: [{targets: [{metadata: {namespace: solar-a, labels: {app.kubernetes.io/managed-by: resource-permit-controller}}}]}]}}}"),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("5.3 a default where nothing is asked for", &[Template(MANUAL), Ask(""), Permit("{status: {request: {duration: 1h}}}")]),
        ("5.3 what could be rendered is shown although another target could not", &[
            Template("{resources: [{targets: [{MAP}]}, {targets: [{MAP, data: {x: '{{ .nope }}'}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Created, request: {resources: [{targets: [{kind: ConfigMap}]}]}}}"),
        ]),
        ("5.3 the errors of all targets of the dry run", &[
            Template("{resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-1}, data: {'not a key': x}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-2}, data: {'not a key': x}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Failed, failure: {message: '~NAME-1'}}}"),
            Permit("{status: {phase: Failed, failure: {message: '~NAME-2'}}}"),
        ]),
        ("5.3 a template changed later changes nothing", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Template("{resources: [{targets: [{MAP, data: {other: x}}]}]}"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Active}}"),
            Is("ConfigMap solar-a/NAME", "{data: null}"),
        ]),
        ("5.4 without rights on the status", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("nobody", "{phase: Approved}", "forbidden"),
        ]),
        ("5.4 approvers", &[
            Template("{approvals: {approvers: [{kind: User, name: alice}]}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("mallory", "{phase: Approved}", "\"mallory\" is not an approver"),
            Move("mallory", "{phase: Denied}"),
        ]),
        ("5.4 approvers: a group", &[
            Template("{approvals: {approvers: [{kind: Group, name: 'system:authenticated'}]}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Move("mallory", "{phase: Approved}"),
            Permit("{status: {phase: Active}}"),
        ]),
        ("5.4 conditions: one is enough", &[
            Template("{approvals: {conditions: ['false', 'reviewer.name != requester.name']}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("bob", "{phase: Approved}", "no approval condition is met"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Active}}"),
        ]),
        ("5.4 what a reviewer may adjust, and what he may not", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("alice", "{phase: Approved, request: {duration: 3h}}", "duration: must be at most 2h0m0s"),
            MoveRefused("alice", "{phase: Approved, request: {resources: []}}", "written by the controller only"),
            Move("alice", "{phase: Approved, size: 7, active: {from: '2020-01-01T00:00:00Z'}, request: {duration: 10m, keepFor: 1d}}"),
            Permit("{status: {phase: Active, size: 1, request: {duration: 10m, keepFor: 1d}, active: {from: ~20, until: ~T}}}"),
        ]),
        ("5.4 a start later on holds the activation back", &[
            Template(MANUAL),
            Ask(", startTime: '2999-01-01T00:00:00Z'"),
            Permit("{status: {phase: Requested}}"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Approved}, metadata: {finalizers: [controller.projectcapsule.dev/finalize]}}"),
            Wait,
            Permit("{status: {phase: Approved}}"),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn permits_end_as_in_5_5_and_5_6() {
    let f = Fixture::new().await;
    check(&f, &[
        ("5.5 active without an end", &[
            Template(AUTO),
            Ask(""),
            Permit("{status: {phase: Active, active: {from: ~T, until: null}, keepUntil: null}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {annotations: {projectcapsule.dev/active-until: null}}}"),
        ]),
        ("5.5 active with an end and a time of keeping", &[
            Template("{approvals: {auto: true}, defaultDuration: 1h, keepFor: 1h, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active, active: {until: ~T}, keepUntil: ~T}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {annotations: {projectcapsule.dev/active-until: ~T}}}"),
        ]),
        ("5.5 without a time of keeping the permit goes with its objects", &[
            Template(AUTO),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Move("alice", "{phase: Expired}"),
            Permit(GONE),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("5.5 kept, and then gone", &[
            Template("{approvals: {auto: true}, keepFor: 1s, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Move("alice", "{phase: Expired}"),
            Permit(GONE),
        ]),
        ("5.5 what an active permit made is kept as it is (9.7)", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP, data: {k: v}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Edit("ConfigMap solar-a/NAME", "data: {k: hacked}"),
            Is("ConfigMap solar-a/NAME", "{data: {k: v}}"),
            Delete("ConfigMap solar-a/NAME"),
            Is("ConfigMap solar-a/NAME", "{data: {k: v}}"),
        ]),
        ("5.5 what was applied of an activation that failed stays until the end", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-taken, namespace: solar-b}}"),
            Delete("ConfigMap solar-b/NAME-taken"),
            Template("{resources: [{targets: [{MAP}, {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-taken, namespace: solar-b}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-taken, namespace: solar-b}}"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Failed, failure: {stage: Activation}, size: 2}}"),
            Is("ConfigMap solar-a/NAME", "{}"),
            Move("alice", "{phase: Expired}"),
            Is("ConfigMap solar-a/NAME", GONE),
            Is("ConfigMap solar-b/NAME-taken", "{metadata: {labels: null}}"),
            Permit(GONE),
        ]),
        ("5.5 an apply whose record was lost is cleaned up", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            EditStatus(RP, "status: {phase: Expired, processedItems: [], size: 0}"),
            Permit(GONE),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("5.6 Requested: taken back", &[Template(MANUAL), Ask(""), Permit("{status: {phase: Requested}}"), DeleteBy("bob", RP), Permit(GONE)]),
        ("5.6 Created: taken back", &[
            Template("{resources: [{targets: [{MAP, data: {x: '{{ .nope }}'}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Created}}"),
            DeleteBy("bob", RP),
            Permit(GONE),
        ]),
        ("5.6 Denied: not by its requester, but by an administrator", &[
            Template(MANUAL),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            Move("alice", "{phase: Denied}"),
            DeleteRefused("bob", RP, "a permit in phase Denied must expire first"),
            Delete(RP),
            Permit(GONE),
        ]),
        ("5.6 Approved: not by its requester", &[
            Template(MANUAL),
            Ask(", startTime: '2999-01-01T00:00:00Z'"),
            Permit("{status: {phase: Requested}}"),
            Move("alice", "{phase: Approved}"),
            DeleteRefused("bob", RP, "a permit in phase Approved must expire first"),
            Delete(RP),
            Permit(GONE),
        ]),
        ("5.6 Active: by an administrator, who has it cleaned up", &[
            Template(AUTO),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            DeleteRefused("bob", RP, "a permit in phase Active must expire first"),
            Delete(RP),
            Permit(GONE),
            Is("ConfigMap solar-a/NAME", GONE),
        ]),
        ("5.6 Failed", &[
            Template(POWERLESS),
            Ask(""),
            Permit("{status: {phase: Failed}}"),
            DeleteRefused("bob", RP, "a permit in phase Failed must expire first"),
        ]),
        ("5.6 Expired and kept", &[
            Template("{approvals: {auto: true}, keepFor: 1h, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Move("alice", "{phase: Expired}"),
            Permit("{status: {phase: Expired, keepUntil: ~T}}"),
            DeleteRefused("bob", RP, "the permit is kept until"),
        ]),
    ])
    .await;
}
