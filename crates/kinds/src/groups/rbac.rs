//! The resources of the group `rbac.authorization.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, default_text, list_mut, object_mut};
use crate::resource::{Column, MetadataChecks, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Value, go, names};

const GROUP: &str = "rbac.authorization.k8s.io";

const STRATEGY: Strategy = Strategy {
    name: names::path_segment,
    metadata: MetadataChecks { anew: 2, ..MetadataChecks::ONCE },
    create_on_update: true,
    ..Strategy::PLAIN
};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        columns: BINDING_COLUMNS,
        cells: binding_cells,
        strategy: Strategy {
            validate: |object| validate_binding(object, false),
            validate_update: |new, old| validate_binding_update(new, old, false),
            ..STRATEGY
        },
        ..Resource::new(
            GROUP,
            "ClusterRoleBinding",
            "clusterrolebindings",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.ClusterRoleBinding").with_default(default_binding)],
        )
    },
    Resource {
        namespaced: false,
        columns: &[Column::NAME, Column::CREATED_AT],
        cells: table::name_and_creation,
        strategy: Strategy {
            validate: validate_cluster_role,
            validate_update: |new, _| twice(validate_cluster_role(new)),
            ..STRATEGY
        },
        ..Resource::new(
            GROUP,
            "ClusterRole",
            "clusterroles",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.ClusterRole")],
        )
    },
    Resource {
        columns: BINDING_COLUMNS,
        cells: binding_cells,
        strategy: Strategy {
            validate: |object| validate_binding(object, true),
            validate_update: |new, old| validate_binding_update(new, old, true),
            ..STRATEGY
        },
        ..Resource::new(
            GROUP,
            "RoleBinding",
            "rolebindings",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.RoleBinding").with_default(default_binding)],
        )
    },
    Resource {
        columns: &[Column::NAME, Column::CREATED_AT],
        cells: table::name_and_creation,
        strategy: Strategy {
            validate: |object| rules(object, true),
            validate_update: |new, _| twice(rules(new, true)),
            ..STRATEGY
        },
        ..Resource::new(GROUP, "Role", "roles", &[Version::stored("v1", "io.k8s.api.rbac.v1.Role")])
    },
];

const BINDING_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::new("Role", "string"),
    Column::AGE,
    Column::wide("Users", "string"),
    Column::wide("Groups", "string"),
    Column::wide("ServiceAccounts", "string"),
];

fn binding_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = object.sub("roleRef");
    let subjects = |kind: &str| -> Value {
        let names: Vec<String> = object
            .list("subjects")
            .iter()
            .filter(|s| s.text("kind") == kind)
            .map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", s.text("namespace"), s.text("name")),
                _ => s.text("name").to_owned(),
            })
            .collect();
        names.join(", ").into()
    };
    vec![
        object.name().into(),
        format!("{}/{}", role.text("kind"), role.text("name")).into(),
        table::age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn default_binding(object: &mut Value) {
    if let Some(role) = object_mut(object, &["roleRef"]) {
        default_text(role, "apiGroup", GROUP);
    }
    for subject in list_mut(object, "subjects") {
        if matches!(subject.text("kind"), "User" | "Group") {
            default_text(subject, "apiGroup", GROUP);
        }
    }
}

/// Upstream runs the checks of a new object twice when it is updated, and reports what they find as often.
fn twice(mut errors: Errors) -> Errors {
    errors.extend_from_within(..);
    errors
}

fn rules(object: &Value, namespaced: bool) -> Errors {
    let mut out = Errors::new();
    let list = Path::ROOT.child("rules");
    for (i, rule) in object.list("rules").iter().enumerate() {
        policy_rule(rule, namespaced, &list.index(i), &mut out);
    }
    out
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path<'_>, out: &mut Errors) {
    let empty = |key: &str| rule.list(key).is_empty();
    if empty("verbs") {
        out.push(FieldError::required(&path.child("verbs"), "verbs must contain at least one value"));
    }
    if !empty("nonResourceURLs") {
        let at = path.child("nonResourceURLs");
        let shown = || Shown::raw(go::string_list(&rule.strings("nonResourceURLs")));
        if namespaced {
            out.push(FieldError::invalid(&at, shown(), "namespaced rules cannot apply to non-resource URLs"));
        }
        if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            out.push(FieldError::invalid(&at, shown(), why));
        }
        return;
    }
    if empty("apiGroups") {
        let why = "resource rules must supply at least one api group";
        out.push(FieldError::required(&path.child("apiGroups"), why));
    }
    if empty("resources") {
        out.push(FieldError::required(&path.child("resources"), "resource rules must supply at least one resource"));
    }
}

fn validate_cluster_role(object: &Value) -> Errors {
    let mut out = rules(object, false);
    if object.has("aggregationRule") {
        let rule = Path::ROOT.child("aggregationRule");
        let selectors = rule.child("clusterRoleSelectors");
        let list = object.sub("aggregationRule").list("clusterRoleSelectors");
        if list.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            out.push(FieldError::required(&selectors, why));
        }
        for (i, selector) in list.iter().enumerate() {
            check::label_selector(selector, &selectors.index(i), &mut out);
        }
    }
    out
}

fn validate_binding(object: &Value, namespaced: bool) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("roleRef");
    let role = object.sub("roleRef");
    check::one_of(role, "apiGroup", &[GROUP], &path, &mut out);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    check::one_of(role, "kind", kinds, &path, &mut out);
    check::required_name(names::path_segment, role, "name", &path, &mut out);
    let list = Path::ROOT.child("subjects");
    for (i, value) in object.list("subjects").iter().enumerate() {
        subject(value, namespaced, &list.index(i), &mut out);
    }
    out
}

fn subject(subject: &Value, namespaced: bool, path: &Path<'_>, out: &mut Errors) {
    check::required(subject, "name", path, out);
    match subject.text("kind") {
        "ServiceAccount" => {
            if !subject.text("name").is_empty() {
                check::name(names::dns1123_subdomain, subject.text("name"), &path.child("name"), out);
            }
            if !subject.text("apiGroup").is_empty() {
                check::one_of(subject, "apiGroup", &[""], path, out);
            }
            if !namespaced {
                check::required(subject, "namespace", path, out);
            }
        }
        "User" | "Group" => check::one_of(subject, "apiGroup", &[GROUP], path, out),
        _ => check::one_of(subject, "kind", &["ServiceAccount", "User", "Group"], path, out),
    }
}

fn validate_binding_update(new: &Value, old: &Value, namespaced: bool) -> Errors {
    let mut out = twice(validate_binding(new, namespaced));
    let role = new.sub("roleRef");
    if role != old.sub("roleRef") {
        let part = |key: &str| go::quote(role.text(key));
        let shown =
            format!("rbac.RoleRef{{APIGroup:{}, Kind:{}, Name:{}}}", part("apiGroup"), part("kind"), part("name"));
        out.push(FieldError::invalid(&Path::ROOT.child("roleRef"), Shown::raw(shown), "cannot change roleRef"));
    }
    out
}
