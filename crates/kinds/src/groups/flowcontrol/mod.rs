//! The resources of the group `flowcontrol.apiserver.k8s.io`.

pub(crate) mod bootstrap;
mod level_rules;
mod mandatory;
mod schema_rules;

use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, MetadataChecks, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::{Map, Value};

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
        rank: |object| object.sub("spec").int("matchingPrecedence"),
        strategy: Strategy {
            validate: schema_rules::validate,
            validate_update: |new, _| schema_rules::validate(new),
            metadata: MetadataChecks { anew: 1, update: false, status: false, ..MetadataChecks::ONCE },
            reset_status: &[&["spec"], &["metadata"]],
            validate_status: schema_rules::validate_status,
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
            validate: level_rules::validate,
            validate_update: |new, _| level_rules::validate(new),
            metadata: MetadataChecks { anew: 1, update: false, status: false, ..MetadataChecks::ONCE },
            reset_status: &[&["spec"], &["metadata"]],
            validate_status: schema_rules::validate_status,
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
    vec![
        object.name().into(),
        spec.text("type").into(),
        number(limited, "nominalConcurrencyShares"),
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
