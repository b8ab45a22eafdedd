//! Asking clusters how they are.

use crate::cluster::Connections;
use client::Client;
use manager::application::clusters::{Access, Connector, names};
use object::Value;
use std::time::{Duration, Instant};

/// How long a cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers: its version, and how long that took.
    Ready {
        /// For example `v1.33.1`.
        version: String,
        /// The time from the connection to the answer.
        latency: Duration,
    },
    /// Why it does not.
    Unreachable(String),
    /// It is being detached.
    Detaching,
    /// Nobody asked.
    Unknown,
}

/// A client of the cluster of a Secret.
pub fn client(secret: &Value) -> Result<Client, String> {
    Ok(Client::new(Connections.connect(&Access::read(secret)?)?))
}

/// What stands at a path of a cluster, if it answers in time.
pub async fn ask(client: &Client, path: &str) -> Result<Value, client::Error> {
    let late = || client::Error::Transport(format!("no answer within {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, client.get_path(path)).await.unwrap_or_else(|_| Err(late()))
}

/// How the cluster of a Secret is. What it refuses is told too: credentials are tried at the list of its groups.
pub async fn of(secret: &Value) -> Health {
    if secret.annotation(names::DETACHING).is_some() {
        return Health::Detaching;
    }
    let begin = Instant::now();
    let answers = async {
        let client = client(secret)?;
        let version = ask(&client, "/version").await.map_err(|error| error.to_string())?;
        let latency = begin.elapsed();
        ask(&client, "/apis").await.map_err(|error| format!("it refuses the credentials: {error}"))?;
        Ok(Health::Ready { version: version.str_at(&["gitVersion"]).unwrap_or_default().to_owned(), latency })
    };
    answers.await.unwrap_or_else(Health::Unreachable)
}
