//! What is checked when pods are created and changed.

use crate::check::{self, Errors};
use crate::read::{Read, list_mut};
use crate::{gostruct, net, pod};
use object::field::{FieldError, Path, Shown};
use object::{Value, go, names};

/// Checks a pod to be created.
pub(super) fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    pod::validate_pod(object, &mut out);
    let (path, spec) = (Path::ROOT.child("spec"), object.sub("spec"));
    if !spec.list("ephemeralContainers").is_empty() {
        out.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        out.push(FieldError::forbidden(&path.child("nodeName"), why));
    }
    pod::profiles(object, &path, &mut out);
    out
}

const UPDATES: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks the few fields of a pod that may change, and that no other does.
pub(super) fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    pod::validate_pod(new, &mut out);
    pod::annotation_updates(new, old, &Path::ROOT.child("metadata").child("annotations"), &mut out);
    let path = Path::ROOT.child("spec");
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    for list in ["containers", "initContainers"] {
        let at = path.child(list);
        if spec.list(list).len() != before.list(list).len() {
            out.push(FieldError::forbidden(&at, "pod updates may not add or remove containers"));
            return out;
        }
        for (i, container) in spec.list(list).iter().enumerate() {
            // Upstream reports both a second time.
            check::required(container, "image", &at.index(i), &mut out);
        }
        pod::images_of(spec, list, &path, &mut out);
    }
    let deadline = path.child("activeDeadlineSeconds");
    match (spec.opt_int("activeDeadlineSeconds"), before.opt_int("activeDeadlineSeconds")) {
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            out.push(FieldError::invalid(&deadline, "null", why));
        }
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let why = "must be between 0 and 2147483647, inclusive";
            out.push(FieldError::invalid(&deadline, new, why));
            return out;
        }
        (Some(new), Some(old)) if new > old => {
            out.push(FieldError::invalid(&deadline, new, "must be less than or equal to previous value"));
            return out;
        }
        _ => {}
    }
    let at = path.child("tolerations");
    let same =
        |new: &Value, old: &Value| ["key", "operator", "value", "effect"].iter().all(|k| new.text(k) == old.text(k));
    let tolerations = spec.list("tolerations");
    if before.list("tolerations").iter().all(|old| tolerations.iter().any(|new| same(new, old))) {
        pod::tolerations(tolerations, &at, &mut out);
    } else {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        out.push(FieldError::forbidden(&at, why));
    }
    let gates = path.child("schedulingGates");
    for (i, gate) in spec.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        if !before.list("schedulingGates").iter().any(|g| g.text("name") == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            out.push(FieldError::forbidden(&gates.index(i).child("name"), why));
        }
    }
    if spec == before {
        return out;
    }
    let mut rest = spec.clone();
    put_back(&mut rest, before, &["activeDeadlineSeconds", "tolerations", "schedulingGates"]);
    for list in ["containers", "initContainers"] {
        for (container, old) in list_mut(&mut rest, list).iter_mut().zip(before.list(list)) {
            container.set_at(&["image"], old.text("image").into());
        }
    }
    let grace = "terminationGracePeriodSeconds";
    if before.int(grace) < 0 && spec.opt_int(grace) == Some(1) {
        put_back(&mut rest, before, &[grace]);
    }
    if !before.list("schedulingGates").is_empty() {
        gated(&mut rest, before, &path, &mut out);
    }
    if &rest != before {
        let difference = gostruct::pod_spec_diff(before, &rest);
        out.push(FieldError::forbidden(&path, format!("{UPDATES}\n{difference}")));
    }
    out
}

/// Gives a specification the old values of some fields.
fn put_back(spec: &mut Value, before: &Value, keys: &[&str]) {
    for key in keys {
        match before.get(key) {
            Some(value) => spec.set_at(&[key], value.clone()),
            None => {
                spec.remove_at(&[key]);
            }
        }
    }
}

/// While a pod waits behind gates, it may be bound to fewer nodes. What is checked here is put back to the old values.
fn gated(rest: &mut Value, before: &Value, path: &Path<'_>, out: &mut Errors) {
    let (now, was) = (rest.members("nodeSelector"), before.members("nodeSelector"));
    if was.iter().any(|(key, value)| now.get(key) != Some(value)) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        out.push(FieldError::invalid(&path.child("nodeSelector"), gostruct::labels(now), why));
    }
    put_back(rest, before, &["nodeSelector"]);
    let (now, was) = (rest.sub("affinity").sub("nodeAffinity"), before.sub("affinity").sub("nodeAffinity"));
    if now == was {
        return;
    }
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let (new, old) = (now.sub(REQUIRED), was.sub(REQUIRED));
    let (affinity, key) = (path.child("affinity"), "nodeSelectorTerms");
    let node = affinity.child("nodeAffinity");
    let required = node.child(REQUIRED);
    let at = required.child(key);
    let (new_terms, old_terms) = (new.list(key), old.list(key));
    if !old_terms.is_empty() && old_terms.len() != new_terms.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        out.push(FieldError::invalid(&at, new.sub(key), why));
    } else {
        for (i, (new, old)) in new_terms.iter().zip(old_terms).enumerate() {
            if !only_adds(new, old) {
                let why = "only additions are allowed (no mutations or deletions)";
                out.push(FieldError::invalid(&at.index(i), new, why));
            }
        }
    }
    let alone = !before.has("affinity")
        && !rest.sub("affinity").has("podAffinity")
        && !rest.sub("affinity").has("podAntiAffinity");
    if alone {
        rest.remove_at(&["affinity"]);
    } else if was.is_null() {
        rest.remove_at(&["affinity", "nodeAffinity"]);
    } else {
        rest.set_at(&["affinity", "nodeAffinity"], was.clone());
    }
}

fn only_adds(new: &Value, old: &Value) -> bool {
    let parts = ["matchExpressions", "matchFields"];
    if parts.iter().all(|part| old.list(part).is_empty()) {
        return parts.iter().all(|part| new.list(part).is_empty());
    }
    parts.iter().all(|part| new.list(part).starts_with(old.list(part)))
}

/// Checks a pod's status as kubelets and others report it.
pub(super) fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    let (meta, status) = (Path::ROOT.child("metadata"), Path::ROOT.child("status"));
    let (value, before) = (new.sub("status"), old.sub("status"));
    pod::annotation_updates(new, old, &meta.child("annotations"), &mut out);
    let conditions = meta.child("conditions");
    for (i, condition) in value.list("conditions").iter().enumerate() {
        let kind = condition.text("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            check::label_name(kind, &conditions.index(i).child("Type"), &mut out);
        }
    }
    let nominated = value.text("nominatedNodeName");
    if !nominated.is_empty() && nominated != before.text("nominatedNodeName") {
        check::name(names::dns1123_subdomain, nominated, &status.child("nominatedNodeName"), &mut out);
    }
    let class = value.text("qosClass");
    if class != before.text("qosClass") {
        out.push(FieldError::invalid(&status.child("qosClass"), class, check::IMMUTABLE));
    }
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let policy = if list.starts_with("eph") { "Never" } else { old.sub("spec").text("restartPolicy") };
        restarts(list, policy, new, old, &status.child(list), &mut out);
    }
    pod_ips(value, &status, &mut out);
    host_ips(value, &status, &mut out);
    out
}

/// A container that ended and is not to be started again stays ended.
fn restarts(list: &str, policy: &str, new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    if policy == "Always" {
        return;
    }
    let sidecar = |name: &str| {
        let containers = old.sub("spec").list("initContainers");
        list.starts_with("init")
            && containers.iter().any(|c| c.text("name") == name && c.text("restartPolicy") == "Always")
    };
    for (i, before) in old.sub("status").list(list).iter().enumerate() {
        let ended = before.sub("state").sub("terminated");
        let may_restart = ended.int("exitCode") != 0 && policy == "OnFailure";
        if ended.is_null() || may_restart || sidecar(before.text("name")) {
            continue;
        }
        let runs = |c: &&Value| c.text("name") == before.text("name") && !c.sub("state").has("terminated");
        for _ in new.sub("status").list(list).iter().filter(runs) {
            let why = "may not be transitioned to non-terminated state";
            out.push(FieldError::forbidden(&path.index(i).child("state"), why));
        }
    }
}

fn pod_ips(status: &Value, path: &Path<'_>, out: &mut Errors) {
    let (key, at) = ("podIPs", path.child("podIPs"));
    ips(status.list(key), &at, out);
    families(status, key, "core.PodIP", &at, out);
}

fn host_ips(status: &Value, path: &Path<'_>, out: &mut Errors) {
    let (key, at) = ("hostIPs", path.child("hostIPs"));
    let Some(first) = status.list(key).first() else { return };
    if status.text("hostIP") != first.text("ip") {
        let why = "must be equal to `hostIP`";
        out.push(FieldError::invalid(&at.index(0).child("ip"), first.text("ip"), why));
    }
    ips(status.list(key), &at, out);
    families(status, key, "core.HostIP", &at, out);
}

fn ips(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    for (i, ip) in list.iter().enumerate() {
        net::ip(ip.text("ip"), &path.index(i), out);
    }
}

/// At most one address of each family, each once.
fn families(status: &Value, key: &str, ty: &str, path: &Path<'_>, out: &mut Errors) {
    let list = status.list(key);
    if list.len() < 2 {
        return;
    }
    let shown = |ip: &Value| format!("{ty}{{IP:{}}}", go::quote(ip.text("ip")));
    if let Some(bad) = list.iter().find(|ip| net::parse_ip(ip.text("ip")).is_none()) {
        let why = format!("failed to check for dual stack with error:invalid IP: {}", bad.text("ip"));
        out.push(FieldError::internal(path, why));
    }
    let v4 = list.iter().filter_map(|ip| net::parse_ip(ip.text("ip"))).filter(std::net::IpAddr::is_ipv4).count();
    if list.len() > 2 || v4 != 1 {
        let all: Vec<String> = list.iter().map(shown).collect();
        let all = Shown::raw(format!("[]{ty}{{{}}}", all.join(", ")));
        out.push(FieldError::invalid(path, all, "may specify no more than one IP for each IP family"));
    }
    for (i, ip) in list.iter().enumerate() {
        if list.iter().take(i).any(|earlier| earlier.text("ip") == ip.text("ip")) {
            let one = Shown::raw(shown(ip));
            out.push(FieldError::duplicate(&path.index(i), one));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn fields(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(|e| format!("{}: {}", e.field, e.body())).collect()
    }

    #[test]
    fn a_container_that_is_done_stays_done() {
        let ended = |code: i64, policy: &str| {
            value(&format!(
                r#"{{"spec":{{"restartPolicy":"{policy}"}},
                    "status":{{"containerStatuses":[{{"name":"c","state":{{"terminated":{{"exitCode":{code}}}}}}}]}}}}"#
            ))
        };
        let running = value(r#"{"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}"#);
        for (code, policy, refused) in
            [(0, "Always", false), (1, "OnFailure", false), (0, "OnFailure", true), (1, "Never", true)]
        {
            let found = validate_status(&running, &ended(code, policy));
            let why = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
            assert_eq!(fields(&found).contains(&why.to_owned()), refused, "{policy} {code}");
        }
    }

    #[test]
    fn addresses_are_one_of_a_family() {
        for (ips, wanted) in [
            (r#"[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]"#, vec![]),
            (
                r#"[{"ip":"10.0.0.1"},{"ip":"10.0.0.1"}]"#,
                vec![
                    "status.podIPs: Invalid value: []core.PodIP{core.PodIP{IP:\"10.0.0.1\"}, core.PodIP{IP:\"10.0.0.1\"}}: may specify no more than one IP for each IP family",
                    "status.podIPs[1]: Duplicate value: core.PodIP{IP:\"10.0.0.1\"}",
                ],
            ),
        ] {
            let new = value(&format!(r#"{{"status":{{"podIPs":{ips}}}}}"#));
            assert_eq!(fields(&validate_status(&new, &value("{}"))), wanted);
        }
    }

    #[test]
    fn a_pod_behind_gates_may_be_bound_to_fewer_nodes() {
        let pod = |spec: &str| {
            value(&format!(
                r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[],"schedulingGates":[{{"name":"g"}}]{spec}}}}}"#
            ))
        };
        let about = |new: &str, old: &str| -> Vec<String> {
            let all = fields(&validate_update(&pod(new), &pod(old)));
            all.into_iter().filter(|e| e.contains("nodeSelector") || e.starts_with("spec: ")).collect()
        };
        let selector = r#","nodeSelector":{"a":"1"}"#;
        assert!(about(r#","nodeSelector":{"a":"1","b":"2"}"#, selector).is_empty());
        let why = "spec.nodeSelector: Invalid value: {\"a\":\"2\"}: only additions to spec.nodeSelector are allowed (no \
                   mutations or deletions)";
        assert_eq!(about(r#","nodeSelector":{"a":"2"}"#, selector).len(), 1, "{why}");
    }
}
