//! Definitions whose template is ours: `spec.schematic` of a ComponentDefinition, TraitDefinition, PolicyDefinition or
//! WorkflowStepDefinition.
//!
//! ```yaml
//! spec:
//!   schematic:
//!     parameterSchema:               # JSON Schema of the properties; its defaults are filled in, then it is checked
//!       type: object
//!       required: [image]
//!       properties: {image: {type: string}, replicas: {type: integer, default: 1}}
//!     template:                      # strings are Go templates with Sprig's functions ...
//!       output:
//!         apiVersion: apps/v1
//!         kind: Deployment
//!         spec: {replicas: "{{ .parameter.replicas }}", paused: "{{ .parameter.paused }}"}
//!       outputs:
//!         service: {includeWhen: "{{ .parameter.expose }}", apiVersion: v1, kind: Service}
//!     cel:                           # ... or, instead of `template`, have CEL in ${}
//!       output: {spec: {replicas: "${parameter.replicas * 2}"}}
//!     health:                        # CEL over the live objects; without it the kind's own health counts
//!       isHealthy: context.output.status.readyReplicas == parameter.replicas
//!       message: "'ready: ' + string(context.output.status.readyReplicas)"
//!       details: {ready: string(context.output.status.readyReplicas)}
//! ```
//!
//! A template knows `parameter` (the properties) and `context`: `name`, `namespace`, `appName`, `appRevision`,
//! `publishVersion`, `cluster`, `replicaKey`, `componentType`, `appLabels`, `appAnnotations`; a trait also `context.output`
//! and `context.outputs`, the objects it is attached to. Every string is rendered by itself, so that no parameter can add
//! a field. A string that is nothing but `{{ .parameter.x }}` or `${...}` is that value, of whatever type; where it is
//! missing or null, its field is left out. `includeWhen` leaves out a whole object.
//!
//! A trait may have `outputs`, and change what it is attached to: `patch` the workload and `patchOutputs` by name (merged
//! as kubectl does: lists of built-in kinds by their keys), `mergePatch` (RFC 7396) and `jsonPatch` (RFC 6902) of the
//! workload.
//!
//! In `cel`, the members of an object that a member `...` gives are members of the object it stands in, unless they stand
//! there themselves: `labels: {"...": "${parameter.?labels}", app: "${context.name}"}`.
//!
//! Where a server's own CustomResourceDefinition prunes `spec.schematic`, the same may stand in
//! `spec.extension.schematic`.

mod expressions;
mod health;
mod parameters;
mod template;

use object::{Map, Value, map};

use super::library;

pub use health::Verdict;

/// The name of a member that stands for all members of its value.
const SPREAD: &str = "...";

/// What a definition renders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The workload; a trait has none.
    pub main: Option<Value>,
    /// Further objects, by name.
    pub others: Vec<(String, Value)>,
    /// A patch of the workload, by a trait.
    pub patch: Option<Value>,
    /// Patches of further objects, by their names.
    pub patch_outputs: Vec<(String, Value)>,
    /// A patch of the workload in the form of RFC 7396: lists are replaced.
    pub merge_patch: Option<Value>,
    /// Operations on the workload, in the form of RFC 6902.
    pub json_patch: Option<Value>,
}

/// Renders one kind of template.
pub trait Renderer: Send + Sync {
    /// Fills in `tree`, a part of a definition's template that stands at `place`, from `parameter` (the properties) and
    /// `context`. Null where nothing is left.
    ///
    /// # Errors
    ///
    /// In words for whoever wrote the definition or the parameters; with the place.
    fn fill(&self, place: &str, tree: &Value, parameter: &Value, context: &Value) -> Result<Value, String>;
}

/// The template of a definition.
pub struct Schematic<'a> {
    name: &'a str,
    schematic: &'a Value,
    template: &'a Value,
    renderer: &'static dyn Renderer,
    /// How the template is called.
    form: &'static str,
}

const FORMS: [(&str, &dyn Renderer); 2] = [("template", &template::Structured), ("cel", &expressions::Expressions)];

impl<'a> Schematic<'a> {
    /// The template of a definition.
    ///
    /// # Errors
    ///
    /// If it has none that is understood.
    pub fn of(definition: &'a Value) -> Result<Self, String> {
        let name = definition.name();
        let given = definition.at(&["spec", "schematic"]);
        let all = [given, definition.at(&["spec", "extension", "schematic"])];
        for schematic in all.into_iter().flatten() {
            for (form, renderer) in FORMS {
                if let Some(template) = schematic.get(form) {
                    return Ok(Schematic { name, schematic, template, renderer, form });
                }
            }
        }
        let has = |key| given.is_some_and(|given| given.get(key).is_some());
        Err(match (has("cue"), has("terraform")) {
            (true, _) => {
                let rest =
                    match library::all().any(|own| (own.name(), own.get("kind")) == (name, definition.get("kind"))) {
                        true => "; without this definition, the one of that name that comes with Stanchion counts",
                        false => "",
                    };
                format!(
                    "definition {name}: CUE templates are not supported; write spec.schematic.template or spec.schematic.cel{rest}"
                )
            }
            (_, true) => format!("definition {name}: Terraform is not supported"),
            _ => format!("definition {name}: there is neither spec.schematic.template nor spec.schematic.cel"),
        })
    }

    /// The properties with their defaults.
    ///
    /// # Errors
    ///
    /// If they do not fit the schema, or that is none.
    pub fn parameters(&self, properties: &Value) -> Result<Value, String> {
        let schema = self.schematic.get("parameterSchema");
        parameters::complete(schema, properties).map_err(|error| self.told(&error))
    }

    /// Renders the template for properties in a context.
    ///
    /// # Errors
    ///
    /// In words for whoever wrote the definition or the properties: with the definition, the place and what is there.
    pub fn render(&self, properties: &Value, context: &Value) -> Result<Output, String> {
        let parameter = self.parameters(properties)?;
        let fill = |place: &str, tree: &Value| self.renderer.fill(place, tree, &parameter, context);
        self.assemble(&fill).map_err(|error| self.told(&error))
    }

    fn told(&self, error: &str) -> String {
        format!("definition {}: {error}", self.name)
    }

    fn assemble(&self, fill: &dyn Fn(&str, &Value) -> Result<Value, String>) -> Result<Output, String> {
        let root = format!("schematic.{}", self.form);
        let members = self.template.as_object().ok_or_else(|| format!("{root} is no object"))?;
        let mut output = Output::default();
        for (key, tree) in members.iter() {
            let place = format!("{root}.{key}");
            match key {
                "output" => output.main = included(&place, tree, fill)?,
                "outputs" => output.others = named(&place, tree, fill)?,
                "patch" => output.patch = included(&place, tree, fill)?,
                "patchOutputs" => output.patch_outputs = named(&place, tree, fill)?,
                "mergePatch" => {
                    output.merge_patch = Some(fill(&place, tree)?).filter(|patch| patch.as_object().is_some())
                }
                "jsonPatch" => output.json_patch = Some(fill(&place, tree)?).filter(|patch| !patch.is_null()),
                _ => {
                    return Err(format!(
                        "{place}: unknown member; there are output, outputs, patch, patchOutputs, mergePatch and jsonPatch"
                    ));
                }
            }
        }
        Ok(output)
    }

    /// What the definition says of the health of live objects; `None` if it says nothing. `context` has the workload as
    /// `output` and further objects as `outputs`.
    pub fn health(&self, properties: &Value, context: Value) -> Option<Verdict> {
        let health = self.schematic.get("health").filter(|health| health.as_object().is_some())?;
        Some(match self.parameters(properties) {
            Ok(parameter) => health::judge(health, &parameter, context).map_err(|error| self.told(&error)),
            Err(error) => Err(error),
        })
        .map(|verdict| verdict.unwrap_or_else(|error| Verdict { healthy: false, message: error, details: Map::new() }))
    }

    /// Whether the definition says anything of health.
    pub fn has_health(&self) -> bool {
        self.schematic.get("health").is_some()
    }
}

/// An object of a template, unless its `includeWhen` says no.
fn included(
    place: &str,
    tree: &Value,
    fill: &dyn Fn(&str, &Value) -> Result<Value, String>,
) -> Result<Option<Value>, String> {
    let Some(when) = tree.get("includeWhen") else { return Ok(Some(fill(place, tree)?).filter(|v| !v.is_null())) };
    let place_of_when = format!("{place}.includeWhen");
    let is_included = match fill(&place_of_when, when)? {
        Value::Bool(is_included) => is_included,
        Value::Null => false,
        Value::String(text) => match text.as_str() {
            "true" => true,
            "" | "false" | "<no value>" => false,
            other => return Err(format!("{place_of_when}: neither true nor false: {other:?}")),
        },
        other => return Err(format!("{place_of_when}: neither true nor false: a {}", other.type_name())),
    };
    if !is_included {
        return Ok(None);
    }
    let mut tree = tree.clone();
    tree.remove_at(&["includeWhen"]);
    Ok(Some(fill(place, &tree)?).filter(|object| !object.is_null()))
}

fn named(
    place: &str,
    tree: &Value,
    fill: &dyn Fn(&str, &Value) -> Result<Value, String>,
) -> Result<Vec<(String, Value)>, String> {
    let members = tree.as_object().ok_or_else(|| format!("{place} is no object"))?;
    let mut all = Vec::with_capacity(members.len());
    for (name, tree) in members.iter() {
        if name == SPREAD {
            let place = format!("{place}.{name}");
            match fill(&place, tree)? {
                Value::Object(members) => {
                    all.extend(members.into_iter().map(|(name, object)| (name.to_string(), object)))
                }
                Value::Null => {}
                other => return Err(format!("{place}: must be an object, not a {}", other.type_name())),
            }
            continue;
        }
        all.extend(included(&format!("{place}.{name}"), tree, fill)?.map(|object| (name.to_owned(), object)));
    }
    Ok(all)
}

/// What templates see: `parameter` and `context`.
fn data(parameter: &Value, context: &Value) -> Value {
    map! { "parameter" => parameter.clone(), "context" => context.clone() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{json, yaml};

    fn rendered(schematic: &str, properties: &str) -> Result<String, String> {
        let text = format!("{{metadata: {{name: web}}, spec: {{schematic: {schematic}}}}}");
        let definition = yaml::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        let properties = yaml::parse(properties.as_bytes()).map_err(|error| error.to_string())?;
        let context = map! { "name" => "c", "output" => map! { "spec" => map! { "replicas" => 2 } } }.into();
        let output = Schematic::of(&definition)?.render(&properties, &context)?;
        let mut told: Vec<String> = output.main.iter().map(json::to_string).collect();
        told.extend(output.others.iter().map(|(name, object)| format!("{name}={}", json::to_string(object))));
        told.extend(output.patch.iter().map(|patch| format!("patch {}", json::to_string(patch))));
        told.extend(output.json_patch.iter().map(|patch| format!("json {}", json::to_string(patch))));
        Ok(told.join(" "))
    }

    #[test]
    fn templates_of_both_forms_render_the_same() {
        for (template, cel, properties, expected) in [
            ("{{ .parameter.num }}", "${parameter.num}", "{num: 3}", r#"{"x":3}"#),
            ("{{ .parameter.num }}", "${parameter.?num}", "{}", "{}"),
            ("a-{{ .parameter.num }}", "a-${parameter.num}", "{num: 3}", r#"{"x":"a-3"}"#),
            ("{{ .context.name | upper }}", "${context.name.upperAscii()}", "{}", r#"{"x":"C"}"#),
            ("{{ .parameter.num }}", "${parameter.num}", r#"{num: "\", z: \""}"#, r#"{"x":"\", z: \""}"#),
            ("{{ .parameter.num }}", "${parameter.num}", "{num: {a: [1]}}", r#"{"x":{"a":[1]}}"#),
        ] {
            for (form, text) in [("template", template), ("cel", cel)] {
                let schematic = format!("{{{form}: {{output: {{x: \"{text}\"}}}}}}");
                assert_eq!(rendered(&schematic, properties), Ok(expected.to_owned()), "{form} {text}");
            }
        }
    }

    #[test]
    fn objects_may_be_left_out_and_traits_patch() {
        let schematic = r#"{cel: {outputs: {a: {includeWhen: "${parameter.shown}", x: 1}, b: {x: "${[1, 2].map(i, i * context.output.spec.replicas)}"}}, patch: {r: "${parameter.shown ? dyn(1) : null}"}, jsonPatch: [{op: remove, path: /x}]}}"#;
        assert_eq!(
            rendered(schematic, "{shown: true}"),
            Ok(r#"a={"x":1} b={"x":[2,4]} patch {"r":1} json [{"op":"remove","path":"/x"}]"#.into())
        );
        assert_eq!(
            rendered(schematic, "{shown: false}"),
            Ok(r#"b={"x":[2,4]} patch {} json [{"op":"remove","path":"/x"}]"#.into())
        );
        let schematic = r#"{template: {outputs: {a: {includeWhen: "{{ .parameter.shown }}", x: 1}}}}"#;
        assert_eq!(rendered(schematic, "{}"), Ok(String::new()));
        assert_eq!(rendered(schematic, "{shown: true}"), Ok(r#"a={"x":1}"#.into()));
    }

    #[test]
    fn properties_are_completed_and_checked() {
        let schematic = r#"{parameterSchema: {type: object, required: [image], properties: {image: {type: string}, num: {type: integer, default: 2, minimum: 1}, o: {type: object, default: {}, properties: {p: {default: q}}}}, x-kubernetes-validations: [{rule: "self.num < 10", message: num is too large}]}, cel: {output: {x: "${parameter.num}", z: "${parameter.o.p}"}}}"#;
        for (properties, expected) in [
            ("{image: i}", Ok(r#"{"x":2,"z":"q"}"#)),
            ("{image: i, num: 5}", Ok(r#"{"x":5,"z":"q"}"#)),
            ("{}", Err("definition web: properties.image: Required value")),
            ("{image: i, num: 0}", Err("definition web: properties.num: does not satisfy minimum 1")),
            ("{image: i, num: 12}", Err("definition web: properties: num is too large")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(rendered(schematic, properties), expected, "{properties}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (schematic, error) in [
            (
                "{cue: {template: x}}",
                "definition web: CUE templates are not supported; write spec.schematic.template or spec.schematic.cel",
            ),
            ("{terraform: {}}", "definition web: Terraform is not supported"),
            ("{}", "definition web: there is neither spec.schematic.template nor spec.schematic.cel"),
            (
                "{cel: {ouptut: {}}}",
                "definition web: schematic.cel.ouptut: unknown member; there are output, outputs, patch, patchOutputs, mergePatch and jsonPatch",
            ),
            (
                r#"{cel: {output: {a: [{b: "x ${parameter.num +}"}]}}}"#,
                "definition web: schematic.cel.output.a[0].b: 1:16: Syntax error: mismatched input '<EOF>' expecting",
            ),
            (r#"{cel: {output: {a: "${parameter.num}"}}}"#, "definition web: schematic.cel.output.a: no such key: num"),
            (
                r#"{cel: {output: {a: "${parameter.n"}}}"#,
                "definition web: schematic.cel.output.a: there is no end of the expression that begins at 1",
            ),
            (
                r#"{template: {output: {a: {b: "{{ .parameter.num"}}}}"#,
                "definition web: template: schematic.template.output.a.b:1: unclosed action",
            ),
            (
                r#"{template: {outputs: {s: {includeWhen: "perhaps"}}}}"#,
                "definition web: schematic.template.outputs.s.includeWhen: neither true nor false: \"perhaps\"",
            ),
        ] {
            let told = rendered(schematic, "{}").err().unwrap_or_default();
            assert!(told.starts_with(error), "{schematic}: {told}");
        }
    }
}
