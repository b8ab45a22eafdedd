//! Nobody gives away what they do not have: checks on writes of roles and bindings.

use super::bootstrap::GROUP;
use super::rule::{Rule, compact, rules_of, uncovered};
use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::auth::{MASTERS, UserInfo};
use crate::authorize::{Attributes, Decision};
use crate::catalogue::Resource;
use object::status::Qualified;
use object::{Map, Status, Value, go};
use std::collections::BTreeSet;

/// A write of a role or binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// Who writes.
    pub user: &'a UserInfo,
    /// The resource.
    pub resource: &'a Resource,
    /// The namespace of the path.
    pub namespace: &'a str,
    /// The name in the path; empty for a create.
    pub name: &'a str,
    /// The object as it is; none for a create.
    pub old: Option<&'a Value>,
    /// What it is to be.
    pub new: &'a Value,
}

/// 403 if the write gives rights that its author has not. Other kinds pass.
pub(crate) async fn check(server: &Server, attempt: Attempt<'_>) -> Outcome<()> {
    if attempt.resource.group != GROUP || attempt.user.in_group(MASTERS) {
        return Ok(());
    }
    // Whoever only helps a deletion along gives nothing away.
    if attempt.old.is_some_and(|old| changes_only_owners(old, attempt.new)) {
        return Ok(());
    }
    match attempt.resource.plural.as_str() {
        "roles" | "clusterroles" => role(server, attempt).await,
        "rolebindings" | "clusterrolebindings" => binding(server, attempt).await,
        _ => Ok(()),
    }
}

async fn role(server: &Server, attempt: Attempt<'_>) -> Outcome<()> {
    let Attempt { user, resource, namespace, name, old, new } = attempt;
    let namespace = if resource.namespaced { namespace } else { "" };
    if may(server, user, "escalate", &resource.plural, namespace, name).await {
        return Ok(());
    }
    confirm(server, attempt, namespace, &rules_of(new)).await?;
    if aggregates(new) || old.is_some_and(aggregates) {
        // Such a role takes up whatever comes along.
        if confirm(server, attempt, namespace, &Rule::all()).await.is_err() {
            return Err(forbidden(attempt, "must have cluster-admin privileges to use the aggregationRule"));
        }
    }
    Ok(())
}

/// Whether a role takes up the rules of others: it has at least one selector of them.
fn aggregates(role: &Value) -> bool {
    let selectors = role.at(&["aggregationRule", "clusterRoleSelectors"]).and_then(Value::as_array);
    selectors.is_some_and(|s| !s.is_empty())
}

async fn binding(server: &Server, attempt: Attempt<'_>) -> Outcome<()> {
    let Attempt { user, resource, namespace, new, .. } = attempt;
    let namespace = if resource.namespaced { namespace } else { "" };
    let kind = new.str_at(&["roleRef", "kind"]).unwrap_or_default();
    let role = new.str_at(&["roleRef", "name"]).unwrap_or_default();
    let group = new.str_at(&["roleRef", "apiGroup"]).unwrap_or_default();
    let plural = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        other => {
            let kind = go::quote(other);
            return Err(Status::unknown(format!("unsupported role reference kind: {kind}")).into());
        }
    };
    let named = Attributes {
        user,
        verb: "bind",
        group,
        version: "*",
        resource: plural,
        subresource: "",
        name: role,
        namespace,
        path: "",
    };
    if matches!(server.options.authorizer.authorize(named).await, Decision::Allow(_)) {
        return Ok(());
    }
    match server.options.authorizer.role(namespace, kind == "ClusterRole", role).await {
        Some(rules) => confirm(server, attempt, namespace, &rules).await,
        None => Err(Status::not_found(Qualified { group: GROUP, name: plural }, role).into()),
    }
}

/// Whether the user may do something with roles.
async fn may(server: &Server, user: &UserInfo, verb: &str, plural: &str, namespace: &str, name: &str) -> bool {
    let attributes = Attributes {
        user,
        verb,
        group: GROUP,
        version: "*",
        resource: plural,
        subresource: "",
        name,
        namespace,
        path: "",
    };
    matches!(server.options.authorizer.authorize(attributes).await, Decision::Allow(_))
}

/// 403 unless the user has all of `wanted` in the namespace.
async fn confirm(server: &Server, attempt: Attempt<'_>, namespace: &str, wanted: &[Rule]) -> Outcome<()> {
    let user = attempt.user;
    let held = server.options.authorizer.rules(user, namespace).await;
    let lacking = uncovered(&held.rules, wanted);
    if lacking.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = compact(lacking).iter().map(Rule::describe).collect();
    let groups: Vec<String> = user.groups.iter().map(|g| go::quote(g)).collect();
    let mut why = format!(
        "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        go::quote(&user.name),
        groups.join(" "),
        lines.into_iter().collect::<Vec<_>>().join("\n")
    );
    if !held.errors.is_empty() {
        // Here upstream asks the storage, which names the resource, not the kind.
        let errors: Vec<String> = held.errors.iter().map(|e| e.replacen("role.", "roles.", 1)).collect();
        why = format!("{why}; resolution errors: [{}]", object::field::aggregate(&errors));
    }
    Err(forbidden(attempt, &why))
}

fn forbidden(attempt: Attempt<'_>, why: &str) -> Failure {
    Status::forbidden(attempt.resource.qualified(), attempt.new.name(), why).into()
}

/// Whether nothing changes but what garbage collection needs: finalizers and owners.
fn changes_only_owners(old: &Value, new: &Value) -> bool {
    fn kept(map: &Map, skipped: &[&str]) -> Vec<(String, Value)> {
        // What is empty is as good as absent.
        let says = |v: &Value| match v {
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            other => !other.is_null(),
        };
        let members = map.iter().filter(|(k, v)| !skipped.contains(k) && says(v));
        members.map(|(k, v)| (k.to_owned(), v.clone())).collect()
    }
    let empty = Map::new();
    let body = |v: &Value| kept(v.as_object().unwrap_or(&empty), &["metadata"]);
    let meta = |v: &Value| {
        kept(v.metadata().unwrap_or(&empty), &["finalizers", "ownerReferences", "managedFields", "selfLink"])
    };
    body(old) == body(new) && meta(old) == meta(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn helping_a_deletion_along_is_told_from_changes() {
        let old = value(r#"{"metadata":{"name":"a","finalizers":["x"],"resourceVersion":"7"},"rules":[]}"#);
        for (new, helps) in [
            (r#"{"metadata":{"name":"a","resourceVersion":"7"},"rules":[]}"#, true),
            (r#"{"metadata":{"name":"a","resourceVersion":"7","ownerReferences":[{}]}}"#, true),
            (r#"{"metadata":{"name":"a","resourceVersion":"7"},"rules":[{}]}"#, false),
            (r#"{"metadata":{"name":"a","resourceVersion":"7","labels":{"l":"1"}},"rules":[]}"#, false),
            // A write that names no version, or another, is not of this object.
            (r#"{"metadata":{"name":"a"},"rules":[]}"#, false),
            (r#"{"metadata":{"name":"a","resourceVersion":"8"},"rules":[]}"#, false),
        ] {
            assert_eq!(changes_only_owners(&old, &value(new)), helps, "{new}");
        }
    }

    #[test]
    fn a_role_aggregates_with_a_selector() {
        for (role, wanted) in [
            ("{}", false),
            (r#"{"aggregationRule":null}"#, false),
            (r#"{"aggregationRule":{}}"#, false),
            (r#"{"aggregationRule":{"clusterRoleSelectors":[]}}"#, false),
            (r#"{"aggregationRule":{"clusterRoleSelectors":[{}]}}"#, true),
        ] {
            assert_eq!(aggregates(&value(role)), wanted, "{role}");
        }
    }
}
