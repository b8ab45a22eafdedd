//! The table of definitions against a real server's OpenAPI.

#![allow(clippy::unwrap_used)]

use kinds::definitions::{Dialect, definitions};
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
    for d in definitions().iter().filter(|d| !d.is_optional()) {
        let mut ours = d.to_openapi(Dialect::V3);
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
