//! Hashes, identifiers and keys.

use super::encoding::bytes;
use super::{Table, arg, int};
use crate::value::{Result, Special, Val};
use crate::world::World;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{self, Algorithm};
use std::fmt::Write;

pub(super) const TABLE: Table = &[
    ("sha1sum", "s", |w, a| hash(w, a, &digest::SHA1_FOR_LEGACY_USE_ONLY)),
    ("sha256sum", "s", |w, a| hash(w, a, &digest::SHA256)),
    ("sha512sum", "s", |w, a| hash(w, a, &digest::SHA512)),
    ("adler32sum", "s", |w, a| {
        let (low, high) = bytes(&arg(a, 0)).iter().fold((1u32, 0u32), |(low, high), b| {
            let low = (low + u32::from(*b)) % 65_521;
            (low, (high + low) % 65_521)
        });
        w.heap.string((high << 16 | low).to_string())
    }),
    ("uuidv4", "", |w, _| {
        let mut id = [0; 16];
        w.random(&mut id);
        let id = uuid(id, 4);
        w.heap.string(id)
    }),
    ("deterministicUUID", "a*", |w, a| {
        let mut parts = Vec::new();
        for part in a {
            parts.push(super::strval(&w.heap, part)?.trim().to_owned());
        }
        let sum = digest::digest(&digest::SHA256, parts.join("\u{1f}").as_bytes());
        let mut id = [0; 16];
        id.iter_mut().zip(sum.as_ref()).for_each(|(to, from)| *to = *from);
        w.heap.string(uuid(id, 5).to_uppercase())
    }),
    ("randBytes", "i", |w, a| {
        let count = usize::try_from(int(a, 0)).map_err(|_| "runtime error: makeslice: len out of range")?;
        w.heap.charge(count.saturating_mul(2))?;
        let mut out = vec![0; count];
        w.random(&mut out);
        w.heap.string(STANDARD.encode(out))
    }),
    ("generateAgeKey", "", |w, _| {
        let mut secret = [0; 32];
        w.random(&mut secret);
        let public = x25519_dalek::x25519(secret, x25519_dalek::X25519_BASEPOINT_BYTES);
        let fields = vec![
            ("Identity", bech32("age-secret-key-", &secret).to_uppercase()),
            ("Recipient", bech32("age", &public)),
        ];
        Ok(Val::special(Special::Struct("template.AgeKey", fields)))
    }),
];

fn hash<'a>(w: &mut World<'a>, a: &[Val<'a>], algorithm: &'static Algorithm) -> Result<Val<'a>> {
    let text = arg(a, 0);
    let input = bytes(&text);
    w.heap.charge(input.len() / 16 + 128)?;
    w.heap.string(hex(digest::digest(algorithm, input).as_ref()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// Sixteen bytes as an identifier of a version (RFC 9562).
fn uuid(mut id: [u8; 16], version: u8) -> String {
    id[6] = id[6] & 0x0f | version << 4;
    id[8] = id[8] & 0x3f | 0x80;
    let h = hex(&id);
    format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
}

/// Bytes in Bech32 (BIP 173), as age writes keys.
fn bech32(prefix: &str, data: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let mut digits: Vec<u8> = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for b in data {
        bits = bits << 8 | u32::from(*b);
        count += 8;
        while count >= 5 {
            count -= 5;
            digits.push((bits >> count & 31) as u8);
        }
    }
    if count > 0 {
        digits.push((bits << (5 - count) & 31) as u8);
    }
    let checksum = |values: &[u8]| {
        const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
        values.iter().fold(1u32, |sum, v| {
            let next = (sum & 0x1ff_ffff) << 5 ^ u32::from(*v);
            GENERATOR.iter().enumerate().fold(next, |n, (i, g)| if sum >> (25 + i) & 1 == 1 { n ^ g } else { n })
        })
    };
    let mut values: Vec<u8> = prefix.bytes().map(|b| b >> 5).collect();
    values.push(0);
    values.extend(prefix.bytes().map(|b| b & 31));
    values.extend(&digits);
    values.extend([0; 6]);
    let sum = checksum(&values) ^ 1;
    digits.extend((0..6).map(|i| (sum >> (5 * (5 - i)) & 31) as u8));
    let body: String = digits.iter().map(|d| char::from(ALPHABET[usize::from(*d) % 32])).collect();
    format!("{prefix}1{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_age_writes_them() {
        // The test vector of Bech32, and one of age's own.
        assert_eq!(bech32("a", &[]), "a12uel5l");
        let secret = [0x42; 32];
        let key = bech32("age-secret-key-", &secret).to_uppercase();
        assert!(key.starts_with("AGE-SECRET-KEY-1") && key.len() == 74, "{key}");
    }

    #[test]
    fn identifiers_have_their_version() {
        assert_eq!(uuid([0xff; 16], 4), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
