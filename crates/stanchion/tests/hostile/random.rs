//! Requests put together at random. `STANCHION_HOSTILE_SEED` and `STANCHION_HOSTILE_REQUESTS` choose others and more.

use crate::support::*;
use compat::client::Request;

/// Marsaglia's xorshift: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const SEGMENTS: [&str; 26] = [
    "api",
    "apis",
    "v1",
    "namespaces",
    "default",
    "configmaps",
    "secrets",
    "pods",
    "a",
    "status",
    "scale",
    "watch",
    "hostile.example.com",
    "foos",
    "",
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "foos.hostile.example.com",
    "events",
    "serviceaccounts",
    "openapi",
    "v2",
    "v3",
    "%2e",
    "finalize",
    "token",
];
const PARAMETERS: [&str; 22] = [
    "watch=true",
    "watch=0",
    "limit=1",
    "limit=-1",
    "continue=x",
    "resourceVersion=1",
    "resourceVersion=999999",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "labelSelector=l",
    "labelSelector=l=x,m!=y",
    "fieldSelector=metadata.name=a",
    "fieldSelector=a=b",
    "dryRun=All",
    "fieldManager=m",
    "force=true",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "propagationPolicy=Orphan",
    "pretty=true",
    "sendInitialEvents=true",
    "allowWatchBookmarks=true",
];
const TYPES: [&str; 8] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/x",
];
const ACCEPTS: [&str; 6] = [
    "*/*",
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
];
const WORDS: [&str; 40] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "spec",
    "status",
    "data",
    "binaryData",
    "ConfigMap",
    "Foo",
    "v1",
    "hostile.example.com/v1",
    "a",
    "l",
    "x",
    "size",
    "generateName",
    "resourceVersion",
    "uid",
    "op",
    "path",
    "value",
    "from",
    "add",
    "remove",
    "/metadata/labels/l",
    "/spec/a",
    "$patch",
    "delete",
    "preconditions",
    "conditions",
    "fieldsV1",
    "f:a",
    "immutable",
    "type",
];
const STARTS: [&str; 6] = [
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"r","labels":{"a":"b"}},"data":{"k":"v"}}"#,
    r#"{"apiVersion":"hostile.example.com/v1","kind":"Foo","metadata":{"name":"r","finalizers":["a/b"]},"spec":{"size":3,"a":[{"b":1}]}}"#,
    r#"[{"op":"add","path":"/metadata/labels/z","value":"y"},{"op":"test","path":"/kind","value":"Foo"},{"op":"remove","path":"/spec/a"}]"#,
    r#"{"metadata":{"annotations":{"a":"b","c":null}},"spec":{"a":null,"$patch":"replace"}}"#,
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: &l {x: y}\ndata:\n  a: |\n    b\n  c: 'd'\n",
    r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"x"},"propagationPolicy":"Background"}"#,
];

fn value(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => "null".to_owned(),
        1 => random.of(&["true", "false"]).to_owned(),
        2 => (random.next() as i64 >> random.below(64)).to_string(),
        3 => random.of(&["1.5", "-0", "1e5", "1e300", "0.1"]).to_owned(),
        4 | 5 => format!("\"{}\"", random.of(&WORDS)),
        6 => {
            let members: Vec<String> = (0..random.below(4)).map(|_| value(random, depth - 1)).collect();
            format!("[{}]", members.join(","))
        }
        _ => {
            let members: Vec<String> = (0..random.below(6))
                .map(|_| format!("\"{}\":{}", random.of(&WORDS), value(random, depth - 1)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn body(random: &mut Random) -> Vec<u8> {
    if random.below(3) == 0 {
        return value(random, 5).into_bytes();
    }
    let mut body = random.of(&STARTS).as_bytes().to_vec();
    for _ in 0..random.below(5) {
        let at = random.below(body.len());
        match random.below(5) {
            0 => body[at] = random.next() as u8,
            1 => body.truncate(at),
            2 => {
                let more = value(random, 2);
                body.splice(at..at, more.bytes());
            }
            3 => {
                let end = at + random.below(body.len() - at);
                body.drain(at..end);
            }
            _ => {
                // One word for another.
                let (from, to) = (random.of(&WORDS), random.of(&WORDS));
                if let Ok(text) = String::from_utf8(body.clone()) {
                    body = text.replacen(from, to, 1).into_bytes();
                }
            }
        }
        if body.is_empty() {
            break;
        }
    }
    body
}

fn request(random: &mut Random) -> Request {
    let mut path = match random.below(3) {
        0 => (0..1 + random.below(8)).map(|_| format!("/{}", random.of(&SEGMENTS))).collect(),
        1 => format!("{}/a", random.of(&[CONFIG_MAPS, FOOS])),
        _ => random.of(&[CONFIG_MAPS, FOOS, DEFINITIONS, "/api/v1/namespaces"]).to_owned(),
    };
    let mut method = random.of(&METHODS);
    if method == "DELETE" && random.below(4) > 0 {
        method = "PATCH";
    }
    path.push_str("?timeoutSeconds=-1");
    for _ in 0..random.below(4) {
        path.push_str(&format!("&{}", random.of(&PARAMETERS)));
    }
    let mut request = Request::new(method, path).header("Accept", random.of(&ACCEPTS));
    if random.below(10) > 0 && !matches!(method, "GET" | "HEAD") {
        request = request.body(random.of(&TYPES), body(random));
    }
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_get_proper_answers() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let seed = number("STANCHION_HOSTILE_SEED", 20_250_601);
    println!("STANCHION_HOSTILE_SEED={seed}");
    let server = server().await;
    let mut random = Random(seed | 1);
    let requests: Vec<Request> =
        (0..number("STANCHION_HOSTILE_REQUESTS", 4_000)).map(|_| request(&mut random)).collect();
    send_all(&server.target, requests).await;
    let mut client = compat::client::Client::new(server.target.clone());
    for path in
        ["/readyz", "/api/v1/configmaps", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/openapi/v2"]
    {
        assert_eq!(send(&mut client, &Request::new("GET", path)).await.code, 200, "{path}");
    }
}
