//! The authority that signs what is approved: the one that the server's own certificates are from.

use super::request::{ALTERNATIVE_NAMES, Error, Request};
use super::usages;
use jiff::Timestamp;
use rcgen::{KeyPair, SigningKey};
use std::time::Duration;
use x509_cert::certificate::{Certificate, TbsCertificate, Version};
use x509_cert::der::asn1::{BitString, GeneralizedTime, ObjectIdentifier, OctetString, UtcTime};
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{self, Decode, DecodePem, Encode, EncodePem};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier,
};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::{Time, Validity};

/// How much earlier than now a certificate begins, for clocks that are behind.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// Certificates of less time than this do not lose any of it to [`BACKDATE`].
const SHORT: Duration = Duration::from_secs(8 * 3600);

/// The object identifiers, in certificates, of the algorithms that [`KeyPair`] signs with.
const ALGORITHMS: [(&rcgen::SignatureAlgorithm, &str); 4] = [
    (&rcgen::PKCS_ECDSA_P256_SHA256, "1.2.840.10045.4.3.2"),
    (&rcgen::PKCS_ECDSA_P384_SHA384, "1.2.840.10045.4.3.3"),
    (&rcgen::PKCS_ED25519, "1.3.101.112"),
    (&rcgen::PKCS_RSA_SHA256, "1.2.840.113549.1.1.11"),
];

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The certificate cannot be read.
    #[error("the certificate of the authority: {0}")]
    Certificate(der::Error),
    /// The key cannot be read.
    #[error("the key of the authority: {0}")]
    Key(rcgen::Error),
    /// The key is of a kind that nothing can be signed with here.
    #[error("the key of the authority is neither RSA, ECDSA (P-256, P-384) nor Ed25519")]
    Algorithm,
}

/// A certificate and its key, which sign others.
pub struct Authority {
    certificate: Certificate,
    key: KeyPair,
    algorithm: AlgorithmIdentifierOwned,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("subject", &self.certificate.tbs_certificate.subject).finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads a certificate and its key, both in PEM form.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let certificate = Certificate::from_pem(certificate).map_err(AuthorityError::Certificate)?;
        let key = KeyPair::from_pem(key).map_err(AuthorityError::Key)?;
        let name = ALGORITHMS.iter().find(|(algorithm, _)| key.is_compatible(algorithm));
        let oid = name.and_then(|(_, oid)| ObjectIdentifier::new(oid).ok()).ok_or(AuthorityError::Algorithm)?;
        // RSA's parameters are an explicit nothing, those of the others are absent (RFC 4055, 5758, 8410).
        let parameters = key.is_compatible(&rcgen::PKCS_RSA_SHA256).then(|| der::asn1::Null.into());
        Ok(Authority { certificate, key, algorithm: AlgorithmIdentifierOwned { oid, parameters } })
    }

    /// Signs a request for these usages; the certificate is in PEM form. It ends after `life`, or with the authority.
    pub(super) fn sign(
        &self,
        request: &Request,
        asked: &[&str],
        now: Timestamp,
        life: Duration,
    ) -> Result<String, Error> {
        request.verify()?;
        self.issue(request, usages::read(asked)?, validity(now, life, &self.certificate)?)?
            .to_pem(LineEnding::LF)
            .map_err(|e| e.to_string())
    }

    fn issue(
        &self,
        request: &Request,
        (key, extended): (der::flagset::FlagSet<x509_cert::ext::pkix::KeyUsages>, Vec<ObjectIdentifier>),
        validity: Validity,
    ) -> Result<Certificate, Error> {
        let text = |e: der::Error| e.to_string();
        let mut extensions = Vec::new();
        if !key.is_empty() {
            extensions.push(extension(&KeyUsage(key), true).map_err(text)?);
        }
        if !extended.is_empty() {
            extensions.push(extension(&ExtendedKeyUsage(extended), false).map_err(text)?);
        }
        let leaf = BasicConstraints { ca: false, path_len_constraint: None };
        extensions.push(extension(&leaf, true).map_err(text)?);
        if let Some(identifier) = self.identifier() {
            extensions.push(extension(&identifier, false).map_err(text)?);
        }
        if let Some(names) = request.alternative_names()? {
            // Who has no other name has to be known by these.
            let critical = request.name.is_empty();
            extensions.push(Extension { extn_id: ALTERNATIVE_NAMES, critical, extn_value: names });
        }
        let signed = TbsCertificate {
            version: Version::V3,
            serial_number: serial()?,
            signature: self.algorithm.clone(),
            issuer: self.certificate.tbs_certificate.subject.clone(),
            validity,
            subject: request.name.clone(),
            subject_public_key_info: request.key.clone(),
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: Some(extensions),
        };
        let signature = self.key.sign(&signed.to_der().map_err(text)?).map_err(|e| e.to_string())?;
        Ok(Certificate {
            tbs_certificate: signed,
            signature_algorithm: self.algorithm.clone(),
            signature: BitString::from_bytes(&signature).map_err(text)?,
        })
    }

    /// How a certificate names the key that signed it.
    fn identifier(&self) -> Option<AuthorityKeyIdentifier> {
        let extensions = self.certificate.tbs_certificate.extensions.as_ref()?;
        let own = extensions.iter().find(|e| e.extn_id == SubjectKeyIdentifier::OID)?;
        let key = SubjectKeyIdentifier::from_der(own.extn_value.as_bytes()).ok()?;
        Some(AuthorityKeyIdentifier { key_identifier: Some(key.0), ..AuthorityKeyIdentifier::default() })
    }
}

fn extension<T: AssociatedOid + Encode>(value: &T, critical: bool) -> der::Result<Extension> {
    Ok(Extension { extn_id: T::OID, critical, extn_value: OctetString::new(value.to_der()?)? })
}

/// From when to when a certificate is good.
fn validity(now: Timestamp, life: Duration, authority: &Certificate) -> Result<Validity, Error> {
    let since_epoch = Duration::from_secs(now.as_second().try_into().unwrap_or_default());
    let end = since_epoch + if life < SHORT { life } else { life.saturating_sub(BACKDATE) };
    let end = end.min(authority.tbs_certificate.validity.not_after.to_unix_duration());
    Ok(Validity { not_before: time(since_epoch.saturating_sub(BACKDATE))?, not_after: time(end)? })
}

/// A time as certificates have it: in the short form up to 2049 (RFC 5280).
fn time(since_epoch: Duration) -> Result<Time, Error> {
    let short = UtcTime::from_unix_duration(since_epoch).map(Time::UtcTime);
    short
        .or_else(|_| GeneralizedTime::from_unix_duration(since_epoch).map(Time::GeneralTime))
        .map_err(|e| e.to_string())
}

/// A serial number that nobody has seen: 128 bits by chance, positive.
fn serial() -> Result<SerialNumber, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| e.to_string())?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::new(&bytes).map_err(|e| e.to_string())
}
