//! The command line of Stanchion.

mod check;
mod cluster;
mod envtest;
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
    /// Say what the API server would say of CRDs and objects, offline
    Check(check::Args),
    /// Show who owns each field of an object, or what an apply would do
    Ownership(ownership::Args),
    /// Stand in for kube-apiserver and etcd in test environments such as controller-runtime's envtest
    Envtest(envtest::Args),
}

fn main() -> ExitCode {
    if let Some(outcome) = envtest::by_name(std::env::args_os()) {
        return finish(outcome.map(|()| ExitCode::SUCCESS));
    }
    finish(match Cli::parse().command {
        Command::Server(args) => server::run(args).map(|()| ExitCode::SUCCESS),
        Command::Check(args) => check::run(args),
        Command::Ownership(args) => ownership::run(args).map(|()| ExitCode::SUCCESS),
        Command::Envtest(args) => envtest::run(args).map(|()| ExitCode::SUCCESS),
    })
}

fn finish(outcome: Result<ExitCode, Box<dyn std::error::Error + Send + Sync>>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("stanchion: {error}");
            ExitCode::FAILURE
        }
    }
}
