//! The `Status` that answers a request.

use crate::field::{FieldError, aggregate};
use crate::{Map, Value, map};

/// A resource or kind with its group: prints as `plural.group`, or `plural` alone in the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualified<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The plural of a resource, or the kind.
    pub name: &'a str,
}

impl std::fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() { f.write_str(self.name) } else { write!(f, "{}.{}", self.name, self.group) }
    }
}

/// One of the causes of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// A machine-readable reason, for example `FieldValueInvalid`.
    pub reason: String,
    /// A description for people.
    pub message: String,
    /// The field, if there is one.
    pub field: String,
}

/// What a failure is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The group of the resource.
    pub group: String,
    /// The resource (plural) or the kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// The causes.
    pub causes: Vec<Cause>,
    /// When a client may try again, in seconds; 0 says nothing.
    pub retry_after_seconds: i64,
}

/// The answer to a request that failed (or, for some deletions, succeeded).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason; empty where upstream gives none.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Details>,
}

impl Status {
    /// A failure with only a code, a reason and a message.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Status { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, resource: Qualified<'_>, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.name = name.to_owned();
        details.group = resource.group.to_owned();
        details.kind = resource.name.to_owned();
        self
    }

    /// Adds a cause.
    pub fn with_cause(mut self, reason: &str, field: &str, message: impl Into<String>) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// Says when to try again.
    pub fn retry_after(mut self, seconds: i64) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// 404 `foos.example.com "a" not found`
    pub fn not_found(resource: Qualified<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {} not found", crate::go::quote(name))).about(resource, name)
    }

    /// 409 `foos.example.com "a" already exists`
    pub fn already_exists(resource: Qualified<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {} already exists", crate::go::quote(name)))
            .about(resource, name)
    }

    /// 409 `Operation cannot be fulfilled on foos.example.com "a": WHY`
    pub fn conflict(resource: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", crate::go::quote(name));
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The conflict of an update made from an old version.
    pub fn modified(resource: Qualified<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 422 `Foo.example.com "a" is invalid: ERRORS`, one cause for each error.
    pub fn invalid(kind: Qualified<'_>, name: &str, errors: &[FieldError]) -> Self {
        let message = match errors {
            [] => format!("{kind} {} is invalid", crate::go::quote(name)),
            _ => format!("{kind} {} is invalid: {}", crate::go::quote(name), aggregate(errors)),
        };
        let status = Self::new(422, "Invalid", message).about(kind, name);
        errors.iter().fold(status, |s, e| s.with_cause(e.kind.reason(), &e.field, e.body()))
    }

    /// 400 with the text as it stands.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401 `Unauthorized`
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 `foos.example.com "a" is forbidden: WHY`; without a name `foos.example.com is forbidden: WHY`, without a
    /// resource `forbidden: WHY`.
    pub fn forbidden(resource: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = match (resource.name, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} {} is forbidden: {why}", crate::go::quote(name)),
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 405 `VERB is not supported on resources of kind "foos.example.com"`
    pub fn method_not_supported(resource: Qualified<'_>, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {}", crate::go::quote(&resource.to_string()));
        Self::new(405, "MethodNotAllowed", message).about(resource, "")
    }

    /// 500 `Internal error occurred: WHY`
    pub fn internal(why: impl std::fmt::Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).with_cause("", "", why.to_string())
    }

    /// 500 without a reason: what upstream makes of an error that is no `Status`.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 410 `Expired`: what was asked for is compacted away.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413 `Request entity too large: WHY`
    pub fn too_large(why: impl std::fmt::Display) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    /// 504 `Timeout: WHY`, try again after a second.
    pub fn timeout(why: impl std::fmt::Display) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {why}")).retry_after(1)
    }

    /// The object that goes over the wire. The `status` is `Success` below 400.
    pub fn to_value(&self) -> Value {
        let mut out = map! {
            "apiVersion" => "v1", "kind" => "Status", "metadata" => Map::new(),
            "status" => if self.code < 400 { "Success" } else { "Failure" },
        };
        if !self.message.is_empty() {
            out.insert("message", self.message.as_str());
        }
        if !self.reason.is_empty() {
            out.insert("reason", self.reason);
        }
        if let Some(details) = &self.details {
            out.insert("details", details.to_value());
        }
        out.insert("code", i64::from(self.code));
        Value::Object(out)
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                out.insert(key, text.as_str());
            }
        }
        if !self.causes.is_empty() {
            out.insert("causes", Value::Array(self.causes.iter().map(Cause::to_value).collect()));
        }
        if self.retry_after_seconds != 0 {
            out.insert("retryAfterSeconds", self.retry_after_seconds);
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        for (key, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                out.insert(key, text.as_str());
            }
        }
        Value::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Path;

    const FOOS: Qualified<'static> = Qualified { group: "example.com", name: "foos" };

    #[test]
    fn messages_are_upstreams() {
        for (status, code, message) in [
            (Status::not_found(FOOS, "a"), 404, "foos.example.com \"a\" not found"),
            (Status::not_found(Qualified { group: "", name: "pods" }, "a"), 404, "pods \"a\" not found"),
            (Status::already_exists(FOOS, "a"), 409, "foos.example.com \"a\" already exists"),
            (Status::forbidden(FOOS, "", "no"), 403, "foos.example.com is forbidden: no"),
            (
                Status::method_not_supported(FOOS, "create"),
                405,
                "create is not supported on resources of kind \"foos.example.com\"",
            ),
            (Status::internal("x"), 500, "Internal error occurred: x"),
        ] {
            assert_eq!((status.code, status.message.as_str()), (code, message));
        }
    }

    #[test]
    fn an_invalid_object_gives_one_cause_for_each_error() {
        let errors =
            [FieldError::required(&Path::ROOT.child("a"), ""), FieldError::forbidden(&Path::ROOT.child("b"), "no")];
        let status = Status::invalid(Qualified { group: "example.com", name: "Foo" }, "x", &errors);
        assert_eq!(status.message, "Foo.example.com \"x\" is invalid: [a: Required value, b: Forbidden: no]");
        let value = status.to_value();
        assert_eq!(value.at(&["details", "causes"]).and_then(Value::as_array).map(<[_]>::len), Some(2));
        assert_eq!(value.str_at(&["status"]), Some("Failure"));
    }
}
