//! Paths, queries, methods and headers that make no sense.

use crate::support::*;
use compat::client::{Client, Request};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_parameters_are_refused_or_passed_over() {
    let server = server().await;
    const NAMES: [&str; 16] = [
        "limit",
        "timeoutSeconds",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "pretty",
        "dryRun",
        "fieldValidation",
        "fieldManager",
        "gracePeriodSeconds",
        "propagationPolicy",
        "includeObject",
    ];
    const VALUES: [&str; 40] = [
        "",
        "-1",
        "0",
        "1",
        "99999999999999999999",
        "-99999999999999999999",
        "9223372036854775807",
        "18446744073709551615",
        "1.5",
        "0x10",
        "1e3",
        "+1",
        "%2B1",
        "true",
        "null",
        "%00",
        "%ff%fe",
        "%",
        "%zz",
        "%e2%28%a1",
        "garbage",
        "%F0%9F%A6%80",
        "a=b",
        "a%3Db",
        "a!b",
        "%21a",
        "a+in+(b",
        "a+in+()",
        "a+notin+(b,c),!d",
        ",,,",
        "((((",
        "a=b,a!=b,metadata.name=x",
        "metadata.name",
        "spec.x=1",
        "All",
        "Strict",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vLi4vIn0",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ",
        "bnVsbA",
        "W10",
    ];
    let mut requests = Vec::new();
    for name in NAMES {
        for value in VALUES {
            for place in
                [CONFIG_MAPS, FOOS, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/configmaps"]
            {
                requests.push(Request::new("GET", format!("{place}?{name}={value}")));
                let end = if name == "timeoutSeconds" { "" } else { "&timeoutSeconds=-5" };
                if !(name == "timeoutSeconds" && !matches!(value, "-1" | "garbage" | "1.5" | "null" | "%zz")) {
                    requests.push(Request::new("GET", format!("{place}?watch=1&{name}={value}{end}")));
                }
            }
            for place in [CONFIG_MAPS, FOOS] {
                requests.push(Request::new("GET", format!("{place}/a?{name}={value}")));
                requests.push(Request::new("DELETE", format!("{place}/none?{name}={value}")));
                requests.push(Request::new("DELETE", format!("{place}?labelSelector=none&dryRun=All&{name}={value}")));
                requests.push(Request::new("POST", format!("{place}?{name}={value}")).body(JSON, r#"{"metadata":{}}"#));
                requests.push(Request::new("PATCH", format!("{place}/a?{name}={value}")).body(PATCHES[1], "{}"));
            }
        }
        requests.push(Request::new("GET", format!("{CONFIG_MAPS}?{name}=1&{name}=x&{name}")));
        requests.push(Request::new("GET", format!("{CONFIG_MAPS}?{}", format!("{name}=1&").repeat(2_000))));
    }
    requests.push(Request::new("GET", format!("{CONFIG_MAPS}?{}", "&".repeat(20_000))));
    requests.push(Request::new("GET", format!("{CONFIG_MAPS}?=&==&=a&a=b=c&&?&#")));
    send_all(&server.target, requests).await;
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selectors_may_have_thousands_of_terms() {
    let server = server().await;
    let many = |term: &str, between: &str| vec![term; 3_000].join(between);
    let mut client = Client::new(server.target.clone());
    for (selector, code) in [
        (format!("labelSelector={}", many("a=b", ",")), 200),
        (format!("labelSelector={}", many("!a", ",")), 200),
        (format!("labelSelector=a+in+({})", many("b", ",")), 200),
        (format!("labelSelector={}", "(".repeat(10_000)), 400),
        (format!("labelSelector={}", "!".repeat(10_000)), 400),
        (format!("labelSelector=a+in+({}", many("b", ",")), 400),
        (format!("fieldSelector={}", many("metadata.name=a", ",")), 200),
        (format!("fieldSelector={}", "%5C".repeat(5_000)), 400),
        (format!("continue={}", "A".repeat(40_000)), 400),
    ] {
        for place in [CONFIG_MAPS, FOOS] {
            let response = send(&mut client, &Request::new("GET", format!("{place}?{selector}"))).await;
            let start: String = selector.chars().take(40).collect();
            assert_eq!(response.code, code, "{start}: {}", text(&response));
        }
    }
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_paths_and_methods_are_refused() {
    let server = server().await;
    let long = "a".repeat(30_000);
    let deep = "/a".repeat(10_000);
    let mut requests = Vec::new();
    for path in [
        "/",
        "//",
        "///api///v1",
        "/api",
        "/api/",
        "/api/v1/",
        "/api/v2",
        "/apis",
        "/apis/",
        "/apis//v1",
        "/apis/x",
        "/apis/x/",
        "/apis/x/y/",
        "/..",
        "/../../etc/passwd",
        "/api/v1/../v1",
        "/api/v1/namespaces/..",
        "/api/v1/namespaces/../configmaps",
        "/api/v1/namespaces/%2e%2e/configmaps/a",
        "/api/v1/namespaces/%00/configmaps",
        "/api/v1/namespaces/%ff/configmaps/%fe",
        "/api/v1/namespaces//configmaps",
        "/api/v1/namespaces/a%2Fb/configmaps/c%2Fd",
        "/api/v1/namespaces/default/configmaps/%",
        "/api/v1/namespaces/default/configmaps/%zz",
        "/api/v1/namespaces/default/configmaps/.",
        "/api/v1/namespaces/default/configmaps/a/b/c/d/e",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/api/v1/watch",
        "/api/v1/watch/",
        "/api/v1/watch/watch/configmaps?timeoutSeconds=-1",
        "/api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=-1",
        "/api/v1/proxy/x",
        "/api/v1/namespaces/default/configmaps/\u{e9}",
        "/openapi/v3/",
        "/openapi/v3/apis/x/y",
        "/openapi/v3/../v2",
        "/openapi/v2/x",
        "/healthz/x",
        "/healthz/%00",
        "/readyz?exclude=x&exclude=%ff",
        "/livez?verbose=x",
        "/metrics/x",
        "/version/x",
        "/version?%ff",
        "/logs/../../",
        "/debug/pprof",
        "/apis/hostile.example.com/v1/foos/a",
        "/apis/hostile.example.com/v1/namespaces/default",
        "/apis/hostile.example.com/v1/namespaces/default/foos/a/status/x",
        "/apis/hostile.example.com/v9/foos",
        "/apis/HOSTILE.example.com/v1/foos",
        "*",
        "x",
        long.as_str(),
        deep.as_str(),
    ] {
        let path = if path.is_ascii() { path.to_owned() } else { path.replace('\u{e9}', "%C3%A9") };
        let path = if path.starts_with('/') || path == "*" { path } else { format!("/{path}") };
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X", "get"] {
            // `*` is for OPTIONS only, but may be said.
            requests.push(Request::new(method, path.clone()));
        }
    }
    for place in [
        CONFIG_MAPS.to_owned(),
        format!("{CONFIG_MAPS}/a"),
        FOOS.to_owned(),
        format!("{FOOS}/a"),
        format!("{FOOS}/a/status"),
    ] {
        for method in ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "X", "get", "POST", "PUT", "PATCH"] {
            requests.push(Request::new(method, place.clone()));
            requests.push(Request::new(method, place.clone()).header("X-HTTP-Method-Override", "DELETE"));
        }
    }
    send_all(&server.target, requests).await;
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_are_refused_or_mean_themselves() {
    let server = server().await;
    let mut requests = Vec::new();
    let long = "a".repeat(254);
    for name in [
        "%20",
        "a%20b",
        "A",
        "-",
        "%E2%80%AE",
        "..",
        "a..b",
        "%2F",
        "%5C",
        "a%25",
        "a:b",
        "a;b",
        "a,b",
        "a=b",
        "a&b",
        "%0A",
        "%7F",
        "~",
        "@",
        "(a)",
        long.as_str(),
    ] {
        for place in [CONFIG_MAPS, FOOS, DEFINITIONS, "/api/v1/namespaces"] {
            let path = format!("{place}/{name}");
            requests.push(Request::new("GET", &path));
            requests.push(Request::new("DELETE", &path));
            requests.push(Request::new("PUT", &path).body(JSON, r#"{"metadata":{}}"#));
            requests.push(Request::new("PATCH", &path).body(PATCHES[1], "{}"));
            let apply = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#;
            requests.push(Request::new("PATCH", format!("{path}?fieldManager=m")).body(PATCHES[3], apply));
        }
        requests.push(Request::new("GET", format!("/api/v1/namespaces/{name}/configmaps")));
        requests.push(
            Request::new("POST", format!("/api/v1/namespaces/{name}/configmaps"))
                .body(JSON, r#"{"metadata":{"name":"x"}}"#),
        );
    }
    let codes = send_all(&server.target, requests).await;
    assert!(codes.iter().all(|code| *code != 201), "nothing was made");
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_headers_are_refused_or_passed_over() {
    let server = server().await;
    let mut requests = Vec::new();
    for (name, value) in [
        ("Accept", ""),
        ("Accept", "x"),
        ("Accept", "*/*;q=9"),
        ("Accept", "application/json;as=Table"),
        ("Accept", "application/json;as=Table;v=v9;g=x"),
        ("Accept", ",,,;;;==="),
        ("Accept", "application/json;as=\"Ta"),
        ("Authorization", ""),
        ("Authorization", "Basic x"),
        ("Authorization", "Bearer "),
        ("User-Agent", ""),
        ("User-Agent", "//"),
        ("Accept-Encoding", "gzip;q=x"),
        ("Accept-Encoding", "gzip, br, *"),
        ("If-None-Match", "x"),
        ("Expect", "100-continue"),
        ("Expect", "x"),
        ("Impersonate-User", ""),
        ("Impersonate-User", "x"),
        ("Impersonate-Group", "x"),
        ("Impersonate-Extra-%zz", "x"),
        ("Upgrade", "websocket"),
        ("Host", "x"),
        ("Range", "bytes=0-1"),
        ("Connection", "upgrade"),
        ("Cookie", "a"),
        ("X-Forwarded-For", "x"),
    ] {
        for place in [CONFIG_MAPS, FOOS, "/openapi/v2", "/openapi/v3", "/apis", "/healthz", "/metrics"] {
            requests.push(Request::new("GET", place).header(name, value));
        }
        requests.push(Request::new("POST", CONFIG_MAPS).header(name, value).body(JSON, r#"{"metadata":{"name":"a"}}"#));
    }
    for size in [1_000, 30_000] {
        let value = "x".repeat(size);
        for name in ["Accept", "User-Agent", "Authorization", "Content-Type", "X"] {
            requests
                .push(Request::new("PATCH", format!("{CONFIG_MAPS}/a")).header(name, &value).body(PATCHES[1], "{}"));
        }
    }
    send_all(&server.target, requests).await;
    well(&server).await;
}

/// Bytes sent as they are over TLS; gives what comes until the server closes, or pauses for a second.
async fn raw(target: &compat::client::Target, bytes: &[u8]) -> String {
    let mut stream = target.connect().await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Ok(count @ 1..)) = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut buffer)).await {
        answer.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_http_is_told_so() {
    let server = server().await;
    let head = "Host: x\r\nAuthorization: Bearer admintoken\r\n";
    let start = Instant::now();
    let mut checks = Vec::new();
    for (bytes, answer) in [
        (b"\r\n\r\nx y z\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"GET\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n".to_vec(), "HTTP/1.1 4"),
        (b"GET /version HTTP/1.1\r\nA\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"GET /version HTTP/1.1\r\nA: \x01\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (format!("GET {CONFIG_MAPS}?labelSelector=\u{e9}\u{202e} HTTP/1.1\r\n{head}\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("GET /version HTTP/1.1\r\n{head}{}\r\n", "A: b\r\n".repeat(5_000)).into_bytes(), "HTTP/1.1 431"),
        (format!("GET /version HTTP/1.1\r\n{head}A: {}\r\n\r\n", "x".repeat(2 << 20)).into_bytes(), "HTTP/1.1 431"),
        (format!("GET /{} HTTP/1.1\r\n{head}\r\n", "x".repeat(70_000)).into_bytes(), "HTTP/1.1 414"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Content-Length: x\r\n\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Content-Length: -1\r\n\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Content-Length: 99999999999999999999999\r\n\r\n").into_bytes(), "HTTP/1.1 4"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Content-Length: 9999999999\r\n\r\n").into_bytes(), "HTTP/1.1 413"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("POST {CONFIG_MAPS} HTTP/1.1\r\n{head}Transfer-Encoding: x\r\n\r\n").into_bytes(), "HTTP/1.1 400"),
        (format!("CONNECT x:1 HTTP/1.1\r\n{head}\r\n").into_bytes(), "HTTP/1.1 40"),
        (format!("GET http://x/version HTTP/1.1\r\n{head}\r\n").into_bytes(), "HTTP/1.1 200"),
        (format!("GET /version HTTP/1.0\r\n{head}\r\n").into_bytes(), "HTTP/1.0 200"),
        // The other version of the protocol, and then nothing of it.
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_vec(), ""),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x10\x01\x25\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(), ""),
    ] {
        let target = server.target.clone();
        checks.push(tokio::spawn(async move {
            let came = raw(&target, &bytes).await;
            let sent = String::from_utf8_lossy(&bytes).chars().take(120).collect::<String>();
            assert!(came.starts_with(answer), "{came:?} to {sent:?}");
        }));
    }
    for check in checks {
        check.await.unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(15));
    well(&server).await;
}
