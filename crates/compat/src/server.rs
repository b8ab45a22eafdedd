//! A server for a test: the built program on a free port, with its data in a folder of its own, ended with the test.

use crate::client::Target;
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// The users of the recordings: an administrator, and two of group `dev` without rights of their own.
pub const TOKENS: &str =
    "admintoken,admin,admin,\"system:masters\"\nalicetoken,alice,alice,\"dev\"\nbobtoken,bob,bob,\"dev\"\n";

/// A running server.
pub struct Server {
    child: Child,
    folder: TempDir,
    /// Where it listens.
    pub target: Target,
    /// Its URL.
    pub url: String,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
}

impl Server {
    /// Starts `program server` in memory with the recordings' users, and waits until it is ready.
    pub fn start(program: &Path, flags: &[&str]) -> Result<Self, String> {
        Self::launch(program, &[&["--in-memory"], flags].concat())
    }

    /// Like [`Server::start`], but with its data on disk.
    pub fn start_durable(program: &Path, flags: &[&str]) -> Result<Self, String> {
        Self::launch(program, flags)
    }

    fn launch(program: &Path, flags: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let tokens = folder.path().join("tokens.csv");
        std::fs::write(&tokens, TOKENS).map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .args(["server", "--listen", "127.0.0.1:0"])
            .arg("--data-dir")
            .arg(folder.path())
            .arg("--token-auth-file")
            .arg(&tokens)
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let stdout = child.stdout.take().ok_or("the server's output is not there")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut next = || lines.next().and_then(Result::ok).ok_or("the server ended before it was ready");
        let url = next()?.split(" on ").nth(1).and_then(|s| s.split(' ').next()).unwrap_or_default().to_owned();
        next()?;
        let address = url.trim_start_matches("https://").parse().map_err(|_| format!("no address in {url}"))?;
        let tls = client_config(&folder.path().join("pki/ca.crt"))?;
        let kubeconfig = folder.path().join("admin.kubeconfig");
        Ok(Server { child, folder, target: Target { address, tls }, url, kubeconfig })
    }

    /// The folder with the server's data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TLS configuration that trusts one authority.
fn client_config(authority: &Path) -> Result<Arc<rustls::ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(authority).map_err(|e| format!("{}: {e}", authority.display()))?;
    roots.add(certificate).map_err(|e| e.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
