//! Checks of FlowSchemas.

use super::mandatory;
use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path, Shown};
use object::{Value, go, names};

const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(super) fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let precedence = spec.int("matchingPrecedence");
    let mut odd = |why: &str| out.push(FieldError::invalid(&path.child("matchingPrecedence"), precedence, why));
    if precedence <= 0 {
        odd("must be a positive value");
    }
    if precedence > 10_000 {
        odd("must not be greater than 10000");
    }
    if precedence == 1 && object.name() != "exempt" {
        odd("only the schema named 'exempt' may have matchingPrecedence 1");
    }
    let method = spec.sub("distinguisherMethod").text("type");
    if spec.has("distinguisherMethod") && !matches!(method, "ByNamespace" | "ByUser") {
        let at = path.child("distinguisherMethod");
        // Upstream shows all of it.
        let shown = Shown::raw(format!("flowcontrol.FlowDistinguisherMethod{{Type:{}}}", go::quote(method)));
        out.push(FieldError::not_supported(&at.child("type"), shown, &["ByNamespace", "ByUser"]));
    }
    let level = spec.sub("priorityLevelConfiguration").text("name");
    let at = path.child("priorityLevelConfiguration");
    if level.is_empty() {
        out.push(FieldError::required(&at.child("name"), "must reference a priority level"));
    } else {
        check::name(names::dns1123_subdomain, level, &at.child("name"), &mut out);
    }
    let list = path.child("rules");
    for (i, rules) in spec.list("rules").iter().enumerate() {
        policy_rules(rules, &list.index(i), &mut out);
    }
    mandatory::schema(object, &path, &mut out);
    out
}

fn policy_rules(rules: &Value, path: &Path<'_>, out: &mut Errors) {
    let subjects = path.child("subjects");
    if rules.list("subjects").is_empty() {
        out.push(FieldError::required(&subjects, "subjects must contain at least one value"));
    }
    for (i, one) in rules.list("subjects").iter().enumerate() {
        subject(one, &subjects.index(i), out);
    }
    let (of_resources, others) = (rules.list("resourceRules"), rules.list("nonResourceRules"));
    if of_resources.is_empty() && others.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        out.push(FieldError::required(path, why));
    }
    let list = path.child("resourceRules");
    for (i, rule) in of_resources.iter().enumerate() {
        resource_rule(rule, &list.index(i), out);
    }
    let list = path.child("nonResourceRules");
    for (i, rule) in others.iter().enumerate() {
        page_rule(rule, &list.index(i), out);
    }
}

/// A subject is what its kind says, and nothing else.
fn subject(subject: &Value, path: &Path<'_>, out: &mut Errors) {
    const PARTS: [(&str, &str); 3] = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.text("kind");
    let Some((_, own)) = PARTS.into_iter().find(|(k, _)| *k == kind) else {
        out.push(FieldError::not_supported(&path.child("kind"), kind, &["Group", "ServiceAccount", "User"]));
        return;
    };
    let at = path.child(own);
    let part = subject.sub(own);
    if !subject.has(own) {
        out.push(FieldError::required(&at, format!("{own} is required when subject kind is '{kind}'")));
    } else {
        check::required(part, "name", &at, out);
        if own == "serviceAccount" {
            let (name, namespace) = (part.text("name"), part.text("namespace"));
            if !name.is_empty() && name != "*" {
                check::name(names::dns1123_subdomain, name, &at.child("name"), out);
            }
            if namespace.is_empty() {
                let why = "must specify namespace for service account";
                out.push(FieldError::required(&at.child("namespace"), why));
            } else {
                check::name(names::dns1123_label, namespace, &at.child("namespace"), out);
            }
        }
    }
    for (other, key) in PARTS.into_iter().filter(|(_, key)| *key != own && subject.has(key)) {
        let why = format!("{key} is forbidden when subject kind is not '{other}'");
        out.push(FieldError::forbidden(&path.child(key), why));
    }
}

/// A list that has something, and where `*` stands alone. Gives whether its members are to be looked at.
fn listed(rule: &Value, key: &str, required: &str, others: &str, path: &Path<'_>, out: &mut Errors) -> bool {
    let list = rule.strings(key);
    let at = path.child(key);
    if list.is_empty() {
        out.push(FieldError::required(&at, required));
    } else if list.contains(&"*") && list.len() > 1 {
        let why = format!("if '*' is present, must not specify other {others}");
        out.push(FieldError::invalid(&at, Shown::raw(go::string_list(&list)), why));
    }
    !list.is_empty() && !list.contains(&"*")
}

fn verbs(rule: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = rule.strings("verbs");
    if listed(rule, "verbs", "verbs must contain at least one value", "verbs", path, out)
        && list.iter().any(|verb| !VERBS.contains(verb))
    {
        out.push(FieldError::not_supported(&path.child("verbs"), Shown::raw(go::string_list(&list)), &VERBS));
    }
}

fn resource_rule(rule: &Value, path: &Path<'_>, out: &mut Errors) {
    verbs(rule, path, out);
    listed(rule, "apiGroups", "resource rules must supply at least one api group", "api groups", path, out);
    listed(rule, "resources", "resource rules must supply at least one resource", "resources", path, out);
    let namespaces = rule.strings("namespaces");
    if namespaces.is_empty() && rule.flag("clusterScope") {
        return;
    }
    let none = "resource rules that are not cluster scoped must supply at least one namespace";
    if listed(rule, "namespaces", none, "namespaces", path, out) {
        let at = path.child("namespaces");
        for (i, namespace) in namespaces.into_iter().enumerate() {
            for why in names::dns1123_label(namespace) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                out.push(FieldError::invalid(&at.index(i), namespace, why));
            }
        }
    }
}

fn page_rule(rule: &Value, path: &Path<'_>, out: &mut Errors) {
    verbs(rule, path, out);
    let none = "nonResourceURLs must contain at least one value";
    if listed(rule, "nonResourceURLs", none, "non-resource URLs", path, out) {
        let at = path.child("nonResourceURLs");
        for (i, url) in rule.strings("nonResourceURLs").into_iter().enumerate() {
            out.extend(page(url).map(|why| FieldError::invalid(&at.index(i), url, why)));
        }
    }
}

/// What is wrong with the path of a page; `*` may stand at its end.
fn page(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || stars == 1 && !url.ends_with("/*") => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

/// Checks the conditions of a status; they are alike in both kinds.
pub(super) fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let status = Path::ROOT.child("status");
    let conditions = status.child("conditions");
    let list = new.sub("status").list("conditions");
    for (i, condition) in list.iter().enumerate() {
        let (item, kind) = (conditions.index(i), condition.text("type"));
        let at = item.child("type");
        if list.iter().take(i).any(|c| c.text("type") == kind) {
            out.push(FieldError::duplicate(&at, kind));
        }
        if kind.is_empty() {
            out.push(FieldError::required(&at, "must not be empty"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    /// The complaints about a schema with one set of rules.
    fn complaints(rules: &str) -> Vec<String> {
        let text = format!(
            r#"{{"metadata":{{"name":"s"}},"spec":{{"matchingPrecedence":1000,
                "priorityLevelConfiguration":{{"name":"p"}},"rules":[{rules}]}}}}"#
        );
        let errors = validate(&json::parse(text.as_bytes()).unwrap());
        errors.iter().map(|e| e.to_string().replacen("spec.rules[0].", "", 1)).collect()
    }

    const ALL: &str = r#"{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}"#;
    const GROUP: &str = r#"{"kind":"Group","group":{"name":"g"}}"#;

    #[test]
    fn subjects_are_what_their_kind_says() {
        for (subject, expected) in [
            (GROUP, vec![]),
            (r#"{"kind":"User"}"#, vec!["user: Required value: user is required when subject kind is 'User'"]),
            (r#"{"kind":"Group","group":{}}"#, vec!["group.name: Required value"]),
            (r#"{"kind":"ServiceAccount","serviceAccount":{"name":"*","namespace":"n"}}"#, vec![]),
            (
                r#"{"kind":"ServiceAccount","serviceAccount":{"name":"a"},"user":{"name":"u"}}"#,
                vec![
                    "serviceAccount.namespace: Required value: must specify namespace for service account",
                    "user: Forbidden: user is forbidden when subject kind is not 'User'",
                ],
            ),
            (
                r#"{"kind":"Nobody"}"#,
                vec![r#"kind: Unsupported value: "Nobody": supported values: "Group", "ServiceAccount", "User""#],
            ),
        ] {
            let found = complaints(&format!(r#"{{"subjects":[{subject}],"resourceRules":[{ALL}]}}"#));
            let found: Vec<&str> = found.iter().map(|f| f.strip_prefix("subjects[0].").unwrap()).collect();
            assert_eq!(found, expected, "{subject}");
        }
    }

    #[test]
    fn rules_name_what_there_is() {
        let found = |rules: &str| complaints(&format!(r#"{{"subjects":[{GROUP}],{rules}}}"#));
        let verbs = r#""create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch""#;
        for (rule, expected) in [
            (ALL.to_owned(), vec![]),
            (
                r#"{"verbs":["get","fly"],"apiGroups":["*","a"],"resources":[],"namespaces":["A"]}"#.to_owned(),
                vec![
                    format!(r#"verbs: Unsupported value: []string{{"get", "fly"}}: supported values: {verbs}"#),
                    r#"apiGroups: Invalid value: []string{"*", "a"}: if '*' is present, must not specify other api groups"#
                        .to_owned(),
                    "resources: Required value: resource rules must supply at least one resource".to_owned(),
                    format!(
                        r#"namespaces[0]: Invalid value: "A": each member of this list must be '*' or a DNS-1123 label; {}"#,
                        names::dns1123_label("A")[0]
                    ),
                ],
            ),
            (r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"clusterScope":true}"#.to_owned(), vec![]),
            (
                r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}"#.to_owned(),
                vec![
                    "namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace"
                        .to_owned(),
                ],
            ),
        ] {
            let found = found(&format!(r#""resourceRules":[{rule}]"#));
            let found: Vec<&str> = found.iter().map(|f| f.strip_prefix("resourceRules[0].").unwrap()).collect();
            assert_eq!(found, expected, "{rule}");
        }
        for (url, why) in [
            ("/healthz", None),
            ("/", None),
            ("/a/*", None),
            ("", Some("must not be empty")),
            ("a", Some("must start with slash")),
            ("/a b", Some("must not contain white-space")),
            ("/a//b", Some("must not contain double slash")),
            ("/a*", Some("wildcard can only do suffix matching")),
            ("/*/*", Some("wildcard can only do suffix matching")),
        ] {
            assert_eq!(page(url), why, "{url}");
        }
        assert_eq!(
            complaints(&format!(r#"{{"subjects":[{GROUP}]}}"#)),
            ["spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"]
        );
    }
}
