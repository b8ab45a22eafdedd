//! Clients that say nothing, or say it slowly, or in another language.

use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use compat::client::{Client, Request};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take while others do their worst.
const SOON: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_idle_connections_hold_nobody_up() {
    let server = server().await;
    let mut plain = Vec::new();
    let mut shaken = Vec::new();
    let mut begun = Vec::new();
    for _ in 0..1_700 {
        plain.push(TcpStream::connect(server.target.address).await.unwrap());
    }
    for i in 0..300 {
        let mut stream = server.target.connect().await.unwrap();
        if i % 2 == 0 {
            stream.write_all(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bea").await.unwrap();
        }
        shaken.push(stream);
    }
    for _ in 0..50 {
        let mut stream = server.target.connect().await.unwrap();
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\nContent-Length: 1000\r\n\r\n{{\"metadata\":"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        begun.push(stream);
    }
    let start = Instant::now();
    let mut client = Client::new(server.target.clone());
    let response = send(&mut client, &Request::new("GET", CONFIG_MAPS)).await;
    assert_eq!(response.code, 200);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    well(&server).await;
    drop((plain, shaken, begun));
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_broken_off_leave_nothing_behind() {
    let server = server().await;
    let body = r#"{"metadata":{"name":"broken-off"},"data":{"a":"b"}}"#;
    for cut in 0..body.len() {
        let mut stream = server.target.connect().await.unwrap();
        let length = body.len();
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\nContent-Length: {length}\r\n\r\n{}",
            &body[..cut]
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        if cut % 2 == 0 {
            stream.shutdown().await.unwrap();
        }
    }
    let mut client = Client::new(server.target.clone());
    let response = send(&mut client, &Request::new("GET", format!("{CONFIG_MAPS}/broken-off"))).await;
    assert_eq!(response.code, 404);
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_is_served_in_the_end() {
    let server = server().await;
    let body = r#"{"metadata":{"name":"slow"}}"#;
    let request = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = server.target.connect().await.unwrap();
    for byte in request.bytes() {
        stream.write_all(&[byte]).await.unwrap();
        stream.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer));
}

/// Clients that ask and do not read must not hold memory without end, nor anybody up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_hold_nobody_up() {
    let server = server().await;
    let mut client = Client::new(server.target.clone());
    let large = "x".repeat(900_000);
    for i in 0..5 {
        let body = format!(r#"{{"metadata":{{"name":"large{i}"}},"data":{{"a":"{large}"}}}}"#);
        assert_eq!(send(&mut client, &Request::new("POST", CONFIG_MAPS).body(JSON, body)).await.code, 201);
    }
    let mut held = Vec::new();
    for i in 0..40 {
        let mut stream = server.target.connect().await.unwrap();
        let watch = if i % 2 == 0 { "?watch=true" } else { "" };
        let head = format!("GET {CONFIG_MAPS}{watch} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        held.push(stream);
    }
    let start = Instant::now();
    for i in 0..20 {
        let patch = format!(r#"{{"data":{{"b":"{i}"}}}}"#);
        let request = Request::new("PATCH", format!("{CONFIG_MAPS}/large0")).body(PATCHES[1], patch);
        assert_eq!(send(&mut client, &request).await.code, 200);
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    well(&server).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_tls_is_turned_away() {
    let server = server().await;
    for (bytes, answer) in [
        (
            &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        ),
        (
            b"POST /api HTTP/1.1\r\n",
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        ),
        (b"\x16\x03\x01\xff\xff\x01", ""),
        (b"\x16\x03\x01\x00\x05hello", ""),
        (b"SSH-2.0-x\r\n", ""),
        (b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ""),
        (b"\x15\x03\x03\x00\x02\x02\x28", ""),
    ] {
        let mut stream = TcpStream::connect(server.target.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut came = Vec::new();
        let read = stream.read_to_end(&mut came);
        // A message said to be long may well be on its way still.
        let ended = tokio::time::timeout(SOON, read).await;
        let waits = bytes.starts_with(b"\x16\x03\x01\xff");
        assert!(ended.is_ok() || waits, "{bytes:?} keeps the connection");
        let came = String::from_utf8_lossy(&came);
        assert!(if answer.is_empty() { !came.starts_with("HTTP") } else { came == answer }, "{came:?} to {bytes:?}");
    }
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_over_a_websocket_has_a_message_for_each_event() {
    let server = server().await;
    // Browsers have no other place for a token than among the subprotocols.
    let token = URL_SAFE_NO_PAD.encode("admintoken");
    let protocols =
        format!("Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token}, base64.binary.k8s.io");
    for credentials in ["Authorization: Bearer admintoken", &protocols] {
        has_a_message_for_each_event(&server, credentials).await;
    }
    well(&server).await;
}

async fn has_a_message_for_each_event(server: &compat::server::Server, credentials: &str) {
    let mut stream = server.target.connect().await.unwrap();
    let head = format!(
        "GET {CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Da HTTP/1.1\r\nHost: x\r\n\
         {credentials}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    let whole = |seen: &[u8]| seen.ends_with(b"}\n");
    while !whole(&seen) {
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_buf(&mut seen)).await;
        assert_ne!(read.unwrap().unwrap(), 0, "{}", String::from_utf8_lossy(&seen));
    }
    let end = seen.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&seen[..end]).to_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("s3ppl"), "{head}");
    let (first, event) = seen[end..].split_at(4);
    let length = u16::try_from(event.len()).unwrap().to_be_bytes();
    assert_eq!(first, [0x81, 126, length[0], length[1]]);
    assert!(event.starts_with(br#"{"type":"ADDED","object":{"#), "{}", String::from_utf8_lossy(event));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_a_host_is_refused() {
    let server = server().await;
    let mut stream = server.target.connect().await.unwrap();
    stream.write_all(b"GET /version HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n400 Bad Request: missing required Host header"), "{answer}");
}
