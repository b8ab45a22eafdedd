//! The webhooks' certificate and the authority that signed it, as a Secret holds them for all replicas.
//!
//! An authority is replaced in steps, so that no call is refused: first the new one is trusted beside the old one, after a
//! while it signs, and after a longer one the old one is forgotten.

use crate::server::pki::{authority_params, names_of, server_params};
use base64::{Engine, engine::general_purpose::STANDARD};
use object::{Map, Value, map};
use rcgen::{Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

/// How long an authority is good for, and with how much left a new one is made.
const AUTHORITY: [Duration; 2] = [Duration::days(3650), Duration::days(365)];
/// How long a certificate is good for, and with how much left a new one is made.
const CERTIFICATE: [Duration; 2] = [Duration::days(90), Duration::days(30)];
/// After which time everybody trusts a new authority.
const TRUSTED: Duration = Duration::minutes(5);
/// After which time nobody serves a certificate of an old authority any more.
const FORGOTTEN: Duration = Duration::hours(1);
/// How many authorities are trusted at most, if somebody has them replaced again and again.
const TRUSTED_AT_ONCE: usize = 8;
/// The annotation that says since when the newest authority is there, in Unix seconds.
const SINCE: &str = "stanchion.dev/authority-since";

/// What the Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The authorities that are trusted, the newest one first; PEM.
    pub authorities: String,
    /// The key of the newest authority; PEM.
    authority_key: String,
    /// The certificate; PEM.
    pub certificate: String,
    /// Its key; PEM.
    pub key: String,
    /// Since when the newest authority is there.
    since: OffsetDateTime,
}

/// What of a certificate matters here.
struct Facts {
    issuer: String,
    subject: String,
    ends: OffsetDateTime,
    names: Vec<String>,
}

impl Bundle {
    /// A new authority and a certificate for these names.
    pub fn new(names: &[String], now: OffsetDateTime) -> Result<Self, rcgen::Error> {
        let (authority, key) = authority(now)?;
        let empty = String::new();
        Bundle { authorities: authority, authority_key: key, certificate: empty.clone(), key: empty, since: now }
            .issue(names, now)
    }

    /// What a Secret holds; nothing if that is no such bundle.
    pub fn read(secret: &Value) -> Option<Self> {
        let text = |key: &str| String::from_utf8(STANDARD.decode(secret.str_at(&["data", key])?).ok()?).ok();
        let since = secret.annotation(SINCE).and_then(|s| s.parse().ok());
        let since = since.and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        Some(Bundle {
            authorities: text("ca.crt")?,
            authority_key: text("ca.key")?,
            certificate: text("tls.crt")?,
            key: text("tls.key")?,
            since: since.unwrap_or(OffsetDateTime::UNIX_EPOCH),
        })
    }

    /// The Secret. `version` is that of the Secret that it replaces; empty for a new one.
    pub fn secret(&self, namespace: &str, name: &str, version: &str) -> Value {
        let mut data = Map::new();
        for (key, text) in [
            ("ca.crt", &self.authorities),
            ("ca.key", &self.authority_key),
            ("tls.crt", &self.certificate),
            ("tls.key", &self.key),
        ] {
            data.insert(key, STANDARD.encode(text));
        }
        let mut metadata = map! {
            "name" => name, "namespace" => namespace,
            "annotations" => map! { SINCE => self.since.unix_timestamp().to_string() },
        };
        if !version.is_empty() {
            metadata.insert("resourceVersion", version);
        }
        map! { "apiVersion" => "v1", "kind" => "Secret", "type" => "kubernetes.io/tls", "metadata" => metadata, "data" => data }
            .into()
    }

    /// What has to take the place of this bundle by now; nothing if it is as it should be.
    pub fn renewed(&self, names: &[String], now: OffsetDateTime) -> Result<Option<Self>, rcgen::Error> {
        let newest = facts(&self.authorities).into_iter().next();
        let Some(newest) = newest.filter(|a| a.ends > now && KeyPair::from_pem(&self.authority_key).is_ok()) else {
            return Bundle::new(names, now).map(Some);
        };
        let served = facts(&self.certificate).into_iter().next();
        let served = served.filter(|c| c.ends > now && KeyPair::from_pem(&self.key).is_ok());
        let is_good = |c: &Facts| c.ends - now > CERTIFICATE[1] && names.iter().all(|name| c.names.contains(name));
        let by_newest = served.as_ref().is_some_and(|c| c.issuer == newest.subject);
        if newest.ends - now <= AUTHORITY[1] {
            return self.successor(now).map(Some);
        }
        if !by_newest && (now - self.since >= TRUSTED || served.is_none())
            || by_newest && !served.is_some_and(|c| is_good(&c))
        {
            return self.clone().issue(names, now).map(Some);
        }
        if by_newest && now - self.since >= FORGOTTEN && facts(&self.authorities).len() > 1 {
            let authorities = first(&self.authorities).to_owned();
            return Ok(Some(Bundle { authorities, ..self.clone() }));
        }
        Ok(None)
    }

    /// The bundle with a new authority that is trusted beside the others; for now it serves the same certificate. It takes
    /// the place of this one also when this one's Secret was deleted, so that no call is refused.
    pub fn successor(&self, now: OffsetDateTime) -> Result<Self, rcgen::Error> {
        let (authority, authority_key) = authority(now)?;
        let mut authorities = authority;
        let mut rest = self.authorities.trim_start();
        for _ in 1..TRUSTED_AT_ONCE {
            let next = first(rest);
            authorities += next;
            rest = rest.get(next.len()..).unwrap_or_default().trim_start();
            if rest.is_empty() {
                break;
            }
            authorities += "\n";
        }
        Ok(Bundle { authorities, authority_key, since: now, ..self.clone() })
    }

    /// The bundle with a certificate of its newest authority.
    fn issue(self, names: &[String], now: OffsetDateTime) -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::from_pem(&self.authority_key)?;
        let issuer = Issuer::from_ca_cert_pem(first(&self.authorities), authority_key)?;
        let key = KeyPair::generate()?;
        let params = server_params("stanchion-manager", now, CERTIFICATE[0], names)?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Bundle { certificate, key: key.serialize_pem(), ..self })
    }
}

/// A new authority and its key. No other one is called so.
fn authority(now: OffsetDateTime) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut random = [0; 4];
    // The time tells them apart nearly always.
    _ = getrandom::fill(&mut random);
    let name = format!("stanchion-manager-ca@{}-{:08x}", now.unix_timestamp(), u32::from_be_bytes(random));
    let certificate = authority_params(&name, now, AUTHORITY[0]).self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// The first certificate of a text.
fn first(pem: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----";
    let end = pem.find(END).map_or(pem.len(), |at| at + END.len());
    pem.get(..end).unwrap_or(pem)
}

/// What stands in certificates; those that cannot be read are left out.
fn facts(pem: &str) -> Vec<Facts> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok);
    all.filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        Some(Facts {
            issuer: certificate.issuer().to_string(),
            subject: certificate.subject().to_string(),
            ends: certificate.validity().not_after.to_datetime(),
            names: names_of(&certificate),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        vec!["m.ns.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    fn read(bundle: &Bundle) -> (usize, bool) {
        let all = facts(&bundle.authorities);
        let served = facts(&bundle.certificate);
        (all.len(), served.first().map(|c| &c.issuer) == all.first().map(|a| &a.subject))
    }

    #[test]
    fn what_is_good_stays_and_goes_through_a_secret() {
        let now = OffsetDateTime::now_utc();
        let bundle = Bundle::new(&names(), now).unwrap();
        assert_eq!(read(&bundle), (1, true));
        assert_eq!(bundle.renewed(&names(), now).unwrap(), None);
        let back = Bundle::read(&bundle.secret("ns", "s", "7")).unwrap();
        assert_eq!((&back.certificate, back.since.unix_timestamp()), (&bundle.certificate, now.unix_timestamp()));
        assert_eq!(Bundle::read(&map! { "data" => map! { "ca.crt" => "x" } }.into()), None);
    }

    #[test]
    fn a_certificate_is_renewed_before_it_ends_and_for_new_names() {
        let now = OffsetDateTime::now_utc();
        let bundle = Bundle::new(&names(), now).unwrap();
        let more = [names(), vec!["other".to_owned()]].concat();
        let next = bundle.renewed(&more, now).unwrap().unwrap();
        assert_eq!((next.authorities == bundle.authorities, next.certificate == bundle.certificate), (true, false));
        let next = bundle.renewed(&names(), now + Duration::days(61)).unwrap().unwrap();
        assert_eq!((next.authorities == bundle.authorities, next.certificate == bundle.certificate), (true, false));
        let broken = Bundle { key: "x".to_owned(), ..bundle.clone() };
        assert!(broken.renewed(&names(), now).unwrap().is_some());
        let broken = Bundle { authority_key: "x".to_owned(), ..bundle };
        assert_eq!(read(&broken.renewed(&names(), now).unwrap().unwrap()), (1, true));
    }

    #[test]
    fn what_takes_the_place_of_a_bundle_is_trusted_before_it_is_served() {
        let now = OffsetDateTime::now_utc();
        let old = Bundle::new(&names(), now).unwrap();
        let mut next = old.successor(now).unwrap();
        assert_eq!((read(&next), &next.certificate), ((2, false), &old.certificate));
        assert_eq!(facts(&next.authorities)[1].subject, facts(&old.authorities)[0].subject);
        assert_eq!(next.renewed(&names(), now).unwrap(), None);
        for _ in 0..20 {
            next = next.successor(now).unwrap();
        }
        assert_eq!(read(&next).0, TRUSTED_AT_ONCE);
    }

    #[test]
    fn an_authority_is_trusted_before_it_signs_and_forgotten_last() {
        let begin = OffsetDateTime::now_utc();
        let mut now = begin + Duration::days(3649 - 365 + 2);
        let old = Bundle::new(&names(), begin).unwrap().issue(&names(), now - Duration::days(1)).unwrap();
        let both = old.renewed(&names(), now).unwrap().unwrap();
        assert_eq!((read(&both), &both.certificate), ((2, false), &old.certificate));
        assert_eq!(both.renewed(&names(), now + Duration::minutes(1)).unwrap(), None);
        now += Duration::minutes(6);
        let signed = both.renewed(&names(), now).unwrap().unwrap();
        assert_eq!(read(&signed), (2, true));
        assert_eq!(signed.renewed(&names(), now).unwrap(), None);
        let alone = signed.renewed(&names(), now + Duration::hours(1)).unwrap().unwrap();
        assert_eq!(read(&alone), (1, true));
        assert_eq!(alone.renewed(&names(), now + Duration::hours(2)).unwrap(), None);
    }
}
