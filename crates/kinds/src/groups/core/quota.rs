//! ResourceQuotas and LimitRanges.

use crate::check::{self, Errors, quantity};
use crate::pod::resources;
use crate::quantity::Quantity;
use crate::read::{Read, list_mut, object_mut};
use crate::resource::{Column, Context, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Value, go};

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
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
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

/// The types of limits that Kubernetes itself knows.
const LIMIT_TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

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

/// How many errors about scopes are told at most; each shows them all.
const MAX_ERRORS: usize = 100;

/// How many resources of a quota each of the standard scopes cannot be applied to.
struct Misapplied([usize; 6]);

impl Misapplied {
    fn new(spec: &Value) -> Self {
        let mut out = [0; 6];
        for name in spec.members("hard").keys().filter(|name| resources::is_standard_for_quota(name)) {
            for (count, scope) in out.iter_mut().zip(SCOPES) {
                *count += usize::from(!counts(scope, name));
            }
        }
        Misapplied(out)
    }

    /// Adds an error for each such resource, as long as there are not too many.
    fn tell(&self, scope: &str, path: &Path<'_>, shown: impl Fn() -> Shown, out: &mut Errors) {
        let count = SCOPES.iter().zip(self.0).find(|(known, _)| **known == scope).map_or(0, |(_, count)| count);
        for _ in 0..count.min(MAX_ERRORS.saturating_sub(out.len())) {
            out.push(FieldError::invalid(path, shown(), "unsupported scope applied to resource"));
        }
    }
}

fn scopes(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = spec.strings("scopes");
    let shown = || check::go_list("core.ResourceQuotaScope", &list);
    let misapplied = Misapplied::new(spec);
    for scope in &list {
        if !SCOPES[..6].contains(scope) && out.len() < MAX_ERRORS {
            out.push(FieldError::invalid(path, shown(), "unsupported scope"));
        }
        misapplied.tell(scope, path, shown, out);
    }
    conflicts(&list, &shown(), path, out);
}

/// Upstream names the list, not the entry, where something is wrong.
fn scope_selector(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("matchExpressions");
    let list = spec.sub("scopeSelector").list("matchExpressions");
    let mut scopes: Vec<&str> = Vec::new();
    let misapplied = Misapplied::new(spec);
    for expression in list {
        let (scope, values) = (expression.text("scopeName"), expression.strings("values"));
        if !SCOPES[..6].contains(&scope) {
            out.push(FieldError::invalid(&at.child("scopeName"), scope, "unsupported scope"));
        }
        misapplied.tell(scope, &at, || shown_selector(list), out);
        let operator = expression.text("operator");
        if SCOPES[..6].contains(&scope) && scope != "PriorityClass" && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                       ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                       ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            out.push(FieldError::invalid(&at.child("operator"), operator, why));
        }
        match operator {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                    out.push(FieldError::required(&at.child("values"), why));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                    let shown = Shown::raw(go::string_list(&values));
                    out.push(FieldError::invalid(&at.child("values"), shown, why));
                }
            }
            other => out.push(FieldError::invalid(&at.child("operator"), other, "not a valid selector operator")),
        }
        scopes.push(scope);
    }
    conflicts(&scopes, &check::go_list("core.ResourceQuotaScope", &spec.strings("scopes")), &at, out);
}

/// Scopes that exclude each other.
fn conflicts(scopes: &[&str], shown: &Shown, path: &Path<'_>, out: &mut Errors) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|s| scopes.contains(s)) {
            out.push(FieldError::invalid(path, shown.clone(), "conflicting scopes"));
        }
    }
}

/// A selector of scopes in Go's syntax.
fn shown_selector(list: &[Value]) -> Shown {
    const TYPE: &str = "core.ScopedResourceSelectorRequirement";
    let one = |e: &Value| {
        let values = if e.has("values") { go::string_list(&e.strings("values")) } else { "[]string(nil)".to_owned() };
        let (scope, operator) = (go::quote(e.text("scopeName")), go::quote(e.text("operator")));
        format!("{TYPE}{{ScopeName:{scope}, Operator:{operator}, Values:{values}}}")
    };
    let all: Vec<String> = list.iter().map(one).collect();
    Shown::raw(format!("core.ScopeSelector{{MatchExpressions:[]{TYPE}{{{}}}}}", all.join(", ")))
}

pub(super) const LIMIT_RANGES: Resource = Resource {
    short_names: &["limits"],
    columns: &[Column::NAME, Column::CREATED_AT],
    cells: table::name_and_creation,
    strategy: Strategy {
        create_on_update: true,
        prepare_create: name_limits,
        validate: validate_limits,
        validate_update: |new, _| validate_limits(new),
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "",
        "LimitRange",
        "limitranges",
        &[Version::stored("v1", "io.k8s.api.core.v1.LimitRange").with_default(default_limits)],
    )
};

/// A LimitRange needs no name: it gets an identifier for one, its own.
fn name_limits(object: &mut Value, _: &Context<'_>) {
    if object.name().is_empty() {
        let uid = object.sub("metadata").text("uid").to_owned();
        object.metadata_mut().insert("name", uid);
    }
}

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
        let before = out.len();
        check::label_name(kind, &at.child("type"), &mut out);
        if out.len() == before && !kind.contains('/') && !LIMIT_TYPES.contains(&kind) {
            let why = "must be a standard limit type or fully qualified";
            out.push(FieldError::invalid(&at.child("type"), kind, why));
        }
        if types.contains(&kind) {
            out.push(FieldError::duplicate(&at.child("type"), kind));
        }
        types.push(kind);
        let mut names: Vec<&str> = Vec::new();
        for part in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            let here = at.child(part);
            if kind == "Pod" && part.starts_with("default") {
                if !limit.members(part).is_empty() {
                    out.push(FieldError::forbidden(&here, "may not be specified when `type` is 'Pod'"));
                }
                continue;
            }
            for name in limit.members(part).keys() {
                if matches!(kind, "Pod" | "Container") {
                    resources::container_resource_name(name, &here.key(name), &mut out);
                } else {
                    resources::resource_name(name, &here.key(name), &mut out);
                }
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        if kind == "PersistentVolumeClaim"
            && !limit.members("min").contains_key("storage")
            && !limit.members("max").contains_key("storage")
        {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            out.push(FieldError::required(&at.child("limits"), why));
        }
        names.sort_unstable();
        for name in names {
            one_limit(limit, name, &at, &mut out);
        }
    }
    out
}

fn one_limit(limit: &Value, name: &str, path: &Path<'_>, out: &mut Errors) {
    let ignored = |part: &str| limit.text("type") == "Pod" && part.starts_with("default");
    let value = |part: &str| limit.members(part).get(name).filter(|_| !ignored(part)).and_then(quantity);
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
    let ratios = path.child("maxLimitRequestRatio");
    let (at, ratio) = (ratios.key(name), value("maxLimitRequestRatio"));
    if let Some(ratio) = ratio.filter(|r| r.milli_value() < 1000) {
        let why = format!("ratio {ratio} is less than 1");
        out.push(FieldError::invalid(&at, Shown::raw(ratio.go_syntax_with_text()), why));
    }
    if let (Some(ratio), Some(min), Some(max)) = (ratio, min, max) {
        let most = max.milli_value() as f64 / min.milli_value() as f64;
        if ratio.milli_value() as f64 / 1000.0 > most {
            let why = format!("ratio {ratio} is greater than max/min = {most:.6}");
            out.push(FieldError::invalid(&at, Shown::raw(ratio.go_syntax_with_text()), why));
        }
    }
    if let (Some(request), Some(default)) = (request, default)
        && !resources::may_overcommit(name)
        && request != default
    {
        let parent = path.child("defaultRequest");
        let why = format!("default value {default} must equal to defaultRequest value {request} in {name}");
        out.push(FieldError::invalid(&parent.key(name), Shown::raw(request.go_syntax_with_text()), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn limits_without_a_name_get_one() {
        for (metadata, name) in [(r#"{"uid":"u"}"#, "u"), (r#"{"name":"a","uid":"u"}"#, "a")] {
            let mut object = json::parse(format!(r#"{{"metadata":{metadata}}}"#).as_bytes()).unwrap();
            name_limits(&mut object, &Context { now: Timestamp::UNIX_EPOCH, user: None });
            assert_eq!(object.name(), name);
        }
    }

    fn found(check: fn(&Value) -> Errors, spec: &str) -> Vec<String> {
        let object = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
        check(&object).iter().map(|e| format!("{}: {}", e.field, e.body())).collect()
    }

    #[test]
    fn quotas_and_limits_are_checked_in_upstreams_words() {
        for (check, spec, wanted) in [
            (
                validate_quota as fn(&Value) -> Errors,
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"BestEffort","operator":"In","values":["a"]}]}}"#,
                "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            ),
            (
                validate_quota,
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]}}"#,
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            (
                validate_limits,
                r#"{"limits":[{"type":"Odd"}]}"#,
                "spec.limits[0].type: Invalid value: \"Odd\": must be a standard limit type or fully qualified",
            ),
            (
                validate_limits,
                r#"{"limits":[{"type":"PersistentVolumeClaim"}]}"#,
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
            ),
            (
                validate_limits,
                r#"{"limits":[{"type":"Pod","default":{"cpu":"1"}}]}"#,
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
            ),
        ] {
            assert_eq!(found(check, spec), [wanted], "{spec}");
        }
    }
}
