//! Applications that are written for the definitions of KubeVela's chart, as its documentation has them.

use crate::fixture::Fixture;
use crate::script::Step::{Create, EditStatus, Gone, Has, Phase, Ready, Says, Up};
use crate::script::{Row, play};
use manager::application::Options;
use manager::application::compression::Compression;

const HEALTHY: &str = "{status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}";

/// An application of one component.
fn of(kind: &str, properties: &str, traits: &str) -> String {
    format!("{{components: [{{name: web, type: {kind}, properties: {properties}, traits: [{traits}]}}]}}")
}

fn rows() -> Vec<Row> {
    vec![
        (
            "a webservice is a Deployment, with a Service for the ports that it exposes",
            vec![
                Up(of("webservice", "{image: nginx, ports: [{port: 80, expose: true}, {port: 53, protocol: UDP}], cpu: '0.5', labels: {tier: front}}", "")),
                Has("deployment/web", "{metadata: {labels: {workload.oam.dev/type: webservice}}, spec: {selector: {matchLabels: {app.oam.dev/component: web}}, template: {metadata: {labels: {tier: front, app.oam.dev/name: app, app.oam.dev/component: web}}}}}".into()),
                Has("service/web", "{metadata: {labels: {trait.oam.dev/type: AuxiliaryWorkload, trait.oam.dev/resource: webserviceExpose}}, spec: {type: ClusterIP, selector: {app.oam.dev/component: web}, ports: [{name: port-80, port: 80, targetPort: 80, protocol: TCP}]}}".into()),
                Says("Ready:0/1"),
                EditStatus("deployment/web", HEALTHY.into()),
                Phase("running"),
            ],
        ),
        (
            "a task is healthy when it is done, and says how far it is",
            vec![
                Up(of("task", "{image: perl, count: 2, cmd: [perl, -v]}", "")),
                Has("job/web", "{spec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never}}}}".into()),
                Says("Active/Failed/Succeeded:0/0/0"),
            ],
        ),
        (
            "a definition in the cluster takes the place of one that comes along, and one in CUE is told",
            vec![
                Create("component/webservice", "{spec: {schematic: {template: {output: {apiVersion: v1, kind: ConfigMap, data: {own: 'yes'}}}}}}".into()),
                Up(of("webservice", "{image: nginx}", "")),
                Has("map/web", "{data: {own: 'yes'}}".into()),
                Ready,
                Gone("deployment/web"),
                Create("component/worker", "{spec: {schematic: {cue: {template: 'output: {}'}}}}".into()),
                Up(of("worker", "{image: nginx}", "")),
                Says("without this definition, the one of that name that comes with Stanchion counts"),
            ],
        ),
        (
            "an override may bring components and traits that no component has itself",
            vec![
                Up("{components: [{name: web, type: webservice, properties: {image: nginx}}], policies: [{name: o, type: override, properties: {components: [{type: webservice, traits: [{type: scaler, properties: {replicas: 3}}]}, {name: job, type: task, properties: {image: perl}}]}}]}".into()),
                Has("deployment/web", "{spec: {replicas: 3}}".into()),
                Has("job/job", "{spec: {completions: 1}}".into()),
            ],
        ),
        (
            "objects without a name are called as their component, and steps know the application's name",
            vec![
                Up("{components: [{name: NAME, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: ConfigMap}]}}], workflow: {steps: [{name: a, type: apply-component, properties: {component: NAME}, outputs: [{name: app-name, valueFrom: context.name}]}, {name: b, type: export2config, if: 'inputs[\"app-name\"] == \"app\"', properties: {configName: told, data: {k: v}}}]}}".replace("NAME", "named")),
                Has("map/named", "{kind: ConfigMap}".into()),
                Has("map/told", "{data: {k: v}}".into()),
                Ready,
            ],
        ),
        (
            "what is wrong with properties is told",
            vec![Up(of("webservice", "{ports: [{port: x}]}", "")), Says("properties.image: Required value")],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_need_no_definitions_for_the_common_types() {
    play(&Fixture::with(Options { compression: Compression::None, ..Options::default() }).await, "library", rows())
        .await;
}
