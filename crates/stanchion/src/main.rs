//! The command line of Stanchion.

mod cluster;
mod ownership;
mod server;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A Kubernetes 1.33 API server in one small program, and what belongs to it.
#[derive(Debug, Parser)]
#[command(
    name = "stanchion",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the API server
    Server(server::Args),
    /// Show who owns each field of an object, or what an apply would do
    Ownership(ownership::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Server(args) => server::run(args),
        Command::Ownership(args) => ownership::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stanchion: {error}");
            ExitCode::FAILURE
        }
    }
}
