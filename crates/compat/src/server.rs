//! A server for a test: the built program on a free port, with its data in a folder of its own, ended with the test.

use crate::client::Target;
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The users of the recordings: an administrator, and two of group `dev` without rights of their own.
pub const TOKENS: &str =
    "admintoken,admin,admin,\"system:masters\"\nalicetoken,alice,alice,\"dev\"\nbobtoken,bob,bob,\"dev\"\n";

/// A running server.
pub struct Server {
    child: Child,
    program: PathBuf,
    flags: Vec<String>,
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
        std::fs::write(folder.path().join("tokens.csv"), TOKENS).map_err(|e| e.to_string())?;
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (child, url) = spawn(program, folder.path(), &flags, "127.0.0.1:0")?;
        let tls = client_config(&folder.path().join("pki/ca.crt"))?;
        let kubeconfig = folder.path().join("admin.kubeconfig");
        let target = Target { address: address(&url)?, tls };
        Ok(Server { child, program: program.to_owned(), flags, folder, target, url, kubeconfig })
    }

    /// Kills the server as SIGKILL does, if it still runs.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts the server anew after its end, with the data that it left, on another port. Gives how long it took until
    /// the server was ready.
    pub fn restart(&mut self) -> Result<Duration, String> {
        self.restart_on("127.0.0.1:0")
    }

    /// Like [`Server::restart`], but on the port that it had.
    pub fn restart_in_place(&mut self) -> Result<Duration, String> {
        self.restart_on(&self.target.address.to_string())
    }

    fn restart_on(&mut self, listen: &str) -> Result<Duration, String> {
        self.kill();
        let start = Instant::now();
        (self.child, self.url) = spawn(&self.program, self.folder.path(), &self.flags, listen)?;
        self.target.address = address(&self.url)?;
        Ok(start.elapsed())
    }

    /// Like [`Server::restart`], with other flags from now on.
    pub fn restart_with(&mut self, flags: &[&str]) -> Result<Duration, String> {
        self.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        self.restart()
    }

    /// Waits for the server's end by itself, at most so long; says whether it ended well.
    pub fn ended_within(&mut self, patience: Duration) -> Result<bool, String> {
        let start = Instant::now();
        loop {
            match self.child.try_wait().map_err(|e| e.to_string())? {
                Some(status) => return Ok(status.success()),
                None if start.elapsed() > patience => return Err(format!("it still runs after {patience:?}")),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
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
        self.kill();
    }
}

/// `program manager` beside a server, which ends with its owner.
pub struct Manager(Child);

impl Manager {
    /// Starts a manager of a server.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub fn start(server: &Server, flags: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(&server.program);
        let command = command.args(["manager", "--kubeconfig"]).arg(&server.kubeconfig).args(flags);
        command.spawn().map(Manager).map_err(|e| e.to_string())
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program and waits until it is ready; gives its URL.
fn spawn(program: &Path, folder: &Path, flags: &[String], listen: &str) -> Result<(Child, String), String> {
    let mut child = Command::new(program)
        .args(["server", "--listen", listen])
        .arg("--data-dir")
        .arg(folder)
        .arg("--token-auth-file")
        .arg(folder.join("tokens.csv"))
        .args(flags)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let stdout = child.stdout.take().ok_or("the server's output is not there")?;
    let mut lines = BufReader::new(stdout).lines();
    let mut next = || lines.next().and_then(Result::ok).ok_or("the server ended before it was ready");
    let url = next()?.split(" on ").nth(1).and_then(|s| s.split(' ').next()).unwrap_or_default().to_owned();
    next()?;
    Ok((child, url))
}

fn address(url: &str) -> Result<SocketAddr, String> {
    url.trim_start_matches("https://").parse().map_err(|_| format!("no address in {url}"))
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
