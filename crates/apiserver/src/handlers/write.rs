//! What all writes have in common: keeping the object's metadata in order, judging it, storing it.

use super::Request;
use super::present::Shown;
use super::scale::ScaleView;
use crate::admission::plugins::{self, Asked};
use crate::admission::{self, Attributes, policies};
use crate::allocation::{Allocation, Writing};
use crate::answer::{Failure, Outcome, Warnings};
use crate::ownership::{keep_times_of_noop, restore_invalid_entries};
use crate::rbac;
use crate::registry::{self, Stored};
use crate::request::options::{WriteOptions, parse_unsigned};
use crate::strategy::{Checked, Part, Writer};
use object::field::{FieldError, Path, Shown as ShownValue};
use object::{Map, Status, Value, go, json, names};
use std::borrow::Cow;
use std::collections::HashSet;
use store::{Claim, Entry, Expect, Revision, WriteError};

/// How often a write is tried again after somebody else was faster.
const TRIES: usize = 100;

/// A change of an object that is there, or is to be made if it is not.
pub(crate) struct Change<'c> {
    /// The part that is written.
    pub part: Part,
    /// The options of the request.
    pub options: &'c WriteOptions,
    /// Whether an object that is not there is created.
    pub creates: bool,
    /// The uid that the object has to have.
    pub uid: Option<String>,
    /// How often it is tried again when somebody else was faster.
    pub tries: usize,
    /// Whether ownership is worked out here; an apply has done it.
    pub owns: bool,
    /// How admission sees a write of a scale.
    pub scale: Option<&'c ScaleView>,
}

impl<'c> Change<'c> {
    /// A change of a part.
    pub fn new(part: Part, options: &'c WriteOptions) -> Self {
        Change { part, options, creates: false, uid: None, tries: TRIES, owns: true, scale: None }
    }
}

/// Puts the object into the request's namespace; 400 if it says that it is in another.
pub(crate) fn match_namespace(request: &Request<'_>, object: &mut Value) -> Outcome<()> {
    let wanted = if request.resource.namespaced { request.info.namespace.as_str() } else { "" };
    let given = object.namespace();
    if given == wanted {
        return Ok(());
    }
    if wanted.is_empty() {
        object.remove_at(&["metadata", "namespace"]);
    } else if given.is_empty() {
        object.metadata_mut().insert("namespace", wanted);
    } else {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message).into());
    }
    Ok(())
}

/// 400 unless the object has the name of the path.
pub(crate) fn match_name(request: &Request<'_>, object: &Value) -> Outcome<()> {
    let wanted = &request.info.name;
    match object.name() {
        "" => {
            let message =
                format!("the name of the object ({wanted} based on URL) was undeterminable: name must be provided");
            Err(Status::bad_request(message).into())
        }
        name if name == wanted => Ok(()),
        name => {
            let message = format!("the name of the object ({name}) does not match the name on the URL ({wanted})");
            Err(Status::bad_request(message).into())
        }
    }
}

/// Drops owner references that repeat another's uid, with a warning. A list without any is no list.
pub(crate) fn drop_repeated_owners(request: &mut Request<'_>, object: &mut Value) {
    let Some(Value::Array(owners)) = object.get_mut("metadata").and_then(|m| m.get_mut("ownerReferences")) else {
        return;
    };
    let repeated = take_repeated(owners);
    if owners.is_empty() {
        object.metadata_mut().remove("ownerReferences");
    }
    if !repeated.is_empty() {
        let uids = repeated.join(", ");
        request.warnings.add(format!(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"));
    }
}

/// Takes what repeats an earlier item of a list of owners; gives the uids of that, each once.
fn take_repeated(owners: &mut Vec<Value>) -> Vec<String> {
    let (mut seen, mut told, mut repeated) = (HashSet::new(), HashSet::new(), Vec::new());
    owners.retain(|owner| {
        let is_new = seen.insert(json::to_string(owner));
        let uid = owner.str_at(&["uid"]).unwrap_or_default();
        if !is_new && told.insert(uid.to_owned()) {
            repeated.push(uid.to_owned());
        }
        is_new
    });
    repeated
}

/// The object as clients of the request's version see it.
pub(crate) fn sent(request: &Request<'_>, worked: &Value) -> Value {
    as_sent(request, worked).into_owned()
}

/// Like [`sent`], without a copy where the two forms are one.
pub(crate) fn as_sent<'o>(request: &Request<'_>, worked: &'o Value) -> Cow<'o, Value> {
    let strategy = &request.resource.strategy;
    if !strategy.presents() {
        return Cow::Borrowed(worked);
    }
    let mut object = worked.clone();
    strategy.present(&mut object);
    Cow::Owned(object)
}

/// Copies the field ownership of one object to another.
pub(crate) fn copy_ownership(from: &mut Value, to: &mut Value) {
    match from.remove_at(&["metadata", "managedFields"]) {
        Some(entries) => {
            to.metadata_mut().insert("managedFields", entries);
        }
        None => {
            to.remove_at(&["metadata", "managedFields"]);
        }
    }
}

/// What is invalid, as 422; warnings go to the client.
pub(crate) fn judge(
    request: &mut Request<'_>,
    object: &Value,
    name: &str,
    before: Vec<FieldError>,
    checked: Checked,
) -> Outcome<()> {
    request.warnings.extend(checked.warnings);
    let mut errors = before;
    errors.extend(checked.errors);
    if errors.is_empty() {
        request.warnings.extend(checked.hints);
        return Ok(());
    }
    let mut kind = request.resource.qualified_kind();
    if let Some(own) = object.str_at(&["kind"]).filter(|_| request.resource.is_custom()) {
        // Upstream asks the object what it is.
        kind.name = own;
    }
    Err(Status::invalid(kind, name, &errors).into())
}

/// Changes the object that the path names: `make` turns it into what it is to be (both in the form that is worked on;
/// none stands for an object that is not there). Gives the code of the answer and the object.
pub(crate) async fn change<F>(request: &mut Request<'_>, change: Change<'_>, mut make: F) -> Outcome<(u16, Shown)>
where
    F: FnMut(&mut Request<'_>, Option<&Value>) -> Outcome<Value>,
{
    let key = request.key();
    let (mut tries, server) = (0, request.server.clone());
    loop {
        let entry = server.store.get(&key, None).await.map_err(registry::read_failure)?;
        let Some(entry) = entry else {
            if let Some(uid) = &change.uid {
                return Err(uid_mismatch(request, &key, uid, ""));
            }
            if !change.creates {
                return Err(request.not_found());
            }
            let object = make(request, None)?;
            request.server.check_creates(request.info, request.user).await?;
            let created = super::create::store_new(request, object, change.options, change.owns).await;
            match created {
                Err(Failure::Status(status)) if status.reason == "AlreadyExists" && tries < change.tries => {
                    tries += 1;
                    continue;
                }
                created => return Ok((201, created?)),
            }
        };
        let current = registry::stored(&entry)?;
        let live = server.load(&request.resource, &current, entry.mod_revision).await?;
        let mut object = make_with_owners(request, &change, &live, &mut make).await?;
        admit(request, &change, &live, &mut object).await?;
        check_escalation(request, Some(&live), &object).await?;
        if let Some(uid) = &change.uid {
            let live_uid = live.meta_str("uid");
            if uid != live_uid {
                return Err(uid_mismatch(request, &key, uid, live_uid));
            }
        }
        let result = replace(request, &change, &entry, &current, &live, object).await;
        match result {
            Err(Replace::Conflict) if tries < change.tries => tries += 1,
            Err(Replace::Conflict) => {
                return Err(Status::modified(request.resource.qualified(), &request.info.name).into());
            }
            // The other one got on, so that this ends.
            Err(Replace::Overtaken) => {}
            Err(Replace::Failed(failure)) => return Err(failure),
            Ok(shown) => return Ok((200, shown)),
        }
    }
}

/// How often ownership is worked out again with what a webhook converted meanwhile: more than there are steps in it.
const CONVERSIONS: usize = 16;

/// What an object is to be, and who owns it then.
async fn make_with_owners<F>(
    request: &mut Request<'_>,
    change: &Change<'_>,
    live: &Value,
    make: &mut F,
) -> Outcome<Value>
where
    F: FnMut(&mut Request<'_>, Option<&Value>) -> Outcome<Value>,
{
    let mut round = 0;
    loop {
        let mut made = make(request, Some(live));
        if let Ok(object) = &mut made {
            own(request, change, live, object);
        }
        round += 1;
        if round > CONVERSIONS || !request.convert_missing().await {
            return made;
        }
    }
}

/// Adds what is wrong with an object that is right in itself: that its author may not read what it names.
pub(crate) async fn check_reading(
    request: &Request<'_>,
    old: Option<&Value>,
    new: &Value,
    errors: &mut Vec<FieldError>,
) {
    if errors.is_empty() {
        let error = policies::reading_error(request.server, request.user, &request.resource, old, new);
        errors.extend(error.await);
    }
}

/// Nobody gives rights away that they do not have.
pub(crate) async fn check_escalation(request: &Request<'_>, old: Option<&Value>, new: &Value) -> Outcome<()> {
    let attempt = rbac::Attempt {
        user: request.user,
        resource: &request.resource,
        namespace: &request.info.namespace,
        name: &request.info.name,
        old,
        new,
    };
    rbac::check_escalation(request.server, attempt).await
}

enum Replace {
    /// Somebody else was faster.
    Conflict,
    /// Another server gave away addresses or ports meanwhile.
    Overtaken,
    Failed(Failure),
}

impl<T: Into<Failure>> From<T> for Replace {
    fn from(failure: T) -> Self {
        Replace::Failed(failure.into())
    }
}

fn uid_mismatch(request: &Request<'_>, key: &str, wanted: &str, found: &str) -> Failure {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Status::conflict(request.resource.qualified(), &request.info.name, &why).into()
}

/// Works out who owns what after the change.
fn own(request: &Request<'_>, change: &Change<'_>, live: &Value, object: &mut Value) {
    if change.owns {
        let (live, new) = (as_sent(request, live), sent(request, object));
        let manager = request.manager(&change.options.field_manager);
        let now = request.now.as_second();
        let mut owned = request.resource.strategy.ownership().updated(
            change.part,
            &live,
            new,
            &manager,
            now,
            request.conversions.as_ref(),
        );
        copy_ownership(&mut owned, object);
    }
    keep_times_of_noop(live, object);
}

async fn admit(request: &mut Request<'_>, change: &Change<'_>, live: &Value, object: &mut Value) -> Outcome<()> {
    let server = request.server.clone();
    admission::check_presence(&server, &request.resource, &request.info.namespace).await?;
    plugins::mutate(asked(request, change.part, change.options.dry_run, Some(live)), object).await?;
    let admission = &server.options.admission;
    if !admission.mutates(&request.resource) {
        return Ok(());
    }
    let old = seen(request, change, live);
    let mut new = match change.scale {
        Some(view) => view.wanted(),
        None => sent(request, object),
    };
    // Clients need not send it, and upstream's types always have it.
    new.metadata_mut().get_or_insert("creationTimestamp", || Value::Null);
    let mut warnings = Vec::new();
    let options = options_object("UpdateOptions", change.options);
    let attributes = attributes(request, "UPDATE", change.part, change.options, &options).with_old(&old);
    let changed = admission.mutate(&server, attributes, Some(&mut new), &mut warnings).await;
    request.warnings.extend(warnings);
    match (changed?, change.scale) {
        (false, _) => {}
        (true, Some(view)) => view.set(object, &new),
        (true, None) => {
            if let Some(warning) = restore_invalid_entries(object, &mut new) {
                request.warnings.add(warning);
            }
            *object = new;
            request.resource.strategy.adopt(object).map_err(Status::internal)?;
        }
    }
    Ok(())
}

/// What admission sees of an object.
fn seen(request: &Request<'_>, change: &Change<'_>, object: &Value) -> Value {
    let sent = sent(request, object);
    match change.scale {
        Some(view) => view.of(&sent),
        None => sent,
    }
}

/// The options of a write as an object, for admission.
pub(crate) fn options_object(kind: &str, options: &WriteOptions) -> Value {
    let mut out = object::map! { "kind" => kind, "apiVersion" => "meta.k8s.io/v1" };
    if options.dry_run {
        out.insert("dryRun", vec!["All"]);
    }
    if !options.field_manager.is_empty() {
        out.insert("fieldManager", options.field_manager.as_str());
    }
    if !options.given_validation.is_empty() {
        out.insert("fieldValidation", options.given_validation.as_str());
    }
    Value::Object(out)
}

/// What the built-in plugins are told of a write.
pub(crate) fn asked<'a>(request: &'a Request<'_>, part: Part, dry_run: bool, old: Option<&'a Value>) -> Asked<'a> {
    Asked {
        server: request.server,
        resource: &request.resource,
        subresource: part.name(),
        namespace: if request.resource.namespaced { &request.info.namespace } else { "" },
        user: request.user,
        dry_run,
        old,
        now: request.now,
    }
}

/// What those who give addresses are told of a write.
pub(crate) fn writing<'a>(request: &'a Request<'_>, old: Option<&'a Value>, dry_run: bool) -> Writing<'a> {
    Writing { server: request.server, resource: &request.resource, user: request.user, old, dry_run }
}

/// What admission is told of a write.
pub(crate) fn attributes<'a>(
    request: &'a Request<'_>,
    operation: &'static str,
    part: Part,
    options: &WriteOptions,
    object: &'a Value,
) -> Attributes<'a> {
    Attributes {
        operation,
        resource: &request.resource,
        subresource: part.name(),
        namespace: if request.resource.namespaced { &request.info.namespace } else { "" },
        name: &request.info.name,
        user: request.user,
        dry_run: options.dry_run,
        old: None,
        options: object,
        now: request.now,
    }
}

impl<'a> Attributes<'a> {
    /// With the name of the object.
    pub(crate) fn with_name(mut self, name: &'a str) -> Self {
        self.name = name;
        self
    }

    /// With the object as it is.
    pub(crate) fn with_old(mut self, old: &'a Value) -> Self {
        self.old = Some(old);
        self
    }
}

/// Stores what is to take the place of the current object.
async fn replace(
    request: &mut Request<'_>,
    change: &Change<'_>,
    entry: &Entry,
    current: &Stored,
    live: &Value,
    mut object: Value,
) -> Result<Shown, Replace> {
    let server = request.server.clone();
    let resource = request.resource.clone();
    check_version(request, change, entry.mod_revision, &mut object)?;
    match_namespace(request, &mut object)?;
    let writer = Writer { user: request.user, now: request.now };
    keep_system_fields(&mut object, live);
    resource.strategy.prepare_update(&mut object, live, change.part, writer);
    let mut checked = resource.strategy.validate_update(&object, live, change.part);
    if change.part == Part::Main {
        check_reading(request, Some(live), &object, &mut checked.errors).await;
    }
    // Upstream checks metadata for all kinds, as of a new object and as of a changed one, and again for the kind.
    let (empty, path) = (Map::new(), Path::ROOT.child("metadata"));
    let (meta, live_meta) = (object.metadata().unwrap_or(&empty), live.metadata().unwrap_or(&empty));
    let mut before = object::metadata::validate(meta, resource.namespaced, names::path_segment, &path);
    before.extend(object::metadata::validate_update(meta, live_meta, &path));
    let name = live.name().to_owned();
    judge(request, &object, &name, before, checked)?;
    let mut allocation = Allocation::default();
    allocation.complete(&writing(request, Some(live), change.options.dry_run), &mut object).await?;
    let mut warnings = Vec::new();
    let judged =
        plugins::validate(asked(request, change.part, change.options.dry_run, Some(live)), &object, &mut warnings)
            .await;
    request.warnings.extend(warnings);
    judged?;
    if server.options.admission.concerns(&resource) {
        let (old, new) = (seen(request, change, live), seen(request, change, &object));
        let mut warnings = Vec::new();
        let options = options_object("UpdateOptions", change.options);
        let attributes = attributes(request, "UPDATE", change.part, change.options, &options).with_old(&old);
        let judged = server.options.admission.validate(&server, attributes, Some(&new), &mut warnings).await;
        request.warnings.extend(warnings);
        judged?;
    }
    let charge = plugins::charge(asked(request, change.part, change.options.dry_run, Some(live)), &object).await?;
    let replaced = put_in_place(request, change, entry, current, live, object, allocation.claim()).await;
    if replaced.is_err() {
        charge.give_back().await;
    }
    replaced
}

/// Stores a judged object in the place of the current one.
async fn put_in_place(
    request: &mut Request<'_>,
    change: &Change<'_>,
    entry: &Entry,
    current: &Stored,
    live: &Value,
    object: Value,
    claim: Option<Claim>,
) -> Result<Shown, Replace> {
    let server = request.server.clone();
    let resource = request.resource.clone();
    let stays = !object.meta_list("finalizers").is_empty() || resource.strategy.holds(&object);
    let saved = server.save(&resource, object).await;
    if saved.is_err() {
        // Upstream converts before it looks at what the client sent.
        request.warnings = Warnings::default();
    }
    let stored = saved?;
    let going = !live.meta_str("deletionTimestamp").is_empty();
    let grace = live.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_int).unwrap_or(0);
    if going && grace == 0 && !stays {
        return remove(request, change, entry, stored).await;
    }
    if stored.json() == current.json() {
        return Ok(Shown { stored, version: entry.mod_revision });
    }
    if change.options.dry_run {
        return Ok(Shown { stored, version: entry.mod_revision });
    }
    let write = put(request, entry.key.clone(), Expect::Revision(entry.mod_revision), &stored);
    match server.store.write_claimed(write, claim).await {
        Ok(version) => {
            server.committed(&resource, &entry.key).await;
            Ok(Shown { stored, version })
        }
        Err(WriteError::Conflict { .. }) => Err(Replace::Conflict),
        Err(WriteError::Overtaken) => Err(Replace::Overtaken),
        Err(error) => Err(registry::write_failure(&error).into()),
    }
}

/// A write of a stored object, with the kind's expiry.
pub(crate) fn put(request: &Request<'_>, key: store::Key, expect: Expect, stored: &Stored) -> store::Write {
    let write = store::Write::put(key, expect, stored.raw().clone());
    match request.resource.strategy.expires() {
        0 => write,
        seconds => write.expiring(std::time::SystemTime::now() + std::time::Duration::from_secs(seconds)),
    }
}

/// The last finalizer is gone: so is the object.
async fn remove(request: &Request<'_>, change: &Change<'_>, entry: &Entry, stored: Stored) -> Result<Shown, Replace> {
    if change.options.dry_run {
        return Ok(Shown { stored, version: entry.mod_revision });
    }
    let server = request.server;
    let write = store::Write::delete(entry.key.clone(), Expect::Revision(entry.mod_revision));
    match server.store.write(write).await {
        Ok(_) => {
            server.committed(&request.resource, &entry.key).await;
            super::delete::drop_endpoints(request, &entry.key).await;
            Ok(Shown { stored, version: entry.mod_revision })
        }
        Err(WriteError::Conflict { .. }) => Err(Replace::Conflict),
        Err(error) => Err(registry::write_failure(&error).into()),
    }
}

/// The version that the client bases its write on must be the current one.
fn check_version(request: &Request<'_>, change: &Change<'_>, current: Revision, object: &mut Value) -> Outcome<()> {
    let given = object.meta_str("resourceVersion");
    let version = if given.is_empty() {
        0
    } else {
        let parsing = format!("strconv.ParseUint: parsing {}: ", go::quote(given));
        parse_unsigned(given).map_err(|why| Failure::from(Status::unknown(format!("{parsing}{why}"))))?
    };
    if version == current {
        return Ok(());
    }
    if version != 0 {
        return Err(Status::modified(request.resource.qualified(), &request.info.name).into());
    }
    if request.resource.strategy.allows_unconditional_update() || change.part == Part::Scale {
        object.metadata_mut().insert("resourceVersion", current.to_string());
        return Ok(());
    }
    let path = Path::ROOT.child("metadata");
    let path = path.child("resourceVersion");
    let error = FieldError::invalid(&path, ShownValue::raw("0x0"), "must be specified for an update");
    Err(Status::invalid(request.resource.qualified(), &request.info.name, &[error]).into())
}

/// Metadata that no client changes: what it leaves out or may not touch is taken from the current object.
fn keep_system_fields(object: &mut Value, live: &Value) {
    let meta = object.metadata_mut();
    meta.remove("selfLink");
    let Some(old) = live.metadata() else { return };
    let mut keep = |key: &str, only_missing: bool| match old.get(key) {
        Some(value) if !only_missing || meta.get(key).is_none_or(|v| v.is_null() || v.as_str() == Some("")) => {
            meta.insert(key, value.clone());
        }
        None if !only_missing => {
            meta.remove(key);
        }
        _ => {}
    };
    keep("uid", true);
    keep("creationTimestamp", false);
    keep("generation", false);
    if old.get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
        keep("deletionTimestamp", false);
        keep("deletionGracePeriodSeconds", true);
    }
}

/// Namespaces' life: nothing new in one that is not there or going away.
pub(crate) async fn check_place(request: &Request<'_>, name: &str) -> Outcome<()> {
    admission::check_namespace(request.server, &request.resource, &request.info.namespace, name).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_owners_go_however_many_there_are() {
        let owner = |uid: usize, name: &str| {
            let mut owner = Value::Object(Map::new());
            owner.set_at(&["uid"], Value::from(uid.to_string()));
            owner.set_at(&["name"], Value::from(name));
            owner
        };
        let mut owners: Vec<Value> = (0..50_000).map(|i| owner(i, "a")).collect();
        owners.extend([owner(7, "a"), owner(1, "a"), owner(1, "b"), owner(7, "a")]);
        assert_eq!(take_repeated(&mut owners), ["7", "1"]);
        assert_eq!(owners.len(), 50_001);
    }
}
