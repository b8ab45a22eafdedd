//! The packed form of long lists: JSON, compressed, in base 64.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use object::{Value, json};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// How a list is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// The longest list that is unpacked, in bytes: what comes from a cluster may claim to be anything.
const LONGEST: u64 = 256 << 20;

impl Compression {
    /// The value of `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }

    /// Reads `compression.type`.
    ///
    /// # Errors
    ///
    /// If it is none of the three.
    pub fn read(name: &str) -> Result<Self, String> {
        match name {
            "" => Ok(Compression::None),
            "gzip" => Ok(Compression::Gzip),
            "zstd" => Ok(Compression::Zstd),
            other => Err(format!("unknown compression type {other:?}")),
        }
    }
}

/// Packs a value.
pub fn pack(compression: Compression, value: &Value) -> String {
    let text = json::to_vec(value);
    let packed = match compression {
        Compression::None => text,
        Compression::Gzip => gzip(&text),
        Compression::Zstd => compress_to_vec(text.as_slice(), CompressionLevel::Fastest),
    };
    STANDARD.encode(packed)
}

/// Unpacks what [`pack`], or the original, packed.
///
/// # Errors
///
/// If the text is damaged, or longer than can be meant.
pub fn unpack(compression: Compression, text: &str) -> Result<Value, String> {
    let packed = STANDARD.decode(text).map_err(|error| format!("cannot decode compressed data: {error}"))?;
    let mut text = Vec::new();
    let read = match compression {
        Compression::None => packed.as_slice().take(LONGEST).read_to_end(&mut text),
        Compression::Gzip => GzDecoder::new(packed.as_slice()).take(LONGEST).read_to_end(&mut text),
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed.as_slice());
            decoder.map_err(std::io::Error::other).and_then(|decoder| decoder.take(LONGEST).read_to_end(&mut text))
        }
    };
    read.map_err(|error| format!("cannot decompress data: {error}"))?;
    json::parse(&text).map_err(|error| format!("cannot read decompressed data: {error}"))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let text: String = (0..2000).map(|n| format!(r#"{{"name":"n{n}","kind":"ConfigMap"}},"#)).collect();
        let value = json::parse(format!("[{}]", text.trim_end_matches(',')).as_bytes()).unwrap_or_default();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let packed = pack(compression, &value);
            assert_eq!(unpack(compression, &packed), Ok(value.clone()), "{compression:?}");
            assert_eq!(Compression::read(compression.name()), Ok(compression));
            if compression != Compression::None {
                assert!(packed.len() * 4 < text.len(), "{compression:?}: {} of {}", packed.len(), text.len());
            }
        }
        assert!(unpack(Compression::Gzip, "AAAA").is_err() && unpack(Compression::Zstd, "!").is_err());
    }
}
