//! `stanchion export` and `stanchion import`: everything that a store holds, as a stream, to another store.

mod format;

use crate::storage::{self, Storage, default_folder};
use crate::terminal::read_file;
use clap::Args as ClapArgs;
use std::fs::OpenOptions;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use store::{Embedded, Entry, Expect, ListOptions, Range, Revision, Store};
use store_etcd::Etcd;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// How many entries are moved in one piece.
const PAGE: usize = 1000;
/// What the keys of events begin with, which are deleted an hour after they were written.
const EVENTS: &str = "/registry/events/";
const EVENTS_STAY: Duration = Duration::from_secs(3600);

/// The flags that say which store.
#[derive(Debug, ClapArgs)]
#[group(skip)]
struct Place {
    /// Folder of a server's data [default: stanchion in the user's data folder]
    #[arg(long, value_name = "DIR", env = "STANCHION_DATA_DIR")]
    data_dir: Option<PathBuf>,

    #[command(flatten)]
    storage: storage::Args,
}

/// The flags of `stanchion export`.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub struct ExportArgs {
    #[command(flatten)]
    place: Place,

    /// File to write; without it the stream goes to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The flags of `stanchion import`.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub struct ImportArgs {
    #[command(flatten)]
    place: Place,

    /// File to read; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

impl Place {
    fn storage(&self) -> Result<Storage, Error> {
        let folder = self.data_dir.clone().map_or_else(default_folder, Ok)?;
        let mut storage = self.storage.storage(&folder)?;
        if let Storage::Etcd(options) = &mut storage {
            // That is the servers' business.
            options.compaction = Duration::ZERO;
        }
        Ok(storage)
    }
}

/// Writes everything that a store holds.
pub fn export(args: &ExportArgs) -> Result<(), Error> {
    let storage = args.place.storage()?;
    if let Storage::Folder(folder) = &storage
        && !folder.exists()
    {
        return Err(format!("{}: there is no data", folder.display()).into());
    }
    runtime()?.block_on(async {
        let store = storage.open().await?;
        let outcome = match &args.output {
            None => write(&*store, std::io::stdout().lock()).await.map(|(_, written)| written),
            Some(path) => {
                // Secrets are in it.
                let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
                let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
                match write(&*store, file).await {
                    Ok((file, written)) => file.sync_all().map(|()| written).map_err(Error::from),
                    Err(error) => Err(error),
                }
            }
        };
        store.close().await;
        let (revision, objects) = outcome?;
        eprintln!("exported {objects} objects as of version {revision}");
        Ok(())
    })
}

/// Writes the stream of a store, all at one revision; gives that and how many entries there are.
async fn write<W: Write>(store: &dyn Store, out: W) -> Result<(W, (Revision, u64)), Error> {
    let range = Range::prefix("/registry/");
    let mut options = ListOptions { limit: PAGE, ..ListOptions::default() };
    let mut page = store.list(&range, options.clone()).await?;
    let revision = page.revision;
    let mut progress = Progress::new(page.entries.len() as u64 + page.remaining);
    let mut writer = format::Writer::new(BufWriter::new(out), revision)?;
    loop {
        for entry in &page.entries {
            writer.entry(entry)?;
        }
        progress.add(page.entries.len());
        if page.remaining == 0 {
            break;
        }
        options = ListOptions { after: page.entries.last().map(|e| e.key.clone()), at: Some(revision), ..options };
        page = store.list(&range, options.clone()).await?;
    }
    let out = writer.finish()?.into_inner().map_err(|error| error.to_string())?;
    Ok((out, (revision, progress.done)))
}

/// Puts everything of a stream into a store that is empty.
pub fn import(args: &ImportArgs) -> Result<(), Error> {
    let storage = args.place.storage()?;
    let text = read_file(&args.file)?;
    let (revision, entries) = format::read(&text).map_err(|why| format!("{}: {why}", args.file.display()))?;
    drop(text);
    let objects = entries.len();
    match &storage {
        Storage::Folder(folder) => {
            restore(folder, revision, entries)?;
            eprintln!("imported {objects} objects as of version {revision}, each with the version that it had");
            Ok(())
        }
        Storage::Etcd(options) => runtime()?.block_on(async {
            let store = Etcd::open((**options).clone()).await?;
            let outcome = fill(&store, revision, entries).await;
            store.close().await;
            let first = outcome?;
            eprintln!("imported {objects} objects, with new versions from {first} on: clients have to read anew");
            Ok(())
        }),
        Storage::Memory => Ok(()),
    }
}

/// Makes the folder of an embedded store. Everything keeps its versions.
fn restore(folder: &Path, revision: Revision, entries: Vec<Entry>) -> Result<(), Error> {
    if folder.read_dir().is_ok_and(|mut files| files.next().is_some()) {
        return Err(format!("{}: there is data already", folder.display()).into());
    }
    let entries = entries.into_iter().map(|entry| (expires(&entry), entry)).map(|(expires, entry)| (entry, expires));
    Ok(Embedded::restore(folder, revision, entries.collect())?)
}

/// Fills a store that gives its own versions: all are greater than any of the old ones, so that no client takes an old
/// version for a new one. Gives the first.
async fn fill(store: &Etcd, revision: Revision, entries: Vec<Entry>) -> Result<Revision, Error> {
    let there = store.count(&Range::prefix("/registry/")).await?;
    if there > 0 {
        return Err(format!("there are {there} objects below the prefix already").into());
    }
    let behind = revision.saturating_sub(store.revision());
    let mut progress = Progress::new(behind + entries.len() as u64);
    store.advance_to(revision, |written| progress.add(written)).await?;
    let first = store.revision() + 1;
    for piece in entries.chunks(PAGE) {
        let writes = piece.iter().map(|entry| {
            let write = store::Write::put(entry.key.clone(), Expect::Absent, entry.value.clone());
            expires(entry).map_or(write.clone(), |at| write.expiring(at))
        });
        for (entry, outcome) in piece.iter().zip(store.write_all(writes.collect()).await) {
            let unfinished = "; the import is not complete: delete what is below the prefix before another try";
            outcome.map_err(|error| format!("{}: {error}{unfinished}", entry.key))?;
        }
        progress.add(piece.len());
    }
    // Read back, and compare.
    let mut options = ListOptions { limit: PAGE, ..ListOptions::default() };
    for piece in entries.chunks(PAGE) {
        let page = store.list(&Range::prefix("/registry/"), options.clone()).await?;
        let same = piece.iter().map(|e| (&e.key, &e.value)).eq(page.entries.iter().map(|e| (&e.key, &e.value)));
        if !same {
            return Err("what is in etcd is not what was imported: somebody else writes there".into());
        }
        options.after = page.entries.last().map(|entry| entry.key.clone());
    }
    Ok(first)
}

/// When an imported entry is deleted.
fn expires(entry: &Entry) -> Option<SystemTime> {
    entry.key.starts_with(EVENTS).then(|| SystemTime::now() + EVENTS_STAY)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Tells people on a terminal how far it is.
struct Progress {
    done: u64,
    all: u64,
    shown: bool,
}

impl Progress {
    fn new(all: u64) -> Self {
        Progress { done: 0, all, shown: std::io::stderr().is_terminal() }
    }

    fn add(&mut self, more: usize) {
        self.done += more as u64;
        if self.shown {
            eprint!("\r{} of {}", self.done, self.all.max(self.done));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
