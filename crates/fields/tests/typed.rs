//! Tables of facts about operations on values by their schema.
#![allow(clippy::unwrap_used)]

use fields::openapi::crd_schema;
use fields::schema::TypeSchema;
use fields::set::FieldSet;
use fields::typed::{self, Duplicates};
use object::{Value, json, yaml};

fn read(text: &str) -> Value {
    yaml::parse(text.as_bytes()).unwrap()
}

fn schema() -> TypeSchema {
    crd_schema(
        Some(&read(
            "
type: object
properties:
  s: {type: string}
  num: {type: number}
  b: {type: boolean}
  ios: {x-kubernetes-int-or-string: true}
  m: {type: object, additionalProperties: {type: string}}
  am: {type: object, additionalProperties: {type: string}, x-kubernetes-map-type: atomic}
  st: {type: object, properties: {x: {type: string}, z: {type: string}}}
  l: {type: array, items: {type: string}}
  set: {type: array, items: {type: string}, x-kubernetes-list-type: set}
  lm:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [k, p]
    items: {type: object, properties: {k: {type: string}, p: {type: integer, default: 1}, v: {type: string}}}
  any: {x-kubernetes-preserve-unknown-fields: true}
  open: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-map-type: atomic}
  scalars: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}, x-kubernetes-map-type: atomic}
  date: {type: string, format: date}
",
        )),
        false,
    )
}

fn paths(set: &FieldSet) -> String {
    set.paths().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_does_not_fit_is_told_in_upstreams_words() {
    let schema = schema();
    for (value, text) in [
        ("{s: x, num: 1.5, b: true, ios: a, m: {a: b}, l: [a], set: [a], lm: [{k: a}], any: {a: [1]}}", ""),
        ("{s: null, num: null, m: null, l: null, lm: null, any: null}", ""),
        ("{s: 1}", ".s: expected string, got &value.valueUnstructured{Value:1}"),
        ("{s: [a]}", ".s: expected string, got &value.valueUnstructured{Value:[]interface {}{\"a\"}}"),
        ("{date: 1}", ".date: expected string, got &value.valueUnstructured{Value:1}"),
        ("{num: x}", ".num: expected numeric (int or float), got string"),
        ("{b: 1}", ".b: expected boolean, got &{1}"),
        ("{m: x}", ".m: expected map, got &{x}"),
        ("{l: {a: b}}", ".l: expected list, got &{map[a:b]}"),
        ("{l: [1]}", ".l[0]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            "{m: {a: 1, b: 2}}",
            "errors:\n  .m.a: expected string, got &value.valueUnstructured{Value:1}\n  .m.b: expected string, got &value.valueUnstructured{Value:2}",
        ),
        ("{nope: 1}", ".nope: field not declared in schema"),
        ("{set: [a, a]}", ".set: duplicate entries for key [=\"a\"]"),
        ("{lm: [{k: a}, {k: a, p: 1}]}", ".lm: duplicate entries for key [k=\"a\",p=1]"),
        (
            "{lm: [{p: 1}]}",
            ".lm: element 0: associative list with keys has an element that omits key field \"k\" (and doesn't have default value)",
        ),
        ("{lm: [x]}", ".lm: element 0: associative list with keys may not have non-map elements"),
        ("{lm: [null]}", ".lm: element 0: associative list with keys may not have a null element"),
        ("{lm: [{k: a, v: 1}]}", ".lm[k=\"a\",p=1].v: expected string, got &value.valueUnstructured{Value:1}"),
        ("{set: [null]}", ".set: element 0: associative list without keys has an element that's an explicit null"),
        ("{set: [[a]]}", ".set: element 0: not supported: associative list with lists as elements"),
        ("{set: [{}]}", ".set: element 0: associative list without keys has an element that's a map type"),
    ] {
        let got = typed::validate(&schema, &read(value), Duplicates::Forbid).err().map(|e| e.to_string());
        assert_eq!(got.unwrap_or_default(), text, "{value}");
    }
    assert!(typed::validate(&schema, &read("{set: [a, a], lm: [{k: a}, {k: a}]}"), Duplicates::Allow).is_ok());
}

#[test]
fn a_value_has_its_leaves_items_and_map_keys() {
    let schema = schema();
    for (value, set) in [
        ("{s: x, st: {x: a}}", ".s .st.x"),
        ("{s: null, st: {}, m: {}, l: [], set: [], lm: []}", ".l .m .s .st"),
        ("{m: {a: x}, am: {a: x}}", ".am .m.a"),
        ("{l: [a], set: [b, a]}", ".l .set[=\"a\"] .set[=\"b\"]"),
        ("{lm: [{k: a, v: x}]}", ".lm[k=\"a\",p=1] .lm[k=\"a\",p=1].k .lm[k=\"a\",p=1].v"),
        ("{set: [a, b, a]}", ".set[=\"a\"] .set[=\"b\"]"),
        ("{lm: [{k: a, v: x}, {k: a, v: w}]}", ".lm[k=\"a\",p=1]"),
        ("{any: {a: {b: 1}, l: [{c: 1}]}}", ".any.a .any.l .any.a.b"),
    ] {
        assert_eq!(paths(&typed::to_field_set(&schema, &read(value))), set, "{value}");
    }
}

#[test]
fn a_merge_keeps_the_order_of_both_lists() {
    let schema = schema();
    for (live, config, merged) in [
        ("[a, b, c]", "[b]", "[a, b, c]"),
        ("[a, b, c]", "[c, a]", "[b, c, a]"),
        ("[a, b, c]", "[x, b, w]", "[a, x, b, c, w]"),
        ("[a, b]", "[]", "[a, b]"),
        ("[a, b, a]", "[b]", "[a, b, a]"),
        ("[a, b, a]", "[a]", "[a, b]"),
        ("[]", "[b, a]", "[b, a]"),
    ] {
        let value = |list: &str| read(&format!("{{set: {list}}}"));
        assert_eq!(typed::merge(&schema, &value(live), &value(config)), value(merged), "{live} {config}");
    }
}

#[test]
fn a_merge_follows_the_schema() {
    let schema = schema();
    for (live, config, merged) in [
        ("{m: {a: x}, st: {x: a}}", "{m: {b: w}, st: {z: b}}", "{m: {a: x, b: w}, st: {x: a, z: b}}"),
        ("{am: {a: x}, l: [a]}", "{am: {b: w}, l: [b]}", "{am: {b: w}, l: [b]}"),
        ("{lm: [{k: a, p: 1, v: x}]}", "{lm: [{k: a, v: w}, {k: b}]}", "{lm: [{k: a, p: 1, v: w}, {k: b}]}"),
        ("{s: x, m: {a: x}}", "{s: null, m: null}", "{s: null, m: {a: x}}"),
        ("{any: {a: 1}}", "{any: x}", "{any: x}"),
        ("{any: x}", "{any: {a: 1}}", "{any: {a: 1}}"),
    ] {
        assert_eq!(typed::merge(&schema, &read(live), &read(config)), read(merged), "{live} {config}");
    }
}

#[test]
fn a_comparison_tells_what_was_added_modified_and_removed() {
    let schema = schema();
    for (old, new, added, modified, removed) in [
        ("{s: x, num: 1}", "{s: w, num: 1.0}", "", ".s", ""),
        ("{}", "{m: {a: x}}", ".m .m.a", "", ""),
        ("{m: {a: x}}", "{m: {}}", "", "", ".m.a"),
        ("{am: {a: x}}", "{am: {a: w}}", "", ".am", ""),
        ("{set: [a, b]}", "{set: [b, a]}", "", "", ""),
        ("{l: [a, b]}", "{l: [b, a]}", "", ".l", ""),
        (
            "{lm: [{k: a, v: x}]}",
            "{lm: [{k: a, p: 2, v: x}]}",
            ".lm[k=\"a\",p=2] .lm[k=\"a\",p=2].k .lm[k=\"a\",p=2].p .lm[k=\"a\",p=2].v",
            "",
            ".lm[k=\"a\",p=1] .lm[k=\"a\",p=1].k .lm[k=\"a\",p=1].v",
        ),
        ("{set: [a, a]}", "{set: [a]}", ".set[=\"a\"]", "", ".set[=\"a\"]"),
        ("{set: [a]}", "{set: [a, a]}", ".set[=\"a\"]", "", ".set[=\"a\"]"),
        ("{lm: [{k: a, v: x}, {k: a, v: w}]}", "{lm: [{k: a, v: x}, {k: a, v: z}]}", "", ".lm[k=\"a\",p=1]", ""),
        ("{any: {a: 1}}", "{any: x}", "", ".any", ".any.a"),
        ("{any: {a: 1}}", "{any: null}", "", "", ".any.a"),
    ] {
        let diff = typed::compare(&schema, &read(old), &read(new));
        assert_eq!(
            (paths(&diff.added).as_str(), paths(&diff.modified).as_str(), paths(&diff.removed).as_str()),
            (added, modified, removed),
            "{old} {new}"
        );
    }
}

#[test]
fn items_are_removed_and_extracted() {
    let schema = schema();
    let value = read("{s: x, m: {a: x, b: w}, set: [a, b], lm: [{k: a, v: x}, {k: b}]}");
    for (set, removed, extracted) in [
        (r#"{"f:s":{},"f:m":{"f:a":{}}}"#, "{m: {b: w}, set: [a, b], lm: [{k: a, v: x}, {k: b}]}", "{s: x, m: {a: x}}"),
        (
            r#"{"f:set":{"v:\"a\"":{},"v:\"b\"":{}}}"#,
            "{s: x, m: {a: x, b: w}, set: null, lm: [{k: a, v: x}, {k: b}]}",
            "{set: [a, b]}",
        ),
        (
            r#"{"f:lm":{"k:{\"k\":\"a\",\"p\":1}":{"f:v":{}}}}"#,
            "{s: x, m: {a: x, b: w}, set: [a, b], lm: [{k: a}, {k: b}]}",
            "{lm: [{k: a, v: x}]}",
        ),
    ] {
        let set = FieldSet::from_text(set.as_bytes()).unwrap();
        assert_eq!(typed::remove_items(&schema, &value, &set), read(removed));
        assert_eq!(typed::extract_items(&schema, &value, &set), read(extracted));
    }
}

#[test]
fn ownership_below_what_became_atomic_becomes_ownership_of_it() {
    let schema = schema();
    for (set, reconciled) in [
        (r#"{"f:am":{"f:a":{}},"f:s":{}}"#, r#"{"f:am":{},"f:s":{}}"#),
        (r#"{"f:l":{".":{},"v:\"a\"":{}}}"#, r#"{"f:l":{}}"#),
        (r#"{"f:m":{}}"#, ""),
        // Nothing says what is in these, atomic or not.
        (r#"{"f:open":{"f:x":{}}}"#, ""),
        (r#"{"f:scalars":{"f:x":{"f:y":{}}}}"#, ""),
        (r#"{"f:gone":{"f:x":{}},"f:st":{"f:x":{}}}"#, ""),
    ] {
        let set = FieldSet::from_text(set.as_bytes()).unwrap();
        let got = typed::reconcile(&schema, &set).map(|s| s.to_text()).unwrap_or_default();
        assert_eq!(got, reconciled);
    }
    assert_eq!(json::to_string(&FieldSet::new().to_fields_v1()), "{}");
}
