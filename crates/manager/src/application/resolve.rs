//! From what an application declares to what is carried out: its policies, its revision, its definitions, its steps.

use object::{Map, Value, map};

use super::actor::Actor;
use super::controller::Controller;
use super::declared::components;
use super::definitions::Known;
use super::kinds::{REVISIONS, WORKFLOWS};
use super::render::Context;
use super::restart::Restart;
use super::revision::{self, Revision};
use super::shaping::Shaped;
use super::workflow::{self, Plan};
use super::{digest, names, placement};

/// What stopped a reconciliation: the stage and why.
pub(super) struct Stopped {
    /// The stage, as conditions call it.
    pub stage: &'static str,
    /// Why, for people.
    pub why: String,
}

impl Stopped {
    fn at(stage: &'static str) -> impl Fn(String) -> Stopped {
        move |why| Stopped { stage, why }
    }
}

/// The application as it is carried out.
pub(super) struct Declared {
    /// With the specification of its revision, as its policies make it.
    pub application: Value,
    /// What those policies tell templates.
    custom: Map,
    /// The policies.
    pub applied: Vec<Map>,
    /// Its revision.
    pub revision: Revision,
    /// By which it is rendered.
    pub definitions: Known,
    /// The steps of its workflow.
    pub plan: Plan,
}

impl Declared {
    /// What templates see.
    pub fn context(&self) -> Context {
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
    /// Reads what an application declares, and finds or makes its revision.
    pub(super) async fn declared(&self, application: &Value) -> Result<Declared, Stopped> {
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
            let mut parts = components(&shaped.application).map_err(Stopped::at("Parsed"))?;
            parts.extend(placement::overriding(&shaped.application));
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
        let overriding = placement::overriding(&carried);
        let over = application.at(&["status", "workflow", "finished"]).and_then(Value::as_bool) == Some(true);
        let over = over && !Restart::of(application, self.now()).is_due(self.now());
        let is_known = revision.as_ref().is_some_and(|revision| over && is_run(application, revision));
        let definitions = match definitions {
            Some(definitions) => definitions,
            // What was carried out already is not rendered again, only looked at.
            None if is_known => {
                let all = [parts, overriding].concat();
                Known::find(&self.catalogue, namespace, &all).await.map_err(Stopped::at("Parsed"))?
            }
            None => {
                // Nobody gets to see by an application what they may not read.
                let reader = match Actor::of(application) {
                    Some(actor) => self.client.acting_as(actor.user(), &actor.groups()),
                    None => self.client.clone(),
                };
                let found = Known::fetch(&self.catalogue, &reader, namespace, (&parts, &overriding), &plan).await;
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
}

/// What a revision is run as.
pub(super) fn run_key(revision: &Revision) -> &str {
    if revision.publish_version.is_empty() { &revision.name } else { &revision.publish_version }
}

/// Whether the workflow that the status tells of is that of a revision.
fn is_run(application: &Value, revision: &Revision) -> bool {
    application.str_at(&["status", "workflow", "appRevision"]) == Some(run_key(revision))
}
