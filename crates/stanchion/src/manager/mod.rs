//! `stanchion manager`: the managed-resource controllers against any cluster.

mod applications;
mod bundle;
mod election;
mod metrics;
mod registrar;
mod webhooks;

use crate::cluster::{ClusterArgs, Failure};
use crate::server::logging;
use apiserver::auth::Authenticator;
pub use applications::Args as ApplicationArgs;
use clap::Args as ClapArgs;
use client::{Client, Resource};
use manager::Manager;
use object::{Value, map};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// The flags of `stanchion manager`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// YAML file of flags and their values; flags and environment variables count more
    #[arg(long, value_name = "FILE", env = "STANCHION_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Write the CustomResourceDefinitions of the kinds at the start
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, env = "STANCHION_INSTALL_KINDS")]
    install_kinds: bool,

    #[command(flatten)]
    applications: applications::Args,

    /// Address and port for /metrics, /healthz and /readyz, over plain HTTP
    #[arg(long, value_name = "ADDRESS", env = "STANCHION_METRICS_LISTEN")]
    metrics_listen: Option<SocketAddr>,

    #[command(flatten)]
    webhooks: webhooks::Args,

    #[command(flatten)]
    election: election::Args,

    /// What is logged: error, warn, info, debug or trace, or a filter such as info,manager=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn", env = "STANCHION_LOG_LEVEL")]
    log_level: String,

    /// How it is logged
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = logging::Format::Text, env = "STANCHION_LOG_FORMAT")]
    log_format: logging::Format,
}

/// Runs the controllers until SIGTERM or SIGINT.
pub fn run(args: &Args) -> Result<(), Failure> {
    logging::start(&args.log_level, args.log_format)?;
    let client = args.cluster.client()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        work(args, client, stop).await
    });
    runtime.shutdown_background();
    outcome
}

async fn work(args: &Args, client: Client, stop: impl Future<Output = ()>) -> Result<(), Failure> {
    let mut stop = std::pin::pin!(stop);
    let user = who_am_i(&client).await?;
    let admission = manager::Admission::default().authenticating(args.applications.authenticate_applications);
    let metrics = manager::Metrics::default();
    let _page = match args.metrics_listen {
        Some(address) => Some(metrics::serve(address, metrics.clone(), admission.clone()).await?),
        None => None,
    };
    let webhooks = args.webhooks.start(&client, &admission, &metrics).await?;
    let options = manager::Options {
        install: args.install_kinds,
        user: user.clone(),
        admission: admission.clone(),
        metrics: metrics.clone(),
        applications: args.applications.options(),
        ..manager::Options::default()
    };
    let opened = tokio::select! {
        opened = Manager::open(client.clone(), options) => opened?,
        () = &mut stop => return Ok(()),
    };
    let _registered = match webhooks {
        Some(webhooks) => Some(webhooks.register(&client, &user)),
        None => {
            tracing::warn!("nothing is protected: the server asks nobody without --webhook-service or --webhook-url");
            None
        }
    };
    args.election.lead(&client, opened, &metrics, stop).await
}

/// Whoever asks need not say who they are: a review says nothing that its sender does not know.
fn everybody() -> Authenticator {
    Authenticator { anonymous: true, ..Authenticator::default() }
}

/// As whom the server knows this program.
async fn who_am_i(client: &Client) -> Result<String, Failure> {
    let reviews = Resource::known("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", false);
    let review: Value = map! { "apiVersion" => reviews.api_version(), "kind" => &*reviews.kind }.into();
    let answer = client.api(&reviews).create("", &review).await?;
    let name = answer.str_at(&["status", "userInfo", "username"]).filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| "the server does not say who this program is".into())
}
