//! PodSecurity: finds the policy of a namespace, and measures pods and their templates by it.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use crate::audit;
use crate::registry::Stored;
use kinds::admission::pod_security::{Level, Policy, Standard, describe, is_significant, reasons, violations};
use object::{Map, Status, Value};
use std::collections::BTreeMap;

/// How many pods of a namespace are looked at when its policy changes.
const MAX_PODS: usize = 3000;

/// Subresources of pods that are measured; through others nothing of the pod changes that matters.
fn concerns(subresource: &str) -> bool {
    matches!(subresource, "" | "ephemeralcontainers" | "resize")
}

/// The policy of the namespace that is written to.
async fn policy(asked: Asked<'_>) -> Outcome<Policy> {
    let key = format!("{}{}", crate::admission::NAMESPACES, asked.namespace);
    let entry = asked.server.known(&key).await?;
    let labels = entry.and_then(|e| Stored::read(e.value)).and_then(|s| s.labels());
    Ok(Policy::of_labels(&labels.unwrap_or_default()).0)
}

/// Refuses a pod that violates what the namespace enforces; warns of what it is to be warned of.
pub(super) async fn check_pod(asked: Asked<'_>, pod: &Value, warnings: &mut Vec<String>) -> Outcome<()> {
    if !concerns(asked.subresource)
        || asked.old.is_some_and(|old| !is_significant(pod, old))
        || !asked.has(Plugin::PodSecurity)
    {
        return Ok(());
    }
    let policy = policy(asked).await?;
    audit::annotate("pod-security.kubernetes.io/enforce-policy", || policy.enforce.to_string());
    note(policy.audit, pod);
    let found = violations(policy.enforce, pod);
    if !found.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, describe(&found));
        return Err(asked.forbid(pod, &why));
    }
    warn(policy.warn, pod, warnings);
    Ok(())
}

/// Notes in the audit log what would violate a standard.
fn note(standard: Standard, template: &Value) {
    if standard.level == Level::Privileged {
        return;
    }
    let found = violations(standard, template);
    if !found.is_empty() {
        let key = "pod-security.kubernetes.io/audit-violations";
        audit::annotate(key, || format!("would violate PodSecurity \"{standard}\": {}", describe(&found)));
    }
}

fn warn(standard: Standard, template: &Value, warnings: &mut Vec<String>) {
    let found = violations(standard, template);
    if !found.is_empty() {
        warnings.push(format!("would violate PodSecurity \"{standard}\": {}", describe(&found)));
    }
}

/// Warns of templates of pods that would violate something.
pub(super) async fn check_template(asked: Asked<'_>, object: &Value, warnings: &mut Vec<String>) -> Outcome<()> {
    let path: &[&str] = match (asked.resource.group.as_str(), asked.resource.plural.as_str()) {
        ("", "podtemplates") => &["template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        ("", "replicationcontrollers")
        | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["spec", "template"],
        _ => return Ok(()),
    };
    let Some(template) = object.at(path).filter(|_| asked.subresource.is_empty() && asked.has(Plugin::PodSecurity))
    else {
        return Ok(());
    };
    let policy = policy(asked).await?;
    note(policy.audit, template);
    warn(policy.warn, template, warnings);
    Ok(())
}

/// Refuses labels of a namespace that choose no policy, and warns of pods that violate a new one.
pub(super) async fn check_namespace(asked: Asked<'_>, namespace: &Value, warnings: &mut Vec<String>) -> Outcome<()> {
    if !asked.subresource.is_empty() || !asked.has(Plugin::PodSecurity) {
        return Ok(());
    }
    let labels = |object: &Value| -> Map {
        object.metadata().and_then(|m| m.get("labels")).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (new, errors) = Policy::of_labels(&labels(namespace));
    let old = asked.old.map(|old| Policy::of_labels(&labels(old)));
    if !errors.is_empty() && old.as_ref().is_none_or(|(_, before)| *before != errors) {
        return Err(Status::invalid(asked.resource.qualified_kind(), namespace.name(), &errors).into());
    }
    let Some((old, _)) = old else { return Ok(()) };
    let relaxed = new.enforce.version == old.enforce.version && new.enforce.level <= old.enforce.level;
    if new.enforce.level == Level::Privileged || relaxed {
        return Ok(());
    }
    let mut pods = asked.list(&format!("/registry/pods/{}/", namespace.name()))?;
    pods.truncate(MAX_PODS);
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in &pods {
        let found = violations(new.enforce, pod);
        if !found.is_empty() {
            by_reason.entry(reasons(&found)).or_default().push(pod.name());
        }
    }
    if by_reason.is_empty() {
        return Ok(());
    }
    let (name, standard) = (object::go::quote(namespace.name()), new.enforce);
    warnings
        .push(format!("existing pods in namespace {name} violate the new PodSecurity enforce level \"{standard}\""));
    let mut told: Vec<String> = by_reason
        .iter()
        .filter_map(|(why, pods)| {
            let (first, others) = (pods.first()?, pods.len() - 1);
            Some(match others {
                0 => format!("{first}: {why}"),
                1 => format!("{first} (and 1 other pod): {why}"),
                others => format!("{first} (and {others} other pods): {why}"),
            })
        })
        .collect();
    told.sort_unstable();
    warnings.append(&mut told);
    Ok(())
}
