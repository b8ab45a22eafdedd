//! Scenarios as lists of steps: what is done, and what is then to be seen.

use std::panic::AssertUnwindSafe;

use client::Resource;
use client::resources::{
    CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, JOBS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, SERVICES,
    STATEFUL_SETS,
};
use futures_util::FutureExt;
use manager::application::kinds;
use object::{Value, json};

use crate::fixture::Fixture;

/// One step. Objects are named as `KIND/NAME`; the application of a scenario is `app`.
pub enum Step {
    /// The application is declared with this specification.
    Up(String),
    /// It is, under a version.
    Publish(&'static str, String),
    /// It is, with annotations.
    Annotated(&'static str, String),
    /// A merge patch by somebody else.
    Edit(&'static str, String),
    /// A merge patch of the status.
    EditStatus(&'static str, String),
    Delete(&'static str),
    /// An object is made by somebody else.
    Create(&'static str, String),
    /// The object has these members; a null says that there is none.
    Has(&'static str, String),
    Gone(&'static str),
    /// The object stays as it is for a while.
    Stays(&'static str),
    /// The application is seen in this phase.
    Phase(&'static str),
    Ready,
    /// Something that the application's object says.
    Says(&'static str),
    /// The trackers, without `app-` and the namespace.
    Trackers(&'static [&'static str]),
    /// An application or object of another name in place of `app`.
    As(&'static str),
}

/// What a scenario is about, and its steps.
pub type Row = (&'static str, Vec<Step>);

/// Plays all scenarios side by side, each in a namespace of its own.
pub async fn play(f: &Fixture, prefix: &str, rows: Vec<Row>) {
    let played = rows.into_iter().enumerate().map(|(index, (what, steps))| async move {
        let place = f.place(&format!("{prefix}-{index}")).await;
        AssertUnwindSafe(scenario(&place, what, steps)).catch_unwind().await.map_err(|_| what)
    });
    let failed: Vec<&str> = futures_util::future::join_all(played).await.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn resource(object: &str) -> (Resource, &str) {
    let (kind, name) = object.split_once('/').unwrap();
    let resource = match kind {
        "map" => CONFIG_MAPS,
        "secret" => SECRETS,
        "deployment" => DEPLOYMENTS,
        "statefulset" => STATEFUL_SETS,
        "job" => JOBS,
        "service" => SERVICES,
        "clusterrole" => CLUSTER_ROLES,
        "app" => kinds::APPLICATIONS,
        "tracker" => kinds::TRACKERS,
        "revision" => kinds::REVISIONS,
        "component" => kinds::COMPONENT_DEFINITIONS,
        "trait" => kinds::TRAIT_DEFINITIONS,
        "policy" => kinds::POLICY_DEFINITIONS,
        "step" => kinds::WORKFLOW_STEP_DEFINITIONS,
        "defrev" => kinds::DEFINITION_REVISIONS,
        "policies" => kinds::POLICIES,
        "workflow" => kinds::WORKFLOWS,
        "account" => SERVICE_ACCOUNTS,
        "role" => ROLES,
        "binding" => ROLE_BINDINGS,
        other => panic!("no kind {other}"),
    };
    (resource, name)
}

/// Whether a value has all that another names.
fn has(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(members) => members.iter().all(|(key, wanted)| match value.get(key) {
            Some(value) => has(value, wanted),
            None => is_nothing(wanted),
        }),
        _ => value == wanted,
    }
}

fn is_nothing(wanted: &Value) -> bool {
    wanted.is_null() || wanted.as_object().is_some_and(|members| members.values().all(is_nothing))
}

async fn scenario(f: &Fixture, what: &str, steps: Vec<Step>) {
    let mut app = "app";
    for (number, step) in steps.into_iter().enumerate() {
        let title = format!("{what}, step {number}");
        match step {
            Step::As(name) => app = name,
            Step::Up(spec) => f.apply(app, "{}", &spec).await,
            Step::Publish(version, spec) => {
                f.apply(app, &format!("{{app.oam.dev/publishVersion: {version}}}"), &spec).await;
            }
            Step::Annotated(annotations, spec) => f.apply(app, annotations, &spec).await,
            Step::Edit(object, patch) => {
                let (resource, name) = resource(object);
                f.edit(&resource, &named(f, &resource, name), &patch).await;
            }
            Step::EditStatus(object, patch) => {
                let (resource, name) = resource(object);
                f.edit_part(&resource, name, &patch, "status").await;
            }
            Step::Delete(object) => {
                let (resource, name) = resource(object);
                f.delete(&resource, &named(f, &resource, name)).await;
            }
            Step::Create(object, text) => {
                let (resource, name) = resource(object);
                let mut object = Fixture::parse(&text.replace("NAMESPACE", &f.namespace));
                object.set_at(&["metadata", "name"], name.into());
                object.set_at(&["apiVersion"], resource.api_version().into());
                object.set_at(&["kind"], resource.kind.to_string().into());
                let namespace = if resource.namespaced { &f.namespace } else { "" };
                f.client.api(&resource).create(namespace, &object).await.unwrap();
            }
            Step::Has(object, wanted) => {
                let (resource, name) = resource(object);
                let (name, parsed) = (named(f, &resource, name), Fixture::parse(&wanted));
                let mut last = String::new();
                let begin = std::time::Instant::now();
                while begin.elapsed() < std::time::Duration::from_secs(12) {
                    let live = f.get(&resource, &name).await;
                    if live.as_ref().is_some_and(|live| has(live, &parsed)) {
                        last.clear();
                        break;
                    }
                    last = live.map_or_else(|| "nothing".to_owned(), |live| json::to_string(&live));
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                let app = f.get(&kinds::APPLICATIONS, app).await.unwrap_or_default();
                let status = app.get("status").map_or_else(String::new, json::to_string);
                assert!(last.is_empty(), "{title}: {object} has not {wanted}: {last}; application: {status}");
            }
            Step::Gone(object) => {
                let (resource, name) = resource(object);
                f.gone(&resource, &named(f, &resource, name)).await;
            }
            Step::Stays(object) => {
                let (resource, name) = resource(object);
                let before = f.get(&resource, name).await;
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                let version =
                    |object: Option<Value>| object.map(|object| object.meta_str("resourceVersion").to_owned());
                assert_eq!(version(f.get(&resource, name).await), version(before), "{title}");
            }
            Step::Phase(phase) => drop(f.phase(app, phase).await),
            Step::Ready => drop(f.ready(app).await),
            Step::Says(text) => {
                f.until(&format!("{title}: {app} says {text}"), async |f: &Fixture| {
                    json::to_string(&f.get(&kinds::APPLICATIONS, app).await?).contains(text).then_some(())
                })
                .await;
            }
            Step::Trackers(versions) => {
                let mut wanted: Vec<String> = versions.iter().map(|v| format!("app-{v}-{}", f.namespace)).collect();
                wanted.iter_mut().for_each(|name| *name = name.replace("app--", "app-"));
                wanted.sort();
                f.until(&format!("{title}: trackers are {wanted:?}"), async |f: &Fixture| {
                    (f.trackers().await == wanted).then_some(())
                })
                .await;
            }
        }
    }
}

/// Trackers are named by their version alone.
fn named(f: &Fixture, resource: &Resource, name: &str) -> String {
    if resource.kind == "ResourceTracker" {
        return if name.starts_with("app-") { name.to_owned() } else { format!("app-{name}-{}", f.namespace) };
    }
    name.replace("NS", &f.namespace)
}
