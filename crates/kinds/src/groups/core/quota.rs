//! ResourceQuotas and LimitRanges.

use crate::check::{self, Errors, quantity};
use crate::pod::resources;
use crate::quantity::Quantity;
use crate::read::{Read, list_mut, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::Value;
use object::field::{FieldError, Path, Shown};

pub(super) const RESOURCE_QUOTAS: Resource = Resource {
    short_names: &["quota"],
    subresources: &[Subresource::status("ResourceQuota")],
    columns: &[Column::NAME, Column::new("Request", "string"), Column::new("Limit", "string"), Column::AGE],
    cells: quota_cells,
    strategy: Strategy {
        generation: Generation::None,
        returns_deleted: true,
        validate: validate_quota,
        validate_update: |new, old| {
            let mut out = validate_quota(new);
            let (now, was) = (new.sub("spec"), old.sub("spec"));
            let mut scopes = [now.strings("scopes"), was.strings("scopes")];
            scopes.iter_mut().for_each(|s| s.sort_unstable());
            if scopes[0] != scopes[1] {
                let path = Path::ROOT.child("spec");
                let shown = check::go_list("core.ResourceQuotaScope", &now.strings("scopes"));
                out.push(FieldError::invalid(&path.child("scopes"), shown, check::IMMUTABLE));
            }
            out
        },
        validate_status: |new, _| {
            let mut out = Errors::new();
            let path = Path::ROOT.child("status");
            for part in ["hard", "used"] {
                let at = path.child(part);
                for (name, value) in new.sub("status").members(part).iter() {
                    resources::quota_resource_name(name, &at.key(name), &mut out);
                    resources::amount(name, value, &at.key(name), &mut out);
                }
            }
            out
        },
        ..Strategy::WITH_STATUS
    },
    ..Resource::new("", "ResourceQuota", "resourcequotas", &[Version::stored("v1", "io.k8s.api.core.v1.ResourceQuota")])
};

fn quota_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = object.sub("status");
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in status.members("hard").iter() {
        let used = status.sub("used").text(name);
        let used = if used.is_empty() { "0" } else { used };
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
        if name.starts_with("limits") { limits.push(text) } else { requests.push(text) }
    }
    vec![object.name().into(), requests.join(", ").into(), limits.join(", ").into(), table::age(object, now)]
}

fn validate_quota(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let hard = path.child("hard");
    for (name, value) in spec.members("hard").iter() {
        let at = hard.key(name);
        resources::quota_resource_name(name, &at, &mut out);
        resources::amount(name, value, &at, &mut out);
    }
    scopes(spec, &path.child("scopes"), &mut out);
    scope_selector(spec, &path.child("scopeSelector"), &mut out);
    out
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Whether a quota with this scope may count this resource.
fn counts(scope: &str, resource: &str) -> bool {
    const PODS: [&str; 9] = [
        "cpu",
        "memory",
        "requests.cpu",
        "requests.memory",
        "limits.cpu",
        "limits.memory",
        "pods",
        "ephemeral-storage",
        "requests.ephemeral-storage",
    ];
    match scope {
        "BestEffort" => resource == "pods",
        "CrossNamespacePodAffinity" | "PriorityClass" | "Terminating" | "NotTerminating" | "NotBestEffort" => {
            PODS.contains(&resource)
                || matches!(resource, "limits.ephemeral-storage" | "count/pods")
                || resource.starts_with("hugepages-")
                || resource.starts_with("requests.hugepages-")
        }
        _ => true,
    }
}

fn scopes(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = spec.strings("scopes");
    let shown = || check::go_list("core.ResourceQuotaScope", &list);
    for scope in &list {
        if !SCOPES[..6].contains(scope) {
            out.push(FieldError::invalid(path, shown(), "unsupported scope"));
            continue;
        }
        for (name, _) in spec.members("hard").iter() {
            if resources::is_standard_for_quota(name) && !counts(scope, name) {
                out.push(FieldError::invalid(path, shown(), "unsupported scope applied to resource"));
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|s| list.contains(s)) {
            out.push(FieldError::invalid(path, shown(), "conflicting scopes"));
        }
    }
}

fn scope_selector(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("matchExpressions");
    for (i, expression) in spec.sub("scopeSelector").list("matchExpressions").iter().enumerate() {
        let at = list.index(i);
        let (scope, values) = (expression.text("scopeName"), expression.list("values"));
        if !SCOPES[..6].contains(&scope) {
            out.push(FieldError::invalid(&at.child("scopeName"), scope, "unsupported scope"));
        }
        match expression.text("operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                    out.push(FieldError::required(&at.child("values"), why));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector";
                    out.push(FieldError::invalid(&at.child("values"), expression.sub("values"), why));
                }
            }
            other => out.push(FieldError::invalid(&at.child("operator"), other, "not a valid selector operator")),
        }
    }
}

pub(super) const LIMIT_RANGES: Resource = Resource {
    short_names: &["limits"],
    columns: &[Column::NAME, Column::CREATED_AT],
    cells: table::name_and_creation,
    strategy: Strategy { validate: validate_limits, validate_update: |new, _| validate_limits(new), ..Strategy::PLAIN },
    ..Resource::new(
        "",
        "LimitRange",
        "limitranges",
        &[Version::stored("v1", "io.k8s.api.core.v1.LimitRange").with_default(default_limits)],
    )
};

/// Containers get defaults from the limits: `default` from `max`, `defaultRequest` from `default` or `min`.
fn default_limits(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    for limit in list_mut(spec, "limits").iter_mut().filter(|l| l.text("type") == "Container") {
        for (target, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let values = limit.members(source).clone();
            if values.is_empty() {
                continue;
            }
            let target = limit.object_entry(target);
            for (name, value) in values.iter() {
                target.get_or_insert(name, || value.clone());
            }
        }
    }
}

fn validate_limits(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = Path::ROOT.child("spec");
    let path = spec.child("limits");
    let mut types: Vec<&str> = Vec::new();
    for (i, limit) in object.sub("spec").list("limits").iter().enumerate() {
        let at = path.index(i);
        let kind = limit.text("type");
        check::label_name(kind, &at.child("type"), &mut out);
        if types.contains(&kind) {
            out.push(FieldError::duplicate(&at.child("type"), kind));
        }
        types.push(kind);
        let mut names: Vec<&str> = Vec::new();
        for part in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            let here = at.child(part);
            for name in limit.members(part).keys() {
                resources::resource_name(name, &here.key(name), &mut out);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            if kind == "Pod" && part.starts_with("default") && !limit.members(part).is_empty() {
                out.push(FieldError::forbidden(&here, "may not be specified when `type` is 'Pod'"));
            }
        }
        if kind == "PersistentVolumeClaim"
            && !limit.members("min").contains_key("storage")
            && !limit.members("max").contains_key("storage")
        {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            out.push(FieldError::required(&path.child("limits"), why));
        }
        names.sort_unstable();
        for name in names {
            one_limit(limit, name, &at, &mut out);
        }
    }
    out
}

fn one_limit(limit: &Value, name: &str, path: &Path<'_>, out: &mut Errors) {
    let value = |part: &str| limit.members(part).get(name).and_then(quantity);
    let (max, min) = (value("max"), value("min"));
    let mut above =
        |part: &str, smaller: Option<Quantity>, larger: Option<Quantity>, texts: (&str, &str), own: bool| {
            if let (Some(smaller), Some(larger)) = (smaller, larger)
                && smaller > larger
            {
                let parent = path.child(part);
                let why = format!("{} value {smaller} is greater than {} value {larger}", texts.0, texts.1);
                let shown = if own { smaller } else { larger };
                out.push(FieldError::invalid(&parent.key(name), Shown::raw(shown.go_syntax_with_text()), why));
            }
        };
    let (request, default) = (value("defaultRequest"), value("default"));
    above("min", min, max, ("min", "max"), true);
    above("defaultRequest", min, request, ("min", "default request"), false);
    above("defaultRequest", request, max, ("default request", "max"), true);
    above("defaultRequest", request, default, ("default request", "default limit"), true);
    above("default", min, default, ("min", "default"), true);
    above("default", default, max, ("default", "max"), false);
    if let Some(ratio) = value("maxLimitRequestRatio").filter(|r| r.milli_value() < 1000) {
        let parent = path.child("maxLimitRequestRatio");
        let why = format!("ratio {ratio} is less than 1");
        out.push(FieldError::invalid(&parent.key(name), Shown::raw(ratio.go_syntax_with_text()), why));
    }
}
