//! Watches: one of each kind that records what happens, and many that come and go and are compared with it.

use super::clients::list_version;
use super::history::{Held, Scope, Seen, Type, digest, set_digest};
use super::kinds::{KINDS, NAMESPACES};
use super::random::Random;
use super::run::{Run, count, lock};
use compat::client::{Client, Request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use object::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;

/// What a line of a watch says.
#[derive(Clone, Copy, Debug)]
pub enum Line {
    /// Something happened to an object.
    Event(Type, Held),
    /// Everything until this version was told.
    Bookmark(u64),
}

fn read(line: &[u8]) -> Result<Line, String> {
    let shown = || String::from_utf8_lossy(line).into_owned();
    let event = json::parse(line).map_err(|error| format!("{error}: {}", shown()))?;
    let object = event.get("object").ok_or_else(shown)?;
    let ty = match event.str_at(&["type"]) {
        Some("ADDED") => Type::Added,
        Some("MODIFIED") => Type::Modified,
        Some("DELETED") => Type::Deleted,
        Some("BOOKMARK") => return list_version(object).map(Line::Bookmark).ok_or_else(shown),
        _ => return Err(shown()),
    };
    Held::read(object).map(|held| Line::Event(ty, held)).ok_or_else(shown)
}

/// What the lines say that were read already: many watches see the same ones.
#[derive(Default)]
pub struct Known(Mutex<HashMap<u64, Line>>);

impl Known {
    fn read(&self, line: &[u8]) -> Result<Line, String> {
        let key = digest(line);
        if let Some(known) = lock(&self.0).get(&key) {
            return Ok(*known);
        }
        let read = read(line)?;
        lock(&self.0).insert(key, read);
        Ok(read)
    }
}

/// An open watch.
struct Stream<'k> {
    body: Incoming,
    rest: Vec<u8>,
    /// How much of `rest` was given already.
    given: usize,
    known: &'k Known,
    /// Keeps the connection.
    _client: Client,
}

impl<'k> Stream<'k> {
    async fn open(run: &Run, known: &'k Known, path: String) -> Result<Self, String> {
        let mut client = Client::new(run.target.clone());
        let answer = client.exchange(&Request::new("GET", &*path)).await.map_err(|e| format!("{path}: {e}"))?;
        let code = answer.status().as_u16();
        let mut body = answer.into_body();
        if code != 200 {
            let text = body.frame().await.and_then(Result::ok).and_then(|f| f.into_data().ok()).unwrap_or_default();
            return Err(format!("{path}: {code} {}", String::from_utf8_lossy(&text)));
        }
        count(&run.watches, 1);
        Ok(Stream { body, rest: Vec::new(), given: 0, known, _client: client })
    }

    /// The next line; nothing at a regular end.
    async fn next(&mut self) -> Result<Option<Line>, String> {
        loop {
            if let Some(length) = self.rest[self.given..].iter().position(|b| *b == b'\n') {
                let line = self.known.read(&self.rest[self.given..self.given + length]);
                self.given += length + 1;
                return line.map(Some);
            }
            self.rest.drain(..std::mem::take(&mut self.given));
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest.extend_from_slice(frame.data_ref().map(|d| &d[..]).unwrap_or_default()),
                Some(Err(error)) => return Err(format!("a watch broke off: {error}")),
                None if self.rest.is_empty() => return Ok(None),
                None => return Err("a watch ended within a line".to_owned()),
            }
        }
    }
}

/// Lists a kind and notes every event from there on, until told to stop.
pub async fn recorder(run: &Run, kind: usize, known: &Known, stop: &AtomicBool) {
    let path = KINDS[kind].everywhere();
    let (mut after, baseline) = match list(run, kind).await {
        Ok(listed) => listed,
        Err(error) => return run.fault(error),
    };
    {
        let mut history = lock(&run.histories[kind]);
        (history.began, history.baseline) = (after, baseline);
    }
    while !stop.load(Relaxed) {
        let watch = format!("{path}?watch=1&resourceVersion={after}&timeoutSeconds=240&allowWatchBookmarks=true");
        let mut stream = match Stream::open(run, known, watch).await {
            Ok(stream) => stream,
            Err(error) => return run.fault(error),
        };
        loop {
            let next = tokio::time::timeout(Duration::from_millis(500), stream.next()).await;
            match next {
                Err(_) if stop.load(Relaxed) => return,
                Err(_) => {}
                Ok(Ok(Some(Line::Event(ty, held)))) => {
                    after = held.version;
                    lock(&run.histories[kind]).events.push((ty, held));
                }
                Ok(Ok(Some(Line::Bookmark(version)))) => after = version,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return run.fault(format!("recording {path}: {error}")),
            }
        }
    }
}

/// All objects of a kind, with their version as a whole.
pub async fn list(run: &Run, kind: usize) -> Result<(u64, Vec<Held>), String> {
    let path = KINDS[kind].everywhere();
    let answer = Client::new(run.target.clone()).send_once(&Request::new("GET", &*path)).await?;
    let object = json::parse(&answer.body).map_err(|e| e.to_string())?;
    let version = list_version(&object).ok_or_else(|| format!("a list of {path} has no version"))?;
    let items = object.get("items").and_then(Value::as_array).unwrap_or_default();
    Ok((version, items.iter().filter_map(Held::read).collect()))
}

/// Watches one thing after another until the end.
pub async fn watcher(run: &Run, known: &Known, seed: u64) {
    let mut random = Random::new(seed);
    // So that they do not all begin at once.
    run.pause(Duration::from_millis(random.below(5000) as u64)).await;
    while !run.is_over() {
        let kind = random.below(KINDS.len());
        let outcome = match random.below(10) {
            0 => from_state(run, kind, known, &mut random).await,
            _ => from_version(run, kind, known, &mut random).await,
        };
        if let Err(error) = outcome {
            run.fault(error);
            run.pause(Duration::from_secs(1)).await;
        }
    }
}

/// When a watch ends, by the server (in seconds) or else by the client.
fn length(run: &Run, random: &mut Random) -> (Option<usize>, Instant) {
    let seconds = 5 + random.below(55);
    let end = (Instant::now() + Duration::from_secs(seconds as u64)).min(run.end.into());
    if random.percent(30) { (Some(seconds), run.end.into()) } else { (None, end) }
}

/// Watches from a version on, with all kinds of selections.
async fn from_version(run: &Run, kind: usize, known: &Known, random: &mut Random) -> Result<(), String> {
    let kind_of = &KINDS[kind];
    let namespace = random.percent(40).then(|| NAMESPACES[random.below(NAMESPACES.len())]);
    let path = namespace.map_or_else(|| kind_of.everywhere(), |namespace| kind_of.collection(namespace));
    let scope = Scope { namespace: namespace.map(digest), red: random.percent(25), whole: random.percent(80) };
    let mut client = Client::new(run.target.clone());
    let answer = client.send_once(&Request::new("GET", format!("{path}?limit=1"))).await?;
    let after = json::parse(&answer.body).ok().as_ref().and_then(list_version).ok_or("a list has no version")?;
    let (timeout, end) = length(run, random);
    let mut query = format!("{path}?watch=1&resourceVersion={after}");
    if scope.red {
        query.push_str("&labelSelector=team%3Dred");
    }
    if let Some(timeout) = timeout {
        query.push_str(&format!("&timeoutSeconds={timeout}&allowWatchBookmarks=true"));
    }
    let mut seen = Seen { scope, after, until: after, events: Vec::new() };
    let mut stream =
        if scope.whole { Stream::open(run, known, query).await? } else { partial(run, known, query).await? };
    loop {
        let line = match tokio::time::timeout_at(end, stream.next()).await {
            Ok(line) => line.map_err(|error| format!("{path}: {error}"))?,
            Err(_) => None,
        };
        match line {
            None => break,
            Some(Line::Bookmark(version)) if version < seen.until => {
                return Err(format!("{path}: a bookmark of {version} after {}", seen.until));
            }
            Some(Line::Bookmark(version)) => seen.until = version,
            Some(Line::Event(ty, held)) => {
                count(&run.events, 1);
                seen.until = held.version;
                seen.events.push((held.version, scope.told(ty, &held)));
            }
        }
    }
    lock(&run.histories[kind]).seen.push(seen);
    Ok(())
}

async fn partial<'k>(run: &Run, known: &'k Known, path: String) -> Result<Stream<'k>, String> {
    let mut client = Client::new(run.target.clone());
    let form = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let answer = client.exchange(&Request::new("GET", path).header("Accept", form)).await?;
    count(&run.watches, 1);
    Ok(Stream { body: answer.into_body(), rest: Vec::new(), given: 0, known, _client: client })
}

/// Watches from the present state on: what it makes of the objects is what there is.
async fn from_state(run: &Run, kind: usize, known: &Known, random: &mut Random) -> Result<(), String> {
    let path = KINDS[kind].everywhere();
    let version = if random.percent(50) { "&resourceVersion=0" } else { "" };
    let (timeout, end) = length(run, random);
    let timeout = timeout.map_or(String::new(), |seconds| format!("&timeoutSeconds={seconds}"));
    let query = format!("{path}?watch=1&allowWatchBookmarks=true{version}{timeout}");
    let mut stream = Stream::open(run, known, query).await?;
    let mut state: HashMap<u64, Held> = HashMap::new();
    // Until when everything was told; the objects at the beginning do not say of when they are.
    let mut until = None;
    while let Ok(line) = tokio::time::timeout_at(end, stream.next()).await {
        match line.map_err(|error| format!("{path}: {error}"))? {
            None => break,
            Some(Line::Bookmark(version)) => until = Some(version),
            Some(Line::Event(ty, held)) => {
                count(&run.events, 1);
                if until.is_some() || ty != Type::Added {
                    until = Some(held.version);
                }
                match ty {
                    Type::Deleted => state.remove(&held.place),
                    _ => state.insert(held.place, held),
                };
            }
        }
    }
    if let Some(until) = until {
        lock(&run.histories[kind]).lists.push((until, set_digest(state.values())));
    }
    Ok(())
}
