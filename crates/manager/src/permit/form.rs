//! `x-capsule-form` in a schema of parameters: a hint for user interfaces, which gives no rights.

use object::Value;
use object::selector::Labels;
use template::{Functions, Template};

/// The only widget.
const WIDGET: &str = "kubernetes-resource";

/// Checks the hint of one node of a schema. The kind that it names need not be served yet.
///
/// # Errors
///
/// What is wrong with it, with its path.
pub fn check(node: &Value) -> Result<(), String> {
    let Some(form) = node.get("x-capsule-form") else { return Ok(()) };
    let place = |error: String| format!("x-capsule-form{error}");
    members(form, &["widget", "source", "option"]).map_err(place)?;
    if form.str_at(&["widget"]) != Some(WIDGET) {
        return Err(place(format!(".widget: Unsupported value: supported values: {WIDGET:?}")));
    }
    let source = form.get("source").ok_or_else(|| place(".source: Required value".to_owned()))?;
    source_of(source).map_err(|error| place(format!(".source{error}")))?;
    match form.get("option") {
        Some(option) => option_of(option).map_err(|error| place(format!(".option{error}"))),
        None => Ok(()),
    }
}

fn source_of(source: &Value) -> Result<(), String> {
    members(source, &["apiVersion", "kind", "namespace", "labelSelector", "fieldSelector"])?;
    for key in ["apiVersion", "kind"] {
        if text(source, key)?.is_empty() {
            return Err(format!(".{key}: Required value"));
        }
    }
    let namespace = text(source, "namespace")?;
    let problems = object::names::dns1123_label(namespace);
    if !["", "*"].contains(&namespace) && !problems.is_empty() {
        return Err(format!(".namespace: Invalid value: {}", problems.join("; ")));
    }
    let labels = match source.get("labelSelector") {
        Some(Value::Object(_)) => source.get("labelSelector").map_or(Ok(Labels::default()), Labels::from_object),
        _ => Labels::parse(text(source, "labelSelector")?),
    };
    labels.map_err(|error| format!(".labelSelector: {error}"))?;
    object::selector::Fields::parse(text(source, "fieldSelector")?)
        .map(drop)
        .map_err(|error| format!(".fieldSelector: {error}"))
}

fn option_of(option: &Value) -> Result<(), String> {
    let keys = ["labelTemplate", "valueTemplate"];
    members(option, &keys)?;
    keys.into_iter().try_for_each(|key| {
        let parsed = Template::parse(key, text(option, key)?, Functions::Sprig);
        parsed.map(drop).map_err(|error| format!(".{key}: {error}"))
    })
}

/// Whether a value is an object with no other members than these.
fn members(value: &Value, known: &[&str]) -> Result<(), String> {
    let members = value.as_object().ok_or(": must be an object")?;
    match members.keys().find(|key| !known.contains(key)) {
        Some(unknown) => Err(format!(": unknown field {unknown:?}")),
        None => Ok(()),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    match value.get(key) {
        None => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| format!(".{key}: must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_checked_to_the_last_member() {
        let source = "source: {apiVersion: v1, kind: Pod}";
        for (form, problem) in [
            (format!("{{widget: kubernetes-resource, {source}}}"), ""),
            ("{widget: kubernetes-resource, source: {apiVersion: x/v1, kind: Nothing, namespace: request, labelSelector: 'a=b', fieldSelector: 'metadata.name=x'}, option: {labelTemplate: '{{ .metadata.name }}', valueTemplate: x}}".to_owned(), ""),
            ("{widget: kubernetes-resource, source: {apiVersion: v1, kind: Pod, namespace: '*', labelSelector: {matchLabels: {a: b}}}}".to_owned(), ""),
            ("1".to_owned(), ": must be an object"),
            (format!("{{{source}}}"), ".widget: Unsupported value"),
            (format!("{{widget: slider, {source}}}"), ".widget: Unsupported value"),
            ("{widget: kubernetes-resource}".to_owned(), ".source: Required value"),
            ("{widget: kubernetes-resource, source: {kind: Pod}}".to_owned(), ".source.apiVersion: Required value"),
            ("{widget: kubernetes-resource, source: {apiVersion: v1, kind: 3}}".to_owned(), ".source.kind: must be a string"),
            ("{widget: kubernetes-resource, source: {apiVersion: v1, kind: Pod, all: true}}".to_owned(), ".source: unknown field \"all\""),
            ("{widget: kubernetes-resource, source: {apiVersion: v1, kind: Pod, namespace: A_}}".to_owned(), ".source.namespace: Invalid value"),
            ("{widget: kubernetes-resource, source: {apiVersion: v1, kind: Pod, labelSelector: '=='}}".to_owned(), ".source.labelSelector: "),
            (format!("{{widget: kubernetes-resource, {source}, option: {{labelTemplate: '{{{{ end }}}}'}}}}"), ".option.labelTemplate: "),
            (format!("{{widget: kubernetes-resource, {source}, rights: all}}"), ": unknown field \"rights\""),
        ] {
            let node = object::yaml::parse(format!("x-capsule-form: {form}").as_bytes()).unwrap();
            let got = check(&node).err().unwrap_or_default();
            let expected = if problem.is_empty() { String::new() } else { format!("x-capsule-form{problem}") };
            assert!(got.starts_with(&expected) && got.is_empty() == problem.is_empty(), "{form}: {got}");
        }
    }
}
