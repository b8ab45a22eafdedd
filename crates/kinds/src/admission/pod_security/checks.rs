//! What the checks of both levels have in common.

use super::Violation;
use crate::read::Read;
use object::{Value, go};

/// A pod or template, with the minor version whose rules are asked about.
pub(super) struct Pod<'v> {
    pub template: &'v Value,
    pub spec: &'v Value,
    pub minor: u32,
}

impl<'v> Pod<'v> {
    pub fn new(template: &'v Value, minor: u32) -> Self {
        Pod { template, spec: template.sub("spec"), minor }
    }

    /// All containers, in the order in which messages name them.
    pub fn containers(&self) -> impl Iterator<Item = &'v Value> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| spec.list(list))
    }

    /// The names of the containers of which something holds.
    pub fn named(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'v str> {
        self.containers().filter(|c| holds(c)).map(|c| c.text("name")).collect()
    }

    /// The pod's own security context.
    pub fn context(&self) -> &'v Value {
        self.spec.sub("securityContext")
    }

    /// Whether rules about Linux do not concern the pod.
    pub fn is_windows(&self) -> bool {
        self.minor >= 25 && self.spec.sub("os").text("name") == "windows"
    }
}

/// A container's security context.
pub(super) fn context(container: &Value) -> &Value {
    container.sub("securityContext")
}

/// A rule that is violated.
pub(super) fn violation(reason: &str, detail: String) -> Violation {
    Violation { reason: reason.to_owned(), detail }
}

/// `"a", "b"`
pub(super) fn quoted<S: AsRef<str>>(items: &[S]) -> String {
    items.iter().map(|item| go::quote(item.as_ref())).collect::<Vec<_>>().join(", ")
}

/// The one or the other word.
pub(super) fn plural<'w>(one: &'w str, many: &'w str, count: usize) -> &'w str {
    if count == 1 { one } else { many }
}

/// `container "a"`, `containers "a", "b"`
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

/// `pod and container "a"`: who sets something; nothing if nobody does.
pub(super) fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let mut out = Vec::new();
    if pod {
        out.push("pod".to_owned());
    }
    if !names.is_empty() {
        out.push(containers(names));
    }
    (!out.is_empty()).then(|| out.join(" and "))
}

/// Sorted, each once.
pub(super) fn set<'v>(items: impl Iterator<Item = &'v str>) -> Vec<&'v str> {
    let mut items: Vec<&str> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
