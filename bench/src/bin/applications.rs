//! How the controller of Applications scales: how fast it dispatches, what it holds in memory, how soon it heals, and what
//! objects that are none of its business cost it. A server and a manager of their own are started.
//!
//! `cargo run --release -p bench --bin applications -- --help`

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bench::report;
use clap::Parser;
use compat::client::{Client, Request, Target};
use compat::server::Server;

/// Measure the controller of Applications.
#[derive(Clone, Debug, Parser)]
struct Args {
    /// The program to measure
    #[arg(long, default_value = "target/release/stanchion")]
    program: PathBuf,

    /// Applications
    #[arg(long, default_value_t = 2000)]
    applications: usize,

    /// Objects of each
    #[arg(long, default_value_t = 8)]
    objects: usize,

    /// Edits a second by others, while objects are deleted
    #[arg(long, default_value_t = 100)]
    edits: usize,

    /// Objects that are deleted, one after the other
    #[arg(long, default_value_t = 100)]
    deletions: usize,

    /// Deployments that belong to nobody
    #[arg(long, default_value_t = 100_000)]
    unrelated: usize,

    /// Seconds for which nothing happens
    #[arg(long, default_value_t = 30)]
    quiet: u64,
}

/// The manager's process; it ends with this.
struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(measure(&args))?)
}

async fn measure(args: &Args) -> Result<(), String> {
    let server = Server::start_durable(&args.program, &[])?;
    let mut manager = Command::new(&args.program);
    manager.args(["manager", "--kubeconfig"]).arg(&server.kubeconfig).stdout(Stdio::null());
    let manager = Manager(manager.spawn().map_err(|error| format!("{}: {error}", args.program.display()))?);
    let process = manager.0.id();
    let target = &server.target;
    let mut client = Client::new(target.clone());
    until("Applications are served", Duration::from_secs(60), async || {
        get(&mut client, "/apis/core.oam.dev/v1beta1/applications").await.is_some()
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("manager without Applications: {} MB resident", megabytes(process)?);

    let (began, spent) = (Instant::now(), cpu(process)?);
    let objects = args.objects;
    create(target, args.applications, move |number| {
        ("/apis/core.oam.dev/v1beta1/namespaces/default/applications".to_owned(), application(number, objects))
    })
    .await?;
    let created = began.elapsed();
    // The count of the rest is not told where a selector is given; nothing else makes ConfigMaps here.
    let last = "/api/v1/namespaces/default/configmaps?limit=1";
    let total = args.applications * args.objects;
    until("all objects are there", Duration::from_secs(1200), async || {
        let answer = get(&mut client, last).await.unwrap_or_default();
        remaining(&answer) + 1 >= total
    })
    .await?;
    let took = began.elapsed().as_secs_f64();
    println!(
        "{total} objects of {} Applications (declared in {:.1} s): {:.0} a second, {:.1} s of the manager's CPU time",
        args.applications,
        created.as_secs_f64(),
        total as f64 / took,
        cpu(process)? - spent,
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = megabytes(process)?;
    println!("manager with {} Applications: {before} MB resident", args.applications);

    let spent = cpu(process)?;
    tokio::time::sleep(Duration::from_secs(args.quiet)).await;
    println!("quiet for {} s: {:.2} s of the manager's CPU time", args.quiet, cpu(process)? - spent);

    heal(args, target).await?;

    let before = megabytes(process)?;
    create(target, args.unrelated, |number| {
        ("/apis/apps/v1/namespaces/default/deployments".to_owned(), deployment(number))
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("{} unrelated Deployments: manager {before} MB before, {} MB after", args.unrelated, megabytes(process)?);
    Ok(())
}

/// Deletes objects one after the other while others are edited, and prints how long each was gone.
async fn heal(args: &Args, target: &Target) -> Result<(), String> {
    let is_over = Arc::new(AtomicBool::new(false));
    let edits = Arc::new(AtomicUsize::new(0));
    let editor = {
        let (is_over, edits, args) = (is_over.clone(), edits.clone(), args.clone());
        let mut client = Client::new(target.clone());
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / args.edits.max(1) as f64));
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                tick.tick().await;
                // Each edit is of another object, and none of one that is deleted.
                number += 1;
                let (app, object) = (number % args.applications, 1 + number / args.applications % (args.objects - 1));
                let body = format!(r#"{{"data":{{"value":"edited {number}"}}}}"#);
                let path = format!("/api/v1/namespaces/default/configmaps/app-{app}-{object}");
                let edit = request("PATCH", path, Some(body), "application/merge-patch+json");
                if client.send(&edit).await.is_ok_and(|answer| answer.code == 200) {
                    edits.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let began = Instant::now();
    let mut client = Client::new(target.clone());
    let mut took = Vec::new();
    for number in 0..args.deletions {
        let app = number * 7 % args.applications;
        let path = format!("/api/v1/namespaces/default/configmaps/app-{app}-0");
        let deleted = Instant::now();
        client.send(&request("DELETE", path.clone(), None, "application/json")).await?;
        while get(&mut client, &path).await.is_none() {
            if deleted.elapsed() > Duration::from_secs(30) {
                return Err(format!("{path} does not come back"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        took.push(deleted.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    _ = editor.await;
    let period = began.elapsed();
    let rate = edits.load(Ordering::Relaxed) as f64 / period.as_secs_f64();
    report::latencies(&format!("deleted objects back, at {rate:.0} edits a second by others"), took, period, 0);
    Ok(())
}

/// Creates `count` objects over many connections; `make` gives path and body by number.
async fn create<F>(target: &Target, count: usize, make: F) -> Result<(), String>
where
    F: Fn(usize) -> (String, String) + Send + Sync + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let make = Arc::new(make);
    let mut workers = Vec::new();
    for _ in 0..16 {
        let (mut client, next, make) = (Client::new(target.clone()), next.clone(), make.clone());
        workers.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                let (path, body) = make(number);
                let answer = client.send(&request("POST", path, Some(body), "application/json")).await?;
                if answer.code != 201 {
                    return Err(format!("{}: {}", answer.code, String::from_utf8_lossy(&answer.body)));
                }
            }
        }));
    }
    for worker in workers {
        worker.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

fn request(method: &str, path: String, body: Option<String>, media_type: &str) -> Request {
    let request = Request::new(method, path);
    match body {
        Some(body) => request.body(media_type, body),
        None => request,
    }
}

/// The body of an answer; nothing unless it is a good one.
async fn get(client: &mut Client, path: &str) -> Option<String> {
    let answer = client.send(&Request::new("GET", path)).await.ok()?;
    (answer.code == 200).then(|| String::from_utf8_lossy(&answer.body).into_owned())
}

/// What a list says of how much more there is.
fn remaining(list: &str) -> usize {
    let Some((_, rest)) = list.split_once("\"remainingItemCount\":") else { return 0 };
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or_default()
}

async fn until(what: &str, patience: Duration, mut check: impl AsyncFnMut() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !check().await {
        if began.elapsed() > patience {
            return Err(format!("never: {what}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn megabytes(process: u32) -> Result<u64, String> {
    Ok(report::resident(process)? / 1_000_000)
}

/// The CPU time of a process in seconds.
fn cpu(process: u32) -> Result<f64, String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).map_err(|error| error.to_string())?;
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    // utime and stime, in ticks of 10 ms.
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    Ok((ticks(11) + ticks(12)) / 100.0)
}

/// An Application of one component for each of `objects` ConfigMaps of half a kilobyte.
fn application(number: usize, objects: usize) -> String {
    let components: Vec<String> = (0..objects)
        .map(|object| {
            let value = "x".repeat(400);
            format!(
                r#"{{"name":"c{object}","type":"k8s-objects","properties":{{"objects":[{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"app-{number}-{object}"}},"data":{{"value":"{value}"}}}}]}}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"apiVersion":"core.oam.dev/v1beta1","kind":"Application","metadata":{{"name":"app-{number}"}},"spec":{{"components":[{}]}}}}"#,
        components.join(",")
    )
}

fn deployment(number: usize) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"unrelated-{number}"}},"spec":{{"replicas":0,"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}
