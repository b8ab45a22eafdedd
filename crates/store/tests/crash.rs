//! A process that writes is killed at any moment; what it was told is stored must be there, whole and in order.
//!
//! `STANCHION_CRASH_ROUNDS` sets how often (10 by default).

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use store::{Embedded, Expect, ListOptions, Options, Range, Store, Write, WriteError};

const DIR: &str = "STANCHION_CRASH_DIR";
const WRITERS: usize = 8;
const KEYS: u64 = 40;

/// Small history, so that snapshots are written all the time.
fn options() -> Options {
    Options { history_bytes: 256 << 10, segment_bytes: 256 << 10, ..Options::default() }
}

/// A value of a few kilobytes that shows whether it is whole: a number and as many letters as it says.
fn value(number: u64) -> String {
    let len = 200 + number * 7919 % 9000;
    format!("{number} {len} {}", "x".repeat(len as usize))
}

fn number_of(value: &[u8]) -> u64 {
    let text = std::str::from_utf8(value).unwrap();
    let number: u64 = text.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(text, crate::value(number));
    number
}

/// Not a test by itself: the process that is killed. It prints `key number revision` for every write that was
/// acknowledged; number 0 is a delete.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = std::sync::Arc::new(Embedded::open(dir, options()).unwrap());
        let base = store.revision() * 1000;
        let tasks: Vec<_> = (0..WRITERS as u64)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for count in 1.. {
                        let number = base + count * WRITERS as u64 + writer;
                        let key = format!("keys/{writer}/{}", number * 31 % KEYS);
                        let delete = number.is_multiple_of(5);
                        let write = if delete {
                            Write::delete(key.as_str(), Expect::Any)
                        } else {
                            Write::put(key.as_str(), Expect::Any, value(number))
                        };
                        let revision = match store.write(write).await {
                            Ok(revision) => revision,
                            Err(WriteError::Conflict { .. }) => continue,
                            Err(error) => panic!("{error}"),
                        };
                        let number = if delete { 0 } else { number };
                        // One call, so that a line is written whole or not at all.
                        std::io::stderr().write_all(format!("{key} {number} {revision}\n").as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Lets a child write for a while and kills it. Gives what it was told: the last number and revision of each key.
fn write_and_kill(dir: &Path, after: Duration) -> HashMap<String, (u64, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    // The first line says that the child is up: time counts from there.
    output.read_line(&mut text).unwrap();
    let rest = std::thread::spawn(move || {
        output.read_to_string(&mut text).unwrap();
        text
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = rest.join().unwrap();
    let mut acknowledged: HashMap<String, (u64, u64)> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(key), Some(number), Some(revision)) = (words.next(), words.next(), words.next()) else {
            panic!("the child says: {text}");
        };
        let entry = (number.parse().unwrap(), revision.parse().unwrap());
        let last = acknowledged.entry(key.to_owned()).or_insert(entry);
        if last.1 < entry.1 {
            *last = entry;
        }
    }
    acknowledged
}

#[tokio::test]
async fn no_acknowledged_write_is_lost_and_none_is_half_there() {
    if std::env::var(DIR).is_ok() {
        return;
    }
    let rounds = std::env::var("STANCHION_CRASH_ROUNDS").map_or(10, |rounds| rounds.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut known: HashMap<String, (u64, u64)> = HashMap::new();
    for round in 0..rounds {
        let acknowledged = write_and_kill(dir.path(), Duration::from_millis(20 + round * 37 % 300));
        assert!(!acknowledged.is_empty());
        known.extend(acknowledged);
        let store = Embedded::open(dir.path(), options()).unwrap();
        let page = store.list(&Range::prefix(""), ListOptions::default()).await.unwrap();
        let mut found: HashMap<String, (u64, u64)> = HashMap::new();
        for entry in page.entries {
            found.insert(entry.key.to_string(), (number_of(&entry.value), entry.mod_revision));
        }
        for (key, (number, revision)) in &known {
            match found.get(key) {
                // A later write that was stored but not acknowledged any more is fine.
                Some((stored, at)) if at > revision => assert!(stored > number || *number == 0, "{key}"),
                Some(stored) => assert_eq!(stored, &(*number, *revision), "round {round}: {key}"),
                // Deleted: acknowledged, or by a later write.
                None if *number == 0 => {}
                None => {
                    let page = store.list(&Range::key(key.as_str()), ListOptions::default()).await.unwrap();
                    assert!(page.revision > *revision, "round {round}: {key} is lost");
                    assert!(deleted_after(&store, key, *revision).await, "round {round}: {key} is lost");
                }
            }
        }
        let newest = known.values().map(|(_, revision)| *revision).max().unwrap();
        assert!(store.revision() >= newest);
        known = found;
    }
    let mut names = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(names.any(|name| name.to_string_lossy().starts_with("snapshot-")), "there were no snapshots");
}

/// Whether the history has a delete of the key after a revision.
async fn deleted_after(store: &Embedded, key: &str, revision: u64) -> bool {
    let mut watch = store.watch(&Range::key(key), store.compacted()).await.unwrap();
    while let Ok(Ok(batch)) = tokio::time::timeout(Duration::from_millis(10), watch.next()).await {
        if batch.events.iter().any(|event| event.revision > revision && event.value.is_none()) {
            return true;
        }
    }
    false
}
