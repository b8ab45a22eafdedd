//! `stanchion check`: what the API server would say of definitions and objects, offline.

mod cost;
mod input;
mod judge;
mod place;
mod report;

use crate::cluster::Failure;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Say what the API server would say of CRDs and objects, offline.
///
/// Reads YAML and JSON from files, folders (all .yaml, .yml and .json below them) or standard input (-). Objects are
/// checked against the definitions found beside them, and against the built-in kinds. The exit code is 0 when nothing
/// is wrong, 1 when something is, and 2 when something cannot be read.
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files and folders; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Take warnings (unknown and repeated fields, for example) for errors
    #[arg(long)]
    strict: bool,

    /// Print what each rule of the definitions is estimated to cost instead of checking
    #[arg(long, conflicts_with = "strict")]
    cost: bool,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each finding, and a summary
    Text,
    /// JSON for programs
    Json,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let (sources, unread) = input::read(&args.files);
    if args.cost {
        for finding in &unread {
            eprintln!("{}: {}", finding.file, finding.message);
        }
        cost::print(&sources, args.output == Output::Json);
        return Ok(if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) });
    }
    let mut outcome = judge::judge(&sources);
    outcome.findings.splice(0..0, unread);
    match args.output {
        Output::Text => report::text(&outcome),
        Output::Json => report::json(&outcome),
    }
    Ok(if outcome.count(report::Severity::Unreadable) > 0 {
        ExitCode::from(2)
    } else if outcome.count(report::Severity::Error) > 0 || args.strict && outcome.count(report::Severity::Warning) > 0
    {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
