//! What a real server said of data of other projects, and what it publishes of itself, against what ours says. The data
//! are no part of the project: the folder `shared` beside it, or the one that `STANCHION_SHARED` names, holds them;
//! without it these tests are skipped.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod definitions;
mod documents;

use compat::server::Server;
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The text of a compressed file of the shared folder.
fn shared(name: &str) -> Option<String> {
    let folder = match std::env::var_os("STANCHION_SHARED") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let path = folder.join(name);
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}

fn server() -> Server {
    Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), &[]).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
