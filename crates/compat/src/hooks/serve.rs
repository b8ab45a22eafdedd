//! The webhooks' HTTPS server. It speaks just enough HTTP: answers may be malformed on purpose.

use super::{Shared, answer, applies};
use object::{Map, Value, json, map};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The longest head of a request.
const MAX_HEAD: usize = 64 << 10;
/// The longest body of a request.
const MAX_BODY: usize = 64 << 20;

/// Serves until the runtime ends.
pub(super) async fn serve(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let (acceptor, shared) = (acceptor.clone(), shared.clone());
        tokio::spawn(async move {
            // A client that goes away, or does not trust the certificate, is no concern of ours.
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let Some(request) = read(&mut stream).await else { return };
            if let Some(answer) = respond(&shared, request).await {
                let _ = stream.write_all(&answer).await;
            }
            let _ = stream.shutdown().await;
        });
    }
}

struct Request {
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > MAX_HEAD || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).ok()?;
    let mut lines = head.lines();
    let target = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0).min(MAX_BODY);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { target, headers, body })
}

/// The whole answer; none where the connection is to be closed without one.
async fn respond(shared: &Shared, request: Request) -> Option<Vec<u8>> {
    let body = json::parse(&request.body)
        .unwrap_or_else(|_| Value::Object(map! { "raw" => String::from_utf8_lossy(&request.body).into_owned() }));
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let (key, name) = path.trim_matches('/').split_once('/').unwrap_or((path.trim_matches('/'), ""));
    let rule = choose(shared, key, name, query, &request.headers, &body);
    let seconds = match rule.get("delay") {
        Some(Value::Int(i)) => *i as f64,
        Some(Value::Float(f)) => *f,
        _ => 0.0,
    };
    tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0))).await;
    if rule.get("close").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let out = rule.str_at(&["raw"]).map_or_else(|| json::to_string(&answer::review(&body, &rule)), str::to_owned);
    let mut headers = map! {
        "Content-Type" => "application/json",
        "Content-Length" => out.len().to_string(),
        "Connection" => "close",
    };
    for (name, value) in rule.get("headers").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        headers.insert(name, value.clone());
    }
    let status = rule.get("status").and_then(Value::as_int).unwrap_or(200);
    let phrase = u16::try_from(status).ok().and_then(|s| hyper::StatusCode::from_u16(s).ok());
    let phrase = phrase.and_then(|s| s.canonical_reason()).unwrap_or_default();
    let mut text = format!("HTTP/1.0 {status} {phrase}\r\n");
    for (name, value) in headers.iter() {
        text.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap_or_default()));
    }
    text.push_str("\r\n");
    text.push_str(&out);
    Some(text.into_bytes())
}

/// Notes the request and gives the answer that applies.
fn choose(shared: &Shared, key: &str, name: &str, query: &str, headers: &[(String, String)], body: &Value) -> Value {
    let none = || Value::Object(map! { "status" => 404i64, "raw" => "no such webhook" });
    let mut cases = shared.cases.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(state) = cases.get_mut(key) else { return none() };
    let Some(rules) = state.answers.get_mut(name) else { return none() };
    let told = |name: &str| matches!(name, "accept" | "content-type" | "user-agent");
    let headers: Map = headers.iter().filter(|(name, _)| told(name)).map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let request =
        map! { "hook" => name, "query" => query, "body" => body.clone(), "headers" => Value::Object(headers) };
    state.seen.push(Value::Object(request));
    let rule = rules.iter_mut().find(|rule| rule.left.unwrap_or(1) > 0 && applies(&rule.answer, body));
    let Some(rule) = rule else { return none() };
    if let Some(left) = &mut rule.left {
        *left -= 1;
    }
    rule.answer.clone()
}
