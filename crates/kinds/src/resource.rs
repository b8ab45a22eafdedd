//! What the catalogue says of one built-in resource; its rules for writing are a [`Strategy`].

mod strategy;

use crate::definitions::{Definition, definitions};
use crate::expressions::{Compiler, Unchecked};
use crate::read::object_mut;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::names::{self, NameCheck};
use object::{Map, Value, metadata};

pub(crate) use strategy::METADATA_OF_OTHERS;
pub use strategy::{CompiledChecks, Context, Generation, MetadataChecks, Parts, Propagation, Strategy, User};

/// A built-in resource of one group, in all its versions. Resources of two groups may share their storage
/// (`events`): see [`Storage`].
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The served versions, the preferred one first.
    pub versions: &'static [Version],
    /// The kind, `Pod`.
    pub kind: &'static str,
    /// The name in URLs, `pods`.
    pub plural: &'static str,
    /// Short names, `po`.
    pub short_names: &'static [&'static str],
    /// Categories, `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs in the order of the alphabet.
    pub verbs: &'static [&'static str],
    /// The subresources in the order of their names.
    pub subresources: &'static [Subresource],
    /// Where objects are kept; nothing for resources that keep none (reviews, bindings).
    pub storage: Option<Storage>,
    /// The columns of tables, without those of the object itself.
    pub columns: &'static [Column],
    /// The cells of one object's row, at least as many as there are columns.
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// Whether what an object stands for has come to its end: what its row says of that.
    pub ended: fn(&Value) -> Option<Ended>,
    /// What tables of many objects are sorted by, before their names.
    pub rank: fn(&Value) -> i64,
    /// Field selectors beside `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [SelectableField],
    /// Rules for writing.
    pub strategy: Strategy,
}

/// A served version of a resource.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The version, `v1`.
    pub name: &'static str,
    /// The name of its definition.
    pub definition: &'static str,
    /// Fills in defaults, after decoding and before conversion.
    pub default: fn(&mut Value),
    /// Says why an object cannot be converted, in Go's words; `Ok` where it can.
    pub readable: fn(&Value) -> Result<(), String>,
    /// The warning for each request to this version; empty where it is not deprecated.
    pub deprecation: &'static str,
    /// Conversion to and from the version that is stored; nothing where this is the one.
    pub convert: Option<Conversion>,
}

/// Conversion of an object between a served version and the stored one. `apiVersion` and `kind` are converted too.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// From the served version to the stored one.
    pub to_stored: fn(&mut Value),
    /// From the stored version to the served one.
    pub from_stored: fn(&mut Value),
}

/// Where and as what objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The group of the stored form.
    pub group: &'static str,
    /// The version of the stored form.
    pub version: &'static str,
    /// The name below which they are kept, shared by resources that are one.
    pub resource: &'static str,
    /// After how many seconds an object expires; 0 for never.
    pub expires: u64,
}

/// A subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the URL, `status`.
    pub name: &'static str,
    /// The group of its kind, where it differs from the resource's.
    pub group: &'static str,
    /// The version of its kind, where it differs from the resource's; empty otherwise.
    pub version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// The verbs in the order of the alphabet.
    pub verbs: &'static [&'static str],
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer`, `boolean`.
    pub ty: &'static str,
    /// `name` for the column that names the object, else empty.
    pub format: &'static str,
    /// 0 for columns that are always shown, 1 for those of wide output.
    pub priority: i32,
}

/// What the condition `Completed` of a table's row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: &'static str,
}

/// A field that selectors can name.
#[derive(Clone, Copy, Debug)]
pub struct SelectableField {
    /// The name in selectors, `spec.nodeName`.
    pub name: &'static str,
    /// Its value as text; of the stored form.
    pub value: fn(&Value) -> String,
}

/// The verbs of a resource that has them all.
pub const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of `status` and its like.
pub const CHANGE_VERBS: &[&str] = &["get", "patch", "update"];

impl Version {
    /// A version that is stored as it is, without defaults.
    pub const fn stored(name: &'static str, definition: &'static str) -> Self {
        Version { name, definition, default: |_| {}, readable: |_| Ok(()), deprecation: "", convert: None }
    }

    /// This version with a function that fills in defaults.
    pub const fn with_default(self, default: fn(&mut Value)) -> Self {
        Version { default, ..self }
    }

    /// This version with a function that says what cannot be converted.
    pub const fn with_check(self, readable: fn(&Value) -> Result<(), String>) -> Self {
        Version { readable, ..self }
    }

    /// This version with a warning for whoever uses it.
    pub const fn deprecated(self, deprecation: &'static str) -> Self {
        Version { deprecation, ..self }
    }

    /// The definition.
    pub fn definition(&self) -> Option<&'static Definition> {
        definitions().get(self.definition)
    }
}

impl Column {
    /// A column that is always shown.
    pub const fn new(name: &'static str, ty: &'static str) -> Self {
        Column { name, ty, format: "", priority: 0 }
    }

    /// A column of wide output.
    pub const fn wide(name: &'static str, ty: &'static str) -> Self {
        Column { priority: 1, ..Column::new(name, ty) }
    }

    /// The column `Name`.
    pub const NAME: Column = Column { format: "name", ..Column::new("Name", "string") };
    /// The column `Created At` of kinds without columns of their own.
    pub const CREATED_AT: Column = Column::new("Created At", "date");
    /// The column `Age`.
    pub const AGE: Column = Column::new("Age", "string");
}

impl Subresource {
    /// A subresource of the resource's own group and version.
    pub const fn new(name: &'static str, kind: &'static str, verbs: &'static [&'static str]) -> Self {
        Subresource { name, group: "", version: "", kind, verbs }
    }

    /// `status`
    pub const fn status(kind: &'static str) -> Self {
        Self::new("status", kind, CHANGE_VERBS)
    }

    /// `scale`
    pub const SCALE: Subresource =
        Subresource { name: "scale", group: "autoscaling", version: "v1", kind: "Scale", verbs: CHANGE_VERBS };
}

impl Resource {
    /// A resource with every verb that is kept in its own group's `versions[0]`, with the columns `Name` and `Age`.
    pub const fn new(
        group: &'static str,
        kind: &'static str,
        plural: &'static str,
        versions: &'static [Version],
    ) -> Self {
        Resource {
            group,
            versions,
            kind,
            plural,
            short_names: &[],
            categories: &[],
            namespaced: true,
            verbs: ALL_VERBS,
            subresources: &[],
            storage: Some(Storage { group, version: versions[0].name, resource: plural, expires: 0 }),
            columns: &[Column::NAME, Column::AGE],
            cells: crate::table::name_and_age,
            ended: |_| None,
            rank: |_| 0,
            selectable: &[],
            strategy: Strategy::PLAIN,
        }
    }

    /// A resource that only answers what is posted to it.
    pub const fn review(
        group: &'static str,
        kind: &'static str,
        plural: &'static str,
        versions: &'static [Version],
    ) -> Self {
        Resource { verbs: &["create"], storage: None, ..Resource::new(group, kind, plural, versions) }
    }

    /// The singular: the kind in lower case.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// The kind of lists.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The served version of a name.
    pub fn version(&self, name: &str) -> Option<&'static Version> {
        self.versions.iter().find(|v| v.name == name)
    }

    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// The definition of the stored form.
    pub fn stored_definition(&self) -> Option<&'static Definition> {
        let storage = self.storage?;
        definitions().of_kind(storage.group, storage.version, self.kind)
    }

    /// Makes a decoded object ready for a create: drops what a client may not set, sets the generation. The object has
    /// its namespace, name, uid and time of creation by then.
    pub fn prepare_create(&self, object: &mut Value, context: &Context<'_>) {
        let zero = Value::Object(self.stored_definition().map(Definition::zero).unwrap_or_default());
        for part in self.strategy.reset.iter().filter(|_| self.strategy.drops_on_create) {
            put(object, part, zero.at(part).cloned());
        }
        let meta = object.metadata_mut();
        if matches!(self.strategy.generation, Generation::Counts(_) | Generation::One) {
            meta.insert("generation", 1);
        }
        self.drop_disabled(object, &Value::Null);
        (self.strategy.prepare_create)(object, context);
    }

    /// Drops what no feature stands for, from a template too.
    fn drop_disabled(&self, object: &mut Value, old: &Value) {
        (self.strategy.drop_disabled)(object, old);
        if !self.strategy.template.is_empty()
            && let Some(template) = object_mut(object, self.strategy.template)
        {
            crate::pod::drop_disabled(template, old.at(self.strategy.template).unwrap_or(&Value::Null));
        }
    }

    /// Makes a decoded object ready for an update: restores what a client may not change, moves the generation.
    pub fn prepare_update(&self, object: &mut Value, old: &Value, context: &Context<'_>) {
        restore(object, old, self.strategy.reset);
        self.drop_disabled(object, old);
        (self.strategy.prepare_update)(object, old, context);
        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int);
        let changed = match self.strategy.generation {
            Generation::Counts(parts) | Generation::Later(parts) => {
                parts.iter().any(|part| object.at(part) != old.at(part))
            }
            Generation::None | Generation::One => false,
        };
        let meta = object.metadata_mut();
        match (generation, changed) {
            (generation, true) => {
                meta.insert("generation", generation.unwrap_or(0) + 1);
            }
            (Some(generation), false) => {
                meta.insert("generation", generation);
            }
            (None, false) => {
                meta.remove("generation");
            }
        }
    }

    /// Makes a decoded object ready for an update through `/status`.
    pub fn prepare_status(&self, object: &mut Value, old: &Value, context: &Context<'_>) {
        for part in self.strategy.reset_status {
            match part {
                &["metadata"] => restore(object, old, METADATA_OF_OTHERS),
                part => put(object, part, old.at(part).cloned()),
            }
        }
        let generation = old.at(&["metadata", "generation"]).cloned();
        put(object, &["metadata", "generation"], generation);
        (self.strategy.prepare_status)(object, old, context);
    }

    /// Gives a checked object the form that is stored and served, see [`crate::finish`]: the last step of each write.
    pub fn finish(&self, object: &mut Value) {
        if let Some(definition) = self.stored_definition() {
            crate::finish(definition, object);
        }
    }

    /// Checks an object to be created, metadata first, without its expressions.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.validate_with(object, &mut Unchecked)
    }

    /// Checks an object to be created, metadata first. `compiler` says which expressions are right.
    pub fn validate_with(&self, object: &Value, compiler: &mut dyn Compiler) -> Vec<FieldError> {
        let own = match self.strategy.compiled {
            Some(checks) => checks(object, None, compiler),
            None => (self.strategy.validate)(object),
        };
        if !self.strategy.metadata.create {
            return if own.is_empty() { self.validate_new_metadata(object, names::path_segment) } else { own };
        }
        let mut errors = self.validate_new_metadata(object, self.strategy.name);
        errors.extend(self.validate_finalizers(object));
        errors.extend(own);
        errors
    }

    /// Checks an updated object against the old one, metadata first, without its expressions.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.validate_update_with(object, old, &mut Unchecked)
    }

    /// Checks an updated object against the old one, metadata first. `compiler` says which expressions are right.
    pub fn validate_update_with(&self, object: &Value, old: &Value, compiler: &mut dyn Compiler) -> Vec<FieldError> {
        let checks = self.strategy.metadata;
        let mut errors = Vec::new();
        for _ in 0..checks.anew {
            errors.extend(self.validate_new_metadata(object, self.strategy.name));
            errors.extend(self.validate_finalizers(object));
        }
        if checks.update {
            errors.extend(self.validate_update_metadata(object, old));
            errors.extend(self.validate_finalizers(object));
        }
        if let Some(checks) = self.strategy.compiled {
            errors.extend(checks(object, Some(old), compiler));
            return errors;
        }
        errors.extend((self.strategy.validate_update)(object, old));
        errors
    }

    /// Finalizers without a domain are those that Kubernetes itself knows. The groups that live outside upstream's main
    /// program do not ask.
    fn validate_finalizers(&self, object: &Value) -> Vec<FieldError> {
        const LENIENT: [&str; 3] = ["admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"];
        let finalizers = object.meta_list("finalizers");
        let mut errors = Vec::new();
        if finalizers.is_empty() || LENIENT.contains(&self.group) {
            return errors;
        }
        let metadata = Path::ROOT.child("metadata");
        let path = metadata.child("finalizers");
        for (i, finalizer) in finalizers.into_iter().enumerate() {
            crate::finalize::check_domain(finalizer, &path.index(i), &mut errors);
        }
        errors
    }

    /// Checks an update through `/status`, metadata first.
    pub fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.strategy.metadata.status {
            errors.extend(self.validate_update_metadata(object, old));
        }
        errors.extend((self.strategy.validate_status)(object, old));
        errors
    }

    fn validate_new_metadata(&self, object: &Value, name: NameCheck) -> Vec<FieldError> {
        let empty = Map::new();
        let meta = object.metadata().unwrap_or(&empty);
        metadata::validate(meta, self.namespaced, name, &Path::ROOT.child("metadata"))
    }

    fn validate_update_metadata(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let empty = Map::new();
        let (meta, old) = (object.metadata().unwrap_or(&empty), old.metadata().unwrap_or(&empty));
        metadata::validate_update(meta, old, &Path::ROOT.child("metadata"))
    }
}

/// Gives an object the parts of another; what that one has not goes.
pub(crate) fn restore(object: &mut Value, from: &Value, parts: Parts) {
    for part in parts {
        put(object, part, from.at(part).cloned());
    }
}

fn put(object: &mut Value, part: &[&str], value: Option<Value>) {
    match value {
        Some(value) => object.set_at(part, value),
        None => {
            object.remove_at(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_status_changes_no_metadata_but_owners() {
        let (resource, _) = crate::find("storage.k8s.io", "v1", "volumeattachments").unwrap();
        let value = |text: &str| json::parse(text.as_bytes()).unwrap();
        let old = value(r#"{"metadata":{"name":"a","labels":{"a":"1"},"managedFields":[]},"spec":{"attacher":"x"}}"#);
        let mut new = value(
            r#"{"metadata":{"name":"a","labels":{"a":"2"},"finalizers":["f/f"],"managedFields":[{"manager":"m"}]},
                "status":{"attached":true}}"#,
        );
        let expected = value(
            r#"{"metadata":{"name":"a","labels":{"a":"1"},"managedFields":[{"manager":"m"}]},"spec":{"attacher":"x"},
                "status":{"attached":true}}"#,
        );
        resource.prepare_status(&mut new, &old, &Context { now: Timestamp::UNIX_EPOCH, user: None });
        assert_eq!(new, expected);
    }
}
