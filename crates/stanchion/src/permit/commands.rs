//! The subcommands.

use super::progress::{Goal, Look, look};
use super::{Ask, input, review, view};
use crate::cluster::Failure;
use crate::terminal::{Document, LOOK, Output, Progress, Style, Wait, print, read_file};
use client::{Client, Error, ListParams, Patch, PatchParams, Resource, WatchEvent, WatchParams};
use jiff::Timestamp;
use manager::kinds::{GLOBAL_PERMIT_TEMPLATES, GROUP, PERMIT_TEMPLATES, PERMITS};
use manager::permit::Phase;
use manager::permit::record::phase;
use object::{Map, Value, map};
use std::time::{Duration, Instant};

/// How many permits come in one piece of a list.
const PAGE: u32 = 500;
/// For how long somebody who does not wait is kept to learn whether what they ask for can be, and for how long a manager
/// that is just starting is waited for.
const MOMENT: Duration = Duration::from_secs(5);
const START: Duration = Duration::from_secs(20);

/// A cluster and a namespace.
pub struct Session {
    client: Client,
    namespace: String,
    output: Option<Output>,
}

/// Which permits are to be listed.
pub struct Asked<'a> {
    /// Their names; none for all.
    pub names: &'a [String],
    /// The phase that they are in.
    pub phase: Option<&'a str>,
    /// A label selector; empty for all.
    pub selector: String,
    /// Whether to go on with every change.
    pub watch: bool,
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
        let (api, permit) = (self.client.api(&PERMITS), permit.into());
        let created = started(async || api.create(&self.namespace, &permit).await).await?;
        let (name, is_generated) = (created.name().to_owned(), permit.name().is_empty());
        let looked = match wait.wait {
            true => self.until(&name, Goal::Reviewable, wait).await,
            false => self.prepared(&created).await,
        };
        let (permit, outcome) = looked.map_err(|why| match is_generated {
            true => {
                format!("{why}\nif it cannot become right, delete it: kubectl delete rp {name} -n {}", self.namespace)
                    .into()
            }
            false => why,
        })?;
        self.show(&permit.unwrap_or(created), &format!("resourcepermit/{name} {outcome}\n"));
        Ok(())
    }

    /// Learns for a moment whether a permit that was just asked for can be.
    async fn prepared(&self, created: &Value) -> Result<(Option<Value>, String), Failure> {
        let begin = Instant::now();
        loop {
            let permit = match self.client.api(&PERMITS).find(&self.namespace, created.name()).await {
                // Whoever may ask need not be allowed to look.
                Err(error) if error.is_forbidden() => return Ok((None, "requested".to_owned())),
                other => other.map_err(told)?,
            };
            match look(permit.as_ref(), Goal::Prepared, Timestamp::now()) {
                Look::Done(outcome) => return Ok((permit, outcome)),
                Look::Failed(why) => return Err(wrong(created.name(), &why)),
                Look::Waits(_) if begin.elapsed() > MOMENT => {
                    eprintln!("nobody has looked at it yet: does `stanchion manager` run?");
                    return Ok((permit, "requested".to_owned()));
                }
                Look::Waits(_) => tokio::time::sleep(LOOK / 5).await,
            }
        }
    }

    /// Prints a permit in the form that was asked for; `text` is for people.
    fn show(&self, permit: &Value, text: &str) {
        match (Document::of(self.output), self.output) {
            (Some(document), _) => print(&document.one(permit.clone())),
            (None, Some(_)) => print(&view::permits(std::slice::from_ref(permit), false, true, Timestamp::now())),
            (None, None) => print(text),
        }
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
            match self.client.api(resource).get(namespace, text).await {
                Ok(_) => Ok(Some(true)),
                Err(error) if error.is_not_found() && !error.is_unserved() => Ok(Some(false)),
                // Whoever may not read templates may still use them.
                Err(error) if error.is_forbidden() => Ok(None),
                Err(error) => Err(told(error)),
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
    pub async fn list(&self, all: bool, asked: Asked<'_>) -> Result<(), Failure> {
        let wanted = asked.phase.map(named_phase).transpose()?;
        let names: Vec<&str> = asked.names.iter().map(|name| plain(name)).collect::<Result<_, _>>()?;
        if all && !names.is_empty() {
            return Err("a permit cannot be got by its name across all namespaces".into());
        }
        let is_wanted = |permit: &Value| {
            wanted.is_none_or(|wanted| phase(permit) == wanted) && (names.is_empty() || names.contains(&permit.name()))
        };
        let namespace = if all { "" } else { &self.namespace };
        let mut params = ListParams { limit: PAGE, label_selector: asked.selector.clone(), ..ListParams::default() };
        let (mut permits, mut found) = (Vec::new(), Vec::new());
        let version = loop {
            let page = self.client.api(&PERMITS).list(namespace, &params).await.map_err(told)?;
            found.extend(page.items.iter().map(|permit| permit.name().to_owned()));
            permits.extend(page.items.into_iter().filter(is_wanted));
            if page.continue_token.is_empty() {
                break page.resource_version;
            }
            params.continue_token = page.continue_token;
        };
        let missing: Vec<&str> =
            names.iter().copied().filter(|name| !found.iter().any(|found| found == name)).collect();
        let (is_wide, now) = (self.output == Some(Output::Wide), Timestamp::now());
        match Document::of(self.output) {
            _ if permits.is_empty() && !missing.is_empty() => {}
            Some(document) if names.len() == 1 => permits.into_iter().for_each(|permit| print(&document.one(permit))),
            Some(document) => print(&document.list(permits)),
            None => print(&view::permits(&permits, all, is_wide, now)),
        }
        if !missing.is_empty() {
            let told = |name| format!("{}.{GROUP} {name:?} not found", PERMITS.plural);
            return Err(missing.into_iter().map(told).collect::<Vec<_>>().join("\n").into());
        }
        if asked.watch { self.follow(namespace, asked.selector, version, is_wanted).await } else { Ok(()) }
    }

    /// Prints every change of permits, until the server ends it or somebody does.
    async fn follow(
        &self,
        namespace: &str,
        label_selector: String,
        resource_version: String,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Result<(), Failure> {
        let params = WatchParams { label_selector, resource_version, ..WatchParams::default() };
        let mut watch = self.client.api(&PERMITS).watch(namespace, &params).await.map_err(told)?;
        while let Some(event) = watch.next().await {
            let permit = match event.map_err(told)? {
                WatchEvent::Added(permit) | WatchEvent::Modified(permit) | WatchEvent::Deleted(permit) => permit,
                WatchEvent::Bookmark(_) => continue,
            };
            if !is_wanted(&permit) {
                continue;
            }
            match Document::of(self.output) {
                Some(document) => print(&document.one(permit)),
                None => {
                    let is_wide = self.output == Some(Output::Wide);
                    let table = view::permits(&[permit], namespace.is_empty(), is_wide, Timestamp::now());
                    print(&table.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>());
                }
            }
        }
        Ok(())
    }

    /// Shows what a permit would do.
    pub async fn review(&self, name: &str, show_secrets: bool) -> Result<(), Failure> {
        let permit = self.client.api(&PERMITS).get(&self.namespace, plain(name)?).await.map_err(told)?;
        if self.output.is_some() {
            self.show(&permit, "");
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
        let (api, name) = (self.client.api(&PERMITS), plain(name)?);
        let params = PatchParams::status();
        let written = started(async || api.patch(&self.namespace, name, patch, &params).await).await?;
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
        self.show(&permit.unwrap_or(written), &format!("resourcepermit/{name} {outcome}\n"));
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
                Look::Failed(why) => return Err(wrong(name, &why)),
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

/// The name of a permit, which may be given as kubectl prints it.
fn plain(text: &str) -> Result<&str, Failure> {
    let Some((kind, name)) = text.split_once('/') else { return Ok(text) };
    let kind = kind.to_lowercase();
    let kind = kind.split_once('.').filter(|(_, group)| *group == GROUP).map_or(kind.as_str(), |(kind, _)| kind);
    let is_permit = ["resourcepermit", "resourcepermits", "rp"].contains(&kind);
    if is_permit { Ok(name) } else { Err(format!("{text}: {kind} is no permit: use {name}").into()) }
}

/// What the manager answers, also if it is just starting.
async fn started<T>(ask: impl AsyncFn() -> client::Result<T>) -> Result<T, Failure> {
    let begin = Instant::now();
    loop {
        match ask().await {
            Err(error) if error.to_string().contains("the manager is starting") && begin.elapsed() < START => {
                tokio::time::sleep(LOOK).await;
            }
            answer => return answer.map_err(told),
        }
    }
}

/// What is wrong with a permit, and how a parameter that is missing is given.
fn wrong(name: &str, why: &str) -> Failure {
    let missing = why.split_once("parameter \"").and_then(|(_, rest)| rest.split_once("\" is missing"));
    let hint = missing.map_or_else(String::new, |(name, _)| format!("\ngive it when you ask: -p {name}=VALUE"));
    format!("resourcepermit/{name}: {why}{hint}").into()
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
    if error.is_unserved() {
        return "the cluster does not serve permits: run `stanchion manager` beside it, or `stanchion server --manager`"
            .into();
    }
    if error.to_string().contains("failed calling webhook") {
        return format!("{error}\nthe manager does not answer: does `stanchion manager` run?").into();
    }
    error.into()
}
