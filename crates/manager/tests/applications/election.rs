//! Two controllers, of which one leads.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use client::Client;
use client::election::{Election, Timing};
use client::resources::{CONFIG_MAPS, LEASES};
use manager::application::{Controller, Options, kinds};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, component, spec};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(2),
    renew_deadline: Duration::from_millis(1200),
    retry_period: Duration::from_millis(200),
};

/// A controller that works while it leads, and what it asks of the server.
struct Candidate {
    sent: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Candidate {
    fn new(f: &Fixture, identity: &str) -> Self {
        let (transport, sent) = f.noting();
        let client = Client::new(Arc::new(transport));
        let election = Election::new(client.api(&LEASES), "default", "applications", identity, TIMING);
        let task = tokio::spawn(async move {
            election.run(pending(), || Controller::new(&client, Options::default()).run()).await;
        });
        Candidate { sent, task }
    }

    /// What it wrote since this was asked last.
    fn writes(&self) -> Vec<String> {
        let sent = std::mem::take(&mut *self.sent.lock());
        sent.into_iter().filter(|line| !line.starts_with("GET")).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_leader_dies_another_controller_goes_on_and_nothing_is_done_twice() {
    let f = Fixture::new().await;
    f.running.abort();
    let mut first = Candidate::new(&f, "first");
    let app = |number: usize, value: &str| {
        let name = format!("m{number}");
        spec(&[component("one", &name, &format!("{{k: '{value}'}}"))])
    };
    for number in 0..4 {
        f.apply(&format!("app{number}"), "{}", &app(number, "1")).await;
    }
    for number in 0..4 {
        f.ready(&format!("app{number}")).await;
    }
    let second = Candidate::new(&f, "second");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(second.sent.lock().len(), 0, "a follower does nothing");
    assert!(!first.writes().is_empty());
    let uid = f.get(&CONFIG_MAPS, "m0").await.unwrap().meta_str("uid").to_owned();

    // It dies, without a word and in the middle of a roll-out.
    f.apply("app3", "{}", &app(3, "2")).await;
    first.task.abort();
    assert!((&mut first.task).await.is_err());
    f.edit(&CONFIG_MAPS, "m1", "{data: {k: drifted}}").await;
    f.delete(&CONFIG_MAPS, "m2").await;
    f.data_is("m1", r#"{"k":"1"}"#).await;
    f.data_is("m2", r#"{"k":"1"}"#).await;
    f.data_is("m3", r#"{"k":"2"}"#).await;
    let app3 = f.ready("app3").await;
    assert_eq!(app3.str_at(&["status", "latestRevision", "name"]), Some("app3-v2"));
    assert_eq!(f.get(&kinds::REVISIONS, "app3-v3").await, None);

    // What nobody touched was written by nobody.
    assert_eq!(f.get(&CONFIG_MAPS, "m0").await.unwrap().meta_str("uid"), uid);
    let writes = second.writes();
    let of = |part: &str| writes.iter().filter(|line| line.contains(part)).collect::<Vec<_>>();
    assert_eq!((of("/configmaps/m0"), of("/app0")), (vec![], vec![]), "{writes:?}");
    // What was under way in the first when it was ended may have been its last deed.
    let all = [first.writes(), writes].concat();
    let of = |part: &str| all.iter().filter(|line| line.contains(part)).count();
    assert_eq!((of("/configmaps/m1"), of("POST /api/v1/namespaces/default/configmaps")), (1, 1), "{all:?}");
    second.task.abort();
}
