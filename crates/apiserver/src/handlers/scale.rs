//! The subresource `scale`: a small object of its own that shows and sets an object's replicas.

use super::Request;
use super::get;
use super::patch::{self, Type};
use super::present::{self, Shown};
use super::write::{self, Change};
use crate::answer::{Failure, Outcome, Response};
use crate::request::body;
use crate::request::options::{self, WriteOptions};
use crate::request::{Shape, Verb};
use crate::strategy::{Column, Part, ScalePaths, at};
use crate::table::{self, Include};
use object::field::{FieldError, Path};
use object::status::Qualified;
use object::{Map, Status, Value, json, map};
use parking_lot::Mutex;

const DEFINITION: &str = "io.k8s.api.autoscaling.v1.Scale";

/// What stands for the replicas of a custom object that has none, until somebody says how many it is to have.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// Answers a request for the scale of an object.
pub(crate) async fn handle(request: &mut Request<'_>) -> Outcome<Response> {
    let Some(paths) = request.resource.strategy.scale() else { return Err(request.not_found()) };
    match request.info.verb {
        Verb::Get | Verb::Watch => {
            let shown = get::read(request).await?;
            let object = present::sent(request, &shown).await?;
            let scale = of(request, &object, &paths)?;
            let sent = match request.form.shape {
                Shape::Table if !request.resource.is_custom() => as_table(request, scale)?,
                _ => scale,
            };
            Ok(present::finish(request.form, 200, json::to_vec(&sent)))
        }
        Verb::Update => update(request, paths).await,
        Verb::Patch => patch(request, paths).await,
        verb => Err(Status::method_not_supported(request.resource.qualified(), verb.name()).into()),
    }
}

/// The scale of an object.
fn of(request: &Request<'_>, object: &Value, paths: &ScalePaths) -> Outcome<Value> {
    if request.resource.is_custom() && replicas_at(object, paths).is_none() {
        let path = paths.spec.join(".");
        return Err(Status::internal(format!("the spec replicas field \".{path}\" does not exist")).into());
    }
    Ok(scale(object, paths))
}

/// The replicas that are wanted of an object.
fn replicas_at(object: &Value, paths: &ScalePaths) -> Option<i64> {
    at(object, &paths.spec).and_then(Value::as_int)
}

/// The scale of an object, which may have no number.
fn scale(object: &Value, paths: &ScalePaths) -> Value {
    let number = |path: &[String]| at(object, path).and_then(Value::as_int);
    let wanted = number(&paths.spec);
    let mut meta = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata().and_then(|m| m.get(key)) {
            meta.insert(key, value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(wanted) = wanted.filter(|w| *w != 0) {
        spec.insert("replicas", wanted);
    }
    let mut status = map! { "replicas" => number(&paths.status).unwrap_or(0) };
    let selector = paths.selector.as_ref().and_then(|path| at(object, path));
    let selector = match selector {
        Some(Value::String(text)) => text.to_string(),
        Some(selector @ Value::Object(_)) => kinds::scale::selector(selector),
        _ => String::new(),
    };
    if !selector.is_empty() {
        status.insert("selector", selector);
    }
    Value::Object(map! {
        "kind" => "Scale", "apiVersion" => "autoscaling/v1", "metadata" => meta, "spec" => spec, "status" => status,
    })
}

/// A scale as a table of one row.
fn as_table(request: &Request<'_>, scale: Value) -> Outcome<Value> {
    let own = request.resource.strategy.columns();
    let described = |name: &str| own.iter().find(|column| column.name == name).map(|c| c.description.clone());
    let column = |name: &str, ty: &str, description: String| Column {
        name: name.to_owned(),
        ty: ty.to_owned(),
        format: String::new(),
        description,
        priority: 0,
    };
    let columns = [
        column("Name", "string", described("Name").unwrap_or_default()),
        column("Desired", "integer", "replicas is the desired number of instances for the scaled object.".to_owned()),
        column(
            "Available",
            "integer",
            "replicas is the actual number of observed instances of the scaled object.".to_owned(),
        ),
        column("Age", "string", described("Age").unwrap_or_default()),
    ];
    let actual = scale.at(&["status", "replicas"]).and_then(Value::as_int).unwrap_or(0);
    let age = kinds::table::age(&scale, request.now);
    let cells: Vec<Value> = vec![scale.name().into(), replicas(&scale).into(), actual.into(), age];
    let version = request.form.version;
    let meta = map! { "resourceVersion" => scale.meta_str("resourceVersion") };
    let object = match present::include(request)? {
        Include::None => Value::Null,
        Include::Metadata => table::partial(&scale, version),
        Include::Object => scale,
    };
    let row = Value::Object(map! { "cells" => cells, "object" => object });
    Ok(table::table(Some(&columns), vec![row], meta, version))
}

/// How admission sees a write of a scale: as the scale that it is.
pub(crate) struct ScaleView {
    paths: ScalePaths,
    wanted: Mutex<Value>,
}

impl ScaleView {
    /// The scale that is to be.
    pub fn wanted(&self) -> Value {
        self.wanted.lock().clone()
    }

    /// The scale of an object.
    pub fn of(&self, object: &Value) -> Value {
        scale(object, &self.paths)
    }

    /// Sets an object's replicas to those of a scale.
    pub fn set(&self, object: &mut Value, scale: &Value) {
        let path: Vec<&str> = self.paths.spec.iter().map(String::as_str).collect();
        object.set_at(&path, Value::Int(replicas(scale)));
    }
}

fn replicas(scale: &Value) -> i64 {
    scale.at(&["spec", "replicas"]).and_then(Value::as_int).unwrap_or(0)
}

/// Reads a scale; the error is Go's.
fn decode(value: Value) -> Result<Value, String> {
    let Some(definition) = kinds::definitions().get(DEFINITION) else { return Ok(value) };
    kinds::decode(definition, value).map(|d| d.object)
}

async fn update(request: &mut Request<'_>, paths: ScalePaths) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Update)?;
    let language = body::language(&request.parts.headers)?;
    let text = request.body.clone();
    let parsed = body::parse(&text, language, false).map_err(|e| body::unrecognized("Scale", &e, &text))?;
    let kind = parsed.value.str_at(&["kind"]).unwrap_or_default().to_owned();
    let version = parsed.value.str_at(&["apiVersion"]).unwrap_or_default().to_owned();
    if !kind.is_empty() && (kind.as_str(), version.as_str()) != ("Scale", "autoscaling/v1") {
        let scheme = "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:725";
        let why = format!("no kind is registered for the type v1.Scale in scheme \"{scheme}\"");
        return Err(Status::bad_request(why).into());
    }
    let scale = decode(parsed.value).map_err(|e| {
        let why = format!("Scale in version \"v1\" cannot be handled as a Scale: {e}");
        Failure::from(Status::bad_request(why))
    })?;
    write::match_name(request, &scale)?;
    let uid = Some(scale.meta_str("uid").to_owned()).filter(|uid| !uid.is_empty());
    set(request, paths, Change { uid, ..Change::new(Part::Scale, &options) }, |_, _| Ok(scale.clone())).await
}

async fn patch(request: &mut Request<'_>, paths: ScalePaths) -> Outcome<Response> {
    let ty = patch::patch_type(request, !request.resource.is_custom())?;
    if ty == Type::Apply {
        return apply(request, paths).await;
    }
    let options = WriteOptions::read(request.query, options::Write::Patch)?;
    let text = request.body.clone();
    set(request, paths, Change::new(Part::Scale, &options), |request, live| {
        let patched = patch::patched(request, ty, &text, live.clone(), options.validation)?;
        let mut value = patched.value;
        let shown = patched.shown.clone().unwrap_or_else(|| json::to_string(&value));
        // A strategic patch is read by rules of its own.
        let conformed = match kinds::definitions().get(DEFINITION).filter(|_| patched.shown.is_some()) {
            Some(definition) => kinds::conform(definition, &mut value).map(drop),
            None => Ok(()),
        };
        conformed.and_then(|()| decode(value)).map_err(|e| patch::invalid_patch(shown, &e))
    })
    .await
}

async fn apply(request: &mut Request<'_>, paths: ScalePaths) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Apply)?;
    let config = patch::read_configuration(request, options.validation)?;
    let manager = request.manager(&options.field_manager);
    let now = request.now.as_second();
    set(request, paths, Change { owns: false, ..Change::new(Part::Scale, &options) }, |request, live| {
        let ownership = request.resource.strategy.ownership();
        ownership.applied(Part::Scale, Some(live), &config, &manager, options.force, now, None).map_err(Failure::from)
    })
    .await
}

/// Sets the replicas of the object to those of the scale that `make` gives.
/// Where `change` does not work out who owns what, the scale has it.
async fn set<F>(request: &mut Request<'_>, paths: ScalePaths, change: Change<'_>, mut make: F) -> Outcome<Response>
where
    F: FnMut(&mut Request<'_>, &Value) -> Outcome<Value>,
{
    let view = ScaleView { paths: paths.clone(), wanted: Mutex::default() };
    // A whole scale names the object that it means; whether it is this one is found out with the rest.
    let (owns, given_uid) = (change.owns, change.uid.is_some());
    let change = Change { scale: Some(&view), ..change };
    let (code, shown) = write::change(request, change, |request, live| {
        let Some(live) = live else { return Err(request.not_found()) };
        let sent = write::sent(request, live);
        // A scale can be set where there is none to be read.
        let mut scale = scale(&sent, &paths);
        if request.resource.is_custom() && replicas_at(&sent, &paths).is_none() {
            scale.set_at(&["spec", "replicas"], Value::Int(NO_REPLICAS));
        }
        if !owns {
            let owners = request.resource.strategy.ownership().owners_of_scale(&sent);
            scale.metadata_mut().insert("managedFields", owners);
        }
        let scale = make(request, &scale)?;
        let replicas = replicas(&scale);
        if replicas < 0 && !request.resource.is_custom() {
            let path = Path::ROOT.child("spec");
            let error = FieldError::invalid(&path.child("replicas"), replicas, "must be greater than or equal to 0");
            let kind = Qualified { group: "autoscaling", name: "Scale" };
            return Err(Status::invalid(kind, &request.info.name, &[error]).into());
        }
        if replicas == NO_REPLICAS && request.resource.is_custom() {
            let path = paths.spec.join(".");
            return Err(Status::bad_request(format!("the spec replicas field \".{path}\" cannot be empty")).into());
        }
        let (uid, live_uid) = (scale.meta_str("uid"), live.meta_str("uid"));
        if !request.resource.is_custom() && !given_uid && !uid.is_empty() && uid != live_uid {
            return Err(another_uid(request, uid, live_uid).into());
        }
        let mut object = live.clone();
        view.set(&mut object, &scale);
        *view.wanted.lock() = scale.clone();
        let version = scale.meta_str("resourceVersion");
        if !version.is_empty() {
            object.metadata_mut().insert("resourceVersion", version);
        }
        if !owns {
            request.resource.strategy.ownership().own_by_scale(&mut object, &scale);
        }
        Ok(object)
    })
    .await?;
    show(request, code, &shown, &paths).await
}

/// 409 for a scale of another object than the one that is there.
fn another_uid(request: &Request<'_>, uid: &str, live: &str) -> Status {
    let resource = format!("{}/scale", request.resource.plural);
    let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {live}");
    Status::conflict(Qualified { group: &request.resource.group, name: &resource }, &request.info.name, &why)
}

async fn show(request: &Request<'_>, code: u16, shown: &Shown, paths: &ScalePaths) -> Outcome<Response> {
    let object = present::sent(request, shown).await?;
    let scale = scale(&object, paths);
    Ok(present::finish(request.form, code, json::to_vec(&scale)))
}
