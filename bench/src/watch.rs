//! Many watchers of one kind: how late an event reaches them.

use crate::load::{create, request};
use bench::report;
use compat::client::{Client, Target};
use http_body_util::BodyExt;
use memchr::memmem::Finder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify};

/// Opens `watchers` watches of ConfigMaps, creates `rate` objects a second for a while, and prints how long after its
/// write began each event arrived. Gives how many arrived.
pub async fn fan_out(target: &Target, watchers: usize, rate: usize, period: Duration) -> Result<usize, String> {
    let writes = rate * period.as_secs() as usize;
    let began = Arc::new(Instant::now());
    // When each write began, in microseconds since the start, by the object's number.
    let sent: Arc<Vec<AtomicUsize>> = Arc::new((0..writes).map(|_| AtomicUsize::new(0)).collect());
    let (open, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let delays = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for _ in 0..watchers {
        let (target, sent, delays) = (target.clone(), sent.clone(), delays.clone());
        let (open, ready, began) = (open.clone(), ready.clone(), began.clone());
        tasks.push(tokio::spawn(async move {
            let path = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=120".to_owned();
            let mut body = Client::new(target).stream(&request("GET", path, None)).await?;
            if open.fetch_add(1, Ordering::SeqCst) + 1 == watchers {
                ready.notify_one();
            }
            let (finder, mut own, mut rest) = (Finder::new(NAME), Vec::with_capacity(sent.len()), Vec::new());
            while own.len() < sent.len() {
                let Some(Ok(frame)) = body.frame().await else { break };
                let data = frame.data_ref().map(|data| &data[..]).unwrap_or_default();
                let now = began.elapsed().as_micros() as usize;
                let (whole, part) = data.split_at(memchr::memrchr(b'\n', data).map_or(0, |end| end + 1));
                // Most pieces begin and end with events: they are read where they are.
                if !rest.is_empty() {
                    rest.extend_from_slice(whole);
                }
                let events = if rest.is_empty() { whole } else { &rest[..] };
                if !whole.is_empty() {
                    for start in finder.find_iter(events) {
                        if let Some(number) = number_at(&events[start + NAME.len()..]).filter(|n| *n < sent.len()) {
                            let delay = now.saturating_sub(sent[number].load(Ordering::SeqCst));
                            own.push(Duration::from_micros(delay as u64));
                        }
                    }
                    rest.clear();
                }
                rest.extend_from_slice(part);
            }
            delays.lock().await.extend(own);
            Ok::<_, String>(())
        }));
    }
    ready.notified().await;
    let first = Instant::now();
    let mut writers = Vec::new();
    for writer in 0..8 {
        let (mut client, sent, began) = (Client::new(target.clone()), sent.clone(), began.clone());
        writers.push(tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs_f64(8.0 / rate as f64));
            for number in (writer..sent.len()).step_by(8) {
                tick.tick().await;
                sent[number].store(began.elapsed().as_micros() as usize, Ordering::SeqCst);
                client.send(&create(number, 200)).await?;
            }
            Ok::<_, String>(())
        }));
    }
    for writer in writers {
        writer.await.map_err(|e| e.to_string())??;
    }
    for task in tasks {
        let _ = tokio::time::timeout(Duration::from_secs(10), task).await;
    }
    // Longer than the period, if the server or this client cannot keep up with the rate.
    let lasted = first.elapsed();
    let delays = std::mem::take(&mut *delays.lock().await);
    let arrived = delays.len();
    let missing = writes * watchers - arrived;
    report::latencies(&format!("{watchers} watchers at {rate} events a second"), delays, lasted, missing);
    Ok(arrived)
}

/// What is before the number in the name of an object that an event is about.
const NAME: &[u8] = b"\"name\":\"load-";

/// The number that stands at the start.
fn number_at(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
