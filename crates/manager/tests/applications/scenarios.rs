//! A row for each scenario of upstream's own tests (section 12 of the functional digest) that is about one cluster.

use crate::fixture::{Fixture, component, spec, with};
use crate::script::Step::{
    As, Create, Delete, Edit, EditStatus, Gone, Has, Phase, Publish, Ready, Says, Stays, Trackers, Up,
};
use crate::script::{Row, play};
use manager::application::compression::Compression;
use manager::application::{Controller, Options};

/// A component of one ConfigMap of the same name, with `k: v`.
fn map(name: &str, value: &str) -> String {
    component(name, name, &format!("{{k: '{value}'}}"))
}

fn policy(kind: &str, properties: &str) -> String {
    format!("policies: [{{name: p, type: {kind}, properties: {properties}}}]")
}

fn objects(name: &str, objects: &str) -> String {
    format!("{{name: {name}, type: k8s-objects, properties: {{objects: [{objects}]}}}}")
}

const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, revisionHistoryLimit: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: one}]}}}}";

fn k(value: &str) -> String {
    format!("{{data: {{k: '{value}'}}}}")
}

fn dispatch_and_keep() -> Vec<Row> {
    let once = |strategy: &str| {
        let rule =
            format!("{{enable: true, rules: [{{selector: {{resourceTypes: [Deployment]}}, strategy: {strategy}}}]}}");
        with(&[objects("web", DEPLOYMENT)], &policy("apply-once", &rule))
    };
    vec![
        (
            "12 keeper: namespaces of cluster-scoped kinds are blanked, and the objects kept and collected",
            vec![
                Up(spec(&[objects(
                    "roles",
                    "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: blanked, namespace: x}, rules: []}",
                )])),
                Ready,
                Has("clusterrole/blanked", "{metadata: {namespace: null}}".into()),
                Delete("clusterrole/blanked"),
                Has("clusterrole/blanked", "{kind: ClusterRole}".into()),
                Delete("app/app"),
                Gone("app/app"),
                Gone("clusterrole/blanked"),
            ],
        ),
        (
            "12 keeper: a kind that is not served is told, and not recorded",
            vec![
                Up(spec(&[objects("x", "{apiVersion: x.io/v1, kind: Nothing, metadata: {name: x}}")])),
                Says("no matches for kind \\\"Nothing\\\" in version \\\"x.io/v1\\\""),
                Delete("app/app"),
                Gone("app/app"),
                Trackers(&[]),
            ],
        ),
        (
            "12 StateKeep: an application that is applied once is recorded by metadata alone, and not kept",
            vec![
                Up(with(&[map("a", "1")], &policy("apply-once", "{enable: true}"))),
                Ready,
                Has("tracker/v1", "{spec: {managedResources: [{apiVersion: v1, kind: ConfigMap, name: a, namespace: NS, component: a}]}}".replace("NS", "keep-2")),
                Edit("map/a", k("2")),
                Stays("map/a"),
                Delete("map/a"),
                Stays("map/a"),
                Delete("app/app"),
                Gone("app/app"),
            ],
        ),
        (
            "12 StateKeep: what is recorded as deleted goes, and so does the record of it (13.1)",
            vec![
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Edit("tracker/v1", "{spec: {managedResources: [{apiVersion: v1, kind: ConfigMap, name: a, namespace: keep-3, deleted: true}]}}".into()),
                Edit("app/app", "{metadata: {labels: {wake: up}}}".into()),
                Gone("map/a"),
                Has("tracker/v1", "{spec: {managedResources: []}}".into()),
                Stays("map/b"),
            ],
        ),
        (
            "12 StateKeep: an object that somebody else took is an error, and the rest is kept",
            vec![
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Edit("map/a", "{metadata: {labels: {app.oam.dev/name: other}}}".into()),
                Edit("map/b", k("2")),
                Has("map/b", k("1")),
                Says("existing object ConfigMap keep-4/a is managed by other application keep-4/other"),
                Says("\"type\":\"StateKeep\""),
                Edit("map/a", "{metadata: {labels: {app.oam.dev/name: app}}}".into()),
            ],
        ),
        (
            "12 StateKeep: with apply-once, an object that others delete does not come back, and its entry goes",
            vec![
                Up(once("{path: ['spec.replicas']}")),
                Has("deployment/web", "{spec: {replicas: 1}}".into()),
                EditStatus("deployment/web", "{status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}".into()),
                Phase("running"),
                Delete("deployment/web"),
                Has("tracker/v1", "{spec: {managedResources: []}}".into()),
                Gone("deployment/web"),
            ],
        ),
        (
            "12 StateKeep: with apply-once by path, that field stays as others set it and the rest is kept",
            vec![
                Up(once("{path: ['spec.replicas']}")),
                Has("deployment/web", "{spec: {replicas: 1}}".into()),
                Edit("deployment/web", "{spec: {replicas: 5, revisionHistoryLimit: 9, minReadySeconds: 7}}".into()),
                Has("deployment/web", "{spec: {replicas: 5, revisionHistoryLimit: 3, minReadySeconds: 7}}".into()),
                Stays("deployment/web"),
            ],
        ),
        (
            "12 applicator: what others add survives, what is no longer declared goes, in maps and in lists of a built-in kind",
            vec![
                Up(spec(&[component("a", "a", "{k: '1', l: '1'}"), objects("web", DEPLOYMENT)])),
                Has("map/a", k("1")),
                Has("deployment/web", "{spec: {replicas: 1}}".into()),
                Edit("map/a", "{data: {theirs: '1'}, metadata: {annotations: {theirs: '1'}}}".into()),
                Edit("deployment/web", "{metadata: {annotations: {theirs: '1'}}}".into()),
                Up(spec(&[map("a", "2"), objects("web", &DEPLOYMENT.replace("replicas: 1", "replicas: 2"))])),
                Has("map/a", "{data: {k: '2', l: null, theirs: '1'}, metadata: {annotations: {theirs: '1'}}}".into()),
                Has("deployment/web", "{spec: {replicas: 2}, metadata: {annotations: {theirs: '1'}}}".into()),
            ],
        ),
        (
            "12 applicator: last-applied is not recorded where the object says so",
            vec![
                Up(spec(&[objects("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {app.oam.dev/last-applied-configuration: skip}}, data: {k: '1'}}")])),
                Ready,
                Has("map/a", "{metadata: {annotations: {app.oam.dev/last-applied-configuration: skip}}}".into()),
                Edit("map/a", k("2")),
                Has("map/a", k("1")),
            ],
        ),
        (
            "12 applicator: an object is made anew when a field changes that cannot be",
            vec![
                Up(with(
                    &[objects("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {k: '1'}}")],
                    &policy("resource-update", "{rules: [{selector: {resourceNames: [a]}, strategy: {recreateFields: ['data.k']}}]}"),
                )),
                Ready,
                Up(with(
                    &[objects("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {k: '2'}}")],
                    &policy("resource-update", "{rules: [{selector: {resourceNames: [a]}, strategy: {recreateFields: ['data.k']}}]}"),
                )),
                Has("map/a", k("2")),
                Ready,
            ],
        ),
        (
            "12 applicator: with the operation replace, what others added goes",
            vec![
                Up(with(&[map("a", "1")], &policy("resource-update", "{rules: [{selector: {resourceNames: [a]}, strategy: {op: replace}}]}"))),
                Ready,
                Edit("map/a", "{data: {theirs: '1'}}".into()),
                Has("map/a", "{data: {k: '1', theirs: null}}".into()),
            ],
        ),
        (
            "12 e2e: the objects of one application may be in several namespaces; versions move them",
            vec![
                Create("map/marker", "{}".into()),
                Up(spec(&[objects("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: default}, data: {k: '1'}}")])),
                Ready,
                Up(spec(&[objects("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere}, data: {k: '1'}}")])),
                Has("map/elsewhere", k("1")),
                Ready,
                Trackers(&["v2"]),
            ],
        ),
        (
            "12 e2e multi: a bad object leaves no entry in the tracker (issue 4700)",
            vec![
                Up(spec(&[objects("a", &format!("{DEPLOYMENT}, {{apiVersion: v1, kind: ConfigMap, metadata: {{name: Not_A_Name}}}}"))])),
                Says("Not_A_Name"),
                Gone("deployment/web"),
                Has("tracker/v1", "{spec: {managedResources: []}}".into()),
            ],
        ),
        (
            "12 e2e multi: read-only objects are looked at and never written or deleted",
            vec![
                Up(with(&[map("a", "1")], &policy("read-only", "{rules: [{selector: {resourceNames: [a]}}]}"))),
                Says("ConfigMap keep-13/a is marked as read-only but does not exist"),
                Create("map/a", "{data: {k: theirs}}".into()),
                Ready,
                Has("map/a", "{data: {k: theirs}, metadata: {labels: null}}".into()),
                Delete("app/app"),
                Gone("app/app"),
                Has("map/a", k("theirs")),
            ],
        ),
        (
            "12 e2e multi: take-over adopts, and then deletes with the application",
            vec![
                Create("map/a", "{data: {theirs: '1'}}".into()),
                Up(with(&[map("a", "1")], &policy("take-over", "{rules: [{selector: {resourceNames: [a]}}]}"))),
                Has("map/a", "{data: {k: '1', theirs: '1'}, metadata: {labels: {app.oam.dev/name: app}}}".into()),
                Delete("app/app"),
                Gone("map/a"),
            ],
        ),
        (
            "12 e2e multi: shared objects are the first application's until it goes, then the next one's",
            vec![
                As("first"),
                Up(with(&[map("a", "1")], &policy("shared-resource", "{rules: [{selector: {resourceNames: [a]}}]}"))),
                Ready,
                As("second"),
                Up(with(&[map("a", "2")], &policy("shared-resource", "{rules: [{selector: {resourceNames: [a]}}]}"))),
                Ready,
                Has("map/a", k("1")),
                As("third"),
                Up(spec(&[map("a", "3")])),
                Says("is managed by other application keep-15/first"),
                Delete("app/third"),
                Gone("app/third"),
                Delete("app/first"),
                Has("map/a", k("2")),
                Delete("app/second"),
                Gone("map/a"),
            ],
        ),
    ]
}

fn collection() -> Vec<Row> {
    let keep = policy("garbage-collect", "{keepLegacyResource: true}");
    let keep = keep.as_str();
    let rule = |selector: &str, rest: &str| {
        policy("garbage-collect", &format!("{{rules: [{{selector: {selector}, {rest}}}]}}"))
    };
    vec![
        (
            "12 GC: of several generations only the last one's objects stay",
            vec![
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Up(spec(&[map("b", "2"), map("c", "2")])),
                Ready,
                Up(spec(&[map("c", "3")])),
                Ready,
                Gone("map/a"),
                Gone("map/b"),
                Has("map/c", k("3")),
                Trackers(&["v3"]),
            ],
        ),
        (
            "12 GC: with keepLegacyResource old objects stay, until their tracker is deleted (issue 2965)",
            vec![
                Up(with(&[map("a", "1")], keep)),
                Ready,
                Up(with(&[map("b", "1")], keep)),
                Ready,
                Trackers(&["v1", "v2"]),
                Has("map/a", k("1")),
                Delete("tracker/v1"),
                Gone("map/a"),
                Trackers(&["v2"]),
                Has("map/b", k("1")),
            ],
        ),
        (
            "12 GC: with keepLegacyResource a tracker whose objects all went on to a newer one is dropped",
            vec![Up(with(&[map("a", "1")], keep)), Ready, Up(with(&[map("a", "2")], keep)), Ready, Trackers(&["v2"])],
        ),
        (
            "12 GC: with keepLegacyResource the end of the application takes everything",
            vec![
                Up(with(&[map("a", "1")], keep)),
                Ready,
                Up(with(&[map("b", "1")], keep)),
                Ready,
                Delete("app/app"),
                Gone("app/app"),
                Gone("map/a"),
                Gone("map/b"),
                Trackers(&[]),
            ],
        ),
        (
            "12 GC: in order of dependency, what is needed waits for what needs it",
            vec![
                Up(format!(
                    "{{components: [{}, {{name: web, dependsOn: [db], type: k8s-objects, properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: web, finalizers: [x.io/held]}}}}]}}}}], {}}}",
                    map("db", "1"),
                    policy("garbage-collect", "{order: dependency}")
                )),
                Ready,
                Delete("app/app"),
                Says("Waiting for ConfigMap web (Cluster: local, Namespace: collect-4) to delete."),
                Stays("map/db"),
                Edit("map/web", "{metadata: {finalizers: null}}".into()),
                Gone("map/db"),
                Gone("app/app"),
            ],
        ),
        (
            "12 GC: revisions beyond the limit go, the one in use stays",
            vec![
                Up(with(&[map("a", "1")], &policy("garbage-collect", "{applicationRevisionLimit: 1}"))),
                Ready,
                Up(with(&[map("a", "2")], &policy("garbage-collect", "{applicationRevisionLimit: 1}"))),
                Ready,
                Up(with(&[map("a", "3")], &policy("garbage-collect", "{applicationRevisionLimit: 1}"))),
                Ready,
                Gone("revision/app-v1"),
                Has("revision/app-v2", "{kind: ApplicationRevision}".into()),
                Has("revision/app-v3", "{status: {succeeded: true}}".into()),
            ],
        ),
        (
            "12 GC: a rule by component and by type keeps what it names",
            vec![
                Up(with(&[map("a", "1"), map("b", "1")], &rule("{componentNames: [a]}", "strategy: onAppDelete"))),
                Ready,
                Up(with(&[map("c", "1")], &rule("{componentNames: [a]}", "strategy: onAppDelete"))),
                Gone("map/b"),
                Ready,
                Has("map/a", k("1")),
                Delete("map/a"),
                Has("map/a", k("1")),
                Delete("app/app"),
                Gone("map/a"),
            ],
        ),
        (
            "12 GC: propagation orphan leaves the object without labels, cascading takes it",
            vec![
                Up(with(&[map("a", "1")], &rule("{resourceNames: [a]}", "propagation: orphan"))),
                Ready,
                Up(with(&[map("b", "1")], &rule("{resourceNames: [b]}", "propagation: cascading"))),
                Ready,
                Gone("map/a"),
                Up(with(&[map("c", "1")], &rule("{resourceNames: [c]}", "propagation: orphan"))),
                Ready,
                Gone("map/b"),
                Delete("app/app"),
                Gone("app/app"),
                Has("map/c", "{data: {k: '1'}, metadata: {labels: {app.oam.dev/name: null}}}".into()),
            ],
        ),
        (
            "12 GC: revisions of components that KubeVela left go with their components, and with the application",
            vec![
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Create("map/rev-a", "{metadata: {labels: {app.oam.dev/name: app, app.oam.dev/namespace: NAMESPACE}}}".into()),
                Create("map/rev-b", "{metadata: {labels: {app.oam.dev/name: app, app.oam.dev/namespace: NAMESPACE}}}".into()),
                Create(
                    "tracker/app-comp-rev-collect-8",
                    "{metadata: {finalizers: [resourcetracker.core.oam.dev/finalizer], labels: {app.oam.dev/name: app, app.oam.dev/namespace: NAMESPACE}}, spec: {type: component-revision, applicationGeneration: 0, managedResources: [{apiVersion: v1, kind: ConfigMap, name: rev-a, namespace: NAMESPACE, component: a}, {apiVersion: v1, kind: ConfigMap, name: rev-b, namespace: NAMESPACE, component: b}]}}".into(),
                ),
                Up(spec(&[map("a", "2")])),
                Gone("map/rev-b"),
                Ready,
                Has("map/rev-a", "{kind: ConfigMap}".into()),
                Delete("app/app"),
                Gone("app/app"),
                Gone("map/rev-a"),
                Trackers(&[]),
            ],
        ),
        (
            "12 GC: deleting the tracker of the current version brings it and its objects back",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Delete("tracker/v1"),
                Has("tracker/v1", "{metadata: {deletionTimestamp: null}}".into()),
                Has("map/a", k("1")),
            ],
        ),
        (
            "12 GC: revisions of components whose tracker is found late go, too",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Create("map/rev-b", "{metadata: {labels: {app.oam.dev/name: app, app.oam.dev/namespace: NAMESPACE}}}".into()),
                Create(
                    "tracker/app-comp-rev-late",
                    "{metadata: {finalizers: [resourcetracker.core.oam.dev/finalizer], labels: {app.oam.dev/name: app, app.oam.dev/namespace: NAMESPACE}}, spec: {type: component-revision, applicationGeneration: 0, managedResources: [{apiVersion: v1, kind: ConfigMap, name: rev-b, namespace: NAMESPACE, component: b}]}}".into(),
                ),
                Gone("map/rev-b"),
                Has("map/a", k("1")),
            ],
        ),
    ]
}

fn workflows() -> Vec<Row> {
    let flow = |mode: &str, steps: &str, components: &[String]| {
        with(components, &format!("workflow: {{mode: {{steps: {mode}}}, steps: [{steps}]}}"))
    };
    let all = || vec![map("a", "1"), map("b", "1"), map("c", "1")];
    let apply = |name: &str, more: &str| {
        format!("{{name: {name}, type: apply-component, properties: {{component: {name}}}{more}}}")
    };
    let bad = || objects("a", "{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}");
    vec![
        (
            "12 workflow: a step whose condition does not hold is left out",
            vec![
                Up(flow(
                    "StepByStep",
                    &[apply("a", ""), apply("b", ", if: status.a.failed"), apply("c", ", if: '!(status.a.failed || status.b.succeeded) && status[\"a\"].phase == \"succeeded\"'")].join(", "),
                    &all(),
                )),
                Ready,
                Has("map/a", k("1")),
                Gone("map/b"),
                Has("map/c", k("1")),
            ],
        ),
        (
            "12 workflow: a condition that cannot be read fails its step and says why",
            vec![Up(flow("StepByStep", &apply("a", ", if: 'status.a.'"), &all())), Phase("workflowFailed"), Says("if: ")],
        ),
        (
            "12 workflow: a step that takes too long fails, and `always` runs all the same",
            vec![
                Up(flow(
                    "DAG",
                    &format!("{{name: web, type: apply-component, timeout: 1s, properties: {{component: web}}}}, {}", apply("b", ", if: always, dependsOn: [web]")),
                    &[objects("web", DEPLOYMENT), map("b", "1")],
                )),
                Says("\"reason\":\"Timeout\""),
                Has("map/b", k("1")),
                Phase("workflowFailed"),
            ],
        ),
        (
            "12 workflow: groups suspend, and go on after their time",
            vec![
                Up(flow(
                    "StepByStep",
                    &format!("{{name: g, type: step-group, subSteps: [{}, {{name: s, type: suspend, properties: {{duration: 1s}}}}]}}, {}", apply("a", ""), apply("b", "")),
                    &all(),
                )),
                Ready,
                Says("\"name\":\"s\",\"phase\":\"succeeded\""),
                Has("map/b", k("1")),
                Gone("map/c"),
            ],
        ),
        (
            "12 workflow: what one step gives another takes",
            vec![
                Up(format!(
                    "{{components: [{}, {}], workflow: {{steps: [{{name: a, type: apply-component, properties: {{component: a}}, outputs: [{{name: k, valueFrom: output.data.k}}]}}, {{name: b, type: apply-component, properties: {{component: b}}, inputs: [{{from: k, parameterKey: 'objects[0].data.k'}}]}}]}}}}",
                    map("a", "given"),
                    component("b", "b", "{l: '1'}")
                )),
                Ready,
                Has("map/b", "{data: {k: given, l: '1'}}".into()),
            ],
        ),
        (
            "12 workflow: components give and take as well, without a workflow",
            vec![
                Up("{components: [{name: b, type: k8s-objects, inputs: [{from: k, parameterKey: 'objects[0].data.k'}], properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}}, {name: a, type: k8s-objects, outputs: [{name: k, valueFrom: output.data.k}], properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: given}}]}}]}".into()),
                Ready,
                Has("map/b", k("given")),
            ],
        ),
        (
            "12 workflow: a restart runs it again, and the annotation goes",
            vec![
                Up(flow("StepByStep", "{name: s, type: suspend}", &all())),
                Phase("workflowSuspending"),
                EditStatus("app/app", "{status: {workflow: {suspend: false}}}".into()),
                Ready,
                Edit("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: 'true'}}}".into()),
                Phase("workflowSuspending"),
                Has("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: null}}}".into()),
            ],
        ),
        (
            "12 workflow: a terminated one ends its steps; what lives is kept (13.2)",
            vec![
                Up(flow("StepByStep", &format!("{}, {{name: s, type: suspend}}", apply("a", "")), &all())),
                Phase("workflowSuspending"),
                EditStatus("app/app", "{status: {workflow: {terminated: true, suspend: false}}}".into()),
                Phase("workflowTerminated"),
                Says("\"reason\":\"Terminate\""),
                Delete("map/a"),
                Has("map/a", k("1")),
            ],
        ),
        (
            "12 workflow: a user suspends a run that waits, and it says so at once",
            vec![
                Up(spec(&[objects("web", DEPLOYMENT)])),
                Says("wait healthy"),
                EditStatus("app/app", "{status: {workflow: {suspend: true}}}".into()),
                Phase("workflowSuspending"),
            ],
        ),
        (
            "12 e2e: a component waits for those it depends on, and fails with them",
            vec![
                Up(format!("{{components: [{}, {{name: b, dependsOn: [web], type: k8s-objects, properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: b}}}}]}}}}]}}", objects("web", DEPLOYMENT))),
                Says("wait healthy"),
                Gone("map/b"),
                EditStatus("deployment/web", "{status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}".into()),
                Has("map/b", "{kind: ConfigMap}".into()),
                Phase("running"),
            ],
        ),
        (
            "12 e2e: a failed step is tried again until what is wrong is mended by a new version",
            vec![
                Up(spec(&[bad(), map("b", "1")])),
                Says("Not_A_Name"),
                Has("map/b", k("1")),
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Trackers(&["v2"]),
            ],
        ),
        (
            "12 e2e multi: replication and inline policies make a component for each key",
            vec![
                Up(with(
                    &[map("a", "1")],
                    "workflow: {steps: [{name: d, type: deploy, properties: {inlinePolicies: [{type: override, properties: {components: [{name: a, properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: over}, data: {k: '2'}}]}}]}}]}}]}",
                )),
                Ready,
                Has("map/over", k("2")),
                Gone("map/a"),
            ],
        ),
        (
            "12 e2e multi: a step that deploys not on its own waits for a person",
            vec![
                Up(with(&[map("a", "1")], "workflow: {steps: [{name: d, type: deploy, properties: {auto: false}}]}")),
                Phase("workflowSuspending"),
                Gone("map/a"),
                EditStatus("app/app", "{status: {workflow: {suspend: false}}}".into()),
                Ready,
                Has("map/a", k("1")),
            ],
        ),
        (
            "12 e2e multi: a published version goes on without the Workflow it came from",
            vec![
                Publish("alpha", with(&[map("a", "1")], "workflow: {ref: gone}")),
                Says("workflow gone not found"),
            ],
        ),
    ]
}

async fn plain() -> Fixture {
    Fixture::with(Options { compression: Compression::None, ..Options::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_dispatch_and_state_keep() {
    play(&plain().await, "keep", dispatch_and_keep()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_garbage_collection() {
    play(&plain().await, "collect", collection()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_workflows() {
    play(&plain().await, "flow", workflows()).await;
}

/// The intervals that an application may ask for (section 12, "interval parsing table").
#[test]
fn section_12_intervals() {
    for (asked, seconds) in
        [("10s", 10), ("1m30s", 90), ("9s", 300), ("", 300), ("x", 300), ("-1m", 300), ("0.5h", 1800)]
    {
        let got = Controller::period(Some(asked), Options::default().resync).as_secs();
        assert_eq!(got, seconds, "{asked}");
    }
}
