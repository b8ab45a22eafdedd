//! Soaks a server and says whether it stood the test.
//!
//! `cargo run --release -p bench --bin soak -- --help`

use bench::soak::{Options, soak};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Soak a server: mixed verbs, watches, managers of shared objects, webhooks that fail, definitions that come and go
#[derive(Debug, Parser)]
struct Args {
    /// The program to soak
    #[arg(long, default_value = "target/release/stanchion")]
    program: PathBuf,

    /// A flag for its server; may be given again
    #[arg(long = "flag", allow_hyphen_values = true)]
    flags: Vec<String>,

    /// How many minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,

    /// Clients of mixed verbs
    #[arg(long, default_value_t = 50)]
    clients: usize,

    /// Requests a second of all clients together
    #[arg(long, default_value_t = 300)]
    rate: usize,

    /// Watches
    #[arg(long, default_value_t = 500)]
    watches: usize,

    /// Managers that apply to shared objects
    #[arg(long, default_value_t = 20)]
    managers: usize,

    /// Definitions, and as many namespaces, that come and go
    #[arg(long, default_value_t = 4)]
    comings: usize,

    /// What random choices begin with
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse();
    let options = Options {
        program: args.program,
        flags: args.flags,
        period: Duration::from_secs_f64(args.minutes * 60.0),
        clients: args.clients,
        rate: args.rate,
        watches: args.watches,
        managers: args.managers,
        comings: args.comings,
        seed: args.seed,
        verbose: true,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let verdict = runtime.block_on(soak(&options))?;
    print!("{verdict}");
    Ok(if verdict.faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
