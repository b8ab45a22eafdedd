//! A running watch.

use crate::api::Identity;
use crate::error::{Error, Result, status_of_value};
use crate::{Body, Response};
use bytes::{Buf, BytesMut};
use futures_util::StreamExt;
use object::{Status, Value, json};

/// What a watch tells.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// An object came, or came into the selection.
    Added(Value),
    /// An object changed.
    Modified(Value),
    /// An object went, or left the selection: as it was last.
    Deleted(Value),
    /// Everything up to this version was told.
    Bookmark(String),
}

/// A running watch; dropping it ends it.
pub struct Watch {
    body: Body,
    buffer: BytesMut,
    /// How much of the buffer is known to have no end of a line.
    searched: usize,
    identity: Option<Identity>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// `identity` is what objects are called that come as mere metadata.
    pub(crate) fn new(response: Response, identity: Option<Identity>) -> Self {
        Watch { body: response.into_body(), buffer: BytesMut::new(), searched: 0, identity }
    }

    /// The next event; nothing when the server has ended the watch. After an error the watch is over; a version that
    /// is compacted away is an error that [`Error::is_expired`]. Dropping the future before it is ready loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEvent>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let line = self.buffer.split_to(self.searched + end);
                self.buffer.advance(1);
                self.searched = 0;
                return Some(self.read(&line));
            }
            self.searched = self.buffer.len();
            match self.body.next().await {
                Some(Ok(piece)) => self.buffer.extend_from_slice(&piece),
                Some(Err(error)) => return Some(Err(error)),
                None => return None,
            }
        }
    }

    fn read(&self, line: &[u8]) -> Result<WatchEvent> {
        let mut event = json::parse(line).map_err(|e| Error::Content(e.to_string()))?;
        let mut object = event.get_mut("object").map(std::mem::take).unwrap_or_default();
        let ty = event.str_at(&["type"]).unwrap_or_default();
        if let Some(identity) = self.identity.as_ref().filter(|_| ty != "ERROR") {
            identity.put_on(&mut object);
        }
        match ty {
            "ADDED" => Ok(WatchEvent::Added(object)),
            "MODIFIED" => Ok(WatchEvent::Modified(object)),
            "DELETED" => Ok(WatchEvent::Deleted(object)),
            "BOOKMARK" => Ok(WatchEvent::Bookmark(object.meta_str("resourceVersion").to_owned())),
            "ERROR" => Err(status_of_value(500, &object).into()),
            other => Err(Status::new(500, "", format!("a watch sent an event of type {other:?}")).into()),
        }
    }
}
