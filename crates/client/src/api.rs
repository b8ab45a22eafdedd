//! Requests about one resource.

use crate::client::{Call, Client, JSON};
use crate::error::{Error, Result};
use crate::params::{DeleteParams, ListParams, Patch, PatchParams, WatchParams, WriteParams};
use crate::resource::ESCAPED;
use crate::{Resource, Watch};
use http::Method;
use object::{Map, Value, map};
use percent_encoding::utf8_percent_encode;

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Requests about one resource. In all of them the namespace is empty for resources without namespaces, and for lists
/// and watches of all namespaces.
#[derive(Clone, Debug)]
pub struct Api {
    pub(crate) client: Client,
    pub(crate) resource: Resource,
}

/// What a list gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The objects, each with its `apiVersion` and `kind`.
    pub items: Vec<Value>,
    /// The version of the list, for a watch.
    pub resource_version: String,
    /// Where to go on; empty at the end.
    pub continue_token: String,
}

/// What an object is called.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    api_version: String,
    kind: String,
}

impl Identity {
    pub(crate) fn of(resource: &Resource) -> Self {
        Identity { api_version: resource.api_version(), kind: resource.kind.to_string() }
    }

    pub(crate) fn put_on(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion", self.api_version.as_str());
            object.insert("kind", self.kind.as_str());
        }
    }
}

/// A query.
struct Query(String);

impl Query {
    fn new(path: String) -> Self {
        Query(path)
    }

    fn text(mut self, key: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.0.push(if self.0.contains('?') { '&' } else { '?' });
            self.0.push_str(key);
            self.0.push('=');
            self.0.extend(utf8_percent_encode(value, ESCAPED));
        }
        self
    }

    fn number(self, key: &str, value: u32) -> Self {
        if value == 0 { self } else { self.text(key, &value.to_string()) }
    }

    fn flag(self, key: &str, value: bool, text: &str) -> Self {
        if value { self.text(key, text) } else { self }
    }
}

impl Api {
    /// The resource.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// An object.
    pub async fn get(&self, namespace: &str, name: &str) -> Result<Value> {
        self.client.value(Call::get(self.object_path(namespace, name, "")?)).await
    }

    /// An object, or nothing if it is not there.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Value>> {
        found(self.get(namespace, name).await)
    }

    /// What `metadata` says of an object.
    pub async fn get_metadata(&self, namespace: &str, name: &str) -> Result<Value> {
        let call = Call { accept: METADATA, ..Call::get(self.object_path(namespace, name, "")?) };
        let mut object = self.client.value(call).await?;
        Identity::of(&self.resource).put_on(&mut object);
        Ok(object)
    }

    /// What a subresource says, for example `scale`.
    pub async fn get_subresource(&self, namespace: &str, name: &str, subresource: &str) -> Result<Value> {
        self.client.value(Call::get(self.object_path(namespace, name, subresource)?)).await
    }

    /// The objects of a namespace (empty: of all), as far as the limit allows.
    pub async fn list(&self, namespace: &str, params: &ListParams) -> Result<List> {
        let target = Query::new(self.resource.path(namespace, "", ""))
            .text("labelSelector", &params.label_selector)
            .text("fieldSelector", &params.field_selector)
            .number("limit", params.limit)
            .text("continue", &params.continue_token)
            .text("resourceVersion", &params.resource_version);
        let accept = if params.metadata_only { METADATA_LIST } else { JSON };
        let mut list = self.client.value(Call { accept, ..Call::get(target.0) }).await?;
        let mut items = match list.get_mut("items").map(std::mem::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let identity = Identity::of(&self.resource);
        items.iter_mut().for_each(|item| identity.put_on(item));
        Ok(List {
            items,
            resource_version: list.meta_str("resourceVersion").to_owned(),
            continue_token: list.meta_str("continue").to_owned(),
        })
    }

    /// The objects of a namespace (empty: of all) as they come. Ends when the server says so; see [`Watch::next`].
    pub async fn watch(&self, namespace: &str, params: &WatchParams) -> Result<Watch> {
        let target = Query::new(self.resource.path(namespace, "", ""))
            .text("watch", "true")
            .text("labelSelector", &params.label_selector)
            .text("fieldSelector", &params.field_selector)
            .text("resourceVersion", &params.resource_version)
            .flag("allowWatchBookmarks", params.bookmarks, "true")
            .number("timeoutSeconds", params.timeout_seconds);
        let accept = if params.metadata_only { METADATA } else { JSON };
        let response = self.client.send(Call { accept, ..Call::get(target.0) }).await?;
        Ok(Watch::new(response, params.metadata_only.then(|| Identity::of(&self.resource))))
    }

    /// Creates an object; gives it as the server keeps it.
    pub async fn create(&self, namespace: &str, object: &Value) -> Result<Value> {
        self.create_with(namespace, object, &WriteParams::default()).await
    }

    /// Creates an object, with options.
    pub async fn create_with(&self, namespace: &str, object: &Value, params: &WriteParams) -> Result<Value> {
        self.write(Method::POST, self.resource.path(namespace, "", ""), object, params).await
    }

    /// Creates what a subresource takes, such as an `eviction` or a `binding`, and gives the answer.
    pub async fn create_subresource(
        &self,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &Value,
    ) -> Result<Value> {
        let path = self.object_path(namespace, name, subresource)?;
        self.write(Method::POST, path, body, &WriteParams::default()).await
    }

    /// Replaces an object, whose name and namespace are its own. With a `resourceVersion` only that version.
    pub async fn update(&self, object: &Value) -> Result<Value> {
        self.update_with(object, "", &WriteParams::default()).await
    }

    /// Replaces the status of an object.
    pub async fn update_status(&self, object: &Value) -> Result<Value> {
        self.update_with(object, "status", &WriteParams::default()).await
    }

    /// Replaces an object or one of its subresources (empty: the object itself), with options.
    pub async fn update_with(&self, object: &Value, subresource: &str, params: &WriteParams) -> Result<Value> {
        let path = self.object_path(object.namespace(), object.name(), subresource)?;
        self.write(Method::PUT, path, object, params).await
    }

    /// Changes an object; gives it as it is then.
    pub async fn patch(&self, namespace: &str, name: &str, patch: &Patch, params: &PatchParams) -> Result<Value> {
        let (content_type, body, manager, force) = match patch {
            Patch::Json(body) => ("application/json-patch+json", body, &params.field_manager, false),
            Patch::Merge(body) => ("application/merge-patch+json", body, &params.field_manager, false),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body, &params.field_manager, false),
            Patch::Apply { object, manager, force } => ("application/apply-patch+yaml", object, manager, *force),
        };
        let target = Query::new(self.object_path(namespace, name, &params.subresource)?)
            .text("fieldManager", manager)
            .flag("force", force, "true")
            .flag("dryRun", params.dry_run, "All")
            .text("fieldValidation", &params.field_validation);
        let call = Call { method: Method::PATCH, target: target.0, accept: JSON, content_type, body: Some(body) };
        self.client.value(call).await
    }

    /// Deletes an object. The answer is a `Status`, or the object when it goes later.
    pub async fn delete(&self, namespace: &str, name: &str, params: &DeleteParams) -> Result<Value> {
        let body = Value::Object(delete_options(params));
        let target = self.object_path(namespace, name, "")?;
        self.client
            .value(Call { method: Method::DELETE, target, accept: JSON, content_type: JSON, body: Some(&body) })
            .await
    }

    /// Deletes the objects of a namespace (empty: of all) that are selected.
    pub async fn delete_collection(
        &self,
        namespace: &str,
        params: &DeleteParams,
        selected: &ListParams,
    ) -> Result<Value> {
        let body = Value::Object(delete_options(params));
        let target = Query::new(self.resource.path(namespace, "", ""))
            .text("labelSelector", &selected.label_selector)
            .text("fieldSelector", &selected.field_selector);
        let call =
            Call { method: Method::DELETE, target: target.0, accept: JSON, content_type: JSON, body: Some(&body) };
        self.client.value(call).await
    }

    /// The path of an object. Without a name it would be that of all objects.
    fn object_path(&self, namespace: &str, name: &str, subresource: &str) -> Result<String> {
        if name.is_empty() {
            return Err(Error::Content("resource name may not be empty".to_owned()));
        }
        Ok(self.resource.path(namespace, name, subresource))
    }

    async fn write(&self, method: Method, path: String, object: &Value, params: &WriteParams) -> Result<Value> {
        let target = Query::new(path)
            .text("fieldManager", &params.field_manager)
            .flag("dryRun", params.dry_run, "All")
            .text("fieldValidation", &params.field_validation);
        let call = Call { method, target: target.0, accept: JSON, content_type: JSON, body: Some(object) };
        self.client.value(call).await
    }
}

/// What is not there is nothing, not an error.
fn found(result: Result<Value>) -> Result<Option<Value>> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn delete_options(params: &DeleteParams) -> Map {
    let mut out = map! { "apiVersion" => "v1", "kind" => "DeleteOptions" };
    if let Some(propagation) = params.propagation {
        out.insert("propagationPolicy", propagation.name());
    }
    if let Some(seconds) = params.grace_seconds {
        out.insert("gracePeriodSeconds", seconds);
    }
    if params.dry_run {
        out.insert("dryRun", vec!["All"]);
    }
    let mut conditions = Map::new();
    for (key, value) in [("uid", &params.uid), ("resourceVersion", &params.resource_version)] {
        if !value.is_empty() {
            conditions.insert(key, value.as_str());
        }
    }
    if !conditions.is_empty() {
        out.insert("preconditions", conditions);
    }
    out
}
