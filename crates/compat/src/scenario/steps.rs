//! The steps of a scenario: what each does, and what it records.

use super::field::{holds, select};
use super::names::{Generated, items, sort_inner};
use super::play::play;
use super::player::Player;
use super::view::{flag, is_everywhere, snapshot, texts, view};
use crate::case::body_text;
use object::{Map, Value, map};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Seconds between two looks of a `wait`, unless the step says otherwise.
const LOOK: f64 = 0.15;
/// Between two looks of a `settle`.
const SETTLE_LOOK: Duration = Duration::from_millis(150);
/// No step takes longer, in seconds.
const LONGEST: f64 = 600.0;

/// Does a step; gives what it recorded.
pub(crate) async fn run(player: &mut Player, step: &Value) -> Result<Option<Value>, String> {
    let has = |key: &str| step.get(key).is_some();
    if has("send") {
        return send(player, step).await.map(Some);
    }
    if has("wait") {
        return wait(player, step).await.map(Some);
    }
    if has("settle") {
        return settle(player, step).await.map(|()| None);
    }
    if has("snapshot") {
        let mut lists = Vec::new();
        for path in texts(step, "snapshot") {
            lists.push((path.to_owned(), player.get(path).await?.1));
        }
        return Ok(Some(snapshot(&mut player.names, lists, step)));
    }
    if let Some(mark) = step.str_at(&["mark"]) {
        let (_, answer) = player.get("configmaps").await?;
        let revision = answer.str_at(&["metadata", "resourceVersion"]).unwrap_or_default().to_owned();
        player.marks.push((mark.to_owned(), revision));
        return Ok(None);
    }
    if has("watch") {
        return watch(player, step).await.map(Some);
    }
    if has("events") {
        return events(player, step).await.map(Some);
    }
    if has("play") {
        let pods = play(player, step).await?;
        return Ok(Some(map! { "pods" => pods }.into()));
    }
    if has("sleep") {
        tokio::time::sleep(Duration::from_secs_f64(seconds(step, "sleep", 0.0))).await;
        return Ok(None);
    }
    Err(format!("unknown step {}", body_text(step)))
}

pub(crate) fn seconds(step: &Value, key: &str, default: f64) -> f64 {
    number(step, key, default).clamp(0.0, LONGEST)
}

/// A number of a step.
fn number(step: &Value, key: &str, default: f64) -> f64 {
    match step.get(key) {
        Some(Value::Int(i)) => *i as f64,
        Some(Value::Float(f)) => *f,
        _ => default,
    }
}

async fn send(player: &mut Player, step: &Value) -> Result<Value, String> {
    let text = step.str_at(&["send"]).unwrap_or_default();
    let (method, path) = text.split_once(' ').ok_or("a request has no path")?;
    let path = player.path(path)?;
    let media_type = match (step.str_at(&["type"]), method) {
        (Some("json"), _) => "application/json-patch+json",
        (Some("merge"), _) | (None, "PATCH") => "application/merge-patch+json",
        (Some("strategic"), _) => "application/strategic-merge-patch+json",
        (Some("apply"), _) => "application/apply-patch+yaml",
        (Some(other), _) => other,
        (None, _) => "application/json",
    };
    let body = step.get("body").map(|body| (media_type, player.fill(body)));
    let user = step.str_at(&["as"]).unwrap_or("admin");
    let (code, mut answer) = player.send_as(user, method, &path, body.as_ref()).await?;
    let bare = path.split('?').next().unwrap_or_default();
    let sub = ["/eviction", "/binding", "/token", "/scale"].iter().any(|end| bare.ends_with(end));
    let name = answer.str_at(&["metadata", "name"]).unwrap_or_default();
    match (method, code) {
        ("POST", 201) if !name.is_empty() && !sub => player.made.push(format!("{bare}/{name}")),
        ("PATCH", 201) => player.made.push(bare.to_owned()),
        _ => {}
    }
    player.names.learn(&items(&mut answer));
    player.save(step, &answer);
    let mut got = map! { "code" => i64::from(code) };
    if code >= 400 {
        got.insert("error", error(player, &answer));
    } else if step.str_at(&["show"]) == Some("body") {
        let shown = view(&answer, step);
        let named: Vec<&Value> =
            Some(&shown).filter(|o| o.str_at(&["metadata", "name"]).is_some()).into_iter().collect();
        let generated = player.names.numbered(&named);
        got.insert("body", player.names.value(&sort_inner(shown.clone()), &generated));
    } else if step.get("show").is_some() {
        got.insert("show", shown(player, step, &answer));
    }
    Ok(got.into())
}

fn error(player: &Player, answer: &Value) -> Value {
    let mut error = Map::new();
    for key in ["reason", "message", "details", "code"] {
        if let Some(value) = answer.get(key) {
            error.insert(key, value.clone());
        }
    }
    let mut error = Value::Object(error);
    error.remove_at(&["details", "uid"]);
    player.names.value(&error, &player.names.anonymous())
}

fn shown(player: &Player, step: &Value, answer: &Value) -> Value {
    let generated = player.names.anonymous();
    let fields = texts(step, "show").into_iter().filter_map(|field| {
        let mut found: Vec<Value> =
            select(answer, field).into_iter().map(|v| player.names.value(v, &generated)).collect();
        let value = if found.len() > 1 { Value::Array(found) } else { found.pop()? };
        Some((field, value))
    });
    Value::Object(fields.collect())
}

/// The steps done at each look.
fn meanwhile(step: &Value) -> &[Value] {
    step.get("meanwhile").and_then(Value::as_array).unwrap_or_default()
}

async fn aside(player: &mut Player, step: &Value) -> Result<(), String> {
    for step in meanwhile(step) {
        if step.get("play").is_some() {
            play(player, step).await?;
        }
    }
    Ok(())
}

async fn wait(player: &mut Player, step: &Value) -> Result<Value, String> {
    let path = step.str_at(&["wait"]).unwrap_or_default();
    let end = Instant::now() + Duration::from_secs_f64(seconds(step, "timeout", 30.0));
    let predicates = step.get("until").and_then(Value::as_array).unwrap_or_default();
    loop {
        let (code, answer) = player.get(path).await?;
        let met = if flag(step, "gone") {
            code == 404
        } else {
            let mut met = code == 200;
            for predicate in predicates {
                met = met && holds(&answer, &player.fill(predicate))?;
            }
            met
        };
        if met {
            player.save(step, &answer);
            let mut got = map! { "met" => true };
            if step.get("show").is_some() {
                got.insert("show", shown(player, step, &answer));
            }
            return Ok(got.into());
        }
        if Instant::now() > end {
            return Ok(map! { "met" => false, "last" => last(player, predicates, &answer, code) }.into());
        }
        aside(player, step).await?;
        tokio::time::sleep(Duration::from_secs_f64(seconds(step, "every", LOOK))).await;
    }
}

/// What the fields of predicates were when patience ended.
fn last(player: &Player, predicates: &[Value], answer: &Value, code: u16) -> Value {
    if predicates.is_empty() {
        return i64::from(code).into();
    }
    let fields = predicates.iter().map(|predicate| {
        let field = predicate.as_array().and_then(<[Value]>::first).map(|f| player.fill(f)).unwrap_or_default();
        let found = select(answer, field.as_str().unwrap_or_default()).into_iter().cloned().collect();
        let found = player.names.value(&Value::Array(found), &player.names.anonymous());
        Value::Array(vec![field, found])
    });
    Value::Array(fields.collect())
}

async fn state(player: &mut Player, paths: &[&str]) -> Result<Vec<(u16, String)>, String> {
    let mut out = Vec::new();
    for path in paths {
        let (code, answer) = player.get(path).await?;
        let versions = match answer.get("items") {
            Some(list) => [select(list, "[*].metadata.uid"), select(list, "[*].metadata.resourceVersion")].concat(),
            None => select(&answer, "metadata.resourceVersion"),
        };
        out.push((code, versions.iter().filter_map(|v| v.as_str()).collect::<Vec<_>>().join(" ")));
    }
    Ok(out)
}

async fn settle(player: &mut Player, step: &Value) -> Result<(), String> {
    let quiet = Duration::from_secs_f64((number(step, "ms", 1500.0) / 1000.0).clamp(0.0, LONGEST));
    let end = Instant::now() + Duration::from_secs_f64(seconds(step, "timeout", 30.0));
    let paths = texts(step, "settle");
    let (mut last, mut since) = (state(player, &paths).await?, Instant::now());
    while since.elapsed() < quiet && Instant::now() < end {
        tokio::time::sleep(SETTLE_LOOK).await;
        aside(player, step).await?;
        let now = state(player, &paths).await?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(())
}

async fn watch(player: &mut Player, step: &Value) -> Result<Value, String> {
    let since = step.str_at(&["since"]).unwrap_or_default();
    let revision = player.marks.iter().rev().find(|(name, _)| name == since).map(|(_, r)| r.clone());
    let revision = revision.ok_or_else(|| format!("no mark {since}"))?;
    let mut events: Vec<(i64, Value)> = Vec::new();
    for path in texts(step, "watch") {
        let path = player.path(path)?;
        let joint = if path.contains('?') { '&' } else { '?' };
        let seconds = step.get("seconds").and_then(Value::as_int).unwrap_or(1);
        let path = format!("{path}{joint}watch=1&timeoutSeconds={seconds}&resourceVersion={revision}");
        let (_, mut answer) = player.send("GET", &path, None).await?;
        let Some(Value::Array(list)) = answer.get_mut("events").map(std::mem::take) else { continue };
        for event in list {
            match event.str_at(&["type"]) {
                Some("BOOKMARK") => continue,
                Some("ERROR") => events.push((i64::MAX, event)),
                _ => {
                    let object = event.get("object").unwrap_or(&Value::Null);
                    if is_everywhere(object) && !flag(step, "all") {
                        continue;
                    }
                    let version = object.str_at(&["metadata", "resourceVersion"]).and_then(|v| v.parse().ok());
                    events.push((version.unwrap_or_default(), event));
                }
            }
        }
    }
    events.sort_by_key(|(version, _)| *version);
    let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
    let objects = events.iter().filter(|e| e.str_at(&["type"]) != Some("ERROR")).filter_map(|e| e.get("object"));
    player.names.learn(&objects.collect::<Vec<_>>());
    Ok(map! { "events" => told(player, step, &events) }.into())
}

/// Events as `[type, Kind/name, fields]`, repeated equal states collapsed.
fn told(player: &Player, step: &Value, events: &[Value]) -> Vec<Value> {
    let generated = numbered_by_story(player, step, events);
    let mut last: HashMap<String, Value> = HashMap::new();
    let mut out = Vec::new();
    for event in events {
        let (kind, object) = parts(event);
        if kind == "ERROR" {
            let message = object.get("message").cloned().unwrap_or_default();
            out.push(Value::Array(vec![kind.into(), message, Map::new().into()]));
            continue;
        }
        let name = player.names.text(super::names::name_of(object), &generated);
        let who = format!("{}/{name}", object.str_at(&["kind"]).unwrap_or("None"));
        let fields = watched_fields(player, step, object, &generated);
        if kind == "MODIFIED" && last.get(&who) == Some(&fields) {
            continue;
        }
        out.push(Value::Array(vec![kind.into(), who.as_str().into(), fields.clone()]));
        last.insert(who, fields);
    }
    out
}

fn parts(event: &Value) -> (&str, &Value) {
    (event.str_at(&["type"]).unwrap_or_default(), event.get("object").unwrap_or(&Value::Null))
}

/// Generated names by their whole story, then by first appearance.
fn numbered_by_story(player: &Player, step: &Value, events: &[Value]) -> Generated {
    let mut generated = player.names.unsaved();
    let mut stories: Vec<(String, Vec<String>)> = Vec::new();
    for event in events {
        let (kind, object) = parts(event);
        let name = super::names::name_of(object);
        if kind == "ERROR" || generated.get(name).is_none() {
            continue;
        }
        let fields = watched_fields(player, step, object, &generated);
        let line = body_text(&Value::Array(vec![kind.into(), fields]));
        match stories.iter_mut().find(|(n, _)| n == name) {
            Some((_, story)) => story.push(line),
            None => stories.push((name.to_owned(), vec![line])),
        }
    }
    stories.sort_by(|a, b| a.1.cmp(&b.1));
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (name, _) in stories {
        let shown = generated.get(&name).unwrap_or_default().to_owned();
        let count = counts.entry(player.names.text(&shown, &Generated::default())).or_default();
        *count += 1;
        generated.set(&name, shown.replace("<r>", &format!("<r{count}>")));
    }
    generated
}

fn watched_fields(player: &Player, step: &Value, object: &Value, generated: &Generated) -> Value {
    let mut fields = Map::new();
    if object.at(&["metadata", "deletionTimestamp"]).is_some() {
        fields.insert("deleting", true);
    }
    for field in texts(step, "fields") {
        let mut found: Vec<Value> =
            select(object, field).into_iter().map(|v| player.names.value(v, generated)).collect();
        if found.len() > 1 {
            fields.insert(field, found);
        } else if let Some(value) = found.pop() {
            fields.insert(field, value);
        }
    }
    fields.into()
}

async fn events(player: &mut Player, step: &Value) -> Result<Value, String> {
    let path = step.str_at(&["events"]).filter(|p| !p.is_empty()).unwrap_or("events");
    let (_, answer) = player.get(path).await?;
    let generated = player.names.anonymous();
    let reasons = texts(step, "reasons");
    let mut out: BTreeSet<String> = BTreeSet::new();
    let mut by_text: HashMap<String, Value> = HashMap::new();
    for event in answer.get("items").and_then(Value::as_array).unwrap_or_default() {
        if !reasons.is_empty() && !reasons.contains(&event.str_at(&["reason"]).unwrap_or_default()) {
            continue;
        }
        let field = |path: &[&str]| event.at(path).cloned().unwrap_or_default();
        let from = match field(&["source", "component"]) {
            Value::String(s) if !s.is_empty() => Value::String(s),
            _ => field(&["reportingComponent"]),
        };
        let shown = map! {
            "type" => field(&["type"]),
            "reason" => field(&["reason"]),
            "message" => field(&["message"]),
            "kind" => field(&["involvedObject", "kind"]),
            "name" => field(&["involvedObject", "name"]),
            "from" => from,
        };
        let mut shown = player.names.value(&shown.into(), &generated);
        let message = player.names.message(shown.str_at(&["message"]).unwrap_or_default());
        shown.set_at(&["message"], message.into());
        let text = body_text(&shown);
        out.insert(text.clone());
        by_text.insert(text, shown);
    }
    let events: Vec<Value> = out.iter().filter_map(|text| by_text.remove(text)).collect();
    Ok(map! { "events" => events }.into())
}
