//! What others do between the keeper's look at an object and its write.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use client::{BoxFuture, Client, DeleteParams, List, Patch, PatchParams, WriteParams};
use common::{Fixture, Recorded, map, parent, run};
use keeper::{
    Answer, Cluster, Condition, Creation, Deleted, Deletion, Desired, Events, Extent, Identity, Kind, Policy, Scope,
};
use object::Value;
use parking_lot::Mutex;

/// A cluster in which something happens right after the first look at an object.
struct Between<'a> {
    client: &'a Client,
    then: Mutex<Option<BoxFuture<'a, ()>>>,
}

impl Cluster for Between<'_> {
    fn scope<'a>(&'a self, kind: &'a Kind) -> Answer<'a, Option<Scope>> {
        self.client.scope(kind)
    }

    fn get<'a>(&'a self, id: &'a Identity) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            let live = Cluster::get(self.client, id).await;
            let then = self.then.lock().take();
            if let Some(then) = then {
                then.await;
            }
            live
        })
    }

    fn create<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        self.client.create(id, object, params)
    }

    fn replace<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        self.client.replace(id, object, params)
    }

    fn patch<'a>(&'a self, id: &'a Identity, patch: &'a Patch, params: &'a PatchParams) -> Answer<'a, Value> {
        self.client.patch(id, patch, params)
    }

    fn delete<'a>(&'a self, id: &'a Identity, params: &'a DeleteParams) -> Answer<'a, Deleted> {
        self.client.delete(id, params)
    }

    fn list_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, token: &'a str) -> Answer<'a, List> {
        self.client.list_metadata(kind, selector, token)
    }

    fn watch_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, version: &'a str) -> Answer<'a, Events> {
        self.client.watch_metadata(kind, selector, version)
    }
}

const OWNER: Policy = Policy { creation: Creation::Owner, protect: false, force: false, deletion: Deletion::Remove };
const MERGE: Policy = Policy { creation: Creation::Merge, ..OWNER };
const PROTECT: Policy = Policy { protect: true, ..OWNER };

fn always(answer: bool) -> Condition {
    Arc::new(move |_| Ok(answer))
}

fn wanted(data: &str, policy: Policy, condition: Option<Condition>) -> Vec<Desired> {
    vec![Desired { condition, ..map("a", data, policy) }]
}

#[tokio::test]
async fn what_others_make_meanwhile_is_theirs() {
    let made = |f: &Fixture| {
        let client = f.client.clone();
        let object = common::config_map("a", r#"{"theirs":"1"}"#);
        let make = async move {
            client
                .with_user_agent("somebody")
                .api(&client::resources::CONFIG_MAPS)
                .create("default", &object)
                .await
                .unwrap();
        };
        Box::pin(make) as BoxFuture<'static, ()>
    };
    for (policy, condition, extent, is_adopted) in [
        (OWNER, None, Extent::Whole, false),
        (OWNER, Some(always(true)), Extent::Whole, false),
        (OWNER, Some(always(true)), Extent::DryRun, false),
        (MERGE, None, Extent::Whole, true),
    ] {
        let f = Fixture::new().await;
        let (p, recorded) = (parent("p"), Recorded::default());
        let between = Between { client: &f.client, then: Mutex::new(Some(made(&f))) };
        let name = format!("{policy:?} {} {extent:?}", condition.is_some());
        let desired = wanted(r#"{"k":"1"}"#, policy, condition);
        let outcome = run(&f.keeper, &between, &p, &recorded, desired, extent).await.unwrap();
        let live = f.live("a").await.unwrap();
        if is_adopted {
            assert_eq!(
                (f.data("a").await.as_str(), recorded.state("a").0),
                (r#"{"k":"1","theirs":"1"}"#, false),
                "{name}"
            );
            continue;
        }
        assert_eq!(f.data("a").await, r#"{"theirs":"1"}"#, "{name}");
        assert_eq!(live.at(&["metadata", "labels"]), None, "{name}");
        if extent == Extent::Whole {
            assert_eq!((outcome.apply_failures, recorded.state("a").0), (1, false), "{name}");
            assert!(
                recorded.state("a").2.contains("exists and cannot be adopted"),
                "{name}: {}",
                recorded.state("a").2
            );
        }
        // Letting go of it touches nothing.
        f.run(&p, &recorded, vec![]).await;
        assert_eq!(f.live("a").await.unwrap().meta_str("resourceVersion"), live.meta_str("resourceVersion"), "{name}");
    }
}

#[tokio::test]
async fn what_a_condition_judged_is_written_only_as_it_was_judged() {
    for (condition, policy, why) in [
        (Some(always(true)), OWNER, "applying object failed: "),
        (Some(always(false)), PROTECT, "reconciling skipped target policy: "),
        (None, OWNER, ""),
    ] {
        let f = Fixture::new().await;
        let (p, recorded) = (parent("p"), Recorded::default());
        f.run(&p, &recorded, wanted(r#"{"k":"1"}"#, OWNER, None)).await;
        let edited = Box::pin(f.edit("a", r#"{"data":{"e":"1"}}"#));
        let between = Between { client: &f.client, then: Mutex::new(Some(edited)) };
        let desired = || wanted(r#"{"k":"2"}"#, policy, condition.clone());
        run(&f.keeper, &between, &p, &recorded, desired(), Extent::Whole).await.unwrap();
        let (_, ready, message) = recorded.state("a");
        assert!(ready == Some(why.is_empty()) && message.starts_with(why), "{why}: {message}");
        let content = if why.is_empty() { "2" } else { "1" };
        assert_eq!(f.data("a").await, format!(r#"{{"e":"1","k":"{content}"}}"#));
        // The next run judges anew.
        f.run(&p, &recorded, desired()).await;
        assert_eq!(recorded.state("a").1, Some(true), "{why}");
    }
}

#[tokio::test]
async fn what_was_rendered_from_an_older_object_is_not_applied() {
    let f = Fixture::new().await;
    let (p, recorded) = (parent("p"), Recorded::default());
    f.run(&p, &recorded, wanted(r#"{"k":"1"}"#, OWNER, None)).await;
    let version = f.live("a").await.unwrap().meta_str("resourceVersion").to_owned();
    let rendered = || {
        let mut desired = wanted(r#"{"k":"2"}"#, OWNER, Some(always(true)));
        desired[0].rendered_from = Some(version.as_str().into());
        desired
    };
    f.edit("a", r#"{"data":{"e":"1"}}"#).await;
    f.run(&p, &recorded, rendered()).await;
    assert_eq!(recorded.state("a").2, "the object changed since it was read for the template");
    assert_eq!(f.data("a").await, r#"{"e":"1","k":"1"}"#);
}
