//! What others need to check the tokens of service accounts.

use crate::Server;
use crate::answer::{Response, bytes_of_type, json_value};
use crate::request::RequestInfo;
use http::request::Parts;
use http::{HeaderValue, Method, header};
use object::json;

/// The answer, if the path is one of these pages.
pub(crate) fn respond(server: &Server, info: &RequestInfo, parts: &Parts) -> Option<Response> {
    let accounts = server.options.tokens.accounts.as_ref()?;
    if parts.method != Method::GET {
        return None;
    }
    let mut response = match info.path.as_str() {
        "/openid/v1/jwks" => {
            bytes_of_type(200, "application/jwk-set+json", json::to_string(&accounts.key_set()).into_bytes())
        }
        "/.well-known/openid-configuration" => json_value(200, &accounts.discovery(server.advertised())),
        _ => return None,
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    Some(response)
}
