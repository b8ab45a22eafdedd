//! Field ownership of a kind in one version: who owns what after a write.
//!
//! The rules are those of the crate `fields`; this says with which schema, and what each subresource may own. Nothing is
//! made before the first write of a kind needs it.

mod builtin;

use crate::strategy::Part;
use fields::managed::{self, ConvertError, FieldManager, NoConversion, VersionConverter};
use fields::openapi;
use fields::path::FieldPath;
use fields::schema::TypeSchema;
use fields::set::{FieldFilter, FieldSet};
use object::{Status, Value};
use std::sync::{Arc, OnceLock};

pub use fields::managed::{keep_times_of_noop, manager_name};

/// What field ownership knows about a kind in one version.
#[derive(Debug)]
pub struct Kind {
    source: Source,
    main: OnceLock<FieldManager>,
    status: OnceLock<FieldManager>,
    scale: OnceLock<FieldManager>,
}

enum Source {
    Builtin(&'static kinds::Resource, &'static kinds::Version),
    Custom { definition: Arc<Value>, version: String },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Builtin(resource, version) => write!(f, "{} {}", resource.plural, version.name),
            Source::Custom { version, .. } => write!(f, "custom {version}"),
        }
    }
}

impl Kind {
    /// Of a built-in kind.
    pub fn builtin(resource: &'static kinds::Resource, version: &'static kinds::Version) -> Self {
        Self::new(Source::Builtin(resource, version))
    }

    /// Of a version of a definition.
    pub fn custom(definition: Arc<Value>, version: &str) -> Self {
        Self::new(Source::Custom { definition, version: version.to_owned() })
    }

    fn new(source: Source) -> Self {
        Kind { source, main: OnceLock::new(), status: OnceLock::new(), scale: OnceLock::new() }
    }

    /// Gives a new object to its creator. `now` is in seconds since 1970.
    pub fn created(&self, object: Value, manager: &str, now: i64) -> Value {
        self.manager(Part::Main).on_create(object, manager, now)
    }

    /// Records a write other than an apply; both objects are in the version of the request.
    pub fn updated(&self, part: Part, live: &Value, new: Value, manager: &str, now: i64) -> Value {
        self.manager(part).on_update(live, new, manager, now)
    }

    /// Applies a configuration.
    pub fn applied(
        &self,
        part: Part,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: i64,
    ) -> Result<Value, Status> {
        self.manager(part).apply(live, config, manager, force, now).map_err(Status::from)
    }

    /// The manager of a part. Other subresources than `status` and `scale` share the one of the object with their name.
    fn manager(&self, part: Part) -> std::borrow::Cow<'_, FieldManager> {
        use std::borrow::Cow;
        match part {
            Part::Main => Cow::Borrowed(self.main.get_or_init(|| self.make(Part::Main))),
            Part::Status => Cow::Borrowed(self.status.get_or_init(|| self.make(Part::Status))),
            Part::Scale => Cow::Borrowed(self.scale.get_or_init(|| self.make(Part::Scale))),
            other => Cow::Owned(self.make(other)),
        }
    }

    fn make(&self, part: Part) -> FieldManager {
        let manager = match (&self.source, part) {
            (_, Part::Scale) => scale_manager(),
            (Source::Builtin(resource, version), part) => builtin::manager(resource, version, part),
            (Source::Custom { definition, version }, part) => custom_manager(definition, version, part),
        };
        match part.name() {
            "" => manager,
            name => manager.with_subresource(name),
        }
    }
}

fn custom_manager(definition: &Value, version: &str, part: Part) -> FieldManager {
    let text = |path: &[&str]| definition.str_at(path).unwrap_or_default().to_owned();
    let group = text(&["spec", "group"]);
    let kind =
        managed::Kind { group: group.clone(), version: version.to_owned(), kind: text(&["spec", "names", "kind"]) };
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let preserve = definition.at(&["spec", "preserveUnknownFields"]).and_then(Value::as_bool) == Some(true);
    let name = |v: &Value| format!("{group}/{}", v.str_at(&["name"]).unwrap_or_default());
    let schemas = versions.iter().map(|v| {
        let schema = v.at(&["schema", "openAPIV3Schema"]);
        (name(v), Arc::new(openapi::crd_schema(schema, preserve)))
    });
    let converter = NoConversion { versions: versions.iter().map(name).collect() };
    let field = match part {
        Part::Main => "status",
        _ => "spec",
    };
    // Without a status subresource the status belongs to whoever writes it.
    let reset: Vec<FieldPath> = versions
        .iter()
        .find(|v| v.str_at(&["name"]) == Some(version))
        .filter(|v| v.at(&["subresources", "status"]).is_some())
        .map(|_| FieldPath::fields(&[field]))
        .into_iter()
        .collect();
    let filter = FieldFilter::Exclude(FieldSet::of(&reset));
    let api_version = kind.api_version();
    FieldManager::new(kind, schemas, Arc::new(converter)).with_filters([(api_version, filter)])
}

/// The manager of scales, which are objects of their own.
fn scale_manager() -> FieldManager {
    let kind = managed::Kind { group: "autoscaling".into(), version: "v1".into(), kind: "Scale".into() };
    let schema = builtin::schema("io.k8s.api.autoscaling.v1.Scale");
    FieldManager::new(kind, [("autoscaling/v1".to_owned(), schema)], Arc::new(ScaleConverter))
}

struct ScaleConverter;

impl VersionConverter for ScaleConverter {
    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

type SharedSchema = Arc<TypeSchema>;
