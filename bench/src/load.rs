//! Many connections that send one kind of request as fast as answers come.

use bench::report;
use compat::client::{Client, Request, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The requests of a run.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// Create ConfigMaps with values of this size in bytes.
    Create { size: usize },
    /// Read ConfigMaps out of this many.
    Get { count: usize },
    /// Replace ConfigMaps out of this many by ones with values of this size.
    Update { count: usize, size: usize },
    /// List ConfigMaps, this many at the most (0: all).
    List { limit: usize },
}

/// Connections to one server.
pub struct Fleet {
    target: Target,
    connections: usize,
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

impl Fleet {
    /// Connections that are made when a run starts.
    pub fn new(target: &Target, connections: usize) -> Self {
        Fleet { target: target.clone(), connections }
    }

    /// Creates ConfigMaps `load-0` and so on.
    pub async fn fill(&self, count: usize, size: usize) -> Result<(), String> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut workers = Vec::new();
        for _ in 0..self.connections {
            let (mut client, next) = (Client::new(self.target.clone()), next.clone());
            workers.push(tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok(());
                    }
                    let answer = client.send(&create(number, size)).await?;
                    if answer.code != 201 {
                        return Err(format!("{}: {}", answer.code, String::from_utf8_lossy(&answer.body)));
                    }
                }
            }));
        }
        for worker in workers {
            worker.await.map_err(|e| e.to_string())??;
        }
        Ok(())
    }

    /// Sends requests for a while, prints what came of it, and gives how many were answered.
    pub async fn run(&self, name: &str, period: Duration, plan: Plan) -> Result<usize, String> {
        let next = Arc::new(AtomicUsize::new(0));
        let end = Instant::now() + period;
        let mut workers = Vec::new();
        for _ in 0..self.connections {
            let (mut client, next) = (Client::new(self.target.clone()), next.clone());
            workers.push(tokio::spawn(async move {
                let (mut took, mut failed) = (Vec::new(), 0);
                while Instant::now() < end {
                    let request = plan.request(next.fetch_add(1, Ordering::Relaxed));
                    let began = Instant::now();
                    let answer = client.send(&request).await?;
                    took.push(began.elapsed());
                    failed += usize::from(answer.code >= 300);
                }
                Ok::<_, String>((took, failed))
            }));
        }
        let (mut took, mut failed) = (Vec::new(), 0);
        for worker in workers {
            let (times, failures) = worker.await.map_err(|e| e.to_string())??;
            took.extend(times);
            failed += failures;
        }
        let answered = took.len();
        report::latencies(name, took, period, failed);
        Ok(answered)
    }
}

impl Plan {
    fn request(self, number: usize) -> Request {
        match self {
            Plan::Create { size } => create(number, size),
            Plan::Get { count } => request("GET", format!("{CONFIG_MAPS}/load-{}", number % count), None),
            Plan::Update { count, size } => {
                let name = number % count;
                request("PUT", format!("{CONFIG_MAPS}/load-{name}"), Some(config_map(name, number, size)))
            }
            Plan::List { limit } => request("GET", format!("{CONFIG_MAPS}?limit={limit}"), None),
        }
    }
}

/// The create of a ConfigMap with a value of `size` bytes.
pub fn create(number: usize, size: usize) -> Request {
    request("POST", CONFIG_MAPS.to_owned(), Some(config_map(number, number, size)))
}

fn config_map(name: usize, salt: usize, size: usize) -> String {
    let filler = "x".repeat(size.saturating_sub(20));
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"load-{name}"}},"data":{{"value":"{salt:020}{filler}"}}}}"#
    )
}

/// A request of the administrator.
pub fn request(method: &str, path: String, body: Option<String>) -> Request {
    let headers = [("Authorization", "Bearer admintoken"), ("Content-Type", "application/json")];
    Request {
        method: method.to_owned(),
        path,
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: body.map(String::into_bytes),
    }
}
