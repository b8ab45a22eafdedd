//! The field manager of one endpoint: what a write does to the ownership of an object.

use super::conflict::Conflicts;
use super::entry::{ManagerId, Managers, Operation, decode, is_reset, raw_entries, remove_managers, set_managers};
use super::last_applied;
use super::update::{UpdateError, Updater, VersionConverter, cap_update_managers};
use crate::path::FieldPath;
use crate::schema::TypeSchema;
use crate::set::{FieldFilter, FieldSet};
use crate::typed::{self, Duplicates};
use compact_str::CompactString;
use object::{Status, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Kind {
    /// What an object says it is; empty where it says nothing.
    pub fn of(object: &Value) -> Self {
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// As Go prints it: `apps/v1, Kind=Deployment`; in the core group `/v1, Kind=Pod`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 400: the request makes no sense.
    BadRequest(String),
    /// 409: other managers own what it would change.
    Conflict(Conflicts),
    /// 500 without a reason: upstream has no better word for a configuration that does not fit the schema.
    Failed(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::BadRequest(text) | ApplyError::Failed(text) => f.write_str(text),
            ApplyError::Conflict(conflicts) => f.write_str(&conflicts.message()),
        }
    }
}

impl std::error::Error for ApplyError {}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Status {
        match error {
            ApplyError::BadRequest(text) => Status::bad_request(text),
            ApplyError::Conflict(conflicts) => conflicts.to_status(),
            ApplyError::Failed(text) => Status::unknown(text),
        }
    }
}

/// What is never owned.
static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top = ["apiVersion", "kind", "metadata"].map(|f| FieldPath::fields(&[f]));
    let paths: Vec<FieldPath> = top.into_iter().chain(metadata.map(|f| FieldPath::fields(&["metadata", f]))).collect();
    FieldSet::of(&paths)
});

/// The field manager of one endpoint (a kind in one version, or a subresource of it).
///
/// Objects are handed over in the version of the endpoint. Times are in seconds since 1970.
#[derive(Clone)]
pub struct FieldManager {
    kind: Kind,
    api_version: CompactString,
    subresource: String,
    schemas: BTreeMap<CompactString, Arc<TypeSchema>>,
    converter: Arc<dyn VersionConverter>,
    filters: BTreeMap<CompactString, FieldFilter>,
    empty: Option<Value>,
}

impl fmt::Debug for FieldManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldManager").field("kind", &self.kind).field("subresource", &self.subresource).finish()
    }
}

impl FieldManager {
    /// A manager of objects of `kind`. `schemas` has a schema for each version of the resource (by `group/version`);
    /// what is owned in other versions cannot be compared.
    pub fn new(
        kind: Kind,
        schemas: impl IntoIterator<Item = (String, Arc<TypeSchema>)>,
        converter: Arc<dyn VersionConverter>,
    ) -> Self {
        FieldManager {
            api_version: kind.api_version().into(),
            kind,
            subresource: String::new(),
            schemas: schemas.into_iter().map(|(v, s)| (v.into(), s)).collect(),
            converter,
            filters: BTreeMap::new(),
            empty: None,
        }
    }

    /// For a subresource: entries carry its name, and `managedFields` of its requests are ignored.
    pub fn with_subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = subresource.into();
        self
    }

    /// With another converter.
    pub fn with_converter(mut self, converter: Arc<dyn VersionConverter>) -> Self {
        self.converter = converter;
        self
    }

    /// What the endpoint may own in each version (by `group/version`), as upstream's reset fields say.
    pub fn with_filters(mut self, filters: impl IntoIterator<Item = (String, FieldFilter)>) -> Self {
        self.filters = filters.into_iter().map(|(v, f)| (v.into(), f)).collect();
        self
    }

    /// What a new, empty object has already. A built-in type has its required structs, which their creator therefore
    /// does not own; without this it is nothing but `apiVersion` and `kind`.
    pub fn with_empty_object(mut self, empty: Value) -> Self {
        self.empty = Some(empty);
        self
    }

    /// The kind of the endpoint.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The schema of the endpoint's version.
    pub fn schema(&self) -> Option<&TypeSchema> {
        self.schemas.get(&self.api_version).map(|s| &**s)
    }

    fn updater(&self) -> Updater<'_> {
        Updater { schemas: &self.schemas, converter: &*self.converter, filters: &self.filters }
    }

    fn empty_object(&self) -> Value {
        self.empty.clone().unwrap_or_else(|| {
            let (api_version, kind) = (self.api_version.clone(), self.kind.kind.as_str());
            Value::Object(object::map! { "apiVersion" => api_version, "kind" => kind })
        })
    }

    /// Gives a new object to its creator. `managedFields` in the request are ignored.
    pub fn on_create(&self, mut object: Value, manager: &str, now: i64) -> Value {
        remove_managers(&mut object);
        self.on_update(&self.empty_object(), object, manager, now)
    }

    /// Records a write other than an apply; it never fails. `managedFields` of the new object count where they can be
    /// read (a client may edit them), else those of the live one. Where ownership cannot be worked out at all, the
    /// object has none afterwards, as upstream does it.
    ///
    /// Called a second time after admission, with the object before admission as `live` and a name for the webhook,
    /// it gives what the webhook changed to that name.
    pub fn on_update(&self, live: &Value, mut new: Value, manager: &str, now: i64) -> Value {
        let managers = self.managers_of_update(live, &new);
        remove_managers(&mut new);
        let updated = managers.and_then(|mut managers| {
            let live = without_managers(live);
            // An object that exists and has no owners is not tracked before its first apply.
            let exists = live.str_at(&["metadata", "uid"]).is_some_and(|uid| !uid.is_empty());
            if !(managers.is_empty() && exists) {
                self.record_update(&live, &new, &mut managers, manager, now).ok()?;
            }
            Some(managers)
        });
        if let Some(managers) = updated {
            set_managers(&mut new, &managers);
        }
        new
    }

    fn managers_of_update(&self, live: &Value, new: &Value) -> Option<Managers> {
        let of_live = || Some(decode(&raw_entries(live).unwrap_or_default()).unwrap_or_default());
        if !self.subresource.is_empty() {
            return of_live();
        }
        let Some(entries) = raw_entries(new) else { return of_live() };
        if is_reset(&entries) {
            return Some(Managers::new());
        }
        match decode(&entries) {
            Ok(managers) if !managers.is_empty() => Some(managers),
            _ => of_live(),
        }
    }

    fn record_update(
        &self,
        live: &Value,
        new: &Value,
        managers: &mut Managers,
        manager: &str,
        now: i64,
    ) -> Result<(), String> {
        for (which, value) in [("new", new), ("live", live)] {
            self.check(value, Duplicates::Allow)
                .map_err(|e| format!("failed to convert {which} object ({}) to smd typed: {e}", describe(value)))?;
        }
        // The write is recorded under a name of its own first, to tell what it changed from what the manager had.
        let writer = ManagerId::new("current-operation", Operation::Update, "", "");
        self.updater().update(live, new, &self.api_version, managers, &writer).map_err(|e| match e {
            UpdateError::Conflicts(c) => c.message(),
            UpdateError::Other(why) => format!("failed to update ManagedFields ({}): {why}", describe(new)),
        })?;
        strip(managers, &writer);
        if let Some(mut owned) = managers.remove(&writer) {
            let id = self.id(manager, Operation::Update);
            if let Some(before) = managers.get(&id) {
                owned.set = owned.set.union(&before.set);
            }
            owned.time = Some(now);
            managers.insert(id, owned);
        }
        cap_update_managers(managers);
        Ok(())
    }

    /// Applies a configuration. `live` is `None` where the object does not exist. The answer is the merged object with
    /// its new `managedFields`, before defaults and validation; where neither object nor ownership changed it equals
    /// the live one, times included.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: i64,
    ) -> Result<Value, ApplyError> {
        let kind = Kind::of(config);
        let live = live.map_or_else(|| Cow::Owned(self.empty_object()), Cow::Borrowed);
        let mut managers = decode(&raw_entries(&live).unwrap_or_default())
            .map_err(|e| ApplyError::Failed(format!("failed to decode managed fields: {e}")))?;
        if kind != self.kind {
            return Err(ApplyError::BadRequest(format!("invalid object type: {kind}")));
        }
        let live = without_managers(&live);
        let again = (manager == last_applied::KUBECTL && !force).then(|| managers.clone());
        let object = match (self.apply_or_conflict(&live, config, &mut managers, manager, force, now), again) {
            (Err(ApplyError::Conflict(conflicts)), Some(again)) => {
                self.allow_last_applied(&live, conflicts)?;
                managers = again;
                self.apply_or_conflict(&live, config, &mut managers, manager, true, now)?
            }
            (outcome, _) => outcome?,
        };
        let mut object = object.unwrap_or(live);
        if manager == last_applied::KUBECTL {
            last_applied::refresh(&mut object, config);
        }
        set_managers(&mut object, &managers);
        Ok(object)
    }

    /// One try; `None` where the object stays as it is.
    fn apply_or_conflict(
        &self,
        live: &Value,
        config: &Value,
        managers: &mut Managers,
        manager: &str,
        force: bool,
        now: i64,
    ) -> Result<Option<Value>, ApplyError> {
        if managers.is_empty() {
            let empty = self.empty_object();
            let made = self.converter.check_made(&empty);
            made.map_err(|e| format!("failed to convert live object ({}) to proper version: {e}", describe(&empty)))
                .and_then(|()| self.record_update(&empty, live, managers, "before-first-apply", now))
                .map_err(|e| ApplyError::Failed(format!("failed to create manager for existing fields: {e}")))?;
        }
        if config.at(&["metadata", "managedFields"]).is_some_and(|m| !m.is_null()) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        self.check(config, Duplicates::Forbid).map_err(|e| {
            ApplyError::Failed(format!("failed to create typed patch object ({}): {e}", describe(config)))
        })?;
        self.check(live, Duplicates::Allow)
            .map_err(|e| ApplyError::Failed(format!("failed to create typed live object ({}): {e}", describe(live))))?;
        let id = self.id(manager, Operation::Apply);
        let object =
            self.updater().apply(live, config, &self.api_version, managers, &id, force).map_err(|e| match e {
                UpdateError::Conflicts(conflicts) => ApplyError::Conflict(conflicts),
                UpdateError::Other(why) => ApplyError::Failed(why),
            })?;
        if let Some(object) = &object {
            self.converter.check_made(object).map_err(|e| {
                ApplyError::Failed(format!(
                    "failed to convert new object ({}) to proper version: {e}",
                    describe(config)
                ))
            })?;
        }
        strip(managers, &id);
        if let (Some(owned), true) = (managers.get_mut(&id), object.is_some()) {
            owned.time = Some(now);
        }
        Ok(object)
    }

    /// Conflicts about fields that client-side apply left as they are do not count; it is an error if others remain.
    fn allow_last_applied(&self, live: &Value, conflicts: Conflicts) -> Result<(), ApplyError> {
        let schema = self.schema();
        let Some(allowed) = schema.and_then(|s| last_applied::untouched(s, &self.api_version, live)) else {
            return Err(ApplyError::Conflict(conflicts));
        };
        let left = conflicts.without(&allowed);
        if left.0.is_empty() { Ok(()) } else { Err(ApplyError::Conflict(left)) }
    }

    fn check(&self, value: &Value, duplicates: Duplicates) -> Result<(), String> {
        match self.schema() {
            None => Err(format!("no corresponding type for {}", self.kind)),
            Some(schema) => typed::validate(schema, value, duplicates).map_err(|e| e.to_string()),
        }
    }

    fn id(&self, manager: &str, operation: Operation) -> ManagerId {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        ManagerId::new(manager, operation, &self.api_version, &self.subresource)
    }
}

fn strip(managers: &mut Managers, id: &ManagerId) {
    if let Some(owned) = managers.get_mut(id) {
        owned.set.take_away(&STRIPPED, false);
        if owned.set.is_empty() {
            managers.remove(id);
        }
    }
}

/// `NAMESPACE/NAME; GROUP/VERSION, Kind=KIND`, as the object itself has them.
fn describe(object: &Value) -> String {
    let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
    format!("{}/{}; {}", text("namespace"), text("name"), Kind::of(object))
}

/// A copy without `managedFields`, which are a good part of many objects: they are not copied first.
fn without_managers(object: &Value) -> Value {
    let Some(members) = object.as_object() else { return object.clone() };
    let strip = |(key, value): (&str, &Value)| {
        let value = match (key, value) {
            ("metadata", Value::Object(metadata)) => {
                let kept = metadata.iter().filter(|(key, _)| *key != "managedFields");
                Value::Object(
                    kept.map(|(key, value)| (CompactString::from(key), value.clone())).collect::<Vec<_>>().into(),
                )
            }
            _ => value.clone(),
        };
        (CompactString::from(key), value)
    };
    Value::Object(members.iter().map(strip).collect::<Vec<_>>().into())
}
