//! Audit policies: how much is written of which requests.

use object::{Value, yaml};

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    None,
    /// Who did what, and what came of it.
    Metadata,
    /// The object of the request too.
    Request,
    /// The object of the answer too.
    RequestResponse,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "None" => Level::None,
            "Metadata" => Level::Metadata,
            "Request" => Level::Request,
            "RequestResponse" => Level::RequestResponse,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// The moments at which something can be written.
pub(super) const STAGES: [&str; 4] = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];

/// The rules of `--audit-policy-file` (`audit.k8s.io/v1`); the first that matches a request counts.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    level: Level,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resources>,
    namespaces: Vec<String>,
    paths: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug)]
struct Resources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub user: &'a str,
    pub groups: &'a [String],
    pub verb: &'a str,
    pub is_resource: bool,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub path: &'a str,
}

/// What is to be written of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub level: Level,
    pub omit_stages: Vec<String>,
    pub omit_managed_fields: bool,
}

fn strings(value: &Value, key: &str) -> Result<Vec<String>, String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            let text =
                |item: &Value| item.as_str().map(str::to_owned).ok_or(format!("{key}: every item must be a string"));
            items.iter().map(text).collect()
        }
        Some(_) => Err(format!("{key}: must be a list")),
    }
}

fn stages(value: &Value) -> Result<Vec<String>, String> {
    let stages = strings(value, "omitStages")?;
    match stages.iter().find(|stage| !STAGES.contains(&stage.as_str())) {
        Some(unknown) => Err(format!("omitStages: there is no stage {unknown:?}, there are: {}", STAGES.join(", "))),
        None => Ok(stages),
    }
}

impl Policy {
    /// Reads a policy; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy = yaml::parse(text.as_bytes())?;
        let text_of = |key: &str| policy.str_at(&[key]).unwrap_or_default();
        if (text_of("apiVersion"), text_of("kind")) != ("audit.k8s.io/v1", "Policy") {
            return Err("it must be of the kind Policy in audit.k8s.io/v1".to_owned());
        }
        let (all_stages, flag) = (stages(&policy)?, |v: &Value| v.get("omitManagedFields").and_then(Value::as_bool));
        let omit_managed_fields = flag(&policy).unwrap_or(false);
        let rules = policy.get("rules").and_then(Value::as_array).unwrap_or_default();
        if rules.is_empty() {
            return Err("it has no rules".to_owned());
        }
        let read = |rule: &Value| {
            let level = rule.str_at(&["level"]).unwrap_or_default();
            let level = Level::parse(level).ok_or_else(|| {
                format!("level: there is no {level:?}, there are: None, Metadata, Request, RequestResponse")
            })?;
            let mut omit_stages = stages(rule)?;
            omit_stages.extend(all_stages.iter().cloned());
            let resources = rule.get("resources").and_then(Value::as_array).unwrap_or_default().iter().map(|entry| {
                let group = entry.str_at(&["group"]).unwrap_or_default().to_owned();
                let (resources, names) = (strings(entry, "resources")?, strings(entry, "resourceNames")?);
                if resources.is_empty() && !names.is_empty() {
                    return Err("resourceNames: resources have to be named too".to_owned());
                }
                Ok(Resources { group, resources, names })
            });
            let rule = Rule {
                level,
                users: strings(rule, "users")?,
                groups: strings(rule, "userGroups")?,
                verbs: strings(rule, "verbs")?,
                resources: resources.collect::<Result<_, String>>()?,
                namespaces: strings(rule, "namespaces")?,
                paths: strings(rule, "nonResourceURLs")?,
                omit_stages,
                omit_managed_fields: flag(rule).unwrap_or(omit_managed_fields),
            };
            let of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
            if of_resources && !rule.paths.is_empty() {
                return Err("a rule is about resources or about nonResourceURLs, not both".to_owned());
            }
            Ok(rule)
        };
        let rules = rules.iter().enumerate().map(|(i, rule)| read(rule).map_err(|why| format!("rules[{i}].{why}")));
        Ok(Policy { rules: rules.collect::<Result<_, String>>()? })
    }

    /// What is to be written of a request; nothing where the level is none.
    pub(super) fn extent(&self, asked: &Asked<'_>) -> Option<Extent> {
        let rule = self.rules.iter().find(|rule| rule.matches(asked)).filter(|rule| rule.level != Level::None)?;
        Some(Extent {
            level: rule.level,
            omit_stages: rule.omit_stages.clone(),
            omit_managed_fields: rule.omit_managed_fields,
        })
    }
}

impl Rule {
    fn matches(&self, asked: &Asked<'_>) -> bool {
        let has = |list: &[String], text: &str| list.iter().any(|item| item == text);
        if !self.users.is_empty() && !has(&self.users, asked.user)
            || !self.groups.is_empty() && !asked.groups.iter().any(|group| has(&self.groups, group))
            || !self.verbs.is_empty() && !has(&self.verbs, asked.verb)
        {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return asked.is_resource
                && (self.namespaces.is_empty() || has(&self.namespaces, asked.namespace))
                && (self.resources.is_empty() || self.resources.iter().any(|r| r.matches(asked)));
        }
        self.paths.is_empty() || !asked.is_resource && self.paths.iter().any(|path| covers(path, asked.path))
    }
}

/// Whether a pattern such as `/healthz*` covers a path.
fn covers(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == pattern,
    }
}

impl Resources {
    fn matches(&self, asked: &Asked<'_>) -> bool {
        if self.group != asked.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.names.is_empty() || self.names.iter().any(|name| name == asked.name);
        named
            && self.resources.iter().any(|pattern| match pattern.split_once('/') {
                None if pattern == "*" => true,
                None => pattern == asked.resource && asked.subresource.is_empty(),
                Some(("*", subresource)) => !asked.subresource.is_empty() && subresource == asked.subresource,
                Some((resource, "*")) => resource == asked.resource,
                Some((resource, subresource)) => resource == asked.resource && subresource == asked.subresource,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [quiet]
- level: None
  nonResourceURLs: ['/healthz*']
- level: RequestResponse
  verbs: [create]
  resources:
  - group: ''
    resources: [pods, 'pods/*']
    resourceNames: [p]
- level: Metadata
  namespaces: [kube-system]
- level: Request
  userGroups: [ops]
";

    fn level(asked: Asked<'_>) -> Option<Level> {
        Policy::parse(POLICY).unwrap().extent(&asked).map(|e| e.level)
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let groups = ["ops".to_owned()];
        let pod = Asked {
            user: "u",
            verb: "create",
            is_resource: true,
            resource: "pods",
            name: "p",
            namespace: "kube-system",
            groups: &groups,
            ..Asked::default()
        };
        assert_eq!(level(pod), Some(Level::RequestResponse));
        assert_eq!(level(Asked { subresource: "exec", ..pod }), Some(Level::RequestResponse));
        assert_eq!(level(Asked { user: "quiet", ..pod }), None);
        assert_eq!(level(Asked { name: "q", ..pod }), Some(Level::Metadata));
        assert_eq!(level(Asked { name: "q", namespace: "x", ..pod }), Some(Level::Request));
        assert_eq!(level(Asked { name: "q", namespace: "x", groups: &[], ..pod }), None);
        assert_eq!(level(Asked { path: "/healthz/x", ..Asked::default() }), None);
        let page = Asked { path: "/version", groups: &groups, ..Asked::default() };
        assert_eq!(level(page), Some(Level::Request));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, why) in [
            ("kind: Policy", "audit.k8s.io/v1"),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []", "no rules"),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]", "rules[0].level"),
            (
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [X]}]",
                "rules[0].omitStages",
            ),
            ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, users: x}]", "users: must be a list"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
