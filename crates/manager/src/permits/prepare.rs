//! What comes before review: from a permit and its template to a snapshot that was tried out.

use super::{Step, Trouble, desired, parent, problems, recorded_account};
use crate::identity::acting_as;
use crate::kinds::{GLOBAL_PERMIT_TEMPLATES, PERMIT_TEMPLATES};
use crate::load::Loader;
use crate::permit::record::system;
use crate::permit::render::{Params, render};
use crate::permit::template::PermitTemplate;
use crate::permit::{Phase, approval};
use crate::reach::{Reach, declares};
use crate::replications::{is_global, moment, spare};
use crate::status::rfc3339;
use crate::{block, lanes};
use client::resources::SERVICE_ACCOUNTS;
use client::{Client, Error};
use keeper::{Extent, Journal, Policy, Run, tracking};
use object::{Map, Value, json, map};
use std::time::Duration;

/// How large what a permit makes may be, as JSON, in bytes: the permit's status holds it.
const LARGEST: usize = 1 << 20;

impl Step<'_> {
    /// The template, if there is one that is right.
    async fn template(&self) -> Result<Result<(Value, PermitTemplate), Trouble>, Error> {
        let text = |key: &str| self.permit.str_at(&["spec", "template", key]).unwrap_or_default();
        let is_global = text("kind") == &*GLOBAL_PERMIT_TEMPLATES.kind;
        let resource = if is_global { &GLOBAL_PERMIT_TEMPLATES } else { &PERMIT_TEMPLATES };
        let wait = |message: String| Ok(Err(Trouble::Wait { reason: "TemplateResolutionFailed", message }));
        let namespace = if is_global { "" } else { self.permit.namespace() };
        let Some(object) = self.shared.client.api(resource).find(namespace, text("name")).await? else {
            return wait(format!("{} {:?} not found", text("kind"), text("name")));
        };
        match PermitTemplate::read(&object) {
            Err(error) => wait(error),
            Ok(template) => {
                let namespace = self.shared.tenancy.namespace(self.permit.namespace());
                if !namespace.is_some_and(|n| template.is_for(&n)) {
                    return wait(format!(
                        "template {:?} is not for namespace {:?}",
                        object.name(),
                        self.permit.namespace()
                    ));
                }
                Ok(Ok((object, template)))
            }
        }
    }

    /// Renders the snapshot and tries it out.
    pub(super) async fn prepare(&self, from: Phase) -> Result<Option<Duration>, Error> {
        let (object, template) = match self.template().await? {
            Ok(found) => found,
            Err(trouble) => return self.trouble(from, trouble, Map::new()).await,
        };
        let spec = |key: &str| self.permit.at(&["spec", key]).filter(|v| !v.is_null()).cloned();
        let is_global = object.namespace().is_empty();
        let account = self.shared.defaults().resolve(template.account.as_ref(), object.namespace());
        let account =
            account.filter(|_| !is_global || template.account.is_some() || self.shared.defaults().global.is_some());
        let length = spec("duration").or_else(|| template.default_duration.as_deref().map(Value::from));
        let mut request = map! {
            "template" => map! {
                "kind" => self.permit.str_at(&["spec", "template", "kind"]).unwrap_or_default(),
                "name" => object.name(), "resourceVersion" => object.meta_str("resourceVersion"),
            },
            "approvals" => template.approvals.clone(),
            "impersonation" => account.as_ref().map(|a| Value::from(map! { "name" => a.name.as_str(), "namespace" => a.namespace.as_str() })),
            "duration" => length.clone(),
            "keepFor" => template.keep_for.clone(),
            "startTime" => spec("startTime").unwrap_or_else(|| rfc3339(self.now).into()),
        };
        let fail = |reason, message: String| Trouble::Wait { reason, message };
        if let Err(error) = template.check_duration(length.as_ref().and_then(Value::as_str)) {
            return self.trouble(from, fail("TemplateResolutionFailed", error), Map::new()).await;
        }
        let params = spec("params").unwrap_or_else(|| Value::Object(Map::new()));
        if let Err(error) = template.check_params(&params) {
            return self.trouble(from, fail("TemplateRenderingFailed", error), Map::new()).await;
        }
        self.shared.acts_as(&parent(self.permit).key, account.as_ref());
        if recorded_account(self.permit) != account {
            // Admission lets only a recorded account try out what is protected, in whichever replica it is asked.
            let impersonation = request.get("impersonation").cloned().unwrap_or_default();
            self.record.status(map! { "request" => map! { "impersonation" => impersonation } }).await?;
        }
        let client = acting_as(&self.shared.client, account.as_ref());
        let mut loader = Loader::new(client.clone());
        let namespace = self.permit.namespace();
        // By whose rights what is named in a namespace is done if not by an account's: see `reach`.
        let reach = (!is_global && account.is_none()).then(|| Reach::from(&self.shared.tenancy, namespace));
        let may_read = |place: &str| reach.is_none_or(|reach| reach.includes(place));
        let context = match loader.context(&template.context, &Params(&params), namespace, &may_read).await {
            Ok(context) => context,
            Err(error) => return self.trouble(from, fail("TemplateContextFailed", error), Map::new()).await,
        };
        let mut snapshot = lanes::compute(|| render(&template, self.permit, &context, &moment(self.now)));
        if snapshot.blocks.iter().map(|block| json::to_string(block).len()).sum::<usize>() > LARGEST {
            let message = format!("the rendered objects are larger than {} MiB together", LARGEST >> 20);
            return self.trouble(from, fail("TemplateRenderingFailed", message), Map::new()).await;
        }
        let out_of_reach = self.out_of_reach(&snapshot.blocks, reach, &loader).await;
        snapshot.problems.extend(out_of_reach);
        request.insert("resources", snapshot.blocks.clone());
        let more = map! { "request" => request.clone() };
        if !snapshot.problems.is_empty() {
            let trouble = fail("TemplateRenderingFailed", snapshot.problems.join("; "));
            return self.trouble(from, trouble, more).await;
        }
        if let Some(account) = &account {
            let api = self.shared.client.api(&SERVICE_ACCOUNTS);
            if api.find(&account.namespace, &account.name).await?.is_none() {
                let message = format!("service account {}/{} not found", account.namespace, account.name);
                let trouble = Trouble::Fail { reason: "ImpersonationFailed", message };
                return self.trouble(from, trouble, more).await;
            }
        }
        if let Err(message) = self.preflight(&client, &snapshot.blocks, reach.is_some()).await? {
            return self.trouble(from, Trouble::Fail { reason: "ResourceDryRunFailed", message }, more).await;
        }
        self.submit(from, &template, request).await
    }

    /// What of the rendered objects the permit may not make, by its nature or without an account.
    async fn out_of_reach(&self, blocks: &[Value], reach: Option<Reach<'_>>, loader: &Loader) -> Vec<String> {
        let mut problems = Vec::new();
        for (i, block) in blocks.iter().enumerate() {
            let policy = block.get("policy").map(Policy::read).unwrap_or_default();
            for target in block::list(block, &["targets"]) {
                let checked = match (reach, loader.is_namespaced(target).await) {
                    _ if self.permit.label(tracking::MANAGED_BY).is_some() && declares(target) => {
                        Err("what a permit made cannot make what declares more".to_owned())
                    }
                    (None, _) => Ok(()),
                    (Some(reach), Ok(namespaced)) => reach.check(target, namespaced, &policy),
                    (Some(_), Err(error)) => Err(error),
                };
                problems.extend(checked.err().map(|error| format!("resources[{i}]: {error}")));
            }
        }
        problems
    }

    /// Hands the permit to its reviewers, or approves it.
    async fn submit(&self, from: Phase, template: &PermitTemplate, request: Map) -> Result<Option<Duration>, Error> {
        let nobody = Value::Null;
        let requester = self.permit.at(&["spec", "requester"]).unwrap_or(&nobody);
        let mut steps = vec![(Phase::Requested, "PendingReview", "", requester)];
        let system = system();
        let mut review = map! { "verdict" => "Pending" };
        let mut more = Map::new();
        if template.auto {
            match approval::check(&template.approvals, self.permit, None) {
                Ok(()) => {
                    steps.push((Phase::Approved, "ApprovedBySystem", "Auto Approved", &system));
                    review =
                        map! { "verdict" => "Approved", "reviewer" => system.clone(), "message" => "Auto Approved" };
                }
                Err(message) => {
                    let trouble = Trouble::Fail { reason: "ApprovalConditionsFailed", message };
                    return self.trouble(from, trouble, map! { "request" => request }).await;
                }
            }
        }
        more.insert("request", request);
        more.insert("review", review);
        more.insert("failure", Value::Null);
        self.become_phase(from, &steps, more).await?;
        Ok(template.auto.then_some(Duration::ZERO))
    }

    /// Applies the snapshot without keeping anything.
    async fn preflight(
        &self,
        client: &Client,
        blocks: &[Value],
        is_restricted: bool,
    ) -> Result<Result<(), String>, Error> {
        let mut desired = match desired(blocks, &self.shared.clock, None, None) {
            Ok(desired) => desired,
            Err(error) => return Ok(Err(error)),
        };
        if is_restricted {
            desired.iter_mut().for_each(|desired| spare(&self.shared.keeper, desired, is_global));
        }
        let parent = parent(self.permit);
        let run = Run { parent: &parent, inventory: Vec::new(), desired, extent: Extent::DryRun, verify: true };
        let outcome = self.shared.keeper.reconcile(client, run, self.record as &dyn Journal).await?;
        Ok(problems(&outcome))
    }
}
