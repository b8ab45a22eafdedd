//! Measures the embedded store: `cargo run --release -p store --example measure -- DIR`. DIR is made and removed.

#![allow(clippy::unwrap_used, reason = "a failed measurement ends the program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::{Embedded, Expect, ListOptions, Options, Range, Store, Write};

fn main() {
    let Some(dir) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("usage: measure DIR");
        return;
    };
    assert!(!dir.exists(), "{} exists", dir.display());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&dir));
    std::fs::remove_dir_all(&dir).unwrap();
}

async fn measure(dir: &Path) {
    let start = Instant::now();
    let store = Arc::new(Embedded::open(dir, Options::default()).unwrap());
    println!("open an empty directory: {:.1?}", start.elapsed());

    let start = Instant::now();
    create(&store, "one", 1, 5_000).await;
    println!("1 writer: {:.0} creates/s", 5_000.0 / start.elapsed().as_secs_f64());

    let start = Instant::now();
    create(&store, "many", 32, 95_000).await;
    println!("32 writers: {:.0} creates/s", 95_000.0 / start.elapsed().as_secs_f64());
    println!("100,000 values of 1 KB: {} resident, {} MB on disk", resident(), store.stats().disk_bytes >> 20);

    let range = Range::prefix("/registry/configmaps/many-1");
    let start = Instant::now();
    let entries = store.list(&range, ListOptions::default()).await.unwrap().entries;
    println!("list of {}: {:.1?}", entries.len(), start.elapsed());
    let start = Instant::now();
    let page = store.list(&range, ListOptions { limit: 500, ..ListOptions::default() }).await.unwrap();
    println!("page of 500 with {} remaining: {:.1?}", page.remaining, start.elapsed());
    drop(page);

    let start = Instant::now();
    let deletes = entries.iter().map(|entry| Write::delete(entry.key.clone(), Expect::Any)).collect::<Vec<_>>();
    let count = deletes.len();
    assert!(store.write_all(deletes).await.iter().all(Result::is_ok));
    println!("delete of {count} in one trip: {:.1?}", start.elapsed());
    drop(entries);

    watch(&store).await;

    store.close().await;
    drop(store);
    for _ in 0..2 {
        let start = Instant::now();
        let store = Embedded::open(dir, Options::default()).unwrap();
        println!(
            "open with {} keys from the log: {:.0?}, {} resident",
            store.stats().keys,
            start.elapsed(),
            resident()
        );
    }

    let store = Arc::new(Embedded::open(dir, Options::default()).unwrap());
    let start = Instant::now();
    let mut largest = 0;
    for _ in 0..20 {
        overwrite(&store, 32, 10_000).await;
        largest = largest.max(store.stats().disk_bytes);
    }
    println!(
        "200,000 updates: {:.0}/s, at most {} MB on disk",
        200_000.0 / start.elapsed().as_secs_f64(),
        largest >> 20
    );
    println!("{} resident, {:?}", resident(), store.stats());
    store.close().await;
    drop(store);
    let start = Instant::now();
    let store = Embedded::open(dir, Options::default()).unwrap();
    println!("open with {} keys from a snapshot: {:.0?}", store.stats().keys, start.elapsed());
}

fn value() -> Bytes {
    Bytes::from(vec![b'x'; 1024])
}

async fn create(store: &Arc<Embedded>, name: &'static str, writers: usize, count: usize) {
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..count / writers {
                    let key = format!("/registry/configmaps/{name}-{}/object-{writer}-{n}", n % 8);
                    store.write(Write::put(key, Expect::Absent, value())).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn overwrite(store: &Arc<Embedded>, writers: usize, count: usize) {
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..count / writers {
                    let key = format!("/registry/configmaps/many-0/object-{writer}-{}", n * 8);
                    store.write(Write::put(key, Expect::Any, value())).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// 1,000 watches of one prefix and 10,000 of others; 1,000 events a second for five seconds.
async fn watch(store: &Arc<Embedded>) {
    let mut idle = Vec::new();
    for n in 0..10_000 {
        idle.push(store.watch(&Range::prefix(format!("/registry/idle/{n}/")), store.revision()).await.unwrap());
    }
    let start = Instant::now();
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut watch = store.watch(&Range::prefix("/registry/pods/"), store.revision()).await.unwrap();
                let mut delays = Vec::with_capacity(5000);
                while delays.len() < 5000 {
                    let batch = watch.next().await.unwrap();
                    let now = start.elapsed();
                    for event in batch.events.iter() {
                        let sent: [u8; 8] = event.value.as_ref().unwrap()[..8].try_into().unwrap();
                        delays.push((now.as_micros() as u64).saturating_sub(u64::from_le_bytes(sent)) as u32);
                    }
                }
                delays
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let cpu = cpu();
    let began = Instant::now();
    for n in 0..5000u32 {
        tokio::time::sleep_until((began + Duration::from_millis(1) * n).into()).await;
        let mut sent = vec![b'x'; 1024];
        sent[..8].copy_from_slice(&(start.elapsed().as_micros() as u64).to_le_bytes());
        store.write(Write::put(format!("/registry/pods/{}", n % 100), Expect::Any, sent)).await.unwrap();
    }
    let took = began.elapsed();
    let mut delays = Vec::new();
    for task in tasks {
        delays.extend(task.await.unwrap());
    }
    delays.sort_unstable();
    let at = |share: f64| f64::from(delays[((delays.len() - 1) as f64 * share) as usize]) / 1000.0;
    println!(
        "1,000 watches, 5,000 events in {took:.1?}: delay p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms, processor {:.1} s",
        at(0.5),
        at(0.99),
        at(1.0),
        crate::cpu() - cpu
    );
}

fn status(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn resident() -> String {
    let line = status("/proc/self/status").lines().find(|line| line.starts_with("VmRSS")).map(str::to_owned);
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or("?".into(), |kb| format!("{} MB", kb >> 10))
}

/// Processor time used so far, in seconds.
fn cpu() -> f64 {
    let stat = status("/proc/self/stat");
    let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut next = || words.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default();
    (next() + next()) / 100.0
}
