//! A disk that is really full: a small file system of its own, if this process may mount one.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use store::{Embedded, Expect, ListOptions, Options, Range, Store, Write, WriteError};

struct Mount(tempfile::TempDir);

impl Mount {
    fn new(megabytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"]).arg(dir.path());
        mount.output().is_ok_and(|output| output.status.success()).then_some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

async fn contents(store: &Embedded) -> Vec<(String, Bytes)> {
    let page = store.list(&Range::prefix(""), ListOptions::default()).await.unwrap();
    page.entries.into_iter().map(|entry| (entry.key.to_string(), entry.value)).collect()
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_recovers() {
    let Some(disk) = Mount::new(64) else {
        println!("skipped: this process may not mount a file system");
        return;
    };
    let dir = disk.path().join("store");
    let options = Options { history_bytes: 1 << 20, ..Options::default() };
    let store = Embedded::open(&dir, options.clone()).unwrap();
    let value = Bytes::from(vec![b'x'; 100_000]);
    let mut written = 0;
    let error = loop {
        match store.write(Write::put(format!("{written:04}"), Expect::Absent, value.clone())).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 2000);
    };
    assert!(written > 300, "{written}");
    assert_eq!(error.to_string(), format!("no space left in {}", dir.display()));
    for _ in 0..20 {
        let write = Write::put("more", Expect::Absent, value.clone());
        assert!(matches!(store.write(write).await, Err(WriteError::NoSpace { .. })));
    }
    let before = contents(&store).await;
    assert_eq!(before.len(), written);
    drop(store);

    // It opens on the full disk, too, and reads.
    let store = Embedded::open(&dir, options.clone()).unwrap();
    assert_eq!(contents(&store).await, before);
    assert!(matches!(
        store.write(Write::put("more", Expect::Absent, value.clone())).await,
        Err(WriteError::NoSpace { .. })
    ));

    // More space: it goes on.
    let larger = Command::new("mount").args(["-o", "remount,size=128m"]).arg(disk.path()).status().unwrap();
    assert!(larger.success());
    store.write(Write::put("more", Expect::Absent, value.clone())).await.unwrap();
    // Writing the same keys over and over needs room for the log again and again: the old log goes in time.
    for round in 0..500 {
        let write = Write::put("again", Expect::Any, value.clone());
        store.write(write).await.unwrap_or_else(|error| panic!("{round}: {error}"));
    }
    drop(store);
    let store = Embedded::open(&dir, options).unwrap();
    assert_eq!(contents(&store).await.len(), written + 2);
}
