//! Why a request failed.

use object::Status;
use object::status::{Cause, Details};
use object::{Value, json};

/// What most calls give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The server refused it.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// There is no answer, or it broke off.
    #[error("{0}")]
    Transport(String),
    /// The answer, or an object that is to be sent, is not what it should be.
    #[error("{0}")]
    Content(String),
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Error::Status(Box::new(status))
    }
}

impl Error {
    /// What the server said, if it said something.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Status(status) => Some(status),
            _ => None,
        }
    }

    /// The reason of the server's `Status`; empty where there is none.
    pub fn reason(&self) -> &'static str {
        self.status().map_or("", |s| s.reason)
    }

    /// The HTTP code; 0 without an answer.
    pub fn code(&self) -> u16 {
        self.status().map_or(0, |s| s.code)
    }

    /// The object, or the resource, is not there.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// The server does not serve the resource, rather than having no object of that name: it answers without a `Status`, or
    /// with one that is about no object.
    pub fn is_unserved(&self) -> bool {
        let is_about_object = |status: &Status| status.details.as_ref().is_some_and(|details| !details.name.is_empty());
        self.code() == 404 && !self.status().is_some_and(is_about_object)
    }

    /// There is an object of that name.
    pub fn is_already_exists(&self) -> bool {
        self.reason() == "AlreadyExists"
    }

    /// Somebody else wrote the object meanwhile, or a precondition does not hold, or fields are owned by others.
    pub fn is_conflict(&self) -> bool {
        self.reason() == "Conflict"
    }

    /// The object is not valid.
    pub fn is_invalid(&self) -> bool {
        self.reason() == "Invalid"
    }

    /// The request is not allowed.
    pub fn is_forbidden(&self) -> bool {
        self.code() == 403
    }

    /// The version asked for is compacted away.
    pub fn is_expired(&self) -> bool {
        self.code() == 410
    }

    /// There is no such method.
    pub fn is_method_not_supported(&self) -> bool {
        self.code() == 405
    }

    /// The server asks for another try later.
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == 429
    }

    /// Whether the status names this cause.
    pub fn has_cause(&self, reason: &str) -> bool {
        let details = self.status().and_then(|s| s.details.as_ref());
        details.is_some_and(|d| d.causes.iter().any(|c| c.reason == reason))
    }

    /// The namespace is going away: nothing new comes into it.
    pub fn is_namespace_terminating(&self) -> bool {
        self.is_forbidden() && self.has_cause("NamespaceTerminating")
    }
}

/// The reasons that API servers give.
const REASONS: [&str; 19] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];

/// The status in a body that came with this code. What is no `Status` is told as it stands.
pub(crate) fn status_of_body(code: u16, body: &[u8]) -> Status {
    match json::parse(body) {
        Ok(value) if value.str_at(&["kind"]) == Some("Status") => status_of_value(code, &value),
        _ => Status::new(code, "", String::from_utf8_lossy(body).trim().to_owned()),
    }
}

/// The status that an object of kind `Status` holds; `code` where it names none.
pub(crate) fn status_of_value(code: u16, value: &Value) -> Status {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let reason = value.str_at(&["reason"]).unwrap_or_default();
    let given = value.get("code").and_then(Value::as_int).and_then(|c| u16::try_from(c).ok());
    let details = value.get("details").filter(|d| !d.is_null()).map(|details| {
        let causes = details.get("causes").and_then(Value::as_array).unwrap_or_default();
        let cause =
            |c: &Value| Cause { reason: text(c, "reason"), message: text(c, "message"), field: text(c, "field") };
        Details {
            name: text(details, "name"),
            group: text(details, "group"),
            kind: text(details, "kind"),
            uid: text(details, "uid"),
            causes: causes.iter().map(cause).collect(),
            retry_after_seconds: details.get("retryAfterSeconds").and_then(Value::as_int).unwrap_or(0),
        }
    });
    Status {
        code: given.filter(|c| *c != 0).unwrap_or(code),
        reason: REASONS.into_iter().find(|r| *r == reason).unwrap_or_default(),
        message: text(value, "message"),
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_back_as_it_was_written() {
        let resource = object::status::Qualified { group: "", name: "pods" };
        let status = Status::forbidden(resource, "a", "no").with_cause("NamespaceTerminating", "f", "m").retry_after(2);
        let read = status_of_body(403, &json::to_vec(&status.to_value()));
        assert_eq!(read, status);
        assert!(Error::from(read).is_namespace_terminating());
    }

    #[test]
    fn other_bodies_are_told_as_they_stand() {
        let status = status_of_body(404, b"404 page not found\n");
        assert_eq!((status.code, status.message.as_str()), (404, "404 page not found"));
        assert!(Error::from(status).is_not_found());
    }
}
