//! Names and amounts of resources.

use crate::check::{Errors, quantity, quantity_not_negative};
use crate::quantity::Quantity;
use crate::read::Read;
use object::field::{FieldError, Path, Shown};
use object::{Value, names};

const HUGE_PAGES: &str = "hugepages-";

/// Whether a resource belongs to Kubernetes itself.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether less of a resource may be requested than used at most.
pub(crate) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a resource is somebody's own: `example.com/gpu`.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Resources that are counted.
pub(crate) fn is_integer(name: &str) -> bool {
    const COUNTED: [&str; 9] = [
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ];
    COUNTED.contains(&name) || is_extended(name)
}

fn is_standard(name: &str) -> bool {
    const STANDARD: [&str; 19] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "requests.storage",
        "services.nodeports",
    ];
    STANDARD.contains(&name)
        || name == "services.loadbalancers"
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// Resources that quotas know by name.
pub(crate) fn is_standard_for_quota(name: &str) -> bool {
    is_standard(name) && name != "storage"
}

fn is_standard_for_containers(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name)
}

/// The rule for every name of a resource.
pub(crate) fn resource_name(name: &str, path: &Path<'_>, out: &mut Errors) {
    let complaints = names::qualified_name(name);
    let good = complaints.is_empty();
    out.extend(complaints.into_iter().map(|why| FieldError::invalid(path, Shown::raw(name), why)));
    if good && !name.contains('/') && !is_standard(name) {
        let why = "must be a standard resource type or fully qualified";
        out.push(FieldError::invalid(path, Shown::raw(name), why));
    }
}

/// The rule for names in quotas.
pub(crate) fn quota_resource_name(name: &str, path: &Path<'_>, out: &mut Errors) {
    resource_name(name, path, out);
    if !name.contains('/') && !is_standard_for_quota(name) {
        out.push(FieldError::invalid(path, Shown::raw(name), "must be a standard resource for quota"));
    }
}

/// The rule for names in containers.
pub(crate) fn container_resource_name(name: &str, path: &Path<'_>, out: &mut Errors) {
    resource_name(name, path, out);
    if !name.contains('/') {
        if !is_standard_for_containers(name) {
            out.push(FieldError::invalid(path, Shown::raw(name), "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        out.push(FieldError::invalid(path, Shown::raw(name), "doesn't follow extended resource name standard"));
    }
}

/// The rule for amounts: not negative, and integers where things are counted.
pub(crate) fn amount(name: &str, value: &Value, path: &Path<'_>, out: &mut Errors) {
    quantity_not_negative(value, path, out);
    if is_integer(name)
        && let Some(quantity) = quantity(value).filter(|q| q.milli_value() % 1000 != 0)
    {
        out.push(FieldError::invalid(path, Shown::raw(quantity.go_syntax()), "must be an integer"));
    }
}

fn huge_pages(name: &str, value: Quantity, path: &Path<'_>, out: &mut Errors) {
    if let Some(Ok(page)) = name.strip_prefix(HUGE_PAGES).map(Quantity::parse)
        && (page.value() <= 0 || value.value() % page.value() != 0)
    {
        out.push(FieldError::invalid(
            path,
            value.to_string().as_str(),
            format!("{value} is not positive integer multiple of {name}"),
        ));
    }
}

/// The `resources` of a container.
pub(crate) fn container_resources(resources: &Value, path: &Path<'_>, out: &mut Errors) {
    let (limits, requests) = (resources.members("limits"), resources.members("requests"));
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let mut huge = false;
    let mut ordinary = false;
    for (name, value) in limits.iter() {
        let at = limits_path.key(name);
        container_resource_name(name, &at, out);
        amount(name, value, &at, out);
        if let (true, Some(quantity)) = (is_huge_page(name), quantity(value)) {
            huge_pages(name, quantity, &at, out);
        }
        huge |= is_huge_page(name);
        ordinary |= matches!(name, "cpu" | "memory");
    }
    for (name, value) in requests.iter() {
        let at = requests_path.key(name);
        container_resource_name(name, &at, out);
        amount(name, value, &at, out);
        let overcommit = may_overcommit(name);
        match (quantity(value), limits.get(name).and_then(quantity)) {
            (Some(request), Some(limit)) => {
                let shown = request.to_string();
                if !overcommit && request != limit {
                    let why = format!("must be equal to {name} limit of {limit}");
                    out.push(FieldError::invalid(&requests_path, shown.as_str(), why));
                } else if request > limit {
                    let why = format!("must be less than or equal to {name} limit of {limit}");
                    out.push(FieldError::invalid(&requests_path, shown.as_str(), why));
                }
            }
            _ if !overcommit => {
                let why = "Limit must be set for non overcommitable resources";
                out.push(FieldError::required(&limits_path, why));
            }
            _ => {}
        }
        if let (true, Some(quantity)) = (is_huge_page(name), quantity(value)) {
            huge_pages(name, quantity, &at, out);
        }
        huge |= is_huge_page(name);
        ordinary |= matches!(name, "cpu" | "memory");
    }
    if huge && !ordinary {
        out.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}
