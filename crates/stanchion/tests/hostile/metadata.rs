//! Every field of metadata with every kind of value, in every kind of object.

use crate::support::*;
use compat::client::Request;

const FIELDS: [&str; 18] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "clusterName",
    "",
    "Name",
];
const VALUES: [&str; 30] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e40",
    "9223372036854775807",
    "9223372036854775808",
    "\"\"",
    "\"x\"",
    "\"X/y:z\"",
    "\"\\u0000\"",
    "\"\\u00e9\u{202e}\"",
    "\"2024-01-01T00:00:00Z\"",
    "\"-1\"",
    "[]",
    "[null]",
    "[1]",
    "[\"x\"]",
    "[\"\"]",
    "[{}]",
    "[[]]",
    "[{\"a\":1}]",
    "{}",
    "{\"a\":null}",
    "{\"a\":1}",
    "{\"\":\"\"}",
    "{\"a\":{}}",
    "{\"a b\":\"c d\"}",
    "{\"a/b/c\":\"x\"}",
];
/// Broken members of the lists in metadata.
const LISTS: [(&str, &str); 16] = [
    ("ownerReferences", r#"[{"apiVersion":1}]"#),
    ("ownerReferences", r#"[{"apiVersion":"v1","kind":"Event","name":"a","uid":"b"}]"#),
    ("ownerReferences", r#"[{"apiVersion":"a/b/c","kind":"","name":[],"uid":{}}]"#),
    (
        "ownerReferences",
        r#"[{"apiVersion":"v1","kind":"A","name":"a","uid":"b","controller":true},{"apiVersion":"v1","kind":"A","name":"a","uid":"b","controller":true}]"#,
    ),
    ("ownerReferences", r#"[{"controller":"yes","blockOwnerDeletion":3}]"#),
    ("finalizers", r#"["a","a","/","a/b/c","kubernetes"," "]"#),
    ("managedFields", r#"[{"manager":1}]"#),
    (
        "managedFields",
        r#"[{"operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}},"apiVersion":"v1","time":"x"}]"#,
    ),
    (
        "managedFields",
        r#"[{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"k:{":{},"v:x":1,"i:-":{},"f:":{},".":{"a":1}},"apiVersion":"v1","time":"2024-01-01T00:00:00Z"}]"#,
    ),
    (
        "managedFields",
        r#"[{"manager":"m","operation":"Nope","fieldsType":"FieldsV2","fieldsV1":[],"apiVersion":"x/y/z"}]"#,
    ),
    (
        "managedFields",
        r#"[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:a":{}}}},"apiVersion":"hostile.example.com/v9","time":"2024-01-01T00:00:00Z","subresource":"nope"}]"#,
    ),
    ("labels", r#"{"a":["b"]}"#),
    ("annotations", r#"{"kubectl.kubernetes.io/last-applied-configuration":"{"}"#),
    ("annotations", r#"{"kubectl.kubernetes.io/last-applied-configuration":"[]"}"#),
    ("creationTimestamp", r#""9999999-13-45T99:99:99Z""#),
    ("deletionTimestamp", r#""-0001-01-01T00:00:00+99:99""#),
];

/// The collections, and an object for each as far as its metadata.
fn kinds() -> [(&'static str, String); 4] {
    let schema = r#"{"type":"object"}"#;
    let definition = definition("metadata.example.com", schema);
    let start = definition.find("\"metadata\"").unwrap();
    let rest = definition.find("\"spec\"").unwrap();
    let definition = format!("{}METADATA,{}", &definition[..start], &definition[rest..]);
    [
        (CONFIG_MAPS, r#"{"apiVersion":"v1","kind":"ConfigMap",METADATA}"#.to_owned()),
        (FOOS, r#"{"apiVersion":"hostile.example.com/v1","kind":"Foo",METADATA}"#.to_owned()),
        ("/api/v1/namespaces", r#"{"apiVersion":"v1","kind":"Namespace",METADATA}"#.to_owned()),
        (DEFINITIONS, definition),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_takes_every_kind_of_value() {
    let server = server().await;
    let mut members: Vec<String> =
        FIELDS.iter().flat_map(|field| VALUES.iter().map(move |value| format!(r#""{field}":{value}"#))).collect();
    members.extend(LISTS.iter().map(|(field, value)| format!(r#""{field}":{value}"#)));
    let mut requests = Vec::new();
    for (path, body) in kinds() {
        let one = match path {
            DEFINITIONS => format!("{path}/foos.hostile.example.com"),
            "/api/v1/namespaces" => format!("{path}/default"),
            path => format!("{path}/a"),
        };
        let name = one.rsplit('/').next().unwrap();
        for (number, member) in members.iter().enumerate() {
            let with = |name: &str| body.replace("METADATA", &format!(r#""metadata":{{"name":"{name}",{member}}}"#));
            requests.push(Request::new("POST", path).body(JSON, with(&format!("m{number}"))));
            let patch = format!(r#"{{"metadata":{{{member}}}}}"#);
            // Dry, so that the objects stay.
            if path == CONFIG_MAPS || path == FOOS {
                requests.push(Request::new("PUT", format!("{one}?dryRun=All")).body(JSON, with(name)));
            }
            requests.push(Request::new("PATCH", format!("{one}?dryRun=All")).body(PATCHES[1], patch.clone()));
            if path != FOOS {
                requests.push(Request::new("PATCH", format!("{one}?dryRun=All")).body(PATCHES[2], patch));
            }
            let apply = format!("{one}?fieldManager=m&dryRun=All&force=true");
            requests.push(Request::new("PATCH", apply).body(PATCHES[3], with(name)));
        }
        for value in VALUES {
            let body = body.replace("METADATA", &format!(r#""metadata":{value}"#));
            requests.push(Request::new("POST", path).body(JSON, body.clone()));
            requests.push(Request::new("POST", path).body(YAML, body.clone()));
            requests.push(Request::new("PUT", one.clone()).body(JSON, body));
            for top in ["apiVersion", "kind", "spec", "status", "data", "binaryData", "immutable", "x", ""] {
                let body = format!(r#"{{"metadata":{{"name":"t"}},"{top}":{value}}}"#);
                requests.push(Request::new("POST", path).body(JSON, body.clone()));
                requests.push(Request::new("PATCH", format!("{one}?dryRun=All")).body(PATCHES[1], body));
            }
        }
    }
    send_all(&server.target, requests).await;
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_part_of_a_definition_takes_every_kind_of_value() {
    let server = server().await;
    let mut requests = Vec::new();
    let schema =
        |value: &str, word: &str| format!(r#"{{"type":"object","properties":{{"spec":{{"{word}":{value}}}}}}}"#);
    const WORDS: [&str; 40] = [
        "type",
        "format",
        "title",
        "description",
        "default",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "enum",
        "maxProperties",
        "minProperties",
        "required",
        "items",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "properties",
        "additionalProperties",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
        "externalDocs",
        "example",
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ];
    for value in VALUES {
        for word in WORDS {
            requests.push(
                Request::new("POST", DEFINITIONS).body(JSON, definition("parts.example.com", &schema(value, word))),
            );
        }
        for path in [
            "/spec/group",
            "/spec/names",
            "/spec/names/plural",
            "/spec/names/shortNames",
            "/spec/names/categories",
            "/spec/scope",
            "/spec/versions",
            "/spec/versions/0",
            "/spec/versions/0/name",
            "/spec/versions/0/served",
            "/spec/versions/0/storage",
            "/spec/versions/0/schema",
            "/spec/versions/0/subresources",
            "/spec/versions/0/subresources/scale",
            "/spec/versions/0/additionalPrinterColumns",
            "/spec/versions/0/selectableFields",
            "/spec/versions/0/deprecationWarning",
            "/spec/conversion",
            "/spec/conversion/webhook",
            "/spec/preserveUnknownFields",
            "/status",
            "/status/conditions",
            "/status/storedVersions",
            "/status/acceptedNames",
        ] {
            let patch = format!(r#"[{{"op":"add","path":"{path}","value":{value}}}]"#);
            for subresource in ["", "/status"] {
                let path = format!("{DEFINITIONS}/foos.hostile.example.com{subresource}?dryRun=All");
                requests.push(Request::new("PATCH", path).body(PATCHES[0], patch.clone()));
            }
        }
    }
    send_all(&server.target, requests).await;
    well(&server).await;
}
