//! `stanchion cluster`: the clusters into which Applications deploy.

mod commands;
mod detach;
mod probe;
mod view;

use crate::cluster::{ClusterArgs, Failure};
use crate::terminal::Output;
use clap::{Args as ClapArgs, Subcommand};
use manager::application::clusters::names::NAMESPACE;
use std::path::PathBuf;

/// Join clusters into which Applications deploy, and look after them.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Namespace of the clusters' Secrets
    #[arg(long, value_name = "NAME", default_value = NAMESPACE, global = true)]
    cluster_namespace: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Join a cluster
    Join(Join),
    /// List clusters
    #[command(visible_alias = "ls")]
    List {
        /// Form of the output [default: a table]
        #[arg(short, long, value_enum, value_name = "FORMAT")]
        output: Option<Output>,
        /// Do not ask the clusters how they are
        #[arg(long)]
        no_probe: bool,
    },
    /// Ask clusters whether they answer, and how fast
    Probe {
        /// Names of clusters
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Let a cluster go
    Detach(Detach),
    /// Give a cluster another name; what Applications have there stays, and the former name goes on to mean it
    Rename {
        /// Name of the cluster
        name: String,
        /// Name that it is to have
        to: String,
    },
    /// Give a cluster a name for people
    Alias {
        /// Name of the cluster
        name: String,
        /// Its alias; empty for none
        alias: String,
    },
    /// Change the labels by which topologies select clusters
    Labels {
        #[command(subcommand)]
        change: Labels,
    },
}

/// How a cluster joins.
#[derive(Debug, ClapArgs)]
struct Join {
    /// Kubeconfig file of the cluster
    file: PathBuf,
    /// Name that it is to have [default: that of the cluster in the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Context of the file [default: its current one]
    #[arg(long, value_name = "NAME")]
    from_context: Option<String>,
    /// Name for people
    #[arg(long, value_name = "TEXT")]
    alias: Option<String>,
    /// Labels, by which topologies select it
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    labels: Vec<String>,
    /// Namespace that is made in the cluster; empty for none
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    create_namespace: String,
    /// Join it although the name was another cluster's before: from now on it means this one
    #[arg(long)]
    take_name: bool,
}

/// What becomes of what Applications have in a cluster that is let go.
#[derive(Debug, ClapArgs)]
struct Detach {
    /// Name of the cluster
    name: String,
    /// Leave the objects of Applications there, and forget them; for a cluster that is gone, too
    #[arg(long, conflicts_with = "delete")]
    orphan: bool,
    /// Delete the objects of Applications there first
    #[arg(long)]
    delete: bool,
    /// Go on although objects are there that cannot be deleted; without --delete the same as --orphan
    #[arg(long)]
    force: bool,
    /// How long to wait for the deletion: seconds, or a time like 5m
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = crate::terminal::seconds)]
    timeout: u64,
}

#[derive(Debug, Subcommand)]
enum Labels {
    /// Set labels
    Add {
        /// Name of the cluster
        name: String,
        /// The labels
        #[arg(value_name = "KEY=VALUE,...", value_delimiter = ',', required = true)]
        labels: Vec<String>,
    },
    /// Take labels away
    #[command(visible_alias = "delete")]
    Del {
        /// Name of the cluster
        name: String,
        /// Their keys
        #[arg(value_name = "KEY,...", value_delimiter = ',', required = true)]
        keys: Vec<String>,
    },
}

/// Runs the command.
pub fn run(args: Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let session = commands::Session::new(args.cluster.session()?.0, args.cluster_namespace);
        match args.command {
            Command::Join(join) => session.join(join).await,
            Command::List { output, no_probe } => session.list(output, !no_probe).await,
            Command::Probe { names } => session.probe(&names).await,
            Command::Detach(detach) => session.detach(detach).await,
            Command::Rename { name, to } => session.rename(&name, &to).await,
            Command::Alias { name, alias } => session.alias(&name, &alias).await,
            Command::Labels { change: Labels::Add { name, labels } } => session.add_labels(&name, &labels).await,
            Command::Labels { change: Labels::Del { name, keys } } => session.drop_labels(&name, &keys).await,
        }
    })
}
