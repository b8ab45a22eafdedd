//! Which pods are a Job's.

use super::pod::TRACKING;
use super::{CONTROLLED, Jobs, ORPHANS};
use crate::pods;
use client::resources::JOBS;
use client::{Error, Result};
use kinds::read::Read;
use object::selector::Labels;
use object::{Value, map};
use std::sync::Arc;

fn selector(job: &Value) -> Option<Labels> {
    let selector = job.sub("spec").get("selector").filter(|s| !s.is_null())?;
    Labels::from_object(selector).ok()
}

/// Whether a Job selects a pod.
pub fn selects(job: &Value, pod: &Value) -> bool {
    selector(job).is_some_and(|s| s.matches_object(pod))
}

impl Jobs {
    /// The pods of a Job. Those that it selects and nobody owns come to belong to it; those that it does not select any
    /// more are let go.
    pub(super) async fn claim(&self, job: &Value) -> Result<Vec<Arc<Value>>> {
        let Some(selector) = selector(job) else {
            return Err(Error::Content("couldn't convert Job selector".to_owned()));
        };
        let mut mine = Vec::new();
        for pod in self.pods.indexed(CONTROLLED, job.meta_str("uid")) {
            if selector.matches_object(&pod) || pods::is_deleting(job) {
                mine.push(pod);
            } else {
                self.let_go(job, &pod).await?;
            }
        }
        let mut orphans = self.pods.indexed(ORPHANS, job.namespace());
        orphans.retain(|pod| selector.matches_object(pod) && !pods::is_deleting(pod));
        if !orphans.is_empty() && !pods::is_deleting(job) {
            self.check_fresh(job).await?;
            for pod in orphans {
                mine.extend(self.adopt(job, &pod).await?.map(Arc::new));
            }
        }
        Ok(mine)
    }

    /// Whether the Job is still there, by the server and not by a cache that may be behind.
    async fn check_fresh(&self, job: &Value) -> Result<()> {
        let fresh = self.context.api(&JOBS).get(job.namespace(), job.name()).await?;
        let what = if fresh.meta_str("uid") != job.meta_str("uid") {
            "is gone"
        } else if pods::is_deleting(&fresh) {
            "has just been deleted"
        } else {
            return Ok(());
        };
        Err(Error::Content(format!("{}/{} {what}", job.namespace(), job.name())))
    }

    async fn adopt(&self, job: &Value, pod: &Value) -> Result<Option<Value>> {
        let meta = map! {
            "uid" => pod.meta_str("uid"),
            "ownerReferences" => vec![pods::controller_reference(job, "batch/v1", "Job")],
            "finalizers" => vec![TRACKING],
        };
        self.control.patch(pod, map! { "metadata" => meta }.into()).await
    }

    async fn let_go(&self, job: &Value, pod: &Value) -> Result<()> {
        let reference = map! { "$patch" => "delete", "uid" => job.meta_str("uid") };
        let meta = map! {
            "uid" => pod.meta_str("uid"),
            "ownerReferences" => vec![reference],
            "$deleteFromPrimitiveList/finalizers" => vec![TRACKING],
        };
        match self.control.patch(pod, map! { "metadata" => meta }.into()).await {
            Err(error) if !error.is_invalid() => Err(error),
            _ => Ok(()),
        }
    }
}
