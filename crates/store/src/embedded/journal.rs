//! The files of a store: a log of commits in segments, and the latest snapshot.
//!
//! A commit is appended to the newest segment and made durable before it is acknowledged. A snapshot holds the state
//! at the compacted revision; segments older than it are deleted. So the files always give the present state and the
//! history since the snapshot, and do not grow without bound.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile, sync_dir};
use super::frame::{self, HEADER_LEN, LOG_MAGIC};
use super::mark::Mark;
use crate::replica::Record;
use crate::{Revision, WriteError};

/// The files, open for writing.
pub(super) struct Journal {
    pub disk: Arc<dyn Disk>,
    pub dir: PathBuf,
    /// A new segment is started when the newest is this large: what is reclaimed is whole segments.
    pub segment_bytes: u64,
    /// The segments before the newest, oldest first.
    pub closed: VecDeque<Segment>,
    pub active: Active,
    pub snapshot: Snapshot,
    /// The file whose lock keeps other processes out.
    pub _lock: fs::File,
}

/// A segment nothing is appended to any more.
#[derive(Debug)]
pub(super) struct Segment {
    pub path: PathBuf,
    /// The revision of its last write.
    pub last: Revision,
    pub bytes: u64,
}

/// The segment that grows.
pub(super) struct Active {
    pub path: PathBuf,
    /// The revision that it starts with.
    pub first: Revision,
    pub file: Box<dyn DiskFile>,
    /// The length of what is durable.
    pub bytes: u64,
    /// The revision of its last write, or the one before its first.
    pub last: Revision,
    /// There may be something after `bytes`.
    pub dirty: bool,
}

/// The newest snapshot.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    /// Where it is; `None` before the first one.
    pub path: Option<PathBuf>,
    /// The revision whose state it holds.
    pub revision: Revision,
    pub bytes: u64,
}

impl Journal {
    /// Appends a frame that ends with revision `last` and makes it durable. After an error nothing of it remains.
    pub fn append(&mut self, frame: &[u8], last: Revision) -> Result<(), WriteError> {
        if self.active.bytes >= self.segment_bytes
            && let Err(error) = self.rotate()
        {
            // The old segment still takes the write, if anything can be written at all.
            tracing::warn!(%error, "cannot start a new log segment");
        }
        self.repair().map_err(|error| self.error(error))?;
        self.active.dirty = true;
        let written = self.active.file.append(frame).and_then(|()| self.active.file.sync());
        match written {
            Ok(()) => {
                self.active.dirty = false;
                self.active.bytes += frame.len() as u64;
                self.active.last = last;
                Ok(())
            }
            Err(error) => {
                // The writers are told that nothing was stored: nothing of it may be found after a restart. If the
                // file cannot be cut back now, that is tried again before the next write.
                if let Err(error) = self.repair() {
                    tracing::error!(%error, path = %self.active.path.display(), "cannot cut back the log");
                    return Err(WriteError::Uncertain(format!("{}: {error}", self.active.path.display())));
                }
                Err(self.error(error))
            }
        }
    }

    /// Cuts off what a failed write left.
    fn repair(&mut self) -> io::Result<()> {
        if self.active.dirty {
            self.active.file.truncate(self.active.bytes)?;
            self.active.file.sync()?;
            self.active.dirty = false;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        if self.active.dirty {
            return Ok(());
        }
        let fresh = create_segment(&*self.disk, &self.dir, self.active.last)?;
        Mark::of(&fresh).write(&self.dir);
        let full = std::mem::replace(&mut self.active, fresh);
        self.closed.push_back(Segment { path: full.path, last: full.last, bytes: full.bytes });
        Ok(())
    }

    fn error(&self, error: io::Error) -> WriteError {
        if is_full(&error) {
            WriteError::NoSpace { dir: self.dir.clone() }
        } else {
            WriteError::Io { path: self.active.path.clone(), error: Arc::new(error) }
        }
    }

    /// Appends a commit.
    pub fn commit(&mut self, buffer: &mut Vec<u8>, millis: u64, records: &[Record]) -> Result<(), WriteError> {
        let Some(last) = records.last() else { return Ok(()) };
        frame::write_commit(buffer, millis, records);
        self.append(buffer, last.revision)
    }

    /// Marks the end of the log as complete: damage to it will not be taken for an unfinished write.
    pub fn mark_closed(&mut self) {
        let mut buffer = Vec::new();
        frame::write_closed(&mut buffer);
        if let Err(error) = self.append(&buffer, self.active.last) {
            tracing::warn!(%error, "cannot mark the log as closed");
        }
        Mark::of(&self.active).write(&self.dir);
    }

    /// Whether a snapshot at `revision` would shorten the log by as much as it costs.
    pub fn is_snapshot_worthwhile(&self, revision: Revision) -> bool {
        self.reclaimable(revision) >= self.snapshot.bytes.max(2 * self.segment_bytes)
    }

    /// Bytes of the segments that a snapshot at `revision` makes superfluous.
    pub fn reclaimable(&self, revision: Revision) -> u64 {
        self.closed.iter().take_while(|segment| segment.last <= revision).map(|segment| segment.bytes).sum()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.snapshot.bytes + self.closed.iter().map(|segment| segment.bytes).sum::<u64>() + self.active.bytes
    }

    /// Takes over a snapshot that was written, and deletes what it replaces.
    pub fn adopt(&mut self, snapshot: Snapshot) {
        let old = std::mem::replace(&mut self.snapshot, snapshot);
        if let Some(path) = old.path {
            remove(&path);
        }
        while let Some(first) = self.closed.front()
            && first.last <= self.snapshot.revision
        {
            remove(&first.path);
            self.closed.pop_front();
        }
    }
}

/// Deletes a file that is no longer needed. That it stays is no harm: it is deleted at the next start.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "cannot delete an old file");
    }
}

/// Makes the segment for the writes after revision `last`.
pub(super) fn create_segment(disk: &dyn Disk, dir: &Path, last: Revision) -> io::Result<Active> {
    let path = segment_path(dir, last + 1);
    let mut file = disk.create(&path)?;
    let header = frame::header(LOG_MAGIC, last + 1);
    let written = file.append(&header).and_then(|()| file.sync()).and_then(|()| sync_dir(dir));
    if let Err(error) = written {
        remove(&path);
        return Err(error);
    }
    Ok(Active { path, first: last + 1, file, bytes: HEADER_LEN, last, dirty: false })
}

/// Whether a disk or a quota is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The name of the segment that starts with a revision.
pub(super) fn segment_path(dir: &Path, first: Revision) -> PathBuf {
    dir.join(format!("log-{first:020}"))
}

/// The name of the snapshot of a revision.
pub(super) fn snapshot_path(dir: &Path, revision: Revision) -> PathBuf {
    dir.join(format!("snapshot-{revision:020}"))
}
