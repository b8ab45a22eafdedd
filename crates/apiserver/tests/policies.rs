//! Writes of admission policies and their bindings.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use apiserver::authorize::{Answer, Attributes, Authorizer, Decision, Reason};
use std::sync::{Arc, Mutex};
use support::Fixture;

const GROUP: &str = "/apis/admissionregistration.k8s.io";

/// Lets everybody write policies and nobody read anything else; remembers what was asked of the latter.
#[derive(Debug, Default)]
struct Writers(Mutex<Vec<String>>);

impl Authorizer for Writers {
    fn authorize<'a>(&'a self, asked: Attributes<'a>) -> Answer<'a, Decision> {
        let is_write = asked.resource.contains("admissionpolic");
        if !is_write {
            let Attributes { verb, group, version, resource, namespace, name, .. } = asked;
            self.0.lock().unwrap().push(format!("{verb} {group}/{version} {resource} {namespace}/{name}"));
        }
        let decision = if is_write { Decision::Allow(Reason::NONE) } else { Decision::Deny(String::new()) };
        Box::pin(std::future::ready(decision))
    }
}

struct Asked {
    fixture: Fixture,
    writers: Arc<Writers>,
}

impl Asked {
    async fn new() -> Self {
        let writers = Arc::new(Writers::default());
        let optional = vec!["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
        let options = Options { authorizer: writers.clone(), optional, ..Options::default() };
        Asked { fixture: Fixture::new(options).await, writers }
    }

    /// The code and message of a write by Bob, and what was asked for it.
    async fn write(&self, method: &str, path: &str, body: &str) -> (u16, String, Vec<String>) {
        self.writers.0.lock().unwrap().clear();
        let (code, answer) = self.fixture.send_as("bob", &["dev"], method, &format!("{GROUP}/{path}"), body).await;
        let message = answer.str_at(&["message"]).unwrap_or_default().to_owned();
        (code, message, self.writers.0.lock().unwrap().clone())
    }

    async fn make_as_master(&self, path: &str, body: &str) {
        let path = format!("{GROUP}/{path}");
        let (code, answer) = self.fixture.send_as("root", &["system:masters"], "POST", &path, body).await;
        assert_eq!(code, 201, "{answer:?}");
    }
}

const RULES: &str = r#""matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],
    "resources":["pods"]}]}"#;

fn policy(kind: Option<(&str, &str)>, expression: &str) -> String {
    let kind = kind.map(|(version, kind)| format!(r#","paramKind":{{"apiVersion":"{version}","kind":"{kind}"}}"#));
    let kind = kind.unwrap_or_default();
    format!(r#"{{"metadata":{{"name":"p"}},"spec":{{{RULES}{kind},"validations":[{{"expression":"{expression}"}}]}}}}"#)
}

const POLICIES: &str = "v1/validatingadmissionpolicies";

#[tokio::test]
async fn whoever_names_a_kind_of_parameters_may_read_them() {
    let asked = Asked::new().await;
    let refused = |kind: &str, version: &str| {
        format!(
            "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.paramKind: Forbidden: user \
             &{{bob  [dev] map[]}} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
             apiVersion={version})"
        )
    };
    for (version, kind, question) in [
        ("v1", "ConfigMap", "get /v1 configmaps */*"),
        ("apps/v1", "Deployment", "get apps/v1 deployments */*"),
        // What there is none of may be anything.
        ("x.example.com/v1", "Nope", "get x.example.com/v1 * */*"),
    ] {
        let outcome = asked.write("POST", POLICIES, &policy(Some((version, kind)), "true")).await;
        assert_eq!(outcome, (422, refused(kind, version), vec![question.to_owned()]));
    }
    // What is wrong in itself is said first.
    let (code, message, questions) = asked.write("POST", POLICIES, &policy(Some(("v1", "ConfigMap")), "1")).await;
    assert_eq!((code, questions), (422, vec![]));
    assert!(message.contains("must evaluate to bool") && !message.contains("paramKind"), "{message}");
    assert_eq!(asked.write("POST", POLICIES, &policy(None, "true")).await.0, 201);
    // Only another kind is asked about.
    asked.fixture.send_as("root", &["system:masters"], "DELETE", &format!("{GROUP}/{POLICIES}/p"), "").await;
    asked.make_as_master(POLICIES, &policy(Some(("v1", "ConfigMap")), "true")).await;
    let path = format!("{POLICIES}/p");
    let (code, message, questions) = asked.write("PATCH", &path, r#"{"spec":{"failurePolicy":"Ignore"}}"#).await;
    assert_eq!((code, message, questions), (200, String::new(), vec![]));
    let (code, message, _) = asked.write("PATCH", &path, r#"{"spec":{"paramKind":{"kind":"Secret"}}}"#).await;
    assert_eq!((code, message), (422, refused("Secret", "v1")));
}

#[tokio::test]
async fn whoever_binds_parameters_may_read_them() {
    let asked = Asked::new().await;
    asked.make_as_master(POLICIES, &policy(Some(("v1", "ConfigMap")), "true")).await;
    let mutating = format!(
        r#"{{"metadata":{{"name":"p"}},"spec":{{{RULES},"paramKind":{{"apiVersion":"v1","kind":"Secret"}},
            "reinvocationPolicy":"Never","mutations":[{{"patchType":"JSONPatch","jsonPatch":{{
            "expression":"[JSONPatch{{op: 'remove', path: '/x'}}]"}}}}]}}}}"#
    );
    asked.make_as_master("v1alpha1/mutatingadmissionpolicies", &mutating).await;
    let binding = |policy: &str, reference: &str, rest: &str| {
        let action = r#""parameterNotFoundAction":"Deny""#;
        format!(
            r#"{{"metadata":{{"name":"b"}},"spec":{{"policyName":"{policy}","paramRef":{{{reference},{action}}}{rest}}}}}"#
        )
    };
    let refused = |kind: &str, verb: &str| {
        format!(
            "{kind}AdmissionPolicyBinding.admissionregistration.k8s.io \"b\" is invalid: spec.paramRef: Forbidden: user {verb} \
             does not have \"&{{bob  [dev] map[]}}\" permission on the object referenced by paramRef"
        )
    };
    const DENY: &str = r#","validationActions":["Deny"]"#;
    const BINDINGS: &str = "v1/validatingadmissionpolicybindings";
    for (policy, reference, verb, question) in [
        ("p", r#""name":"n","namespace":"ns""#, "get", "get /v1 configmaps ns/n"),
        ("p", r#""name":"n""#, "get", "get /v1 configmaps /n"),
        ("p", r#""selector":{}"#, "list", "list /v1 configmaps /"),
        ("none", r#""name":"n""#, "get", "get */* * /n"),
    ] {
        let outcome = asked.write("POST", BINDINGS, &binding(policy, reference, DENY)).await;
        assert_eq!(outcome, (422, refused("Validating", verb), vec![question.to_owned()]));
    }
    let mutating = binding("p", r#""name":"n""#, "");
    let outcome = asked.write("POST", "v1alpha1/mutatingadmissionpolicybindings", &mutating).await;
    assert_eq!(outcome, (422, refused("Mutating", "get"), vec!["get /v1 secrets /n".to_owned()]));
    // Every update of a binding with parameters is asked about.
    asked.make_as_master(BINDINGS, &binding("p", r#""name":"n""#, DENY)).await;
    let path = format!("{BINDINGS}/b");
    let (code, message, _) = asked.write("PATCH", &path, r#"{"spec":{"validationActions":["Audit"]}}"#).await;
    assert_eq!((code, message), (422, refused("Validating", "get")));
    let (code, _, questions) = asked.write("PATCH", &path, r#"{"spec":{"paramRef":null}}"#).await;
    assert_eq!((code, questions), (200, vec![]));
}
