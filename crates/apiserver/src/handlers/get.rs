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
    let wanted = request.text("resourceVersion");
    let version = parse_version(wanted).map_err(Status::unknown)?;
    if wanted.is_empty() || components::has(request) {
        let shown = read(request).await?;
        return present::object(request, 200, &shown).await;
    }
    // Any version from this one on will do.
    request.server.wait_for(version).await?;
    let entry = request.server.store.replica().get(&request.key(), None).map_err(registry::read_failure)?;
    let shown = Shown::of(entry.ok_or_else(|| request.not_found())?)?;
    present::object(request, 200, &shown).await
}

/// The object that the path names.
pub(crate) async fn read(request: &Request<'_>) -> Outcome<Shown> {
    if components::has(request) {
        return Ok(Shown { stored: components::get(request)?, version: 0 });
    }
    let key = request.key();
    match request.server.store.get(&key, None).await.map_err(registry::read_failure)? {
        Some(entry) => Shown::of(entry),
        None => Err(request.not_found()),
    }
}
