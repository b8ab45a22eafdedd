//! Nodes.

use crate::check::{self, Errors};
use crate::net;
use crate::pod::resources;
use crate::read::{Read, object_mut};
use crate::resource::{Column, Generation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Value, names};

pub(super) const NODES: Resource = Resource {
    short_names: &["no"],
    namespaced: false,
    subresources: &[
        Subresource::new("proxy", "NodeProxyOptions", &["create", "delete", "get", "patch", "update"]),
        Subresource::status("Node"),
    ],
    columns: &[
        Column::NAME,
        Column::new("Status", "string"),
        Column::new("Roles", "string"),
        Column::AGE,
        Column::new("Version", "string"),
        Column::wide("Internal-IP", "string"),
        Column::wide("External-IP", "string"),
        Column::wide("OS-Image", "string"),
        Column::wide("Kernel-Version", "string"),
        Column::wide("Container-Runtime", "string"),
    ],
    cells,
    selectable: &[SelectableField {
        name: "spec.unschedulable",
        value: |object| object.sub("spec").flag("unschedulable").to_string(),
    }],
    strategy: Strategy {
        generation: Generation::None,
        drops_on_create: false,
        drop_disabled,
        prepare_status: |object, old, _| drop_config(object, old),
        validate,
        validate_update,
        validate_status: validate_changes,
        warnings,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new("", "Node", "nodes", &[Version::stored("v1", "io.k8s.api.core.v1.Node").with_default(default)])
};

/// What can be used is what there is, and `podCIDR` is the first of `podCIDRs`.
fn default(object: &mut Value) {
    if let Some(status) = object_mut(object, &["status"])
        && status.members("allocatable").is_empty()
        && !status.members("capacity").is_empty()
    {
        status.set_at(&["allocatable"], status.sub("capacity").clone());
    }
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    let cidr = spec.text("podCIDR").to_owned();
    let first = spec.strings("podCIDRs").first().map(|c| (*c).to_owned());
    match first {
        Some(first) if cidr.is_empty() => spec.set_at(&["podCIDR"], first.into()),
        Some(first) if first == cidr => {}
        _ if cidr.is_empty() => {}
        _ => spec.set_at(&["podCIDRs"], vec![cidr].into()),
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    const ROLE: &str = "node-role.kubernetes.io/";
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let ready = status.list("conditions").iter().find(|c| c.text("type") == "Ready");
    let mut state = match ready.map(|c| c.text("status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if spec.flag("unschedulable") {
        state.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in object.sub("metadata").members("labels").iter() {
        let role = match key.strip_prefix(ROLE) {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => continue,
        };
        if !role.is_empty() && !roles.contains(&role) {
            roles.push(role);
        }
    }
    roles.sort_unstable();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| -> Value {
        let found = status.list("addresses").iter().find(|a| a.text("type") == kind);
        found.map_or("<none>", |a| a.text("address")).into()
    };
    let info = status.sub("nodeInfo");
    let known = |key: &str| -> Value {
        match info.text(key) {
            "" => "<unknown>".into(),
            text => text.into(),
        }
    };
    vec![
        object.name().into(),
        state.into(),
        roles.into(),
        table::age(object, now),
        info.text("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        known("kernelVersion"),
        known("containerRuntimeVersion"),
    ]
}

/// Fields that nobody reads any more, and networks in odd forms.
fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let (spec, path) = (object.sub("spec"), Path::ROOT.child("spec"));
    if !spec.text("externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    let networks = path.child("podCIDRs");
    for (i, network) in spec.strings("podCIDRs").into_iter().enumerate() {
        net::cidr_warning(network, &networks.index(i), &mut out);
    }
    out
}

/// Drops where a kubelet's configuration was once taken from, and what a new node says of it.
fn drop_disabled(object: &mut Value, old: &Value) {
    if object.sub("spec").has("configSource") {
        object.remove_at(&["spec", "configSource"]);
    }
    if old.is_null() {
        drop_config(object, old);
    }
}

/// Drops what a kubelet says of its configuration, unless it did before.
fn drop_config(object: &mut Value, old: &Value) {
    if object.sub("status").has("config") && !old.sub("status").has("config") {
        object.remove_at(&["status", "config"]);
    }
}

/// Checks what a node says it has.
fn amounts(object: &Value, out: &mut Errors) {
    let status = Path::ROOT.child("status");
    for part in ["capacity", "allocatable"] {
        let at = status.child(part);
        for (name, value) in object.sub("status").members(part).iter() {
            resources::amount(name, value, &at.child(name), out);
        }
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = object.sub("spec");
    amounts(object, &mut out);
    let meta = Path::ROOT.child("metadata");
    taints(spec.list("taints"), &meta.child("taints"), &mut out);
    let path = Path::ROOT.child("spec");
    let cidrs = path.child("podCIDRs");
    let list = spec.strings("podCIDRs");
    for (i, cidr) in list.iter().enumerate() {
        net::cidr(cidr, &cidrs.index(i), &mut out);
    }
    if list.len() > 1 {
        let v4 = list.iter().filter_map(|c| net::parse_cidr(c)).filter(|(a, _)| a.is_ipv4()).count();
        if list.len() > 2 || v4 != 1 {
            let why = "may specify no more than one CIDR for each IP family";
            let shown = Shown::raw(object::go::string_list(&list));
            out.push(FieldError::invalid(&cidrs, shown, why));
        }
        for (i, cidr) in list.iter().enumerate().filter(|(i, cidr)| list.iter().take(*i).any(|c| c == *cidr)) {
            out.push(FieldError::duplicate(&cidrs.index(i), *cidr));
        }
    }
    out
}

fn taints(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (i, taint) in list.iter().enumerate() {
        let at = path.index(i);
        check::label_name(taint.text("key"), &at.child("key"), out);
        let value = names::label_value(taint.text("value"));
        if !value.is_empty() {
            out.push(FieldError::invalid(&at.child("value"), taint.text("value"), value.join(";")));
        }
        check::required_one_of(taint, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &at, out);
        let pair = (taint.text("key"), taint.text("effect"));
        if seen.contains(&pair) {
            let why = "taints must be unique by key and effect pair".to_owned();
            let mut error = FieldError::duplicate(&at, taint);
            error.detail = why;
            out.push(error);
        }
        seen.push(pair);
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    [validate(new), validate_changes(new, old)].concat()
}

/// What an update of a node or its status is checked for; upstream checks taints and amounts here again.
fn validate_changes(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    amounts(new, &mut out);
    let (meta, status) = (Path::ROOT.child("metadata"), Path::ROOT.child("status"));
    let addresses = status.child("addresses");
    let list = new.sub("status").list("addresses");
    for (i, address) in list.iter().enumerate().filter(|(i, address)| list[..*i].contains(address)) {
        let (kind, text) = (object::go::quote(address.text("type")), object::go::quote(address.text("address")));
        let shown = Shown::raw(format!("core.NodeAddress{{Type:{kind}, Address:{text}}}"));
        out.push(FieldError::duplicate(&addresses.index(i), shown));
    }
    taints(new.sub("spec").list("taints"), &meta.child("taints"), &mut out);
    let path = Path::ROOT.child("spec");
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    if !before.list("podCIDRs").is_empty() && spec.sub("podCIDRs") != before.sub("podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        out.push(FieldError::forbidden(&path.child("podCIDRs"), why));
    }
    let provider = before.text("providerID");
    if !provider.is_empty() && spec.text("providerID") != provider {
        let why = "node updates may not change providerID except from \"\" to valid";
        out.push(FieldError::forbidden(&path.child("providerID"), why));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn nothing_is_said_of_a_configuration_that_nodes_no_longer_take() {
        let node = || json::parse(br#"{"spec":{"configSource":{}},"status":{"config":{"error":"a"}}}"#).unwrap();
        let mut created = node();
        drop_disabled(&mut created, &Value::Null);
        assert_eq!(json::to_string(&created), r#"{"spec":{},"status":{}}"#);
        for (old, wanted) in
            [(created, r#"{"spec":{"configSource":{}},"status":{}}"#), (node(), &json::to_string(&node()))]
        {
            let mut changed = node();
            drop_config(&mut changed, &old);
            assert_eq!(json::to_string(&changed), wanted);
        }
    }
}
