//! What every backend promises. A case gets a store that nobody else writes to; revisions count from where it is.

#![allow(dead_code, reason = "a backend's tests may leave out what they test otherwise")]

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use store::{EventKind, Expect, ListOptions, Range, ReadError, Revision, Store, Watch, WatchError, Write, WriteError};

/// A test for each case, on stores that this function makes; without one the case is left out.
#[macro_export]
macro_rules! suite {
    ($fresh:path; $($case:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            if let Some((store, _keep)) = $fresh().await {
                suite::$case(store).await;
            }
        })*
    };
    ($fresh:path) => {
        suite!($fresh;
            a_write_happens_only_if_the_key_is_as_expected,
            writes_in_one_trip_stand_each_for_itself,
            many_writes_are_one_trip,
            a_list_at_a_revision_does_not_see_later_writes,
            a_list_comes_in_pages,
            a_watch_sees_history_then_the_present,
            watches_see_just_their_range,
            a_watch_says_how_far_it_is,
            one_can_wait_for_a_revision,
            closing_ends_watches_and_refuses_writes,
            a_watch_of_many_waiting_misses_nothing,
            a_watch_that_was_slow_gets_little_at_a_time,
            a_write_takes_place_whoever_waits_for_it,
        );
    };
}

pub type Shared = Arc<dyn Store>;

pub async fn put(store: &Shared, key: &str, value: &str) -> Revision {
    store.write(Write::put(key, Expect::Any, value.to_owned())).await.unwrap()
}

fn text(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

pub async fn seen(watch: &mut Watch, count: usize) -> Vec<(Revision, String, Option<Bytes>, Option<Bytes>)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let batch = tokio::time::timeout(Duration::from_secs(10), watch.next()).await.unwrap().unwrap();
        assert!(!batch.events.is_empty());
        for event in batch.events.iter() {
            seen.push((event.revision, event.key.to_string(), event.value.clone(), event.previous.clone()));
        }
    }
    seen
}

pub async fn a_write_happens_only_if_the_key_is_as_expected(store: Shared) {
    let base = store.revision();
    assert_eq!(store.write(Write::put("a", Expect::Absent, "1")).await.unwrap(), base + 1);
    let conflict = store.write(Write::put("a", Expect::Absent, "2")).await.unwrap_err();
    let WriteError::Conflict { current: Some(current) } = conflict else { panic!("{conflict}") };
    assert_eq!((&current.value[..], current.mod_revision, current.version), (&b"1"[..], base + 1, 1));
    let of_nothing = store.write(Write::put("b", Expect::Revision(base + 1), "2")).await;
    assert!(matches!(of_nothing, Err(WriteError::Conflict { current: None })));
    for expect in [Expect::Any, Expect::Absent] {
        let of_nothing = store.write(Write::delete("b", expect)).await;
        assert!(matches!(of_nothing, Err(WriteError::Conflict { current: None })));
    }
    assert!(matches!(
        store.write(Write::delete("a", Expect::Revision(base))).await,
        Err(WriteError::Conflict { current: Some(_) })
    ));
    assert_eq!(store.write(Write::put("a", Expect::Revision(base + 1), "2")).await.unwrap(), base + 2);
    assert_eq!(store.write(Write::delete("a", Expect::Revision(base + 2))).await.unwrap(), base + 3);
    assert_eq!(store.revision(), base + 3, "refused writes take no revision");
    assert_eq!(store.get("a", None).await.unwrap(), None);
    let before = store.get("a", Some(base + 2)).await.unwrap().unwrap();
    assert_eq!((before.version, before.create_revision), (2, base + 1));
}

pub async fn writes_in_one_trip_stand_each_for_itself(store: Shared) {
    let base = put(&store, "a", "1").await;
    let answers = store
        .write_all(vec![
            Write::delete("a", Expect::Revision(base + 9)),
            Write::delete("a", Expect::Revision(base)),
            Write::put("a", Expect::Absent, "2"),
            Write::put("a", Expect::Absent, "3"),
        ])
        .await;
    assert!(matches!(answers[0], Err(WriteError::Conflict { current: Some(_) })));
    assert_eq!((answers[1].as_ref().unwrap(), answers[2].as_ref().unwrap()), (&(base + 1), &(base + 2)));
    assert!(matches!(&answers[3], Err(WriteError::Conflict { current: Some(own) }) if own.mod_revision == base + 2));
    assert_eq!(answers.len(), 4);
}

pub async fn many_writes_are_one_trip(store: Shared) {
    let base = store.revision();
    let keys: Vec<String> = (0..2_000).map(|n| format!("pets/{n:05}")).collect();
    let puts = keys.iter().map(|key| Write::put(key.as_str(), Expect::Absent, "x")).collect();
    assert!(store.write_all(puts).await.iter().all(Result::is_ok));
    assert_eq!(store.count(&Range::prefix("pets/")).await.unwrap(), 2_000);
    let deletes = keys.iter().map(|key| Write::delete(key.as_str(), Expect::Any)).collect();
    assert!(store.write_all(deletes).await.iter().all(Result::is_ok));
    assert_eq!(store.count(&Range::prefix("")).await.unwrap(), 0);
    assert_eq!(store.revision(), base + 4_000);
}

pub async fn a_list_at_a_revision_does_not_see_later_writes(store: Shared) {
    let base = store.revision();
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
    assert_eq!(keys(None).await, (vec!["a/2".into(), "a/3".into()], base + 4));
    assert_eq!(keys(Some(at)).await, (vec!["a/1".into(), "a/2".into()], base + 2));
    let later = store.get("a/1", Some(base + 5)).await;
    assert!(matches!(later, Err(ReadError::Future { requested, current }) if requested == current + 1));
}

pub async fn a_list_comes_in_pages(store: Shared) {
    for n in 0..10 {
        put(&store, &format!("a/{n}"), "x").await;
    }
    put(&store, "b", "x").await;
    let mut options = ListOptions { limit: 4, ..ListOptions::default() };
    let mut keys = Vec::new();
    for remaining in [6, 2, 0] {
        let page = store.list(&Range::prefix("a/"), options.clone()).await.unwrap();
        assert_eq!(page.remaining, remaining);
        keys.extend(page.entries.iter().map(|entry| entry.key.clone()));
        options = ListOptions { after: keys.last().cloned(), at: Some(page.revision), ..options };
        // What comes meanwhile is not in the next page.
        put(&store, &format!("a/{remaining}x"), "x").await;
    }
    assert_eq!(keys.len(), 10);
}

pub async fn a_watch_sees_history_then_the_present(store: Shared) {
    let base = store.revision();
    put(&store, "a/1", "1").await;
    put(&store, "b/1", "1").await;
    put(&store, "a/1", "2").await;
    let mut watch = store.watch(&Range::prefix("a/"), base + 1).await.unwrap();
    let mut from_start = store.watch(&Range::prefix("a/"), base).await.unwrap();
    store.write(Write::delete("a/1", Expect::Any)).await.unwrap();
    let events = seen(&mut watch, 2).await;
    assert_eq!(events[0], (base + 3, "a/1".into(), text("2"), text("1")));
    assert_eq!(events[1], (base + 4, "a/1".into(), None, text("2")));
    assert_eq!(seen(&mut from_start, 3).await[0], (base + 1, "a/1".into(), text("1"), None));
}

pub async fn watches_see_just_their_range(store: Shared) {
    let base = store.revision();
    let ranges = ["", "a", "a/", "a/b", "a/b/", "a/bc", "b"];
    let mut watches = Vec::new();
    for prefix in ranges {
        watches.push(store.watch(&Range::prefix(prefix), base).await.unwrap());
    }
    let mut key = store.watch(&Range::key("a/b"), base).await.unwrap();
    let keys = ["a", "a/b", "a/b/c", "a/bc", "b/a/b", "b"];
    for name in keys {
        put(&store, name, "x").await;
    }
    for (prefix, watch) in ranges.iter().zip(&mut watches) {
        let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).collect();
        let events = seen(watch, expected.len()).await;
        assert!(events.iter().map(|event| event.1.as_str()).eq(expected.into_iter().copied()), "{prefix}: {events:?}");
        assert!(tokio::time::timeout(Duration::from_millis(1), watch.next()).await.is_err());
        assert_eq!(watch.delivered(), base + 6, "{prefix}");
    }
    assert_eq!(seen(&mut key, 1).await[0].1, "a/b");
    assert_eq!(store.stats().watches, 8);
    drop((watches, key));
    assert_eq!(store.stats().watches, 0);
}

pub async fn a_watch_says_how_far_it_is(store: Shared) {
    let base = store.revision();
    let mut watch = store.watch(&Range::prefix("a/"), base).await.unwrap();
    assert_eq!(watch.delivered(), base);
    put(&store, "b/1", "x").await;
    assert_eq!(watch.delivered(), base + 1, "nothing happened in the range");
    put(&store, "a/1", "x").await;
    put(&store, "b/1", "x").await;
    assert_eq!(watch.delivered(), base + 1, "there is an event not seen yet");
    seen(&mut watch, 1).await;
    assert_eq!(watch.delivered(), base + 3);
}

pub async fn one_can_wait_for_a_revision(store: Shared) {
    let base = store.revision();
    store.wait_for(base).await.unwrap();
    let wait = |revision| {
        let store = store.clone();
        tokio::spawn(async move { store.wait_for(revision).await })
    };
    let (waiting, never) = (wait(base + 2), wait(base + 99));
    put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    waiting.await.unwrap().unwrap();
    tokio::task::yield_now().await;
    store.close().await;
    assert!(matches!(never.await.unwrap(), Err(ReadError::Closed)));
}

pub async fn closing_ends_watches_and_refuses_writes(store: Shared) {
    let mut watch = store.watch(&Range::prefix(""), store.revision()).await.unwrap();
    put(&store, "a", "1").await;
    store.close().await;
    assert_eq!(watch.next().await.unwrap().events[0].kind(), EventKind::Put, "what is there is still given");
    assert!(matches!(watch.next().await, Err(WatchError::Closed)));
    assert!(matches!(store.write(Write::put("a", Expect::Any, "2")).await, Err(WriteError::Closed)));
    assert!(matches!(store.write_all(vec![Write::put("a", Expect::Any, "2")]).await[..], [Err(WriteError::Closed)]));
    assert!(matches!(store.watch(&Range::prefix(""), store.revision()).await, Err(WatchError::Closed)));
    store.close().await;
}

pub async fn a_watch_of_many_waiting_misses_nothing(store: Shared) {
    let base = store.revision();
    let mut tasks = Vec::new();
    for _ in 0..200 {
        let mut watch = store.watch(&Range::prefix("a/"), base).await.unwrap();
        tasks.push(tokio::spawn(async move {
            seen(&mut watch, 500).await.into_iter().map(|event| event.0).collect::<Vec<_>>()
        }));
    }
    for n in 0..500 {
        put(&store, &format!("a/{}", n % 7), "x").await;
    }
    for task in tasks {
        assert!(task.await.unwrap().into_iter().eq(base + 1..=base + 500));
    }
}

pub async fn a_watch_that_was_slow_gets_little_at_a_time(store: Shared) {
    let base = store.revision();
    let mut watch = store.watch(&Range::prefix("a/"), base).await.unwrap();
    let value = "x".repeat(100_000);
    for n in 0..20 {
        put(&store, &format!("a/{}", n % 3), &value).await;
    }
    let mut revisions = Vec::new();
    while revisions.len() < 20 {
        let batch = watch.next().await.unwrap();
        let bytes: usize = batch.events.iter().filter_map(|event| event.value.as_ref()).map(Bytes::len).sum();
        assert!(bytes < 400_000, "{bytes}");
        revisions.extend(batch.events.iter().map(|event| event.revision));
    }
    assert!(revisions.into_iter().eq(base + 1..=base + 20));
}

pub async fn a_write_takes_place_whoever_waits_for_it(store: Shared) {
    let base = store.revision();
    drop(store.write(Write::put("a", Expect::Absent, "1")));
    store.wait_for(base + 1).await.unwrap();
    assert_eq!(&store.get("a", None).await.unwrap().unwrap().value[..], b"1");
}
