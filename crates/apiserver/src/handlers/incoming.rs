//! Objects that a request brings: what they say they are, and their form.

use super::Request;
use crate::answer::{Failure, Outcome};
use crate::request::body::{self, Language, Parsed, Text};
use crate::request::options::FieldValidation;
use crate::strategy::{Strategy, unknown_field};
use object::{Map, Status, Value, go};
use std::sync::Arc;

/// Reads the body as an object, in the form that is worked on. What can be let pass becomes a warning.
pub(crate) fn read_body(request: &mut Request<'_>, validation: FieldValidation) -> Outcome<Value> {
    let language = body::language(&request.parts.headers)?;
    if language == Language::Protobuf && request.resource.is_custom() {
        return Err(body::unsupported(&["application/json", "application/yaml"]));
    }
    let kind = request.resource.kind.clone();
    let strict = validation != FieldValidation::Ignore;
    let text = request.body.clone();
    let Parsed { value, repeats, issues } = body::parse(&text, language, strict).map_err(|e| {
        if e.starts_with("json: cannot unmarshal number") {
            let version = go::quote(&request.resource.version);
            return Status::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {e}"))
                .into();
        }
        body::unrecognized(&kind, &e, &text)
    })?;
    let object = identify(request, value, &text, language)?;
    let (given_kind, given_version) = type_of(&object);
    let cannot = |why: &str| -> Failure {
        let version = given_version.rsplit('/').next().unwrap_or_default();
        let message = format!("{given_kind} in version {} cannot be handled as a {kind}: {why}", go::quote(version));
        Status::bad_request(message).into()
    };
    let expected = request.resource.api_version();
    let json = (language == Language::Json).then_some(Text { json: &text, repeats });
    // What is of another type is not measured by this one's schema.
    let strategy = &request.resource.strategy;
    let (object, issues) = match other_version(request, &object) {
        Other::Same => receive(&**strategy, object, json, issues, strict).map_err(|e| cannot(&e))?,
        Other::Kind => receive(&**strategy, object, json, issues, false).map_err(|e| cannot(&e))?,
        Other::Version(other) => receive(&*other, object, json, issues, strict).map_err(|e| cannot(&e))?,
        Other::Unknown => {
            // A version without a schema knows nothing.
            let members = object.as_object().into_iter().flat_map(Map::keys);
            let members = members.filter(|k| strict && !matches!(*k, "apiVersion" | "kind" | "metadata"));
            let repeated = json.map(|text| text.repetitions()).unwrap_or_default();
            let issues = issues.into_iter().chain(repeated).chain(members.map(unknown_field)).collect();
            (object, issues)
        }
    };
    match validation {
        FieldValidation::Strict if !issues.is_empty() => return Err(cannot(&body::strict_error(&issues))),
        FieldValidation::Warn => issues.into_iter().for_each(|i| request.warnings.add(i)),
        _ => {}
    }
    if given_version != expected {
        let message = format!(
            "the API version in the data ({given_version}) does not match the expected API version ({expected})"
        );
        return Err(Status::bad_request(message).into());
    }
    Ok(object)
}

/// How the type of a body relates to that of the resource.
enum Other {
    /// It is the same.
    Same,
    /// The kind or the group is another one.
    Kind,
    /// Another version of the custom resource, with this strategy.
    Version(Arc<dyn Strategy>),
    /// A version that the custom resource does not have.
    Unknown,
}

fn other_version(request: &Request<'_>, object: &Value) -> Other {
    let resource = &request.resource;
    let (kind, api_version) = type_of(object);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    if kind != resource.kind || group != resource.group {
        return Other::Kind;
    }
    if version == resource.version || !resource.is_custom() {
        return Other::Same;
    }
    match request.catalogue.resource(group, version, &resource.plural) {
        Some(other) => Other::Version(other.strategy.clone()),
        None => Other::Unknown,
    }
}

/// Brings an object into the form that is worked on; adds what strict reading does not let pass to the issues.
pub(crate) fn receive(
    strategy: &dyn Strategy,
    mut object: Value,
    text: Option<Text<'_>>,
    mut issues: Vec<String>,
    track: bool,
) -> Result<(Value, Vec<String>), String> {
    match text {
        Some(text) => issues.extend(strategy.receive_text(&mut object, text, track)?),
        None => issues.extend(strategy.receive(&mut object, track)?.iter().map(|path| unknown_field(path))),
    }
    Ok((object, issues))
}

fn type_of(object: &Value) -> (String, String) {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default().to_owned();
    (text("kind"), text("apiVersion"))
}

/// Checks what the object says it is. Built-in kinds may leave it out.
fn identify(request: &Request<'_>, mut object: Value, text: &[u8], language: Language) -> Outcome<Value> {
    let resource = &request.resource;
    let (_, version) = type_of(&object);
    if version.matches('/').count() > 1 {
        let error = format!("unexpected GroupVersion string: {version}");
        return Err(body::unrecognized(&resource.kind, &error, text));
    }
    if resource.is_custom() {
        if object.str_at(&["kind"]).unwrap_or_default().is_empty() {
            let error = missing_kind(&object, text, language);
            return Err(body::unrecognized(&resource.kind, &error, text));
        }
        return Ok(object);
    }
    if object.is_null() {
        object = Value::Object(Map::new());
    }
    let (kind, version) = type_of(&object);
    if kind.is_empty() {
        object.set_at(&["kind"], Value::from(resource.kind.as_str()));
    }
    if version.is_empty() {
        object.set_at(&["apiVersion"], Value::from(resource.api_version()));
    }
    check_registered(request, &object)?;
    Ok(object)
}

/// What upstream says of an object without a kind.
pub(crate) fn missing_kind(object: &Value, text: &[u8], language: Language) -> String {
    let text = match language {
        Language::Json => String::from_utf8_lossy(text).into_owned(),
        Language::Yaml | Language::Protobuf => object::json::to_string(object),
    };
    format!("Object 'Kind' is missing in '{text}'")
}

/// 400 unless the object is of the resource's kind.
fn check_registered(request: &Request<'_>, object: &Value) -> Outcome<()> {
    let Some(why) = other_kind(request, object) else { return Ok(()) };
    let (kind, api_version) = type_of(object);
    let version = go::quote(api_version.rsplit_once('/').map_or(&*api_version, |(_, version)| version));
    let wanted = &request.resource.kind;
    Err(Status::bad_request(format!("{kind} in version {version} cannot be handled as a {wanted}: {why}")).into())
}

/// Why an object cannot be read as one of a built-in resource's kind; nothing if it is of that kind.
pub(crate) fn other_kind(request: &Request<'_>, object: &Value) -> Option<String> {
    let resource = &request.resource;
    let (kind, api_version) = type_of(object);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    if group == resource.group && kind == resource.kind && request.catalogue.kind(group, version, &kind).is_some() {
        return None;
    }
    let extensions = resource.group == "apiextensions.k8s.io";
    // The old version can be read still, though it is served no more.
    if extensions && group == resource.group && version == "v1beta1" && kind == resource.kind {
        return None;
    }
    Some(match kinds::find_kind(group, version, &kind).filter(|_| !extensions) {
        Some((_, other)) => {
            if let Some(definition) = other.definition()
                && let Err(error) = kinds::decode(definition, object.clone())
            {
                return Some(error);
            }
            let (from, to) = (format!("{}.{kind}", other.name), format!("core.{}", resource.kind));
            format!("converting ({from}) to ({to}): unknown conversion")
        }
        None => {
            let scheme = if extensions {
                "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55"
            } else {
                "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"
            };
            let (kind, version) = (go::quote(&kind), go::quote(&api_version));
            format!("no kind {kind} is registered for version {version} in scheme \"{scheme}\"")
        }
    })
}
