//! Roles and bindings, arranged by who they are for.

use super::rule::{Rule, rules_of};
use crate::auth::UserInfo;
use crate::authorize::{Attributes, Decision, Reason};
use arc_swap::ArcSwapOption;
use object::{Value, go};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The prefix of the names of service accounts' users.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// What is kept by namespace (empty for the cluster) and name.
type Spaces<T> = HashMap<String, HashMap<String, T>>;

/// All roles and bindings of a cluster. Changing one costs little; deciding costs no more than the bindings of the user
/// in the cluster and in one namespace, however many there are for others.
#[derive(Debug, Default)]
pub struct Index {
    /// The roles that are there or that bindings name.
    roles: Spaces<Arc<Role>>,
    bindings: Spaces<Arc<Binding>>,
    users: Holders,
    groups: Holders,
    /// By `NAMESPACE:NAME`, as in the names of their users.
    accounts: Holders,
}

/// Bindings by whom they are for, then by their namespace; those of one place in order of their names.
type Holders = HashMap<Arc<str>, HashMap<String, Vec<Arc<Binding>>>>;

/// A role, without rules where bindings name one that is not there. Bindings hold it, so that a decision looks nothing up.
#[derive(Debug)]
struct Role {
    rules: ArcSwapOption<Vec<Rule>>,
    /// What the rules are about; everything where there are none, since that has to be told.
    verbs: AtomicU64,
    targets: AtomicU64,
}

impl Default for Role {
    fn default() -> Self {
        let all = || AtomicU64::new(u64::MAX);
        Role { rules: ArcSwapOption::default(), verbs: all(), targets: all() }
    }
}

impl Role {
    fn put(&self, rules: Option<Vec<Rule>>) {
        let marks = rules.as_deref().map_or(Marks { verbs: u64::MAX, targets: u64::MAX }, Marks::of_rules);
        self.verbs.store(marks.verbs, Ordering::Relaxed);
        self.targets.store(marks.targets, Ordering::Relaxed);
        self.rules.store(rules.map(Arc::new));
    }

    /// Whether a look at the rules may be of use. Most roles are passed over here, without reading a single text.
    fn may_concern(&self, request: Marks) -> bool {
        self.verbs.load(Ordering::Relaxed) & request.verbs != 0
            && self.targets.load(Ordering::Relaxed) & request.targets != 0
    }
}

/// Verbs, and what they are applied to, as bits: different texts may share one, equal ones never differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    verbs: u64,
    targets: u64,
}

impl Marks {
    /// The bit of what is no resource.
    const PAGE: u64 = 1 << 63;

    fn of_rules(rules: &[Rule]) -> Self {
        let mut marks = Marks { verbs: 0, targets: 0 };
        for rule in rules {
            for verb in &rule.verbs {
                marks.verbs |= if verb == "*" { u64::MAX } else { bit(verb, 64) };
            }
            for resource in &rule.resources {
                let resource = resource.split_once('/').map_or(resource.as_str(), |(resource, _)| resource);
                marks.targets |= if resource == "*" { u64::MAX } else { bit(resource, 63) };
            }
            if !rule.paths.is_empty() {
                marks.targets |= Marks::PAGE;
            }
        }
        marks
    }

    fn of_request(request: &Attributes<'_>) -> Self {
        let targets = if request.is_page() { Marks::PAGE } else { bit(request.resource, 63) };
        Marks { verbs: bit(request.verb, 64), targets }
    }
}

/// One of the lowest `count` bits, by a text (FNV-1a).
fn bit(text: &str, count: u64) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    1 << ((hash >> 32) % count)
}

#[derive(Debug)]
struct Binding {
    /// The namespace; empty for those of the cluster.
    namespace: String,
    name: String,
    /// Whether the role is a ClusterRole.
    cluster_role: bool,
    role: String,
    rules: Arc<Role>,
    subjects: Vec<Subject>,
}

/// Who a binding is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Group,
    ServiceAccount,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Subject {
    kind: Kind,
    /// The name; `NAMESPACE:NAME` for a service account.
    name: String,
}

impl Subject {
    /// Reads a subject; a service account without a namespace is one of the binding's.
    fn from_value(value: &Value, binding_namespace: &str) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        match text("kind") {
            "User" => Some(Subject { kind: Kind::User, name: name.to_owned() }),
            "Group" => Some(Subject { kind: Kind::Group, name: name.to_owned() }),
            "ServiceAccount" => {
                let namespace = Some(text("namespace")).filter(|n| !n.is_empty()).unwrap_or(binding_namespace);
                let name = format!("{namespace}:{name}");
                (!namespace.is_empty()).then_some(Subject { kind: Kind::ServiceAccount, name })
            }
            _ => None,
        }
    }
}

/// A right that somebody has: by which binding, and as whom.
#[derive(Clone, Debug)]
pub struct Granted {
    binding: Arc<Binding>,
    kind: Kind,
    subject: Arc<str>,
}

impl fmt::Display for Granted {
    /// In upstream's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Granted { binding, kind, subject } = self;
        let role_kind = if binding.cluster_role { "ClusterRole" } else { "Role" };
        let (what, name) = match binding.namespace.as_str() {
            "" => ("ClusterRoleBinding", binding.name.clone()),
            namespace => ("RoleBinding", format!("{}/{namespace}", binding.name)),
        };
        let (name, role, subject) = (go::quote(&name), go::quote(&binding.role), describe(*kind, subject));
        write!(f, "RBAC: allowed by {what} {name} of {role_kind} {role} to {subject}")
    }
}

/// A subject that a user is, for messages.
fn describe(kind: Kind, name: &str) -> String {
    match kind {
        Kind::User => format!("User {}", go::quote(name)),
        Kind::Group => format!("Group {}", go::quote(name)),
        Kind::ServiceAccount => {
            let (namespace, name) = name.split_once(':').unwrap_or(("", name));
            format!("ServiceAccount {}", go::quote(&format!("{name}/{namespace}")))
        }
    }
}

impl Index {
    /// Puts a Role (or, without a namespace, a ClusterRole) in its place.
    pub fn put_role(&mut self, namespace: &str, name: &str, role: &Value) {
        self.role_cell(namespace, name).put(Some(rules_of(role)));
    }

    /// Takes a role away.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        self.role_cell(namespace, name).put(None);
        self.forget_role(namespace, name);
    }

    /// The place of a role, whether it is there or not.
    fn role_cell(&mut self, namespace: &str, name: &str) -> Arc<Role> {
        self.roles.entry(namespace.to_owned()).or_default().entry(name.to_owned()).or_default().clone()
    }

    /// Drops the place of a role that is not there and that nobody names.
    fn forget_role(&mut self, namespace: &str, name: &str) {
        let role = self.roles.get(namespace).and_then(|roles| roles.get(name));
        if role.is_some_and(|role| Arc::strong_count(role) == 1 && role.rules.load().is_none()) {
            take(&mut self.roles, namespace, name);
        }
    }

    /// Puts a RoleBinding (or, without a namespace, a ClusterRoleBinding) in its place.
    pub fn put_binding(&mut self, namespace: &str, name: &str, binding: &Value) {
        self.remove_binding(namespace, name);
        let cluster_role = binding.str_at(&["roleRef", "kind"]) == Some("ClusterRole");
        let role = binding.str_at(&["roleRef", "name"]).unwrap_or_default().to_owned();
        let subjects = binding.get("subjects").and_then(Value::as_array).unwrap_or_default();
        let binding = Arc::new(Binding {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            cluster_role,
            rules: self.role_cell(if cluster_role { "" } else { namespace }, &role),
            role,
            subjects: subjects.iter().filter_map(|s| Subject::from_value(s, namespace)).collect(),
        });
        for subject in &binding.subjects {
            let places = self.holders_mut(subject.kind).entry(subject.name.as_str().into()).or_default();
            let held = places.entry(namespace.to_owned()).or_default();
            if let Err(at) = held.binary_search_by(|b| b.name.as_str().cmp(name)) {
                held.insert(at, binding.clone());
            }
        }
        self.bindings.entry(namespace.to_owned()).or_default().insert(name.to_owned(), binding);
    }

    /// Takes a binding away.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(binding) = take(&mut self.bindings, namespace, name) else { return };
        for subject in &binding.subjects {
            let holders = self.holders_mut(subject.kind);
            let Some(places) = holders.get_mut(subject.name.as_str()) else { continue };
            if let Some(held) = places.get_mut(namespace) {
                held.retain(|b| b.name != name);
                if held.is_empty() {
                    places.remove(namespace);
                }
            }
            if places.is_empty() {
                holders.remove(subject.name.as_str());
            }
        }
        let space = if binding.cluster_role { "" } else { namespace };
        let role = binding.role.clone();
        // Decisions may hold it a moment longer.
        drop(binding);
        self.forget_role(space, &role);
    }

    /// What the roles and bindings say of a request, in upstream's words.
    pub fn decide(&self, request: &Attributes<'_>) -> Decision {
        let mut missing = Vec::new();
        let marks = Marks::of_request(request);
        let allowed = self.visit(request.user, request.namespace, |binding, kind, subject| {
            if !binding.rules.may_concern(marks) {
                return None;
            }
            match &*binding.rules.rules.load() {
                Some(rules) if rules.iter().any(|r| r.allows(request)) => {
                    return Some(Granted { binding: binding.clone(), kind, subject: subject.clone() });
                }
                Some(_) => {}
                None => missing.push(missing_role(binding.cluster_role, &binding.role)),
            }
            None
        });
        match allowed {
            Some(granted) => Decision::Allow(Reason::Granted(granted)),
            None if missing.is_empty() => Decision::Deny(String::new()),
            None => Decision::Deny(format!("RBAC: {}", object::field::aggregate(&missing))),
        }
    }

    /// All rules that a user has in a namespace (and, with an empty one, in the cluster), and what is wrong with the
    /// bindings.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        self.visit(user, namespace, |binding, _, _| {
            if !seen.insert(Arc::as_ptr(binding)) {
                return None::<()>;
            }
            match &*binding.rules.rules.load() {
                Some(found) => rules.extend(found.iter().cloned()),
                None => missing.push(missing_role(binding.cluster_role, &binding.role)),
            }
            None
        });
        (rules, missing)
    }

    /// The rules of a role that a binding in `namespace` would refer to.
    pub fn role(&self, namespace: &str, cluster_role: bool, name: &str) -> Option<Arc<Vec<Rule>>> {
        self.roles.get(if cluster_role { "" } else { namespace })?.get(name)?.rules.load_full()
    }

    /// Shows the bindings of a user, those of the cluster first, until `look` gives something.
    fn visit<'s, T>(
        &'s self,
        user: &UserInfo,
        namespace: &str,
        mut look: impl FnMut(&'s Arc<Binding>, Kind, &'s Arc<str>) -> Option<T>,
    ) -> Option<T> {
        let account = user.name.strip_prefix(SERVICE_ACCOUNT);
        let subjects = [(Kind::User, user.name.as_str())]
            .into_iter()
            .chain(account.map(|name| (Kind::ServiceAccount, name)))
            .chain(user.groups.iter().map(|g| (Kind::Group, g.as_str())));
        let places = ["", namespace];
        let places = if namespace.is_empty() { &places[..1] } else { &places[..] };
        for place in places {
            for (kind, name) in subjects.clone() {
                let Some((subject, places)) = self.holders(kind).get_key_value(name) else { continue };
                for binding in places.get(*place).into_iter().flatten() {
                    if let Some(found) = look(binding, kind, subject) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    fn holders(&self, kind: Kind) -> &Holders {
        match kind {
            Kind::User => &self.users,
            Kind::Group => &self.groups,
            Kind::ServiceAccount => &self.accounts,
        }
    }

    fn holders_mut(&mut self, kind: Kind) -> &mut Holders {
        match kind {
            Kind::User => &mut self.users,
            Kind::Group => &mut self.groups,
            Kind::ServiceAccount => &mut self.accounts,
        }
    }
}

fn take<T>(spaces: &mut Spaces<T>, namespace: &str, name: &str) -> Option<T> {
    let space = spaces.get_mut(namespace)?;
    let taken = space.remove(name);
    if space.is_empty() {
        spaces.remove(namespace);
    }
    taken
}

/// What upstream says of a role that is not there.
fn missing_role(cluster_role: bool, name: &str) -> String {
    let plural = if cluster_role { "clusterrole" } else { "role" };
    format!("{plural}.rbac.authorization.k8s.io {} not found", go::quote(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    /// What is said of a request; the error is why it is refused.
    fn decide(index: &Index, name: &str, groups: &[&str], namespace: &str) -> Result<String, String> {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        let user = UserInfo { name: name.to_owned(), groups, ..UserInfo::default() };
        let decision = index.decide(&Attributes {
            user: &user,
            verb: "get",
            group: "",
            version: "v1",
            resource: "pods",
            subresource: "",
            name: "p",
            namespace,
            path: "",
        });
        match decision {
            Decision::Allow(reason) => Ok(reason.to_string()),
            Decision::Deny(reason) => Err(reason),
        }
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
            Ok(r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "ops""#.to_owned())
        );
        assert_eq!(
            decide(&index, "alice", &[], "a"),
            Ok(r#"RBAC: allowed by RoleBinding "some/a" of ClusterRole "reader" to User "alice""#.to_owned())
        );
        assert_eq!(decide(&index, "alice", &[], "b"), Err(String::new()));
        assert_eq!(
            decide(&index, "system:serviceaccount:a:sa", &[], "a"),
            Ok(r#"RBAC: allowed by RoleBinding "some/a" of ClusterRole "reader" to ServiceAccount "sa/a""#.to_owned())
        );
        assert_eq!(
            decide(&index, "bob", &[], "a"),
            Err(r#"RBAC: role.rbac.authorization.k8s.io "none" not found"#.to_owned())
        );
    }

    #[test]
    fn roles_about_something_else_are_passed_over() {
        let rule = |verbs: &[&str], resources: &[&str], paths: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
            Rule { verbs: own(verbs), resources: own(resources), paths: own(paths), ..Rule::default() }
        };
        let user = UserInfo::default();
        let request = |verb: &'static str, resource: &'static str, path: &'static str| Attributes {
            user: &user,
            verb,
            group: "",
            version: if path.is_empty() { "v1" } else { "" },
            resource,
            subresource: "",
            name: "",
            namespace: "",
            path,
        };
        let concerns = |rule: Rule, request: Attributes<'_>| {
            let role = Role::default();
            role.put(Some(vec![rule]));
            role.may_concern(Marks::of_request(&request))
        };
        let pods = request("get", "pods", "");
        assert!(concerns(rule(&["get"], &["pods"], &[]), pods));
        assert!(concerns(rule(&["*"], &["pods/log"], &[]), pods));
        assert!(concerns(rule(&["get"], &["*/scale"], &[]), pods));
        assert!(!concerns(rule(&["delete"], &["pods"], &[]), pods));
        assert!(!concerns(rule(&["get"], &["secrets"], &[]), pods));
        assert!(!concerns(rule(&["get"], &[], &["/healthz"]), pods));
        assert!(concerns(rule(&["get"], &[], &["/healthz"]), request("get", "", "/healthz")));
        assert!(!concerns(rule(&["get"], &["pods"], &[]), request("get", "", "/healthz")));
        assert!(Role::default().may_concern(Marks::of_request(&pods)), "a role that is missing has to be told");
    }

    #[test]
    fn roles_that_nobody_names_are_forgotten() {
        let mut index = index();
        let count = |index: &Index| index.roles.values().map(HashMap::len).sum::<usize>();
        assert_eq!(count(&index), 2);
        index.remove_binding("a", "broken");
        assert_eq!(count(&index), 1);
        index.remove_role("", "reader");
        assert_eq!(count(&index), 1, "bindings name it");
        index.remove_binding("a", "some");
        index.remove_binding("", "all");
        assert_eq!(count(&index), 0);
    }

    #[test]
    fn what_is_taken_away_allows_nothing() {
        let mut index = index();
        index.remove_binding("", "all");
        index.remove_role("", "reader");
        assert_eq!(decide(&index, "x", &["ops"], "b"), Err(String::new()));
        assert!(matches!(decide(&index, "alice", &[], "a"), Err(reason) if reason.contains("not found")));
    }
}
