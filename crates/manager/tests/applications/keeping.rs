//! Rows of section 12 about who owns an object, what policies make of it, and what applications pass on to it.

use std::time::Duration;

use client::resources::CONFIG_MAPS;
use manager::application::compression::Compression;
use manager::application::{Options, kinds, names};

use crate::fixture::{Fixture, component, spec, with};
use crate::script::Step::{Annotated, As, Create, Delete, Edit, Gone, Has, Phase, Ready, Says, Stays, Trackers, Up};
use crate::script::{Row, play};

/// A component of one ConfigMap of the same name, with `k: v`.
fn map(name: &str, value: &str) -> String {
    component(name, name, &format!("{{k: '{value}'}}"))
}

fn objects(name: &str, objects: &str) -> String {
    format!("{{name: {name}, type: k8s-objects, properties: {{objects: [{objects}]}}}}")
}

fn policy(kind: &str, properties: &str) -> String {
    format!("policies: [{{name: p, type: {kind}, properties: {properties}}}]")
}

fn k(value: &str) -> String {
    format!("{{data: {{k: '{value}'}}}}")
}

/// A Service with these ports, whose session affinity `apply-once` leaves to others at a stage.
fn service(affect: &str, port: u16) -> String {
    let object = format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: web}}, spec: {{sessionAffinity: None, publishNotReadyAddresses: true, ports: [{{name: one, port: {port}}}]}}}}"
    );
    let rule = format!(
        "{{enable: true, rules: [{{selector: {{resourceNames: [web]}}, strategy: {{path: [spec.sessionAffinity], affect: {affect}}}}}]}}"
    );
    with(&[objects("web", &object)], &policy("apply-once", &rule))
}

const THEIRS: &str = "{spec: {sessionAffinity: ClientIP}}";
const OURS: &str = "{spec: {sessionAffinity: None}}";

fn rows() -> Vec<Row> {
    let shared = || policy("shared-resource", "{rules: [{selector: {resourceNames: [a]}}]}");
    vec![
        (
            "12 StateKeep: a shared object is kept as its owner says, whoever looks at it",
            vec![
                As("first"),
                Up(with(&[map("a", "1")], &shared())),
                Ready,
                As("second"),
                Up(with(&[map("a", "2")], &shared())),
                Ready,
                Edit("map/a", k("3")),
                Has("map/a", k("1")),
                Edit("app/second", "{metadata: {labels: {wake: up}}}".into()),
                Stays("map/a"),
            ],
        ),
        (
            "12 applicator: three-way merge of a custom kind: lists as a whole, what others add stays, what goes is removed",
            vec![
                Up(spec(&[objects("a", "{apiVersion: core.oam.dev/v1alpha1, kind: Policy, metadata: {name: a}, type: override, properties: {selector: [x, y], gone: 1}}")])),
                Ready,
                Edit("policies/a", "{properties: {theirs: 1}, metadata: {labels: {theirs: kept}}}".into()),
                Up(spec(&[objects("a", "{apiVersion: core.oam.dev/v1alpha1, kind: Policy, metadata: {name: a}, type: override, properties: {selector: [z]}}")])),
                Has("policies/a", "{properties: {selector: [z], theirs: 1, gone: null}, metadata: {labels: {theirs: kept}}}".into()),
                Edit("policies/a", "{properties: {selector: [x]}}".into()),
                Has("policies/a", "{properties: {selector: [z], theirs: 1}}".into()),
            ],
        ),
        (
            "12 apply-once: for updates alone, drift is put back and a new version keeps what lives",
            vec![
                Up(service("onUpdate", 80)),
                Has("service/web", OURS.into()),
                Edit("service/web", THEIRS.into()),
                Has("service/web", OURS.into()),
                Up(service("onUpdate", 81)),
                Has("service/web", "{spec: {sessionAffinity: None, ports: [{name: one, port: 81, protocol: TCP, targetPort: 81}]}}".into()),
            ],
        ),
        (
            "12 apply-once: for keeping alone, drift stays until a new version comes",
            vec![
                Up(service("onStateKeep", 80)),
                Has("service/web", OURS.into()),
                Edit("service/web", THEIRS.into()),
                Stays("service/web"),
                Up(service("onStateKeep", 81)),
                Has("service/web", OURS.into()),
            ],
        ),
        (
            "12 apply-once: always, drift stays in every version; what is declared beside it is kept",
            vec![
                Up(service("always", 80)),
                Has("service/web", OURS.into()),
                Edit("service/web", THEIRS.into()),
                Stays("service/web"),
                Edit("service/web", "{spec: {publishNotReadyAddresses: false}}".into()),
                Has("service/web", "{spec: {sessionAffinity: ClientIP, publishNotReadyAddresses: true, ports: [{name: one, port: 80, protocol: TCP, targetPort: 80}]}}".into()),
                Up(service("always", 81)),
                Has("service/web", "{spec: {sessionAffinity: ClientIP, ports: [{name: one, port: 81, protocol: TCP, targetPort: 81}]}}".into()),
            ],
        ),
        (
            "12 e2e: a trait may bring something that is in no namespace, which goes with the application",
            vec![
                Create(
                    "trait/role",
                    "{spec: {schematic: {template: {outputs: {role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: '{{ .context.name }}-of-trait'}, rules: []}}}}}}".into(),
                ),
                Up("{components: [{name: a, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}, traits: [{type: role}]}]}".into()),
                Has("clusterrole/a-of-trait", "{metadata: {namespace: null, labels: {trait.oam.dev/type: role, app.oam.dev/component: a}}}".into()),
                Ready,
                Delete("clusterrole/a-of-trait"),
                Has("clusterrole/a-of-trait", "{kind: ClusterRole}".into()),
                Up(spec(&[map("a", "1")])),
                Gone("clusterrole/a-of-trait"),
                Ready,
            ],
        ),
        (
            "12 e2e multi: thirty components come and go at once",
            vec![
                Up(spec(&(0..30).map(|number| map(&format!("many-{number}"), "1")).collect::<Vec<_>>())),
                Ready,
                Has("map/many-29", k("1")),
                Delete("app/app"),
                Gone("app/app"),
                Gone("map/many-0"),
                Gone("map/many-29"),
                Trackers(&[]),
            ],
        ),
        (
            "0: labels and annotations go on to objects, but those that a filter names",
            vec![
                Annotated("{team: red, hidden: 'yes', filter.oam.dev/annotation-keys: hidden}", spec(&[map("a", "1")])),
                Has("map/a", "{metadata: {annotations: {team: red, hidden: null, filter.oam.dev/annotation-keys: null}}}".into()),
                Ready,
                Edit("app/app", "{metadata: {labels: {tier: gold, secret: 'yes'}, annotations: {filter.oam.dev/label-keys: 'other, secret'}}}".into()),
                Up(spec(&[map("a", "2")])),
                Has("map/a", "{data: {k: '2'}, metadata: {labels: {tier: gold, secret: null}}}".into()),
            ],
        ),
        (
            "3.3: what is an addon is applied once, unless it says otherwise",
            vec![
                Create("app/app", format!("{{metadata: {{labels: {{addons.oam.dev/name: fluxcd}}}}, spec: {}}}", spec(&[map("a", "1")]))),
                Ready,
                Delete("map/a"),
                Stays("map/a"),
                Edit("app/app", format!("{{spec: {{{}}}}}", policy("apply-once", "{enable: false}"))),
                Has("map/a", k("1")),
            ],
        ),
        (
            "12 GC: in order of dependency, who takes what another gives goes before it",
            vec![
                Up(format!(
                    "{{components: [{{name: db, type: k8s-objects, outputs: [{{name: url, valueFrom: output.data.k}}], properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: db}}, data: {{k: '1'}}}}]}}}}, {{name: web, type: k8s-objects, inputs: [{{from: url, parameterKey: 'objects[0].data.url'}}], properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: web, finalizers: [x.io/held]}}}}]}}}}], {}}}",
                    policy("garbage-collect", "{order: dependency}")
                )),
                Has("map/web", "{data: {url: '1'}}".into()),
                Ready,
                Delete("app/app"),
                Says("Waiting for ConfigMap web"),
                Stays("map/db"),
                Edit("map/web", "{metadata: {finalizers: null}}".into()),
                Gone("map/db"),
                Gone("app/app"),
            ],
        ),
        (
            "13.9: apply-once without `enable` says nothing",
            vec![
                Up(with(&[map("a", "1")], &policy("apply-once", "{rules: [{selector: {resourceNames: [a]}, strategy: {path: ['*']}}]}"))),
                Ready,
                Edit("map/a", k("2")),
                Has("map/a", k("1")),
            ],
        ),
        (
            "1.2: phases and conditions say how far it has come",
            vec![
                Up(with(&[map("a", "1")], "workflow: {steps: [{name: s, type: suspend}, {name: a, type: apply-component, properties: {component: a}}]}")),
                Phase("workflowSuspending"),
                Says("\"type\":\"Parsed\""),
                Says("\"type\":\"Revision\""),
                Says("\"type\":\"Policy\""),
                Says("\"type\":\"Render\""),
                Says("\"mode\":\"StepByStep-DAG\""),
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_owners_and_policies() {
    play(&Fixture::with(Options { compression: Compression::None, ..Options::default() }).await, "kept", rows()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_object_that_is_deleted_comes_back_for_all_who_share_it() {
    let f = Fixture::new().await;
    let shared = policy("shared-resource", "{rules: [{selector: {resourceNames: [a]}}]}");
    for app in ["first", "second"] {
        f.apply(app, "{}", &with(&[map("a", "1")], &shared)).await;
        f.ready(app).await;
    }
    f.delete(&CONFIG_MAPS, "a").await;
    // Whoever is first owns it; the other one joins.
    f.until("both share it again", async |f: &Fixture| {
        let map = f.get(&CONFIG_MAPS, "a").await?;
        let sharers = map.annotation(names::SHARED_BY)?;
        ["default/first", "default/second"].iter().all(|app| sharers.contains(app)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_or_frozen_application_is_left_alone() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &spec(&[map("a", "1")])).await;
    f.ready("app").await;
    for (frozen, thawed) in [
        (
            "{metadata: {labels: {controller.core.oam.dev/pause: 'true'}}}",
            "{metadata: {labels: {controller.core.oam.dev/pause: null}}}",
        ),
        // That of another version of the controller.
        (
            "{metadata: {annotations: {app.oam.dev/controller-version-require: Disabled}}}",
            "{metadata: {annotations: {app.oam.dev/controller-version-require: null}}}",
        ),
    ] {
        f.edit(&kinds::APPLICATIONS, "app", frozen).await;
        // As soon as the controller knows of it, what others change stays.
        f.until("a change stays", async |f: &Fixture| {
            f.edit(&CONFIG_MAPS, "a", &k("2")).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            (f.data("a").await == r#"{"k":"2"}"#).then_some(())
        })
        .await;
        f.edit(&kinds::APPLICATIONS, "app", thawed).await;
        f.data_is("a", r#"{"k":"1"}"#).await;
    }
}

/// Issues 4392, 4395 and 5048: records of what is large are packed, so that they fit where objects are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_application_fits() {
    let f = Fixture::new().await;
    let lines = "the quick brown fox jumps over the lazy dog ".repeat(1500);
    let maps: Vec<String> = (0..16)
        .map(|number| component(&format!("c-{number}"), &format!("m-{number}"), &format!("{{k: '{lines}'}}")))
        .collect();
    f.apply("app", "{}", &spec(&maps)).await;
    f.ready("app").await;
    f.apply("app", "{}", &spec(&maps[..15])).await;
    f.gone(&CONFIG_MAPS, "m-15").await;
    f.ready("app").await;
    f.delete(&CONFIG_MAPS, "m-0").await;
    f.data_is("m-0", &format!(r#"{{"k":"{lines}"}}"#)).await;
}
