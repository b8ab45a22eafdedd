//! The table of definitions against a real server's OpenAPI.

#![allow(clippy::unwrap_used)]

use kinds::definitions::{Definition, ListType, Schema, Type, definitions};
use object::{Map, Value, json, map};

/// A document of a real server, or nothing where it is not at hand.
fn shared(file: &str) -> Option<Value> {
    let folder = std::env::var("STANCHION_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").to_owned());
    let Ok(packed) = std::fs::read(format!("{folder}/openapi/{file}")) else {
        println!("skipped: no {folder}/openapi/{file}");
        return None;
    };
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut text).unwrap();
    json::parse(&text).ok()
}

/// The OpenAPI v3 schemas of a real server.
fn published() -> Option<Map> {
    let document = shared("openapi-v3.json.gz")?;
    let mut schemas = Map::new();
    for group in document.as_object()?.values() {
        for (name, schema) in
            group.at(&["components", "schemas"]).and_then(Value::as_object).into_iter().flat_map(Map::iter)
        {
            schemas.insert(name, schema.clone());
        }
    }
    Some(schemas)
}

fn render(d: &Definition) -> Value {
    let mut out = schema(&d.schema);
    let m = out.as_object_mut().unwrap();
    if !d.fields.is_empty() {
        m.insert("properties", d.fields.iter().map(|f| (f.name, schema(&f.schema))).collect::<Map>());
    }
    let required: Vec<&str> = d.required().collect();
    if !required.is_empty() {
        m.insert("required", required);
    }
    if !d.kinds.is_empty() {
        let kinds: Vec<Map> =
            d.kinds.iter().map(|k| map! { "group" => k.group, "version" => k.version, "kind" => k.kind }).collect();
        m.insert("x-kubernetes-group-version-kind", kinds);
    }
    if !d.union.is_empty() {
        m.insert("x-kubernetes-unions", vec![json::parse(d.union.as_bytes()).unwrap()]);
    }
    out
}

fn schema(s: &Schema) -> Value {
    let one_of = |types: [&str; 2]| Value::from(types.iter().map(|t| map! { "type" => *t }).collect::<Vec<Map>>());
    let typed = |t: &str, format: &str| map! { "type" => t, "format" => format };
    let mut m = match &s.ty {
        Type::Any => Map::new(),
        Type::Object => map! { "type" => "object" },
        Type::String => map! { "type" => "string" },
        Type::Bytes => typed("string", "byte"),
        Type::DateTime => typed("string", "date-time"),
        Type::Int32 => typed("integer", "int32"),
        Type::Int64 => typed("integer", "int64"),
        Type::Double => typed("number", "double"),
        Type::Bool => map! { "type" => "boolean" },
        Type::IntOrString => map! { "format" => "int-or-string", "oneOf" => one_of(["integer", "string"]) },
        Type::Quantity => map! { "oneOf" => one_of(["string", "number"]) },
        Type::List(item) => map! { "type" => "array", "items" => schema(item) },
        Type::Map(value) => map! { "type" => "object", "additionalProperties" => schema(value) },
        Type::Ref(name) => {
            let target = format!("#/components/schemas/{name}");
            map! { "allOf" => vec![map! { "$ref" => target }] }
        }
    };
    if let Some(default) = s.default() {
        m.insert("default", default);
    }
    if let Some(values) = s.enum_values() {
        m.insert("enum", values.collect::<Vec<_>>());
    }
    match s.list_type {
        Some(ListType::Atomic) => m.insert("x-kubernetes-list-type", "atomic"),
        Some(ListType::Set) => m.insert("x-kubernetes-list-type", "set"),
        Some(ListType::Map) => m.insert("x-kubernetes-list-type", "map"),
        None => None,
    };
    let keys: Vec<&str> = s.list_map_keys().collect();
    if !keys.is_empty() {
        m.insert("x-kubernetes-list-map-keys", keys);
    }
    for (key, value) in
        [("map-type", s.map_type), ("patch-merge-key", s.patch_merge_key), ("patch-strategy", s.patch_strategy)]
    {
        if !value.is_empty() {
            m.insert(format!("x-kubernetes-{key}"), value);
        }
    }
    Value::Object(m)
}

/// `allOf` with one reference and the reference alone say the same.
fn plain(value: &mut Value) {
    match value {
        Value::Object(m) => {
            if let Some(Value::Array(mut all)) = m.remove("allOf")
                && let Some(Value::Object(target)) = all.pop()
            {
                for (k, v) in target {
                    m.insert(k, v);
                }
            }
            m.values_mut().for_each(plain);
        }
        Value::Array(a) => a.iter_mut().for_each(plain),
        _ => {}
    }
}

#[test]
fn the_definitions_are_those_of_a_real_server() {
    let Some(real) = published() else { return };
    let mut differences = Vec::new();
    for d in definitions().iter() {
        let mut ours = render(d);
        plain(&mut ours);
        let mut theirs = real.get(d.name).cloned().unwrap_or_default();
        plain(&mut theirs);
        if ours != theirs {
            differences.push(format!(
                "{}\n ours   {}\n theirs {}",
                d.name,
                json::to_string(&ours),
                json::to_string(&theirs)
            ));
        }
    }
    differences.extend(real.keys().filter(|n| definitions().get(n).is_none()).map(|n| format!("missing {n}")));
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}

/// The legacy discovery document of one version of a group, as the catalogue has it.
fn discovery(group: &str, version: &str) -> Vec<Value> {
    let mut out = Vec::new();
    for r in kinds::in_group(group).iter().filter(|r| r.version(version).is_some()) {
        let mut own = map! {
            "name" => r.plural, "singularName" => r.singular(), "kind" => r.kind, "namespaced" => r.namespaced,
            "verbs" => r.verbs.to_vec(),
        };
        for (key, list) in [("shortNames", r.short_names), ("categories", r.categories)] {
            if !list.is_empty() {
                own.insert(key, list.to_vec());
            }
        }
        out.push(Value::Object(own));
        for s in r.subresources {
            let mut sub = map! {
                "name" => format!("{}/{}", r.plural, s.name), "singularName" => "", "kind" => s.kind,
                "namespaced" => r.namespaced, "verbs" => s.verbs.to_vec(),
            };
            if !s.version.is_empty() {
                sub.insert("group", s.group);
                sub.insert("version", s.version);
            }
            out.push(Value::Object(sub));
        }
    }
    out
}

#[test]
fn discovery_is_that_of_a_real_server() {
    let Some(real) = shared("discovery.json.gz") else { return };
    for (path, document) in real.get("legacy").and_then(Value::as_object).unwrap().iter() {
        let Some(theirs) = document.get("resources").and_then(Value::as_array) else { continue };
        let (group, version) =
            document.str_at(&["groupVersion"]).map(|gv| gv.rsplit_once('/').unwrap_or(("", gv))).unwrap();
        let mut theirs = theirs.to_vec();
        for resource in &mut theirs {
            resource.as_object_mut().unwrap().remove("storageVersionHash");
        }
        assert_eq!(discovery(group, version), theirs, "{path}");
    }
    let groups: Vec<&str> = kinds::groups().skip(1).collect();
    let theirs = real.at(&["legacy", "/apis", "groups"]).and_then(Value::as_array).unwrap();
    assert_eq!(groups, theirs.iter().map(|g| g.str_at(&["name"]).unwrap()).collect::<Vec<_>>());
    for group in theirs {
        let versions: Vec<&str> = group
            .get("versions")
            .and_then(Value::as_array)
            .unwrap()
            .iter()
            .map(|v| v.str_at(&["version"]).unwrap())
            .collect();
        assert_eq!(kinds::group_versions(group.str_at(&["name"]).unwrap()), versions);
    }
}
