//! Definitions and namespaces that come and go with all that is in them.

use super::kinds::{CONFIG_MAP, KINDS, definition};
use super::run::{Answer, Caller, Run};
use compat::client::{Client, Request};
use http_body_util::BodyExt;
use object::{Value, json};
use std::time::{Duration, Instant};

const JSON: &str = "application/json";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long what is deleted may take to be gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many objects a definition or namespace has while it is there.
const OBJECTS: usize = 5;

/// Makes a definition and objects of it, watches them, changes and deletes the definition, again and again.
pub async fn definitions(run: &Run, number: usize) {
    let mut caller = Caller::new(run);
    let (group, plural) = (format!("g{number}.soak.example.com"), "things");
    let own = format!("{DEFINITIONS}/{plural}.{group}");
    let collection = format!("/apis/{group}/v1/namespaces/soak-0/{plural}");
    while !run.is_over() {
        let request = Request::new("POST", DEFINITIONS).body(JSON, definition(&group, plural, "Thing"));
        if caller.send("definition", &request, &[201]).await.is_none() {
            return;
        }
        // A real server serves it a moment later, and says so by a condition.
        if !becomes(&mut caller, &own, established).await {
            return run.fault(format!("{own} is not established after {PATIENCE:?}"));
        }
        // Watches from before a change of the definition end with it.
        let patch = r#"{"spec":{"names":{"shortNames":["th"]}}}"#;
        let request = Request::new("PATCH", &*own).body("application/merge-patch+json", patch);
        caller.send("definition", &request, &[200]).await;
        let watch = format!("{collection}?watch=1&resourceVersion=0");
        let mut watcher = Client::new(run.target.clone());
        let watching = watcher.exchange(&Request::new("GET", watch)).await;
        for object in 0..OBJECTS {
            let body = format!(
                r#"{{"apiVersion":"{group}/v1","kind":"Thing","metadata":{{"name":"t-{object}"}},"spec":{{"size":{object}}}}}"#
            );
            caller.send("custom create", &Request::new("POST", &*collection).body(JSON, body), &[201]).await;
        }
        let body =
            format!(r#"{{"apiVersion":"{group}/v1","kind":"Thing","metadata":{{"name":"t"}},"spec":{{"size":1000}}}}"#);
        caller.send("custom create", &Request::new("POST", &*collection).body(JSON, body), &[422]).await;
        caller.send("custom list", &Request::new("GET", &*collection), &[200]).await;
        run.pause(Duration::from_millis(300)).await;
        caller.send("definition", &Request::new("DELETE", &*own), &[200]).await;
        for path in [&own, &collection] {
            if !becomes(&mut caller, path, |answer| answer.code == 404).await {
                return run.fault(format!("{path} is there {PATIENCE:?} after its deletion"));
            }
        }
        match watching {
            Ok(answer) => check_watch(run, answer.into_body()).await,
            Err(error) => run.fault(format!("a watch of {plural}: {error}")),
        }
        run.pause(Duration::from_millis(500)).await;
    }
}

/// The watch of a resource that is gone saw each object come and go, and ends.
async fn check_watch(run: &Run, mut body: hyper::body::Incoming) {
    let mut text = Vec::new();
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            text.extend_from_slice(frame.data_ref().map(|data| &data[..]).unwrap_or_default());
        }
    };
    let ended = tokio::time::timeout(PATIENCE, read).await.is_ok();
    let events: Vec<Value> = text.split(|b| *b == b'\n').filter_map(|line| json::parse(line).ok()).collect();
    let of = |ty: &str| events.iter().filter(|event| event.str_at(&["type"]) == Some(ty)).count();
    if !ended || of("ADDED") != OBJECTS || of("DELETED") != OBJECTS {
        let text = String::from_utf8_lossy(&text);
        run.fault(format!("the watch of a definition's objects that are gone (its end: {ended}) saw: {text}"));
    }
}

fn established(answer: &Answer) -> bool {
    let conditions = answer.object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().any(|c| c.str_at(&["type"]) == Some("Established") && c.str_at(&["status"]) == Some("True"))
}

/// Asks for an object until it is as wanted; says whether that came to be in time.
async fn becomes(caller: &mut Caller<'_>, path: &str, wanted: impl Fn(&Answer) -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let Some(answer) = caller.send("get", &Request::new("GET", path), &[200, 404]).await else { return true };
        if wanted(&answer) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

/// Makes a namespace and objects in it and deletes it, again and again.
pub async fn namespaces(run: &Run, number: usize) {
    let mut caller = Caller::new(run);
    let mut round = 0;
    while !run.is_over() {
        round += 1;
        let name = format!("soak-passing-{number}-{round}");
        let own = format!("/api/v1/namespaces/{name}");
        let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        if caller
            .send("namespace", &Request::new("POST", "/api/v1/namespaces").body(JSON, body), &[201])
            .await
            .is_none()
        {
            return;
        }
        let kind = &KINDS[CONFIG_MAP];
        for object in 0..OBJECTS {
            let request = Request::new("POST", kind.collection(&name));
            let request = request.body(JSON, kind.object(&format!("o-{object}"), "red", ""));
            caller.write("create", CONFIG_MAP, &request, &[201]).await;
        }
        run.pause(Duration::from_millis(300)).await;
        caller.send("namespace", &Request::new("DELETE", &*own), &[200]).await;
        // Too late, whether it is on its way or gone.
        let request = Request::new("POST", kind.collection(&name)).body(JSON, kind.object("late", "red", ""));
        caller.send("late create", &request, &[403, 404]).await;
        if !becomes(&mut caller, &own, |answer| answer.code == 404).await {
            return run.fault(format!("{own} is there {PATIENCE:?} after its deletion"));
        }
        run.pause(Duration::from_millis(500)).await;
    }
}
