//! Roles and bindings, arranged by who they are for.

use super::rule::{Rule, rules_of};
use crate::auth::UserInfo;
use crate::authorize::{Attributes, Decision};
use object::Value;
use std::collections::HashMap;

/// The prefix of the names of service accounts' users.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// All roles and bindings of a cluster. Changing one costs little, deciding costs no more than the bindings of the user.
#[derive(Debug, Default)]
pub struct Index {
    /// By namespace (empty for cluster roles) and name.
    roles: HashMap<(String, String), Vec<Rule>>,
    /// By namespace (empty for cluster role bindings) and name.
    bindings: HashMap<(String, String), Binding>,
    /// The bindings, by who they are for.
    by_subject: HashMap<Subject, Vec<(String, String)>>,
}

#[derive(Debug)]
struct Binding {
    /// Whether the role is a ClusterRole.
    cluster_role: bool,
    role: String,
    subjects: Vec<Subject>,
}

/// Who a binding is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(String),
    Group(String),
    /// Namespace and name.
    ServiceAccount(String, String),
}

impl Subject {
    /// Reads a subject; a service account without a namespace is one of the binding's.
    fn from_value(value: &Value, binding_namespace: &str) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match text("kind").as_str() {
            "User" => Some(Subject::User(text("name"))),
            "Group" => Some(Subject::Group(text("name"))),
            "ServiceAccount" => {
                let namespace = text("namespace");
                let namespace = if namespace.is_empty() { binding_namespace.to_owned() } else { namespace };
                (!namespace.is_empty()).then(|| Subject::ServiceAccount(namespace, text("name")))
            }
            _ => None,
        }
    }

    fn describe(&self) -> String {
        match self {
            Subject::User(name) => format!("User {}", object::go::quote(name)),
            Subject::Group(name) => format!("Group {}", object::go::quote(name)),
            Subject::ServiceAccount(namespace, name) => {
                format!("ServiceAccount {}", object::go::quote(&format!("{name}/{namespace}")))
            }
        }
    }
}

/// The subjects that a user is.
fn subjects_of(user: &UserInfo) -> Vec<Subject> {
    let mut out = vec![Subject::User(user.name.clone())];
    if let Some((namespace, name)) = user.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':')) {
        out.push(Subject::ServiceAccount(namespace.to_owned(), name.to_owned()));
    }
    out.extend(user.groups.iter().cloned().map(Subject::Group));
    out
}

impl Index {
    /// Puts a Role (or, without a namespace, a ClusterRole) in its place.
    pub fn put_role(&mut self, namespace: &str, name: &str, role: &Value) {
        self.roles.insert((namespace.to_owned(), name.to_owned()), rules_of(role));
    }

    /// Takes a role away.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        self.roles.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// Puts a RoleBinding (or, without a namespace, a ClusterRoleBinding) in its place.
    pub fn put_binding(&mut self, namespace: &str, name: &str, binding: &Value) {
        self.remove_binding(namespace, name);
        let key = (namespace.to_owned(), name.to_owned());
        let subjects = binding.get("subjects").and_then(Value::as_array).unwrap_or_default();
        let subjects: Vec<Subject> = subjects.iter().filter_map(|s| Subject::from_value(s, namespace)).collect();
        for subject in &subjects {
            self.by_subject.entry(subject.clone()).or_default().push(key.clone());
        }
        let binding = Binding {
            cluster_role: binding.str_at(&["roleRef", "kind"]) == Some("ClusterRole"),
            role: binding.str_at(&["roleRef", "name"]).unwrap_or_default().to_owned(),
            subjects,
        };
        self.bindings.insert(key, binding);
    }

    /// Takes a binding away.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(binding) = self.bindings.remove(&key) else { return };
        for subject in binding.subjects {
            if let Some(keys) = self.by_subject.get_mut(&subject) {
                keys.retain(|k| *k != key);
                if keys.is_empty() {
                    self.by_subject.remove(&subject);
                }
            }
        }
    }

    /// What the roles and bindings say of a request, in upstream's words.
    pub fn decide(&self, request: &Attributes<'_>) -> Decision {
        let mut missing = Vec::new();
        for (key, binding, subject) in self.bindings_of(request.user, request.namespace) {
            match self.rules(key, binding) {
                Some(rules) if rules.iter().any(|r| r.allows(request)) => {
                    return Decision::Allow(allowed_by(key, binding, &subject));
                }
                Some(_) => {}
                None => missing.push(missing_role(binding)),
            }
        }
        match missing.len() {
            0 => Decision::Deny(String::new()),
            _ => Decision::Deny(format!("RBAC: {}", object::field::aggregate(&missing))),
        }
    }

    /// All rules that a user has in a namespace (and, with an empty one, in the cluster), and the roles that bindings
    /// name in vain.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        for (key, binding, _) in self.bindings_of(user, namespace) {
            match self.rules(key, binding) {
                Some(found) => rules.extend(found.iter().cloned()),
                None => missing.push(missing_role(binding)),
            }
        }
        (rules, missing)
    }

    /// The rules of a role that a binding in `namespace` would refer to.
    pub fn role(&self, namespace: &str, cluster_role: bool, name: &str) -> Option<&[Rule]> {
        let namespace = if cluster_role { "" } else { namespace };
        self.roles.get(&(namespace.to_owned(), name.to_owned())).map(Vec::as_slice)
    }

    /// The bindings of a user: those of the cluster, then those of the namespace.
    fn bindings_of<'s>(
        &'s self,
        user: &UserInfo,
        namespace: &str,
    ) -> Vec<(&'s (String, String), &'s Binding, Subject)> {
        let mut out = Vec::new();
        for subject in subjects_of(user) {
            for key in self.by_subject.get(&subject).into_iter().flatten() {
                if (key.0.is_empty() || key.0 == namespace)
                    && let Some(binding) = self.bindings.get(key)
                {
                    out.push((key, binding, subject.clone()));
                }
            }
        }
        out.sort_by(|a, b| a.0.cmp(b.0));
        out
    }

    fn rules(&self, key: &(String, String), binding: &Binding) -> Option<&[Rule]> {
        self.role(&key.0, binding.cluster_role, &binding.role)
    }
}

fn missing_role(binding: &Binding) -> String {
    let plural = if binding.cluster_role { "clusterrole" } else { "role" };
    format!("{plural}.rbac.authorization.k8s.io {} not found", object::go::quote(&binding.role))
}

fn allowed_by((namespace, name): &(String, String), binding: &Binding, subject: &Subject) -> String {
    let kind = if binding.cluster_role { "ClusterRole" } else { "Role" };
    let role = object::go::quote(&binding.role);
    let subject = subject.describe();
    if namespace.is_empty() {
        let name = object::go::quote(name);
        format!("RBAC: allowed by ClusterRoleBinding {name} of {kind} {role} to {subject}")
    } else {
        let name = object::go::quote(&format!("{name}/{namespace}"));
        format!("RBAC: allowed by RoleBinding {name} of {kind} {role} to {subject}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn decide(index: &Index, name: &str, groups: &[&str], namespace: &str) -> Decision {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        let user = UserInfo { name: name.to_owned(), groups, ..UserInfo::default() };
        index.decide(&Attributes {
            user: &user,
            verb: "get",
            group: "",
            version: "v1",
            resource: "pods",
            subresource: "",
            name: "p",
            namespace,
            path: "",
        })
    }

    fn index() -> Index {
        let mut index = Index::default();
        index.put_role("", "reader", &value(r#"{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}"#));
        index.put_binding(
            "",
            "all",
            &value(r#"{"roleRef":{"kind":"ClusterRole","name":"reader"},"subjects":[{"kind":"Group","name":"ops"}]}"#),
        );
        index.put_binding(
            "a",
            "some",
            &value(
                r#"{"roleRef":{"kind":"ClusterRole","name":"reader"},"subjects":[{"kind":"User","name":"alice"},{"kind":"ServiceAccount","name":"sa"}]}"#,
            ),
        );
        index.put_binding(
            "a",
            "broken",
            &value(r#"{"roleRef":{"kind":"Role","name":"none"},"subjects":[{"kind":"User","name":"bob"}]}"#),
        );
        index
    }

    #[test]
    fn bindings_say_who_may() {
        let index = index();
        assert_eq!(
            decide(&index, "x", &["ops"], "b"),
            Decision::Allow(
                r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "ops""#.to_owned()
            )
        );
        assert_eq!(
            decide(&index, "alice", &[], "a"),
            Decision::Allow(
                r#"RBAC: allowed by RoleBinding "some/a" of ClusterRole "reader" to User "alice""#.to_owned()
            )
        );
        assert_eq!(decide(&index, "alice", &[], "b"), Decision::Deny(String::new()));
        assert_eq!(
            decide(&index, "system:serviceaccount:a:sa", &[], "a"),
            Decision::Allow(
                r#"RBAC: allowed by RoleBinding "some/a" of ClusterRole "reader" to ServiceAccount "sa/a""#.to_owned()
            )
        );
        assert_eq!(
            decide(&index, "bob", &[], "a"),
            Decision::Deny(r#"RBAC: role.rbac.authorization.k8s.io "none" not found"#.to_owned())
        );
    }

    #[test]
    fn what_is_taken_away_allows_nothing() {
        let mut index = index();
        index.remove_binding("", "all");
        index.remove_role("", "reader");
        assert_eq!(decide(&index, "x", &["ops"], "b"), Decision::Deny(String::new()));
        assert!(matches!(decide(&index, "alice", &[], "a"), Decision::Deny(reason) if reason.contains("not found")));
    }
}
