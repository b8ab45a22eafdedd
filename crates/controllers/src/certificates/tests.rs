//! What is signed, and what a certificate says.

use super::authority::Authority;
use super::request::Request;
use super::signers::{Verdict, verdict};
use rcgen::{CertificateParams, DnType, IsCa, KeyPair, SanType};
use std::time::Duration;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const NODE: &str = "system:node:one";

/// A request for a subject with these organisations, and what else `change` asks for.
fn request(name: &str, organisation: &str, change: impl FnOnce(&mut CertificateParams)) -> Request {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, organisation);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    Request::from_pem(params.serialize_request(&key).unwrap().pem().unwrap().as_bytes()).unwrap()
}

fn authority(change: impl FnOnce(&mut CertificateParams)) -> (Authority, Vec<u8>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "root");
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (Authority::from_pem(&certificate.pem(), &key.serialize_pem()).unwrap(), certificate.der().to_vec())
}

fn der(pem: &str) -> Vec<u8> {
    x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

#[test]
fn each_signer_signs_what_is_for_it() {
    const CLIENT: &[&str] = &["client auth", "digital signature", "key encipherment"];
    const SERVER: &[&str] = &["server auth", "digital signature"];
    let san = |name: &str| {
        let name = SanType::DnsName(name.try_into().unwrap());
        move |params: &mut CertificateParams| params.subject_alt_names.push(name)
    };
    let plain = || request(NODE, "system:nodes", |_| {});
    let named = || request(NODE, "system:nodes", san("one.example.com"));
    let mail = SanType::Rfc822Name("a@example.com".try_into().unwrap());
    let refuse = |why: &str| Verdict::Refuse(why.to_owned());
    for (signer, request, usages, expected) in [
        ("kube-apiserver-client", request("jane", "dev", |_| {}), &["client auth"][..], Verdict::Sign),
        (
            "kube-apiserver-client",
            request("jane", "dev", |_| {}),
            &["client auth", "server auth"],
            refuse("invalid usage for client certificate: server auth"),
        ),
        (
            "kube-apiserver-client",
            request("jane", "dev", |_| {}),
            &["digital signature"],
            refuse("missing required usage for client certificate: client auth"),
        ),
        ("kube-apiserver-client-kubelet", plain(), CLIENT, Verdict::Sign),
        ("kube-apiserver-client-kubelet", plain(), &CLIENT[..2], Verdict::Sign),
        (
            "kube-apiserver-client-kubelet",
            plain(),
            SERVER,
            refuse("usages did not match [client auth digital signature key encipherment]"),
        ),
        (
            "kube-apiserver-client-kubelet",
            request(NODE, "dev", |_| {}),
            CLIENT,
            refuse("subject organization is not system:nodes"),
        ),
        (
            "kube-apiserver-client-kubelet",
            request("jane", "system:nodes", |_| {}),
            CLIENT,
            refuse("subject common name does not begin with system:node:"),
        ),
        ("kube-apiserver-client-kubelet", named(), CLIENT, refuse("DNS subjectAltNames are not allowed")),
        ("kubelet-serving", named(), SERVER, Verdict::Sign),
        ("kubelet-serving", plain(), SERVER, refuse("DNS or IP subjectAltName is required")),
        (
            "kubelet-serving",
            request(NODE, "system:nodes", |params| {
                san("one.example.com")(params);
                params.subject_alt_names.push(mail);
            }),
            SERVER,
            refuse("Email subjectAltNames are not allowed"),
        ),
        (
            "kubelet-serving",
            named(),
            CLIENT,
            refuse("usages did not match [digital signature key encipherment server auth]"),
        ),
        ("legacy-unknown", plain(), &["any"], Verdict::Sign),
        ("other", plain(), CLIENT, Verdict::Ignore),
    ] {
        assert_eq!(verdict(&format!("kubernetes.io/{signer}"), &request, usages), expected, "{signer} {usages:?}");
    }
}

#[test]
fn a_certificate_says_what_was_asked_for() {
    let (authority, root) = authority(|_| {});
    let request = request("jane", "dev", |params| {
        params.subject_alt_names.push(SanType::IpAddress([10, 0, 0, 1].into()));
    });
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let usages = ["digital signature", "client auth", "s/mime", "email protection"];
    let pem = authority.sign(&request, &usages, now, Duration::from_secs(3600)).unwrap();
    let der = der(&pem);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let (_, root) = X509Certificate::from_der(&root).unwrap();
    certificate.verify_signature(Some(root.public_key())).unwrap();
    assert_eq!(certificate.subject().to_string(), "CN=jane, O=dev");
    assert_eq!(certificate.issuer().to_string(), "CN=root");
    let validity = certificate.validity();
    assert_eq!(validity.not_before.timestamp(), now.as_second() - 300);
    assert_eq!(validity.not_after.timestamp(), now.as_second() + 3600);
    let usage = certificate.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && !usage.key_encipherment() && !usage.key_cert_sign());
    let purposes = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(purposes.client_auth && purposes.email_protection && !purposes.server_auth && !purposes.any);
    assert!(!certificate.is_ca());
    let names = &certificate.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(names[..], [GeneralName::IPAddress(&[10, 0, 0, 1])]);
}

#[test]
fn a_certificate_ends_with_its_authority() {
    let end = rcgen::date_time_ymd(2026, 6, 1);
    let (authority, _) = authority(|params| params.not_after = end);
    let request = request("jane", "dev", |_| {});
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let pem = authority.sign(&request, &["client auth"], now, Duration::from_secs(365 * 24 * 3600)).unwrap();
    let der = der(&pem);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(certificate.validity().not_after.timestamp(), end.unix_timestamp());
}

#[test]
fn what_is_wrong_is_not_signed() {
    let (authority, _) = authority(|_| {});
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let sign = |request: &Request, usages: &[&str]| authority.sign(request, usages, now, Duration::from_secs(3600));
    let sound = request("jane", "dev", |_| {});
    assert_eq!(sign(&sound, &["flying"]).unwrap_err(), "unrecognized usage values: \"flying\"");
    // Another key than the one that signed the request.
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "jane");
    let key = KeyPair::generate().unwrap();
    let mut bytes = params.serialize_request(&key).unwrap().der().to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let text = x509_cert::der::pem::encode_string("CERTIFICATE REQUEST", x509_cert::der::pem::LineEnding::LF, &bytes);
    let forged = Request::from_pem(text.unwrap().as_bytes()).unwrap();
    assert!(sign(&forged, &["client auth"]).unwrap_err().starts_with("unable to verify certificate request signature"));
    assert!(
        Request::from_pem(b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n").is_err()
    );
}
