//! Clients of mixed verbs.

use super::history::{Held, digest, set_digest};
use super::kinds::{KINDS, Kind, NAMES, NAMESPACES};
use super::random::Random;
use super::run::{Answer, Caller, Run, lock};
use compat::client::Request;
use object::{Value, json};
use std::time::Duration;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// What a client does next: the object that it means, and a text that was never written before.
struct Turn {
    number: usize,
    kind: &'static Kind,
    namespace: &'static str,
    name: String,
    team: &'static str,
    mark: String,
}

impl Turn {
    fn path(&self) -> String {
        format!("{}/{}", self.kind.collection(self.namespace), self.name)
    }

    fn object(&self) -> String {
        self.kind.object(&self.name, self.team, &self.mark)
    }
}

/// Sends requests until the end, each after a pause of `pace` on average.
pub async fn client(run: &Run, number: usize, seed: u64, pace: Duration) {
    let mut random = Random::new(seed);
    let mut caller = Caller::new(run);
    let mut turns = 0usize;
    while !run.is_over() {
        run.pause(pace.mul_f64(random.below(2000) as f64 / 1000.0)).await;
        turns += 1;
        let kind = random.below(KINDS.len());
        let turn = Turn {
            number: kind,
            kind: &KINDS[kind],
            namespace: NAMESPACES[random.below(NAMESPACES.len())],
            name: format!("o-{}", random.below(NAMES)),
            team: if random.percent(50) { "red" } else { "blue" },
            mark: format!("{number}-{turns}"),
        };
        act(&mut caller, &turn, &mut random).await;
    }
}

async fn act(caller: &mut Caller<'_>, turn: &Turn, random: &mut Random) {
    match random.below(100) {
        0..22 => create(caller, turn).await,
        22..34 => {
            caller.send("get", &Request::new("GET", turn.path()), &[200, 404]).await;
        }
        34..44 => list(caller, turn, random).await,
        44..60 => update(caller, turn).await,
        60..72 => merge(caller, turn).await,
        72..76 => {
            let patch = format!(
                r#"[{{"op":"test","path":"/metadata/name","value":"{}"}},{{"op":"add","path":"/metadata/labels/team","value":"{}"}}]"#,
                turn.name, turn.team
            );
            let request = Request::new("PATCH", turn.path()).body(JSON_PATCH, patch);
            caller.write("json patch", turn.number, &request, &[200, 404, 409]).await;
        }
        76..82 => apply(caller, turn, random).await,
        82..90 => delete(caller, turn).await,
        90..91 => delete_collection(caller, turn).await,
        91..95 => status(caller, turn).await,
        95..97 => dry_run(caller, turn).await,
        _ => refused(caller, turn, random).await,
    }
}

async fn create(caller: &mut Caller<'_>, turn: &Turn) {
    let request = Request::new("POST", turn.kind.collection(turn.namespace)).body(JSON, turn.object());
    let Some(answer) = caller.write("create", turn.number, &request, &[201, 409]).await else { return };
    if answer.code != 201 {
        return;
    }
    // What was acknowledged is seen by whoever asks next, unless somebody was faster.
    let version = |answer: &Answer| Held::read(&answer.object).map_or(0, |held| held.version);
    if let Some(read) = caller.send("get", &Request::new("GET", turn.path()), &[200, 404]).await
        && read.code == 200
        && version(&read) < version(&answer)
    {
        caller.run.fault(format!("{} is older after its create than by it", turn.path()));
    }
}

async fn list(caller: &mut Caller<'_>, turn: &Turn, random: &mut Random) {
    match random.below(4) {
        0 => {
            let request = Request::new("GET", turn.kind.everywhere());
            let Some(answer) = caller.send("list", &request, &[200]).await else { return };
            note_list(caller.run, turn.number, &items(&answer), &answer);
        }
        1 => paged(caller, turn).await,
        2 => {
            let path = format!("{}?labelSelector=team%3Dred", turn.kind.collection(turn.namespace));
            let Some(answer) = caller.send("list", &Request::new("GET", path), &[200]).await else { return };
            if items(&answer).iter().any(|held| !held.red) {
                caller.run.fault(format!("a list of {} has what its selector excludes", turn.kind.plural));
            }
        }
        _ => {
            let path = format!("{}?fieldSelector=metadata.name%3D{}", turn.kind.collection(turn.namespace), turn.name);
            let Some(answer) = caller.send("list", &Request::new("GET", path), &[200]).await else { return };
            if items(&answer).len() > 1 {
                caller.run.fault(format!("two {} have one name", turn.kind.plural));
            }
        }
    }
}

/// All pages are of one moment.
async fn paged(caller: &mut Caller<'_>, turn: &Turn) {
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let path = format!("{}?limit=7&continue={token}", turn.kind.everywhere());
        let Some(answer) = caller.send("list", &Request::new("GET", path), &[200]).await else { return };
        all.extend(items(&answer));
        token = answer.object.str_at(&["metadata", "continue"]).unwrap_or_default().to_owned();
        if token.is_empty() {
            return note_list(caller.run, turn.number, &all, &answer);
        }
    }
}

fn items(answer: &Answer) -> Vec<Held> {
    let items = answer.object.get("items").and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Held::read).collect()
}

/// The version of a list.
pub fn list_version(object: &Value) -> Option<u64> {
    object.str_at(&["metadata", "resourceVersion"])?.parse().ok()
}

fn note_list(run: &Run, kind: usize, items: &[Held], answer: &Answer) {
    match list_version(&answer.object) {
        Some(version) => lock(&run.histories[kind]).lists.push((version, set_digest(items.iter()))),
        None => run.fault(format!("a list of {} has no version", KINDS[kind].plural)),
    }
}

/// Reads, changes, writes.
async fn update(caller: &mut Caller<'_>, turn: &Turn) {
    let Some(answer) = caller.send("get", &Request::new("GET", turn.path()), &[200, 404]).await else { return };
    if answer.code != 200 {
        return;
    }
    let mut object = answer.object;
    let before = Held::read(&object);
    object.set_at(&["metadata", "annotations", "soak.example.com/mark"], turn.mark.as_str().into());
    object.set_at(&["metadata", "labels", "team"], turn.team.into());
    let request = Request::new("PUT", turn.path()).body(JSON, json::to_vec(&object));
    // An object that went meanwhile: some kinds may be made by an update, but not with a uid and a version of before.
    let Some(answer) = caller.write("update", turn.number, &request, &[200, 404, 409]).await else { return };
    let after = (answer.code == 200).then(|| Held::read(&answer.object)).flatten();
    if let (Some(before), Some(after)) = (before, after)
        && (after.uid != before.uid || after.version <= before.version)
    {
        caller.run.fault(format!("an update of {} at {} gave version {}", turn.path(), before.version, after.version));
    }
}

async fn merge(caller: &mut Caller<'_>, turn: &Turn) {
    let patch = format!(
        r#"{{"metadata":{{"annotations":{{"soak.example.com/mark":"{}"}},"labels":{{"team":"{}"}}}}}}"#,
        turn.mark, turn.team
    );
    let strategic = turn.mark.len().is_multiple_of(2) && !turn.kind.is_custom();
    let (what, form) = if strategic { ("strategic patch", STRATEGIC) } else { ("merge patch", MERGE) };
    let request = Request::new("PATCH", turn.path()).body(form, patch);
    // A patch is tried five times against changes in between.
    let Some(answer) = caller.write(what, turn.number, &request, &[200, 404, 409]).await else { return };
    let mark = answer.object.str_at(&["metadata", "annotations", "soak.example.com/mark"]);
    if answer.code == 200 && mark != Some(&turn.mark) {
        caller.run.fault(format!("the answer to a patch of {} has {mark:?} in place of {}", turn.path(), turn.mark));
    }
}

async fn apply(caller: &mut Caller<'_>, turn: &Turn, random: &mut Random) {
    let force = random.percent(70);
    let path = format!("{}?fieldManager=applier-{}&force={force}", turn.path(), random.below(3));
    let request = Request::new("PATCH", path).body(APPLY, turn.object());
    let Some(answer) = caller.write("apply", turn.number, &request, &[200, 201, 409]).await else { return };
    if force && answer.code == 409 && !answer.message().contains("the object has been modified") {
        caller.run.fault(format!("a forced apply of {}: {}", turn.path(), answer.message()));
    }
}

async fn delete(caller: &mut Caller<'_>, turn: &Turn) {
    let request = Request::new("DELETE", turn.path());
    let Some(answer) = caller.send("delete", &request, &[200, 202, 404]).await else { return };
    if answer.code >= 300 {
        return;
    }
    let uid = answer.object.str_at(&["details", "uid"]).or_else(|| answer.object.str_at(&["metadata", "uid"]));
    match uid {
        Some(uid) => lock(&caller.run.histories[turn.number]).deleted.push(digest(uid)),
        None => caller.run.fault(format!("the answer to a delete of {} names no uid", turn.path())),
    }
}

async fn delete_collection(caller: &mut Caller<'_>, turn: &Turn) {
    let path = format!("{}?labelSelector=team%3Dred", turn.kind.collection(turn.namespace));
    let Some(answer) = caller.send("deletecollection", &Request::new("DELETE", path), &[200]).await else { return };
    lock(&caller.run.histories[turn.number]).deleted.extend(items(&answer).iter().map(|held| held.uid));
}

async fn status(caller: &mut Caller<'_>, turn: &Turn) {
    let Some(patch) = turn.kind.status_patch(&turn.mark) else { return };
    let request = Request::new("PATCH", format!("{}/status", turn.path())).body(MERGE, patch);
    caller.write("status", turn.number, &request, &[200, 404, 409]).await;
}

async fn dry_run(caller: &mut Caller<'_>, turn: &Turn) {
    let path = format!("{}?dryRun=All", turn.kind.collection(turn.namespace));
    let text = turn.kind.object(&format!("dry-{}", turn.name), turn.team, &turn.mark);
    let Some(answer) = caller.send("dry run", &Request::new("POST", path).body(JSON, text), &[201]).await else {
        return;
    };
    if answer.object.at(&["metadata", "resourceVersion"]).is_some() {
        caller.run.fault(format!("a dry run of {} has a version", turn.kind.plural));
    }
}

/// What must not work does not.
async fn refused(caller: &mut Caller<'_>, turn: &Turn, random: &mut Random) {
    let collection = turn.kind.collection(turn.namespace);
    let (request, codes): (Request, &[u16]) = match random.below(6) {
        0 => (Request::new("GET", format!("{collection}/nobody")), &[404]),
        1 => (Request::new("POST", &*collection).body(JSON, turn.kind.object("not/a/name", "red", "")), &[422]),
        2 => (Request::new("POST", &*collection).body(JSON, "{"), &[400]),
        3 => {
            let mut request = Request::new("GET", &*collection);
            request.headers = vec![("Authorization".to_owned(), "Bearer alicetoken".to_owned())];
            (request, &[403])
        }
        4 => {
            let elsewhere = turn.kind.collection("nowhere");
            (Request::new("POST", elsewhere).body(JSON, turn.object()), &[404])
        }
        _ => (Request::new("PATCH", turn.path()).body("text/plain", "x"), &[415]),
    };
    caller.send("refused", &request, codes).await;
}
