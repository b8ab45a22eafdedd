//! What is shown of Applications: texts made of objects.

use crate::terminal::table;
use manager::application::health;
use manager::application::tracker::{Entry, Tracker, Trackers};
use object::Value;

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.str_at(path).unwrap_or_default()
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// A row for each component.
pub fn applications(all: &[Value]) -> String {
    let mut rows = Vec::new();
    for application in all {
        for component in list(application, &["spec", "components"]) {
            let name = text(component, &["name"]);
            let service = list(application, &["status", "services"]).iter().find(|s| text(s, &["name"]) == name);
            let traits: Vec<&str> = list(component, &["traits"]).iter().map(|t| text(t, &["type"])).collect();
            rows.push(vec![
                application.namespace().to_owned(),
                application.name().to_owned(),
                name.to_owned(),
                text(component, &["type"]).to_owned(),
                traits.join(","),
                text(application, &["status", "status"]).to_owned(),
                service.map_or("", state).to_owned(),
                service.map(|s| text(s, &["message"])).unwrap_or_default().to_owned(),
                application.meta_str("creationTimestamp").to_owned(),
            ]);
        }
    }
    let head = ["NAMESPACE", "APP", "COMPONENT", "TYPE", "TRAITS", "PHASE", "HEALTHY", "STATUS", "CREATED"];
    table(&head, &rows)
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
    out += "\nServices:\n\n";
    for service in list(application, &["status", "services"]) {
        out += &format!(
            "  - {} ({}/{}) {}{}\n",
            text(service, &["name"]),
            Some(text(service, &["cluster"])).filter(|c| !c.is_empty()).unwrap_or("local"),
            text(service, &["namespace"]),
            state(service),
            Some(text(service, &["message"])).filter(|m| !m.is_empty()).map_or_else(String::new, |m| format!(": {m}")),
        );
    }
    out
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
    let running = list(application, &["status", "workflow", "steps"])
        .iter()
        .find(|step| !["succeeded", "skipped"].contains(&text(step, &["phase"])));
    match running {
        Some(step) => {
            format!("{phase}: step {} {}", text(step, &["name"]), text(step, &["message"])).trim_end().to_owned()
        }
        None => phase.to_owned(),
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

/// The objects of an application by cluster and namespace, and the places where it is to be and has nothing; `detail`
/// says of an object what it says of itself.
pub fn tree(application: &Value, trackers: &Trackers, detail: Option<&dyn Fn(&Entry) -> String>) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let current: Vec<(&Tracker, &str)> =
        trackers.current.iter().chain(&trackers.root).map(|t| (t, "updated")).collect();
    let history = trackers.history.iter().rev().filter(|tracker| !tracker.is_archived()).map(|t| (t, "outdated"));
    for (tracker, state) in current.into_iter().chain(history) {
        for entry in tracker.entries.iter().filter(|entry| !entry.deleted) {
            if !seen.insert(entry.key()) {
                continue;
            }
            let cluster = if entry.cluster.is_empty() { "local" } else { &entry.cluster };
            let namespace = if entry.identity.namespace.is_empty() { "-" } else { &entry.identity.namespace };
            let mut row = vec![
                cluster.to_owned(),
                namespace.to_owned(),
                format!("{}/{}", entry.identity.kind.kind, entry.identity.name),
                state.to_owned(),
            ];
            row.extend(detail.map(|detail| detail(entry)));
            rows.push(row);
        }
    }
    for service in list(application, &["status", "services"]) {
        let cluster = Some(text(service, &["cluster"])).filter(|name| !name.is_empty()).unwrap_or("local");
        if rows.iter().all(|row| row[0] != cluster) {
            let cells = [cluster, text(service, &["namespace"]), "-", "not-deployed", text(service, &["message"])];
            rows.push(cells.iter().take(4 + usize::from(detail.is_some())).map(|cell| (*cell).to_owned()).collect());
        }
    }
    rows.sort();
    let head = ["CLUSTER", "NAMESPACE", "RESOURCE", "STATUS", "DETAIL"];
    table(if detail.is_some() { &head } else { &head[..4] }, &rows)
}

/// The revisions of an application, oldest first.
pub fn history(revisions: &[Value], current: &str) -> String {
    let rows: Vec<Vec<String>> = revisions
        .iter()
        .map(|revision| {
            let succeeded = revision.at(&["status", "succeeded"]).and_then(Value::as_bool) == Some(true);
            vec![
                revision.name().to_owned(),
                revision.annotation("app.oam.dev/publishVersion").unwrap_or_default().to_owned(),
                succeeded.to_string(),
                revision.label("app.oam.dev/app-revision-hash").unwrap_or_default().to_owned(),
                revision.meta_str("creationTimestamp").to_owned(),
                if revision.name() == current { "current" } else { "" }.to_owned(),
            ]
        })
        .collect();
    table(&["NAME", "PUBLISH_VERSION", "SUCCEEDED", "HASH", "BEGIN_TIME", "STATUS"], &rows)
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
        let lines = applications(&[application]);
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
        let told = tree(&application, &trackers, Some(&|_| "healthy".to_owned()));
        let lines: Vec<String> =
            told.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["eu n ConfigMap/a updated healthy", "us n - not-deployed Unknown: away"]);
    }
}
