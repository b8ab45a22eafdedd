//! What an object takes of a quota.

use super::totals::{Amounts, add, amounts, of_container, raise, total};
use crate::pod;
use crate::quantity::Quantity;
use crate::read::Read;
use jiff::{SignedDuration, Timestamp};
use object::Value;

/// What quotas need to know of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a> {
    pub group: &'a str,
    pub plural: &'a str,
}

/// The ends of names that count claims of one storage class.
const CLASS_CLAIMS: &str = ".storageclass.storage.k8s.io/persistentvolumeclaims";
const CLASS_STORAGE: &str = ".storageclass.storage.k8s.io/requests.storage";
/// What pods are asked to say where a quota is about it.
const REQUIRED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

fn one(number: usize) -> Quantity {
    Quantity::of_integer(i64::try_from(number).unwrap_or(i64::MAX))
}

impl Counted<'_> {
    /// The name that counts objects of this resource.
    fn count(&self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// The old name that counts objects, where there is one.
    fn old_count(&self) -> Option<&str> {
        const OLD: [&str; 7] = [
            "configmaps",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "resourcequotas",
            "secrets",
            "services",
        ];
        Some(self.plural).filter(|plural| self.group.is_empty() && OLD.contains(plural))
    }

    /// Whether changes of objects change what they take, in this subresource.
    pub fn changes(&self, subresource: &str) -> bool {
        match (self.group, self.plural) {
            ("", "pods") => subresource == "resize",
            ("", "services" | "persistentvolumeclaims") => subresource.is_empty(),
            _ => false,
        }
    }

    /// Whether a quota's resource of this name is about objects of this resource.
    pub fn takes(&self, name: &str) -> bool {
        if name == self.count() || Some(name) == self.old_count() {
            return true;
        }
        match (self.group, self.plural) {
            ("", "pods") => {
                const COMPUTE: [&str; 9] = [
                    "cpu",
                    "memory",
                    "ephemeral-storage",
                    "requests.cpu",
                    "requests.memory",
                    "requests.ephemeral-storage",
                    "limits.cpu",
                    "limits.memory",
                    "limits.ephemeral-storage",
                ];
                COMPUTE.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || name.starts_with("requests.") && name.contains('/') && !name.contains("kubernetes.io/")
            }
            ("", "services") => matches!(name, "services.nodeports" | "services.loadbalancers"),
            ("", "persistentvolumeclaims") => {
                name == "requests.storage" || name.ends_with(CLASS_CLAIMS) || name.ends_with(CLASS_STORAGE)
            }
            _ => false,
        }
    }

    /// What an object takes.
    pub fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        let mut out = Amounts::new();
        out.insert(self.count(), one(1));
        match (self.group, self.plural) {
            ("", "pods") => {
                if lives(object, now) {
                    pod_usage(object, &mut out);
                }
                return out;
            }
            ("", "services") => service_usage(object, &mut out),
            ("", "persistentvolumeclaims") => claim_usage(object, &mut out),
            _ => {}
        }
        if let Some(name) = self.old_count() {
            out.insert(name.to_owned(), one(1));
        }
        out
    }
}

/// Whether a pod takes more than a place in the list of pods: it has not ended, and is not to be gone by now.
fn lives(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod.sub("status").text("phase"), "Failed" | "Succeeded") {
        return false;
    }
    let meta = pod.sub("metadata");
    let Ok(deleted) = meta.text("deletionTimestamp").parse::<Timestamp>() else { return true };
    let Some(grace) = meta.opt_int("deletionGracePeriodSeconds") else { return true };
    deleted.saturating_add(SignedDuration::from_secs(grace)).is_ok_and(|end| now <= end)
}

fn pod_usage(pod: &Value, out: &mut Amounts) {
    let spec = pod.sub("spec");
    let mut requests = total(spec, |container| {
        // A node may not have taken up yet what is wanted.
        let mut wanted = of_container(container, "requests");
        let lists = ["containerStatuses", "initContainerStatuses"];
        let held = lists.iter().flat_map(|l| pod.sub("status").list(l));
        if let Some(held) = held.into_iter().find(|c| c.text("name") == container.text("name")) {
            raise(&mut wanted, &amounts(held.members("allocatedResources")));
            raise(&mut wanted, &of_container(held, "requests"));
        }
        wanted
    });
    let mut limits = total(spec, |container| of_container(container, "limits"));
    let overhead = amounts(spec.members("overhead"));
    add(&mut requests, &overhead);
    for (name, more) in overhead.iter() {
        if let Some(limit) = limits.get_mut(name) {
            *limit = limit.plus(*more);
        }
    }
    out.extend(compute(&requests, &limits));
}

/// Requests and limits by the names that quotas have for them.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut out = Amounts::new();
    out.insert("pods".to_owned(), one(1));
    for (name, amount) in requests {
        let basic = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if basic || name.starts_with("hugepages-") {
            out.insert(name.clone(), *amount);
        }
        if basic || name.starts_with("hugepages-") || pod::resources::is_extended(name) {
            out.insert(format!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            out.insert(format!("limits.{name}"), *amount);
        }
    }
    out
}

fn service_usage(service: &Value, out: &mut Amounts) {
    let spec = service.sub("spec");
    let ports = spec.list("ports");
    let (ports, balancers) = match spec.text("type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" => match spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool) {
            Some(false) => (ports.iter().filter(|p| p.int("nodePort") != 0).count(), 1),
            _ => (ports.len(), 1),
        },
        _ => (0, 0),
    };
    out.insert("services.nodeports".to_owned(), one(ports));
    out.insert("services.loadbalancers".to_owned(), one(balancers));
}

fn claim_usage(claim: &Value, out: &mut Amounts) {
    let spec = claim.sub("spec");
    let class = match claim.sub("metadata").sub("annotations").text("volume.beta.kubernetes.io/storage-class") {
        "" => spec.text("storageClassName"),
        class => class,
    };
    if !class.is_empty() {
        out.insert(format!("{class}{CLASS_CLAIMS}"), one(1));
    }
    let storage = |list: &Value| amounts(list.as_object().unwrap_or(&object::Map::new())).remove("storage");
    let Some(mut wanted) = storage(spec.sub("resources").sub("requests")) else { return };
    if let Some(held) = storage(claim.sub("status").sub("allocatedResources")).filter(|held| *held > wanted) {
        wanted = held;
    }
    let wanted = wanted.rounded_to_integer();
    out.insert("requests.storage".to_owned(), wanted);
    if !class.is_empty() {
        out.insert(format!("{class}{CLASS_STORAGE}"), wanted);
    }
}

/// What a pod has to say where quotas are about these resources, and does not: `cpu for: a,b; memory for: a`.
pub(super) fn unsaid(pod: &Value, names: &[&str]) -> Option<String> {
    let spec = pod.sub("spec");
    let missing = REQUIRED.iter().filter(|name| names.contains(name)).filter_map(|name| {
        let containers = spec.list("containers").iter().chain(spec.list("initContainers"));
        let silent = containers.filter(|container| {
            let said = compute(&of_container(container, "requests"), &of_container(container, "limits"));
            !said.contains_key(*name)
        });
        let mut silent: Vec<&str> = silent.map(|c| c.text("name")).collect();
        silent.sort_unstable();
        silent.dedup();
        (!silent.is_empty()).then(|| format!("{name} for: {}", silent.join(",")))
    });
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// Whether a pod is within a scope of a quota.
pub(super) fn in_scope(pod: &Value, scope: &str, operator: &str, values: &[&str]) -> bool {
    let spec = pod.sub("spec");
    let ends = spec.opt_int("activeDeadlineSeconds").is_some_and(|s| s >= 0);
    let class = match pod.sub("status").text("qosClass") {
        "" => pod::qos_class(spec),
        class => class,
    };
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => class == "BestEffort",
        "NotBestEffort" => class != "BestEffort",
        "PriorityClass" => {
            let priority = spec.text("priorityClassName");
            match operator {
                "In" => values.contains(&priority) && !priority.is_empty(),
                "NotIn" => !values.contains(&priority) || priority.is_empty(),
                "DoesNotExist" => priority.is_empty(),
                _ => !priority.is_empty(),
            }
        }
        "CrossNamespacePodAffinity" => reaches_out(spec),
        _ => false,
    }
}

/// Whether a pod's affinity looks at pods of other namespaces.
fn reaches_out(spec: &Value) -> bool {
    let other = |term: &Value| !term.list("namespaces").is_empty() || term.has("namespaceSelector");
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = spec.sub("affinity").sub(kind);
        affinity.list("requiredDuringSchedulingIgnoredDuringExecution").iter().any(other)
            || affinity
                .list("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|term| other(term.sub("podAffinityTerm")))
    })
}
