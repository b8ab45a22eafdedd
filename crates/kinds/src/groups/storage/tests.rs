//! What upstream says of objects of this group, word for word.

use super::RESOURCES;
use crate::resource::Resource;
use object::{Value, json};

fn resource(plural: &str) -> &'static Resource {
    RESOURCES.iter().find(|r| r.plural == plural).unwrap()
}

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn created(plural: &str, object: &str) -> Vec<String> {
    (resource(plural).strategy.validate)(&value(object)).iter().map(ToString::to_string).collect()
}

fn updated(plural: &str, new: &str, old: &str) -> Vec<String> {
    (resource(plural).strategy.validate_update)(&value(new), &value(old)).iter().map(ToString::to_string).collect()
}

#[test]
fn drivers_are_checked_field_by_field() {
    const DONE: &str = r#""attachRequired":true,"podInfoOnMount":false,"storageCapacity":false,"seLinuxMount":false"#;
    for (spec, expected) in [
        (DONE.to_owned(), vec![]),
        (
            r#""fsGroupPolicy":"x","volumeLifecycleModes":["y"],"tokenRequests":[{"audience":""},{"audience":""}]"#
                .to_owned(),
            vec![
                "spec.attachedRequired: Required value",
                "spec.podInfoOnMount: Required value",
                "spec.storageCapacity: Required value",
                r#"spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", "ReadWriteOnceWithFSType""#,
                r#"spec.tokenRequests[1].audience: Duplicate value: """#,
                r#"spec.volumeLifecycleModes: Unsupported value: "y": supported values: "Persistent", "Ephemeral""#,
                "spec.seLinuxMount: Required value",
            ],
        ),
        (
            format!(
                r#"{DONE},"tokenRequests":[{{"audience":"a","expirationSeconds":599}},{{"audience":"b","expirationSeconds":4294967297}}]"#
            ),
            vec![
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
                "spec.tokenRequests[1].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
            ],
        ),
    ] {
        assert_eq!(created("csidrivers", &format!(r#"{{"spec":{{{spec}}}}}"#)), expected, "{spec}");
    }
    let with = |modes: &str| format!(r#"{{"spec":{{{DONE},"volumeLifecycleModes":[{modes}]}}}}"#);
    assert_eq!(
        updated("csidrivers", &with(r#""Ephemeral""#), &with(r#""Persistent""#)),
        [r#"spec.volumeLifecycleModes: Invalid value: []storage.VolumeLifecycleMode{"Ephemeral"}: field is immutable"#]
    );
}

#[test]
fn any_change_of_a_driver_counts() {
    let context = crate::resource::Context { now: jiff::Timestamp::UNIX_EPOCH, user: None };
    let old = value(r#"{"metadata":{"generation":3},"spec":{"podInfoOnMount":false}}"#);
    let mut new = value(r#"{"metadata":{},"spec":{"podInfoOnMount":true}}"#);
    resource("csidrivers").prepare_update(&mut new, &old, &context);
    assert_eq!(new.at(&["metadata", "generation"]), Some(&Value::Int(4)));
}

#[test]
fn drivers_of_a_node_are_checked_and_stay() {
    let with = |drivers: &str| format!(r#"{{"spec":{{"drivers":[{drivers}]}}}}"#);
    let long = "x".repeat(257);
    for (driver, expected) in [
        (r#"{"name":"a","nodeID":"n"}"#.to_owned(), vec![]),
        (
            r#"{"name":"a","nodeID":""},{"name":"a","nodeID":"n","topologyKeys":["k","k"]}"#.to_owned(),
            vec![
                "spec.drivers[0].nodeID: Required value".to_owned(),
                r#"spec.drivers[1].name: Duplicate value: "a""#.to_owned(),
                r#"spec.drivers[1]: Duplicate value: "k""#.to_owned(),
            ],
        ),
        (
            format!(r#"{{"name":"a","nodeID":"{long}","allocatable":{{"count":-1}}}}"#),
            vec![
                format!(r#"spec.drivers[0].nodeID: Invalid value: "{long}": must be 256 characters or less"#),
                "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0".to_owned(),
            ],
        ),
    ] {
        assert_eq!(created("csinodes", &with(&driver)), expected, "{driver}");
    }
    let old = with(r#"{"name":"a","nodeID":"n"}"#);
    assert_eq!(
        updated("csinodes", &with(r#"{"name":"a","nodeID":"m","topologyKeys":["k"]}"#), &old),
        [
            r#"spec.drivers: Invalid value: storage.CSINodeDriver{Name:"a", NodeID:"m", TopologyKeys:[]string{"k"}, Allocatable:(*storage.VolumeNodeResources)(nil)}: field is immutable"#
        ]
    );
    let required = "spec.drivers[0].nodeID: Required value";
    assert_eq!(updated("csinodes", &with(r#"{"name":"b"}"#), &old), [required, required]);
}

#[test]
fn capacities_keep_what_they_are_about() {
    const ODD: &str =
        r#""nodeTopology":{"matchExpressions":[{"key":"k","operator":"In","values":["-"]}]},"storageClassName":"c""#;
    let class = format!(r#"storageClassName: Invalid value: "": {}"#, object::names::dns1123_subdomain("")[0]);
    let label = format!(
        r#"nodeTopology.matchExpressions[0].values[0]: Invalid value: "-": {}"#,
        object::names::label_value("-")[0]
    );
    // The size of a volume is not looked at.
    assert_eq!(created("csistoragecapacities", r#"{"storageClassName":"c","maximumVolumeSize":"-1"}"#), [""; 0]);
    assert_eq!(
        created("csistoragecapacities", r#"{"capacity":"-1"}"#),
        [class, r#"capacity: Invalid value: "-1": must be greater than or equal to 0"#.to_owned()]
    );
    assert_eq!(created("csistoragecapacities", &format!("{{{ODD}}}")), [label]);
    assert_eq!(updated("csistoragecapacities", &format!("{{{ODD}}}"), &format!("{{{ODD}}}")), [""; 0]);
    assert_eq!(
        updated(
            "csistoragecapacities",
            r#"{"nodeTopology":{"matchLabels":{"a":"b"}},"storageClassName":"d"}"#,
            r#"{"storageClassName":"c"}"#
        ),
        [
            r#"nodeTopology: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable"#,
            r#"storageClassName: Invalid value: "d": field is immutable"#,
        ]
    );
}

#[test]
fn old_labels_of_nodes_are_warned_of() {
    let warnings = |plural: &str, text: &str| (resource(plural).strategy.warnings)(&value(text), None);
    let why = r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#;
    let key = "beta.kubernetes.io/arch";
    assert_eq!(
        warnings(
            "csistoragecapacities",
            &format!(
                r#"{{"nodeTopology":{{"matchExpressions":[{{"key":"{key}","operator":"Exists"}}],"matchLabels":{{"{key}":"b"}}}}}}"#
            )
        ),
        [
            format!("nodeTopology.matchExpressions[0].key: {key} is {why}"),
            format!("nodeTopology.matchLabels.{key}: {why}"),
        ]
    );
    assert_eq!(
        warnings(
            "storageclasses",
            &format!(r#"{{"allowedTopologies":[{{"matchLabelExpressions":[{{"key":"{key}","values":["b"]}}]}}]}}"#)
        ),
        [format!("allowedTopologies[0].matchLabelExpressions[0].key: {why}")]
    );
}

#[test]
fn terms_of_topologies_are_all_different() {
    let found = |terms: &str| {
        created(
            "storageclasses",
            &format!(
                r#"{{"provisioner":"p","reclaimPolicy":"Delete","volumeBindingMode":"Immediate","allowedTopologies":[{terms}]}}"#
            ),
        )
    };
    let term = |values: &str| format!(r#"{{"matchLabelExpressions":[{{"key":"k","values":[{values}]}}]}}"#);
    let (ab, ba, a) = (term(r#""a","b""#), term(r#""b","a""#), term(r#""a""#));
    let again = |i: usize| format!(r#"allowedTopologies[{i}].matchLabelExpressions: Duplicate value: """#);
    assert_eq!(found(&format!("{ab},{a}")), [""; 0]);
    assert_eq!(found(&format!("{ab},{ba},{ab}")), [again(1), again(2), again(2)]);
    assert_eq!(found("{},{}"), [again(0), again(0), again(1), again(1), again(1)]);
    assert_eq!(
        found(r#"{"matchLabelExpressions":[{"key":"k","values":["a","a"]},{"key":"k"}]}"#),
        [
            r#"allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a""#,
            "allowedTopologies[0].matchLabelExpressions[1].values: Required value",
            r#"allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "k""#,
        ]
    );
}

#[test]
fn attachments_are_checked_with_their_status() {
    let with = |status: &str| {
        format!(
            r#"{{"spec":{{"attacher":"a","nodeName":"n","source":{{"persistentVolumeName":"v"}}}},"status":{status}}}"#
        )
    };
    let status = |new: &str, old: &str| {
        let errors = (resource("volumeattachments").strategy.validate_status)(&value(&with(new)), &value(&with(old)));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let long = format!(r#"{{"attached":false,"attachError":{{"message":"{}"}}}}"#, "x".repeat(1025));
    let message = "status.attachError.message: Too long: may not be more than 262144 bytes";
    assert_eq!(status(&long, "{}"), [message, message]);
    let much = format!(r#"{{"attachmentMetadata":{{"k":"{}"}}}}"#, "x".repeat(262_144));
    let metadata = "status.attachmentMetadata: Too long: may not be more than 262144 bytes";
    assert_eq!(status(&much, "{}"), [metadata, metadata]);
    let code = r#"{"detachError":{"errorCode":-1}}"#;
    let negative = "status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive";
    assert_eq!(status(code, code), [negative, negative]);
    let changed = with("{}").replace(r#""n""#, r#""m""#);
    assert_eq!(
        updated("volumeattachments", &changed, &with("{}")),
        [
            r#"spec: Invalid value: storage.VolumeAttachmentSpec{Attacher:"a", Source:storage.VolumeAttachmentSource{PersistentVolumeName:(*string)(0xc000000000), InlineVolumeSpec:(*core.PersistentVolumeSpec)(nil)}, NodeName:"m"}: field is immutable"#
        ]
    );
}
