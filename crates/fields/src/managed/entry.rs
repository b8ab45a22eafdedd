//! The entries of `metadata.managedFields`.

use super::time::{format_time, parse_time};
use crate::set::FieldSet;
use compact_str::CompactString;
use object::{Map, Value, go, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    /// `Apply` or `Update`.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// Who owns fields: what makes two entries the same one. An applier has one entry for each subresource, whichever
/// version it used last; an updater has one for each version and subresource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManagerId {
    /// The manager's name.
    pub manager: CompactString,
    /// How it writes.
    pub operation: Operation,
    /// The version it writes in; empty for appliers.
    pub api_version: CompactString,
    /// The subresource it writes through; empty for the object itself.
    pub subresource: CompactString,
    /// Upstream's identifier, the JSON of the above: managers are ordered by it.
    key: CompactString,
}

impl ManagerId {
    /// The identity of a manager that writes in a version.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        // Names and signs take less than 72 bytes.
        let mut key = String::with_capacity(72 + manager.len() + api_version.len() + subresource.len());
        key.push('{');
        let members = [
            ("manager", manager),
            ("operation", operation.as_str()),
            ("apiVersion", api_version),
            ("subresource", subresource),
        ];
        for (name, value) in members.into_iter().filter(|(_, v)| !v.is_empty()) {
            if key.len() > 1 {
                key.push(',');
            }
            json::write_string(&mut key, name);
            key.push(':');
            json::write_string(&mut key, value);
        }
        key.push('}');
        ManagerId {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
            key: key.into(),
        }
    }
}

impl Ord for ManagerId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for ManagerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As conflicts name it: `"tool" with subresource "scale" using apps/v1`.
impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&go::quote(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", go::quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub set: FieldSet,
    /// The version in which they are named.
    pub api_version: CompactString,
    /// When this last changed, in seconds since 1970.
    pub time: Option<i64>,
}

/// All managers of an object.
pub type Managers = BTreeMap<ManagerId, Owned>;

/// Why entries could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// The entries of an object as far as they are of the wire form; none where a single one is not.
pub(super) fn raw_entries(object: &Value) -> Option<Vec<RawEntry<'_>>> {
    let list = object.at(&["metadata", "managedFields"])?.as_array()?;
    list.iter().map(RawEntry::read).collect()
}

/// One entry, not interpreted yet.
#[derive(Default, PartialEq)]
pub(super) struct RawEntry<'v> {
    manager: &'v str,
    operation: &'v str,
    api_version: &'v str,
    fields_type: &'v str,
    subresource: &'v str,
    time: Option<i64>,
    fields: Option<&'v Value>,
}

impl<'v> RawEntry<'v> {
    fn read(entry: &'v Value) -> Option<Self> {
        if entry.is_null() {
            return Some(RawEntry::default());
        }
        let members = entry.as_object()?;
        let text = |key: &str| match members.get(key) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        Some(RawEntry {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            fields_type: text("fieldsType")?,
            subresource: text("subresource")?,
            time: match text("time")? {
                "" if members.get("time").is_none_or(Value::is_null) => None,
                time => Some(parse_time(time)?),
            },
            fields: members.get("fieldsV1").filter(|f| !f.is_null()),
        })
    }
}

/// Reads entries. Of two with one identity the later counts.
pub(super) fn decode(entries: &[RawEntry<'_>]) -> Result<Managers, DecodeError> {
    let error = |text: String| Err(DecodeError(text));
    let mut managers = Managers::new();
    for (i, entry) in entries.iter().enumerate() {
        let operation = match entry.operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return error("operation must be `Apply` or `Update`".to_owned()),
        };
        if entry.api_version.is_empty() {
            return error("apiVersion must not be empty".to_owned());
        }
        match entry.fields_type {
            "FieldsV1" => {}
            "" => return error(format!("missing fieldsType in managed fields entry {i}")),
            other => return error(format!("invalid fieldsType {} in managed fields entry {i}", go::quote(other))),
        }
        let set = match entry.fields {
            None => FieldSet::new(),
            Some(fields) => match FieldSet::from_fields_v1(fields) {
                Ok(set) => set,
                Err(e) => return error(format!("error decoding versioned set: error decoding set: {e}")),
            },
        };
        let id = ManagerId::new(entry.manager, operation, entry.api_version, entry.subresource);
        managers.insert(id, Owned { set, api_version: entry.api_version.into(), time: entry.time });
    }
    Ok(managers)
}

/// Reads the managers of an object.
pub fn decode_managers(object: &Value) -> Result<Managers, DecodeError> {
    decode(&raw_entries(object).unwrap_or_default())
}

/// Whether a client asks to forget all ownership: an empty list, or one entry without content.
pub(super) fn is_reset(entries: &[RawEntry<'_>]) -> bool {
    match entries {
        [] => true,
        [only] => *only == RawEntry::default(),
        _ => false,
    }
}

/// The entries in upstream's order: appliers first, then by time (in seconds), manager, version and subresource.
pub fn encode_managers(managers: &Managers) -> Value {
    let mut entries: Vec<(&ManagerId, &Owned)> = managers.iter().collect();
    entries.sort_by(|(a, x), (b, y)| {
        let key = |id: &ManagerId, owned: &Owned| (id.operation, owned.time.unwrap_or(0));
        key(a, x)
            .cmp(&key(b, y))
            .then_with(|| a.manager.cmp(&b.manager))
            .then_with(|| x.api_version.cmp(&y.api_version))
            .then_with(|| a.subresource.cmp(&b.subresource))
    });
    Value::Array(entries.into_iter().map(|(id, owned)| encode(id, owned)).collect())
}

fn encode(id: &ManagerId, owned: &Owned) -> Value {
    let mut out: Vec<(&str, Value)> = Vec::with_capacity(7);
    out.push(("apiVersion", owned.api_version.clone().into()));
    out.push(("fieldsType", "FieldsV1".into()));
    out.push(("fieldsV1", owned.set.to_fields_v1()));
    if !id.manager.is_empty() {
        out.push(("manager", id.manager.clone().into()));
    }
    out.push(("operation", id.operation.as_str().into()));
    if !id.subresource.is_empty() {
        out.push(("subresource", id.subresource.clone().into()));
    }
    if let Some(time) = owned.time {
        out.push(("time", format_time(time).into()));
    }
    Value::Object(out.into_iter().collect::<Map>())
}

/// Puts managers into an object; without managers it has no `managedFields`.
pub fn set_managers(object: &mut Value, managers: &Managers) {
    if managers.is_empty() {
        remove_managers(object);
    } else {
        object.object_entry("metadata").insert("managedFields", encode_managers(managers));
    }
}

/// Takes `managedFields` out of an object.
pub fn remove_managers(object: &mut Value) {
    object.remove_at(&["metadata", "managedFields"]);
}
