//! A soak: many clients, watches, managers, webhooks and definitions at once, and a verdict. No answer may be one that a real
//! server would not give, every watch and list has to agree with the store's history, nothing that was acknowledged may be lost,
//! and memory has to stay where it is.

mod clients;
mod comings;
mod history;
mod hooks;
mod kinds;
mod managers;
mod memory;
mod random;
mod run;
mod watchers;

use crate::report::resident;
use compat::client::{Client, Request};
use compat::server::Server;
use futures_util::future::join_all;
use history::set_digest;
use kinds::{KINDS, NAMESPACES};
use memory::Samples;
use run::{Run, lock};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use watchers::Known;

/// How long the recorders may take to see the last writes.
const CATCH_UP: Duration = Duration::from_secs(20);
/// How much memory may grow after the first half of a soak, in parts of what it is then.
const GROWTH: f64 = 0.1;
/// Growth below this many bytes says nothing.
const NOISE: f64 = 12e6;

/// How a soak is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub program: PathBuf,
    /// More flags for its server.
    pub flags: Vec<String>,
    /// How long there is load.
    pub period: Duration,
    /// Clients of mixed verbs.
    pub clients: usize,
    /// Requests a second of all clients together.
    pub rate: usize,
    /// Watches.
    pub watches: usize,
    /// Managers of shared objects.
    pub managers: usize,
    /// Definitions, and as many namespaces, that come and go at the same time.
    pub comings: usize,
    /// What random choices begin with.
    pub seed: u64,
    /// Whether progress is printed.
    pub verbose: bool,
}

/// What came of a soak.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What must not be.
    pub faults: usize,
    text: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Starts a server of its own, durable, and soaks it.
pub async fn soak(options: &Options) -> Result<Verdict, String> {
    // Webhooks fail on purpose, which is a warning each time.
    let flags: Vec<&str> =
        ["--log-level", "error"].into_iter().chain(options.flags.iter().map(String::as_str)).collect();
    let server = Server::start_durable(&options.program, &flags)?;
    prepare(&server).await?;
    let run = Arc::new(Run::new(server.target.clone(), options.period));
    let known = Arc::new(Known::default());
    let stop = Arc::new(AtomicBool::new(false));
    let recorders: Vec<_> = (0..KINDS.len())
        .map(|kind| {
            let (run, known, stop) = (run.clone(), known.clone(), stop.clone());
            tokio::spawn(async move { watchers::recorder(&run, kind, &known, &stop).await })
        })
        .collect();
    while run.watches.load(Ordering::Relaxed) < KINDS.len() && run.fault_count() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let sampling = tokio::spawn(sample(run.clone(), server.id(), options.verbose));
    let load = tasks(&run, &known, options);
    for outcome in join_all(load).await {
        if let Err(error) = outcome {
            run.fault(format!("a task of the soak failed: {error}"));
        }
    }
    let samples = sampling.await.map_err(|e| e.to_string())?;
    catch_up(&run).await;
    stop.store(true, Ordering::Relaxed);
    join_all(recorders).await;
    for (kind, history) in KINDS.iter().zip(&run.histories) {
        for fault in lock(history).faults() {
            run.fault(format!("{}: {fault}", kind.plural));
        }
    }
    Ok(verdict(&run, &samples, options))
}

/// Namespaces and the custom kind.
async fn prepare(server: &Server) -> Result<(), String> {
    let mut client = Client::new(server.target.clone());
    let namespaces = NAMESPACES.iter().chain(&[managers::NAMESPACE, hooks::NAMESPACE]).map(|name| {
        let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        Request::new("POST", "/api/v1/namespaces").body("application/json", body)
    });
    let (plural, group) = kinds::WIDGETS.split_once('.').unwrap_or_default();
    let definition = Request::new("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .body("application/json", kinds::definition(group, plural, "Widget"));
    for request in namespaces.chain([definition]) {
        let answer = client.send_once(&request).await?;
        if answer.code != 201 {
            return Err(format!("{}: {}", answer.code, String::from_utf8_lossy(&answer.body)));
        }
    }
    // Pods wait for the account that a controller makes.
    for namespace in NAMESPACES {
        let request = Request::new("GET", format!("/api/v1/namespaces/{namespace}/serviceaccounts/default"));
        while client.send_once(&request).await?.code != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Everything that makes load, running.
fn tasks(run: &Arc<Run>, known: &Arc<Known>, options: &Options) -> Vec<tokio::task::JoinHandle<()>> {
    type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
    let mut all: Vec<Task> = Vec::new();
    let seed = |number: usize| options.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
    let pace = Duration::from_secs_f64(options.clients as f64 / options.rate.max(1) as f64);
    for number in 0..options.clients {
        let (run, seed) = (run.clone(), seed(number));
        all.push(Box::pin(async move { clients::client(&run, number, seed, pace).await }));
    }
    for number in KINDS.len()..options.watches {
        let (run, known, seed) = (run.clone(), known.clone(), seed(10_000 + number));
        all.push(Box::pin(async move { watchers::watcher(&run, &known, seed).await }));
    }
    for number in 0..options.managers {
        let run = run.clone();
        all.push(Box::pin(async move { managers::manager(&run, number, pace * 4).await }));
    }
    for number in 0..options.comings {
        let (run, other) = (run.clone(), run.clone());
        all.push(Box::pin(async move { comings::definitions(&run, number).await }));
        all.push(Box::pin(async move { comings::namespaces(&other, number).await }));
    }
    let run = run.clone();
    all.push(Box::pin(async move {
        if let Err(error) = hooks::webhooks(&run).await {
            run.fault(error);
        }
    }));
    all.into_iter().map(tokio::spawn).collect()
}

/// Notes memory until the end, and tells how it goes.
async fn sample(run: Arc<Run>, process: u32, verbose: bool) -> Samples {
    let (began, mut samples, mut told) = (Instant::now(), Samples::default(), Instant::now());
    while !run.is_over() {
        run.pause(Duration::from_secs(1)).await;
        let bytes = match resident(process) {
            Ok(bytes) => bytes,
            Err(error) => {
                run.fault(format!("the server is gone: {error}"));
                break;
            }
        };
        samples.note(began.elapsed().as_secs_f64(), bytes);
        if verbose && told.elapsed() >= Duration::from_secs(10) {
            told = Instant::now();
            println!(
                "{:.0} s: {} requests, {} watches opened, {} events seen, {} faults, {} MB",
                began.elapsed().as_secs_f64(),
                run.requests(),
                run.watches.load(Ordering::Relaxed),
                run.events.load(Ordering::Relaxed),
                run.fault_count(),
                bytes / 1_000_000
            );
        }
    }
    samples
}

/// Waits until the recorders saw what a last list shows.
async fn catch_up(run: &Run) {
    for (number, kind) in KINDS.iter().enumerate() {
        let began = Instant::now();
        loop {
            let listed = watchers::list(run, number).await;
            let told = set_digest(lock(&run.histories[number]).state().values());
            match listed {
                Ok((_, items)) if set_digest(items.iter()) == told => break,
                _ if began.elapsed() < CATCH_UP => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(_) => {
                    run.fault(format!("{}: the last list differs from what the watch told", kind.plural));
                    break;
                }
                Err(error) => {
                    run.fault(format!("{}: {error}", kind.plural));
                    break;
                }
            }
        }
    }
}

fn verdict(run: &Run, samples: &Samples, options: &Options) -> Verdict {
    let mut text = String::new();
    let mut line = |added: String| {
        text.push_str(&added);
        text.push('\n');
    };
    for ((what, code), tally) in lock(&run.tallies).iter() {
        let mean = tally.total.as_secs_f64() * 1e3 / tally.count.max(1) as f64;
        let longest = tally.longest.as_secs_f64() * 1e3;
        line(format!("{what} {code}: {}, mean {mean:.1} ms, longest {longest:.0} ms", tally.count));
    }
    let histories: Vec<_> = run.histories.iter().map(lock).collect();
    let sum = |of: fn(&history::History) -> usize| histories.iter().map(|h| of(h)).sum::<usize>();
    line(format!(
        "{} events in the history, {} acknowledged writes, {} lists and {} watches compared, {} events seen by them",
        sum(|h| h.events.len()),
        sum(|h| h.acknowledged.len()),
        sum(|h| h.lists.len()),
        sum(|h| h.seen.len()),
        run.events.load(Ordering::Relaxed),
    ));
    let half = options.period.as_secs_f64() / 2.0;
    let (slope, mean) = (samples.slope(half), samples.mean(half));
    line(format!(
        "memory: {:.0} MB at most, {:.0} MB on average in the second half, where it grows by {:.2} MB a minute",
        samples.peak() / 1e6,
        mean / 1e6,
        slope * 60.0 / 1e6
    ));
    let growth = slope * half;
    if growth > NOISE && growth > mean * GROWTH {
        run.fault(format!("memory grew by {:.0} MB in the second half", growth / 1e6));
    }
    let faults = run.fault_count();
    line(format!("{} requests, {faults} faults", run.requests()));
    Verdict { faults, text }
}
