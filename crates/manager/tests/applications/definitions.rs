//! Versions of definitions: section 12's "autoUpdate enabled/disabled with version ranges", and what Applications that
//! name a version see.

use manager::application::Options;

use crate::fixture::Fixture;
use crate::script::Step::{Annotated, Create, Delete, Edit, Gone, Has, Phase, Ready, Says, Stays, Up};
use crate::script::{Row, play};

/// A definition whose ConfigMap holds `value`.
fn holding(kind: &str, value: &str, more: &str) -> String {
    let rendered = match kind {
        "trait" => format!("patch: {{data: {{trait: {value}}}}}"),
        _ => format!("output: {{apiVersion: v1, kind: ConfigMap, data: {{k: {value}}}}}"),
    };
    format!("{{spec: {{{more}schematic: {{template: {{{rendered}}}}}}}}}")
}

fn of(kind: &str, traits: &str) -> String {
    format!("{{components: [{{name: c, type: {kind}, traits: {traits}}}]}}")
}

fn latest(name: &str) -> String {
    format!("{{status: {{latestRevision: {{name: {name}}}}}}}")
}

fn k(value: &str) -> String {
    format!("{{data: {{k: {value}}}}}")
}

const AUTO: &str = "{app.oam.dev/autoUpdate: 'true'}";

fn rows() -> Vec<Row> {
    vec![
        (
            "each change of a definition is a revision, and applications have the one that they name",
            vec![
                Create("component/web", holding("component", "one", "")),
                Has("component/web", latest("web-v1")),
                Edit("component/web", holding("component", "two", "")),
                Has("component/web", latest("web-v2")),
                Has("defrev/web-v1", "{spec: {revision: 1, definitionType: Component, componentDefinition: {metadata: {name: web}}}}".into()),
                Up(of("web@v1", "[]")),
                Has("map/c", "{data: {k: one}, metadata: {labels: {workload.oam.dev/type: web}}}".into()),
                Ready,
                Up(of("web@v2", "[]")),
                Has("map/c", k("two")),
                Up(of("web", "[]")),
                Has("map/c", k("two")),
                Ready,
                // The description is no part of what it renders.
                Edit("component/web", "{metadata: {annotations: {definition.oam.dev/description: Web}}}".into()),
                Stays("defrev/web-v2"),
                Gone("defrev/web-v3"),
                Delete("component/web"),
            ],
        ),
        (
            "a version that is not there is waited for",
            vec![
                Create("component/web", holding("component", "one", "")),
                Has("component/web", latest("web-v1")),
                Up(of("web@v2", "[]")),
                Phase("rendering"),
                Says("component c: component definition web@v2 not found"),
                Edit("component/web", holding("component", "two", "")),
                Has("map/c", k("two")),
                Ready,
            ],
        ),
        (
            "a definition that comes after its application is waited for, without a try too many",
            vec![
                Up(of("web", "[{type: mark}]")),
                Says("component c: component definition web not found"),
                Create("component/web", holding("component", "one", "")),
                Says("component c: trait definition mark not found"),
                Create("trait/mark", holding("trait", "marked", "")),
                Has("map/c", "{data: {k: one, trait: marked}}".into()),
                Ready,
            ],
        ),
        (
            "definitions may name their version, and a version holds one thing only",
            vec![
                Create("component/web", holding("component", "one", "version: 1.0.0, ")),
                Has("component/web", latest("web-v1.0.0")),
                Edit("component/web", holding("component", "two", "")),
                Stays("defrev/web-v1.0.0"),
                Has("component/web", latest("web-v1.0.0")),
                Edit("component/web", holding("component", "two", "version: 1.2.0, ")),
                Has("component/web", latest("web-v1.2.0")),
                Up(of("web@1.0.0", "[]")),
                Has("map/c", k("one")),
                // The newest of a range.
                Up(of("web@1", "[]")),
                Has("map/c", k("two")),
                Up(of("web@v1.0", "[]")),
                Has("map/c", k("one")),
                Up(of("web@3", "[]")),
                Says("component definition web@3 not found"),
            ],
        ),
        (
            "12 e2e: autoUpdate follows the newest version of its range, and what does not say so stays",
            vec![
                Create("component/web", holding("component", "one", "version: 1.0.0, ")),
                Has("component/web", latest("web-v1.0.0")),
                Annotated(AUTO, of("web@1", "[]")),
                Has("map/c", k("one")),
                Ready,
                Edit("component/web", holding("component", "two", "version: 1.1.0, ")),
                Has("map/c", k("two")),
                Ready,
                Has("app/app", "{status: {latestRevision: {name: app-v2}}}".into()),
                Edit("component/web", holding("component", "three", "version: 2.0.0, ")),
                Has("component/web", latest("web-v2.0.0")),
                Stays("map/c"),
            ],
        ),
        (
            "12 e2e: without autoUpdate a definition changes nothing until the application changes",
            vec![
                Create("trait/mark", holding("trait", "one", "")),
                Has("trait/mark", latest("mark-v1")),
                Up("{components: [{name: c, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}, traits: [{type: mark}]}]}".into()),
                Has("map/c", "{data: {trait: one}}".into()),
                Ready,
                Edit("trait/mark", holding("trait", "two", "")),
                Has("trait/mark", latest("mark-v2")),
                Stays("map/c"),
                Edit("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: 'true'}}}".into()),
                Has("map/c", "{data: {trait: two}}".into()),
            ],
        ),
        (
            "autoUpdate and publishVersion exclude each other",
            vec![
                Annotated("{app.oam.dev/autoUpdate: 'true', app.oam.dev/publishVersion: a}", of("web", "[]")),
                Says("the annotations app.oam.dev/autoUpdate and app.oam.dev/publishVersion exclude each other"),
            ],
        ),
        (
            "steps and policies have versions, too",
            vec![
                Create("step/note", holding("component", "one", "")),
                Has("step/note", latest("note-v1")),
                Edit("step/note", holding("component", "two", "")),
                Has("step/note", latest("note-v2")),
                Create("policy/team", "{spec: {scope: Application, schematic: {template: {output: {labels: {team: red}}}}}}".into()),
                Has("policy/team", latest("team-v1")),
                Edit("policy/team", "{spec: {schematic: {template: {output: {labels: {team: blue}}}}}}".into()),
                Has("policy/team", latest("team-v2")),
                Up("{components: [], policies: [{name: p, type: team@v1}], workflow: {steps: [{name: noted, type: note@v1}]}}".into()),
                Has("map/noted", "{data: {k: one}, metadata: {labels: {team: red}}}".into()),
                Ready,
                Up("{components: [], policies: [{name: p, type: team@v9}], workflow: {steps: [{name: noted, type: note@v1}]}}".into()),
                Says("policy definition team@v9 not found"),
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_versions_of_definitions() {
    play(&Fixture::new().await, "versions", rows()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revisions_of_definitions_are_limited() {
    let f = Fixture::with(Options { definition_revision_limit: 1, ..Options::default() }).await;
    let mut steps = vec![
        Create("component/web", holding("component", "v1", "")),
        Has("component/web", latest("web-v1")),
        Up(of("web@v1", "[]")),
        Ready,
    ];
    for (value, name) in [("v2", "web-v2"), ("v3", "web-v3"), ("v4", "web-v4")] {
        steps.extend([Edit("component/web", holding("component", value, "")), Has("component/web", latest(name))]);
    }
    steps.extend([
        Gone("defrev/web-v2"),
        Has("defrev/web-v3", "{spec: {revision: 3}}".into()),
        Has("defrev/web-v1", "{spec: {revision: 1}}".into()),
        Has("map/c", k("v1")),
    ]);
    play(&f, "limited", vec![("what is named stays, and the oldest of the rest goes", steps)]).await;
}
