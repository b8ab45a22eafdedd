//! Bodies of subresources that have a kind of their own: `token`, `eviction`, `binding`.

use super::Request;
use crate::answer::{Failure, Outcome, Response};
use crate::request::body::{self, Language};
use crate::request::options::FieldValidation;
use object::status::Qualified;
use object::{Map, Status, Value, go, json};

/// A kind that a subresource takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnKind {
    /// The group.
    pub group: &'static str,
    /// The kind.
    pub name: &'static str,
    /// The versions that are accepted; what says none is of the first.
    pub versions: &'static [&'static str],
}

impl OwnKind {
    /// The kind for messages.
    pub fn qualified(&self) -> Qualified<'static> {
        Qualified { group: self.group, name: self.name }
    }

    fn api_version(&self) -> String {
        crate::catalogue::api_version(self.group, self.versions.first().copied().unwrap_or_default())
    }
}

/// Reads the body as an object of that kind, in its first version. What can be let pass becomes a warning.
pub(crate) fn read(request: &mut Request<'_>, wanted: OwnKind, validation: FieldValidation) -> Outcome<Value> {
    let name = wanted.name;
    let language = body::language(&request.parts.headers)?;
    let text = request.body.clone();
    let strict = validation != FieldValidation::Ignore;
    let parsed = body::parse(&text, language, strict).map_err(|e| body::unrecognized(name, &e, &text))?;
    let mut object = if parsed.value.is_null() { Value::Object(Map::new()) } else { parsed.value };
    let expected = wanted.api_version();
    for (key, value) in [("kind", name), ("apiVersion", &expected)] {
        if object.str_at(&[key]).unwrap_or_default().is_empty() && object.as_object().is_some() {
            object.set_at(&[key], Value::from(value));
        }
    }
    let text_of = |key: &str| object.str_at(&[key]).unwrap_or_default().to_owned();
    let (kind, api_version) = (text_of("kind"), text_of("apiVersion"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let cannot = |why: &str| -> Failure {
        let version = go::quote(version);
        Status::bad_request(format!("{kind} in version {version} cannot be handled as a {name}: {why}")).into()
    };
    if kind != name || group != wanted.group || !wanted.versions.contains(&version) {
        if kinds::find_kind(group, version, &kind).is_some() {
            return Err(cannot(&format!("converting ({version}.{kind}) to ({group}.{name}): unknown conversion")));
        }
        let (kind, version) = (go::quote(&kind), go::quote(&api_version));
        let scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";
        return Err(cannot(&format!("no kind {kind} is registered for version {version} in scheme \"{scheme}\"")));
    }
    let definition = kinds::definitions().of_kind(group, wanted.versions.first().copied().unwrap_or_default(), name);
    let definition = definition.ok_or_else(|| Failure::from(Status::internal(format!("{name} is not known"))))?;
    object.set_at(&["apiVersion"], expected.as_str().into());
    let decoded = match language {
        Language::Json => kinds::decode_text(definition, object, &text, parsed.repeats),
        _ => kinds::decode(definition, object),
    };
    let decoded = decoded.map_err(|e| cannot(&e))?;
    let told = decoded.issues.iter().map(ToString::to_string);
    let issues: Vec<String> = parsed.issues.into_iter().chain(told).collect();
    match validation {
        FieldValidation::Strict if !issues.is_empty() => return Err(cannot(&body::strict_error(&issues))),
        FieldValidation::Warn => issues.into_iter().for_each(|i| request.warnings.add(i)),
        _ => {}
    }
    let mut object = decoded.object;
    if object.at(&["metadata", "creationTimestamp"]).is_none() {
        object.metadata_mut().insert("creationTimestamp", Value::Null);
    }
    Ok(object)
}

/// 201 with `Success`: what answers where nothing is to be shown.
pub(crate) fn success(request: &Request<'_>) -> Response {
    super::present::finish(request.form, 201, json::to_vec(&Status::new(201, "", "").to_value()))
}
