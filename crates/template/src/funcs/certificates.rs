//! Certificates and their keys, as Sprig makes them: of authorities, signed by themselves, signed by an authority.
//!
//! Where Sprig would make a key of RSA, it is one on P-256 (see `keys`).

use super::encoding::bytes;
use super::keys::{PrivateKey, from_pem, pem};
use super::{Table, arg, int, strval, text};
use crate::value::{Result, Special, Val};
use crate::world::World;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, SanType, SerialNumber,
};
use std::net::IpAddr;
use time::OffsetDateTime;

/// The Go type of a certificate with its key.
pub(super) const TYPE: &str = "sprig.certificate";
/// What a key and a certificate charge: some hundreds fit into a rendering.
const CHARGE: usize = 128 << 10;
/// The times that a certificate can say, in seconds since 1970: from 1950 to 9999.
const TIMES: std::ops::Range<i64> = -631_152_000..253_402_300_800;

pub(super) const TABLE: Table = &[
    ("genPrivateKey", "s", |w, a| {
        w.heap.charge(CHARGE)?;
        let key = match &*text(a, 0) {
            "ecdsa" => made(w)?,
            "ed25519" => PrivateKey::ed25519(random(w))?,
            kind @ ("" | "rsa" | "dsa") => {
                let kind = if kind.is_empty() { "rsa" } else { kind };
                return Err(format!("keys of type {kind} are not made here: use ecdsa or ed25519"));
            }
            kind => return w.heap.string(format!("Unknown type {kind}")),
        };
        w.heap.string(key.pem)
    }),
    ("genCA", "si", |w, a| {
        let key = made(w)?;
        authority(w, a, &key)
    }),
    ("genCAWithKey", "sis", |w, a| {
        let key = given(a, 2)?;
        authority(w, a, &key)
    }),
    ("genSelfSignedCert", "slli", |w, a| {
        let key = made(w)?;
        self_signed(w, a, &key)
    }),
    ("genSelfSignedCertWithKey", "sllis", |w, a| {
        let key = given(a, 4)?;
        self_signed(w, a, &key)
    }),
    ("genSignedCert", "sllic", |w, a| {
        let key = made(w)?;
        signed(w, a, &key)
    }),
    ("genSignedCertWithKey", "sllics", |w, a| {
        let key = given(a, 5)?;
        signed(w, a, &key)
    }),
    ("buildCustomCert", "ss", |_, a| {
        let decoded = |i| STANDARD.decode(bytes(&arg(a, i))).ok().and_then(|b| String::from_utf8(b).ok());
        let cert = decoded(0).ok_or("unable to decode base64 certificate")?;
        let key = decoded(1).ok_or("unable to decode base64 private key")?;
        PrivateKey::read(&key)
            .map_err(|e| format!("error parsing private key: {e}"))
            .and_then(|k| issuer(&cert, k).map(drop))?;
        Ok(certificate(cert, key))
    }),
];

fn random(w: &mut World<'_>) -> [u8; 32] {
    let mut bytes = [0; 32];
    w.random(&mut bytes);
    bytes
}

fn made(w: &mut World<'_>) -> Result<PrivateKey> {
    PrivateKey::p256(|| random(w))
}

fn given(a: &[Val<'_>], i: usize) -> Result<PrivateKey> {
    PrivateKey::read(&text(a, i)).map_err(|e| format!("parsing private key: {e}"))
}

fn certificate<'a>(cert: String, key: String) -> Val<'a> {
    Val::special(Special::Struct(TYPE, vec![("Cert", cert), ("Key", key)]))
}

fn authority<'a>(w: &mut World<'a>, a: &[Val<'a>], key: &PrivateKey) -> Result<Val<'a>> {
    let mut params = params(w, &text(a, 0), int(a, 1))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    let made = params.self_signed(key).map_err(failed)?;
    Ok(certificate(pem("CERTIFICATE", made.der()), key.pem.clone()))
}

fn self_signed<'a>(w: &mut World<'a>, a: &[Val<'a>], key: &PrivateKey) -> Result<Val<'a>> {
    let made = with_names(w, a)?.self_signed(key).map_err(failed)?;
    Ok(certificate(pem("CERTIFICATE", made.der()), key.pem.clone()))
}

fn signed<'a>(w: &mut World<'a>, a: &[Val<'a>], key: &PrivateKey) -> Result<Val<'a>> {
    let Val::Special(authority) = arg(a, 4) else { return Err(format!("this is no {TYPE}")) };
    let Special::Struct(_, fields) = &*authority else { return Err(format!("this is no {TYPE}")) };
    let field = |name| fields.iter().find(|(key, _)| *key == name).map_or("", |(_, text)| text.as_str());
    let signer = PrivateKey::read(field("Key")).map_err(|e| format!("error parsing private key: {e}"))?;
    let issuer = issuer(field("Cert"), signer)?;
    let mut params = with_names(w, a)?;
    params.use_authority_key_identifier_extension = true;
    let made = params.signed_by(key, &issuer).map_err(failed)?;
    Ok(certificate(pem("CERTIFICATE", made.der()), key.pem.clone()))
}

/// Who signs with a certificate (PEM) and its key.
fn issuer(cert: &str, key: PrivateKey) -> Result<Issuer<'static, PrivateKey>> {
    let Some(("CERTIFICATE", der)) = from_pem(cert) else { return Err("unable to decode certificate".to_owned()) };
    Issuer::from_ca_cert_der(&der.into(), key).map_err(|e| format!("error parsing certificate: {e}"))
}

fn failed(error: rcgen::Error) -> String {
    format!("error creating certificate: {error}")
}

/// What all certificates have in common.
fn params(w: &mut World<'_>, name: &str, days: i64) -> Result<CertificateParams> {
    w.heap.charge(CHARGE)?;
    let mut serial = [0; 16];
    w.random(&mut serial);
    serial[0] = serial[0] & 0x7f | 1;
    let begin = w.now.as_second();
    let end = days.checked_mul(86_400).and_then(|life| begin.checked_add(life));
    let time = |second: i64| OffsetDateTime::from_unix_timestamp(second).ok().filter(|_| TIMES.contains(&second));
    let times = time(begin).zip(end.and_then(time));
    let (not_before, not_after) = times.ok_or_else(|| format!("a certificate cannot last {days} days"))?;
    let mut params = CertificateParams::default();
    (params.not_before, params.not_after) = (not_before, not_after);
    params.serial_number = Some(SerialNumber::from(serial.to_vec()));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

/// With the addresses and host names of the second and third argument, and the days of the fourth.
fn with_names<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<CertificateParams> {
    let mut params = params(w, &text(a, 0), int(a, 3))?;
    for address in items(w, &arg(a, 1)) {
        let text = string(w, &address, "error parsing ip")?;
        let address = text.parse::<IpAddr>().map_err(|_| format!("error parsing ip: {text}"))?;
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    for name in items(w, &arg(a, 2)) {
        let text = string(w, &name, "error processing alternate dns name")?;
        let name = text.as_str().try_into().map_err(failed)?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    Ok(params)
}

fn items<'a>(w: &World<'a>, list: &Val<'a>) -> Vec<Val<'a>> {
    if let Val::List(list) = list { w.heap.items(*list) } else { Vec::new() }
}

fn string(w: &World<'_>, val: &Val<'_>, what: &str) -> Result<String> {
    match val {
        Val::Str(text) => Ok(text.text().into_owned()),
        other => Err(format!("{what}: {} is not a string", strval(&w.heap, other)?)),
    }
}
