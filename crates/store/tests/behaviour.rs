//! What the interface promises, on the store in memory and on the one on disk.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use store::{
    Clock, Embedded, EventKind, Expect, ListOptions, ManualClock, OpenError, Options, Range, ReadError, Store, Watch,
    WatchError, Write, WriteError,
};

fn memory() -> Embedded {
    Embedded::in_memory(Options::default())
}

async fn put(store: &Embedded, key: &str, value: &str) -> u64 {
    store.write(Write::put(key, Expect::Any, value.to_owned())).await.unwrap()
}

async fn seen(watch: &mut Watch, count: usize) -> Vec<(u64, String, Option<Bytes>, Option<Bytes>)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let batch = tokio::time::timeout(Duration::from_secs(10), watch.next()).await.unwrap().unwrap();
        assert!(!batch.events.is_empty());
        for event in batch.events {
            seen.push((event.revision, event.key.to_string(), event.value.clone(), event.previous.clone()));
        }
    }
    seen
}

#[tokio::test]
async fn a_write_happens_only_if_the_key_is_as_expected() {
    let store = memory();
    assert_eq!(store.revision(), 1);
    assert_eq!(store.write(Write::put("a", Expect::Absent, "1")).await.unwrap(), 2);
    let conflict = store.write(Write::put("a", Expect::Absent, "2")).await.unwrap_err();
    let WriteError::Conflict { current: Some(current) } = conflict else { panic!("{conflict}") };
    assert_eq!((&current.value[..], current.mod_revision), (&b"1"[..], 2));
    assert!(matches!(
        store.write(Write::put("b", Expect::Revision(2), "2")).await,
        Err(WriteError::Conflict { current: None })
    ));
    assert!(matches!(store.write(Write::delete("b", Expect::Any)).await, Err(WriteError::Conflict { current: None })));
    assert!(matches!(store.write(Write::delete("a", Expect::Revision(1))).await, Err(WriteError::Conflict { .. })));
    assert_eq!(store.write(Write::put("a", Expect::Revision(2), "2")).await.unwrap(), 3);
    assert_eq!(store.write(Write::delete("a", Expect::Revision(3))).await.unwrap(), 4);
    assert_eq!(store.revision(), 4, "refused writes take no revision");
    assert_eq!(store.get("a", None).await.unwrap(), None);
    assert_eq!(store.get("a", Some(3)).await.unwrap().unwrap().version, 2);
}

#[tokio::test]
async fn writes_in_one_trip_stand_each_for_itself() {
    let store = Embedded::in_memory(Options { max_value: 10, max_key: 10, ..Options::default() });
    put(&store, "a", "1").await;
    let answers = store
        .write_all(vec![
            Write::delete("a", Expect::Revision(9)),
            Write::put("b", Expect::Absent, "12345678901"),
            Write::delete("a", Expect::Revision(2)),
            Write::put("a", Expect::Absent, "2"),
            Write::put("12345678901", Expect::Absent, "2"),
            Write::put("a", Expect::Absent, "3"),
        ])
        .await;
    assert!(matches!(answers[0], Err(WriteError::Conflict { current: Some(_) })));
    assert!(matches!(answers[1], Err(WriteError::TooLarge { what: "value", size: 11, limit: 10 })));
    assert_eq!((answers[2].as_ref().unwrap(), answers[3].as_ref().unwrap()), (&3, &4));
    assert!(matches!(answers[4], Err(WriteError::TooLarge { what: "key", .. })));
    assert!(matches!(&answers[5], Err(WriteError::Conflict { current: Some(own) }) if own.mod_revision == 4));
    assert_eq!(answers.len(), 6);
}

#[tokio::test]
async fn ten_thousand_deletes_are_one_trip() {
    let store = memory();
    let keys: Vec<String> = (0..10_000).map(|n| format!("pets/{n:05}")).collect();
    let puts = keys.iter().map(|key| Write::put(key.as_str(), Expect::Absent, "x")).collect();
    assert!(store.write_all(puts).await.iter().all(Result::is_ok));
    assert_eq!(store.count(&Range::prefix("pets/")).await.unwrap(), 10_000);
    let deletes = keys.iter().map(|key| Write::delete(key.as_str(), Expect::Any)).collect();
    assert!(store.write_all(deletes).await.iter().all(Result::is_ok));
    assert_eq!(store.count(&Range::prefix("")).await.unwrap(), 0);
    assert_eq!(store.revision(), 20_001);
}

#[tokio::test]
async fn a_list_at_a_revision_does_not_see_later_writes() {
    let store = memory();
    put(&store, "a/1", "x").await;
    let at = put(&store, "a/2", "x").await;
    put(&store, "a/3", "x").await;
    store.write(Write::delete("a/1", Expect::Any)).await.unwrap();
    let keys = |at| {
        let store = &store;
        async move {
            let page = store.list(&Range::prefix("a/"), ListOptions { at, ..ListOptions::default() }).await.unwrap();
            (page.entries.iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>(), page.revision)
        }
    };
    assert_eq!(keys(None).await, (vec!["a/2".into(), "a/3".into()], 5));
    assert_eq!(keys(Some(at)).await, (vec!["a/1".into(), "a/2".into()], 3));
    store.compact(4).await;
    let old = store.list(&Range::prefix("a/"), ListOptions { at: Some(3), ..ListOptions::default() }).await;
    assert!(matches!(old, Err(ReadError::Compacted { requested: 3, oldest: 4 })));
    assert!(matches!(store.get("a/1", Some(6)).await, Err(ReadError::Future { requested: 6, current: 5 })));
}

#[tokio::test]
async fn a_watch_sees_history_then_the_present() {
    let store = memory();
    put(&store, "a/1", "1").await; // 2
    put(&store, "b/1", "1").await; // 3
    put(&store, "a/1", "2").await; // 4
    let mut watch = store.watch(&Range::prefix("a/"), 2).await.unwrap();
    let mut from_start = store.watch(&Range::prefix("a/"), 1).await.unwrap();
    store.write(Write::delete("a/1", Expect::Any)).await.unwrap(); // 5
    let text = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    let events = seen(&mut watch, 2).await;
    assert_eq!(events[0], (4, "a/1".into(), text("2"), text("1")));
    assert_eq!(events[1], (5, "a/1".into(), None, text("2")));
    assert_eq!(seen(&mut from_start, 3).await[0], (2, "a/1".into(), text("1"), None));
}

#[tokio::test]
async fn watches_see_just_their_range() {
    let store = memory();
    let ranges = ["", "a", "a/", "a/b", "a/b/", "a/bc", "b"];
    let mut watches = Vec::new();
    for prefix in ranges {
        watches.push(store.watch(&Range::prefix(prefix), 1).await.unwrap());
    }
    let mut key = store.watch(&Range::key("a/b"), 1).await.unwrap();
    let keys = ["a", "a/b", "a/b/c", "a/bc", "b/a/b", "b"];
    for name in keys {
        put(&store, name, "x").await;
    }
    for (prefix, watch) in ranges.iter().zip(&mut watches) {
        let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).collect();
        let events = seen(watch, expected.len()).await;
        assert!(events.iter().map(|event| event.1.as_str()).eq(expected.into_iter().copied()), "{prefix}: {events:?}");
        assert!(tokio::time::timeout(Duration::from_millis(1), watch.next()).await.is_err());
        assert_eq!(watch.delivered(), 7, "{prefix}");
    }
    assert_eq!(seen(&mut key, 1).await[0].1, "a/b");
    assert_eq!(store.stats().watches, 8);
    drop((watches, key));
    assert_eq!(store.stats().watches, 0);
}

#[tokio::test]
async fn a_watch_says_how_far_it_is() {
    let store = memory();
    let mut watch = store.watch(&Range::prefix("a/"), 1).await.unwrap();
    assert_eq!(watch.delivered(), 1);
    put(&store, "b/1", "x").await;
    assert_eq!(watch.delivered(), 2, "nothing happened in the range");
    put(&store, "a/1", "x").await;
    put(&store, "b/1", "x").await;
    assert_eq!(watch.delivered(), 2, "there is an event not seen yet");
    seen(&mut watch, 1).await;
    assert_eq!(watch.delivered(), 4);
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
async fn one_can_wait_for_a_revision() {
    let store = Arc::new(memory());
    store.wait_for(1).await.unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wait_for(3).await }
    });
    let never = tokio::spawn({
        let store = store.clone();
        async move { store.wait_for(99).await }
    });
    put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    waiting.await.unwrap().unwrap();
    tokio::task::yield_now().await;
    store.close().await;
    assert!(matches!(never.await.unwrap(), Err(ReadError::Closed)));
}

#[tokio::test]
async fn closing_ends_watches_and_refuses_writes() {
    let store = memory();
    let mut watch = store.watch(&Range::prefix(""), 1).await.unwrap();
    put(&store, "a", "1").await;
    store.close().await;
    assert_eq!(watch.next().await.unwrap().events[0].kind(), EventKind::Put, "what is there is still given");
    assert!(matches!(watch.next().await, Err(WatchError::Closed)));
    assert!(matches!(store.write(Write::put("a", Expect::Any, "2")).await, Err(WriteError::Closed)));
    assert!(matches!(store.write_all(vec![Write::put("a", Expect::Any, "2")]).await[..], [Err(WriteError::Closed)]));
    assert!(matches!(store.watch(&Range::prefix(""), 1).await, Err(WatchError::Closed)));
    store.close().await;
}

#[tokio::test]
async fn a_watch_of_many_waiting_misses_nothing() {
    let store = Arc::new(memory());
    let mut tasks = Vec::new();
    for _ in 0..200 {
        let mut watch = store.watch(&Range::prefix("a/"), 1).await.unwrap();
        tasks.push(tokio::spawn(async move {
            seen(&mut watch, 500).await.into_iter().map(|event| event.0).collect::<Vec<_>>()
        }));
    }
    for n in 0..500 {
        put(&store, &format!("a/{}", n % 7), "x").await;
    }
    for task in tasks {
        assert!(task.await.unwrap().into_iter().eq(2..502));
    }
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
