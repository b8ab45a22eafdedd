//! From components to objects.

use object::{Map, Value, map};
use template::{Data, Functions, Settings, Tree};

use super::declared::{Attached, Component};
use super::{digest, names};

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
        }
        .into()
    }
}

/// What a definition renders: the workload first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The workload; a trait has none.
    pub main: Option<Value>,
    /// Further objects, by name.
    pub others: Vec<(String, Value)>,
    /// A merge patch of the workload, by a trait.
    pub patch: Option<Value>,
}

/// Renders one kind of schematic.
pub trait Renderer: Send + Sync {
    /// Renders `parameter` (the properties) in `context` by the schematic, the part of a definition that is this
    /// renderer's.
    ///
    /// # Errors
    ///
    /// In words for whoever wrote the definition or the parameters.
    fn render(&self, name: &str, schematic: &Value, parameter: &Value, context: &Value) -> Result<Output, String>;
}

/// The renderer of a definition and its part of it.
fn renderer(definition: &Value) -> Result<(&'static dyn Renderer, &Value), String> {
    let schematic = definition.at(&["spec", "schematic"]);
    let part = |key| schematic.and_then(|schematic| schematic.get(key));
    let name = definition.name();
    if let Some(template) = part("template") {
        return Ok((&Structured, template));
    }
    Err(match (part("cue"), part("terraform")) {
        (Some(_), _) => format!("definition {name}: CUE templates are not supported; write spec.schematic.template"),
        (_, Some(_)) => format!("definition {name}: Terraform is not supported"),
        _ => format!("definition {name}: there is no spec.schematic.template"),
    })
}

/// `spec.schematic.template`: an object with `output`, `outputs` and `patch`, whose strings are Go templates over
/// `.parameter` and `.context`. Each string is rendered by itself, so that a parameter can never add a field. A string
/// that is nothing but `{{ .parameter.x }}` is the value itself, of whatever type; its field is left out where there is
/// no such value.
struct Structured;

impl Renderer for Structured {
    fn render(&self, name: &str, schematic: &Value, parameter: &Value, context: &Value) -> Result<Output, String> {
        let parameter = if parameter.is_null() { Map::new().into() } else { parameter.clone() };
        let data = map! { "parameter" => parameter, "context" => context.clone() }.into();
        let mut tree = schematic.clone();
        let mut values = Vec::new();
        lift(&mut tree, &data, &mut values, 0);
        let tree = Tree::parse(name, &tree, Functions::Sprig).map_err(|error| error.to_string())?;
        let rendered = tree.render(&Data::from(&data), &Settings::default()).map_err(|error| error.to_string())?;
        let mut rendered = rendered;
        lower(&mut rendered, &values);
        let others = match rendered.remove_at(&["outputs"]) {
            Some(Value::Object(others)) => {
                others.into_iter().map(|(name, object)| (name.to_string(), object)).collect()
            }
            _ => Vec::new(),
        };
        let main = rendered.remove_at(&["output"]).filter(|main| !main.is_null());
        Ok(Output { main, others, patch: rendered.remove_at(&["patch"]).filter(|patch| !patch.is_null()) })
    }
}

/// The mark of a string that stands for a value; no text of a definition can hold it.
const MARK: char = '\u{0}';

/// Puts marks in place of strings that are nothing but a reference, and their values into `values`. Fields without a
/// value are taken out.
fn lift(tree: &mut Value, data: &Value, values: &mut Vec<Value>, depth: usize) {
    // Objects are never nested so deep; what is, is left to the template.
    if depth > 200 {
        return;
    }
    match tree {
        Value::Object(members) => members.retain(|_, member| {
            let found = member.as_str().and_then(reference).map(|path| data.at(&path).cloned());
            match found {
                None => lift(member, data, values, depth + 1),
                Some(None | Some(Value::Null)) => return false,
                Some(Some(value)) => {
                    *member = format!("{MARK}{}", values.len()).into();
                    values.push(value);
                }
            }
            true
        }),
        Value::Array(items) => {
            for item in items {
                match item.as_str().and_then(reference).and_then(|path| data.at(&path).cloned()) {
                    None => lift(item, data, values, depth + 1),
                    Some(value) => {
                        *item = format!("{MARK}{}", values.len()).into();
                        values.push(value);
                    }
                }
            }
        }
        _ => {}
    }
}

fn lower(tree: &mut Value, values: &[Value]) {
    match tree {
        Value::Object(members) => members.values_mut().for_each(|member| lower(member, values)),
        Value::Array(items) => items.iter_mut().for_each(|item| lower(item, values)),
        Value::String(text) => {
            let index = text.strip_prefix(MARK).and_then(|index| index.parse::<usize>().ok());
            if let Some(value) = index.and_then(|index| values.get(index)) {
                *tree = value.clone();
            }
        }
        _ => {}
    }
}

/// The path of a string such as `{{ .parameter.image }}`, if it is nothing else.
fn reference(text: &str) -> Option<Vec<&str>> {
    let path = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim().strip_prefix('.')?;
    let is_name = |step: &&str| !step.is_empty() && step.chars().all(|c| c.is_alphanumeric() || c == '_');
    let steps: Vec<&str> = path.split('.').collect();
    (steps.len() > 1 && steps.iter().all(is_name)).then_some(steps)
}

/// What a component needs of definitions, by name: `None` if there is none.
pub trait Definitions: Sync {
    /// The ComponentDefinition of a name.
    fn component(&self, name: &str) -> Option<&Value>;
    /// The TraitDefinition of a name.
    fn of_trait(&self, name: &str) -> Option<&Value>;
    /// The objects to which a `ref-objects` component of this name refers.
    fn referred(&self, component: &str) -> &[Value];
}

/// The objects of a component, with the labels by which they are known, the workload first.
///
/// # Errors
///
/// If a definition is missing or does not render, or what it renders is no object.
pub fn render(component: &Component, definitions: &dyn Definitions, context: &Context) -> Result<Vec<Value>, String> {
    let seen = context.to_value(component);
    let failed = |error: String| format!("component {}: {error}", component.name);
    let kind = component.kind.split('@').next().unwrap_or_default();
    let listed = match kind {
        "k8s-objects" => {
            let objects = component.properties.get("objects").and_then(Value::as_array);
            Some(objects.ok_or_else(|| failed("properties.objects: Required value".to_owned()))?.to_vec())
        }
        "ref-objects" => Some(definitions.referred(&component.name).to_vec()),
        _ => None,
    };
    let mut objects = match listed {
        Some(objects) => objects.into_iter().map(|object| Labelled::workload(object, component)).collect(),
        None => {
            let definition =
                definitions.component(kind).ok_or_else(|| failed(format!("component definition {kind} not found")))?;
            let (renderer, schematic) = renderer(definition).map_err(failed)?;
            let output = renderer.render(kind, schematic, &component.properties, &seen).map_err(failed)?;
            let mut main = output.main.ok_or_else(|| failed(format!("definition {kind} renders no output")))?;
            if main.name().is_empty() {
                main.set_at(&["metadata", "name"], component.name.as_str().into());
            }
            let mut objects = vec![Labelled::workload(main, component)];
            objects.extend(
                output
                    .others
                    .into_iter()
                    .map(|(name, object)| Labelled::of_trait(object, "AuxiliaryWorkload", &name, component)),
            );
            objects
        }
    };
    for attached in &component.traits {
        attach(attached, component, definitions, &seen, &mut objects).map_err(failed)?;
    }
    objects.into_iter().map(|object| object.finish(component, context).map_err(failed)).collect()
}

fn attach(
    attached: &Attached,
    component: &Component,
    definitions: &dyn Definitions,
    context: &Value,
    objects: &mut Vec<Labelled>,
) -> Result<(), String> {
    let kind = attached.kind.split('@').next().unwrap_or_default();
    let definition = definitions.of_trait(kind).ok_or_else(|| format!("trait definition {kind} not found"))?;
    let (renderer, schematic) = renderer(definition)?;
    let mut context = context.clone();
    if let Some(workload) = objects.first() {
        context.set_at(&["output"], workload.object.clone());
    }
    let output = renderer.render(kind, schematic, &attached.properties, &context)?;
    if let (Some(patch), Some(workload)) = (output.patch, objects.first_mut()) {
        workload.object = patch::merge::apply(std::mem::take(&mut workload.object), patch);
    }
    for (name, object) in output.others {
        let mut labelled = Labelled::of_trait(object, kind, &name, component);
        labelled.stays = definition.at(&["spec", "controlPlaneOnly"]).and_then(Value::as_bool) == Some(true);
        if labelled.object.name().is_empty() {
            let name = format!("{}-{kind}-{:08x}", component.name, digest::of(&attached.properties) >> 32);
            labelled.object.set_at(&["metadata", "name"], name.into());
        }
        objects.push(labelled);
    }
    Ok(())
}

/// An object and what it is to its component.
struct Labelled {
    object: Value,
    labels: Vec<(&'static str, String)>,
    /// Whether it stays beside the application, wherever the component goes.
    stays: bool,
}

impl Labelled {
    fn workload(object: Value, component: &Component) -> Self {
        let labels =
            vec![(names::RESOURCE_TYPE, "WORKLOAD".to_owned()), (names::WORKLOAD_TYPE, component.kind.clone())];
        Labelled { object, labels, stays: false }
    }

    fn of_trait(object: Value, kind: &str, name: &str, component: &Component) -> Self {
        let labels = vec![
            (names::RESOURCE_TYPE, "TRAIT".to_owned()),
            (names::TRAIT_TYPE, kind.to_owned()),
            (names::TRAIT_RESOURCE, name.to_owned()),
            (names::WORKLOAD_TYPE, component.kind.clone()),
        ];
        Labelled { object, labels, stays: false }
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
        render(&Component::read(&parse(component)), definitions, &context())
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
                "component c: definition old: CUE templates are not supported; write spec.schematic.template",
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
