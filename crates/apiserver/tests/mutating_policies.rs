//! What MutatingAdmissionPolicies make of requests.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use apiserver::admission::Chain;
use apiserver::admission::policies::MutatingPolicies;
use object::{Value, json};
use std::sync::Arc;
use support::Fixture;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1alpha1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

async fn fixture() -> Fixture {
    let optional = vec!["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
    let admission = Arc::new(Chain::new().with(MutatingPolicies::default()));
    Fixture::new(Options { admission, optional, ..Options::default() }).await
}

/// A policy with a spec of its own, and its binding.
async fn bind(fixture: &Fixture, name: &str, rest: &str) {
    let policy = format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"reinvocationPolicy":"Never","matchConstraints":{{"resourceRules":[
            {{"apiGroups":["","apps"],"apiVersions":["v1"],"operations":["*"],"resources":["configmaps","deployments"]}}]}},{rest}}}}}"#
    );
    fixture.make(&format!("{GROUP}/mutatingadmissionpolicies"), &policy).await;
    let binding = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"policyName":"{name}"}}}}"#);
    fixture.make(&format!("{GROUP}/mutatingadmissionpolicybindings"), &binding).await;
}

async fn unbind(fixture: &Fixture, name: &str) {
    for kind in ["policies", "policybindings"] {
        fixture.send("DELETE", &format!("{GROUP}/mutatingadmission{kind}/{name}"), "").await;
    }
}

fn apply(expression: &str) -> String {
    mutations(&[("ApplyConfiguration", "applyConfiguration", expression)])
}

fn patch(expression: &str) -> String {
    mutations(&[("JSONPatch", "jsonPatch", expression)])
}

fn mutations(all: &[(&str, &str, &str)]) -> String {
    let one = |(ty, member, expression): &(&str, &str, &str)| {
        let expression = json::to_string(&Value::from(*expression));
        format!(r#"{{"patchType":"{ty}","{member}":{{"expression":{expression}}}}}"#)
    };
    format!(r#""mutations":[{}]"#, all.iter().map(one).collect::<Vec<_>>().join(","))
}

const DEPLOYMENT: &str = r#"{"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;

#[tokio::test]
async fn an_object_is_applied_as_server_side_apply_would() {
    let f = fixture().await;
    let cases = [
        (r#"Object{metadata: Object.metadata{labels: {"x": "1"}}}"#, &["metadata", "labels", "x"][..], r#""1""#),
        ("Object{spec: Object.spec{replicas: object.spec.replicas + 2}}", &["spec", "replicas"], "3"),
        (
            r#"Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
                Object.spec.template.spec.containers{name: "side", image: "s"}]}}}}"#,
            &["spec", "template", "spec", "containers"],
            r#""#,
        ),
        (
            r#"Object{spec: Object.spec{?paused: optional.none(), minReadySeconds: 7}}"#,
            &["spec", "minReadySeconds"],
            "7",
        ),
    ];
    for (expression, path, expected) in cases {
        bind(&f, "p", &apply(expression)).await;
        let made = f.make(DEPLOYMENTS, DEPLOYMENT).await;
        let found = made.at(path).cloned().unwrap_or_default();
        match expected {
            "" => {
                let names: Vec<_> = found.as_array().unwrap().iter().map(Value::clone).collect();
                let name = |v: &Value| v.str_at(&["name"]).unwrap().to_owned();
                assert_eq!(names.iter().map(name).collect::<Vec<_>>(), ["c", "side"]);
                assert_eq!(names[1].str_at(&["terminationMessagePolicy"]), Some("File"), "defaults come afterwards");
            }
            expected => assert_eq!(json::to_string(&found), expected, "{expression}"),
        }
        f.send("DELETE", &format!("{DEPLOYMENTS}/d"), "").await;
        unbind(&f, "p").await;
    }
}

#[tokio::test]
async fn what_cannot_be_applied_refuses_the_request() {
    let f = fixture().await;
    let cases = [
        (
            r#"Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"l": "v"}}}}"#,
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
        ),
        (
            "Object{spec: Object.specx{replicas: 1}}",
            r#"type mismatch: unexpected type name "Object.specx", expected "Object.spec", which matches field name path from root Object type"#,
        ),
        (
            "Object{spec: Object.spec{replicasx: 1}}",
            "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared in schema",
        ),
        (
            "Object{spec: object.spec.nothing}",
            "expression 'Object{spec: object.spec.nothing}' resulted in error: no such key: nothing",
        ),
    ];
    for (expression, why) in cases {
        bind(&f, "p", &apply(expression)).await;
        let (code, answer) = f.send("POST", DEPLOYMENTS, DEPLOYMENT).await;
        let message = format!("policy 'p' with binding 'p' denied request: {why}");
        assert_eq!((code, answer.str_at(&["message"])), (403, Some(message.as_str())));
        assert_eq!(answer.str_at(&["reason"]), Some("Invalid"));
        let causes = answer.at(&["details", "causes"]).and_then(Value::as_array).unwrap();
        assert_eq!((causes.len(), causes[0].str_at(&["message"])), (1, Some(message.as_str())));
        unbind(&f, "p").await;
        // With the other failure policy nothing happens.
        bind(&f, "p", &format!(r#"{},"failurePolicy":"Ignore""#, apply(expression))).await;
        f.make(DEPLOYMENTS, DEPLOYMENT).await;
        f.send("DELETE", &format!("{DEPLOYMENTS}/d"), "").await;
        unbind(&f, "p").await;
    }
}

#[tokio::test]
async fn json_patches_are_applied() {
    let f = fixture().await;
    let map = r#"{"metadata":{"name":"m","labels":{"x":"1"}},"data":{"n":"1"}}"#;
    let cases = [
        (r#"[JSONPatch{op: "add", path: "/data/a", value: "2"}]"#, Ok(r#"{"a":"2","n":"1"}"#)),
        (
            r#"[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("e.com/y"), value: "2"},
                JSONPatch{op: "copy", from: "/metadata/labels/e.com~1y", path: "/data/y"}]"#,
            Ok(r#"{"n":"1","y":"2"}"#),
        ),
        (r#"[JSONPatch{op: "copy", from: "/metadata/labels/x", path: "/data/y"}]"#, Ok(r#"{"n":"1","y":"1"}"#)),
        (
            r#"[JSONPatch{op: "test", path: "/data/n", value: "9"}, JSONPatch{op: "remove", path: "/data/n"}]"#,
            Ok(r#"{"n":"1"}"#),
        ),
        (r#"[JSONPatch{op: "test", path: "/data/n", value: "1"}, JSONPatch{op: "remove", path: "/data/n"}]"#, Ok("")),
        (r#"[JSONPatch{op: "replace", path: "/data", value: Object.data{b: "c"}}]"#, Ok(r#"{"b":"c"}"#)),
        (
            r#"[JSONPatch{op: "remove", path: "/nothing/x"}]"#,
            Err((403, "policy 'p' with binding 'p' denied request: JSONPath: remove operation does not apply: ")),
        ),
        (
            r#"[JSONPatch{op: "add", path: "/dataZ", value: "x"}]"#,
            Err((500, r#"Internal error occurred: strict decoding error: unknown field "dataZ""#)),
        ),
        (
            r#"[JSONPatch{op: dyn(1)}]"#,
            Err((
                403,
                "policy 'p' with binding 'p' denied request: expression '[JSONPatch{op: dyn(1)}]' resulted in error: unexpected type int64 for JSONPatchType 'op' field",
            )),
        ),
    ];
    for (expression, expected) in cases {
        bind(&f, "p", &patch(expression)).await;
        let (code, answer) = f.send("POST", MAPS, map).await;
        match expected {
            Ok(data) => {
                assert_eq!(code, 201, "{}", json::to_string(&answer));
                assert_eq!(answer.get("data").map(json::to_string).unwrap_or_default(), data, "{expression}");
            }
            Err((wanted, why)) => {
                assert_eq!(code, wanted);
                assert!(answer.str_at(&["message"]).unwrap().starts_with(why), "{}", json::to_string(&answer));
            }
        }
        f.send("DELETE", &format!("{MAPS}/m"), "").await;
        unbind(&f, "p").await;
    }
}

#[tokio::test]
async fn mutations_see_what_those_before_them_made() {
    let f = fixture().await;
    let expressions = [
        ("ApplyConfiguration", "applyConfiguration", r#"Object{data: {"a": string(size(object.data)) + variables.v}}"#),
        ("JSONPatch", "jsonPatch", r#"[JSONPatch{op: "add", path: "/data/b", value: object.data.a + "!"}]"#),
    ];
    let rest = format!(
        r#""variables":[{{"name":"v","expression":"object.metadata.name"}}],
            "matchConditions":[{{"name":"c","expression":"object.metadata.name != 'other'"}}],{}"#,
        mutations(&expressions)
    );
    bind(&f, "a", &rest).await;
    bind(&f, "b", &apply(r#"Object{data: {"c": object.data.?b.orValue("")}}"#)).await;
    let made = f.make(MAPS, r#"{"metadata":{"name":"m"},"data":{"n":"1"}}"#).await;
    assert_eq!(json::to_string(made.get("data").unwrap()), r#"{"a":"1m","b":"1m!","c":"1m!","n":"1"}"#);
    let made = f.make(MAPS, r#"{"metadata":{"name":"other"},"data":{}}"#).await;
    assert_eq!(json::to_string(made.get("data").unwrap()), r#"{"c":""}"#);
    // What is written is owned by whoever wrote.
    let (code, updated) = f.send("PATCH", &format!("{MAPS}/m"), r#"{"data":{"z":"1"}}"#).await;
    assert_eq!((code, updated.at(&["data", "a"]).and_then(Value::as_str)), (200, Some("5m")));
    let (code, _) = f.send("DELETE", &format!("{MAPS}/m"), "").await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn policies_that_ask_for_it_see_later_changes() {
    let f = fixture().await;
    bind(&f, "a-never", &apply(r#"Object{data: {"never": string(size(object.data))}}"#)).await;
    let policy = apply(r#"Object{data: {"needed": string(size(object.data))}}"#);
    bind(&f, "b-needed", &policy).await;
    let path = format!("{GROUP}/mutatingadmissionpolicies/b-needed");
    f.send("PATCH", &path, r#"{"spec":{"reinvocationPolicy":"IfNeeded"}}"#).await;
    bind(&f, "c-last", &apply(r#"Object{data: {"last": "x"}}"#)).await;
    let made = f.make(MAPS, r#"{"metadata":{"name":"m"},"data":{"n":"1"}}"#).await;
    assert_eq!(json::to_string(made.get("data").unwrap()), r#"{"last":"x","n":"1","needed":"4","never":"1"}"#);
}

#[tokio::test]
async fn parameters_are_found_as_for_validating_policies() {
    let f = fixture().await;
    let rest = r#""paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"matchConditions":[{"name":"c",
        "expression":"object.metadata.name != params.metadata.name"}],"#;
    bind(&f, "p", &format!("{rest}{}", apply(r#"Object{data: {"from": params.data.x}}"#))).await;
    let path = format!("{GROUP}/mutatingadmissionpolicybindings/p");
    f.send("PATCH", &path, r#"{"spec":{"paramRef":{"name":"params","parameterNotFoundAction":"Deny"}}}"#).await;
    let (code, message) = f.message("POST", MAPS, r#"{"metadata":{"name":"m"}}"#).await;
    let why = "policy 'p' with binding 'p' denied request: failed to configure binding: no params found for policy \
               binding with `Deny` parameterNotFoundAction";
    assert_eq!((code, message.as_str()), (403, why));
    f.send("PATCH", &path, r#"{"spec":{"paramRef":{"parameterNotFoundAction":"Allow"}}}"#).await;
    f.make(MAPS, r#"{"metadata":{"name":"params"},"data":{"x":"here"}}"#).await;
    let made = f.make(MAPS, r#"{"metadata":{"name":"m"}}"#).await;
    assert_eq!(made.str_at(&["data", "from"]), Some("here"));
}

#[tokio::test]
async fn expressions_are_compiled_when_a_policy_is_written() {
    let f = fixture().await;
    let policy = |expression: &str| {
        format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"reinvocationPolicy":"Never","matchConstraints":{{"resourceRules":[
                {{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}}]}},{}}}}}"#,
            apply(expression)
        )
    };
    let path = format!("{GROUP}/mutatingadmissionpolicies");
    let (code, message) = f.message("POST", &path, &policy("'teapot'")).await;
    let why = r#"MutatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: spec.mutations[0].applyConfiguration.expression: Invalid value: "'teapot'": must evaluate to Object but got string"#;
    assert_eq!((code, message.as_str()), (422, why));
    let made = f.make(&path, &policy("Object{}")).await;
    assert_eq!(made.str_at(&["spec", "failurePolicy"]), Some("Fail"));
    assert_eq!(made.at(&["metadata", "generation"]), Some(&Value::Int(1)));
}

#[tokio::test]
async fn a_value_that_explodes_is_an_error() {
    let f = fixture().await;
    let double = |n: usize| {
        let before = if n == 0 { "['x']".to_owned() } else { format!("variables.v{}", n - 1) };
        format!(r#"{{"name":"v{n}","expression":"[dyn({before}), dyn({before})]"}}"#)
    };
    let variables: Vec<String> = (0..40).map(double).collect();
    let rest = format!(
        r#""variables":[{}],{}"#,
        variables.join(","),
        patch(r#"[JSONPatch{op: "add", path: "/data", value: variables.v39}]"#)
    );
    bind(&f, "p", &rest).await;
    let (code, message) = f.message("POST", MAPS, r#"{"metadata":{"name":"m"}}"#).await;
    assert!(code == 403 && message.ends_with("the value is too large"), "{message}");
}
