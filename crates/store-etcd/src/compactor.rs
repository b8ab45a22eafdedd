//! Tells etcd what to forget, as upstream's servers do: of several, one does it in each interval.

use crate::etcd::Inner;
use crate::grpc::{Error, Repeat};
use crate::load::COMPACTION;
use crate::proto::{
    CompactionRequest, Compare, EQUAL, HeaderOnly, Op, PutRequest, RangeRequest, Than, TxnRequest, TxnResponse,
    VERSION, revision, signed, unsigned,
};
use crate::writes::TXN;
use std::sync::Arc;
use store::Revision;
use tokio::time::sleep;

const COMPACT: &str = "/etcdserverpb.KV/Compact";

/// What a server knows of the last time.
#[derive(Debug, Default)]
struct Round {
    /// How often somebody took a turn.
    turn: u64,
    /// The revision then.
    revision: Revision,
}

/// Compacts in each interval, for as long as the store is there.
pub(crate) async fn run(inner: Arc<Inner>) {
    if inner.options.compaction.is_zero() {
        return;
    }
    let mut round = Round::default();
    loop {
        match turn(&inner, &round).await {
            Ok(next) => round = next,
            Err(error) => tracing::debug!(%error, "etcd cannot be compacted"),
        }
        sleep(inner.options.compaction).await;
    }
}

/// Who writes the key first in an interval has it forgotten what is older than the interval. The key says from which
/// revision on everything stays until the next turn.
async fn turn(inner: &Inner, round: &Round) -> Result<Round, Error> {
    let (key, patience) = (inner.names.own(COMPACTION), inner.options.patience);
    let now = inner.replica.revision();
    let compare =
        Compare { result: EQUAL, target: VERSION, key: key.clone(), than: Some(Than::Version(signed(round.turn))) };
    let put = PutRequest { key: key.clone(), value: now.to_string().into(), lease: 0 };
    let request = TxnRequest {
        compare: vec![compare],
        success: vec![Op::Put(put).into()],
        failure: vec![Op::Range(RangeRequest { key, ..RangeRequest::default() }).into()],
    };
    let response: TxnResponse = inner.channel.call(TXN, &request, patience, Repeat::Freely).await?;
    if !response.succeeded {
        let revision = revision(response.header.as_ref());
        let turn = response.key_value().map_or(0, |kv| unsigned(kv.version));
        return Ok(Round { turn, revision });
    }
    if round.revision > 0 {
        let request = CompactionRequest { revision: signed(round.revision) };
        let outcome: Result<HeaderOnly, Error> = inner.channel.call(COMPACT, &request, patience, Repeat::Freely).await;
        match outcome {
            Err(error) if !error.says("has been compacted") => return Err(error),
            _ => tracing::debug!(revision = round.revision, "etcd was compacted"),
        }
    }
    Ok(Round { turn: round.turn + 1, revision: now })
}
