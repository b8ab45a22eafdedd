//! Which object is meant.

use std::fmt;

use compact_str::CompactString;
use object::Value;

/// A kind in a version of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The group; empty for the core group.
    pub group: CompactString,
    /// The version.
    pub version: CompactString,
    /// The kind.
    pub kind: CompactString,
}

impl Kind {
    /// The kind `kind` of the version `api_version`, which is `group/version`, or `version` alone in the core group.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Kind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// An object's kind, namespace (empty for cluster-scoped objects) and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The kind, in the version in which the object is written.
    pub kind: Kind,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: CompactString,
    /// The name.
    pub name: CompactString,
}

impl Identity {
    /// The identity that an object states; `None` without `apiVersion`, `kind` or `metadata.name`.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |key| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let kind = Kind::new(text("apiVersion")?, text("kind")?);
        let name = object.name();
        (!name.is_empty()).then(|| Identity { kind, namespace: object.namespace().into(), name: name.into() })
    }

    /// The object, whatever the version.
    pub fn object(&self) -> ObjectKey {
        ObjectKey {
            group: self.kind.group.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// An object with nothing but this identity.
    pub fn to_object(&self) -> Value {
        let mut object = Value::Object(object::Map::new());
        object.set_at(&["apiVersion"], self.kind.api_version().into());
        object.set_at(&["kind"], self.kind.kind.clone().into());
        object.set_at(&["metadata", "name"], self.name.clone().into());
        if !self.namespace.is_empty() {
            object.set_at(&["metadata", "namespace"], self.namespace.clone().into());
        }
        object
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, Named { namespace: &self.namespace, name: &self.name })
    }
}

/// An object, whatever the version in which it is written: two items with one key are about one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The group.
    pub group: CompactString,
    /// The kind.
    pub kind: CompactString,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: CompactString,
    /// The name.
    pub name: CompactString,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        write!(f, " {}", Named { namespace: &self.namespace, name: &self.name })
    }
}

struct Named<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn an_object_says_who_it_is() {
        let text = br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"a"}}"#;
        let object = json::parse(text).unwrap_or_default();
        let identity = Identity::of(&object).unwrap_or_default();
        assert_eq!(identity.to_string(), "apps/v1/Deployment a/web");
        assert_eq!(identity.object().to_string(), "Deployment.apps a/web");
        assert_eq!(identity.to_object(), object);
        for nameless in [r#"{"kind":"A","metadata":{"name":"a"}}"#, r#"{"apiVersion":"v1","kind":"A"}"#] {
            assert_eq!(Identity::of(&json::parse(nameless.as_bytes()).unwrap_or_default()), None, "{nameless}");
        }
    }
}
