//! Steps of workflows that need no definition, beside those of the engine itself: what KubeVela brings as definitions in
//! CUE. A WorkflowStepDefinition of the same name that can be rendered here takes their place.

use object::{Map, Value, map};

use super::declared::{bare, text};
use super::schematic::Schematic;
use super::workflow::Step;

/// What a built-in step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// An object is brought and kept.
    Apply(Value),
    /// An object is read, which others may then use.
    Read(Value),
    /// An Application is waited for.
    DependOn {
        /// Its namespace; empty for that of the own application.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Steps of KubeVela that are refused, and why.
const REFUSED: [(&str, &[&str]); 5] = [
    (
        "it sends messages or requests to other systems, which is left to controllers of their own",
        &["notification", "request", "webhook", "webhook-notification", "check-metrics"],
    ),
    (
        "Terraform is not supported",
        &[
            "apply-terraform-config",
            "apply-terraform-provider",
            "deploy-cloud-resource",
            "share-cloud-resource",
            "generate-jdbc-connection",
        ],
    ),
    (
        "deploy, with policies topology and override, took its place",
        &[
            "apply-application",
            "apply-application-in-parallel",
            "apply-remaining",
            "deploy2env",
            "deploy2runtime",
            "multi-env",
        ],
    ),
    ("it runs programs; a Job as a component, or apply-object, does that", &["build-push-image", "vela-cli"]),
    (
        "write the object itself, by apply-object, export2config or export2secret",
        &[
            "apply-deployment",
            "clean-jobs",
            "collect-service-endpoints",
            "create-config",
            "delete-config",
            "list-config",
            "read-config",
            "export-data",
            "export-service",
            "print-message-in-status",
            "restart-workflow",
        ],
    ),
];

const KNOWN: [&str; 5] = ["apply-object", "depends-on-app", "export2config", "export2secret", "read-object"];

/// Whether a definition takes the place of what is built in.
pub fn replaces(definition: Option<&Value>) -> bool {
    definition.is_some_and(|definition| Schematic::of(definition).is_ok())
}

/// Whether a step can be carried out, by its definition or as a built-in one.
///
/// # Errors
///
/// If it is known that it cannot; with what to do instead.
pub fn check(step: &Step, definition: Option<&Value>) -> Result<(), String> {
    let kind = bare(&step.kind);
    if replaces(definition) || KNOWN.contains(&kind) {
        return Ok(());
    }
    let told = |why: &str| format!("step {}: {why}", step.name);
    if let Some((why, _)) = REFUSED.iter().find(|(_, kinds)| kinds.contains(&kind)) {
        return Err(told(&format!(
            "the step {kind} of KubeVela is not built in: {why}. A WorkflowStepDefinition {kind} with schematic.template or schematic.cel takes its place"
        )));
    }
    match definition {
        // Why it cannot be rendered is told when it is.
        Some(_) => Ok(()),
        None => Err(told(&format!("step definition {} not found, and no built-in step has that name", step.kind))),
    }
}

/// What a built-in step does; `None` if it is none.
///
/// # Errors
///
/// If something is missing in its properties.
pub fn deed(kind: &str, properties: &Value) -> Result<Option<Deed>, String> {
    let required = |key: &str| match text(properties, key) {
        empty if empty.is_empty() => Err(format!("properties.{key}: Required value")),
        text => Ok(text),
    };
    let text_or = |key: &str, default: &str| match text(properties, key) {
        empty if empty.is_empty() => default.to_owned(),
        text => text,
    };
    Ok(Some(match bare(kind) {
        "apply-object" => {
            let value = properties.get("value").filter(|value| value.as_object().is_some());
            Deed::Apply(value.cloned().ok_or("properties.value: Required value")?)
        }
        // An Application, if nothing else is said.
        "read-object" => Deed::Read(
            map! {
                "apiVersion" => text_or("apiVersion", "core.oam.dev/v1beta1"),
                "kind" => text_or("kind", "Application"),
                "metadata" => map! { "name" => required("name")?, "namespace" => text(properties, "namespace") },
            }
            .into(),
        ),
        "depends-on-app" => Deed::DependOn { namespace: text(properties, "namespace"), name: required("name")? },
        "export2config" => Deed::Apply(data_object("ConfigMap", &required("configName")?, properties, Value::clone)),
        "export2secret" => {
            let encoded = |value: &Value| base64(value.as_str().unwrap_or_default()).into();
            let mut secret = data_object("Secret", &required("secretName")?, properties, encoded);
            let kind = text(properties, "type");
            if !kind.is_empty() {
                secret.set_at(&["type"], kind.into());
            }
            Deed::Apply(secret)
        }
        _ => return Ok(None),
    }))
}

/// A ConfigMap or Secret with the `data` of a step.
fn data_object(kind: &str, name: &str, properties: &Value, form: impl Fn(&Value) -> Value) -> Value {
    let data = properties.get("data").and_then(Value::as_object);
    let data: Map = data.into_iter().flat_map(Map::iter).map(|(key, value)| (key, form(value))).collect();
    let mut metadata = map! { "name" => name };
    let namespace = text(properties, "namespace");
    if !namespace.is_empty() {
        metadata.insert("namespace", namespace);
    }
    map! { "apiVersion" => "v1", "kind" => kind, "metadata" => metadata, "data" => data }.into()
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn steps_say_what_they_do() {
        for (kind, properties, expected) in [
            ("apply-object", r#"{"value":{"kind":"X"}}"#, Ok(r#"{"kind":"X"}"#)),
            ("apply-object@v1", r#"{"value":{"kind":"X"}}"#, Ok(r#"{"kind":"X"}"#)),
            ("apply-object", "{}", Err("properties.value: Required value")),
            (
                "export2config",
                r#"{"configName":"c","namespace":"n","data":{"a":"b"}}"#,
                Ok(
                    r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"c","namespace":"n"}}"#,
                ),
            ),
            (
                "export2secret",
                r#"{"secretName":"s","type":"Opaque","data":{"a":"b"}}"#,
                Ok(
                    r#"{"apiVersion":"v1","data":{"a":"Yg=="},"kind":"Secret","metadata":{"name":"s"},"type":"Opaque"}"#,
                ),
            ),
            ("export2secret", "{}", Err("properties.secretName: Required value")),
            ("read-object", r#"{"kind":"ConfigMap"}"#, Err("properties.name: Required value")),
            ("depends-on-app", "{}", Err("properties.name: Required value")),
        ] {
            let done = deed(kind, &parse(properties)).map(|deed| match deed {
                Some(Deed::Apply(object)) => json::to_string(&object),
                other => format!("{other:?}"),
            });
            assert_eq!(done.as_deref(), expected.map_err(str::to_owned).as_ref().copied(), "{kind} {properties}");
        }
        assert_eq!(deed("other", &Value::Null), Ok(None));
    }

    #[test]
    fn what_is_refused_says_what_to_do_instead() {
        let step = |kind: &str| Step { name: "s".into(), kind: kind.into(), ..Step::default() };
        let own = parse(r#"{"metadata":{"name":"notification"},"spec":{"schematic":{"template":{}}}}"#);
        let cue = parse(r#"{"metadata":{"name":"apply-object"},"spec":{"schematic":{"cue":{}}}}"#);
        assert_eq!(check(&step("notification"), Some(&own)), Ok(()));
        assert_eq!(check(&step("apply-object"), Some(&cue)), Ok(()));
        assert!(replaces(Some(&own)) && !replaces(Some(&cue)) && !replaces(None));
        for (kind, why) in [
            ("notification", "step s: the step notification of KubeVela is not built in: it sends messages"),
            ("deploy2env", "step s: the step deploy2env of KubeVela is not built in: deploy, with policies"),
            ("share-cloud-resource", "step s: the step share-cloud-resource of KubeVela is not built in: Terraform"),
            ("mine", "step s: step definition mine not found, and no built-in step has that name"),
        ] {
            assert!(check(&step(kind), None).is_err_and(|error| error.starts_with(why)), "{kind}");
        }
    }
}
