//! One look at one application: what it declares is brought about, what it has is kept, what is garbage goes.

use std::time::Duration;

use client::events::EventType;
use client::{Error, Patch, PatchParams};
use object::{Map, Value, map};

use super::actor::Actor;
use super::collect::Occasion;
use super::controller::Controller;
use super::declared::{Component, components, depends, text};
use super::definitions::Known;
use super::digest;
use super::dispatch::Dispatcher;
use super::execute::Executor;
use super::kinds::{APPLICATIONS, REVISIONS, TRACKERS, WORKFLOWS};
use super::names;
use super::observe::Service;
use super::placement::{self, Placement};
use super::policy::Policies;
use super::render::Context;
use super::restart::Restart;
use super::revision::{self, Revision};
use super::shaping::Shaped;
use super::status::{AppPhase, Status};
use super::tracker::{Owner, Tracker, Trackers};
use super::workflow::{self, Plan, Run, RunPhase};
use super::write::Writer;

/// When garbage that waits for others is looked at again, should nobody tell that it is gone.
pub(super) const SOON: Duration = Duration::from_secs(3);

/// What stopped a reconciliation: the stage and why.
struct Stopped {
    stage: &'static str,
    why: String,
}

impl Stopped {
    fn at(stage: &'static str) -> impl Fn(String) -> Stopped {
        move |why| Stopped { stage, why }
    }
}

/// The application as it is carried out.
struct Declared {
    /// With the specification of its revision, as its policies make it.
    application: Value,
    /// What those policies tell templates.
    custom: Map,
    /// The policies.
    applied: Vec<Map>,
    revision: Revision,
    definitions: Known,
    plan: Plan,
}

impl Declared {
    /// What templates see.
    fn context(&self) -> Context {
        let Declared { application, revision, custom, .. } = self;
        let of = |key: &str| application.at(&["metadata", key]).and_then(Value::as_object).cloned().unwrap_or_default();
        Context {
            app: application.name().to_owned(),
            namespace: application.namespace().to_owned(),
            app_namespace: application.namespace().to_owned(),
            revision: revision.name.clone(),
            publish_version: revision.publish_version.clone(),
            cluster: String::new(),
            labels: of("labels"),
            annotations: of("annotations"),
            custom: custom.clone(),
        }
    }
}

impl Controller {
    /// Looks at an application; after which time to look again.
    pub(super) async fn reconcile(&self, application: &Value) -> Result<Option<Duration>, Error> {
        let key = client::cache::key(application);
        let (clusters, definitions) = (self.fleet.generation(), self.catalogue.changes());
        let now = self.now();
        let mut status = Status::of(application, now);
        let declared = self.declared(application).await;
        let carried = declared.as_ref().map_or(application, |declared| &declared.application);
        let policies = match Policies::read(carried) {
            Ok(policies) => policies,
            Err(why) => {
                status.phase(AppPhase::Starting);
                status.failed("Parsed", &why);
                self.tell(application, EventType::Warning, "FailedParse", &why);
                self.write_status(application, status).await?;
                return Ok(Some(self.interval(application)));
            }
        };
        let known = application.str_at(&["status", "latestRevision", "name"]).unwrap_or_default().to_owned();
        let revision = declared.as_ref().map_or(known.as_str(), |declared| declared.revision.name.as_str());
        let publish_version = application.annotation(names::PUBLISH_VERSION).unwrap_or_default();
        let trackers = match self.trackers(application, revision, publish_version).await? {
            Ok(trackers) => trackers,
            Err(why) => {
                status.phase(AppPhase::Starting);
                status.condition("Ready", false, "ReconcileError", &why);
                self.write_status(application, status).await?;
                return Ok(Some(self.interval(application)));
            }
        };
        let actor = Actor::of(application);
        let writer =
            Writer { fleet: &self.fleet, owner: &key, policies: &policies, orphans: false, actor: actor.as_ref() };
        let is_complete = application.str_at(&["status", "workflow", "status"]) == Some("succeeded");
        let mut dispatcher = Dispatcher { writer, client: &self.client, trackers, is_complete };
        let mut objects = None;
        let again = match declared {
            Ok(declared) => self.carry_out(application, &declared, &mut dispatcher, &mut status, &mut objects).await?,
            Err(stopped) => {
                // What cannot be read or rendered any more is kept as it was.
                status.failed(stopped.stage, &stopped.why);
                status.phase(AppPhase::Rendering);
                let reason = if stopped.stage == "Parsed" { "Parse" } else { stopped.stage };
                self.tell(application, EventType::Warning, &format!("Failed{reason}"), &stopped.why);
                self.keep(application, &mut dispatcher, &mut status).await;
                Some(self.interval(application))
            }
        };
        self.remember(&key, &dispatcher.trackers);
        self.place(&key, &dispatcher.trackers, &mut status);
        let is_steady = is_steady(&status);
        self.write_status(application, status).await?;
        // Clusters that came or went meanwhile have not been looked at.
        if is_steady && clusters == self.fleet.generation() {
            self.note_steady(application, definitions, objects);
        }
        Ok(again)
    }

    /// Reads what an application declares, and finds or makes its revision.
    async fn declared(&self, application: &Value) -> Result<Declared, Stopped> {
        let namespace = application.namespace();
        let publish_version = application.annotation(names::PUBLISH_VERSION).unwrap_or_default();
        let workflow = match application.str_at(&["spec", "workflow", "ref"]).filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => self.catalogue.outside(&WORKFLOWS, namespace, name).await.map_err(Stopped::at("Parsed"))?,
        };
        let workflow = workflow.as_deref();
        let follows = application.annotation(names::AUTO_UPDATE) == Some("true");
        if follows && !publish_version.is_empty() {
            let why =
                format!("the annotations {} and {} exclude each other", names::AUTO_UPDATE, names::PUBLISH_VERSION);
            return Err(Stopped { stage: "Parsed", why });
        }
        let pinned = self.pinned_policies(application).await.map_err(Stopped::at("Parsed"))?;
        let shaped = self.shaped(application.clone(), &pinned).map_err(Stopped::at("Policy"))?;
        // What policies change is no version of the application, unless it says so.
        let is_own = application.annotation(names::AUTO_REVISION) == Some("true");
        let outside = self.catalogue.policies_of(&shaped.application, workflow).await.map_err(Stopped::at("Parsed"))?;
        let declaring = if is_own { &shaped.application } else { application };
        let mut hash = revision::hash(declaring, workflow, &outside);
        if follows {
            let parts = components(&shaped.application).map_err(Stopped::at("Parsed"))?;
            let found = Known::find(&self.catalogue, namespace, &parts).await.map_err(Stopped::at("Parsed"))?;
            hash = digest::hex(&map! { "declared" => hash, "definitions" => found.digest() }.into());
        }
        let revision = self.revision(application, &hash, publish_version).await;
        let revision = revision.map_err(Stopped::at("Revision"))?;
        let (mut shaped, mut definitions) = (shaped, None);
        if let (Some(revision), false) = (&revision, publish_version.is_empty()) {
            // A published version is what it was.
            let mut published = application.clone();
            published.set_at(&["spec"], revision.spec());
            shaped = self.shaped(published, &pinned).map_err(Stopped::at("Policy"))?;
            definitions = Some(Known::read(&revision.object));
        }
        let Shaped { application: mut carried, custom, applied } = shaped;
        let (policies, workflow) = match &definitions {
            // What was outside then counts, whatever became of it.
            Some(published) => (published.policies(), published.workflow().or(workflow)),
            None => (&outside, workflow),
        };
        placement::inline(&mut carried, policies);
        let plan = workflow::plan(&carried, workflow).map_err(Stopped::at("Render"))?;
        let parts = components(&carried).map_err(Stopped::at("Parsed"))?;
        let over = application.at(&["status", "workflow", "finished"]).and_then(Value::as_bool) == Some(true);
        let over = over && !Restart::of(application, self.now()).is_due(self.now());
        let is_known = revision.as_ref().is_some_and(|revision| over && is_run(application, revision));
        let definitions = match definitions {
            Some(definitions) => definitions,
            // What was carried out already is not rendered again, only looked at.
            None if is_known => Known::find(&self.catalogue, namespace, &parts).await.map_err(Stopped::at("Parsed"))?,
            None => {
                // Nobody gets to see by an application what they may not read.
                let reader = match Actor::of(application) {
                    Some(actor) => self.client.acting_as(actor.user(), &actor.groups()),
                    None => self.client.clone(),
                };
                let found = Known::fetch(&self.catalogue, &reader, namespace, &parts, &plan).await;
                found.map_err(Stopped::at("Parsed"))?.with(outside, workflow)
            }
        };
        let revision = match revision {
            Some(revision) => revision,
            None => self.new_revision(application, &hash, &definitions).await.map_err(Stopped::at("Revision"))?,
        };
        Ok(Declared { application: carried, custom, applied, revision, definitions, plan })
    }

    /// The revision that an application is, if there is one. What the status says is enough when nothing changed.
    async fn revision(
        &self,
        application: &Value,
        hash: &str,
        publish_version: &str,
    ) -> Result<Option<Revision>, String> {
        let latest = application.at(&["status", "latestRevision"]);
        let said = |key: &str| latest.and_then(|latest| latest.str_at(&[key])).unwrap_or_default();
        if publish_version.is_empty() && said("revisionHash") == hash {
            let number = latest.and_then(|latest| latest.get("revision")).and_then(Value::as_int).unwrap_or_default();
            let run = application.str_at(&["status", "workflow", "appRevision"]).unwrap_or_default();
            if run == said("name") {
                return Ok(Some(Revision {
                    name: said("name").to_owned(),
                    number,
                    hash: hash.to_owned(),
                    publish_version: String::new(),
                    succeeded: false,
                    object: Value::Null,
                }));
            }
        }
        let revisions = self.known_revisions(application).await?;
        let Ok(found) = revision::find(&revisions, hash, publish_version) else { return Ok(None) };
        if publish_version.is_empty() {
            return Ok(Some(found.clone()));
        }
        // What it holds is what is carried out.
        let whole = self.client.api(&REVISIONS).find(application.namespace(), &found.name).await;
        Ok(whole.map_err(|error| error.to_string())?.and_then(Revision::read))
    }

    /// All revisions of an application; the one that was made last too, although the cache may not have it yet.
    async fn known_revisions(&self, application: &Value) -> Result<Vec<Revision>, String> {
        let mut revisions = self.revisions(application);
        let latest = application.str_at(&["status", "latestRevision", "name"]).unwrap_or_default();
        if !latest.is_empty() && revisions.iter().all(|revision| revision.name != latest) {
            let made = self.client.api(&REVISIONS).find(application.namespace(), latest).await;
            revisions.extend(made.map_err(|error| error.to_string())?.and_then(Revision::read));
        }
        Ok(revisions)
    }

    async fn new_revision(&self, application: &Value, hash: &str, definitions: &Known) -> Result<Revision, String> {
        let revisions = self.known_revisions(application).await?;
        let publish_version = application.annotation(names::PUBLISH_VERSION).unwrap_or_default();
        let number = match revision::find(&revisions, hash, publish_version) {
            Ok(known) => return Ok(known.clone()),
            Err(number) => number,
        };
        let object = revision::new(application, number, hash, definitions.to_map());
        let api = self.client.api(&REVISIONS);
        let made = match api.create(application.namespace(), &object).await {
            // It was made by a look that was cut short.
            Err(error) if error.is_already_exists() => api.get(application.namespace(), object.name()).await,
            made => made,
        };
        let made = Revision::read(made.map_err(|error| error.to_string())?).ok_or("the revision has no number")?;
        let is_same = made.hash == hash && made.publish_version == publish_version;
        if is_same { Ok(made) } else { Err(format!("{} exists and is of something else", made.name)) }
    }

    /// Runs the workflow as far as it goes, keeps what there is, and collects garbage. `objects` becomes a digest of what
    /// the objects were when their health was looked at.
    async fn carry_out(
        &self,
        application: &Value,
        declared: &Declared,
        dispatcher: &mut Dispatcher<'_>,
        status: &mut Status,
        objects: &mut Option<u64>,
    ) -> Result<Option<Duration>, Error> {
        let now = self.now();
        let Declared { application: carried, revision, definitions, plan, .. } = declared;
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
        let owner =
            Owner { namespace: application.namespace(), name: application.name(), uid: application.meta_str("uid") };
        let compression = self.options.compression;
        let generation = application.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default();
        let had_tracker = dispatcher.trackers.current.is_some();
        dispatcher.trackers.root.get_or_insert_with(|| Tracker::root(owner, compression));
        let Trackers { current, history, .. } = &mut dispatcher.trackers;
        current.get_or_insert_with(|| {
            let tracker = Tracker::versioned(owner, generation, &revision.name, &revision.publish_version, compression);
            let is_taken = history.iter().any(|old| old.name() == tracker.name() && !old.is_deleting());
            if is_taken { tracker.renamed(owner, revision.number) } else { tracker }
        });

        let key = run_key(revision);
        let mut run = application.at(&["status", "workflow"]).map(Run::read).unwrap_or_default();
        if run.key != key {
            if had_tracker && revision.succeeded && !revision.publish_version.is_empty() {
                // Back to a version that was carried out in full: its tracker has all of it.
                run = revision.object.at(&["status", "workflow"]).map(Run::read).unwrap_or_default();
                (run.key, run.phase) = (key.to_owned(), RunPhase::Succeeded);
                if let Err(why) = dispatcher.reactivate(generation).await {
                    status.failed("Workflow", &why);
                    return Ok(Some(SOON));
                }
            } else {
                run = Run::new(key, now);
            }
            status.begin();
        }
        let is_lost = !had_tracker && run.is_over();
        // What selectors find is noted when a run begins, too.
        let is_moved = self.is_placed_anew(carried, status) && run.is_over();
        let restart = self.restart(application, now).await?;
        if restart.is_due(now) || is_lost || is_moved {
            // Without its tracker the version has nothing that is kept.
            run = Run::new(key, now);
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
        let message = failures(plan, &run);
        let occasion = match run.phase {
            RunPhase::Succeeded => {
                status.condition("Workflow", true, "Available", "");
                Occasion::Succeeded
            }
            RunPhase::Failed | RunPhase::Terminated => {
                status.failed("Workflow", &message);
                if !was_over {
                    self.tell(application, EventType::Warning, "FailedWorkflow", &message);
                }
                Occasion::Failed
            }
            RunPhase::Executing | RunPhase::Suspending => Occasion::Running,
        };
        status.phase(match run.phase {
            RunPhase::Executing => AppPhase::RunningWorkflow,
            RunPhase::Suspending => AppPhase::Suspending,
            RunPhase::Terminated => AppPhase::Terminated,
            RunPhase::Failed => AppPhase::Failed,
            RunPhase::Succeeded if healthy => AppPhase::Running,
            RunPhase::Succeeded => AppPhase::Unhealthy,
        });
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
            if let Err(why) = dispatcher.prune_component_revisions().await {
                self.tell(application, EventType::Warning, "FailedGC", &why);
            }
        }
        let again = again.unwrap_or_else(|| self.interval(application));
        Ok(Some(restart.wait(now).filter(|wait| !wait.is_zero()).map_or(again, |wait| again.min(wait))))
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
    async fn keep(&self, application: &Value, dispatcher: &mut Dispatcher<'_>, status: &mut Status) {
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
        let placed: Vec<(Component, Placement)> = if before.is_empty() {
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

    /// Changes the application's metadata.
    pub(super) async fn patch(&self, application: &Value, patch: Value) -> Result<(), Error> {
        let api = self.client.api(&APPLICATIONS);
        let (namespace, name) = (application.namespace(), application.name());
        let changed = api.patch(namespace, name, &Patch::Merge(patch), &PatchParams::default()).await;
        match changed {
            Ok(changed) => {
                self.wrote(&changed);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn write_status(&self, application: &Value, status: Status) -> Result<(), Error> {
        let Some(patch) = status.patch(application) else { return Ok(()) };
        let api = self.client.api(&APPLICATIONS);
        let (namespace, name) = (application.namespace(), application.name());
        match api.patch(namespace, name, &Patch::Merge(patch), &PatchParams::status()).await {
            Ok(changed) => {
                self.wrote(&changed);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The trackers of an application, sorted; or why they cannot be used.
    pub(super) async fn trackers(
        &self,
        application: &Value,
        revision: &str,
        publish_version: &str,
    ) -> Result<Result<Trackers, String>, Error> {
        let mut all = Vec::new();
        for name in self.tracker_names(&client::cache::key(application)) {
            if let Some(object) = self.client.api(&TRACKERS).find("", &name).await? {
                match Tracker::read(&object) {
                    Ok(mut tracker) => {
                        // Clusters may have been renamed since.
                        for entry in &mut tracker.entries {
                            entry.cluster = self.fleet.name_now(&entry.cluster);
                        }
                        all.push(tracker);
                    }
                    Err(why) => return Ok(Err(format!("resourcetracker {name}: {why}"))),
                }
            }
        }
        Ok(Trackers::classify(all, application.meta_str("uid"), revision, publish_version))
    }
}

/// Whether nothing is left to do, and no time will change that: the workflow is over, everything is kept, and no garbage
/// is waited for.
fn is_steady(status: &Status) -> bool {
    let conditions = status.fields.get("conditions").and_then(Value::as_array).unwrap_or_default();
    let is_ready = |condition: &Value| {
        condition.str_at(&["type"]) == Some("Ready") && condition.str_at(&["status"]) == Some("True")
    };
    let is_kept = conditions.iter().all(|condition| condition.str_at(&["type"]) != Some("StateKeep"));
    is_kept && conditions.iter().any(is_ready)
}

/// What a revision is run as.
fn run_key(revision: &Revision) -> &str {
    if revision.publish_version.is_empty() { &revision.name } else { &revision.publish_version }
}

/// Whether the workflow that the status tells of is that of a revision.
fn is_run(application: &Value, revision: &Revision) -> bool {
    application.str_at(&["status", "workflow", "appRevision"]) == Some(run_key(revision))
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
