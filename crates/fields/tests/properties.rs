//! What holds for every schema and every object.
#![allow(clippy::unwrap_used)]

use fields::managed::{ApplyError, FieldManager, Kind, Managers, NoConversion, decode_managers};
use fields::openapi::crd_schema;
use fields::path::{FieldPath, PathElement};
use fields::set::FieldSet;
use fields::typed;
use object::{Map, Value};
use proptest::prelude::*;
use std::sync::Arc;

/// Choices drawn from a seed, so that a failing case is one number.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn name(&mut self) -> &'static str {
        ["a", "b", "c", "d/e"][self.below(4) as usize]
    }
}

/// An OpenAPI schema that uses every way to merge.
fn schema(c: &mut Choices, depth: u64) -> Value {
    let kinds = if depth == 0 { 3 } else { 9 };
    let typed = |ty: &str| object::map! { "type" => ty };
    Value::Object(match c.below(kinds) {
        0 => typed("string"),
        1 => typed("integer"),
        2 => typed("boolean"),
        3 | 4 => {
            let mut out = typed("object");
            let fields: Map = (0..=c.below(3)).map(|_| (c.name(), schema(c, depth - 1))).collect();
            out.insert("properties", fields);
            if c.below(6) == 0 {
                out.insert("x-kubernetes-map-type", "atomic");
            }
            out
        }
        5 => {
            let mut out = typed("object");
            out.insert("additionalProperties", schema(c, depth - 1));
            out
        }
        6 => {
            let mut out = typed("array");
            out.insert("items", typed("string"));
            if c.below(3) > 0 {
                out.insert("x-kubernetes-list-type", "set");
            }
            out
        }
        7 => {
            let mut fields: Map = (0..=c.below(2)).map(|_| (c.name(), schema(c, depth - 1))).collect();
            fields.insert("key", typed("string"));
            fields.insert("port", object::map! { "type" => "integer", "default" => 80 });
            let mut item = typed("object");
            item.insert("properties", fields);
            let mut out = typed("array");
            out.insert("items", item);
            out.insert("x-kubernetes-list-type", "map");
            out.insert("x-kubernetes-list-map-keys", Value::from(vec!["key", "port"]));
            out
        }
        _ => object::map! { "x-kubernetes-preserve-unknown-fields" => true, "type" => "object" },
    })
}

/// A value of the schema without empty containers, so that taking fields out again leaves no trace.
fn value(c: &mut Choices, schema: &Value) -> Value {
    match schema.str_at(&["type"]).unwrap_or_default() {
        "string" => Value::from(c.name()),
        "integer" => Value::Int(c.below(3) as i64),
        "boolean" => Value::Bool(c.below(2) == 0),
        "array" => {
            let items = schema.get("items").unwrap();
            let mut out: Vec<Value> = Vec::new();
            for _ in 0..=c.below(3) {
                let mut item = value(c, items);
                if items.str_at(&["type"]) == Some("object") {
                    item.set_at(&["key"], Value::from(c.name()));
                    if c.below(2) == 0 {
                        item.set_at(&["port"], Value::Int(80 + c.below(2) as i64));
                    } else {
                        item.remove_at(&["port"]);
                    }
                }
                let key = |v: &Value| match v {
                    Value::Object(m) => (m.get("key").cloned(), m.get("port").cloned().unwrap_or(Value::Int(80))),
                    v => (Some(v.clone()), Value::Null),
                };
                if !out.iter().any(|o| key(o) == key(&item)) {
                    out.push(item);
                }
            }
            Value::Array(out)
        }
        _ => {
            let mut out = Map::new();
            if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
                let must = c.below(fields.len() as u64) as usize;
                for (i, (name, schema)) in fields.iter().enumerate() {
                    if i == must || c.below(2) == 0 {
                        out.insert(name, value(c, schema));
                    }
                }
            } else {
                let element = schema.get("additionalProperties").cloned();
                for _ in 0..=c.below(2) {
                    let element = element.clone().unwrap_or_else(|| Value::Object(object::map! { "type" => "string" }));
                    let inner = value(c, &element);
                    out.insert(c.name(), inner);
                }
            }
            Value::Object(out)
        }
    }
}

struct World {
    schema: Value,
    endpoint: FieldManager,
}

impl World {
    fn new(c: &mut Choices) -> Self {
        let spec = (0..5).map(|_| (c.name(), schema(c, 3))).collect::<Map>();
        let spec = Value::Object(object::map! { "type" => "object", "properties" => spec });
        let root = object::map! { "type" => "object", "properties" => object::map! { "spec" => spec } };
        let schema = Value::Object(root);
        let kind = Kind { group: "ex.com".into(), version: "v1".into(), kind: "Any".into() };
        let versions = vec!["ex.com/v1".to_owned()];
        let types = [("ex.com/v1".to_owned(), Arc::new(crd_schema(Some(&schema), false)))];
        World { schema, endpoint: FieldManager::new(kind, types, Arc::new(NoConversion { versions })) }
    }

    fn config(&self, c: &mut Choices) -> Value {
        let mut out = value(c, &self.schema);
        for (key, value) in [("apiVersion", "ex.com/v1"), ("kind", "Any")] {
            out.set_at(&[key], value.into());
        }
        out.set_at(&["metadata", "name"], "o".into());
        out
    }

    fn empty(&self) -> Value {
        let mut out = self.config(&mut Choices(0));
        out.remove_at(&["spec"]);
        out
    }

    fn same(&self, a: &Value, b: &Value) -> bool {
        let strip = |v: &Value| {
            let mut v = v.clone();
            v.remove_at(&["metadata", "managedFields"]);
            v
        };
        typed::compare(self.endpoint.schema().unwrap(), &strip(a), &strip(b)).is_same()
    }

    fn apply(&self, live: Option<&Value>, config: &Value, manager: &str) -> Result<Value, ApplyError> {
        self.endpoint.apply(live, config, manager, false, 1)
    }
}

fn sets(object: &Value) -> Vec<(String, FieldSet)> {
    decode_managers(object).unwrap().into_iter().map(|(id, owned)| (id.to_string(), owned.set)).collect()
}

fn all(managers: &Managers) -> FieldSet {
    managers.values().fold(FieldSet::new(), |set, owned| set.union(&owned.set))
}

/// The fields that are owned by nobody: type and name.
fn is_plain(path: &FieldPath) -> bool {
    let first = path.elements().first();
    [PathElement::field("apiVersion"), PathElement::field("kind"), PathElement::field("metadata")]
        .iter()
        .any(|e| Some(e) == first)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_round_trip_through_fields_v1(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let schema = world.endpoint.schema().unwrap();
        let set = typed::to_field_set(schema, &world.config(c)).union(&typed::to_field_set(schema, &world.config(c)));
        prop_assert_eq!(&FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap(), &set);
        prop_assert_eq!(&FieldSet::from_text(set.to_text().as_bytes()).unwrap(), &set);
    }

    #[test]
    fn set_algebra_is_that_of_sets(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let schema = world.endpoint.schema().unwrap();
        let (a, b) = (typed::to_field_set(schema, &world.config(c)), typed::to_field_set(schema, &world.config(c)));
        let (both, only) = (a.intersection(&b), a.difference(&b));
        prop_assert_eq!(&both.union(&only), &a);
        prop_assert!(both.is_subset(&b) && !only.intersects(&b));
        prop_assert_eq!(a.intersects(&b), !both.is_empty());
        prop_assert_eq!(a.union(&b).len(), a.len() + b.len() - both.len());
        prop_assert!(a.recursive_difference(&b).is_subset(&only));
    }

    #[test]
    fn an_apply_is_idempotent(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let (base, config) = (world.config(c), world.config(c));
        let live = world.endpoint.on_create(base, "tool", 1);
        let once = world.endpoint.apply(Some(&live), &config, "alice", true, 2).unwrap();
        let again = world.endpoint.apply(Some(&once), &config, "alice", false, 3).unwrap();
        prop_assert_eq!(once, again);
    }

    #[test]
    fn a_sole_owner_that_leaves_restores_the_rest(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let alone = world.apply(None, &world.config(c), "alice").unwrap();
        if let Ok(shared) = world.apply(Some(&alone), &world.config(c), "bob") {
            let left = world.apply(Some(&shared), &world.empty(), "bob").unwrap();
            prop_assert!(world.same(&alone, &left), "{:?}", left);
            prop_assert_eq!(sets(&alone), sets(&left));
        }
    }

    #[test]
    fn the_order_of_managers_that_agree_does_not_matter(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let (a, b) = (world.config(c), world.config(c));
        let both = |first: (&str, &Value), second: (&str, &Value)| {
            let live = world.apply(None, first.1, first.0)?;
            world.apply(Some(&live), second.1, second.0)
        };
        let (ab, ba) = (both(("alice", &a), ("bob", &b)), both(("bob", &b), ("alice", &a)));
        prop_assert_eq!(ab.is_ok(), ba.is_ok());
        if let (Ok(ab), Ok(ba)) = (ab, ba) {
            prop_assert!(world.same(&ab, &ba));
            prop_assert_eq!(sets(&ab), sets(&ba));
        }
    }

    #[test]
    fn ownership_covers_exactly_the_leaves_present(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let schema = world.endpoint.schema().unwrap();
        let mut live = world.endpoint.on_create(world.config(c), "tool", 1);
        live.set_at(&["metadata", "uid"], "u".into());
        for now in 2..8 {
            let manager = ["alice", "bob", "carl"][c.below(3) as usize];
            live = match c.below(3) {
                0 => world.endpoint.apply(Some(&live), &world.config(c), manager, true, now).unwrap(),
                1 => world.endpoint.apply(Some(&live), &world.empty(), manager, true, now).unwrap(),
                _ => {
                    let mut new = world.config(c);
                    new.set_at(&["metadata", "managedFields"], live.at(&["metadata", "managedFields"]).cloned().unwrap_or_default());
                    new.set_at(&["metadata", "uid"], "u".into());
                    world.endpoint.on_update(&live, new, manager, now)
                }
            };
            let owned = all(&decode_managers(&live).unwrap());
            for path in owned.paths() {
                prop_assert!(typed::value_at(schema, &live, path.elements()).is_some(), "{} is owned and not there", path);
            }
            for path in typed::to_field_set(schema, &live).leaves().paths().iter().filter(|p| !is_plain(p)) {
                // No value here has nulls; where an applier's map key goes with what others had below it, upstream
                // leaves a null that nobody owns in the place of the emptied map.
                let left_behind = typed::value_at(schema, &live, path.elements()).is_none_or(Value::is_null);
                prop_assert!(left_behind || owned.has(path.elements()), "nobody owns {}", path);
            }
        }
    }

    #[test]
    fn a_comparison_with_itself_is_empty_and_a_merge_with_itself_too(seed: u64) {
        let c = &mut Choices(seed);
        let world = World::new(c);
        let schema = world.endpoint.schema().unwrap();
        let (a, b) = (world.config(c), world.config(c));
        prop_assert!(typed::compare(schema, &a, &a).is_same());
        prop_assert_eq!(&typed::merge(schema, &a, &a), &a);
        let merged = typed::merge(schema, &a, &b);
        prop_assert!(typed::compare(schema, &a, &merged).removed.is_empty());
        prop_assert!(typed::merge_is_noop(schema, &a, &a));
        prop_assert!(!typed::merge_is_noop(schema, &a, &b) || world.same(&merged, &a));
        prop_assert!(typed::validate(schema, &merged, typed::Duplicates::Forbid).is_ok());
    }
}
