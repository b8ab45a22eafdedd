//! The subcommands.

use super::progress::{Goal, Look, look};
use super::{Ask, Output, input, output, review, view};
use crate::cluster::Failure;
use crate::terminal::{LOOK, Progress, Style, Wait, print, read_file};
use client::{Client, Error, ListParams, Patch, PatchParams, Resource};
use jiff::Timestamp;
use manager::kinds::{GLOBAL_PERMIT_TEMPLATES, PERMIT_TEMPLATES, PERMITS};
use manager::permit::Phase;
use manager::permit::record::phase;
use object::{Map, Value, map};
use std::time::{Duration, Instant};

/// How many permits come in one piece of a list.
const PAGE: u32 = 500;

/// A cluster and a namespace.
pub struct Session {
    client: Client,
    namespace: String,
    output: Option<Output>,
}

impl Session {
    /// Works in a namespace of a cluster.
    pub fn new(client: Client, namespace: String, output: Option<Output>) -> Self {
        Session { client, namespace, output }
    }

    /// Asks for a permit.
    pub async fn request(&self, template: &str, name: Option<String>, ask: Ask, wait: Wait) -> Result<(), Failure> {
        let file = ask.params_file.as_deref().map(read_file).transpose()?;
        let params = input::params(file.as_deref(), &ask.params)?;
        let (kind, template) = self.template(template).await?;
        let mut spec = map! { "template" => map! { "kind" => &*kind.kind, "name" => template.as_str() } };
        if params.as_object().is_some_and(|p| !p.is_empty()) {
            spec.insert("params", params);
        }
        for (key, value) in [("reason", ask.reason), ("duration", ask.duration), ("startTime", ask.start_time)] {
            if let Some(value) = value {
                spec.insert(key, value);
            }
        }
        let metadata = match name {
            Some(name) => map! { "name" => name },
            None => map! { "generateName" => format!("{template}-") },
        };
        let permit = map! {
            "apiVersion" => PERMITS.api_version(), "kind" => &*PERMITS.kind, "metadata" => metadata, "spec" => spec,
        };
        let created = self.client.api(&PERMITS).create(&self.namespace, &permit.into()).await.map_err(told)?;
        let (created, outcome) = match wait.wait {
            true => self.until(created.name(), Goal::Reviewable, wait).await?,
            false => (Some(created.clone()), "requested".to_owned()),
        };
        if let Some(created) = created {
            output::permit(&created, self.output, &format!("resourcepermit/{} {outcome}\n", created.name()));
        }
        Ok(())
    }

    /// The template of a name: one of the namespace, or else one for all.
    async fn template(&self, text: &str) -> Result<(Resource, String), Failure> {
        let local = ["resourcepermittemplate", "resourcepermittemplates", "rpt"];
        let global = ["globalresourcepermittemplate", "globalresourcepermittemplates", "grpt"];
        if let Some((kind, name)) = text.split_once('/') {
            let kind = kind.to_lowercase();
            let resource = match kind.as_str() {
                kind if local.contains(&kind) => PERMIT_TEMPLATES,
                kind if global.contains(&kind) => GLOBAL_PERMIT_TEMPLATES,
                _ => return Err(format!("{kind} is no kind of template: use rpt/{name} or grpt/{name}").into()),
            };
            return Ok((resource, name.to_owned()));
        }
        let is_there = async |resource: &Resource, namespace: &str| {
            match self.client.api(resource).find(namespace, text).await {
                // Whoever may not read templates may still use them.
                Err(error) if error.is_forbidden() => Ok(None),
                other => other.map(|found| Some(found.is_some())).map_err(told),
            }
        };
        let in_namespace = is_there(&PERMIT_TEMPLATES, &self.namespace).await?;
        if in_namespace == Some(true) {
            return Ok((PERMIT_TEMPLATES, text.to_owned()));
        }
        match (in_namespace, is_there(&GLOBAL_PERMIT_TEMPLATES, "").await?) {
            (_, Some(true)) | (Some(false), None) => Ok((GLOBAL_PERMIT_TEMPLATES, text.to_owned())),
            (None, _) => Ok((PERMIT_TEMPLATES, text.to_owned())),
            _ => Err(format!("there is no template {text:?}, in namespace {:?} or for all", self.namespace).into()),
        }
    }

    /// Lists permits.
    pub async fn list(&self, all: bool, wanted: Option<&str>, selector: String) -> Result<(), Failure> {
        let wanted = wanted.map(named_phase).transpose()?;
        let namespace = if all { "" } else { &self.namespace };
        let mut params = ListParams { limit: PAGE, label_selector: selector, ..ListParams::default() };
        let mut permits = Vec::new();
        loop {
            let page = self.client.api(&PERMITS).list(namespace, &params).await.map_err(told)?;
            permits.extend(page.items);
            if page.continue_token.is_empty() {
                break;
            }
            params.continue_token = page.continue_token;
        }
        permits.retain(|permit| wanted.is_none_or(|wanted| phase(permit) == wanted));
        output::permits(permits, self.output, all);
        Ok(())
    }

    /// Shows what a permit would do.
    pub async fn review(&self, name: &str, show_secrets: bool) -> Result<(), Failure> {
        let permit = self.client.api(&PERMITS).get(&self.namespace, name).await.map_err(told)?;
        if self.output.is_some() {
            output::permit(&permit, self.output, "");
            return Ok(());
        }
        let style = Style::of_stdout();
        let snapshot = review::snapshot(&self.client, &permit, show_secrets, style).await?;
        print(&(view::facts(&permit, style) + &snapshot));
        Ok(())
    }

    /// Moves permits to a phase, one after the other; what fails does not keep the others from it.
    pub async fn advance(
        &self,
        names: &[String],
        to: &str,
        message: Option<String>,
        adjusted: &[(&str, Option<String>)],
        wait: Option<Wait>,
    ) -> Result<(), Failure> {
        let mut status = map! { "phase" => to };
        if let Some(message) = message {
            status.insert("review", map! { "message" => message });
        }
        let mut request = Map::new();
        for (key, value) in adjusted {
            if let Some(value) = value {
                request.insert(*key, value.as_str());
            }
        }
        if !request.is_empty() {
            status.insert("request", request);
        }
        let patch = Patch::Merge(map! { "status" => status }.into());
        let mut failed = Vec::new();
        for name in names {
            if let Err(error) = self.advance_one(name, to, &patch, wait.filter(|wait| wait.wait)).await {
                failed.push(error.to_string());
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
    }

    async fn advance_one(&self, name: &str, to: &str, patch: &Patch, wait: Option<Wait>) -> Result<(), Failure> {
        let api = self.client.api(&PERMITS);
        let written = api.patch(&self.namespace, name, patch, &PatchParams::status()).await.map_err(told)?;
        let (goal, done) = match to {
            "Expired" => (Goal::Over, "expired"),
            "Approved" => (Goal::Active, "approved"),
            "Denied" => (Goal::Over, "denied"),
            "Active" => (Goal::Active, "is being activated"),
            _ => (Goal::Active, "is tried again"),
        };
        let (permit, outcome) = match wait {
            Some(wait) => self.until(name, goal, wait).await?,
            None => (Some(written.clone()), done.to_owned()),
        };
        output::permit(&permit.unwrap_or(written), self.output, &format!("resourcepermit/{name} {outcome}\n"));
        Ok(())
    }

    /// Waits until a permit is as somebody wishes, and tells how far it has come.
    async fn until(&self, name: &str, goal: Goal, wait: Wait) -> Result<(Option<Value>, String), Failure> {
        let begin = Instant::now();
        let mut progress = Progress::new(name);
        loop {
            let permit = self.client.api(&PERMITS).find(&self.namespace, name).await.map_err(told)?;
            match look(permit.as_ref(), goal, Timestamp::now()) {
                Look::Done(outcome) => return Ok((permit, outcome)),
                Look::Failed(why) => return Err(format!("resourcepermit/{name}: {why}").into()),
                Look::Waits(text) => progress.say(if text.is_empty() { "waits for the controller" } else { &text }),
            }
            if begin.elapsed() > Duration::from_secs(wait.timeout) {
                let seconds = wait.timeout;
                return Err(format!("resourcepermit/{name} is not there after {seconds} s: {}", progress.said()).into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn named_phase(text: &str) -> Result<Phase, Failure> {
    let found = Phase::ALL.into_iter().find(|p| *p != Phase::New && p.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names: Vec<&str> = Phase::ALL.iter().map(|p| p.name()).filter(|n| !n.is_empty()).collect();
        format!("{text:?} is no phase; phases are {}", names.join(", ")).into()
    })
}

/// What went wrong, with what helps.
fn told(error: Error) -> Failure {
    // A path that is not served is answered without a `Status`, or with one that is about no object.
    let is_unknown =
        error.status().is_some_and(|s| s.code == 404 && s.details.as_ref().is_none_or(|d| d.name.is_empty()));
    if is_unknown {
        return "the cluster does not serve permits: run `stanchion manager` beside it, or `stanchion server --manager`"
            .into();
    }
    error.into()
}
