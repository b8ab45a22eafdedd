//! Carrying an application out: its workflow as far as it goes, what there is is kept, what is garbage goes.

use std::time::Duration;

use client::events::EventType;
use client::{Error, Patch, PatchParams};
use jiff::Timestamp;
use object::{Value, map};

use super::collect::Occasion;
use super::controller::Controller;
use super::declared::{Component, components, depends, text};
use super::dispatch::Dispatcher;
use super::execute::Executor;
use super::garbage::SOON;
use super::kinds::REVISIONS;
use super::observe::Service;
use super::placement::{self, Placement};
use super::resolve::{Declared, run_key};
use super::revision::Revision;
use super::status::{AppPhase, Status};
use super::tracker::{Owner, Tracker, Trackers};
use super::workflow::{self, Plan, Run, RunPhase};

impl Controller {
    /// Runs the workflow as far as it goes, keeps what there is, and collects garbage. `objects` becomes a digest of what
    /// the objects were when their health was looked at.
    pub(super) async fn carry_out(
        &self,
        application: &Value,
        declared: &Declared,
        dispatcher: &mut Dispatcher<'_>,
        status: &mut Status,
        objects: &mut Option<u64>,
    ) -> Result<Option<Duration>, Error> {
        let now = self.now();
        let Some(restart) = self.restart(application, status, now).await? else { return Ok(Some(Duration::ZERO)) };
        let Declared { application: carried, revision, definitions, plan, .. } = declared;
        announce(declared, status);
        let generation = application.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        let had_tracker = dispatcher.trackers.current.is_some();
        self.open_trackers(application, revision, generation, &mut dispatcher.trackers);
        let mut run = match stage(application, revision, had_tracker, now) {
            Stage::Going(run) => run,
            Stage::New(run) => {
                status.begin();
                run
            }
            Stage::Back(run) => {
                if let Err(why) = dispatcher.reactivate(generation).await {
                    status.failed("Workflow", &why);
                    return Ok(Some(SOON));
                }
                status.begin();
                run
            }
        };
        let is_lost = !had_tracker && run.is_over();
        // What selectors find is noted when a run begins, too.
        let is_moved = self.is_placed_anew(carried, status) && run.is_over();
        if restart.is_due(now) || is_lost || is_moved {
            // Without its tracker the version has nothing that is kept.
            run = Run::new(run_key(revision), now);
            status.begin();
        }
        let mut wait = None;
        let was_over = run.is_over();
        if !was_over && dispatcher.is_hindered() {
            status.phase(AppPhase::RunningWorkflow);
            return match dispatcher.collect(Occasion::Running, &depends(carried)).await {
                Ok(_) => Ok(Some(SOON)),
                Err(why) => {
                    status.failed("Workflow", &why);
                    Ok(Some(self.backoff(application, 60)))
                }
            };
        }
        if !was_over {
            let context = declared.context();
            let mut executor =
                Executor { application: carried, definitions, fleet: &self.fleet, context, services: Vec::new() };
            wait = self.execute(application, plan, &mut run, &mut executor, dispatcher).await;
            merge_services(status, &executor.services, application.namespace());
            // A version without objects has a tracker, too.
            if let Err(why) = dispatcher.ensure_current().await {
                status.failed("Workflow", &why);
                status.phase(AppPhase::RunningWorkflow);
                return Ok(Some(SOON));
            }
        }
        status.fields.insert("workflow", run.to_value(plan));
        restart.note(status, run.ended, now);
        if run.is_over() && !was_over {
            self.close_revision(application, revision, &run, plan).await?;
        }
        dispatcher.is_complete = run.phase == RunPhase::Succeeded;
        if run.phase == RunPhase::Succeeded && placement::selects(carried) {
            // Clusters that are selected no longer.
            if let Err(why) = dispatcher.retire(&placement::reach(carried, self.fleet.as_ref())).await {
                status.failed("Workflow", &why);
            }
        }
        self.keep(application, dispatcher, status).await;
        let mut healthy = true;
        *objects = self.fleet.versions(&client::cache::key(application));
        if run.phase == RunPhase::Succeeded {
            if let Some(services) = self.look(status, declared, dispatcher).await {
                healthy = services.iter().all(|service| service.health.healthy);
                // What was looked at is all there is.
                status.fields.remove("services");
                merge_services(status, &services, application.namespace());
            }
            if healthy {
                self.rest(&client::cache::key(application));
            }
        }
        status.fields.insert("appliedResources", dispatcher.applied());
        let occasion = occasion(run.phase);
        match occasion {
            Occasion::Succeeded => status.condition("Workflow", true, "Available", ""),
            Occasion::Failed => {
                let message = failures(plan, &run);
                status.failed("Workflow", &message);
                if !was_over {
                    self.tell(application, EventType::Warning, "FailedWorkflow", &message);
                }
            }
            Occasion::Running | Occasion::Deleting => {}
        }
        status.phase(app_phase(run.phase, healthy));
        let garbage = dispatcher.collect(occasion, &depends(carried)).await;
        let again = match garbage {
            Ok(None) => {
                if occasion == Occasion::Succeeded {
                    status.condition("Ready", true, "ReconcileSuccess", "");
                }
                // No watch tells of health; what is unhealthy is looked at more often.
                if healthy { wait } else { Some(self.backoff(application, 60)) }
            }
            Ok(Some(waiting)) => {
                status.condition("Ready", false, "Deleting", &waiting.message);
                Some(if waiting.is_away { self.interval(application) } else { SOON })
            }
            Err(why) => {
                self.tell(application, EventType::Warning, "FailedGC", &why);
                status.condition("Ready", false, "ReconcileError", &why);
                Some(self.backoff(application, 60))
            }
        };
        if run.phase == RunPhase::Succeeded && !was_over {
            self.tell(application, EventType::Normal, "Deployed", "Deployed successfully");
            self.collect_revisions(application, revision, dispatcher).await?;
        }
        // At each look: their tracker may have become known after the run.
        if run.phase == RunPhase::Succeeded
            && let Err(why) = dispatcher.prune_component_revisions().await
        {
            self.tell(application, EventType::Warning, "FailedGC", &why);
        }
        let again = again.unwrap_or_else(|| self.interval(application));
        Ok(Some(restart.wait(now).filter(|wait| !wait.is_zero()).map_or(again, |wait| again.min(wait))))
    }

    /// Sees to it that there is a tracker of the application, and one of this version of it.
    fn open_trackers(&self, application: &Value, revision: &Revision, generation: i64, trackers: &mut Trackers) {
        let owner =
            Owner { namespace: application.namespace(), name: application.name(), uid: application.meta_str("uid") };
        let compression = self.options.compression;
        trackers.root.get_or_insert_with(|| Tracker::root(owner, compression));
        let Trackers { current, history, .. } = trackers;
        current.get_or_insert_with(|| {
            let tracker = Tracker::versioned(owner, generation, &revision.name, &revision.publish_version, compression);
            let is_taken = history.iter().any(|old| old.name() == tracker.name() && !old.is_deleting());
            if is_taken { tracker.renamed(owner, revision.number) } else { tracker }
        });
    }

    /// Carries out steps until nothing more can be done now; after which time there may be more.
    async fn execute(
        &self,
        application: &Value,
        plan: &Plan,
        run: &mut Run,
        executor: &mut Executor<'_>,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Option<Duration> {
        let key = client::cache::key(application);
        let mut tried: Vec<String> = Vec::new();
        let mut resumes: Option<Duration> = None;
        if run.suspended {
            let until = plan.all().find_map(|step| {
                let state = run.state(&step.name);
                let wait = workflow::duration(step.properties.str_at(&["duration"])?)?;
                let since = state.begun.filter(|_| state.phase == workflow::Phase::Suspending)?;
                since.checked_add(wait).ok()
            });
            match until {
                Some(until) if until <= self.now() => run.resume(plan),
                until => {
                    run.settle(plan, self.now());
                    return until.and_then(|until| Duration::try_from(until.duration_since(self.now())).ok());
                }
            }
        } else if !run.terminated {
            // Somebody took the suspension back.
            run.resume(plan);
        }
        let seen = executor.context.to_value(&Component::default());
        loop {
            let now = self.now();
            let ready = run.next(plan, now, &|when, run| super::condition::holds(when, plan, run, &seen));
            let ready: Vec<&workflow::Step> = ready.into_iter().filter(|step| !tried.contains(&step.name)).collect();
            let Some(step) = ready.first().copied() else { break };
            if tried.is_empty() {
                executor.bring_at_once(&ready, run, dispatcher).await;
            }
            tried.push(step.name.clone());
            let outcome = executor.execute(step, run, dispatcher).await;
            if let workflow::StepOutcome::Suspended(wait) = &outcome {
                resumes = *wait;
            }
            run.note(step, outcome, self.now());
        }
        run.settle(plan, self.now());
        match run.phase {
            RunPhase::Executing => Some(self.backoff(application, 60)),
            RunPhase::Suspending => resumes,
            _ => {
                self.rest(&key);
                None
            }
        }
    }

    /// Keeps what there is; failures are told and end nothing.
    pub(super) async fn keep(&self, application: &Value, dispatcher: &mut Dispatcher<'_>, status: &mut Status) {
        match dispatcher.keep().await {
            Ok(()) => status.drop_conditions(&["StateKeep"]),
            Err(why) => {
                self.tell(application, EventType::Warning, "FailedStateKeep", &why);
                status.condition("StateKeep", false, "ReconcileError", &why);
            }
        }
    }

    /// The health of what was brought before, by the places that the status names.
    async fn look(&self, status: &Status, declared: &Declared, dispatcher: &Dispatcher<'_>) -> Option<Vec<Service>> {
        let Declared { application: carried, definitions, .. } = declared;
        let all = components(carried).ok()?;
        let before = status.fields.get("services").and_then(Value::as_array).unwrap_or_default();
        let place = |service: &Value| {
            let namespace = text(service, "namespace");
            // The application's own namespace is no other place.
            let namespace = if namespace == carried.namespace() { String::new() } else { namespace };
            Placement { cluster: self.fleet.name_now(&text(service, "cluster")).into(), namespace }
        };
        let is_nowhere = || placement::selection(carried, self.fleet.as_ref()).is_some_and(|found| found.is_empty());
        let placed: Vec<(Component, Placement)> = if before.is_empty() && is_nowhere() {
            Vec::new()
        } else if before.is_empty() {
            all.into_iter().map(|component| (component, Placement::default())).collect()
        } else {
            let of = |service: &Value| {
                let component = all.iter().find(|component| component.name == text(service, "name"))?;
                Some((component.clone(), place(service)))
            };
            before.iter().filter_map(of).collect()
        };
        let context = declared.context();
        let mut executor =
            Executor { application: carried, definitions, fleet: &self.fleet, context, services: Vec::new() };
        executor.look(&placed, dispatcher).await;
        Some(executor.services)
    }

    /// Notes in the revision what its workflow has come to.
    async fn close_revision(
        &self,
        application: &Value,
        revision: &Revision,
        run: &Run,
        plan: &Plan,
    ) -> Result<(), Error> {
        let status = map! { "succeeded" => run.phase == RunPhase::Succeeded, "workflow" => run.to_value(plan) };
        let patch = Patch::Merge(map! { "status" => status }.into());
        let api = self.client.api(&REVISIONS);
        match api.patch(application.namespace(), &revision.name, &patch, &PatchParams::status()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

/// Says in the status what is known of the version before its workflow is looked at.
fn announce(declared: &Declared, status: &mut Status) {
    let revision = &declared.revision;
    status.done("Parsed");
    status.done("Revision");
    status.fields.insert(
        "latestRevision",
        map! { "name" => revision.name.as_str(), "revision" => revision.number, "revisionHash" => revision.hash.as_str() },
    );
    match declared.applied.as_slice() {
        [] => drop(status.fields.remove("appliedApplicationPolicies")),
        applied => drop(status.fields.insert("appliedApplicationPolicies", applied.to_vec())),
    }
    status.done("Policy");
    status.done("Render");
}

/// How far a version is.
enum Stage {
    /// This run of it goes on, or is over.
    Going(Run),
    /// It begins.
    New(Run),
    /// It was carried out in full before, and is the application's version again.
    Back(Run),
}

/// How far the application's version is, by what its status and its revision say.
fn stage(application: &Value, revision: &Revision, had_tracker: bool, now: Timestamp) -> Stage {
    let read = |object: &Value| object.at(&["status", "workflow"]).map(Run::read).unwrap_or_default();
    let key = run_key(revision);
    let run = read(application);
    if run.key == key {
        return Stage::Going(run);
    }
    if had_tracker && revision.succeeded && !revision.publish_version.is_empty() {
        // Its tracker has all of it.
        return Stage::Back(Run { key: key.to_owned(), phase: RunPhase::Succeeded, ..read(&revision.object) });
    }
    Stage::New(Run::new(key, now))
}

/// What garbage is collected for, where a run has come to this.
fn occasion(phase: RunPhase) -> Occasion {
    match phase {
        RunPhase::Succeeded => Occasion::Succeeded,
        RunPhase::Failed | RunPhase::Terminated => Occasion::Failed,
        RunPhase::Executing | RunPhase::Suspending => Occasion::Running,
    }
}

/// What an application is in, whose run has come to this.
fn app_phase(phase: RunPhase, healthy: bool) -> AppPhase {
    match phase {
        RunPhase::Executing => AppPhase::RunningWorkflow,
        RunPhase::Suspending => AppPhase::Suspending,
        RunPhase::Terminated => AppPhase::Terminated,
        RunPhase::Failed => AppPhase::Failed,
        RunPhase::Succeeded if healthy => AppPhase::Running,
        RunPhase::Succeeded => AppPhase::Unhealthy,
    }
}

/// Puts what is known of services into a status, in place of what was said of them before.
fn merge_services(status: &mut Status, services: &[Service], namespace: &str) {
    let identity = |service: &Value| (text(service, "name"), text(service, "cluster"), text(service, "namespace"));
    let mut all: Vec<Value> = services.iter().map(|service| service.to_value(namespace)).collect();
    let known = status.fields.get("services").and_then(Value::as_array).unwrap_or_default();
    let others: Vec<Value> =
        known.iter().filter(|known| all.iter().all(|new| identity(new) != identity(known))).cloned().collect();
    all.extend(others);
    all.sort_by_key(identity);
    status.fields.insert("services", all);
}

/// What went wrong in a run, for people.
fn failures(plan: &Plan, run: &Run) -> String {
    let failed = plan.all().filter_map(|step| {
        let state = run.steps.get(&step.name)?;
        (state.phase == workflow::Phase::Failed).then(|| format!("step {}: {}", step.name, state.message))
    });
    failed.collect::<Vec<String>>().join("; ")
}
