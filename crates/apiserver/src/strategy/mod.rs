//! What is particular to a kind. Every request goes the same way whatever its kind; where kinds differ, it asks the
//! kind's [`Strategy`]. There are two: [`Builtin`] over the catalogue of built-in kinds, [`Custom`] over the schemas of
//! definitions.
//!
//! An object is in one of three forms: *sent*, as a client of the request's version writes it; *worked on*, as the
//! strategy wants it while a request is handled; *stored*. For custom resources the sent form is worked on, for
//! built-in kinds the stored one.

mod builtin;
mod custom;
mod definitions;

pub use builtin::Builtin;
pub(crate) use builtin::at_least_one;
pub(crate) use custom::{Custom, at, storage_version};
pub use definitions::Definitions;

use crate::auth::UserInfo;
use crate::request::body::Text;
use jiff::Timestamp;
use kinds::Issue;
use object::Value;
use object::field::FieldError;
use std::borrow::Cow;

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object itself.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `scale`, after it was turned into a change of the object.
    Scale,
    /// The subresource `finalize` of namespaces.
    Finalize,
    /// Another subresource that takes the whole object, for example `approval`.
    Other(&'static str),
}

impl Part {
    /// The subresource's name; empty for the object itself.
    pub fn name(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Scale => "scale",
            Part::Finalize => "finalize",
            Part::Other(name) => name,
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// What makes the object invalid.
    pub errors: Vec<FieldError>,
    /// What its author should know, be the object valid or not.
    pub warnings: Vec<String>,
    /// What its author should know of a valid object.
    pub hints: Vec<String>,
}

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The user.
    pub user: &'a UserInfo,
    /// The time of the request.
    pub now: Timestamp,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: String,
    /// The format, for example `name`.
    pub format: String,
    /// A sentence about it.
    pub description: String,
    /// 0 for columns that are always shown.
    pub priority: i64,
}

/// Upstream's words for a field that a type does not have.
pub fn unknown_field(path: &str) -> String {
    Issue::Unknown(path.to_owned()).to_string()
}

/// What is particular to a kind in one version.
pub trait Strategy: Send + Sync + 'static {
    /// Brings what a client sent into the form that is worked on: types checked, unknown fields dropped, defaults set.
    /// Gives the paths of unknown fields where `track` is true; the error is Go's text.
    fn receive(&self, object: &mut Value, track: bool) -> Result<Vec<String>, String>;

    /// [`Strategy::receive`] for the value of a JSON text. Gives what strict reading does not let pass, in upstream's words.
    fn receive_text(&self, object: &mut Value, text: Text<'_>, track: bool) -> Result<Vec<String>, String> {
        let unknown = self.receive(object, track)?;
        let mut issues = if track { text.repetitions() } else { Vec::new() };
        issues.extend(unknown.iter().map(|path| unknown_field(path)));
        Ok(issues)
    }

    /// [`Strategy::receive`] for what a strategic merge patch made, which upstream reads by rules and with texts of its own.
    /// Gives what strict reading does not let pass.
    fn receive_unstructured(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = self.receive(object, true)?;
        Ok(unknown.iter().map(|path| unknown_field(path)).collect())
    }

    /// Brings what an apply made of an object into the form that is worked on. Nulls stay, to be refused where they are
    /// not allowed. The error is upstream's text.
    fn complete(&self, object: &mut Value) -> Result<(), String> {
        self.receive_unstructured(object).map(drop)
    }

    /// Brings what admission made of an object into the form that is worked on: as [`Strategy::receive`], but of custom
    /// resources nothing is taken away, so that what is wrong is told.
    fn adopt(&self, object: &mut Value) -> Result<(), String> {
        self.receive(object, false).map(drop)
    }

    /// From the form that is worked on to the one that is sent.
    fn present(&self, object: &mut Value);

    /// Whether [`Strategy::present`] does anything at all.
    fn presents(&self) -> bool {
        false
    }

    /// From the stored form (of any version, conversion webhooks apart) to the one that is worked on.
    fn load(&self, object: &mut Value);

    /// Brings a stored object into the present shape of the version that it is stored in: the first half of
    /// [`Strategy::load`], before a conversion webhook is asked.
    fn restore(&self, object: &mut Value) {
        let _ = object;
    }

    /// Takes what this version does not know from an object that a conversion webhook made: the second half of
    /// [`Strategy::load`].
    fn coerce(&self, object: &mut Value) {
        let _ = object;
    }

    /// From the form that is worked on to the stored one. Gives the fingerprint of the schema whose shape that has.
    fn save(&self, object: &mut Value) -> u64;

    /// Names the schema of this version. What is stored under the same one is served as it is stored, `apiVersion`
    /// apart.
    fn fingerprint(&self) -> u64;

    /// What its author should know of an object to be created, as they wrote it.
    fn warnings_before(&self, object: &Value) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// What creation sets by itself.
    fn prepare_create(&self, object: &mut Value, writer: Writer<'_>);

    /// What an update of `part` sets by itself, or takes back.
    fn prepare_update(&self, object: &mut Value, old: &Value, part: Part, writer: Writer<'_>);

    /// Checks an object that is to be created.
    fn validate(&self, object: &Value) -> Checked;

    /// Checks what is to take the place of `old`.
    fn validate_update(&self, object: &Value, old: &Value, part: Part) -> Checked;

    /// Whether selectors may name a field beside `metadata.name` and, of kinds in namespaces, `metadata.namespace`; the
    /// error is what the client is told.
    fn knows_field(&self, field: &str) -> Result<(), String>;

    /// The text of such a field of an object in the stored form for built-in kinds, in the sent form for others.
    fn field<'o>(&self, object: &'o Value, field: &str) -> Cow<'o, str>;

    /// The columns of tables.
    fn columns(&self) -> Vec<Column>;

    /// The cells of an object's row; the object is in the form that is worked on.
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value>;

    /// What an object's row says of its end, if it has come to that; the object is in the form that is worked on.
    fn ended(&self, object: &Value) -> Option<kinds::Ended> {
        let _ = object;
        None
    }

    /// What tables of many objects are sorted by, before their names; the object is in the form that is worked on.
    fn rank(&self, object: &Value) -> i64 {
        let _ = object;
        0
    }

    /// What field ownership knows about the kind.
    fn ownership(&self) -> &crate::ownership::Kind;

    /// Whether an update creates what is not there.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether an update may leave the version out.
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    /// Whether a delete without a policy leaves dependents alone.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// Whether objects may have dependents at all, so that a delete's policy about them counts.
    fn has_dependents(&self) -> bool {
        true
    }

    /// How many seconds an object may take to end, given what the client asks for; none where the kind ends at once.
    fn grace(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        let _ = (object, asked);
        None
    }

    /// Whether a delete answers with the object that is gone rather than with a `Status`.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// Whether an object without finalizers that is going away stays nevertheless.
    fn holds(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// After how many seconds an object goes by itself; 0 for never.
    fn expires(&self) -> u64 {
        0
    }

    /// Where `scale` finds its numbers; nothing when the kind has no such subresource.
    fn scale(&self) -> Option<ScalePaths> {
        None
    }
}

/// Where `scale` finds its numbers, as paths of member names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    /// The replicas that are wanted.
    pub spec: Vec<String>,
    /// The replicas that are there.
    pub status: Vec<String>,
    /// The label selector as text (custom resources) or as an object (built-in kinds).
    pub selector: Option<Vec<String>>,
}
