//! What a directory knows of its own log: which segment is the newest, and how long that is at least.
//!
//! So a log that was deleted, or emptied, is told from a store that is new. The mark is written after what it names is
//! durable, and is not made durable itself: one that is missing or unreadable says nothing, one that is old says less.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::journal::{Active, segment_path};
use crate::{OpenError, Revision};

const NAME: &str = "newest";

/// The newest segment, as far as it was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The revision that the segment starts with.
    pub first: Revision,
    /// How many bytes of it are durable.
    pub bytes: u64,
}

impl Mark {
    /// The mark of a segment as it is now.
    pub fn of(active: &Active) -> Self {
        Mark { first: active.first, bytes: active.bytes }
    }

    /// What was noted in `dir`, if anything was.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(dir.join(NAME)).ok()?;
        let (name, bytes) = text.trim_end().split_once(' ')?;
        Some(Mark { first: name.strip_prefix("log-")?.parse().ok()?, bytes: bytes.parse().ok()? })
    }

    /// Notes it in `dir`. Where that fails, the mark before it goes on to hold.
    pub fn write(&self, dir: &Path) {
        let replace = || -> io::Result<()> {
            let new = dir.join(format!("{NAME}.tmp"));
            fs::write(&new, format!("log-{:020} {}\n", self.first, self.bytes))?;
            fs::rename(&new, dir.join(NAME))
        };
        if let Err(error) = replace() {
            tracing::warn!(%error, dir = %dir.display(), "cannot note which log is the newest");
        }
    }

    /// Refuses a directory whose newest segment is another than the noted one or one after it, or is shorter.
    pub fn check(&self, dir: &Path, newest: Option<&(Revision, PathBuf)>) -> Result<(), OpenError> {
        let noted = segment_path(dir, self.first);
        match newest {
            Some((first, _)) if *first > self.first => Ok(()),
            Some((first, path)) if *first == self.first => {
                let bytes = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or_default();
                self.check_length(path, bytes)
            }
            _ => Err(OpenError::Missing { path: noted, dir: dir.to_owned() }),
        }
    }

    /// Refuses the noted segment if only so many bytes of it are there.
    pub fn check_length(&self, path: &Path, bytes: u64) -> Result<(), OpenError> {
        if bytes >= self.bytes {
            return Ok(());
        }
        let (path, dir) = (path.to_owned(), path.parent().map(Path::to_owned).unwrap_or_default());
        Err(OpenError::Cut { path, bytes, before: self.bytes, dir })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_other_texts_say_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Mark::read(dir.path()), None);
        let mark = Mark { first: 12, bytes: 345 };
        mark.write(dir.path());
        assert_eq!(Mark::read(dir.path()), Some(mark));
        for text in ["", "log-", "log-5", "log-x 5", "log-5 x", "snapshot-5 5", "\0\0\0"] {
            fs::write(dir.path().join(NAME), text).unwrap();
            assert_eq!(Mark::read(dir.path()), None, "{text:?}");
        }
    }
}
