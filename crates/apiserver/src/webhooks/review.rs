//! Reviews: the objects that go to webhooks and come back. What comes back is decoded as Go's decoders do it, with
//! their errors, since a webhook's author has to understand them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::{Map, Value, go, json, yaml};

/// A kind of reviews in one version.
#[derive(Debug)]
pub(crate) struct Review {
    /// The group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    fields: &'static [Field],
}

type Field = (&'static str, Type);

#[derive(Debug)]
enum Type {
    Text,
    Bool,
    Int32,
    Int64,
    /// Base64.
    Bytes,
    /// Anything.
    Raw,
    Texts,
    TextMap,
    /// A list of anything.
    Raws,
    Struct(&'static str, &'static [Field]),
    Structs(&'static str, &'static [Field]),
}

const LIST_META: &[Field] = &[
    ("selfLink", Type::Text),
    ("resourceVersion", Type::Text),
    ("continue", Type::Text),
    ("remainingItemCount", Type::Int64),
];
const CAUSE: &[Field] = &[("reason", Type::Text), ("message", Type::Text), ("field", Type::Text)];
const DETAILS: &[Field] = &[
    ("name", Type::Text),
    ("group", Type::Text),
    ("kind", Type::Text),
    ("uid", Type::Text),
    ("causes", Type::Structs("StatusCause", CAUSE)),
    ("retryAfterSeconds", Type::Int32),
];
const STATUS: &[Field] = &[
    ("kind", Type::Text),
    ("apiVersion", Type::Text),
    ("metadata", Type::Struct("ListMeta", LIST_META)),
    ("status", Type::Text),
    ("message", Type::Text),
    ("reason", Type::Text),
    ("details", Type::Struct("StatusDetails", DETAILS)),
    ("code", Type::Int32),
];
const ADMISSION_RESPONSE: &[Field] = &[
    ("uid", Type::Text),
    ("allowed", Type::Bool),
    ("status", Type::Struct("Status", STATUS)),
    ("patch", Type::Bytes),
    ("patchType", Type::Text),
    ("auditAnnotations", Type::TextMap),
    ("warnings", Type::Texts),
];
const CONVERSION_RESPONSE: &[Field] =
    &[("uid", Type::Text), ("convertedObjects", Type::Raws), ("result", Type::Struct("Status", STATUS))];
const ADMISSION: &[Field] =
    &[("request", Type::Raw), ("response", Type::Struct("AdmissionResponse", ADMISSION_RESPONSE))];
const CONVERSION: &[Field] =
    &[("request", Type::Raw), ("response", Type::Struct("ConversionResponse", CONVERSION_RESPONSE))];

/// What the scheme of upstream's client knows beside reviews: kinds of every group, and kinds of no group.
const OF_EVERY_GROUP: [&str; 7] =
    ["WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"];
const OF_NO_GROUP: [&str; 5] = ["Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"];
const DEFINITIONS: [&str; 2] = ["CustomResourceDefinition", "CustomResourceDefinitionList"];
const SCHEME: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:71";

impl Review {
    /// `AdmissionReview` of `admission.k8s.io/v1`.
    pub const ADMISSION_V1: Review =
        Review { group: "admission.k8s.io", version: "v1", kind: "AdmissionReview", fields: ADMISSION };
    /// `AdmissionReview` of `admission.k8s.io/v1beta1`.
    pub const ADMISSION_V1BETA1: Review =
        Review { group: "admission.k8s.io", version: "v1beta1", kind: "AdmissionReview", fields: ADMISSION };
    /// `ConversionReview` of `apiextensions.k8s.io/v1`.
    pub const CONVERSION_V1: Review =
        Review { group: "apiextensions.k8s.io", version: "v1", kind: "ConversionReview", fields: CONVERSION };
    /// `ConversionReview` of `apiextensions.k8s.io/v1beta1`.
    pub const CONVERSION_V1BETA1: Review =
        Review { group: "apiextensions.k8s.io", version: "v1beta1", kind: "ConversionReview", fields: CONVERSION };

    /// `GROUP/VERSION`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// An error unless a decoded review is of this kind.
    pub fn check_kind(&self, review: &Value) -> Result<(), String> {
        let text = |key: &str| review.str_at(&[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version == self.api_version() && kind == self.kind {
            return Ok(());
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Err(format!(
            "expected webhook response of {}/{}, Kind={}, got {group}/{version}, Kind={kind}",
            self.group, self.version, self.kind
        ))
    }

    fn knows(&self, group: &str, version: &str, kind: &str) -> bool {
        let of_group = group == self.group && matches!(version, "v1" | "v1beta1");
        let own = kind == self.kind
            || OF_EVERY_GROUP.contains(&kind)
            || self.group == "apiextensions.k8s.io" && DEFINITIONS.contains(&kind);
        of_group && own || group.is_empty() && version == "v1" && OF_EVERY_GROUP.contains(&kind)
    }
}

/// Decodes what a webhook sent: JSON or YAML, a review of this kind; what the type knows not is dropped.
pub(crate) fn decode(body: &[u8], review: &'static Review) -> Result<Value, String> {
    let value = parse(body)?;
    let (api_version, kind) = type_of(&value)?;
    let (mut group, mut version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let kind = if kind.is_empty() { review.kind } else { &kind };
    if version.is_empty() && (group.is_empty() || group == review.group) {
        (group, version) = (review.group, review.version);
    }
    if (group, version, kind) != (review.group, review.version, review.kind) {
        // Kinds of no group are known in all versions.
        if !OF_NO_GROUP.contains(&kind) && !review.knows(group, version, kind) {
            let (kind, api_version) = (go::quote(kind), go::quote(&crate::catalogue::api_version(group, version)));
            return Err(format!(
                "no kind {kind} is registered for version {api_version} in scheme {}",
                go::quote(SCHEME)
            ));
        }
        let version = if OF_NO_GROUP.contains(&kind) { "v1" } else { version };
        let wanted = format!("{}.{}", review.version, review.kind);
        return Err(format!("converting ({version}.{kind}) to ({wanted}): unknown conversion"));
    }
    let mut value = value;
    Decoder::default().fields(review.kind, review.fields, &mut value)?;
    Ok(value)
}

fn parse(body: &[u8]) -> Result<Value, String> {
    if body.trim_ascii_start().starts_with(b"{") {
        return json::parse(body).map_err(|e| format!("couldn't get version/kind; json parse error: {e}"));
    }
    yaml::parse(body)
}

/// `apiVersion` and `kind` of an object.
fn type_of(value: &Value) -> Result<(String, String), String> {
    let failed = |why: String| format!("couldn't get version/kind; json parse error: json: cannot unmarshal {why}");
    let Value::Object(members) = value else {
        if value.is_null() {
            return Ok(Default::default());
        }
        const TYPE: &str =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        return Err(failed(format!("{} into Go value of type {TYPE}", go::json_kind(value))));
    };
    let text = |key: &str| match members.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(other) => Err(failed(format!("{} into Go struct field .{key} of type string", go::json_kind(other)))),
    };
    let api_version = text("apiVersion")?;
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    Ok((api_version, text("kind")?))
}

/// The message of a `Status` that tells of a failure, if the body is one.
pub(crate) fn failure_message(body: &[u8]) -> Option<String> {
    let value = parse(body).ok()?;
    let (api_version, kind) = type_of(&value).ok()?;
    let is_status = matches!(kind.as_str(), "" | "Status") && matches!(api_version.as_str(), "" | "v1");
    if !is_status || value.str_at(&["status"]) != Some("Failure") {
        return None;
    }
    Some(value.str_at(&["message"]).unwrap_or_default().to_owned())
}

/// Checks the fields of structures; the first mismatch is told, as Go does.
#[derive(Default)]
struct Decoder {
    path: Vec<&'static str>,
}

impl Decoder {
    fn fields(&mut self, name: &'static str, fields: &'static [Field], value: &mut Value) -> Result<(), String> {
        let Value::Object(members) = value else { return Ok(()) };
        members.retain(|key, value| {
            let known = fields.iter().any(|(field, _)| *field == key) || matches!(key, "apiVersion" | "kind");
            known && !value.is_null()
        });
        for (field, ty) in fields {
            let Some(value) = members.get_mut(field) else { continue };
            self.path.push(field);
            self.field(name, ty, value)?;
            self.path.pop();
        }
        Ok(())
    }

    fn field(&mut self, structure: &str, ty: &'static Type, value: &mut Value) -> Result<(), String> {
        let path = self.path.join(".");
        let wrong = |value: &Value, ty: &str| {
            let kind = match value {
                Value::Float(_) if ty.starts_with("int") => format!("number {}", json::to_string(value)),
                other => go::json_kind(other).to_owned(),
            };
            Err(format!("json: cannot unmarshal {kind} into Go struct field {structure}.{path} of type {ty}"))
        };
        match (ty, &mut *value) {
            (Type::Raw, _)
            | (Type::Raws, Value::Array(_))
            | (Type::Text, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Int64, Value::Int(_)) => Ok(()),
            (Type::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => Ok(()),
            (Type::Bytes, Value::String(text)) => match STANDARD.decode(text.as_bytes()) {
                Ok(_) => Ok(()),
                Err(error) => Err(base64_error(text, &error)),
            },
            (Type::Texts, Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::String(_) => {}
                        Value::Null => *item = "".into(),
                        other => return wrong(other, "string"),
                    }
                }
                Ok(())
            }
            (Type::TextMap, Value::Object(members)) => {
                match members.values().find(|v| !matches!(v, Value::String(_) | Value::Null)) {
                    Some(other) => wrong(other, "string"),
                    None => Ok(()),
                }
            }
            (Type::Struct(name, fields), Value::Object(_)) => self.fields(name, fields, value),
            (Type::Structs(name, fields), Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::Object(_) => self.fields(name, fields, item)?,
                        Value::Null => *item = Value::Object(Map::new()),
                        other => return wrong(other, &format!("v1.{name}")),
                    }
                }
                Ok(())
            }
            (ty, value) => wrong(value, &go_type(ty)),
        }
    }
}

fn go_type(ty: &Type) -> String {
    let name = match ty {
        Type::Text => "string",
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Bytes => "[]uint8",
        Type::Raw => "runtime.RawExtension",
        Type::Raws => "[]runtime.RawExtension",
        Type::Texts => "[]string",
        Type::TextMap => "map[string]string",
        Type::Struct(name, _) => return format!("v1.{name}"),
        Type::Structs(name, _) => return format!("[]v1.{name}"),
    };
    name.to_owned()
}

/// Go tells where base64 ends to be that: where the group of four starts that is not whole.
fn base64_error(text: &str, error: &base64::DecodeError) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidPadding if text.ends_with('=') => text.len(),
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_review_is_told_as_go_does() {
        for (body, expected) in [
            (
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v9"}"#,
                r#"no kind "AdmissionReview" is registered for version "admission.k8s.io/v9" in scheme "k8s.io/apiserver/pkg/util/webhook/client.go:71""#,
            ),
            (
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}"#,
                "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            ),
            (
                r#"{"kind":"Status","apiVersion":"admission.k8s.io/v1"}"#,
                "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
            ),
            (
                r#"{"response":{"allowed":"x"}}"#,
                "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (
                r#"{"response":{"status":{"code":"x"}}}"#,
                "json: cannot unmarshal string into Go struct field Status.response.status.code of type int32",
            ),
            (
                r#"{"response":{"status":"x"}}"#,
                "json: cannot unmarshal string into Go struct field AdmissionResponse.response.status of type v1.Status",
            ),
            (r#"{"response":{"patch":"!"}}"#, "illegal base64 data at input byte 0"),
        ] {
            assert_eq!(decode(body.as_bytes(), &Review::ADMISSION_V1).unwrap_err(), expected);
        }
    }

    #[test]
    fn reviews_are_read_from_json_and_yaml() {
        for body in [r#"{"response":{"allowed":true,"Uid":"x","more":1}}"#, "response: {allowed: true}\n"] {
            let review = decode(body.as_bytes(), &Review::ADMISSION_V1).unwrap();
            assert_eq!(json::to_string(&review), r#"{"response":{"allowed":true}}"#);
        }
    }

    #[test]
    fn only_failures_have_a_message() {
        assert_eq!(failure_message(br#"{"status":"Failure","message":"m"}"#).as_deref(), Some("m"));
        assert_eq!(failure_message(br#"{"status":"Success","message":"m"}"#), None);
        assert_eq!(failure_message(b"oops"), None);
    }
}
