//! `stanchion permit`: asking for permits, reviewing and ending them.

mod commands;
mod diff;
mod input;
mod progress;
mod review;
mod view;

use crate::cluster::{ClusterArgs, Failure};
use crate::terminal::{Output, Wait};
use clap::{Args as ClapArgs, Subcommand};
use commands::Asked;
use std::path::PathBuf;

/// Ask for permits, review them, and end them.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Form of the output [default: text for people]
    #[arg(short, long, value_enum, value_name = "FORMAT", global = true)]
    output: Option<Output>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ask for what a template offers
    Request {
        /// Template: NAME, or KIND/NAME with the kind ResourcePermitTemplate (rpt) or GlobalResourcePermitTemplate (grpt)
        template: String,
        /// Name of the permit [default: the template's with something random]
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        ask: Ask,
        #[command(flatten)]
        wait: Wait,
    },
    /// List permits
    #[command(visible_aliases = ["ls", "get"])]
    List {
        /// Names of permits [default: all]
        names: Vec<String>,
        /// Those of all namespaces
        #[arg(short = 'A', long)]
        all_namespaces: bool,
        /// Only those in a phase, such as Requested
        #[arg(long, value_name = "PHASE")]
        phase: Option<String>,
        /// Only those that a label selector selects
        #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "")]
        selector: String,
        /// Go on with every change
        #[arg(short, long)]
        watch: bool,
    },
    /// Show what a permit would do: who asks for what, the rendered objects, and how they differ from the cluster's
    #[command(visible_alias = "describe")]
    Review {
        /// Name of the permit
        name: String,
        /// Show what secrets hold
        #[arg(long)]
        show_secrets: bool,
    },
    /// Approve permits
    Approve {
        /// Names of permits
        #[arg(required = true)]
        names: Vec<String>,
        /// Why
        #[arg(short, long, value_name = "TEXT")]
        message: Option<String>,
        /// How long they last, within the template's limits; such as 30m
        #[arg(long, value_name = "DURATION")]
        duration: Option<String>,
        /// When they begin, in RFC 3339
        #[arg(long, value_name = "TIME")]
        start_time: Option<String>,
        /// How long they are kept after their end; such as 7d
        #[arg(long, value_name = "DURATION")]
        keep_for: Option<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Deny permits
    Deny {
        /// Names of permits
        #[arg(required = true)]
        names: Vec<String>,
        /// Why
        #[arg(short, long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Activate approved permits
    Activate {
        /// Names of permits
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// End permits now
    Expire {
        /// Names of permits
        #[arg(required = true)]
        names: Vec<String>,
        /// Why
        #[arg(short, long, value_name = "TEXT")]
        message: Option<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Try the stage again in which permits failed
    Retry {
        /// Names of permits
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        wait: Wait,
    },
}

/// What a request asks for.
#[derive(Debug, ClapArgs)]
struct Ask {
    /// Parameter; may be given several times. A value that is no JSON is a text; dots in the key lead into objects
    #[arg(short, long = "param", value_name = "KEY=VALUE")]
    params: Vec<String>,
    /// File of parameters, in YAML or JSON; - for standard input
    #[arg(long = "params", value_name = "FILE")]
    params_file: Option<PathBuf>,
    /// Why
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long it is to last, such as 30m [default: the template's]
    #[arg(long, value_name = "DURATION")]
    duration: Option<String>,
    /// When it is to begin, in RFC 3339 [default: now]
    #[arg(long, value_name = "TIME")]
    start_time: Option<String>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (client, namespace) = args.cluster.session()?;
    runtime.block_on(async {
        let session = commands::Session::new(client, namespace, args.output);
        match args.command {
            Command::Request { template, name, ask, wait } => session.request(&template, name, ask, wait).await,
            Command::List { names, all_namespaces, phase, selector, watch } => {
                let asked = Asked { names: &names, phase: phase.as_deref(), selector, watch };
                session.list(all_namespaces, asked).await
            }
            Command::Review { name, show_secrets } => session.review(&name, show_secrets).await,
            Command::Approve { names, message, duration, start_time, keep_for, wait } => {
                let adjusted = [("duration", duration), ("startTime", start_time), ("keepFor", keep_for)];
                session.advance(&names, "Approved", message, &adjusted, Some(wait)).await
            }
            Command::Deny { names, message } => session.advance(&names, "Denied", message, &[], None).await,
            Command::Activate { names, wait } => session.advance(&names, "Active", None, &[], Some(wait)).await,
            Command::Expire { names, message, wait } => {
                session.advance(&names, "Expired", message, &[], Some(wait)).await
            }
            Command::Retry { names, wait } => session.advance(&names, "Retrying", None, &[], Some(wait)).await,
        }
    })
}
