//! CustomResourceDefinitions of public projects, with a real server's verdicts.

#![allow(clippy::unwrap_used, reason = "a replay that cannot read its cases has failed")]
#![allow(dead_code, reason = "each replay uses a part of what they share")]

mod common;

use common::{invalid, normalise};
use object::{Value, json};
use schema::crd;
use std::io::Read;
use std::path::PathBuf;

fn shared() -> PathBuf {
    match std::env::var_os("STANCHION_SHARED") {
        Some(path) => path.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    }
}

#[test]
fn real_definitions_get_the_verdict_of_a_real_server() {
    let path = shared().join("crds/crds.jsonl.gz");
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let (mut right, mut wrong) = (0, String::new());
    let start = std::time::Instant::now();
    for line in text.lines() {
        let line = json::parse(line.as_bytes()).unwrap();
        let body = line.get("crd").unwrap();
        let want_code = line.at(&["verdict", "code"]).and_then(Value::as_int).unwrap();
        let (code, answer) = judge(body);
        let want = line.at(&["verdict", "status"]).map(normalise).unwrap_or_default();
        let got = answer.as_ref().map(normalise).unwrap_or_default();
        let causes = |v: &Value| v.at(&["details", "causes"]).cloned().unwrap_or_default();
        if i64::from(code) == want_code && causes(&want) == causes(&got) {
            right += 1;
        } else {
            let file = line.str_at(&["file"]).unwrap_or_default();
            wrong.push_str(&format!("{file}: want {want_code}, got {code}\n{}", common::difference(&want, &got)));
        }
    }
    println!("{right} verdicts are right, {:?}", start.elapsed());
    assert!(wrong.is_empty(), "{wrong}");
}

fn judge(body: &Value) -> (u16, Option<Value>) {
    let decoded = match crd::decode(body) {
        Ok(decoded) => decoded,
        Err(error) => return (400, Some(object::Status::bad_request(error).to_value())),
    };
    let mut definition = decoded.definition;
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    let errors = crd::validate(&definition);
    if errors.is_empty() {
        return (201, None);
    }
    let name = definition.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
    let (code, body) = invalid("CustomResourceDefinition", "apiextensions.k8s.io", &name, &errors);
    (code, Some(body))
}
