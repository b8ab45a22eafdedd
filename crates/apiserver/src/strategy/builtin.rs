//! Built-in kinds, over the catalogue of the crate `kinds`.

use super::{Checked, Column, Part, ScalePaths, Strategy, Writer};
use crate::admission::WrittenExpressions;
use crate::auth::{UserInfo, check_certificates, check_request, request_der};
use crate::ownership::Kind;
use crate::request::body::Text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use object::Value;
use object::field::{FieldError, Path};
use std::borrow::Cow;

/// Names the form in which this program stores built-in kinds; it changes when their decoding or defaults do.
const FINGERPRINT: u64 = 1;

/// A built-in kind in one version.
#[derive(Debug)]
pub struct Builtin {
    resource: &'static kinds::Resource,
    version: &'static kinds::Version,
    ownership: Kind,
}

impl Builtin {
    /// The strategy of a resource of the catalogue in one of its versions.
    pub fn new(resource: &'static kinds::Resource, version: &'static kinds::Version) -> Self {
        Builtin { resource, version, ownership: Kind::builtin(resource, version) }
    }

    /// The catalogue's entry.
    pub fn resource(&self) -> &'static kinds::Resource {
        self.resource
    }

    /// Decodes the value of a text, see [`kinds::decode_text`]. Gives what strict reading does not let pass.
    pub(super) fn decode_text(&self, object: &mut Value, text: Text<'_>) -> Result<Vec<String>, String> {
        let Some(definition) = self.version.definition() else { return Ok(Vec::new()) };
        let decoded = kinds::decode_text(definition, std::mem::take(object), text.json, text.repeats)?;
        *object = decoded.object;
        Ok(decoded.issues.iter().map(ToString::to_string).collect())
    }

    /// Checks that an object can be converted to the kind's type, see [`kinds::conform`].
    pub(super) fn conform(&self, object: &mut Value) -> Result<Vec<String>, String> {
        self.version.definition().map_or(Ok(Vec::new()), |definition| kinds::conform(definition, object))
    }

    /// Sets the defaults of a decoded object, and brings it into the stored version; the error is Go's text.
    fn complete_decoded(&self, mut object: Value) -> Result<Value, String> {
        (self.version.default)(&mut object);
        (self.version.readable)(&object)?;
        if let Some(conversion) = &self.version.convert {
            (conversion.to_stored)(&mut object);
        }
        Ok(object)
    }

    /// What a certificate is asked by goes before other errors, and the certificate after them. (The crate `kinds` does
    /// not know X.509.)
    fn add_certificate_errors(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        if self.resource.plural == "certificatesigningrequests" {
            errors.splice(..0, request_error(object));
            errors.extend(old.and_then(|old| certificate_error(object, old)));
        }
    }
}

impl Strategy for Builtin {
    fn receive(&self, object: &mut Value, _track: bool) -> Result<Vec<String>, String> {
        let Some(definition) = self.version.definition() else { return Ok(Vec::new()) };
        let decoded = kinds::decode(definition, std::mem::take(object))?;
        let unknown = decoded.unknown().map(str::to_owned).collect();
        *object = self.complete_decoded(decoded.object)?;
        Ok(unknown)
    }

    fn receive_text(&self, object: &mut Value, text: Text<'_>, _track: bool) -> Result<Vec<String>, String> {
        let issues = self.decode_text(object, text)?;
        *object = self.complete_decoded(std::mem::take(object))?;
        Ok(issues)
    }

    fn receive_unstructured(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let issues = self.conform(object)?;
        self.receive(object, false)?;
        Ok(issues)
    }

    fn present(&self, object: &mut Value) {
        if let Some(conversion) = &self.version.convert {
            (conversion.from_stored)(object);
        }
    }

    fn presents(&self) -> bool {
        self.version.convert.is_some()
    }

    fn load(&self, _object: &mut Value) {}

    fn save(&self, object: &mut Value) -> u64 {
        self.resource.finish(object);
        FINGERPRINT
    }

    fn fingerprint(&self) -> u64 {
        // Another version's objects have to be converted: they have no stored form of their own.
        if self.version.convert.is_some() { 0 } else { FINGERPRINT }
    }

    fn warnings_before(&self, object: &Value) -> Vec<String> {
        (self.resource.strategy.warnings_before)(object)
    }

    fn prepare_create(&self, object: &mut Value, writer: Writer<'_>) {
        let user = user(writer.user);
        self.resource.prepare_create(object, &kinds::Context { now: writer.now, user: Some(&user) });
    }

    fn prepare_update(&self, object: &mut Value, old: &Value, part: Part, writer: Writer<'_>) {
        let user = user(writer.user);
        let context = kinds::Context { now: writer.now, user: Some(&user) };
        match part {
            Part::Main | Part::Scale => self.resource.prepare_update(object, old, &context),
            Part::Status => self.resource.prepare_status(object, old, &context),
            Part::Finalize => kinds::finalize::prepare(object, old),
            Part::Other("ephemeralcontainers") => kinds::ephemeral::prepare(object, old),
            Part::Other("resize") => kinds::resize::prepare(object, old),
            Part::Other("approval") => kinds::approval::prepare(object, old, &context),
            Part::Other(_) => self.resource.prepare_status(object, old, &context),
        }
    }

    fn validate(&self, object: &Value) -> Checked {
        let hints = (self.resource.strategy.warnings)(object, None);
        let mut errors = self.resource.validate_with(object, &mut WrittenExpressions::default());
        self.add_certificate_errors(object, None, &mut errors);
        Checked { errors, hints, ..Checked::default() }
    }

    fn validate_update(&self, object: &Value, old: &Value, part: Part) -> Checked {
        let mut errors = match part {
            Part::Main | Part::Scale => {
                self.resource.validate_update_with(object, old, &mut WrittenExpressions::default())
            }
            Part::Other("ephemeralcontainers") => kinds::ephemeral::validate(object, old),
            Part::Other("resize") => kinds::resize::validate(object, old),
            Part::Other("approval") => kinds::approval::validate(object, old),
            Part::Finalize => kinds::finalize::validate(object, old),
            Part::Status | Part::Other(_) => self.resource.validate_status(object, old),
        };
        self.add_certificate_errors(object, Some(old), &mut errors);
        let hints = match part {
            // Upstream changes a scale through the object itself.
            Part::Main | Part::Scale => (self.resource.strategy.warnings)(object, Some(old)),
            Part::Status => (self.resource.strategy.status_warnings)(object),
            Part::Finalize | Part::Other(_) => Vec::new(),
        };
        Checked { errors, hints, ..Checked::default() }
    }

    fn knows_field(&self, field: &str) -> Result<(), String> {
        if self.resource.selectable.iter().any(|f| f.name == field) {
            return Ok(());
        }
        if self.resource.selectable.is_empty() {
            if field == "metadata.namespace" {
                return Ok(());
            }
            let field = object::go::quote(field);
            return Err(format!(
                "{field} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ));
        }
        Err(match (self.resource.group, self.resource.plural) {
            ("batch", "jobs") => {
                let field = object::go::quote(field);
                format!("field label {field} not supported for batchv1.Job")
            }
            _ => format!("field label not supported: {field}"),
        })
    }

    fn field<'o>(&self, object: &'o Value, field: &str) -> Cow<'o, str> {
        let known = self.resource.selectable.iter().find(|f| f.name == field);
        Cow::Owned(known.map(|f| (f.value)(object)).unwrap_or_default())
    }

    fn columns(&self) -> Vec<Column> {
        let described = self.resource.columns.iter().zip(self.resource.column_descriptions());
        described
            .map(|(c, description)| Column {
                name: c.name.to_owned(),
                ty: c.ty.to_owned(),
                format: c.format.to_owned(),
                description: description.into_owned(),
                priority: i64::from(c.priority),
            })
            .collect()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.resource.cells)(object, now)
    }

    fn ended(&self, object: &Value) -> Option<kinds::Ended> {
        (self.resource.ended)(object)
    }

    fn rank(&self, object: &Value) -> i64 {
        (self.resource.rank)(object)
    }

    fn ownership(&self) -> &Kind {
        &self.ownership
    }

    fn creates_on_update(&self) -> bool {
        self.resource.strategy.create_on_update
    }

    fn allows_unconditional_update(&self) -> bool {
        self.resource.strategy.unconditional_update
    }

    fn orphans_by_default(&self) -> bool {
        self.resource.strategy.propagation == kinds::Propagation::Orphan
    }

    fn has_dependents(&self) -> bool {
        self.resource.strategy.propagation != kinds::Propagation::Unsupported
    }

    fn grace(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        if !self.resource.strategy.graceful {
            return None;
        }
        // What no node runs, or what has ended, need not be stopped.
        let placed = object.str_at(&["spec", "nodeName"]).is_some_and(|n| !n.is_empty());
        let ended = matches!(object.str_at(&["status", "phase"]), Some("Failed" | "Succeeded"));
        if !placed || ended {
            return Some(0);
        }
        let own = object.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_int);
        Some(at_least_one(asked.or(own).unwrap_or(0)))
    }

    fn returns_deleted(&self) -> bool {
        self.resource.strategy.returns_deleted
    }

    fn holds(&self, object: &Value) -> bool {
        // Namespaces have finalizers of their own in their spec.
        self.resource.kind == "Namespace"
            && object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty())
    }

    fn expires(&self) -> u64 {
        self.resource.storage.map_or(0, |s| s.expires)
    }

    fn scale(&self) -> Option<ScalePaths> {
        self.resource.subresource("scale")?;
        let path = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        Some(ScalePaths {
            spec: path(["spec", "replicas"]),
            status: path(["status", "replicas"]),
            selector: Some(path(["spec", "selector"])),
        })
    }
}

/// A negative period is the shortest.
pub(crate) fn at_least_one(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

/// What is wrong with the content of a request for a certificate. (What is no request at all is found with the rest.)
fn request_error(object: &Value) -> Option<FieldError> {
    let pem = STANDARD.decode(object.str_at(&["spec", "request"])?).ok()?;
    let why = check_request(&request_der(&pem).ok()?).err()?;
    let spec = Path::ROOT.child("spec");
    Some(kinds::approval::unfit_request(&pem, &spec.child("request"), why))
}

/// What is wrong with a certificate that an update brings. (What was there before may be anything.)
fn certificate_error(object: &Value, old: &Value) -> Option<FieldError> {
    let text = |object: &Value| object.str_at(&["status", "certificate"]).unwrap_or_default().to_owned();
    let (new, old) = (text(object), text(old));
    if new == old {
        return None;
    }
    let check = |text: &str| check_certificates(&STANDARD.decode(text).unwrap_or_default());
    let why = check(&new).err()?;
    check(&old).ok()?;
    let status = Path::ROOT.child("status");
    Some(FieldError::invalid(&status.child("certificate"), "<certificate data>", why))
}

fn user(user: &UserInfo) -> kinds::User {
    kinds::User {
        name: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
    }
}
