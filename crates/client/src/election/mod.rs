//! Which one of several programs leads, decided by a `Lease` as client-go's leader election does it.
//!
//! The leader writes its name and the time into the lease again and again. The others watch that it does, by their own
//! clocks, and take the lease when it has been silent for its duration. A leader that cannot renew the lease in time
//! stops leading before anybody else can begin, unless its process stood still meanwhile: the lease does not fence off
//! what such a one has still under way.

mod rules;
#[cfg(test)]
mod tests;

use crate::events::{EventType, Recorder};
use crate::{Api, Clock, Error};
use object::Value;
use rules::{Record, fresh};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// A candidate waits up to so much longer than its period, in parts of it (client-go's factor).
const JITTER: f64 = 1.2;

/// How long what matters to an election takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// After how much silence a candidate takes the lease of another. In the lease it is written in whole seconds.
    pub lease_duration: Duration,
    /// For how long a leader tries to renew the lease before it stops leading; less than the lease's duration.
    pub renew_deadline: Duration,
    /// How long to wait between tries.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// 15, 10 and 2 seconds, as upstream's components.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timing { lease_duration: seconds(15), renew_deadline: seconds(10), retry_period: seconds(2) }
    }
}

/// Where a candidate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// This one leads.
    Leading,
    /// Another one leads, or nobody is known to (empty).
    Following(String),
}

/// A candidate in an election.
pub struct Election {
    api: Api,
    namespace: String,
    name: String,
    identity: String,
    timing: Timing,
    clock: Clock,
    recorder: Option<Recorder>,
    state: watch::Sender<State>,
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Election { namespace, name, identity, .. } = self;
        f.debug_struct("Election").field("lease", &format_args!("{namespace}/{name}")).field("as", identity).finish()
    }
}

/// What a candidate knows of the lease.
struct Seen {
    lease: Value,
    record: Record,
    /// Since when the lease says this, as far as the candidate knows.
    since: Instant,
}

/// How a term ended.
enum End<T> {
    /// The candidate was told to stop.
    Stopped,
    /// The lease could not be renewed in time, or another one has it.
    Lost,
    /// The leader's work came to its end.
    Done(T),
}

impl Election {
    /// A candidate for the lease of this name, for which `api` is [`LEASES`](crate::resources::LEASES). Its identity is
    /// one that no other candidate has, such as the name of the machine and something random.
    pub fn new(api: Api, namespace: &str, name: &str, identity: &str, timing: Timing) -> Self {
        Election {
            api,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            timing,
            clock: Arc::new(jiff::Timestamp::now),
            recorder: None,
            state: watch::channel(State::Following(String::new())).0,
        }
    }

    /// The same candidate, who tells events `LeaderElection` of the lease: "NAME became leader", "NAME stopped leading".
    #[must_use]
    pub fn with_recorder(self, recorder: Recorder) -> Self {
        Election { recorder: Some(recorder), ..self }
    }

    /// The same candidate with another clock for the times in the lease.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Election { clock, ..self }
    }

    /// Where the candidate stands, to watch.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Stands for election until `stop` is ready, and does `lead` in each term. When the lease is lost, the work is
    /// dropped at once and the candidate stands again. In the end the lease is released, so that another one can
    /// take it without waiting.
    ///
    /// Gives what the work gave if it came to its end by itself, nothing after `stop`.
    pub async fn run<F: Future>(
        &self,
        stop: impl Future<Output = ()>,
        mut lead: impl FnMut() -> F,
    ) -> Option<F::Output> {
        let mut stop = pin!(stop);
        let mut seen = None;
        let outcome = loop {
            tokio::select! {
                biased;
                () = &mut stop => break None,
                () = self.acquire(&mut seen) => {}
            }
            self.state.send_replace(State::Leading);
            self.tell("became leader");
            let end = tokio::select! {
                biased;
                () = &mut stop => End::Stopped,
                () = self.renew(&mut seen) => End::Lost,
                done = lead() => End::Done(done),
            };
            self.state.send_replace(State::Following(String::new()));
            self.tell("stopped leading");
            match end {
                End::Lost => self.report(seen.as_ref()),
                End::Stopped => break None,
                End::Done(done) => break Some(done),
            }
        };
        // A request that was under way may have taken the lease, so that the server is asked.
        let _ = timeout(self.timing.retry_period, self.release()).await;
        outcome
    }

    /// Ready when the lease is this candidate's.
    async fn acquire(&self, seen: &mut Option<Seen>) {
        while !self.attempt(seen).await {
            self.report(seen.as_ref());
            sleep(self.timing.retry_period.mul_f64(1.0 + JITTER * random())).await;
        }
    }

    /// Renews the lease for as long as that succeeds.
    async fn renew(&self, seen: &mut Option<Seen>) {
        let Timing { renew_deadline, retry_period, .. } = self.timing;
        loop {
            sleep(retry_period).await;
            let renewed = timeout(renew_deadline, async {
                loop {
                    if self.attempt(seen).await {
                        return true;
                    }
                    if seen.as_ref().is_some_and(|seen| seen.record.holder != self.identity) {
                        return false;
                    }
                    sleep(retry_period).await;
                }
            });
            if renewed.await != Ok(true) {
                return;
            }
        }
    }

    /// Tries once to take or to renew the lease; true if it is this candidate's then.
    async fn attempt(&self, seen: &mut Option<Seen>) -> bool {
        // A leader knows what the lease says: it need not read it first.
        if let Some(known) = seen.as_ref().filter(|seen| self.is_own(seen)) {
            let renewed = self.next(Some(known)).map(|next| next.write_to(&known.lease));
            if let Some(lease) = renewed
                && self.put(seen, &lease).await.is_ok()
            {
                return true;
            }
        }
        let outcome = match timeout(self.timing.renew_deadline, self.api.find(&self.namespace, &self.name)).await {
            Ok(Ok(None)) => self.create(seen).await,
            Ok(Ok(Some(lease))) => {
                let record = Record::of(&lease);
                let since = seen.as_ref().filter(|seen| seen.record == record).map_or_else(Instant::now, |s| s.since);
                let known = Seen { lease, record, since };
                let next = self.next(Some(&known)).map(|next| next.write_to(&known.lease));
                *seen = Some(known);
                match next {
                    None => return false,
                    Some(lease) => self.put(seen, &lease).await,
                }
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(late()),
        };
        if let Err(error) = &outcome {
            tracing::debug!(lease = self.name, %error, "the lease cannot be taken");
        }
        outcome.is_ok()
    }

    /// Whether the lease was this candidate's a short time ago.
    fn is_own(&self, seen: &Seen) -> bool {
        seen.record.holder == self.identity && seen.since.elapsed() < self.timing.lease_duration
    }

    fn next(&self, seen: Option<&Seen>) -> Option<Record> {
        let unchanged = seen.map_or(Duration::ZERO, |seen| seen.since.elapsed());
        let held = seen.map(|seen| &seen.record);
        rules::next(&self.identity, self.timing.lease_duration, held, unchanged, &self.now())
    }

    async fn create(&self, seen: &mut Option<Seen>) -> Result<(), Error> {
        let Some(record) = self.next(None) else { return Ok(()) };
        let lease = record.write_to(&fresh(&self.namespace, &self.name));
        self.wrote(seen, self.api.create(&self.namespace, &lease)).await
    }

    async fn put(&self, seen: &mut Option<Seen>, lease: &Value) -> Result<(), Error> {
        self.wrote(seen, self.api.update(lease)).await
    }

    /// Waits for a write of the lease, and takes note of what it says then.
    async fn wrote(
        &self,
        seen: &mut Option<Seen>,
        writing: impl Future<Output = Result<Value, Error>>,
    ) -> Result<(), Error> {
        // The others count from when they see the write: from before it is never too long.
        let since = Instant::now();
        let lease = timeout(self.timing.renew_deadline, writing).await.unwrap_or_else(|_| Err(late()))?;
        *seen = Some(Seen { record: Record::of(&lease), lease, since });
        Ok(())
    }

    /// Gives the lease up, if it is this candidate's.
    async fn release(&self) {
        let Ok(Some(lease)) = self.api.find(&self.namespace, &self.name).await else { return };
        let record = Record::of(&lease);
        if record.holder == self.identity
            && let Err(error) = self.api.update(&record.released(&self.now()).write_to(&lease)).await
        {
            tracing::debug!(lease = self.name, %error, "the lease cannot be released");
        }
    }

    /// Says who leads, if that has changed.
    fn report(&self, seen: Option<&Seen>) {
        let holder = seen.map(|seen| seen.record.holder.clone()).unwrap_or_default();
        let state = State::Following(if holder == self.identity { String::new() } else { holder });
        self.state.send_if_modified(|held| {
            let changed = *held != state;
            *held = state;
            changed
        });
    }

    fn tell(&self, what: &str) {
        tracing::info!(lease = self.name, identity = self.identity, "{what}");
        if let Some(recorder) = &self.recorder {
            let message = format!("{} {what}", self.identity);
            recorder.event(&fresh(&self.namespace, &self.name), EventType::Normal, "LeaderElection", &message);
        }
    }

    /// The time as leases have it.
    fn now(&self) -> String {
        (self.clock)().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }
}

fn late() -> Error {
    Error::Transport("the server does not answer".to_owned())
}

/// A number from 0 to 1. Candidates that started together should not go on together.
fn random() -> f64 {
    f64::from(u32::try_from(RandomState::new().hash_one(0u8) >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
