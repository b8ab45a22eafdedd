//! The life of an application, from its first version to its end.

use std::time::Duration;

use client::resources::{CONFIG_MAPS, DEPLOYMENTS};
use client::{Patch, PatchParams};
use manager::application::{kinds, names};
use object::json;

use crate::fixture::{Fixture, component, condition, spec, with};

#[tokio::test]
async fn an_application_lives() {
    let f = Fixture::new().await;
    let two = [component("one", "a", "{k: '1', l: '1'}"), component("two", "b", "{k: '1'}")];
    f.apply("app", "{}", &spec(&two)).await;
    let app = f.ready("app").await;
    assert_eq!(app.str_at(&["status", "status"]), Some("running"));
    assert_eq!(app.str_at(&["status", "latestRevision", "name"]), Some("app-v1"));
    assert_eq!(app.at(&["status", "appliedResources"]).unwrap().as_array().unwrap().len(), 2);
    assert_eq!(app.at(&["status", "services"]).unwrap().as_array().unwrap().len(), 2);
    let map = f.get(&CONFIG_MAPS, "a").await.unwrap();
    assert_eq!((map.label(names::APP_NAME), map.label(names::COMPONENT)), (Some("app"), Some("one")));
    assert_eq!(f.trackers().await, ["app-v1-default"]);
    // A key and a component less.
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '2'}")])).await;
    f.gone(&CONFIG_MAPS, "b").await;
    f.data_is("a", r#"{"k":"2"}"#).await;
    f.ready("app").await;
    f.until("the old tracker is gone", async |f: &Fixture| (f.trackers().await == ["app-v2-default"]).then_some(()))
        .await;
    f.delete(&kinds::APPLICATIONS, "app").await;
    f.gone(&kinds::APPLICATIONS, "app").await;
    assert_eq!((f.data("a").await, f.trackers().await), (String::new(), vec![]));
}

#[tokio::test]
async fn what_others_change_or_delete_comes_back_at_once_and_what_they_add_stays() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '1'}")])).await;
    f.ready("app").await;
    f.edit(&CONFIG_MAPS, "a", "{data: {k: '2', theirs: '1'}}").await;
    f.data_is("a", r#"{"k":"1","theirs":"1"}"#).await;
    f.delete(&CONFIG_MAPS, "a").await;
    f.data_is("a", r#"{"k":"1"}"#).await;
}

#[tokio::test]
async fn healing_needs_only_the_tracker() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '1'}")])).await;
    f.ready("app").await;
    // From now on it cannot be rendered.
    f.apply("app", "{}", "{components: [{name: one, type: nothing}]}").await;
    let app = f.phase("app", "rendering").await;
    assert!(json::to_string(&app).contains("component definition nothing not found"));
    f.delete(&CONFIG_MAPS, "a").await;
    // The version that is being replaced is still what lives; nothing of it is lost, nor collected.
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '1'}")])).await;
    f.data_is("a", r#"{"k":"1"}"#).await;
}

#[tokio::test]
async fn edits_there_and_back_lose_nothing() {
    let f = Fixture::new().await;
    let a = spec(&[component("one", "a", "{k: '1'}")]);
    // The second version is not through before the first is declared again.
    let steps = "workflow: {steps: [{name: one, type: apply-component, properties: {component: one}}, {name: s, type: suspend}]}";
    let b = with(&[component("one", "b", "{k: '1'}")], steps);
    f.apply("app", "{}", &a).await;
    f.ready("app").await;
    let uid = f.get(&CONFIG_MAPS, "a").await.unwrap().meta_str("uid").to_owned();
    f.apply("app", "{}", &b).await;
    f.apply("app", "{}", &a).await;
    let app = f.ready("app").await;
    assert_eq!(app.str_at(&["status", "latestRevision", "name"]), Some("app-v1"));
    f.gone(&CONFIG_MAPS, "b").await;
    assert_eq!(f.get(&CONFIG_MAPS, "a").await.unwrap().meta_str("uid"), uid);
}

#[tokio::test]
async fn a_foreign_object_is_refused_and_not_recorded_unless_it_is_taken_over() {
    let f = Fixture::new().await;
    let foreign = Fixture::parse("{metadata: {name: a}, data: {theirs: '1'}}");
    f.client.api(&CONFIG_MAPS).create("default", &foreign).await.unwrap();
    let declared = [component("one", "a", "{k: '1'}")];
    f.apply("app", "{}", &spec(&declared)).await;
    let message = "ConfigMap default/a exists but not managed by any application now";
    f.until("it is refused", async |f: &Fixture| {
        json::to_string(&f.get(&kinds::APPLICATIONS, "app").await?).contains(message).then_some(())
    })
    .await;
    f.delete(&kinds::APPLICATIONS, "app").await;
    f.gone(&kinds::APPLICATIONS, "app").await;
    assert_eq!(f.data("a").await, r#"{"theirs":"1"}"#);
    let policy = "policies: [{name: t, type: take-over, properties: {rules: [{selector: {resourceNames: [a]}}]}}]";
    f.apply("app", "{}", &with(&declared, policy)).await;
    f.ready("app").await;
    assert_eq!(f.data("a").await, r#"{"k":"1","theirs":"1"}"#);
}

#[tokio::test]
async fn objects_stay_where_a_policy_or_the_finalizer_says() {
    let f = Fixture::new().await;
    let policy = "policies: [{name: g, type: garbage-collect, properties: {rules: [{selector: {resourceNames: [a]}, strategy: never}, {selector: {resourceNames: [b]}, strategy: onAppDelete}, {selector: {resourceNames: [c]}, propagation: orphan}]}}]";
    let all: Vec<String> =
        ["a", "b", "c", "d"].iter().map(|name| component(&format!("of-{name}"), name, "{k: '1'}")).collect();
    f.apply("app", "{}", &with(&all, policy)).await;
    f.ready("app").await;
    f.apply("app", "{}", &with(&[component("of-e", "e", "{k: '1'}")], policy)).await;
    f.gone(&CONFIG_MAPS, "d").await;
    f.ready("app").await;
    for name in ["a", "b", "c", "e"] {
        assert_eq!(f.data(name).await, r#"{"k":"1"}"#, "{name}");
    }
    assert_eq!(f.get(&CONFIG_MAPS, "c").await.unwrap().label(names::APP_NAME), None);
    f.delete(&kinds::APPLICATIONS, "app").await;
    f.gone(&kinds::APPLICATIONS, "app").await;
    assert_eq!((f.data("b").await, f.data("e").await), (String::new(), String::new()));
    assert_eq!(f.get(&CONFIG_MAPS, "a").await.unwrap().label(names::APP_NAME), None);

    f.apply("app", "{}", &spec(&[component("one", "x", "{k: '1'}")])).await;
    f.ready("app").await;
    f.edit(
        &kinds::APPLICATIONS,
        "app",
        "{metadata: {finalizers: [app.oam.dev/resource-tracker-finalizer, app.oam.dev/orphan-resource]}}",
    )
    .await;
    f.delete(&kinds::APPLICATIONS, "app").await;
    f.gone(&kinds::APPLICATIONS, "app").await;
    assert_eq!(f.get(&CONFIG_MAPS, "x").await.unwrap().label(names::APP_NAME), None);
}

#[tokio::test]
async fn an_older_version_is_brought_back_from_its_tracker() {
    let f = Fixture::new().await;
    let version = |version: &str| format!("{{app.oam.dev/publishVersion: {version}}}");
    f.apply("app", &version("alpha"), &spec(&[component("one", "a", "{k: '1'}")])).await;
    f.ready("app").await;
    f.apply("app", &version("beta"), &spec(&[component("one", "b", "{k: '1'}")])).await;
    f.gone(&CONFIG_MAPS, "a").await;
    f.ready("app").await;
    let mut trackers = f.trackers().await;
    trackers.sort();
    assert_eq!(trackers, ["app-alpha-default", "app-beta-default"]);
    // Only the version is set; the specification is that of beta, and does not count.
    f.edit(&kinds::APPLICATIONS, "app", "{metadata: {annotations: {app.oam.dev/publishVersion: alpha}}}").await;
    f.data_is("a", r#"{"k":"1"}"#).await;
    f.gone(&CONFIG_MAPS, "b").await;
    f.until("alpha is what runs", async |f: &Fixture| {
        let app = f.get(&kinds::APPLICATIONS, "app").await?;
        (app.str_at(&["status", "workflow", "appRevision"]) == Some("alpha")).then_some(())
    })
    .await;
    // And forth again, and edits of a published version change nothing.
    f.edit(&kinds::APPLICATIONS, "app", "{metadata: {annotations: {app.oam.dev/publishVersion: beta}}}").await;
    f.data_is("b", r#"{"k":"1"}"#).await;
    f.gone(&CONFIG_MAPS, "a").await;
    f.apply("app", &version("beta"), &spec(&[component("one", "c", "{k: '1'}")])).await;
    f.ready("app").await;
    assert_eq!(f.data("c").await, "");
}

#[tokio::test]
async fn a_workflow_waits_for_health_and_for_people() {
    let f = Fixture::new().await;
    let deployment = "{name: web, type: k8s-objects, properties: {objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}]}}".to_owned();
    let workflow = "workflow: {steps: [{name: first, type: apply-component, properties: {component: web}}, {name: stop, type: suspend}, {name: second, type: apply-component, properties: {component: one}}]}";
    f.apply("app", "{}", &with(&[deployment, component("one", "a", "{k: '1'}")], workflow)).await;
    let app = f.phase("app", "runningWorkflow").await;
    assert!(json::to_string(&app).contains("wait healthy"));
    let status =
        "{status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1, availableReplicas: 1}}";
    let patch = Patch::Merge(Fixture::parse(status));
    f.client.api(&DEPLOYMENTS).patch("default", "web", &patch, &PatchParams::status()).await.unwrap();
    f.phase("app", "workflowSuspending").await;
    assert_eq!(f.data("a").await, "");
    // What is suspended is kept all the same.
    f.delete(&DEPLOYMENTS, "web").await;
    f.until("the deployment is back", async |f: &Fixture| f.get(&DEPLOYMENTS, "web").await).await;
    let resume = Patch::Merge(Fixture::parse("{status: {workflow: {suspend: false}}}"));
    f.client.api(&kinds::APPLICATIONS).patch("default", "app", &resume, &PatchParams::status()).await.unwrap();
    f.data_is("a", r#"{"k":"1"}"#).await;
    let app = f.phase("app", "unhealthy").await;
    assert_eq!(app.str_at(&["status", "workflow", "status"]), Some("succeeded"));
}

#[tokio::test]
async fn applications_share_an_object_and_hand_it_over() {
    let f = Fixture::new().await;
    let policy =
        "policies: [{name: s, type: shared-resource, properties: {rules: [{selector: {resourceNames: [a]}}]}}]";
    f.apply("first", "{}", &with(&[component("one", "a", "{k: '1'}")], policy)).await;
    f.ready("first").await;
    f.apply("second", "{}", &with(&[component("one", "a", "{k: '1'}")], policy)).await;
    f.ready("second").await;
    let map = f.get(&CONFIG_MAPS, "a").await.unwrap();
    assert_eq!(map.annotation(names::SHARED_BY), Some("default/first,default/second"));
    let uid = map.meta_str("uid").to_owned();
    f.delete(&kinds::APPLICATIONS, "first").await;
    f.gone(&kinds::APPLICATIONS, "first").await;
    let map = f.get(&CONFIG_MAPS, "a").await.unwrap();
    assert_eq!((map.label(names::APP_NAME), map.meta_str("uid")), (Some("second"), uid.as_str()));
    f.delete(&kinds::APPLICATIONS, "second").await;
    f.gone(&kinds::APPLICATIONS, "second").await;
    assert_eq!(f.data("a").await, "");
}

#[tokio::test]
async fn a_steady_application_writes_nothing() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '1'}")])).await;
    f.ready("app").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let versions = async |f: &Fixture| {
        let app = f.get(&kinds::APPLICATIONS, "app").await.unwrap().meta_str("resourceVersion").to_owned();
        let tracker = f.get(&kinds::TRACKERS, "app-v1-default").await.unwrap().meta_str("resourceVersion").to_owned();
        (app, tracker, f.get(&CONFIG_MAPS, "a").await.unwrap().meta_str("resourceVersion").to_owned())
    };
    let before = versions(&f).await;
    // A label of the application wakes it up.
    f.edit(&kinds::APPLICATIONS, "app", "{metadata: {labels: {filter: x}}}").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = versions(&f).await;
    assert_eq!((before.1, before.2), (after.1.clone(), after.2.clone()));
    // A new program finds all as it was.
    f.running.abort();
    let running = Fixture::start(&f.client);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(versions(&f).await.2, after.2);
    f.delete(&CONFIG_MAPS, "a").await;
    f.data_is("a", r#"{"k":"1"}"#).await;
    running.abort();
}

#[tokio::test]
async fn an_empty_selector_is_told() {
    let f = Fixture::new().await;
    let policy = "policies: [{name: g, type: garbage-collect, properties: {rules: [{selector: {}, strategy: never}]}}]";
    f.apply("app", "{}", &with(&[component("one", "a", "{k: '1'}")], policy)).await;
    let app = f.phase("app", "starting").await;
    assert!(condition(&app, "Ready").1.contains("an empty selector matches nothing"));
}

#[tokio::test]
async fn a_controller_that_dies_again_and_again_loses_and_leaks_nothing() {
    let mut f = Fixture::new().await;
    f.client.api(&CONFIG_MAPS).create("default", &Fixture::parse("{metadata: {name: foreign}}")).await.unwrap();
    for round in 0..12_u64 {
        let kept = component("kept", "kept", &format!("{{k: '{round}'}}"));
        let passing = component("passing", &format!("m{}", round % 3), "{k: '1'}");
        f.apply("app", "{}", &spec(&[kept, passing])).await;
        // Each time it gets a little further.
        tokio::time::sleep(Duration::from_millis(3 * round)).await;
        f.running.abort();
        f.running = Fixture::start(&f.client);
    }
    f.data_is("kept", r#"{"k":"11"}"#).await;
    f.ready("app").await;
    f.gone(&CONFIG_MAPS, "m0").await;
    f.gone(&CONFIG_MAPS, "m1").await;
    assert_eq!(f.data("m2").await, r#"{"k":"1"}"#);
    f.until("one tracker is left", async |f: &Fixture| (f.trackers().await.len() == 1).then_some(())).await;
    f.delete(&kinds::APPLICATIONS, "app").await;
    f.gone(&kinds::APPLICATIONS, "app").await;
    assert!(f.get(&CONFIG_MAPS, "foreign").await.is_some());
    assert_eq!((f.data("kept").await, f.data("m2").await, f.trackers().await.len()), (String::new(), String::new(), 0));
}
