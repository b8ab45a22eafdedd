//! Webhooks that work, deny, fail and do not answer in time, and that come and go.

use super::kinds::{CONFIG_MAP, KINDS};
use super::run::{Caller, Run};
use compat::case::Case;
use compat::client::Request;
use compat::hooks::Hooks;
use object::{Value, json};
use std::time::Duration;

/// The namespace that webhooks look at; its label says so.
pub const NAMESPACE: &str = "soak-hooks";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// The answers that the webhooks give.
const ANSWERS: &str = r#"{
    "mutate": {"patch": [{"op": "add", "path": "/data/hooked", "value": "yes"}]},
    "deny": {"response": {"allowed": false, "status": {"message": "not today", "code": 403}}},
    "broken": {"status": 500, "raw": "out of order"},
    "closed": {"close": true},
    "slow": {"delay": 4, "response": {"allowed": true}}
}"#;

/// A sort of webhook, what it is to an object that it sees, and the part of the message where it refuses.
struct Sort {
    hook: &'static str,
    policy: &'static str,
    code: u16,
    message: &'static str,
}

const SORTS: [Sort; 8] = [
    Sort { hook: "mutate", policy: "Fail", code: 201, message: "" },
    Sort { hook: "deny", policy: "Ignore", code: 403, message: "denied the request: not today" },
    Sort { hook: "broken", policy: "Ignore", code: 201, message: "" },
    Sort { hook: "broken", policy: "Fail", code: 500, message: "failed calling webhook" },
    Sort { hook: "closed", policy: "Ignore", code: 201, message: "" },
    Sort { hook: "closed", policy: "Fail", code: 500, message: "failed calling webhook" },
    Sort { hook: "slow", policy: "Ignore", code: 201, message: "" },
    Sort { hook: "slow", policy: "Fail", code: 500, message: "context deadline exceeded" },
];

/// Runs the webhooks' server and those who make and meet webhooks, until the end.
pub async fn webhooks(run: &Run) -> Result<(), String> {
    let hooks = Hooks::start().await?;
    let text = format!(
        r#"{{"hooks": {ANSWERS}, "authority": "{{{{ca}}}}", "urls": {{{}}}}}"#,
        ["mutate", "deny", "broken", "closed", "slow"]
            .map(|hook| format!(r#""{hook}": "{{{{hook:{hook}}}}}""#))
            .join(",")
    );
    let value = json::parse(text.as_bytes()).map_err(|e| e.to_string())?;
    let (case, key) = hooks.open(&Case { id: "soak".to_owned(), about: String::new(), value });
    let meet = async {
        let rounds = SORTS.iter().enumerate().map(|(number, sort)| comes_and_goes(run, &case.value, number, sort));
        futures_util::future::join_all(rounds).await;
    };
    let forget = async {
        while !run.is_over() {
            run.pause(Duration::from_secs(5)).await;
            hooks.received(&key, &Value::Null);
        }
    };
    tokio::join!(meet, forget);
    Ok(())
}

/// Makes the webhook, meets it, takes it away, and does the same without it, again and again.
async fn comes_and_goes(run: &Run, case: &Value, number: usize, sort: &Sort) {
    let mut caller = Caller::new(run);
    let place = match sort.hook {
        "mutate" => "mutatingwebhookconfigurations",
        _ => "validatingwebhookconfigurations",
    };
    let name = format!("soak-{number}");
    let configuration = configuration(case, place, &name, number, sort);
    let mut round = 0;
    while !run.is_over() {
        let path = format!("{CONFIGURATIONS}/{place}");
        let request = Request::new("POST", &*path).body("application/json", &*configuration);
        if caller.send("webhook", &request, &[201]).await.is_none() {
            return;
        }
        for _ in 0..5 {
            round += 1;
            meet(&mut caller, number, round, sort.code, sort.message, sort.hook == "mutate").await;
            run.pause(Duration::from_millis(200)).await;
        }
        caller.send("webhook", &Request::new("DELETE", format!("{path}/{name}")), &[200]).await;
        round += 1;
        meet(&mut caller, number, round, 201, "", false).await;
        run.pause(Duration::from_millis(500)).await;
    }
}

/// Creates an object that the webhook of this number is for, and deletes it.
async fn meet(caller: &mut Caller<'_>, number: usize, round: usize, code: u16, message: &str, hooked: bool) {
    let collection = KINDS[CONFIG_MAP].collection(NAMESPACE);
    let name = format!("hooked-{number}-{round}");
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"hook":"h{number}"}}}},"data":{{"a":"1"}}}}"#
    );
    let request = Request::new("POST", &*collection).body("application/json", body);
    let Some(answer) = caller.write("hooked create", CONFIG_MAP, &request, &[code]).await else { return };
    if code >= 300 {
        if !answer.message().contains(message) {
            caller.run.fault(format!("webhook {number} should say {message:?}: {}", answer.message()));
        }
        return;
    }
    if (answer.object.str_at(&["data", "hooked"]) == Some("yes")) != hooked {
        caller.run.fault(format!("webhook {number}: {}", json::to_string(&answer.object)));
    }
    caller.send("delete", &Request::new("DELETE", format!("{collection}/{name}")), &[200]).await;
}

fn configuration(case: &Value, place: &str, name: &str, number: usize, sort: &Sort) -> String {
    let kind = if place.starts_with("mutating") { "Mutating" } else { "Validating" };
    let url = case.str_at(&["urls", sort.hook]).unwrap_or_default();
    // Only what is slow on purpose is to be late.
    let timeout = if sort.hook == "slow" { 1 } else { 20 };
    let authority = case.str_at(&["authority"]).unwrap_or_default();
    format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"{kind}WebhookConfiguration","metadata":{{"name":"{name}"}},
        "webhooks":[{{"name":"{}-{number}.soak.example.com","sideEffects":"None","admissionReviewVersions":["v1"],
        "timeoutSeconds":{timeout},"failurePolicy":"{}","clientConfig":{{"url":"{url}","caBundle":"{authority}"}},
        "namespaceSelector":{{"matchLabels":{{"kubernetes.io/metadata.name":"{NAMESPACE}"}}}},
        "objectSelector":{{"matchLabels":{{"hook":"h{number}"}}}},
        "rules":[{{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}}]}}]}}"#,
        sort.hook, sort.policy
    )
}
