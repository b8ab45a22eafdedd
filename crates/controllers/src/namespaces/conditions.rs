//! What a namespace that is going away tells of its content.

use super::content::Remaining;
use client::{Error, Result};
use jiff::Timestamp;
use object::{Value, map};
use std::collections::BTreeMap;

/// What was found in a namespace.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// What is left, by resource.
    pub(super) left: Vec<(String, Remaining)>,
    errors: Vec<Error>,
}

impl Content {
    /// Notes what removing a kind came to.
    pub(super) fn note(&mut self, outcome: Result<Remaining>) -> Remaining {
        outcome.unwrap_or_else(|error| {
            self.errors.push(error);
            Remaining::default()
        })
    }

    /// The error that stands for all of them.
    pub(super) fn into_error(self) -> Option<Error> {
        self.errors.into_iter().next()
    }

    /// The namespace with its conditions; nothing if they are as they were.
    pub(super) fn tell(&self, namespace: &Value, now: Timestamp) -> Option<Value> {
        let held = namespace.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let mut conditions = held.to_vec();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let mut changed = false;
        for (ty, failed, reason, message) in self.conditions() {
            let status = if failed { "True" } else { "False" };
            let slot = conditions.iter_mut().find(|c| c.str_at(&["type"]) == Some(ty));
            let same = |c: &Value| {
                let is = |key: &str, text: &str| c.str_at(&[key]) == Some(text);
                is("status", status) && is("message", &message) && is("reason", reason)
            };
            if slot.as_deref().is_some_and(same) {
                continue;
            }
            changed = true;
            let condition = Value::Object(map! {
                "type" => ty, "status" => status, "reason" => reason, "message" => message,
                "lastTransitionTime" => now.as_str(),
            });
            match slot {
                Some(slot) => *slot = condition,
                None => conditions.push(condition),
            }
        }
        changed.then(|| {
            let mut new = namespace.clone();
            new.set_at(&["status", "conditions"], Value::Array(conditions));
            new
        })
    }

    /// Type, whether it failed, reason and message of each condition.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let well = |ty, reason, message: &str| (ty, false, reason, message.to_owned());
        let mut out = [
            well("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
            well(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            well(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            well("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
            well(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ];
        let [_, _, failure, content, finalizers] = &mut out;
        let set = |slot: &mut (&str, bool, &'static str, String), reason, message: String| {
            (slot.1, slot.2, slot.3) = (true, reason, message);
        };
        if !self.errors.is_empty() {
            let mut errors: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
            errors.sort();
            let message =
                format!("Failed to delete all resource types, {} remaining: {}", errors.len(), errors.join(", "));
            set(failure, "ContentDeletionFailed", message);
        }
        let mut objects: Vec<String> =
            self.left.iter().map(|(name, left)| format!("{name} has {} resource instances", left.count)).collect();
        if !objects.is_empty() {
            objects.sort();
            let message = format!("Some resources are remaining: {}", objects.join(", "));
            set(content, "SomeResourcesRemain", message);
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (finalizer, count) in self.left.iter().flat_map(|(_, left)| &left.finalizers) {
            *counts.entry(finalizer).or_default() += count;
        }
        if !counts.is_empty() {
            let parts: Vec<String> = counts.iter().map(|(f, n)| format!("{f} in {n} resource instances")).collect();
            let message = format!("Some content in the namespace has finalizers remaining: {}", parts.join(", "));
            set(finalizers, "SomeFinalizersRemain", message);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(content: &Content) -> Vec<(bool, String)> {
        content.conditions().into_iter().map(|(_, failed, _, message)| (failed, message)).collect()
    }

    #[test]
    fn what_is_left_is_told_by_resource_and_finalizer() {
        let remaining = |count, finalizers: &[(&str, usize)]| Remaining {
            count,
            finalizers: finalizers.iter().map(|(f, n)| ((*f).to_owned(), *n)).collect(),
            seconds: 15,
        };
        let left = vec![
            ("secrets.".to_owned(), remaining(1, &[("b", 1)])),
            ("configmaps.".to_owned(), remaining(2, &[("a", 2), ("b", 1)])),
        ];
        let content = Content { left, errors: Vec::new() };
        let told = messages(&content);
        assert_eq!(
            told[3].1,
            "Some resources are remaining: configmaps. has 2 resource instances, secrets. has 1 resource instances"
        );
        assert_eq!(
            told[4].1,
            "Some content in the namespace has finalizers remaining: a in 2 resource instances, b in 2 resource instances"
        );
        assert!(!told[2].0);
    }

    #[test]
    fn conditions_are_written_only_when_they_change() {
        let content = Content::default();
        let told = content.tell(&Value::Null, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(content.tell(&told, Timestamp::from_second(9).unwrap()), None);
    }
}
