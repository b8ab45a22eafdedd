//! `ttl-after-finished-controller`: deletes finished Jobs whose `ttlSecondsAfterFinished` is over.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use client::resources::JOBS;
use client::{Cache, DeleteParams, Propagation, Result};
use jiff::Timestamp;
use object::Value;
use std::sync::Arc;
use std::time::Duration;

/// Deletes finished Jobs; the keys are theirs.
pub struct TtlAfterFinished {
    context: Context,
    jobs: Arc<Cache>,
}

impl Controller for TtlAfterFinished {
    const NAME: &'static str = "ttl-after-finished-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let jobs = wiring.cache(&JOBS);
        wiring.on_those(&jobs, |job| end(job).is_some());
        TtlAfterFinished { context: wiring.context().clone(), jobs }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(job) = self.jobs.get_key(key) else { return Ok(None) };
        if let Some(wait) = wait(&job, self.context.now()) {
            return Ok((!wait.is_zero()).then_some(wait));
        }
        // The time may have been changed meanwhile.
        let api = self.context.api(&JOBS);
        let Some(fresh) = api.find(job.namespace(), job.name()).await? else { return Ok(None) };
        if let Some(wait) = wait(&fresh, self.context.now()) {
            return Ok((!wait.is_zero()).then_some(wait));
        }
        let params = DeleteParams {
            propagation: Some(Propagation::Foreground),
            uid: fresh.meta_str("uid").to_owned(),
            resource_version: fresh.meta_str("resourceVersion").to_owned(),
            ..DeleteParams::default()
        };
        match api.delete(fresh.namespace(), fresh.name(), &params).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(None),
        }
    }
}

/// How long a job still has; zero if it is not to be deleted at all (now), nothing if it is over.
fn wait(job: &Value, now: Timestamp) -> Option<Duration> {
    if !job.meta_str("deletionTimestamp").is_empty() {
        return Some(Duration::ZERO);
    }
    let Some(end) = end(job) else { return Some(Duration::ZERO) };
    Duration::try_from(end.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// When a job is to be deleted; nothing if it is not finished or has no such time.
fn end(job: &Value) -> Option<Timestamp> {
    let seconds = job.at(&["spec", "ttlSecondsAfterFinished"])?.as_int()?;
    let conditions = job.at(&["status", "conditions"])?.as_array()?;
    let finished = conditions.iter().find(|c| {
        matches!(c.str_at(&["type"]), Some("Complete" | "Failed")) && c.str_at(&["status"]) == Some("True")
    })?;
    let since: Timestamp = finished.str_at(&["lastTransitionTime"])?.parse().ok()?;
    since.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn finished_jobs_go_when_their_time_is_over() {
        let job = |ttl: &str, ty: &str| {
            let text = format!(
                r#"{{"spec":{{{ttl}}},"status":{{"conditions":[{{"type":"{ty}","status":"True","lastTransitionTime":"1970-01-01T00:00:10Z"}}]}}}}"#
            );
            json::parse(text.as_bytes()).unwrap()
        };
        let ttl = r#""ttlSecondsAfterFinished":5"#;
        let at = |second| Timestamp::from_second(second).unwrap();
        for (job, now, expected) in [
            (job(ttl, "Complete"), 12, Some(Duration::from_secs(3))),
            (job(ttl, "Failed"), 15, None),
            (job(ttl, "Suspended"), 15, Some(Duration::ZERO)),
            (job("", "Complete"), 15, Some(Duration::ZERO)),
        ] {
            assert_eq!(wait(&job, at(now)), expected);
        }
    }
}
