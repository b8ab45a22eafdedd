//! Deleting objects.

use super::Request;
use super::create::time;
use super::list;
use super::present::{self, Shown};
use super::write;
use crate::admission::{Attributes, PROTECTED};
use crate::allocation::is_services;
use crate::answer::{Failure, Outcome, Response};
use crate::controllers::definitions;
use crate::registry::{self, place};
use crate::request::Verb;
use crate::request::delete::{DeleteOptions, Propagation};
use crate::request::options::ListOptions;
use crate::strategy::at_least_one;
use futures_util::{StreamExt, stream};
use object::status::Details;
use object::{Status, Value};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Entry, Expect, WriteError};

/// How many objects of a collection are deleted side by side.
const DELETES: usize = 64;

/// What a delete came to.
enum Deleted {
    /// The object is gone.
    Gone(Value),
    /// It stays until its finalizers are gone.
    Going(Shown),
}

/// Deletes the object that the path names.
pub(crate) async fn delete(request: &mut Request<'_>) -> Outcome<Response> {
    let options = DeleteOptions::read(&request.parts.headers, &request.body, request.query)?;
    protect(request)?;
    warn(request, &options);
    let key = request.key();
    let mut warnings = Vec::new();
    let deleted = remove(request, &key, &options, Some(&mut warnings)).await;
    request.warnings.extend(warnings);
    match deleted? {
        Deleted::Going(shown) => present::object(request, 200, &shown).await,
        Deleted::Gone(object) => {
            let resource = &request.resource;
            if resource.strategy.returns_deleted() {
                let version = object.meta_str("resourceVersion").parse().unwrap_or(0);
                let stored = request.server.save(resource, object).await?;
                return present::object(request, 200, &Shown { stored, version }).await;
            }
            let details = Details {
                name: request.info.name.clone(),
                group: resource.group.clone(),
                kind: resource.plural.clone(),
                uid: object.meta_str("uid").to_owned(),
                ..Details::default()
            };
            let mut status = Status { details: Some(details), ..Status::new(200, "", "") }.to_value();
            // Upstream tells the code of failures only.
            status.remove_at(&["code"]);
            Ok(present::finish(request.form, 200, object::json::to_vec(&status)))
        }
    }
}

/// Who deletes a job without a word about its pods is told that they stay.
fn warn(request: &mut Request<'_>, options: &DeleteOptions) {
    if options.propagation.is_none() && request.resource.group == "batch" && request.resource.plural == "jobs" {
        request.warnings.add("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning");
    }
}

/// 403 for the namespaces and the priority classes that every cluster has.
fn protect(request: &Request<'_>) -> Outcome<()> {
    let (resource, name) = (&request.resource, request.info.name.as_str());
    let why = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") if PROTECTED.contains(&name) => "this namespace may not be deleted",
        ("scheduling.k8s.io", "priorityclasses") if kinds::system_priority(name).is_some() => {
            "this is a system priority class and cannot be deleted"
        }
        _ => return Ok(()),
    };
    Err(Status::forbidden(resource.qualified(), name, why).into())
}

/// Deletes the objects of a collection, as far as they match; answers with them.
pub(crate) async fn delete_collection(request: &mut Request<'_>) -> Outcome<Response> {
    let options = DeleteOptions::read(&request.parts.headers, &request.body, request.query)?;
    let list_options = ListOptions::read(request.query, false)?;
    warn(request, &options);
    let collected = list::collect(request, &list_options).await?;
    let (outcome, warnings) = remove_all(request, &collected.entries, &options).await;
    request.warnings.extend(warnings);
    outcome?;
    list::show(request, collected).await
}

/// Deletes objects, many side by side, so that they share commits; those that others deleted are passed over. After
/// a failure no more are begun. Gives the first failure, and what admission warns of.
async fn remove_all(request: &Request<'_>, entries: &[Entry], options: &DeleteOptions) -> (Outcome<()>, Vec<String>) {
    // Whom admission asks sees one object after the other, as on a real server.
    let asks = request.server.options.admission.concerns(&request.resource);
    let failed = AtomicBool::new(false);
    let keys: Vec<store::Key> = entries.iter().map(|entry| entry.key.clone()).collect();
    let keys = keys.into_iter().take_while(|_| !failed.load(Ordering::Relaxed));
    let deletes = keys.map(|key| async move {
        let mut warnings = Vec::new();
        let outcome = remove(request, &key, options, Some(&mut warnings)).await;
        (outcome.map(drop), warnings)
    });
    let mut deletes = pin!(stream::iter(deletes).buffered(if asks { 1 } else { DELETES }));
    let (mut outcome, mut warned) = (Ok(()), Vec::new());
    // What is under way is finished even after a failure: a delete is more than its commit.
    while let Some((deleted, warnings)) = deletes.next().await {
        warned.extend(warnings);
        match deleted {
            Err(Failure::Status(status)) if status.reason == "NotFound" => {}
            Err(failure) => {
                failed.store(true, Ordering::Relaxed);
                outcome = outcome.and(Err(failure));
            }
            Ok(()) => {}
        }
    }
    (outcome, warned)
}

/// Deletes an object, or marks it as going away, without a word from admission.
pub(super) async fn unasked(request: &Request<'_>, key: &str, options: &DeleteOptions) -> Outcome<()> {
    remove(request, key, options, None).await.map(drop)
}

/// Deletes one object, or marks it as going away. Admission is asked if there is a place for its `warnings`.
async fn remove(
    request: &Request<'_>,
    key: &str,
    options: &DeleteOptions,
    mut warnings: Option<&mut Vec<String>>,
) -> Outcome<Deleted> {
    let server = request.server.clone();
    let resource = request.resource.clone();
    let (_, name) = place(&resource, key);
    let name = name.to_owned();
    loop {
        let entry = server.store.get(key, None).await.map_err(registry::read_failure)?;
        let Some(entry) = entry else { return Err(Status::not_found(resource.qualified(), &name).into()) };
        let stored = registry::stored(&entry)?;
        let live = server.load(&resource, &stored, entry.mod_revision).await?;
        preconditions(request, &live, options)?;
        if let Some(warnings) = warnings.as_deref_mut() {
            admit(request, &live, &name, options, warnings).await?;
        }
        let result = match mark(request, &live, options) {
            End::Later(marked) if marked != live => change(request, &entry, marked, options).await,
            End::Later(_) => Ok(Deleted::Going(Shown { stored, version: entry.mod_revision })),
            End::Now(last) if last != live => end_at_once(request, &entry, last, options).await,
            End::Now(last) => drop_entry(request, &entry, options).await.map(|()| Deleted::Gone(last)),
        };
        match result {
            Err(None) => continue,
            Err(Some(failure)) => return Err(failure),
            Ok(deleted) => return Ok(deleted),
        }
    }
}

/// 409 unless the object is the one that the client means.
pub(super) fn preconditions(request: &Request<'_>, live: &Value, options: &DeleteOptions) -> Outcome<()> {
    let resource = &request.resource;
    let name = live.name();
    let uid = live.meta_str("uid");
    if let Some(wanted) = options.uid.as_deref().filter(|w| *w != uid) {
        if definitions::is_definitions(resource) {
            let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            return Err(Status::conflict(resource.qualified(), name, &why).into());
        }
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(resource.qualified_kind(), name, &why).into());
    }
    let version = live.meta_str("resourceVersion");
    if let Some(wanted) = options.version.as_deref().filter(|w| *w != version) {
        if definitions::is_definitions(resource) {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {version}"
            );
            return Err(Status::conflict(resource.qualified(), name, &why).into());
        }
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Status::conflict(resource.qualified_kind(), name, &why).into());
    }
    Ok(())
}

async fn admit(
    request: &Request<'_>,
    live: &Value,
    name: &str,
    options: &DeleteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let server = request.server.clone();
    let resource = request.resource.clone();
    if !server.options.admission.concerns(&resource) {
        return Ok(());
    }
    let old = write::sent(request, live);
    // Of a collection no object is named.
    let name = if request.info.verb == Verb::DeleteCollection { "" } else { name };
    let mut given = options.object.clone();
    given.set_at(&["apiVersion"], "meta.k8s.io/v1".into());
    let attributes = Attributes {
        operation: "DELETE",
        resource: &resource,
        subresource: "",
        namespace: live.namespace(),
        name,
        user: request.user,
        dry_run: options.dry_run,
        old: Some(&old),
        options: &given,
        now: request.now,
    };
    server.options.admission.mutate(&server, attributes, None, warnings).await?;
    server.options.admission.validate(&server, attributes, None, warnings).await
}

/// When an object goes, and how it looks then.
enum End {
    /// At once; this is its last state.
    Now(Value),
    /// Later; until then it is this.
    Later(Value),
}

/// What a delete makes of an object.
fn mark(request: &Request<'_>, live: &Value, options: &DeleteOptions) -> End {
    let resource = &request.resource;
    let going = !live.meta_str("deletionTimestamp").is_empty();
    if definitions::is_definitions(resource) && !going {
        return End::Later(definitions::mark_deleted(live, request.now));
    }
    if request.resource.plural == "namespaces" && resource.group.is_empty() {
        let Some(mut marked) = crate::controllers::namespaces::mark_deleted(live, request.now) else {
            return End::Now(live.clone());
        };
        let finalizers = finalizers(request, live, options);
        if !finalizers.is_empty() {
            marked.metadata_mut().insert("finalizers", finalizers);
        }
        return End::Later(marked);
    }
    let finalizers = finalizers(request, live, options);
    let grace = resource.strategy.grace(live, options.grace);
    if going && grace.is_some() {
        return shortened(live, options.grace, finalizers);
    }
    let now = finalizers.is_empty() && grace.unwrap_or(0) == 0;
    if now && grace.is_none() {
        return End::Now(live.clone());
    }
    let grace = grace.unwrap_or(0);
    let mut object = live.clone();
    let meta = object.metadata_mut();
    if !finalizers.is_empty() {
        meta.insert("finalizers", finalizers);
    }
    if !going {
        let end = request.now.saturating_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(request.now);
        meta.insert("deletionTimestamp", time(end));
        // The object's content is about to change: its end is new.
        if let Some(generation) = meta.get("generation").and_then(Value::as_int).filter(|g| *g > 0) {
            meta.insert("generation", generation + 1);
        }
    }
    let before = meta.get("deletionGracePeriodSeconds").and_then(Value::as_int);
    meta.insert("deletionGracePeriodSeconds", before.filter(|_| going).map_or(grace, |b| b.min(grace)));
    if now { End::Now(object) } else { End::Later(object) }
}

/// What another delete makes of an object that is being stopped: its time can only get shorter, and while it runs nothing
/// else changes.
fn shortened(live: &Value, asked: Option<i64>, finalizers: Vec<String>) -> End {
    const GRACE: &str = "deletionGracePeriodSeconds";
    let held = at_least_one(live.at(&["metadata", GRACE]).and_then(Value::as_int).unwrap_or(0));
    let asked = asked.map(at_least_one);
    let left = match asked {
        _ if held == 0 => 0,
        Some(asked) if asked < held => asked,
        _ => return End::Later(live.clone()),
    };
    let is_last = left == 0 && finalizers.is_empty();
    if held == 0 && is_last {
        return End::Now(live.clone());
    }
    let mut object = live.clone();
    let end = live.meta_str("deletionTimestamp").parse::<jiff::Timestamp>();
    let meta = object.metadata_mut();
    if let Some(end) = end.ok().and_then(|end| end.checked_sub(jiff::SignedDuration::from_secs(held - left)).ok()) {
        meta.insert("deletionTimestamp", time(end));
    }
    meta.insert(GRACE, left);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers", finalizers);
    }
    if is_last { End::Now(object) } else { End::Later(object) }
}

/// The finalizers after a delete: those of the garbage collector follow the policy.
fn finalizers(request: &Request<'_>, live: &Value, options: &DeleteOptions) -> Vec<String> {
    const ORPHAN: &str = "orphan";
    const FOREGROUND: &str = "foregroundDeletion";
    let mut out: Vec<String> = live.meta_list("finalizers").into_iter().map(str::to_owned).collect();
    let has = |name: &str| out.iter().any(|f| f == name);
    let (orphan, foreground) = match options.propagation {
        _ if !request.resource.strategy.has_dependents() => (false, false),
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        None if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND)),
        None => (request.resource.strategy.orphans_by_default(), false),
    };
    let before = (has(ORPHAN), has(FOREGROUND));
    if before == (orphan, foreground) {
        return out;
    }
    out.retain(|f| f != ORPHAN && f != FOREGROUND);
    if orphan {
        out.push(ORPHAN.to_owned());
    }
    if foreground {
        out.push(FOREGROUND.to_owned());
    }
    out
}

/// Stores the object as it stays. `Err(None)` is to be tried again.
async fn change(
    request: &Request<'_>,
    entry: &Entry,
    object: Value,
    options: &DeleteOptions,
) -> Result<Deleted, Option<Failure>> {
    let server = request.server;
    let stored = server.save(&request.resource, object).await.map_err(Some)?;
    if options.dry_run {
        return Ok(Deleted::Going(Shown { stored, version: entry.mod_revision }));
    }
    let write = write::put(request, entry.key.clone(), Expect::Revision(entry.mod_revision), &stored);
    let version = write_entry(request, write).await?;
    server.committed(&request.resource, &entry.key).await;
    Ok(Deleted::Going(Shown { stored, version }))
}

/// Ends an object without grace that could have some: it is marked as going away first, so that watches see both.
/// `Err(None)` is to be tried again.
async fn end_at_once(
    request: &Request<'_>,
    entry: &Entry,
    last: Value,
    options: &DeleteOptions,
) -> Result<Deleted, Option<Failure>> {
    match change(request, entry, last.clone(), options).await? {
        Deleted::Going(Shown { version, .. }) if !options.dry_run => {
            let marked = Entry { mod_revision: version, ..entry.clone() };
            match drop_entry(request, &marked, options).await {
                // A kubelet, say, that sees the mark may be faster: the object is gone, as was asked for.
                Err(None) => {
                    let left = request.server.store.get(&entry.key, None).await;
                    let left = left.map_err(|error| Some(registry::read_failure(error)))?;
                    if left.is_none() { Ok(Deleted::Gone(last)) } else { Err(None) }
                }
                dropped => dropped.map(|()| Deleted::Gone(last)),
            }
        }
        _ => Ok(Deleted::Gone(last)),
    }
}

/// Takes the object out of the store. `Err(None)` is to be tried again.
async fn drop_entry(request: &Request<'_>, entry: &Entry, options: &DeleteOptions) -> Result<(), Option<Failure>> {
    if !options.dry_run {
        let write = store::Write::delete(entry.key.clone(), Expect::Revision(entry.mod_revision));
        write_entry(request, write).await?;
        request.server.committed(&request.resource, &entry.key).await;
        drop_endpoints(request, &entry.key).await;
    }
    Ok(())
}

/// Takes the Endpoints of a service away that is gone, so that another of its name does not get them. They are the
/// service's, so that nobody is asked; as upstream, a failure is only told of.
pub(super) async fn drop_endpoints(request: &Request<'_>, service: &str) {
    let server = request.server;
    let endpoints = request.catalogue.resource("", "v1", "endpoints").filter(|_| is_services(&request.resource));
    let Some(endpoints) = endpoints else { return };
    let (namespace, name) = place(&request.resource, service);
    let key = registry::key(endpoints, namespace, name);
    if server.store.get(&key, None).await.is_ok_and(|entry| entry.is_none()) {
        return;
    }
    match server.drop_or_mark(&key).await {
        Ok(_) => server.committed(endpoints, &key).await,
        Err(_) => tracing::error!(namespace, name, "the endpoints of a deleted service cannot be deleted"),
    }
}

async fn write_entry(request: &Request<'_>, write: store::Write) -> Result<u64, Option<Failure>> {
    request.server.store.write(write).await.map_err(|error| match error {
        WriteError::Conflict { .. } => None,
        error => Some(registry::write_failure(&error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn the_time_of_an_object_that_is_being_stopped_gets_shorter_only() {
        let pod = |second: u32, grace: i64, more: &str| {
            format!(
                r#"{{"metadata":{{"deletionGracePeriodSeconds":{grace},"deletionTimestamp":"2020-01-01T00:00:{second:02}Z"{more},"name":"p"}}}}"#
            )
        };
        const HELD: &str = r#","finalizers":["a.io/b"]"#;
        for (live, asked, finalizers, now, wanted) in [
            (pod(40, 30, ""), None, vec![], false, pod(40, 30, "")),
            (pod(40, 30, ""), Some(30), vec![], false, pod(40, 30, "")),
            (pod(40, 30, ""), Some(60), vec!["a.io/b"], false, pod(40, 30, "")),
            (pod(40, 30, ""), Some(10), vec![], false, pod(20, 10, "")),
            (pod(40, 30, ""), Some(-5), vec![], false, pod(11, 1, "")),
            (pod(40, 30, ""), Some(0), vec![], true, pod(10, 0, "")),
            (pod(40, 30, HELD), Some(0), vec!["a.io/b"], false, pod(10, 0, HELD)),
            (pod(40, 0, ""), Some(5), vec![], true, pod(40, 0, "")),
            (pod(40, 0, ""), None, vec!["a.io/b"], false, pod(40, 0, HELD)),
        ] {
            let live = json::parse(live.as_bytes()).unwrap();
            let finalizers = finalizers.into_iter().map(str::to_owned).collect();
            let (is_now, object) = match shortened(&live, asked, finalizers) {
                End::Now(object) => (true, object),
                End::Later(object) => (false, object),
            };
            assert_eq!((is_now, json::to_string(&object)), (now, wanted), "{asked:?}");
        }
    }
}
