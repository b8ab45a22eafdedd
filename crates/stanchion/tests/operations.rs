//! What those who run a server do to it while it runs: certificates and tokens are replaced, it is asked to log more, it is ended.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request, Response};
use compat::server::Server;
use http_body_util::BodyExt;
use rcgen::{CertificateParams, Issuer, KeyPair};
use std::path::Path;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn start(flags: &[&str]) -> Server {
    Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), flags).unwrap()
}

fn signal(server: &Server, name: &str) {
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &server.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

async fn send(server: &Server, request: &Request) -> Response {
    Client::new(server.target.clone()).send(request).await.unwrap()
}

fn text(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

fn as_user(token: &str, request: Request) -> Request {
    let headers = vec![("Authorization".to_owned(), format!("Bearer {token}"))];
    Request { headers, ..request }
}

/// The certificate that a new connection gets.
async fn certificate(server: &Server) -> Vec<u8> {
    let stream = server.target.connect().await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Asks until it is so.
async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) {
    let began = Instant::now();
    while !is().await {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_tokens_are_renewed_while_connections_stay_open() {
    let server = start(&[]);
    let watch = Request::new("GET", format!("{MAPS}?watch=true&resourceVersion=0"));
    let mut events = Client::new(server.target.clone()).stream(&watch).await.unwrap();
    let before = certificate(&server).await;

    // The server's own certificate is about to end; a token comes, another goes.
    let pki = server.folder().join("pki");
    let read = |name: &str| std::fs::read_to_string(pki.join(name)).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), KeyPair::from_pem(&read("ca.key")).unwrap()).unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    (params.not_before, params.not_after) =
        (OffsetDateTime::now_utc() - time::Duration::days(1), OffsetDateTime::now_utc() + time::Duration::days(2));
    let key = KeyPair::generate().unwrap();
    let ending = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(pki.join("server.key"), key.serialize_pem()).unwrap();
    std::fs::write(pki.join("server.crt"), ending.pem()).unwrap();
    std::fs::write(server.folder().join("tokens.csv"), "admintoken,admin,,system:masters\nnewtoken,new,,\n").unwrap();
    signal(&server, "HUP");

    let page = |token: &str| as_user(token, Request::new("GET", "/version"));
    until("the new token is known", || async { send(&server, &page("newtoken")).await.code == 200 }).await;
    assert_eq!(send(&server, &page("alicetoken")).await.code, 401);
    let after = certificate(&server).await;
    assert!(after != before && after != *ending.der().to_vec(), "the certificate is not renewed");

    let map = Request::new("POST", MAPS).body("application/json", r#"{"metadata":{"name":"after"}}"#);
    assert_eq!(send(&server, &map).await.code, 201);
    let mut seen = String::new();
    while !seen.contains("\"after\"") {
        let frame = tokio::time::timeout(Duration::from_secs(10), events.frame()).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(frame.unwrap().unwrap().data_ref().unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_of_no_use_change_nothing() {
    let server = start(&["--log-level", "off"]);
    let before = certificate(&server).await;
    std::fs::write(server.folder().join("tokens.csv"), "nonsense\n").unwrap();
    std::fs::write(server.folder().join("pki/server.key"), "nonsense").unwrap();
    signal(&server, "HUP");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(send(&server, &Request::new("GET", MAPS)).await.code, 200);
    assert_eq!(certificate(&server).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_much_is_logged_changes_at_run_time() {
    let server = start(&["--log-level", "off"]);
    let put = |level: &str| Request::new("PUT", "/debug/flags/v").body("text/plain", level);
    let answer = send(&server, &put("4")).await;
    assert_eq!((answer.code, text(&answer).as_str()), (200, "successfully set klog.logging.verbosity to 4\n"));
    assert_eq!(send(&server, &put("0")).await.code, 200);
    let answer = send(&server, &put("x")).await;
    let wanted = "failed set klog.logging.verbosity x: strconv.ParseInt: parsing \"x\": invalid syntax\n";
    assert_eq!((answer.code, text(&answer).as_str()), (400, wanted));
    let answer = send(&server, &Request::new("GET", "/debug/flags/v")).await;
    assert_eq!((answer.code, text(&answer).as_str()), (406, "unsupported http method\n"));
    assert_eq!(send(&server, &as_user("alicetoken", put("4"))).await.code, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_is_announced_and_requests_in_flight_are_finished() {
    let mut server = start(&["--shutdown-delay-duration", "5s"]);
    let watch = Request::new("GET", format!("{MAPS}?watch=true"));
    let events = Client::new(server.target.clone()).stream(&watch).await.unwrap();
    // A request that has not come in full yet.
    let mut slow = server.target.connect().await.unwrap();
    let body = r#"{"metadata":{"name":"slow"}}"#;
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    slow.write_all(format!("{head}{}", &body[..5]).as_bytes()).await.unwrap();
    signal(&server, "TERM");
    until("readyz fails", || async { send(&server, &Request::new("GET", "/readyz")).await.code == 500 }).await;
    let answer = send(&server, &Request::new("GET", "/readyz/shutdown")).await;
    assert_eq!(text(&answer), "internal server error: process is shutting down\n");
    assert_eq!(send(&server, &Request::new("GET", "/livez")).await.code, 200);
    assert_eq!(send(&server, &Request::new("GET", MAPS)).await.code, 200);

    // The watch ends cleanly, and no connection is taken any more; the slow request is answered.
    let end = tokio::time::timeout(Duration::from_secs(10), events.collect()).await;
    assert!(end.unwrap().is_ok(), "the watch was cut off");
    slow.write_all(&body.as_bytes()[5..]).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(server.ended_within(Duration::from_secs(10)).unwrap(), "it ended badly");
}
