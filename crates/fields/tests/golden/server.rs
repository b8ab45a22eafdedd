//! Definitions and objects in memory, and what the endpoints of custom resources do to them.

use super::{patches, schemas};
use fields::managed::{
    ConvertError, FieldManager, Kind, ScalePaths, VersionConverter, decode_managers, keep_times_of_noop, manager_name,
    remove_managers, set_managers,
};
use fields::openapi::crd_schema;
use fields::path::FieldPath;
use fields::schema::{Scalar, SchemaBuilder};
use fields::set::{FieldFilter, FieldSet};
use object::{Map, Status, Value, yaml};
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct Server {
    definitions: BTreeMap<String, Value>,
    objects: BTreeMap<String, Value>,
    revision: i64,
    pub now: i64,
}

impl Default for Server {
    fn default() -> Self {
        Server { definitions: BTreeMap::new(), objects: BTreeMap::new(), revision: 1, now: 1_700_000_000 }
    }
}

type Answer = (i64, Value);

/// A resource's definition, seen from one version of it.
struct Endpoint<'a> {
    definition: &'a Value,
    version: &'a str,
    subresource: &'a str,
}

#[derive(Clone)]
struct Converter {
    schemas: BTreeMap<String, Value>,
    scale: bool,
}

impl VersionConverter for Converter {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let invalid = || format!("request to convert CR to an invalid group/version: {api_version}");
        if !self.schemas.contains_key(api_version) {
            return Err(ConvertError::Failed(invalid()));
        }
        let mut out = object.clone();
        out.set_at(&["apiVersion"], api_version.into());
        Ok(out)
    }

    fn check_made(&self, _object: &Value) -> Result<(), String> {
        if self.scale {
            return Err("request to convert CR to an invalid group/version: autoscaling/v1".to_owned());
        }
        Ok(())
    }
}

impl Endpoint<'_> {
    fn group(&self) -> &str {
        self.definition.str_at(&["spec", "group"]).unwrap_or_default()
    }

    fn versions(&self) -> &[Value] {
        self.definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default()
    }

    fn this(&self) -> Option<&Value> {
        self.versions().iter().find(|v| v.str_at(&["name"]) == Some(self.version))
    }

    fn schema(&self) -> Value {
        self.this().and_then(|v| v.at(&["schema", "openAPIV3Schema"])).cloned().unwrap_or_default()
    }

    fn api_version(&self) -> String {
        format!("{}/{}", self.group(), self.version)
    }

    fn has_status(&self) -> bool {
        self.this().and_then(|v| v.at(&["subresources", "status"])).is_some()
    }

    fn converter(&self) -> Converter {
        let of = |v: &Value| {
            let name = v.str_at(&["name"]).unwrap_or_default();
            let schema = v.at(&["schema", "openAPIV3Schema"]).cloned().unwrap_or_default();
            (format!("{}/{name}", self.group()), schema)
        };
        Converter { schemas: self.versions().iter().map(of).collect(), scale: self.subresource == "scale" }
    }

    fn manager(&self) -> FieldManager {
        let converter = self.converter();
        if self.subresource == "scale" {
            return scale_manager(Arc::new(converter));
        }
        let schemas: Vec<_> =
            converter.schemas.iter().map(|(v, s)| (v.clone(), Arc::new(crd_schema(Some(s), false)))).collect();
        let kind = Kind {
            group: self.group().to_owned(),
            version: self.version.to_owned(),
            kind: self.definition.str_at(&["spec", "names", "kind"]).unwrap_or_default().to_owned(),
        };
        let excluded = match self.subresource {
            "status" => Some("spec"),
            _ => self.has_status().then_some("status"),
        };
        let filters =
            excluded.map(|f| (kind.api_version(), FieldFilter::Exclude(FieldSet::of([&FieldPath::fields(&[f])]))));
        FieldManager::new(kind, schemas, Arc::new(converter)).with_subresource(self.subresource).with_filters(filters)
    }

    fn scale_paths(&self) -> ScalePaths {
        let of = |v: &Value| {
            let name = format!("{}/{}", self.group(), v.str_at(&["name"]).unwrap_or_default());
            let path = v.str_at(&["subresources", "scale", "specReplicasPath"]);
            (name, path.map(|p| FieldPath::fields(&p.trim_start_matches('.').split('.').collect::<Vec<_>>())))
        };
        ScalePaths { api_version: self.api_version(), replicas: self.versions().iter().map(of).collect() }
    }

    fn scale_path(&self, which: &str) -> Vec<String> {
        let path = self.this().and_then(|v| v.str_at(&["subresources", "scale", which])).unwrap_or_default();
        path.trim_start_matches('.').split('.').map(str::to_owned).collect()
    }

    /// The scale of an object.
    fn scale_of(&self, object: &Value) -> Value {
        let at = |which: &str| {
            let path = self.scale_path(which);
            object.at(&path.iter().map(String::as_str).collect::<Vec<_>>()).cloned()
        };
        let mut meta = Map::new();
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object.at(&["metadata", key]) {
                meta.insert(key, value.clone());
            }
        }
        let mut spec = Map::new();
        if let Some(replicas) = at("specReplicasPath") {
            spec.insert("replicas", replicas);
        }
        let status = object::map! { "replicas" => at("statusReplicasPath").unwrap_or(Value::Int(0)) };
        let mut scale = Value::Object(object::map! {
            "apiVersion" => "autoscaling/v1", "kind" => "Scale", "metadata" => meta, "spec" => spec, "status" => status,
        });
        let managers = decode_managers(object).unwrap_or_default();
        set_managers(&mut scale, &self.scale_paths().to_scale(&managers));
        scale
    }
}

fn scale_manager(converter: Arc<Converter>) -> FieldManager {
    let mut b = SchemaBuilder::new();
    let (string, number) = (b.scalar(Scalar::String), b.scalar(Scalar::Numeric));
    let (meta, spec) = (b.object_meta(), b.structure([("replicas", number)]));
    let status = b.structure([("replicas", number), ("selector", string)]);
    let root =
        b.structure([("apiVersion", string), ("kind", string), ("metadata", meta), ("spec", spec), ("status", status)]);
    let kind = Kind { group: "autoscaling".to_owned(), version: "v1".to_owned(), kind: "Scale".to_owned() };
    FieldManager::new(kind, [("autoscaling/v1".to_owned(), Arc::new(b.build(root)))], converter)
        .with_subresource("scale")
}

impl Server {
    /// The answer, or why the request is outside of what is replayed here.
    pub fn handle(&mut self, request: &Value) -> Result<Answer, String> {
        let send = request.str_at(&["send"]).unwrap_or_default();
        let (verb, url) = send.split_once(' ').ok_or("no request")?;
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let parts: Vec<&str> = path.trim_start_matches("/apis/").split('/').collect();
        let body = match request.get("body") {
            Some(Value::String(text)) => {
                yaml::parse(text.as_bytes()).map_err(|e| format!("a body that is no YAML: {e}"))?
            }
            Some(body) => body.clone(),
            None => Value::Null,
        };
        if request.get("as").is_some() {
            return Err("requests as another user".to_owned());
        }
        if let ["apiextensions.k8s.io", "v1", "customresourcedefinitions", rest @ ..] = parts.as_slice() {
            let quiet = request.get("quiet").is_some();
            return self.definition(quiet, verb, request.str_at(&["type"]).unwrap_or_default(), rest, body);
        }
        let (group, version, plural, namespace, rest) = match parts.as_slice() {
            [g, v, "namespaces", ns, plural, rest @ ..] => (*g, *v, *plural, *ns, rest),
            [g, v, plural, rest @ ..] if g.contains('.') => (*g, *v, *plural, "", rest),
            _ => return Err("other resources than custom ones".to_owned()),
        };
        let definition =
            self.definitions.get(&format!("{plural}.{group}")).cloned().ok_or("other resources than custom ones")?;
        let name = match rest {
            [name, ..] => (*name).to_owned(),
            [] => body.str_at(&["metadata", "name"]).unwrap_or_default().to_owned(),
        };
        let subresource = rest.get(1).copied().unwrap_or_default();
        let endpoint = Endpoint { definition: &definition, version, subresource };
        let option = |key: &str| {
            let found = query.split('&').filter_map(|p| p.split_once('=')).find(|(k, _)| *k == key);
            found.map(|(_, v)| decode(v)).unwrap_or_default()
        };
        let agent = request
            .get("headers")
            .and_then(Value::as_object)
            .and_then(|h| h.iter().find(|(k, _)| k.eq_ignore_ascii_case("user-agent")).and_then(|(_, v)| v.as_str()));
        let manager = manager_name(&option("fieldManager"), agent.unwrap_or("kcompat"));
        let force = !matches!(option("force").as_str(), "" | "false" | "0");
        let write = Write {
            key: format!("{plural}.{group}/{namespace}/{name}"),
            namespace,
            manager: &manager,
            force,
            dry: option("dryRun") == "All",
        };
        match verb {
            "GET" => self.get(&endpoint, &write),
            "POST" => self.create(&endpoint, &write, body),
            "PUT" => self.put(&endpoint, &write, body),
            "PATCH" => match request.str_at(&["type"]).unwrap_or_default() {
                "apply" => self.apply(&endpoint, &write, body),
                "merge" => self.patch(&endpoint, &write, |live| {
                    patches::merge(live, &body);
                    Ok(())
                }),
                "json" => self.patch(&endpoint, &write, |live| patches::apply_json(live, &body)),
                other => Err(format!("patches of type {other}")),
            },
            _ => Err(format!("requests with {verb}")),
        }
    }

    fn definition(
        &mut self,
        quiet: bool,
        verb: &str,
        kind: &str,
        rest: &[&str],
        body: Value,
    ) -> Result<Answer, String> {
        let name = match rest {
            [name] => (*name).to_owned(),
            _ => body.str_at(&["metadata", "name"]).unwrap_or_default().to_owned(),
        };
        match (verb, kind) {
            _ if !quiet => return Err("answers about definitions".to_owned()),
            ("POST" | "PUT", _) => {
                self.definitions.insert(name, body.clone());
            }
            ("PATCH", "merge") => patches::merge(self.definitions.get_mut(&name).ok_or("no such definition")?, &body),
            _ => return Err("other writes of definitions".to_owned()),
        }
        Ok((200, body))
    }

    fn live(&self, endpoint: &Endpoint<'_>, write: &Write<'_>) -> Option<Value> {
        let stored = self.objects.get(&write.key)?;
        let mut live = endpoint.converter().convert(stored, &endpoint.api_version()).ok()?;
        schemas::prune(&mut live, &endpoint.schema(), true);
        schemas::default(&mut live, &endpoint.schema());
        Some(live)
    }

    fn get(&self, endpoint: &Endpoint<'_>, write: &Write<'_>) -> Result<Answer, String> {
        let live = self.live(endpoint, write).ok_or("objects that are not there")?;
        Ok((200, if endpoint.subresource == "scale" { without_managers(endpoint.scale_of(&live)) } else { live }))
    }

    fn create(&mut self, endpoint: &Endpoint<'_>, write: &Write<'_>, mut body: Value) -> Result<Answer, String> {
        decoded(&mut body, &endpoint.schema());
        let object = endpoint.manager().on_create(body, write.manager, self.now);
        Ok(self.store(endpoint, write, None, object))
    }

    fn put(&mut self, endpoint: &Endpoint<'_>, write: &Write<'_>, body: Value) -> Result<Answer, String> {
        self.patch(endpoint, write, |live| {
            *live = body;
            Ok(())
        })
    }

    fn patch(
        &mut self,
        endpoint: &Endpoint<'_>,
        write: &Write<'_>,
        change: impl FnOnce(&mut Value) -> Result<(), String>,
    ) -> Result<Answer, String> {
        let live = self.live(endpoint, write).ok_or("objects that are not there")?;
        let scale = endpoint.subresource == "scale";
        let old = if scale { endpoint.scale_of(&live) } else { live.clone() };
        let mut new = old.clone();
        change(&mut new)?;
        if !scale {
            decoded(&mut new, &endpoint.schema());
        }
        let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).unwrap_or_default().to_owned();
        if !matches!(version(&new).as_str(), "" | "0") && version(&new) != version(&live) {
            let resource = endpoint.definition.str_at(&["metadata", "name"]).unwrap_or_default();
            let (resource, group) = resource.split_once('.').unwrap_or_default();
            let name = live.str_at(&["metadata", "name"]).unwrap_or_default();
            let status = Status::modified(object::status::Qualified { group, name: resource }, name);
            return Ok((409, status.to_value()));
        }
        let new = endpoint.manager().on_update(&old, new, write.manager, self.now);
        let new = if scale { from_scale(endpoint, &live, &new) } else { new };
        let answer = self.store(endpoint, write, Some(live), new);
        Ok(if scale { (answer.0, without_managers(endpoint.scale_of(&answer.1))) } else { answer })
    }

    fn apply(&mut self, endpoint: &Endpoint<'_>, write: &Write<'_>, config: Value) -> Result<Answer, String> {
        let live = self.live(endpoint, write);
        let scale = endpoint.subresource == "scale";
        let old = live.as_ref().map(|l| if scale { endpoint.scale_of(l) } else { l.clone() });
        match endpoint.manager().apply(old.as_ref(), &config, write.manager, write.force, self.now) {
            Err(e) => {
                let status = Status::from(e);
                Ok((i64::from(status.code), status.to_value()))
            }
            Ok(mut new) => {
                if let (true, Some(live)) = (scale, &live) {
                    new = from_scale(endpoint, live, &new);
                } else {
                    decoded(&mut new, &endpoint.schema());
                }
                let answer = self.store(endpoint, write, live, new);
                Ok(if scale { (answer.0, without_managers(endpoint.scale_of(&answer.1))) } else { answer })
            }
        }
    }

    /// What the strategies of custom resources do before a write, and the write, unless it changes nothing.
    fn store(&mut self, endpoint: &Endpoint<'_>, write: &Write<'_>, live: Option<Value>, mut new: Value) -> Answer {
        let code = if live.is_some() { 200 } else { 201 };
        match &live {
            None => {
                if endpoint.has_status() {
                    new.remove_at(&["status"]);
                }
                self.revision += 1;
                new.set_at(&["metadata", "uid"], format!("uid-{}", self.revision).into());
                new.set_at(&["metadata", "resourceVersion"], self.revision.to_string().into());
                new.set_at(&["metadata", "creationTimestamp"], "now".into());
                if !write.namespace.is_empty() {
                    new.set_at(&["metadata", "namespace"], write.namespace.into());
                }
            }
            Some(live) => {
                if endpoint.subresource == "status" {
                    let mut kept = live.clone();
                    for path in [&["status"][..], &["metadata", "managedFields"]] {
                        match new.at(path) {
                            Some(value) => kept.set_at(path, value.clone()),
                            None => {
                                kept.remove_at(path);
                            }
                        }
                    }
                    new = kept;
                } else if endpoint.has_status() && endpoint.subresource.is_empty() {
                    match live.get("status") {
                        Some(status) => new.set_at(&["status"], status.clone()),
                        None => {
                            new.remove_at(&["status"]);
                        }
                    }
                }
                for key in ["uid", "creationTimestamp", "resourceVersion", "generation", "namespace"] {
                    match live.at(&["metadata", key]) {
                        Some(value) => new.set_at(&["metadata", key], value.clone()),
                        None => {
                            new.remove_at(&["metadata", key]);
                        }
                    }
                }
                if keep_times_of_noop(live, &mut new) {
                    return (code, new);
                }
                self.revision += 1;
                new.set_at(&["metadata", "resourceVersion"], self.revision.to_string().into());
            }
        }
        if !write.dry {
            let storage = endpoint.versions().iter().find(|v| v.get("storage") == Some(&Value::Bool(true)));
            let storage = storage.and_then(|v| v.str_at(&["name"])).unwrap_or_default();
            let storage = format!("{}/{storage}", endpoint.group());
            if let Ok(mut stored) = endpoint.converter().convert(&new, &storage) {
                if let Some(schema) = endpoint.converter().schemas.get(&storage) {
                    schemas::prune(&mut stored, schema, true);
                }
                self.objects.insert(write.key.clone(), stored);
            }
        }
        (code, new)
    }
}

struct Write<'a> {
    key: String,
    namespace: &'a str,
    manager: &'a str,
    force: bool,
    dry: bool,
}

/// The object after its scale was written.
fn from_scale(endpoint: &Endpoint<'_>, live: &Value, scale: &Value) -> Value {
    let mut out = live.clone();
    let path = endpoint.scale_path("specReplicasPath");
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    if let Some(replicas) = scale.at(&["spec", "replicas"]) {
        out.set_at(&path, replicas.clone());
    }
    let before = decode_managers(live).unwrap_or_default();
    let of_scale = decode_managers(scale).unwrap_or_default();
    set_managers(&mut out, &endpoint.scale_paths().to_object(&before, &of_scale));
    out
}

/// Answers with a scale do not tell its managers.
fn without_managers(mut scale: Value) -> Value {
    remove_managers(&mut scale);
    scale
}

/// What reading a request's object does to it.
fn decoded(object: &mut Value, schema: &Value) {
    schemas::prune(object, schema, true);
    schemas::default(object, schema);
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for key in ["labels", "annotations"] {
        if let Some(map) = meta.get_mut(key).and_then(Value::as_object_mut) {
            map.values_mut().filter(|v| v.is_null()).for_each(|v| *v = Value::from(""));
        }
    }
    meta.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let hex: String = bytes.by_ref().take(2).map(char::from).collect();
                out.push(u8::from_str_radix(&hex, 16).unwrap_or(b'?'));
            }
            b'+' => out.push(b' '),
            b => out.push(b),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
