//! Field ownership of a kind in one version: who owns what after a write.
//!
//! The rules are those of the crate `fields`; this says with which schema, and what each subresource may own. Nothing is
//! made before the first write of a kind needs it.

mod builtin;
mod conversions;

pub use conversions::Conversions;

use crate::catalogue::{Definition, Resource};
use crate::conversion::Converter;
use crate::strategy::Part;
use fields::managed::{self, ConvertError, FieldManager, NoConversion, ScalePaths, VersionConverter};
use fields::openapi;
use fields::path::{FieldPath, PathElement};
use fields::schema::TypeSchema;
use fields::set::{FieldFilter, FieldSet};
use object::{Status, Value};
use std::sync::{Arc, OnceLock};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

pub use fields::managed::{keep_times_of_noop, manager_name, restore_invalid_entries};

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
    Custom { definition: Arc<Definition>, version: String, converter: Arc<dyn Converter> },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Builtin(resource, version) => write!(f, "{} {}", resource.plural, version.name),
            Source::Custom { version, .. } => write!(f, "custom {version}"),
        }
    }
}

/// The merge schema of a kind: of a resource's own objects, or of what one of its subresources takes, such as a `Scale`.
pub(crate) fn schema_of(
    resource: Option<&Arc<Resource>>,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<SharedSchema> {
    if let Some(definition) = kinds::definitions().of_kind(group, version, kind) {
        return Some(builtin::schema(definition.name));
    }
    let own = |r: &&Arc<Resource>| r.group == group && r.version == version && r.kind == kind;
    let manager = resource.filter(own)?.strategy.ownership().manager(Part::Main).into_owned();
    manager.schema().cloned().map(Arc::new)
}

impl Kind {
    /// Of a built-in kind.
    pub fn builtin(resource: &'static kinds::Resource, version: &'static kinds::Version) -> Self {
        Self::new(Source::Builtin(resource, version))
    }

    /// Of a version of a definition. `converter` is asked where the definition wants a webhook to convert.
    pub fn custom(definition: Arc<Definition>, version: &str, converter: Arc<dyn Converter>) -> Self {
        Self::new(Source::Custom { definition, version: version.to_owned(), converter })
    }

    fn new(source: Source) -> Self {
        Kind { source, main: OnceLock::new(), status: OnceLock::new(), scale: OnceLock::new() }
    }

    /// Gives a new object to its creator. `now` is in seconds since 1970.
    pub fn created(&self, mut object: Value, manager: &str, now: i64) -> Value {
        self.drop_empty(&mut object);
        self.manager(Part::Main).on_create(object, manager, now)
    }

    /// Takes out what Go would not write; definitions' objects have all that was sent.
    fn drop_empty(&self, object: &mut Value) {
        if let Source::Builtin(_, version) = &self.source
            && let Some(definition) = version.definition()
        {
            kinds::drop_empty(definition, object);
        }
    }

    /// Where a webhook converts the versions: what one write needs of it.
    pub fn conversions(&self) -> Option<Arc<Conversions>> {
        let Source::Custom { definition, .. } = &self.source else { return None };
        if !definition.converts {
            return None;
        }
        let names = definition.versions().iter().map(|v| format!("{}/{}", v.group, v.version));
        Some(Arc::new(Conversions::new(names.collect())))
    }

    /// Records a write other than an apply; both objects are in the version of the request.
    pub fn updated(
        &self,
        part: Part,
        live: &Value,
        mut new: Value,
        manager: &str,
        now: i64,
        conversions: Option<&Arc<Conversions>>,
    ) -> Value {
        self.drop_empty(&mut new);
        if part == Part::Scale {
            return self.scaled(live, new, |scales, old, new| scales.on_update(old, new, manager, now));
        }
        self.converting(part, conversions).on_update(live, new, manager, now)
    }

    /// The owners of a scale, as its `managedFields`; `object` is what it scales.
    pub fn owners_of_scale(&self, object: &Value) -> Value {
        let managers = managed::decode_managers(object).unwrap_or_default();
        managed::encode_managers(&self.scale_paths().to_scale(&managers))
    }

    /// Gives an object the owners that its scale has after a write of the scale.
    pub fn own_by_scale(&self, object: &mut Value, scale: &Value) {
        let managers = managed::decode_managers(object).unwrap_or_default();
        let scale = managed::decode_managers(scale).unwrap_or_default();
        managed::set_managers(object, &self.scale_paths().to_object(&managers, &scale));
    }

    /// A write of an object that was one of its scale.
    fn scaled(&self, live: &Value, mut new: Value, write: impl FnOnce(&FieldManager, &Value, Value) -> Value) -> Value {
        let paths = self.scale_paths();
        let path = paths.replicas.get(&paths.api_version).and_then(Option::as_ref);
        let scale = |object: &Value| {
            let replicas = path.and_then(|path| at(object, path)).cloned().unwrap_or_default();
            let mut scale = Value::Object(object::map! {
                "apiVersion" => "autoscaling/v1", "kind" => "Scale", "status" => object::map! { "replicas" => 0 },
                "spec" => object::map! { "replicas" => replicas },
            });
            for key in ["name", "namespace", "uid"] {
                scale.metadata_mut().insert(key, object.meta_str(key));
            }
            scale
        };
        let (mut before, after) = (scale(live), scale(&new));
        before.metadata_mut().insert("managedFields", self.owners_of_scale(live));
        let written = write(&self.manager(Part::Scale), &before, after);
        if let Some(entries) = live.at(&["metadata", "managedFields"]) {
            new.metadata_mut().insert("managedFields", entries.clone());
        }
        self.own_by_scale(&mut new, &written);
        new
    }

    fn scale_paths(&self) -> ScalePaths {
        match &self.source {
            Source::Builtin(resource, version) => {
                let name = |v: &kinds::Version| crate::catalogue::api_version(resource.group, v.name);
                let path = Some(FieldPath::fields(&["spec", "replicas"]));
                let replicas = resource.versions.iter().map(|v| (name(v), path.clone())).collect();
                ScalePaths { api_version: name(version), replicas }
            }
            Source::Custom { definition, version, .. } => {
                let definition = definition.object();
                let group = definition.str_at(&["spec", "group"]).unwrap_or_default();
                let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
                let replicas = versions.iter().filter_map(|v| {
                    let path = v.str_at(&["subresources", "scale", "specReplicasPath"]).map(|path| {
                        let names: Vec<&str> = path.split('.').filter(|n| !n.is_empty()).collect();
                        FieldPath::fields(&names)
                    });
                    Some((format!("{group}/{}", v.str_at(&["name"])?), path))
                });
                ScalePaths { api_version: format!("{group}/{version}"), replicas: replicas.collect() }
            }
        }
    }

    /// Applies a configuration.
    #[expect(clippy::too_many_arguments, reason = "what an apply is made of")]
    pub fn applied(
        &self,
        part: Part,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: i64,
        conversions: Option<&Arc<Conversions>>,
    ) -> Result<Value, Status> {
        self.converting(part, conversions).apply(live, config, manager, force, now).map_err(Status::from)
    }

    fn converting(&self, part: Part, conversions: Option<&Arc<Conversions>>) -> std::borrow::Cow<'_, FieldManager> {
        let manager = self.manager(part);
        match conversions {
            Some(conversions) if part != Part::Scale => {
                std::borrow::Cow::Owned(manager.into_owned().with_converter(conversions.clone()))
            }
            _ => manager,
        }
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
            (source, Part::Scale) => scale_manager(matches!(source, Source::Custom { .. })),
            (Source::Builtin(resource, version), part) => builtin::manager(resource, version, part),
            (Source::Custom { definition, version, converter }, part) => {
                custom_manager(definition, version, converter, part)
            }
        };
        match part.name() {
            "" => manager,
            name => manager.with_subresource(name),
        }
    }
}

/// What stands at a path of member names.
fn at<'v>(object: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    path.elements().iter().try_fold(object, |value, element| match element {
        PathElement::Field(name) => value.get(name),
        _ => None,
    })
}

/// Conversion by a definition's webhook, from within the working out of ownership, which does not wait for anything.
struct WebhookConversion {
    /// The versions there are, as `group/version`.
    versions: Vec<String>,
    definition: Arc<Value>,
    converter: Arc<dyn Converter>,
}

impl VersionConverter for WebhookConversion {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if !self.versions.iter().any(|v| v == api_version) {
            let why = format!("request to convert CR to an invalid group/version: {api_version}");
            return Err(ConvertError::Failed(why));
        }
        let mut object = object.clone();
        object.remove_at(&["metadata", "resourceVersion"]);
        let converting = self.converter.convert(&self.definition, object, api_version);
        let converted = match Handle::try_current() {
            Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
                block_in_place(|| handle.block_on(converting))
            }
            // With one thread nobody else could do the work meanwhile.
            _ => return Err(ConvertError::MissingVersion),
        };
        converted.map_err(ConvertError::Failed)
    }
}

fn custom_manager(about: &Definition, version: &str, converter: &Arc<dyn Converter>, part: Part) -> FieldManager {
    let definition = about.object();
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
    let none = NoConversion { versions: versions.iter().map(name).collect() };
    let converter: Arc<dyn VersionConverter> = match about.converts {
        true => Arc::new(WebhookConversion {
            versions: none.versions,
            definition: about.about.clone(),
            converter: converter.clone(),
        }),
        false => Arc::new(none),
    };
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
    FieldManager::new(kind, schemas, converter).with_filters([(api_version, filter)])
}

/// The manager of scales, which are objects of their own. Those of custom resources can be no other than they are.
fn scale_manager(custom: bool) -> FieldManager {
    let kind = managed::Kind { group: "autoscaling".into(), version: "v1".into(), kind: "Scale".into() };
    let schema = builtin::schema("io.k8s.api.autoscaling.v1.Scale");
    FieldManager::new(kind, [("autoscaling/v1".to_owned(), schema)], Arc::new(ScaleConverter { custom }))
}

struct ScaleConverter {
    custom: bool,
}

impl VersionConverter for ScaleConverter {
    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }

    /// Upstream asks the converter of the custom resource, which knows nothing of scales.
    fn check_made(&self, _object: &Value) -> Result<(), String> {
        if self.custom {
            return Err("request to convert CR to an invalid group/version: autoscaling/v1".to_owned());
        }
        Ok(())
    }
}

type SharedSchema = Arc<TypeSchema>;
