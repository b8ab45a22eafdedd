//! One version of a definition, compiled: all that is needed to handle its objects.

use crate::metadata::{self, Malformed};
use crate::rules::{OBJECT_BUDGET, Run};
use crate::scale::Scale;
use crate::structural::Structural;
use crate::{check, defaulting, embedded, lists, prune, stack};
use object::field::{ErrorKind, FieldError, Path};
use object::{Map, Value};

/// A version of a CustomResourceDefinition. Share it: it is immutable, and compiles patterns and rules when they are
/// first needed.
#[derive(Debug, Default)]
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
    /// The scale subresource, if there is one.
    pub scale: Option<Scale>,
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
            scale: version.at(&["subresources", "scale"]).map(Scale::from_value),
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

    /// What happens to an object that admission changed: metadata is brought into shape and defaults come, everything
    /// else stays to be judged.
    pub fn complete(&self, object: &mut Value) -> Result<(), Unfit> {
        metadata::coerce_object(object, Malformed::Refuse).map_err(Unfit)?;
        defaulting::default(&self.schema, object);
        Ok(())
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

    /// What happens to an object that was converted from another version: it shows nothing that the schema does not
    /// know, and no null that it forbids. Its defaults are those of the version that it comes from.
    pub fn coerce(&self, object: &mut Value) {
        // With malformed metadata dropped nothing is left that could be refused.
        let _ = self.prune(object, Malformed::Drop, false);
        prune::drop_nulls(&self.schema, object);
    }

    fn bring_into_shape(&self, object: &mut Value, malformed: Malformed, track: bool) -> Result<Vec<String>, Unfit> {
        let unknown = self.prune(object, malformed, track)?;
        prune::drop_nulls(&self.schema, object);
        defaulting::default(&self.schema, object);
        Ok(if track { unknown } else { Vec::new() })
    }

    fn prune(&self, object: &mut Value, malformed: Malformed, track: bool) -> Result<Vec<String>, Unfit> {
        let mut unknown = metadata::coerce_object(object, malformed).map_err(Unfit)?;
        // Upstream sorts the paths as texts: item 10 comes before item 2.
        let mut pruned = prune::prune(&self.schema, object, track);
        pruned.sort_unstable();
        unknown.append(&mut pruned);
        let embedded =
            stack::with_room(self.schema.depth(), || metadata::coerce_embedded(self.schema.root(), object, malformed));
        let mut embedded = embedded.map_err(|e| Unfit(e.to_string()))?;
        embedded.sort_unstable();
        unknown.append(&mut embedded);
        Ok(unknown)
    }

    /// Checks an object that is to be created.
    pub fn validate(&self, object: &Value) -> Outcome {
        stack::with_room(self.schema.depth(), || self.validate_object(object, None))
    }

    /// Checks what is to take the place of `old`. What was wrong before and did not change is let pass.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Outcome {
        stack::with_room(self.schema.depth(), || self.validate_object(object, Some(old)))
    }

    fn validate_object(&self, object: &Value, old: Option<&Value>) -> Outcome {
        let mut errors = self.type_errors(object);
        if !errors.is_empty() {
            return Outcome { errors, warnings: Vec::new() };
        }
        self.metadata_errors(object, old, &mut errors);
        errors.extend(check::check(self.schema.root(), object, old, &Path::ROOT));
        if let Some(scale) = &self.scale {
            scale.validate_spec(object, &mut errors);
            scale.validate_status(object, &mut errors);
        }
        errors.extend(embedded::validate(self.schema.root(), object, false, &Path::ROOT));
        self.list_errors(object, old, &mut errors);
        self.rules(object, old, errors)
    }

    /// Checks a write of the status subresource. The schema judges `status` alone, rules see all of the object.
    pub fn validate_status_update(&self, object: &Value, old: &Value) -> Outcome {
        stack::with_room(self.schema.depth(), || {
            let mut errors = self.type_errors(object);
            if !errors.is_empty() {
                return Outcome { errors, warnings: Vec::new() };
            }
            self.metadata_errors(object, Some(old), &mut errors);
            if let (Some(node), Some(status)) = (self.schema.root().property("status"), object.get("status")) {
                errors.extend(check::check(node, status, old.get("status"), &Path::ROOT.child("status")));
            }
            if let Some(scale) = &self.scale {
                scale.validate_status(object, &mut errors);
            }
            self.list_errors(object, Some(old), &mut errors);
            self.rules(object, Some(old), errors)
        })
    }

    fn type_errors(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let api_version = format!("{}/{}", self.group, self.version);
        for (key, wanted) in [("kind", &self.kind), ("apiVersion", &api_version)] {
            let value = object.str_at(&[key]).unwrap_or_default();
            if value != wanted {
                errors.push(FieldError::invalid(&Path::ROOT.child(key), value, format!("must be {wanted}")));
            }
        }
        errors
    }

    fn metadata_errors(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        static NONE: Map = Map::new();
        let path = Path::ROOT.child("metadata");
        let meta = object.metadata().unwrap_or(&NONE);
        errors.extend(match old {
            None => object::metadata::validate(meta, self.namespaced, object::names::dns1123_subdomain, &path),
            Some(old) => object::metadata::validate_update(meta, old.metadata().unwrap_or(&NONE), &path),
        });
    }

    /// Repeated items of sets and map lists; of no interest where `old` had such already.
    fn list_errors(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        let root = self.schema.root();
        let found = lists::validate(root, object, &Path::ROOT);
        if found.is_empty() || old.is_some_and(|old| !lists::validate(root, old, &Path::ROOT).is_empty()) {
            return;
        }
        errors.extend(found);
    }

    fn rules(&self, object: &Value, old: Option<&Value>, mut errors: Vec<FieldError>) -> Outcome {
        if !self.schema.has_rules() {
            return Outcome { errors, warnings: Vec::new() };
        }
        if errors.iter().any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::invalid(&Path::ROOT, &Value::Null, detail));
            return Outcome { errors, warnings: Vec::new() };
        }
        let mut run = Run::new(OBJECT_BUDGET);
        run.run(self.schema.root(), object, old, true, &Path::ROOT);
        errors.extend(run.errors);
        Outcome { errors, warnings: run.warnings }
    }
}

/// Whether an error is of a kind that makes it useless, or costly, to run rules.
fn blocks_rules(error: &FieldError) -> bool {
    use ErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}
