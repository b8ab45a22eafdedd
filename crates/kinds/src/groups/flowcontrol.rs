//! The resources of the group `flowcontrol.apiserver.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Map, Value, names};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("FlowSchema")],
        columns: &[
            Column::NAME,
            Column::new("PriorityLevel", "string"),
            Column::new("MatchingPrecedence", "string"),
            Column::new("DistinguisherMethod", "string"),
            Column::AGE,
            Column::new("MissingPL", "string"),
        ],
        cells: schema_cells,
        strategy: Strategy {
            validate: validate_schema,
            validate_update: |new, _| validate_schema(new),
            ..Strategy::WITH_STATUS
        },
        ..Resource::new(
            GROUP,
            "FlowSchema",
            "flowschemas",
            &[Version::stored("v1", "io.k8s.api.flowcontrol.v1.FlowSchema").with_default(default_schema)],
        )
    },
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("PriorityLevelConfiguration")],
        columns: &[
            Column::NAME,
            Column::new("Type", "string"),
            Column::new("NominalConcurrencyShares", "string"),
            Column::new("Queues", "string"),
            Column::new("HandSize", "string"),
            Column::new("QueueLengthLimit", "string"),
            Column::AGE,
        ],
        cells: level_cells,
        strategy: Strategy {
            validate: validate_level,
            validate_update: |new, _| validate_level(new),
            ..Strategy::WITH_STATUS
        },
        ..Resource::new(
            GROUP,
            "PriorityLevelConfiguration",
            "prioritylevelconfigurations",
            &[Version::stored("v1", "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration")
                .with_default(default_level)],
        )
    },
];

fn schema_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let method = match spec.sub("distinguisherMethod").text("type") {
        "" => "<none>",
        method => method,
    };
    let dangling = object.sub("status").list("conditions").iter().find(|c| c.text("type") == "Dangling");
    vec![
        object.name().into(),
        spec.sub("priorityLevelConfiguration").text("name").into(),
        Value::Int(spec.int("matchingPrecedence")),
        method.into(),
        table::age(object, now),
        dangling.map_or("?", |c| c.text("status")).into(),
    ]
}

fn level_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let limited = spec.sub("limited");
    let queuing = limited.sub("limitResponse").sub("queuing");
    let number = |parent: &Value, key: &str| -> Value { parent.opt_int(key).map_or("<none>".into(), Value::Int) };
    let shares = match spec.has("limited") {
        true => number(limited, "nominalConcurrencyShares"),
        false => number(spec.sub("exempt"), "nominalConcurrencyShares"),
    };
    vec![
        object.name().into(),
        spec.text("type").into(),
        shares,
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        table::age(object, now),
    ]
}

fn default_schema(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    if spec.int("matchingPrecedence") == 0 {
        spec.set_at(&["matchingPrecedence"], Value::Int(1000));
    }
}

fn default_level(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    match spec.text("type") {
        "Exempt" => {
            default_to(spec, "exempt", Map::new());
            if let Some(exempt) = object_mut(spec, &["exempt"]) {
                default_to(exempt, "nominalConcurrencyShares", 0);
                default_to(exempt, "lendablePercent", 0);
            }
        }
        "Limited" => {
            if let Some(limited) = object_mut(spec, &["limited"]) {
                default_to(limited, "nominalConcurrencyShares", 30);
                default_to(limited, "lendablePercent", 0);
                if let Some(queuing) = object_mut(limited, &["limitResponse", "queuing"]) {
                    for (key, value) in [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)] {
                        if queuing.int(key) == 0 {
                            queuing.set_at(&[key], Value::Int(value));
                        }
                    }
                }
            }
        }
        _ => {}
    }
}

fn validate_schema(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let precedence = spec.int("matchingPrecedence");
    if precedence <= 0 {
        let why = "must be a positive value";
        out.push(FieldError::invalid(&path.child("matchingPrecedence"), precedence, why));
    }
    if precedence > 10_000 {
        let why = "must not be greater than 10000";
        out.push(FieldError::invalid(&path.child("matchingPrecedence"), precedence, why));
    }
    if precedence == 1 && object.name() != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        out.push(FieldError::invalid(&path.child("matchingPrecedence"), precedence, why));
    }
    if spec.has("distinguisherMethod") {
        let at = path.child("distinguisherMethod");
        check::one_of(spec.sub("distinguisherMethod"), "type", &["ByNamespace", "ByUser"], &at, &mut out);
    }
    let level = spec.sub("priorityLevelConfiguration").text("name");
    let at = path.child("priorityLevelConfiguration");
    if level.is_empty() {
        out.push(FieldError::required(&at.child("name"), "must reference a priority level"));
    } else {
        check::name(names::dns1123_subdomain, level, &at.child("name"), &mut out);
    }
    let list = path.child("rules");
    for (i, rules) in spec.list("rules").iter().enumerate() {
        policy_rules(rules, &list.index(i), &mut out);
    }
    out
}

fn policy_rules(rules: &Value, path: &Path<'_>, out: &mut Errors) {
    let subjects = path.child("subjects");
    if rules.list("subjects").is_empty() {
        out.push(FieldError::required(&subjects, "subjects must contain at least one value"));
    }
    for (i, subject) in rules.list("subjects").iter().enumerate() {
        let at = subjects.index(i);
        check::one_of(subject, "kind", &["Group", "ServiceAccount", "User"], &at, out);
    }
    if rules.list("resourceRules").is_empty() && rules.list("nonResourceRules").is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        out.push(FieldError::required(path, why));
    }
    let list = path.child("resourceRules");
    for (i, rule) in rules.list("resourceRules").iter().enumerate() {
        let at = list.index(i);
        for (key, why) in [
            ("verbs", "verbs must contain at least one value"),
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if rule.list(key).is_empty() {
                out.push(FieldError::required(&at.child(key), why));
            }
        }
        if rule.list("namespaces").is_empty() && !rule.flag("clusterScope") {
            let why = "resource rules that are not cluster scoped must supply at least one namespace";
            out.push(FieldError::required(&at.child("namespaces"), why));
        }
    }
    let list = path.child("nonResourceRules");
    for (i, rule) in rules.list("nonResourceRules").iter().enumerate() {
        let at = list.index(i);
        if rule.list("verbs").is_empty() {
            out.push(FieldError::required(&at.child("verbs"), "verbs must contain at least one value"));
        }
        if rule.list("nonResourceURLs").is_empty() {
            let why = "nonResourceURLs must contain at least one value";
            out.push(FieldError::required(&at.child("nonResourceURLs"), why));
        }
    }
}

fn validate_level(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    check::one_of(spec, "type", &["Exempt", "Limited"], &path, &mut out);
    match spec.text("type") {
        "Exempt" if spec.has("limited") => {
            let why = "must be nil if the type is not Limited";
            out.push(FieldError::forbidden(&path.child("limited"), why));
        }
        "Limited" => {
            if spec.has("exempt") {
                let why = "must be nil if the type is Limited";
                out.push(FieldError::forbidden(&path.child("exempt"), why));
            }
            if !spec.has("limited") {
                let why = "must not be empty when type is Limited";
                out.push(FieldError::required(&path.child("limited"), why));
            } else {
                limited(spec.sub("limited"), &path.child("limited"), &mut out);
            }
        }
        _ => {}
    }
    out
}

fn limited(limited: &Value, path: &Path<'_>, out: &mut Errors) {
    let shares = limited.int("nominalConcurrencyShares");
    if shares < 0 {
        let why = "must be a non-negative integer";
        out.push(FieldError::invalid(&path.child("nominalConcurrencyShares"), shares, why));
    }
    let lendable = limited.int("lendablePercent");
    if !(0..=100).contains(&lendable) {
        let why = "must be between 0 and 100, inclusive";
        out.push(FieldError::invalid(&path.child("lendablePercent"), lendable, why));
    }
    let response = limited.sub("limitResponse");
    let at = path.child("limitResponse");
    check::one_of(response, "type", &["Queue", "Reject"], &at, out);
    match (response.text("type"), response.has("queuing")) {
        ("Reject", true) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            out.push(FieldError::forbidden(&at.child("queuing"), why));
        }
        ("Queue", false) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            out.push(FieldError::required(&at.child("queuing"), why));
        }
        ("Queue", true) => {
            let queuing = response.sub("queuing");
            let here = at.child("queuing");
            for key in ["queueLengthLimit", "queues", "handSize"] {
                if queuing.int(key) <= 0 {
                    out.push(FieldError::invalid(&here.child(key), queuing.int(key), "must be positive"));
                }
            }
            if queuing.int("queues") > 10_000_000 {
                let why = "must not be greater than 10000000";
                out.push(FieldError::invalid(&here.child("queues"), queuing.int("queues"), why));
            }
            if queuing.int("handSize") > queuing.int("queues") {
                let why = format!("should not be greater than queues ({})", queuing.int("queues"));
                out.push(FieldError::invalid(&here.child("handSize"), queuing.int("handSize"), why));
            }
        }
        _ => {}
    }
}
