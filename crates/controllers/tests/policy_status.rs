//! What is said in the status of ValidatingAdmissionPolicies.

#![allow(clippy::unwrap_used)]

use apiserver::{Options, Server};
use client::resources::VALIDATING_ADMISSION_POLICIES;
use client::{Patch, PatchParams};
use controllers::{Context, Settings, start};
use object::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const POLICY: &str = r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"p"},
    "spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],
    "resources":["deployments"]}]},"validations":[{"expression":"object.replicas > 1"}]}}"#;

#[tokio::test]
async fn a_policy_is_checked_whenever_it_changed() {
    let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
    let server = Server::new(store, Options::default()).await.unwrap();
    let context = Context::new(server, Settings::default());
    let _running = start(&context, |name| name == "validatingadmissionpolicy-status-controller");
    let api = context.client().api(&VALIDATING_ADMISSION_POLICIES);
    api.create("", &json::parse(POLICY.as_bytes()).unwrap()).await.unwrap();
    let status = async |generation: i64| {
        for _ in 0..600 {
            let policy = api.find("", "p").await.unwrap().unwrap();
            if policy.at(&["status", "observedGeneration"]) == Some(&Value::Int(generation)) {
                return policy.get("status").cloned().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("generation {generation} is not observed");
    };
    let warning = r#"{"observedGeneration":1,"typeChecking":{"expressionWarnings":[{"fieldRef":"spec.validations[0].expression",
        "warning":"apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n"}]}}"#;
    assert_eq!(status(1).await, json::parse(warning.as_bytes()).unwrap());
    let better = json::parse(br#"{"spec":{"validations":[{"expression":"object.spec.replicas > 1"}]}}"#).unwrap();
    api.patch("", "p", &Patch::Merge(better), &PatchParams::default()).await.unwrap();
    // Applying no warnings where there were some leaves nothing, as on a real server.
    assert_eq!(status(2).await, json::parse(br#"{"observedGeneration":2}"#).unwrap());
}
