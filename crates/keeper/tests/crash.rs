//! A crash at any request loses nothing and leaks nothing.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use client::{BoxFuture, Client, DeleteParams, Error, List, Patch, PatchParams, WriteParams};
use common::{Fixture, Recorded, map, parent, permit, run};
use keeper::{
    Answer, Cluster, Creation, Deleted, Deletion, Desired, Events, Extent, Identity, Item, Journal, Keeper, Kind,
    Parent, Policy, Scope,
};
use object::{Value, json};

/// A cluster and a journal that stop answering at the n-th request: before it is carried out, or after.
struct Crashing<'a> {
    client: &'a Client,
    recorded: &'a Recorded,
    left: AtomicUsize,
    carried_out: bool,
}

fn dead() -> Error {
    Error::Transport("the program is dead".into())
}

impl Crashing<'_> {
    async fn step<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(left) if left > 1 => request.await,
            Ok(1) if self.carried_out => {
                _ = request.await;
                Err(dead())
            }
            _ => Err(dead()),
        }
    }

    fn is_dead(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

impl Journal for Crashing<'_> {
    fn record<'a>(&'a self, items: &'a [Item]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.step(async {
            self.recorded.keep(items);
            Ok(())
        }))
    }
}

impl Cluster for Crashing<'_> {
    fn scope<'a>(&'a self, kind: &'a Kind) -> Answer<'a, Option<Scope>> {
        Box::pin(self.step(self.client.scope(kind)))
    }

    fn get<'a>(&'a self, id: &'a Identity) -> Answer<'a, Option<Value>> {
        Box::pin(self.step(Cluster::get(self.client, id)))
    }

    fn create<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        Box::pin(self.step(self.client.create(id, object, params)))
    }

    fn replace<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        Box::pin(self.step(self.client.replace(id, object, params)))
    }

    fn patch<'a>(&'a self, id: &'a Identity, patch: &'a Patch, params: &'a PatchParams) -> Answer<'a, Value> {
        Box::pin(self.step(self.client.patch(id, patch, params)))
    }

    fn delete<'a>(&'a self, id: &'a Identity, params: &'a DeleteParams) -> Answer<'a, Deleted> {
        Box::pin(self.step(self.client.delete(id, params)))
    }

    fn list_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, token: &'a str) -> Answer<'a, List> {
        self.client.list_metadata(kind, selector, token)
    }

    fn watch_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, version: &'a str) -> Answer<'a, Events> {
        self.client.watch_metadata(kind, selector, version)
    }
}

const OWNER: Policy = Policy { creation: Creation::Owner, protect: true, force: false, deletion: Deletion::Remove };
const MERGE: Policy = Policy { creation: Creation::Merge, ..OWNER };
const ORPHAN: Policy = Policy { creation: Creation::Merge, deletion: Deletion::Orphan, ..OWNER };

/// What the parent declares, one after the other. Between two there may be a crash.
fn declarations() -> Vec<Vec<Desired>> {
    vec![
        vec![
            map("made", r#"{"k":"1"}"#, OWNER),
            map("adopted", r#"{"k":"1"}"#, MERGE),
            map("left", r#"{"k":"1"}"#, ORPHAN),
            map("refused", r#"{"k":"1"}"#, OWNER),
        ],
        vec![map("made", r#"{"k":"2"}"#, OWNER), map("second", r#"{"k":"1"}"#, MERGE)],
        vec![],
    ]
}

/// Runs of a program that is started anew after each crash, until nothing is left to do.
async fn converge(f: &Fixture, recorded: &Recorded, desired: &[Desired]) {
    for _ in 0..4 {
        let keeper = Keeper::new(keeper::Options::default());
        keeper.load(&parent("p"), &recorded.items());
        let desired = desired.to_vec();
        let outcome = run(&keeper, &f.client, &parent("p"), recorded, desired, Extent::Whole).await.unwrap();
        if !outcome.is_changed && outcome.writes == 0 {
            return;
        }
    }
    panic!("does not converge: {}", json::to_string(&recorded.status.lock()));
}

/// Everything there is, without what differs from run to run.
async fn state(f: &Fixture) -> String {
    let listed = f.client.api(&client::resources::CONFIG_MAPS).list("default", &client::ListParams::default()).await;
    let mut lines = Vec::new();
    for object in listed.unwrap().items {
        if object.name() == "kube-root-ca.crt" {
            continue;
        }
        let labels = object.at(&["metadata", "labels"]).map_or_else(String::new, json::to_string);
        let fields = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
        let managers: Vec<String> = fields
            .iter()
            .map(|entry| format!("{:?} {:?}", entry.str_at(&["manager"]), entry.get("fieldsV1").map(json::to_string)))
            .collect();
        let data = object.get("data").map_or_else(String::new, json::to_string);
        lines.push(format!("{} {data} {labels} {managers:?}", object.name()));
    }
    lines.sort();
    lines.join("\n")
}

async fn prepared() -> Fixture {
    let f = Fixture::new().await;
    for name in ["adopted", "refused", "foreign"] {
        f.foreign(name, r#"{"theirs":"1"}"#).await;
    }
    f
}

#[tokio::test]
async fn whatever_request_is_the_last_the_next_program_comes_to_the_same_end() {
    // What an undisturbed program comes to.
    let mut expected = Vec::new();
    let undisturbed = (prepared().await, Recorded::default());
    for desired in declarations() {
        converge(&undisturbed.0, &undisturbed.1, &desired).await;
        expected.push((state(&undisturbed.0).await, items(&undisturbed.1)));
    }
    assert!(expected[2].0.contains("left") && !expected[2].0.contains("made") && expected[2].1.is_empty());

    let mut crashes = 0;
    for (step, expected) in expected.iter().enumerate() {
        for carried_out in [false, true] {
            for last in 1.. {
                let (f, recorded) = (prepared().await, Recorded::default());
                for desired in &declarations()[..step] {
                    converge(&f, &recorded, desired).await;
                }
                let crashing =
                    Crashing { client: &f.client, recorded: &recorded, left: AtomicUsize::new(last), carried_out };
                let keeper = Keeper::new(keeper::Options { width: 1, ..keeper::Options::default() });
                keeper.load(&parent("p"), &recorded.items());
                let desired = declarations().swap_remove(step);
                let this = keeper::Run {
                    parent: &parent("p"),
                    inventory: recorded.items(),
                    desired,
                    extent: Extent::Whole,
                    verify: false,
                };
                let outcome = keeper.reconcile(&crashing, this, &crashing).await;
                let was_disturbed = crashing.is_dead();
                if let Ok(outcome) = outcome {
                    // The last record is a request as well.
                    _ = crashing.record(&outcome.items).await;
                }
                crashes += 1;
                // From here on in either direction: the same declaration again, or the next one at once.
                let name = format!("declaration {step}, request {last}, carried out: {carried_out}");
                converge(&f, &recorded, &declarations()[step]).await;
                assert_eq!(state(&f).await, expected.0, "{name}");
                assert_eq!(items(&recorded), expected.1, "{name}");
                if !was_disturbed {
                    break;
                }
            }
        }
    }
    assert!(crashes > 40, "{crashes}");
}

#[tokio::test]
async fn what_a_crash_left_behind_is_cleaned_up_even_if_nothing_is_declared_any_more() {
    let nothing = {
        let f = prepared().await;
        state(&f).await
    };
    for carried_out in [false, true] {
        for last in 1.. {
            let (f, recorded) = (prepared().await, Recorded::default());
            let crashing =
                Crashing { client: &f.client, recorded: &recorded, left: AtomicUsize::new(last), carried_out };
            let desired = vec![map("made", r#"{"k":"1"}"#, OWNER), map("adopted", r#"{"k":"1"}"#, MERGE)];
            let keeper = Keeper::new(keeper::Options { width: 1, ..keeper::Options::default() });
            let this =
                keeper::Run { parent: &parent("p"), inventory: vec![], desired, extent: Extent::Whole, verify: false };
            _ = keeper.reconcile(&crashing, this, &crashing).await;
            converge(&f, &recorded, &[]).await;
            assert_eq!(state(&f).await, nothing, "request {last}, carried out: {carried_out}");
            if !crashing.is_dead() {
                break;
            }
        }
    }
}

/// A parent, what it declares and what it recorded.
struct Party {
    parent: Parent,
    wants: Vec<Desired>,
    recorded: Recorded,
}

impl Party {
    /// One run, and the record of its outcome.
    async fn run(&self, cluster: &dyn Cluster, keeper: &Keeper, journal: &dyn Journal) -> Result<(), Error> {
        let inventory = self.recorded.items();
        let desired = self.wants.clone();
        let run = keeper::Run { parent: &self.parent, inventory, desired, extent: Extent::Whole, verify: false };
        let outcome = keeper.reconcile(cluster, run, journal).await?;
        journal.record(&outcome.items).await
    }
}

/// A program that is started anew and knows what was recorded.
fn started(parties: [&Party; 2]) -> Keeper {
    let keeper = Keeper::new(keeper::Options { width: 1, ..keeper::Options::default() });
    parties.iter().for_each(|party| keeper.load(&party.parent, &party.recorded.items()));
    keeper
}

#[tokio::test]
async fn what_is_handed_over_is_the_heirs_whatever_request_is_the_last() {
    for (heir, knows, deletion) in [
        (parent("heir"), true, Deletion::Remove),
        (permit("heir"), true, Deletion::Remove),
        // The heir adopted the object when nobody told it whose it was.
        (parent("heir"), false, Deletion::Remove),
        (permit("heir"), false, Deletion::Remove),
        (permit("heir"), true, Deletion::Orphan),
    ] {
        for carried_out in [false, true] {
            for last in 1.. {
                let name = format!("{} {knows} {deletion:?}, request {last}, carried out: {carried_out}", heir.key);
                let f = Fixture::new().await;
                let made = map("a", r#"{"k":"1"}"#, Policy { deletion, ..OWNER });
                let shared = map("a", r#"{"h":"1"}"#, MERGE);
                let recorded = Recorded::default;
                let mut maker = Party { parent: parent("maker"), wants: vec![made], recorded: recorded() };
                let mut heir = Party { parent: heir.clone(), wants: vec![shared], recorded: recorded() };
                let keeper = started([&maker, &heir]);
                maker.run(&f.client, &keeper, &maker.recorded).await.unwrap();
                let other = Keeper::new(keeper::Options::default());
                heir.run(&f.client, if knows { &keeper } else { &other }, &heir.recorded).await.unwrap();
                // Somebody else writes at the very time of the making, and a controller its status.
                f.edit("a", r#"{"data":{"e":"1"}}"#).await;
                let uid = f.live("a").await.unwrap().meta_str("uid").to_owned();

                maker.wants.clear();
                let keeper = started([&maker, &heir]);
                let mut left = last;
                for party in [&maker, &heir, &maker] {
                    let (client, recorded) = (&f.client, &party.recorded);
                    let crashing = Crashing { client, recorded, left: AtomicUsize::new(left), carried_out };
                    _ = party.run(&crashing, &keeper, &crashing).await;
                    left = crashing.left.load(Ordering::SeqCst);
                }
                // The next program goes on.
                let keeper = started([&maker, &heir]);
                for party in [&maker, &heir, &maker] {
                    party.run(&f.client, &keeper, &party.recorded).await.unwrap();
                }
                assert_eq!(maker.recorded.items().len(), 0, "{name}");
                assert_eq!(f.live("a").await.unwrap().meta_str("uid"), uid, "{name}");
                // And one more ends it.
                heir.wants.clear();
                heir.run(&f.client, &started([&maker, &heir]), &heir.recorded).await.unwrap();
                let expected = if deletion == Deletion::Orphan { r#"{"e":"1","k":"1"}"# } else { "" };
                assert_eq!(f.data("a").await, expected, "{name}");
                if left > 0 {
                    break;
                }
            }
        }
    }
}

fn items(recorded: &Recorded) -> Vec<String> {
    let mut items = recorded.items();
    for item in &mut items {
        item.state.last_apply = item.state.last_apply.take().map(|_| "then".into());
    }
    items.iter().map(|item| json::to_string(&item.to_value())).collect()
}
