//! Watches: the changes of a collection as they happen.

use super::Request;
use super::present::{self, Shown};
use crate::Server;
use crate::answer::{self, Body, Outcome, Response};
use crate::catalogue::Resource;
use crate::http::Messages;
use crate::metrics::InFlight;
use crate::registry::{self, BatchKey, FrameKey, Selection, Stored};
use crate::request::options::{ListOptions, parse_version};
use crate::request::{Encoding, Form, PROTOBUF, Shape};
use crate::table::{self, Include};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use object::{Status, Value, json, map};
use prometheus::IntCounter;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::{Batch, Entry, Event, Key, Range, Revision, WatchError};
use tokio::time::{Instant, Sleep};

/// No watch lasts longer than this many seconds, ten years; clocks cannot count as far as clients can.
const LONGEST: u64 = 10 * 366 * 24 * 60 * 60;
/// The shortest time after which a watch without a timeout ends; the longest is twice that (upstream's
/// `minRequestTimeout`).
const SHORTEST: Duration = Duration::from_secs(1800);
/// How often a watch that wants bookmarks gets one.
const BOOKMARK: Duration = Duration::from_secs(60);
/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// How long a watch goes on when its definition is another, or gone.
const LAST_EVENTS: Duration = Duration::from_millis(50);
/// The size of the pieces in which the state at the start is sent, in bytes.
const PIECE: usize = 64 * 1024;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Added,
    Modified,
    Deleted,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Added => "ADDED",
            Type::Modified => "MODIFIED",
            Type::Deleted => "DELETED",
        }
    }
}

/// Answers with the changes of the collection that the path names.
pub(crate) async fn watch(request: &mut Request<'_>) -> Outcome<Response> {
    let options = ListOptions::read(request.query, true)?;
    let resource = request.resource.clone();
    let selection = Selection::new(&resource, &options)?;
    let include = if request.form.shape == Shape::Table { present::include(request)? } else { Include::None };
    let version = parse_version(&options.version).map_err(Status::unknown)?;
    let prefix = registry::prefix(&resource, &request.info.namespace);
    let named = if request.info.watch_path && !request.info.name.is_empty() {
        Some(request.info.name.as_str())
    } else {
        selection.name().filter(|_| !resource.namespaced || !request.info.namespace.is_empty())
    };
    let encoding = request.form.encoding;
    let range = match named {
        Some(name) => Range::key(format!("{prefix}{name}")),
        None => Range::prefix(prefix),
    };
    let store = &request.server.store;
    let mut initial = Vec::new();
    let mut after = version;
    if version == 0 {
        let page = store.replica().list(&range, &store::ListOptions::default()).map_err(registry::read_failure)?;
        after = page.revision;
        initial = page.entries;
        initial.reverse();
    }
    let timeout = options.timeout.map_or_else(default_timeout, |t| Duration::from_secs(t.min(LONGEST)));
    let now = Instant::now();
    let watch = store.watch(&range, after).await;
    let mut stop = request.server.stop_signal();
    let outdated = outdated(request.server, &resource);
    let (counted, counter) = request.server.metrics.watch(&resource, request.info);
    // Boxed: with each event it is moved.
    let mut state = Box::new(Watching {
        server: request.server.clone(),
        resource,
        form: request.form,
        include,
        selection,
        place: match &range {
            Range::Key(key) | Range::Prefix(key) => key.clone(),
        },
        initial,
        watch: None,
        end: Box::pin(tokio::time::sleep_until(now + timeout)),
        bookmark: timeout.checked_sub(LAST_BOOKMARK).filter(|_| options.bookmarks).map(|last| {
            let first = BOOKMARK.min(last);
            Box::pin(tokio::time::sleep_until(now + first))
        }),
        stop: Box::pin(async move {
            let _ = stop.wait_for(|stop| *stop).await;
        }),
        outdated,
        columns_sent: false,
        last: None,
        _counted: counted,
        counter,
    });
    match watch {
        Ok(watch) => state.watch = Some(watch),
        Err(error) => state.last = Some(error_frame(encoding, &error, after)),
    }
    let frames = stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), state))
    });
    let (content_type, messages) = match encoding {
        Encoding::Protobuf => (format!("{PROTOBUF};stream=watch"), Messages::Counted),
        _ => ("application/json".to_owned(), Messages::Lines),
    };
    let mut response = answer::with_body(200, &content_type, Body::stream(StreamBody::new(frames)));
    response.extensions_mut().insert(messages);
    Ok(response)
}

/// Ready when the resource's definition is another, or gone; never for a built-in kind.
fn outdated(server: &Arc<Server>, resource: &Resource) -> Signal {
    let Some(definition) = &resource.definition else { return Box::pin(std::future::pending()) };
    let life = server.lives.of(&definition.name);
    // One that ended before it was asked for.
    let catalogue = server.catalogue();
    let now = catalogue.resource(&resource.group, &resource.version, &resource.plural);
    let now = now.and_then(|resource| resource.definition.as_ref());
    if now.is_none_or(|now| now.uid != definition.uid || now.generation != definition.generation) {
        return Box::pin(std::future::ready(()));
    }
    Box::pin(life.over())
}

/// Between half an hour and an hour, so that the watches of a client do not all end together.
fn default_timeout() -> Duration {
    let mut random = [0u8; 2];
    // Without randomness they end together.
    let _ = getrandom::fill(&mut random);
    let share = f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX);
    SHORTEST.mul_f64(1.0 + share)
}

/// Ready at a moment.
type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A running watch.
struct Watching {
    /// Counts it as open.
    _counted: InFlight,
    /// Counts its events.
    counter: Option<IntCounter>,
    server: Arc<Server>,
    resource: Arc<Resource>,
    form: Form,
    include: Include,
    selection: Selection,
    /// The key that is watched, or what the watched keys begin with.
    place: Key,
    /// The state at the start that is still to be sent, the last object first.
    initial: Vec<Entry>,
    /// None once the watch is over.
    watch: Option<store::Watch>,
    end: Pin<Box<Sleep>>,
    bookmark: Option<Pin<Box<Sleep>>>,
    stop: Signal,
    outdated: Signal,
    columns_sent: bool,
    /// What is sent before the end.
    last: Option<Bytes>,
}

/// What happened while a watch waited.
enum Happened {
    End,
    Bookmark,
    Outdated,
    Events(Result<Batch, WatchError>),
}

impl Watching {
    /// The next piece; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.initial.is_empty() {
            let piece = self.state_piece().await;
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        loop {
            let Some(watch) = &mut self.watch else { return self.last.take() };
            let bookmark = async {
                match &mut self.bookmark {
                    Some(sleep) => sleep.await,
                    None => std::future::pending().await,
                }
            };
            let happened = tokio::select! {
                biased;
                () = &mut self.stop => Happened::End,
                batch = watch.next() => Happened::Events(batch),
                () = &mut self.end => Happened::End,
                () = &mut self.outdated => Happened::Outdated,
                () = bookmark => Happened::Bookmark,
            };
            match happened {
                Happened::End => {
                    self.watch = None;
                    return None;
                }
                Happened::Bookmark => {
                    let revision = watch.delivered();
                    if let Some(sleep) = &mut self.bookmark {
                        sleep.as_mut().reset(Instant::now() + BOOKMARK);
                    }
                    return Some(self.bookmark_frame(revision));
                }
                Happened::Outdated => {
                    // What happened before is told still.
                    self.outdated = Box::pin(std::future::pending());
                    self.end.as_mut().reset(Instant::now() + LAST_EVENTS);
                }
                Happened::Events(Err(error)) => {
                    let delivered = watch.delivered();
                    self.watch = None;
                    self.last = (!matches!(error, WatchError::Closed))
                        .then(|| error_frame(self.form.encoding, &error, delivered));
                }
                Happened::Events(Ok(batch)) => {
                    if let Some(bytes) = self.shared_batch(&batch) {
                        self.count(batch.events.len());
                        return Some(bytes);
                    }
                    let mut frames: Vec<Bytes> = Vec::with_capacity(batch.events.len());
                    for event in batch.events.iter() {
                        if let Some(frame) = self.event(event).await {
                            frames.push(frame);
                        }
                    }
                    self.count(frames.len());
                    match frames.len() {
                        0 => {}
                        1 => return frames.pop(),
                        _ => return Some(frames.concat().into()),
                    }
                }
            }
        }
    }

    fn count(&self, events: usize) {
        if let Some(counter) = &self.counter {
            counter.inc_by(events as u64);
        }
    }

    /// Some of the objects that were there at the start.
    async fn state_piece(&mut self) -> Bytes {
        let mut out = Vec::new();
        while out.len() < PIECE {
            let Some(entry) = self.initial.pop() else { break };
            let value =
                converted(&self.server, &self.resource, &entry.key, entry.mod_revision, entry.value.clone()).await;
            let Some(stored) = value.and_then(Stored::read) else { continue };
            if !self.selection.matches(&self.resource, &entry.key, &stored) {
                continue;
            }
            let shown = Shown { stored, version: entry.mod_revision };
            if let Some(frame) = self.frame(Type::Added, &shown).await {
                out.extend_from_slice(&frame);
                self.count(1);
            }
        }
        out.into()
    }

    /// An event as this watch sees it.
    async fn event(&mut self, event: &Event) -> Option<Bytes> {
        let new = match &event.value {
            Some(value) => converted(&self.server, &self.resource, &event.key, event.revision, value.clone())
                .await
                .and_then(Stored::read),
            None => None,
        };
        let old = match &event.previous {
            Some(value) if event.value.is_none() || !self.selection.is_all() => {
                // The state before has another place among what was converted.
                let place = format!("{}\0", event.key);
                converted(&self.server, &self.resource, &place, event.revision, value.clone())
                    .await
                    .and_then(Stored::read)
            }
            _ => None,
        };
        let matches = |stored: &Option<Stored>| {
            stored.as_ref().is_some_and(|s| self.selection.matches(&self.resource, &event.key, s))
        };
        let was = if self.selection.is_all() { event.previous.is_some() } else { matches(&old) };
        let (ty, stored) = match (was, matches(&new)) {
            (false, true) => (Type::Added, new?),
            (true, true) => (Type::Modified, new?),
            (true, false) => (Type::Deleted, old?),
            (false, false) => return None,
        };
        let shown = Shown { stored, version: event.revision };
        if self.form.shape == Shape::Table || !registry::is_current(&self.resource, &shown.stored) {
            return self.frame(ty, &shown).await.map(Bytes::from);
        }
        Some(self.server.frames.get(self.frame_key(event, ty as u8), || self.current_frame(ty, &shown)))
    }

    /// What names the frame of an event, and of one type where `ty` says which.
    fn frame_key(&self, event: &Event, ty: u8) -> FrameKey {
        let form = ty | (self.form.shape as u8) << 2 | u8::from(self.form.version != "v1") << 5;
        let form = form | u8::from(self.form.encoding == Encoding::Protobuf) << 6;
        FrameKey { revision: event.revision, serial: self.resource.serial, form }
    }

    /// Several events in one piece, made once for all watchers that get the same ones. Nothing where events are not
    /// served as they are stored, or not to everybody.
    fn shared_batch(&self, batch: &Batch) -> Option<Bytes> {
        let [first, .., last] = &*batch.events else { return None };
        let converts = self.resource.definition.as_ref().is_some_and(|d| d.converts);
        if converts || !self.selection.is_all() || self.form.shape == Shape::Table {
            return None;
        }
        let key = BatchKey { first: self.frame_key(first, 0), last: last.revision, prefix: self.place.clone() };
        // Empty where an event needs more work.
        let bytes = self.server.batches.get(key, || {
            let mut out = Vec::new();
            for event in batch.events.iter() {
                let (ty, value) = match (&event.previous, &event.value) {
                    (None, Some(new)) => (Type::Added, new),
                    (Some(_), Some(new)) => (Type::Modified, new),
                    (Some(old), None) => (Type::Deleted, old),
                    (None, None) => continue,
                };
                let stored = Stored::read(value.clone()).filter(|s| registry::is_current(&self.resource, s));
                let Some(stored) = stored else { return Vec::new() };
                self.write_frame(ty, &Shown { stored, version: event.revision }, &mut out);
            }
            out
        });
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The frame of an object that is served as it is stored.
    fn current_frame(&self, ty: Type, shown: &Shown) -> Vec<u8> {
        let mut out = Vec::with_capacity(shown.stored.len_hint() + 64);
        self.write_frame(ty, shown, &mut out);
        out
    }

    fn write_frame(&self, ty: Type, shown: &Shown, out: &mut Vec<u8>) {
        if self.form.encoding == Encoding::Protobuf {
            let mut text = Vec::with_capacity(shown.stored.len_hint());
            present::write_item(&self.resource, self.form, shown, &mut text);
            let object = json::parse(&text).unwrap_or_default();
            out.extend_from_slice(&value_frame(Encoding::Protobuf, ty.name(), &object));
            return;
        }
        open(out, ty.name());
        present::write_item(&self.resource, self.form, shown, out);
        out.extend_from_slice(b"}\n");
    }

    /// The frame of an object; nothing if it cannot be shown.
    async fn frame(&mut self, ty: Type, shown: &Shown) -> Option<Vec<u8>> {
        if self.form.shape != Shape::Table && registry::is_current(&self.resource, &shown.stored) {
            return Some(self.current_frame(ty, shown));
        }
        let strategy = &*self.resource.strategy;
        let worked = self.server.load(&self.resource, &shown.stored, shown.version).await.ok()?;
        let mut sent = worked.clone();
        strategy.present(&mut sent);
        let object = match self.form.shape {
            Shape::Full => sent,
            Shape::Metadata | Shape::MetadataList => table::partial(&sent, self.form.version),
            Shape::Table => {
                let now = (self.server.options.clock)();
                let row = table::row(strategy, &worked, &sent, self.include, self.form.version, now);
                let columns = (!std::mem::replace(&mut self.columns_sent, true)).then(|| strategy.columns());
                let meta = map! { "resourceVersion" => shown.version.to_string() };
                table::table(columns.as_deref(), vec![row], meta, self.form.version)
            }
        };
        Some(value_frame(self.form.encoding, ty.name(), &object))
    }

    fn bookmark_frame(&mut self, revision: Revision) -> Bytes {
        let mut meta = map! { "resourceVersion" => revision.to_string() };
        if !self.resource.is_custom() {
            meta.insert("creationTimestamp", Value::Null);
        }
        let (kind, api_version) = match self.form.shape {
            Shape::Full => (self.resource.kind.clone(), self.resource.api_version()),
            Shape::Table => {
                let table = table::table(None, Vec::new(), meta, self.form.version);
                return value_frame(self.form.encoding, "BOOKMARK", &table).into();
            }
            _ => ("PartialObjectMetadata".to_owned(), format!("meta.k8s.io/{}", self.form.version)),
        };
        let object = map! { "kind" => kind, "apiVersion" => api_version, "metadata" => meta };
        value_frame(self.form.encoding, "BOOKMARK", &Value::Object(object)).into()
    }
}

/// A stored object in the resource's version; nothing if it cannot be converted.
async fn converted(
    server: &Server,
    resource: &Arc<Resource>,
    key: &str,
    revision: Revision,
    value: Bytes,
) -> Option<Bytes> {
    server.converted_value(resource, key, revision, value).await.ok()
}

fn open(out: &mut Vec<u8>, ty: &str) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(ty.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

fn value_frame(encoding: Encoding, ty: &str, object: &Value) -> Vec<u8> {
    if encoding == Encoding::Protobuf {
        let failed = || {
            let status = Status::internal("an object has no protobuf form");
            kinds::protobuf::write_event("ERROR", &status.to_value())
        };
        return kinds::protobuf::write_event(ty, object).or_else(failed).unwrap_or_default();
    }
    let mut out = Vec::with_capacity(512);
    open(&mut out, ty);
    out.extend_from_slice(json::to_string(object).as_bytes());
    out.extend_from_slice(b"}\n");
    out
}

/// The event that ends a watch which cannot go on.
fn error_frame(encoding: Encoding, error: &WatchError, at: Revision) -> Bytes {
    let status = match error {
        WatchError::Compacted { requested, oldest } => {
            Status::expired(format!("too old resource version: {requested} ({oldest})"))
        }
        WatchError::Lagged { oldest, .. } => Status::expired(format!("too old resource version: {at} ({oldest})")),
        error => Status::internal(error),
    };
    value_frame(encoding, "ERROR", &status.to_value()).into()
}
