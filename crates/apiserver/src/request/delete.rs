//! The options of a delete, from the body or the URL.

use super::Query;
use super::body;
use super::options;
use crate::answer::{Failure, Outcome};
use bytes::Bytes;
use http::HeaderMap;
use object::field::{FieldError, Path};
use object::{Status, Value, go};

/// What becomes of the objects that are owned by a deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Whether nothing is to be deleted.
    pub dry_run: bool,
    /// What becomes of dependents, where the client says so.
    pub propagation: Option<Propagation>,
    /// The uid that the object has to have.
    pub uid: Option<String>,
    /// The version that the object has to have.
    pub version: Option<String>,
    /// How many seconds the object may take to end.
    pub grace: Option<i64>,
    /// The options as they were sent, for admission.
    pub object: Value,
}

impl DeleteOptions {
    /// Reads and checks the options. A body counts instead of the parameters.
    pub fn read(headers: &HeaderMap, text: &Bytes, query: &Query) -> Outcome<Self> {
        if !text.is_empty() {
            return Self::of_object(Self::body(headers, text)?);
        }
        let options = Self::of_query(query)?;
        let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
        let policy = query.get("propagationPolicy").map(str::to_owned);
        options.checked(orphan, policy, Vec::new())
    }

    /// The options that an object holds.
    pub fn of_object(object: Value) -> Outcome<Self> {
        let mut errors = Vec::new();
        let text_at = |path: &[&str]| object.str_at(path).map(str::to_owned);
        let runs: Vec<String> = strings(object.get("dryRun"));
        let orphan = object.get("orphanDependents").and_then(Value::as_bool);
        let policy = text_at(&["propagationPolicy"]);
        let options = DeleteOptions {
            dry_run: options::dry_run(runs.iter().map(String::as_str), &mut errors),
            uid: text_at(&["preconditions", "uid"]),
            version: text_at(&["preconditions", "resourceVersion"]),
            grace: object.get("gracePeriodSeconds").and_then(Value::as_int),
            object,
            ..DeleteOptions::default()
        };
        options.checked(orphan, policy, errors)
    }

    fn checked(mut self, orphan: Option<bool>, policy: Option<String>, mut errors: Vec<FieldError>) -> Outcome<Self> {
        let path = Path::ROOT.child("propagationPolicy");
        if let (Some(_), Some(policy)) = (orphan, &policy) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, policy, why));
        }
        self.propagation = match policy.as_deref() {
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &supported));
                None
            }
        };
        options::refuse("DeleteOptions", &errors)?;
        Ok(self)
    }

    fn of_query(query: &Query) -> Outcome<Self> {
        let mut errors = Vec::new();
        let dry_run = options::dry_run(query.all("dryRun"), &mut errors);
        options::refuse("DeleteOptions", &errors)?;
        let grace = query.get("gracePeriodSeconds").and_then(|g| g.parse().ok());
        let mut object = object::map! { "kind" => "DeleteOptions", "apiVersion" => "meta.k8s.io/v1" };
        if dry_run {
            object.insert("dryRun", vec!["All"]);
        }
        if let Some(grace) = grace {
            object.insert("gracePeriodSeconds", Value::Int(grace));
        }
        if let Some(policy) = query.get("propagationPolicy") {
            object.insert("propagationPolicy", policy);
        }
        Ok(DeleteOptions { dry_run, grace, object: Value::Object(object), ..DeleteOptions::default() })
    }

    fn body(headers: &HeaderMap, text: &Bytes) -> Outcome<Value> {
        let language = body::language(headers)?;
        let unknown = |why: String| Failure::from(Status::unknown(why));
        let object = body::parse(text, language, false).map_err(unknown)?.value;
        let kind = object.str_at(&["kind"]).unwrap_or_default();
        if !matches!(kind, "" | "DeleteOptions") {
            let version = object.str_at(&["apiVersion"]).unwrap_or_default();
            return Err(unknown(format!(
                "no kind {} is registered for version {} in scheme \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"",
                object::go::quote(kind),
                object::go::quote(version)
            )));
        }
        if let Some(error) = wrong_type(&object) {
            return Err(unknown(error));
        }
        Ok(object)
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The first field of a type that it cannot have, in Go's words.
fn wrong_type(object: &Value) -> Option<String> {
    const FIELDS: [(&[&str], &str, &str, &str); 7] = [
        (&["dryRun"], "array", "DeleteOptions.dryRun", "[]string"),
        (&["gracePeriodSeconds"], "integer", "DeleteOptions.gracePeriodSeconds", "int64"),
        (&["orphanDependents"], "boolean", "DeleteOptions.orphanDependents", "bool"),
        (&["preconditions"], "object", "DeleteOptions.preconditions", "v1.Preconditions"),
        (&["preconditions", "resourceVersion"], "string", "Preconditions.preconditions.resourceVersion", "string"),
        (&["preconditions", "uid"], "string", "Preconditions.preconditions.uid", "types.UID"),
        (&["propagationPolicy"], "string", "DeleteOptions.propagationPolicy", "v1.DeletionPropagation"),
    ];
    FIELDS.iter().find_map(|(path, wanted, field, ty)| {
        let value = object.at(path).filter(|v| !v.is_null() && v.type_name() != *wanted)?;
        let word = go::json_kind(value);
        Some(format!("json: cannot unmarshal {word} into Go struct field {field} of type {ty}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &'static str, query: &str) -> Result<DeleteOptions, String> {
        let options =
            DeleteOptions::read(&HeaderMap::new(), &Bytes::from_static(body.as_bytes()), &Query::parse(Some(query)));
        options.map_err(|e| match e {
            Failure::Status(status) => status.message,
            _ => String::new(),
        })
    }

    #[test]
    fn options_come_from_the_body_or_the_url() {
        assert_eq!(read("", "propagationPolicy=Orphan").unwrap().propagation, Some(Propagation::Orphan));
        assert_eq!(read("", "orphanDependents=false").unwrap().propagation, Some(Propagation::Background));
        assert!(read("", "dryRun=All").unwrap().dry_run);
        let options = read(r#"{"preconditions":{"uid":"u"},"dryRun":["All"]}"#, "").unwrap();
        assert_eq!((options.uid.as_deref(), options.dry_run), (Some("u"), true));
    }

    #[test]
    fn bad_options_are_told() {
        for (body, query, text) in [
            ("{", "", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            (
                r#"{"gracePeriodSeconds":"x"}"#,
                "",
                "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            ),
            (
                "",
                "propagationPolicy=Nope",
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Nope\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            ),
        ] {
            assert_eq!(read(body, query).map(|_| ()), Err(text.to_owned()));
        }
    }
}
