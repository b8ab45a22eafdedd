//! What people are told about ownership.
#![allow(clippy::unwrap_used)]

use fields::explain::{Effect, Owners, Plan};
use fields::managed::{FieldManager, Kind, NoConversion, decode_managers};
use fields::openapi::crd_schema;
use object::{Value, yaml};
use std::sync::Arc;

fn read(text: &str) -> Value {
    yaml::parse(text.as_bytes()).unwrap()
}

fn endpoint() -> FieldManager {
    let schema = read(
        "
type: object
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer}
      image: {type: string}
      tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
      args: {type: array, items: {type: string}}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, properties: {name: {type: string}, port: {type: integer}}}
",
    );
    let kind = Kind { group: "ex.com".into(), version: "v1".into(), kind: "App".into() };
    let converter = NoConversion { versions: vec!["ex.com/v1".into()] };
    FieldManager::new(kind, [("ex.com/v1".to_owned(), Arc::new(crd_schema(Some(&schema), false)))], Arc::new(converter))
}

fn app(spec: &str) -> Value {
    read(&format!("{{apiVersion: ex.com/v1, kind: App, metadata: {{name: a}}, spec: {spec}}}"))
}

fn live(endpoint: &FieldManager) -> Value {
    let first = app("{replicas: 1, image: 'a:1', tags: [x, 'yes'], ports: [{name: web, port: 80}]}");
    let object = endpoint.apply(None, &first, "alice", false, 10).unwrap();
    let object = endpoint.apply(Some(&object), &app("{image: 'a:1', args: [-v]}"), "bob", false, 20).unwrap();
    let mut scaled = object.clone();
    scaled.set_at(&["spec", "replicas"], Value::Int(3));
    endpoint.clone().with_subresource("scale").on_update(&object, scaled, "hpa", 30)
}

#[test]
fn each_line_tells_its_managers() {
    let endpoint = endpoint();
    let object = live(&endpoint);
    let owners = Owners::of(endpoint.schema().unwrap(), &object, &decode_managers(&object).unwrap());
    let expected = r#"apiVersion: ex.com/v1
kind: App
metadata:
  name: a
spec:
  args:                # bob
  - "-v"
  image: a:1           # alice, bob
  ports:
  - name: web          # alice
    port: 80           # alice
  replicas: 3          # hpa (update, scale)
  tags:
  - x                  # alice
  - "yes"              # alice
"#;
    assert_eq!(owners.to_string(), expected);
}

#[test]
fn a_plan_tells_each_effect() {
    let endpoint = endpoint();
    let object = live(&endpoint);
    let config = app("{replicas: 5, args: [-v], tags: [x, z], ports: [{name: web, port: 81}]}");
    let plan = Plan::new(&endpoint, Some(&object), &config, "alice").unwrap();
    let expected = r#"conflicts  .spec.replicas: 3 -> 5  # hpa (update, scale)
adds       .spec.tags[="z"]: "z"
changes    .spec.ports[name="web"].port: 80 -> 81
takes      .spec.args: ["-v"]  # bob
keeps      .spec.ports[name="web"].name: "web"
keeps      .spec.tags[="x"]: "x"
releases   .spec.image: "a:1"  # bob
removes    .spec.tags[="yes"]: "yes"
"#;
    assert_eq!(plan.to_string(), expected);
    assert!(plan.has_conflicts());
    let gone = plan.fields.iter().filter(|f| f.effect == Effect::Removes).count();
    assert_eq!(gone, 1);
    assert_eq!(plan.object.at(&["spec", "image"]), Some(&Value::from("a:1")));
}
