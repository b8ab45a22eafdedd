//! How the controller of Applications runs: flags as KubeVela has them.

use crate::cluster::Connections;
use clap::Args as ClapArgs;
use manager::application::Options;
use manager::application::clusters::names::NAMESPACE;
use std::sync::Arc;
use std::time::Duration;

/// The flags about Applications.
#[derive(Debug, ClapArgs)]
#[group(id = "applications")]
pub struct Args {
    /// Namespace of the Secrets of the clusters into which Applications deploy
    #[arg(long, value_name = "NAME", default_value = NAMESPACE, env = "STANCHION_CLUSTER_NAMESPACE")]
    cluster_namespace: String,

    /// How often Applications are looked at, although nothing was heard
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = object::duration::positive, env = "STANCHION_APPLICATION_RE_SYNC_PERIOD")]
    application_re_sync_period: Duration,

    /// How many Applications are worked on at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..), env = "STANCHION_CONCURRENT_RECONCILES")]
    concurrent_reconciles: u16,

    /// How many revisions of an Application are kept beside the current one
    #[arg(long, value_name = "NUMBER", default_value_t = 10, env = "STANCHION_APPLICATION_REVISION_LIMIT")]
    application_revision_limit: u32,

    /// How many revisions of a definition are kept beside the current one and those that Applications name
    #[arg(long, value_name = "NUMBER", default_value_t = 20, env = "STANCHION_DEFINITION_REVISION_LIMIT")]
    definition_revision_limit: u32,

    /// Carry Applications out with the rights of whoever declares them, not with the manager's
    #[arg(long, env = "STANCHION_AUTHENTICATE_APPLICATIONS")]
    pub authenticate_applications: bool,
}

impl Args {
    /// How the controller runs.
    pub fn options(&self) -> Options {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Options {
            connector: Some(Arc::new(Connections)),
            cluster_namespace: self.cluster_namespace.clone(),
            resync: self.application_re_sync_period,
            workers: self.concurrent_reconciles.into(),
            revision_limit: count(self.application_revision_limit),
            definition_revision_limit: count(self.definition_revision_limit),
            ..Options::default()
        }
    }
}
