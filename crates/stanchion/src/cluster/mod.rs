//! A cluster as the command line reaches it: through a kubeconfig.

mod client;
mod connect;
mod credentials;
mod exec;
mod kubeconfig;
mod tls;
mod transport;

pub use client::{Cluster, Failure, Found};
pub use connect::{Connections, access};
pub use credentials::Credentials;
pub use kubeconfig::Kubeconfig;
pub use tls::tls;
pub use transport::Connection;

use ::client::Client;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// Somebody to act as.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The name.
    pub user: String,
    /// The groups; without them the server finds out which there are.
    pub groups: Vec<String>,
}

/// The flags that say which cluster, as kubectl has them.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterArgs {
    /// Path of the kubeconfig file [default: the first of $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE", global = true, env = "STANCHION_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig file [default: its current one]
    #[arg(long, value_name = "NAME", global = true, env = "STANCHION_CONTEXT")]
    context: Option<String>,

    /// Namespace of the object [default: that of the context, or default]
    #[arg(short, long, value_name = "NAME", global = true, env = "STANCHION_NAMESPACE")]
    namespace: Option<String>,

    /// User to act as
    #[arg(long = "as", value_name = "USER", global = true, env = "STANCHION_AS")]
    user: Option<String>,

    /// Group to act as, with --as; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", global = true, env = "STANCHION_AS_GROUP")]
    groups: Vec<String>,
}

impl ClusterArgs {
    /// The cluster that the flags name.
    pub fn cluster(&self) -> Result<Cluster, Failure> {
        Cluster::new(self.config()?, self.actor()?)
    }

    /// A client of the cluster for a few requests, and the namespace for objects whose namespace nobody gives.
    pub fn session(&self) -> Result<(Client, String), Failure> {
        let cluster = self.cluster()?;
        let namespace = cluster.namespace().to_owned();
        Ok((Client::new(Arc::new(cluster)), namespace))
    }

    /// A client of the cluster for programs that run for long. It connects when it is first needed.
    pub fn client(&self) -> Result<Client, Failure> {
        let client = Client::new(Arc::new(Connection::new(&self.config()?)?));
        Ok(match self.actor()? {
            Some(Actor { user, groups }) => {
                client.acting_as(&user, &groups.iter().map(String::as_str).collect::<Vec<_>>())
            }
            None => client,
        })
    }

    fn actor(&self) -> Result<Option<Actor>, Failure> {
        match &self.user {
            Some(user) => Ok(Some(Actor { user: user.clone(), groups: self.groups.clone() })),
            None if self.groups.is_empty() => Ok(None),
            None => Err("--as-group needs --as".into()),
        }
    }

    fn config(&self) -> Result<Kubeconfig, Failure> {
        let path = match &self.kubeconfig {
            Some(path) => path.clone(),
            None => kubeconfig::default_path().unwrap_or_default(),
        };
        let mut config = match Kubeconfig::in_cluster() {
            // In a pod there need not be a file.
            Some(config) if self.kubeconfig.is_none() && !path.exists() => config?,
            _ if path.as_os_str().is_empty() => {
                return Err("there is no kubeconfig: set KUBECONFIG or use --kubeconfig".into());
            }
            _ => Kubeconfig::read(&path, self.context.as_deref())?,
        };
        if let Some(namespace) = &self.namespace {
            config.namespace.clone_from(namespace);
        }
        Ok(config)
    }
}
