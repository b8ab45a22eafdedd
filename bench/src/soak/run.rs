//! What the parts of a soak share: where the server is, when the end is, what was seen, what went wrong.

use super::history::{Held, History};
use super::kinds::KINDS;
use compat::client::{Client, Request, Response, Target};
use object::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many faults are kept word for word.
const MOST_FAULTS: usize = 40;

/// Locks; what a task that failed left behind is looked at all the same.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The requests of one sort: their number, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// How many there were.
    pub count: usize,
    /// How long they took together.
    pub total: Duration,
    /// How long the longest took.
    pub longest: Duration,
}

/// A soak that runs.
pub struct Run {
    /// The server.
    pub target: Target,
    /// When load ends.
    pub end: Instant,
    /// What is known of each of [`KINDS`].
    pub histories: Vec<Mutex<History>>,
    /// Requests by what they are and the code of the answer.
    pub tallies: Mutex<BTreeMap<(&'static str, u16), Tally>>,
    /// Watches that were opened.
    pub watches: AtomicUsize,
    /// Events that watches saw.
    pub events: AtomicUsize,
    faults: Mutex<(usize, Vec<String>)>,
}

impl Run {
    /// A run of this length.
    pub fn new(target: Target, period: Duration) -> Self {
        Run {
            target,
            end: Instant::now() + period,
            histories: KINDS.iter().map(|_| Mutex::default()).collect(),
            tallies: Mutex::default(),
            watches: AtomicUsize::new(0),
            events: AtomicUsize::new(0),
            faults: Mutex::default(),
        }
    }

    /// Whether load is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Sleeps, but not beyond the end.
    pub async fn pause(&self, time: Duration) {
        tokio::time::sleep(time.min(self.end.saturating_duration_since(Instant::now()))).await;
    }

    /// Notes something that must not be.
    pub fn fault(&self, text: String) {
        let mut faults = lock(&self.faults);
        faults.0 += 1;
        if faults.1.len() < MOST_FAULTS {
            eprintln!("fault: {text}");
            faults.1.push(text);
        }
    }

    /// How many faults there were.
    pub fn fault_count(&self) -> usize {
        lock(&self.faults).0
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        lock(&self.tallies).values().map(|tally| tally.count).sum()
    }
}

/// A client whose requests are counted and whose answers are judged.
pub struct Caller<'r> {
    /// What it is a part of.
    pub run: &'r Run,
    client: Client,
}

impl<'r> Caller<'r> {
    /// A client with a connection of its own.
    pub fn new(run: &'r Run) -> Self {
        Caller { run, client: Client::new(run.target.clone()) }
    }

    /// Sends a request; only these codes are right. What is wrong is a fault, and gives nothing.
    pub async fn send(&mut self, what: &'static str, request: &Request, codes: &[u16]) -> Option<Answer> {
        let began = Instant::now();
        let response = match self.client.send_once(request).await {
            Ok(response) => response,
            Err(error) => {
                self.run.fault(format!("{what}: {} {}: {error}", request.method, request.path));
                return None;
            }
        };
        let took = began.elapsed();
        let mut tallies = lock(&self.run.tallies);
        let tally = tallies.entry((what, response.code)).or_default();
        tally.count += 1;
        tally.total += took;
        tally.longest = tally.longest.max(took);
        drop(tallies);
        match judge(&response, codes) {
            Ok(object) => Some(Answer { code: response.code, object }),
            Err(why) => {
                let sent = request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                self.run.fault(format!("{what}: {} {} {sent}: {why}", request.method, request.path));
                None
            }
        }
    }

    /// Sends a write of one of [`KINDS`] and notes the object of the answer as acknowledged.
    pub async fn write(&mut self, what: &'static str, kind: usize, request: &Request, codes: &[u16]) -> Option<Answer> {
        let answer = self.send(what, request, codes).await?;
        if answer.code < 300 {
            match Held::read(&answer.object) {
                Some(held) => lock(&self.run.histories[kind]).acknowledged.push(held),
                None => {
                    self.run.fault(format!("{what}: the answer has no version: {}", json::to_string(&answer.object)))
                }
            }
        }
        Some(answer)
    }
}

/// An answer that is right.
pub struct Answer {
    /// The code.
    pub code: u16,
    /// The object of the body.
    pub object: Value,
}

impl Answer {
    /// The message of a `Status`.
    pub fn message(&self) -> &str {
        self.object.str_at(&["message"]).unwrap_or_default()
    }
}

/// The object of an answer, if the answer is as it should be.
fn judge(response: &Response, codes: &[u16]) -> Result<Value, String> {
    let shown = || format!("{} {}", response.code, String::from_utf8_lossy(&response.body));
    if !codes.contains(&response.code) {
        return Err(shown());
    }
    // What is not served at all has a page of text.
    if response.code == 404 && *response.body == *b"404 page not found\n" {
        return Ok(Value::Null);
    }
    let object = json::parse(&response.body).map_err(|error| format!("{error}: {}", shown()))?;
    let code = object.get("code").and_then(Value::as_int);
    let says = object.str_at(&["message"]).is_some_and(|m| !m.is_empty());
    if response.code >= 400
        && (object.str_at(&["kind"]) != Some("Status") || code != Some(i64::from(response.code)) || !says)
    {
        return Err(format!("this is no Status of this code: {}", shown()));
    }
    Ok(object)
}

/// Counts one more.
pub fn count(counter: &AtomicUsize, by: usize) {
    counter.fetch_add(by, Ordering::Relaxed);
}
