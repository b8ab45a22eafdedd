//! Whom a certificate names.

use super::UserInfo;
use ring::digest::{SHA256, digest};
use std::fmt::Write;
use x509_parser::asn1_rs::Tag;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate, X509Name};

/// What a client's certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The user.
    pub user: UserInfo,
    /// When the certificate is good no more, in seconds since 1970.
    pub end: i64,
}

/// The user that a client's certificate, in DER form, names: the common name is the user, the organisations are the
/// groups, and the certificate's fingerprint tells which of the user's credentials it was; a certificate without a
/// common name is nobody. That it is good is for the TLS layer to have seen.
pub fn user_of_certificate(der: &[u8]) -> Option<Certified> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let Subject { common_name, organizations } = Subject::of(certificate.subject())?;
    if common_name.is_empty() {
        return None;
    }
    let extra = [("authentication.kubernetes.io/credential-id".to_owned(), vec![credential(der)])].into();
    let user = UserInfo { name: common_name, groups: organizations, extra, ..UserInfo::default() }.authenticated();
    Some(Certified { user, end: certificate.validity().not_after.timestamp() })
}

/// What tells a certificate from others of the same user.
fn credential(der: &[u8]) -> String {
    let mut out = "X509SHA256=".to_owned();
    for byte in digest(&SHA256, der).as_ref() {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Whom a subject names. What approves and signs requests has to read it as what authenticates does, or else somebody
/// would become another one than was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The common name; of several the last one. Empty if there is none.
    pub common_name: String,
    /// The organisations, in order.
    pub organizations: Vec<String>,
}

impl Subject {
    /// Reads a subject as Go does; nothing if any part of it cannot be read, for it might be one that counts elsewhere.
    pub fn of(name: &X509Name<'_>) -> Option<Self> {
        let (mut common_name, mut organizations) = (String::new(), Vec::new());
        for attribute in name.iter_attributes() {
            let text = text(attribute)?;
            if *attribute.attr_type() == OID_X509_COMMON_NAME {
                common_name = text;
            } else if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
                organizations.push(text);
            }
        }
        Some(Subject { common_name, organizations })
    }
}

/// The text of an attribute, if it is one of its type.
fn text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    let bytes = attribute.attr_value().data;
    let printable = |b: &u8| b.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(b);
    let is_right = match attribute.attr_value().tag() {
        Tag::Utf8String | Tag::T61String => true,
        Tag::PrintableString => bytes.iter().all(printable),
        Tag::Ia5String => bytes.is_ascii(),
        Tag::NumericString => bytes.iter().all(|b| b.is_ascii_digit() || *b == b' '),
        _ => false,
    };
    is_right.then(|| String::from_utf8(bytes.to_vec()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name with these attributes: the last number of the type's identifier below 2.5.4, the tag, the value.
    fn name(attributes: &[(u8, u8, &str)]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()], content].concat();
        let sets = attributes.iter().map(|(oid, tag, value)| {
            let pair = [wrap(6, &[0x55, 4, *oid]), wrap(*tag, value.as_bytes())].concat();
            wrap(0x31, &wrap(0x30, &pair))
        });
        wrap(0x30, &sets.collect::<Vec<_>>().concat())
    }

    #[test]
    fn a_certificate_is_told_by_its_fingerprint() {
        let expected = "X509SHA256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(credential(b"abc"), expected);
    }

    #[test]
    fn a_subject_is_read_as_go_reads_it() {
        let [cn, o, utf8, printable, numeric, ia5] = [3, 10, 12, 19, 18, 22];
        for (attributes, expected) in [
            (&[(o, utf8, "dev"), (cn, printable, "jane"), (o, ia5, "ops")][..], Some(("jane", vec!["dev", "ops"]))),
            (&[(cn, utf8, "system:kube-controller-manager"), (cn, utf8, "jane")], Some(("jane", vec![]))),
            (&[(cn, numeric, "1 2")], Some(("1 2", vec![]))),
            (&[(cn, utf8, "jane"), (o, numeric, "system:masters")], None),
            (&[(cn, utf8, "jane"), (o, 30, "ab")], None),
            (&[(cn, printable, "a_b")], None),
            (&[], Some(("", vec![]))),
        ] {
            let bytes = name(attributes);
            let (_, read) = X509Name::from_der(&bytes).unwrap();
            let expected = expected.map(|(name, groups)| Subject {
                common_name: name.to_owned(),
                organizations: groups.into_iter().map(str::to_owned).collect(),
            });
            assert_eq!(Subject::of(&read), expected, "{attributes:?}");
        }
    }
}
