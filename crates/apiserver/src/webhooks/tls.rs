//! Whom a webhook's certificate has to be signed by, and Go's words where it is not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use std::sync::{Arc, LazyLock};

/// Where systems keep the authorities that they trust; the first file that is there counts.
const SYSTEM_FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The client's side of TLS for a `caBundle` (base64 of PEM); an empty one stands for the system's authorities.
pub(super) fn client_config(bundle: &str) -> Result<Arc<ClientConfig>, String> {
    if bundle.is_empty() {
        return SYSTEM.clone();
    }
    let unusable = || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
    let pem = STANDARD.decode(bundle).map_err(|_| unusable())?;
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    with_roots(certificates)?.ok_or_else(unusable)
}

static SYSTEM: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let chosen = std::env::var("SSL_CERT_FILE").ok();
    let mut files = chosen.as_deref().into_iter().chain(SYSTEM_FILES);
    let pem = files.find_map(|file| std::fs::read(file).ok()).unwrap_or_default();
    let certificates = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match with_roots(certificates)? {
        Some(config) => Ok(config),
        // A system that trusts nobody.
        None => {
            let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let builder = builder.map_err(|e| e.to_string())?;
            Ok(Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
        }
    }
});

/// A configuration that trusts these authorities; none if there is no authority among them.
fn with_roots(certificates: Vec<CertificateDer<'static>>) -> Result<Option<Arc<ClientConfig>>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    if roots.is_empty() {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let verifier = Verifier { usual: usual.map_err(|e| e.to_string())?, certificates };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| e.to_string())?.dangerous();
    Ok(Some(Arc::new(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())))
}

/// Verifies as usual, but takes a certificate that is itself trusted, as Go does: many webhooks have one certificate
/// that signed itself, and whose `caBundle` it is.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.usual.verify_server_cert(certificate, between, name, ocsp, now);
        let own = |c: &CertificateDer<'_>| c.as_ref() == certificate.as_ref();
        match usual {
            // An authority's certificate is not taken for a server's.
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if self.certificates.iter().any(own) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                check_time(certificate, now)?;
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// An error unless a certificate is valid at a time.
fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed = x509_parser::parse_x509_certificate(certificate);
    let (_, parsed) = parsed.map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let (validity, seconds) = (parsed.validity(), i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    if seconds < validity.not_before.timestamp() {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if seconds > validity.not_after.timestamp() {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

/// A failed handshake in Go's words. `host` is the name that was asked for.
pub(super) fn failure(error: &std::io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(why)) => {
            format!("tls: failed to verify certificate: x509: {}", certificate(why, host))
        }
        Some(Error::InvalidMessage(_)) => "http: server gave HTTP response to HTTPS client".to_owned(),
        Some(Error::AlertReceived(alert)) => format!("remote error: tls: {}", words(&format!("{alert:?}"))),
        Some(other) => format!("tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => super::transport::io_text("read", error),
    }
}

fn certificate(why: &CertificateError, host: &str) -> String {
    match why {
        CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        CertificateError::Expired | CertificateError::NotValidYet => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "certificate has expired or is not yet valid: current time {} is after {}",
            instant(*time),
            instant(*not_after)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "certificate has expired or is not yet valid: current time {} is before {}",
            instant(*time),
            instant(*not_before)
        ),
        CertificateError::NotValidForNameContext { presented, .. } => wrong_name(presented, host),
        CertificateError::NotValidForName => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        CertificateError::BadSignature => "certificate signed by unknown authority".to_owned(),
        other => format!("{other:?}"),
    }
}

/// `presented` has entries such as `DnsName("a.b")` and `IpAddress(127.0.0.1)`.
fn wrong_name(presented: &[String], host: &str) -> String {
    let of = |kind: &str| -> Vec<&str> {
        let entries = presented.iter().filter_map(|p| p.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')'));
        entries.map(|p| p.trim_matches('"')).collect()
    };
    if host.parse::<std::net::IpAddr>().is_ok() {
        let addresses = of("IpAddress");
        if addresses.is_empty() {
            return format!("cannot validate certificate for {host} because it doesn't contain any IP SANs");
        }
        return format!("certificate is valid for {}, not {host}", addresses.join(", "));
    }
    let names = of("DnsName");
    if names.is_empty() {
        return format!("certificate is not valid for any names, but wanted to match {host}");
    }
    format!("certificate is valid for {}, not {host}", names.join(", "))
}

fn instant(time: rustls_pki_types::UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}

/// `HandshakeFailure` as `handshake failure`.
fn words(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push(' ');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_names_are_told_as_go_does() {
        let presented = ["DnsName(\"localhost\")".to_owned(), "IpAddress(127.0.0.1)".to_owned()];
        for (presented, host, expected) in [
            (&presented[..], "a.b.svc", "certificate is valid for localhost, not a.b.svc"),
            (&presented[..], "10.0.0.1", "certificate is valid for 127.0.0.1, not 10.0.0.1"),
            (
                &presented[..1],
                "10.0.0.1",
                "cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs",
            ),
            (&presented[1..], "a.b", "certificate is not valid for any names, but wanted to match a.b"),
        ] {
            assert_eq!(wrong_name(presented, host), expected);
        }
    }

    /// A certificate for 127.0.0.1 that signed itself and says that it is an authority's.
    const OWN: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBhDCCASqgAwIBAgIUZMuj6oIVsGXWJFh5a3nlk69wDzEwCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDb3duMCAXDTI2MTEzMDA4NDYyOVoYDzIxMjYxMTA2MDg0NjI5
WjAOMQwwCgYDVQQDDANvd24wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQJq5Ia
SxBVULHRjILG/sdOjHSp2Poxttzk6SKSK39loZ2sDBkkMPPu96dULclWKRoZfj0C
DryvrRC4l/bt7PhNo2QwYjAdBgNVHQ4EFgQULJE8pxGBX8dCEffsNdxBaysAXo0w
HwYDVR0jBBgwFoAULJE8pxGBX8dCEffsNdxBaysAXo0wDwYDVR0TAQH/BAUwAwEB
/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIQDEwjqFWgUR6f1+
M7wEjy53KT7Yx1TpqEzyhCkXGhKs7QIgHV2yfh51I0qkn/Ziprp0la85ak5fXGwa
mvcj6DmafqA=
-----END CERTIFICATE-----
";

    #[test]
    fn a_certificate_that_signed_itself_is_taken_where_it_is_trusted() {
        let certificate = CertificateDer::pem_slice_iter(OWN).next().unwrap().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(2_000_000_000));
        let verified = |certificates: Vec<CertificateDer<'static>>, name: &'static str| {
            let name = ServerName::try_from(name).unwrap();
            Verifier { usual: usual.clone(), certificates }.verify_server_cert(&certificate, &[], &name, &[], now)
        };
        assert!(verified(vec![certificate.clone()], "127.0.0.1").is_ok());
        assert!(verified(vec![certificate.clone()], "10.0.0.1").is_err());
        assert!(verified(Vec::new(), "127.0.0.1").is_err());
    }

    #[test]
    fn bundles_have_to_be_pem() {
        let error = client_config("aGVsbG8=").unwrap_err();
        assert_eq!(error, "unable to load root certificates: unable to parse bytes as PEM block");
        assert!(client_config("").is_ok());
    }
}
