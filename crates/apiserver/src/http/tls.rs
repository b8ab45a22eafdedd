//! The TLS side of the listener.

use arc_swap::ArcSwap;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Files in PEM form.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by those between it and its authority.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The authorities that sign clients' certificates; without them no client certificate is asked for.
    pub client_authorities: Vec<PathBuf>,
}

/// A TLS side that can be replaced; connections that are open keep the one they began with.
pub struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    /// Begins with this configuration.
    pub fn new(config: ServerConfig) -> Self {
        Tls(ArcSwap::from_pointee(config))
    }

    /// Has new connections begin with another.
    pub fn replace(&self, config: ServerConfig) {
        self.0.store(Arc::new(config));
    }

    /// What accepts a connection now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load_full())
    }
}

/// Why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// A file has no certificate in it.
    #[error("{}: there is no certificate in this file", .0.display())]
    Empty(PathBuf),
    /// The parts do not fit together.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file that they do not fit.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
}

/// The configuration that the files describe. Clients may, but need not, show a certificate.
pub fn server_config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let mut provider = rustls::crypto::ring::default_provider();
    // As Go's servers do: AES-128 before AES-256, which costs a quarter more and is no safer here.
    provider.cipher_suites.sort_by_key(|suite| !format!("{:?}", suite.suite()).contains("AES_128"));
    let provider = Arc::new(provider);
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| unusable(&files.certificate, e))?;
    let builder = if files.client_authorities.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for path in &files.client_authorities {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|e| unusable(path, e))?;
            }
        }
        let first = &files.client_authorities[0];
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|e| unusable(first, e))?;
        builder.with_client_cert_verifier(verifier)
    };
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|source| TlsError::File { path: files.key.clone(), source })?;
    let mut config = builder
        .with_single_cert(certificates(&files.certificate)?, key)
        .map_err(|e| unusable(&files.certificate, e))?;
    // The order is the server's, as of Go's: else clients that offer AES-256 first get it.
    config.ignore_client_order = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn unusable(path: &Path, why: impl ToString) -> TlsError {
    TlsError::Unusable { path: path.to_owned(), why: why.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let error = |source| TlsError::File { path: path.to_owned(), source };
    let all: Vec<_> = CertificateDer::pem_file_iter(path).map_err(error)?.collect::<Result<_, _>>().map_err(error)?;
    if all.is_empty() { Err(TlsError::Empty(path.to_owned())) } else { Ok(all) }
}
