//! The audit log's file, and those that it was before: at its largest size it is renamed by the time, and a new one begun
//! (as upstream's log does, under the same names).

use crate::server::Clock;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The time in the names of older files.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S.%3f";

/// When a file is full, and how long older ones are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The largest size of a file, in bytes; 0 for any.
    pub max_size: u64,
    /// How many older files are kept; 0 for all.
    pub max_backups: usize,
    /// For how many days older files are kept; 0 for ever.
    pub max_age: i64,
}

/// A file that takes lines, and makes way for a new one when it is full.
pub(super) struct Rotating {
    path: PathBuf,
    file: File,
    size: u64,
    rotation: Rotation,
    clock: Clock,
}

impl Rotating {
    /// Opens the file behind what is there.
    pub fn open(path: &Path, rotation: Rotation, clock: Clock) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        let mut opened = Rotating { path: path.to_owned(), file, size, rotation, clock };
        // What became too old while nobody looked.
        opened.forget()?;
        Ok(opened)
    }

    /// Puts the file aside and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.aside())?;
        self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        self.size = 0;
        self.forget()
    }

    /// The part of the file's name before the time in older ones, and the part after it.
    fn around(&self) -> (String, String) {
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = self.path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
        (format!("{}-", part(self.path.file_stem())), extension)
    }

    /// The name for the file when it is put aside; one that is not taken.
    fn aside(&self) -> PathBuf {
        let ((before, after), mut time) = (self.around(), (self.clock)());
        loop {
            let path = self.path.with_file_name(format!("{before}{}{after}", time.strftime(STAMP)));
            if !path.exists() {
                return path;
            }
            time += jiff::SignedDuration::from_millis(1);
        }
    }

    /// Removes older files that are too many or too old.
    fn forget(&mut self) -> io::Result<()> {
        if self.rotation.max_backups == 0 && self.rotation.max_age == 0 {
            return Ok(());
        }
        let (before, after) = self.around();
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut older: Vec<String> = fs::read_dir(folder)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| {
                let stamp = name.strip_prefix(&before).and_then(|rest| rest.strip_suffix(&after));
                stamp.is_some_and(|stamp| jiff::civil::DateTime::strptime(STAMP, stamp).is_ok())
            })
            .collect();
        // The latest first: their names are as long as each other, and sort by the time.
        older.sort_unstable_by(|a, b| b.cmp(a));
        let days = jiff::SignedDuration::from_hours(24 * self.rotation.max_age);
        let oldest = ((self.clock)() - days).strftime(STAMP).to_string();
        let oldest = format!("{before}{oldest}{after}");
        for (place, name) in older.iter().enumerate() {
            let many = self.rotation.max_backups > 0 && place >= self.rotation.max_backups;
            if many || self.rotation.max_age > 0 && *name < oldest {
                fs::remove_file(folder.join(name))?;
            }
        }
        Ok(())
    }
}

impl Write for Rotating {
    /// Takes a line as a whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self.rotation.max_size > 0 && self.size > 0 && self.size + length > self.rotation.max_size {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.size += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    #[test]
    fn full_files_are_put_aside_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let hours = Arc::new(AtomicI64::new(0));
        let now = hours.clone();
        let clock: Clock = Arc::new(move || jiff::Timestamp::from_second(now.load(Ordering::SeqCst) * 3600).unwrap());
        let rotation = Rotation { max_size: 10, max_backups: 2, max_age: 1 };
        let mut log = Rotating::open(&path, rotation, clock.clone()).unwrap();
        let others = ["audit-note.log", "other-1970-01-01T00-00-00.000.log"];
        others.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        let names = || {
            let mut names: Vec<String> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| !others.contains(&name.as_str()))
                .collect();
            names.sort();
            names
        };
        // A line that is too long by itself is written all the same.
        for line in ["12345\n", "678\n", "9\n", "a line that is long\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let first = ["audit-1970-01-01T00-00-00.000.log", "audit-1970-01-01T00-00-00.001.log", "audit.log"];
        assert_eq!(names(), first);
        assert_eq!(fs::read_to_string(folder.path().join(first[0])).unwrap(), "12345\n678\n");
        assert_eq!(fs::read_to_string(folder.path().join(first[1])).unwrap(), "9\n");
        drop(log);
        let mut log = Rotating::open(&path, rotation, clock.clone()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a line that is long\n");
        hours.store(5, Ordering::SeqCst);
        log.write_all(b"c\n").unwrap();
        assert_eq!(names(), ["audit-1970-01-01T00-00-00.001.log", "audit-1970-01-01T05-00-00.000.log", "audit.log"]);
        hours.store(26, Ordering::SeqCst);
        log.write_all(b"a line that is long\n").unwrap();
        assert_eq!(names(), ["audit-1970-01-01T05-00-00.000.log", "audit-1970-01-02T02-00-00.000.log", "audit.log"]);
        hours.store(80, Ordering::SeqCst);
        drop(log);
        Rotating::open(&path, rotation, clock).unwrap();
        assert_eq!(names(), ["audit.log"]);
    }
}
