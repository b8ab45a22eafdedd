//! CustomResourceDefinitions of public projects get a real server's verdicts over HTTP.

use compat::client::{Client, Request, Target};
use compat::normalise::normalise;
use object::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// How many connections send definitions side by side.
const CONNECTIONS: usize = 4;
const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

#[test]
fn real_definitions_get_the_verdict_of_a_real_server() {
    let Some(text) = super::shared("crds/crds.jsonl.gz") else { return };
    let lines: Arc<Vec<Value>> = Arc::new(text.lines().map(|line| json::parse(line.as_bytes()).unwrap()).collect());
    let server = super::server();
    let began = Instant::now();
    let wrong = super::runtime().block_on(async {
        let next = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> =
            (0..CONNECTIONS).map(|_| tokio::spawn(judge(server.target.clone(), lines.clone(), next.clone()))).collect();
        let mut wrong = Vec::new();
        for worker in workers {
            wrong.extend(worker.await.unwrap());
        }
        wrong
    });
    println!("{} of {} verdicts are right, after {:?}", lines.len() - wrong.len(), lines.len(), began.elapsed());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sends definitions until none is left; gives what differs.
async fn judge(target: Target, lines: Arc<Vec<Value>>, next: Arc<AtomicUsize>) -> Vec<String> {
    let mut client = Client::new(target);
    let mut wrong = Vec::new();
    while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
        let body = json::to_vec(line.get("crd").unwrap());
        let answer = client.send(&Request::new("POST", PATH).body("application/json", body)).await.unwrap();
        let got = json::parse(&answer.body).unwrap();
        let causes = |status: &Value| normalise(status, &[]).at(&["details", "causes"]).cloned().unwrap_or_default();
        let want_code = line.at(&["verdict", "code"]).and_then(Value::as_int).unwrap();
        let want = line.at(&["verdict", "status"]).map(causes).unwrap_or_default();
        let got_causes = causes(&got);
        if i64::from(answer.code) != want_code || want != got_causes {
            let file = line.str_at(&["file"]).unwrap_or_default();
            let code = answer.code;
            let (want, got) = (json::to_string(&want), json::to_string(&got_causes));
            wrong.push(format!("{file}: {want_code} {want}\n  got {code} {got}"));
        }
    }
    wrong
}
