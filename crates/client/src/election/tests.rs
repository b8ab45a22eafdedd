//! Elections with a paused clock, over a server that knows one lease.

use super::*;
use crate::resources::LEASES;
use crate::{BoxFuture, Client, Response, Transport, whole};
use bytes::Bytes;
use object::{Status, json};
use parking_lot::Mutex;
use std::future::pending;

/// Keeps a lease, as a server does.
#[derive(Default)]
struct Server {
    lease: Mutex<Option<Value>>,
    version: Mutex<u64>,
    /// Who gets no answer: the user agent.
    cut_off: Mutex<Option<String>>,
}

impl Server {
    fn answer(&self, request: &http::Request<Bytes>) -> (u16, Value) {
        let refusal = |code, reason: &'static str| (code, Status::new(code, reason, String::new()).to_value());
        let mut lease = self.lease.lock();
        if request.method() == http::Method::GET {
            return lease.clone().map_or_else(|| refusal(404, "NotFound"), |lease| (200, lease));
        }
        let mut sent = json::parse(request.body()).unwrap();
        let expected = lease.as_ref().map_or("", |lease| lease.meta_str("resourceVersion"));
        if sent.meta_str("resourceVersion") != expected {
            return refusal(409, "Conflict");
        }
        *self.version.lock() += 1;
        sent.metadata_mut().insert("resourceVersion", self.version.lock().to_string());
        *lease = Some(sent.clone());
        (200, sent)
    }

    fn record(&self) -> Record {
        Record::of(&self.lease.lock().clone().unwrap_or_default())
    }
}

impl Transport for Server {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(async move {
            let agent = request.headers()[http::header::USER_AGENT].to_str().unwrap();
            if self.cut_off.lock().as_deref() == Some(agent) {
                return pending().await;
            }
            let (code, body) = self.answer(&request);
            Ok(http::Response::builder().status(code).body(whole(json::to_vec(&body))).unwrap())
        })
    }
}

fn candidate(server: &Arc<Server>, name: &str) -> Arc<Election> {
    let client = Client::new(server.clone()).with_user_agent(name);
    Arc::new(Election::new(client.api(&LEASES), "kube-system", "l", name, Timing::default()))
}

/// Lets a candidate run for ever.
fn stand(election: &Arc<Election>) -> tokio::task::JoinHandle<Option<()>> {
    let election = election.clone();
    tokio::spawn(async move { election.run(pending(), pending::<()>).await })
}

async fn leads(election: &Election) -> Instant {
    election.state().wait_for(|state| *state == State::Leading).await.unwrap();
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_follows() {
    let server = Arc::new(Server::default());
    let (a, b) = (candidate(&server, "a"), candidate(&server, "b"));
    stand(&a);
    leads(&a).await;
    stand(&b);
    b.state().wait_for(|state| *state == State::Following("a".to_owned())).await.unwrap();
    let before = server.record();
    sleep(Duration::from_secs(300)).await;
    let after = server.record();
    assert_eq!((after.holder.as_str(), after.transitions, after.duration_seconds), ("a", 0, 15));
    assert_eq!(before.acquired, after.acquired);
    assert_ne!(before.renewed, after.renewed);
    assert_eq!(*a.state().borrow(), State::Leading);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins() {
    let server = Arc::new(Server::default());
    let (a, b) = (candidate(&server, "a"), candidate(&server, "b"));
    stand(&a);
    leads(&a).await;
    stand(&b);
    sleep(Duration::from_secs(60)).await;
    *server.cut_off.lock() = Some("a".to_owned());
    let cut = Instant::now();
    let mut state = a.state();
    state.wait_for(|state| *state != State::Leading).await.unwrap();
    let stopped = Instant::now();
    let began = leads(&b).await;
    let seconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64();
    assert!((9.9..12.1).contains(&seconds(cut, stopped)), "{}", seconds(cut, stopped));
    assert!(began > stopped && seconds(cut, began) < 20.0, "{}", seconds(cut, began));
    assert_eq!((server.record().holder.as_str(), server.record().transitions), ("b", 1));
    *server.cut_off.lock() = None;
    state.wait_for(|state| *state == State::Following("b".to_owned())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_by_another_ends_the_work_at_once() {
    let server = Arc::new(Server::default());
    let a = candidate(&server, "a");
    let working = Arc::new(());
    let run = tokio::spawn({
        let (a, working) = (a.clone(), working.clone());
        async move {
            a.run(pending(), || {
                let working = working.clone();
                async move {
                    let _working = working;
                    pending::<()>().await
                }
            })
            .await
        }
    });
    leads(&a).await;
    // The test's, the closure's and the work's.
    assert_eq!(Arc::strong_count(&working), 3);
    let stolen = Record { holder: "b".to_owned(), ..server.record() };
    let mut lease = stolen.write_to(&server.lease.lock().clone().unwrap());
    lease.metadata_mut().insert("resourceVersion", "99");
    *server.lease.lock() = Some(lease);
    let taken = Instant::now();
    a.state().wait_for(|state| *state == State::Following("b".to_owned())).await.unwrap();
    assert!(taken.elapsed() <= Duration::from_secs(2));
    assert_eq!(Arc::strong_count(&working), 2);
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn who_stops_releases_the_lease() {
    let server = Arc::new(Server::default());
    let (a, b) = (candidate(&server, "a"), candidate(&server, "b"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn({
        let a = a.clone();
        async move { a.run(async { drop(stopped.await) }, pending::<()>).await }
    });
    leads(&a).await;
    stand(&b);
    sleep(Duration::from_secs(1)).await;
    let _ = stop.send(());
    assert_eq!(run.await.unwrap(), None);
    assert_eq!((server.record().holder.as_str(), server.record().duration_seconds), ("", 1));
    let released = Instant::now();
    assert!(leads(&b).await.duration_since(released) < Duration::from_secs(5));
    assert_eq!(server.record().transitions, 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_ends_the_candidacy() {
    let server = Arc::new(Server::default());
    let done = candidate(&server, "a").run(pending(), || async { 7 }).await;
    assert_eq!((done, server.record().holder.as_str()), (Some(7), ""));
}
