//! What is shown of Applications: texts made of objects.

use crate::terminal::table;
use manager::application::tracker::{Entry, Tracker, Trackers};
use manager::application::{health, names};
use object::{Map, Value, map};

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.str_at(path).unwrap_or_default()
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// A row for each component; a `wide` one says which version it is, and where.
pub fn applications(all: &[Value], wide: bool) -> String {
    let mut rows = Vec::new();
    for application in all {
        for component in list(application, &["spec", "components"]) {
            let name = text(component, &["name"]);
            let services: Vec<&Value> =
                list(application, &["status", "services"]).iter().filter(|s| text(s, &["name"]) == name).collect();
            let traits: Vec<&str> = list(component, &["traits"]).iter().map(|t| text(t, &["type"])).collect();
            let mut row = vec![
                application.namespace().to_owned(),
                application.name().to_owned(),
                name.to_owned(),
                text(component, &["type"]).to_owned(),
                traits.join(","),
                text(application, &["status", "status"]).to_owned(),
                overall(&services),
                messages(&services),
                application.meta_str("creationTimestamp").to_owned(),
            ];
            if wide {
                let mut clusters: Vec<&str> = services.iter().map(|service| cluster(service)).collect();
                clusters.sort_unstable();
                clusters.dedup();
                row.extend([
                    text(application, &["status", "latestRevision", "name"]).to_owned(),
                    application.annotation(names::PUBLISH_VERSION).unwrap_or_default().to_owned(),
                    clusters.join(","),
                ]);
            }
            rows.push(row);
        }
    }
    let head = [
        "NAMESPACE",
        "APP",
        "COMPONENT",
        "TYPE",
        "TRAITS",
        "PHASE",
        "HEALTHY",
        "STATUS",
        "CREATED",
        "REVISION",
        "PUBLISH_VERSION",
        "CLUSTERS",
    ];
    table(if wide { &head } else { &head[..9] }, &rows)
}

/// How a component is in all its places.
fn overall(services: &[&Value]) -> String {
    let healthy = services.iter().filter(|service| state(service) == "healthy").count();
    match services {
        [] => String::new(),
        [one] => state(one).to_owned(),
        all if healthy == all.len() => "healthy".to_owned(),
        all => format!("{healthy}/{} healthy", all.len()),
    }
}

/// What a component says: of several places, those that say something other than the rest are named.
fn messages(services: &[&Value]) -> String {
    let mut all: Vec<&str> = services.iter().map(|service| text(service, &["message"])).collect();
    all.dedup();
    match all.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        _ => {
            let said = services.iter().filter(|service| !text(service, &["message"]).is_empty());
            let said = said.map(|s| format!("{}/{}: {}", cluster(s), text(s, &["namespace"]), text(s, &["message"])));
            said.collect::<Vec<String>>().join("; ")
        }
    }
}

/// The cluster in which a service is.
fn cluster(service: &Value) -> &str {
    Some(text(service, &["cluster"])).filter(|name| !name.is_empty()).unwrap_or("local")
}

/// What one application has come to.
pub fn status(application: &Value) -> String {
    let mut out = format!(
        "About:\n\n  Name:      {}\n  Namespace: {}\n  Created:   {}\n  Phase:     {}\n  Revision:  {}\n",
        application.name(),
        application.namespace(),
        application.meta_str("creationTimestamp"),
        text(application, &["status", "status"]),
        text(application, &["status", "latestRevision", "name"]),
    );
    for condition in list(application, &["status", "conditions"]) {
        if text(condition, &["status"]) == "False" {
            out += &format!("  {}: {}\n", text(condition, &["type"]), text(condition, &["message"]));
        }
    }
    let workflow = application.at(&["status", "workflow"]);
    if let Some(workflow) = workflow {
        out += &format!(
            "\nWorkflow:\n\n  Mode:  {}\n  Phase: {}\n",
            text(workflow, &["mode"]),
            text(workflow, &["status"])
        );
        for step in list(workflow, &["steps"]) {
            steps(step, 2, &mut out);
        }
    }
    let services = list(application, &["status", "services"]);
    if !services.is_empty() {
        out += "\nServices:\n\n";
    }
    for service in services {
        out += &format!(
            "  - {} ({}/{}) {}{}\n",
            text(service, &["name"]),
            cluster(service),
            text(service, &["namespace"]),
            state(service),
            said(service),
        );
        for (key, detail) in service.get("details").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            out += &format!("    {key}: {}\n", detail.as_str().unwrap_or_default());
        }
        for attached in list(service, &["traits"]) {
            let state = match attached.get("pending").and_then(Value::as_bool) {
                Some(true) => "pending",
                _ => state(attached),
            };
            out += &format!("    trait {} {state}{}\n", text(attached, &["type"]), said(attached));
        }
    }
    out
}

/// What a service or a trait says, after a colon.
fn said(service: &Value) -> String {
    Some(text(service, &["message"])).filter(|m| !m.is_empty()).map_or_else(String::new, |m| format!(": {m}"))
}

/// The step that waits for somebody to let it go on.
pub fn suspended(application: &Value) -> Option<&str> {
    let all = list(application, &["status", "workflow", "steps"]).iter();
    let mut all = all.flat_map(|step| [step].into_iter().chain(list(step, &["subSteps"])));
    all.find(|step| text(step, &["phase"]) == "suspending").map(|step| text(step, &["name"]))
}

/// How a workflow ended, in words.
pub fn ended(phase: &str) -> &str {
    if phase == "terminated" { "was terminated" } else { phase }
}

fn steps(step: &Value, indent: usize, out: &mut String) {
    let why = [text(step, &["reason"]), text(step, &["message"])];
    let why: Vec<&str> = why.into_iter().filter(|part| !part.is_empty()).collect();
    *out +=
        &format!("{:indent$}- {} ({}) {}", "", text(step, &["name"]), text(step, &["type"]), text(step, &["phase"]));
    *out += &if why.is_empty() { "\n".to_owned() } else { format!(": {}\n", why.join(": ")) };
    for sub in list(step, &["subSteps"]) {
        steps(sub, indent + 2, out);
    }
}

/// One line for people, however far a rollout has come.
pub fn progress(application: &Value) -> String {
    let phase = Some(text(application, &["status", "status"])).filter(|phase| !phase.is_empty()).unwrap_or("waiting");
    let step = list(application, &["status", "workflow", "steps"])
        .iter()
        .find(|step| !["succeeded", "skipped"].contains(&text(step, &["phase"])));
    let service = || list(application, &["status", "services"]).iter().find(|service| state(service) != "healthy");
    let condition = || {
        let is_bad = |condition: &&Value| text(condition, &["status"]) == "False";
        let mut bad = list(application, &["status", "conditions"]).iter().filter(is_bad);
        bad.next().map(|condition| text(condition, &["message"]))
    };
    match (step, phase) {
        (Some(step), _) => {
            format!("{phase}: step {} {}", text(step, &["name"]), text(step, &["message"])).trim_end().to_owned()
        }
        (None, "unhealthy") => match service() {
            Some(service) => format!("{phase}: {}{}", text(service, &["name"]), said(service)),
            None => phase.to_owned(),
        },
        (None, "starting" | "rendering") => {
            condition().map_or_else(|| phase.to_owned(), |message| format!("{phase}: {message}"))
        }
        (None, _) => phase.to_owned(),
    }
}

/// What a live object says of itself, in a few words.
pub fn detail(live: Result<Option<Value>, String>) -> String {
    match live {
        Err(why) => format!("unknown {why}"),
        Ok(None) => "not found".to_owned(),
        Ok(Some(live)) => {
            let health = health::of(&live);
            let state = if health.healthy { "healthy" } else { "unhealthy" };
            format!("{state} {}", health.message).trim_end().to_owned()
        }
    }
}

/// How a service is, in a word.
fn state(service: &Value) -> &'static str {
    match service.get("healthy").and_then(Value::as_bool) {
        Some(true) => "healthy",
        _ if text(service, &["message"]).starts_with(health::UNKNOWN) => "unknown",
        _ => "unhealthy",
    }
}

/// An object of an application, or a place where it is to be and has nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    cluster: String,
    namespace: String,
    /// `KIND/NAME`; `-` for nothing.
    resource: String,
    /// Whether it is of the present version.
    status: &'static str,
    component: String,
    /// What it says of itself, if it was asked.
    detail: Option<String>,
}

impl Leaf {
    fn of(entry: &Entry, status: &'static str) -> Self {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        Leaf {
            cluster: or(&entry.cluster, "local"),
            namespace: or(&entry.identity.namespace, "-"),
            resource: format!("{}/{}", entry.identity.kind.kind, entry.identity.name),
            status,
            component: entry.component.to_string(),
            detail: None,
        }
    }

    /// For programs.
    pub fn to_value(&self) -> Value {
        let (kind, name) = self.resource.split_once('/').unwrap_or_default();
        let mut out = map! { "cluster" => self.cluster.as_str(), "status" => self.status };
        let named = [("kind", kind), ("name", name), ("component", &self.component), ("namespace", &self.namespace)];
        for (key, text) in named.into_iter().filter(|(_, text)| !["", "-"].contains(text)) {
            out.insert(key, text);
        }
        if let Some(detail) = &self.detail {
            out.insert("detail", detail.as_str());
        }
        out.into()
    }
}

/// The objects of an application by cluster and namespace, and the places where it is to be and has nothing; `detail`
/// says of an object what it says of itself.
pub fn leaves(application: &Value, trackers: &Trackers, detail: Option<&dyn Fn(&Entry) -> String>) -> Vec<Leaf> {
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let current: Vec<(&Tracker, &str)> =
        trackers.current.iter().chain(&trackers.root).map(|t| (t, "updated")).collect();
    let history = trackers.history.iter().rev().filter(|tracker| !tracker.is_archived()).map(|t| (t, "outdated"));
    for (tracker, state) in current.into_iter().chain(history) {
        for entry in tracker.entries.iter().filter(|entry| !entry.deleted) {
            if seen.insert(entry.key()) {
                leaves.push(Leaf { detail: detail.map(|detail| detail(entry)), ..Leaf::of(entry, state) });
            }
        }
    }
    for service in list(application, &["status", "services"]) {
        if leaves.iter().all(|leaf| leaf.cluster != cluster(service)) {
            leaves.push(Leaf {
                cluster: cluster(service).to_owned(),
                namespace: text(service, &["namespace"]).to_owned(),
                resource: "-".to_owned(),
                status: "not-deployed",
                component: text(service, &["name"]).to_owned(),
                detail: detail.map(|_| text(service, &["message"]).to_owned()),
            });
        }
    }
    leaves.sort();
    leaves
}

/// The objects of an application as a table.
pub fn tree(leaves: &[Leaf], detailed: bool) -> String {
    let row = |leaf: &Leaf| {
        let mut row = vec![leaf.cluster.clone(), leaf.namespace.clone(), leaf.resource.clone(), leaf.status.to_owned()];
        if detailed {
            row.extend([leaf.component.clone(), leaf.detail.clone().unwrap_or_default()]);
        }
        row
    };
    let head = ["CLUSTER", "NAMESPACE", "RESOURCE", "STATUS", "COMPONENT", "DETAIL"];
    table(if detailed { &head } else { &head[..4] }, &leaves.iter().map(row).collect::<Vec<_>>())
}

/// The revisions of an application, oldest first; `wide` with what they have.
pub fn history(revisions: &[Value], current: &str, wide: bool) -> String {
    let rows: Vec<Vec<String>> = revisions
        .iter()
        .map(|revision| {
            let succeeded = revision.at(&["status", "succeeded"]).and_then(Value::as_bool) == Some(true);
            let mut row = vec![
                revision.name().to_owned(),
                revision.annotation(names::PUBLISH_VERSION).unwrap_or_default().to_owned(),
                succeeded.to_string(),
                revision.label("app.oam.dev/app-revision-hash").unwrap_or_default().to_owned(),
                revision.meta_str("creationTimestamp").to_owned(),
                if revision.name() == current { "current" } else { "" }.to_owned(),
            ];
            if wide {
                let components = list(revision, &["spec", "application", "spec", "components"]).iter();
                let components: Vec<String> =
                    components.map(|c| format!("{}:{}", text(c, &["name"]), text(c, &["type"]))).collect();
                row.extend([text(revision, &["status", "workflow", "status"]).to_owned(), components.join(",")]);
            }
            row
        })
        .collect();
    let head = ["NAME", "PUBLISH_VERSION", "SUCCEEDED", "HASH", "BEGIN_TIME", "STATUS", "WORKFLOW", "COMPONENTS"];
    table(if wide { &head } else { &head[..6] }, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn an_application_is_told_in_a_few_lines() {
        let application = json::parse(
            br#"{"metadata":{"name":"app","namespace":"n"},"spec":{"components":[{"name":"web","type":"t","traits":[{"type":"x"}]}]},
            "status":{"status":"unhealthy","latestRevision":{"name":"app-v1"},"conditions":[{"type":"Ready","status":"False","message":"no"}],
            "workflow":{"mode":"DAG-DAG","status":"executing","steps":[{"name":"web","type":"apply-component","phase":"running","reason":"Wait","message":"wait healthy"}]},
            "services":[{"name":"web","namespace":"n","healthy":false,"message":"Ready:0/1"}]}}"#,
        )
        .unwrap_or_default();
        let told = status(&application);
        for line in [
            "  Ready: no\n",
            "  - web (apply-component) running: Wait: wait healthy\n",
            "  - web (local/n) unhealthy: Ready:0/1\n",
        ] {
            assert!(told.contains(line), "{line} is not in {told}");
        }
        assert_eq!(progress(&application), "unhealthy: step web wait healthy");
        let lines = applications(&[application], false);
        assert_eq!(
            lines.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")),
            Some("n app web t x unhealthy unhealthy Ready:0/1".to_owned())
        );
    }

    #[test]
    fn a_tree_shows_places_that_have_nothing_yet() {
        let application = json::parse(
            br#"{"status":{"services":[{"name":"web","namespace":"n","cluster":"us","healthy":false,"message":"Unknown: away"},{"name":"web","namespace":"n","cluster":"eu","healthy":true}]}}"#,
        )
        .unwrap_or_default();
        let map = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"app.oam.dev/cluster":"eu"}}}"#;
        let entry = Entry::of(&json::parse(map).unwrap_or_default()).unwrap_or_default();
        let current = Tracker { entries: vec![entry], ..Tracker::default() };
        let trackers = Trackers { current: Some(current), ..Trackers::default() };
        let told = tree(&leaves(&application, &trackers, Some(&|_| "healthy".to_owned())), true);
        let lines: Vec<String> =
            told.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["eu n ConfigMap/a updated healthy", "us n - not-deployed web Unknown: away"]);
    }
}
