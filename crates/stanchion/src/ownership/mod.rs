//! `stanchion ownership`: who owns which field of an object, and what an apply would do.

mod schema;

use crate::cluster::{Cluster, ClusterArgs, Failure, Found};
use crate::terminal::{self, say};
use clap::{Args as ClapArgs, ValueEnum};
use fields::explain::{Owners, Plan};
use fields::managed::{FieldManager, Kind, NoConversion, decode_managers};
use object::{Map, Value, json, map, yaml};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show who owns each field of an object, or what an apply would do.
///
/// `stanchion ownership deployment web` asks the cluster, `stanchion ownership -f web.yaml` reads a file. With
/// --apply FILE it tells what a server-side apply of that file by --manager would add, change, take, keep, release,
/// remove or conflict with; nothing is changed.
#[derive(Debug, ClapArgs)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Resource (plural, singular, short name or kind, perhaps with .GROUP), as for kubectl get
    #[arg(required_unless_present = "file", requires = "name")]
    resource: Option<String>,

    /// Name of the object
    name: Option<String>,

    /// File with the object, managedFields included (kubectl get -o yaml --show-managed-fields); - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "resource")]
    file: Option<PathBuf>,

    /// Configuration to apply in thought
    #[arg(long, value_name = "FILE", requires = "manager")]
    apply: Option<PathBuf>,

    /// Field manager that applies
    #[arg(long, value_name = "NAME")]
    manager: Option<String>,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// YAML with the managers in comments, or a line for each field
    Text,
    /// JSON for programs
    Json,
}

/// Runs the command. Conflicts of a planned apply are told, and make the program end with an error.
pub fn run(args: Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(explain(args))
}

async fn explain(args: Args) -> Result<(), Failure> {
    let (object, types) = match (&args.file, &args.resource, &args.name) {
        (Some(file), ..) => {
            let object = read(file)?;
            let types = schema::offline(&object);
            (object, types)
        }
        (None, Some(resource), Some(name)) => {
            let cluster = args.cluster.cluster()?;
            let found = cluster.find(resource).await?;
            let object = get(&cluster, &found, name).await?;
            let types = schema::of_cluster(&cluster, &found).await?;
            (object, types)
        }
        _ => return Err("name an object, or give a file with -f".into()),
    };
    let managers = decode_managers(&object).map_err(|e| format!("metadata.managedFields: {e}"))?;
    let Some(config) = &args.apply else {
        let owners = Owners::of(&types, &object, &managers);
        match args.output {
            Output::Text => terminal::print(&owners.to_string()),
            Output::Json => say!("{}", json::to_string(&owners_value(&owners))),
        }
        return Ok(());
    };
    let config = read(config)?;
    let kind = Kind::of(&object);
    let version = kind.api_version();
    let converter = NoConversion { versions: vec![version.clone()] };
    let endpoint = FieldManager::new(kind, [(version, Arc::new(types))], Arc::new(converter));
    let manager = args.manager.unwrap_or_default();
    let plan = Plan::new(&endpoint, Some(&object), &config, &manager).map_err(|e| e.to_string())?;
    match args.output {
        Output::Text => terminal::print(&plan.to_string()),
        Output::Json => say!("{}", json::to_string(&plan_value(&plan))),
    }
    if plan.has_conflicts() {
        Err("the apply would conflict; --force-conflicts would take the fields".into())
    } else {
        Ok(())
    }
}

async fn get(cluster: &Cluster, found: &Found, name: &str) -> Result<Value, Failure> {
    let namespace = match found.namespaced {
        true => format!("/namespaces/{}", cluster.namespace()),
        false => String::new(),
    };
    cluster.get(&format!("{}{namespace}/{}/{name}", found.root(), found.plural)).await
}

/// The first document of a YAML or JSON file.
fn read(path: &Path) -> Result<Value, Failure> {
    let text = if path == Path::new("-") {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut text)?;
        text
    } else {
        std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?
    };
    let value = yaml::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(format!("{}: there is no object in this file", path.display()).into()),
    }
}

fn owners_value(owners: &Owners) -> Value {
    let lines = owners.lines.iter().filter(|l| !l.managers.is_empty()).map(|line| {
        let managers: Vec<String> = line.managers.iter().map(ToString::to_string).collect();
        let paths: Vec<String> = line.paths.iter().map(ToString::to_string).collect();
        map! { "fields" => paths, "managers" => managers }
    });
    Value::from(lines.collect::<Vec<Map>>())
}

fn plan_value(plan: &Plan) -> Value {
    let fields = plan.fields.iter().map(|field| {
        let others: Vec<String> = field.others.iter().map(ToString::to_string).collect();
        map! {
            "field" => field.path.to_string(),
            "effect" => field.effect.as_str(),
            "before" => field.before.clone(),
            "after" => field.after.clone(),
            "otherManagers" => others,
        }
    });
    Value::from(fields.collect::<Vec<Map>>())
}
