//! Private keys in PEM, as Go writes and reads them.
//!
//! Made are keys on the curve P-256, and of Ed25519: from the randomness of the rendering, in no time. Keys of RSA and DSA
//! are read, but not made: to look for primes takes seconds, which no template is to cost.

use crate::value::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{self, Signature};
use rcgen::{KeyPair, PublicKeyData, SignatureAlgorithm};

/// A private key.
pub(super) struct PrivateKey {
    kind: Kind,
    /// As PEM.
    pub pem: String,
}

enum Kind {
    /// With the public key as a point.
    P256(ecdsa::SigningKey, Vec<u8>),
    Other(Box<KeyPair>),
}

/// What stands before and between the numbers of a key on P-256 (RFC 5915).
const EC_HEAD: [u8; 7] = [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
const EC_MIDDLE: [u8; 17] =
    [0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0xa1, 0x44, 0x03, 0x42, 0x00];
/// The curve P-256, as keys name it.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// What the number of a key on P-256 comes after, in either of its forms.
const EC_NUMBER: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];
/// What stands before a key of Ed25519 (RFC 8410).
const ED25519_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// The algorithm RSA, as keys name it.
const RSA: [u8; 15] = [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

impl PrivateKey {
    /// A key on P-256. Random bytes that are no number of the curve (one of 2³² is not) are replaced by others.
    pub fn p256(mut random: impl FnMut() -> [u8; 32]) -> Result<Self> {
        let key = (0..8).find_map(|_| ecdsa::SigningKey::from_slice(&random()).ok());
        Ok(Self::on_p256(key.ok_or("failed to generate private key")?))
    }

    /// A key of Ed25519.
    pub fn ed25519(seed: [u8; 32]) -> Result<Self> {
        let der = [&ED25519_HEAD[..], &seed].concat();
        Self::other(&der, &rcgen::PKCS_ED25519, pem("PRIVATE KEY", &der))
    }

    fn on_p256(key: ecdsa::SigningKey) -> Self {
        let public = key.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        let der = [&EC_HEAD[..], &key.to_bytes(), &EC_MIDDLE, &public].concat();
        PrivateKey { kind: Kind::P256(key, public), pem: pem("EC PRIVATE KEY", &der) }
    }

    fn other(der: &[u8], algorithm: &'static SignatureAlgorithm, pem: String) -> Result<Self> {
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der.into(), algorithm).map_err(|e| e.to_string())?;
        Ok(PrivateKey { kind: Kind::Other(Box::new(pair)), pem })
    }

    /// Reads a key from PEM: on P-256, of Ed25519 or of RSA.
    pub fn read(text: &str) -> Result<Self> {
        let (label, der) = from_pem(text).ok_or("no PEM data in input")?;
        let holds = |part: &[u8]| der.windows(part.len()).any(|window| window == part);
        let kept = || pem(label, &der);
        match label {
            "PRIVATE KEY" | "EC PRIVATE KEY" if holds(&P256) => {
                let at = der.windows(EC_NUMBER.len()).position(|window| window == EC_NUMBER);
                let number = at.and_then(|at| der.get(at + EC_NUMBER.len()..)?.first_chunk::<32>());
                let key = number.and_then(|number| ecdsa::SigningKey::from_slice(number).ok());
                Ok(Self::on_p256(key.ok_or("parsing EC private key from PEM: it is no key on P-256")?))
            }
            "PRIVATE KEY" if der.starts_with(&ED25519_HEAD) => Self::other(&der, &rcgen::PKCS_ED25519, kept()),
            "PRIVATE KEY" if holds(&RSA) => Self::other(&der, &rcgen::PKCS_RSA_SHA256, kept()),
            "RSA PRIVATE KEY" => {
                let inner = [&[0x02, 0x01, 0x00][..], &RSA, &tagged(0x04, &der)].concat();
                let read = Self::other(&tagged(0x30, &inner), &rcgen::PKCS_RSA_SHA256, kept());
                read.map_err(|e| format!("parsing RSA private key from PEM: {e}"))
            }
            "PRIVATE KEY" | "EC PRIVATE KEY" => Err("x509: keys on P-256, of Ed25519 and RSA are known".to_owned()),
            _ if label.ends_with(" PRIVATE KEY") => Err(format!("invalid private key type {label}")),
            _ => Err(format!("no private key data in PEM block of type {label}")),
        }
    }
}

impl PublicKeyData for PrivateKey {
    fn der_bytes(&self) -> &[u8] {
        match &self.kind {
            Kind::P256(_, public) => public,
            Kind::Other(pair) => pair.der_bytes(),
        }
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match &self.kind {
            Kind::P256(..) => &rcgen::PKCS_ECDSA_P256_SHA256,
            Kind::Other(pair) => pair.algorithm(),
        }
    }
}

impl rcgen::SigningKey for PrivateKey {
    fn sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, rcgen::Error> {
        match &self.kind {
            // The same message always has the same signature (RFC 6979).
            Kind::P256(key, _) => {
                let signature: Signature = key.try_sign(message).map_err(|_| rcgen::Error::RemoteKeyError)?;
                Ok(signature.to_der().as_bytes().to_vec())
            }
            Kind::Other(pair) => pair.sign(message),
        }
    }
}

/// A value of DER.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match significant[..] {
        [] => out.push(0),
        [one] if one < 0x80 => out.push(one),
        _ => {
            out.push(0x80 | significant.len() as u8);
            out.extend(significant);
        }
    }
    out.extend(content);
    out
}

/// Bytes as a block of PEM.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    let text = STANDARD.encode(der);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, further) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = further;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The first block of PEM in a text: its label and its bytes.
pub(super) fn from_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, text) = text.split_once("-----BEGIN ")?;
    let (label, text) = text.split_once("-----")?;
    let (body, _) = text.split_once("-----END ")?;
    let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    Some((label, STANDARD.decode(body).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_short_as_possible() {
        for (length, head) in
            [(0, vec![4, 0]), (127, vec![4, 127]), (128, vec![4, 0x81, 128]), (256, vec![4, 0x82, 1, 0])]
        {
            assert_eq!(tagged(4, &vec![9; length])[..head.len()], head);
        }
    }

    #[test]
    fn keys_are_read_back_in_either_form() {
        for key in [PrivateKey::p256(|| [7; 32]).unwrap(), PrivateKey::ed25519([7; 32]).unwrap()] {
            let again = PrivateKey::read(&key.pem).unwrap();
            assert_eq!((again.der_bytes(), &again.pem), (key.der_bytes(), &key.pem));
        }
        // As other programs write one on P-256.
        let other = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        assert_eq!(PrivateKey::read(&other.serialize_pem()).unwrap().der_bytes(), other.der_bytes());
        for text in
            ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "-----BEGIN X-----\n-----END X-----"]
        {
            assert!(PrivateKey::read(text).is_err(), "{text}");
        }
    }
}
