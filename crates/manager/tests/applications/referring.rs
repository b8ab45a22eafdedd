//! Components that refer to objects that live already, and what applications name that is not there.

use crate::fixture::Fixture;
use crate::script::Step::{Create, Delete, Edit, Gone, Has, Ready, Says, Up};
use crate::script::{Row, play};

/// An application of what is referred to, in another namespace.
fn referring(properties: &str) -> String {
    format!(
        "{{components: [{{name: r, type: ref-objects, properties: {properties}}}], policies: [{{name: t, type: topology, properties: {{namespace: default}}}}]}}"
    )
}

fn rows() -> Vec<Row> {
    vec![
        (
            "objects are named by their kind, or by their resource, and brought without what is particular to them",
            vec![
                Create("map/by-kind", "{data: {k: '1'}, metadata: {annotations: {mine: kept}}}".into()),
                Create("secret/by-resource", "{stringData: {k: x}, metadata: {labels: {a: b}}}".into()),
                Up(referring(
                    "{objects: [{apiVersion: v1, kind: ConfigMap, name: by-kind}, {resource: secret, labelSelector: {a: b}}]}",
                )),
                Ready,
                Says(
                    "\"appliedResources\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"by-kind\",\"namespace\":\"default\"},{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"by-resource\",\"namespace\":\"default\"}]",
                ),
                // A later change of the original is not followed.
                Edit("map/by-kind", "{data: {k: '2'}}".into()),
                Delete("app/app"),
                Gone("app/app"),
                Has("map/by-kind", "{data: {k: '2'}, metadata: {labels: {app.oam.dev/name: null}}}".into()),
            ],
        ),
        (
            "what cannot be referred to is told",
            vec![
                Up(referring("{objects: [{resource: nothings, name: x}]}")),
                Says("component r: the server serves no resource \\\"nothings\\\""),
                Up(referring("{objects: [{resource: deployments, group: apps, name: none}]}")),
                Says("component r: Deployment: deployments.apps \\\"none\\\" not found"),
                Up(referring("{urls: ['https://x.io/a.yaml']}")),
                Says("objects are not fetched from addresses"),
                Up(referring("{objects: [{resource: configmap, name: x, cluster: eu}]}")),
                Says("only objects of the cluster of the application can be referred to"),
            ],
        ),
        (
            "a policy that there is not is told, and waited for",
            vec![
                Up("{components: [], policies: [{name: p, type: garbage-colect}]}".into()),
                Says("policy p: policy definition garbage-colect not found, and no built-in policy has that name"),
                Create(
                    "policy/garbage-colect",
                    "{spec: {scope: Application, schematic: {template: {output: {labels: {a: b}}}}}}".into(),
                ),
                Ready,
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_applications_refer_to() {
    play(&Fixture::new().await, "refer", rows()).await;
}
