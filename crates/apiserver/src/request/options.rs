//! The options of writes, lists and watches, and what is wrong with them.

use super::Query;
use crate::answer::{Failure, Outcome};
use object::field::{FieldError, Path, Shown};
use object::selector::{Fields, Labels};
use object::status::Qualified;
use object::{Status, go, metadata};

/// What happens when a client sends fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Nothing.
    Ignore,
    /// The client is warned.
    Warn,
    /// The request fails.
    Strict,
}

/// The options of a write.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// Who writes, for field ownership; empty when the client does not say.
    pub field_manager: String,
    /// What is done about unknown fields.
    pub validation: FieldValidation,
    /// The same as the client gave it; often empty.
    pub given_validation: String,
    /// Whether an apply takes fields over from others.
    pub force: bool,
}

/// What kind of write the options are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Write {
    Create,
    Update,
    Patch,
    Apply,
}

impl WriteOptions {
    /// Reads and checks the options of a write.
    pub fn read(query: &Query, write: Write) -> Outcome<Self> {
        let mut errors = Vec::new();
        let force = query.get("force");
        let field_manager = query.get("fieldManager").unwrap_or_default().to_owned();
        let manager_path = Path::ROOT.child("fieldManager");
        match write {
            Write::Apply if field_manager.is_empty() => {
                errors.push(FieldError::required(&manager_path, "is required for apply patch"));
            }
            Write::Patch if force.is_some() => {
                let why = "may not be specified for non-apply patch";
                errors.push(FieldError::forbidden(&Path::ROOT.child("force"), why));
            }
            _ => {}
        }
        errors.extend(metadata::validate_field_manager(&field_manager, &manager_path));
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::ROOT.child("fieldValidation"), other, &supported));
                FieldValidation::Warn
            }
        };
        let kind = match write {
            Write::Create => "CreateOptions",
            Write::Update => "UpdateOptions",
            Write::Patch | Write::Apply => "PatchOptions",
        };
        refuse(kind, &errors)?;
        let given_validation = query.get("fieldValidation").unwrap_or_default().to_owned();
        Ok(WriteOptions { dry_run, field_manager, validation, given_validation, force: query.flag("force") })
    }
}

/// Whether a dry run is asked for; anything but `All` is an error.
pub(crate) fn dry_run<'v>(values: impl Iterator<Item = &'v str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|v| *v != "All") {
        let shown = Shown::raw(go::string_list(&values));
        errors.push(FieldError::not_supported(&Path::ROOT.child("dryRun"), shown, &["All"]));
    }
    !values.is_empty()
}

/// 422 if there are errors in options of this kind.
pub(crate) fn refuse(kind: &str, errors: &[FieldError]) -> Outcome<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Qualified { group: "meta.k8s.io", name: kind }, "", errors).into())
}

/// Which revision a list is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The latest.
    Latest,
    /// Any that the server has at hand.
    Any,
    /// This one or a later one.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

/// The options of a list or watch.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Which objects, by label.
    pub labels: Labels,
    /// Which objects, by field.
    pub fields: Fields,
    /// The version as the client gave it.
    pub version: String,
    /// How the version is meant.
    pub version_match: String,
    /// At most this many objects; 0 is no limit.
    pub limit: usize,
    /// Where the last page ended; empty for the first one.
    pub continues: String,
    /// After how many seconds a watch ends; at once if there are none left, as upstream's deadline has passed then.
    pub timeout: Option<u64>,
    /// Whether a watch may send bookmarks.
    pub bookmarks: bool,
}

impl ListOptions {
    /// Reads and checks the options of a list, or of a watch.
    pub fn read(query: &Query, watch: bool) -> Outcome<Self> {
        let text = |key: &str| query.get(key).unwrap_or_default();
        let labels = Labels::parse(text("labelSelector")).map_err(|e| Failure::from(Status::bad_request(e)))?;
        let fields = Fields::parse(text("fieldSelector")).map_err(|e| Failure::from(Status::bad_request(e)))?;
        let limit = number(query, "limit")?.unwrap_or(0);
        let timeout = number(query, "timeoutSeconds")?.filter(|t| *t != 0).map(|t| u64::try_from(t).unwrap_or(0));
        let options = ListOptions {
            labels,
            fields,
            version: text("resourceVersion").to_owned(),
            version_match: text("resourceVersionMatch").to_owned(),
            limit: usize::try_from(limit).unwrap_or(0),
            continues: text("continue").to_owned(),
            timeout,
            bookmarks: query.flag("allowWatchBookmarks"),
        };
        let errors = options.check(watch, query.get("sendInitialEvents"));
        refuse("ListOptions", &errors)?;
        Ok(options)
    }

    fn check(&self, watch: bool, initial: Option<&str>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let match_path = Path::ROOT.child("resourceVersionMatch");
        let initial_path = Path::ROOT.child("sendInitialEvents");
        let matching = self.version_match.as_str();
        if watch {
            if initial.is_some() {
                if matching != "NotOlderThan" {
                    let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                    errors.push(FieldError::forbidden(&match_path, why));
                }
                let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
                errors.push(FieldError::forbidden(&initial_path, why));
            } else if !matching.is_empty() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(&match_path, why));
            }
            if !matching.is_empty() && matching != "NotOlderThan" {
                errors.push(FieldError::not_supported(&match_path, matching, &["NotOlderThan"]));
            }
            return errors;
        }
        if initial.is_some() {
            errors.push(FieldError::forbidden(&initial_path, "sendInitialEvents is forbidden for list"));
        }
        if matching.is_empty() {
            return errors;
        }
        if self.version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&match_path, why));
        }
        if !self.continues.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&match_path, why));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(&match_path, matching, &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && self.version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&match_path, why));
        }
        errors
    }

    /// Which revision a list is to show. The error is 400.
    pub fn at(&self) -> Outcome<At> {
        if self.version.is_empty() {
            return Ok(At::Latest);
        }
        let version = parse_version(&self.version)
            .map_err(|e| Failure::from(Status::bad_request(format!("invalid resource version: {e}"))))?;
        Ok(match self.version_match.as_str() {
            "Exact" => At::Exact(version),
            "NotOlderThan" => At::NotOlderThan(version),
            _ if version == 0 => At::Any,
            // Of old, a limit with a version means that very version.
            _ if self.limit > 0 => At::Exact(version),
            _ => At::NotOlderThan(version),
        })
    }
}

/// Reads a version; the error is upstream's.
pub fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    match parse_unsigned(text) {
        Ok(version) => Ok(version),
        Err(why) => {
            let path = Path::ROOT.child("resourceVersion");
            Err(FieldError::invalid(&path, text, format!("strconv.ParseUint: parsing {}: {why}", go::quote(text)))
                .to_string())
        }
    }
}

/// A number as Go's `strconv.ParseUint` reads it; the error is its word for what is wrong.
pub fn parse_unsigned(text: &str) -> Result<u64, &'static str> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

/// A signed number of the query; what is none is 400 as upstream words it.
fn number(query: &Query, key: &str) -> Outcome<Option<i64>> {
    let Some(text) = query.get(key).filter(|t| !t.is_empty()) else { return Ok(None) };
    match text.parse::<i64>() {
        Ok(number) => Ok(Some(number)),
        Err(_) => {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let range = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let why = if range { "value out of range" } else { "invalid syntax" };
            let text = go::quote(text);
            Err(Status::bad_request(format!("strconv.ParseInt: parsing {text}: {why}")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Status(status) => status.message,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        for (query, watch, text) in [
            (
                "resourceVersionMatch=Exact",
                false,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            ("resourceVersion=0&resourceVersionMatch=Exact", false, "is forbidden for resourceVersion \"0\""),
            ("sendInitialEvents=false", false, "sendInitialEvents is forbidden for list"),
            ("limit=x", false, "strconv.ParseInt: parsing \"x\": invalid syntax"),
            ("labelSelector=a=b=c", true, "found '=', expected: ',' or 'end of string'"),
        ] {
            let error = ListOptions::read(&Query::parse(Some(query)), watch).map(|_| ()).unwrap_err();
            let error = message(error);
            assert!(error.contains(text), "{query}: {error}");
        }
    }

    #[test]
    fn a_version_means_what_its_match_says() {
        for (query, at) in [
            ("", At::Latest),
            ("resourceVersion=0", At::Any),
            ("resourceVersion=5", At::NotOlderThan(5)),
            ("resourceVersion=5&limit=1", At::Exact(5)),
            ("resourceVersion=5&resourceVersionMatch=Exact", At::Exact(5)),
            ("resourceVersion=5&limit=1&resourceVersionMatch=NotOlderThan", At::NotOlderThan(5)),
        ] {
            let options = ListOptions::read(&Query::parse(Some(query)), false).unwrap();
            assert_eq!(options.at().unwrap(), at, "{query}");
        }
    }

    #[test]
    fn an_apply_names_its_manager() {
        let error = WriteOptions::read(&Query::default(), Write::Apply).map(|_| ()).unwrap_err();
        let wanted =
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
        assert_eq!(message(error), wanted);
    }
}
