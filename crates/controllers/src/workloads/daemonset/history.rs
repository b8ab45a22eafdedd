//! The revisions of a DaemonSet.

use super::super::{claim::Claimer, hash, meta, owned, revisions};
use super::DaemonSets;
use client::resources::{CONTROLLER_REVISIONS, DAEMON_SETS, PODS};
use client::{DeleteParams, Error, Result};
use kinds::read::Read;
use object::selector::Labels;
use object::{Value, map};
use std::sync::Arc;

/// The revision of the present template, and the others.
pub(super) struct History {
    pub(super) current: Arc<Value>,
    pub(super) old: Vec<Arc<Value>>,
}

impl History {
    /// The hash of the present template.
    pub(super) fn hash(&self) -> &str {
        meta::label(&self.current, revisions::POD_REVISION)
    }
}

impl DaemonSets {
    /// The revisions of a set; that of the present template is made if it is not there.
    pub(super) async fn history(&self, set: &Value, selector: &Labels) -> Result<History> {
        let api = self.context.api(&CONTROLLER_REVISIONS);
        let claimer = Claimer::new(set, self.context.api(&DAEMON_SETS), api.clone());
        let candidates = owned::candidates(&self.revisions, set);
        let data = revisions::data(set);
        let (mut same, mut old) = (Vec::new(), Vec::new());
        for mut revision in claimer.claim(candidates, |revision| selector.matches_object(revision)).await? {
            if meta::label(&revision, revisions::POD_REVISION).is_empty() {
                // Its name is as good as a hash.
                let mut changed = (*revision).clone();
                let name = revision.name().to_owned();
                changed.metadata_mut().object_entry("labels").insert(revisions::POD_REVISION, name);
                revision = Arc::new(api.update(&changed).await?);
            }
            if *revision.sub("data") == data { same.push(revision) } else { old.push(revision) }
        }
        let number = old.iter().map(|r| revisions::number(r)).fold(0, i64::max).saturating_add(1);
        let current = match same.iter().max_by_key(|r| revisions::number(r)).cloned() {
            None => self.snapshot(set, data, number).await?,
            Some(newest) => {
                for other in same.iter().filter(|r| r.name() != newest.name()) {
                    self.merge(set, selector, other, &newest).await?;
                }
                if revisions::number(&newest) < number {
                    revisions::renumber(&api, &newest, number).await?;
                }
                newest
            }
        };
        Ok(History { current, old })
    }

    /// Makes the revision of the present template.
    async fn snapshot(&self, set: &Value, data: Value, number: i64) -> Result<Arc<Value>> {
        let api = self.context.api(&CONTROLLER_REVISIONS);
        let collisions = meta::status(set).opt_int("collisionCount");
        let hash = hash::of_template(meta::template(set), collisions);
        let name = format!("{}-{hash}", set.name());
        let mut labels = meta::template(set).sub("metadata").members("labels").clone();
        labels.insert(revisions::POD_REVISION, hash);
        let mut revision = revisions::new(set, &DAEMON_SETS, labels, data, number);
        revision.metadata_mut().insert("name", name.as_str());
        let error = match api.create(set.namespace(), &revision).await {
            Err(error) if error.is_already_exists() => error,
            outcome => return outcome.map(Arc::new),
        };
        let there = api.get(set.namespace(), &name).await?;
        if revisions::is_equal(&there, &revision) {
            return Ok(Arc::new(there));
        }
        // Another template has the same hash: the next look tries another one.
        let sets = self.context.api(&DAEMON_SETS);
        let mut fresh = sets.get(set.namespace(), set.name()).await?;
        let counted = meta::status(&fresh).opt_int("collisionCount");
        if counted != collisions {
            let (fresh, known) = (counted.unwrap_or_default(), collisions.unwrap_or_default());
            let name = object::go::quote(set.name());
            return Err(Error::Content(format!(
                "found a stale collision count ({known}, expected {fresh}) of DaemonSet {name} while processing; \
                 will retry until it is updated"
            )));
        }
        let count = counted.unwrap_or_default().wrapping_add(1);
        fresh.set_at(&["status", "collisionCount"], count.into());
        sets.update_status(&fresh).await?;
        Err(error)
    }

    /// Lets the pods of a double of a revision have the revision, and deletes the double.
    async fn merge(&self, set: &Value, selector: &Labels, double: &Value, kept: &Value) -> Result<()> {
        let hash = meta::label(kept, revisions::POD_REVISION);
        let api = self.context.api(&PODS);
        for pod in self.pods_of(set, selector).await? {
            if meta::label(&pod, revisions::POD_REVISION) != hash {
                let labels = map! { revisions::POD_REVISION => hash };
                let patch = map! { "metadata" => map! { "labels" => labels } };
                let patch = client::Patch::Strategic(patch.into());
                api.patch(pod.namespace(), pod.name(), &patch, &client::PatchParams::default()).await?;
            }
        }
        self.delete_revision(double).await
    }

    /// Deletes old revisions beyond the limit that no pod has.
    pub(super) async fn clean_up(&self, set: &Value, old: &[Arc<Value>], pods: &[Arc<Value>]) -> Result<()> {
        for revision in outdated(set, old, pods) {
            self.delete_revision(&revision).await?;
        }
        Ok(())
    }

    async fn delete_revision(&self, revision: &Value) -> Result<()> {
        let api = self.context.api(&CONTROLLER_REVISIONS);
        match api.delete(revision.namespace(), revision.name(), &DeleteParams::default()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

fn outdated(set: &Value, old: &[Arc<Value>], pods: &[Arc<Value>]) -> Vec<Arc<Value>> {
    let limit = usize::try_from(meta::spec(set).opt_int("revisionHistoryLimit").unwrap_or(10)).unwrap_or_default();
    let surplus = old.len().saturating_sub(limit);
    let hash = |object: &Value| meta::label(object, revisions::POD_REVISION).to_owned();
    let live: std::collections::HashSet<String> = pods.iter().map(|pod| hash(pod)).collect();
    let mut dead: Vec<Arc<Value>> = old.iter().filter(|r| !live.contains(&hash(r))).cloned().collect();
    dead.sort_by(|a, b| revisions::by_number(a, b));
    dead.truncate(surplus);
    dead
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    #[test]
    fn dead_revisions_beyond_the_limit_go() {
        let revision = |n: i64| {
            Arc::new(value(&format!(
                r#"{{"metadata":{{"name":"{n}","labels":{{"controller-revision-hash":"{n}"}}}},"revision":{n}}}"#
            )))
        };
        let set = value(r#"{"spec":{"revisionHistoryLimit":1}}"#);
        let gone = outdated(&set, &[revision(3), revision(2), revision(1)], &[revision(1)]);
        assert_eq!(gone.iter().map(|r| r.name()).collect::<Vec<_>>(), ["2", "3"]);
        assert!(outdated(&value("{}"), &[revision(3)], &[]).is_empty());
    }
}
