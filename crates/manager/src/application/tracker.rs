//! ResourceTrackers: the record of what an application has in the clusters.

use std::collections::HashMap;

use compact_str::CompactString;
use keeper::{Identity, Kind};
use object::{Value, map};

use super::compression::{self, Compression};
use super::names;

/// Which part of an application's life a tracker records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackerKind {
    /// What stays from version to version, until the application is deleted.
    Root,
    /// What belongs to one version.
    #[default]
    Versioned,
    /// The revisions of components.
    ComponentRevision,
}

impl TrackerKind {
    /// The value of `spec.type`.
    pub fn name(self) -> &'static str {
        match self {
            TrackerKind::Root => "root",
            TrackerKind::Versioned => "versioned",
            TrackerKind::ComponentRevision => "component-revision",
        }
    }

    fn read(name: &str) -> Self {
        match name {
            "root" => TrackerKind::Root,
            "component-revision" => TrackerKind::ComponentRevision,
            _ => TrackerKind::Versioned,
        }
    }
}

/// One object that an application has, or had: an entry of `spec.managedResources`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The object.
    pub identity: Identity,
    /// The cluster; empty for the one in which the application is.
    pub cluster: CompactString,
    /// The component that it comes from.
    pub component: CompactString,
    /// The trait that it comes from.
    pub from_trait: CompactString,
    /// The rendered object; `None` where only the metadata is recorded.
    pub raw: Option<Value>,
    /// The object is to be gone.
    pub deleted: bool,
    /// The object stays when the tracker goes.
    pub skip_gc: bool,
}

/// What tells objects apart over all clusters: group, kind, cluster, namespace, name. The version does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceKey {
    /// The object.
    pub object: keeper::ObjectKey,
    /// The cluster; empty for the one in which the application is.
    pub cluster: CompactString,
}

impl Entry {
    /// The entry of a rendered object; `None` if it has no identity. Component, trait and cluster come from its labels.
    pub fn of(object: &Value) -> Option<Self> {
        let label = |key| CompactString::from(object.label(key).unwrap_or_default());
        Some(Entry {
            identity: Identity::of(object)?,
            cluster: local(label(names::CLUSTER)),
            component: label(names::COMPONENT),
            from_trait: label(names::TRAIT_TYPE),
            raw: Some(object.clone()),
            ..Entry::default()
        })
    }

    /// The object as it was rendered; where only the metadata is recorded, what it is and where it comes from.
    pub fn to_object(&self) -> Value {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let labels = map! { names::COMPONENT => &*self.component, names::TRAIT_TYPE => &*self.from_trait };
        let metadata =
            map! { "name" => &*self.identity.name, "namespace" => &*self.identity.namespace, "labels" => labels };
        let kind = &self.identity.kind;
        map! { "apiVersion" => kind.api_version(), "kind" => kind.kind.clone(), "metadata" => metadata }.into()
    }

    /// What tells the object apart from others.
    pub fn key(&self) -> ResourceKey {
        ResourceKey { object: self.identity.object(), cluster: self.cluster.clone() }
    }

    fn read(entry: &Value) -> Option<Self> {
        let text = |key| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let flag = |key| entry.get(key).and_then(Value::as_bool).unwrap_or_default();
        let kind = Kind::new(text("apiVersion"), text("kind"));
        let identity = Identity { kind, namespace: text("namespace").into(), name: text("name").into() };
        (!identity.name.is_empty() && !identity.kind.kind.is_empty()).then(|| Entry {
            identity,
            cluster: local(text("cluster").into()),
            component: text("component").into(),
            from_trait: text("trait").into(),
            raw: entry.get("raw").filter(|raw| !raw.is_null()).cloned(),
            deleted: flag("deleted"),
            skip_gc: flag("skipGC"),
        })
    }

    /// The entry as it is recorded.
    pub fn to_value(&self) -> Value {
        let mut out = map! {
            "apiVersion" => self.identity.kind.api_version(),
            "kind" => self.identity.kind.kind.clone(),
            "name" => self.identity.name.clone(),
        };
        for (key, text) in [
            ("namespace", &self.identity.namespace),
            ("cluster", &self.cluster),
            ("component", &self.component),
            ("trait", &self.from_trait),
        ] {
            if !text.is_empty() {
                out.insert(key, text.clone());
            }
        }
        if let Some(raw) = &self.raw {
            out.insert("raw", raw.clone());
        }
        for (key, flag) in [("deleted", self.deleted), ("skipGC", self.skip_gc)] {
            if flag {
                out.insert(key, true);
            }
        }
        out.into()
    }
}

/// `local` is the name of the cluster in which the application is; entries leave it empty.
fn local(cluster: CompactString) -> CompactString {
    if cluster == "local" { CompactString::default() } else { cluster }
}

/// A ResourceTracker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracker {
    /// Which part of the application's life it records.
    pub kind: TrackerKind,
    /// The application's generation when it was made; 0 for the root.
    pub generation: i64,
    /// What it records, in the order of first record.
    pub entries: Vec<Entry>,
    /// How the entries are stored.
    pub compression: Compression,
    /// Its `metadata`.
    pub metadata: Value,
}

/// The application that a tracker is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

impl Tracker {
    /// An empty root tracker, not yet in any cluster.
    pub fn root(owner: Owner<'_>, compression: Compression) -> Self {
        let name = format!("{}-{}", owner.name, owner.namespace);
        Tracker::new(TrackerKind::Root, &name, 0, owner, compression)
    }

    /// An empty tracker of a version: of a `generation` of the application, which the revision `revision` holds, or of a
    /// `publish_version` that the user gave.
    pub fn versioned(
        owner: Owner<'_>,
        generation: i64,
        revision: &str,
        publish_version: &str,
        compression: Compression,
    ) -> Self {
        let version = if publish_version.is_empty() { format!("v{generation}") } else { publish_version.to_owned() };
        let name = format!("{}-{version}-{}", owner.name, owner.namespace);
        let mut tracker = Tracker::new(TrackerKind::Versioned, &name, generation, owner, compression);
        tracker.metadata.object_entry("labels").insert(names::APP_REVISION, revision);
        if !publish_version.is_empty() {
            tracker.metadata.object_entry("annotations").insert(names::PUBLISH_VERSION, publish_version);
        }
        tracker
    }

    /// The tracker under a name of its own, for the `number`th revision: where what is outside of an application made
    /// another revision of it, the generation is that of the one before.
    #[must_use]
    pub fn renamed(mut self, owner: Owner<'_>, number: i64) -> Self {
        let name = format!("{}-v{}.{number}-{}", owner.name, self.generation, owner.namespace);
        self.metadata.set_at(&["name"], name.into());
        self
    }

    fn new(kind: TrackerKind, name: &str, generation: i64, owner: Owner<'_>, compression: Compression) -> Self {
        let labels = map! {
            names::APP_NAME => owner.name,
            names::APP_NAMESPACE => owner.namespace,
            names::APP_UID => owner.uid,
        };
        let metadata = map! { "name" => name, "labels" => labels, "finalizers" => vec![names::TRACKER_FINALIZER] };
        Tracker { kind, generation, entries: Vec::new(), compression, metadata: metadata.into() }
    }

    /// Reads a tracker.
    ///
    /// # Errors
    ///
    /// If compressed entries cannot be unpacked: then it is unknown what the application has, and nothing may go on.
    pub fn read(object: &Value) -> Result<Self, String> {
        let spec = |key| object.at(&["spec", key]);
        let compression = Compression::read(object.str_at(&["spec", "compression", "type"]).unwrap_or_default())?;
        let packed = object.str_at(&["spec", "compression", "data"]).filter(|data| !data.is_empty());
        let entries = match packed {
            Some(packed) => compression::unpack(compression, packed)?,
            None => spec("managedResources").cloned().unwrap_or_default(),
        };
        let entries = entries.as_array().unwrap_or_default().iter().filter_map(Entry::read).collect();
        Ok(Tracker {
            kind: TrackerKind::read(object.str_at(&["spec", "type"]).unwrap_or_default()),
            generation: spec("applicationGeneration").and_then(Value::as_int).unwrap_or_default(),
            entries,
            compression,
            metadata: object.get("metadata").cloned().unwrap_or_default(),
        })
    }

    /// The tracker as it is stored.
    pub fn to_value(&self) -> Value {
        let entries = Value::Array(self.entries.iter().map(Entry::to_value).collect());
        let mut spec = map! { "type" => self.kind.name(), "applicationGeneration" => self.generation };
        let packed = match self.compression {
            Compression::None => None,
            packed => Some((packed, compression::pack(packed, &entries))),
        };
        match packed {
            None => _ = spec.insert("managedResources", entries),
            Some((kind, data)) => _ = spec.insert("compression", map! { "type" => kind.name(), "data" => data }),
        }
        map! {
            "apiVersion" => "core.oam.dev/v1beta1",
            "kind" => "ResourceTracker",
            "metadata" => self.metadata.clone(),
            "spec" => spec,
        }
        .into()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text(&["name"])
    }

    /// A label; empty if there is none.
    pub fn label(&self, key: &str) -> &str {
        self.text(&["labels", key])
    }

    /// The version that the user gave; empty if none.
    pub fn publish_version(&self) -> &str {
        self.text(&["annotations", names::PUBLISH_VERSION])
    }

    /// Whether it is in a cluster already.
    pub fn is_stored(&self) -> bool {
        !self.text(&["resourceVersion"]).is_empty()
    }

    /// Whether it was told to go.
    pub fn is_deleting(&self) -> bool {
        self.metadata.get("deletionTimestamp").is_some()
    }

    /// Whether its objects were collected, while the record stays for a rollback.
    pub fn is_archived(&self) -> bool {
        self.text(&["annotations", names::ARCHIVED]) == "true"
    }

    fn text(&self, path: &[&str]) -> &str {
        self.metadata.str_at(path).unwrap_or_default()
    }

    /// Records objects that are about to be applied, in place of what was recorded for them. Whether anything changed.
    pub fn record(&mut self, entries: impl IntoIterator<Item = Entry>) -> bool {
        let mut places: HashMap<ResourceKey, usize> =
            self.entries.iter().enumerate().map(|(place, known)| (known.key(), place)).collect();
        let mut is_changed = false;
        for entry in entries {
            match places.get(&entry.key()).and_then(|place| self.entries.get_mut(*place)) {
                Some(known) if *known == entry => {}
                Some(known) => {
                    *known = entry;
                    is_changed = true;
                }
                None => {
                    places.insert(entry.key(), self.entries.len());
                    self.entries.push(entry);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Records that an object is about to be deleted: what was rendered is forgotten. Whether anything changed.
    pub fn record_deletion(&mut self, of: &Entry) -> bool {
        let gone = Entry { deleted: true, ..Entry::default() };
        self.record([Entry { identity: of.identity.clone(), cluster: of.cluster.clone(), ..gone }])
    }
}

/// The trackers of one application, by what they are for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trackers {
    /// What stays until the application is deleted.
    pub root: Option<Tracker>,
    /// What belongs to the version that is declared now.
    pub current: Option<Tracker>,
    /// Earlier versions, oldest first.
    pub history: Vec<Tracker>,
    /// The revisions of components. None are made, but KubeVela may have made some.
    pub component_revisions: Option<Tracker>,
}

impl Trackers {
    /// Sorts the trackers of an application. `revision` and `publish_version` are those that are declared now.
    ///
    /// Revision and tracker have one identity: the current tracker is that of the revision, whatever the generation, so
    /// that edits there and back again find the tracker of before (its objects never were anybody else's).
    ///
    /// # Errors
    ///
    /// If a tracker belongs to another application of the same name.
    pub fn classify(trackers: Vec<Tracker>, uid: &str, revision: &str, publish_version: &str) -> Result<Self, String> {
        let mut all = Trackers::default();
        let is_foreign = |tracker: &&Tracker| !["", uid].contains(&tracker.label(names::APP_UID));
        if let Some(tracker) = trackers.iter().find(is_foreign) {
            return Err(format!(
                "resourcetracker {} exists but controlled by another application (uid: {}), this could probably be cased by some mistakes while garbage collecting outdated resource. Please check this resourcetrakcer and delete it manually",
                tracker.name(),
                tracker.label(names::APP_UID)
            ));
        }
        for tracker in trackers {
            match tracker.kind {
                TrackerKind::Root => all.root = Some(tracker),
                TrackerKind::Versioned => all.history.push(tracker),
                TrackerKind::ComponentRevision => all.component_revisions = Some(tracker),
            }
        }
        all.history.sort_by_key(|tracker| tracker.generation);
        let is_current = |tracker: &Tracker| {
            !tracker.is_deleting()
                && if publish_version.is_empty() {
                    tracker.publish_version().is_empty() && tracker.label(names::APP_REVISION) == revision
                } else {
                    tracker.publish_version() == publish_version
                }
        };
        if let Some(position) = all.history.iter().rposition(is_current) {
            all.current = Some(all.history.remove(position));
        }
        Ok(all)
    }

    /// All of them, history first, then the current one, then the root, then the revisions of components.
    pub fn iter(&self) -> impl Iterator<Item = &Tracker> {
        self.history.iter().chain(&self.current).chain(&self.root).chain(&self.component_revisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    const OWNER: Owner<'static> = Owner { namespace: "default", name: "web", uid: "u1" };

    fn config_map(name: &str, data: &str) -> Value {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default","labels":{{"app.oam.dev/component":"c"}}}},"data":{data}}}"#
        );
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    fn recorded(name: &str) -> Entry {
        Entry::of(&config_map(name, "{}")).unwrap_or_default()
    }

    #[test]
    fn a_tracker_is_read_as_it_is_written_in_every_compression() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut tracker = Tracker::versioned(OWNER, 3, "web-v2", "", compression);
            tracker.record([recorded("a")]);
            tracker.record_deletion(&recorded("b"));
            let stored = tracker.to_value();
            assert_eq!(stored.at(&["spec", "managedResources"]).is_some(), compression == Compression::None);
            assert_eq!(Tracker::read(&stored), Ok(tracker), "{compression:?}");
        }
    }

    #[test]
    fn names_say_what_a_tracker_is_of() {
        assert_eq!(Tracker::root(OWNER, Compression::None).name(), "web-default");
        assert_eq!(Tracker::versioned(OWNER, 3, "web-v2", "", Compression::None).name(), "web-v3-default");
        assert_eq!(Tracker::versioned(OWNER, 3, "web-v2", "beta", Compression::None).name(), "web-beta-default");
    }

    #[test]
    fn an_object_is_recorded_once_whatever_its_version() {
        let mut tracker = Tracker::root(OWNER, Compression::None);
        assert!(tracker.record([recorded("a")]));
        assert!(!tracker.record([recorded("a")]));
        let mut other = recorded("a");
        other.identity.kind.version = "v2".into();
        assert!(tracker.record([other]));
        assert!(tracker.record_deletion(&recorded("a")));
        assert_eq!((tracker.entries.len(), tracker.entries[0].deleted, &tracker.entries[0].raw), (1, true, &None));
    }

    #[test]
    fn edits_there_and_back_find_the_tracker_of_before() {
        let of = |generation, revision: &str| Tracker::versioned(OWNER, generation, revision, "", Compression::None);
        let trackers = vec![of(2, "web-v2"), of(1, "web-v1")];
        // The third generation is the first revision again.
        let classified = Trackers::classify(trackers.clone(), "u1", "web-v1", "").unwrap_or_default();
        assert_eq!(classified.current.as_ref().map(Tracker::name), Some("web-v1-default"));
        assert_eq!(classified.history.iter().map(Tracker::name).collect::<Vec<_>>(), ["web-v2-default"]);
        let published = Trackers::classify(trackers.clone(), "u1", "web-v3", "x").unwrap_or_default();
        assert_eq!((published.current, published.history.len()), (None, 2));
        let foreign = Trackers::classify(trackers, "u2", "web-v1", "");
        assert!(foreign.is_err_and(|error| error.contains("controlled by another application (uid: u1)")));
    }
}
