//! What the server does beside answering requests: the controllers and the manager. Where several servers share a store,
//! one of them does it: the one that is elected.

use super::controllers::Controllers;
use super::manager;
use ::controllers::{Context, InProcess, Settings, start};
use ::manager::Manager;
use apiserver::Server;
use client::election::{Election, Timing};
use client::events::Recorder;
use client::resources::LEASES;
use client::{Client, Clock};
use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The lease's name, and the program's, as upstream calls them.
const NAME: &str = "kube-controller-manager";

/// What is to be done.
pub(super) struct Work {
    pub(super) server: Arc<Server>,
    pub(super) settings: Settings,
    pub(super) controllers: Controllers,
    /// What the manager works with, if there is one.
    pub(super) managed: Option<manager::Setup>,
}

impl Work {
    /// Does the work until `stopped` becomes true; the task ends then. With a shared store it is done while this server
    /// leads.
    pub(super) fn start(self, shared: bool, mut stopped: watch::Receiver<bool>) -> JoinHandle<()> {
        let stop = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        if shared {
            return tokio::spawn(async move { self.campaign(stop).await });
        }
        // From the first request on.
        let running = self.controllers();
        tokio::spawn(async move {
            let _running = running;
            tokio::select! {
                () = stop => {}
                () = self.manage(None) => {}
            }
        })
    }

    /// Stands for election, and works in each term.
    async fn campaign(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        // The rules of admission hold on every server, so that the manager is opened on all of them.
        let mut opened = tokio::select! {
            () = &mut stop => return,
            opened = self.open() => opened,
        };
        let transport = InProcess::controller_manager(self.server.clone());
        let client = Client::new(Arc::new(transport)).with_user_agent("kube-controller-manager/leader-election");
        let clock: Clock = self.settings.clock.clone();
        let election = Election::new(client.api(&LEASES), "kube-system", NAME, &identity(), Timing::default())
            .with_recorder(Recorder::new(&client, NAME, clock.clone()))
            .with_clock(clock);
        let lead = || {
            let opened = opened.take();
            async move {
                let _running = self.controllers();
                self.manage(opened).await;
            }
        };
        election.run(stop, lead).await;
    }

    fn controllers(&self) -> Vec<::controllers::Running> {
        let context = Context::new(self.server.clone(), self.settings.clone());
        start(&context, |name| self.controllers.has(name))
    }

    async fn open(&self) -> Option<Manager> {
        manager::open(&self.server, self.managed.clone()?).await
    }

    /// Runs the manager, if there is one; never ends.
    async fn manage(&self, opened: Option<Manager>) {
        let opened = match opened {
            Some(opened) => Some(opened),
            None => self.open().await,
        };
        if let Some(opened) = opened {
            opened.run().await;
        }
        pending().await
    }
}

/// A name that no other server has: that of the machine and something random.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.unwrap_or_default();
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{}_{:016x}{:016x}", host.trim(), random(), random())
}
