//! The rules for writing a resource, where kinds differ.

use crate::expressions::Compiler;
use jiff::Timestamp;
use object::Value;
use object::field::FieldError;
use object::names::{self, NameCheck};

/// How writes move the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind keeps no generation: it stays what it was when the object was made, if anything.
    None,
    /// It is 1 from the start and counts the changes of these top-level parts (`spec`, `metadata.annotations`).
    Counts(&'static [&'static [&'static str]]),
    /// It is set to 1 by the create and stays.
    One,
    /// It is left alone at the start, and counts the changes of these parts.
    Later(&'static [&'static [&'static str]]),
}

/// What a deletion does with dependents when nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected afterwards.
    Background,
    /// They are let go.
    Orphan,
    /// Nothing, whatever somebody says: there are none.
    Unsupported,
}

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// The user who asks.
    pub user: Option<&'a User>,
}

/// A user, as the authenticators made them out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The unique id; often empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known of them.
    pub extra: Vec<(String, Vec<String>)>,
}

/// What upstream checks of the metadata for a kind by itself, beside what it checks for all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChecks {
    /// Whether a create checks them. Where it does not, a name only has to fit into a path, which is said when
    /// everything else is right.
    pub create: bool,
    /// How often an update checks them as those of a new object: some of upstream's checks of an update begin with the
    /// one of a create, and what is wrong is told each time.
    pub anew: usize,
    /// Whether an update checks what changed.
    pub update: bool,
    /// Whether an update through `/status` checks what changed.
    pub status: bool,
}

impl MetadataChecks {
    /// Each write once, as most kinds have it.
    pub const ONCE: MetadataChecks = MetadataChecks { create: true, anew: 0, update: true, status: true };
}

/// Parts of an object, each as the names on the way to it.
pub type Parts = &'static [&'static [&'static str]];

/// The checks of a kind with expressions: of an object, against the old one of an update, with what compiles them.
pub type CompiledChecks = fn(&Value, Option<&Value>, &mut dyn Compiler) -> Vec<FieldError>;

/// The rules for writing a resource. The hooks see the stored form, decoded and defaulted.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// The rule for names.
    pub name: NameCheck,
    /// What is checked of the metadata.
    pub metadata: MetadataChecks,
    /// Whether an update of an absent object makes it.
    pub create_on_update: bool,
    /// Whether an update without a resourceVersion is taken.
    pub unconditional_update: bool,
    /// How the generation moves.
    pub generation: Generation,
    /// What updates of the resource itself leave as it was, and may be owned by nobody through it: `status`.
    pub reset: Parts,
    /// Whether creates drop what updates leave (nodes bring their status along).
    pub drops_on_create: bool,
    /// What updates of `/status` leave as it was, and may be owned by nobody through it. Of `metadata`, named as a
    /// whole, it is labels, annotations, finalizers, owner references and the time of deletion that stay.
    pub reset_status: Parts,
    /// Where the template of a workload's pods is; empty for what has none.
    pub template: &'static [&'static str],
    /// What becomes of dependents by default.
    pub propagation: Propagation,
    /// Whether deletion waits for somebody to stop what the object stands for (pods).
    pub graceful: bool,
    /// Whether a deletion answers with the object, not with a status.
    pub returns_deleted: bool,
    /// Drops what features that are off stand for, unless the old object has it in use; that is null for a create.
    pub drop_disabled: fn(&mut Value, &Value),
    /// Changes an object to be created.
    pub prepare_create: fn(&mut Value, &Context<'_>),
    /// Changes an updated object, given the old one.
    pub prepare_update: fn(&mut Value, &Value, &Context<'_>),
    /// Changes an object updated through `/status`, given the old one.
    pub prepare_status: fn(&mut Value, &Value, &Context<'_>),
    /// Checks everything but metadata of an object to be created.
    pub validate: fn(&Value) -> Vec<FieldError>,
    /// Checks everything but metadata of an update: new and old object.
    pub validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// Checks everything but metadata of a kind with expressions, in place of `validate` and `validate_update`.
    pub compiled: Option<CompiledChecks>,
    /// Checks an update through `/status`: new and old object.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// The warning for a deletion that leaves the propagation to the default; empty where there is none.
    pub delete_warning: &'static str,
    /// Warnings for a create (no old object) or an update.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Warnings about an object to be created as its author wrote it, before it is prepared; given however it ends.
    pub warnings_before: fn(&Value) -> Vec<String>,
    /// Warnings for an update through `/status`.
    pub status_warnings: fn(&Value) -> Vec<String>,
}

const STATUS: Parts = &[&["status"]];
const SPEC: Parts = &[&["spec"]];

impl Strategy {
    /// The rules that most kinds follow: names are DNS subdomains, updates need no resourceVersion, no generation.
    pub const PLAIN: Strategy = Strategy {
        name: names::dns1123_subdomain,
        metadata: MetadataChecks::ONCE,
        create_on_update: false,
        unconditional_update: true,
        generation: Generation::None,
        reset: &[],
        drops_on_create: true,
        reset_status: &[],
        template: &[],
        propagation: Propagation::Background,
        graceful: false,
        returns_deleted: false,
        delete_warning: "",
        drop_disabled: |_, _| {},
        prepare_create: |_, _| {},
        prepare_update: |_, _, _| {},
        prepare_status: |_, _, _| {},
        validate: |_| Vec::new(),
        validate_update: |_, _| Vec::new(),
        compiled: None,
        validate_status: |_, _| Vec::new(),
        warnings: |_, _| Vec::new(),
        warnings_before: |_| Vec::new(),
        status_warnings: |_| Vec::new(),
    };

    /// [`Strategy::PLAIN`] with a status of its own and a generation that counts the changes of `spec`.
    pub const WITH_STATUS: Strategy =
        Strategy { generation: Generation::Counts(SPEC), reset: STATUS, reset_status: SPEC, ..Strategy::PLAIN };
}

/// What a write of a status leaves alone where [`Strategy::reset_status`] names `metadata`.
/// (`ResetObjectMetaForStatus`)
pub(crate) const METADATA_OF_OTHERS: Parts = &[
    &["metadata", "labels"],
    &["metadata", "annotations"],
    &["metadata", "finalizers"],
    &["metadata", "ownerReferences"],
    &["metadata", "deletionTimestamp"],
];
