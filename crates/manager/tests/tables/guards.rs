//! Section 6: what admission lets pass.

use crate::common::Fixture;
use crate::steps::Step::*;
use crate::steps::{GONE, check};

const ACCOUNT: &str = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: solar-a}}";
const RIGHTS: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: NAME, namespace: solar-a}]}";
const RP: &str = "capsule.clastix.io/v1beta2/ResourcePermit solar-a/NAME";

#[tokio::test]
async fn replicas_are_guarded_as_in_6_1() {
    let f = Fixture::new().await;
    check(&f, &[
        ("6.1 (2) an outsider neither changes nor deletes what is protected", &[
            Declare("resources: [{rawItems: [{MAP}]}]"),
            EditRefused("mallory", "ConfigMap solar-b/NAME", "data: {k: evil}", "protected by TenantResource solar-a/NAME"),
            EditRefused("mallory", "ConfigMap solar-b/NAME", "metadata: {labels: {projectcapsule.dev/protected-by: null, projectcapsule.dev/managed-by: null, protection.projectcapsule.dev/replications: null}}", "protected by TenantResource solar-a/NAME"),
            DeleteRefused("mallory", "ConfigMap solar-b/NAME", "protected by TenantResource solar-a/NAME"),
        ]),
        ("6.1 (2) of a GlobalTenantResource", &[
            Global("resources: [{rawItems: [{MAP}]}]"),
            DeleteRefused("mallory", "ConfigMap wind-a/NAME", "protected by GlobalTenantResource NAME"),
        ]),
        ("6.1 (2) the account of its parent may, that of another may not", &[
            Foreign(ACCOUNT),
            Foreign(RIGHTS),
            Declare("{resyncPeriod: 1h, serviceAccount: {name: NAME}, resources: [{rawItems: [{MAP}]}]}"),
            EditBy("system:serviceaccount:solar-a:NAME", "ConfigMap solar-b/NAME", "metadata: {labels: {a: b}}"),
            EditRefused("system:serviceaccount:solar-b:NAME", "ConfigMap solar-b/NAME", "metadata: {labels: {a: c}}", "forbidden"),
        ]),
        ("6.1 (4) labels alone protect nothing", &[
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b, labels: {projectcapsule.dev/created-by: replications, projectcapsule.dev/managed-by: replications}}}"),
            EditBy("mallory", "ConfigMap solar-b/NAME", "data: {k: v}"),
            DeleteBy("mallory", "ConfigMap solar-b/NAME"),
        ]),
        ("6.1 (4) what is managed without protection may be changed", &[
            Declare("resources: [{policy: {protect: false}, rawItems: [{MAP, data: {k: v}}]}]"),
            EditBy("mallory", "ConfigMap solar-b/NAME", "data: {l: w}"),
        ]),
        ("6.1 (5) in a terminating namespace everything may be deleted", &[
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-ends, labels: {capsule.clastix.io/tenant: wind, name: NAME-ends}}}"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: holds, namespace: NAME-ends, finalizers: [example.com/wait]}}"),
            Global("resources: [{namespaceSelector: {matchLabels: {name: NAME-ends}}, rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, finalizers: [example.com/wait]}}]}]"),
            Is("ConfigMap NAME-ends/NAME", "{metadata: {namespace: NAME-ends}}"),
            DeleteRefused("mallory", "ConfigMap NAME-ends/NAME", "protected by"),
            Delete("Namespace NAME-ends"),
            Wait,
            DeleteBy("mallory", "ConfigMap NAME-ends/NAME"),
            Edit("ConfigMap NAME-ends/NAME", "metadata: {finalizers: []}"),
            Edit("ConfigMap NAME-ends/holds", "metadata: {finalizers: []}"),
        ]),
        ("6 marks are set by the controller only, when an object is made and when it is changed", &[
            ForeignRefused("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b, labels: {projectcapsule.dev/protected-by: resource-permit}}}", "is set by the controller only"),
            Foreign("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: solar-b}}"),
            EditRefused("mallory", "ConfigMap solar-b/NAME", "metadata: {labels: {protection.projectcapsule.dev/replications: 'true'}}", "is set by the controller only"),
        ]),
        ("6 what a tenant's controller manages is an administrator's", &[
            Foreign("{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: NAME}, spec: {owners: [{kind: User, name: x, clusterRoles: [admin]}]}}"),
            Foreign("{apiVersion: v1, kind: Namespace, metadata: {name: NAME-own, labels: {capsule.clastix.io/tenant: NAME}}}"),
            Is("capsule.clastix.io/v1beta2/Tenant NAME", "{status: {size: 1, conditions: [{status: 'True'}, {}]}}"),
        ]),
        ("6 fields of older versions are made a policy once", &[
            Declare("{settings: {adopt: true, force: true}, pruningOnDelete: false, resources: [{rawItems: []}, {policy: {creation: Owner}, rawItems: []}]}"),
            Says("{spec: {settings: {adopt: true}, resources: [{policy: {creation: Merge, force: true, deletion: Orphan, protect: true}}, {policy: {creation: Owner}}]}}"),
        ]),
        ("6 an account in use is not deleted", &[
            Foreign(ACCOUNT),
            Foreign(RIGHTS),
            Declare("{serviceAccount: {name: NAME}, resources: [{rawItems: [{MAP}]}]}"),
            DeleteRefused("mallory", "ServiceAccount solar-a/NAME", "the service account is used by TenantResource solar-a/NAME"),
            Delete("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME"),
            Is("capsule.clastix.io/v1beta2/TenantResource solar-a/NAME", GONE),
            DeleteBy("mallory", "ServiceAccount solar-a/NAME"),
        ]),
    ])
    .await;
}

#[tokio::test]
async fn permits_are_guarded_as_in_6_2_and_6_3() {
    let f = Fixture::new().await;
    check(&f, &[
        ("6.2 an outsider neither changes nor deletes what a permit protects", &[
            Template("{approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            EditRefused("mallory", "ConfigMap solar-a/NAME", "data: {k: evil}", "protected by ResourcePermit solar-a/NAME"),
            EditRefused("mallory", "ConfigMap solar-a/NAME", "metadata: {labels: {projectcapsule.dev/protected-by: null}}", "protected by ResourcePermit solar-a/NAME"),
            DeleteRefused("mallory", "ConfigMap solar-a/NAME", "protected by ResourcePermit solar-a/NAME"),
        ]),
        ("6.2 the permit's account may, and no annotation makes another one so", &[
            Foreign(ACCOUNT),
            Foreign(RIGHTS),
            Template("{impersonation: {name: NAME}, approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active, request: {impersonation: {name: NAME, namespace: solar-a}}}}"),
            Is("ConfigMap solar-a/NAME", "{metadata: {annotations: {projectcapsule.dev/resourcepermit-service-account: 'system:serviceaccount:solar-a:NAME'}}}"),
            EditBy("system:serviceaccount:solar-a:NAME", "ConfigMap solar-a/NAME", "metadata: {labels: {a: b}}"),
            Edit("ConfigMap solar-a/NAME", "metadata: {annotations: {projectcapsule.dev/resourcepermit-service-account: mallory}}"),
            EditRefused("mallory", "ConfigMap solar-a/NAME", "data: {k: evil}", "protected by ResourcePermit"),
        ]),
        ("6.2, 2.8 an object of a TenantResource and a permit: their account may change it, others may not", &[
            Foreign(ACCOUNT),
            Foreign(RIGHTS),
            Declare("{serviceAccount: {name: NAME}, resources: [{namespaceSelector: {matchLabels: {name: solar-a}}, rawItems: [{MAP, data: {k: v}}]}]}"),
            Template("{impersonation: {name: NAME}, approvals: {auto: true}, resources: [{policy: {creation: Merge}, targets: [{MAP, data: {p: q}}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            Is("ConfigMap solar-a/NAME", "{data: {k: v, p: q}, metadata: {labels: {protection.projectcapsule.dev/replications: 'true', protection.projectcapsule.dev/resource-permit: 'true'}}}"),
            EditBy("system:serviceaccount:solar-a:NAME", "ConfigMap solar-a/NAME", "metadata: {labels: {a: b}}"),
            EditRefused("mallory", "ConfigMap solar-a/NAME", "data: {k: evil}", "protected by"),
        ]),
        ("6 the account of a permit is not deleted until the permit is over", &[
            Foreign(ACCOUNT),
            Foreign(RIGHTS),
            Template("{impersonation: {name: NAME}, keepFor: 1h, approvals: {auto: true}, resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            DeleteRefused("mallory", "ServiceAccount solar-a/NAME", "the service account is used by ResourcePermit solar-a/NAME"),
            Move("alice", "{phase: Expired}"),
            Permit("{status: {phase: Expired, size: 0}}"),
            DeleteBy("mallory", "ServiceAccount solar-a/NAME"),
        ]),
        ("6.2 not protected", &[
            Template("{approvals: {auto: true}, resources: [{policy: {protect: false}, targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Active}}"),
            EditBy("mallory", "ConfigMap solar-a/NAME", "metadata: {labels: {a: b}}"),
        ]),
        ("6.3 the snapshot is the controller's", &[
            Template("{resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("alice", "{request: {resources: []}}", "written by the controller only"),
            MoveRefused("alice", "{request: {impersonation: {name: root, namespace: kube-system}}}", "written by the controller only"),
            MoveRefused("alice", "{request: {template: {name: other}}}", "written by the controller only"),
            MoveRefused("alice", "{request: {approvals: {auto: true}}}", "written by the controller only"),
            MoveRefused("alice", "{size: 3}", "only lifecycle transitions are possible"),
        ]),
        ("6.3 phases that are the controller's", &[
            Template("{resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("alice", "{phase: Created}", "set by the controller only"),
            MoveRefused("alice", "{phase: Pending}", "set by the controller only"),
            MoveRefused("alice", "{phase: Failed}", "set by the controller only"),
            MoveRefused("alice", "{phase: Nope}", "unknown phase"),
        ]),
        ("6.3 steps that skip one", &[
            Template("{resources: [{targets: [{MAP}]}]}"),
            Ask(""),
            Permit("{status: {phase: Requested}}"),
            MoveRefused("alice", "{phase: Active}", "invalid transition from Requested to Active"),
            MoveRefused("alice", "{phase: Retrying}", "invalid transition from Requested to Retrying"),
            Move("alice", "{phase: Approved}"),
            Permit("{status: {phase: Active}}"),
            MoveRefused("alice", "{phase: Denied}", "invalid transition from Active to Denied"),
            MoveRefused("alice", "{phase: Approved}", "invalid transition from Active to Approved"),
            EditRefused("alice", RP, "spec: {template: {name: other}}", "immutable"),
        ]),
    ])
    .await;
}
