use super::*;
use object::{Map, json};

/// A type of the tests.
#[derive(Clone, Debug)]
enum Type {
    Struct(&'static str, &'static [(&'static str, Kind, &'static str, &'static str)]),
    Map,
    Scalar,
}

#[derive(Clone, Debug)]
enum Kind {
    Of(&'static Type),
    List(&'static Type),
}

use Kind::{List, Of};

static STRING_MAP: Type = Type::Map;
static STRING: Type = Type::Scalar;
static ENV: Type = Type::Struct("EnvVar", &[]);
static SOURCE: Type = Type::Struct("Source", &[("labels", Of(&STRING_MAP), "", "")]);
static CONTAINER: Type = Type::Struct(
    "Container",
    &[("env", List(&ENV), "merge", "name"), ("args", List(&STRING), "", ""), ("source", Of(&SOURCE), "replace", "")],
);
static STRATEGY: Type = Type::Struct("Strategy", &[("rolling", Of(&STRING_MAP), "", "")]);
static VOLUME: Type = Type::Struct("Volume", &[("source", Of(&SOURCE), "", "")]);
static POD: Type = Type::Struct(
    "Pod",
    &[
        ("containers", List(&CONTAINER), "merge", "name"),
        ("volumes", List(&VOLUME), "merge,retainKeys", "name"),
        ("finalizers", List(&STRING), "merge", ""),
        ("keyless", List(&CONTAINER), "merge", ""),
        ("labels", Of(&STRING_MAP), "", ""),
        ("strategy", Of(&STRATEGY), "retainKeys", ""),
        ("source", Of(&SOURCE), "replace", ""),
    ],
);

impl Schema for &'static Type {
    fn member(&self, name: &str, shape: Shape) -> Result<Member<Self>, Error> {
        let Type::Struct(type_name, members) = self else { return Err(Error::not_a_struct(self.go_kind())) };
        let member = members.iter().find(|(own, ..)| *own == name);
        let (_, kind, strategy, merge_key) = member.ok_or_else(|| Error::unknown_field(type_name, name))?;
        let schema = match (kind, shape) {
            (Of(schema), Shape::Object) | (List(schema), _) => *schema,
            (Of(_), Shape::List) => return Err(Error::not_a_list("struct")),
        };
        Ok(Member { schema, strategy: (*strategy).into(), merge_key: (*merge_key).into() })
    }

    fn go_kind(&self) -> &str {
        match self {
            Type::Struct(..) => "struct",
            Type::Map => "map",
            Type::Scalar => "string",
        }
    }
}

fn map(text: &str) -> Map {
    match json::parse(text.as_bytes()) {
        Ok(Value::Object(map)) => map,
        other => panic!("{text}: {other:?}"),
    }
}

fn text(map: Map) -> String {
    json::to_string(&Value::Object(map))
}

fn applied(original: &str, patch: &str) -> Result<String, Error> {
    apply(map(original), map(patch), &&POD).map(text)
}

#[test]
fn patches_do_what_the_directives_say() {
    for (original, patch, expected) in [
        // Members.
        (r#"{"labels":{"a":"1","b":"2"}}"#, r#"{"labels":{"a":null,"c":"3"}}"#, r#"{"labels":{"b":"2","c":"3"}}"#),
        (r#"{"labels":{"a":"1"}}"#, r#"{"labels":{"$patch":"replace","z":"1"}}"#, r#"{"labels":{"z":"1"}}"#),
        (r#"{"labels":{"a":"1"}}"#, r#"{"labels":{"$patch":"delete"}}"#, r#"{"labels":{}}"#),
        (r#"{"labels":{"a":"1"}}"#, r#"{"labels":null}"#, "{}"),
        ("{}", r#"{"labels":{"a":null,"b":"1"},"x":null}"#, r#"{"labels":{"b":"1"}}"#),
        ("{}", r#"{"labels":{"$patch":"delete"}}"#, "{}"),
        (r#"{"source":{"a":1}}"#, r#"{"source":{"b":1}}"#, r#"{"source":{"b":1}}"#),
        (r#"{"labels":"x"}"#, r#"{"labels":{"a":null}}"#, r#"{"labels":{}}"#),
        // Lists of objects: new items come first, others keep their place.
        (
            r#"{"containers":[{"name":"a","image":"1"},{"name":"b"}]}"#,
            r#"{"containers":[{"name":"a","image":"2"}]}"#,
            r#"{"containers":[{"image":"2","name":"a"},{"name":"b"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"containers":[{"name":"new"}]}"#,
            r#"{"containers":[{"name":"new"},{"name":"a"},{"name":"b"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#,
            r#"{"containers":[{"$patch":"delete","name":"b"},{"$patch":"delete","name":"zz"}]}"#,
            r#"{"containers":[{"name":"a"},{"name":"c"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"containers":[{"name":"only"},{"$patch":"replace"}]}"#,
            r#"{"containers":[{"name":"only"}]}"#,
        ),
        (r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":[{"$patch":"replace"}]}"#, r#"{"containers":[]}"#),
        (
            r#"{"containers":[{"name":"a","env":[{"name":"A"},{"name":"B"}],"args":["x"]}]}"#,
            r#"{"containers":[{"name":"a","env":[{"name":"A","$patch":"delete"}],"args":["y"]}]}"#,
            r#"{"containers":[{"args":["y"],"env":[{"name":"B"}],"name":"a"}]}"#,
        ),
        (
            "{}",
            r#"{"containers":[{"name":"a","x":null},{"name":"b","$patch":"delete"}]}"#,
            r#"{"containers":[{"name":"a"}]}"#,
        ),
        // The order of a list.
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"s"},{"name":"b"},{"name":"a"}],"containers":[{"name":"s"}]}"#,
            r#"{"containers":[{"name":"s"},{"name":"b"},{"name":"a"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"server"},{"name":"b"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}"#,
            r#"{"containers":[{"name":"server"},{"name":"b"},{"name":"a"}]}"#,
        ),
        (
            r#"{"finalizers":["a","b","c"]}"#,
            r#"{"$setElementOrder/finalizers":["c","a"]}"#,
            r#"{"finalizers":["b","c","a"]}"#,
        ),
        ("{}", r#"{"$setElementOrder/finalizers":["c","a"]}"#, "{}"),
        // Lists of scalars.
        (r#"{"finalizers":["a","b"]}"#, r#"{"finalizers":["c","a"]}"#, r#"{"finalizers":["c","a","b"]}"#),
        (
            r#"{"finalizers":["a","b","c"]}"#,
            r#"{"$deleteFromPrimitiveList/finalizers":["a","x"],"finalizers":["d"]}"#,
            r#"{"finalizers":["d","b","c"]}"#,
        ),
        ("{}", r#"{"$deleteFromPrimitiveList/finalizers":["a"]}"#, "{}"),
        // Deleting from a list that is otherwise replaced.
        (
            r#"{"containers":[{"name":"a","args":["x","y"]}]}"#,
            r#"{"containers":[{"name":"a","$deleteFromPrimitiveList/args":["x"]}]}"#,
            r#"{"containers":[{"args":["y"],"name":"a"}]}"#,
        ),
        // Members to retain.
        (
            r#"{"strategy":{"type":"R","rolling":{"a":"1"}}}"#,
            r#"{"strategy":{"$retainKeys":["type"],"type":"X"}}"#,
            r#"{"strategy":{"type":"X"}}"#,
        ),
        (
            r#"{"volumes":[{"name":"v","empty":{}}]}"#,
            r#"{"volumes":[{"$retainKeys":["name","source"],"name":"v","source":{"a":1}}]}"#,
            r#"{"volumes":[{"name":"v","source":{"a":1}}]}"#,
        ),
    ] {
        assert_eq!(applied(original, patch).as_deref(), Ok(expected), "{original} {patch}");
    }
}

#[test]
fn bad_patches_are_refused_in_upstreams_words() {
    use ErrorKind::{BadPatch, Internal, Unprocessable};
    for (original, patch, kind, message) in [
        (
            r#"{"strategy":{}}"#,
            r#"{"strategy":{"$retainKeys":["rolling"],"type":"R"}}"#,
            BadPatch,
            "invalid patch format of retainKeys",
        ),
        (r#"{"strategy":{}}"#, r#"{"strategy":{"$retainKeys":"x"}}"#, BadPatch, "invalid patch format of retainKeys"),
        ("{}", r#"{"$deleteFromPrimitiveList":[]}"#, BadPatch, "invalid patch format of primitive list"),
        ("{}", r#"{"$setElementOrder":[]}"#, BadPatch, "invalid patch format of setElementOrder list"),
        ("{}", r#"{"$setElementOrder/finalizers":5}"#, Internal, "expected a []interface {}, but received a int64"),
        ("{}", r#"{"$patch":"what"}"#, Internal, "unknown patch type: what in map: map[$patch:what]"),
        ("{}", r#"{"$patch":5}"#, Internal, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        (
            r#"{"containers":[{"name":"a"}]}"#,
            r#"{"containers":[{"image":"x"}]}"#,
            Internal,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            r#"{"containers":[{"name":"a"}]}"#,
            r#"{"containers":[{"$patch":"merge"}]}"#,
            Internal,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            r#"{"containers":[{"name":"a"}]}"#,
            r#"{"containers":["a"]}"#,
            Internal,
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"a"},"b"]}"#,
            Internal,
            "value for key 1 is not a map",
        ),
        (r#"{"containers":[[]]}"#, r#"{"containers":[[]]}"#, Unprocessable, "lists of lists are not supported"),
        (r#"{"keyless":[{}]}"#, r#"{"keyless":[{}]}"#, Internal, "cannot merge lists without merge key for struct"),
        (r#"{"zz":{}}"#, r#"{"zz":{}}"#, Internal, r#"unable to find api field in struct Pod for the json field "zz""#),
        (
            r#"{"labels":{"a":{}}}"#,
            r#"{"labels":{"a":{}}}"#,
            Internal,
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            r#"{"finalizers":["a"]}"#,
            r#"{"$setElementOrder/finalizers":["x","y"],"finalizers":["y","x"]}"#,
            Internal,
            "The order in patch list:\n[y x]\n doesn't match $setElementOrder list:\n[x y]\n",
        ),
    ] {
        let error = applied(original, patch).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{original} {patch}");
    }
}

#[test]
fn a_difference_is_said_with_directives() {
    for (original, modified, expected) in [
        (r#"{"labels":{"a":"1","b":"2"}}"#, r#"{"labels":{"a":"1","c":"3"}}"#, r#"{"labels":{"b":null,"c":"3"}}"#),
        (
            r#"{"containers":[{"name":"a","image":"1"},{"name":"b"}]}"#,
            r#"{"containers":[{"name":"c"},{"name":"a","image":"2"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],"containers":[{"name":"c"},{"image":"2","name":"a"},{"$patch":"delete","name":"b"}]}"#,
        ),
        (
            r#"{"finalizers":["a","b"]}"#,
            r#"{"finalizers":["c","b"]}"#,
            r#"{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["c","b"],"finalizers":["c"]}"#,
        ),
        (
            r#"{"strategy":{"type":"R","rolling":{"a":"1"}}}"#,
            r#"{"strategy":{"type":"X"}}"#,
            r#"{"strategy":{"$retainKeys":["type"],"rolling":null,"type":"X"}}"#,
        ),
        (r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":[{"name":"a"}]}"#, "{}"),
        (r#"{"zz":{"a":1}}"#, r#"{"zz":{"a":1}}"#, "{}"),
    ] {
        let patch = two_way(&map(original), &map(modified), &&POD).unwrap();
        assert_eq!(text(patch.clone()), expected);
        let patched = apply(map(original), patch, &&POD).unwrap();
        assert_eq!(patched, map(modified), "{original} {modified}");
    }
}

#[test]
fn of_items_with_one_key_the_last_ones_are_compared() {
    let original = r#"{"containers":[{"name":"a","image":"1"}]}"#;
    let modified = r#"{"containers":[{"name":"a","image":"2"},{"name":"a","image":"1"}]}"#;
    let patch = two_way(&map(original), &map(modified), &&POD).unwrap();
    let expected =
        r#"{"$setElementOrder/containers":[{"name":"a"},{"name":"a"}],"containers":[{"image":"2","name":"a"}]}"#;
    assert_eq!(text(patch), expected);
}

#[test]
fn a_client_side_apply_keeps_what_others_set() {
    let original = r#"{"containers":[{"name":"a","image":"1"},{"name":"gone"}],"labels":{"x":"1"}}"#;
    let modified = r#"{"containers":[{"name":"a","image":"2"}],"labels":{}}"#;
    let current = r#"{"containers":[{"name":"a","image":"1","pull":"Always"},{"name":"gone"},{"name":"theirs"}],"labels":{"x":"1","y":"1"}}"#;
    let patch = three_way(&map(original), &map(modified), &map(current), &&POD, true).unwrap();
    assert_eq!(
        text(patch.clone()),
        r#"{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"},{"$patch":"delete","name":"gone"}],"labels":{"x":null}}"#
    );
    let patched = apply(map(current), patch, &&POD).unwrap();
    assert_eq!(
        text(patched),
        r#"{"containers":[{"image":"2","name":"a","pull":"Always"},{"name":"theirs"}],"labels":{"y":"1"}}"#
    );
}

#[test]
fn a_conflict_is_an_error_unless_overwritten() {
    let (original, modified) = (map(r#"{"labels":{"x":"1"}}"#), map(r#"{"labels":{"x":"2"}}"#));
    let current = map(r#"{"labels":{"x":"3"}}"#);
    let error = three_way(&original, &modified, &current, &&POD, false).unwrap_err();
    assert!(error.message.contains("conflicts with changes made from original to current"), "{error}");
    assert!(three_way(&original, &modified, &current, &&POD, true).is_ok());
    assert!(three_way(&original, &modified, &original, &&POD, false).is_ok());
}
