//! Bodies that are not what they should be.

use crate::support::*;
use compat::client::{Client, Request};
use std::time::{Duration, Instant};

const DEPTH: usize = 10_000;
const PLACES: [&str; 4] = [CONFIG_MAPS, FOOS, DEFINITIONS, "/api/v1/namespaces"];

/// Texts that are no objects, or no texts at all.
fn broken() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 34] = [
        b"",
        b" ",
        b"{",
        b"}",
        b"[",
        b"null",
        b"true",
        b"1",
        b"\"x\"",
        b"[]",
        b"{}",
        b"{}{}",
        b"{\"a\"",
        b"{\"a\":",
        b"{\"a\":1,}",
        b"{a: b}",
        b"- a\n- b",
        b"a: b: c",
        b"\t",
        b"\"\\ud800\"",
        b"{\"a\":\"\\ud800\"}",
        b"{\"a\":\"\xff\xfe\"}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\0}\0",
        b"\0",
        b"{\"kind\":\"ConfigMap\",\"kind\":\"Foo\"}",
        b"{\"a\":1e999}",
        b"{\"a\":-1e-999}",
        b"{\"a\":99999999999999999999999999}",
        b"!!binary x",
        b"--- a\n--- b",
        b"%YAML 9.9\n---\na: b",
        b"&a [*a]",
        b"? ? ? ?",
    ];
    texts.map(<[u8]>::to_vec).to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_bodies_are_refused() {
    let server = server().await;
    let mut requests = Vec::new();
    for place in PLACES {
        for media_type in
            [JSON, YAML, "application/vnd.kubernetes.protobuf", "text/plain", "", "application/json; charset=\"", ";;"]
        {
            for body in broken() {
                requests.push(Request::new("POST", place).body(media_type, body.clone()));
                if place == CONFIG_MAPS || place == FOOS {
                    requests.push(Request::new("PUT", format!("{place}/a")).body(media_type, body.clone()));
                    requests.push(Request::new("PUT", format!("{place}/a/status")).body(media_type, body.clone()));
                    requests.push(Request::new("DELETE", format!("{place}/none")).body(media_type, body));
                }
            }
        }
    }
    let codes = send_all(&server.target, requests).await;
    // Upstream answers 500 for options of a delete that it cannot read.
    assert!(codes.iter().all(|code| (400..=500).contains(code)), "{codes:?}");
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_bodies_are_refused_or_kept_whole() {
    let server = server().await;
    let foo = |spec: &str| {
        format!(
            r#"{{"apiVersion":"hostile.example.com/v1","kind":"Foo","metadata":{{"generateName":"d-"}},"spec":{spec}}}"#
        )
    };
    let map = |rest: &str| format!(r#"{{"metadata":{{"generateName":"d-"}},{rest}}}"#);
    let mut requests = Vec::new();
    for depth in [400, 990, 1_100, DEPTH, 100 * DEPTH] {
        let lists = nested("[", "1", "]", depth);
        let maps = nested(r#"{"a":"#, "1", "}", depth);
        let mut post = |path: &str, media_type: &str, body: String| {
            requests.push(Request::new("POST", path).body(media_type, body));
        };
        for value in [&lists, &maps, &"[".repeat(depth), &r#"{"a":"#.repeat(depth)] {
            for media_type in [JSON, YAML] {
                post(FOOS, media_type, value.clone());
                post(FOOS, media_type, foo(&format!(r#"{{"a":{value}}}"#)));
                post(CONFIG_MAPS, media_type, map(&format!(r#""data":{{"a":{value}}}"#)));
                post(CONFIG_MAPS, media_type, map(&format!(r#""x":{value}"#)));
                post(
                    CONFIG_MAPS,
                    media_type,
                    format!(r#"{{"metadata":{{"name":"d","annotations":{{"a":{value}}}}}}}"#),
                );
                post(
                    CONFIG_MAPS,
                    media_type,
                    format!(r#"{{"metadata":{{"name":"d","managedFields":[{{"fieldsV1":{value}}}]}}}}"#),
                );
            }
        }
        // Without brackets.
        post(FOOS, YAML, "- ".repeat(depth));
        post(FOOS, YAML, "? ".repeat(depth));
        post(FOOS, YAML, format!("spec:\n  {}", "- ".repeat(depth)));
        post(FOOS, YAML, "!!map ".repeat(depth));
        let indented: String = (0..depth.min(1_500)).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        post(FOOS, YAML, indented);
        // Schemas.
        for (number, (open, close)) in [
            (r#"{"type":"object","properties":{"a":"#, "}}"),
            (r#"{"type":"array","items":"#, "}"),
            (r#"{"type":"object","additionalProperties":"#, "}"),
            (r#"{"not":"#, "}"),
            (r#"{"allOf":["#, "]}"),
            (r#"{"type":"object","default":{"a":"#, "}}"),
        ]
        .into_iter()
        .enumerate()
        {
            let schema = nested(open, r#"{"type":"object"}"#, close, depth);
            let schema = format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#);
            let group = format!("deep{depth}-{number}.example.com");
            post(DEFINITIONS, JSON, definition(&group, &schema));
        }
        // Rules.
        for rule in [
            nested("(", "self", ")", depth),
            nested("[", "self", "]", depth),
            "!".repeat(depth) + "self",
            "self".to_owned() + &".a".repeat(depth),
            "self+".repeat(depth) + "self",
            nested("self.map(x,", "x", ")", depth),
        ] {
            let schema = format!(r#"{{"type":"object","x-kubernetes-validations":[{{"rule":"{rule}"}}]}}"#);
            post(DEFINITIONS, JSON, definition("deep.example.com", &schema));
        }
    }
    requests.retain(|r| r.body.as_ref().is_none_or(|b| b.len() < 3 << 20));
    send_all(&server.target, requests).await;
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_too_large_are_refused() {
    let server = server().await;
    let mut client = Client::new(server.target.clone());
    for megabytes in [3, 4, 12] {
        let body = format!(r#"{{"metadata":{{"name":"big"}},"data":{{"a":"{}"}}}}"#, "x".repeat(megabytes << 20));
        let response = send(&mut client, &Request::new("POST", CONFIG_MAPS).body(JSON, body)).await;
        assert_eq!(response.code, 413, "{megabytes} MB: {}", text(&response));
    }
    // Just as much as is allowed, but more than a ConfigMap holds.
    let body = format!(r#"{{"metadata":{{"name":"big"}},"data":{{"a":"{}"}}}}"#, "x".repeat((3 << 20) - 100));
    let response = send(&mut client, &Request::new("POST", CONFIG_MAPS).body(JSON, body)).await;
    assert_eq!(response.code, 422, "{}", text(&response));
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_three_megabytes_hold_is_answered_soon() {
    let server = server().await;
    // A debug build takes ten times as long as a server that is used; the bodies are smaller by as much.
    let size = (3 << 20) / if cfg!(debug_assertions) { 12 } else { 1 } - 1_000;
    let fill = |part: &str| part.repeat(size / part.len());
    let foo = |spec: &str| {
        format!(
            r#"{{"apiVersion":"hostile.example.com/v1","kind":"Foo","metadata":{{"generateName":"l-"}},"spec":{{"a":{spec}}}}}"#
        )
    };
    let keys: String = (0..size / 14).map(|i| format!(r#""k{i:07}":1,"#)).collect();
    let properties: String = (0..size / 34).map(|i| format!(r#""k{i:07}":{{"type":"integer"}},"#)).collect();
    // YAML takes longer to read; in a debug build much longer.
    let some = |part: &str| part.repeat(size / 8 / part.len());
    let rules = fill(r#"{"rule":"self.a == self.a"},"#);
    let schema = |inside: String| definition("large.example.com", &format!(r#"{{"type":"object",{inside}}}"#));
    let bodies = [
        (FOOS, JSON, foo(&format!("[{}1]", fill("1,")))),
        (FOOS, JSON, foo(&format!("[{}[]]", fill("[],")))),
        (FOOS, JSON, foo(&format!("[{}{{}}]", fill("{},")))),
        (FOOS, JSON, foo(&format!(r#"{{{keys}"z":1}}"#))),
        (FOOS, JSON, foo(&format!(r#"{{{}"z":1}}"#, fill(r#""a":1,"#)))),
        (FOOS, JSON, foo(&fill("9"))),
        (FOOS, JSON, foo(&format!("0.{}", fill("1")))),
        (FOOS, JSON, foo(&format!("\"{}\"", fill("\\u0000")))),
        (FOOS, YAML, format!("spec:\n{}", some(" - a\n"))),
        (FOOS, YAML, format!("spec: [{}]", some("a, "))),
        (FOOS, YAML, some("a: b\n")),
        (FOOS, YAML, keys[..size / 8].replace("\"", "").replace(":1,", ": 1\n")),
        (FOOS, YAML, nested("&a [", &format!("[{}]", some("[],")), "]", 900)),
        (FOOS, YAML, some("---\n")),
        (FOOS, YAML, some("#\n")),
        (FOOS, YAML, some("&a ")),
        (FOOS, YAML, some("[")),
        (FOOS, YAML, some("\"")),
        (FOOS, YAML, some("? ")),
        (FOOS, YAML, format!("a: |\n{}", some(" x\n"))),
        (
            CONFIG_MAPS,
            JSON,
            format!(r#"{{"metadata":{{"name":"x","labels":{{{}"z":"1"}}}}}}"#, keys.replace(":1,", ":{},")),
        ),
        (CONFIG_MAPS, JSON, format!(r#"{{"metadata":{{"name":"x","finalizers":[{}"a/b"]}}}}"#, fill("\"??\","))),
        (CONFIG_MAPS, JSON, format!(r#"{{"metadata":{{"name":"x","ownerReferences":[{}{{}}]}}}}"#, fill("{},"))),
        (CONFIG_MAPS, JSON, format!(r#"{{"metadata":{{"name":"x","managedFields":[{}{{}}]}}}}"#, fill("{},"))),
        (CONFIG_MAPS, JSON, format!(r#"{{"metadata":{{"name":"x"}},{}"z":1}}"#, keys)),
        (DEFINITIONS, JSON, schema(format!(r#""properties":{{{properties}"z":{{"type":"string"}}}}"#))),
        (
            DEFINITIONS,
            JSON,
            schema(format!(r#""properties":{{{}"z":{{"type":"string"}}}}"#, properties.replace("integer", "int"))),
        ),
        (
            DEFINITIONS,
            JSON,
            schema(format!(
                r#""properties":{{"a":{{"type":"string"}}}},"x-kubernetes-validations":[{rules}{{"rule":"true"}}]"#
            )),
        ),
        (DEFINITIONS, JSON, schema(format!(r#""required":[{}"a"]"#, fill(r#""a","#)))),
        (DEFINITIONS, JSON, schema(format!(r#""allOf":[{}{{}}]"#, fill("{},")))),
        (DEFINITIONS, JSON, schema(format!(r#""properties":{{"a":{{"type":"string","pattern":"{}"}}}}"#, fill("a?")))),
        (
            DEFINITIONS,
            JSON,
            schema(format!(r#""properties":{{"a":{{"type":"string","enum":[{}"a"]}}}}"#, fill(r#""a","#))),
        ),
        (DEFINITIONS, JSON, schema(format!(r#""x-kubernetes-validations":[{{"rule":"{}true"}}]"#, fill("true||")))),
        (DEFINITIONS, JSON, schema(format!(r#""x-kubernetes-validations":[{{"rule":"{}"}}]"#, fill("(")))),
        (
            DEFINITIONS,
            JSON,
            schema(format!(r#""x-kubernetes-validations":[{{"rule":"[{}1].all(x, x > 0)"}}]"#, fill("1,"))),
        ),
    ];
    let mut client = Client::new(server.target.clone());
    for (path, media_type, body) in bodies {
        let start: String = body.chars().take(150).collect();
        let end: String = body.chars().skip(body.len().saturating_sub(40)).collect();
        assert!(body.len() <= 3 << 20, "{start}: {}", body.len());
        let clock = Instant::now();
        let response = send(&mut client, &Request::new("POST", path).body(media_type, body)).await;
        let took = clock.elapsed();
        if std::env::var_os("STANCHION_HOSTILE_VERBOSE").is_some() {
            println!("{took:?} {} for {start} … {end}", response.code);
        }
        assert!(took < Duration::from_secs(5), "{took:?} for {start} … {end}");
    }
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yaml_that_refers_to_itself_does_not_grow() {
    let server = server().await;
    let mut bomb = "apiVersion: hostile.example.com/v1\nkind: Foo\nmetadata: {name: bomb}\nspec:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for i in 1..12 {
        let before = format!("*a{},", i - 1).repeat(10);
        bomb.push_str(&format!("  a{i}: &a{i} [{before}]\n"));
    }
    let merged = "apiVersion: hostile.example.com/v1\nkind: Foo\nmetadata: {name: b}\nspec:\n  a: &a\n    <<: *a\n";
    let circle = "apiVersion: hostile.example.com/v1\nkind: Foo\nmetadata: {name: c}\nspec: &a\n  b: [*a, *a]\n";
    let mut requests = Vec::new();
    for body in [bomb.as_str(), merged, circle] {
        requests.push(Request::new("POST", FOOS).body(YAML, body));
        requests.push(Request::new("POST", CONFIG_MAPS).body(YAML, body));
        let path = format!("{FOOS}/bomb?fieldManager=m");
        requests.push(Request::new("PATCH", path).body("application/apply-patch+yaml", body));
    }
    let codes = send_all(&server.target, requests).await;
    assert!(codes.iter().all(|code| (400..500).contains(code)), "{codes:?}");
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packed_bodies_are_refused() {
    let server = server().await;
    let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xab\xae\x05\0\x43\xbf\xa6\xa3\x02\0\0\0";
    let requests = ["gzip", "deflate", "br", "x"]
        .map(|coding| Request::new("POST", CONFIG_MAPS).header("Content-Encoding", coding).body(JSON, packed));
    let codes = send_all(&server.target, requests).await;
    assert!(codes.iter().all(|code| (400..500).contains(code)), "{codes:?}");
    well(&server).await;
}
