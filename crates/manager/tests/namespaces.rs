//! Namespaces of tenants: who may make them, whose they are, and what is in them.

#![allow(clippy::unwrap_used)]

mod common;

use client::Client;
use common::{Fixture, PATIENCE, TR, tr};
use object::{Value, map};

const TENANT: &str = "capsule.clastix.io/tenant";

async fn make(who: &Client, name: &str, tenant: Option<&str>) -> client::Result<Value> {
    make_with(who, name, tenant, client::WriteParams::default()).await
}

/// What would be answered.
async fn try_out(who: &Client, name: &str, tenant: Option<&str>) -> client::Result<Value> {
    make_with(who, name, tenant, client::WriteParams { dry_run: true, ..client::WriteParams::default() }).await
}

async fn make_with(
    who: &Client,
    name: &str,
    tenant: Option<&str>,
    params: client::WriteParams,
) -> client::Result<Value> {
    let mut metadata = map! { "name" => name };
    if let Some(tenant) = tenant {
        metadata.insert("labels", map! { TENANT => tenant });
    }
    let namespace = map! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => metadata };
    who.api(&client::resources::NAMESPACES).create_with("", &namespace.into(), &params).await
}

fn owners(namespace: &Value) -> Vec<&str> {
    let all = namespace.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    all.iter().map(|o| o.str_at(&["name"]).unwrap()).collect()
}

#[tokio::test]
async fn namespaces_go_to_the_tenants_of_their_makers() {
    let f = Fixture::new().await;
    let owner = f.person("solar-owner").await;
    let mine = make(&owner, "mine", None).await.unwrap();
    assert_eq!((mine.label(TENANT), owners(&mine)), (Some("solar"), vec!["solar"]));
    let named = make(&owner, "named", Some("solar")).await.unwrap();
    assert_eq!(owners(&named), ["solar"]);
    for (tenant, why) in [("wind", "you are not an owner of tenant \"wind\""), ("none", "tenant \"none\" not found")] {
        let error = make(&owner, "other", Some(tenant)).await.unwrap_err();
        assert!(error.is_forbidden() && error.to_string().contains(why), "{error}");
    }
    // Somebody who owns nothing makes namespaces of nobody, but none for others.
    let mallory = f.person("mallory").await;
    assert_eq!(make(&mallory, "free", None).await.unwrap().label(TENANT), None);
    assert!(make(&mallory, "taken", Some("solar")).await.is_err());
    let api = mallory.api(&client::resources::NAMESPACES);
    for labels in [map! { TENANT => "solar" }, map! { TENANT => Value::Null }] {
        let name = if labels.get(TENANT) == Some(&Value::Null) { "mine" } else { "free" };
        let patch = client::Patch::Merge(map! { "metadata" => map! { "labels" => labels } }.into());
        let error = api.patch("", name, &patch, &client::PatchParams::default()).await.unwrap_err();
        assert!(error.to_string().contains("is changed by administrators only"), "{error}");
    }
    // Whoever writes a namespace as a whole leaves it where it belongs.
    let mut whole = mine.clone();
    whole.remove_at(&["metadata", "ownerReferences"]);
    whole.remove_at(&["metadata", "resourceVersion"]);
    let written = api.update(&whole).await.unwrap();
    assert_eq!(owners(&written), ["solar"]);
    // An administrator may do everything.
    let admin = f.client.acting_as("root", &["system:masters"]);
    assert_eq!(owners(&make(&admin, "given", Some("wind")).await.unwrap()), ["wind"]);
    // What joins a tenant, moves to another or leaves belongs to whom its label says.
    let api = admin.api(&client::resources::NAMESPACES);
    for (tenant, expected) in
        [(Value::from("solar"), vec!["solar"]), ("wind".into(), vec!["wind"]), (Value::Null, vec![])]
    {
        let patch = client::Patch::Merge(map! { "metadata" => map! { "labels" => map! { TENANT => tenant } } }.into());
        let written = api.patch("", "free", &patch, &client::PatchParams::default()).await.unwrap();
        assert_eq!(owners(&written), expected);
    }
}

#[tokio::test]
async fn owners_of_several_tenants_say_which_and_limits_hold() {
    let f = Fixture::new().await;
    for tenant in ["one", "two"] {
        f.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {{name: {tenant}}}, spec: {{namespaceOptions: {{quota: 1}}, owners: [{{kind: Group, name: both}}]}}}}")).await;
    }
    f.person("carol").await;
    let carol = f.client.acting_as("carol", &["both", "system:authenticated"]);
    let tenant = "capsule.clastix.io/v1beta2/Tenant";
    for name in ["one", "two"] {
        f.ready(tenant, "", name, "True", "").await;
    }
    // What admission knows may be a moment old.
    let refused = async |name: &str, wanted: Option<&str>, why: &str| {
        let mut said = String::new();
        for _ in 0..PATIENCE {
            said = try_out(&carol, name, wanted).await.map_or_else(|error| error.to_string(), |_| "made".to_owned());
            if said.contains(why) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("{name}: {said}");
    };
    refused("a", None, "you own several tenants").await;
    make(&carol, "a", Some("one")).await.unwrap();
    refused("b", Some("one"), "Cannot exceed Namespace quota").await;
    f.merge(tenant, "", "two", "spec: {cordoned: true}").await;
    refused("c", Some("two"), "tenant \"two\" is cordoned").await;
}

#[tokio::test]
async fn what_is_in_a_namespace_bears_its_tenant() {
    let f = Fixture::new().await;
    f.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: solar-a, labels: {projectcapsule.dev/tenant: wind}}}").await;
    f.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: default}}").await;
    f.apply(&tr("r", "resources:\n- rawItems:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}")).await;
    let made = f.there("solar-b", "made").await;
    let own = f.there("solar-a", "own").await;
    for label in [TENANT, "projectcapsule.dev/tenant", "capsule.clastix.io/managed-by"] {
        assert_eq!((own.label(label), made.label(label)), (Some("solar"), Some("solar")), "{label}");
    }
    assert_eq!(f.there("default", "own").await.label(TENANT), None);
    // A run that changes nothing still writes nothing.
    let parent = f.ready(TR, "solar-a", "r", "True", "").await;
    let version = |o: &Value| o.meta_str("resourceVersion").to_owned();
    f.merge(TR, "solar-a", "r", "metadata: {annotations: {reconcile.projectcapsule.dev/requestedAt: now}}").await;
    f.until(TR, "solar-a", "r", |o| {
        o.is_some_and(|o| o.annotation("reconcile.projectcapsule.dev/requestedAt").is_none())
    })
    .await;
    assert_eq!(version(&f.there("solar-b", "made").await), version(&made));
    assert_eq!(f.find(TR, "solar-a", "r").await.unwrap().get("status"), parent.get("status"));
}

#[tokio::test]
async fn a_new_namespace_gets_its_objects_and_nothing_else_is_looked_at() {
    let f = Fixture::new().await;
    f.apply(&tr("r", "resyncPeriod: 1h\nresources:\n- rawItems:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {ns: '{{namespace}}'}}")).await;
    f.there("solar-b", "made").await;
    let before = f.ready(TR, "solar-a", "r", "True", "").await;
    f.namespace("solar-c", "solar").await;
    f.there("solar-c", "made").await;
    let size = |o: &Value| o.at(&["status", "size"]).and_then(Value::as_int);
    let after = f.until(TR, "solar-a", "r", |o| o.is_some_and(|o| size(o) == Some(3))).await;
    assert_eq!(size(&before), Some(2));
    assert_eq!(after.at(&["status", "conditions"]), before.at(&["status", "conditions"]));
}
