//! Reading everything.

use crate::grpc::{Channel, Error, Repeat};
use crate::names::Names;
use crate::proto::{KeyValue, RangeRequest, RangeResponse, revision, signed, unsigned};
use bytes::Bytes;
use std::time::Duration;
use store::{Entry, Key, Revision};

/// The method that reads keys.
pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
/// The name of the key that holds the revision before which etcd will be told to forget next.
pub(crate) const COMPACTION: &str = "compaction";
/// How many keys are read in one piece.
const PAGE: i64 = 1000;

/// Reads everything as it was when the servers last agreed on what to forget: what happened since is in etcd's history,
/// so that clients that come from another server can go on where they were. Without such a revision, or when it is
/// forgotten, everything is read as it is now.
pub(crate) async fn start(
    channel: &Channel,
    names: &Names,
    patience: Duration,
) -> Result<(Revision, Vec<Entry>), Error> {
    let request = RangeRequest { key: names.own(COMPACTION), ..RangeRequest::default() };
    let response: RangeResponse = channel.call(RANGE, &request, patience, Repeat::Freely).await?;
    let kept = response.kvs.first().and_then(|kv| std::str::from_utf8(&kv.value).ok()?.parse().ok());
    if let Some(at) = kept.filter(|at| *at > 0)
        && let Ok(loaded) = all(channel, names, at, patience).await
    {
        return Ok(loaded);
    }
    all(channel, names, 0, patience).await
}

/// Reads everything at a revision (0: the latest); gives the revision.
pub(crate) async fn all(
    channel: &Channel,
    names: &Names,
    mut at: Revision,
    patience: Duration,
) -> Result<(Revision, Vec<Entry>), Error> {
    let (mut key, range_end) = names.all();
    let mut entries = Vec::new();
    loop {
        let request =
            RangeRequest { key, range_end: range_end.clone(), limit: PAGE, revision: signed(at), count_only: false };
        let response: RangeResponse = channel.call(RANGE, &request, patience, Repeat::Freely).await?;
        if at == 0 {
            at = revision(response.header.as_ref());
        }
        let last = response.kvs.last().map(|kv| kv.key.clone());
        entries.extend(response.kvs.into_iter().filter_map(|kv| Some(entry(names.ours(&kv.key)?, &kv))));
        match last {
            Some(last) if response.more => key = [&last[..], &[0]].concat().into(),
            _ => return Ok((at, entries)),
        }
    }
}

/// What etcd says of a key. The value is a copy: etcd's is a piece of the whole answer.
pub(crate) fn entry(key: Key, kv: &KeyValue) -> Entry {
    Entry {
        key,
        value: Bytes::copy_from_slice(&kv.value),
        create_revision: unsigned(kv.create_revision),
        mod_revision: unsigned(kv.mod_revision),
        version: unsigned(kv.version),
    }
}
