//! Tables of facts about what a version of a definition makes of objects.

#![allow(clippy::unwrap_used, reason = "a table that cannot be read has failed")]

use object::{Value, json, yaml};
use schema::Version;

fn version(schema: &str) -> Version {
    let schema = json::to_string(&yaml::parse(schema.as_bytes()).unwrap());
    let definition = format!(
        r#"{{"spec":{{"group":"ex.com","scope":"Cluster","names":{{"kind":"Box"}},"versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{schema}}}}}}}}}]}}}}"#
    );
    Version::new(&json::parse(definition.as_bytes()).unwrap(), "v1").unwrap().unwrap()
}

fn object(spec: &str) -> Value {
    let spec = json::to_string(&yaml::parse(spec.as_bytes()).unwrap());
    let text = format!(
        r#"{{"apiVersion":"ex.com/v1","kind":"Box","metadata":{{"name":"b","resourceVersion":"1"}},"spec":{spec}}}"#
    );
    json::parse(text.as_bytes()).unwrap()
}

#[test]
fn unknown_members_are_told_in_the_order_of_their_paths_as_texts() {
    let version = version("{type: object, properties: {l: {type: array, items: {type: object}}, a: {type: object}}}");
    let mut object = object("{a: {x: 1}, a-b: 1, l: [{}, {}, {z: 1}, {}, {}, {}, {}, {}, {}, {}, {z: 1}]}");
    assert_eq!(version.receive(&mut object, true).unwrap(), ["spec.a-b", "spec.a.x", "spec.l[10].z", "spec.l[2].z"]);
}

#[test]
fn a_wrong_count_of_members_does_not_hide_what_is_wrong_inside() {
    let version = version("{type: object, minProperties: 2, properties: {a: {type: integer, maximum: 1}}}");
    let errors: Vec<String> = version.validate(&object("{a: 2}")).errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "spec: Invalid value: 1: spec in body should have at least 2 properties",
            "spec.a: Invalid value: 2: spec.a in body should be less than or equal to 1",
        ]
    );
}

#[test]
fn items_without_their_key_are_never_the_ones_that_were_there() {
    let version = version(
        "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k],
            items: {type: object, required: [k], properties: {k: {type: string}, v: {type: integer, maximum: 1}}}}}}",
    );
    for (old, new, told) in [
        ("{l: [{k: a, v: 2}]}", "{l: [{k: b}, {k: a, v: 2}]}", vec![]),
        (
            "{l: [{v: 2}]}",
            "{l: [{v: 2}]}",
            vec![
                "spec.l[0].v: Invalid value: 2: spec.l[0].v in body should be less than or equal to 1",
                "spec.l[0].k: Required value",
            ],
        ),
    ] {
        let outcome = version.validate_update(&object(new), &object(old));
        let errors: Vec<String> = outcome.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, told, "{old} {new}");
    }
}
