//! A cluster as the command line reaches it: through a kubeconfig.

mod client;
mod kubeconfig;
mod transport;

pub use client::{Cluster, Failure, Found};
pub use kubeconfig::Kubeconfig;
pub use transport::Connection;

use clap::Args;
use std::path::PathBuf;

/// The flags that say which cluster, as kubectl has them.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterArgs {
    /// Path of the kubeconfig file [default: the first of $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig file [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Namespace of the object [default: that of the context, or default]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// User to act as
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
}

impl ClusterArgs {
    /// The cluster that the flags name.
    pub fn cluster(&self) -> Result<Cluster, Failure> {
        Cluster::new(self.config()?, self.user.clone())
    }

    /// A connection to the cluster, for programs that run for long. It is not made before it is needed.
    pub fn connection(&self) -> Result<Connection, Failure> {
        Connection::new(&self.config()?)
    }

    fn config(&self) -> Result<Kubeconfig, Failure> {
        let path = match &self.kubeconfig {
            Some(path) => path.clone(),
            None => kubeconfig::default_path().ok_or("there is no kubeconfig: set KUBECONFIG or use --kubeconfig")?,
        };
        let mut config = Kubeconfig::read(&path, self.context.as_deref())?;
        if let Some(namespace) = &self.namespace {
            config.namespace.clone_from(namespace);
        }
        Ok(config)
    }
}
