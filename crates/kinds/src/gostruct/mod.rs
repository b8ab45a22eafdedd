//! Go's syntax for the few structures that error messages show.

mod diff;
mod template;
mod types;

pub(crate) use diff::{diff, pod_spec_diff};
pub(crate) use template::pod_template;
pub(crate) use types::{CLAIM, VOLUME_SOURCE};

use crate::check::go_string_map;
use crate::read::Read;
use object::field::Shown;
use object::{Value, go};

/// A label selector: `v1.LabelSelector{MatchLabels:…}`.
pub(crate) fn label_selector(selector: &Value) -> Shown {
    if selector.as_object().is_none() {
        return (&Value::Null).into();
    }
    let labels = match selector.members("matchLabels") {
        labels if labels.is_empty() => "map[string]string(nil)".to_owned(),
        labels => go_string_map(labels),
    };
    let expressions = match selector.list("matchExpressions") {
        [] => "[]v1.LabelSelectorRequirement(nil)".to_owned(),
        list => {
            let shown: Vec<String> = list
                .iter()
                .map(|e| {
                    let values = match e.strings("values") {
                        values if values.is_empty() => "[]string(nil)".to_owned(),
                        values => go::string_list(&values),
                    };
                    format!(
                        "v1.LabelSelectorRequirement{{Key:{}, Operator:{}, Values:{values}}}",
                        go::quote(e.text("key")),
                        go::quote(e.text("operator"))
                    )
                })
                .collect();
            format!("[]v1.LabelSelectorRequirement{{{}}}", shown.join(", "))
        }
    };
    Shown::raw(format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}"))
}

/// What an event is about.
pub(crate) fn object_reference(reference: &Value) -> Shown {
    if reference.as_object().is_none() {
        return (&Value::Null).into();
    }
    let part = |name: &str, key: &str| format!("{name}:{}", go::quote(reference.text(key)));
    let parts = [
        part("Kind", "kind"),
        part("Namespace", "namespace"),
        part("Name", "name"),
        part("UID", "uid"),
        part("APIVersion", "apiVersion"),
        part("ResourceVersion", "resourceVersion"),
        part("FieldPath", "fieldPath"),
    ];
    Shown::raw(format!("core.ObjectReference{{{}}}", parts.join(", ")))
}

/// Where an event comes from.
pub(crate) fn event_source(source: &Value) -> Shown {
    let (component, host) = (go::quote(source.text("component")), go::quote(source.text("host")));
    Shown::raw(format!("core.EventSource{{Component:{component}, Host:{host}}}"))
}

/// A time as Go prints it: `2025-01-01 00:00:00.5 +0000 UTC`; none at all is the year 1.
pub(crate) fn time(time: &str) -> Shown {
    let text = match time.parse::<jiff::Timestamp>() {
        Ok(parsed) => parsed.strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC").to_string(),
        Err(_) if time.is_empty() => "0001-01-01 00:00:00 +0000 UTC".to_owned(),
        Err(_) => time.to_owned(),
    };
    Shown::raw(text)
}

/// A driver of a CSINode.
pub(crate) fn csi_node_driver(driver: &Value) -> Shown {
    let keys = match driver.strings("topologyKeys") {
        keys if keys.is_empty() => "[]string(nil)".to_owned(),
        keys => go::string_list(&keys),
    };
    let (name, id) = (go::quote(driver.text("name")), go::quote(driver.text("nodeID")));
    let allocatable = address("storage.VolumeNodeResources", driver, "allocatable");
    let shown = format!("Name:{name}, NodeID:{id}, TopologyKeys:{keys}, Allocatable:{allocatable}");
    Shown::raw(format!("storage.CSINodeDriver{{{shown}}}"))
}

/// The spec of a VolumeAttachment.
pub(crate) fn attachment_spec(spec: &Value) -> Shown {
    let source = spec.sub("source");
    let name = address("string", source, "persistentVolumeName");
    let volume = address("core.PersistentVolumeSpec", source, "inlineVolumeSpec");
    let source = format!("storage.VolumeAttachmentSource{{PersistentVolumeName:{name}, InlineVolumeSpec:{volume}}}");
    let (attacher, node) = (go::quote(spec.text("attacher")), go::quote(spec.text("nodeName")));
    Shown::raw(format!("storage.VolumeAttachmentSpec{{Attacher:{attacher}, Source:{source}, NodeName:{node}}}"))
}

/// The specification of a disruption budget.
pub(crate) fn budget_spec(spec: &Value) -> Shown {
    let least = address("intstr.IntOrString", spec, "minAvailable");
    let selector = address("v1.LabelSelector", spec, "selector");
    let most = address("intstr.IntOrString", spec, "maxUnavailable");
    let policy = address("policy.UnhealthyPodEvictionPolicyType", spec, "unhealthyPodEvictionPolicy");
    Shown::raw(format!(
        "policy.PodDisruptionBudgetSpec{{MinAvailable:{least}, Selector:{selector}, MaxUnavailable:{most}, UnhealthyPodEvictionPolicy:{policy}}}"
    ))
}

/// Something that is reached by a pointer.
fn address(ty: &str, parent: &Value, key: &str) -> String {
    format!("(*{ty})({})", if parent.has(key) { go::ADDRESS } else { "nil" })
}

/// Labels as a field of their own: `map[string]string{"a":"b"}`.
pub(crate) fn labels(labels: &object::Map) -> Shown {
    Shown::raw(if labels.is_empty() { "map[string]string(nil)".to_owned() } else { go_string_map(labels) })
}

/// `intstr.IntOrString{Type:0, IntVal:1, StrVal:""}`
pub(crate) fn int_or_string(value: &Value) -> String {
    match value {
        Value::String(s) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{}}}", go::quote(s)),
        value => format!("intstr.IntOrString{{Type:0, IntVal:{}, StrVal:\"\"}}", value.as_int().unwrap_or_default()),
    }
}
