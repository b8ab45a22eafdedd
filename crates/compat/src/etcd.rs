//! An etcd for a test: on free ports of loopback, with its data in a folder of its own, ended with the test.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running etcd of one member.
pub struct Etcd {
    child: Child,
    program: PathBuf,
    flags: Vec<String>,
    _folder: TempDir,
    /// Where it answers: `HOST:PORT`.
    pub endpoint: String,
}

impl Etcd {
    /// Starts etcd; it may take a moment until it answers. Where it is not installed there is none, and the reason is
    /// printed.
    pub fn start() -> Option<Self> {
        Self::start_with("http", &[])
    }

    /// Starts etcd with further flags, for clients that speak `http` or `https`.
    pub fn start_with(scheme: &str, flags: &[&str]) -> Option<Self> {
        let Some(program) = find() else {
            println!("skipped: etcd is not installed (Debian's package is etcd-server)");
            return None;
        };
        let folder = tempfile::tempdir().ok()?;
        let (endpoint, peer) = (free()?, format!("http://{}", free()?));
        let client = format!("{scheme}://{endpoint}");
        let data = folder.path().join("data").display().to_string();
        let cluster = format!("test={peer}");
        let own = [
            ["--name", "test"],
            ["--data-dir", &data],
            ["--listen-client-urls", &client],
            ["--advertise-client-urls", &client],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &cluster],
            ["--logger", "zap"],
            ["--log-level", "fatal"],
        ];
        let flags: Vec<String> = own.as_flattened().iter().chain(flags).map(|&flag| flag.to_owned()).collect();
        let child = spawn(&program, &flags)?;
        Some(Etcd { child, program, flags, _folder: folder, endpoint })
    }

    /// Kills etcd as SIGKILL does, if it still runs.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts etcd anew after its end, with the data that it left, on the same port. False if that fails.
    pub fn restart(&mut self) -> bool {
        self.kill();
        match spawn(&self.program, &self.flags) {
            Some(child) => self.child = child,
            None => return false,
        }
        true
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(|file| file.is_file())
}

/// An address whose port nobody has.
fn free() -> Option<String> {
    TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok().map(|address| address.to_string())
}

fn spawn(program: &PathBuf, flags: &[String]) -> Option<Child> {
    let mut command = Command::new(program);
    command.args(flags).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().inspect_err(|error| println!("skipped: {}: {error}", program.display())).ok()
}
