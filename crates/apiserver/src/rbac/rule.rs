//! Rules of roles: what they allow, and whether they cover each other.

use crate::authorize::Attributes;
use object::{Value, go, map};

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The verbs; `*` for all.
    pub verbs: Vec<String>,
    /// The groups; `*` for all.
    pub groups: Vec<String>,
    /// Resources: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Names of objects; none for all.
    pub names: Vec<String>,
    /// Paths that are no resources, perhaps with `*` at the end.
    pub paths: Vec<String>,
}

impl Rule {
    /// The rules that allow everything.
    pub fn all() -> Vec<Self> {
        let all = || vec!["*".to_owned()];
        let resources = Rule { verbs: all(), groups: all(), resources: all(), ..Rule::default() };
        vec![resources, Rule { verbs: all(), paths: all(), ..Rule::default() }]
    }

    /// Reads a rule as a role carries it.
    pub fn from_value(value: &Value) -> Self {
        let list = |key: &str| -> Vec<String> {
            let items = value.get(key).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Rule {
            verbs: list("verbs"),
            groups: list("apiGroups"),
            resources: list("resources"),
            names: list("resourceNames"),
            paths: list("nonResourceURLs"),
        }
    }

    /// The rule as a role carries it; empty lists are left out.
    pub fn to_value(&self) -> Value {
        let mut out = map! { "verbs" => strings(&self.verbs) };
        for (key, list) in [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ] {
            if !list.is_empty() {
                out.insert(key, strings(list));
            }
        }
        Value::Object(out)
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, request: &Attributes<'_>) -> bool {
        if !has(&self.verbs, request.verb) {
            return false;
        }
        if request.is_page() {
            return self.paths.iter().any(|p| covers_path(p, request.path));
        }
        has(&self.groups, request.group)
            && self.resources.iter().any(|r| names_resource(r, request.resource, request.subresource))
            && (self.names.is_empty() || self.names.iter().any(|n| n == request.name))
    }

    /// The rule taken apart into rules with one verb, one group, one resource and one name each, or one path.
    pub fn parts(&self) -> Vec<Rule> {
        let mut out = Vec::new();
        let one = |s: &str| vec![s.to_owned()];
        for verb in &self.verbs {
            for group in &self.groups {
                for resource in &self.resources {
                    let base =
                        Rule { verbs: one(verb), groups: one(group), resources: one(resource), ..Rule::default() };
                    if self.names.is_empty() {
                        out.push(base);
                    } else {
                        out.extend(self.names.iter().map(|n| Rule { names: one(n), ..base.clone() }));
                    }
                }
            }
            out.extend(self.paths.iter().map(|p| Rule { verbs: one(verb), paths: one(p), ..Rule::default() }));
        }
        out
    }

    /// Whether the rule is about resources only or about paths only.
    fn is_simple(&self) -> bool {
        self.paths.is_empty() != (self.groups.is_empty() && self.resources.is_empty())
    }

    /// How many [`Rule::parts`] there are.
    fn count_parts(&self) -> usize {
        let resources = self.groups.len().saturating_mul(self.resources.len()).saturating_mul(self.names.len().max(1));
        self.verbs.len().saturating_mul(resources.saturating_add(self.paths.len()))
    }

    /// Whether this rule allows all that a part (see [`Rule::parts`]) does.
    fn covers(&self, part: &Rule) -> bool {
        let all = |own: &[String], wanted: &[String]| wanted.iter().all(|w| has(own, w));
        if !all(&self.verbs, &part.verbs) {
            return false;
        }
        if !part.paths.is_empty() {
            return part.paths.iter().all(|wanted| self.paths.iter().any(|own| covers_path(own, wanted)));
        }
        let resource_covered = |wanted: &String| {
            let subresource = wanted.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            has(&self.resources, wanted) || subresource.is_some_and(|s| self.resources.contains(&s))
        };
        let names_covered =
            self.names.is_empty() || !part.names.is_empty() && part.names.iter().all(|n| self.names.contains(n));
        all(&self.groups, &part.groups) && part.resources.iter().all(resource_covered) && names_covered
    }

    /// The rule in the words of an escalation message: `{APIGroups:["apps"], Resources:["x"], Verbs:["get"]}`.
    pub fn describe(&self) -> String {
        let list = |items: &[String]| {
            let quoted: Vec<String> = items.iter().map(|s| go::quote(s)).collect();
            format!("[{}]", quoted.join(" "))
        };
        let parts: Vec<String> = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, items)| !items.is_empty())
        .map(|(name, items)| format!("{name}:{}", list(items)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// A rule with more parts than this is not taken apart: nobody writes such a one, and taking it apart costs much.
const MAX_PARTS: usize = 10_000;

/// The parts of `wanted` that none of `held` covers.
pub fn uncovered(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let is_covered = |rule: &Rule| held.iter().any(|own| own.covers(rule));
    let mut out = Vec::new();
    for rule in wanted.iter().filter(|rule| !(rule.is_simple() && is_covered(rule))) {
        if rule.count_parts() > MAX_PARTS {
            out.push(rule.clone());
        } else {
            out.extend(rule.parts().into_iter().filter(|part| !is_covered(part)));
        }
    }
    out
}

/// Brings rules about one resource together that differ in their verbs only, as upstream does before it shows them.
pub fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut out: Vec<Rule> = Vec::new();
    for rule in rules {
        let same = |r: &&mut Rule| {
            r.paths.is_empty() && r.groups == rule.groups && r.resources == rule.resources && r.names == rule.names
        };
        let simple =
            rule.paths.is_empty() && rule.groups.len() == 1 && rule.resources.len() == 1 && rule.names.len() < 2;
        match out.iter_mut().find(same).filter(|_| simple) {
            Some(held) => {
                for verb in rule.verbs {
                    if !held.verbs.contains(&verb) {
                        held.verbs.push(verb);
                    }
                }
            }
            None => out.push(rule),
        }
    }
    out
}

fn strings(items: &[String]) -> Vec<&str> {
    items.iter().map(String::as_str).collect()
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

fn names_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    match rule.split_once('/') {
        None => rule == "*" || subresource.is_empty() && rule == resource,
        Some(("*", sub)) => !subresource.is_empty() && sub == subresource,
        Some((plural, sub)) => plural == resource && sub == subresource && !subresource.is_empty(),
    }
}

fn covers_path(rule: &str, path: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => path.strip_suffix('*').unwrap_or(path).starts_with(prefix),
        None => rule == path,
    }
}

/// The rules of a role.
pub fn rules_of(role: &Value) -> Vec<Rule> {
    role.get("rules").and_then(Value::as_array).unwrap_or_default().iter().map(Rule::from_value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::UserInfo;

    /// A rule about resources: words separated by blanks.
    fn resources(verbs: &str, groups: &str, resources: &str) -> Rule {
        let words = |text: &str| text.split(' ').map(|w| if w == "-" { String::new() } else { w.to_owned() }).collect();
        Rule { verbs: words(verbs), groups: words(groups), resources: words(resources), ..Rule::default() }
    }

    fn allows(rule: &Rule, verb: &str, group: &str, resource: &str, subresource: &str, name: &str) -> bool {
        let user = UserInfo::default();
        rule.allows(&Attributes {
            user: &user,
            verb,
            group,
            version: "v1",
            resource,
            subresource,
            name,
            namespace: "",
            path: "",
        })
    }

    #[test]
    fn rules_allow_what_they_name() {
        let pods = resources("get list", "-", "pods");
        assert!(allows(&pods, "get", "", "pods", "", "a"));
        assert!(!allows(&pods, "get", "", "pods", "log", "a"));
        assert!(!allows(&pods, "delete", "", "pods", "", "a"));
        assert!(!allows(&pods, "get", "apps", "pods", "", "a"));
        assert!(allows(&resources("*", "*", "*"), "get", "x", "pods", "log", "a"));
        assert!(allows(&resources("get", "*", "*/scale"), "get", "x", "foos", "scale", "a"));
        assert!(!allows(&resources("get", "*", "*/scale"), "get", "x", "foos", "", "a"));
        let named = Rule { names: vec!["a".into()], ..pods };
        assert!(allows(&named, "get", "", "pods", "", "a") && !allows(&named, "get", "", "pods", "", "b"));
    }

    #[test]
    fn a_star_at_the_end_of_a_path_covers_what_follows() {
        assert!(covers_path("/api/*", "/api/v1") && covers_path("*", "/x") && covers_path("/x", "/x"));
        assert!(!covers_path("/api", "/api/v1"));
    }

    #[test]
    fn what_is_not_held_is_told_part_by_part() {
        let held = [resources("get", "-", "pods")];
        let wanted = [resources("get list", "-", "pods")];
        let missing: Vec<String> = uncovered(&held, &wanted).iter().map(Rule::describe).collect();
        assert_eq!(missing, [r#"{APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#]);
        assert!(uncovered(&[resources("*", "*", "*")], &wanted).is_empty());
    }
}
