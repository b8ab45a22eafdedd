//! What the interface promises, on the store in memory and on the one on disk.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod suite;

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use store::{
    Clock, Embedded, Expect, ListOptions, ManualClock, OpenError, Options, Range, ReadError, Store, WatchError, Write,
    WriteError,
};
use suite::seen;

fn memory() -> Embedded {
    Embedded::in_memory(Options::default())
}

/// For the cases that hold for every backend.
async fn fresh() -> Option<(suite::Shared, ())> {
    Some((Arc::new(memory()), ()))
}

suite!(fresh);

async fn put(store: &Embedded, key: &str, value: &str) -> u64 {
    store.write(Write::put(key, Expect::Any, value.to_owned())).await.unwrap()
}

#[tokio::test]
async fn what_is_too_large_is_refused_alone() {
    let store = Embedded::in_memory(Options { max_value: 10, max_key: 10, ..Options::default() });
    let answers = store
        .write_all(vec![
            Write::put("b", Expect::Absent, "12345678901"),
            Write::put("a", Expect::Absent, "1"),
            Write::put("12345678901", Expect::Absent, "2"),
        ])
        .await;
    assert!(matches!(answers[0], Err(WriteError::TooLarge { what: "value", size: 11, limit: 10 })));
    assert_eq!(answers[1].as_ref().unwrap(), &2);
    assert!(matches!(answers[2], Err(WriteError::TooLarge { what: "key", .. })));
}

#[tokio::test]
async fn a_compacted_revision_cannot_be_read() {
    let store = memory();
    for value in ["1", "2", "3"] {
        put(&store, "a", value).await;
    }
    store.compact(4).await;
    let old = store.list(&Range::prefix("a"), ListOptions { at: Some(3), ..ListOptions::default() }).await;
    assert!(matches!(old, Err(ReadError::Compacted { requested: 3, oldest: 4 })));
}

#[tokio::test]
async fn a_watch_of_compacted_history_is_refused_and_a_slow_one_ended() {
    let store = memory();
    let mut slow = store.watch(&Range::prefix("a/"), 1).await.unwrap();
    let mut done = store.watch(&Range::prefix("a/"), 1).await.unwrap();
    let mut idle = store.watch(&Range::prefix("b/"), 1).await.unwrap();
    put(&store, "a/1", "1").await;
    put(&store, "a/1", "2").await;
    seen(&mut done, 2).await;
    store.compact(3).await;
    assert_eq!(store.compacted(), 3);
    let refused = store.watch(&Range::prefix("a/"), 2).await.unwrap_err();
    assert!(matches!(refused, WatchError::Compacted { requested: 2, oldest: 3 }));
    for _ in 0..2 {
        assert!(matches!(slow.next().await, Err(WatchError::Lagged { delivered: 1, oldest: 3 })));
    }
    put(&store, "a/1", "3").await;
    put(&store, "b/1", "1").await;
    assert_eq!(seen(&mut done, 1).await[0].0, 4, "who has read everything goes on");
    assert_eq!(seen(&mut idle, 1).await[0].0, 5);
    assert!(store.watch(&Range::prefix("a/"), 3).await.is_ok());
}

#[tokio::test]
async fn history_is_bounded_by_age_and_by_size() {
    let clock = Arc::new(ManualClock::new(UNIX_EPOCH + Duration::from_secs(1000)));
    let options = Options { history_bytes: 10_000, clock: clock.clone(), ..Options::default() };
    let store = Embedded::in_memory(options);
    put(&store, "a", "1").await;
    clock.advance(Duration::from_secs(200));
    put(&store, "a", "2").await;
    clock.advance(Duration::from_secs(101));
    store.tick().await;
    assert_eq!(store.compacted(), 2);
    for _ in 0..100 {
        put(&store, "a", &"x".repeat(1000)).await;
    }
    store.tick().await;
    let stats = store.stats();
    assert!(stats.history_bytes <= 10_000 && stats.history_events >= 7, "{stats:?}");
    assert_eq!(store.compacted(), store.revision() - stats.history_events);
}

#[tokio::test]
async fn keys_expire_as_deletes() {
    let clock = Arc::new(ManualClock::new(UNIX_EPOCH + Duration::from_secs(1000)));
    let store = Embedded::in_memory(Options { clock: clock.clone(), ..Options::default() });
    let soon = clock.now() + Duration::from_secs(10);
    for key in ["stays", "goes", "prolonged", "deleted"] {
        store.write(Write::put(key, Expect::Absent, key).expiring(soon)).await.unwrap();
    }
    let mut watch = store.watch(&Range::prefix(""), store.revision()).await.unwrap();
    put(&store, "stays", "for ever").await;
    store.write(Write::put("prolonged", Expect::Any, "x").expiring(soon + Duration::from_secs(10))).await.unwrap();
    store.write(Write::delete("deleted", Expect::Any)).await.unwrap();
    clock.advance(Duration::from_secs(9));
    store.tick().await;
    assert_eq!(store.count(&Range::prefix("")).await.unwrap(), 3);
    clock.advance(Duration::from_secs(1));
    store.tick().await;
    let events = seen(&mut watch, 4).await;
    assert_eq!((events[3].1.as_str(), &events[3].2, events[3].3.as_deref()), ("goes", &None, Some(&b"goes"[..])));
    clock.advance(Duration::from_secs(10));
    store.tick().await;
    assert_eq!(seen(&mut watch, 1).await[0].1, "prolonged");
    assert!(store.get("stays", None).await.unwrap().is_some());
}

#[tokio::test]
async fn everything_is_there_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Embedded::open(dir.path(), Options::default()).unwrap();
    let store = open();
    let later = std::time::SystemTime::now() + Duration::from_secs(1000);
    put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    store.write(Write::put("b", Expect::Any, "1").expiring(later)).await.unwrap();
    store.write(Write::delete("b", Expect::Any)).await.unwrap();
    let before = store.list(&Range::prefix(""), ListOptions::default()).await.unwrap();
    drop(store);
    for _ in 0..3 {
        let store = open();
        assert_eq!(store.list(&Range::prefix(""), ListOptions::default()).await.unwrap(), before);
        let mut watch = store.watch(&Range::prefix(""), 1).await.unwrap();
        let revisions: Vec<_> = seen(&mut watch, 4).await.into_iter().map(|event| event.0).collect();
        assert_eq!(revisions, [2, 3, 4, 5], "the history is there too");
        assert_eq!(&store.get("a", Some(2)).await.unwrap().unwrap().value[..], b"1");
        store.close().await;
    }
    let store = open();
    assert_eq!(put(&store, "c", "1").await, 6);
}

#[tokio::test]
async fn a_second_opening_is_refused_with_the_directory_and_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = Embedded::open(dir.path(), Options::default()).unwrap();
    let error = Embedded::open(dir.path(), Options::default()).unwrap_err();
    let expected = format!(
        "the data directory {} is in use by another process (process {})",
        dir.path().display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, OpenError::Locked { .. }));
    drop(store);
    Embedded::open(dir.path(), Options::default()).unwrap();
}

#[tokio::test]
async fn the_files_do_not_grow_without_bound() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { history_bytes: 1 << 20, ..Options::default() };
    let store = Embedded::open(dir.path(), options.clone()).unwrap();
    let value = Bytes::from(vec![b'x'; 100_000]);
    for round in 0..200 {
        let keys = (0..10).map(|key| Write::put(format!("{key}"), Expect::Any, value.clone())).collect();
        assert!(store.write_all(keys).await.iter().all(Result::is_ok), "{round}");
    }
    // 200 MB were written, 1 MB is live. The last snapshot may still be under way.
    store.close().await;
    let bytes: u64 = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 80 << 20, "{bytes}");
    let store = Embedded::open(dir.path(), options).unwrap();
    assert_eq!(store.revision(), 2001);
    assert_eq!(store.stats().keys, 10);
}

#[tokio::test]
async fn what_is_restored_keeps_its_versions() {
    let dir = tempfile::tempdir().unwrap();
    let source = memory();
    put(&source, "b", "1").await;
    put(&source, "a", "1").await;
    put(&source, "b", "2").await;
    let page = source.list(&Range::prefix(""), ListOptions::default()).await.unwrap();
    let soon = std::time::SystemTime::now() + Duration::from_secs(1000);
    let entries = page.entries.iter().map(|entry| (entry.clone(), Some(soon))).collect();
    Embedded::restore(dir.path(), 100, entries).unwrap();
    assert!(Embedded::restore(dir.path(), 100, Vec::new()).is_err(), "there is something already");
    for revision in [101, 102] {
        let store = Embedded::open(dir.path(), Options::default()).unwrap();
        let restored =
            store.list(&Range::prefix(""), ListOptions { limit: 2, ..ListOptions::default() }).await.unwrap();
        assert_eq!(restored.entries, page.entries);
        assert!(matches!(store.watch(&Range::prefix(""), 99).await, Err(WatchError::Compacted { oldest: 100, .. })));
        assert_eq!(put(&store, "c", "1").await, revision);
    }
}
