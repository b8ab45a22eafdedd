//! The certificates of the webhooks' server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

/// What [`make`] gives.
pub(super) struct Certificates {
    /// The server's side of TLS.
    pub server: Arc<rustls::ServerConfig>,
    /// The `caBundle` of the authority that signed the server's certificate.
    pub authority: String,
    /// The `caBundle` of another authority.
    pub other_authority: String,
}

/// Makes an authority, a certificate of it for `localhost` and `127.0.0.1`, and another authority.
pub(super) fn make() -> Result<Certificates, String> {
    let text = |e: rcgen::Error| e.to_string();
    let (params, key) = authority("kcompat-ca")?;
    let own = params.self_signed(&key).map_err(text)?;
    let (other_params, other_key) = authority("kcompat-other-ca")?;
    let other = other_params.self_signed(&other_key).map_err(text)?;
    let issuer = Issuer::new(params, key);
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names).map_err(text)?;
    params.distinguished_name.push(DnType::CommonName, "kcompat-hooks");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(text)?;
    let leaf = params.signed_by(&key, &issuer).map_err(text)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .map_err(|e| e.to_string())?;
    let bundle = |pem: String| STANDARD.encode(pem);
    Ok(Certificates { server: Arc::new(server), authority: bundle(own.pem()), other_authority: bundle(other.pem()) })
}

fn authority(name: &str) -> Result<(CertificateParams, KeyPair), String> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok((params, KeyPair::generate().map_err(|e| e.to_string())?))
}
