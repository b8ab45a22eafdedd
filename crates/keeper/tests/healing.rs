//! What others change or delete comes back, told by the watches.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Fixture, Recorded, config_map, map, parent, run};
use jiff::{SignedDuration, Timestamp};
use keeper::{Desired, Extent, Keeper, Options, Parent, Policy};
use parking_lot::Mutex;
use tokio::time::timeout;

const OPEN: Policy =
    Policy { creation: keeper::Creation::Owner, protect: false, force: false, deletion: keeper::Deletion::Remove };

struct Healing {
    f: Fixture,
    parent: Parent,
    recorded: Recorded,
    watch: tokio::task::JoinHandle<()>,
    time: Arc<Mutex<Timestamp>>,
}

impl Drop for Healing {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Healing {
    /// A parent that declares these objects, and watches that are open.
    async fn new(desired: Vec<Desired>) -> Self {
        let mut f = Fixture::new().await;
        let time = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
        let clock = time.clone();
        f.keeper = Keeper::new(Options { clock: Arc::new(move || *clock.lock()), ..Options::default() });
        let watch = tokio::spawn({
            let (keeper, cluster) = (f.keeper.clone(), Arc::new(f.client.clone()));
            async move { keeper.watch(cluster).await }
        });
        let healing = Healing { f, parent: parent("p"), recorded: Recorded::default(), watch, time };
        healing.f.run(&healing.parent, &healing.recorded, desired.clone()).await;
        healing.until_watched(1).await;
        healing
    }

    async fn until_watched(&self, kinds: usize) {
        for _ in 0..12_000 {
            if self.f.keeper.watched() == kinds {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} kinds are watched, not {kinds}", self.f.keeper.watched());
    }

    /// Waits for drift, and repairs it.
    async fn repair(&self, desired: Vec<Desired>) -> keeper::Outcome {
        let drift = timeout(Duration::from_secs(60), self.f.keeper.drifted()).await.unwrap();
        assert_eq!(&*drift.parent, "p");
        run(&self.f.keeper, &self.f.client, &self.parent, &self.recorded, desired, Extent::Part).await.unwrap()
    }
}

fn declared() -> Vec<Desired> {
    vec![map("a", r#"{"k":"1"}"#, OPEN), map("b", r#"{"k":"1"}"#, OPEN)]
}

#[tokio::test]
async fn a_change_and_a_deletion_are_repaired_at_once() {
    let healing = Healing::new(declared()).await;
    let mut times = Vec::new();
    for patch in [r#"{"data":{"k":"2"}}"#, r#"{"metadata":{"labels":null}}"#] {
        healing.f.edit("a", patch).await;
        let begin = Instant::now();
        healing.repair(declared()).await;
        times.push(begin.elapsed());
        assert_eq!(healing.f.data("a").await, r#"{"k":"1"}"#);
        assert_eq!(healing.f.live("a").await.unwrap().label(keeper::tracking::CREATED_BY), Some("replications"));
    }
    healing.f.delete("b").await;
    healing.repair(declared()).await;
    assert_eq!(healing.f.data("b").await, r#"{"k":"1"}"#);
    assert!(times.iter().all(|time| *time < Duration::from_secs(2)), "{times:?}");
}

#[tokio::test]
async fn own_writes_and_others_objects_wake_nobody() {
    let healing = Healing::new(declared()).await;
    healing.f.foreign("other", r#"{"k":"1"}"#).await;
    healing.f.edit("other", r#"{"data":{"k":"2"}}"#).await;
    let changed = vec![map("a", r#"{"k":"3"}"#, OPEN), map("b", r#"{"k":"3"}"#, OPEN)];
    healing.f.run(&healing.parent, &healing.recorded, changed.clone()).await;
    assert!(timeout(Duration::from_millis(300), healing.f.keeper.drifted()).await.is_err());
    // And what nothing happened to needs no request.
    let outcome = healing.f.run(&healing.parent, &healing.recorded, changed).await;
    assert_eq!(outcome.writes, 0);
}

#[tokio::test]
async fn a_fight_is_reported_and_slowed_down() {
    // With somebody who edits, and with one who deletes, as the garbage collector does whose owner is not there.
    for deletes in [false, true] {
        let healing = Healing::new(declared()).await;
        let disturb = async |round: usize| match deletes {
            true => healing.f.delete("a").await,
            false => healing.f.edit("a", &format!(r#"{{"data":{{"k":"x{round}"}}}}"#)).await,
        };
        for round in 0..4 {
            disturb(round).await;
            let drift = timeout(Duration::from_secs(60), healing.f.keeper.drifted()).await.unwrap();
            assert_eq!(drift.objects.len(), 1);
            let (keeper, client) = (&healing.f.keeper, &healing.f.client);
            run(keeper, client, &healing.parent, &healing.recorded, declared(), Extent::Part).await.unwrap();
        }
        disturb(4).await;
        let mut outcome = healing.f.run(&healing.parent, &healing.recorded, declared()).await;
        for _ in 0..3000 {
            if !outcome.fought_over.is_empty() {
                break;
            }
            // The watch has not told of it yet.
            tokio::time::sleep(Duration::from_millis(10)).await;
            outcome = healing.f.run(&healing.parent, &healing.recorded, declared()).await;
        }
        assert_eq!((outcome.fought_over.len(), outcome.apply_failures), (1, 1));
        assert!(outcome.retry_after.unwrap() <= Duration::from_secs(300));
        assert_eq!(healing.recorded.state("a").2, "another actor changes this object back again and again");
        // When it is time, it is repaired, without anybody having to say so.
        *healing.time.lock() += SignedDuration::from_mins(20);
        healing.f.keeper.load(&parent("q"), &[]);
        healing.repair(declared()).await;
        assert_eq!(healing.f.data("a").await, r#"{"k":"1"}"#);
    }
}

#[tokio::test]
async fn a_kind_is_watched_from_its_first_object_to_its_last() {
    let healing = Healing::new(declared()).await;
    let mut secret = map("s", "{}", OPEN);
    secret.object = config_map("s", "{}");
    secret.object.set_at(&["kind"], "Secret".into());
    let mut both = declared();
    both.push(secret);
    healing.f.run(&healing.parent, &healing.recorded, both).await;
    healing.until_watched(2).await;
    healing.f.run(&healing.parent, &healing.recorded, declared()).await;
    healing.until_watched(1).await;
    healing.f.run(&healing.parent, &healing.recorded, vec![]).await;
    healing.until_watched(0).await;
}

#[tokio::test]
async fn what_several_have_in_an_object_comes_back_by_each_of_them_however_fast_the_first_is() {
    let merge = Policy { creation: keeper::Creation::Merge, ..OPEN };
    let of_first = || vec![map("a", r#"{"x":"1"}"#, OPEN)];
    let of_second = || vec![map("a", r#"{"y":"1"}"#, merge)];
    let healing = Healing::new(of_first()).await;
    let (f, second, recorded) = (&healing.f, parent("second"), Recorded::default());
    f.run(&second, &recorded, of_second()).await;
    assert_eq!(f.data("a").await, r#"{"x":"1","y":"1"}"#);
    f.delete("a").await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let drift = timeout(Duration::from_secs(5), f.keeper.drifted()).await.unwrap();
        told.push(drift.parent.to_string());
        // Both are told; the first makes it anew, and knows nothing of what is the second's.
        let (who, recorded, desired) = match told.len() {
            1 => (&healing.parent, &healing.recorded, of_first()),
            _ => (&second, &recorded, of_second()),
        };
        run(&f.keeper, &f.client, who, recorded, desired, Extent::Part).await.unwrap();
    }
    told.sort();
    assert_eq!(told, ["p", "second"]);
    assert_eq!(f.data("a").await, r#"{"x":"1","y":"1"}"#);
}
