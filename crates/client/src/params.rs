//! The options of requests. Their defaults ask for nothing special.

use object::Value;

/// Options of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListParams {
    /// A label selector; empty for all.
    pub label_selector: String,
    /// A field selector; empty for all.
    pub field_selector: String,
    /// The most items of an answer; 0 for no limit.
    pub limit: u32,
    /// Where an earlier answer left off.
    pub continue_token: String,
    /// The version to read at; empty for the latest.
    pub resource_version: String,
    /// Only what `metadata` says.
    pub metadata_only: bool,
}

/// Options of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchParams {
    /// A label selector; empty for all.
    pub label_selector: String,
    /// A field selector; empty for all.
    pub field_selector: String,
    /// The version to start after; empty starts with what is there.
    pub resource_version: String,
    /// Only what `metadata` says.
    pub metadata_only: bool,
    /// Whether bookmarks tell how far the watch has come.
    pub bookmarks: bool,
    /// After how many seconds the server ends the watch; 0 leaves that to the server.
    pub timeout_seconds: u32,
}

/// Options of creating and updating.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteParams {
    /// Who owns the fields; empty for the first part of the user agent.
    pub field_manager: String,
    /// Nothing is kept.
    pub dry_run: bool,
    /// `Ignore`, `Warn` or `Strict`; empty for the server's default.
    pub field_validation: String,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A JSON patch: its operations.
    Json(Value),
    /// A merge patch.
    Merge(Value),
    /// A strategic merge patch.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// What the manager wants.
        object: Value,
        /// Who wants it.
        manager: String,
        /// Whether fields are taken from others.
        force: bool,
    },
}

/// Options of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchParams {
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
    /// Who owns the fields; empty for the first part of the user agent. Apply has its own.
    pub field_manager: String,
    /// Nothing is kept.
    pub dry_run: bool,
    /// `Ignore`, `Warn` or `Strict`; empty for the server's default.
    pub field_validation: String,
}

impl PatchParams {
    /// A patch of the status.
    pub fn status() -> Self {
        PatchParams { subresource: "status".to_owned(), ..PatchParams::default() }
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

impl Propagation {
    /// As options write it.
    pub fn name(self) -> &'static str {
        match self {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        }
    }
}

/// Options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteParams {
    /// What happens to dependents; none for the kind's default.
    pub propagation: Option<Propagation>,
    /// The uid that the object must have; empty for any.
    pub uid: String,
    /// The version that the object must have; empty for any.
    pub resource_version: String,
    /// How many seconds the object has to end; none for the kind's default.
    pub grace_seconds: Option<i64>,
    /// Nothing is kept.
    pub dry_run: bool,
}

impl DeleteParams {
    /// A deletion in the background.
    pub fn background() -> Self {
        DeleteParams { propagation: Some(Propagation::Background), ..DeleteParams::default() }
    }

    /// The same, only if the object has this uid.
    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        self.uid = uid.to_owned();
        self
    }
}
