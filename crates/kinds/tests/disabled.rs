//! Fields of features that 1.33 has off are dropped, unless an object has them already.

#![allow(clippy::unwrap_used)]

use object::{Value, json};

const ROWS: &[(&str, &str, &str, &str)] = &[
    // Group, resource, what is sent, and what is left of it.
    ("", "persistentvolumes", r#"{"spec":{"volumeAttributesClassName":"fast"}}"#, r#"{"spec":{}}"#),
    (
        "",
        "persistentvolumeclaims",
        r#"{"spec":{"dataSourceRef":{"name":"a","namespace":"b"},"volumeAttributesClassName":"fast"}}"#,
        r#"{"spec":{}}"#,
    ),
    (
        "",
        "persistentvolumeclaims",
        r#"{"spec":{"dataSource":{"name":"a"},"dataSourceRef":{"name":"a"}}}"#,
        r#"{"spec":{"dataSource":{"name":"a"},"dataSourceRef":{"name":"a"}}}"#,
    ),
    (
        "apps",
        "statefulsets",
        r#"{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2,"partition":1}}}}"#,
        r#"{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}"#,
    ),
    (
        "autoscaling",
        "horizontalpodautoscalers",
        r#"{"spec":{"behavior":{"scaleDown":{"tolerance":"0.5"},"scaleUp":{"selectPolicy":"Max","tolerance":"0"}}}}"#,
        r#"{"spec":{"behavior":{"scaleDown":{},"scaleUp":{"selectPolicy":"Max"}}}}"#,
    ),
    (
        "discovery.k8s.io",
        "endpointslices",
        r#"{"endpoints":[{"hints":{"forNodes":[{"name":"n"}],"forZones":[{"name":"z"}]}}]}"#,
        r#"{"endpoints":[{"hints":{"forZones":[{"name":"z"}]}}]}"#,
    ),
    (
        "storage.k8s.io",
        "csidrivers",
        r#"{"spec":{"nodeAllocatableUpdatePeriodSeconds":60,"podInfoOnMount":true}}"#,
        r#"{"spec":{"podInfoOnMount":true}}"#,
    ),
    (
        "coordination.k8s.io",
        "leases",
        r#"{"spec":{"holderIdentity":"a","preferredHolder":"b","strategy":"OldestEmulationVersion"}}"#,
        r#"{"spec":{"holderIdentity":"a"}}"#,
    ),
];

#[test]
fn what_is_off_is_dropped_from_what_did_not_have_it() {
    let context = kinds::Context { now: jiff::Timestamp::UNIX_EPOCH, user: None };
    for (group, plural, sent, left) in ROWS {
        let resource = kinds::group_versions(group).into_iter().find_map(|v| kinds::find(group, v, plural)).unwrap().0;
        let parse = |text: &str| json::parse(text.as_bytes()).unwrap();
        let parts = |object: &Value| [object.get("spec").cloned(), object.get("endpoints").cloned()];
        let mut created = parse(sent);
        resource.prepare_create(&mut created, &context);
        assert_eq!(parts(&created), parts(&parse(left)), "{plural}");
        let mut updated = parse(sent);
        resource.prepare_update(&mut updated, &parse(left), &context);
        assert_eq!(parts(&updated), parts(&parse(left)), "{plural}");
        // What has it keeps it.
        let mut kept = parse(sent);
        resource.prepare_update(&mut kept, &parse(sent), &context);
        assert_eq!(parts(&kept), parts(&parse(sent)), "{plural}");
    }
}

#[test]
fn a_driver_counts_changes_from_the_first() {
    let context = kinds::Context { now: jiff::Timestamp::UNIX_EPOCH, user: None };
    let (resource, _) = kinds::find("storage.k8s.io", "v1", "csidrivers").unwrap();
    let driver = |republish: bool| {
        let text = format!(r#"{{"metadata":{{"name":"d"}},"spec":{{"requiresRepublish":{republish}}}}}"#);
        json::parse(text.as_bytes()).unwrap()
    };
    let generation = |object: &Value| object.at(&["metadata", "generation"]).and_then(Value::as_int);
    let mut old = driver(false);
    resource.prepare_create(&mut old, &context);
    assert_eq!(generation(&old), None);
    for (republish, expected) in [(false, None), (true, Some(1)), (true, Some(1)), (false, Some(2))] {
        let mut new = driver(republish);
        resource.prepare_update(&mut new, &old, &context);
        assert_eq!(generation(&new), expected);
        old = new;
    }
}
