//! How long a definition serves as it is: watches of its objects end when it changes or goes, as upstream, whose clients then
//! begin anew under what is served now.

use parking_lot::Mutex;
use std::collections::HashMap;
use tokio::sync::watch;

/// The definitions whose objects are watched.
#[derive(Debug, Default)]
pub(crate) struct Lives(Mutex<HashMap<String, watch::Sender<()>>>);

impl Lives {
    /// Gives what ends with the definition as it is now.
    pub fn of(&self, definition: &str) -> Life {
        let mut lives = self.0.lock();
        let life = lives.entry(definition.to_owned()).or_insert_with(|| watch::channel(()).0);
        Life(life.subscribe())
    }

    /// The definition is another now, or gone.
    pub fn end(&self, definition: &str) {
        self.0.lock().remove(definition);
    }
}

/// The time in which a definition stays as it is.
#[derive(Debug)]
pub(crate) struct Life(watch::Receiver<()>);

impl Life {
    /// Ready when it is over.
    pub async fn over(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_life_ends_for_all_who_asked_before() {
        let lives = Lives::default();
        let (first, second) = (lives.of("a"), lives.of("a"));
        let mut other = tokio::spawn(lives.of("b").over());
        lives.end("a");
        first.over().await;
        second.over().await;
        let mut next = tokio::spawn(lives.of("a").over());
        for still in [&mut other, &mut next] {
            assert!(tokio::time::timeout(std::time::Duration::from_millis(5), still).await.is_err());
        }
    }
}
