//! The files as the journal sees them: append, make durable, cut back. A seam, so that tests can fail any of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Who may read the files: whoever runs the server, for secrets are in them.
const PRIVATE: u32 = 0o600;

/// Makes files for writing.
pub(super) trait Disk: Send + Sync + 'static {
    /// An empty file; one of the same name is replaced.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// An existing file, to append to.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
}

/// A file being written.
pub(super) trait DiskFile: Send {
    /// Writes at the end of the file. After an error any part of it may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything written is durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to this length.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OsDisk;

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().append(true).create_new(true).mode(PRIVATE).open(path)?;
        Ok(Box::new(OsFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OsFile(OpenOptions::new().append(true).open(path)?)))
    }
}

struct OsFile(File);

impl DiskFile for OsFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
