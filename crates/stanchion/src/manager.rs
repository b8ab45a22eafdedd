//! `stanchion manager`: the managed-resource controllers against any cluster.

use crate::cluster::{ClusterArgs, Connections, Failure};
use crate::server::logging;
use ::manager::application::{self, clusters::names::NAMESPACE as CLUSTER_NAMESPACE};
use clap::Args as ClapArgs;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// The flags of `stanchion manager`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Write the CustomResourceDefinitions of the kinds at the start
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, env = "STANCHION_INSTALL_KINDS")]
    install_kinds: bool,

    /// Namespace of the Secrets of the clusters into which Applications deploy
    #[arg(long, value_name = "NAME", default_value = CLUSTER_NAMESPACE, env = "STANCHION_CLUSTER_NAMESPACE")]
    cluster_namespace: String,

    /// What is logged: error, warn, info, debug or trace, or a filter such as info,manager=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn", env = "STANCHION_LOG_LEVEL")]
    log_level: String,

    /// How it is logged
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = logging::Format::Text, env = "STANCHION_LOG_FORMAT")]
    log_format: logging::Format,
}

/// How the controller of Applications runs: with the clusters that the Secrets of a namespace name.
pub fn applications(cluster_namespace: &str) -> application::Options {
    application::Options {
        connector: Some(Arc::new(Connections)),
        cluster_namespace: cluster_namespace.to_owned(),
        ..application::Options::default()
    }
}

/// Runs the controllers until SIGTERM or SIGINT.
pub fn run(args: &Args) -> Result<(), Failure> {
    logging::start(&args.log_level, args.log_format)?;
    let client = args.cluster.client()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let applications = applications(&args.cluster_namespace);
        let options = ::manager::Options { install: args.install_kinds, applications, ..::manager::Options::default() };
        tokio::select! {
            ended = ::manager::run(client, options) => ended.map_err(Failure::from),
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    });
    runtime.shutdown_background();
    outcome
}
