//! Revisions of definitions: what each version of a definition was, for Applications that name one (`web@v2`).

use std::collections::BTreeSet;

use object::{Value, map};

use super::definition_kinds::DefinitionKind;
use super::kinds::DEFINITION_REVISIONS;
use super::{digest, names};

/// A DefinitionRevision, as far as it counts here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionRevision {
    /// Its name.
    pub name: String,
    /// Its number: the later, the higher.
    pub number: i64,
    /// A digest of the definition's specification.
    pub hash: String,
}

impl DefinitionRevision {
    /// What an object says.
    pub(super) fn read(revision: &Value) -> Self {
        DefinitionRevision {
            name: revision.name().to_owned(),
            number: revision.at(&["spec", "revision"]).and_then(Value::as_int).unwrap_or_default(),
            hash: revision.str_at(&["spec", "revisionHash"]).unwrap_or_default().to_owned(),
        }
    }
}

/// Which revision a definition is: a known one, or a new one that has to be made. A definition that names its version
/// (`spec.version`, or the annotation) is the revision of that version; any other is the latest revision, or a new one if
/// that holds something else.
///
/// # Errors
///
/// If the version that the definition names holds something else, or it names two.
pub fn revision_of(definition: &Value, known: &[DefinitionRevision]) -> Result<(DefinitionRevision, bool), String> {
    let hash = digest::hex(definition.get("spec").unwrap_or(&Value::Null));
    let named = definition.annotation(names::DEFINITION_REVISION).filter(|name| !name.is_empty());
    let version = definition.str_at(&["spec", "version"]).filter(|version| !version.is_empty());
    let version = match (named, version) {
        (Some(_), Some(_)) => {
            return Err(format!("spec.version and the annotation {} exclude each other", names::DEFINITION_REVISION));
        }
        (named, version) => named.or(version),
    };
    let next = known.iter().map(|known| known.number).max().unwrap_or_default() + 1;
    let Some(version) = version else {
        return Ok(match known.iter().max_by_key(|known| known.number) {
            Some(latest) if latest.hash == hash => (latest.clone(), false),
            _ => (DefinitionRevision { name: format!("{}-v{next}", definition.name()), number: next, hash }, true),
        });
    };
    let name = revision_name(definition.name(), version);
    match known.iter().find(|known| known.name == name) {
        Some(same) if same.hash == hash => Ok((same.clone(), false)),
        Some(_) => Err(format!(
            "DefinitionRevision {name} exists and holds something else; give what was changed a version of its own"
        )),
        None => Ok((DefinitionRevision { name, number: next, hash }, true)),
    }
}

/// The name of a definition's revision, for a version with or without the leading `v`.
pub fn revision_name(definition: &str, version: &str) -> String {
    format!("{definition}-v{}", version.strip_prefix('v').unwrap_or(version))
}

/// The name of the newest of a definition's revisions whose version (`1.2.3`) begins with another (`1`, or `v1.2`).
pub fn newest_in_range<'a>(definition: &str, version: &str, names: &[&'a str]) -> Option<&'a str> {
    let numbers = |version: &str| -> Option<Vec<u64>> { version.split('.').map(|part| part.parse().ok()).collect() };
    let wanted = numbers(version.strip_prefix('v').unwrap_or(version))?;
    let prefix = revision_name(definition, "");
    let version_of = |name: &&str| numbers(name.strip_prefix(prefix.as_str())?).filter(|version| version.len() == 3);
    let fits = |name: &&&str| version_of(name).is_some_and(|version| version.starts_with(&wanted));
    names.iter().filter(fits).max_by_key(|name| version_of(name)).copied()
}

/// The revisions that are too many: the oldest that are neither the current one nor used.
pub fn surplus<'a>(
    known: &'a [DefinitionRevision],
    current: &str,
    limit: usize,
    used: &BTreeSet<String>,
) -> Vec<&'a str> {
    let mut spare: Vec<&DefinitionRevision> =
        known.iter().filter(|known| known.name != current && !used.contains(&known.name)).collect();
    spare.sort_by_key(|known| known.number);
    let excess = spare.len().saturating_sub(limit);
    spare.into_iter().take(excess).map(|known| known.name.as_str()).collect()
}

/// The object of a revision of a definition.
pub(super) fn new(of: DefinitionKind, definition: &Value, revision: &DefinitionRevision) -> Value {
    let mut held = definition.clone();
    held.remove_at(&["status"]);
    for field in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"] {
        held.remove_at(&["metadata", field]);
    }
    let resource = of.resource();
    let owner = map! {
        "apiVersion" => resource.api_version(),
        "kind" => resource.kind.to_string(),
        "name" => definition.name(),
        "uid" => definition.meta_str("uid"),
        "controller" => true,
    };
    map! {
        "apiVersion" => DEFINITION_REVISIONS.api_version(),
        "kind" => DEFINITION_REVISIONS.kind.to_string(),
        "metadata" => map! {
            "name" => revision.name.as_str(),
            "namespace" => definition.namespace(),
            "labels" => map! { of.label() => definition.name() },
            "ownerReferences" => vec![owner],
        },
        "spec" => map! {
            "revision" => revision.number,
            "revisionHash" => revision.hash.as_str(),
            "definitionType" => of.name(),
            of.member() => held,
        },
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn definition(metadata: &str, spec: &str) -> Value {
        let text = format!(r#"{{"metadata":{{"name":"web"{metadata}}},"spec":{spec}}}"#);
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    fn known(name: &str, number: i64, spec: &str) -> DefinitionRevision {
        let spec = json::parse(spec.as_bytes()).unwrap_or_default();
        DefinitionRevision { name: name.to_owned(), number, hash: digest::hex(&spec) }
    }

    #[test]
    fn a_definition_is_the_revision_that_holds_it() {
        let annotated = r#","annotations":{"definitionrevision.oam.dev/name":"stable"}"#;
        let versioned = r#"{"a":1,"version":"1.0.0"}"#;
        let all = [
            known("web-v1", 1, r#"{"a":1}"#),
            known("web-v2", 2, r#"{"a":2}"#),
            known("web-vstable", 3, r#"{"a":1}"#),
            known("web-v1.0.0", 4, r#"{"a":0,"version":"1.0.0"}"#),
        ];
        for (metadata, spec, count, expected) in [
            ("", r#"{"a":1}"#, 0, Ok(("web-v1", true))),
            ("", r#"{"a":2}"#, 2, Ok(("web-v2", false))),
            // There and back again is a new version: the latest is what counts.
            ("", r#"{"a":1}"#, 2, Ok(("web-v3", true))),
            (annotated, r#"{"a":1}"#, 2, Ok(("web-vstable", true))),
            (annotated, r#"{"a":1}"#, 3, Ok(("web-vstable", false))),
            (annotated, r#"{"a":2}"#, 3, Err("DefinitionRevision web-vstable exists and holds something else")),
            ("", versioned, 2, Ok(("web-v1.0.0", true))),
            ("", versioned, 4, Err("DefinitionRevision web-v1.0.0 exists and holds something else")),
            (annotated, versioned, 0, Err("spec.version and the annotation")),
        ] {
            let found = revision_of(&definition(metadata, spec), &all[..count]);
            match expected {
                Ok((name, is_new)) => {
                    let found = found.as_ref().map(|(revision, is_new)| (revision.name.as_str(), *is_new));
                    assert_eq!(found, Ok((name, is_new)), "{metadata} {spec} {count}");
                }
                Err(why) => assert!(found.is_err_and(|error| error.starts_with(why)), "{metadata} {spec} {count}"),
            }
        }
    }

    #[test]
    fn a_range_is_its_newest_version() {
        let names = ["web-v1", "web-v1.2.0", "web-v1.10.0", "web-v2.0.1", "web-vstable", "website-v1.99.0"];
        for (version, expected) in [
            ("1", Some("web-v1.10.0")),
            ("v1", Some("web-v1.10.0")),
            ("1.2", Some("web-v1.2.0")),
            ("v2", Some("web-v2.0.1")),
            ("3", None),
            ("stable", None),
            ("", None),
        ] {
            assert_eq!(newest_in_range("web", version, &names), expected, "{version}");
        }
    }

    #[test]
    fn what_is_used_stays() {
        let all: Vec<DefinitionRevision> =
            (1..=5).map(|number| known(&format!("web-v{number}"), number, "{}")).collect();
        let used = BTreeSet::from(["web-v1".to_owned()]);
        assert_eq!(surplus(&all, "web-v5", 1, &used), ["web-v2", "web-v3"]);
        assert_eq!(surplus(&all, "web-v5", 20, &used), Vec::<&str>::new());
    }
}
