//! A patch made of a difference makes the difference, and no patch makes a panic.

use object::{Map, Value};
use patch::json_patch::JsonPatch;
use patch::merge;
use patch::strategic::{self, Error, Member, Schema, Shape};
use proptest::prelude::*;

/// Every list called `m` is merged by `k`, every list called `s` is a set of scalars.
#[derive(Clone, Copy)]
struct Anything;

impl Schema for Anything {
    fn member(&self, name: &str, _: Shape) -> Result<Member<Self>, Error> {
        let (strategy, merge_key) = match name {
            "m" => ("merge,retainKeys", "k"),
            "s" => ("merge", ""),
            "r" => ("retainKeys", ""),
            _ => ("", ""),
        };
        Ok(Member { schema: Self, strategy: strategy.into(), merge_key: merge_key.into() })
    }

    fn go_kind(&self) -> &str {
        "struct"
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![any::<bool>().prop_map(Value::Bool), (0..4i64).prop_map(Value::Int), "[xyz]".prop_map(Value::from)]
}

/// Objects as a server stores them: no nulls, no directives, merge keys there and once each.
fn stored() -> impl Strategy<Value = Map> {
    let leaf = prop::collection::btree_map("[ab]", scalar(), 0..3).prop_map(Map::from_iter);
    leaf.prop_recursive(3, 24, 4, |inner| {
        let items = prop::collection::btree_map("[pqr]", inner.clone(), 0..3).prop_map(|items| {
            let keyed = items.into_iter().map(|(key, mut item)| {
                item.insert("k", key);
                Value::Object(item)
            });
            keyed.collect::<Vec<_>>()
        });
        let set = prop::collection::btree_set("[uvw]", 0..3).prop_map(|set| set.into_iter().collect::<Vec<_>>());
        (
            prop::option::of(items.prop_shuffle()),
            prop::option::of(set.prop_shuffle()),
            prop::option::of(inner.clone()),
            prop::option::of(inner),
            prop::option::of(prop::collection::vec(scalar(), 0..3)),
        )
            .prop_map(|(items, set, object, retained, list)| {
                let members = [
                    ("m", items.map(Value::from)),
                    ("s", set.map(Value::from)),
                    ("o", object.map(Value::from)),
                    ("r", retained.map(Value::from)),
                    ("l", list.map(Value::from)),
                ];
                members.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
            })
    })
}

/// Anything, with directives in it.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![scalar(), Just(Value::Null), Just("delete".into()), Just("replace".into())];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let keys = prop_oneof![
            "[mslork]",
            Just("$patch".to_owned()),
            Just("$retainKeys".to_owned()),
            Just("$setElementOrder/m".to_owned()),
            Just("$setElementOrder/s".to_owned()),
            Just("$deleteFromPrimitiveList/s".to_owned()),
            Just("$deleteFromPrimitiveList".to_owned()),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((keys, inner), 0..5).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// What the patch from `original` to `modified` makes. Upstream's `diffListsOfScalars` sorts the original's list in place
/// before it asks whether the order changed, so a set of which only the order changes, to the sorted one, stays as it is.
fn made(original: &Map, modified: &Map) -> Map {
    let member = |key: &str, new: &Value| match (key, original.get(key), new) {
        ("s", Some(Value::Array(old)), Value::Array(new)) => {
            let mut sorted = old.clone();
            sorted.sort_by_cached_key(object::go::plain);
            Value::Array(if sorted == *new { old.clone() } else { new.clone() })
        }
        ("m", Some(Value::Array(old)), Value::Array(new)) => {
            let item = |new: &Value| match old.iter().find(|old| old.get("k") == new.get("k")) {
                Some(Value::Object(old)) => new.as_object().map(|new| made(old, new).into()),
                _ => None,
            };
            Value::Array(new.iter().map(|new| item(new).unwrap_or_else(|| new.clone())).collect())
        }
        (_, Some(Value::Object(old)), Value::Object(new)) => made(old, new).into(),
        _ => new.clone(),
    };
    modified.iter().map(|(key, new)| (key.to_owned(), member(key, new))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_patch_makes_the_difference_it_was_made_of(original in stored(), modified in stored()) {
        let patch = merge::diff(&original, &modified);
        prop_assert_eq!(merge::apply(original.into(), patch.into()), Value::Object(modified));
    }

    #[test]
    fn a_strategic_patch_makes_the_difference_it_was_made_of_but_for_sets_that_become_sorted(original in stored(), modified in stored()) {
        let patch = strategic::two_way(&original, &modified, &Anything).map_err(|e| TestCaseError::fail(e.message))?;
        let expected = made(&original, &modified);
        let patched = strategic::apply(original, patch, &Anything).map_err(|e| TestCaseError::fail(e.message))?;
        prop_assert_eq!(patched, expected);
    }

    #[test]
    fn no_patch_makes_a_panic(original in any_value(), patch in any_value(), current in any_value()) {
        let _ = merge::apply(original.clone(), patch.clone());
        let _ = JsonPatch::check(&patch);
        let _ = JsonPatch::read(patch.clone()).map(|patch| patch.apply(original.clone()));
        if let (Value::Object(original), Value::Object(patch), Value::Object(current)) = (original, patch, current) {
            let _ = strategic::apply(original.clone(), patch.clone(), &Anything);
            let _ = strategic::two_way(&original, &patch, &Anything);
            let _ = strategic::three_way(&original, &patch, &current, &Anything, false);
            let _ = merge::three_way(&original, &patch, &current);
        }
    }
}
