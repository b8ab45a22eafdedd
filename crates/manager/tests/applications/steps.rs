//! Steps of workflows that need no definition, and what `deploy` takes from outside of an application.

use crate::fixture::Fixture;
use crate::script::Step::{As, Create, Delete, Edit, Gone, Has, Phase, Publish, Ready, Says, Up};
use crate::script::{Row, play};

fn map(name: &str, value: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: '{value}'}}}}")
}

fn objects(component: &str, object: &str) -> String {
    format!("{{name: {component}, type: k8s-objects, properties: {{objects: [{object}]}}}}")
}

fn k(value: &str) -> String {
    format!("{{data: {{k: '{value}'}}}}")
}

fn flow(components: &str, steps: &str) -> String {
    format!("{{components: [{components}], workflow: {{steps: [{steps}]}}}}")
}

/// An override that lets the component `one` have another ConfigMap.
fn overriding(value: &str) -> String {
    format!("{{type: override, properties: {{components: [{}]}}}}", objects("one", &map("m", value)))
}

const DEPLOY: &str = "{name: d, type: deploy, properties: {policies: [red]}}";

fn rows() -> Vec<Row> {
    vec![
        (
            "policies outside of the application are used by name, and followed",
            vec![
                Create("policies/red", overriding("red")),
                Up(flow(&objects("one", &map("m", "plain")), DEPLOY)),
                Has("map/m", k("red")),
                Ready,
                Has("revision/app-v1", "{spec: {policies: {steps-0/red: {type: override}}}}".into()),
                Edit("policies/red", overriding("blue")),
                Has("map/m", k("blue")),
                Ready,
                Delete("policies/red"),
                Says("policy red not found"),
                Has("map/m", k("blue")),
            ],
        ),
        (
            "12 e2e: a published version has its policy and its workflow although both are gone",
            vec![
                Create("policies/red", overriding("red")),
                Create("workflow/flow", format!("{{steps: [{DEPLOY}]}}")),
                Publish("a", format!("{{components: [{}], workflow: {{ref: flow}}}}", objects("one", &map("m", "plain")))),
                Has("map/m", k("red")),
                Ready,
                Delete("policies/red"),
                Delete("workflow/flow"),
                Edit("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: 'true'}}}".into()),
                Has("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: null}}}".into()),
                Ready,
                Delete("map/m"),
                Has("map/m", k("red")),
            ],
        ),
        (
            "an edit of the workflow outside is another revision, whose tracker has a name of its own",
            vec![
                Create("workflow/flow", "{steps: [{name: one, type: apply-component, properties: {component: one}}]}".into()),
                Up(format!(
                    "{{components: [{}, {}], workflow: {{ref: flow}}}}",
                    objects("one", &map("m", "1")),
                    objects("two", &map("o", "2"))
                )),
                Has("map/m", k("1")),
                Ready,
                Edit("workflow/flow", "{steps: [{name: two, type: apply-component, properties: {component: two}}]}".into()),
                Has("map/o", k("2")),
                Ready,
                Gone("map/m"),
                Has("tracker/v1.2", "{spec: {applicationGeneration: 1}}".into()),
                Gone("tracker/v1"),
            ],
        ),
        (
            "objects are brought, written out and read by steps, which take from each other",
            vec![
                Create("map/given", k("there")),
                Up(flow(
                    "",
                    "{name: r, type: read-object, properties: {apiVersion: v1, kind: ConfigMap, name: given}, outputs: [{name: k, valueFrom: output.value.data.k}]},
                     {name: c, type: export2config, inputs: [{from: k, parameterKey: data.k}], properties: {configName: out, data: {l: own}}},
                     {name: s, type: export2secret, inputs: [{from: k, parameterKey: data.k}], properties: {secretName: out, type: Opaque}},
                     {name: o, type: apply-object, inputs: [{from: k, parameterKey: value.data.k}], properties: {value: {apiVersion: v1, kind: ConfigMap, metadata: {name: object}}}}",
                )),
                Ready,
                Has("map/out", "{data: {k: there, l: own}, metadata: {labels: {app.oam.dev/component: c}}}".into()),
                Has("secret/out", "{type: Opaque, data: {k: dGhlcmU=}}".into()),
                Has("map/object", k("there")),
                Delete("map/object"),
                Has("map/object", k("there")),
                Delete("app/app"),
                Gone("secret/out"),
            ],
        ),
        (
            "what is to be read and is not there is tried again",
            vec![
                Up(flow("", "{name: r, type: read-object, properties: {apiVersion: v1, kind: ConfigMap, name: given}}")),
                Says("/given not found"),
                Create("map/given", k("there")),
                Ready,
            ],
        ),
        (
            "an application waits for another",
            vec![
                Up(flow(&objects("one", &map("m", "1")), "{name: w, type: depends-on-app, properties: {name: other}}, {name: one, type: apply-component, properties: {component: one}}")),
                Says("there is no Application steps-5/other yet"),
                Gone("map/m"),
                As("other"),
                Up(flow(&objects("one", &map("o", "1")), "{name: one, type: apply-component, properties: {component: one}}")),
                Ready,
                As("app"),
                Ready,
                Has("map/m", k("1")),
            ],
        ),
        (
            "a step that is not built in is refused before anything is brought, unless it has a definition",
            vec![
                Up(flow(&objects("one", &map("m", "1")), "{name: one, type: apply-component, properties: {component: one}}, {name: tell, type: notification}")),
                Phase("rendering"),
                Says("step tell: the step notification of KubeVela is not built in"),
                Gone("map/m"),
                Create("step/notification", format!("{{spec: {{schematic: {{template: {{output: {}}}}}}}}}", map("told", "1"))),
                Has("map/told", k("1")),
                Has("map/m", k("1")),
                Ready,
            ],
        ),
        (
            "deploy leaves Terraform out, unless it is told not to",
            vec![
                Create("component/tf", "{spec: {schematic: {terraform: {}}}}".into()),
                Up(flow(&format!("{}, {{name: cloud, type: tf}}", objects("one", &map("m", "1"))), "{name: d, type: deploy, properties: {parallelism: 1}}")),
                Has("map/m", k("1")),
                Ready,
                Up(flow(&format!("{}, {{name: cloud, type: tf}}", objects("one", &map("m", "2"))), "{name: d, type: deploy, properties: {ignoreTerraformComponent: false}}")),
                Has("map/m", k("2")),
                Says("Terraform is not supported"),
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_steps_and_what_is_outside_of_applications() {
    play(&Fixture::new().await, "steps", rows()).await;
}
