//! The TLS side of connections to clusters.

use super::client::Failure;
use super::credentials::Proof;
use super::kubeconfig::Kubeconfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Where systems keep the authorities that they trust, as Go looks for them.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];

/// What a kubeconfig says of TLS, with the certificate that stands in it.
pub fn tls(config: &Kubeconfig) -> Result<ClientConfig, Failure> {
    let proof = Proof { certificate: config.certificate.clone(), key: config.key.clone(), ..Proof::default() };
    client_config(config, &proof)
}

/// What a kubeconfig says of TLS, for somebody with this proof.
pub fn client_config(config: &Kubeconfig, proof: &Proof) -> Result<ClientConfig, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = if config.insecure {
        if !config.authority.is_empty() {
            return Err("specifying a root certificates file with the insecure flag is not allowed".into());
        }
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    } else {
        builder.with_root_certificates(roots(config)?)
    };
    if proof.certificate.is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let chain = CertificateDer::pem_slice_iter(&proof.certificate).collect::<Result<Vec<_>, _>>()?;
    Ok(builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&proof.key)?)?)
}

/// The authorities of a kubeconfig, or those that the system trusts.
fn roots(config: &Kubeconfig) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    if !config.authority.is_empty() {
        for certificate in CertificateDer::pem_slice_iter(&config.authority) {
            roots.add(certificate?)?;
        }
        return Ok(roots);
    }
    let chosen = std::env::var("SSL_CERT_FILE").ok();
    let mut files = chosen.as_deref().into_iter().chain(SYSTEM_FILES);
    let pem = files.find_map(|file| std::fs::read(file).ok()).unwrap_or_default();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    if roots.is_empty() {
        return Err("the cluster has no certificate-authority, and the system trusts nobody".into());
    }
    Ok(roots)
}

/// The name for which the server's certificate has to be.
pub fn server_name(config: &Kubeconfig, host: &str) -> Result<ServerName<'static>, Failure> {
    let name = if config.tls_server_name.is_empty() { host } else { &config.tls_server_name };
    Ok(ServerName::try_from(name.to_owned())?)
}

/// Trusts whatever certificate there is, because the kubeconfig says so.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
