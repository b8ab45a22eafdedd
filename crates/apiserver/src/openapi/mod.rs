//! Pages: openapi.

use crate::Server;
use crate::answer::Response;
use crate::request::RequestInfo;
use http::request::Parts;

/// The answer, if the path is one of these pages.
pub fn respond(_server: &Server, _info: &RequestInfo, _parts: &Parts) -> Option<Response> {
    None
}
