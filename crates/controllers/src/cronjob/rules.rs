//! What a CronJob makes, keeps and says: rules without requests.

use crate::pods;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kinds::read::Read;
use object::{Value, map};

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It has the condition `Complete`.
    Complete,
    /// It has the condition `Failed`.
    Failed,
}

impl Finished {
    /// The condition's type.
    pub fn condition(self) -> &'static str {
        match self {
            Finished::Complete => "Complete",
            Finished::Failed => "Failed",
        }
    }
}

/// Whether and how a Job has ended.
pub fn finished(job: &Value) -> Option<Finished> {
    job.sub("status").list("conditions").iter().filter(|c| c.text("status") == "True").find_map(|c| {
        match c.text("type") {
            "Complete" => Some(Finished::Complete),
            "Failed" => Some(Finished::Failed),
            _ => None,
        }
    })
}

/// Whether the Job with this uid is in `status.active`.
pub fn is_active(cronjob: &Value, uid: &str) -> bool {
    cronjob.sub("status").list("active").iter().any(|j| j.text("uid") == uid)
}

/// Takes the Job with this uid out of `status.active`.
pub fn deactivate(cronjob: &mut Value, uid: &str) {
    let status = cronjob.object_entry("status");
    if let Some(active) = status.get_mut("active").and_then(Value::as_array_mut) {
        active.retain(|j| j.text("uid") != uid);
        if active.is_empty() {
            status.remove("active");
        }
    }
}

/// Puts a Job that was just made into `status.active`, with the time of its start.
pub fn activate(cronjob: &mut Value, job: &Value, start: Timestamp) {
    let reference = map! {
        "kind" => "Job", "apiVersion" => "batch/v1", "namespace" => job.namespace(), "name" => job.name(),
        "uid" => job.meta_str("uid"), "resourceVersion" => job.meta_str("resourceVersion"),
    };
    let status = cronjob.object_entry("status");
    match status.get_mut("active").and_then(Value::as_array_mut) {
        Some(active) => active.push(reference.into()),
        None => {
            status.insert("active", vec![reference]);
        }
    }
    status.insert("lastScheduleTime", start.to_string());
}

/// Notes when a Job succeeded, if that is later than what is known. Tells whether the status changed.
pub fn note_success(cronjob: &mut Value, job: &Value) -> bool {
    let Some(time) = pods::time(job.sub("status"), "completionTime") else { return false };
    let known = pods::time(cronjob.sub("status"), "lastSuccessfulTime");
    let later = known.is_none_or(|known| known < time);
    if later {
        cronjob.object_entry("status").insert("lastSuccessfulTime", time.to_string());
    }
    later
}

/// The finished Jobs beyond the limits of the history, oldest first.
pub fn outdated<'j>(cronjob: &Value, jobs: &[&'j Value]) -> Vec<&'j Value> {
    let limits = [(Finished::Complete, "successfulJobsHistoryLimit"), (Finished::Failed, "failedJobsHistoryLimit")];
    let mut out = Vec::new();
    for (how, limit) in limits {
        let Some(limit) = cronjob.sub("spec").opt_int(limit) else { continue };
        let mut ended: Vec<&Value> = jobs.iter().copied().filter(|job| finished(job) == Some(how)).collect();
        let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        // Jobs that never started come last.
        ended.sort_by_key(|job| {
            let start = pods::time(job.sub("status"), "startTime");
            (start.is_none(), start, job.name())
        });
        out.extend(ended.into_iter().take(surplus));
    }
    out
}

/// The name of the Job of a start.
pub fn job_name(cronjob: &Value, start: Timestamp) -> String {
    format!("{}-{}", cronjob.name(), start.as_second().div_euclid(60))
}

/// Whether the Job of a start was made already, as far as the status tells.
pub fn is_processed(cronjob: &Value, start: Timestamp) -> bool {
    let name = job_name(cronjob, start);
    let status = cronjob.sub("status");
    status.list("active").iter().any(|j| j.text("name") == name && j.text("namespace") == cronjob.namespace())
        || pods::time(status, "lastScheduleTime") == Some(start)
}

/// The Job of a start.
pub fn job(cronjob: &Value, start: Timestamp, zone: &TimeZone) -> Value {
    let template = cronjob.sub("spec").sub("jobTemplate");
    let mut annotations = template.sub("metadata").members("annotations").clone();
    let offset = zone.to_offset(start);
    let text = if offset.seconds() == 0 { start.to_string() } else { start.display_with_offset(offset).to_string() };
    annotations.insert("batch.kubernetes.io/cronjob-scheduled-timestamp", text);
    let mut meta = map! {
        "name" => job_name(cronjob, start), "namespace" => cronjob.namespace(), "annotations" => annotations,
        "ownerReferences" => vec![pods::controller_reference(cronjob, "batch/v1", "CronJob")],
    };
    let labels = template.sub("metadata").members("labels");
    if !labels.is_empty() {
        meta.insert("labels", labels.clone());
    }
    let spec = template.sub("spec").clone();
    map! { "apiVersion" => "batch/v1", "kind" => "Job", "metadata" => meta, "spec" => spec }.into()
}

/// A time as mails write it (Go's `RFC1123Z`), which the event of a missed start shows.
pub fn mail_time(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn job_that(name: &str, condition: &str, start: &str) -> Value {
        parse(&format!(
            r#"{{"metadata":{{"name":"{name}"}},"status":{{"startTime":{start},"conditions":[{{"type":"{condition}","status":"True"}}]}}}}"#
        ))
    }

    #[test]
    fn the_oldest_finished_jobs_beyond_the_limit_go() {
        let cronjob = parse(r#"{"spec":{"successfulJobsHistoryLimit":1,"failedJobsHistoryLimit":0}}"#);
        let jobs = [
            job_that("s2", "Complete", r#""2026-01-01T00:02:00Z""#),
            job_that("s1", "Complete", r#""2026-01-01T00:01:00Z""#),
            job_that("never", "Complete", "null"),
            job_that("f", "Failed", r#""2026-01-01T00:01:00Z""#),
            job_that("runs", "Suspended", r#""2026-01-01T00:00:00Z""#),
        ];
        let jobs: Vec<&Value> = jobs.iter().collect();
        let names: Vec<&str> = outdated(&cronjob, &jobs).iter().map(|j| j.name()).collect();
        assert_eq!(names, ["s1", "s2", "f"]);
        assert!(outdated(&parse("{}"), &jobs).is_empty());
    }

    #[test]
    fn a_job_is_made_from_the_template() {
        let cronjob = parse(
            r#"{"metadata":{"name":"c","namespace":"n","uid":"u"},"spec":{"jobTemplate":
            {"metadata":{"labels":{"a":"b"}},"spec":{"backoffLimit":2}}}}"#,
        );
        let start: Timestamp = "2026-01-01T10:00:00Z".parse().unwrap();
        let made = job(&cronjob, start, &TimeZone::UTC);
        assert_eq!(made.name(), "c-29454360");
        assert_eq!(made.annotation("batch.kubernetes.io/cronjob-scheduled-timestamp"), Some("2026-01-01T10:00:00Z"));
        assert_eq!(made.at(&["spec", "backoffLimit"]), Some(&Value::Int(2)));
        let tokyo = TimeZone::get("Asia/Tokyo").unwrap();
        let made = job(&cronjob, start, &tokyo);
        let shown = made.annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
        assert_eq!(shown, Some("2026-01-01T19:00:00+09:00"));
    }

    #[test]
    fn active_jobs_are_kept_in_the_status() {
        let mut cronjob = parse(r#"{"metadata":{"name":"c","namespace":"n"}}"#);
        let job = parse(r#"{"metadata":{"name":"c-1","namespace":"n","uid":"j"}}"#);
        activate(&mut cronjob, &job, "1970-01-01T00:01:00Z".parse().unwrap());
        assert!(is_active(&cronjob, "j") && is_processed(&cronjob, "1970-01-01T00:01:30Z".parse().unwrap()));
        deactivate(&mut cronjob, "j");
        assert_eq!(json::to_string(cronjob.sub("status")), r#"{"lastScheduleTime":"1970-01-01T00:01:00Z"}"#);
    }

    #[test]
    fn times_are_written_as_in_mails() {
        assert_eq!(mail_time("2026-01-01T10:00:05Z".parse().unwrap()), "Thu, 01 Jan 2026 10:00:05 +0000");
    }
}
