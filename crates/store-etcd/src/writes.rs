//! Writes: transactions that compare the key's state.

use crate::etcd::{Inner, TIMED_OUT};
use crate::grpc::{Error, Repeat};
use crate::load::entry;
use crate::proto::{
    Compare, DeleteRangeRequest, EQUAL, GREATER, MOD, Op, PutRequest, RangeRequest, Than, TxnRequest, TxnResponse,
    VERSION, revision, signed,
};
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::time::Instant;
use store::{Change, Claim, Expect, Revision, Write, WriteError};
use tokio::time::timeout;

/// The method of transactions.
pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
/// The largest request that etcd takes by default, in bytes.
const LARGEST: usize = 3 << 19;

impl Inner {
    /// Does a write, if its claim holds; answers when the copy has it.
    pub(crate) async fn write(&self, write: &Write, claim: Option<&Claim>) -> Result<Revision, WriteError> {
        let Some(key) = self.names.theirs(&write.key) else {
            let root = &self.options.root;
            return Err(WriteError::Unavailable(format!("the key {} does not begin with {root}", write.key)));
        };
        let started = Instant::now();
        let response = self.transact(&key, write, claim).await;
        self.durations.lock().wrote(write, &self.options.root, started.elapsed());
        let response = response.map_err(|error| failure(write, &error))?;
        if !response.succeeded {
            let current = response.key_value().map(|kv| entry(write.key.clone(), &kv));
            let fits = match write.expect {
                Expect::Absent => current.is_none(),
                Expect::Revision(revision) => current.as_ref().is_some_and(|entry| entry.mod_revision == revision),
                Expect::Any => current.is_some() || write.change != Change::Delete,
            };
            return Err(if fits && claim.is_some() { WriteError::Overtaken } else { WriteError::Conflict { current } });
        }
        self.writes.fetch_add(1, Ordering::Relaxed);
        let revision = revision(response.header.as_ref());
        // It stands in any case. If the copy does not get it in time, the next read waits for it.
        let _ = timeout(self.options.patience, self.replica.wait_for(revision)).await;
        Ok(revision)
    }

    async fn transact(&self, key: &Bytes, write: &Write, claim: Option<&Claim>) -> Result<TxnResponse, Error> {
        let patience = self.options.patience;
        let mut again = true;
        loop {
            let lease = match &write.change {
                Change::Put { expires: Some(expires), .. } => {
                    let now = self.options.clock.now();
                    self.leases.lease(&self.channel, *expires, now, patience).await.map_err(harmless)?
                }
                _ => 0,
            };
            let mut request = transaction(key, write, lease);
            if let Some(claim) = claim {
                bind(&mut request, self.names.own(&claimed(&claim.name)), claim.revision);
            }
            match self.channel.call(TXN, &request, patience, Repeat::IfUndone).await {
                Err(error) if again && error.says("lease not found") => {
                    self.leases.forget(lease).await;
                    again = false;
                }
                outcome => return outcome,
            }
        }
    }
}

fn transaction(key: &Bytes, write: &Write, lease: i64) -> TxnRequest {
    let compare = |result, target, than| Compare { result, target, key: key.clone(), than: Some(than) };
    let revision = match write.expect {
        Expect::Absent => Some(0),
        Expect::Revision(revision) => Some(signed(revision)),
        Expect::Any => None,
    };
    let mut conditions: Vec<Compare> =
        revision.map(|revision| compare(EQUAL, MOD, Than::ModRevision(revision))).into_iter().collect();
    let change = match &write.change {
        Change::Put { value, .. } => Op::Put(PutRequest { key: key.clone(), value: value.clone(), lease }),
        Change::Delete => {
            // What is not there cannot be deleted, whatever is expected.
            conditions.push(compare(GREATER, VERSION, Than::Version(0)));
            Op::Delete(DeleteRangeRequest { key: key.clone() })
        }
    };
    TxnRequest {
        compare: conditions,
        success: vec![change.into()],
        failure: vec![Op::Range(RangeRequest { key: key.clone(), ..RangeRequest::default() }).into()],
    }
}

/// The name of the key that is written with each decision about something.
pub(crate) fn claimed(name: &str) -> String {
    format!("claims/{name}")
}

/// Has a transaction succeed only if the key of a claim is as it was, and write that key, too.
fn bind(request: &mut TxnRequest, key: Bytes, revision: Revision) {
    let than = Some(Than::ModRevision(signed(revision)));
    request.compare.push(Compare { result: EQUAL, target: MOD, key: key.clone(), than });
    request.success.push(Op::Put(PutRequest { key, ..PutRequest::default() }).into());
}

/// A failure before the write itself: whatever it was, nothing was written.
fn harmless(error: Error) -> Error {
    Error::Unsent(error.to_string())
}

fn failure(write: &Write, error: &Error) -> WriteError {
    tracing::debug!(%error, key = &*write.key, "etcd did not do a write");
    if error.is_uncertain() {
        return WriteError::Uncertain(TIMED_OUT.to_owned());
    }
    match error {
        Error::Unsent(_) => WriteError::Unavailable(TIMED_OUT.to_owned()),
        _ if error.is_too_large() => {
            let size = if let Change::Put { value, .. } = &write.change { value.len() } else { 0 };
            WriteError::TooLarge { what: "value", size, limit: LARGEST }
        }
        _ if error.says("no leader") => WriteError::Unavailable(TIMED_OUT.to_owned()),
        // Among them that etcd's quota is used up.
        _ => WriteError::Unavailable(error.to_string()),
    }
}
