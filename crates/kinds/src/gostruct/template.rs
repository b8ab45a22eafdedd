//! A template of pods in Go's syntax, as the complaint about its change shows it.

use crate::check::quantity;
use crate::read::Read;
use object::{Value, go};
use std::fmt::Write;

/// How a field is printed; the text is the name of its type in Go.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Int,
    Bool,
    /// A pointer: its address is not told apart, as it changes from run to run.
    Pointer(&'static str),
    Strings,
    Labels,
    Resources,
    Struct(&'static Struct),
    List(&'static str, Option<&'static Struct>),
    /// Always the same text.
    Fixed(&'static str),
}

/// A structure: its name and its fields with their names in Go and JSON, in Go's order.
struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, &'static str, Shape)],
}

use Shape::{Bool, Fixed, Int, Labels, List, Pointer, Resources, Strings, Text};

const META: Struct = Struct {
    name: "v1.ObjectMeta",
    fields: &[
        ("Name", "name", Text),
        ("GenerateName", "generateName", Text),
        ("Namespace", "namespace", Text),
        ("SelfLink", "selfLink", Text),
        ("UID", "uid", Text),
        ("ResourceVersion", "resourceVersion", Text),
        ("Generation", "generation", Int),
        ("CreationTimestamp", "", Fixed("time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)")),
        ("DeletionTimestamp", "", Fixed("<nil>")),
        ("DeletionGracePeriodSeconds", "deletionGracePeriodSeconds", Pointer("int64")),
        ("Labels", "labels", Labels),
        ("Annotations", "annotations", Labels),
        ("OwnerReferences", "ownerReferences", List("v1.OwnerReference", None)),
        ("Finalizers", "finalizers", Strings),
        ("ManagedFields", "managedFields", List("v1.ManagedFieldsEntry", None)),
    ],
};

const PORT: Struct = Struct {
    name: "core.ContainerPort",
    fields: &[
        ("Name", "name", Text),
        ("HostPort", "hostPort", Int),
        ("ContainerPort", "containerPort", Int),
        ("Protocol", "protocol", Text),
        ("HostIP", "hostIP", Text),
    ],
};

const VARIABLE: Struct = Struct {
    name: "core.EnvVar",
    fields: &[
        ("Name", "name", Text),
        ("Value", "value", Text),
        ("ValueFrom", "valueFrom", Pointer("core.EnvVarSource")),
    ],
};

const MOUNT: Struct = Struct {
    name: "core.VolumeMount",
    fields: &[
        ("Name", "name", Text),
        ("ReadOnly", "readOnly", Bool),
        ("RecursiveReadOnly", "recursiveReadOnly", Pointer("core.RecursiveReadOnlyMode")),
        ("MountPath", "mountPath", Text),
        ("SubPath", "subPath", Text),
        ("MountPropagation", "mountPropagation", Pointer("core.MountPropagationMode")),
        ("SubPathExpr", "subPathExpr", Text),
    ],
};

const REQUIREMENTS: Struct = Struct {
    name: "core.ResourceRequirements",
    fields: &[
        ("Limits", "limits", Resources),
        ("Requests", "requests", Resources),
        ("Claims", "claims", List("core.ResourceClaim", None)),
    ],
};

const CONTAINER: Struct = Struct {
    name: "core.Container",
    fields: &[
        ("Name", "name", Text),
        ("Image", "image", Text),
        ("Command", "command", Strings),
        ("Args", "args", Strings),
        ("WorkingDir", "workingDir", Text),
        ("Ports", "ports", List("core.ContainerPort", Some(&PORT))),
        ("EnvFrom", "envFrom", List("core.EnvFromSource", None)),
        ("Env", "env", List("core.EnvVar", Some(&VARIABLE))),
        ("Resources", "resources", Shape::Struct(&REQUIREMENTS)),
        ("ResizePolicy", "resizePolicy", List("core.ContainerResizePolicy", None)),
        ("RestartPolicy", "restartPolicy", Pointer("core.ContainerRestartPolicy")),
        ("VolumeMounts", "volumeMounts", List("core.VolumeMount", Some(&MOUNT))),
        ("VolumeDevices", "volumeDevices", List("core.VolumeDevice", None)),
        ("LivenessProbe", "livenessProbe", Pointer("core.Probe")),
        ("ReadinessProbe", "readinessProbe", Pointer("core.Probe")),
        ("StartupProbe", "startupProbe", Pointer("core.Probe")),
        ("Lifecycle", "lifecycle", Pointer("core.Lifecycle")),
        ("TerminationMessagePath", "terminationMessagePath", Text),
        ("TerminationMessagePolicy", "terminationMessagePolicy", Text),
        ("ImagePullPolicy", "imagePullPolicy", Text),
        ("SecurityContext", "securityContext", Pointer("core.SecurityContext")),
        ("Stdin", "stdin", Bool),
        ("StdinOnce", "stdinOnce", Bool),
        ("TTY", "tty", Bool),
    ],
};

const SPEC: Struct = Struct {
    name: "core.PodSpec",
    fields: &[
        ("Volumes", "volumes", List("core.Volume", None)),
        ("InitContainers", "initContainers", List("core.Container", Some(&CONTAINER))),
        ("Containers", "containers", List("core.Container", Some(&CONTAINER))),
        ("EphemeralContainers", "ephemeralContainers", List("core.EphemeralContainer", None)),
        ("RestartPolicy", "restartPolicy", Text),
        ("TerminationGracePeriodSeconds", "terminationGracePeriodSeconds", Pointer("int64")),
        ("ActiveDeadlineSeconds", "activeDeadlineSeconds", Pointer("int64")),
        ("DNSPolicy", "dnsPolicy", Text),
        ("NodeSelector", "nodeSelector", Labels),
        ("ServiceAccountName", "serviceAccountName", Text),
        ("AutomountServiceAccountToken", "automountServiceAccountToken", Pointer("bool")),
        ("NodeName", "nodeName", Text),
        ("SecurityContext", "securityContext", Pointer("core.PodSecurityContext")),
        ("ImagePullSecrets", "imagePullSecrets", List("core.LocalObjectReference", None)),
        ("Hostname", "hostname", Text),
        ("Subdomain", "subdomain", Text),
        ("SetHostnameAsFQDN", "setHostnameAsFQDN", Pointer("bool")),
        ("Affinity", "affinity", Pointer("core.Affinity")),
        ("SchedulerName", "schedulerName", Text),
        ("Tolerations", "tolerations", List("core.Toleration", None)),
        ("HostAliases", "hostAliases", List("core.HostAlias", None)),
        ("PriorityClassName", "priorityClassName", Text),
        ("Priority", "priority", Pointer("int32")),
        ("PreemptionPolicy", "preemptionPolicy", Pointer("core.PreemptionPolicy")),
        ("DNSConfig", "dnsConfig", Pointer("core.PodDNSConfig")),
        ("ReadinessGates", "readinessGates", List("core.PodReadinessGate", None)),
        ("RuntimeClassName", "runtimeClassName", Pointer("string")),
        ("Overhead", "overhead", Resources),
        ("EnableServiceLinks", "enableServiceLinks", Pointer("bool")),
        ("TopologySpreadConstraints", "topologySpreadConstraints", List("core.TopologySpreadConstraint", None)),
        ("OS", "os", Pointer("core.PodOS")),
        ("SchedulingGates", "schedulingGates", List("core.PodSchedulingGate", None)),
        ("ResourceClaims", "resourceClaims", List("core.PodResourceClaim", None)),
        ("Resources", "resources", Pointer("core.ResourceRequirements")),
    ],
};

const TEMPLATE: Struct = Struct {
    name: "core.PodTemplateSpec",
    fields: &[("ObjectMeta", "metadata", Shape::Struct(&META)), ("Spec", "spec", Shape::Struct(&SPEC))],
};

/// A template of pods: `core.PodTemplateSpec{ObjectMeta:…, Spec:…}`.
pub(crate) fn pod_template(template: &Value) -> String {
    let mut out = String::new();
    structure(&TEMPLATE, template, &mut out);
    out
}

fn structure(kind: &Struct, value: &Value, out: &mut String) {
    out.push_str(kind.name);
    out.push('{');
    for (i, (name, key, shape)) in kind.fields.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push(':');
        field(*shape, value, key, out);
    }
    out.push('}');
}

fn field(shape: Shape, parent: &Value, key: &str, out: &mut String) {
    match shape {
        Text => out.push_str(&go::quote(parent.text(key))),
        Int => {
            let _ = write!(out, "{}", parent.int(key));
        }
        Bool => {
            let _ = write!(out, "{}", parent.flag(key));
        }
        Pointer(name) => {
            let address = if parent.has(key) { "0xc000000000" } else { "nil" };
            let _ = write!(out, "(*{name})({address})");
        }
        Strings => match parent.strings(key) {
            list if list.is_empty() => out.push_str("[]string(nil)"),
            list => out.push_str(&go::string_list(&list)),
        },
        Labels => match parent.members(key) {
            map if map.is_empty() => out.push_str("map[string]string(nil)"),
            map => out.push_str(&crate::check::go_string_map(map)),
        },
        Resources => match parent.members(key) {
            map if map.is_empty() => out.push_str("core.ResourceList(nil)"),
            map => {
                let amounts = map.iter().filter_map(|(name, value)| Some((name, quantity(value)?)));
                let pairs: Vec<String> =
                    amounts.map(|(name, amount)| format!("{}:{}", go::quote(name), amount.go_syntax())).collect();
                let _ = write!(out, "core.ResourceList{{{}}}", pairs.join(", "));
            }
        },
        Shape::Struct(kind) => structure(kind, parent.sub(key), out),
        List(name, kind) => match (parent.list(key), kind) {
            ([], _) => {
                let _ = write!(out, "[]{name}(nil)");
            }
            (items, Some(kind)) => {
                let _ = write!(out, "[]{name}{{");
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    structure(kind, item, out);
                }
                out.push('}');
            }
            (items, None) => {
                // What these hold is not spelled out; how many there are is.
                let _ = write!(out, "[]{name}{{{}}}", vec![format!("{name}{{}}"); items.len()].join(", "));
            }
        },
        Fixed(text) => out.push_str(text),
    }
}
