//! `cronjob-controller`: makes a Job at each time of a CronJob's schedule, and removes old ones.

mod rules;
mod schedule;
mod times;

pub(crate) use rules::finished;

use crate::written::{SOON, Written};
use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{CRON_JOBS, JOBS};
use client::{Cache, Change, DeleteParams, Propagation, Queue, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kinds::read::Read;
use object::Value;
use object::go;
use rules::Finished;
use schedule::Schedule;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use times::Times;

/// Makes Jobs on schedule.
pub struct CronJobs {
    context: Context,
    cronjobs: Arc<Cache>,
    jobs: Arc<Cache>,
    /// Jobs that were made or deleted.
    made: Arc<Written>,
    /// CronJobs whose status was written.
    told: Arc<Written>,
    recorder: Recorder,
}

/// A CronJob while it is worked on.
struct Work<'a> {
    controller: &'a CronJobs,
    cronjob: Value,
    jobs: Vec<&'a Value>,
    changed: bool,
}

impl Controller for CronJobs {
    const NAME: &'static str = "cronjob-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (cronjobs, jobs) = (wiring.cache(&CRON_JOBS), wiring.cache(&JOBS));
        let clock = context.clock().clone();
        wiring.on(&cronjobs, move |change, queue| schedule_change(change, queue, clock()));
        wiring.on_owned(&jobs, &CRON_JOBS);
        let (made, told) = (Arc::new(Written::default()), Arc::new(Written::default()));
        for (cache, written) in [(&jobs, &made), (&cronjobs, &told)] {
            let log = written.clone();
            wiring.on(cache, move |change, _| log.observe(change));
        }
        let recorder = context.recorder("cronjob-controller");
        CronJobs { context, cronjobs, jobs, made, told, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(cronjob) = self.cronjobs.get_key(key) else {
            self.made.forget(key);
            self.told.forget(key);
            return Ok(None);
        };
        if !self.made.is_shown(key, &self.jobs) || !self.told.is_shown(key, &self.cronjobs) {
            return Ok(Some(SOON));
        }
        let in_namespace = self.jobs.in_namespace(cronjob.namespace());
        let owned = in_namespace.iter().map(|job| &**job).filter(|job| {
            pods::controller_of(job).is_some_and(|o| o.text("name") == cronjob.name() && o.text("kind") == "CronJob")
        });
        let mut work = Work { controller: self, cronjob: (*cronjob).clone(), jobs: owned.collect(), changed: false };
        work.clean_up().await;
        let outcome = work.run().await;
        if work.changed {
            self.told.wrote(key, &self.context.api(&CRON_JOBS).update_status(&work.cronjob).await?);
        }
        outcome
    }
}

/// A changed schedule is looked at when it comes next; everything else at once.
fn schedule_change(change: &Change, queue: &Queue, now: Timestamp) {
    if let (Some(old), Some(new)) = (&change.old, &change.new) {
        let (old, new) = (&**old, &**new);
        let field = |object: &Value, key| object.sub("spec").text(key).to_owned();
        let differs = |key| field(old, key) != field(new, key);
        if (differs("schedule") || differs("timeZone"))
            && let Some((schedule, _)) = schedule_of(new)
            && let Some(wait) = times(new, &schedule, now).until_next()
        {
            return queue.after(change.key(), wait.try_into().unwrap_or_default());
        }
    }
    queue.add(change.key());
}

/// The schedule and the time zone of a CronJob, if both can be read.
fn schedule_of(cronjob: &Value) -> Option<(Schedule, TimeZone)> {
    let zone = schedule::time_zone(cronjob.sub("spec").text("timeZone"))?;
    let schedule = Schedule::parse(cronjob.sub("spec").text("schedule"), &zone).ok()?;
    Some((schedule, zone))
}

fn times<'s>(cronjob: &Value, schedule: &'s Schedule, now: Timestamp) -> Times<'s> {
    let created = pods::time(cronjob.sub("metadata"), "creationTimestamp").unwrap_or(now);
    let last = pods::time(cronjob.sub("status"), "lastScheduleTime");
    Times { schedule, created, last, deadline: cronjob.sub("spec").opt_int("startingDeadlineSeconds"), now }
}

impl Work<'_> {
    fn tell(&self, ty: EventType, reason: &str, message: &str) {
        self.controller.recorder.event(&self.cronjob, ty, reason, message);
    }

    /// Removes finished Jobs beyond the limits of the history.
    async fn clean_up(&mut self) {
        for job in rules::outdated(&self.cronjob, &self.jobs) {
            self.changed |= self.delete(job).await.is_ok();
        }
    }

    async fn delete(&mut self, job: &Value) -> Result<()> {
        let params = DeleteParams { propagation: Some(Propagation::Background), ..DeleteParams::default() };
        let api = self.controller.context.api(&JOBS);
        if let Err(error) = api.delete(job.namespace(), job.name(), &params).await {
            self.tell(EventType::Warning, "FailedDelete", &format!("Deleted job: {error}"));
            return Err(error);
        }
        self.controller.made.deleted(&client::cache::key(&self.cronjob), job);
        rules::deactivate(&mut self.cronjob, job.meta_str("uid"));
        self.tell(EventType::Normal, "SuccessfulDelete", &format!("Deleted job {}", job.name()));
        Ok(())
    }

    /// Notes what became of the Jobs, and makes one if it is time. Gives when it will be time again.
    async fn run(&mut self) -> Result<Option<Duration>> {
        self.observe_jobs().await?;
        self.forget_missing_jobs().await?;
        if pods::is_deleting(&self.cronjob) {
            return Ok(None);
        }
        let spec = self.cronjob.sub("spec");
        let (text, named_zone) = (spec.text("schedule").to_owned(), spec.text("timeZone").to_owned());
        let Some(zone) = schedule::time_zone(&named_zone) else {
            let message = format!("invalid timeZone: {}: unknown time zone {named_zone}", go::quote(&named_zone));
            self.tell(EventType::Warning, "UnknownTimeZone", &message);
            return Ok(None);
        };
        if spec.flag("suspend") {
            return Ok(None);
        }
        if text.contains("TZ") {
            let message = format!(
                "CRON_TZ or TZ used in schedule {} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                go::quote(&text)
            );
            self.tell(EventType::Warning, "UnsupportedSchedule", &message);
        }
        let schedule = match Schedule::parse(&text, &zone) {
            Ok(schedule) => schedule,
            Err(why) => {
                let message = format!("unparseable schedule: {} : {why}", go::quote(&text));
                self.tell(EventType::Warning, "UnparseableSchedule", &message);
                return Ok(None);
            }
        };
        self.start_if_due(&schedule, &zone, &text).await
    }

    async fn start_if_due(&mut self, schedule: &Schedule, zone: &TimeZone, text: &str) -> Result<Option<Duration>> {
        let now = self.controller.context.now();
        let times = times(&self.cronjob, schedule, now);
        let wait = |times: &Times<'_>| times.until_next().map(|wait| wait.try_into().unwrap_or_default());
        let recent = match times.recent(true) {
            Ok(recent) => recent,
            Err(why) => {
                self.tell(EventType::Warning, "InvalidSchedule", &format!("invalid schedule: {text} : {why}"));
                return Ok(None);
            }
        };
        let Some(start) = recent.time else { return Ok(wait(&times)) };
        if recent.many_missed() {
            let message =
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.tell(EventType::Warning, "TooManyMissedTimes", message);
        }
        if times.too_late(start) {
            let message = format!("Missed scheduled time to start a job: {}", rules::mail_time(start));
            self.tell(EventType::Warning, "MissSchedule", &message);
            return Ok(wait(&times));
        }
        if rules::is_processed(&self.cronjob, start) {
            return Ok(wait(&times));
        }
        let active = self.cronjob.sub("status").list("active").to_vec();
        let policy = self.cronjob.sub("spec").text("concurrencyPolicy").to_owned();
        if policy == "Forbid" && !active.is_empty() {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            self.tell(EventType::Normal, "JobAlreadyActive", message);
            return Ok(wait(&times));
        }
        if policy == "Replace" {
            for reference in &active {
                self.replace(reference).await?;
            }
        }
        if !self.create(start, zone).await? {
            return Ok(None);
        }
        Ok(wait(&Times { last: Some(start), ..times }))
    }

    async fn replace(&mut self, reference: &Value) -> Result<()> {
        let api = self.controller.context.api(&JOBS);
        let job = match api.get(reference.text("namespace"), reference.text("name")).await {
            Ok(job) => job,
            Err(error) => {
                self.tell(EventType::Warning, "FailedGet", &format!("Get job: {error}"));
                return Err(error);
            }
        };
        self.delete(&job).await?;
        self.changed = true;
        Ok(())
    }

    /// Creates the Job of a start. Tells whether it is there and ours.
    async fn create(&mut self, start: Timestamp, zone: &TimeZone) -> Result<bool> {
        let wanted = rules::job(&self.cronjob, start, zone);
        let api = self.controller.context.api(&JOBS);
        let job = match api.create(self.cronjob.namespace(), &wanted).await {
            Ok(job) => {
                self.tell(EventType::Normal, "SuccessfulCreate", &format!("Created job {}", job.name()));
                self.controller.made.wrote(&client::cache::key(&self.cronjob), &job);
                job
            }
            // Made before, but the status could not be written; or made by somebody else.
            Err(error) if error.is_already_exists() => {
                let job = api.get(wanted.namespace(), wanted.name()).await?;
                let uid = self.cronjob.meta_str("uid");
                if !pods::is_controlled_by(&job, uid) || rules::is_active(&self.cronjob, job.meta_str("uid")) {
                    return Ok(false);
                }
                job
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    self.tell(EventType::Warning, "FailedCreate", &format!("Error creating job: {error}"));
                }
                return Err(error);
            }
        };
        rules::activate(&mut self.cronjob, &job, start);
        self.changed = true;
        Ok(true)
    }

    async fn observe_jobs(&mut self) -> Result<()> {
        for job in self.jobs.clone() {
            let uid = job.meta_str("uid");
            match (rules::is_active(&self.cronjob, uid), rules::finished(job)) {
                (false, None) => {
                    let api = self.controller.context.api(&CRON_JOBS);
                    let fresh = api.get(self.cronjob.namespace(), self.cronjob.name()).await?;
                    if rules::is_active(&fresh, uid) {
                        self.cronjob = fresh;
                        continue;
                    }
                    let name = job.name();
                    let message = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.tell(EventType::Warning, "UnexpectedJob", &message);
                }
                (true, Some(how)) => {
                    rules::deactivate(&mut self.cronjob, uid);
                    let message = format!("Saw completed job: {}, condition: {}", job.name(), how.condition());
                    self.tell(EventType::Normal, "SawCompletedJob", &message);
                    self.changed = true;
                }
                (_, Some(Finished::Complete)) => self.changed |= rules::note_success(&mut self.cronjob, job),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes Jobs that are gone out of the status.
    async fn forget_missing_jobs(&mut self) -> Result<()> {
        let known: HashSet<&str> = self.jobs.iter().map(|job| job.meta_str("uid")).collect();
        for reference in self.cronjob.sub("status").list("active").to_vec() {
            if known.contains(reference.text("uid")) {
                continue;
            }
            let (namespace, name) = (reference.text("namespace"), reference.text("name"));
            let there = self.controller.context.api(&JOBS).find(namespace, name).await?;
            if there.is_none() {
                self.tell(EventType::Normal, "MissingJob", &format!("Active job went missing: {name}"));
                rules::deactivate(&mut self.cronjob, reference.text("uid"));
                self.changed = true;
            }
        }
        Ok(())
    }
}
