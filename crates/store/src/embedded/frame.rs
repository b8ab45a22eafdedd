//! How records are laid out in the files.
//!
//! A file is a header and frames. All numbers are little-endian.
//!
//! ```text
//! header    magic (8 bytes), revision (u64), CRC-32 of the 16 bytes before (u32)
//! frame     length of the body (u32), CRC-32 of length and body (u32), body
//! body      kind (u8), then
//!   commit    time in ms (u64), first revision (u64), count (u32), records
//!   versions  count (u32), versions                 (snapshots only)
//!   end       how many versions there are (u64)     (snapshots only, last)
//!   closed    nothing: the store was closed in order
//! record    flags (u8: 1 put, 2 expires), key, [expiry in ms (u64)], [value]
//! version   key, create revision, mod revision, version, expiry in ms or 0 (u64 each), value
//! key, value   length (u32), bytes
//! ```
//!
//! A commit is one frame and one fsync, so that a frame is never followed by another unless it is durable.

use std::num::NonZeroU64;

use bytes::Bytes;

use crate::replica::{Record, Version};
use crate::{Key, Revision};

/// Starts a log file.
pub(super) const LOG_MAGIC: &[u8; 8] = b"STNLOG\x00\x01";
/// Starts a snapshot file.
pub(super) const SNAPSHOT_MAGIC: &[u8; 8] = b"STNSNP\x00\x01";
/// Length of a file's header.
pub(super) const HEADER_LEN: u64 = 20;
/// Length of a frame without its body.
pub(super) const FRAME_HEAD: u64 = 8;

const COMMIT: u8 = 1;
const VERSIONS: u8 = 2;
const END: u8 = 3;
const CLOSED: u8 = 4;

const PUT: u8 = 1;
const EXPIRES: u8 = 2;

/// What a frame holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    Commit { millis: u64, records: Vec<Record> },
    Versions(Vec<(Key, Version)>),
    End { count: u64 },
    Closed,
}

/// A file's header.
pub(super) fn header(magic: &[u8; 8], revision: Revision) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(revision.to_le_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// The revision in a file's header, or what is wrong with it.
pub(super) fn read_header(bytes: &[u8], magic: &[u8; 8]) -> Result<Revision, &'static str> {
    let mut reader = Reader(bytes);
    let (found, revision) = (reader.take(8).ok_or("the header is cut off")?, reader.u64());
    let (Some(revision), Some(crc)) = (revision, reader.u32()) else { return Err("the header is cut off") };
    if bytes.get(..16).map(crc32fast::hash) != Some(crc) {
        return Err("the header's checksum is wrong");
    }
    if found.get(..7) != magic.get(..7) {
        return Err("this is not a file of the store");
    }
    if found != magic {
        return Err("the file's format is of another version of the program");
    }
    Ok(revision)
}

/// Fills `frame` with a commit's frame. The records' revisions follow each other.
pub(super) fn write_commit(frame: &mut Vec<u8>, millis: u64, records: &[Record]) {
    begin(frame, COMMIT);
    frame.extend(millis.to_le_bytes());
    frame.extend(records.first().map_or(0, |record| record.revision).to_le_bytes());
    frame.extend(length(records.len()));
    for record in records {
        let expires = record.put.as_ref().and_then(|(_, expires)| *expires);
        let put = if record.put.is_some() { PUT } else { 0 };
        frame.push(put | if expires.is_some() { EXPIRES } else { 0 });
        write_bytes(frame, record.key.as_bytes());
        if let Some(expires) = expires {
            frame.extend(expires.get().to_le_bytes());
        }
        if let Some((value, _)) = &record.put {
            write_bytes(frame, value);
        }
    }
    finish(frame);
}

/// Fills `frame` with a piece of a snapshot.
pub(super) fn write_versions(frame: &mut Vec<u8>, versions: &[(Key, Version)]) {
    begin(frame, VERSIONS);
    frame.extend(length(versions.len()));
    for (key, version) in versions {
        write_bytes(frame, key.as_bytes());
        let expires = version.expires.map_or(0, NonZeroU64::get);
        for number in [version.create_revision, version.mod_revision, version.version, expires] {
            frame.extend(number.to_le_bytes());
        }
        write_bytes(frame, &version.value);
    }
    finish(frame);
}

/// Fills `frame` with a snapshot's last frame.
pub(super) fn write_end(frame: &mut Vec<u8>, count: u64) {
    begin(frame, END);
    frame.extend(count.to_le_bytes());
    finish(frame);
}

/// Fills `frame` with the mark of an orderly close.
pub(super) fn write_closed(frame: &mut Vec<u8>) {
    begin(frame, CLOSED);
    finish(frame);
}

/// The checksum a frame must carry.
pub(super) fn checksum(length: [u8; 4], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(body);
    hasher.finalize()
}

/// Reads the body of a frame whose checksum was right; `None` if it makes no sense.
pub(super) fn read_body(bytes: &[u8]) -> Option<Body> {
    let mut reader = Reader(bytes);
    let body = match reader.u8()? {
        COMMIT => {
            let (millis, first, count) = (reader.u64()?, reader.u64()?, reader.u32()?);
            // Six bytes are the least a record takes: a wrong count cannot make us reserve more than the file's size.
            let mut records = Vec::with_capacity((count as usize).min(bytes.len() / 6));
            for index in 0..u64::from(count) {
                records.push(reader.record(first.checked_add(index)?)?);
            }
            Body::Commit { millis, records }
        }
        VERSIONS => {
            let count = reader.u32()?;
            let mut versions = Vec::with_capacity((count as usize).min(bytes.len() / 40));
            for _ in 0..count {
                versions.push(reader.version()?);
            }
            Body::Versions(versions)
        }
        END => Body::End { count: reader.u64()? },
        CLOSED => Body::Closed,
        _ => return None,
    };
    reader.0.is_empty().then_some(body)
}

fn begin(frame: &mut Vec<u8>, kind: u8) {
    frame.clear();
    frame.extend([0; FRAME_HEAD as usize]);
    frame.push(kind);
}

fn finish(frame: &mut [u8]) {
    let Some((head, body)) = frame.split_at_mut_checked(FRAME_HEAD as usize) else { return };
    let length = length(body.len());
    let crc = checksum(length, body);
    head.copy_from_slice(&[length, crc.to_le_bytes()].concat());
}

/// Lengths fit: the writer bounds a commit's size far below 4 GiB.
fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

fn write_bytes(frame: &mut Vec<u8>, bytes: &[u8]) {
    frame.extend(length(bytes.len()));
    frame.extend(bytes);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    fn key(&mut self) -> Option<Key> {
        Some(std::str::from_utf8(self.bytes()?).ok()?.into())
    }

    /// A copy, so that the value does not keep the whole frame alive.
    fn value(&mut self) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(self.bytes()?))
    }

    fn record(&mut self, revision: Revision) -> Option<Record> {
        let flags = self.u8()?;
        let key = self.key()?;
        let expires = if flags & EXPIRES != 0 { NonZeroU64::new(self.u64()?) } else { None };
        let put = if flags & PUT != 0 { Some((self.value()?, expires)) } else { None };
        Some(Record { revision, key, put })
    }

    fn version(&mut self) -> Option<(Key, Version)> {
        let key = self.key()?;
        let (create_revision, mod_revision, version) = (self.u64()?, self.u64()?, self.u64()?);
        let expires = NonZeroU64::new(self.u64()?);
        Some((key, Version { value: self.value()?, create_revision, mod_revision, version, expires }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(frame: &[u8]) -> Option<Body> {
        let (head, body) = frame.split_at(8);
        assert_eq!(head[..4], (body.len() as u32).to_le_bytes());
        assert_eq!(head[4..], checksum(head[..4].try_into().unwrap(), body).to_le_bytes());
        read_body(body)
    }

    #[test]
    fn what_is_written_is_read() {
        let records = vec![
            Record { revision: 7, key: "a".into(), put: Some((Bytes::from("x"), None)) },
            Record { revision: 8, key: "ä".into(), put: Some((Bytes::new(), NonZeroU64::new(99))) },
            Record { revision: 9, key: "".into(), put: None },
        ];
        let mut frame = Vec::new();
        write_commit(&mut frame, 5, &records);
        assert_eq!(body_of(&frame), Some(Body::Commit { millis: 5, records }));
        let version = Version {
            value: Bytes::from("x"),
            create_revision: 1,
            mod_revision: 2,
            version: 3,
            expires: NonZeroU64::new(4),
        };
        let versions = vec![("k".into(), version)];
        write_versions(&mut frame, &versions);
        assert_eq!(body_of(&frame), Some(Body::Versions(versions)));
        write_end(&mut frame, 3);
        assert_eq!(body_of(&frame), Some(Body::End { count: 3 }));
        write_closed(&mut frame);
        assert_eq!(body_of(&frame), Some(Body::Closed));
        assert_eq!(read_header(&header(LOG_MAGIC, 12), LOG_MAGIC), Ok(12));
    }

    #[test]
    fn nonsense_is_refused() {
        let cases: [&[u8]; 6] = [&[], &[9], &[COMMIT], &[CLOSED, 0], &[END, 1], &[VERSIONS, 255, 255, 255, 255]];
        for body in cases {
            assert_eq!(read_body(body), None, "{body:?}");
        }
        let mut other = *LOG_MAGIC;
        other[7] = 2;
        for (bytes, message) in [
            (header(SNAPSHOT_MAGIC, 1), "this is not a file of the store"),
            (header(&other, 1), "the file's format is of another version of the program"),
            (vec![0; 20], "the header's checksum is wrong"),
            (vec![0; 19], "the header is cut off"),
        ] {
            assert_eq!(read_header(&bytes, LOG_MAGIC), Err(message));
        }
    }
}
