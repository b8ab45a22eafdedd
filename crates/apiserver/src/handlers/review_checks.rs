//! What is checked of questions about access, before anybody is asked.

use super::reviews::texts;
use object::field::{FieldError, Path, Shown};
use object::selector::{Fields, Labels};
use object::{Map, Value, go, names};

/// The selectors of a question, and whether they are those of labels.
const SELECTORS: [(&str, bool); 2] = [("fieldSelector", false), ("labelSelector", true)];

/// What is wrong with a question about access.
pub(super) fn invalid(kind: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = Path::ROOT;
    let spec = root.child("spec");
    let member = |key: &str| object.at(&["spec", key]).filter(|v| !v.is_null());
    let (resource, page) = (member("resourceAttributes"), member("nonResourceAttributes"));
    let shown_page = Shown::raw(page.map_or_else(
        || "\"null\"".to_owned(),
        |p| {
            let text = |key: &str| go::quote(p.str_at(&[key]).unwrap_or_default());
            format!("authorization.NonResourceAttributes{{Path:{}, Verb:{}}}", text("path"), text("verb"))
        },
    ));
    match (resource, page) {
        (Some(_), Some(_)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid(&spec.child("nonResourceAttributes"), shown_page.clone(), why));
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid(&spec.child("resourceAttributes"), shown_page.clone(), why));
        }
        _ => {}
    }
    let user = object.str_at(&["spec", "user"]).unwrap_or_default();
    let about_self = kind == "SelfSubjectAccessReview";
    if !about_self && user.is_empty() && texts(object.at(&["spec", "groups"])).is_empty() {
        errors.push(FieldError::invalid(&spec.child("user"), user, "at least one of user or group must be specified"));
    }
    for (name, is_label) in SELECTORS {
        selector_errors(object, name, is_label, &mut errors);
    }
    let local = kind == "LocalSubjectAccessReview";
    let empty = Map::new();
    let mut meta = object.metadata().unwrap_or(&empty).clone();
    if local {
        meta.remove("namespace");
    }
    if meta.iter().any(|(key, value)| key != "managedFields" && !value.is_null()) {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        let shown = Shown::raw(object_meta(object));
        errors.push(FieldError::invalid(&root.child("metadata"), shown, why));
    }
    if local && let Some(resource) = resource {
        let given = resource.str_at(&["namespace"]).unwrap_or_default();
        if given != object.namespace() {
            let path = spec.child("resourceAttributes");
            errors.push(FieldError::invalid(&path.child("namespace"), given, "must match metadata.namespace"));
        }
    }
    if local && page.is_some() {
        let path = spec.child("nonResourceAttributes");
        errors.push(FieldError::invalid(&path, shown_page, "disallowed on this kind of request"));
    }
    errors
}

/// Metadata in Go's syntax, as far as questions carry any.
fn object_meta(object: &Value) -> String {
    let text = |key: &str| go::quote(object.meta_str(key));
    let members = |key: &str| match object.at(&["metadata", key]).and_then(Value::as_object) {
        Some(map) if !map.is_empty() => {
            let members =
                map.iter().map(|(k, v)| format!("{}:{}", go::quote(k), go::quote(v.as_str().unwrap_or_default())));
            format!("map[string]string{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        _ => "map[string]string(nil)".to_owned(),
    };
    let (name, prefix, namespace) = (text("name"), text("generateName"), text("namespace"));
    let (link, uid, version) = (text("selfLink"), text("uid"), text("resourceVersion"));
    let (labels, annotations) = (members("labels"), members("annotations"));
    format!(
        "v1.ObjectMeta{{Name:{name}, GenerateName:{prefix}, Namespace:{namespace}, SelfLink:{link}, UID:{uid}, ResourceVersion:{version}, Generation:0, CreationTimestamp:time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC), DeletionTimestamp:<nil>, DeletionGracePeriodSeconds:(*int64)(nil), Labels:{labels}, Annotations:{annotations}, OwnerReferences:[]v1.OwnerReference(nil), Finalizers:[]string(nil), ManagedFields:[]v1.ManagedFieldsEntry(nil)}}"
    )
}

/// What stands at a selector of a question.
fn selector<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object.at(&["spec", "resourceAttributes", name]).filter(|s| !s.is_null())
}

fn requirements(selector: &Value) -> &[Value] {
    selector.get("requirements").and_then(Value::as_array).unwrap_or_default()
}

/// What is wrong with one of the selectors. Operators that nobody knows are for newer servers, and no error.
fn selector_errors(object: &Value, name: &str, is_label: bool, out: &mut Vec<FieldError>) {
    let Some(selector) = selector(object, name) else { return };
    let spec = Path::ROOT.child("spec");
    let attributes = spec.child("resourceAttributes");
    let path = attributes.child(name);
    let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
    let list = requirements(selector);
    match (raw.is_empty(), list.is_empty()) {
        (false, false) => {
            let why = "may not specified at the same time as requirements";
            out.push(FieldError::invalid(&path.child("rawSelector"), raw, why));
        }
        (true, true) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            out.push(FieldError::required(&path.child("requirements"), why));
        }
        _ => {}
    }
    let items = path.child("requirements");
    for (i, requirement) in list.iter().enumerate() {
        let at = items.index(i);
        let key = requirement.str_at(&["key"]).unwrap_or_default();
        let values = texts(requirement.get("values"));
        if !is_label && key.is_empty() {
            out.push(FieldError::required(&at.child("key"), "must be specified"));
        }
        let list = at.child("values");
        match requirement.str_at(&["operator"]).unwrap_or_default() {
            "In" | "NotIn" if values.is_empty() => {
                out.push(FieldError::required(&list, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                out.push(FieldError::forbidden(&list, why));
            }
            _ => {}
        }
        if is_label {
            let complaints = names::qualified_name(key).into_iter();
            out.extend(complaints.map(|why| FieldError::invalid(&at.child("key"), key, why)));
            for (j, value) in values.iter().enumerate() {
                let complaints = names::label_value(value).into_iter();
                out.extend(complaints.map(|why| FieldError::invalid(&list.index(j), value.as_str(), why)));
            }
        }
    }
}

/// What the answer says of selectors that cannot be read, or only in part; empty where all can.
pub(super) fn ignored_selectors(object: &Value) -> String {
    let mut out: Vec<String> = Vec::new();
    for (name, is_label) in SELECTORS {
        let Some(selector) = selector(object, name) else { continue };
        let list = requirements(selector);
        let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
        let (read, all) = match (list.is_empty(), is_label) {
            (false, _) => (list.iter().filter(|r| is_understood(r, is_label)).count(), list.len()),
            (true, true) => (usize::from(Labels::parse(raw).is_ok()), 1),
            (true, false) => (usize::from(Fields::parse(raw).is_ok()), 1),
        };
        if read < all {
            let partially = if read > 0 { "partially " } else { "" };
            out.push(format!("spec.resourceAttributes.{name} {partially}ignored due to parse error"));
        }
    }
    out.join("; ")
}

/// Whether upstream understands a requirement: of fields only that they have one value, or have it not.
fn is_understood(requirement: &Value, is_label: bool) -> bool {
    match requirement.str_at(&["operator"]).unwrap_or_default() {
        "In" | "NotIn" => is_label || texts(requirement.get("values")).len() == 1,
        "Exists" | "DoesNotExist" => is_label,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn questions_about_access_are_checked_in_upstreams_words() {
        let rows: &[(&str, &str, &[&str], &str)] = &[
            (
                "SelfSubjectAccessReview",
                r#"{"metadata":{"name":"a"},"spec":{"resourceAttributes":{}}}"#,
                &[
                    "metadata: Invalid value: v1.ObjectMeta{Name:\"a\", GenerateName:\"\", Namespace:\"\", SelfLink:\"\", UID:\"\", ResourceVersion:\"\", Generation:0, CreationTimestamp:time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC), DeletionTimestamp:<nil>, DeletionGracePeriodSeconds:(*int64)(nil), Labels:map[string]string(nil), Annotations:map[string]string(nil), OwnerReferences:[]v1.OwnerReference(nil), Finalizers:[]string(nil), ManagedFields:[]v1.ManagedFieldsEntry(nil)}: must be empty",
                ],
                "",
            ),
            (
                "SelfSubjectAccessReview",
                r#"{"spec":{"resourceAttributes":{"fieldSelector":{},"labelSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists","values":["b"]}]}}}}"#,
                &[
                    "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
                    "spec.resourceAttributes.labelSelector.rawSelector: Invalid value: \"a=b\": may not specified at the same time as requirements",
                    "spec.resourceAttributes.labelSelector.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ],
                "",
            ),
            (
                "SubjectAccessReview",
                r#"{"spec":{"user":"u","resourceAttributes":{"fieldSelector":{"requirements":[{"operator":"In"}]},"labelSelector":{"requirements":[{"key":"a b","operator":"In","values":["-"]}]}}}}"#,
                &[
                    "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified",
                    "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                    "spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "spec.resourceAttributes.labelSelector.requirements[0].values[0]: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                ],
                "spec.resourceAttributes.fieldSelector ignored due to parse error",
            ),
            (
                "SubjectAccessReview",
                r#"{"spec":{"user":"u","resourceAttributes":{"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]},{"key":"a","operator":"Exists"}]},"labelSelector":{"requirements":[{"key":"a","operator":"Newer"}]}}}}"#,
                &[],
                "spec.resourceAttributes.fieldSelector partially ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error",
            ),
            (
                "SubjectAccessReview",
                r#"{"spec":{"user":"u","resourceAttributes":{"fieldSelector":{"rawSelector":"a"},"labelSelector":{"rawSelector":"a in (b"}}}}"#,
                &[],
                "spec.resourceAttributes.fieldSelector ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error",
            ),
            (
                "SubjectAccessReview",
                r#"{"spec":{"user":"u","resourceAttributes":{"fieldSelector":{"rawSelector":"a=b"},"labelSelector":{"rawSelector":"a in (b)"}}}}"#,
                &[],
                "",
            ),
        ];
        for (kind, text, errors, ignored) in rows {
            let object = json::parse(text.as_bytes()).unwrap();
            let found: Vec<String> = invalid(kind, &object).iter().map(ToString::to_string).collect();
            assert_eq!(found, *errors, "{text}");
            assert_eq!(ignored_selectors(&object), *ignored, "{text}");
        }
    }
}
