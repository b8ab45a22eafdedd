//! The roles and bindings that every cluster starts with: what `policy.txt` says, made when it is missing.

use super::aggregation;
use super::authorizer::Kind;
use super::rule::{Rule, rules_of, uncovered};
use crate::Server;
use crate::answer::Outcome;
use crate::registry::{self, Stored};
use object::{Status, Value, map};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use store::{Expect, ListOptions, Range, Write};

const POLICY: &str = include_str!("policy.txt");
/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
/// Says whether the server may bring an object back to what it was.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// Who owns the fields of what the server makes.
const MANAGER: &str = "kube-apiserver";

/// An object of the policy.
struct Wanted {
    kind: Kind,
    namespace: String,
    name: String,
    object: Value,
}

/// Makes the roles and bindings that are missing and mends those that lost rights, in one trip.
pub(crate) async fn ensure(server: &Arc<Server>) -> Outcome<()> {
    let wanted = policy().map_err(Status::internal)?;
    let mut there: HashMap<Arc<str>, store::Entry> = HashMap::new();
    for kind in Kind::ALL {
        let page = server.store.list(&Range::prefix(kind.prefix()), ListOptions::default()).await;
        there.extend(page.map_err(registry::read_failure)?.entries.into_iter().map(|e| (e.key.clone(), e)));
    }
    let mut roles = aggregation::Sources::default();
    for (key, entry) in &there {
        if let Some(name) = key.strip_prefix(Kind::ClusterRole.prefix())
            && let Some(stored) = Stored::read(entry.value.clone())
        {
            roles.put(name, &stored.value(0));
        }
    }
    for w in wanted.iter().filter(|w| w.kind == Kind::ClusterRole) {
        roles.put_missing(&w.name, &w.object);
    }
    if server.options.role_aggregation {
        roles.settle();
    }
    let catalogue = server.catalogue();
    let mut writes = Vec::new();
    for Wanted { kind, namespace, name, object } in wanted {
        let Some(resource) = catalogue.resource(GROUP, "v1", kind.plural()) else { continue };
        let key = registry::key(resource, &namespace, &name);
        let (mut object, expect) = match there.get(key.as_str()) {
            None => (object, Expect::Absent),
            Some(entry) => {
                let live = registry::stored(entry)?.value(0);
                match mended(kind, &live, &object) {
                    Some(object) => (object, Expect::Revision(entry.mod_revision)),
                    None => continue,
                }
            }
        };
        let gathered = roles.rules(&name);
        if kind == Kind::ClusterRole && object.get("aggregationRule").is_some() && !gathered.is_empty() {
            object.set_at(&["rules"], Value::Array(gathered.to_vec()));
        }
        if expect == Expect::Absent {
            object = server.new_object(resource, object, MANAGER)?;
        }
        let stored = Stored::new(&object, resource.strategy.fingerprint());
        writes.push(Write::put(key, expect, stored.raw().clone()));
    }
    server.write_first(writes).await
}

/// What is there with the rights, subjects, labels and annotations that it lacks; nothing when it lacks none, or when its
/// owner forbids changes. A binding to another role is made anew.
fn mended(kind: Kind, live: &Value, wanted: &Value) -> Option<Value> {
    if live.str_at(&["metadata", "annotations", AUTOUPDATE]) == Some("false") {
        return None;
    }
    let mut out = live.clone();
    for part in ["labels", "annotations"] {
        for (key, value) in wanted.at(&["metadata", part]).and_then(Value::as_object).into_iter().flat_map(|m| m.iter())
        {
            if live.at(&["metadata", part, key]).is_none() {
                out.set_at(&["metadata", part, key], value.clone());
            }
        }
    }
    match kind {
        Kind::ClusterRole | Kind::Role => {
            if wanted.get("aggregationRule").is_some() {
                let selectors = ["aggregationRule", "clusterRoleSelectors"];
                let held = live.at(&selectors).and_then(Value::as_array).unwrap_or_default();
                let mut all = held.to_vec();
                let lacking = wanted.at(&selectors).and_then(Value::as_array).unwrap_or_default().iter();
                all.extend(lacking.filter(|s| !held.contains(s)).cloned());
                if all.len() > held.len() {
                    out.set_at(&selectors, Value::Array(all));
                }
            } else {
                let lacking = uncovered(&rules_of(live), &rules_of(wanted));
                if !lacking.is_empty() {
                    let held = live.get("rules").and_then(Value::as_array).unwrap_or_default();
                    let lacking = super::rule::compact(lacking);
                    let rules = held.iter().cloned().chain(lacking.iter().map(Rule::to_value));
                    out.set_at(&["rules"], Value::Array(rules.collect()));
                }
            }
        }
        Kind::ClusterRoleBinding | Kind::RoleBinding => {
            if live.get("roleRef") != wanted.get("roleRef") {
                out.set_at(&["roleRef"], wanted.get("roleRef").cloned().unwrap_or_default());
            }
            let held = live.get("subjects").and_then(Value::as_array).unwrap_or_default();
            let lacking = wanted.get("subjects").and_then(Value::as_array).unwrap_or_default();
            let lacking: Vec<Value> = lacking.iter().filter(|s| !held.contains(s)).cloned().collect();
            if !lacking.is_empty() {
                out.set_at(&["subjects"], Value::Array(held.iter().cloned().chain(lacking).collect()));
            }
        }
    }
    (out != *live).then_some(out)
}

/// Reads the policy; an error names the line.
fn policy() -> Result<Vec<Wanted>, String> {
    let mut out: Vec<Wanted> = Vec::new();
    let mut bindings: Vec<Wanted> = Vec::new();
    for (i, line) in POLICY.lines().enumerate() {
        let bad = || format!("line {} of the policy cannot be read: {line}", i + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        match (line.starts_with(' '), &words[..]) {
            (_, [] | ["#", ..]) => {}
            (true, words) => {
                let rule = rule(words).ok_or_else(bad)?;
                let role = out.last_mut().ok_or_else(bad)?;
                if let Some(Value::Array(rules)) = role.object.get_mut("rules") {
                    rules.push(rule.to_value());
                }
            }
            (false, ["ClusterRole", name, options @ ..]) => out.push(cluster_role(name, options)),
            (false, ["Role", place]) => {
                let (namespace, name) = place.split_once('/').ok_or_else(bad)?;
                let mut object = new("Role", name, map! {}, Some(Vec::new()));
                object.metadata_mut().insert("namespace", namespace);
                out.push(Wanted { kind: Kind::Role, namespace: namespace.to_owned(), name: name.to_owned(), object });
            }
            (false, ["Controller", name]) => {
                let role = format!("system:controller:{name}");
                out.push(cluster_role(&role, &[]));
                let subject = format!("ServiceAccount:kube-system/{name}");
                bindings.push(binding("", &role, "ClusterRole", &role, &[&subject]).ok_or_else(bad)?);
            }
            (false, ["ClusterRoleBinding", name, subjects @ ..]) => {
                bindings.push(binding("", name, "ClusterRole", name, subjects).ok_or_else(bad)?);
            }
            (false, ["RoleBinding", place, role, subjects @ ..]) => {
                let (namespace, name) = place.split_once('/').ok_or_else(bad)?;
                bindings.push(binding(namespace, name, "Role", role, subjects).ok_or_else(bad)?);
            }
            _ => return Err(bad()),
        }
    }
    for role in &mut out {
        // Upstream shows no rules as null.
        if role.object.get("rules").and_then(Value::as_array).is_some_and(<[Value]>::is_empty) {
            role.object.set_at(&["rules"], Value::Null);
        }
    }
    out.extend(bindings);
    Ok(out)
}

fn cluster_role(name: &str, options: &[&str]) -> Wanted {
    let mut labels = map! {};
    let mut from = None;
    for option in options {
        match option.split_once('=') {
            Some(("to", role)) => {
                labels.insert(format!("{GROUP}/aggregate-to-{role}"), "true");
            }
            Some(("from", role)) => from = Some(format!("{GROUP}/aggregate-to-{role}")),
            _ => {}
        }
    }
    let mut object = new("ClusterRole", name, labels, Some(Vec::new()));
    if let Some(label) = from {
        let mut wanted = map! {};
        wanted.insert(label, "true");
        let selector = Value::Object(map! { "matchLabels" => wanted });
        object.set_at(&["aggregationRule", "clusterRoleSelectors"], Value::Array(vec![selector]));
    }
    Wanted { kind: Kind::ClusterRole, namespace: String::new(), name: name.to_owned(), object }
}

fn binding(namespace: &str, name: &str, role_kind: &str, role: &str, subjects: &[&str]) -> Option<Wanted> {
    let kind = if namespace.is_empty() { Kind::ClusterRoleBinding } else { Kind::RoleBinding };
    let text = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
    let mut object = new(text, name, map! {}, None);
    if !namespace.is_empty() {
        object.metadata_mut().insert("namespace", namespace);
    }
    object.set_at(&["roleRef"], Value::Object(map! { "apiGroup" => GROUP, "kind" => role_kind, "name" => role }));
    let subjects: Option<Vec<Value>> = subjects.iter().map(|s| subject(s)).collect();
    let subjects = subjects?;
    if !subjects.is_empty() {
        object.set_at(&["subjects"], Value::Array(subjects));
    }
    Some(Wanted { kind, namespace: namespace.to_owned(), name: name.to_owned(), object })
}

fn subject(text: &str) -> Option<Value> {
    let (kind, name) = text.split_once(':')?;
    Some(Value::Object(match kind {
        "User" | "Group" => map! { "apiGroup" => GROUP, "kind" => kind, "name" => name },
        "ServiceAccount" => {
            let (namespace, name) = name.split_once('/')?;
            map! { "kind" => kind, "name" => name, "namespace" => namespace }
        }
        _ => return None,
    }))
}

fn new(kind: &str, name: &str, mut labels: object::Map, rules: Option<Vec<Value>>) -> Value {
    labels.insert("kubernetes.io/bootstrapping", "rbac-defaults");
    let mut annotations = map! {};
    annotations.insert(AUTOUPDATE, "true");
    let mut out = map! {
        "apiVersion" => API_VERSION,
        "kind" => kind,
        "metadata" => map! { "name" => name, "labels" => labels, "annotations" => annotations },
    };
    if let Some(rules) = rules {
        out.insert("rules", Value::Array(rules));
    }
    Value::Object(out)
}

/// A rule; its lists are sorted.
fn rule(words: &[&str]) -> Option<Rule> {
    let sorted = |text: &str| {
        let words: BTreeMap<String, ()> = text.split(',').map(|w| (w.to_owned(), ())).collect();
        words.into_keys().collect::<Vec<String>>()
    };
    let words_of =
        |text: &str, long: fn(&str) -> &str| sorted(&text.split(',').map(long).collect::<Vec<_>>().join(","));
    let verbs = |text: &str| {
        words_of(text, |verb| match verb {
            "read" => "get,list,watch",
            "write" => "create,delete,deletecollection,patch,update",
            verb => verb,
        })
    };
    let groups = |text: &str| words_of(text, |group| if group == "core" { "" } else { group });
    Some(match words {
        ["events"] => Rule {
            verbs: verbs("create,patch,update"),
            groups: groups("core,events.k8s.io"),
            resources: sorted("events"),
            ..Rule::default()
        },
        [v, "paths", paths] => Rule { verbs: verbs(v), paths: sorted(paths), ..Rule::default() },
        [v, g, r] => Rule { verbs: verbs(v), groups: groups(g), resources: sorted(r), ..Rule::default() },
        [v, g, r, names] => {
            Rule { verbs: verbs(v), groups: groups(g), resources: sorted(r), names: sorted(names), ..Rule::default() }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn find(kind: Kind, name: &str) -> Value {
        policy().unwrap().into_iter().find(|w| w.kind == kind && w.name == name).unwrap().object
    }

    #[test]
    fn the_policy_reads_as_upstream_writes_it() {
        assert_eq!(
            json::to_string(find(Kind::ClusterRole, "cluster-admin").get("rules").unwrap()),
            r#"[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]}]"#
        );
        let edit = find(Kind::ClusterRole, "edit");
        assert_eq!(edit.str_at(&["metadata", "labels", "rbac.authorization.k8s.io/aggregate-to-admin"]), Some("true"));
        assert_eq!(edit.get("rules"), Some(&Value::Null));
        assert_eq!(
            json::to_string(
                find(Kind::ClusterRoleBinding, "system:controller:ttl-controller").get("subjects").unwrap()
            ),
            r#"[{"kind":"ServiceAccount","name":"ttl-controller","namespace":"kube-system"}]"#
        );
    }

    #[test]
    fn every_binding_has_its_role() {
        let all = policy().unwrap();
        for binding in all.iter().filter(|w| matches!(w.kind, Kind::ClusterRoleBinding | Kind::RoleBinding)) {
            let role = binding.object.str_at(&["roleRef", "name"]).unwrap();
            let there = all.iter().any(|w| {
                w.name == role && w.namespace == binding.namespace && matches!(w.kind, Kind::ClusterRole | Kind::Role)
            });
            assert!(there, "{}: {role}", binding.name);
        }
    }

    #[test]
    fn lost_rights_come_back_and_others_stay() {
        let wanted = find(Kind::ClusterRole, "system:node-problem-detector");
        let mut live = wanted.clone();
        let own = json::parse(br#"[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]"#).unwrap();
        live.set_at(&["rules"], own);
        let mended = mended(Kind::ClusterRole, &live, &wanted).unwrap();
        assert!(uncovered(&rules_of(&mended), &rules_of(&wanted)).is_empty());
        assert_eq!(mended.get("rules").and_then(Value::as_array).unwrap()[0].str_at(&["verbs"]), None);
        live.set_at(&["metadata", "annotations", AUTOUPDATE], Value::from("false"));
        assert!(super::mended(Kind::ClusterRole, &live, &wanted).is_none());
    }

    async fn start(store: &Arc<dyn store::Store>) {
        Server::new(store.clone(), crate::Options::default()).await.unwrap();
    }

    async fn read(store: &Arc<dyn store::Store>, key: &str) -> Value {
        let entry = store.get(key, None).await.unwrap().unwrap();
        Stored::read(entry.value).unwrap().value(0)
    }

    #[tokio::test]
    async fn a_second_start_changes_nothing_but_what_was_lost() {
        let store: Arc<dyn store::Store> = Arc::new(store::Embedded::in_memory(store::Options::default()));
        start(&store).await;
        let revision = store.revision();
        start(&store).await;
        assert_eq!(store.revision(), revision);
        let key = "/registry/clusterrolebindings/system:discovery";
        store.write(Write::delete(key, Expect::Any)).await.unwrap();
        start(&store).await;
        assert_eq!(store.revision(), revision + 2);
        assert_eq!(read(&store, key).await.str_at(&["roleRef", "name"]), Some("system:discovery"));
    }

    #[tokio::test]
    async fn admin_is_made_of_edit_which_is_made_of_view() {
        let store: Arc<dyn store::Store> = Arc::new(store::Embedded::in_memory(store::Options::default()));
        start(&store).await;
        let rules = |role: Value| rules_of(&role);
        let admin = rules(read(&store, "/registry/clusterroles/admin").await);
        let edit = rules(read(&store, "/registry/clusterroles/edit").await);
        let view = rules(read(&store, "/registry/clusterroles/view").await);
        assert!(!view.is_empty() && uncovered(&edit, &view).is_empty() && uncovered(&admin, &edit).is_empty());
        assert!(!uncovered(&view, &edit).is_empty() && !uncovered(&edit, &admin).is_empty());
    }
}
