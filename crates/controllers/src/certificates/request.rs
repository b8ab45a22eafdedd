//! What somebody asks to be signed: a PKCS #10 request.

use std::net::IpAddr;
use x509_cert::der::asn1::{
    Any, Ia5StringRef, ObjectIdentifier, OctetString, PrintableStringRef, TeletexStringRef, Utf8StringRef,
};
use x509_cert::der::{Decode, DecodePem, Encode, Tag, Tagged};
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;
use x509_cert::request::CertReq;
use x509_cert::spki::SubjectPublicKeyInfoOwned;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

/// What is wrong, for people.
pub(super) type Error = String;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANISATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const EXTENSION_REQUEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.14");
/// Subject alternative names.
pub(super) const ALTERNATIVE_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// A request for a certificate.
pub(super) struct Request {
    /// For whom: what the authenticator reads as user and groups.
    pub subject: Name,
    /// The key that the certificate is about.
    pub key: SubjectPublicKeyInfoOwned,
    /// The further names that are asked for, as they are in the request.
    pub encoded_names: Option<OctetString>,
    names: Vec<GeneralName>,
    der: Vec<u8>,
}

impl Request {
    /// Reads a request; whether its signature is right is not known yet.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let read = CertReq::from_pem(pem).map_err(|e| e.to_string())?;
        let der = read.to_der().map_err(|e| e.to_string())?;
        let mut encoded_names = None;
        for attribute in read.info.attributes.iter().filter(|a| a.oid == EXTENSION_REQUEST) {
            for value in attribute.values.iter() {
                let extensions: Extensions = value.decode_as().map_err(|e| e.to_string())?;
                let found = extensions.into_iter().find(|e| e.extn_id == ALTERNATIVE_NAMES);
                encoded_names = encoded_names.or(found.map(|e| e.extn_value));
            }
        }
        let names = match &encoded_names {
            Some(encoded) => SubjectAltName::from_der(encoded.as_bytes()).map_err(|e| e.to_string())?.0,
            None => Vec::new(),
        };
        Ok(Request { subject: read.info.subject, key: read.info.public_key, encoded_names, names, der })
    }

    /// Whether whoever asks has the key.
    pub fn verify(&self) -> Result<(), Error> {
        let (_, read) = X509CertificationRequest::from_der(&self.der).map_err(|e| e.to_string())?;
        read.verify_signature().map_err(|e| format!("unable to verify certificate request signature: {e}"))
    }

    /// The subject's common name; the last if there are several.
    pub fn common_name(&self) -> String {
        self.values(COMMON_NAME).pop().unwrap_or_default()
    }

    /// The subject's organisations, in order.
    pub fn organisations(&self) -> Vec<String> {
        self.values(ORGANISATION)
    }

    pub fn has_host_names(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::DnsName(_)))
    }

    pub fn has_addresses(&self) -> bool {
        self.names.iter().any(|name| match name {
            GeneralName::IpAddress(bytes) => {
                let bytes = bytes.as_bytes();
                <[u8; 4]>::try_from(bytes).map(IpAddr::from).or(<[u8; 16]>::try_from(bytes).map(IpAddr::from)).is_ok()
            }
            _ => false,
        })
    }

    pub fn has_mail_addresses(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::Rfc822Name(_)))
    }

    pub fn has_uris(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::UniformResourceIdentifier(_)))
    }

    fn values(&self, kind: ObjectIdentifier) -> Vec<String> {
        let attributes = self.subject.0.iter().flat_map(|set| set.0.iter());
        attributes.filter(|a| a.oid == kind).filter_map(|a| text(&a.value)).collect()
    }
}

/// The text of a directory string.
fn text(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok().map(|s| s.as_str().to_owned()),
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|s| s.as_str().to_owned()),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok().map(|s| s.as_str().to_owned()),
        Tag::TeletexString => value.decode_as::<TeletexStringRef<'_>>().ok().map(|s| s.as_str().to_owned()),
        _ => None,
    }
}
