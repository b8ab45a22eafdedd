//! The command line of Stanchion.

#![warn(clippy::print_stdout)]

mod app;
mod check;
mod cluster;
mod clusters;
mod config;
mod envtest;
mod manager;
mod ownership;
mod permit;
mod server;
mod storage;
mod terminal;
mod transfer;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Requests are begun on one thread and ended on another: the system's allocator has its threads wait for each other
/// then, which costs a fifth of the server's writes.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    Server(Box<server::Args>),
    /// Run the controllers of tenants, permits and Applications against a cluster
    Manager(Box<manager::Args>),
    /// Say what the API server would say of CRDs and objects, offline
    Check(check::Args),
    /// Deploy Applications, and see what became of them
    App(app::Args),
    /// Join clusters into which Applications deploy, and look after them
    Cluster(clusters::Args),
    /// Ask for permits, review them, and end them
    Permit(permit::Args),
    /// Show who owns each field of an object, or what an apply would do
    Ownership(ownership::Args),
    /// Write everything that a store holds to a file
    Export(Box<transfer::ExportArgs>),
    /// Put everything of an export into an empty store
    Import(Box<transfer::ImportArgs>),
    /// Stand in for kube-apiserver and etcd in test environments such as controller-runtime's envtest
    Envtest(envtest::Args),
    /// Print a script that completes commands and flags in a shell
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    if let Some(outcome) = envtest::by_name(std::env::args_os()) {
        return finish(outcome.map(|()| ExitCode::SUCCESS));
    }
    let words = match config::expand(&Cli::command(), std::env::args_os().collect()) {
        Ok(words) => words,
        Err(error) => return finish(Err(error.into())),
    };
    let cli = match Cli::try_parse_from(words.all()) {
        Ok(cli) => cli,
        Err(error) => {
            // Where nothing can be printed, nothing can be told.
            let _ = error.print();
            if let Some(source) = words.source(&Cli::command(), &error) {
                eprintln!("\n{source}");
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    finish(match cli.command {
        Command::Server(args) => server::run(*args).map(|()| ExitCode::SUCCESS),
        Command::Manager(args) => manager::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Check(args) => check::run(args),
        Command::App(args) => app::run(args).map(|()| ExitCode::SUCCESS),
        Command::Cluster(args) => clusters::run(args).map(|()| ExitCode::SUCCESS),
        Command::Permit(args) => permit::run(args).map(|()| ExitCode::SUCCESS),
        Command::Ownership(args) => ownership::run(args).map(|()| ExitCode::SUCCESS),
        Command::Export(args) => transfer::export(&args).map(|()| ExitCode::SUCCESS),
        Command::Import(args) => transfer::import(&args).map(|()| ExitCode::SUCCESS),
        Command::Envtest(args) => envtest::run(args).map(|()| ExitCode::SUCCESS),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "stanchion", &mut script);
            terminal::print(&String::from_utf8_lossy(&script));
            Ok(ExitCode::SUCCESS)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_run_for_long_take_each_flag_from_a_file_and_the_environment() {
        let command = Cli::command();
        for name in ["server", "manager"] {
            let command = command.find_subcommand(name).unwrap();
            assert!(command.get_arguments().any(|flag| flag.get_long() == Some("config")), "{name}");
            for flag in command.get_arguments().filter_map(|flag| Some((flag.get_long()?, flag))) {
                if ["help", "version"].contains(&flag.0) {
                    continue;
                }
                let wanted = format!("STANCHION_{}", flag.0.to_uppercase().replace('-', "_"));
                assert_eq!(
                    flag.1.get_env().and_then(|name| name.to_str()),
                    Some(wanted.as_str()),
                    "{name} --{}",
                    flag.0
                );
            }
        }
    }
}
