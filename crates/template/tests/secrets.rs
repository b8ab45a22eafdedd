//! Sprig's functions for passwords, keys and certificates.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail")]

use object::Value;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use std::time::{Duration, UNIX_EPOCH};
use template::{Data, Functions, Limits, Settings, Template};
use x509_parser::prelude::*;

const NOW: u64 = 1_614_834_367;
/// A key that protects nothing.
const RSA: &str = include_str!("rsa.pem");

fn render(text: &str) -> Result<String, String> {
    render_within(text, Limits::default())
}

fn render_within(text: &str, limits: Limits) -> Result<String, String> {
    let settings = Settings { now: UNIX_EPOCH + Duration::from_secs(NOW), limits, ..Settings::default() };
    let template = Template::parse("t", text, Functions::Sprig).map_err(|e| e.to_string())?;
    let data = Value::from(object::map! { "rsa" => RSA });
    template.render(&Data::from(&data), &settings).map_err(|e| e.to_string())
}

fn fails(text: &str, why: &str) {
    let error = render(text).unwrap_err();
    assert!(error.contains(why), "{text}: {error}");
}

#[test]
fn derived_passwords_are_those_of_sprig() {
    // From Sprig's own tests.
    for (counter, kind, expected) in [
        (1, "long", "ZedaFaxcZaso9*"),
        (2, "long", "Fovi2@JifpTupx"),
        (1, "maximum", "pf4zS1LjCg&LjhsZ7T2~"),
        (1, "medium", "ZedJuz8$"),
        (1, "basic", "pIS54PLs"),
        (1, "short", "Zed5"),
        (1, "pin", "6685"),
        (1, "other", "cannot find password template other"),
    ] {
        let text = format!(r#"{{{{derivePassword {counter} "{kind}" "password" "user" "example.com"}}}}"#);
        assert_eq!(render(&text).as_deref(), Ok(expected), "{kind}");
    }
}

#[test]
fn hashes_of_passwords_are_such_as_bcrypt_knows() {
    let hash = render(r#"{{bcrypt "secret"}}"#).unwrap();
    assert!(hash.starts_with("$2a$10$") && bcrypt::verify("secret", &hash).unwrap(), "{hash}");
    let line = render(r#"{{htpasswd "ann" "secret"}}"#).unwrap();
    assert!(bcrypt::verify("secret", line.strip_prefix("ann:").unwrap()).unwrap(), "{line}");
    assert_eq!(render(r#"{{htpasswd "a:b" "secret"}}"#).as_deref(), Ok("invalid username: a:b"));
    assert!(render(r#"{{bcrypt (repeat 73 "x")}}"#).unwrap().ends_with("password length exceeds 72 bytes"));
}

#[test]
fn what_is_encrypted_is_decrypted_with_the_same_password_only() {
    assert_eq!(
        render(r#"{{"plaintext" | encryptAES "secretkey" | decryptAES "secretkey"}}"#).as_deref(),
        Ok("plaintext")
    );
    // From Sprig's own tests.
    let known = r#"{{"30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ=" | decryptAES "secretkey"}}"#;
    assert_eq!(render(known).as_deref(), Ok("plaintext"));
    assert_eq!(render(r#"{{encryptAES "k" ""}}{{decryptAES "k" ""}}"#).as_deref(), Ok(""));
    fails(r#"{{"plaintext" | encryptAES "one" | decryptAES "other"}}"#, "was not encrypted with this password");
    fails(r#"{{decryptAES "k" "?"}}"#, "illegal base64 data");
    fails(r#"{{decryptAES "k" "AAAA"}}"#, "too short");
}

/// Whether the certificate says what it should, and is signed with the key of `issuer` (both PEM).
fn is_signed_by(cert: &str, issuer: &str, algorithm: &'static dyn VerificationAlgorithm) -> bool {
    let (cert, issuer) = (der(cert), der(issuer));
    let (cert, issuer) = (X509Certificate::from_der(&cert).unwrap().1, X509Certificate::from_der(&issuer).unwrap().1);
    let key = UnparsedPublicKey::new(algorithm, &issuer.public_key().subject_public_key.data);
    cert.issuer() == issuer.subject() && key.verify(cert.tbs_certificate.as_ref(), &cert.signature_value.data).is_ok()
}

fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

#[test]
fn an_authority_signs_what_it_is_asked_to() {
    let names = r#""web" (list "10.0.0.1" "::1") (list "web.default.svc" "*.example.com") 90 $ca"#;
    let text = format!(
        r#"{{{{$ca := genCA "authority" 365}}}}{{{{$c := genSignedCert {names}}}}}{{{{$ca.Cert}}}}|{{{{$c.Cert}}}}|{{{{$c.Key}}}}|{{{{$ca.Key}}}}"#
    );
    let out = render(&text).unwrap();
    assert_eq!(render(&text).unwrap(), out, "the same seed makes the same certificates");
    let parts: Vec<&str> = out.split('|').collect();
    let [ca, cert, key, ca_key] = parts[..] else { panic!("{out}") };
    assert!(is_signed_by(ca, ca, &ECDSA_P256_SHA256_ASN1) && is_signed_by(cert, ca, &ECDSA_P256_SHA256_ASN1));
    assert!(key.starts_with("-----BEGIN EC PRIVATE KEY-----\n") && key != ca_key);
    let (ca, cert) = (der(ca), der(cert));
    let (ca, cert) = (X509Certificate::from_der(&ca).unwrap().1, X509Certificate::from_der(&cert).unwrap().1);
    assert!(ca.is_ca() && !cert.is_ca() && ca.key_usage().unwrap().unwrap().value.key_cert_sign());
    assert_eq!(cert.subject().to_string(), "CN=web");
    assert_eq!(cert.validity().not_before.timestamp(), i64::try_from(NOW).unwrap());
    assert_eq!(cert.validity().not_after.timestamp(), i64::try_from(NOW).unwrap() + 90 * 86_400);
    let usage = cert.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth);
    let names = &cert.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(
        names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "IPAddress(0a:00:00:01)",
            "IPAddress(00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01)",
            "DNSName(web.default.svc)",
            "DNSName(*.example.com)"
        ]
    );
}

#[test]
fn keys_may_be_given() {
    for (key, algorithm) in [
        (r#"(genPrivateKey "ecdsa")"#, &ECDSA_P256_SHA256_ASN1 as &'static dyn VerificationAlgorithm),
        (r#"(genPrivateKey "ed25519")"#, &ED25519),
        (".rsa", &RSA_PKCS1_2048_8192_SHA256),
    ] {
        let text = format!(
            r#"{{{{$k := {key}}}}}{{{{$ca := genCAWithKey "a" 1 $k}}}}{{{{$ca.Cert}}}}|{{{{(genSelfSignedCertWithKey "s" nil nil 1 $k).Cert}}}}|{{{{(genSignedCertWithKey "c" nil (list "d") 1 $ca $k).Cert}}}}|{{{{eq $ca.Key $k}}}}|{{{{$own := buildCustomCert (b64enc $ca.Cert) (b64enc $k)}}}}{{{{(genSignedCert "e" nil nil 1 $own).Cert}}}}"#
        );
        let out = render(&text).unwrap();
        let parts: Vec<&str> = out.split('|').collect();
        let [ca, own, cert, is_kept, other] = parts[..] else { panic!("{out}") };
        assert_eq!(is_kept, "true", "{key}");
        for (cert, issuer) in [(ca, ca), (own, own), (cert, ca), (other, ca)] {
            assert!(is_signed_by(cert, issuer, algorithm), "{key}");
        }
    }
}

#[test]
fn what_cannot_be_made_says_why() {
    assert_eq!(render(r#"{{genPrivateKey "x"}}"#).as_deref(), Ok("Unknown type x"));
    for (text, why) in [
        (r#"{{genPrivateKey "rsa"}}"#, "keys of type rsa are not made here: use ecdsa or ed25519"),
        (r#"{{genSelfSignedCert "c" (list "x") nil 1}}"#, "error parsing ip: x"),
        (r#"{{genSelfSignedCert "c" (list 1) nil 1}}"#, "error parsing ip: 1 is not a string"),
        (r#"{{genSelfSignedCert "c" nil (list 1) 1}}"#, "error processing alternate dns name: 1 is not a string"),
        (r#"{{genCA "c" 9223372036854775807}}"#, "a certificate cannot last 9223372036854775807 days"),
        (r#"{{genCA "c" -900000}}"#, "a certificate cannot last -900000 days"),
        (r#"{{genCAWithKey "c" 1 "x"}}"#, "parsing private key: no PEM data in input"),
        (r#"{{genSignedCert "c" nil nil 1 (dict)}}"#, "expected sprig.certificate; got map[string]interface {}"),
        (r#"{{genSignedCert "c" nil nil 1 nil}}"#, "cannot assign nil to sprig.certificate"),
        (r#"{{buildCustomCert "?" ""}}"#, "unable to decode base64 certificate"),
        (r#"{{buildCustomCert (b64enc "x") (b64enc (genPrivateKey "ecdsa"))}}"#, "unable to decode certificate"),
    ] {
        fails(text, why);
    }
}

#[test]
fn what_is_slow_is_counted() {
    // Each call is paid for, so that no template takes longer than some seconds.
    let limits = Limits { values: 16 << 20, ..Limits::default() };
    for text in [
        r#"{{range until 100}}{{derivePassword . "pin" "p" "u" "s"}}{{end}}"#,
        r#"{{range until 100000}}{{bcrypt "x"}}{{end}}"#,
        r#"{{range until 100000}}{{(genCA "c" 1).Cert | trunc 1}}{{end}}"#,
    ] {
        let error = render_within(text, limits).unwrap_err();
        assert!(error.contains("too many or too large values"), "{text}: {error}");
    }
}
