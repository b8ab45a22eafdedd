//! The usages of certificates by the names that the API has for them.

use super::request::Error;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::flagset::FlagSet;
use x509_cert::ext::pkix::KeyUsages;

/// Usages of the key, bits of one extension.
const KEY: [(&str, KeyUsages); 10] = [
    ("signing", KeyUsages::DigitalSignature),
    ("digital signature", KeyUsages::DigitalSignature),
    ("content commitment", KeyUsages::NonRepudiation),
    ("key encipherment", KeyUsages::KeyEncipherment),
    ("data encipherment", KeyUsages::DataEncipherment),
    ("key agreement", KeyUsages::KeyAgreement),
    ("cert sign", KeyUsages::KeyCertSign),
    ("crl sign", KeyUsages::CRLSign),
    ("encipher only", KeyUsages::EncipherOnly),
    ("decipher only", KeyUsages::DecipherOnly),
];

/// Purposes, identifiers of the other.
const EXTENDED: [(&str, &str); 13] = [
    ("any", "2.5.29.37.0"),
    ("server auth", "1.3.6.1.5.5.7.3.1"),
    ("client auth", "1.3.6.1.5.5.7.3.2"),
    ("code signing", "1.3.6.1.5.5.7.3.3"),
    ("email protection", "1.3.6.1.5.5.7.3.4"),
    ("s/mime", "1.3.6.1.5.5.7.3.4"),
    ("ipsec end system", "1.3.6.1.5.5.7.3.5"),
    ("ipsec tunnel", "1.3.6.1.5.5.7.3.6"),
    ("ipsec user", "1.3.6.1.5.5.7.3.7"),
    ("timestamping", "1.3.6.1.5.5.7.3.8"),
    ("ocsp signing", "1.3.6.1.5.5.7.3.9"),
    ("microsoft sgc", "1.3.6.1.4.1.311.10.3.3"),
    ("netscape sgc", "2.16.840.1.113730.4.1"),
];

/// Usages as a certificate has them: the bits of the key's, and the purposes in order, each once.
pub(super) fn read(names: &[&str]) -> Result<(FlagSet<KeyUsages>, Vec<ObjectIdentifier>), Error> {
    let (mut key, mut extended) = (FlagSet::default(), Vec::new());
    let mut unknown = Vec::new();
    for name in names {
        if let Some((_, bit)) = KEY.iter().find(|(known, _)| known == name) {
            key |= *bit;
        } else if let Some((_, identifier)) = EXTENDED.iter().find(|(known, _)| known == name) {
            let identifier = ObjectIdentifier::new(identifier).map_err(|e| e.to_string())?;
            if !extended.contains(&identifier) {
                extended.push(identifier);
            }
        } else {
            unknown.push(format!("{name:?}"));
        }
    }
    if unknown.is_empty() {
        Ok((key, extended))
    } else {
        Err(format!("unrecognized usage values: {}", unknown.join(" ")))
    }
}
