//! Which requests a webhook, a policy or a binding is about.

use object::Value;
use object::selector::Labels;

/// Which requests are meant.
#[derive(Debug)]
pub(crate) struct Criteria {
    /// What is meant; none stands for everything.
    pub rules: Option<Vec<Rule>>,
    /// What is not meant, whatever the rules say.
    pub excluded: Vec<Rule>,
    /// Whether rules mean other versions of what they name, too.
    pub equivalent: bool,
    /// The namespaces that are meant; the error is upstream's text.
    pub namespaces: Result<Labels, String>,
    /// The objects that are meant.
    pub objects: Result<Labels, String>,
}

impl Criteria {
    /// Reads the criteria of a webhook, which have their rules under `rules`.
    pub fn of_webhook(webhook: &Value) -> Self {
        Criteria {
            rules: Some(rules(webhook, "rules")),
            excluded: Vec::new(),
            // Stored webhooks and policies have all defaults.
            equivalent: webhook.str_at(&["matchPolicy"]) != Some("Exact"),
            namespaces: selector(webhook, "namespaceSelector"),
            objects: selector(webhook, "objectSelector"),
        }
    }

    /// Reads the `matchConstraints` of a policy or the `matchResources` of a binding: without rules everything is meant.
    pub fn of_policy(constraints: &Value) -> Self {
        Criteria {
            rules: Some(rules(constraints, "resourceRules")).filter(|rules| !rules.is_empty()),
            excluded: rules(constraints, "excludeResourceRules"),
            equivalent: constraints.str_at(&["matchPolicy"]) != Some("Exact"),
            namespaces: selector(constraints, "namespaceSelector"),
            objects: selector(constraints, "objectSelector"),
        }
    }

    /// Whether requests for a resource might be meant, whatever they do; `group` is its group, in any version.
    pub fn concern(&self, group: &str, resource: &str) -> bool {
        // Objects of one plural are in several groups; rules mean those of the other groups, too.
        let shared = resource == "events";
        let Some(rules) = &self.rules else { return true };
        rules.iter().any(|rule| {
            let named = |pattern: &String| {
                let name = pattern.split('/').next().unwrap_or_default();
                name == "*" || name == resource
            };
            (shared || among(&rule.groups, group)) && rule.resources.iter().any(named)
        })
    }
}

fn rules(value: &Value, key: &str) -> Vec<Rule> {
    value.get(key).and_then(Value::as_array).unwrap_or_default().iter().map(Rule::read).collect()
}

fn selector(value: &Value, key: &str) -> Result<Labels, String> {
    match value.get(key).filter(|selector| !selector.is_null()) {
        Some(selector) => Labels::from_object(selector),
        None => Ok(Labels::default()),
    }
}

fn among(names: &[String], name: &str) -> bool {
    names.iter().any(|n| n == "*" || n == name)
}

/// A rule: operations on resources.
#[derive(Debug)]
pub(crate) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// The objects that are meant; none stands for all.
    names: Vec<String>,
    scope: Scope,
}

#[derive(Debug, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
}

/// What a rule is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// The object's name; empty where none is named.
    pub name: &'a str,
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let list = |key: &str| -> Vec<String> {
            let items = rule.get(key).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Rule {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            names: list("resourceNames"),
            scope: match rule.str_at(&["scope"]) {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::All,
            },
        }
    }

    /// Whether a request is meant.
    pub fn matches(&self, asked: Asked<'_>) -> bool {
        // Requests for a namespace carry its name as theirs, and are of the cluster all the same.
        let of_cluster = asked.resource == "namespaces" || asked.namespace.is_empty();
        let scope = match self.scope {
            Scope::All => true,
            Scope::Cluster => of_cluster,
            Scope::Namespaced => !of_cluster,
        };
        let resource = |pattern: &String| {
            let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            (resource == "*" || resource == asked.resource) && (subresource == "*" || subresource == asked.subresource)
        };
        scope
            && among(&self.operations, asked.operation)
            && among(&self.groups, asked.group)
            && among(&self.versions, asked.version)
            && self.resources.iter().any(resource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn criteria(text: &str) -> Criteria {
        Criteria::of_policy(&json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn without_rules_everything_is_meant_and_with_some_what_they_name() {
        assert!(criteria("{}").concern("g", "widgets"));
        let named = |groups: &str, resources: &str| {
            criteria(&format!(r#"{{"resourceRules":[{{"apiGroups":[{groups}],"resources":[{resources}]}}]}}"#))
        };
        for (groups, resources, expected) in [
            (r#""g""#, r#""widgets""#, true),
            (r#""g""#, r#""gadgets","widgets/status""#, true),
            (r#""*""#, r#""*""#, true),
            (r#""h""#, r#""*""#, false),
            (r#""g""#, r#""gadgets""#, false),
        ] {
            assert_eq!(named(groups, resources).concern("g", "widgets"), expected, "{groups} {resources}");
        }
        assert!(named(r#""events.k8s.io""#, r#""events""#).concern("", "events"));
    }

    #[test]
    fn a_rule_with_names_means_objects_of_these_names() {
        let rule = |names: &str| {
            let text = format!(
                r#"{{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"resourceNames":[{names}]}}"#
            );
            Rule::read(&json::parse(text.as_bytes()).unwrap())
        };
        let asked = |name| Asked {
            operation: "DELETE",
            group: "g",
            version: "v1",
            resource: "widgets",
            subresource: "",
            namespace: "n",
            name,
        };
        assert!(rule("").matches(asked("")));
        assert!(rule(r#""a","b""#).matches(asked("b")));
        assert!(!rule(r#""a","b""#).matches(asked("c")));
        assert!(!rule(r#""a""#).matches(asked("")));
    }

    #[test]
    fn rules_mean_what_they_name() {
        let asked = Asked {
            operation: "CREATE",
            group: "g",
            version: "v1",
            resource: "widgets",
            subresource: "",
            namespace: "n",
            name: "w",
        };
        let status = Asked { subresource: "status", ..asked };
        let cluster = Asked { namespace: "", ..asked };
        for (resources, scope, expected) in [
            ("*", "*", [true, false, true]),
            ("widgets", "*", [true, false, true]),
            ("*/*", "*", [true, true, true]),
            ("widgets/status", "*", [false, true, false]),
            ("*/status", "*", [false, true, false]),
            ("widgets", "Namespaced", [true, false, false]),
            ("widgets", "Cluster", [false, false, true]),
            ("gadgets", "*", [false, false, false]),
        ] {
            let rule = format!(
                r#"{{"operations":["*"],"apiGroups":["g"],"apiVersions":["*"],"resources":["{resources}"],"scope":"{scope}"}}"#
            );
            let rule = Rule::read(&json::parse(rule.as_bytes()).unwrap());
            assert_eq!([asked, status, cluster].map(|a| rule.matches(a)), expected, "{resources} {scope}");
        }
    }
}
