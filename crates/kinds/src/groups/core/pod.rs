//! Pods and templates of pods.

use super::pod_checks::{validate, validate_status, validate_update};
use crate::check::Errors;
use crate::pod::{self, APP_ARMOR};
use crate::read::{Read, list_mut, object_mut};
use crate::resource::{
    CHANGE_VERBS, Column, Context, Ended, Generation, Resource, SelectableField, Strategy, Subresource, Version,
};
use crate::table;
use jiff::Timestamp;
use object::field::Path;
use object::{Value, map};

pub(super) const PODS: Resource = Resource {
    short_names: &["po"],
    categories: &["all"],
    subresources: &[
        Subresource::new("attach", "PodAttachOptions", &["create", "get"]),
        Subresource::new("binding", "Binding", &["create"]),
        Subresource::new("ephemeralcontainers", "Pod", CHANGE_VERBS),
        Subresource { group: "policy", version: "v1", ..Subresource::new("eviction", "Eviction", &["create"]) },
        Subresource::new("exec", "PodExecOptions", &["create", "get"]),
        Subresource::new("log", "Pod", &["get"]),
        Subresource::new("portforward", "PodPortForwardOptions", &["create", "get"]),
        Subresource::new("proxy", "PodProxyOptions", &["create", "delete", "get", "patch", "update"]),
        Subresource::new("resize", "Pod", CHANGE_VERBS),
        Subresource::status("Pod"),
    ],
    columns: &[
        Column::NAME,
        Column::new("Ready", "string"),
        Column::new("Status", "string"),
        Column::new("Restarts", "string"),
        Column::AGE,
        Column::wide("IP", "string"),
        Column::wide("Node", "string"),
        Column::wide("Nominated Node", "string"),
        Column::wide("Readiness Gates", "string"),
    ],
    cells,
    ended,
    selectable: &[
        SelectableField { name: "spec.nodeName", value: |o| o.sub("spec").text("nodeName").to_owned() },
        // What the first clients called it.
        SelectableField { name: "spec.host", value: |o| o.sub("spec").text("nodeName").to_owned() },
        SelectableField { name: "spec.restartPolicy", value: |o| o.sub("spec").text("restartPolicy").to_owned() },
        SelectableField { name: "spec.schedulerName", value: |o| o.sub("spec").text("schedulerName").to_owned() },
        SelectableField {
            name: "spec.serviceAccountName",
            value: |o| o.sub("spec").text("serviceAccountName").to_owned(),
        },
        SelectableField { name: "spec.hostNetwork", value: |o| o.sub("spec").flag("hostNetwork").to_string() },
        SelectableField { name: "status.phase", value: |o| o.sub("status").text("phase").to_owned() },
        SelectableField { name: "status.podIP", value: |o| o.sub("status").text("podIP").to_owned() },
        // Upstream knows the name, but no value of it.
        SelectableField { name: "status.podIPs", value: |_| String::new() },
        SelectableField {
            name: "status.nominatedNodeName",
            value: |o| o.sub("status").text("nominatedNodeName").to_owned(),
        },
    ],
    strategy: Strategy {
        generation: Generation::Counts(&[&["spec"]]),
        reset: &[&["status"]],
        reset_status: &[&["spec"], &["metadata", "ownerReferences"], &["metadata", "deletionTimestamp"]],
        graceful: true,
        returns_deleted: true,
        prepare_create,
        prepare_update: |object, old, _| pod::drop_disabled(object, old),
        prepare_status,
        validate,
        validate_update,
        validate_status,
        warnings: pod::pod_warnings,
        warnings_before: pod::pod_warnings_before,
        status_warnings: pod::pod_status_warnings,
        ..Strategy::PLAIN
    },
    ..Resource::new("", "Pod", "pods", &[Version::stored("v1", "io.k8s.api.core.v1.Pod").with_default(default)])
};

pub(super) const POD_TEMPLATES: Resource = Resource {
    columns: &[
        Column::NAME,
        Column::new("Containers", "string"),
        Column::new("Images", "string"),
        Column::new("Pod Labels", "string"),
    ],
    cells: |object, _| {
        let template = object.sub("template");
        let labels = table::labels(template.sub("metadata").members("labels"));
        vec![object.name().into(), table::container_names(template), table::images(template), labels.into()]
    },
    strategy: Strategy {
        generation: Generation::Counts(&[&["template"]]),
        template: &["template"],
        warnings: |object, old| pod::template_warnings_at(object, old, &["template"]),
        returns_deleted: true,
        validate: |object| {
            let mut out = Errors::new();
            pod::validate_template(object.sub("template"), &Path::ROOT.child("template"), &mut out);
            out
        },
        validate_update: |object, _| {
            let mut out = Errors::new();
            pod::validate_template(object.sub("template"), &Path::ROOT.child("template"), &mut out);
            out
        },
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "",
        "PodTemplate",
        "podtemplates",
        &[Version::stored("v1", "io.k8s.api.core.v1.PodTemplate").with_default(|object| {
            if let Some(template) = object.get_mut("template") {
                pod::default_template(template);
            }
        })],
    )
};

/// `serviceAccount` is the old name of `serviceAccountName`, and always the same.
fn default(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").filter(|s| s.as_object().is_some()) {
        accounts(spec);
    }
    addresses(object);
    pod::default_pod(object);
}

/// `podIP` is the first of `podIPs`.
fn addresses(object: &mut Value) {
    let status = object.sub("status");
    let ip = status.text("podIP").to_owned();
    let first = status.list("podIPs").first().map(|ip| ip.text("ip").to_owned());
    match first {
        Some(first) if ip.is_empty() => object.set_at(&["status", "podIP"], first.into()),
        Some(first) if first == ip => {}
        _ if ip.is_empty() => {}
        _ => object.set_at(&["status", "podIPs"], vec![map! { "ip" => ip }].into()),
    }
}

/// Keeps the two names of the account alike.
fn accounts(spec: &mut Value) {
    let name = match spec.text("serviceAccountName") {
        "" => spec.text("serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !name.is_empty() {
        spec.set_at(&["serviceAccountName"], name.as_str().into());
        spec.set_at(&["serviceAccount"], name.into());
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    pod::drop_disabled(object, &Value::Null);
    apply_match_label_keys(object);
    sync_app_armor(object);
    if object.sub("spec").int("terminationGracePeriodSeconds") < 0 {
        object.set_at(&["spec", "terminationGracePeriodSeconds"], Value::Int(1));
    }
    let mut status = map! { "phase" => "Pending", "qosClass" => pod::qos_class(object.sub("spec")) };
    if !object.sub("spec").list("schedulingGates").is_empty() {
        status.insert(
            "conditions",
            vec![map! {
                "type" => "PodScheduled", "status" => "False", "reason" => "SchedulingGated",
                "message" => "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime" => Value::Null, "lastTransitionTime" => Value::Null,
            }],
        );
    }
    object.set_at(&["status"], status.into());
}

/// Turns the keys of labels in which other pods are to be like this one, or unlike, into requirements on their labels.
fn apply_match_label_keys(object: &mut Value) {
    let labels = object.sub("metadata").members("labels").clone();
    let Some(affinity) = object_mut(object, &["spec", "affinity"]) else { return };
    let complete = |term: &mut Value| {
        if !term.has("labelSelector") {
            return;
        }
        let mut added = Vec::new();
        for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            for key in term.strings(list) {
                if let Some(value) = labels.get(key) {
                    added.push(map! { "key" => key, "operator" => operator, "values" => vec![value.clone()] }.into());
                }
            }
        }
        if !added.is_empty() {
            let mut all = term.sub("labelSelector").list("matchExpressions").to_vec();
            all.extend(added);
            term.set_at(&["labelSelector", "matchExpressions"], all.into());
        }
    };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(kind) = object_mut(affinity, &[kind]) else { continue };
        list_mut(kind, "requiredDuringSchedulingIgnoredDuringExecution").iter_mut().for_each(complete);
        for term in list_mut(kind, "preferredDuringSchedulingIgnoredDuringExecution") {
            object_mut(term, &["podAffinityTerm"]).into_iter().for_each(complete);
        }
    }
}

/// Says in annotations what the fields say about AppArmor, and the other way round, for older kubelets and clients.
fn sync_app_armor(object: &mut Value) {
    if object.sub("spec").sub("os").text("name") == "windows" {
        return;
    }
    let annotations = object.sub("metadata").members("annotations").clone();
    let whole = object.sub("spec").sub("securityContext").sub("appArmorProfile").clone();
    let mut added = Vec::new();
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list_mut(spec, list) {
            let key = format!("{APP_ARMOR}{}", container.text("name"));
            let own = container.sub("securityContext").sub("appArmorProfile");
            let given = annotations.get(&key).and_then(Value::as_str);
            if let Some(profile) = given.filter(|_| own.is_null()).and_then(pod::app_armor_profile) {
                if profile != whole {
                    container.set_at(&["securityContext", "appArmorProfile"], profile);
                }
            } else if given.is_none() {
                let profile = if own.is_null() { &whole } else { own };
                let text = match (profile.text("type"), profile.text("localhostProfile")) {
                    ("Unconfined", _) => "unconfined".to_owned(),
                    ("RuntimeDefault", _) => "runtime/default".to_owned(),
                    ("Localhost", file) if !file.is_empty() => format!("localhost/{file}"),
                    _ => continue,
                };
                added.push((key, text));
            }
        }
    }
    for (key, text) in added {
        object.set_at(&["metadata", "annotations", &key], text.into());
    }
}

fn prepare_status(object: &mut Value, old: &Value, _: &Context<'_>) {
    if object.sub("status").text("qosClass").is_empty() {
        object.set_at(&["status", "qosClass"], old.sub("status").text("qosClass").into());
    }
    pod::drop_disabled_status(object, old);
}

/// The row that `kubectl get pods` shows.
fn ended(object: &Value) -> Option<Ended> {
    match object.sub("status").text("phase") {
        "Succeeded" => Some(Ended { reason: "Succeeded", message: "The pod has completed successfully." }),
        "Failed" => Some(Ended { reason: "Failed", message: "The pod failed." }),
        _ => None,
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let (mut restarts, mut sidecar_restarts) = (0, 0);
    let (mut last_restart, mut last_sidecar_restart): (Option<&str>, Option<&str>) = (None, None);
    let ended = |c| Value::at(c, &["lastState", "terminated", "finishedAt"]).and_then(Value::as_str);
    let mut ready = 0;
    let sidecars: Vec<&str> = spec
        .list("initContainers")
        .iter()
        .filter(|c| c.text("restartPolicy") == "Always")
        .map(|c| c.text("name"))
        .collect();
    let total = spec.list("containers").len() + sidecars.len();
    let mut reason = match status.text("reason") {
        "" => status.text("phase").to_owned(),
        reason => reason.to_owned(),
    };
    let gated = |c: &Value| c.text("type") == "PodScheduled" && c.text("reason") == "SchedulingGated";
    if status.list("conditions").iter().any(gated) {
        reason = "SchedulingGated".to_owned();
    }
    let mut initialising = false;
    for (i, container) in status.list("initContainerStatuses").iter().enumerate() {
        restarts += container.int("restartCount");
        let state = container.sub("state");
        let terminated = state.sub("terminated");
        let sidecar = sidecars.contains(&container.text("name"));
        last_restart = last_restart.max(ended(container));
        if sidecar {
            sidecar_restarts += container.int("restartCount");
            last_sidecar_restart = last_sidecar_restart.max(ended(container));
        }
        if state.has("terminated") && terminated.int("exitCode") == 0 {
            continue;
        }
        if sidecar && container.flag("started") {
            ready += usize::from(container.flag("ready"));
            continue;
        }
        reason = if state.has("terminated") {
            match terminated.text("reason") {
                "" if terminated.int("signal") != 0 => format!("Init:Signal:{}", terminated.int("signal")),
                "" => format!("Init:ExitCode:{}", terminated.int("exitCode")),
                reason => format!("Init:{reason}"),
            }
        } else {
            match state.sub("waiting").text("reason") {
                "" | "PodInitializing" => format!("Init:{i}/{}", spec.list("initContainers").len()),
                reason => format!("Init:{reason}"),
            }
        };
        initialising = true;
        break;
    }
    let holds = |kind: &str| {
        let condition = status.list("conditions").iter().find(|c| c.text("type") == kind);
        condition.is_some_and(|c| c.text("status") == "True")
    };
    if !initialising || holds("Initialized") {
        (restarts, last_restart) = (sidecar_restarts, last_sidecar_restart);
        let mut running = false;
        for container in status.list("containerStatuses").iter().rev() {
            restarts += container.int("restartCount");
            last_restart = last_restart.max(ended(container));
            let state = container.sub("state");
            let (waiting, terminated) = (state.sub("waiting"), state.sub("terminated"));
            if !waiting.text("reason").is_empty() {
                reason = waiting.text("reason").to_owned();
            } else if !terminated.text("reason").is_empty() {
                reason = terminated.text("reason").to_owned();
            } else if state.has("terminated") {
                reason = match terminated.int("signal") {
                    0 => format!("ExitCode:{}", terminated.int("exitCode")),
                    signal => format!("Signal:{signal}"),
                };
            } else if container.flag("ready") && state.has("running") {
                running = true;
                ready += 1;
            }
        }
        if reason == "Completed" && running {
            let is_ready = |c: &Value| c.text("type") == "Ready" && c.text("status") == "True";
            reason = if status.list("conditions").iter().any(is_ready) { "Running" } else { "NotReady" }.to_owned();
        }
    }
    if object.sub("metadata").has("deletionTimestamp") {
        if status.text("reason") == "NodeLost" {
            reason = "Unknown".to_owned();
        } else if !matches!(status.text("phase"), "Failed" | "Succeeded") {
            reason = "Terminating".to_owned();
        }
    }
    let restarts = match last_restart {
        Some(time) if restarts > 0 => format!("{restarts} ({} ago)", table::since(Some(&time.into()), now)),
        _ => restarts.to_string(),
    };
    let none = |s: &str| if s.is_empty() { "<none>".to_owned() } else { s.to_owned() };
    let ip = status.list("podIPs").first().map_or(status.text("podIP"), |ip| ip.text("ip"));
    let gates = spec.list("readinessGates");
    let open = gates.iter().filter(|gate| holds(gate.text("conditionType"))).count();
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) };
    vec![
        object.name().into(),
        format!("{ready}/{total}").into(),
        reason.into(),
        restarts.into(),
        table::age(object, now),
        none(ip).into(),
        none(spec.text("nodeName")).into(),
        none(status.text("nominatedNodeName")).into(),
        gates.into(),
    ]
}
