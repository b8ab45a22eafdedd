//! Reading one object.

use super::Request;
use super::components;
use super::present::{self, Shown};
use crate::answer::{Outcome, Response};
use crate::registry;
use crate::request::options::parse_version;
use crate::strategy::Part;
use object::Status;

/// Answers with the object that the path names.
pub(crate) async fn get(request: &mut Request<'_>, _part: Part) -> Outcome<Response> {
    let version = parse_version(request.text("resourceVersion")).map_err(Status::unknown)?;
    if version > request.server.store.revision() {
        request.server.wait_for(version).await?;
    }
    let shown = read(request).await?;
    present::object(request, 200, &shown).await
}

/// The object that the path names.
pub(crate) async fn read(request: &Request<'_>) -> Outcome<Shown> {
    if components::has(request) {
        return Ok(Shown { stored: components::get(request)?, version: 0 });
    }
    let key = request.key();
    match request.server.store.get(&key, None).await.map_err(registry::read_failure)? {
        Some(entry) => Ok(Shown { stored: registry::stored(&entry)?, version: entry.mod_revision }),
        None => Err(request.not_found()),
    }
}
