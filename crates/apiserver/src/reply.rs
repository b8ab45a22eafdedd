//! Answers: the few forms that every handler gives.

use crate::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use object::{Status, json};

/// An answer on its way out.
pub type Reply = Response<Body>;

/// A handler's outcome: an answer, or the failure that becomes one.
pub type Outcome = Result<Reply, Failure>;

/// Why a request fails.
#[derive(Debug)]
pub enum Failure {
    /// A `Status` object.
    Status(Box<Status>),
    /// Plain text, for the few answers that upstream gives as such.
    Plain(u16, &'static str),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Status(Box::new(status))
    }
}

impl Failure {
    /// `404 page not found`, as Go's router says it for a path that nobody serves.
    pub const PAGE_NOT_FOUND: Failure = Failure::Plain(404, "404 page not found\n");

    /// The failure as an answer.
    pub fn into_reply(self) -> Reply {
        match self {
            Failure::Status(status) => status_reply(&status),
            Failure::Plain(code, text) => plain(code, text),
        }
    }
}

/// JSON bytes with a code.
pub fn json(code: u16, bytes: impl Into<Bytes>) -> Reply {
    with_type(code, "application/json", bytes)
}

/// Bytes of a media type with a code.
pub fn with_type(code: u16, media_type: &str, bytes: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Body::Whole(bytes.into()));
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let value = HeaderValue::from_str(media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    reply.headers_mut().insert(header::CONTENT_TYPE, value);
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// Plain text with a code.
pub fn plain(code: u16, text: impl Into<String>) -> Reply {
    let mut reply = with_type(code, "text/plain; charset=utf-8", text.into());
    let nosniff = (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    reply.headers_mut().insert(nosniff.0, nosniff.1);
    reply
}

/// A `Status` as an answer.
pub fn status_reply(status: &Status) -> Reply {
    let mut reply = json(status.code, json::to_vec(&status.to_value()));
    let after = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
    if after > 0 {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after));
    }
    reply
}

/// How many bytes all warnings of one answer may take.
const MAX_WARNINGS: usize = 4096;
/// To how many characters each warning is cut when they take more.
const CUT_WARNING: usize = 1024;

/// Adds `Warning` headers as upstream does: each text once, cut when they are too long together.
pub fn add_warnings(reply: &mut Reply, warnings: &[String]) {
    let mut seen: Vec<&String> = Vec::new();
    for warning in warnings.iter().filter(|w| !w.is_empty()) {
        if !seen.contains(&warning) {
            seen.push(warning);
        }
    }
    let cut = seen.iter().map(|w| w.len()).sum::<usize>() > MAX_WARNINGS;
    let mut total = 0;
    for warning in seen {
        let text: String = if cut { warning.chars().take(CUT_WARNING).collect() } else { warning.clone() };
        total += text.len();
        if total > MAX_WARNINGS {
            break;
        }
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - {}", quoted(&text)).as_bytes()) {
            reply.headers_mut().append(header::WARNING, value);
        }
    }
}

/// A quoted-string of HTTP; control characters become blanks.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
