use super::*;
use crate::definitions;
use object::json;

fn decoded(name: &str, body: &str) -> Result<(String, Vec<String>), String> {
    let definition = definitions().get(name).unwrap();
    let mut decoded = decode(definition, json::parse(body.as_bytes()).unwrap())?;
    finish(definition, &mut decoded.object);
    let unknown = decoded.unknown().map(str::to_owned).collect();
    Ok((json::to_string(&decoded.object), unknown))
}

const POD: &str = "io.k8s.api.core.v1.Pod";

#[test]
fn a_round_trip_writes_what_go_writes() {
    let (text, unknown) = decoded(
        "io.k8s.api.core.v1.ConfigMap",
        r#"{"data": {}, "binaryData": {"b": "AA=="}, "immutable": false, "metadata": {"name": "a", "labels": null}}"#,
    )
    .unwrap();
    assert_eq!(
        text,
        r#"{"binaryData":{"b":"AA=="},"immutable":false,"metadata":{"creationTimestamp":null,"name":"a"}}"#
    );
    assert!(unknown.is_empty());
}

#[test]
fn nobody_owns_what_is_empty_but_in_lists_that_are_owned_whole() {
    let definition = definitions().get("io.k8s.api.networking.v1.NetworkPolicy").unwrap();
    let mut policy = json::parse(br#"{"spec":{"egress":[],"ingress":[{"ports":[]}]}}"#).unwrap();
    drop_empty(definition, &mut policy);
    assert_eq!(json::to_string(&policy), r#"{"spec":{"ingress":[{"ports":[]}]}}"#);
}

#[test]
fn projected_volumes_always_say_their_sources() {
    let (text, _) = decoded("io.k8s.api.core.v1.Volume", r#"{"name": "v", "projected": {}, "emptyDir": {}}"#).unwrap();
    assert_eq!(text, r#"{"emptyDir":{},"name":"v","projected":{"sources":null}}"#);
}

#[test]
fn structures_held_by_value_and_lists_without_omitempty_are_written() {
    let (text, _) = decoded(
        POD,
        r#"{"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5}}}], "hostNetwork": false}}"#,
    )
    .unwrap();
    assert_eq!(
        text,
        r#"{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m"}}}]},"status":{}}"#
    );
    let (text, _) = decoded("io.k8s.api.rbac.v1.Role", r#"{"rules": []}"#).unwrap();
    assert_eq!(text, r#"{"metadata":{"creationTimestamp":null},"rules":null}"#);
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let (text, unknown) =
        decoded(POD, r#"{"x": 1, "spec": {"containers": [{"name": "c", "y": 1}], "zz": 1}}"#).unwrap();
    assert!(!text.contains("zz"));
    assert_eq!(unknown, ["spec.containers[0].y", "spec.zz", "x"]);
}

#[test]
fn values_of_the_wrong_type_are_refused_in_gos_words() {
    for (name, body, want) in [
        (POD, r#"{"spec": "x"}"#, "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"),
        (
            POD,
            r#"{"metadata": {"labels": {"a": 5}}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            POD,
            r#"{"metadata": {"generation": "x"}}"#,
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            POD,
            r#"{"spec": {"containers": [{"imagePullPolicy": 1}]}}"#,
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            POD,
            r#"{"metadata": {"ownerReferences": {}}}"#,
            "json: cannot unmarshal object into Go struct field ObjectMeta.metadata.ownerReferences of type []v1.OwnerReference",
        ),
        (
            POD,
            r#"{"metadata": {"creationTimestamp": 5}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            POD,
            r#"{"spec": {"priority": 1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (POD, r#"[]"#, "json: cannot unmarshal array into Go value of type v1.Pod"),
        (
            "io.k8s.api.core.v1.ConfigMap",
            r#"{"data": []}"#,
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
        ),
        ("io.k8s.api.core.v1.ConfigMap", r#"{"binaryData": {"a": "*"}}"#, "illegal base64 data at input byte 0"),
        (
            "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
            r#"{"webhooks": [{"timeoutSeconds": "x"}]}"#,
            "json: cannot unmarshal string into Go struct field ValidatingWebhook.webhooks.timeoutSeconds of type int32",
        ),
    ] {
        assert_eq!(decoded(name, body).unwrap_err(), want, "{body}");
    }
}

#[test]
fn texts_are_read_in_their_order() {
    let unknown = |path: &str| Issue::Unknown(path.to_owned());
    let repeated = |path: &str| Issue::Repeated(path.to_owned());
    for (name, text, expected) in [
        (
            "io.k8s.api.core.v1.ConfigMap",
            r#"{"z":1,"metadata":{"b":1,"a":{},"b":2},"data":{"k":"1","k":"2"},"data":{}}"#,
            Ok(vec![unknown("z"), unknown("metadata.b"), unknown("metadata.a"), repeated("data.k"), repeated("data")]),
        ),
        // What is unknown is not looked into, and told once.
        ("io.k8s.api.core.v1.ConfigMap", r#"{"z":{"a":1,"a":2},"z":1}"#, Ok(vec![unknown("z")])),
        (
            "io.k8s.api.core.v1.Pod",
            r#"{"spec":{"nodeName":1},"metadata":{"name":[]}}"#,
            Err("json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string"),
        ),
        // What is overwritten counts too.
        (
            "io.k8s.api.core.v1.Pod",
            r#"{"metadata":{"name":true,"name":"a"}}"#,
            Err("json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string"),
        ),
        (
            "io.k8s.api.core.v1.Pod",
            r#"{"spec":{"activeDeadlineSeconds":1e3}}"#,
            Err(
                "json: cannot unmarshal number 1e3 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
            ),
        ),
        (
            "io.k8s.api.core.v1.Secret",
            r#"{"data":{"a":[1,300]}}"#,
            Err("json: cannot unmarshal number 300 into Go struct field Secret.data of type uint8"),
        ),
    ] {
        let (value, repeats) = json::parse_noting(text.as_bytes()).unwrap();
        let decoded = decode_text(definitions().get(name).unwrap(), value, text.as_bytes(), repeats);
        assert_eq!(decoded.map(|d| d.issues), expected.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn repeated_structures_are_merged_and_repeated_scalars_replaced() {
    let text = r#"{
        "metadata": {"name": "a", "labels": {"x": "1", "y": "1"}},
        "metadata": {"namespace": "b", "labels": {"y": "2"}},
        "spec": {"nodeName": "n", "hostname": "h", "priority": 1, "containers": [{"name": "c", "image": "i"}, {"name": "d"}]},
        "spec": {"nodeName": "m", "hostname": null, "priority": null, "containers": [{"name": "e"}]}
    }"#;
    let (value, repeats) = json::parse_noting(text.as_bytes()).unwrap();
    let pod = decode_text(definitions().get(POD).unwrap(), value, text.as_bytes(), repeats).unwrap().object;
    assert_eq!(pod.str_at(&["metadata", "name"]), Some("a"));
    assert_eq!(pod.str_at(&["metadata", "namespace"]), Some("b"));
    assert_eq!(json::to_string(pod.at(&["metadata", "labels"]).unwrap()), r#"{"x":"1","y":"2"}"#);
    assert_eq!(pod.str_at(&["spec", "nodeName"]), Some("m"));
    assert_eq!(pod.str_at(&["spec", "hostname"]), Some("h"));
    assert!(pod.at(&["spec", "priority"]).is_none_or(Value::is_null));
    let containers = pod.at(&["spec", "containers"]).unwrap();
    assert_eq!(json::to_string(containers), r#"[{"image":"i","name":"e","resources":{}}]"#);
}

#[test]
fn maps_that_grow_by_being_repeated_have_a_limit() {
    for (count, error) in [(1000, None), (2000, Some("data is repeated too often"))] {
        let repeated: Vec<String> = (0..count).map(|i| format!(r#""data":{{"{}":""}}"#, count - i)).collect();
        let text = format!("{{{}}}", repeated.join(","));
        let (value, repeats) = json::parse_noting(text.as_bytes()).unwrap();
        let definition = definitions().get("io.k8s.api.core.v1.ConfigMap").unwrap();
        let decoded = decode_text(definition, value, text.as_bytes(), repeats);
        assert_eq!(decoded.err().as_deref(), error, "{count}");
    }
}

#[test]
fn bytes_may_be_written_as_a_list_of_numbers() {
    let (text, _) = decoded("io.k8s.api.core.v1.Secret", r#"{"data": {"a": [104, 105, null]}}"#).unwrap();
    assert_eq!(text, r#"{"data":{"a":"aGkA"},"metadata":{"creationTimestamp":null}}"#);
}

#[test]
fn schemas_of_schemas_are_read_with_errors_of_the_place_outside() {
    let definition =
        definitions().get("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition").unwrap();
    let version = |inner: &str| format!(r#"{{"spec":{{"versions":[{inner}]}}}}"#);
    for (text, expected) in [
        (
            version(r#"{"schema":{"openAPIV3Schema":{"items":{"type":1}}}}"#),
            Err(
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items of type string",
            ),
        ),
        (
            version(r#"{"schema":{"openAPIV3Schema":{"additionalProperties":"x"}},"name":1}"#),
            Err("boolean or JSON schema expected"),
        ),
        // What they do not know is not told.
        (version(r#"{"schema":{"openAPIV3Schema":{"items":{"nope":1}}}}"#), Ok(vec![])),
        (
            version(r#"{"subresources":{"status":{"nope":1}}}"#),
            Ok(vec![Issue::Unknown("spec.versions[0].subresources.status.nope".to_owned())]),
        ),
        (
            version(r#"{"subresources":{"status":[]}}"#),
            Err(
                "json: cannot unmarshal array into Go struct field CustomResourceSubresources.spec.versions.subresources.status of type v1.CustomResourceSubresourceStatus",
            ),
        ),
    ] {
        let decoded = decode(definition, json::parse(text.as_bytes()).unwrap());
        assert_eq!(decoded.map(|d| d.issues), expected.map_err(str::to_owned), "{text}");
    }
}
