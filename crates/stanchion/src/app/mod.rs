//! `stanchion app`: the day's work with Applications.

mod commands;
mod definitions;
mod view;

use crate::cluster::{ClusterArgs, Failure};
use crate::terminal::{Output, Wait};
use clap::{Args as ClapArgs, Subcommand};
use manager::application::clusters::names::NAMESPACE;
use std::path::PathBuf;

/// Deploy Applications, and see what became of them.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Namespace of the Secrets of other clusters
    #[arg(long, value_name = "NAME", default_value = NAMESPACE, global = true)]
    cluster_namespace: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Cluster(Action),
    /// List the types of components and traits that come along, or show one of them
    #[command(visible_alias = "def")]
    Definitions {
        /// Name of a type [default: all]
        name: Option<String>,
        #[command(flatten)]
        form: Form,
    },
}

/// What is done in a cluster.
#[derive(Debug, Subcommand)]
enum Action {
    /// Apply a file of Applications and other objects
    Up {
        /// YAML or JSON file; - for standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Version to publish the Applications under
        #[arg(short = 'v', long, value_name = "VERSION")]
        publish_version: Option<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// List Applications
    #[command(visible_alias = "ls")]
    List {
        /// Those of all namespaces
        #[arg(short = 'A', long)]
        all_namespaces: bool,
        /// Those whose labels match
        #[arg(short = 'l', long, value_name = "LABELS", default_value = "")]
        selector: String,
        #[command(flatten)]
        form: Form,
    },
    /// Show what an Application has come to
    Status {
        /// Name of the Application
        name: String,
        /// Show its objects, of this and earlier versions
        #[arg(short, long)]
        tree: bool,
        /// Show its objects, and of each what it says of itself
        #[arg(short, long)]
        detail: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Show where live objects differ from what is declared
    Diff {
        /// Name of the Application
        name: String,
    },
    /// List the revisions of an Application
    History {
        /// Name of the Application
        name: String,
        #[command(flatten)]
        form: Form,
    },
    /// Bring an earlier revision back
    Rollback {
        /// Name of the Application
        name: String,
        /// Revision or published version [default: the last that succeeded before this one]
        #[arg(long, value_name = "REVISION")]
        to: Option<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Hold the workflow of an Application
    Suspend {
        /// Name of the Application
        name: String,
    },
    /// Let a suspended workflow go on
    Resume {
        /// Name of the Application
        name: String,
    },
    /// End the workflow of an Application; what it has brought stays
    Terminate {
        /// Name of the Application
        name: String,
    },
    /// Run the workflow of an Application again
    Restart {
        /// Name of the Application
        name: String,
    },
    /// Delete an Application and its objects
    Delete {
        /// Name of the Application
        name: String,
        /// Leave its objects behind
        #[arg(short, long)]
        orphan: bool,
        #[command(flatten)]
        wait: Wait,
    },
}

/// How something is printed.
#[derive(Clone, Copy, Debug, ClapArgs)]
struct Form {
    /// Form of the output [default: a table]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
}

/// How much of an Application is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// What it has come to.
    Summary,
    /// Its objects.
    Tree,
    /// Its objects, with what each says of itself.
    Details,
}

impl Shown {
    fn of(tree: bool, detail: bool) -> Self {
        match (tree, detail) {
            (_, true) => Shown::Details,
            (true, false) => Shown::Tree,
            (false, false) => Shown::Summary,
        }
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<(), Failure> {
    let action = match args.command {
        Command::Cluster(action) => action,
        Command::Definitions { name, form } => return definitions::show(name.as_deref(), form.output),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (client, namespace) = args.cluster.session()?;
    runtime.block_on(async {
        let session = commands::Session::new(client, namespace, args.cluster_namespace);
        match action {
            Action::Up { file, publish_version, wait } => session.up(&file, publish_version.as_deref(), wait).await,
            Action::List { all_namespaces, selector, form } => {
                session.list(all_namespaces, &selector, form.output).await
            }
            Action::Status { name, tree, detail, form } => {
                session.status(&name, Shown::of(tree, detail), form.output).await
            }
            Action::Diff { name } => session.diff(&name).await,
            Action::History { name, form } => session.history(&name, form.output).await,
            Action::Rollback { name, to, wait } => session.rollback(&name, to.as_deref(), wait).await,
            Action::Suspend { name } => session.set_suspended(&name, true).await,
            Action::Resume { name } => session.set_suspended(&name, false).await,
            Action::Terminate { name } => session.terminate(&name).await,
            Action::Restart { name } => session.restart(&name).await,
            Action::Delete { name, orphan, wait } => session.delete(&name, orphan, wait).await,
        }
    })
}
