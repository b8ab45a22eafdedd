//! Creating objects.

use super::Request;
use super::incoming;
use super::present::{self, Shown};
use super::write;
use crate::admission::plugins::{self, Charge};
use crate::allocation::Allocation;
use crate::answer::{Outcome, Response};
use crate::controllers::definitions::Naming;
use crate::ownership::restore_invalid_entries;
use crate::registry::{self, Stored};
use crate::request::options::{self, WriteOptions, parse_unsigned};
use crate::strategy::{Part, Writer};
use object::{Status, Value};
use store::{Expect, WriteError};

/// How often another name is generated when the one before is taken.
const TRIES: usize = 8;
/// How long the given part of a generated name may be.
const MAX_PREFIX: usize = 58;
/// How many characters are generated.
const RANDOM: usize = 5;
/// What they are chosen from: no vowels, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Makes the object of the body.
pub(crate) async fn create(request: &mut Request<'_>) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Create)?;
    let mut object = incoming::read_body(request, options.validation)?;
    write::match_namespace(request, &mut object)?;
    write::drop_repeated_owners(request, &mut object);
    let shown = store_new(request, object, &options, true).await?;
    present::object(request, 201, &shown).await
}

/// Stores an object that was sent to be created. `owns` is whether ownership is still to be worked out.
pub(crate) async fn store_new(
    request: &mut Request<'_>,
    mut object: Value,
    options: &WriteOptions,
    owns: bool,
) -> Outcome<Shown> {
    let resource = request.resource.clone();
    if resource.definition.as_ref().is_some_and(|d| d.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        let mut status = Status::method_not_supported(resource.qualified(), "create");
        status.message = why.to_owned();
        return Err(status.into());
    }
    write::match_namespace(request, &mut object)?;
    if owns {
        let manager = request.manager(&options.field_manager);
        let sent = write::sent(request, &object);
        let mut owned = resource.strategy.ownership().created(sent, &manager, request.now.as_second());
        write::copy_ownership(&mut owned, &mut object);
    }
    let name = object.name().to_owned();
    write::check_place(request, &name).await?;
    let server = request.server.clone();
    plugins::mutate(write::asked(request, Part::Main, options.dry_run, None), &mut object).await?;
    let option_values = write::options_object("CreateOptions", options);
    if server.options.admission.mutates(&resource) {
        let mut sent = write::sent(request, &object);
        let mut warnings = Vec::new();
        let attributes = write::attributes(request, "CREATE", Part::Main, options, &option_values).with_name(&name);
        let changed = server.options.admission.mutate(&server, attributes, Some(&mut sent), &mut warnings).await;
        request.warnings.extend(warnings);
        let changed = changed?;
        if changed {
            if let Some(warning) = restore_invalid_entries(&object, &mut sent) {
                request.warnings.add(warning);
            }
            object = sent;
            resource.strategy.adopt(&mut object).map_err(Status::internal)?;
            write::match_namespace(request, &mut object)?;
        }
    }
    write::check_escalation(request, None, &object).await?;
    let version = object.meta_str("resourceVersion").to_owned();
    let prefix = object.meta_str("generateName").to_owned();
    let generates = object.name().is_empty() && !prefix.is_empty();
    // Jobs carry their name in labels, which preparing sets.
    if generates {
        object.metadata_mut().insert("name", generate(&prefix)?);
    }
    prepare(request, &mut object, owns)?;
    let mut charge = Charge::default();
    let named = Named { options, owns, version, prefix: generates.then_some(prefix), option_values };
    let outcome = store_named(request, object, &named, &mut charge).await;
    if outcome.is_err() {
        charge.give_back().await;
    }
    outcome
}

/// How an object is created.
struct Named<'o> {
    options: &'o WriteOptions,
    owns: bool,
    /// The version that the client sent.
    version: String,
    /// How the name begins, where it is to be generated.
    prefix: Option<String>,
    /// The options as admission sees them.
    option_values: Value,
}

/// Judges and stores an object that is complete; under other names, if that is taken and was generated.
async fn store_named(
    request: &mut Request<'_>,
    mut object: Value,
    named: &Named<'_>,
    charge: &mut Charge,
) -> Outcome<Shown> {
    let (resource, server) = (request.resource.clone(), request.server.clone());
    let Named { options, owns, version, prefix, option_values } = named;
    let (generates, admits) = (prefix.is_some(), server.options.admission.concerns(&resource));
    let mut allocation = Allocation::default();
    let bare = Allocation::concerns(&resource).then(|| object.clone());
    let mut allocates = true;
    for attempt in 1.. {
        if let Some(prefix) = prefix.as_ref().filter(|_| attempt > 1) {
            object.metadata_mut().insert("name", generate(prefix)?);
        }
        let name = object.name().to_owned();
        if attempt == 1 {
            let mut checked = resource.strategy.validate(&object);
            write::check_reading(request, None, &object, &mut checked.errors).await;
            write::judge(request, &object, &name, Vec::new(), checked)?;
        }
        if std::mem::take(&mut allocates) {
            allocation.complete(&write::writing(request, None, options.dry_run), &mut object).await?;
        }
        if attempt == 1 {
            let mut warnings = Vec::new();
            let asked = write::asked(request, Part::Main, options.dry_run, None);
            let judged = plugins::validate(asked, &object, &mut warnings).await;
            request.warnings.extend(warnings);
            judged?;
        }
        if admits {
            let sent = write::as_sent(request, &object);
            let mut warnings = Vec::new();
            let attributes = write::attributes(request, "CREATE", Part::Main, options, option_values);
            let attributes = attributes.with_name(&name);
            let judged = server.options.admission.validate(&server, attributes, Some(&sent), &mut warnings).await;
            request.warnings.extend(warnings);
            judged?;
        }
        if attempt == 1 {
            let asked = write::asked(request, Part::Main, options.dry_run, None);
            *charge = plugins::charge(asked, &object).await?;
        }
        let key = registry::key(&resource, object.namespace(), &name);
        let is_needed_still = generates || Naming::concerns(&resource);
        let saved = if is_needed_still { object.clone() } else { std::mem::take(&mut object) };
        let stored = server.save(&resource, saved).await?;
        if options.dry_run {
            let there = server.store.get(&key, None).await.map_err(registry::read_failure)?;
            return match there {
                None => Ok(Shown { stored, version: 0 }),
                Some(entry) => Err(already_exists(request, &name, &entry).into()),
            };
        }
        if *owns && parse_unsigned(version).is_ok_and(|v| v != 0) {
            return Err(Status::unknown("resourceVersion should not be set on objects to be created").into());
        }
        // A definition has its names from the start; the answer is of before, as upstream's.
        let naming = Naming::start(&server, &resource).await;
        let kept = match &naming {
            Some(naming) => &server.save(&resource, naming.named(&object)).await?,
            None => &stored,
        };
        let put = write::put(request, key.as_str().into(), Expect::Absent, kept);
        match server.store.write_claimed(put, allocation.claim()).await {
            Ok(version) => {
                match naming {
                    Some(naming) => naming.finish(&key).await,
                    None => server.committed(&resource, &key).await,
                }
                return Ok(Shown { stored, version });
            }
            Err(WriteError::Conflict { current: Some(entry) }) if !generates || attempt >= TRIES => {
                return Err(already_exists(request, &name, &entry).into());
            }
            Err(WriteError::Conflict { .. }) => {}
            // The other server got on, so that this ends.
            Err(WriteError::Overtaken) => {
                (allocation, allocates) = (Allocation::default(), true);
                object = bare.clone().unwrap_or_default();
            }
            Err(error) => return Err(registry::write_failure(&error)),
        }
    }
    Err(Status::internal("no name could be generated").into())
}

/// What the server sets, whatever the client sent; `created` is false where an apply makes the object.
fn prepare(request: &mut Request<'_>, object: &mut Value, created: bool) -> Outcome<()> {
    request.warnings.extend(request.resource.strategy.warnings_before(object));
    let meta = object.metadata_mut();
    for key in ["selfLink", "resourceVersion"] {
        meta.remove(key);
    }
    // Upstream forgets this where an apply creates.
    if created {
        meta.remove("deletionTimestamp");
        meta.remove("deletionGracePeriodSeconds");
    }
    // Jobs select their pods by the uid.
    meta.insert("creationTimestamp", time(request.now));
    meta.insert("uid", uid()?);
    let writer = Writer { user: request.user, now: request.now };
    request.resource.strategy.prepare_create(object, writer);
    Ok(())
}

/// A time as objects carry it: UTC, whole seconds.
pub(crate) fn time(now: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// A new random identifier (UUID version 4).
pub(crate) fn uid() -> Outcome<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(Status::internal)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        for digit in [byte >> 4, byte & 0xf] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    Ok(out)
}

/// The random end of a generated name.
pub(crate) fn random_suffix() -> Outcome<String> {
    let mut random = [0u8; RANDOM];
    getrandom::fill(&mut random).map_err(Status::internal)?;
    Ok(random.iter().map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()])).collect())
}

/// A name that begins as the client wants.
fn generate(prefix: &str) -> Outcome<String> {
    let mut end = prefix.len().min(MAX_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let start = prefix.get(..end).unwrap_or_default();
    Ok(format!("{start}{}", random_suffix()?))
}

fn already_exists(request: &Request<'_>, name: &str, entry: &store::Entry) -> Status {
    let mut status = Status::already_exists(request.resource.qualified(), name);
    let going = Stored::read(entry.value.clone()).is_some_and(|s| s.metadata().contains_key("deletionTimestamp"));
    if going {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
