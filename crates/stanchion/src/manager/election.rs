//! Which of several managers works: flags as kube-controller-manager has them.

use crate::cluster::Failure;
use clap::Args as ClapArgs;
use client::election::{Election, State, Timing};
use client::events::Recorder;
use client::resources::LEASES;
use client::{Client, Clock};
use manager::{Manager, Metrics};
use object::duration::positive;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// The flags about leader election.
#[derive(Debug, ClapArgs)]
#[group(id = "election")]
pub struct Args {
    /// Stand for election before the controllers run, so that of several managers one works
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true",
        action = clap::ArgAction::Set, env = "STANCHION_LEADER_ELECT")]
    leader_elect: bool,

    /// How long a leader may be silent before another one takes over
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = positive, env = "STANCHION_LEADER_ELECT_LEASE_DURATION")]
    leader_elect_lease_duration: Duration,

    /// How long a leader tries to renew its lease before it ends
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive, env = "STANCHION_LEADER_ELECT_RENEW_DEADLINE")]
    leader_elect_renew_deadline: Duration,

    /// How long to wait between tries
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = positive, env = "STANCHION_LEADER_ELECT_RETRY_PERIOD")]
    leader_elect_retry_period: Duration,

    /// Name of the Lease
    #[arg(
        long,
        value_name = "NAME",
        default_value = "stanchion-manager",
        env = "STANCHION_LEADER_ELECT_RESOURCE_NAME"
    )]
    leader_elect_resource_name: String,

    /// Namespace of the Lease
    #[arg(long, value_name = "NAME", default_value = "kube-system", env = "STANCHION_LEADER_ELECT_RESOURCE_NAMESPACE")]
    leader_elect_resource_namespace: String,
}

impl Args {
    /// Runs the controllers until `stop`, from when this manager leads. A manager that lost its lease ends with an error:
    /// started anew it stands again.
    pub async fn lead(
        &self,
        client: &Client,
        manager: Manager,
        metrics: &Metrics,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        if !self.leader_elect {
            tokio::select! {
                () = manager.run() => {}
                () = stop => {}
            }
            return Ok(());
        }
        if self.leader_elect_renew_deadline >= self.leader_elect_lease_duration {
            return Err("--leader-elect-renew-deadline has to be less than --leader-elect-lease-duration".into());
        }
        let timing = Timing {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        let clock: Clock = Arc::new(jiff::Timestamp::now);
        let (namespace, name) = (&self.leader_elect_resource_namespace, &self.leader_elect_resource_name);
        let election = Election::new(client.api(&LEASES), namespace, name, &identity()?, timing)
            .with_recorder(Recorder::new(client, "stanchion-manager", clock));
        metrics.leads(name, false);
        let mut state = election.state();
        let stopping = Cell::new(false);
        let stop = async {
            stop.await;
            stopping.set(true);
        };
        // In the end the lease is given back, which is no loss.
        let lost = async {
            let led = state.wait_for(|state| *state == State::Leading).await.is_ok();
            let _ = state.wait_for(|state| *state != State::Leading).await;
            led && !stopping.get()
        };
        // Whatever a term left behind in memory is not for a second one.
        let mut manager = Some(manager);
        let lead = || {
            let manager = manager.take();
            metrics.leads(name, true);
            async move {
                if let Some(manager) = manager {
                    manager.run().await;
                }
            }
        };
        tokio::select! {
            biased;
            _ = election.run(stop, lead) => Ok(()),
            true = lost => Err("the lease was lost".into()),
        }
    }
}

/// What no other manager is called.
fn identity() -> Result<String, Failure> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("stanchion").to_owned();
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| format!("there is no randomness: {e}"))?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{host}_{random}"))
}
