//! Rows of tables: steps that are taken one after the other. In all texts `NAME` is a name that is the row's own, and
//! `MAP` the head of a ConfigMap of that name.

use crate::common::{Fixture, GTR, PATIENCE, TR, gtr, tr};
use client::{Client, DeleteParams, Patch, PatchParams};
use futures_util::FutureExt;
use futures_util::future::join_all;
use object::{Map, Value, json, yaml};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// What the state of a status's items is.
pub const CREATED: &str = "{status: {processedItems: [{status: {status: 'True', created: true}}]}}";
/// An object that is not there.
pub const GONE: &str = "null";

/// One step. Objects are named `[GROUP/VERSION/]KIND NAMESPACE/NAME`; what is expected of them is a part of the object,
/// in which `null` says that something is not there. Expectations are waited for.
pub enum Step {
    /// Somebody else applies objects.
    Foreign(&'static str),
    /// Somebody else is turned away when he applies an object, with this text.
    ForeignRefused(&'static str, &'static str),
    /// A TenantResource `solar-a/NAME` is declared with this specification, and is ready.
    Declare(&'static str),
    /// It is declared, and not ready for this reason.
    Fails(&'static str, &'static str),
    /// It is turned away for this reason.
    Refused(&'static str, &'static str),
    /// A GlobalTenantResource is declared, and is ready.
    Global(&'static str),
    /// It is declared, and not ready for this reason.
    GlobalFails(&'static str, &'static str),
    /// The TenantResource says so of itself.
    Says(&'static str),
    /// The GlobalTenantResource says so of itself.
    GlobalSays(&'static str),
    /// An object is so.
    Is(&'static str, &'static str),
    /// An object is so now, and was not changed since the last `Note`.
    Still(&'static str, &'static str),
    /// Remembers the state of an object for `Still` and `Same`.
    Note(&'static str),
    /// An object was never deleted since the last `Note`.
    Same(&'static str),
    /// A merge patch, past all protection.
    Edit(&'static str, &'static str),
    /// A merge patch of a status, past all protection.
    EditStatus(&'static str, &'static str),
    /// A deletion, past all protection.
    Delete(&'static str),
    /// A merge patch by a user with all rights who is no administrator. It is accepted, if not at once.
    EditBy(&'static str, &'static str, &'static str),
    /// One that is turned away.
    EditRefused(&'static str, &'static str, &'static str, &'static str),
    /// A deletion by such a user.
    DeleteBy(&'static str, &'static str),
    /// One that is turned away.
    DeleteRefused(&'static str, &'static str, &'static str),
    /// A ResourcePermitTemplate `solar-a/NAME`.
    Template(&'static str),
    /// `bob` asks by it, with this specification beside the template.
    Ask(&'static str),
    /// He is turned away.
    AskRefused(&'static str, &'static str),
    /// A user writes this status of the permit.
    Move(&'static str, &'static str),
    /// A user is turned away.
    MoveRefused(&'static str, &'static str, &'static str),
    /// The permit is so.
    Permit(&'static str),
    /// Time for things that must not happen.
    Wait,
}

use Step::*;

/// The kind of permits.
pub const RP: &str = "capsule.clastix.io/v1beta2/ResourcePermit";

/// Takes the steps of all rows, side by side. Fails with the names of those that do.
pub async fn check(f: &Fixture, rows: &[(&str, &[Step])]) {
    for name in ["bob", "alice", "mallory"] {
        f.person(name).await;
    }
    let taken =
        rows.iter().enumerate().map(|(i, (row, steps))| AssertUnwindSafe(take(f, row, i, steps)).catch_unwind());
    let failed = join_all(taken).await.into_iter().filter(Result::is_err).count();
    assert_eq!(failed, 0, "rows failed; they are named above");
}

async fn take(f: &Fixture, row: &str, number: usize, steps: &[Step]) {
    let name = format!("row-{number}");
    let mut noted = Value::Null;
    for (at, step) in steps.iter().enumerate() {
        let place = format!("{row}, step {}", at + 1);
        Row { f, name: &name, place: &place }.take(step, &mut noted).await;
    }
}

struct Row<'a> {
    f: &'a Fixture,
    name: &'a str,
    place: &'a str,
}

impl Row<'_> {
    fn text(&self, text: &str) -> String {
        text.replace("MAP", "apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}").replace("NAME", self.name)
    }

    fn by(&self, user: &str) -> Client {
        self.f.client.acting_as(&self.text(user), &["system:authenticated"])
    }

    async fn take(&self, step: &Step, noted: &mut Value) {
        let (f, place) = (self.f, self.place);
        let own = (self.name, "solar-a");
        match *step {
            Foreign(objects) => drop(f.try_apply(&self.text(objects)).await.unwrap_or_else(|e| panic!("{place}: {e}"))),
            ForeignRefused(object, why) => {
                self.refused(f.apply_as(&self.by("mallory"), &self.text(object)).await, why);
            }
            Declare(spec) => {
                self.declare(&tr(self.name, &self.text(spec))).await;
                self.ready(TR, own.1, "True", "").await;
            }
            Fails(spec, why) => {
                self.declare(&tr(self.name, &self.text(spec))).await;
                self.ready(TR, own.1, "False", &self.text(why)).await;
            }
            Refused(spec, why) => self.refused(f.try_apply(&tr(self.name, &self.text(spec))).await, why),
            Global(spec) => {
                self.declare(&gtr(self.name, &self.text(spec))).await;
                self.ready(GTR, "", "True", "").await;
            }
            GlobalFails(spec, why) => {
                self.declare(&gtr(self.name, &self.text(spec))).await;
                self.ready(GTR, "", "False", &self.text(why)).await;
            }
            Says(what) => self.is(&format!("{TR} solar-a/NAME"), what).await,
            GlobalSays(what) => self.is(&format!("{GTR} /NAME"), what).await,
            Is(object, what) => self.is(object, what).await,
            Still(object, what) => {
                let now = self.find(object).await.unwrap_or_default();
                let wanted = self.yaml(what);
                let is = holds(&now, &wanted) || holds(&unlabelled(&now), &wanted);
                assert!(is, "{place}: {object} is {}", json::to_string(&now));
                assert_eq!(now.meta_str("resourceVersion"), noted.meta_str("resourceVersion"), "{place}: {object}");
            }
            Note(object) => {
                *noted = self.find(object).await.unwrap_or_else(|| panic!("{place}: {object} is not there"))
            }
            Same(object) => {
                let now = self.find(object).await.unwrap_or_default();
                assert_eq!(now.meta_str("uid"), noted.meta_str("uid"), "{place}: {object}");
            }
            Edit(object, patch) => self.accepted(self.patch(&f.client, object, patch, "").await),
            EditStatus(object, patch) => self.accepted(self.patch(&f.client, object, patch, "status").await),
            Delete(object) => self.accepted(self.delete(&f.client, object).await),
            EditBy(user, object, patch) => {
                let who = self.by(user);
                self.soon(async || self.patch(&who, object, patch, "").await).await;
            }
            EditRefused(user, object, patch, why) => {
                self.refused(self.patch(&self.by(user), object, patch, "").await, why);
            }
            DeleteBy(user, object) => {
                let who = self.by(user);
                self.soon(async || self.delete(&who, object).await).await;
            }
            DeleteRefused(user, object, why) => self.refused(self.delete(&self.by(user), object).await, why),
            Template(spec) => {
                let head = "apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate";
                let spec = self.text(spec);
                self.declare(&format!("{{{head}, metadata: {{name: {}, namespace: {}}}, spec: {spec}}}", own.0, own.1))
                    .await;
                self.ready("capsule.clastix.io/v1beta2/ResourcePermitTemplate", own.1, "True", "").await;
            }
            // The template may be a moment old where admission looks.
            Ask(more) => self.soon(async || self.ask(more).await).await,
            AskRefused(more, why) => {
                let mut answer = self.ask(more).await;
                for _ in 0..PATIENCE {
                    if answer.as_ref().is_err_and(|error| error.to_string().contains(&self.text(why))) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(25)).await;
                    answer = self.ask(more).await;
                }
                self.refused(answer, why);
            }
            Move(user, status) => {
                let patch = format!("status: {status}");
                self.accepted(self.patch(&self.by(user), &format!("{RP} solar-a/NAME"), &patch, "status").await);
            }
            MoveRefused(user, status, why) => {
                let patch = format!("status: {status}");
                self.refused(self.patch(&self.by(user), &format!("{RP} solar-a/NAME"), &patch, "status").await, why);
            }
            Permit(what) => self.is(&format!("{RP} solar-a/NAME"), what).await,
            Wait => tokio::time::sleep(Duration::from_millis(400)).await,
        }
    }

    fn yaml(&self, text: &str) -> Value {
        yaml::parse(self.text(text).as_bytes()).unwrap_or_else(|e| panic!("{}: {e}", self.place))
    }

    fn accepted(&self, answer: client::Result<Value>) {
        if let Err(error) = answer {
            panic!("{}: {error}", self.place);
        }
    }

    fn refused(&self, answer: client::Result<Value>, why: &str) {
        let why = self.text(why);
        match answer {
            Err(error) => assert!(error.to_string().contains(&why), "{}: {error}", self.place),
            Ok(object) => panic!("{}: it was not refused: {}", self.place, json::to_string(&object)),
        }
    }

    /// What was forbidden until a moment ago is accepted soon.
    async fn soon(&self, write: impl AsyncFn() -> client::Result<Value>) {
        for _ in 0..PATIENCE {
            if !write().await.is_err_and(|error| error.is_forbidden()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        self.accepted(write().await);
    }

    async fn declare(&self, text: &str) {
        self.accepted(self.f.try_apply(text).await);
    }

    async fn ready(&self, kind: &str, namespace: &str, status: &str, message: &str) {
        let is = |o: &Value| {
            let ready = manager::status::condition(o, "Ready");
            o.at(&["metadata", "generation"]) == o.at(&["status", "observedGeneration"])
                && ready.is_some_and(|c| {
                    let text = |key| c.str_at(&[key]).unwrap_or_default();
                    text("status") == status && text("message").contains(message)
                })
        };
        let wanted = object::map! { "status" => object::map! { "conditions" => status, "message" => message } };
        self.until(&format!("{kind} {namespace}/{}", self.name), |o| o.is_some_and(is), &wanted.into()).await;
    }

    async fn is(&self, object: &str, what: &str) {
        let wanted = self.yaml(what);
        // What is not there has no parts.
        let is = |o: Option<&Value>| o.map_or(wanted.is_null(), |o| holds(&unlabelled(o), &wanted));
        self.until(object, is, &wanted).await;
    }

    async fn until(&self, object: &str, is: impl Fn(Option<&Value>) -> bool, wanted: &Value) {
        let mut last = None;
        for _ in 0..PATIENCE {
            last = self.find(object).await;
            if is(last.as_ref()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let last = last.map_or("not there".into(), |o| json::to_string(&about(&o, wanted)));
        panic!("{}: {} is not\n  {}, but\n  {last}", self.place, self.text(object), json::to_string(wanted));
    }

    /// The resource, namespace and name of `KIND NAMESPACE/NAME`.
    async fn reference(&self, object: &str) -> (client::Resource, String, String) {
        let object = self.text(object);
        let (kind, place) = object.split_once(' ').unwrap_or_else(|| panic!("{}: {object}", self.place));
        let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        let resource = self.f.client.resource_of(api_version, kind).await.unwrap();
        let resource = resource.unwrap_or_else(|| panic!("{}: {kind} is not served", self.place));
        (resource, namespace.to_owned(), name.to_owned())
    }

    async fn find(&self, object: &str) -> Option<Value> {
        let (resource, namespace, name) = self.reference(object).await;
        self.f.client.api(&resource).find(&namespace, &name).await.unwrap()
    }

    async fn patch(&self, who: &Client, object: &str, patch: &str, subresource: &str) -> client::Result<Value> {
        let (resource, namespace, name) = self.reference(object).await;
        let params = PatchParams { field_manager: "editor".into(), ..PatchParams::default() };
        let params = if subresource.is_empty() { params } else { PatchParams::status() };
        who.api(&resource).patch(&namespace, &name, &Patch::Merge(self.yaml(patch)), &params).await
    }

    async fn delete(&self, who: &Client, object: &str) -> client::Result<Value> {
        let (resource, namespace, name) = self.reference(object).await;
        who.api(&resource).delete(&namespace, &name, &DeleteParams::default()).await
    }

    /// Asks, again as long as a template that was just written has not reached everybody.
    async fn ask(&self, more: &str) -> client::Result<Value> {
        let kind =
            if more.contains("template:") { "" } else { ", template: {kind: ResourcePermitTemplate, name: NAME}" };
        let permit = self.yaml(&format!(
            "{{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {{name: NAME, namespace: solar-a}}, spec: {{requester: {{name: forged, type: System}}{kind}{more}}}}}"
        ));
        self.by("bob").api(&manager::kinds::PERMITS).create("solar-a", &permit).await
    }
}

/// Whether an object has everything that `part` says. `null` is what is not there; lists are compared entry by entry, and
/// `~text` is a text that contains it.
fn holds(object: &Value, part: &Value) -> bool {
    match (object, part) {
        (Value::Object(object), Value::Object(part)) => {
            part.iter().all(|(key, value)| holds(object.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Null, Value::Object(part)) => !part.is_empty() && part.values().all(|part| holds(object, part)),
        (Value::Array(object), Value::Array(part)) => {
            object.len() == part.len() && object.iter().zip(part).all(|(object, part)| holds(object, part))
        }
        (Value::String(text), Value::String(part)) => match part.strip_prefix('~') {
            Some(part) => text.contains(part),
            None => text == part,
        },
        _ => object == part,
    }
}

/// Of an object what `part` is about, to show what differs.
fn about(object: &Value, part: &Value) -> Value {
    match (object, part) {
        (Value::Object(object), Value::Object(part)) if !part.is_empty() => {
            let of = |(key, part): (&str, &Value)| Some((key.to_owned(), about(object.get(key)?, part)));
            Value::Object(part.iter().filter_map(of).collect())
        }
        (Value::Array(object), Value::Array(part)) if object.len() == part.len() => {
            object.iter().zip(part).map(|(object, part)| about(object, part)).collect::<Vec<_>>().into()
        }
        _ => object.clone(),
    }
}

/// An object without what is put on everything in a tenant's namespace: that says nothing of whoever manages it.
fn unlabelled(object: &Value) -> Value {
    let mut object = object.clone();
    for label in ["capsule.clastix.io/tenant", "projectcapsule.dev/tenant", "capsule.clastix.io/managed-by"] {
        object.remove_at(&["metadata", "labels", label]);
    }
    if object.at(&["metadata", "labels"]).and_then(Value::as_object).is_some_and(Map::is_empty) {
        object.remove_at(&["metadata", "labels"]);
    }
    object
}
