//! The server with its manager is killed again and again while tenants, what they declare, and permits change. In the end
//! there is exactly what is declared: nothing is missing, nothing is left over, nothing of others was touched.
//!
//! `STANCHION_KILLS` sets how often (4 by default), `STANCHION_KILLS_SEED` what happens.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request, Target};
use compat::server::Server;
use object::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const KINDS: &str = "/apis/capsule.clastix.io/v1beta2";
const SPACES: [&str; 4] = ["a-0", "a-1", "b-0", "b-1"];
/// What is said of an object that only others have to do with.
const THEIRS: &str = "theirs";
/// How long it may take until everything is as declared.
const PATIENCE: Duration = Duration::from_secs(40);

/// ConfigMaps by namespace and name, with their data.
type Maps = BTreeMap<(String, String), BTreeMap<String, String>>;

/// Numbers that look random, and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

fn apply(path: &str, object: String) -> Request {
    Request::new("PATCH", format!("{path}?fieldManager=churn&force=true")).body("application/apply-patch+yaml", object)
}

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    value.str_at(path).unwrap_or_default()
}

/// A request that must succeed, later if not at once: after a start the kinds are not served yet.
async fn must(client: &mut Client, request: Request) -> Value {
    let start = Instant::now();
    loop {
        let answer = client.send(&request).await.unwrap();
        if answer.code < 300 {
            return json::parse(&answer.body).unwrap();
        }
        assert!(start.elapsed() < PATIENCE, "{}: {}", request.path, String::from_utf8_lossy(&answer.body));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn items(client: &mut Client, path: &str) -> Vec<Value> {
    let list = must(client, Request::new("GET", path)).await;
    list.get("items").and_then(Value::as_array).unwrap_or_default().to_vec()
}

fn space(name: &str, tenant: &str) -> Request {
    apply(
        &format!("/api/v1/namespaces/{name}"),
        format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}","labels":{{"capsule.clastix.io/tenant":"{tenant}"}}}}}}"#
        ),
    )
}

/// Tenants and namespaces, a template, and objects of others.
async fn build(client: &mut Client) {
    must(client, Request::new("GET", format!("{KINDS}/resourcepermits"))).await;
    for tenant in ["a", "b"] {
        let body = format!(
            r#"{{"apiVersion":"capsule.clastix.io/v1beta2","kind":"Tenant","metadata":{{"name":"{tenant}"}},"spec":{{"owners":[]}}}}"#
        );
        must(client, apply(&format!("{KINDS}/tenants/{tenant}"), body)).await;
    }
    for name in SPACES {
        must(client, space(name, &name[..1])).await;
        for foreign in ["foreign", "s0"] {
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{foreign}"}},"data":{{"{THEIRS}":"x"}}}}"#
            );
            let request = Request::new("POST", format!("/api/v1/namespaces/{name}/configmaps"));
            must(client, request.body("application/json", body)).await;
        }
    }
    let template = r#"{"apiVersion":"capsule.clastix.io/v1beta2","kind":"ResourcePermitTemplate","metadata":{"name":"t"},"spec":{"approvals":{"auto":true},"resources":[{"targets":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .request.name }}"},"data":{"permit":"x"}}]}]}}"#;
    must(client, apply(&format!("{KINDS}/namespaces/a-0/resourcepermittemplates/t"), template.to_owned())).await;
}

/// What a parent declares next: some objects that are its own, and some that it shares with others.
fn declaration(kind: &str, name: &str, dice: &mut Dice) -> String {
    let value = dice.below(1000);
    let object = |object: String| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{object}"}},"data":{{"{name}":"{value}"}}}}"#
        )
    };
    let mut some = |prefix: &str| {
        let chosen = (0..4).filter(|_| dice.below(2) == 0).map(|i| object(format!("{prefix}{i}")));
        chosen.collect::<Vec<_>>().join(",")
    };
    let (own, shared) = (some(&format!("{name}-")), some("s"));
    let protect = dice.below(2) == 0;
    format!(
        r#"{{"apiVersion":"capsule.clastix.io/v1beta2","kind":"{kind}","metadata":{{"name":"{name}"}},"spec":{{"resyncPeriod":"2s","resources":[{{"policy":{{"protect":{protect}}},"rawItems":[{own}]}},{{"policy":{{"creation":"Merge"}},"rawItems":[{shared}]}}]}}}}"#
    )
}

/// Changes this and that until the server is gone. What is refused is no matter: the end is compared with what is there.
async fn churn(target: Target, mut dice: Dice) -> Dice {
    let mut client = Client::new(target);
    loop {
        let place = ["a-0", "b-0"][dice.below(2) as usize];
        let resource = format!("r{}", dice.below(3));
        let (kind, name, path) = match dice.below(4) {
            0 => ("GlobalTenantResource", format!("g{resource}"), format!("{KINDS}/globaltenantresources/g{resource}")),
            _ => {
                let name = format!("{}{resource}", &place[..1]);
                let path = format!("{KINDS}/namespaces/{place}/tenantresources/{name}");
                ("TenantResource", name, path)
            }
        };
        let permit = format!("{KINDS}/namespaces/a-0/resourcepermits/p{}", dice.below(6));
        let request = match dice.below(12) {
            0 => space("a-1", ["a", "b"][dice.below(2) as usize]),
            1 => Request::new("DELETE", path),
            2 => Request::new("PATCH", format!("{permit}/status"))
                .body("application/merge-patch+json", r#"{"status":{"phase":"Expired"}}"#),
            3 | 4 => {
                let name = permit.rsplit('/').next().unwrap_or_default();
                let duration = if dice.below(2) == 0 { r#""duration":"1s","# } else { "" };
                let body = format!(
                    r#"{{"apiVersion":"capsule.clastix.io/v1beta2","kind":"ResourcePermit","metadata":{{"name":"{name}"}},"spec":{{{duration}"template":{{"kind":"ResourcePermitTemplate","name":"t"}}}}}}"#
                );
                Request::new("POST", permit.rsplit_once('/').unwrap().0).body("application/json", body)
            }
            _ => apply(&path, declaration(kind, &name, &mut dice)),
        };
        if client.send(&request).await.is_err() {
            return dice;
        }
    }
}

/// What should be there, by what is declared now; `None` while something is on its way.
async fn declared(client: &mut Client) -> Option<Maps> {
    let mut wanted = Maps::new();
    let mut spaces: Vec<(String, String)> = Vec::new();
    for namespace in items(client, "/api/v1/namespaces").await {
        if SPACES.contains(&namespace.name()) {
            let tenant = text(&namespace, &["metadata", "labels", "capsule.clastix.io/tenant"]);
            spaces.push((namespace.name().to_owned(), tenant.to_owned()));
        }
    }
    for (name, _) in &spaces {
        for foreign in ["foreign", "s0"] {
            wanted.entry((name.clone(), foreign.to_owned())).or_default().insert(THEIRS.to_owned(), "x".to_owned());
        }
    }
    let mut parents = items(client, &format!("{KINDS}/tenantresources")).await;
    parents.extend(items(client, &format!("{KINDS}/globaltenantresources")).await);
    for parent in parents {
        if !text(&parent, &["metadata", "deletionTimestamp"]).is_empty() {
            return None;
        }
        let tenant = spaces.iter().find(|(name, _)| name == parent.namespace()).map(|(_, tenant)| tenant.clone());
        let blocks = parent.at(&["spec", "resources"]).and_then(Value::as_array).unwrap_or_default();
        let raw = blocks.iter().flat_map(|b| b.get("rawItems").and_then(Value::as_array).unwrap_or_default());
        for item in raw {
            for (place, _) in spaces.iter().filter(|(_, of)| tenant.as_ref().is_none_or(|tenant| tenant == of)) {
                wanted.entry((place.clone(), item.name().to_owned())).or_default().extend(data(item));
            }
        }
    }
    for permit in items(client, &format!("{KINDS}/resourcepermits")).await {
        if text(&permit, &["status", "phase"]) != "Active" || permit.at(&["status", "active", "until"]).is_some() {
            return None;
        }
        let key = ("a-0".to_owned(), permit.name().to_owned());
        wanted.insert(key, BTreeMap::from([("permit".to_owned(), "x".to_owned())]));
    }
    Some(wanted)
}

fn data(object: &Value) -> BTreeMap<String, String> {
    let members = object.get("data").and_then(Value::as_object);
    members
        .iter()
        .flat_map(|m| m.iter())
        .map(|(k, v)| (k.to_owned(), v.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// What is there; with what is wrong about the marks.
async fn found(client: &mut Client) -> (Maps, Vec<String>, BTreeMap<String, String>) {
    let (mut maps, mut problems, mut uids) = (Maps::new(), Vec::new(), BTreeMap::new());
    for map in items(client, "/api/v1/configmaps").await {
        if !SPACES.contains(&map.namespace()) || map.name() == "kube-root-ca.crt" {
            continue;
        }
        let is_managed = data(&map).keys().any(|key| key != THEIRS);
        if is_managed != map.label("projectcapsule.dev/managed-by").is_some() {
            problems.push(format!(
                "{}/{}: the marks are wrong: {}",
                map.namespace(),
                map.name(),
                json::to_string(&map)
            ));
        }
        uids.insert(format!("{}/{}", map.namespace(), map.name()), map.meta_str("uid").to_owned());
        maps.insert((map.namespace().to_owned(), map.name().to_owned()), data(&map));
    }
    (maps, problems, uids)
}

/// What differs, once nothing is on its way any more.
async fn differences(client: &mut Client) -> Vec<String> {
    let Some(wanted) = declared(client).await else { return vec!["something is on its way".to_owned()] };
    let (there, mut problems, _) = found(client).await;
    for (key, data) in &wanted {
        if there.get(key) != Some(data) {
            problems.push(format!("{key:?} should be {data:?}, and is {:?}", there.get(key)));
        }
    }
    let left = there.keys().filter(|key| !wanted.contains_key(*key));
    problems.extend(left.map(|key| format!("{key:?} is left over: {:?}", there.get(key))));
    problems
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_declared_is_there_after_kills_and_nothing_else() {
    let kills = variable("STANCHION_KILLS", 4);
    let mut dice = Dice(variable("STANCHION_KILLS_SEED", 4711).max(1));
    let mut server = Server::start_durable(Path::new(env!("CARGO_BIN_EXE_stanchion")), &["--manager"]).unwrap();
    build(&mut Client::new(server.target.clone())).await;
    let foreign: BTreeMap<String, String> = found(&mut Client::new(server.target.clone())).await.2;
    for kill in 0..kills {
        let churning = tokio::spawn(churn(server.target.clone(), dice));
        tokio::time::sleep(Duration::from_millis(300 + kill * 613 % 1200)).await;
        server.kill();
        dice = churning.await.unwrap();
        server.restart().unwrap();
        // Now and then everything comes to rest, so that later kills begin from there.
        if kill % 4 != 3 && kill + 1 != kills {
            continue;
        }
        let mut client = Client::new(server.target.clone());
        must(&mut client, Request::new("GET", format!("{KINDS}/resourcepermits"))).await;
        let start = Instant::now();
        loop {
            let problems = differences(&mut client).await;
            if problems.is_empty() {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "after {} kills:\n{}", kill + 1, problems.join("\n"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let now = found(&mut client).await.2;
        let touched: Vec<&String> =
            foreign.iter().filter(|(k, uid)| now.get(*k) != Some(uid)).map(|(k, _)| k).collect();
        assert!(touched.is_empty(), "objects of others were made anew: {touched:?}");
    }
}
