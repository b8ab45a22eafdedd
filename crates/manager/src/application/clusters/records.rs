//! What trackers say of a cluster, for those who rename or detach it.

use std::collections::{BTreeMap, HashSet};

use client::{Client, Error, ListParams};
use object::Value;

use super::super::kinds::TRACKERS;
use super::super::three_way;
use super::super::tracker::{Entry, Tracker};

/// How often a tracker is read anew because somebody else wrote it meanwhile.
const TRIES: u32 = 10;

/// The objects that applications have in a cluster, by application (`NAMESPACE/NAME`), each once.
///
/// # Errors
///
/// If the trackers cannot be read.
pub async fn held(client: &Client, cluster: &str) -> Result<BTreeMap<String, Vec<Entry>>, Error> {
    Ok(all_held(client).await?.remove(cluster).unwrap_or_default())
}

/// How many objects applications have in each cluster; those without any are left out. The empty name is the cluster in
/// which the applications are.
///
/// # Errors
///
/// If the trackers cannot be read.
pub async fn counts(client: &Client) -> Result<BTreeMap<String, usize>, Error> {
    let all = all_held(client).await?;
    Ok(all.into_iter().map(|(cluster, held)| (cluster, held.values().map(Vec::len).sum())).collect())
}

/// The objects of applications, by cluster and application.
async fn all_held(client: &Client) -> Result<BTreeMap<String, BTreeMap<String, Vec<Entry>>>, Error> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<Entry>>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for object in client.api(&TRACKERS).list("", &ListParams::default()).await?.items {
        let tracker = read(&object)?;
        // The objects of an archived one were collected.
        let Some(owner) = three_way::owner_of(&object).filter(|_| !tracker.is_archived()) else { continue };
        for entry in tracker.entries.into_iter().filter(|entry| !entry.deleted) {
            if seen.insert((owner.clone(), entry.key())) {
                let held = all.entry(entry.cluster.to_string()).or_default();
                held.entry(owner.clone()).or_default().push(entry);
            }
        }
    }
    Ok(all)
}

/// Takes what trackers have in a cluster out of them, or, given a name, says that it is in the cluster of that name. How
/// many trackers that changed.
///
/// # Errors
///
/// If trackers cannot be read or written; what was changed so far stays so, and doing it again does the rest.
pub async fn rewrite(client: &Client, cluster: &str, to: Option<&str>) -> Result<usize, Error> {
    let api = client.api(&TRACKERS);
    let mut changed = 0;
    for mut object in api.list("", &ListParams::default()).await?.items {
        for attempt in 1.. {
            let mut tracker = read(&object)?;
            if !moved(&mut tracker, cluster, to) {
                break;
            }
            match api.update(&tracker.to_value()).await {
                Ok(_) => {
                    changed += 1;
                    break;
                }
                Err(error) if error.is_not_found() => break,
                Err(error) if error.is_conflict() && attempt < TRIES => {
                    let Some(newer) = api.find("", tracker.name()).await? else { break };
                    object = newer;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(changed)
}

fn read(object: &Value) -> Result<Tracker, Error> {
    Tracker::read(object).map_err(|why| Error::Content(format!("resourcetracker {}: {why}", object.name())))
}

/// Moves the entries of a cluster, or takes them out; whether there were any.
fn moved(tracker: &mut Tracker, cluster: &str, to: Option<&str>) -> bool {
    let is_meant = |entry: &Entry| entry.cluster == cluster;
    if !tracker.entries.iter().any(is_meant) {
        return false;
    }
    match to {
        None => tracker.entries.retain(|entry| !is_meant(entry)),
        Some(name) => {
            for entry in tracker.entries.iter_mut().filter(|entry| is_meant(entry)) {
                entry.cluster = name.into();
            }
            // Of what the tracker has under both names the first counts.
            let mut seen = HashSet::new();
            tracker.entries.retain(|entry| seen.insert(entry.key()));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_cluster_move_or_go() {
        let entry = |name: &str, cluster: &str| {
            let text = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app.oam.dev/cluster":"{cluster}"}}}}}}"#
            );
            Entry::of(&object::json::parse(text.as_bytes()).unwrap_or_default()).unwrap_or_default()
        };
        let tracker = || Tracker {
            entries: vec![entry("a", "eu"), entry("b", "local"), entry("a", "europe"), entry("c", "eu")],
            ..Tracker::default()
        };
        let told = |tracker: &Tracker| {
            let all = tracker.entries.iter().map(|e| format!("{}@{}", e.identity.name, e.cluster));
            all.collect::<Vec<_>>().join(" ")
        };
        for (cluster, to, expected) in [
            ("eu", None, "b@ a@europe"),
            ("eu", Some("europe"), "a@europe b@ c@europe"),
            ("us", None, "a@eu b@ a@europe c@eu"),
        ] {
            let mut tracker = tracker();
            assert_eq!(moved(&mut tracker, cluster, to), cluster == "eu");
            assert_eq!(told(&tracker), expected);
        }
    }
}
