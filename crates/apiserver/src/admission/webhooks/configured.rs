//! The webhooks that configurations name.

use crate::admission::cel::Condition;
use crate::registry;
use crate::webhooks::{ClientConfig, Review};
use object::Value;
use object::selector::Labels;
use std::time::Duration;
use store::{ListOptions, Range, ReadError, Store};

const MUTATING: &str = "/registry/mutatingwebhookconfigurations/";
const VALIDATING: &str = "/registry/validatingwebhookconfigurations/";

/// All configured webhooks, in the order in which they are called.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Those that may change objects.
    pub mutating: Vec<Hook>,
    /// Those that may refuse them.
    pub validating: Vec<Hook>,
}

/// A webhook.
#[derive(Debug)]
pub(super) struct Hook {
    /// Tells webhooks apart: configuration, name, and a number among those of the name.
    pub uid: String,
    /// The name.
    pub name: String,
    /// Where it is.
    pub client: ClientConfig,
    /// What it is called for.
    pub rules: Vec<Rule>,
    /// Whether a request fails with it.
    pub required: bool,
    /// Whether it is called for other versions of what its rules name.
    pub equivalent: bool,
    /// The namespaces that it is called for.
    pub namespaces: Result<Labels, String>,
    /// The objects that it is called for.
    pub objects: Result<Labels, String>,
    /// Further conditions.
    pub conditions: Vec<Condition>,
    /// How long it may take.
    pub timeout: Duration,
    /// What it is sent; none if it knows no version that is known here.
    pub review: Option<&'static Review>,
    /// Whether it is called again when a later one changed the object.
    pub reinvoked: bool,
}

/// What a webhook is called for.
#[derive(Debug)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
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
pub(super) struct Asked<'a> {
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
}

impl Configured {
    /// Reads all configurations.
    pub async fn read(store: &dyn Store) -> Result<Self, ReadError> {
        Ok(Configured { mutating: hooks(store, MUTATING).await?, validating: hooks(store, VALIDATING).await? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// Whether any webhook might be called for a resource, in any of its versions and groups.
    pub fn concern(&self, resource: &str) -> bool {
        let named = |rule: &Rule| {
            rule.resources.iter().any(|r| {
                let name = r.split('/').next().unwrap_or_default();
                name == "*" || name == resource
            })
        };
        self.mutating.iter().chain(&self.validating).any(|hook| hook.rules.iter().any(named))
    }
}

async fn hooks(store: &dyn Store, prefix: &str) -> Result<Vec<Hook>, ReadError> {
    let page = store.list(&Range::prefix(prefix), ListOptions::default()).await?;
    let mut hooks: Vec<Hook> = Vec::new();
    // Keys come in order, and so do the names of configurations.
    for entry in &page.entries {
        let Ok(stored) = registry::stored(entry) else { continue };
        let configuration = stored.value(0);
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        for webhook in webhooks {
            let name = webhook.str_at(&["name"]).unwrap_or_default();
            let prefix = format!("{}/{name}/", configuration.name());
            let same = hooks.iter().filter(|h| h.uid.starts_with(&prefix)).count();
            hooks.push(Hook::read(webhook, format!("{prefix}{same}")));
        }
    }
    Ok(hooks)
}

impl Hook {
    fn read(webhook: &Value, uid: String) -> Self {
        let text = |key: &str| webhook.str_at(&[key]).unwrap_or_default();
        let list = |key: &str| webhook.get(key).and_then(Value::as_array).unwrap_or_default();
        let selector = |key: &str| match webhook.get(key) {
            Some(selector) => Labels::from_object(selector),
            None => Ok(Labels::default()),
        };
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_int).unwrap_or(10);
        let conditions = list("matchConditions").iter();
        Hook {
            uid,
            name: text("name").to_owned(),
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            rules: list("rules").iter().map(Rule::read).collect(),
            required: text("failurePolicy") != "Ignore",
            equivalent: text("matchPolicy") != "Exact",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: conditions.map(|c| Condition::new(c.str_at(&["expression"]).unwrap_or_default())).collect(),
            timeout: Duration::from_secs(u64::try_from(seconds).unwrap_or(10)),
            review: list("admissionReviewVersions").iter().find_map(|version| match version.as_str() {
                Some("v1") => Some(&Review::ADMISSION_V1),
                Some("v1beta1") => Some(&Review::ADMISSION_V1BETA1),
                _ => None,
            }),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
        }
    }
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
            scope: match rule.str_at(&["scope"]) {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::All,
            },
        }
    }

    /// Whether a request is meant.
    pub fn matches(&self, asked: Asked<'_>) -> bool {
        let among = |names: &[String], name: &str| names.iter().any(|n| n == "*" || n == name);
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn rules_mean_what_they_name() {
        let asked = Asked {
            operation: "CREATE",
            group: "g",
            version: "v1",
            resource: "widgets",
            subresource: "",
            namespace: "n",
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
