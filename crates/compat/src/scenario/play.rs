//! The part of scheduler and kubelet: what they would do to pods.

use super::field::select;
use super::player::Player;
use object::{Value, map};
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts the addresses of pods, through all scenarios.
static ADDRESSES: AtomicU32 = AtomicU32::new(0);

fn next_address() -> String {
    let i = ADDRESSES.fetch_add(1, Ordering::Relaxed) + 1;
    format!("10.{}.{}.{}", 88 + i / 62500 % 12, i / 250 % 250, i % 250 + 2)
}

/// Does one thing to the pods of a list; gives how many it was done to.
pub(crate) async fn play(player: &mut Player, step: &Value) -> Result<i64, String> {
    let what = step.str_at(&["play"]).unwrap_or_default().to_owned();
    let (_, mut answer) = player.get(step.str_at(&["pods"]).unwrap_or("pods")).await?;
    let mut pods = match answer.get_mut("items") {
        Some(Value::Array(items)) => std::mem::take(items),
        _ => Vec::new(),
    };
    pods.sort_by_key(|pod| {
        let index = pod.str_at(&["metadata", "labels", "batch.kubernetes.io/job-completion-index"]);
        (index.and_then(|i| i.parse::<i64>().ok()).unwrap_or_default(), pod_name(pod).to_owned())
    });
    let wanted = step.get("name").map(|name| player.fill(name));
    let limit = step.get("limit").and_then(Value::as_int).unwrap_or(i64::MAX);
    let mut count = 0;
    for pod in &pods {
        if count >= limit {
            break;
        }
        if wanted.as_ref().is_some_and(|name| name.as_str() != Some(pod_name(pod))) {
            continue;
        }
        let done = match what.as_str() {
            "finish" => finish(player, pod).await?,
            "bind" => bind(player, pod, step).await?,
            other => report(player, pod, other, step).await?,
        };
        count += i64::from(done);
    }
    Ok(count)
}

fn pod_name(pod: &Value) -> &str {
    pod.str_at(&["metadata", "name"]).unwrap_or_default()
}

fn url(pod: &Value) -> String {
    let namespace = pod.str_at(&["metadata", "namespace"]).unwrap_or_default();
    format!("/api/v1/namespaces/{namespace}/pods/{}", pod_name(pod))
}

fn is_going(pod: &Value) -> bool {
    pod.at(&["metadata", "deletionTimestamp"]).is_some()
}

async fn finish(player: &mut Player, pod: &Value) -> Result<bool, String> {
    Ok(is_going(pod) && player.send("DELETE", &format!("{}?gracePeriodSeconds=0", url(pod)), None).await?.0 == 200)
}

async fn bind(player: &mut Player, pod: &Value, step: &Value) -> Result<bool, String> {
    if pod.str_at(&["spec", "nodeName"]).is_some_and(|n| !n.is_empty()) || is_going(pod) {
        return Ok(false);
    }
    let affinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                    .matchFields[key=metadata.name].values[0]";
    let node = match step.get("node") {
        Some(node) => player.fill(node),
        None => select(pod, affinity).first().map_or("none".into(), |&v| v.clone()),
    };
    let binding = map! {
        "apiVersion" => "v1",
        "kind" => "Binding",
        "metadata" => map! { "name" => pod_name(pod) },
        "target" => map! { "kind" => "Node", "name" => node },
    };
    let body = ("application/json", binding.into());
    Ok(player.send("POST", &format!("{}/binding", url(pod)), Some(&body)).await?.0 == 201)
}

/// Reports a state as the kubelet does; pods already so, ended or terminating ones are left out.
async fn report(player: &mut Player, pod: &Value, what: &str, step: &Value) -> Result<bool, String> {
    let phase = pod.str_at(&["status", "phase"]).unwrap_or_default();
    let ready = select(pod, "status.conditions[type=Ready].status").first().and_then(|v| v.as_str()) == Some("True");
    let terminating = step.get("terminating").and_then(Value::as_bool).unwrap_or(false);
    if is_going(pod) && !terminating || matches!(phase, "Failed" | "Succeeded") {
        return Ok(false);
    }
    if matches!((what, ready, phase), ("ready", true, _) | ("unready", false, _) | ("running", _, "Running")) {
        return Ok(false);
    }
    let address = match pod.str_at(&["status", "podIP"]) {
        Some(address) => address.to_owned(),
        None => next_address(),
    };
    player.names.addresses.insert(address.clone(), pod_name(pod).to_owned());
    let body =
        ("application/strategic-merge-patch+json", map! { "status" => status(pod, what, step, &address) }.into());
    Ok(player.send("PATCH", &format!("{}/status", url(pod)), Some(&body)).await?.0 == 200)
}

fn status(pod: &Value, what: &str, step: &Value, address: &str) -> Value {
    let now = super::player::now();
    let on = if what == "ready" { "True" } else { "False" };
    let mut conditions: Vec<Value> = [
        ("PodScheduled", "True"),
        ("Initialized", "True"),
        ("ContainersReady", on),
        ("Ready", on),
    ]
    .into_iter()
    .map(|(kind, status)| {
        let mut condition = map! {
            "type" => kind, "status" => status, "lastTransitionTime" => now.as_str(), "lastProbeTime" => Value::Null,
        };
        if what == "succeeded" && matches!(kind, "ContainersReady" | "Ready") {
            condition.insert("reason", "PodCompleted");
        }
        condition.into()
    })
    .collect();
    if let Some(more) = step.get("condition").and_then(Value::as_object) {
        let mut condition = map! { "lastTransitionTime" => now.as_str(), "lastProbeTime" => Value::Null };
        for (key, value) in more.iter() {
            condition.insert(key, value.clone());
        }
        conditions.push(condition.into());
    }
    let code = step.get("exit").and_then(Value::as_int).unwrap_or(i64::from(what != "succeeded"));
    let running = matches!(what, "running" | "ready" | "unready");
    let containers = pod.at(&["spec", "containers"]).and_then(Value::as_array).unwrap_or_default();
    let containers: Vec<Value> = containers
        .iter()
        .map(|container| {
            let state = if running {
                map! { "running" => map! { "startedAt" => now.as_str() } }
            } else {
                let reason = if code == 0 { "Completed" } else { "Error" };
                let ended = map! {
                    "exitCode" => code, "reason" => reason, "startedAt" => now.as_str(), "finishedAt" => now.as_str(),
                };
                map! { "terminated" => ended }
            };
            let image = container.str_at(&["image"]).unwrap_or_default();
            let shown = map! {
                "name" => container.str_at(&["name"]).unwrap_or_default(),
                "image" => image,
                "imageID" => format!("sim://{image}"),
                "ready" => on == "True",
                "restartCount" => 0,
                "started" => running,
                "state" => state,
                "lastState" => object::Map::new(),
            };
            shown.into()
        })
        .collect();
    let phase = match what {
        "failed" => "Failed",
        "succeeded" => "Succeeded",
        _ => "Running",
    };
    let start = pod.str_at(&["status", "startTime"]).unwrap_or(&now);
    let status = map! {
        "phase" => phase,
        "startTime" => start,
        "podIP" => address,
        "podIPs" => vec![map! { "ip" => address }],
        "hostIP" => "192.0.2.9",
        "conditions" => conditions,
        "containerStatuses" => containers,
    };
    status.into()
}
