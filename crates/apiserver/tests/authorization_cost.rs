//! What a decision costs. `cargo test --release -p apiserver --test authorization_cost -- --ignored --nocapture` prints it.

#![allow(clippy::unwrap_used)]

use apiserver::auth::UserInfo;
use apiserver::authorize::{Attributes, Authorizer, Decision};
use apiserver::rbac::Rbac;
use apiserver::registry::Stored;
use object::json;
use std::sync::Arc;
use std::time::Instant;
use store::{Embedded, Expect, Options, Store, Write};

const COUNT: usize = 1000;

async fn put(store: &dyn Store, key: String, text: String) {
    let value = Stored::new(&json::parse(text.as_bytes()).unwrap(), 1).raw().clone();
    store.write(Write::put(key, Expect::Any, value)).await.unwrap();
}

/// How long a decision takes, in microseconds.
async fn cost(rbac: &Rbac, user: &UserInfo, verb: &str, allowed: bool) -> f64 {
    let attributes = Attributes {
        user,
        verb,
        group: "apps",
        version: "v1",
        resource: "deployments",
        subresource: "",
        name: "d",
        namespace: "n",
        path: "",
    };
    let began = Instant::now();
    for _ in 0..COUNT {
        let decision = rbac.authorize(attributes).await;
        assert_eq!(matches!(decision, Decision::Allow(_)), allowed);
    }
    began.elapsed().as_secs_f64() * 1e6 / COUNT as f64
}

#[tokio::test]
#[ignore = "prints a figure"]
async fn a_decision_among_a_thousand_roles_and_bindings() {
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(Options::default()));
    let rules = |verb: &str| {
        format!(
            r#"{{"rules":[{{"apiGroups":[""],"resources":["pods","configmaps"],"verbs":["get","list","watch"]}},
                {{"apiGroups":["apps"],"resources":["deployments"],"verbs":["{verb}"]}}]}}"#
        )
    };
    for i in 0..COUNT {
        put(&*store, format!("/registry/roles/n/r{i}"), rules("get")).await;
        let binding = format!(
            r#"{{"roleRef":{{"kind":"Role","name":"r{i}"}},"subjects":[{{"kind":"User","name":"u{i}"}},
                {{"kind":"Group","name":"everyone"}}]}}"#
        );
        put(&*store, format!("/registry/rolebindings/n/b{i}"), binding).await;
    }
    let rbac = Rbac::open(store).await.unwrap();
    let one = UserInfo { name: "u500".into(), ..UserInfo::default() };
    let all = UserInfo { name: "x".into(), groups: vec!["everyone".into()], ..UserInfo::default() };
    for (what, user, verb, allowed) in [
        ("a user with one of the bindings, allowed", &one, "get", true),
        ("a user with one of the bindings, refused", &one, "delete", false),
        ("a user with all of the bindings, allowed by the first", &all, "get", true),
        ("a user with all of the bindings, refused after the last", &all, "delete", false),
    ] {
        println!("{what}: {:.2} µs", cost(&rbac, user, verb, allowed).await);
    }
}
