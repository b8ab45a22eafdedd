//! DaemonSets: a pod on every node that fits.

mod backoff;
mod history;
mod on_node;
mod placement;
mod rollout;
mod status;

use super::batches::slow_start;
use super::claim::Claimer;
use super::expectations::Expectations;
use super::{meta, owned, pods, revisions};
use crate::pod_control::PodControl;
use crate::{Context, Controller, Wiring};
use backoff::Backoff;
use client::events::{EventType, Recorder};
use client::resources::{CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS};
use client::{Cache, Result};
use history::History;
use kinds::read::Read;
use object::Value;
use object::selector::Labels;
use placement::Placement;
use rollout::ByNode;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The most pods that are made or deleted at a time.
const BURST: usize = 250;

/// The index of pods by the node that they run on, or may only run on.
const TARGET: &str = "target";

/// `daemonset-controller`
pub(crate) struct DaemonSets {
    context: Context,
    recorder: Recorder,
    sets: Arc<Cache>,
    pods: Arc<Cache>,
    nodes: Arc<Cache>,
    revisions: Arc<Cache>,
    control: PodControl,
    expectations: Arc<Expectations>,
    failed: Backoff,
}

impl Controller for DaemonSets {
    const NAME: &'static str = "daemonset-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let sets = wiring.cache(&DAEMON_SETS);
        let pods = wiring.cache(&PODS);
        let nodes = wiring.cache(&NODES);
        let revisions = wiring.cache(&CONTROLLER_REVISIONS);
        let expectations: Arc<Expectations> = Arc::default();
        wiring.on_own(&sets);
        owned::watch(wiring, &pods, &sets, &DAEMON_SETS, owned::selector, Some(expectations.clone()));
        owned::watch(wiring, &revisions, &sets, &DAEMON_SETS, owned::selector, None);
        pods.index(TARGET, |pod| placement::target(pod).map(str::to_owned).into_iter().collect());
        let (all, placed) = (sets.clone(), pods.clone());
        wiring.on(&nodes, move |change, queue| {
            let Some(node) = change.new.as_deref().filter(|new| is_news(change.old.as_deref(), new)) else { return };
            let pods = placed.indexed(TARGET, node.name());
            for set in all.list() {
                let fit = Placement::new(&set).on(node);
                let is_there = pods.iter().any(|pod| meta::controller_uid(pod) == meta::uid(&set));
                if fit.should_run && !is_there || !fit.may_stay && is_there {
                    queue.add(client::cache::key(&set));
                }
            }
        });
        let context = wiring.context().clone();
        let recorder = context.recorder("daemonset-controller");
        let control = PodControl::new(context.client(), recorder.clone());
        let failed = Backoff::default();
        DaemonSets { context, recorder, sets, pods, nodes, revisions, control, expectations, failed }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(set) = self.sets.get_key(key) else {
            self.expectations.forget(key);
            return Ok(None);
        };
        if owned::selects_all(&set) {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.recorder.event(&set, EventType::Warning, "SelectingAll", message);
            return Ok(None);
        }
        let Some(selector) = owned::selector(&set).filter(|_| !meta::is_deleting(&set)) else { return Ok(None) };
        let history = self.history(&set, &selector).await?;
        let look = Look { controller: self, key, set: &set, selector: &selector, history: &history };
        look.run().await
    }
}

/// Whether a node changed in what decides where pods run. A node that goes is no news: its pods stay until somebody
/// collects them.
fn is_news(old: Option<&Value>, new: &Value) -> bool {
    old.is_none_or(|old| {
        meta::labels(old) != meta::labels(new) || meta::spec(old).list("taints") != meta::spec(new).list("taints")
    })
}

impl DaemonSets {
    /// The pods of a set; orphans that its selector matches become its own.
    async fn pods_of(&self, set: &Value, selector: &Labels) -> Result<Vec<Arc<Value>>> {
        let claimer = Claimer::new(set, self.context.api(&DAEMON_SETS), self.context.api(&PODS));
        let candidates = owned::candidates(&self.pods, set);
        claimer.claim(candidates, |pod| selector.matches_object(pod)).await
    }
}

/// Which nodes pods run on.
type Fits<'n> = HashMap<&'n str, placement::Fit>;

/// Pods by node, but those that have ended and are going.
fn by_node(pods: &[Arc<Value>]) -> ByNode {
    let mut by_node = ByNode::new();
    for pod in pods.iter().filter(|pod| !(pods::is_terminal(pod) && meta::is_deleting(pod))) {
        if let Some(node) = placement::target(pod) {
            by_node.entry(node.to_owned()).or_default().push(pod.clone());
        }
    }
    by_node
}

/// One look at one DaemonSet.
struct Look<'l> {
    controller: &'l DaemonSets,
    key: &'l str,
    set: &'l Value,
    selector: &'l Labels,
    history: &'l History,
}

impl Look<'_> {
    async fn run(&self) -> Result<Option<Duration>> {
        let nodes = self.controller.nodes.list();
        let placement = Placement::new(self.set);
        let fits: Fits = nodes.iter().map(|n| (n.name(), placement.on(n))).collect();
        let in_step = self.controller.expectations.satisfied(self.key);
        let pods = self.controller.pods_of(self.set, self.selector).await?;
        let by_node = by_node(&pods);
        let worked = if in_step { self.work(&nodes, &fits, &pods, &by_node).await } else { Ok(None) };
        let now = self.controller.context.now();
        let counted = nodes.iter().map(|n| (n.name(), fits.get(n.name()).is_some_and(|fit| fit.should_run)));
        let status = status::status(self.set, counted, &by_node, self.history.hash(), now);
        let written = status::write(&self.controller.context.api(&DAEMON_SETS), self.set, status, in_step).await;
        let again = worked?;
        written?;
        let pods = by_node.values().flatten().map(|pod| &**pod);
        let available = pods::next_available(pods, meta::min_ready_seconds(self.set), now);
        Ok(again.into_iter().chain(available).min())
    }

    /// Makes and deletes pods, takes the next step of an update, cleans up.
    async fn work(
        &self,
        nodes: &[Arc<Value>],
        fits: &Fits<'_>,
        pods: &[Arc<Value>],
        by_node: &ByNode,
    ) -> Result<Option<Duration>> {
        let (changed, again) = self.manage(nodes, fits, by_node).await?;
        let rolling = meta::spec(self.set).sub("updateStrategy").text("type") == "RollingUpdate";
        // What was just made or deleted is seen at the next look, which it brings.
        if rolling && !changed {
            let should_run = |node: &str| fits.get(node).is_some_and(|fit| fit.should_run);
            let wanted: Vec<&str> = nodes.iter().map(|n| n.name()).filter(|node| should_run(node)).collect();
            let now = self.controller.context.now();
            let next = rollout::next(self.set, by_node, &wanted, self.history.hash(), now, should_run);
            self.change(&next.create_on, &next.delete).await?;
        }
        self.controller.clean_up(self.set, &self.history.old, pods).await?;
        Ok(again)
    }

    /// Sees to it that each node has the pods that it should have; says whether something was done for that, and when to
    /// look again.
    async fn manage(
        &self,
        nodes: &[Arc<Value>],
        fits: &Fits<'_>,
        by_node: &ByNode,
    ) -> Result<(bool, Option<Duration>)> {
        let now = self.controller.context.now();
        let (mut create_on, mut delete) = (Vec::new(), Vec::new());
        let mut again: Option<Duration> = None;
        for node in nodes {
            let Some(fit) = fits.get(node.name()) else { continue };
            let pods = by_node.get(node.name()).map(Vec::as_slice);
            let work = on_node::work(self.set, *fit, pods, self.history.hash(), now);
            if work.create {
                create_on.push(node.name().to_owned());
            }
            delete.extend(work.delete);
            for pod in &work.failed {
                if let Some(wait) = self.controller.failed.try_now(meta::uid(self.set), node.name()) {
                    again = again.into_iter().chain([wait]).min();
                    continue;
                }
                self.tell_ended(pod, node, EventType::Warning, "FailedDaemonPod", "failed", "kill");
                delete.push(pod.clone());
            }
            for pod in &work.succeeded {
                self.tell_ended(pod, node, EventType::Normal, "SucceededDaemonPod", "succeeded", "delete");
                delete.push(pod.clone());
            }
        }
        // Pods for nodes that are not there will never get one.
        let there: HashSet<&str> = nodes.iter().map(|node| node.name()).collect();
        for (_, pods) in by_node.iter().filter(|(node, _)| !there.contains(node.as_str())) {
            let homeless = pods.iter().filter(|pod| pods::node(pod).is_empty());
            delete.extend(homeless.cloned());
        }
        self.change(&create_on, &delete).await?;
        Ok((!create_on.is_empty() || !delete.is_empty(), again))
    }

    fn tell_ended(&self, pod: &Value, node: &Value, ty: EventType, reason: &str, how: &str, what: &str) {
        let (namespace, name, node) = (pod.namespace(), pod.name(), node.name());
        let message = format!("Found {how} daemon pod {namespace}/{name} on node {node}, will try to {what} it");
        self.controller.recorder.event(self.set, ty, reason, &message);
    }

    /// Makes pods on these nodes and deletes these pods, as many as may be at a time.
    async fn change(&self, create_on: &[String], delete: &[Arc<Value>]) -> Result<()> {
        if create_on.is_empty() && delete.is_empty() {
            return Ok(());
        }
        let (control, expectations) = (&self.controller.control, &self.controller.expectations);
        let create_on = create_on.get(..BURST).unwrap_or(create_on);
        let delete = delete.get(..BURST).unwrap_or(delete);
        expectations.expect(self.key, create_on.len(), delete.iter().map(|pod| client::cache::key(pod)));
        let template = self.template();
        let (created, outcome) = slow_start(create_on.len(), |i| {
            let mut template = template.clone();
            let node = create_on.get(i).map(String::as_str).unwrap_or_default();
            let affinity = placement::bind(template.sub("spec").sub("affinity"), node);
            template.set_at(&["spec", "affinity"], affinity);
            async move { pods::create(control, self.set, &DAEMON_SETS, &template).await }
        })
        .await;
        expectations.less_creations(self.key, create_on.len() - created);
        let deleted = pods::delete(control, self.set, delete, |pod| expectations.deleted(self.key, pod)).await;
        outcome.or_else(|error| if error.is_namespace_terminating() { Ok(()) } else { Err(error) })?;
        deleted
    }

    /// The template of pods, with what every DaemonSet's pods have.
    fn template(&self) -> Value {
        let mut template = meta::template(self.set).clone();
        let tolerations = placement::tolerations(template.sub("spec"));
        template.set_at(&["spec", "tolerations"], tolerations.into());
        if let Some(generation) = on_node::generation(self.set) {
            template.set_at(&["metadata", "labels", on_node::POD_GENERATION], generation.to_string().into());
        }
        template.set_at(&["metadata", "labels", revisions::POD_REVISION], self.history.hash().into());
        template
    }
}
