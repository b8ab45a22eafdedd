//! A row for each fault that users of the original reported (section 11.1 of the functional digest), by number.

use crate::fixture::{Fixture, component, spec, with};
use crate::script::Step::{
    Create, Delete, Edit, EditStatus, Gone, Has, Phase, Publish, Ready, Says, Stays, Trackers, Up,
};
use crate::script::{Row, play};
use manager::application::Options;
use manager::application::compression::Compression;

fn map(name: &str, value: &str) -> String {
    component(name, name, &format!("{{k: '{value}'}}"))
}

fn k(value: &str) -> String {
    format!("{{data: {{k: '{value}'}}}}")
}

fn policy(kind: &str, properties: &str) -> String {
    format!("policies: [{{name: p, type: {kind}, properties: {properties}}}]")
}

fn scaled(strategy: &str, replicas: u8, image: &str) -> String {
    let object = format!(
        "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: web}}, spec: {{replicas: {replicas}, serviceName: x, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: c, image: {image}}}]}}}}}}}}"
    );
    let rule = format!("{{enable: true, rules: [{{selector: {{componentNames: [web]}}, strategy: {strategy}}}]}}");
    with(
        &[format!("{{name: web, type: k8s-objects, properties: {{objects: [{object}]}}}}")],
        &policy("apply-once", &rule),
    )
}

fn rows() -> Vec<Row> {
    // A version that is never through.
    let held = |name: &str| {
        let steps = format!(
            "workflow: {{steps: [{{name: {name}, type: apply-component, properties: {{component: {name}}}}}, {{name: s, type: suspend}}]}}"
        );
        with(&[map(name, "1")], &steps)
    };
    let two_maps = || spec(&[map("a", "1"), map("data", "1")]);
    vec![
        (
            "7278, 6746, 6221, 5256, 3245: edits there and back lose nothing",
            vec![
                Up(two_maps()),
                Ready,
                Edit("map/data", "{metadata: {annotations: {mine: kept}}}".into()),
                Up(held("a")),
                Up(two_maps()),
                Up(held("b")),
                Has("map/b", k("1")),
                Up(held("c")),
                Up(two_maps()),
                Ready,
                Gone("map/b"),
                Gone("map/c"),
                Has("map/data", "{data: {k: '1'}, metadata: {deletionTimestamp: null, annotations: {mine: kept}}}".into()),
                Has("map/a", k("1")),
            ],
        ),
        (
            "5389: revision and tracker are of one version",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Up(spec(&[map("a", "2")])),
                Ready,
                Has("tracker/v2", "{metadata: {labels: {app.oam.dev/appRevision: app-v2}}}".into()),
                Has("map/a", "{metadata: {labels: {app.oam.dev/appRevision: app-v2}}}".into()),
            ],
        ),
        (
            "6777: an entry moves to the tracker that its strategy says, and leaves the other",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Up(with(
                    &[map("a", "1")],
                    &policy("garbage-collect", "{rules: [{selector: {resourceNames: [a]}, strategy: onAppDelete}]}"),
                )),
                Ready,
                Trackers(&["", "v2"]),
                Has("tracker/v2", "{spec: {managedResources: []}}".into()),
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Up(spec(&[map("b", "1")])),
                Ready,
                Gone("map/a"),
            ],
        ),
        (
            "4286, 3347, 3083, 6493: what an application of the same name left is told",
            vec![
                Create(
                    "tracker/app-v1-reported-3",
                    "{spec: {type: versioned, applicationGeneration: 1}, metadata: {labels: {app.oam.dev/name: app, app.oam.dev/namespace: reported-3, app.oam.dev/uid: other}}}"
                        .into(),
                ),
                Up(spec(&[map("a", "1")])),
                Says("controlled by another application (uid: other)"),
                Phase("starting"),
                Delete("tracker/v1"),
                Ready,
            ],
        ),
        (
            "3667: a tracker whose objects are gone does not stay",
            vec![
                Up(spec(&[map("a", "1"), map("b", "1")])),
                Ready,
                Delete("map/a"),
                Up(spec(&[map("b", "1")])),
                Ready,
                Gone("map/a"),
                Trackers(&["v2"]),
            ],
        ),
        (
            "2902: a change of the workflow alone is a version, and takes away what no step brings any more",
            vec![
                Up(with(&[map("a", "1"), map("b", "1")], "workflow: {steps: [{name: a, type: apply-component, properties: {component: a}}, {name: b, type: apply-component, properties: {component: b}}]}")),
                Ready,
                Up(with(&[map("a", "1"), map("b", "1")], "workflow: {steps: [{name: a, type: apply-component, properties: {component: a}}]}")),
                Gone("map/b"),
                Ready,
            ],
        ),
        (
            "3017: an application that is deleted while its workflow runs leaves nothing",
            vec![
                Up(with(&[map("a", "1")], "workflow: {steps: [{name: a, type: apply-component, properties: {component: a}}, {name: s, type: suspend}]}")),
                Has("map/a", k("1")),
                Delete("app/app"),
                Gone("app/app"),
                Gone("map/a"),
                Trackers(&[]),
            ],
        ),
        (
            "4757: with `onStateKeep` a new version sets what drifted",
            vec![
                Up(scaled("{path: [spec.replicas], affect: onStateKeep}", 1, "one")),
                Has("statefulset/web", "{spec: {replicas: 1}}".into()),
                Edit("statefulset/web", "{spec: {replicas: 4}}".into()),
                Stays("statefulset/web"),
                Up(scaled("{path: [spec.replicas], affect: onStateKeep}", 2, "two")),
                Has("statefulset/web", "{spec: {replicas: 2}}".into()),
            ],
        ),
        (
            "5606, 5608, 3840, 2563: the field that a scaler sets is its own, in every version",
            vec![
                Up(scaled("{path: [spec.replicas]}", 1, "one")),
                Has("statefulset/web", "{spec: {replicas: 1}}".into()),
                Edit("statefulset/web", "{spec: {replicas: 4}}".into()),
                Stays("statefulset/web"),
                Up(scaled("{path: [spec.replicas]}", 1, "two")),
                Has("statefulset/web", "{metadata: {labels: {app.oam.dev/appRevision: app-v2}}, spec: {replicas: 4}}".into()),
            ],
        ),
        (
            "5370, 4320: a foreign object is neither recorded nor deleted",
            vec![
                Create("map/a", "{data: {theirs: '1'}}".into()),
                Up(spec(&[map("a", "1")])),
                Says("ConfigMap reported-9/a exists but not managed by any application now"),
                Has("tracker/v1", "{spec: {managedResources: []}}".into()),
                Delete("app/app"),
                Gone("app/app"),
                Has("map/a", "{data: {theirs: '1', k: null}}".into()),
            ],
        ),
        (
            "7164: a failure takes Ready away, and its end brings it back",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Up("{components: [{name: a, type: nothing}]}".into()),
                Says("component definition nothing not found"),
                Has("app/app", "{status: {status: rendering}}".into()),
                Up(spec(&[map("a", "1")])),
                Ready,
            ],
        ),
        (
            "13.2: a version that cannot be rendered leaves what lives, and it is kept",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Up("{components: [{name: a, type: nothing}]}".into()),
                Says("component definition nothing not found"),
                Delete("map/a"),
                Has("map/a", k("1")),
                Edit("map/a", k("2")),
                Has("map/a", k("1")),
            ],
        ),
        (
            "13.2: what an earlier version has is kept while a person is waited for",
            vec![
                Up(spec(&[map("a", "1")])),
                Ready,
                Up(with(&[map("b", "1")], "workflow: {steps: [{name: s, type: suspend}, {name: b, type: apply-component, properties: {component: b}}]}")),
                Phase("workflowSuspending"),
                Delete("map/a"),
                Has("map/a", k("1")),
                EditStatus("app/app", "{status: {workflow: {suspend: false}}}".into()),
                Ready,
                Gone("map/a"),
            ],
        ),
        (
            "13.3: an older version is set, and is what it was",
            vec![
                Publish("alpha", spec(&[map("a", "1")])),
                Ready,
                Publish("beta", spec(&[map("b", "1")])),
                Ready,
                Gone("map/a"),
                Trackers(&["alpha", "beta"]),
                Edit("app/app", "{metadata: {annotations: {app.oam.dev/publishVersion: alpha}}}".into()),
                Has("map/a", k("1")),
                Gone("map/b"),
                Has("app/app", "{status: {workflow: {appRevision: alpha}}}".into()),
                Delete("map/a"),
                Has("map/a", k("1")),
            ],
        ),
        (
            "13.10: an empty selector is an error that says so",
            vec![
                Up(with(&[map("a", "1")], &policy("take-over", "{rules: [{selector: {}}]}"))),
                Says("policy p: rules[0].selector: an empty selector matches nothing"),
            ],
        ),
        (
            "13.19: keys of Secrets that are no longer declared go",
            vec![
                Up(spec(&["{name: a, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: x, l: 'y'}}]}}".to_owned()])),
                Has("secret/a", "{data: {k: eA==, l: eQ==}}".into()),
                Up(spec(&["{name: a, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: z}}]}}".to_owned()])),
                Has("secret/a", "{data: {k: eg==, l: null}}".into()),
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_11_reported_faults() {
    let f = Fixture::with(Options { compression: Compression::None, ..Options::default() }).await;
    play(&f, "reported", rows()).await;
}
