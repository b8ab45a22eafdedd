//! Where the data is kept: a folder, memory, or etcd.

use crate::cluster::{self, Kubeconfig};
use clap::Args as ClapArgs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Embedded, ListOptions, Range, Store};
use store_etcd::Etcd;

/// What every key begins with.
const ROOT: &str = "/registry/";
/// The port of etcd's clients.
const PORT: u16 = 2379;
/// What values of upstream's server begin with.
const UPSTREAM: &[u8] = b"k8s\0";

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The flags that say where the data is kept, beside the folder.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub struct Args {
    /// Keep the data in etcd in place of the folder: etcd://HOST:PORT,HOST:PORT,... or, with TLS, etcds://...
    #[arg(long, value_name = "URL", env = "STANCHION_STORAGE")]
    storage: Option<String>,

    /// Authority that signs etcd's certificate, in PEM form
    #[arg(long, value_name = "FILE", env = "STANCHION_ETCD_CAFILE")]
    etcd_cafile: Option<PathBuf>,

    /// Certificate to show to etcd, in PEM form
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile", env = "STANCHION_ETCD_CERTFILE")]
    etcd_certfile: Option<PathBuf>,

    /// Key of --etcd-certfile
    #[arg(long, value_name = "FILE", requires = "etcd_certfile", env = "STANCHION_ETCD_KEYFILE")]
    etcd_keyfile: Option<PathBuf>,

    /// What the names of all keys in etcd begin with
    #[arg(long, value_name = "PREFIX", default_value = "/registry", env = "STANCHION_ETCD_PREFIX")]
    etcd_prefix: String,

    /// How often etcd is told to forget old versions, such as 5m; 0 leaves that to others
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = object::duration::go, env = "STANCHION_ETCD_COMPACTION_INTERVAL")]
    etcd_compaction_interval: Duration,
}

/// Where the data is kept.
#[derive(Debug)]
pub enum Storage {
    /// In memory.
    Memory,
    /// In this folder.
    Folder(PathBuf),
    /// In etcd.
    Etcd(Box<store_etcd::Options>),
}

impl Args {
    /// Where the data is kept: in etcd if that is asked for.
    pub fn storage(&self, folder: &Path) -> Result<Storage, Error> {
        match &self.storage {
            None => Ok(Storage::Folder(folder.join("store"))),
            Some(url) => self.etcd(url).map(Box::new).map(Storage::Etcd),
        }
    }

    fn etcd(&self, url: &str) -> Result<store_etcd::Options, Error> {
        let Address { endpoints, tls } = Address::parse(url).map_err(|why| format!("--storage {url}: {why}"))?;
        let read = |file: &Option<PathBuf>| match file {
            None => Ok(Vec::new()),
            Some(file) => std::fs::read(file).map_err(|e| format!("{}: {e}", file.display())),
        };
        let tls = if tls || self.etcd_cafile.is_some() {
            let Some(authority) = &self.etcd_cafile else {
                return Err("etcds:// needs --etcd-cafile, the authority that signs etcd's certificate".into());
            };
            let files = Kubeconfig {
                authority: read(&self.etcd_cafile)?,
                certificate: read(&self.etcd_certfile)?,
                key: read(&self.etcd_keyfile)?,
                ..Kubeconfig::default()
            };
            let mut config = cluster::tls(&files).map_err(|e| format!("{}: {e}", authority.display()))?;
            config.alpn_protocols = vec![b"h2".to_vec()];
            Some(Arc::new(config))
        } else {
            None
        };
        Ok(store_etcd::Options {
            tls,
            root: ROOT.to_owned(),
            prefix: format!("/{}/", self.etcd_prefix.trim_matches('/')),
            compaction: self.etcd_compaction_interval,
            ..store_etcd::Options::at(endpoints)
        })
    }
}

impl Storage {
    /// Opens the store.
    pub async fn open(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(match self {
            Storage::Memory => Arc::new(Embedded::in_memory(store::Options::default())),
            Storage::Folder(folder) => Arc::new(Embedded::open(folder, store::Options::default())?),
            Storage::Etcd(options) => {
                let store = Etcd::open((**options).clone()).await?;
                refuse_upstream(&store, &options.prefix).await?;
                Arc::new(store)
            }
        })
    }

    /// Whether other servers may use the same store.
    pub fn is_shared(&self) -> bool {
        matches!(self, Storage::Etcd(_))
    }
}

/// The data of upstream's server cannot be read, and must not be mixed with.
async fn refuse_upstream(store: &Etcd, prefix: &str) -> Result<(), Error> {
    let some = ListOptions { limit: 500, ..ListOptions::default() };
    let page = store.list(&Range::prefix(ROOT), some).await?;
    match page.entries.iter().find(|entry| entry.value.starts_with(UPSTREAM)) {
        Some(entry) => Err(format!(
            "etcd holds data of a kube-apiserver below {prefix} ({}): give another --etcd-prefix",
            entry.key
        )
        .into()),
        None => Ok(()),
    }
}

/// The folder for the data where none is given.
pub fn default_folder() -> Result<PathBuf, Error> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("XDG_DATA_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("stanchion"))
        .ok_or_else(|| "neither XDG_DATA_HOME nor HOME is set: say where the data goes with --data-dir".into())
}

#[derive(Debug, PartialEq, Eq)]
struct Address {
    endpoints: Vec<String>,
    tls: bool,
}

impl Address {
    fn parse(url: &str) -> Result<Self, String> {
        let (tls, rest) = match url.split_once("://") {
            Some(("etcd", rest)) => (false, rest),
            Some(("etcds", rest)) => (true, rest),
            _ => return Err("it has to begin with etcd:// or etcds://".to_owned()),
        };
        // Each may have the scheme again, as upstream's --etcd-servers has it.
        let bare = |part: &str| part.trim().rsplit("://").next().unwrap_or_default().trim_end_matches('/').to_owned();
        let endpoints = rest.split(',').map(bare).map(|host| {
            let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
            match port {
                _ if host.is_empty() || host.contains(['/', '@']) => Err(format!("{host:?} is no HOST:PORT")),
                None => Ok(format!("{host}:{PORT}")),
                Some(port) if port.parse::<u16>().is_ok() => Ok(host),
                Some(port) => Err(format!("{port:?} is no port")),
            }
        });
        Ok(Address { endpoints: endpoints.collect::<Result<_, _>>()?, tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_members() {
        let parsed = |url| Address::parse(url).map(|a| (a.endpoints.join(" "), a.tls));
        for (url, endpoints, tls) in [
            ("etcd://a:1", "a:1", false),
            ("etcds://a,b:2", "a:2379 b:2", true),
            ("etcd://a:1,etcd://b:2/", "a:1 b:2", false),
            ("etcd://[::1],[::1]:5", "[::1]:2379 [::1]:5", false),
        ] {
            assert_eq!(parsed(url), Ok((endpoints.to_owned(), tls)), "{url}");
        }
        for url in ["a:1", "http://a:1", "etcd://", "etcd://a:b", "etcd://a:1,", "etcd://user@a:1"] {
            assert!(parsed(url).is_err(), "{url}");
        }
    }
}
