//! What is particular to a kind. Every request goes the same way whatever its kind; where kinds differ, it asks the
//! kind's [`Strategy`]. There are two: one for built-in kinds, one for custom resources.

use object::Value;
use object::field::FieldError;
use object::names::NameCheck;
use std::borrow::Cow;

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object itself.
    Main,
    /// The subresource `status`.
    Status,
    /// Another subresource that takes the whole object, for example `finalize` or `approval`.
    Other(&'static str),
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// What makes the object invalid.
    pub errors: Vec<FieldError>,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// What is particular to a kind in one version.
pub trait Strategy: Send + Sync + 'static {
    /// Brings what a request sent into shape: types checked, unknown fields dropped, defaults set. Gives the paths of
    /// unknown fields where `track` is true; the error is Go's text.
    fn receive(&self, object: &mut Value, track: bool) -> Result<Vec<String>, String>;

    /// Brings an object of this version that was stored under another schema into shape.
    fn restore(&self, object: &mut Value);

    /// Names the schema: what was stored under the same one needs no [`Strategy::restore`].
    fn fingerprint(&self) -> u64;

    /// What creation sets by itself.
    fn prepare_create(&self, object: &mut Value);

    /// What an update of `part` sets by itself, or takes back.
    fn prepare_update(&self, object: &mut Value, old: &Value, part: Part);

    /// Checks an object that is to be created; metadata is not its matter.
    fn validate(&self, object: &Value) -> Checked;

    /// Checks what is to take the place of `old`.
    fn validate_update(&self, object: &Value, old: &Value, part: Part) -> Checked;

    /// The rule for names.
    fn name_check(&self) -> NameCheck;

    /// The text of a field for field selectors; `None` when the kind does not know the field.
    fn field<'o>(&self, object: &'o Value, field: &str) -> Option<Cow<'o, str>>;

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
}
