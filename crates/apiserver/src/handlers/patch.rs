//! Patches: JSON, merge, strategic merge, apply.

use super::Request;
use super::incoming;
use super::present;
use super::strategic::Node;
use super::write::{self, Change};
use crate::answer::{Failure, Outcome, Response};
use crate::request::body::{self, Language};
use crate::request::options::{self, FieldValidation, WriteOptions};
use crate::strategy::Part;
use kinds::Issue;
use object::field::{FieldError, Path};
use object::{Map, Status, Value, go, json, yaml};
use patch::json_patch::JsonPatch;
use patch::strategic::ErrorKind;

/// How often a patch without a version is tried again (upstream's `maxRetryWhenPatchConflicts`).
const TRIES: usize = 5;

/// The language of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// The type of the patch that a request brings; 415 when the resource does not take it.
pub(crate) fn patch_type(request: &Request<'_>, strategic: bool) -> Outcome<Type> {
    match body::media_type(&request.parts.headers).as_deref() {
        Some("application/json-patch+json") => Ok(Type::Json),
        Some("application/merge-patch+json") => Ok(Type::Merge),
        Some("application/apply-patch+yaml") => Ok(Type::Apply),
        Some("application/strategic-merge-patch+json") if strategic => Ok(Type::Strategic),
        _ if request.resource.is_custom() => Err(body::unsupported(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ])),
        _ => {
            let status = Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            Err(Status { details: Some(Default::default()), ..status }.into())
        }
    }
}

/// Changes parts of the object that the path names.
pub(crate) async fn patch(request: &mut Request<'_>, part: Part) -> Outcome<Response> {
    let ty = patch_type(request, !request.resource.is_custom())?;
    if request.info.name.is_empty() {
        return Err(Status::bad_request("name must be provided").into());
    }
    if ty == Type::Apply {
        return apply(request, part).await;
    }
    let options = WriteOptions::read(request.query, options::Write::Patch)?;
    let text = request.body.clone();
    let validation = options.validation;
    let mut change = Change::new(part, &options);
    change.tries = TRIES;
    let (code, shown) = write::change(request, change, |request, live| {
        let Some(live) = live else { return Err(request.not_found()) };
        let sent = write::sent(request, live);
        let patched = patched(request, ty, &text, sent, validation)?;
        let mut object = decode(request, patched, validation)?;
        write::match_name(request, &object)?;
        write::match_namespace(request, &mut object)?;
        write::drop_repeated_owners(request, &mut object);
        Ok(object)
    })
    .await?;
    present::object(request, code, &shown).await
}

/// The patched document, and how it is shown when it cannot be read.
pub(crate) struct Patched {
    pub value: Value,
    /// What errors quote: the document, or for a strategic patch the patch.
    pub shown: Option<String>,
    /// Repeated keys of the patch.
    pub issues: Vec<String>,
}

/// Applies a patch to an object.
pub(crate) fn patched(
    request: &Request<'_>,
    ty: Type,
    text: &[u8],
    object: Value,
    validation: FieldValidation,
) -> Outcome<Patched> {
    let issues = match validation {
        FieldValidation::Ignore => Vec::new(),
        _ => issues(ty, text),
    };
    let value = match ty {
        Type::Json => json_patched(text, object)?,
        Type::Strategic => return strategic(request, text, object, issues),
        _ => merged(text, object)?,
    };
    Ok(Patched { value, shown: None, issues })
}

/// How many operations a JSON patch may have.
const MAX_OPERATIONS: usize = 10_000;

fn json_patched(text: &[u8], object: Value) -> Outcome<Value> {
    let malformed = |why: String| Failure::from(Status::bad_request(format!("error decoding patch: {why}")));
    let patch = json::parse(text).map_err(|e| malformed(e.to_string()))?;
    if !matches!(patch, Value::Array(_) | Value::Null) {
        let word = go::json_kind(&patch);
        return Err(malformed(format!("json: cannot unmarshal {word} into Go value of type []handlers.jsonPatchOp")));
    }
    let patch = JsonPatch::read(patch).map_err(malformed)?;
    if patch.len() > MAX_OPERATIONS {
        let count = patch.len();
        let why = format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}");
        return Err(Status::too_large(why).into());
    }
    patch.apply(object).map_err(|_| unfit())
}

fn merged(text: &[u8], object: Value) -> Outcome<Value> {
    let malformed = |e: String| Failure::from(Status::bad_request(format!("error decoding patch: {e}")));
    let patch = json::parse(text).map_err(|e| malformed(e.to_string()))?;
    if !matches!(patch, Value::Object(_) | Value::Null) {
        let word = go::json_kind(&patch);
        return Err(malformed(format!(
            "json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
        )));
    }
    patch::merge::apply_document(object, patch).map_err(|why| Status::bad_request(why).into())
}

fn strategic(request: &Request<'_>, text: &[u8], object: Value, issues: Vec<String>) -> Outcome<Patched> {
    let malformed = |why: String| Failure::from(Status::bad_request(format!("error decoding patch: {why}")));
    let patch = json::parse(text).map_err(|e| malformed(e.to_string()))?;
    let shown = go::plain(&patch);
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => {
            let word = go::json_kind(&other);
            return Err(malformed(format!(
                "json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let Value::Object(members) = object else { return Err(unfit()) };
    let definition = match request.part_kind() {
        "Scale" => kinds::definitions().get("io.k8s.api.autoscaling.v1.Scale"),
        _ => kinds::find(&request.resource.group, &request.resource.version, &request.resource.plural)
            .and_then(|(_, version)| version.definition()),
    };
    let Some(definition) = definition else { return Err(unfit()) };
    let merged = patch::strategic::apply(members, patch, &Node::Structure(definition));
    let value = merged.map_err(|error| match error.kind {
        ErrorKind::BadPatch => Failure::from(Status::bad_request(error.message)),
        ErrorKind::Unprocessable => unfit(),
        _ => Failure::from(Status::unknown(error.message)),
    })?;
    Ok(Patched { value: Value::Object(value), shown: Some(shown), issues })
}

/// Keys that a patch has twice, and members that an operation of a JSON patch does not have.
fn issues(ty: Type, text: &[u8]) -> Vec<String> {
    let Ok((patch, repeated)) = json::parse_strict(text) else { return Vec::new() };
    let prefix = if ty == Type::Json { "json patch " } else { "" };
    let mut out: Vec<String> = Vec::new();
    if let (Type::Json, Value::Array(operations)) = (ty, &patch) {
        for (i, operation) in operations.iter().enumerate() {
            let members = operation.as_object().into_iter().flat_map(Map::keys);
            let unknown = members.filter(|k| !matches!(*k, "op" | "from" | "path" | "value"));
            out.extend(unknown.map(|k| format!("{prefix}{}", Issue::Unknown(format!("[{i}].{k}")))));
        }
    }
    out.extend(repeated.into_iter().map(|path| format!("{prefix}{}", Issue::Repeated(path))));
    out
}

/// A patch that does not fit the object. Upstream tells no more than that.
pub(crate) fn unfit() -> Failure {
    let why = "the server rejected our request due to an error in our request";
    Status { details: Some(Default::default()), ..Status::new(422, "Invalid", why) }.into()
}

/// Reads a patched document as an object of the kind.
fn decode(request: &mut Request<'_>, patched: Patched, validation: FieldValidation) -> Outcome<Value> {
    let Patched { mut value, shown, issues } = patched;
    let track = validation != FieldValidation::Ignore;
    let custom = request.resource.is_custom();
    let quoted = |value: &Value| shown.clone().unwrap_or_else(|| quote_document(value, custom));
    if let Some(error) = body::check_type(&value).filter(|_| custom) {
        return Err(invalid_patch(quoted(&value), &error));
    }
    let empty_kind = value.str_at(&["kind"]).unwrap_or_default().is_empty();
    if empty_kind && custom {
        let error = incoming::missing_kind(&value, json::to_string(&value).as_bytes(), Language::Json);
        return Err(invalid_patch(quoted(&value), &error));
    }
    if !custom && request.part_kind() == request.resource.kind {
        // A strategic merge is made in the kind's own structure: what it says of the kind counts for nothing.
        if shown.is_some() {
            value.set_at(&["kind"], request.resource.kind.as_str().into());
            value.set_at(&["apiVersion"], request.resource.api_version().into());
        } else if let Some(why) = incoming::other_kind(request, &value) {
            return Err(invalid_patch(quoted(&value), &why));
        }
    }
    let document = value.clone();
    let strategy = &request.resource.strategy;
    let received = match shown {
        Some(_) => strategy.receive_unstructured(&mut value).map(|unknown| (value, unknown)),
        None => incoming::receive(&**strategy, value, None, Vec::new(), track),
    };
    let (object, unknown) = received.map_err(|error| invalid_patch(quoted(&document), &error))?;
    if !track {
        return Ok(object);
    }
    if validation == FieldValidation::Strict && !(unknown.is_empty() && issues.is_empty()) {
        let all: Vec<String> = issues.iter().chain(&unknown).cloned().collect();
        return Err(invalid_patch(quoted(&document), &body::strict_error(&all)));
    }
    request.warnings.extend(issues.into_iter().chain(unknown));
    Ok(object)
}

/// 422 for a patch whose result is not an object of the kind.
pub(crate) fn invalid_patch(document: String, error: &str) -> Failure {
    let error = FieldError::invalid(&Path::ROOT.child("patch"), document.as_str(), error);
    let mut status = Status::invalid(object::status::Qualified { group: "", name: "" }, "", &[error]);
    if let Some(details) = &mut status.details {
        (details.name, details.kind, details.group) = Default::default();
    }
    status.into()
}

/// A document as errors quote it. Upstream's built-in kinds write managed fields in the order of their struct.
fn quote_document(value: &Value, custom: bool) -> String {
    let text = json::to_string(value);
    let entries = value.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    if custom || entries.is_empty() {
        return text;
    }
    let sorted = json::to_string(&Value::Array(entries.to_vec()));
    let order = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    let in_order = entries.iter().map(|entry| {
        let members = order.iter().filter_map(|key| Some((key, entry.get(key)?)));
        let members: Vec<String> = members.map(|(k, v)| format!("\"{k}\":{}", json::to_string(v))).collect();
        format!("{{{}}}", members.join(","))
    });
    let in_order: Vec<String> = in_order.collect();
    text.replacen(&sorted, &format!("[{}]", in_order.join(",")), 1)
}

/// Applies a configuration.
async fn apply(request: &mut Request<'_>, part: Part) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Apply)?;
    let config = read_configuration(request, options.validation)?;
    let manager = request.manager(&options.field_manager);
    let now = request.now.as_second();
    let uid = Some(config.meta_str("uid").to_owned()).filter(|uid| !uid.is_empty());
    let mut change = Change { creates: part == Part::Main, owns: false, ..Change::new(part, &options) };
    change.tries = if config.meta_str("resourceVersion").is_empty() { TRIES } else { 0 };
    let (code, shown) = write::change(request, change, |request, live| {
        let live = live.map(|live| write::as_sent(request, live));
        let ownership = request.resource.strategy.ownership();
        let conversions = request.conversions.clone();
        let merged =
            ownership.applied(part, live.as_deref(), &config, &manager, options.force, now, conversions.as_ref())?;
        if let (None, Some(uid)) = (&live, &uid) {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(request.resource.qualified(), &request.info.name, &why).into());
        }
        let mut object = merged;
        write::match_name(request, &object)?;
        write::match_namespace(request, &mut object)?;
        let owners = object.remove_at(&["metadata", "managedFields"]);
        request.resource.strategy.complete(&mut object).map_err(|e| unconvertible(request, &config, &e))?;
        if let Some(owners) = owners {
            object.metadata_mut().insert("managedFields", owners);
        }
        write::drop_repeated_owners(request, &mut object);
        Ok(object)
    })
    .await?;
    present::object(request, code, &shown).await
}

/// 500 for an applied object that does not decode.
fn unconvertible(request: &Request<'_>, config: &Value, error: &str) -> Failure {
    let (group, version, kind) = (&request.resource.group, &request.resource.version, &request.resource.kind);
    let gvk = format!("{group}/{version}, Kind={kind}");
    let (namespace, name) = (config.namespace(), config.name());
    Status::unknown(format!(
        "failed to convert new object ({namespace}/{name}; {gvk}) to proper version: unable to convert unstructured object to {gvk}: {error}"
    ))
    .into()
}

/// The configuration of an apply: YAML (or JSON, which is YAML too).
pub(crate) fn read_configuration(request: &mut Request<'_>, validation: FieldValidation) -> Outcome<Value> {
    let bad = |prefix: &str, why: &str| -> Failure { Status::bad_request(format!("{prefix}: {why}")).into() };
    let (value, issues) = yaml::parse_strict(&request.body)
        .map_err(|e| bad("error decoding YAML", &format!("error converting YAML to JSON: {e}")))?;
    match validation {
        FieldValidation::Strict if !issues.is_empty() => {
            let why = format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {}", issues.join("\n  "));
            return Err(bad("error strict decoding YAML", &why));
        }
        FieldValidation::Warn => issues.into_iter().for_each(|issue| request.warnings.add(issue)),
        _ => {}
    }
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(object::Map::new())),
        other => {
            let word = go::json_kind(&other);
            let why = format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
            );
            Err(bad("error decoding YAML", &why))
        }
    }
}
