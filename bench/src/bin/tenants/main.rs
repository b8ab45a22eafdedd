//! The manager under a full house: tenants with namespaces, and a TenantResource each that declares objects for them.
//! Measures the first apply, a resync that finds nothing to do, a restart, the memory that the manager adds, how soon what
//! others change is put back, and what objects cost that nobody manages.
//!
//! `cargo run --release -p bench --bin tenants -- --tenants 100`

mod house;
mod process;

use bench::report;
use clap::Parser;
use compat::server::Server;
use house::House;
use process::Meter;
use std::path::PathBuf;
use std::time::Duration;

/// Measure the manager of tenants.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// The program to measure
    #[arg(long, default_value = "target/release/stanchion")]
    program: PathBuf,

    /// Tenants
    #[arg(long, default_value_t = 1000)]
    tenants: usize,

    /// Namespaces of each tenant
    #[arg(long, default_value_t = 10)]
    namespaces: usize,

    /// Objects in each namespace
    #[arg(long, default_value_t = 10)]
    items: usize,

    /// Objects that others change or delete, to see how soon they are put back
    #[arg(long, default_value_t = 400)]
    repairs: usize,

    /// Objects of the same kind that nobody manages
    #[arg(long, default_value_t = 100_000)]
    foreign: usize,

    /// Connections that send requests side by side
    #[arg(long, default_value_t = 16)]
    connections: usize,

    /// Seconds without work after which the server counts as done
    #[arg(long, default_value_t = 3)]
    quiet: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let quiet = Duration::from_secs(args.quiet);
    let mut server = Server::start_durable(&args.program, &["--manager"])?;
    let mut house = House::new(&server.target, args);

    let mut meter = Meter::start(&server)?;
    house.build().await?;
    meter.settle(quiet).await?;
    meter.tell("tenants and namespaces", house.writes().await?)?;

    house.declare().await?;
    house.all_ready().await?;
    meter.settle(quiet).await?;
    meter.tell(&format!("first apply of {} objects", house.objects()), house.writes().await?)?;

    house.touch().await?;
    meter.settle(quiet).await?;
    meter.tell(&format!("resync ({} writes are the measurement's)", args.tenants), house.writes().await?)?;

    house.heal(args.repairs).await?;
    share(&mut server, &mut house, "managed objects only", quiet).await?;
    if args.foreign > 0 {
        house.crowd(args.foreign).await?;
        share(&mut server, &mut house, &format!("beside {} objects of others", args.foreign), quiet).await?;
        house.heal(args.repairs).await?;
    }
    Ok(())
}

/// The memory that the manager adds: what the server takes with it, without what it takes alone with the same data.
async fn share(server: &mut Server, house: &mut House, what: &str, quiet: Duration) -> Result<(), String> {
    server.restart_with(&[])?;
    let mut meter = Meter::start(server)?;
    meter.settle(quiet).await?;
    let alone = report::resident(server.id())?;
    house.moved(&server.target);
    house.writes().await?;
    server.restart_with(&["--manager"])?;
    let mut meter = Meter::start(server)?;
    house.moved(&server.target);
    meter.settle(quiet).await?;
    meter.tell(&format!("restart, {what}"), house.writes().await?)?;
    let with = report::resident(server.id())?;
    let megabytes = |bytes: u64| bytes / 1_000_000;
    println!(
        "memory, {what}: {} MB with the manager, {} MB alone, its share {} MB",
        megabytes(with),
        megabytes(alone),
        megabytes(with.saturating_sub(alone))
    );
    Ok(())
}
