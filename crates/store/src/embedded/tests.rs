//! What happens when the disk fails, and when files are not what they were.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use tempfile::TempDir;

use super::disk::{Disk, DiskFile, OsDisk};
use super::{Embedded, Options};
use crate::{Change, Expect, ListOptions, ManualClock, OpenError, Range, Store, Write, WriteError};

/// A disk that can be made to fail.
#[derive(Default)]
struct Faults {
    /// How many bytes there is room for.
    room: AtomicU64,
    /// How many bytes a snapshot gets.
    snapshot_room: AtomicU64,
    sync_fails: AtomicBool,
    truncate_fails: AtomicBool,
}

struct FaultyDisk(Arc<Faults>);

struct FaultyFile {
    file: Box<dyn DiskFile>,
    is_snapshot: bool,
    faults: Arc<Faults>,
}

fn failure(flag: &AtomicBool) -> io::Result<()> {
    if flag.load(Ordering::SeqCst) { Err(io::Error::other("the disk is broken")) } else { Ok(()) }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let is_snapshot = path.extension().is_some();
        Ok(Box::new(FaultyFile { file: OsDisk.create(path)?, is_snapshot, faults: self.0.clone() }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FaultyFile { file: OsDisk.open(path)?, is_snapshot: false, faults: self.0.clone() }))
    }
}

impl DiskFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let counter = if self.is_snapshot { &self.faults.snapshot_room } else { &self.faults.room };
        let room = counter.load(Ordering::SeqCst);
        let fits = bytes.len().min(usize::try_from(room).unwrap());
        self.file.append(&bytes[..fits])?;
        counter.store(room - fits as u64, Ordering::SeqCst);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        failure(&self.faults.sync_fails)?;
        self.file.sync()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        failure(&self.faults.truncate_fails)?;
        self.file.truncate(len)
    }
}

fn faulty() -> (TempDir, Arc<Faults>, Embedded) {
    faulty_with(Options::default())
}

fn faulty_with(options: Options) -> (TempDir, Arc<Faults>, Embedded) {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Faults { room: AtomicU64::new(1 << 40), ..Faults::default() });
    let store = Embedded::open_on(Arc::new(FaultyDisk(faults.clone())), dir.path(), options).unwrap();
    (dir, faults, store)
}

fn open(dir: &TempDir) -> Result<Embedded, OpenError> {
    Embedded::open(dir.path(), Options::default())
}

async fn put(store: &Embedded, key: &str) -> Result<u64, WriteError> {
    store.write(Write::put(key, Expect::Any, "value of some length")).await
}

async fn keys(store: &Embedded) -> Vec<String> {
    let page = store.list(&Range::prefix(""), ListOptions::default()).await.unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_space() {
    let (dir, faults, store) = faulty();
    put(&store, "a").await.unwrap();
    for room in [0, 1, 7, 30] {
        faults.room.store(room, Ordering::SeqCst);
        let error = put(&store, "b").await.unwrap_err();
        assert_eq!(error.to_string(), format!("no space left in {}", dir.path().display()));
        assert_eq!(keys(&store).await, ["a"], "reads go on");
    }
    faults.room.store(1 << 40, Ordering::SeqCst);
    assert_eq!(put(&store, "c").await.unwrap(), 3, "a refused write takes no revision");
    drop(store);
    assert_eq!(keys(&open(&dir).unwrap()).await, ["a", "c"]);
}

#[tokio::test]
async fn a_failed_sync_stores_nothing() {
    let (dir, faults, store) = faulty();
    put(&store, "a").await.unwrap();
    // The log is cut back, but the cut cannot be made durable: the write may come back.
    faults.sync_fails.store(true, Ordering::SeqCst);
    assert!(matches!(put(&store, "b").await, Err(WriteError::Uncertain(_))));
    assert!(matches!(put(&store, "b").await, Err(WriteError::Io { .. })), "nothing is written over an uncertain end");
    assert_eq!(keys(&store).await, ["a"]);
    faults.sync_fails.store(false, Ordering::SeqCst);
    put(&store, "c").await.unwrap();
    drop(store);
    assert_eq!(keys(&open(&dir).unwrap()).await, ["a", "c"]);
}

#[tokio::test]
async fn a_log_that_cannot_be_cut_back_takes_no_writes() {
    let (dir, faults, store) = faulty();
    put(&store, "a").await.unwrap();
    faults.room.store(10, Ordering::SeqCst);
    faults.truncate_fails.store(true, Ordering::SeqCst);
    assert!(matches!(put(&store, "b").await, Err(WriteError::Uncertain(_))));
    faults.room.store(1 << 40, Ordering::SeqCst);
    assert!(matches!(put(&store, "b").await, Err(WriteError::Io { .. })));
    drop(store);
    let store = open(&dir).unwrap();
    assert_eq!(keys(&store).await, ["a"], "the unfinished write is dropped at the next start");
    put(&store, "c").await.unwrap();
    drop(store);
    assert_eq!(keys(&open(&dir).unwrap()).await, ["a", "c"]);
}

#[tokio::test]
async fn expiry_waits_for_a_full_disk() {
    let start = UNIX_EPOCH + Duration::from_secs(1000);
    let clock = Arc::new(ManualClock::new(start));
    let (_dir, faults, store) = faulty_with(Options { clock: clock.clone(), ..Options::default() });
    let put = Write::put("a", Expect::Any, "x").expiring(start + Duration::from_secs(10));
    store.write(put).await.unwrap();
    faults.room.store(0, Ordering::SeqCst);
    clock.advance(Duration::from_secs(11));
    store.tick().await;
    assert_eq!(keys(&store).await, ["a"]);
    faults.room.store(1 << 40, Ordering::SeqCst);
    tokio::time::timeout(Duration::from_secs(10), store.wait_for(3)).await.unwrap().unwrap();
    assert!(keys(&store).await.is_empty());
}

#[tokio::test]
async fn a_snapshot_without_space_leaves_nothing() {
    let (dir, faults, store) = faulty();
    let big = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..17 {
        store.write(Write::put("a", Expect::Any, big.clone())).await.unwrap();
    }
    faults.snapshot_room.store(900_000, Ordering::SeqCst);
    store.compact(store.revision()).await;
    put(&store, "b").await.unwrap();
    while faults.snapshot_room.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    put(&store, "c").await.unwrap();
    drop(store);
    let names: Vec<String> = names(&dir);
    assert!(names.iter().all(|name| name.starts_with("log") || name == "lock" || name == "newest"), "{names:?}");
    assert_eq!(keys(&open(&dir).unwrap()).await, ["a", "b", "c"]);
}

fn names(dir: &TempDir) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn file(dir: &TempDir, prefix: &str) -> PathBuf {
    let name = names(dir).into_iter().rfind(|name| name.starts_with(prefix)).unwrap();
    dir.path().join(name)
}

/// A directory with five keys, left as by a crash: without the mark of an orderly close.
async fn five_keys() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        put(&store, key).await.unwrap();
    }
    drop(store);
    let log = file(&dir, "log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 9]).unwrap();
    forget_mark(&dir);
    dir
}

/// Leaves of the mark of the newest segment what a crash leaves: that it was made.
fn forget_mark(dir: &TempDir) {
    fs::write(dir.path().join("newest"), "log-00000000000000000002 20\n").unwrap();
}

#[tokio::test]
async fn an_unfinished_last_write_is_dropped_wherever_it_ends() {
    let dir = five_keys().await;
    let log = file(&dir, "log");
    let whole = fs::read(&log).unwrap();
    let frame = (whole.len() - 20) / 5;
    for cut in 1..frame {
        fs::write(&log, &whole[..whole.len() - cut]).unwrap();
        forget_mark(&dir);
        let store = open(&dir).unwrap();
        assert_eq!(keys(&store).await, ["a", "b", "c", "d"], "{cut}");
        drop(store);
    }
    // Pages that never reached the disk read as zeros.
    for zeros in 1..frame {
        let mut bytes = whole.clone();
        let len = bytes.len();
        bytes[len - zeros..].fill(0);
        bytes.resize(len + 50, 0);
        fs::write(&log, &bytes).unwrap();
        forget_mark(&dir);
        let store = open(&dir).unwrap();
        let expected: &[&str] = if zeros == 0 { &["a", "b", "c", "d", "e"] } else { &["a", "b", "c", "d"] };
        assert_eq!(keys(&store).await, expected, "{zeros}");
        put(&store, "f").await.unwrap();
        drop(store);
        assert_eq!(keys(&open(&dir).unwrap()).await, ["a", "b", "c", "d", "f"]);
    }
}

#[tokio::test]
async fn damage_before_the_end_is_refused_with_file_and_offset() {
    let dir = five_keys().await;
    let log = file(&dir, "log");
    let whole = fs::read(&log).unwrap();
    let frame = (whole.len() - 20) / 5;
    for at in (0..whole.len() - frame).rev() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&log, &bytes).unwrap();
        let Err(OpenError::Damaged { path, offset, .. }) = open(&dir) else { panic!("byte {at}") };
        assert_eq!(path, log);
        let expected = if at < 20 { 0 } else { (at - 20) / frame * frame + 20 };
        assert_eq!(offset, expected as u64, "byte {at}");
    }
    let error = open(&dir).unwrap_err().to_string();
    assert_eq!(error, format!("{} is damaged at byte 0: the header's checksum is wrong", log.display()));
}

#[tokio::test]
async fn damage_to_the_last_write_is_refused_after_an_orderly_close() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).unwrap();
    put(&store, "a").await.unwrap();
    store.close().await;
    let log = file(&dir, "log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[50] ^= 1;
    fs::write(&log, &bytes).unwrap();
    assert!(matches!(open(&dir), Err(OpenError::Damaged { offset: 20, .. })));
}

#[tokio::test]
async fn a_log_that_is_gone_or_cut_off_is_not_taken_for_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).unwrap();
    put(&store, "a").await.unwrap();
    drop(store);
    let log = file(&dir, "log");
    let whole = fs::read(&log).unwrap();
    fs::remove_file(&log).unwrap();
    let error = open(&dir).unwrap_err();
    assert!(matches!(&error, OpenError::Missing { path, .. } if *path == log), "{error}");
    let place = dir.path().display().to_string();
    assert!(error.to_string().ends_with(&format!("or delete {place} to start without any data")), "{error}");
    // What the log had at an orderly end it has to have again, every byte of it.
    for len in [0, 20, whole.len() - 1] {
        fs::write(&log, &whole[..len]).unwrap();
        let error = open(&dir).unwrap_err();
        assert!(matches!(error, OpenError::Cut { before, .. } if before == whole.len() as u64), "{len}: {error}");
    }
    // After a disorderly one it is known that it was made.
    forget_mark(&dir);
    fs::write(&log, "").unwrap();
    assert!(matches!(open(&dir), Err(OpenError::Cut { bytes: 0, before: 20, .. })));
    fs::write(&log, &whole).unwrap();
    assert_eq!(keys(&open(&dir).unwrap()).await, ["a"]);
    fs::remove_file(&log).unwrap();
    fs::remove_file(dir.path().join("newest")).unwrap();
    assert!(keys(&open(&dir).unwrap()).await.is_empty(), "without a mark it is a new store");
}

/// A directory with a snapshot and a log after it.
async fn with_snapshot() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).unwrap();
    let big = Bytes::from(vec![b'x'; 1 << 20]);
    for n in 0..20 {
        let key = format!("{}", n % 3);
        store
            .write(Write {
                key: key.into(),
                expect: Expect::Any,
                change: Change::Put { value: big.clone(), expires: None },
            })
            .await
            .unwrap();
    }
    store.compact(store.revision() - 2).await;
    put(&store, "late").await.unwrap();
    for _ in 0..1000 {
        if names(&dir).iter().any(|name| name.starts_with("snapshot") && !name.ends_with("tmp")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.tick().await;
    drop(store);
    dir
}

#[tokio::test]
async fn a_snapshot_and_the_log_after_it_give_everything() {
    let dir = with_snapshot().await;
    assert_eq!(names(&dir).len(), 4, "lock, mark, snapshot, one segment: {:?}", names(&dir));
    let store = open(&dir).unwrap();
    assert_eq!((store.revision(), store.compacted()), (22, 19));
    assert_eq!(keys(&store).await, ["0", "1", "2", "late"]);
    let entry = store.get("0", None).await.unwrap().unwrap();
    assert_eq!((entry.create_revision, entry.mod_revision, entry.version), (2, 20, 7));
    assert!(store.watch(&Range::prefix(""), 19).await.is_ok());
    assert!(store.watch(&Range::prefix(""), 18).await.is_err());
}

#[tokio::test]
async fn a_damaged_snapshot_is_refused() {
    let dir = with_snapshot().await;
    let path = file(&dir, "snapshot");
    let whole = fs::read(&path).unwrap();
    for at in [3, 30, 1000, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(open(&dir), Err(OpenError::Damaged { path: own, .. }) if own == path), "{at}");
    }
    for len in [0, 20, 1000, whole.len() - 1, whole.len() - 17] {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(matches!(open(&dir), Err(OpenError::Damaged { .. })), "{len}");
    }
    fs::remove_file(&path).unwrap();
    let error = open(&dir).unwrap_err().to_string();
    assert!(error.contains("it starts at revision") && error.contains("end at 1"), "{error}");
}

#[tokio::test]
async fn leftovers_of_a_crash_during_clean_up_are_removed() {
    let dir = with_snapshot().await;
    fs::write(dir.path().join("snapshot-00000000000000000050.tmp"), "half").unwrap();
    fs::write(dir.path().join("snapshot-00000000000000000002"), "an old one").unwrap();
    fs::write(dir.path().join("log-00000000000000000002"), "an old one").unwrap();
    // A segment that was just being made.
    fs::write(dir.path().join("log-00000000000000000023"), "STN").unwrap();
    let before = names(&dir).len();
    let store = open(&dir).unwrap();
    assert_eq!(names(&dir).len(), before - 4 + usize::from(names(&dir).iter().any(|name| name.ends_with("23"))));
    assert_eq!(keys(&store).await, ["0", "1", "2", "late"]);
    put(&store, "later").await.unwrap();
    drop(store);
    assert_eq!(open(&dir).unwrap().revision(), 23);
}

#[tokio::test]
async fn nobody_else_reads_the_files() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = with_snapshot().await;
    for name in ["log", "snapshot"] {
        assert_eq!(mode(&file(&dir, name)), 0o600, "{name}");
    }
    let made = dir.path().join("made/for/this");
    drop(Embedded::open(&made, Options::default()).unwrap());
    assert_eq!(mode(&made), 0o700);
}
