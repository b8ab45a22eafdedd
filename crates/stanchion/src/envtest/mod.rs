//! `stanchion envtest`: a stand-in for the programs `kube-apiserver` and `etcd` that test environments start.
//!
//! controller-runtime's `envtest` finds both in a folder of assets, passes each its usual flags and waits until
//! `/readyz` and `/health` answer. Two links to this program in that folder are enough: it acts by the name by which it
//! is called.

mod apiserver;
mod etcd;
mod flags;

use crate::terminal::say;
use clap::{Args as ClapArgs, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The programs that this one stands in for.
const PROGRAMS: [&str; 2] = ["kube-apiserver", "etcd"];

/// `stanchion envtest`
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a folder of assets with links named kube-apiserver and etcd (and kubectl, if there is one on the PATH)
    Assets {
        /// The folder; it is made if it is not there
        dir: PathBuf,
    },
    /// Serve as kube-apiserver would, given its flags
    #[command(name = "kube-apiserver", disable_help_flag = true)]
    KubeApiserver {
        /// Flags of kube-apiserver
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Answer for etcd, given its flags; the data are kube-apiserver's own
    #[command(disable_help_flag = true)]
    Etcd {
        /// Flags of etcd
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
}

/// Runs `stanchion envtest`.
pub fn run(args: Args) -> Result<(), Error> {
    match args.command {
        Command::Assets { dir } => assets(&dir),
        Command::KubeApiserver { flags } => apiserver::run(&flags),
        Command::Etcd { flags } => etcd::run(&flags),
    }
}

/// Acts as the program by whose name this one was called; nothing if that is its own.
pub fn by_name(mut words: impl Iterator<Item = OsString>) -> Option<Result<(), Error>> {
    let called = PathBuf::from(words.next()?);
    let name = called.file_name()?.to_str().filter(|name| PROGRAMS.contains(name))?;
    let flags: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    Some(if name == "etcd" { etcd::run(&flags) } else { apiserver::run(&flags) })
}

/// Makes the links and says how to use them.
fn assets(dir: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let program = std::env::current_exe()?;
    for name in PROGRAMS {
        link(&program, &dir.join(name))?;
    }
    if let Some(kubectl) = on_path("kubectl") {
        link(&kubectl, &dir.join("kubectl"))?;
    }
    let dir = dir.canonicalize().map_err(|e| format!("{}: {e}", dir.display()))?;
    say!("export KUBEBUILDER_ASSETS={}", crate::server::shell_word(&dir.display().to_string()));
    Ok(())
}

/// Makes a link; one that is there is replaced, anything else is not.
fn link(target: &Path, place: &Path) -> Result<(), Error> {
    let say = |e: std::io::Error| format!("{}: {e}", place.display());
    match place.symlink_metadata() {
        Ok(held) if held.is_symlink() => std::fs::remove_file(place).map_err(say)?,
        Ok(_) => return Err(format!("{} is there and is no link; it is left alone", place.display()).into()),
        Err(_) => {}
    }
    Ok(std::os::unix::fs::symlink(target, place).map_err(say)?)
}

/// Where a program is that shells would find.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file())
}
