//! Rows of section 12 about workflows: what `deploy` does with what components give each other, and when a run begins again.

use crate::fixture::{Fixture, condition, with};
use crate::script::Step::{Annotated, Edit, EditStatus, Gone, Has, Phase, Ready, Says, Up};
use crate::script::{Row, play};
use client::resources::CONFIG_MAPS;
use jiff::{SignedDuration, Timestamp};
use manager::application::kinds;
use object::Value;

fn map(name: &str, data: &str, more: &str) -> String {
    format!(
        "{{name: {name}, type: k8s-objects, properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {data}}}]}}{more}}}"
    )
}

const DEPLOYMENT: &str = "{name: web, type: k8s-objects, outputs: [{name: image, valueFrom: 'output.spec.template.spec.containers[0].image'}], properties: {objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: one}]}}}}]}}";
const HEALTHY: &str = "{status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}";
const HERE: &str = "policies: [{name: here, type: topology, properties: {clusters: [local]}}]";

fn rows() -> Vec<Row> {
    let taking = "inputs: [{from: image, parameterKey: 'objects[0].data.image'}]";
    vec![
        (
            "12 e2e: where a topology deploys, components wait for those they depend on",
            vec![
                Up(with(&[map("after", "{k: '1'}", ", dependsOn: [web]"), DEPLOYMENT.into()], HERE)),
                Says("after: wait dependents"),
                Gone("map/after"),
                EditStatus("deployment/web", HEALTHY.into()),
                Has("map/after", "{data: {k: '1'}}".into()),
                Phase("running"),
            ],
        ),
        (
            "12 workflow: where a topology deploys, components take what others give",
            vec![
                Up(with(&[map("after", "{k: '1'}", &format!(", {taking}")), DEPLOYMENT.into()], HERE)),
                Says("after: wait dependents"),
                Gone("map/after"),
                EditStatus("deployment/web", HEALTHY.into()),
                Has("map/after", "{data: {k: '1', image: one}}".into()),
                Phase("running"),
            ],
        ),
        (
            "12 workflow: a deployment takes what a step before it gave",
            vec![
                Up(format!(
                    "{{components: [{}], workflow: {{steps: [{{name: r, type: read-object, properties: {{apiVersion: v1, kind: Namespace, name: default}}, outputs: [{{name: image, valueFrom: output.value.metadata.name}}]}}, {{name: d, type: deploy}}]}}}}",
                    map("after", "{k: '1'}", &format!(", {taking}"))
                )),
                Has("map/after", "{data: {k: '1', image: default}}".into()),
                Ready,
            ],
        ),
        (
            "12 workflow: an interval between runs begins when the last is over, and is told",
            vec![
                Annotated("{app.oam.dev/restart-workflow: 1h}", with(&[map("a", "{k: '1'}", "")], "policies: []")),
                Ready,
                Says("workflowRestartScheduledAt"),
                Has("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: 1h}}}".into()),
                Edit("app/app", "{metadata: {annotations: {app.oam.dev/restart-workflow: null}}}".into()),
                Ready,
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_12_what_deploys_give_and_take() {
    play(&Fixture::new().await, "running", rows()).await;
}

/// When the run of the application began.
fn begun(app: &Value) -> Option<Timestamp> {
    app.str_at(&["status", "workflow", "startTime"])?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_begins_again_at_the_time_that_is_given() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &with(&[map("a", "{k: '1'}", "")], "policies: []")).await;
    f.ready("app").await;
    f.quiet().await;
    let time = Timestamp::now() + SignedDuration::from_millis(2500);
    let patch = format!("{{metadata: {{annotations: {{app.oam.dev/restart-workflow: '{time}'}}}}}}");
    f.edit(&kinds::APPLICATIONS, "app", &patch).await;
    f.until("the time is in the status, and only there", async |f: &Fixture| {
        let app = f.get(&kinds::APPLICATIONS, "app").await?;
        let is_noted = app.str_at(&["status", "workflowRestartScheduledAt"]).is_some();
        (is_noted && app.annotation("app.oam.dev/restart-workflow").is_none()).then_some(())
    })
    .await;
    let app = f
        .until("it runs again, not before its time", async |f: &Fixture| {
            let app = f.get(&kinds::APPLICATIONS, "app").await?;
            // Statuses hold whole seconds.
            let is_new = begun(&app).is_some_and(|begun| begun.as_second() >= time.as_second());
            (is_new
                && app.at(&["status", "workflowRestartScheduledAt"]).is_none()
                && condition(&app, "Ready").0 == "True")
                .then_some(app)
        })
        .await;
    assert_eq!(app.str_at(&["status", "latestRevision", "name"]), Some("app-v1"));
    assert!(f.get(&CONFIG_MAPS, "a").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_asked_for_is_done_once() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &with(&[map("a", "{k: '1'}", "")], "policies: []")).await;
    f.ready("app").await;
    f.quiet().await;
    let before = f.get(&kinds::APPLICATIONS, "app").await.as_ref().and_then(begun).unwrap();
    // Statuses hold whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    f.edit(&kinds::APPLICATIONS, "app", "{metadata: {annotations: {app.oam.dev/restart-workflow: 'true'}}}").await;
    let again = async |f: &Fixture| {
        let app = f.get(&kinds::APPLICATIONS, "app").await?;
        let is_told = app.at(&["status", "workflowRestartScheduledAt"]).is_none()
            && app.annotation("app.oam.dev/restart-workflow").is_none();
        begun(&app).filter(|begun| is_told && *begun > before && condition(&app, "Ready").0 == "True")
    };
    let first = f.until("it runs again, and nothing says that it is to", again).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    f.quiet().await;
    assert_eq!(again(&f).await, Some(first));
}
