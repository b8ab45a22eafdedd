//! Load on a running server over real TLS. Starts a server of its own (durable, on a free port) unless told of another.
//!
//! `cargo run --release -p bench -- --help`

mod load;
mod objects;
mod ruled;
mod watch;

use bench::report;
use clap::{Parser, ValueEnum};
use compat::server::Server;
use load::{Fleet, Plan};
use objects::{Subject, Way};
use std::path::PathBuf;
use std::time::Duration;

/// Measure a server under load.
#[derive(Debug, Parser)]
struct Args {
    /// What to measure, in order [default: all]
    #[arg(value_enum)]
    what: Vec<What>,

    /// The program to measure
    #[arg(long, default_value = "target/release/stanchion")]
    program: PathBuf,

    /// Connections that send requests side by side
    #[arg(long, default_value_t = 32)]
    connections: usize,

    /// Seconds for each measurement of requests a second
    #[arg(long, default_value_t = 5)]
    seconds: u64,

    /// Keep the data in memory only
    #[arg(long)]
    in_memory: bool,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Time to be ready and memory when idle
    Start,
    /// Durable creates of 1 KB ConfigMaps
    Create,
    /// Reads of one ConfigMap
    Get,
    /// Updates of ConfigMaps
    Update,
    /// Server-side applies against updates: a Deployment of 5 KB, lists of 10, 100 and 1,000 keyed items
    Apply,
    /// Updates of a custom object of 10 KB that 20 rules look at
    Rules,
    /// Lists of 500 and of 10,000 objects
    List,
    /// 1,000 watchers of one kind
    Watch,
    /// Memory with 100,000 objects of 2 KB
    Memory,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = Args::parse();
    if args.what.is_empty() {
        args.what = What::value_variants().to_vec();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(args))
}

async fn measure(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    let period = Duration::from_secs(args.seconds);
    for what in &args.what {
        let began = std::time::Instant::now();
        let server = if args.in_memory {
            Server::start(&args.program, &[])?
        } else {
            Server::start_durable(&args.program, &[])?
        };
        let ready = began.elapsed();
        let fleet = Fleet::new(&server.target, args.connections);
        let process = server.id();
        match what {
            What::Start => {
                println!("ready after {:.0} ms with certificates to be made", ready.as_secs_f64() * 1e3);
                tokio::time::sleep(Duration::from_secs(2)).await;
                println!("idle: {} MB resident", report::resident(process)? / 1_000_000);
            }
            What::Create => {
                metered(process, fleet.run("create 1 KB ConfigMaps", period, Plan::Create { size: 1000 })).await?
            }
            What::Get => {
                fleet.fill(1000, 1000).await?;
                metered(process, fleet.run("get a ConfigMap", period, Plan::Get { count: 1000 })).await?;
            }
            What::Update => {
                fleet.fill(1000, 1000).await?;
                metered(process, fleet.run("update ConfigMaps", period, Plan::Update { count: 1000, size: 1000 }))
                    .await?;
            }
            What::Apply => {
                for subject in [Subject::Deployment, Subject::List(10), Subject::List(100), Subject::List(1000)] {
                    for way in [Way::Apply, Way::Update] {
                        metered(process, objects::run(&server.target, args.connections, period, subject, way)).await?;
                    }
                }
            }
            What::Rules => {
                metered(process, objects::run(&server.target, args.connections, period, Subject::Ruled, Way::Update))
                    .await?;
            }
            What::List => {
                fleet.fill(10_000, 1000).await?;
                metered(process, fleet.run("list 500 of 10,000", period, Plan::List { limit: 500 })).await?;
                let one = Fleet::new(&server.target, 1);
                metered(process, one.run("list 10,000", period, Plan::List { limit: 0 })).await?;
            }
            What::Watch => metered(process, watch::fan_out(&server.target, 1000, 1000, period)).await?,
            What::Memory => {
                fleet.fill(100_000, 2000).await?;
                println!("100,000 objects of 2 KB: {} MB resident", report::resident(process)? / 1_000_000);
            }
        }
    }
    Ok(())
}

/// Runs a measurement that gives how many answers or events it saw, and prints what each cost the server.
async fn metered(process: u32, run: impl Future<Output = Result<usize, String>>) -> Result<(), String> {
    let before = report::processor_time(process)?;
    let count = run.await?;
    let used = report::processor_time(process)?.saturating_sub(before);
    println!("  {:.1} \u{b5}s of the server's processor time each", used.as_secs_f64() * 1e6 / count.max(1) as f64);
    Ok(())
}
