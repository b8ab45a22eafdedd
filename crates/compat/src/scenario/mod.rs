//! Scenarios: sequences of requests whose outcome is produced by controllers, not by the request alone.
//!
//! A file is `{"group": NAME, "about": TEXT, "setup": [OBJECT...], "scenarios": [SCENARIO...]}`. A scenario has steps: it
//! sends requests, waits until fields have values, plays scheduler and kubelet for its pods, and records objects, watches
//! and events; each step carries what a real cluster made of it. Generated names, uids, times, hashes and addresses are
//! written as what stands for them, so that two runs compare equal. Every scenario has a namespace of its own, so that
//! all run side by side.

mod field;
mod names;
mod play;
mod player;
mod steps;
mod view;

use crate::client::{Client, Target};
use crate::run::{Outcome, difference};
use object::{Value, json, map};
use player::Player;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// A scenario that waits at least so long by its own account runs beside the others, whatever their number.
const LONG: f64 = 60.0;
/// How long a scenario may take beyond the waits it lists.
const PATIENCE: Duration = Duration::from_secs(600);

/// A file of scenarios.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Objects made before the scenarios and deleted after them.
    pub setup: Vec<Value>,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// A sequence of steps with what a real cluster made of them.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, unique within its file.
    pub id: String,
    /// What it is about.
    pub about: String,
    /// The steps as they stand in the file.
    pub steps: Vec<Value>,
}

impl Group {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = json::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let list = |v: &Value, key: &str| v.get(key).and_then(Value::as_array).unwrap_or_default().to_vec();
        let text = |v: &Value, key: &str| v.str_at(&[key]).unwrap_or_default().to_owned();
        let scenarios = list(&file, "scenarios").into_iter().map(|s| Scenario {
            id: text(&s, "id"),
            about: text(&s, "about"),
            steps: list(&s, "steps"),
        });
        Ok(Group { name: text(&file, "group"), setup: list(&file, "setup"), scenarios: scenarios.collect() })
    }
}

/// Replays scenarios, `jobs` at a time (and beside them those that take minutes), and gives their outcomes in order.
pub async fn replay(target: &Target, scenarios: Vec<Scenario>, jobs: usize) -> Vec<Outcome> {
    let places = Arc::new(Semaphore::new(jobs.max(1)));
    let tasks: Vec<_> = scenarios
        .into_iter()
        .map(|scenario| {
            let (target, places) = (target.clone(), places.clone());
            let (id, about) = (scenario.id.clone(), scenario.about.clone());
            let task = tokio::spawn(async move {
                let _place = if waits(&scenario) < LONG { places.acquire().await.ok() } else { None };
                match tokio::time::timeout(PATIENCE, run(&target, &scenario)).await {
                    Ok(Ok(differences)) => differences,
                    Ok(Err(error)) => vec![format!("the scenario broke off: {error}")],
                    Err(_) => vec![format!("the scenario did not end within {PATIENCE:?}")],
                }
            });
            (id, about, task)
        })
        .collect();
    let mut outcomes = Vec::new();
    for (id, about, task) in tasks {
        let differences = task.await.unwrap_or_else(|e| vec![format!("the scenario broke off: {e}")]);
        outcomes.push(Outcome { id, about, differences });
    }
    outcomes
}

/// Makes the objects of a file's set-up and waits until definitions are served; gives their paths.
pub async fn set_up(target: &Target, objects: &[Value]) -> Result<Vec<String>, String> {
    let mut player = Player::new(Client::new(target.clone()), String::new());
    let mut made = Vec::new();
    for object in objects {
        let version = object.str_at(&["apiVersion"]).unwrap_or_default();
        let kind = object.str_at(&["kind"]).unwrap_or_default();
        let root = if version.contains('/') { "apis" } else { "api" };
        let plural = match kind {
            "CustomResourceDefinition" => "customresourcedefinitions",
            "PriorityClass" => "priorityclasses",
            "ClusterRole" => "clusterroles",
            other => return Err(format!("a set-up cannot hold a {other}")),
        };
        let path = format!("/{root}/{version}/{plural}");
        let named = format!("{path}/{}", names::name_of(object));
        if player.send("POST", &path, Some(&("application/json", object.clone()))).await?.0 == 201 {
            made.push(named.clone());
        }
        let end = Instant::now() + Duration::from_secs(15);
        while kind == "CustomResourceDefinition" && Instant::now() < end {
            let (_, answer) = player.send("GET", &named, None).await?;
            let established = field::select(&answer, "status.conditions[type=Established].status");
            if established.first().and_then(|v| v.as_str()) == Some("True") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(made)
}

/// Deletes what [`set_up`] made.
pub async fn tear_down(target: &Target, made: &[String]) -> Result<(), String> {
    let mut player = Player::new(Client::new(target.clone()), String::new());
    for path in made {
        player.send("DELETE", path, None).await?;
    }
    Ok(())
}

/// How long the steps of a scenario wait at most for something unusual.
fn waits(scenario: &Scenario) -> f64 {
    let sleeps: f64 = scenario.steps.iter().map(|step| steps::seconds(step, "sleep", 0.0)).sum();
    let longest = scenario.steps.iter().map(|step| steps::seconds(step, "timeout", 0.0)).fold(0.0, f64::max);
    sleeps + longest
}

/// A namespace for a run of a scenario.
fn namespace(id: &str) -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let letters = b"bcdfghjkmnpqrstvwxz2456789";
    let mut number = RUNS.fetch_add(1, Ordering::Relaxed) as usize;
    let mut end = String::new();
    for _ in 0..5 {
        end.push(char::from(letters[number % letters.len()]));
        number /= letters.len();
    }
    format!("{}-{end}", id.chars().take(40).collect::<String>())
}

async fn run(target: &Target, scenario: &Scenario) -> Result<Vec<String>, String> {
    let mut player = Player::new(Client::new(target.clone()), namespace(&scenario.id));
    let body = map! {
        "apiVersion" => "v1",
        "kind" => "Namespace",
        "metadata" => map! { "name" => player.names.namespace.as_str() },
    };
    player.send("POST", "/api/v1/namespaces", Some(&("application/json", body.into()))).await?;
    let account = player.path("serviceaccounts/default")?;
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end && player.send("GET", &account, None).await?.0 != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let outcome = replay_steps(&mut player, scenario).await;
    clean_up(&mut player).await?;
    outcome
}

async fn replay_steps(player: &mut Player, scenario: &Scenario) -> Result<Vec<String>, String> {
    let mut differences = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let got = steps::run(player, step).await?;
        let (Some(got), Some(want)) = (got, step.get("expect").filter(|_| !view::flag(step, "loose"))) else {
            continue;
        };
        let mut lines = Vec::new();
        if step.get("watch").is_some() && step.str_at(&["order"]) == Some("each") {
            difference("", &by_object(want), &by_object(&got), &mut lines);
        } else {
            difference("", want, &got, &mut lines);
        }
        if !lines.is_empty() {
            lines.truncate(12);
            differences.push(format!("step {number}: {}\n    {}", head(step), lines.join("\n    ")));
            // What is not met within its time does not make the next steps any better.
            if step.get("wait").is_some() {
                break;
            }
        }
    }
    Ok(differences)
}

/// A step in short, for people.
fn head(step: &Value) -> String {
    let keys = ["send", "wait", "snapshot", "watch", "events", "play"];
    let head = keys.iter().find_map(|key| Some(format!("{key} {}", json::to_string(step.get(key)?))));
    head.unwrap_or_default()
}

/// The events of a watch, object by object.
fn by_object(events: &Value) -> Value {
    let mut out = Value::Object(object::Map::new());
    for event in events.get("events").and_then(Value::as_array).unwrap_or_default() {
        let [kind, who, fields] = event.as_array().unwrap_or_default() else { continue };
        let list =
            out.object_entry("objects").get_or_insert(who.as_str().unwrap_or_default(), || Value::Array(Vec::new()));
        if let Some(list) = list.as_array_mut() {
            list.push(Value::Array(vec![kind.clone(), fields.clone()]));
        }
    }
    out
}

/// Removes what the scenario made, whatever holds it.
async fn clean_up(player: &mut Player) -> Result<(), String> {
    let free: (&str, Value) =
        ("application/merge-patch+json", map! { "metadata" => map! { "finalizers" => Value::Null } }.into());
    for path in std::mem::take(&mut player.made).iter().rev() {
        let grace = if path.contains("/pods/") { "?gracePeriodSeconds=0" } else { "" };
        let (code, _) = player.send("DELETE", &format!("{path}{grace}"), None).await?;
        if code != 200 || path.contains("/customresourcedefinitions/") {
            continue;
        }
        let (code, answer) = player.send("GET", path, None).await?;
        if code == 200 && !field::select(&answer, "metadata.finalizers[*]").is_empty() {
            player.send("PATCH", path, Some(&free)).await?;
        }
    }
    for kind in ["jobs", "pods"] {
        let list = player.path(kind)?;
        let (_, answer) = player.send("GET", &list, None).await?;
        for object in answer.get("items").and_then(Value::as_array).unwrap_or_default() {
            let path = format!("{list}/{}", names::name_of(object));
            if object.at(&["metadata", "finalizers"]).is_some() {
                player.send("PATCH", &path, Some(&free)).await?;
            }
            if kind == "pods" {
                player.send("DELETE", &format!("{path}?gracePeriodSeconds=0"), None).await?;
            }
        }
    }
    let namespace = format!("/api/v1/namespaces/{}", player.names.namespace);
    player.send("DELETE", &namespace, None).await?;
    Ok(())
}
