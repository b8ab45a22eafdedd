//! What is shown of permits: texts made of objects.

use crate::terminal::{Colour, Style, table};
use jiff::Timestamp;
use kinds::table::{age, human};
use manager::permit::Phase;
use manager::permit::record::phase;
use manager::status::condition;
use object::{Value, json};

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.str_at(path).unwrap_or_default()
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// A row for each permit.
pub fn permits(all: &[Value], with_namespace: bool, wide: bool, now: Timestamp) -> String {
    let columns = ["NAMESPACE", "NAME", "TEMPLATE", "REQUESTER", "PHASE", "READY", "ITEMS", "LEFT", "AGE"];
    let more = ["REASON", "DURATION", "START", "REVIEWER", "MESSAGE"];
    let skip = usize::from(!with_namespace);
    let head: Vec<&str> = columns.iter().skip(skip).chain(more.iter().filter(|_| wide)).copied().collect();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|permit| {
            let ready = condition(permit, "Ready");
            let age = age(permit, now);
            let mut row = vec![
                permit.namespace().to_owned(),
                permit.name().to_owned(),
                text(permit, &["spec", "template", "name"]).to_owned(),
                text(permit, &["spec", "requester", "name"]).to_owned(),
                phase(permit).name().to_owned(),
                ready.map(|c| text(c, &["status"])).unwrap_or_default().to_owned(),
                list(permit, &["status", "processedItems"]).len().to_string(),
                left(permit, now),
                age.as_str().unwrap_or_default().to_owned(),
            ];
            row.drain(..skip);
            if wide {
                row.extend([
                    text(permit, &["spec", "reason"]).to_owned(),
                    text(permit, &["status", "request", "duration"]).to_owned(),
                    text(permit, &["status", "request", "startTime"]).to_owned(),
                    text(permit, &["status", "review", "reviewer", "name"]).to_owned(),
                    ready.map(|c| text(c, &["message"])).unwrap_or_default().to_owned(),
                ]);
            }
            row
        })
        .collect();
    if rows.is_empty() { "No permits found\n".to_owned() } else { table(&head, &rows) }
}

/// How long an active permit still lasts.
fn left(permit: &Value, now: Timestamp) -> String {
    if phase(permit) != Phase::Active {
        return String::new();
    }
    match text(permit, &["status", "active", "until"]).parse::<Timestamp>() {
        Ok(until) => human((until.as_second() - now.as_second()).max(0)),
        Err(_) => "unlimited".to_owned(),
    }
}

/// Who asks for what, and what became of it.
pub fn facts(permit: &Value, style: Style) -> String {
    let at = |path: &[&str]| text(permit, path).to_owned();
    let kind = at(&["spec", "template", "kind"]);
    let groups: Vec<&str> = list(permit, &["spec", "requester", "groups"]).iter().filter_map(Value::as_str).collect();
    let mut requester = format!("{} ({})", at(&["spec", "requester", "name"]), at(&["spec", "requester", "type"]));
    if !groups.is_empty() {
        requester += &format!(", groups {}", groups.join(", "));
    }
    let state = phase(permit);
    let account = ["namespace", "name"].map(|key| at(&["status", "request", "impersonation", key]));
    let runs_as = if account.iter().all(String::is_empty) { "the controller".to_owned() } else { account.join("/") };
    let lasts = Some(at(&["status", "request", "duration"])).filter(|d| !d.is_empty());
    let rows = [
        ("Permit", format!("{}/{}", permit.namespace(), permit.name())),
        ("Template", format!("{kind}/{}", at(&["spec", "template", "name"]))),
        ("Requester", requester),
        ("Reason", at(&["spec", "reason"])),
        ("Phase", style.paint(colour(state), state.name())),
        ("Runs as", runs_as),
        ("Lasts", lasts.unwrap_or_else(|| "until it is expired".to_owned())),
        ("Starts", at(&["status", "request", "startTime"])),
        ("Kept for", at(&["status", "request", "keepFor"])),
        ("Active until", at(&["status", "active", "until"])),
        ("Approvers", approvers(permit)),
    ];
    let mut out = String::new();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        out += &format!("{name:13} {value}\n");
    }
    if let Some(params) = permit.at(&["spec", "params"]).and_then(Value::as_object).filter(|p| !p.is_empty()) {
        out += "Parameters\n";
        for (name, value) in params.iter() {
            let shown = value.as_str().map_or_else(|| json::to_string(value), str::to_owned);
            out += &format!("  {name}: {shown}\n");
        }
    }
    for rule in list(permit, &["status", "request", "approvals", "conditions"]).iter().filter_map(Value::as_str) {
        out += &format!("Condition     {rule}\n");
    }
    out + &history(permit) + &problem(permit, style)
}

fn approvers(permit: &Value) -> String {
    let all = list(permit, &["status", "request", "approvals", "approvers"]);
    let names = all.iter().map(|a| format!("{} {}", text(a, &["kind"]), text(a, &["name"])));
    names.collect::<Vec<_>>().join(", ")
}

fn history(permit: &Value) -> String {
    let all = list(permit, &["status", "transitions"]);
    if all.is_empty() {
        return String::new();
    }
    let mut out = "History\n".to_owned();
    for step in all {
        let message = text(step, &["message"]);
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        out += &format!(
            "  {} {} by {}{message}\n",
            text(step, &["timestamp"]),
            text(step, &["type"]),
            text(step, &["actor", "name"])
        );
    }
    out
}

/// What is wrong with a permit, if something is.
fn problem(permit: &Value, style: Style) -> String {
    let ready = condition(permit, "Ready").filter(|c| text(c, &["status"]) == "False");
    let Some(ready) = ready else { return String::new() };
    format!("{} {}\n", style.paint(Colour::Red, &format!("{:13}", text(ready, &["reason"]))), text(ready, &["message"]))
}

fn colour(phase: Phase) -> Colour {
    match phase {
        Phase::Approved | Phase::Active => Colour::Green,
        Phase::Denied | Phase::Failed => Colour::Red,
        _ => Colour::Yellow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn permit() -> Value {
        yaml::parse(b"
metadata: {name: p, namespace: solar-a, creationTimestamp: '2026-01-01T00:00:00Z'}
spec: {template: {kind: ResourcePermitTemplate, name: t}, requester: {name: bob, type: User, groups: [dev]}, reason: fire, params: {a: 1, b: x}}
status:
  phase: Active
  request: {duration: 1h, approvals: {approvers: [{kind: Group, name: ops}], conditions: ['true']}}
  active: {until: '2026-01-01T01:00:00Z'}
  conditions: [{type: Ready, status: 'False', reason: Failed, message: 'no'}]
  transitions: [{type: Active, timestamp: '2026-01-01T00:00:00Z', actor: {name: capsule-controller}, message: m}]
").unwrap_or_default()
    }

    #[test]
    fn a_permit_is_a_row_of_a_table() {
        let now = "2026-01-01T00:30:00Z".parse().unwrap_or_default();
        let squeeze = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows = permits(&[permit()], false, false, now);
        assert_eq!(squeeze(rows), "NAME TEMPLATE REQUESTER PHASE READY ITEMS LEFT AGE p t bob Active False 0 30m 30m");
        let rows = permits(&[permit()], true, true, now);
        assert!(squeeze(rows).ends_with("solar-a p t bob Active False 0 30m 30m fire 1h no"));
        assert_eq!(permits(&[], false, false, now), "No permits found\n");
    }

    #[test]
    fn the_facts_of_a_permit_stand_in_lines() {
        let told = facts(&permit(), Style::plain());
        for line in [
            "Permit        solar-a/p\n",
            "Requester     bob (User), groups dev\n",
            "Runs as       the controller\n",
            "Approvers     Group ops\n",
            "  a: 1\n  b: x\n",
            "  2026-01-01T00:00:00Z Active by capsule-controller: m\n",
            "Failed        no\n",
        ] {
            assert!(told.contains(line), "{line:?} is not in {told}");
        }
    }
}
