//! What one tenant declares, however much, slow or wrong, keeps nobody else waiting. The server holds back its writes until
//! everybody else is served: what counts is the order, not the time.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, HELD, TR, tr};
use object::Value;

/// How much one tenant declares at once: more than there are workers.
const MANY: usize = 40;

/// A template in a namespace, whose permits need nobody.
async fn template(f: &Fixture, namespace: &str, annotation: &str) {
    f.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate, metadata: {{name: t, namespace: {namespace}}}, spec: {{approvals: {{auto: true}}, resources: [{{targets: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: 'p-{{{{ .request.name }}}}', annotations: {{{annotation}: x}}}}}}]}}]}}}}")).await;
    f.ready("capsule.clastix.io/v1beta2/ResourcePermitTemplate", namespace, "t", "True", "").await;
}

const PERMIT: &str = "capsule.clastix.io/v1beta2/ResourcePermit";

async fn ask(f: &Fixture, namespace: &str, name: &str) {
    let permit = format!(
        "{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {{name: {name}, namespace: {namespace}}}, spec: {{template: {{kind: ResourcePermitTemplate, name: t}}}}}}"
    );
    // The template may be a moment old where admission looks.
    for _ in 0..common::PATIENCE {
        match f.try_apply(&permit).await {
            Err(error) if error.is_forbidden() => tokio::time::sleep(std::time::Duration::from_millis(25)).await,
            answer => return drop(answer.unwrap()),
        }
    }
    panic!("it stays forbidden");
}

fn is_active(permit: Option<&Value>) -> bool {
    permit.is_some_and(|p| p.str_at(&["status", "phase"]) == Some("Active"))
}

#[tokio::test]
async fn a_tenant_whose_writes_hang_keeps_no_other_waiting() {
    let f = Fixture::new().await;
    template(&f, "solar-a", HELD).await;
    template(&f, "wind-a", "other").await;
    f.hold();
    let maps = |names: std::ops::Range<usize>, annotation: &str| {
        let all = names.map(|i| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: NAME-{i}, annotations: {{{annotation}: x}}}}}}"
            )
        });
        format!("resources:\n- rawItems: [{}]", all.collect::<Vec<_>>().join(", "))
    };
    for i in 0..MANY {
        let name = format!("slow-{i}");
        f.apply(&tr(&name, &maps(0..20, HELD).replace("NAME", &name))).await;
        ask(&f, "solar-a", &name).await;
    }
    // Not more than two of its parents, of each kind, are worked on; none comes to an end.
    f.until_held(4).await;
    f.apply(&tr("quick", &maps(0..3, "other").replace("NAME", "quick")).replace("solar-a", "wind-a")).await;
    f.ready(TR, "wind-a", "quick", "True", "").await;
    ask(&f, "wind-a", "quick").await;
    f.until(PERMIT, "wind-a", "quick", is_active).await;
    for (kind, is_done) in [(TR, "lastApply"), (PERMIT, "from")] {
        for i in 0..MANY {
            let object = f.find(kind, "solar-a", &format!("slow-{i}")).await.unwrap();
            assert!(!object::json::to_string(&object).contains(is_done), "{kind} {i} was served first");
        }
    }
    let held = f.held();
    assert!(held.len() <= 4, "{held:?}");
    f.release();
    for i in 0..MANY {
        let name = format!("slow-{i}");
        f.ready(TR, "solar-a", &name, "True", "").await;
        f.until(PERMIT, "solar-a", &name, is_active).await;
    }
}

#[tokio::test]
async fn a_tenant_with_nothing_but_errors_keeps_no_other_waiting() {
    let f = Fixture::new().await;
    // Each fails as soon as it is looked at, and wants to be looked at each second; so does what they wait for.
    for i in 0..100 {
        let spec = format!(
            "resyncPeriod: 1s\ndependsOn: [{{name: bad-{}}}]\nresources:\n- generators: [{{template: '{{{{ fail \"no\" }}}}'}}]",
            (i + 1) % 100
        );
        f.apply(&tr(&format!("bad-{i}"), &spec)).await;
    }
    for i in 0..20 {
        let name = format!("good-{i}");
        f.apply(
            &tr(
                &name,
                &format!("resources:\n- rawItems: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}]"),
            )
            .replace("solar-a", "wind-a"),
        )
        .await;
        f.ready(TR, "wind-a", &name, "True", "").await;
    }
    for i in 0..100 {
        f.ready(TR, "solar-a", &format!("bad-{i}"), "False", "not").await;
    }
}
