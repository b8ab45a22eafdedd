//! Reads see what was written before them.

use crate::etcd::{Inner, TIMED_OUT};
use crate::grpc::{Error, Repeat};
use crate::load::RANGE;
use crate::proto::{HeaderOnly, PutRequest, RangeRequest, RangeResponse, revision, unsigned};
use crate::writes::claimed;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{ReadError, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

const PUT: &str = "/etcdserverpb.KV/Put";
/// The name of the key that is written to see how far the watch is.
const BARRIER: &str = "barrier";
/// How long a revision may take from etcd's answer to its watch, before it is taken for one of another program's keys.
const ON_ITS_WAY: Duration = Duration::from_millis(25);

/// A read that waits.
pub(crate) type Waiting = oneshot::Sender<Result<(), ReadError>>;

/// Asks how far etcd is, once for all reads that wait, and waits until the copy is as far.
pub(crate) async fn run(inner: Arc<Inner>, mut receiver: mpsc::UnboundedReceiver<Waiting>) {
    while let Some(first) = receiver.recv().await {
        let mut waiting = vec![first];
        while let Ok(next) = receiver.try_recv() {
            waiting.push(next);
        }
        let outcome = catch_up(&inner).await;
        for read in waiting {
            // Who gave up waiting needs no answer.
            let _ = read.send(outcome.clone());
        }
    }
}

async fn catch_up(inner: &Inner) -> Result<(), ReadError> {
    let latest = latest(inner).await.map_err(unavailable)?;
    if reached(inner, latest, ON_ITS_WAY).await {
        return Ok(());
    }
    // Other programs' writes never come. After a write of its own the store knows that there is nothing before it.
    let barrier = barrier(inner).await?;
    match reached(inner, barrier, inner.options.patience).await {
        true => Ok(()),
        false => Err(ReadError::Unavailable(TIMED_OUT.to_owned())),
    }
}

/// How far etcd is, all members together.
pub(crate) async fn latest(inner: &Inner) -> Result<Revision, Error> {
    let request = RangeRequest { key: inner.names.own(BARRIER), count_only: true, ..RangeRequest::default() };
    let started = Instant::now();
    let response = inner.channel.call(RANGE, &request, inner.options.patience, Repeat::Freely).await;
    inner.durations.lock().asked(started.elapsed());
    let response: RangeResponse = response?;
    Ok(revision(response.header.as_ref()))
}

/// Writes something that means nothing; gives the revision.
pub(crate) async fn barrier(inner: &Inner) -> Result<Revision, ReadError> {
    let request = PutRequest { key: inner.names.own(BARRIER), ..PutRequest::default() };
    let response: Result<HeaderOnly, Error> =
        inner.channel.call(PUT, &request, inner.options.patience, Repeat::Freely).await;
    response.map(|response| revision(response.header.as_ref())).map_err(unavailable)
}

/// When somebody last wrote with a claim of a name; 0 for never.
pub(crate) async fn last_claim(inner: &Inner, name: &str) -> Result<Revision, ReadError> {
    let request = RangeRequest { key: inner.names.own(&claimed(name)), ..RangeRequest::default() };
    let response = inner.channel.call(RANGE, &request, inner.options.patience, Repeat::Freely).await;
    let response: RangeResponse = response.map_err(unavailable)?;
    Ok(response.kvs.first().map_or(0, |kv| unsigned(kv.mod_revision)))
}

async fn reached(inner: &Inner, revision: Revision, patience: Duration) -> bool {
    matches!(timeout(patience, inner.replica.wait_for(revision)).await, Ok(Ok(())))
}

fn unavailable(error: Error) -> ReadError {
    tracing::debug!(%error, "etcd cannot be read");
    ReadError::Unavailable(TIMED_OUT.to_owned())
}
