//! What upstream's registries do with a kind beside its own checks: what a write of the status leaves alone, how often
//! metadata are checked, what is warned of.

#![allow(clippy::unwrap_used)]

use kinds::{Context, Resource};
use object::{Value, json};

fn resource(plural: &str) -> &'static Resource {
    kinds::resources().find(|r| r.plural == plural && r.storage.is_some()).unwrap()
}

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

const CONTEXT: Context<'static> = Context { now: jiff::Timestamp::UNIX_EPOCH, user: None };

/// The errors of a write, with how often each is told.
fn count(errors: &[object::field::FieldError]) -> Vec<(String, usize)> {
    let mut out: Vec<(String, usize)> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        match out.iter_mut().find(|(known, _)| *known == text) {
            Some((_, times)) => *times += 1,
            None => out.push((text, 1)),
        }
    }
    out
}

#[test]
fn a_write_of_the_status_leaves_labels_alone_where_upstream_does() {
    for (plural, labels) in [
        ("deployments", "old"),
        ("replicasets", "new"),
        ("statefulsets", "new"),
        ("daemonsets", "new"),
        ("jobs", "new"),
        ("cronjobs", "new"),
        ("ingresses", "new"),
        ("horizontalpodautoscalers", "new"),
        ("poddisruptionbudgets", "new"),
        ("servicecidrs", "old"),
    ] {
        let object = |which: &str| {
            parse(&format!(
                r#"{{"metadata":{{"labels":{{"which":"{which}"}}}},"spec":{{"a":"{which}"}},"status":{{"a":"{which}"}}}}"#
            ))
        };
        let mut new = object("new");
        resource(plural).prepare_status(&mut new, &object("old"), &CONTEXT);
        assert_eq!(new.str_at(&["metadata", "labels", "which"]), Some(labels), "{plural}");
        assert_eq!(new.str_at(&["spec", "a"]), Some("old"), "{plural}");
        assert_eq!(new.str_at(&["status", "a"]), Some("new"), "{plural}");
    }
}

#[test]
fn pods_on_their_way_out_are_counted_only_where_they_were() {
    for plural in ["deployments", "replicasets"] {
        for (old, left) in [("{}", None), (r#"{"terminatingReplicas":0}"#, Some(2))] {
            let mut new = parse(r#"{"status":{"terminatingReplicas":2}}"#);
            resource(plural).prepare_status(&mut new, &parse(&format!(r#"{{"status":{old}}}"#)), &CONTEXT);
            let found = new.at(&["status", "terminatingReplicas"]).and_then(Value::as_int);
            assert_eq!(found, left, "{plural}");
        }
    }
}

#[test]
fn kinds_without_a_generation_keep_the_one_that_they_are_made_with() {
    for (plural, generation) in
        [("configmaps", 7), ("horizontalpodautoscalers", 7), ("roles", 7), ("deployments", 1), ("networkpolicies", 1)]
    {
        let mut new = parse(r#"{"metadata":{"name":"a","generation":7}}"#);
        resource(plural).prepare_create(&mut new, &CONTEXT);
        assert_eq!(new.at(&["metadata", "generation"]).and_then(Value::as_int), Some(generation), "{plural}");
    }
}

#[test]
fn metadata_of_updates_are_checked_as_often_as_upstream_does() {
    const TEXT: &str = r#"metadata.labels: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#;
    for (plural, main, status) in [
        ("deployments", 1, 1),
        ("statefulsets", 1, 1),
        ("daemonsets", 2, 1),
        ("replicasets", 2, 1),
        ("jobs", 2, 1),
        ("cronjobs", 1, 0),
        ("poddisruptionbudgets", 0, 0),
        ("ipaddresses", 2, 1),
        ("roles", 3, 1),
        ("clusterrolebindings", 3, 1),
    ] {
        let old = parse(r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}}"#);
        let new = parse(r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"1","labels":{"a":"a b"}}}"#);
        let times = |errors: Vec<object::field::FieldError>| {
            count(&errors).iter().find(|(text, _)| text == TEXT).map_or(0, |(_, times)| *times)
        };
        assert_eq!(times(resource(plural).validate_update(&new, &old)), main, "{plural}");
        assert_eq!(times(resource(plural).validate_status(&new, &old)), status, "{plural}");
    }
}

#[test]
fn names_are_checked_as_upstream_checks_them() {
    const LABEL: &str = r#"metadata.name: Invalid value: "a.b": must not contain dots"#;
    const SEGMENT: &str = r#"metadata.name: Invalid value: "a/b": may not contain '/'"#;
    for (plural, name, wanted) in [
        ("statefulsets", "a.b", Some(LABEL)),
        ("deployments", "a.b", None),
        ("poddisruptionbudgets", "A_b", None),
        ("poddisruptionbudgets", "a/b", Some(SEGMENT)),
    ] {
        let object = parse(&format!(r#"{{"metadata":{{"name":"{name}","namespace":"n"}},"spec":{{}}}}"#));
        let errors = count(&resource(plural).validate(&object));
        let found = errors.iter().map(|(text, _)| text.as_str()).find(|text| text.starts_with("metadata."));
        assert_eq!(found, wanted, "{plural} {name}");
    }
}

#[test]
fn a_budget_is_told_of_its_name_when_the_rest_is_right() {
    let object = parse(r#"{"metadata":{"name":"a/b","namespace":"n"},"spec":{"minAvailable":-1}}"#);
    let errors = count(&resource("poddisruptionbudgets").validate(&object));
    let wanted = "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(errors, [(wanted.to_owned(), 1)]);
}

#[test]
fn rules_of_an_updated_role_are_checked_twice() {
    let object = |rules: &str| {
        parse(&format!(r#"{{"metadata":{{"name":"a","namespace":"n","resourceVersion":"1"}},"rules":{rules}}}"#))
    };
    let new = object(r#"[{"apiGroups":[""],"resources":["pods"]}]"#);
    let wanted = ("rules[0].verbs: Required value: verbs must contain at least one value".to_owned(), 2);
    assert_eq!(count(&resource("roles").validate_update(&new, &object("[]"))), [wanted]);
}

#[test]
fn an_address_that_loses_its_parent_is_told_of_both() {
    let object =
        |spec: &str| parse(&format!(r#"{{"metadata":{{"name":"10.0.0.1","resourceVersion":"1"}},"spec":{spec}}}"#));
    let old = object(r#"{"parentRef":{"resource":"services","namespace":"n","name":"a"}}"#);
    let found = count(&resource("ipaddresses").validate_update(&object("{}"), &old));
    let wanted = ["spec.parentRef: Required value", r#"spec.parentRef: Invalid value: "null": field is immutable"#];
    assert_eq!(found, wanted.map(|text| (text.to_owned(), 1)));
}

#[test]
fn warnings_are_upstreams() {
    const POINTLESS: &str =
        r#"{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}"#;
    const HIDES: &str = r#"env[1]: hides previous definition of "A", which may be dropped when using apply"#;
    let indexed = |parallelism: i64| {
        format!(
            r#"{{"metadata":{{"name":"a","generation":1}},"spec":{{"completionMode":"Indexed","completions":100001,"parallelism":{parallelism}}}}}"#
        )
    };
    let cron = |generation: i64, schedule: &str, template: &str| {
        format!(
            r#"{{"metadata":{{"name":"a","generation":{generation}}},"spec":{{"schedule":"{schedule}","jobTemplate":{{"spec":{{"template":{template}}}}}}}}}"#
        )
    };
    let claim = r#"{"metadata":{"name":"a"},"spec":{"volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":"1500m"}}}}]}}"#;
    let job = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
    let zone = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
    let fraction = r#"resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer"#;
    let plain = cron(1, "* * * * *", POINTLESS);
    let hides = format!("spec.jobTemplate.spec.template.spec.containers[0].{HIDES}");
    let rows: Vec<(&str, String, Option<String>, Vec<String>)> = vec![
        ("jobs", indexed(10_001), None, vec![format!("spec: {job}")]),
        ("jobs", indexed(10_000), None, vec![]),
        ("jobs", indexed(10_001), Some(indexed(10_001)), vec![]),
        ("cronjobs", plain.clone(), None, vec![hides.clone()]),
        ("cronjobs", plain.clone(), Some(plain.clone()), vec![]),
        // A new generation says it again, whatever changed.
        ("cronjobs", cron(2, "1 * * * *", POINTLESS), Some(plain), vec![hides]),
        ("cronjobs", cron(1, "TZ=UTC * * * * *", "{}"), Some(cron(1, "TZ=UTC * * * * *", "{}")), vec![zone.into()]),
        ("statefulsets", claim.into(), None, vec![format!("spec.volumeClaimTemplates[0].{fraction}")]),
        (
            "ingresses",
            r#"{"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}},"spec":{}}"#.into(),
            None,
            vec![
                "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
                    .into(),
            ],
        ),
        (
            "ingresses",
            r#"{"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}},"spec":{}}"#.into(),
            Some("{}".into()),
            vec![],
        ),
        (
            "statefulsets",
            claim.into(),
            Some(claim.into()),
            vec![format!("spec.volumeClaimTemplates[0].Spec.{fraction}")],
        ),
    ];
    for (plural, new, old, wanted) in rows {
        let old = old.map(|old| parse(&old));
        let found = (resource(plural).strategy.warnings)(&parse(&new), old.as_ref());
        assert_eq!(found, wanted, "{plural} {new}");
    }
}

#[test]
fn annotations_that_stand_for_fields_are_numbers() {
    const ROLLBACK: &str = "deprecated.deployment.rollback.to";
    const TEMPLATE: &str = "deprecated.daemonset.template.generation";
    for (plural, key, given, left) in [
        ("deployments", ROLLBACK, "+7", Ok(Some("7"))),
        ("deployments", ROLLBACK, "", Ok(None)),
        (
            "deployments",
            ROLLBACK,
            "x",
            Err(
                "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: strconv.ParseInt: parsing \"x\": invalid syntax",
            ),
        ),
        ("daemonsets", TEMPLATE, "7", Ok(Some("7"))),
        ("daemonsets", TEMPLATE, "", Err("strconv.ParseInt: parsing \"\": invalid syntax")),
        (
            "daemonsets",
            TEMPLATE,
            "9223372036854775808",
            Err("strconv.ParseInt: parsing \"9223372036854775808\": value out of range"),
        ),
    ] {
        let mut object =
            parse(&format!(r#"{{"metadata":{{"annotations":{{"{key}":"{given}","a":"b"}}}},"spec":{{}}}}"#));
        let version = &resource(plural).versions[0];
        (version.default)(&mut object);
        let found = (version.readable)(&object).map(|()| object.str_at(&["metadata", "annotations", key]));
        assert_eq!(found, left.map_err(str::to_owned), "{plural} {given}");
    }
    let object = parse(&format!(r#"{{"metadata":{{"annotations":{{"{ROLLBACK}":"-1"}}}},"spec":{{}}}}"#));
    let errors = count(&(resource("deployments").strategy.validate)(&object));
    let wanted = "spec.rollback.version: Invalid value: -1: must be greater than or equal to 0";
    assert!(errors.contains(&(wanted.to_owned(), 1)), "{errors:?}");
}

#[test]
fn fields_of_the_status_of_replica_sets_and_of_addresses_cannot_be_selected() {
    for (plural, names) in
        [("replicasets", &[][..]), ("ipaddresses", &[]), ("jobs", &["status.successful"]), ("deployments", &[])]
    {
        let found: Vec<&str> = resource(plural).selectable.iter().map(|f| f.name).collect();
        assert_eq!(found, names, "{plural}");
    }
}

#[test]
fn many_scopes_of_a_quota_are_judged_once_each() {
    let scopes = vec![r#""BestEffort","Nope""#; 10_000].join(",");
    let hard: Vec<String> = (0..10_000).map(|i| format!(r#""hugepages-{i}":"1""#)).collect();
    let quota =
        format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"scopes":[{scopes}],"hard":{{{}}}}}}}"#, hard.join(","));
    let errors = (resource("resourcequotas").strategy.validate)(&parse(&quota));
    let told = |why: &str| errors.iter().filter(|e| e.to_string().ends_with(why)).count();
    let (unsupported, misapplied) = (told("unsupported scope"), told("unsupported scope applied to resource"));
    assert!(unsupported + misapplied <= 100 && misapplied > 0, "{unsupported} {misapplied}");
}

#[test]
fn a_budget_with_both_bounds_is_shown_as_go_prints_it() {
    let budget = r#"{"metadata":{"name":"a"},"spec":{"minAvailable":1,"maxUnavailable":"5%","selector":{}}}"#;
    let errors = (resource("poddisruptionbudgets").strategy.validate)(&parse(budget));
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["spec: Invalid value: policy.PodDisruptionBudgetSpec{MinAvailable:(*intstr.IntOrString)(0xc000000000), \
             Selector:(*v1.LabelSelector)(0xc000000000), MaxUnavailable:(*intstr.IntOrString)(0xc000000000), \
             UnhealthyPodEvictionPolicy:(*policy.UnhealthyPodEvictionPolicyType)(nil)}: \
             minAvailable and maxUnavailable cannot be both set"]
    );
}
