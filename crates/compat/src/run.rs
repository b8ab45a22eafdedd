//! Replaying: the steps of a case one after the other, the cases of a file in parallel.

use crate::case::{Case, body_text, fill, fill_text};
use crate::client::{Client, Request, Response, Target};
use crate::hooks::{Hooks, arrange};
use crate::normalise::{normalise, pick, scrub};
use object::{Map, Value, json, map};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// What came of a case.
#[derive(Debug)]
pub struct Outcome {
    /// The case's name.
    pub id: String,
    /// What it is about.
    pub about: String,
    /// The differences, none when it passed.
    pub differences: Vec<String>,
}

/// Replays cases, `jobs` at a time, and gives their outcomes in the order of the cases.
pub async fn replay(target: &Target, cases: Vec<Case>, jobs: usize) -> Vec<Outcome> {
    let count = cases.len();
    let queue =
        Arc::new(tokio::sync::Mutex::new(cases.into_iter().enumerate().collect::<std::collections::VecDeque<_>>()));
    let hooks = Arc::new(OnceCell::new());
    let mut workers = Vec::new();
    for _ in 0..jobs.clamp(1, count.max(1)) {
        let (queue, target, hooks) = (queue.clone(), target.clone(), hooks.clone());
        workers.push(tokio::spawn(async move {
            let mut client = Client::new(target);
            let mut outcomes = Vec::new();
            loop {
                let Some((place, case)) = queue.lock().await.pop_front() else { return outcomes };
                let differences = match run(&mut client, &case, &hooks).await {
                    Ok(differences) => differences,
                    Err(error) => vec![format!("the case broke off: {error}")],
                };
                outcomes.push((place, Outcome { id: case.id.clone(), about: case.about.clone(), differences }));
            }
        }));
    }
    let mut outcomes = Vec::new();
    for worker in workers {
        outcomes.extend(worker.await.unwrap_or_default());
    }
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs the steps, compares each answer, and removes what the case made.
async fn run(client: &mut Client, case: &Case, hooks: &OnceCell<Hooks>) -> Result<Vec<String>, String> {
    let mut made = Vec::new();
    let differences = if case.has_hooks() {
        let hooks = hooks.get_or_try_init(Hooks::start).await?;
        let (case, key) = hooks.open(case);
        steps(client, &case, Some((hooks, &key)), &mut made).await
    } else {
        steps(client, case, None, &mut made).await
    };
    clean_up(client, made).await?;
    differences
}

async fn steps(
    client: &mut Client,
    case: &Case,
    hooks: Option<(&Hooks, &str)>,
    made: &mut Vec<String>,
) -> Result<Vec<String>, String> {
    let scrubs = case.scrub();
    let mut answers: Vec<Value> = Vec::new();
    let mut differences = Vec::new();
    let mut slept = false;
    for (number, step) in case.steps().iter().enumerate() {
        if let Some(seconds) = step.get("sleep") {
            let seconds = match seconds {
                Value::Int(i) => *i as f64,
                Value::Float(f) => *f,
                _ => 0.0,
            };
            tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0))).await;
            answers.push(Value::Object(Map::new()));
            slept = true;
            continue;
        }
        let request = request(step, &answers)?;
        // What took the recorded server its time may take this one longer, on a machine that has much to do.
        let patience = if std::mem::take(&mut slept) && request.method == "GET" { EVENTUALLY } else { Duration::ZERO };
        let end = Instant::now() + patience;
        loop {
            let response = client.send(&request).await?;
            let answer = answer(&request.path, &response);
            let lines = compare(step, &response, &answer, hooks, &scrubs);
            if !lines.is_empty() && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            note_made(&request, response.code, &answer, made);
            answers.push(answer);
            if !lines.is_empty() {
                let send = step.str_at(&["send"]).unwrap_or_default();
                differences.push(format!("step {number}: {send}\n    {}", lines.join("\n    ")));
            }
            break;
        }
    }
    Ok(differences)
}

/// How long what follows a pause may take to become as recorded.
const EVENTUALLY: Duration = Duration::from_secs(15);

/// In what an answer differs from the recorded one.
fn compare(
    step: &Value,
    response: &Response,
    answer: &Value,
    hooks: Option<(&Hooks, &str)>,
    scrubs: &[regex::Regex],
) -> Vec<String> {
    let quiet = step.get("quiet").and_then(Value::as_bool).unwrap_or(false);
    let received = received(step, hooks);
    let Some(want) = step.get("expect").filter(|_| !quiet) else { return Vec::new() };
    let shown = match hooks {
        Some((hooks, key)) => hooks.clean(key, answer),
        None => answer.clone(),
    };
    let mut got = got(step, response, &shown);
    if let Some(received) = received {
        got.set_at(&["received"], received.into());
    }
    if !scrubs.is_empty() {
        let mut text = json::to_string(&got);
        for pattern in scrubs {
            text = pattern.replace_all(&text, "<x>").into_owned();
        }
        got = json::parse(text.as_bytes()).unwrap_or(got);
    }
    // Recorded answers carry the address of the server that gave them.
    let mut want = scrub_all(want);
    if let (Some(how), Some(Value::Array(wanted))) = (step.get("received"), want.remove_at(&["received"])) {
        want.set_at(&["received"], arrange(how, wanted).into());
    }
    let mut lines = Vec::new();
    if got != want {
        difference("", &want, &got, &mut lines);
        lines.truncate(12);
    }
    lines
}

/// What the case's webhooks were asked, where the step compares that.
fn received(step: &Value, hooks: Option<(&Hooks, &str)>) -> Option<Vec<Value>> {
    let (how, (hooks, key)) = (step.get("received")?, hooks?);
    let keep = list(step, "keep");
    let seen = hooks.received(key, how).iter().map(|r| normalise(&hooks.clean(key, r), &keep)).collect();
    Some(arrange(how, seen))
}

fn list<'v>(step: &'v Value, key: &str) -> Vec<&'v str> {
    step.get(key).and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

fn scrub_all(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(members.iter().map(|(k, v)| (k, scrub_all(v))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(scrub_all).collect()),
        Value::String(s) => scrub(s).into(),
        other => other.clone(),
    }
}

fn request(step: &Value, answers: &[Value]) -> Result<Request, String> {
    let send = step.str_at(&["send"]).ok_or("a step has no request")?;
    let (method, path) = send.split_once(' ').ok_or("a request has no path")?;
    let user = step.str_at(&["as"]).unwrap_or("admin");
    let accept = step.str_at(&["accept"]).unwrap_or("application/json");
    let mut headers =
        vec![("Accept".to_owned(), accept.to_owned()), ("User-Agent".to_owned(), "kcompat/1.0".to_owned())];
    if matches!(user, "admin" | "alice" | "bob") {
        headers.push(("Authorization".to_owned(), format!("Bearer {user}token")));
    }
    let body = step.get("body").map(|body| match fill(body, answers) {
        Value::String(s) => s.as_bytes().to_vec(),
        other => body_text(&other).into_bytes(),
    });
    if body.is_some() {
        let media_type = match step.str_at(&["type"]) {
            Some("json") => "application/json-patch+json",
            Some("merge") => "application/merge-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some(other) if !other.is_empty() => other,
            _ => "application/json",
        };
        headers.push(("Content-Type".to_owned(), media_type.to_owned()));
    }
    for (name, value) in step.get("headers").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        headers.push((name.to_owned(), value.as_str().unwrap_or_default().to_owned()));
    }
    Ok(Request { method: method.to_owned(), path: fill_text(path, answers), headers, body })
}

fn answer(path: &str, response: &Response) -> Value {
    let raw = || Value::Object(map! { "raw" => String::from_utf8_lossy(&response.body).into_owned() });
    if path.contains("watch=") {
        let text = String::from_utf8_lossy(&response.body);
        let events: Result<Vec<Value>, _> =
            text.lines().filter(|l| !l.trim().is_empty()).map(|l| json::parse(l.as_bytes())).collect();
        return events.map_or_else(|_| raw(), |events| Value::Object(map! { "events" => Value::Array(events) }));
    }
    json::parse(&response.body).unwrap_or_else(|_| raw())
}

fn got(step: &Value, response: &Response, answer: &Value) -> Value {
    let mut body = normalise(answer, &list(step, "keep"));
    if step.get("pick").is_some() {
        body = Value::Object(list(step, "pick").into_iter().map(|p| (p, pick(&body, p))).collect());
    }
    let mut got = map! { "code" => i64::from(response.code), "body" => body };
    // The recordings have headers as Latin-1.
    let latin = |bytes: &[u8]| bytes.iter().map(|b| char::from(*b)).collect::<String>();
    let warnings = response.headers.get_all("warning").iter().map(|v| scrub(&latin(v.as_bytes())));
    let mut warnings: Vec<String> = warnings.collect();
    if !warnings.is_empty() {
        warnings.sort();
        got.insert("warnings", Value::from(warnings));
    }
    Value::Object(got)
}

fn note_made(request: &Request, code: u16, answer: &Value, made: &mut Vec<String>) {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), code) {
        ("POST", 201) if !answer.name().is_empty() => made.push(format!("{path}/{}", answer.name())),
        ("PATCH", 201) => made.push(path.to_owned()),
        _ => {}
    }
}

async fn clean_up(client: &mut Client, mut made: Vec<String>) -> Result<(), String> {
    // Webhooks and policies go first, so that they hinder nothing.
    made.sort_by_key(|p| p.contains("/admissionregistration.k8s.io/"));
    let as_admin = |method: &str, path: &str| Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: vec![("Authorization".to_owned(), "Bearer admintoken".to_owned())],
        body: None,
    };
    for path in made.iter().rev() {
        client.send(&as_admin("DELETE", path)).await?;
    }
    for path in made.iter().filter(|p| p.contains("/customresourcedefinitions/")) {
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && client.send(&as_admin("GET", path)).await?.code != 404 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

/// Lists where two values differ, each place with what was wanted and what came.
pub(crate) fn difference(path: &str, want: &Value, got: &Value, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a.iter() {
                match b.get(key) {
                    Some(other) => difference(&format!("{path}.{key}"), value, other, out),
                    None => out.push(format!("{path}.{key}: missing {}", short(value))),
                }
            }
            for (key, value) in b.iter().filter(|(k, _)| !a.contains_key(k)) {
                out.push(format!("{path}.{key}: not wanted {}", short(value)));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (i, (value, other)) in a.iter().zip(b).enumerate() {
                difference(&format!("{path}[{i}]"), value, other, out);
            }
            for (i, value) in a.iter().enumerate().skip(b.len()) {
                out.push(format!("{path}[{i}]: missing {}", short(value)));
            }
            for (i, value) in b.iter().enumerate().skip(a.len()) {
                out.push(format!("{path}[{i}]: not wanted {}", short(value)));
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{path}:\n      want {}\n      got  {}", short(a), short(b))),
    }
}

fn short(value: &Value) -> String {
    let text = json::to_string(value);
    if text.chars().count() <= 600 { text } else { format!("{}…", text.chars().take(600).collect::<String>()) }
}
