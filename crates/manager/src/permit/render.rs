//! From a template and a permit to the snapshot of what the permit will make.

use super::template::{PermitBlock, PermitTemplate};
use crate::render::Moment;
use keeper::{Family, tracking};
use object::{Map, Value, map};
use template::{Data, MissingKey, Settings, fast};

/// The facts of a permit that templates see as `request`.
pub fn request_facts(permit: &Value) -> Value {
    let requester = |key: &str| permit.at(&["spec", "requester", key]).cloned();
    map! {
        "name" => permit.name(),
        "namespace" => permit.namespace(),
        "username" => requester("name").unwrap_or_else(|| "".into()),
        "groups" => requester("groups").unwrap_or_else(|| Value::Array(Vec::new())),
        "timestamp" => permit.meta_str("creationTimestamp"),
    }
    .into()
}

/// Parameters for plain substitution: `a.b` and `.a.b`, what is no string as JSON.
#[derive(Debug)]
pub struct Params<'a>(pub &'a Value);

impl fast::Lookup for Params<'_> {
    fn lookup(&self, name: &str) -> Option<String> {
        let path: Vec<&str> = name.strip_prefix('.').unwrap_or(name).split('.').collect();
        match self.0.at(&path)? {
            Value::String(s) => Some(s.to_string()),
            other => Some(object::json::to_string(other)),
        }
    }
}

/// What was rendered, and what went wrong: blocks that could be rendered are there even if others could not.
#[derive(Debug)]
pub struct Snapshot {
    /// `{policy, targets}` for each block that made something.
    pub blocks: Vec<Value>,
    /// The first problem of each block.
    pub problems: Vec<String>,
}

/// Renders all blocks. `context` are the loaded objects by index; every missing key is an error.
pub fn render(template: &PermitTemplate, permit: &Value, context: &Map, moment: &Moment) -> Snapshot {
    let nothing = Value::Object(Map::new());
    let params = permit.at(&["spec", "params"]).filter(|p| p.as_object().is_some()).unwrap_or(&nothing);
    let facts = request_facts(permit);
    let settings =
        Settings { missing_key: MissingKey::Error, now: moment.now, seed: moment.seed, ..Settings::default() };
    let resources: Value = map! { "resources" => context.clone() }.into();
    let structured = Data::Members(vec![("params", params), ("context", &resources), ("request", &facts)]);
    let mut flat: Vec<(&str, &Value)> = params.as_object().iter().flat_map(|p| p.iter()).collect();
    flat.extend(context.iter());
    flat.push(("request", &facts));
    let flat = Data::Members(flat);

    let mut snapshot = Snapshot { blocks: Vec::new(), problems: Vec::new() };
    for (i, block) in template.blocks.iter().enumerate() {
        let (objects, problem) = objects(block, &flat, &structured, &settings);
        snapshot.problems.extend(problem.map(|problem| problem.told(i)));
        let mut targets = Vec::new();
        for mut object in objects {
            if object.name().is_empty() {
                snapshot.problems.push(format!("resources[{i}]: an object has no metadata.name"));
                continue;
            }
            if object.namespace().is_empty() {
                object.set_at(&["metadata", "namespace"], permit.namespace().into());
            }
            if let Some(application) = Family::ResourcePermit.application() {
                object.set_at(&["metadata", "labels", tracking::APPLICATION], application.into());
            }
            targets.push(object);
        }
        if !targets.is_empty() {
            snapshot.blocks.push(map! { "policy" => block.policy.clone(), "targets" => targets }.into());
        }
    }
    snapshot
}

/// Why a block cannot be rendered.
struct Problem {
    error: String,
    /// Under what the template finds parameters.
    root: &'static str,
}

impl Problem {
    /// For people: what they have to give comes first.
    fn told(&self, block: usize) -> String {
        let place = format!("resources[{block}]: {}", self.error);
        self.missing().map_or(place.clone(), |name| format!("parameter {name:?} is missing: {place}"))
    }

    /// The parameter that is missing, if that is what is wrong: the error shows where it is used, and what is not there.
    fn missing(&self) -> Option<&str> {
        let (before, key) = self.error.rsplit_once(": map has no entry for key \"")?;
        let key = key.strip_suffix('"')?;
        let (_, place) = before.rsplit_once("at <")?;
        let used = place.strip_suffix('>')?.strip_prefix(self.root)?.strip_prefix(key)?;
        (used.is_empty() || used.starts_with('.')).then_some(key)
    }
}

fn objects(
    block: &PermitBlock,
    flat: &Data<'_>,
    structured: &Data<'_>,
    settings: &Settings,
) -> (Vec<Value>, Option<Problem>) {
    let mut out = Vec::new();
    for target in &block.targets {
        match target.render(flat, settings) {
            Ok(object) => out.push(object),
            Err(error) => return (out, Some(Problem { error: error.to_string(), root: "." })),
        }
    }
    if let Some(template) = &block.template {
        let text = template.render(structured, settings);
        match text.and_then(|text| template::documents(&text)) {
            Ok(objects) => out.extend(objects),
            Err(error) => return (out, Some(Problem { error: error.to_string(), root: ".params." })),
        }
    }
    (out, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{json, yaml};
    use std::time::SystemTime;
    use template::fast::Lookup;

    fn snapshot(spec: &str, params: &str) -> Snapshot {
        let read = |t: &str| yaml::parse(t.as_bytes()).unwrap();
        let template = PermitTemplate::read(&read(&format!("{{spec: {spec}}}"))).unwrap();
        let permit = read(&format!(
            "{{metadata: {{name: p, namespace: ns, creationTimestamp: '2026-01-01T00:00:00Z'}}, spec: {{requester: {{name: bob}}, params: {params}}}}}"
        ));
        let context = map! { "maps" => vec![read("{metadata: {name: seen}}")] };
        render(&template, &permit, &context, &Moment { now: SystemTime::UNIX_EPOCH, seed: [0; 32] })
    }

    #[test]
    fn targets_see_a_flat_root_and_templates_a_structured_one() {
        let s = snapshot(
            "{resources: [{targets: [{kind: A, metadata: {name: '{{ .x }}-{{ (index .maps 0).metadata.name }}'}}], template: \"kind: B\\nmetadata: {name: '{{ .params.x }}-{{ .request.username }}', namespace: other}\\nt: '{{ .request.timestamp }} {{ len .context.resources.maps }}'\"}, {template: '# nothing'}]}",
            "{x: a}",
        );
        assert_eq!(s.problems, Vec::<String>::new());
        let labels = r#""labels":{"app.kubernetes.io/managed-by":"resource-permit-controller"}"#;
        let expected = format!(
            r#"[{{"policy":null,"targets":[{{"kind":"A","metadata":{{{labels},"name":"a-seen","namespace":"ns"}}}},{{"kind":"B","metadata":{{{labels},"name":"a-bob","namespace":"other"}},"t":"2026-01-01T00:00:00Z 1"}}]}}]"#
        );
        assert_eq!(json::to_string(&Value::Array(s.blocks)), expected);
    }

    #[test]
    fn a_parameter_cannot_add_a_field_to_a_target() {
        let s = snapshot(
            "{resources: [{targets: [{kind: A, metadata: {name: a}, data: {k: '{{ .x }}'}}]}]}",
            r#"{x: "\"}, \"evil\": {\"\n---\nkind: Evil"}"#,
        );
        let targets = s.blocks[0].get("targets").and_then(Value::as_array).unwrap();
        assert_eq!((targets.len(), targets[0].get("evil")), (1, None));
    }

    #[test]
    fn what_can_be_rendered_is_shown_although_something_else_cannot() {
        let s = snapshot("{resources: [{targets: [{kind: A, metadata: {name: a}}, {kind: '{{ .missing }}'}]}]}", "{}");
        assert_eq!(s.blocks.len(), 1);
        assert!(s.problems[0].contains("map has no entry for key \"missing\""), "{:?}", s.problems);
    }

    #[test]
    fn a_parameter_that_is_missing_is_named() {
        for (spec, expected) in [
            ("{targets: [{kind: '{{ .x }}', metadata: {name: a}}]}", true),
            ("{targets: [{kind: A, metadata: {name: 'a-{{ .x | upper }}'}}]}", true),
            ("{targets: [{kind: A, metadata: {name: a}, d: '{{ .x.y }}'}]}", true),
            ("{template: 'kind: {{ .params.x }}'}", true),
            ("{template: 'kind: {{ .x }}'}", false),
            ("{targets: [{kind: '{{ .known.x }}', metadata: {name: a}}]}", false),
            ("{targets: [{kind: '{{ fail \"x\" }}', metadata: {name: a}}]}", false),
        ] {
            let s = snapshot(&format!("{{resources: [{spec}]}}"), "{known: {}}");
            let is_told = s.problems[0].starts_with("parameter \"x\" is missing: resources[0]: template: ");
            assert_eq!(is_told, expected, "{:?}", s.problems);
        }
    }

    #[test]
    fn references_know_parameters() {
        let params = yaml::parse(b"{a: {b: x}, num: 3}").unwrap();
        let p = Params(&params);
        assert_eq!(
            (p.lookup("a.b"), p.lookup(".a.b"), p.lookup("num"), p.lookup("z")),
            (Some("x".into()), Some("x".into()), Some("3".into()), None)
        );
    }
}
