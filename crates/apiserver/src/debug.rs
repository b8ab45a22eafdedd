//! `/debug/flags/v`: how much is logged, changed while the server runs.

use crate::Server;
use crate::answer::{Response, bytes_of_type};
use crate::request::RequestInfo;
use bytes::Bytes;
use http::Method;
use std::sync::Arc;

/// Sets how much is logged; the error says why it does not.
pub type Verbosity = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The answer, if the path is this page; with upstream's texts.
pub(crate) fn respond(server: &Server, info: &RequestInfo, body: &Bytes) -> Option<Response> {
    let set = server.options.verbosity.as_ref().filter(|_| info.path == "/debug/flags/v")?;
    let text = String::from_utf8_lossy(body);
    let (code, said) = if info.method != Method::PUT {
        (406, "unsupported http method".to_owned())
    } else {
        match set(&text) {
            Ok(()) => (200, format!("successfully set klog.logging.verbosity to {text}")),
            Err(why) => (400, format!("failed set klog.logging.verbosity {text}: {why}")),
        }
    };
    Some(bytes_of_type(code, "text/plain", format!("{said}\n")))
}
