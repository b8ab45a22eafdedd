//! The effect of a write on the sets of all managers.

use super::conflict::Conflicts;
use super::entry::{ManagerId, Managers, Operation, Owned};
use crate::path::equal_values;
use crate::schema::TypeSchema;
use crate::set::{FieldFilter, FieldSet};
use crate::typed::{self, Comparison, Duplicates};
use compact_str::CompactString;
use object::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Gives objects in other versions of their resource.
pub trait VersionConverter: Send + Sync {
    /// The object in the version `api_version` (`group/version`). It is never asked for the version the object has.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// Asked of each object that the field manager made itself, by an apply or as an empty one: may it be used?
    /// Upstream converts it to the request's version again, which fails for scales of custom resources.
    fn check_made(&self, _object: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// Why an object cannot be had in another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// There is no such version; what is owned in it is forgotten.
    MissingVersion,
    /// It failed, for this reason; so does the apply.
    Failed(String),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::MissingVersion => f.write_str("no corresponding type"),
            ConvertError::Failed(why) => f.write_str(why),
        }
    }
}

/// Conversion by changing `apiVersion` alone, between the given versions (what a definition calls `None`).
#[derive(Clone, Debug, Default)]
pub struct NoConversion {
    /// The versions there are, as `group/version`.
    pub versions: Vec<String>,
}

impl VersionConverter for NoConversion {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if !self.versions.iter().any(|v| v == api_version) {
            let why = format!("request to convert CR to an invalid group/version: {api_version}");
            return Err(ConvertError::Failed(why));
        }
        let mut out = object.clone();
        out.set_at(&["apiVersion"], api_version.into());
        Ok(out)
    }
}

/// What a write needs to know of a kind.
pub(super) struct Updater<'a> {
    pub schemas: &'a BTreeMap<CompactString, Arc<TypeSchema>>,
    pub converter: &'a dyn VersionConverter,
    pub filters: &'a BTreeMap<CompactString, FieldFilter>,
}

/// Why an update of the sets failed.
#[derive(Debug)]
pub(super) enum UpdateError {
    Conflicts(Conflicts),
    Other(String),
}

/// A value with its version.
#[derive(Clone)]
struct Versioned<'v> {
    value: Cow<'v, Value>,
    version: CompactString,
}

impl<'v> Versioned<'v> {
    fn borrowed(value: &'v Value, version: &str) -> Self {
        Versioned { value: Cow::Borrowed(value), version: version.into() }
    }
}

/// Whether two values are equal; the same one is without a look.
fn same(a: &Versioned<'_>, b: &Versioned<'_>) -> bool {
    std::ptr::eq(&*a.value, &*b.value) || equal_values(&a.value, &b.value)
}

impl Updater<'_> {
    fn schema(&self, version: &str) -> Option<&TypeSchema> {
        self.schemas.get(version).map(|s| &**s)
    }

    fn convert<'v>(&self, v: &Versioned<'v>, version: &str) -> Result<Versioned<'v>, ConvertError> {
        if v.version == version {
            return Ok(v.clone());
        }
        if version.split('/').count() > 2 {
            return Err(ConvertError::Failed(format!("unexpected GroupVersion string: {version}")));
        }
        let value = self.converter.convert(&v.value, version)?;
        let schema = self.schema(version).ok_or(ConvertError::MissingVersion)?;
        typed::validate(schema, &value, Duplicates::Forbid).map_err(|e| ConvertError::Failed(e.to_string()))?;
        Ok(Versioned { value: Cow::Owned(value), version: version.into() })
    }

    fn filtered(&self, version: &str, set: FieldSet) -> FieldSet {
        match self.filters.get(version) {
            Some(filter) => filter.filter(set),
            None => set,
        }
    }

    fn compare(&self, version: &str, old: &Value, new: &Value) -> Comparison {
        let Some(schema) = self.schema(version) else { return Comparison::default() };
        let difference = typed::compare(schema, old, new);
        match self.filters.get(version) {
            Some(filter) => difference.filter(filter),
            None => difference,
        }
    }

    /// Drops what is owned in versions that are gone, and brings sets in line with the present schema. It gives back
    /// the live object in each version in which something is owned: conversion may be a call to a webhook.
    fn reconcile<'v>(
        &self,
        live: &Versioned<'v>,
        managers: &mut Managers,
    ) -> Result<BTreeMap<CompactString, Versioned<'v>>, UpdateError> {
        let mut in_versions: BTreeMap<CompactString, Option<Versioned<'v>>> = BTreeMap::new();
        for owned in managers.values() {
            if !in_versions.contains_key(&owned.api_version) {
                let found = match self.convert(live, &owned.api_version) {
                    Ok(converted) => Some(converted),
                    Err(ConvertError::MissingVersion) => None,
                    Err(ConvertError::Failed(why)) => return Err(UpdateError::Other(why)),
                };
                in_versions.insert(owned.api_version.clone(), found);
            }
        }
        managers.retain(|_, owned| in_versions.get(&owned.api_version).is_some_and(Option::is_some));
        for owned in managers.values_mut() {
            if let Some(set) = self.schema(&owned.api_version).and_then(|s| typed::reconcile(s, &owned.set)) {
                owned.set = set;
            }
        }
        Ok(in_versions.into_iter().filter_map(|(version, live)| Some((version, live?))).collect())
    }

    /// Takes from all managers but `writer` what changed from `old` to `new`. Without `force` it is an error if
    /// something that was added or modified is theirs.
    fn take(
        &self,
        old: &Versioned<'_>,
        new: &Versioned<'_>,
        old_in_versions: &BTreeMap<CompactString, Versioned<'_>>,
        managers: &mut Managers,
        writer: &ManagerId,
        force: bool,
    ) -> Result<Comparison, UpdateError> {
        if same(old, new) {
            // Nothing changed, in no version. Managers of versions that are gone went before.
            managers.retain(|_, owned| !owned.set.is_empty());
            return Ok(Comparison::default());
        }
        let mut by_version: BTreeMap<CompactString, Comparison> = BTreeMap::new();
        by_version.insert(old.version.clone(), self.compare(&old.version, &old.value, &new.value));
        let mut conflicts: BTreeMap<ManagerId, FieldSet> = BTreeMap::new();
        let mut gone: Vec<ManagerId> = Vec::new();
        for (id, owned) in managers.iter().filter(|(id, _)| *id != writer) {
            let version = &owned.api_version;
            if !by_version.contains_key(version) {
                let new = match self.convert(new, version) {
                    Ok(new) => Some(new),
                    Err(ConvertError::MissingVersion) => None,
                    Err(e) => return Err(UpdateError::Other(format!("failed to convert new object: {e}"))),
                };
                let Some((old, new)) = old_in_versions.get(version).zip(new) else {
                    gone.push(id.clone());
                    continue;
                };
                by_version.insert(version.clone(), self.compare(version, &old.value, &new.value));
            }
            let Some(change) = by_version.get(version) else { continue };
            let theirs = owned.set.intersection(&change.modified).union(&owned.set.intersection(&change.added));
            if !theirs.is_empty() {
                conflicts.insert(id.clone(), theirs);
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(UpdateError::Conflicts(Conflicts::of(&conflicts)));
        }
        for id in gone {
            managers.remove(&id);
        }
        for (id, owned) in managers.iter_mut().filter(|(id, _)| *id != writer) {
            if let Some(taken) = conflicts.get(id) {
                owned.set.take_away(taken, false);
            }
            if let Some(change) = by_version.get(&owned.api_version) {
                owned.set.take_away(&change.removed, false);
            }
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok(by_version.remove(&old.version).unwrap_or_default())
    }

    /// What a write that is no apply does: the writer owns what it added and modified.
    pub fn update(
        &self,
        live: &Value,
        new: &Value,
        version: &str,
        managers: &mut Managers,
        writer: &ManagerId,
    ) -> Result<(), UpdateError> {
        let (live, new) = (Versioned::borrowed(live, version), Versioned::borrowed(new, version));
        let in_versions = self.reconcile(&live, managers)?;
        let change = self.take(&live, &new, &in_versions, managers, writer, true)?;
        let before = managers.remove(writer);
        let time = before.as_ref().and_then(|o| o.time);
        let mut own = before.map(|o| o.set).unwrap_or_default();
        own.take_away(&change.removed, false);
        let set = self.filtered(version, own.union(&change.modified).union(&change.added));
        if !set.is_empty() {
            managers.insert(writer.clone(), Owned { set, api_version: version.into(), time });
        }
        Ok(())
    }

    /// What an apply does: lays the configuration over the live object, takes out what the writer applied before and
    /// nobody wants any more, and makes the writer the owner of all that the configuration has. `None` where the
    /// object stays as it is.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        version: &str,
        managers: &mut Managers,
        writer: &ManagerId,
        force: bool,
    ) -> Result<Option<Value>, UpdateError> {
        let Some(schema) = self.schema(version) else {
            return Err(UpdateError::Other(ConvertError::MissingVersion.to_string()));
        };
        let live = Versioned::borrowed(live, version);
        let in_versions = self.reconcile(&live, managers)?;
        let merged = match typed::merge_is_noop(schema, &live.value, config) {
            true => live.value.clone(),
            false => Cow::Owned(typed::merge(schema, &live.value, config)),
        };
        let set = self.filtered(version, typed::to_field_set(schema, config));
        let last = managers.remove(writer);
        let time = last.as_ref().and_then(|o| o.time);
        managers.insert(writer.clone(), Owned { set, api_version: version.into(), time });
        let merged = Versioned { value: merged, version: version.into() };
        let new = self
            .prune(merged, managers, writer, last.as_ref())
            .map_err(|e| UpdateError::Other(format!("failed to prune fields: {e}")))?;
        self.take(&live, &new, &in_versions, managers, writer, force)?;
        Ok((!same(&live, &new)).then(|| new.value.into_owned()))
    }

    /// Takes out of `merged` what the writer applied last time (`last`) and neither it nor anybody else owns now.
    fn prune<'v>(
        &self,
        merged: Versioned<'v>,
        managers: &Managers,
        writer: &ManagerId,
        last: Option<&Owned>,
    ) -> Result<Versioned<'v>, String> {
        let Some(last) = last.filter(|o| !o.set.is_empty()) else { return Ok(merged) };
        // The short way of nearly every apply: what was applied before is applied again, so that nothing can go. But of a
        // list item that is owned without any of its fields nothing is left below, and upstream takes it out.
        if let Some(now) = managers.get(writer)
            && now.api_version == last.api_version
            && last.set.is_subset(&now.set)
            && !now.set.has_bare_items()
        {
            return Ok(merged);
        }
        let version = merged.version.clone();
        let converted = match self.convert(&merged, &last.api_version) {
            Ok(converted) => converted,
            Err(ConvertError::MissingVersion) => return Ok(merged),
            Err(e) => return Err(format!("failed to convert merged object to last applied version: {e}")),
        };
        let Some(schema) = self.schema(&last.api_version) else { return Ok(merged) };
        let last_named = typed::named_fields(schema, &last.set);
        let pruned = Versioned {
            value: Cow::Owned(typed::remove_items(schema, &converted.value, &last_named)),
            version: last.api_version.clone(),
        };
        let pruned = self
            .add_back_owned(&converted, pruned, managers)
            .map_err(|e| format!("failed add back owned items: {e}"))?;
        let pruned = match self.convert(&pruned, &last.api_version) {
            Ok(pruned) => pruned,
            Err(ConvertError::MissingVersion) => return Ok(merged),
            Err(e) => {
                return Err(format!(
                    "failed add back dangling items: failed to convert pruned object to last applied version: {e}"
                ));
            }
        };
        // What goes is what the writer owned; the rest was only cut off with it.
        let pruned_set = typed::named_fields(schema, &typed::to_field_set(schema, &pruned.value));
        let merged_set = typed::named_fields(schema, &typed::to_field_set(schema, &converted.value));
        let goes = merged_set.difference(&pruned_set).intersection(&last_named);
        let value = typed::remove_items(schema, &converted.value, &goes);
        let result = Versioned { value: Cow::Owned(value), version: last.api_version.clone() };
        self.convert(&result, &version).map_err(|e| e.to_string())
    }

    /// Puts back into `pruned` what is owned by anybody, the writer's new set included, version by version; the
    /// version at hand comes first.
    fn add_back_owned<'v>(
        &self,
        merged: &Versioned<'v>,
        pruned: Versioned<'v>,
        managers: &Managers,
    ) -> Result<Versioned<'v>, String> {
        let mut owned: BTreeMap<&CompactString, FieldSet> = BTreeMap::new();
        for o in managers.values() {
            let set = owned.entry(&o.api_version).or_default();
            *set = set.union(&o.set);
        }
        let first = pruned.version.clone();
        let mut order: Vec<(&CompactString, FieldSet)> = owned.into_iter().collect();
        order.sort_by_key(|(version, _)| **version != first);
        let (mut merged, mut pruned) = (merged.clone(), pruned);
        for (version, set) in order {
            let convert = |v: &Versioned<'v>, which: &str| match self.convert(v, version) {
                Ok(v) => Ok(Some(v)),
                Err(ConvertError::MissingVersion) => Ok(None),
                Err(e) => Err(format!("failed to convert {which} object at version {version}: {e}")),
            };
            let (Some(m), Some(p)) = (convert(&merged, "merged")?, convert(&pruned, "pruned")?) else { continue };
            let Some(schema) = self.schema(version) else { continue };
            let of = |value: &Value| typed::named_fields(schema, &typed::to_field_set(schema, value));
            let keep = of(&p.value).union(&typed::named_fields(schema, &set));
            let value = typed::remove_items(schema, &m.value, &of(&m.value).difference(&keep));
            pruned = Versioned { value: Cow::Owned(value), version: version.clone() };
            merged = m;
        }
        Ok(pruned)
    }
}

/// The most entries of updaters an object keeps.
pub(super) const MAX_UPDATE_MANAGERS: usize = 10;

/// Merges the oldest updaters of each version into one bucket, `ancient-changes`, until few enough are left.
pub(super) fn cap_update_managers(managers: &mut Managers) {
    let mut updaters: Vec<(i64, ManagerId)> = managers
        .iter()
        .filter(|(id, _)| id.operation == Operation::Update)
        .map(|(id, owned)| (owned.time.unwrap_or(0), id.clone()))
        .collect();
    let mut left = updaters.len();
    if left <= MAX_UPDATE_MANAGERS {
        return;
    }
    updaters.sort();
    let mut first_of_version: BTreeMap<CompactString, ManagerId> = BTreeMap::new();
    for (_, id) in updaters {
        if left <= MAX_UPDATE_MANAGERS {
            return;
        }
        let Some(version) = managers.get(&id).map(|o| o.api_version.clone()) else { continue };
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = ManagerId::new("ancient-changes", Operation::Update, &version, "");
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(first)
        {
            managers.insert(bucket.clone(), owned);
        }
        if id == bucket {
            continue;
        }
        if let Some(merged) = managers.remove(&id) {
            left -= 1;
            if let Some(owned) = managers.get_mut(&bucket) {
                owned.set = merged.set.union(&owned.set);
                // The later of the two times: updaters come oldest first.
                owned.time = merged.time;
            }
        }
    }
}
