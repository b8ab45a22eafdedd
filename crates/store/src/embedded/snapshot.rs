//! Writing a snapshot while the store works on.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use super::disk::{Disk, DiskFile, sync_dir};
use super::frame::{self, SNAPSHOT_MAGIC};
use super::journal::{Snapshot, remove, snapshot_path};
use crate::Revision;
use crate::replica::Keyspace;

/// So many keys are read under one lock.
const KEYS_PER_LOCK: usize = 256;

/// After so many bytes the file is made durable up to there: one large flush at the end would hold up the commits.
const SYNC_BYTES: u64 = 4 << 20;

/// Writes the state at `revision`, which must not be compacted before this returns. Gives up with an error when
/// `cancel` becomes true.
pub(super) fn write(
    disk: &dyn Disk,
    dir: &Path,
    space: &RwLock<Keyspace>,
    revision: Revision,
    cancel: &AtomicBool,
) -> io::Result<Snapshot> {
    let path = snapshot_path(dir, revision);
    let temporary = path.with_extension("tmp");
    let written = disk
        .create(&temporary)
        .and_then(|file| fill(Output { file, bytes: 0, unsynced: 0 }, space, revision, cancel))
        .and_then(|bytes| {
            std::fs::rename(&temporary, &path)?;
            sync_dir(dir)?;
            Ok(bytes)
        });
    match written {
        Ok(bytes) => Ok(Snapshot { path: Some(path), revision, bytes }),
        Err(error) => {
            if temporary.exists() {
                remove(&temporary);
            }
            Err(error)
        }
    }
}

fn fill(mut output: Output, space: &RwLock<Keyspace>, revision: Revision, cancel: &AtomicBool) -> io::Result<u64> {
    output.write(&frame::header(SNAPSHOT_MAGIC, revision))?;
    let mut buffer = Vec::new();
    let mut count = 0;
    let mut after = None;
    loop {
        if cancel.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the store is closing"));
        }
        let versions = space.read().versions(after.as_deref(), revision, KEYS_PER_LOCK);
        let Some((last, _)) = versions.last() else { break };
        after = Some(last.clone());
        count += versions.len() as u64;
        frame::write_versions(&mut buffer, &versions);
        output.write(&buffer)?;
    }
    frame::write_end(&mut buffer, count);
    output.write(&buffer)?;
    output.file.sync()?;
    Ok(output.bytes)
}

struct Output {
    file: Box<dyn DiskFile>,
    bytes: u64,
    unsynced: u64,
}

impl Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)?;
        self.bytes += bytes.len() as u64;
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC_BYTES {
            self.file.sync()?;
            self.unsynced = 0;
        }
        Ok(())
    }
}
