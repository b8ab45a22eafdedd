//! Lists.

use super::Request;
use super::components;
use super::present::{self, ListMeta, Shown};
use crate::Server;
use crate::answer::{self, Body, Failure, Outcome, Response};
use crate::catalogue::Resource;
use crate::registry::{self, Continuation, Selection};
use crate::request::options::{At, ListOptions};
use crate::request::{Encoding, Form, Shape};
use crate::table;
use bytes::Bytes;
use hyper::body::Frame;
use object::{Status, Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use store::{Entry, Range, ReadError, Revision};

/// How long a list waits for a version that is not there yet (upstream's `blockTimeout`).
const WAIT: Duration = Duration::from_secs(3);
/// From this size on, in bytes, lists are sent while they are made.
const STREAMED: usize = 512 * 1024;
/// The size of the pieces in which a list is sent, in bytes: with what HTTP puts around it, as much as TLS takes at once.
const PIECE: usize = 64 * 1024 - 64;

/// Some of the objects of a collection.
pub(crate) struct Collected {
    /// The objects that match.
    pub entries: Vec<Entry>,
    /// The list's metadata.
    pub meta: ListMeta,
}

/// Answers with the objects of a collection.
pub(crate) async fn list(request: &mut Request<'_>) -> Outcome<Response> {
    let options = ListOptions::read(request.query, false)?;
    if request.form.shape == Shape::Metadata {
        let (package, kind) = match request.resource.is_custom() {
            true => ("unstructured", "UnstructuredList"),
            false => ("core", request.resource.list_kind.as_str()),
        };
        let why =
            format!("you requested PartialObjectMetadata, but the requested object is a list (*{package}.{kind})");
        return Err(crate::request::not_acceptable(&why));
    }
    let collected = collect(request, &options).await?;
    show(request, collected).await
}

/// The objects of the collection that the path names, as far as they match.
pub(crate) async fn collect(request: &Request<'_>, options: &ListOptions) -> Outcome<Collected> {
    let resource = &*request.resource;
    let selection = Selection::new(resource, options)?;
    if components::has(request) {
        return Ok(components::list(request, &selection));
    }
    let prefix = registry::prefix(resource, &request.info.namespace);
    let (at, after) = start(request.server, options, &prefix).await?;
    let mut limit = options.limit;
    let mut newest = true;
    if options.continues.is_empty() {
        let wanted = options.at()?;
        if wanted == At::Any {
            // What is at hand is at hand as a whole.
            limit = 0;
        }
        newest = wanted == At::Latest;
    }
    let from = Start { at, after, newest };
    let (entries, revision, more) = pages(request, &selection, &prefix, from, limit, &options.continues).await?;
    let mut meta = ListMeta { version: revision, ..ListMeta::default() };
    if let (Some(remaining), Some(last)) = (more, entries.last()) {
        let after = last.key.strip_prefix(prefix.as_str()).unwrap_or_default().to_owned();
        meta.continues = Continuation { revision: Some(revision), after }.write();
        meta.remaining = selection.is_all().then_some(remaining);
    }
    Ok(Collected { entries, meta })
}

/// Where a list starts.
struct Start {
    at: Option<Revision>,
    after: Option<store::Key>,
    /// Whether it has to have what other servers wrote last.
    newest: bool,
}

/// Where a list starts: at which revision, after which key.
async fn start(
    server: &Server,
    options: &ListOptions,
    prefix: &str,
) -> Outcome<(Option<Revision>, Option<store::Key>)> {
    if !options.continues.is_empty() {
        if !matches!(options.version.as_str(), "" | "0") {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue").into());
        }
        let token = Continuation::read(&options.continues)
            .map_err(|e| Failure::from(Status::bad_request(format!("invalid continue token: {e}"))))?;
        return Ok((token.revision, Some(format!("{prefix}{}", token.after).into())));
    }
    Ok(match options.at()? {
        At::Latest | At::Any => (None, None),
        At::NotOlderThan(version) => {
            server.wait_for(version).await?;
            (None, None)
        }
        At::Exact(version) => {
            server.wait_for(version).await?;
            (Some(version), None)
        }
    })
}

impl Server {
    /// Waits until the store has reached a version; 504 if it does not.
    pub(crate) async fn wait_for(&self, version: Revision) -> Outcome<()> {
        if version <= self.store.revision() {
            return Ok(());
        }
        match tokio::time::timeout(WAIT, self.store.wait_for(version)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(registry::read_failure(error)),
            Err(_) => Err(registry::too_large_version(version, self.store.revision())),
        }
    }
}

/// Reads until `limit` objects match (0: all). Gives them, the revision, and how many keys follow, if any do.
/// `continues` is the client's token.
async fn pages(
    request: &Request<'_>,
    selection: &Selection,
    prefix: &str,
    start: Start,
    limit: usize,
    continues: &str,
) -> Outcome<(Vec<Entry>, Revision, Option<u64>)> {
    let (resource, store) = (&*request.resource, &request.server.store);
    let single = selection.name().filter(|_| !resource.namespaced || !request.info.namespace.is_empty());
    let range = match single {
        Some(name) => Range::key(format!("{prefix}{name}")),
        None => Range::prefix(prefix),
    };
    let Start { mut at, mut after, newest } = start;
    let mut found = Vec::new();
    loop {
        let wanted = if limit == 0 { 0 } else { limit - found.len() };
        // With a selector more has to be read than is wanted.
        let chunk = if limit == 0 || selection.is_all() { wanted } else { wanted.max(500) };
        let chunk = store::ListOptions { after: after.clone(), limit: chunk, at };
        let page = if newest { store.list(&range, chunk).await } else { store.replica().list(&range, &chunk) };
        let mut page = page.map_err(|e| read_failure(e, continues))?;
        // Selectors look at what clients see.
        page.entries = request.server.converted(&request.resource, page.entries).await?;
        let revision = page.revision;
        at = Some(revision);
        if selection.is_all() {
            return Ok((page.entries, revision, (page.remaining > 0).then_some(page.remaining)));
        }
        let (count, remaining) = (page.entries.len(), page.remaining);
        for (i, entry) in page.entries.into_iter().enumerate() {
            after = Some(entry.key.clone());
            let matches = registry::stored(&entry).is_ok_and(|s| selection.matches(resource, &entry.key, &s));
            if !matches {
                continue;
            }
            found.push(entry);
            if limit != 0 && found.len() == limit {
                let more = (count - i - 1) as u64 + remaining;
                return Ok((found, revision, (more > 0).then_some(more)));
            }
        }
        if remaining == 0 {
            return Ok((found, revision, None));
        }
    }
}

/// A failed read of a list; a page whose revision is gone can go on inconsistently.
fn read_failure(error: ReadError, continues: &str) -> Failure {
    let (ReadError::Compacted { .. }, false) = (&error, continues.is_empty()) else {
        return registry::read_failure(error);
    };
    let Ok(token) = Continuation::read(continues) else { return registry::read_failure(error) };
    const MESSAGE: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    let mut value = Status::expired(MESSAGE).to_value();
    let token = Continuation { revision: None, ..token }.write();
    value.set_at(&["metadata", "continue"], token.into());
    Failure::Object(410, Box::new(value))
}

/// A list as an answer.
pub(crate) async fn show(request: &Request<'_>, collected: Collected) -> Outcome<Response> {
    let Collected { entries, meta } = collected;
    let shown = entries.into_iter().map(Shown::of).collect::<Outcome<Vec<Shown>>>()?;
    let (form, resource) = (request.form, &request.resource);
    if form.shape == Shape::Table {
        let include = present::include(request)?;
        let rows = present::rows(request, &shown, include).await?;
        let columns = resource.strategy.columns();
        let empty = rows.is_empty();
        let mut table = table::table(Some(&columns), rows, meta.to_map(), form.version);
        if empty && crate::controllers::definitions::is_definitions(resource) {
            // Go's nil slice, here alone.
            table.set_at(&["rows"], Value::Null);
        }
        return Ok(present::finish(form, 200, json::to_vec(&table)));
    }
    let (head, tail) = frame(resource, form, &meta, shown.is_empty());
    let size: usize = shown.iter().map(|shown| shown.stored.len_hint()).sum();
    let plain = form.encoding == Encoding::Json && !form.pretty;
    if plain && size > STREAMED && shown.iter().all(|shown| registry::is_current(resource, &shown.stored)) {
        let items = shown.into_iter().peekable();
        let body =
            Listing { head: head.into(), tail: tail.into(), items, first: true, form, resource: resource.clone() };
        return Ok(answer::with_body(200, "application/json", Body::stream(body)));
    }
    let mut out = head;
    out.reserve(size + shown.len() * 64);
    for (i, shown) in shown.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        present::write_listed(request, shown, &mut out).await?;
    }
    out.extend_from_slice(&tail);
    Ok(present::finish(form, 200, out))
}

/// What stands before and after the items.
fn frame(resource: &Resource, form: Form, meta: &ListMeta, empty: bool) -> (Vec<u8>, Vec<u8>) {
    let full = form.shape == Shape::Full;
    let (kind, api_version) = match full {
        true => (resource.list_kind.clone(), resource.api_version()),
        false => ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{}", form.version)),
    };
    let mut head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":").into_bytes();
    meta.write(&mut head, full && resource.is_custom());
    // Go's nil slice.
    if empty && !full {
        head.extend_from_slice(b",\"items\":null");
        return (head, b"}".to_vec());
    }
    head.extend_from_slice(b",\"items\":[");
    (head, b"]}".to_vec())
}

/// The body of a large list.
struct Listing {
    head: Bytes,
    tail: Bytes,
    items: std::iter::Peekable<std::vec::IntoIter<Shown>>,
    first: bool,
    form: Form,
    resource: Arc<Resource>,
}

impl hyper::body::Body for Listing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let mut out = Vec::with_capacity(PIECE);
        out.extend_from_slice(&std::mem::take(&mut this.head));
        // What does not fit begins the next piece, unless that is empty still.
        while let Some(shown) = this.items.next_if(|next| out.is_empty() || out.len() + next.stored.len_hint() < PIECE)
        {
            if !std::mem::take(&mut this.first) {
                out.push(b',');
            }
            present::write_listed_item(&this.resource, this.form, &shown, &mut out);
        }
        if this.items.peek().is_none() {
            out.extend_from_slice(&std::mem::take(&mut this.tail));
        }
        Poll::Ready((!out.is_empty()).then(|| Ok(Frame::data(out.into()))))
    }
}
