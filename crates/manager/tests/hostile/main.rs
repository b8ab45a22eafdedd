//! What somebody with few rights tries who may declare things in the namespaces of the tenant `solar`, and nothing else.
//! Each attempt is a row.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod declared;
mod permits;

use client::Client;
use common::Fixture;

/// `mallory`, who may write what can be declared in the namespaces of `solar`.
async fn attacker(f: &Fixture) -> Client {
    f.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: declares}, rules: [{apiGroups: [capsule.clastix.io], resources: [tenantresources, resourcepermittemplates, resourcepermits, resourcepermits/status], verbs: ['*']}]}").await;
    for namespace in ["solar-a", "solar-b"] {
        f.apply(&format!("{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: declares, namespace: {namespace}}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: declares}}, subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}}]}}")).await;
    }
    f.client.acting_as("mallory", &["system:authenticated"])
}

/// A service account `strong` in each namespace of `solar`, with every right.
async fn strong(f: &Fixture) {
    for namespace in ["solar-a", "solar-b"] {
        f.apply(&format!(
            "{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: strong, namespace: {namespace}}}}}"
        ))
        .await;
        f.apply(&format!("{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: strong-{namespace}}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}, subjects: [{{kind: ServiceAccount, name: strong, namespace: {namespace}}}]}}")).await;
    }
}
