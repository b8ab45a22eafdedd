//! Letting a cluster go.

use super::Detach;
use super::commands::{Session, nothing_if_missing};
use crate::cluster::{Connections, Failure};
use crate::terminal::say;
use crate::terminal::{LOOK, Progress};
use futures_util::{StreamExt, stream};
use manager::application::clusters::{Fleet, names, records};
use manager::application::policy::Policies;
use manager::application::tracker::Entry;
use manager::application::write::Writer;
use object::map;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many objects are deleted at a time.
const WIDTH: usize = 10;

/// What applications have in a cluster, by application.
type Held = BTreeMap<String, Vec<Entry>>;

/// What becomes of what Applications have there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// It stays there, and is forgotten here.
    Orphan,
    /// It is deleted.
    Delete,
}

impl Choice {
    fn name(self) -> &'static str {
        match self {
            Choice::Orphan => "orphan",
            Choice::Delete => "delete",
        }
    }
}

impl Session {
    /// Lets a cluster go. From the first step on nothing is written to it any more, so that nothing comes back while it
    /// is being emptied; every step can be done again should it break off.
    pub async fn detach(&self, detach: Detach) -> Result<(), Failure> {
        let name = detach.name.as_str();
        let secret = self.secret(name).await?;
        // Where there are no Applications, there are no trackers either.
        let held: Held = records::held(&self.client, name).await.or_else(nothing_if_missing)?;
        if secret.is_none() && held.is_empty() {
            return Err(format!("there is no cluster {name}").into());
        }
        let choice = match (&detach, held.is_empty()) {
            (Detach { delete: true, .. }, _) => Choice::Delete,
            (Detach { orphan: true, .. } | Detach { force: true, .. }, _) | (_, true) => Choice::Orphan,
            _ => ask(name, &held)?,
        };
        let mut left = 0;
        if let Some(secret) = &secret {
            // What is written to the Secret from here on does not change it.
            let fleet = Fleet::read(&self.client, Arc::new(Connections), &self.namespace).await?;
            let mark = map! { "annotations" => map! { names::DETACHING => choice.name() } };
            self.change(secret.name(), mark).await?;
            if choice == Choice::Delete {
                left = self.empty(&fleet, &held, &detach).await?;
            }
        } else if choice == Choice::Delete && !detach.force {
            let told = describe(&held);
            return Err(format!(
                "cluster {name} has no Secret any more, so nothing can be deleted there; --orphan forgets {told}"
            )
            .into());
        }
        records::rewrite(&self.client, name, None).await.or_else(nothing_if_missing)?;
        if let Some(secret) = &secret {
            self.remove(secret).await?;
        }
        let count: usize = held.values().map(Vec::len).sum();
        match choice {
            Choice::Delete => say!("cluster {name} detached; {} objects deleted", count - left),
            Choice::Orphan if count > 0 => say!("cluster {name} detached; {count} objects stay there"),
            Choice::Orphan => say!("cluster {name} detached"),
        }
        Ok(())
    }

    /// Deletes what applications have in the cluster, and waits until it is gone; how many are left that could not be.
    async fn empty(&self, fleet: &Fleet, held: &Held, detach: &Detach) -> Result<usize, Failure> {
        let begin = Instant::now();
        let mut progress = Progress::new(&detach.name);
        let policies = Policies::default();
        loop {
            let all = held.iter().flat_map(|(owner, entries)| entries.iter().map(move |entry| (owner, entry)));
            let work = all.map(|(owner, entry)| {
                let writer = Writer { fleet, owner, policies: &policies, orphans: false, actor: None };
                async move {
                    match writer.owned(entry).await? {
                        None => Ok(true),
                        Some(live) => writer.remove(entry, &live).await,
                    }
                }
            });
            let done: Vec<Result<bool, String>> = stream::iter(work).buffer_unordered(WIDTH).collect().await;
            let left = done.iter().filter(|done| **done != Ok(true)).count();
            let error = done.into_iter().find_map(Result::err);
            match error {
                Some(_) if detach.force => return Ok(left),
                Some(why) => {
                    // Nothing was forgotten: Applications go on to be kept there.
                    let unmark = map! { "annotations" => map! { names::DETACHING => object::Value::Null } };
                    self.change(&detach.name, unmark).await?;
                    return Err(format!("{why}; --force goes on all the same, --orphan leaves everything there").into());
                }
                None if left == 0 => return Ok(0),
                None if begin.elapsed() > Duration::from_secs(detach.timeout) && detach.force => return Ok(left),
                None if begin.elapsed() > Duration::from_secs(detach.timeout) => {
                    return Err(format!("{left} objects are still there; do it again, or with --force").into());
                }
                None => progress.say(&format!("{left} objects are being deleted")),
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// What is held, for people.
fn describe(held: &Held) -> String {
    let count: usize = held.values().map(Vec::len).sum();
    let mut owners: Vec<&str> = held.keys().map(String::as_str).take(5).collect();
    if held.len() > owners.len() {
        owners.push("…");
    }
    format!("{count} objects of {} Applications ({})", held.len(), owners.join(", "))
}

/// Asks a person on a terminal; elsewhere what is in use is not let go.
fn ask(name: &str, held: &Held) -> Result<Choice, Failure> {
    let told = describe(held);
    let refused = || -> Failure {
        format!("cluster {name} holds {told}: --orphan leaves them there, --delete deletes them first").into()
    };
    if !std::io::stdin().is_terminal() {
        return Err(refused());
    }
    eprint!("Cluster {name} holds {told}. [o]rphan, [d]elete or [C]ancel? ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "o" | "orphan" => Ok(Choice::Orphan),
        "d" | "delete" => Ok(Choice::Delete),
        _ => Err(refused()),
    }
}
