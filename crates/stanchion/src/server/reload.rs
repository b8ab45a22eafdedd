//! What is read again while the server runs, when SIGHUP asks for it or a file is another one: the certificate it serves with,
//! the authorities of client certificates, the static tokens. Connections that are open stay as they are. The server's own
//! certificates are renewed before they end.

use super::kubeconfig;
use super::pki::Pki;
use apiserver::auth::{StaticTokens, Tokens};
use apiserver::http::{Tls, TlsFiles, server_config};
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::Signal;

/// How often files are looked at (as upstream).
const INTERVAL: Duration = Duration::from_secs(60);

/// The files, and what is made of them.
pub struct Reload {
    /// The server's own certificates, and the names that its certificate has to have.
    pub pki: Pki,
    /// The names that the server's own certificate has to have.
    pub names: Vec<String>,
    /// The files of the TLS side.
    pub files: TlsFiles,
    /// The TLS side.
    pub tls: Arc<Tls>,
    /// The file of static tokens.
    pub token_file: Option<PathBuf>,
    /// The tokens that are accepted.
    pub tokens: Arc<Tokens>,
    /// The administrator's kubeconfig, and the URL in it.
    pub kubeconfig: (PathBuf, String),
}

/// What files had in them when they were last of use.
#[derive(PartialEq, Eq)]
struct Seen {
    tls: u64,
    tokens: u64,
    administrator: u64,
}

impl Reload {
    /// Looks at the files again and again, and whenever a signal comes.
    pub async fn run(self, mut hangup: Signal) {
        let mut seen = self.look();
        loop {
            tokio::select! {
                _ = hangup.recv() => tracing::info!("asked to read the files again"),
                () = tokio::time::sleep(INTERVAL) => {}
            }
            self.renew(&mut seen);
        }
    }

    fn look(&self) -> Seen {
        let tls = [&self.files.certificate, &self.files.key].into_iter().chain(&self.files.client_authorities);
        Seen {
            tls: digest(tls),
            tokens: digest(&self.token_file),
            administrator: digest([&self.pki.file("admin.crt")]),
        }
    }

    /// Takes what changed. What is of no use leaves everything as it was, and is tried again the next time.
    fn renew(&self, seen: &mut Seen) {
        if let Err(error) = self.pki.ensure(&self.names) {
            kept("the server's own certificates", &error);
        }
        let now = self.look();
        if now.tls != seen.tls {
            match server_config(&self.files) {
                Ok(config) => {
                    self.tls.replace(config);
                    seen.tls = now.tls;
                    tracing::info!("new connections get the certificates as they are now");
                }
                Err(error) => kept("the certificates", &error),
            }
        }
        if let Some(file) = self.token_file.as_ref().filter(|_| now.tokens != seen.tokens) {
            match static_tokens(file) {
                Ok(tokens) => {
                    self.tokens.fixed.replace(tokens);
                    seen.tokens = now.tokens;
                    tracing::info!("tokens are accepted as they are in the file now");
                }
                Err(error) => kept("the tokens", &error),
            }
        }
        if now.administrator != seen.administrator {
            let (file, url) = &self.kubeconfig;
            match kubeconfig::write_admin(file, url, &self.pki) {
                Ok(()) => seen.administrator = now.administrator,
                Err(error) => kept("the administrator's kubeconfig", &error),
            }
        }
    }
}

fn kept(what: &str, error: &dyn Display) {
    tracing::error!(%error, "{what} stay as they were");
}

/// The static tokens of a file.
pub fn static_tokens(file: &Path) -> Result<StaticTokens, String> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
    StaticTokens::parse(&text, &name).map_err(|e| e.to_string())
}

/// A digest of what files hold; one that cannot be read is as good as an empty one.
fn digest<'f>(files: impl IntoIterator<Item = &'f PathBuf>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}
