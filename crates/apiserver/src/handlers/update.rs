//! Replacing objects.

use super::Request;
use super::incoming;
use super::present;
use super::write::{self, Change};
use crate::answer::{Outcome, Response};
use crate::request::options::{self, WriteOptions};
use crate::strategy::Part;

/// Puts the object of the body in the place of the one that the path names.
pub(crate) async fn update(request: &mut Request<'_>, part: Part) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Update)?;
    let mut object = incoming::read_body(request, options.validation)?;
    write::match_namespace(request, &mut object)?;
    write::match_name(request, &object)?;
    write::drop_repeated_owners(request, &mut object);
    let uid = Some(object.meta_str("uid").to_owned()).filter(|uid| !uid.is_empty());
    let creates = part == Part::Main && request.resource.strategy.creates_on_update();
    let unconditional = matches!(object.meta_str("resourceVersion"), "" | "0");
    let mut change = Change { creates, uid, ..Change::new(part, &options) };
    if !unconditional {
        // The client's version cannot become the current one again.
        change.tries = 0;
    }
    let (code, shown) = write::change(request, change, |_, _| Ok(object.clone())).await?;
    present::object(request, code, &shown).await
}
