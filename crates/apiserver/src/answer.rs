//! Answers: bodies, the `Status` of a failure, and the warnings that go along.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use object::{Status, Value, go, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// An answer.
pub type Response = http::Response<Body>;

/// The body of an answer: whole, or made while it is sent.
pub enum Body {
    /// All there is.
    Whole(Bytes),
    /// A stream: a watch, or a list that is large.
    Stream(Pin<Box<dyn HttpBody<Data = Bytes, Error = Infallible> + Send>>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Body::Whole(bytes) => f.debug_tuple("Whole").field(&bytes.len()).finish(),
            Body::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Body {
    /// A body that is made while it is sent.
    pub fn stream(body: impl HttpBody<Data = Bytes, Error = Infallible> + Send + 'static) -> Self {
        Body::Stream(Box::pin(body))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::Stream(stream) => stream.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_empty(),
            Body::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Stream(stream) => stream.size_hint(),
        }
    }
}

/// Why a request fails.
#[derive(Debug)]
pub enum Failure {
    /// What most failures are.
    Status(Box<Status>),
    /// A text as Go's HTTP library sends it, for example `404 page not found`.
    Text(u16, String),
    /// Another object, with its code.
    Object(u16, Box<Value>),
    /// There are too many requests.
    Busy,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Status(Box::new(status))
    }
}

impl Failure {
    /// The code of the answer.
    pub fn code(&self) -> u16 {
        match self {
            Failure::Status(status) => status.code,
            Failure::Text(code, _) | Failure::Object(code, _) => *code,
            Failure::Busy => 429,
        }
    }

    /// `404 page not found`
    pub fn page_not_found() -> Self {
        Failure::Text(404, "404 page not found\n".to_owned())
    }

    /// 404 `the server could not find the requested resource`
    pub fn no_such_resource() -> Self {
        Status { details: Some(Default::default()), ..Status::new(404, "NotFound", NO_SUCH_RESOURCE) }.into()
    }

    /// 405 `the server does not allow this method on the requested resource`
    pub fn no_such_method() -> Self {
        Status { details: Some(Default::default()), ..Status::new(405, "MethodNotAllowed", NO_SUCH_METHOD) }.into()
    }

    /// The answer.
    pub fn into_response(self) -> Response {
        match self {
            Failure::Status(status) => of_status(&status),
            Failure::Text(code, text) => plain(code, text),
            Failure::Object(code, object) => json_value(code, &object),
            Failure::Busy => {
                let mut response = plain(429, BUSY);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
        }
    }
}

/// What is said where there are too many requests.
pub(crate) const BUSY: &str = "Too many requests, please try again later.\n";
const NO_SUCH_RESOURCE: &str = "the server could not find the requested resource";
const NO_SUCH_METHOD: &str = "the server does not allow this method on the requested resource";

/// What a step of a request gives.
pub type Outcome<T> = Result<T, Failure>;

/// JSON that is already written.
pub fn json_bytes(code: u16, bytes: impl Into<Bytes>) -> Response {
    bytes_of_type(code, "application/json", bytes)
}

/// A value as JSON.
pub fn json_value(code: u16, value: &Value) -> Response {
    json_bytes(code, json::to_vec(value))
}

/// Bytes of a content type.
pub fn bytes_of_type(code: u16, content_type: &str, bytes: impl Into<Bytes>) -> Response {
    with_body(code, content_type, Body::Whole(bytes.into()))
}

/// A body of a content type.
pub fn with_body(code: u16, content_type: &str, body: Body) -> Response {
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A `Status` with its code.
pub fn of_status(status: &Status) -> Response {
    with_retry(json_value(status.code, &status.to_value()), status)
}

/// The answer that holds a `Status`, with what that says about another try.
pub(crate) fn with_retry(mut response: Response, status: &Status) -> Response {
    let seconds = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
    if seconds > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Plain text, as Go's `http.Error` sends it.
pub fn plain(code: u16, text: impl Into<String>) -> Response {
    let mut response = bytes_of_type(code, "text/plain; charset=utf-8", text.into());
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Warnings for the client: each text once, in the order in which they came.
#[derive(Debug, Default)]
pub struct Warnings(Vec<String>);

/// The most bytes that the warnings of one answer may take together before each is cut to [`CUT_WARNING`].
const MAX_WARNINGS: usize = 4096;
/// The size in bytes to which warnings are cut when they are too many.
const CUT_WARNING: usize = 1024;

impl Warnings {
    /// Adds one, unless it is there or empty.
    pub fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        // More than these cannot be told, as short as they may be.
        if !text.is_empty() && self.0.len() < MAX_WARNINGS && !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    /// Adds each.
    pub fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    /// Puts them into the answer's `Warning` headers, as much as upstream allows.
    pub fn write_to(&self, response: &mut Response) {
        let whole: usize = self.0.iter().map(String::len).sum();
        let mut used = 0;
        // Upstream drops what has control characters.
        for text in self.0.iter().filter(|text| !text.contains(char::is_control)) {
            let mut text = text.as_str();
            if whole > MAX_WARNINGS {
                let mut end = text.len().min(CUT_WARNING);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                text = &text[..end];
                if used + text.len() > MAX_WARNINGS {
                    return;
                }
            }
            used += text.len();
            if let Ok(value) = HeaderValue::from_bytes(format!("299 - {}", quoted(text)).as_bytes()) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
    }
}

/// A quoted string of HTTP; characters that cannot be shown are left out.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control() && (*c == ' ' || go::is_print(*c))) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_and_told_once() {
        let mut warnings = Warnings::default();
        warnings.add("unknown field \"a\"");
        warnings.add("unknown field \"a\"");
        let mut response = plain(200, "");
        warnings.write_to(&mut response);
        let all: Vec<_> = response.headers().get_all("warning").iter().collect();
        assert_eq!(all, [r#"299 - "unknown field \"a\"""#]);
    }

    #[test]
    fn too_many_warnings_are_cut() {
        let mut warnings = Warnings::default();
        for i in 0..10 {
            warnings.add(format!("{i}{}", "x".repeat(2000)));
        }
        let mut response = plain(200, "");
        warnings.write_to(&mut response);
        assert_eq!(response.headers().get_all("warning").iter().count(), 4);
    }
}
