//! The steps of a workflow, written or derived.

use object::{Value, map};

use super::super::declared::{bare, inputs, outputs, text, texts};

/// How steps follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each waits for the one before.
    StepByStep,
    /// Each waits for what it names.
    #[default]
    Dag,
}

impl Mode {
    fn read(name: Option<&str>, default: Mode) -> Self {
        match name {
            Some("StepByStep") => Mode::StepByStep,
            Some("DAG") => Mode::Dag,
            _ => default,
        }
    }

    /// As statuses have it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::StepByStep => "StepByStep",
            Mode::Dag => "DAG",
        }
    }
}

/// A step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its name; no other step has it.
    pub name: String,
    /// What it does.
    pub kind: String,
    /// When it runs: `always`, or what an expression says; empty for as long as nothing failed.
    pub when: String,
    /// How long it may take, as Go writes durations; empty for as long as it takes.
    pub timeout: String,
    /// The steps it waits for.
    pub depends_on: Vec<String>,
    /// What it takes from the outputs of others: name and place in the properties.
    pub inputs: Vec<(String, String)>,
    /// What it gives: name and path of the value in its output.
    pub outputs: Vec<(String, String)>,
    /// The parameters.
    pub properties: Value,
    /// The steps of a group.
    pub sub_steps: Vec<Step>,
}

impl Step {
    fn read(step: &Value, position: &str) -> Self {
        let name = text(step, "name");
        let name = if name.is_empty() { format!("step-{position}") } else { name };
        let sub_steps = step.get("subSteps").and_then(Value::as_array).unwrap_or_default();
        let sub_steps = sub_steps.iter().enumerate();
        Step {
            kind: text(step, "type"),
            when: text(step, "if"),
            timeout: text(step, "timeout"),
            depends_on: texts(step, "dependsOn"),
            inputs: inputs(step),
            outputs: outputs(step),
            properties: step.get("properties").cloned().unwrap_or_default(),
            sub_steps: sub_steps.map(|(index, step)| Step::read(step, &format!("{position}-{index}"))).collect(),
            name,
        }
    }
}

/// The steps of a run and how they follow each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// How the steps follow each other.
    pub mode: Mode,
    /// How the steps of a group do.
    pub sub_mode: Mode,
}

impl Plan {
    /// All steps, those of groups after their group.
    pub fn all(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(|step| [step].into_iter().chain(&step.sub_steps))
    }
}

/// The steps of an application. `workflow` is the Workflow that `spec.workflow.ref` names.
///
/// Without steps, an application with topologies deploys to each, one with overrides deploys once, and any other applies
/// its components, each after those it depends on.
///
/// # Errors
///
/// If steps are written and named at once, or two have one name.
pub fn plan(application: &Value, workflow: Option<&Value>) -> Result<Plan, String> {
    let written = application.at(&["spec", "workflow"]);
    let part = |key| written.and_then(|written| written.get(key));
    let inline = part("steps").and_then(Value::as_array).filter(|steps| !steps.is_empty());
    let named = part("ref").and_then(Value::as_str).filter(|name| !name.is_empty());
    let (steps, modes) = match (inline, named, workflow) {
        (Some(_), Some(_), _) => return Err("spec.workflow: ref and steps exclude each other".to_owned()),
        (Some(steps), _, _) => (read(steps), part("mode")),
        (_, Some(_), Some(workflow)) => {
            let steps = workflow.get("steps").and_then(Value::as_array).unwrap_or_default();
            (read(steps), part("mode").or(workflow.get("mode")))
        }
        (_, Some(name), None) => return Err(format!("workflow {name} not found")),
        _ => (derived(application), part("mode")),
    };
    let mode = |key| modes.and_then(|modes| modes.get(key)).and_then(Value::as_str);
    let default = if inline.is_some() || named.is_some() { Mode::StepByStep } else { Mode::Dag };
    let mut names: Vec<&str> = steps
        .iter()
        .flat_map(|step| [step].into_iter().chain(&step.sub_steps))
        .map(|step| step.name.as_str())
        .collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("spec.workflow.steps: Duplicate value: {:?}", twice[0]));
    }
    Ok(Plan { mode: Mode::read(mode("steps"), default), sub_mode: Mode::read(mode("subSteps"), Mode::Dag), steps })
}

fn read(steps: &[Value]) -> Vec<Step> {
    steps.iter().enumerate().map(|(index, step)| Step::read(step, &index.to_string())).collect()
}

fn derived(application: &Value) -> Vec<Step> {
    let list = |key| application.at(&["spec", key]).and_then(Value::as_array).unwrap_or_default();
    let policies = list("policies");
    let of = |kinds: &[&str]| -> Vec<String> {
        let named =
            policies.iter().filter(|policy| kinds.contains(&bare(policy.str_at(&["type"]).unwrap_or_default())));
        named.map(|policy| text(policy, "name")).collect()
    };
    let (topologies, overrides) = (of(&["topology"]), of(&["override", "replication"]));
    let deploy = |name: String, policies: Vec<String>| Step {
        name,
        kind: "deploy".to_owned(),
        properties: map! { "policies" => policies }.into(),
        ..Step::default()
    };
    if !topologies.is_empty() {
        let step = |topology: String| {
            let policies = [&overrides[..], std::slice::from_ref(&topology)].concat();
            deploy(format!("deploy-{topology}"), policies)
        };
        return topologies.into_iter().map(step).collect();
    }
    if !overrides.is_empty() {
        return vec![deploy("deploy".to_owned(), overrides)];
    }
    let component = |component: &Value| Step {
        name: text(component, "name"),
        kind: "apply-component".to_owned(),
        depends_on: texts(component, "dependsOn"),
        properties: map! { "component" => text(component, "name") }.into(),
        ..Step::read(component, "")
    };
    list("components")
        .iter()
        .map(component)
        .map(|step| Step { when: String::new(), timeout: String::new(), ..step })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn steps_are_written_or_derived() {
        for (spec, steps, mode) in [
            (
                r#"{"components":[{"name":"a","type":"t","dependsOn":["b"]},{"name":"b","type":"t"}]}"#,
                "a:apply-component<b b:apply-component<",
                "DAG",
            ),
            (
                r#"{"components":[{"name":"a","type":"t"}],"policies":[{"name":"x","type":"topology"},{"name":"o","type":"override"},{"name":"y","type":"topology"}]}"#,
                "deploy-x:deploy< deploy-y:deploy<",
                "DAG",
            ),
            (r#"{"components":[],"policies":[{"name":"o","type":"override"}]}"#, "deploy:deploy<", "DAG"),
            (
                r#"{"components":[],"workflow":{"steps":[{"type":"suspend"},{"type":"deploy","name":"d"}]}}"#,
                "step-0:suspend< d:deploy<",
                "StepByStep",
            ),
            (
                r#"{"components":[],"workflow":{"mode":{"steps":"DAG"},"steps":[{"type":"suspend"}]}}"#,
                "step-0:suspend<",
                "DAG",
            ),
        ] {
            let application = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap_or_default();
            let plan = plan(&application, None).unwrap_or_default();
            let told: Vec<String> =
                plan.steps.iter().map(|s| format!("{}:{}<{}", s.name, s.kind, s.depends_on.join(","))).collect();
            assert_eq!((told.join(" ").as_str(), plan.mode.name()), (steps, mode), "{spec}");
        }
    }

    #[test]
    fn what_cannot_be_a_workflow_is_refused() {
        for (workflow, error) in [
            (r#"{"ref":"w","steps":[{"type":"a"}]}"#, "spec.workflow: ref and steps exclude each other"),
            (r#"{"ref":"w"}"#, "workflow w not found"),
            (
                r#"{"steps":[{"type":"a","name":"x"},{"type":"b","name":"x"}]}"#,
                "spec.workflow.steps: Duplicate value: \"x\"",
            ),
        ] {
            let application = format!(r#"{{"spec":{{"components":[],"workflow":{workflow}}}}}"#);
            let application = json::parse(application.as_bytes()).unwrap_or_default();
            assert_eq!(plan(&application, None), Err(error.to_owned()));
        }
    }
}
