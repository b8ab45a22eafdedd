//! From components to objects.

use object::{Map, Value, map};
use patch::json_patch::JsonPatch;

use super::declared::{Attached, Component, bare};
use super::observe::Live;
use super::schematic::Schematic;
use super::{digest, field, names, three_way};

/// What a rendering may know beside the component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// The application's name.
    pub app: String,
    /// The namespace into which objects go that name none.
    pub namespace: String,
    /// The namespace of the application.
    pub app_namespace: String,
    /// The revision of the application.
    pub revision: String,
    /// The version that the user gave; empty if none.
    pub publish_version: String,
    /// The cluster; empty for the one in which the application is.
    pub cluster: String,
    /// The application's labels.
    pub labels: Map,
    /// The application's annotations.
    pub annotations: Map,
    /// What policies of the application put there, for templates.
    pub custom: Map,
}

impl Context {
    /// As templates see it.
    pub(super) fn to_value(&self, component: &Component) -> Value {
        map! {
            "name" => component.name.as_str(),
            "componentType" => component.kind.as_str(),
            "replicaKey" => component.replica_key.as_str(),
            "appName" => self.app.as_str(),
            "namespace" => self.namespace.as_str(),
            "appRevision" => self.revision.as_str(),
            "publishVersion" => self.publish_version.as_str(),
            "cluster" => if self.cluster.is_empty() { "local" } else { &self.cluster },
            "appLabels" => self.labels.clone(),
            "appAnnotations" => self.annotations.clone(),
            "custom" => self.custom.clone(),
        }
        .into()
    }
}

/// What a component needs of definitions, by name: `None` if there is none.
pub trait Definitions: Sync {
    /// The ComponentDefinition of a name.
    fn component(&self, name: &str) -> Option<&Value>;
    /// The TraitDefinition of a name.
    fn of_trait(&self, name: &str) -> Option<&Value>;
    /// The WorkflowStepDefinition of a name.
    fn step(&self, name: &str) -> Option<&Value>;
    /// The objects to which a `ref-objects` component of this name refers.
    fn referred(&self, component: &str) -> &[Value];
}

/// Whether a trait is only brought when its component is healthy.
pub fn is_later(definition: &Value) -> bool {
    definition.str_at(&["spec", "stage"]) == Some("PostDispatch")
}

/// The objects of a component, with the labels by which they are known, the workload first. Traits that wait until their
/// component is healthy are rendered when it is: from its `live` objects.
///
/// # Errors
///
/// If a definition is missing or does not render, or what it renders is no object.
pub fn render(
    component: &Component,
    definitions: &dyn Definitions,
    context: &Context,
    live: Option<&Live>,
) -> Result<Vec<Value>, String> {
    let seen = context.to_value(component);
    let failed = |error: String| format!("component {}: {error}", component.name);
    let kind = component.kind.as_str();
    let listed = match bare(kind) {
        "k8s-objects" => {
            let objects = component.properties.get("objects").and_then(Value::as_array);
            Some(objects.ok_or_else(|| failed("properties.objects: Required value".to_owned()))?.to_vec())
        }
        "ref-objects" => Some(definitions.referred(&component.name).to_vec()),
        _ => None,
    };
    let mut objects = match listed {
        Some(mut objects) => {
            if let Some(first) = objects.first_mut() {
                name(first, component);
            }
            objects.into_iter().map(|object| Labelled::workload(object, component)).collect()
        }
        None => {
            let definition =
                definitions.component(kind).ok_or_else(|| failed(format!("component definition {kind} not found")))?;
            let objects = by_definition(definition, component, &seen).map_err(failed)?;
            if objects.first().is_none_or(|first| first.name.is_some()) {
                return Err(failed(format!("definition {kind} renders no output")));
            }
            objects
        }
    };
    for attached in &component.traits {
        let kind = attached.kind.as_str();
        let definition =
            definitions.of_trait(kind).ok_or_else(|| failed(format!("trait definition {kind} not found")))?;
        let live = if is_later(definition) { live } else { None };
        if live.is_some() || !is_later(definition) {
            attach(definition, attached, component, &seen, live, &mut objects).map_err(failed)?;
        }
    }
    objects.into_iter().map(|object| object.finish(component, context).map_err(failed)).collect()
}

/// Calls a workload that has no name as its component.
fn name(workload: &mut Value, component: &Component) {
    if workload.name().is_empty() && workload.meta_str("generateName").is_empty() {
        workload.set_at(&["metadata", "name"], component.name.as_str().into());
    }
}

/// The objects of a step of a workflow that has a definition. It stands for a component of that name.
///
/// # Errors
///
/// If the definition does not render, or what it renders is no object.
pub fn render_step(step: &Component, definition: &Value, context: &Context) -> Result<Vec<Value>, String> {
    let failed = |error: String| format!("step {}: {error}", step.name);
    let objects = by_definition(definition, step, &context.to_value(step)).map_err(failed)?;
    objects.into_iter().map(|object| object.finish(step, context).map_err(failed)).collect()
}

/// An object that a step of a workflow brings, as one of a component of the step's name.
///
/// # Errors
///
/// If it is no object with an apiVersion, a kind and a name.
pub fn object_of_step(step: &Component, object: Value, context: &Context) -> Result<Value, String> {
    Labelled::workload(object, step).finish(step, context).map_err(|error| format!("step {}: {error}", step.name))
}

fn by_definition(definition: &Value, component: &Component, context: &Value) -> Result<Vec<Labelled>, String> {
    let output = Schematic::of(definition)?.render(&component.properties, context)?;
    let main = output.main.map(|mut main| {
        name(&mut main, component);
        Labelled::workload(main, component)
    });
    let others =
        output.others.into_iter().map(|(name, object)| Labelled::of_trait(object, AUXILIARY, &name, component));
    Ok(main.into_iter().chain(others).collect())
}

fn attach(
    definition: &Value,
    attached: &Attached,
    component: &Component,
    context: &Value,
    live: Option<&Live>,
    objects: &mut Vec<Labelled>,
) -> Result<(), String> {
    let kind = bare(&attached.kind);
    let mut context = context.clone();
    match live {
        Some(live) => live.put_into(&mut context),
        None => {
            let workload = objects.iter().find(|object| object.name.is_none());
            let others = objects.iter().filter_map(|object| Some((object.name.as_deref()?, object.object.clone())));
            let output = workload.map(|workload| workload.object.clone()).unwrap_or_default();
            Live { output, outputs: others.collect() }.put_into(&mut context);
        }
    }
    let output = Schematic::of(definition)?.render(&attached.properties, &context)?;
    let told = |part: &str, error: String| format!("definition {kind}: {part}: {error}");
    if let Some(workload) = objects.iter_mut().find(|object| object.name.is_none()) {
        if let Some(patch) = output.patch {
            workload.patch(patch).map_err(|error| told("patch", error))?;
        }
        if let Some(patch) = output.merge_patch {
            workload.object = patch::merge::apply(std::mem::take(&mut workload.object), patch);
        }
        if let Some(operations) = output.json_patch {
            let operations = JsonPatch::read(operations).map_err(|error| told("jsonPatch", error))?;
            let patched = operations.apply(std::mem::take(&mut workload.object));
            workload.object = patched.map_err(|error| told("jsonPatch", error.to_string()))?;
        }
    }
    for (name, patch) in output.patch_outputs {
        let other = objects.iter_mut().find(|object| object.name.as_ref() == Some(&name));
        let other = other.ok_or_else(|| told("patchOutputs", format!("there is no output {name}")))?;
        other.patch(patch).map_err(|error| told("patchOutputs", error))?;
    }
    let reference = objects.first().map(|workload| {
        let of = |key: &str| workload.object.str_at(&[key]).unwrap_or_default();
        map! { "apiVersion" => of("apiVersion"), "kind" => of("kind"), "name" => workload.object.name() }
    });
    for (name, object) in output.others {
        let mut labelled = Labelled::of_trait(object, kind, &name, component);
        labelled.stays = definition.at(&["spec", "controlPlaneOnly"]).and_then(Value::as_bool) == Some(true);
        if labelled.object.name().is_empty() {
            let name = format!("{}-{kind}-{:08x}", component.name, digest::of(&attached.properties) >> 32);
            labelled.object.set_at(&["metadata", "name"], name.into());
        }
        if let (Some(path), Some(reference)) = (definition.str_at(&["spec", "workloadRefPath"]), &reference) {
            field::put(&mut labelled.object, &field::steps(path), reference.clone().into());
        }
        objects.push(labelled);
    }
    Ok(())
}

/// The trait that further objects of a component's own definition belong to.
pub(super) const AUXILIARY: &str = "AuxiliaryWorkload";

/// An object and what it is to its component.
struct Labelled {
    object: Value,
    labels: Vec<(&'static str, String)>,
    /// Under which name a template knows it; a workload has none.
    name: Option<String>,
    /// Whether it stays beside the application, wherever the component goes.
    stays: bool,
}

impl Labelled {
    fn workload(object: Value, component: &Component) -> Self {
        let labels = vec![
            (names::RESOURCE_TYPE, "WORKLOAD".to_owned()),
            (names::WORKLOAD_TYPE, bare(&component.kind).to_owned()),
        ];
        Labelled { object, labels, name: None, stays: false }
    }

    fn patch(&mut self, patch: Value) -> Result<(), String> {
        self.object = three_way::patched(std::mem::take(&mut self.object), patch)?;
        Ok(())
    }

    fn of_trait(object: Value, kind: &str, name: &str, component: &Component) -> Self {
        let labels = vec![
            (names::RESOURCE_TYPE, "TRAIT".to_owned()),
            (names::TRAIT_TYPE, kind.to_owned()),
            (names::TRAIT_RESOURCE, name.to_owned()),
            (names::WORKLOAD_TYPE, bare(&component.kind).to_owned()),
        ];
        Labelled { object, labels, name: Some(name.to_owned()), stays: false }
    }

    fn finish(self, component: &Component, context: &Context) -> Result<Value, String> {
        let mut object = self.object;
        if !object.get("metadata").is_some_and(|metadata| metadata.as_object().is_some()) {
            return Err("what is rendered is no object with metadata".to_owned());
        }
        let (cluster, namespace) =
            if self.stays { ("", &context.app_namespace) } else { (context.cluster.as_str(), &context.namespace) };
        if object.namespace().is_empty() || self.stays {
            object.set_at(&["metadata", "namespace"], namespace.as_str().into());
        }
        let metadata = object.object_entry("metadata");
        let annotations = metadata.object_entry("annotations");
        for (key, value) in context.annotations.iter().filter(|(key, _)| is_passed_on(key, context)) {
            annotations.get_or_insert(key, || value.clone());
        }
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        let labels = metadata.object_entry("labels");
        for (key, value) in context.labels.iter().filter(|(key, _)| is_passed_on(key, context)) {
            labels.get_or_insert(key, || value.clone());
        }
        let own = [
            (names::APP_NAME, context.app.as_str()),
            (names::APP_NAMESPACE, context.app_namespace.as_str()),
            (names::APP_REVISION, context.revision.as_str()),
            (names::COMPONENT, component.name.as_str()),
            (names::REPLICA_KEY, component.replica_key.as_str()),
            (names::CLUSTER, cluster),
        ];
        let given = self.labels.iter().map(|(key, value)| (*key, value.as_str()));
        for (key, value) in own.into_iter().chain(given).filter(|(_, value)| !value.is_empty()) {
            labels.insert(key, value);
        }
        let hash = digest::hex(&object);
        object.set_at(&["metadata", "labels", names::RENDER_HASH], hash.into());
        keeper::Identity::of(&object).ok_or("what is rendered has no apiVersion, kind or name")?;
        Ok(object)
    }
}

/// Whether a label or annotation of the application is one of its objects too.
fn is_passed_on(key: &str, context: &Context) -> bool {
    let kept_back = ["filter.oam.dev/label-keys", "filter.oam.dev/annotation-keys"]
        .iter()
        .filter_map(|filter| context.annotations.get(filter).and_then(Value::as_str))
        .flat_map(|keys| keys.split(','))
        .any(|kept| kept.trim() == key);
    let is_internal =
        ["app.oam.dev/", "filter.oam.dev/", "controller.core.oam.dev/", "kubectl.kubernetes.io/", "oam.dev/"]
            .iter()
            .any(|prefix| key.starts_with(prefix));
    !kept_back && (!is_internal || key == names::PUBLISH_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    struct Known(Value, Value);

    impl Definitions for Known {
        fn component(&self, name: &str) -> Option<&Value> {
            self.0.get(name)
        }
        fn of_trait(&self, name: &str) -> Option<&Value> {
            self.1.get(name)
        }
        fn step(&self, _: &str) -> Option<&Value> {
            None
        }
        fn referred(&self, _: &str) -> &[Value] {
            &[]
        }
    }

    fn context() -> Context {
        Context {
            app: "app".into(),
            namespace: "n".into(),
            app_namespace: "n".into(),
            revision: "app-v1".into(),
            ..Context::default()
        }
    }

    fn rendered(component: &str, definitions: &Known) -> Result<Vec<Value>, String> {
        render(&Component::read(&parse(component)), definitions, &context(), None)
    }

    #[test]
    fn listed_objects_get_a_namespace_and_their_labels() {
        let objects = rendered(
            r#"{"name":"c","type":"k8s-objects","properties":{"objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}}"#,
            &Known(Value::Null, Value::Null),
        );
        let objects = objects.unwrap_or_default();
        assert_eq!(objects[0].namespace(), "n");
        for (label, value) in [
            (names::APP_NAME, "app"),
            (names::APP_NAMESPACE, "n"),
            (names::APP_REVISION, "app-v1"),
            (names::COMPONENT, "c"),
            (names::RESOURCE_TYPE, "WORKLOAD"),
            (names::WORKLOAD_TYPE, "k8s-objects"),
        ] {
            assert_eq!(objects[0].label(label), Some(value), "{label}");
        }
    }

    const WEB: &str = r#"{"web":{"metadata":{"name":"web"},"spec":{"schematic":{"template":{
        "output":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{},"spec":{"replicas":"{{ .parameter.replicas }}","image":"{{ .parameter.image | upper }}","none":"{{ .parameter.none }}"}},
        "outputs":{"service":{"apiVersion":"v1","kind":"Service","metadata":{"name":"{{ .context.name }}-svc"}}}}}}},
        "old":{"metadata":{"name":"old"},"spec":{"schematic":{"cue":{"template":"x"}}}}}"#;
    const SCALER: &str = r#"{"scaler":{"metadata":{"name":"scaler"},"spec":{"schematic":{"template":{"patch":{"spec":{"replicas":"{{ .parameter.replicas }}"}}}}}}}"#;

    #[test]
    fn a_template_is_filled_leaf_by_leaf_and_values_keep_their_types() {
        let known = Known(parse(WEB), parse(SCALER));
        let component = r#"{"name":"c","type":"web","properties":{"replicas":3,"image":"a\"}\nkind: Evil"},"traits":[{"type":"scaler","properties":{"replicas":5}}]}"#;
        let objects = rendered(component, &known).unwrap_or_default();
        assert_eq!(objects.len(), 2);
        let spec = objects[0].get("spec").map(json::to_string).unwrap_or_default();
        assert_eq!(spec, r#"{"image":"A\"}\nKIND: EVIL","replicas":5}"#);
        assert_eq!((objects[0].name(), objects[1].name()), ("c", "c-svc"));
        assert_eq!(objects[1].label(names::TRAIT_TYPE), Some("AuxiliaryWorkload"));
    }

    #[test]
    fn what_cannot_be_rendered_says_why() {
        let known = Known(parse(WEB), Value::Null);
        for (component, error) in [
            (r#"{"name":"c","type":"nothing"}"#, "component c: component definition nothing not found"),
            (
                r#"{"name":"c","type":"old"}"#,
                "component c: definition old: CUE templates are not supported; write spec.schematic.template or spec.schematic.cel",
            ),
            (r#"{"name":"c","type":"k8s-objects"}"#, "component c: properties.objects: Required value"),
            (
                r#"{"name":"c","type":"web","properties":{"image":"a"},"traits":[{"type":"x"}]}"#,
                "component c: trait definition x not found",
            ),
        ] {
            assert_eq!(rendered(component, &known), Err(error.to_owned()));
        }
    }
}
