//! ApplicationRevisions: what an application declared, and by which definitions.

use object::{Map, Value, map};

use super::digest;
use super::kinds::APPLICATIONS;
use super::names;

/// A revision, as far as the controller reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Its name, `APP-vN`.
    pub name: String,
    /// N.
    pub number: i64,
    /// The digest of what it holds.
    pub hash: String,
    /// The version that the user gave; empty if none.
    pub publish_version: String,
    /// Whether its workflow succeeded.
    pub succeeded: bool,
    /// The object.
    pub object: Value,
}

impl Revision {
    /// Reads a revision.
    pub fn read(object: Value) -> Option<Self> {
        let number = object.name().rsplit_once("-v")?.1.parse().ok()?;
        Some(Revision {
            name: object.name().to_owned(),
            number,
            hash: object.label(names::REVISION_HASH).unwrap_or_default().to_owned(),
            publish_version: object.annotation(names::PUBLISH_VERSION).unwrap_or_default().to_owned(),
            succeeded: object.at(&["status", "succeeded"]).and_then(Value::as_bool).unwrap_or_default(),
            object,
        })
    }

    /// The specification of the application.
    pub fn spec(&self) -> Value {
        self.object.at(&["spec", "application", "spec"]).cloned().unwrap_or_default()
    }
}

/// What decides whether an application is another revision: its specification, and the Workflow and the `policies` that
/// it names.
pub fn hash(application: &Value, workflow: Option<&Value>, policies: &Map) -> String {
    let spec = application.get("spec").cloned().unwrap_or_default();
    let steps = workflow.and_then(|workflow| workflow.get("steps")).cloned().unwrap_or_default();
    let mut declared = map! { "spec" => spec, "steps" => steps };
    if !policies.is_empty() {
        let said = |policy: &Value| ["type", "properties"].map(|key| policy.get(key).cloned().unwrap_or_default());
        let policies = policies.iter().map(|(name, policy)| (name, Value::Array(said(policy).into())));
        declared.insert("policies", policies.collect::<Map>());
    }
    digest::hex(&declared.into())
}

/// Which revision an application is: a known one, or a new one of this number. Of the known ones (in any order) the
/// latest that holds the same counts, so that edits there and back again find the revision of before. A publishVersion
/// that is known stands for its revision, whatever the application declares.
pub fn find<'a>(revisions: &'a [Revision], hash: &str, publish_version: &str) -> Result<&'a Revision, i64> {
    let is_same = |revision: &&Revision| {
        revision.publish_version == publish_version && (!publish_version.is_empty() || revision.hash == hash)
    };
    let newest = |revision: &&Revision| revision.number;
    let next = || revisions.iter().map(|revision| revision.number).max().unwrap_or_default() + 1;
    revisions.iter().filter(is_same).max_by_key(newest).ok_or_else(next)
}

/// A new revision of an application. `definitions` are the definitions by which it is rendered: `componentDefinitions`
/// and the like, by name.
pub fn new(application: &Value, number: i64, hash: &str, definitions: Map) -> Value {
    let mut snapshot = application.clone();
    snapshot.remove_at(&["status"]);
    for field in ["managedFields", "resourceVersion", "finalizers"] {
        snapshot.remove_at(&["metadata", field]);
    }
    let mut spec = map! { "application" => snapshot };
    for (key, value) in definitions {
        spec.insert(key, value);
    }
    let labels = map! {
        names::APP_NAME => application.name(),
        names::APP_NAMESPACE => application.namespace(),
        names::REVISION_HASH => hash,
    };
    let mut metadata = map! {
        "name" => format!("{}-v{number}", application.name()),
        "namespace" => application.namespace(),
        "labels" => labels,
        "ownerReferences" => vec![map! {
            "apiVersion" => APPLICATIONS.api_version(),
            "kind" => "Application",
            "name" => application.name(),
            "uid" => application.meta_str("uid"),
            "controller" => true,
        }],
    };
    if let Some(version) = application.annotation(names::PUBLISH_VERSION).filter(|version| !version.is_empty()) {
        metadata.insert("annotations", map! { names::PUBLISH_VERSION => version });
    }
    map! {
        "apiVersion" => APPLICATIONS.api_version(),
        "kind" => "ApplicationRevision",
        "metadata" => metadata,
        "spec" => spec,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: i64, hash: &str, publish_version: &str) -> Revision {
        Revision {
            name: format!("app-v{number}"),
            number,
            hash: hash.into(),
            publish_version: publish_version.into(),
            succeeded: true,
            object: Value::Null,
        }
    }

    #[test]
    fn the_revision_of_before_is_found_again() {
        let known = [revision(1, "a", ""), revision(2, "b", ""), revision(3, "a", "x")];
        for (hash, publish_version, expected) in [
            ("a", "", Ok("app-v1")),
            ("b", "", Ok("app-v2")),
            ("c", "", Err(4)),
            // A published version is what it was, whatever is declared now.
            ("c", "x", Ok("app-v3")),
            ("a", "y", Err(4)),
        ] {
            let found = find(&known, hash, publish_version).map(|revision| revision.name.as_str());
            assert_eq!(found, expected, "{hash} {publish_version}");
        }
        assert_eq!(find(&[], "a", ""), Err(1));
    }
}
