//! What a Job wants.

use kinds::read::Read;
use object::Value;

/// What a Job wants, with the defaults that the API server fills in.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// How many pods run at a time.
    pub parallelism: i64,
    /// How many must succeed; none: one success ends it.
    pub completions: Option<i64>,
    /// How many failures are retried.
    pub backoff_limit: i64,
    /// How many failures of an index are retried, where indexes fail each for itself.
    pub per_index_limit: Option<i64>,
    /// How many indexes may fail.
    pub max_failed_indexes: Option<i64>,
    /// Whether each pod has an index.
    pub indexed: bool,
    /// Whether no pods may run.
    pub suspended: bool,
    /// Whether a pod is replaced only when it has ended.
    pub only_replace_failed: bool,
    /// How many seconds the Job may take.
    pub deadline: Option<i64>,
    /// `podFailurePolicy`, or null.
    pub failure_policy: &'a Value,
    /// `successPolicy`, or null.
    pub success_policy: &'a Value,
    /// Whether containers are started again inside of a pod.
    pub restarts_containers: bool,
}

impl<'a> Spec<'a> {
    /// Reads the spec of a Job.
    pub fn of(job: &'a Value) -> Spec<'a> {
        let spec = job.sub("spec");
        let indexed = spec.text("completionMode") == "Indexed";
        let completions = spec.opt_int("completions");
        Spec {
            parallelism: spec.opt_int("parallelism").unwrap_or(1),
            completions: if indexed { Some(completions.unwrap_or_default()) } else { completions },
            backoff_limit: spec.opt_int("backoffLimit").unwrap_or(6),
            per_index_limit: spec.opt_int("backoffLimitPerIndex"),
            max_failed_indexes: spec.opt_int("maxFailedIndexes"),
            indexed,
            suspended: spec.flag("suspend"),
            only_replace_failed: spec.text("podReplacementPolicy") == "Failed" || spec.has("podFailurePolicy"),
            deadline: spec.opt_int("activeDeadlineSeconds"),
            failure_policy: spec.sub("podFailurePolicy"),
            success_policy: spec.sub("successPolicy"),
            restarts_containers: spec.sub("template").sub("spec").text("restartPolicy") == "OnFailure",
        }
    }

    /// The number of indexes of an indexed Job.
    pub fn index_count(&self) -> i64 {
        self.completions.unwrap_or_default()
    }
}

/// Whether another controller looks after a Job.
pub fn is_managed_by_other(job: &Value) -> bool {
    let spec = job.sub("spec");
    spec.has("managedBy") && spec.text("managedBy") != "kubernetes.io/job-controller"
}

/// Whether a Job has ended.
pub fn is_finished(job: &Value) -> bool {
    crate::cronjob::finished(job).is_some()
}
