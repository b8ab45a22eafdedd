//! Opening a directory: lock it, read snapshot and log, decide what a bad end means.
//!
//! A write that was under way when the process or the machine stopped leaves an unfinished frame at the end of the
//! newest segment. It was not acknowledged and is cut off. Anything else that is wrong is damage and refused: an
//! unfinished frame that others follow, in an older segment, in a snapshot, or before the mark of an orderly close.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::RwLock;

use super::disk::Disk;
use super::frame::{self, Body, FRAME_HEAD, HEADER_LEN, LOG_MAGIC, SNAPSHOT_MAGIC};
use super::journal::{Active, Journal, Segment, Snapshot, create_segment, remove};
use super::mark::Mark;
use super::snapshot;
use crate::replica::Keyspace;
use crate::{FIRST_REVISION, OpenError, Revision};

/// Opens or creates the store in `dir`.
pub(super) fn open(disk: Arc<dyn Disk>, dir: &Path, segment_bytes: u64) -> Result<(Journal, Keyspace), OpenError> {
    make_folder(dir)?;
    let lock = lock(dir)?;
    let Files { mut snapshots, segments } = Files::find(dir)?;
    let mark = Mark::read(dir);
    if let Some(mark) = mark {
        mark.check(dir, segments.last())?;
    }
    let newest = snapshots.pop();
    for (_, path) in snapshots {
        remove(&path);
    }
    let (snapshot, mut space) = match newest {
        Some((revision, path)) => read_snapshot(path, revision)?,
        None => (Snapshot { path: None, revision: FIRST_REVISION, bytes: 0 }, Keyspace::empty()),
    };
    let mut closed = VecDeque::new();
    let mut active = None;
    let mut segments = segments.into_iter().peekable();
    while let Some((first, path)) = segments.next() {
        let next = segments.peek().map(|(first, _)| *first);
        if next.is_some_and(|next| next <= snapshot.revision + 1) {
            remove(&path);
            continue;
        }
        if first > space.current() + 1 {
            let what = format!("it starts at revision {first}, but the files before it end at {}", space.current());
            return Err(OpenError::Damaged { path, offset: 0, what });
        }
        let is_last = next.is_none();
        if is_last && cut_short_at_birth(&path)? {
            remove(&path);
            break;
        }
        let bytes = replay(&path, first, is_last, &mut space)?;
        let last = space.current();
        if is_last {
            if let Some(mark) = mark.filter(|mark| mark.first == first) {
                mark.check_length(&path, bytes)?;
            }
            let file = disk.open(&path).map_err(failed("open", &path))?;
            let on_disk = fs::metadata(&path).map_err(failed("read", &path))?.len();
            active = Some(Active { path, first, file, bytes, last, dirty: on_disk != bytes });
        } else {
            closed.push_back(Segment { path, last, bytes });
        }
    }
    let active = match active {
        Some(active) => active,
        None => create_segment(&*disk, dir, space.current()).map_err(failed("create a log in", dir))?,
    };
    if mark.is_none_or(|mark| mark.first != active.first) {
        Mark::of(&active).write(dir);
    }
    let journal = Journal { disk, dir: dir.to_owned(), segment_bytes, closed, active, snapshot, _lock: lock };
    Ok((journal, space))
}

/// Makes the store in `dir`, which must have none, with this content.
pub(super) fn make(disk: &dyn Disk, dir: &Path, space: Keyspace) -> Result<(), OpenError> {
    make_folder(dir)?;
    let _lock = lock(dir)?;
    let Files { snapshots, segments } = Files::find(dir)?;
    if let Some((_, path)) = snapshots.into_iter().chain(segments).next() {
        return Err(failed("overwrite", &path)(io::Error::from(io::ErrorKind::AlreadyExists)));
    }
    let revision = space.current();
    let written = snapshot::write(disk, dir, &RwLock::new(space), revision, &AtomicBool::new(false));
    written.map(drop).map_err(failed("write a snapshot in", dir))
}

/// Makes the folder, for nobody else to look into.
fn make_folder(dir: &Path) -> Result<(), OpenError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create", dir))
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> OpenError + 'a {
    move |error| OpenError::Io { action, path: path.to_owned(), error }
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let owner = file.take(20).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(OpenError::Locked { dir: dir.to_owned(), owner });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::Io { action: "lock", path, error }),
    }
    // Only for the message above. That a full disk does not take it must not keep the store from being read.
    let noted = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = noted {
        tracing::warn!(%error, "cannot note the process id in the lock file");
    }
    Ok(file)
}

/// The files of a directory by their revision, oldest first.
struct Files {
    snapshots: Vec<(Revision, PathBuf)>,
    segments: Vec<(Revision, PathBuf)>,
}

impl Files {
    fn find(dir: &Path) -> Result<Self, OpenError> {
        let mut files = Self { snapshots: Vec::new(), segments: Vec::new() };
        for entry in fs::read_dir(dir).map_err(failed("read", dir))? {
            let path = entry.map_err(failed("read", dir))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let revision = |prefix: &str| name.strip_prefix(prefix)?.parse().ok();
            if name.starts_with("snapshot-") && name.ends_with(".tmp") {
                remove(&path);
            } else if let Some(revision) = revision("snapshot-") {
                files.snapshots.push((revision, path));
            } else if let Some(revision) = revision("log-") {
                files.segments.push((revision, path));
            }
        }
        files.snapshots.sort();
        files.segments.sort();
        Ok(files)
    }
}

/// Whether a segment is empty because the process stopped while making it: nothing was ever acknowledged in it.
fn cut_short_at_birth(path: &Path) -> Result<bool, OpenError> {
    let bytes = fs::metadata(path).map_err(failed("read", path))?.len();
    if bytes < HEADER_LEN {
        return Ok(true);
    }
    // The length can be durable before the content is.
    Ok(bytes == HEADER_LEN && fs::read(path).map_err(failed("read", path))?.iter().all(|byte| *byte == 0))
}

fn read_snapshot(path: PathBuf, revision: Revision) -> Result<(Snapshot, Keyspace), OpenError> {
    let mut frames = Frames::open(&path, SNAPSHOT_MAGIC, revision)?;
    let mut versions = Vec::new();
    loop {
        let offset = frames.offset;
        match frames.next()? {
            Next::Body(Body::Versions(more)) => versions.extend(more),
            Next::Body(Body::End { count }) if count == versions.len() as u64 => break,
            Next::Body(_) => return Err(frames.damaged(offset, "the snapshot's parts do not fit together")),
            Next::Bad(what) => return Err(frames.damaged(offset, what)),
            Next::End => return Err(frames.damaged(offset, "the snapshot is cut off")),
        }
    }
    let bytes = frames.len;
    Ok((Snapshot { path: Some(path), revision, bytes }, Keyspace::new(revision, versions)))
}

/// Makes a segment's changes that `space` does not have yet. Gives the length of its good part.
fn replay(path: &Path, first: Revision, is_last: bool, space: &mut Keyspace) -> Result<u64, OpenError> {
    let mut frames = Frames::open(path, LOG_MAGIC, first)?;
    loop {
        let offset = frames.offset;
        match frames.next()? {
            Next::Body(Body::Commit { millis, records }) => {
                for record in records {
                    if record.revision > space.current() + 1 {
                        return Err(frames.damaged(offset, "revisions are missing"));
                    }
                    if record.revision == space.current() + 1 {
                        space.apply(record);
                    }
                }
                space.committed(millis);
            }
            Next::Body(Body::Closed) => {}
            Next::Body(_) => return Err(frames.damaged(offset, "this does not belong into a log")),
            Next::End => return Ok(frames.offset),
            Next::Bad(what) => {
                if !is_last || frames.good_frame_after(offset)? {
                    return Err(frames.damaged(offset, what));
                }
                let dropped = frames.len - offset;
                tracing::warn!(path = %path.display(), offset, dropped, "dropping a write that was never finished");
                return Ok(offset);
            }
        }
    }
}

/// Reads a file's frames one after the other.
struct Frames {
    path: PathBuf,
    file: BufReader<File>,
    len: u64,
    /// Where the next frame starts.
    offset: u64,
    buffer: Vec<u8>,
}

enum Next {
    Body(Body),
    /// The file ends here, at the end of a frame.
    End,
    /// What is here is no frame, for this reason.
    Bad(&'static str),
}

impl Frames {
    fn open(path: &Path, magic: &[u8; 8], revision: Revision) -> Result<Self, OpenError> {
        let file = File::open(path).map_err(failed("open", path))?;
        let len = file.metadata().map_err(failed("read", path))?.len();
        let file = BufReader::with_capacity(1 << 18, file);
        let mut frames = Self { path: path.to_owned(), file, len, offset: 0, buffer: Vec::new() };
        frames.read(HEADER_LEN.min(len))?;
        match frame::read_header(&frames.buffer, magic) {
            Ok(found) if found == revision => {}
            Ok(_) => return Err(frames.damaged(0, "the revision in it is not the one in its name")),
            Err(what) => return Err(frames.damaged(0, what)),
        }
        frames.offset = HEADER_LEN;
        Ok(frames)
    }

    fn next(&mut self) -> Result<Next, OpenError> {
        let left = self.len - self.offset;
        if left == 0 {
            return Ok(Next::End);
        }
        if left < FRAME_HEAD {
            return Ok(Next::Bad("a record is cut off"));
        }
        self.read(FRAME_HEAD)?;
        let Some((length, crc)) = split_head(&self.buffer) else { return Ok(Next::Bad("a record is cut off")) };
        let size = u64::from(u32::from_le_bytes(length));
        if size > left - FRAME_HEAD {
            return Ok(Next::Bad("a record is cut off"));
        }
        self.read(size)?;
        if frame::checksum(length, &self.buffer) != crc {
            return Ok(Next::Bad("a record's checksum is wrong"));
        }
        let Some(body) = frame::read_body(&self.buffer) else {
            return Err(self.damaged(self.offset, "a record cannot be understood"));
        };
        self.offset += FRAME_HEAD + size;
        Ok(Next::Body(body))
    }

    /// Reads the next bytes into the buffer.
    fn read(&mut self, size: u64) -> Result<(), OpenError> {
        self.buffer.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        self.file.read_exact(&mut self.buffer).map_err(failed("read", &self.path))
    }

    /// Whether anywhere after `offset` a whole frame is found: then what is at `offset` was once durable.
    fn good_frame_after(&mut self, offset: u64) -> Result<bool, OpenError> {
        let mut rest = Vec::new();
        let read = self.file.seek(SeekFrom::Start(offset + 1)).and_then(|_| self.file.read_to_end(&mut rest));
        read.map_err(failed("read", &self.path))?;
        Ok((0..rest.len()).any(|at| rest.get(at..).is_some_and(starts_with_frame)))
    }

    fn damaged(&self, offset: u64, what: &str) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), offset, what: what.to_owned() }
    }
}

fn split_head(head: &[u8]) -> Option<([u8; 4], u32)> {
    let (length, crc) = head.split_at_checked(4)?;
    Some((length.try_into().ok()?, u32::from_le_bytes(crc.get(..4)?.try_into().ok()?)))
}

fn starts_with_frame(bytes: &[u8]) -> bool {
    let Some((length, crc)) = split_head(bytes) else { return false };
    let size = u32::from_le_bytes(length) as usize;
    let body = bytes.get(FRAME_HEAD as usize..).and_then(|rest| rest.get(..size));
    // The first byte says the kind and is small: looking at it first saves most of the checksums.
    body.is_some_and(|body| body.first().is_some_and(|kind| *kind <= 8) && frame::checksum(length, body) == crc)
}
