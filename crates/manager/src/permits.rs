//! The controller of ResourcePermit: the whole life of a permit.

mod prepare;

use crate::block;
use crate::condition::{ApplyCondition, Mode};
use crate::identity::acting_as;
use crate::kinds::{PERMIT_TEMPLATES, PERMITS};
use crate::manager::Shared;
use crate::permit::record::{self, Transition, phase, system, with_transitions};
use crate::permit::{Actor, Phase, approval};
use crate::replication::Account;
use crate::replications::{FINALIZER, Record, is_global, items, spare};
use crate::runner::Reconciler;
use crate::status::{self, Condition, rfc3339};
use crate::tenancy::{is_deleted, is_terminating};
use client::events::{EventType, Marks};
use client::{DeleteParams, Error};
use jiff::{SignedDuration, Timestamp};
use keeper::{Desired, Extent, Family, Item, Journal, Naming, Outcome, Parent, Policy, Run};
use object::{Map, Value, duration, map};
use std::sync::Arc;
use std::time::Duration;

/// What the keys of permits begin with in the keeper.
pub(crate) const PREFIX: &str = "permit/";
/// The annotation that says until when a permit lasts.
const ACTIVE_UNTIL: &str = "projectcapsule.dev/active-until";
/// The labels of events that say who did it.
const EVENT_ACTOR: &str = "event.projectcapsule.dev/actor";
const EVENT_ACTOR_KIND: &str = "event.projectcapsule.dev/actor-kind";
/// The longest message about what is wrong with a permit, in characters.
const LONGEST_MESSAGE: usize = 4096;
/// When what waits is looked at again.
const SOON: Duration = Duration::from_secs(2);
/// When a permit whose template is not right is looked at again at the latest.
const LATER: Duration = Duration::from_secs(60);

pub(crate) struct Permits {
    shared: Arc<Shared>,
}

/// Why a permit cannot be prepared.
enum Trouble {
    /// Something that may become right by itself: the permit stays where it is.
    Wait { reason: &'static str, message: String },
    /// The stage failed.
    Fail { reason: &'static str, message: String },
}

impl Reconciler for Permits {
    const NAME: &'static str = "permits";

    async fn sync(&self, key: &str) -> Result<Option<Duration>, Error> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let api = self.shared.client.api(&PERMITS);
        let Some(permit) = api.find(namespace, name).await? else {
            let key = format!("{PREFIX}{key}");
            self.shared.acts_as(&key, None);
            self.shared.keeper.forget(&key);
            return Ok(None);
        };
        let record = Record::new(&api, &permit);
        let step = Step { shared: &self.shared, permit: &permit, record: &record, now: self.shared.now() };
        if is_deleted(&permit) {
            return step.end().await;
        }
        step.tell().await?;
        match phase(&permit) {
            Phase::New => step.created().await,
            Phase::Created => step.prepare(Phase::Created).await,
            Phase::Requested => step.requested().await,
            Phase::Approved => step.activate(Phase::Approved).await,
            Phase::Retrying => match permit.str_at(&["status", "failure", "stage"]) {
                Some("Activation") => step.activate(Phase::Retrying).await,
                _ => step.prepare(Phase::Retrying).await,
            },
            Phase::Active => step.keep().await,
            Phase::Expired => step.end().await,
            Phase::Pending | Phase::Denied | Phase::Failed => {
                step.ready(phase(&permit)).await?;
                Ok(None)
            }
        }
    }
}

impl Permits {
    pub fn new(shared: Arc<Shared>) -> Self {
        Permits { shared }
    }

    /// Makes known what a permit managed before.
    pub fn load(&self, permit: &Value) {
        let inventory = Item::read_all(permit.at(&["status", "processedItems"]));
        self.shared.keeper.load(&parent(permit), &inventory);
    }
}

/// One look at one permit.
struct Step<'a> {
    shared: &'a Shared,
    permit: &'a Value,
    record: &'a Record<'a>,
    now: Timestamp,
}

impl Step<'_> {
    /// Moves the permit to a phase, with what else its status then says. What the table does not allow does not happen.
    async fn become_phase(
        &self,
        from: Phase,
        steps: &[(Phase, &str, &str, &Value)],
        mut more: Map,
    ) -> Result<(), Error> {
        let mut at = from;
        let mut transitions = Vec::new();
        for (next, reason, message, actor) in steps {
            if !at.may_become(*next, Actor::Controller) {
                tracing::error!(permit = self.permit.name(), %at, %next, "this step is not possible");
                return Ok(());
            }
            at = *next;
            transitions.push(Transition { phase: at, actor, reason, message, time: self.now });
        }
        more.insert("phase", at.name());
        more.insert("transitions", with_transitions(self.permit.get("status"), &transitions));
        if !more.contains_key("conditions") {
            let (ready, message) = at.ready();
            let reason = if ready == Some(false) { "Failed" } else { "Succeeded" };
            more.insert("conditions", self.conditions(ready, reason, message));
        }
        self.record.status(more).await
    }

    fn conditions(&self, status: Option<bool>, reason: &'static str, message: &str) -> Value {
        let condition = Condition { kind: "Ready", status, reason, message: message.to_owned() };
        let old = self.permit.at(&["status", "conditions"]);
        status::with_conditions(old, &[condition], status::generation(self.permit), self.now)
    }

    /// Sees to it that the condition says what the phase says, after others moved the permit.
    async fn ready(&self, phase: Phase) -> Result<(), Error> {
        let (ready, message) = phase.ready();
        let reason = if ready == Some(false) { "Failed" } else { "Succeeded" };
        self.record.status(map! { "conditions" => self.conditions(ready, reason, message) }).await
    }

    /// Tells people of transitions, each once.
    async fn tell(&self) -> Result<(), Error> {
        let mut all = block::list(self.permit, &["status", "transitions"]).to_vec();
        let mut told = false;
        for transition in &mut all {
            let phase = transition.str_at(&["type"]).and_then(Phase::of).unwrap_or(Phase::New);
            if !record::is_told(phase) || transition.get("eventTime").is_some() {
                continue;
            }
            let actor = transition.str_at(&["actor", "name"]).unwrap_or_default();
            let message = transition.str_at(&["message"]).unwrap_or_default();
            let text = format!("{phase} by {actor} {message}");
            let reason = transition.str_at(&["reason"]).unwrap_or(phase.name()).to_owned();
            let labels = map! {
                EVENT_ACTOR => record::actor_label(actor),
                EVENT_ACTOR_KIND => transition.str_at(&["actor", "type"]).unwrap_or("User"),
            };
            let marks = Marks { labels, ..Marks::default() };
            self.shared.recorder.event_with(self.permit, marks, EventType::Normal, &reason, text.trim());
            transition.set_at(&["eventTime"], rfc3339(self.now).into());
            told = true;
        }
        if told {
            self.record.status(map! { "transitions" => all }).await?;
        }
        Ok(())
    }

    async fn created(&self) -> Result<Option<Duration>, Error> {
        let nobody = Value::Null;
        let requester = self.permit.at(&["spec", "requester"]).unwrap_or(&nobody);
        let reason = record::reason_by("Created", requester);
        let time = self.permit.meta_str("creationTimestamp").parse().unwrap_or(self.now);
        let first = Transition { phase: Phase::Created, actor: requester, reason: &reason, message: "", time };
        let more = map! {
            "phase" => Phase::Created.name(),
            "transitions" => with_transitions(None, &[first]),
            "conditions" => self.conditions(None, "Reconciling", Phase::Created.ready().1),
        };
        self.record.status(more).await?;
        Ok(Some(Duration::ZERO))
    }

    /// Notes what is wrong. What may become right is tried again, ever later.
    async fn trouble(&self, from: Phase, trouble: Trouble, mut more: Map) -> Result<Option<Duration>, Error> {
        let short = |message: String| message.chars().take(LONGEST_MESSAGE).collect::<String>();
        match trouble {
            Trouble::Wait { reason, message } => {
                let message = short(message);
                let known = status::condition(self.permit, "Ready").and_then(|c| c.str_at(&["message"]));
                if known != Some(&message) {
                    self.shared.warn(self.permit, reason, &message);
                }
                more.insert("conditions", self.conditions(Some(false), reason, &message));
                self.record.status(more).await?;
                Ok(Some(LATER))
            }
            Trouble::Fail { reason, message } => {
                let message = short(message);
                let activation = self.is_activation(from);
                let (stage, retry) = if activation { ("Activation", "Approved") } else { ("Preflight", "Requested") };
                more.insert(
                    "failure",
                    map! { "stage" => stage, "retryPhase" => retry, "reason" => reason, "message" => message.as_str() },
                );
                more.insert("conditions", self.conditions(Some(false), reason, &message));
                self.become_phase(from, &[(Phase::Failed, reason, &message, &system())], more).await?;
                Ok(None)
            }
        }
    }

    fn is_activation(&self, from: Phase) -> bool {
        let retried = self.permit.str_at(&["status", "failure", "stage"]) == Some("Activation");
        from == Phase::Approved || from == Phase::Retrying && retried
    }

    /// The permit waits for review. Its dry run is repeated when the template's facts change, by whoever retries.
    async fn requested(&self) -> Result<Option<Duration>, Error> {
        self.ready(Phase::Requested).await?;
        Ok(None)
    }

    /// Applies the snapshot, if everything that let the permit be approved still holds.
    async fn activate(&self, from: Phase) -> Result<Option<Duration>, Error> {
        if from == Phase::Approved {
            self.ready(from).await?;
        }
        let start = self.permit.str_at(&["status", "request", "startTime"]).and_then(|t| t.parse::<Timestamp>().ok());
        if let Some(wait) = start.and_then(|start| until(self.now, start)) {
            self.record.finalizers(true).await?;
            return Ok(Some(wait));
        }
        let nothing = Value::Null;
        let approvals = self.permit.at(&["status", "request", "approvals"]).unwrap_or(&nothing);
        let reviewer = self.permit.at(&["status", "review", "reviewer"]);
        let reviewer = reviewer.filter(|r| r.str_at(&["type"]) != Some("System"));
        if let Err(message) = approval::check(approvals, self.permit, reviewer) {
            return self.trouble(from, Trouble::Fail { reason: "ApprovalInvalid", message }, Map::new()).await;
        }
        let length = self.length("duration");
        let end = length.and_then(|length| self.now.checked_add(SignedDuration::try_from(length).ok()?).ok());
        let desired = match self.desired(end, None) {
            Ok(desired) => desired,
            Err(message) => {
                return self.trouble(from, Trouble::Fail { reason: "ResourceApplyFailed", message }, Map::new()).await;
            }
        };
        let outcome = self.run(desired, Extent::Whole).await?;
        let inventory = items(&outcome.items);
        if let Err(message) = problems(&outcome) {
            return self.trouble(from, Trouble::Fail { reason: "ResourceApplyFailed", message }, inventory).await;
        }
        let mut active = map! { "from" => rfc3339(self.now) };
        let mut more = inventory;
        if let Some(end) = end {
            active.insert("until", rfc3339(end));
            if let Some(keep) = self.keep_until(end) {
                more.insert("keepUntil", rfc3339(keep));
            }
        }
        more.insert("active", active);
        more.insert("failure", Value::Null);
        let system = system();
        let steps = match from {
            Phase::Retrying => vec![
                (Phase::Approved, "RetrySucceeded", "", &system),
                (Phase::Active, "ActivatedBySystem", "", &system),
            ],
            _ => vec![(Phase::Active, "ActivatedBySystem", "", &system)],
        };
        self.become_phase(from, &steps, more).await?;
        Ok(end.and_then(|end| until(self.now, end)))
    }

    /// Keeps what was applied as it is, until the permit ends.
    async fn keep(&self) -> Result<Option<Duration>, Error> {
        let end = self.permit.str_at(&["status", "active", "until"]).and_then(|t| t.parse::<Timestamp>().ok());
        if end.is_some_and(|end| until(self.now, end).is_none()) {
            let system = system();
            let steps = [(Phase::Expired, "ExpiredBySystem", "", &system)];
            self.become_phase(Phase::Active, &steps, Map::new()).await?;
            return Ok(Some(Duration::ZERO));
        }
        let inventory = Item::read_all(self.permit.at(&["status", "processedItems"]));
        let mut retry = None;
        if let Ok(desired) = self.desired(end, Some(&inventory)) {
            let outcome = self.run(desired, Extent::Part).await?;
            if !outcome.items.is_empty() && !self.permit.meta_list("finalizers").contains(&FINALIZER) {
                self.record.finalizers(true).await?;
            }
            let mut more = items(&outcome.items);
            let (ready, message) = match problems(&outcome) {
                Ok(()) => (true, Phase::Active.ready().1.to_owned()),
                Err(message) => (false, message),
            };
            let reason = if ready { "Succeeded" } else { "Failed" };
            more.insert("conditions", self.conditions(Some(ready), reason, &message));
            self.record.status(more).await?;
            retry = if ready { outcome.retry_after } else { Some(outcome.retry_after.unwrap_or(LATER)) };
        }
        let end = end.and_then(|end| until(self.now, end));
        Ok([retry, end].into_iter().flatten().min())
    }

    /// Lets go of everything, keeps the permit as long as it is to be kept, and then deletes it.
    async fn end(&self) -> Result<Option<Duration>, Error> {
        let namespace = self.shared.tenancy.namespace(self.permit.namespace());
        let goes_with_namespace = namespace.is_none_or(|n| is_terminating(&n));
        let inventory = Item::read_all(self.permit.at(&["status", "processedItems"]));
        if !inventory.is_empty() {
            let outcome = self.run(Vec::new(), Extent::Whole).await?;
            let mut more = items(&outcome.items);
            if let Err(message) = problems(&outcome) {
                more.insert("conditions", self.conditions(Some(false), "Failed", &message));
            }
            self.record.status(more).await?;
            if !outcome.items.is_empty() {
                return Ok(Some(outcome.retry_after.unwrap_or(SOON)));
            }
        }
        let is_expired = phase(self.permit) == Phase::Expired;
        if is_expired {
            let (ready, message) = Phase::Expired.ready();
            let mut more = map! { "conditions" => self.conditions(ready, "Succeeded", message) };
            let mut keep = self.permit.str_at(&["status", "keepUntil"]).and_then(|t| t.parse::<Timestamp>().ok());
            if keep.is_none() {
                let expired = block::list(self.permit, &["status", "transitions"]).iter().rev();
                let mut expired = expired.filter(|t| t.str_at(&["type"]) == Some("Expired"));
                let at = expired.next().and_then(|t| t.str_at(&["timestamp"])?.parse().ok()).unwrap_or(self.now);
                keep = self.keep_until(at);
                if let Some(keep) = keep {
                    more.insert("keepUntil", rfc3339(keep));
                }
            }
            self.record.status(more).await?;
            if let Some(wait) = keep.and_then(|keep| until(self.now, keep)).filter(|_| !goes_with_namespace) {
                return Ok(Some(wait));
            }
        }
        self.record.finalizers(false).await?;
        self.shared.keeper.forget(&parent(self.permit).key);
        if is_expired && !is_deleted(self.permit) {
            let params = DeleteParams::default().with_uid(self.permit.meta_str("uid"));
            let api = self.shared.client.api(&PERMITS);
            match api.delete(self.permit.namespace(), self.permit.name(), &params).await {
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                other => drop(other?),
            }
        }
        Ok(None)
    }

    /// A duration of the request that is not zero.
    fn length(&self, key: &str) -> Option<Duration> {
        let text = self.permit.str_at(&["status", "request", key])?;
        duration::extended(text).ok().filter(|d| !d.is_zero())
    }

    fn keep_until(&self, end: Timestamp) -> Option<Timestamp> {
        end.checked_add(SignedDuration::try_from(self.length("keepFor")?).ok()?).ok()
    }

    /// The targets of the recorded snapshot; of an active permit only those that were applied, whatever their condition.
    fn desired(&self, end: Option<Timestamp>, active: Option<&[Item]>) -> Result<Vec<Desired>, String> {
        let blocks = block::list(self.permit, &["status", "request", "resources"]);
        desired(blocks, &self.shared.clock, end, active)
    }

    async fn run(&self, mut desired: Vec<Desired>, extent: Extent) -> Result<Outcome, Error> {
        let inventory = Item::read_all(self.permit.at(&["status", "processedItems"]));
        let account = recorded_account(self.permit);
        let parent = parent(self.permit);
        self.shared.acts_as(&parent.key, account.as_ref());
        let is_of_a_namespace = self.permit.str_at(&["spec", "template", "kind"]) == Some(&*PERMIT_TEMPLATES.kind);
        if is_of_a_namespace && account.is_none() {
            desired.iter_mut().for_each(|desired| spare(&self.shared.keeper, desired, is_global));
        }
        let client = acting_as(&self.shared.client, account.as_ref());
        let run = Run { parent: &parent, inventory, desired, extent, verify: extent == Extent::Whole };
        self.shared.keeper.reconcile(&client, run, self.record as &dyn Journal).await
    }
}

/// How long it is until a time; none if it has come.
fn until(now: Timestamp, then: Timestamp) -> Option<Duration> {
    Duration::try_from(then.duration_since(now)).ok().filter(|d| !d.is_zero())
}

/// What went wrong with targets, joined.
fn problems(outcome: &Outcome) -> Result<(), String> {
    let failed = outcome.items.iter().filter(|i| i.state.ready == Some(false));
    let all: Vec<String> = failed.map(|i| format!("{}: {}", i.identity, i.state.message)).collect();
    if all.is_empty() { Ok(()) } else { Err(all.join("; ")) }
}

/// The account that a permit recorded.
pub(crate) fn recorded_account(permit: &Value) -> Option<Account> {
    let text = |key| permit.str_at(&["status", "request", "impersonation", key]).filter(|t| !t.is_empty());
    let (namespace, name) = text("namespace").zip(text("name"))?;
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

fn desired(
    blocks: &[Value],
    clock: &client::Clock,
    end: Option<Timestamp>,
    active: Option<&[Item]>,
) -> Result<Vec<Desired>, String> {
    let mut out = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let nothing = Value::Null;
        let policy = block.get("policy").unwrap_or(&nothing);
        let condition = match policy.str_at(&["condition"]).filter(|_| active.is_none()) {
            Some(text) => Some(Arc::new(ApplyCondition::new(text, Mode::Stored)?).into_keeper(clock.clone())),
            None => None,
        };
        for target in block::list(block, &["targets"]) {
            let mut object = target.clone();
            let identity =
                keeper::Identity::of(&object).ok_or_else(|| format!("resources[{i}]: a target has no name"))?;
            if let Some(inventory) = active {
                let is_applied = |item: &Item| {
                    item.state.last_apply.is_some()
                        && item.identity.kind == identity.kind
                        && item.identity.name == identity.name
                        && (item.state.cluster_scoped || item.identity.namespace == identity.namespace)
                };
                if !inventory.iter().any(is_applied) {
                    continue;
                }
            }
            if let Some(end) = end {
                object.set_at(&["metadata", "annotations", ACTIVE_UNTIL], rfc3339(end).into());
            }
            out.push(Desired {
                object,
                tenant: "".into(),
                origin: "".into(),
                policy: Policy::read(policy),
                condition: condition.clone(),
                rendered_from: None,
            });
        }
    }
    Ok(out)
}

/// How the keeper knows a permit.
pub(crate) fn parent(permit: &Value) -> Parent {
    Parent {
        key: format!("{PREFIX}{}", client::cache::key(permit)).into(),
        family: Family::ResourcePermit,
        naming: Naming::permit(permit.meta_str("uid"), permit.namespace(), permit.name()),
        owner_reference: None,
        service_account: recorded_account(permit).map(|a| a.user()),
        prune_without_policy: true,
    }
}
