//! Whether a request for a certificate (PKCS #10) is one, and signed with its own key. What is wrong is said as Go's
//! `crypto/x509` says it, as far as that is a matter of requests and not of how Go reads them.

use p521::ecdsa::signature::hazmat::PrehashVerifier;
use ring::digest::{self, Algorithm, SHA256, SHA384, SHA512};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_parser::asn1_rs::{Any, Header, Oid};
use x509_parser::oid_registry::{
    OID_EC_P256, OID_HASH_SHA1, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_NIST_HASH_SHA256,
    OID_NIST_HASH_SHA384, OID_NIST_HASH_SHA512, OID_PKCS1_MD5WITHRSAENC, OID_PKCS1_RSAENCRYPTION, OID_PKCS1_RSASSAPSS,
    OID_PKCS1_SHA1WITHRSA, OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
    OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
};
use x509_parser::prelude::{FromDer, X509CertificationRequest};
use x509_parser::signature_algorithm::RsaSsaPssParams;

/// What the block of a request is called.
const LABEL: &str = "CERTIFICATE REQUEST";
const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";
const RSA: &str = "crypto/rsa: verification error";
const ECDSA: &str = "x509: ECDSA verification failure";
const ED25519: &str = "x509: Ed25519 verification failure";

/// The content of the first block of a text in PEM form, which must be a request; what follows does not count.
pub fn request_der(pem: &[u8]) -> Result<Vec<u8>, String> {
    match x509_parser::pem::parse_x509_pem(pem) {
        Ok((_, block)) if block.label == LABEL => Ok(block.contents),
        _ => Err(format!("PEM block type must be {LABEL}")),
    }
}

/// Checks that a request in DER form can be read and is signed with the key that it is about.
pub fn check_request(der: &[u8]) -> Result<(), String> {
    let header =
        Header::from_der(der).ok().and_then(|(rest, header)| Some((rest.len(), header.length().definite().ok()?)));
    if header.is_none_or(|(there, told)| there < told) {
        return Err("asn1: syntax error: data truncated".to_owned());
    }
    let (rest, request) = X509CertificationRequest::from_der(der)
        .map_err(|_| "asn1: structure error: malformed certificate request".to_owned())?;
    if !rest.is_empty() {
        return Err("asn1: syntax error: trailing data".to_owned());
    }
    verify(&request)
}

/// How a signature is checked, and what is said of one that is wrong.
type Scheme = (&'static dyn VerificationAlgorithm, &'static str);

fn verify(request: &X509CertificationRequest<'_>) -> Result<(), String> {
    let info = &request.certification_request_info;
    let key = &info.subject_pki;
    let (data, signed) = (&*key.subject_public_key.data, &*request.signature_value.data);
    let (algorithm, parameters) = (&request.signature_algorithm.algorithm, &request.signature_algorithm.parameters);
    if *algorithm == OID_PKCS1_MD5WITHRSAENC {
        return Err("x509: cannot verify signature: insecure algorithm MD5-RSA".to_owned());
    }
    let kind = &key.algorithm.algorithm;
    let scheme = if *kind == OID_PKCS1_RSAENCRYPTION {
        rsa(algorithm, parameters.as_ref())
    } else if *kind == OID_KEY_TYPE_EC_PUBLIC_KEY {
        let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok()).ok_or(UNKNOWN)?;
        let digest = ecdsa_digest(algorithm).ok_or(UNKNOWN)?;
        if curve == OID_NIST_EC_P521 {
            return verify_p521(data, digest, info.raw, signed).ok_or_else(|| ECDSA.to_owned());
        }
        ecdsa(&curve, digest)
    } else {
        (*kind == OID_SIG_ED25519 && *algorithm == OID_SIG_ED25519).then_some((&signature::ED25519 as _, ED25519))
    };
    let (scheme, wrong): Scheme = scheme.ok_or(UNKNOWN)?;
    UnparsedPublicKey::new(scheme, data).verify(info.raw, signed).map_err(|_| wrong.to_owned())
}

fn rsa(algorithm: &Oid<'_>, parameters: Option<&Any<'_>>) -> Option<Scheme> {
    let known: [(&Oid<'_>, &dyn VerificationAlgorithm); 4] = [
        (&OID_PKCS1_SHA1WITHRSA, &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY),
        (&OID_PKCS1_SHA256WITHRSA, &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
        (&OID_PKCS1_SHA384WITHRSA, &signature::RSA_PKCS1_2048_8192_SHA384),
        (&OID_PKCS1_SHA512WITHRSA, &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
    ];
    if *algorithm == OID_PKCS1_RSASSAPSS {
        return rsa_pss(&RsaSsaPssParams::try_from(parameters?).ok()?).map(|scheme| (scheme, RSA));
    }
    known.into_iter().find(|(oid, _)| *oid == algorithm).map(|(_, scheme)| (scheme, RSA))
}

/// As Go, only the parameters that everybody uses: one hash throughout, and salt of its length.
fn rsa_pss(parameters: &RsaSsaPssParams<'_>) -> Option<&'static dyn VerificationAlgorithm> {
    let hash = parameters.hash_algorithm_oid();
    let mask = parameters.mask_gen_algorithm().ok()?.hash;
    let known: [(&Oid<'_>, u32, &dyn VerificationAlgorithm); 3] = [
        (&OID_NIST_HASH_SHA256, 32, &signature::RSA_PSS_2048_8192_SHA256),
        (&OID_NIST_HASH_SHA384, 48, &signature::RSA_PSS_2048_8192_SHA384),
        (&OID_NIST_HASH_SHA512, 64, &signature::RSA_PSS_2048_8192_SHA512),
    ];
    let is_plain = mask == *hash && *hash != OID_HASH_SHA1 && parameters.trailer_field() == 1;
    let mut fitting = known.into_iter().filter(|(oid, salt, _)| *oid == hash && *salt == parameters.salt_length());
    fitting.next().filter(|_| is_plain).map(|(_, _, scheme)| scheme)
}

fn ecdsa_digest(algorithm: &Oid<'_>) -> Option<&'static Algorithm> {
    let known = [
        (&OID_SIG_ECDSA_WITH_SHA256, &SHA256),
        (&OID_SIG_ECDSA_WITH_SHA384, &SHA384),
        (&OID_SIG_ECDSA_WITH_SHA512, &SHA512),
    ];
    known.into_iter().find(|(oid, _)| *oid == algorithm).map(|(_, digest)| digest)
}

fn ecdsa(curve: &Oid<'_>, digest: &Algorithm) -> Option<Scheme> {
    let scheme: &dyn VerificationAlgorithm = match (*curve == OID_EC_P256, *curve == OID_NIST_EC_P384) {
        (true, _) if *digest == SHA256 => &signature::ECDSA_P256_SHA256_ASN1,
        (true, _) if *digest == SHA384 => &signature::ECDSA_P256_SHA384_ASN1,
        (_, true) if *digest == SHA256 => &signature::ECDSA_P384_SHA256_ASN1,
        (_, true) if *digest == SHA384 => &signature::ECDSA_P384_SHA384_ASN1,
        _ => return None,
    };
    Some((scheme, ECDSA))
}

/// Whether a signature is right for a key on P-521.
fn verify_p521(key: &[u8], algorithm: &'static Algorithm, data: &[u8], signed: &[u8]) -> Option<()> {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    let signed = p521::ecdsa::Signature::from_der(signed).ok()?;
    // The number that is signed, at the length of the curve's own.
    let hash = digest::digest(algorithm, data);
    let mut number = [0u8; 66];
    number.get_mut(66 - hash.as_ref().len()..)?.copy_from_slice(hash.as_ref());
    key.verify_prehash(&number, &signed).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that `openssl req -new` made with keys and digests of these names.
    const REQUESTS: &str = include_str!("certificate_requests.txt");

    fn request(name: &str) -> &'static str {
        REQUESTS.split("# ").find_map(|entry| entry.strip_prefix(name)?.strip_prefix('\n')).unwrap()
    }

    fn checked(pem: &str) -> Result<(), String> {
        request_der(pem.as_bytes()).and_then(|der| check_request(&der))
    }

    #[test]
    fn signatures_of_all_usual_kinds_are_checked() {
        for (name, answer) in [
            ("p256", ""),
            ("p384", ""),
            ("p521", ""),
            ("p521-512", ""),
            ("rsa", ""),
            ("rsa-1024", ""),
            ("rsa-sha1", ""),
            ("rsa-pss", ""),
            ("ed25519", ""),
            ("rsa-md5", "x509: cannot verify signature: insecure algorithm MD5-RSA"),
            ("rsa-pss-odd", UNKNOWN),
            ("rsa-pss-key", UNKNOWN),
        ] {
            assert_eq!(checked(request(name)).err().unwrap_or_default(), answer, "{name}");
        }
        for (name, answer) in [("p256", ECDSA), ("p521", ECDSA), ("rsa", RSA), ("rsa-pss", RSA), ("ed25519", ED25519)] {
            let mut der = request_der(request(name).as_bytes()).unwrap();
            let last = der.len() - 1;
            der[last] ^= 1;
            assert_eq!(check_request(&der), Err(answer.to_owned()), "{name}");
        }
    }

    #[test]
    fn the_first_block_of_a_text_is_the_request() {
        let (one, label) = (request("p256"), "PEM block type must be CERTIFICATE REQUEST");
        let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let garbage = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
        for (text, answer) in [
            (format!("some words\n{one}"), ""),
            (format!("{one}{garbage}"), ""),
            (format!("{one}{other}"), ""),
            (format!("{other}{one}"), label),
            (String::new(), label),
            ("-----BEGIN CERTIFICATE REQUEST-----".to_owned(), label),
        ] {
            assert_eq!(checked(&text).err().unwrap_or_default(), answer, "{text}");
        }
        assert!(checked(garbage).unwrap_err().starts_with("asn1: "));
        let mut der = request_der(one.as_bytes()).unwrap();
        der.push(0);
        assert_eq!(check_request(&der).unwrap_err(), "asn1: syntax error: trailing data");
        der.truncate(40);
        assert_eq!(check_request(&der).unwrap_err(), "asn1: syntax error: data truncated");
    }
}
