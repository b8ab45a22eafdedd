//! `job-controller`: makes the pods of a Job, counts how they end, and ends the Job.

mod account;
mod assess;
mod backoff;
mod claim;
mod indexes;
mod plan;
mod pod;
mod policy;
mod spec;
mod status;
mod sync;
mod template;
#[cfg(test)]
mod tests;

use crate::pod_control::PodControl;
use crate::written::Written;
use crate::{Context, Controller, Wiring, pods};
use backoff::Backoff;
use client::events::Recorder;
use client::resources::{JOBS, PODS};
use client::{Cache, Change, Queue, Result};
use kinds::read::Read;
use object::Value;
use parking_lot::Mutex;
use pod::{Pod, TRACKING};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// How long changes of pods are gathered.
const BATCH: Duration = Duration::from_secs(1);
/// Marks the keys of pods that have lost their Job.
const POD: &str = "pod:";
const CONTROLLED: &str = "job-controlled";
const ORPHANS: &str = "job-orphans";

/// Looks after Jobs.
pub struct Jobs {
    context: Context,
    queue: Queue,
    jobs: Arc<Cache>,
    pods: Arc<Cache>,
    control: PodControl,
    recorder: Recorder,
    written: Arc<Written>,
    memory: Mutex<HashMap<String, Memory>>,
}

/// What is remembered of a Job besides what objects tell.
#[derive(Clone, Debug, Default)]
struct Memory {
    backoff: Backoff,
    /// The uids of pods whose finalizer was taken off, though the cache may show it still.
    released: HashSet<String>,
}

impl Controller for Jobs {
    const NAME: &'static str = "job-controller";
    const FIRST_WAIT: Duration = Duration::from_secs(1);
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (jobs, pods) = (wiring.cache(&JOBS), wiring.cache(&PODS));
        pods.index(CONTROLLED, |pod| match pods::controller_of(pod) {
            Some(owner) if owner.text("kind") == "Job" => vec![owner.text("uid").to_owned()],
            _ => Vec::new(),
        });
        pods.index(ORPHANS, |pod| match pods::controller_of(pod) {
            None => vec![pod.namespace().to_owned()],
            Some(_) => Vec::new(),
        });
        let all = pods.clone();
        wiring.on(&jobs, move |change, queue| job_change(change, queue, &all));
        let written = Arc::new(Written::default());
        let (log, all) = (written.clone(), jobs.clone());
        wiring.on(&pods, move |change, queue| {
            log.observe(change);
            pod_change(change, queue, &all);
        });
        let (queue, recorder) = (wiring.queue().clone(), context.recorder("job-controller"));
        let control = PodControl::new(context.client(), recorder.clone());
        Jobs { context, queue, jobs, pods, control, recorder, written, memory: Mutex::default() }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        if let Some(key) = key.strip_prefix(POD) {
            self.release_orphan(key).await?;
            return Ok(None);
        }
        let job = self.jobs.get_key(key).filter(|job| !spec::is_managed_by_other(job));
        let Some(job) = job.filter(|job| !spec::is_finished(job)) else {
            self.memory.lock().remove(key);
            self.written.forget(key);
            return Ok(None);
        };
        self.sync_job(key, &job).await.map(|()| None)
    }
}

/// A changed Job is looked at at once; one whose status changed only, a little later. The pods of one that ended or went
/// lose their finalizers.
fn job_change(change: &Change, queue: &Queue, pods: &Cache) {
    let generation = |job: &Value| job.sub("metadata").int("generation");
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if generation(old) == generation(new) => queue.after(change.key(), BATCH),
        _ => queue.add(change.key()),
    }
    let job = change.object();
    if change.is_deletion() || spec::is_finished(job) {
        let held = pods.indexed(CONTROLLED, job.meta_str("uid"));
        held.iter().filter(|p| Pod::new(p).tracked).for_each(|pod| queue.add(pod_key(pod)));
    }
}

fn pod_key(pod: &Value) -> String {
    format!("{POD}{}", client::cache::key(pod))
}

fn pod_change(change: &Change, queue: &Queue, jobs: &Cache) {
    for pod in [&change.old, &change.new].into_iter().flatten() {
        if let Some((key, _)) = job_of(pod, jobs) {
            queue.after(key, BATCH);
        }
    }
    let Some(pod) = change.new.as_deref() else { return };
    let owner = pods::controller_of(pod);
    if Pod::new(pod).tracked {
        let lost = match (owner, job_of(pod, jobs)) {
            (None, _) => true,
            (Some(_), Some((_, job))) => job.is_none_or(|job| spec::is_finished(&job)),
            (Some(_), None) => false,
        };
        if lost {
            queue.add(pod_key(pod));
        }
    }
    if owner.is_none() && !pods::is_deleting(pod) {
        let in_namespace = jobs.in_namespace(pod.namespace());
        in_namespace
            .iter()
            .filter(|job| claim::selects(job, pod))
            .for_each(|j| queue.after(client::cache::key(j), BATCH));
    }
}

/// The key of the Job that controls a pod, and the Job, if it is there. Nothing if no Job controls the pod.
fn job_of(pod: &Value, jobs: &Cache) -> Option<(String, Option<Arc<Value>>)> {
    let owner = pods::controller_of(pod)?;
    if owner.text("kind") != "Job" || owner.text("apiVersion") != "batch/v1" {
        return None;
    }
    let key = format!("{}/{}", pod.namespace(), owner.text("name"));
    let job = jobs.get_key(&key).filter(|job| job.meta_str("uid") == owner.text("uid"));
    Some((key, job))
}

impl Jobs {
    /// Takes the finalizer off a pod that has lost its Job.
    async fn release_orphan(&self, key: &str) -> Result<()> {
        let Some(pod) = self.pods.get_key(key).filter(|pod| Pod::new(pod).tracked) else { return Ok(()) };
        if pods::controller_of(&pod).is_some() {
            match job_of(&pod, &self.jobs) {
                // Another kind of owner has use for it.
                None => return Ok(()),
                Some((_, Some(job))) if spec::is_managed_by_other(&job) || !spec::is_finished(&job) => return Ok(()),
                Some(_) => {}
            }
        }
        self.control.release(&pod, TRACKING).await.map(|_| ())
    }
}
