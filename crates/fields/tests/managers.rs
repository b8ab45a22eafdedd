//! What writes do to the managers of an object, where no recorded case tells.
#![allow(clippy::unwrap_used)]

use fields::managed::{
    ConvertError, FieldManager, Kind, ManagerId, NoConversion, Operation, ScalePaths, VersionConverter,
    decode_managers, keep_times_of_noop, restore_invalid_entries, set_managers,
};
use fields::openapi::crd_schema;
use fields::path::FieldPath;
use object::{Value, json, yaml};
use std::sync::Arc;

fn read(text: &str) -> Value {
    yaml::parse(text.as_bytes()).unwrap()
}

const SCHEMA: &str = "{type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}, \
    replicas: {type: integer}, \
    l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], \
        items: {type: object, properties: {k: {type: string, default: ''}, v: {type: string}}}}}}}}";

fn endpoint(converter: impl VersionConverter + 'static) -> FieldManager {
    let schema = Arc::new(crd_schema(Some(&read(SCHEMA)), false));
    let kind = Kind { group: "ex.com".into(), version: "v1".into(), kind: "App".into() };
    let schemas = ["ex.com/v1", "ex.com/v2"].map(|v| (v.to_owned(), schema.clone()));
    FieldManager::new(kind, schemas, Arc::new(converter))
}

fn plain() -> FieldManager {
    endpoint(NoConversion { versions: vec!["ex.com/v1".into(), "ex.com/v2".into()] })
}

fn app(spec: &str) -> Value {
    read(&format!("{{apiVersion: ex.com/v1, kind: App, metadata: {{name: a, uid: u}}, spec: {spec}}}"))
}

/// `MANAGER/OPERATION@TIME FIELDS` of each entry, in the order of the object.
fn entries(object: &Value) -> Vec<String> {
    let list = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let text = |e: &Value, k: &str| e.get(k).and_then(Value::as_str).unwrap_or("-").replace("1970-01-01T00:00:", "");
    let fields = |e: &Value| json::to_string(e.get("fieldsV1").unwrap());
    list.iter()
        .map(|e| format!("{}/{}@{} {}", text(e, "manager"), text(e, "operation"), text(e, "time"), fields(e)))
        .collect()
}

#[test]
fn times_change_with_the_set_or_the_object_only() {
    let endpoint = plain();
    let live = endpoint.apply(None, &app("{a: x}"), "alice", false, 10).unwrap();
    assert_eq!(entries(&live), [r#"alice/Apply@10Z {"f:spec":{"f:a":{}}}"#]);
    let again = endpoint.apply(Some(&live), &app("{a: x}"), "alice", false, 20).unwrap();
    assert_eq!(again, live);
    // Upstream gives no time to a manager whose first apply changes nothing.
    let shared = endpoint.apply(Some(&live), &app("{a: x}"), "bob", false, 30).unwrap();
    assert_eq!(entries(&shared), [r#"bob/Apply@- {"f:spec":{"f:a":{}}}"#, r#"alice/Apply@10Z {"f:spec":{"f:a":{}}}"#]);
    let same = endpoint.on_update(&live, live.clone(), "tool", 40);
    assert_eq!(same, live);
}

#[test]
fn an_item_that_is_owned_without_its_fields_goes_when_it_is_applied_again() {
    let endpoint = plain();
    let config = app("{l: [{}, {k: b}]}");
    let mut live = endpoint.apply(None, &config, "alice", false, 10).unwrap();
    // The server fills in what nobody owns.
    live.set_at(&["spec"], read("{l: [{k: '', v: x}, {k: b, v: x}]}"));
    let again = endpoint.apply(Some(&live), &config, "alice", false, 20).unwrap();
    assert_eq!(again.get("spec"), Some(&read("{l: [{k: b, v: x}]}")));
}

#[test]
fn an_object_without_owners_is_tracked_from_its_first_apply_on() {
    let endpoint = plain();
    let live = endpoint.on_update(&app("{a: x}"), app("{a: w, b: z}"), "tool", 10);
    assert_eq!(entries(&live), Vec::<String>::new());
    let applied = endpoint.apply(Some(&live), &app("{a: w}"), "alice", false, 20).unwrap();
    let expected = [
        r#"alice/Apply@- {"f:spec":{"f:a":{}}}"#,
        r#"before-first-apply/Update@20Z {"f:spec":{".":{},"f:a":{},"f:b":{}}}"#,
    ];
    assert_eq!(entries(&applied), expected);
}

#[test]
fn the_oldest_updaters_are_merged_beyond_ten() {
    let endpoint = plain();
    let mut live = endpoint.on_create(app("{a: '0'}"), "m00", 1);
    for i in 1..=12 {
        let managers = live.at(&["metadata", "managedFields"]).cloned().unwrap();
        let mut new = live.clone();
        new.set_at(&["metadata", "managedFields"], managers);
        new.set_at(&["metadata", "labels", &format!("l{i:02}")], Value::from("x"));
        live = endpoint.on_update(&live, new, &format!("m{i:02}"), 1 + i);
    }
    let managers = entries(&live);
    assert_eq!(managers.len(), 10);
    assert_eq!(
        managers[0],
        r#"ancient-changes/Update@04Z {"f:metadata":{"f:labels":{".":{},"f:l01":{},"f:l02":{},"f:l03":{}}},"f:spec":{".":{},"f:a":{}}}"#
    );
    assert!(managers[1].starts_with("m04/"));
}

#[test]
fn what_a_webhook_changes_can_be_given_to_it() {
    let endpoint = plain();
    let before = endpoint.on_create(app("{a: x}"), "tool", 10);
    let mut after = before.clone();
    after.set_at(&["spec", "b"], Value::from("injected"));
    let object = endpoint.on_update(&before, after, "injector", 10);
    let expected = [r#"injector/Update@10Z {"f:spec":{"f:b":{}}}"#, r#"tool/Update@10Z {"f:spec":{".":{},"f:a":{}}}"#];
    assert_eq!(entries(&object), expected);
}

#[test]
fn ownership_in_a_version_that_is_gone_is_forgotten_or_fails_the_apply() {
    struct Fails(ConvertError);
    impl VersionConverter for Fails {
        fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
            Err(self.0.clone())
        }
    }
    let mut live = plain().on_create(app("{a: x}"), "tool", 10);
    if let Some(entry) = live.get_mut("metadata").and_then(|m| m.get_mut("managedFields")).and_then(Value::as_array_mut)
    {
        entry[0].set_at(&["apiVersion"], "ex.com/v9".into());
    }
    let missing = endpoint(Fails(ConvertError::MissingVersion));
    let applied = missing.apply(Some(&live), &app("{a: w}"), "alice", false, 20).unwrap();
    assert_eq!(entries(&applied), [r#"alice/Apply@20Z {"f:spec":{"f:a":{}}}"#]);
    let broken = endpoint(Fails(ConvertError::Failed("no way".into())));
    assert_eq!(broken.apply(Some(&live), &app("{a: w}"), "alice", false, 20).unwrap_err().to_string(), "no way");
    assert_eq!(entries(&broken.on_update(&live, app("{a: w}"), "tool", 20)), Vec::<String>::new());
}

#[test]
fn a_noop_gets_its_old_times_back() {
    let endpoint = plain();
    let old = endpoint.on_create(app("{a: x}"), "tool", 10);
    let mut new = endpoint.on_create(app("{a: x}"), "tool", 20);
    assert!(keep_times_of_noop(&old, &mut new));
    assert_eq!(old, new);
    let mut other = endpoint.on_create(app("{a: x}"), "other", 20);
    assert!(!keep_times_of_noop(&old, &mut other));
}

#[test]
fn entries_that_admission_broke_are_put_back() {
    let before = plain().on_create(app("{a: x}"), "tool", 10);
    let mut after = before.clone();
    assert_eq!(restore_invalid_entries(&before, &mut after), None);
    after.set_at(&["metadata", "managedFields"], read("[{manager: x, operation: Bad, apiVersion: v1}]"));
    let warning = restore_invalid_entries(&before, &mut after).unwrap();
    assert!(warning.ends_with("please fix your requests: operation must be `Apply` or `Update`"), "{warning}");
    assert_eq!(before, after);
}

#[test]
fn a_scale_takes_the_replicas_from_its_owner() {
    let endpoint = plain();
    let live = endpoint.apply(None, &app("{a: x, replicas: 1}"), "alice", false, 10).unwrap();
    let path = FieldPath::fields(&["spec", "replicas"]);
    let paths = ScalePaths { api_version: "ex.com/v1".into(), replicas: [("ex.com/v1".to_owned(), Some(path))].into() };
    let managers = decode_managers(&live).unwrap();
    let scale = paths.to_scale(&managers);
    assert_eq!(
        scale.values().map(|o| (o.api_version.as_str(), o.set.to_text())).collect::<Vec<_>>(),
        [("autoscaling/v1", r#"{"f:spec":{"f:replicas":{}}}"#.to_owned())]
    );
    let owned = scale.values().next().cloned().unwrap();
    let hpa = ManagerId::new("hpa", Operation::Update, "autoscaling/v1", "scale");
    let mut object = live.clone();
    set_managers(&mut object, &paths.to_object(&managers, &[(hpa, owned)].into()));
    let expected = [r#"alice/Apply@10Z {"f:spec":{"f:a":{}}}"#, r#"hpa/Update@- {"f:spec":{"f:replicas":{}}}"#];
    assert_eq!(entries(&object), expected);
    // Unchanged managers of the scale change nothing.
    assert_eq!(paths.to_object(&managers, &paths.to_scale(&managers)), managers);
}
