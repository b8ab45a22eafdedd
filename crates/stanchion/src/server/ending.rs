//! How the server ends: asked by a signal, in steps that lose nothing.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask for an end.
pub(super) struct Ending {
    terminate: Signal,
    interrupt: Signal,
}

impl Ending {
    /// From now on these signals end nothing by themselves.
    pub fn catch() -> io::Result<Self> {
        Ok(Ending { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one: the first asks for the end, each further one for less patience.
    pub async fn signalled(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
