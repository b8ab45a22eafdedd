//! What somebody asks to be signed: a PKCS #10 request.

use apiserver::auth::{Subject, check_request, request_der};
use std::net::IpAddr;
use x509_cert::der::asn1::{ObjectIdentifier, OctetString};
use x509_cert::der::{Decode, Encode};
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

const EXTENSION_REQUEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.14");
/// Subject alternative names.
pub(super) const ALTERNATIVE_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// A request for a certificate.
pub(super) struct Request {
    /// Whom the certificate would name to this server.
    pub subject: Subject,
    /// The same as it stands in the request.
    pub name: Name,
    /// The key that the certificate is about.
    pub key: SubjectPublicKeyInfoOwned,
    /// The further names that are asked for, of the sorts that are signed.
    names: Vec<GeneralName>,
    der: Vec<u8>,
}

impl Request {
    /// Reads a request; whether its signature is right is not known yet.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let der = request_der(pem)?;
        let (rest, seen) = X509CertificationRequest::from_der(&der).map_err(|e| e.to_string())?;
        if !rest.is_empty() {
            return Err("there is more than a request".to_owned());
        }
        let subject = Subject::of(&seen.certification_request_info.subject).ok_or("the subject cannot be read")?;
        let text = |e: x509_cert::der::Error| e.to_string();
        let read = CertReq::from_der(&der).map_err(text)?.info;
        let mut names = Vec::new();
        for attribute in read.attributes.iter().filter(|a| a.oid == EXTENSION_REQUEST) {
            for value in attribute.values.iter() {
                let extensions: Extensions = value.decode_as().map_err(text)?;
                for extension in extensions.iter().filter(|e| e.extn_id == ALTERNATIVE_NAMES) {
                    names.extend(SubjectAltName::from_der(extension.extn_value.as_bytes()).map_err(text)?.0);
                }
            }
        }
        names.retain(is_signed);
        Ok(Request { subject, name: read.subject, key: read.public_key, names, der })
    }

    /// Whether whoever asks has the key.
    pub fn verify(&self) -> Result<(), Error> {
        check_request(&self.der).map_err(|e| format!("unable to verify certificate request signature: {e}"))
    }

    /// The further names as a certificate has them, if there are any.
    pub fn alternative_names(&self) -> Result<Option<OctetString>, Error> {
        if self.names.is_empty() {
            return Ok(None);
        }
        let encoded = SubjectAltName(self.names.clone()).to_der().and_then(OctetString::new);
        encoded.map(Some).map_err(|e| e.to_string())
    }

    pub fn has_host_names(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::DnsName(_)))
    }

    pub fn has_addresses(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::IpAddress(_)))
    }

    pub fn has_mail_addresses(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::Rfc822Name(_)))
    }

    pub fn has_uris(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::UniformResourceIdentifier(_)))
    }
}

/// Whether a name is of a sort that is signed; upstream leaves out the others.
fn is_signed(name: &GeneralName) -> bool {
    match name {
        GeneralName::DnsName(_) | GeneralName::Rfc822Name(_) | GeneralName::UniformResourceIdentifier(_) => true,
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            <[u8; 4]>::try_from(bytes).map(IpAddr::from).or(<[u8; 16]>::try_from(bytes).map(IpAddr::from)).is_ok()
        }
        _ => false,
    }
}
