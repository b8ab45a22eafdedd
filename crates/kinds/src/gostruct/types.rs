//! Types of Go, as far as messages show their values.

use object::Value;

/// What a field holds; a text is the name of its type in Go.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    Int,
    Bool,
    /// A pointer to a scalar, or to something that is not spelled out.
    Pointer(&'static str),
    /// A pointer to a structure.
    To(&'static Struct),
    /// A list of strings, with the name of their type.
    Names(&'static str),
    Labels,
    Resources,
    Struct(&'static Struct),
    /// A list of structures; nothing where they are not spelled out.
    List(&'static str, Option<&'static Struct>),
    /// Always the same text.
    Fixed(&'static str),
}

/// A structure that is not spelled out.
const OPAQUE: Struct = Struct { name: "", fields: &[] };

impl Shape {
    /// What a pointer points to; that of one that is not spelled out is told by the value.
    pub(super) fn target(self, value: &Value) -> Shape {
        match (self, value) {
            (Shape::To(kind), _) => Shape::Struct(kind),
            (_, Value::String(_)) => Shape::Text,
            (_, Value::Bool(_)) => Shape::Bool,
            (_, Value::Int(_)) => Shape::Int,
            _ => Shape::Struct(&OPAQUE),
        }
    }

    /// What a list holds.
    pub(super) fn item(self) -> Shape {
        match self {
            Shape::List(_, kind) => Shape::Struct(kind.unwrap_or(&OPAQUE)),
            _ => Shape::Text,
        }
    }

    /// The name of the type of a structure, list or map.
    pub(super) fn composite(self) -> Option<String> {
        match self {
            Shape::Struct(kind) => Some(kind.name.to_owned()),
            Shape::Names(name) | Shape::List(name, _) => Some(format!("[]{name}")),
            Shape::Labels => Some("map[string]string".to_owned()),
            Shape::Resources => Some("core.ResourceList".to_owned()),
            _ => None,
        }
    }
}

/// A structure: its name and its fields with their names in Go and JSON, in Go's order.
pub(crate) struct Struct {
    pub(super) name: &'static str,
    pub(super) fields: &'static [(&'static str, &'static str, Shape)],
}

use Shape::{Bool, Fixed, Int, Labels, List, Names, Pointer, Resources, Text, To};

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
        ("Finalizers", "finalizers", Names("string")),
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

const CAPABILITIES: Struct = Struct {
    name: "core.Capabilities",
    fields: &[("Add", "add", Names("core.Capability")), ("Drop", "drop", Names("core.Capability"))],
};

const SECURITY_CONTEXT: Struct = Struct {
    name: "core.SecurityContext",
    fields: &[
        ("Capabilities", "capabilities", To(&CAPABILITIES)),
        ("Privileged", "privileged", Pointer("bool")),
        ("SELinuxOptions", "seLinuxOptions", Pointer("core.SELinuxOptions")),
        ("WindowsOptions", "windowsOptions", Pointer("core.WindowsSecurityContextOptions")),
        ("RunAsUser", "runAsUser", Pointer("int64")),
        ("RunAsGroup", "runAsGroup", Pointer("int64")),
        ("RunAsNonRoot", "runAsNonRoot", Pointer("bool")),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Pointer("bool")),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Pointer("bool")),
        ("ProcMount", "procMount", Pointer("core.ProcMountType")),
        ("SeccompProfile", "seccompProfile", Pointer("core.SeccompProfile")),
        ("AppArmorProfile", "appArmorProfile", Pointer("core.AppArmorProfile")),
    ],
};

const POD_SECURITY_CONTEXT: Struct = Struct {
    name: "core.PodSecurityContext",
    fields: &[
        ("HostNetwork", "hostNetwork", Bool),
        ("HostPID", "hostPID", Bool),
        ("HostIPC", "hostIPC", Bool),
        ("ShareProcessNamespace", "shareProcessNamespace", Pointer("bool")),
        ("HostUsers", "hostUsers", Pointer("bool")),
        ("SELinuxOptions", "seLinuxOptions", Pointer("core.SELinuxOptions")),
        ("WindowsOptions", "windowsOptions", Pointer("core.WindowsSecurityContextOptions")),
        ("RunAsUser", "runAsUser", Pointer("int64")),
        ("RunAsGroup", "runAsGroup", Pointer("int64")),
        ("RunAsNonRoot", "runAsNonRoot", Pointer("bool")),
        ("SupplementalGroups", "supplementalGroups", List("int64", None)),
        ("SupplementalGroupsPolicy", "supplementalGroupsPolicy", Pointer("core.SupplementalGroupsPolicy")),
        ("FSGroup", "fsGroup", Pointer("int64")),
        ("FSGroupChangePolicy", "fsGroupChangePolicy", Pointer("core.PodFSGroupChangePolicy")),
        ("Sysctls", "sysctls", List("core.Sysctl", None)),
        ("SeccompProfile", "seccompProfile", Pointer("core.SeccompProfile")),
        ("AppArmorProfile", "appArmorProfile", Pointer("core.AppArmorProfile")),
        ("SELinuxChangePolicy", "seLinuxChangePolicy", Pointer("core.PodSELinuxChangePolicy")),
    ],
};

const TOLERATION: Struct = Struct {
    name: "core.Toleration",
    fields: &[
        ("Key", "key", Text),
        ("Operator", "operator", Text),
        ("Value", "value", Text),
        ("Effect", "effect", Text),
        ("TolerationSeconds", "tolerationSeconds", Pointer("int64")),
    ],
};

const REFERENCE: Struct = Struct { name: "core.LocalObjectReference", fields: &[("Name", "name", Text)] };
const GATE: Struct = Struct { name: "core.PodSchedulingGate", fields: &[("Name", "name", Text)] };
const READINESS_GATE: Struct =
    Struct { name: "core.PodReadinessGate", fields: &[("ConditionType", "conditionType", Text)] };
const OS: Struct = Struct { name: "core.PodOS", fields: &[("Name", "name", Text)] };
const ALIAS: Struct =
    Struct { name: "core.HostAlias", fields: &[("IP", "ip", Text), ("Hostnames", "hostnames", Names("string"))] };

const CONTAINER: Struct = Struct {
    name: "core.Container",
    fields: &[
        ("Name", "name", Text),
        ("Image", "image", Text),
        ("Command", "command", Names("string")),
        ("Args", "args", Names("string")),
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
        ("SecurityContext", "securityContext", To(&SECURITY_CONTEXT)),
        ("Stdin", "stdin", Bool),
        ("StdinOnce", "stdinOnce", Bool),
        ("TTY", "tty", Bool),
    ],
};

/// The spec of a pod.
pub(crate) const SPEC: Struct = Struct {
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
        ("SecurityContext", "securityContext", To(&POD_SECURITY_CONTEXT)),
        ("ImagePullSecrets", "imagePullSecrets", List("core.LocalObjectReference", Some(&REFERENCE))),
        ("Hostname", "hostname", Text),
        ("Subdomain", "subdomain", Text),
        ("SetHostnameAsFQDN", "setHostnameAsFQDN", Pointer("bool")),
        ("Affinity", "affinity", Pointer("core.Affinity")),
        ("SchedulerName", "schedulerName", Text),
        ("Tolerations", "tolerations", List("core.Toleration", Some(&TOLERATION))),
        ("HostAliases", "hostAliases", List("core.HostAlias", Some(&ALIAS))),
        ("PriorityClassName", "priorityClassName", Text),
        ("Priority", "priority", Pointer("int32")),
        ("PreemptionPolicy", "preemptionPolicy", Pointer("core.PreemptionPolicy")),
        ("DNSConfig", "dnsConfig", Pointer("core.PodDNSConfig")),
        ("ReadinessGates", "readinessGates", List("core.PodReadinessGate", Some(&READINESS_GATE))),
        ("RuntimeClassName", "runtimeClassName", Pointer("string")),
        ("Overhead", "overhead", Resources),
        ("EnableServiceLinks", "enableServiceLinks", Pointer("bool")),
        ("TopologySpreadConstraints", "topologySpreadConstraints", List("core.TopologySpreadConstraint", None)),
        ("OS", "os", To(&OS)),
        ("SchedulingGates", "schedulingGates", List("core.PodSchedulingGate", Some(&GATE))),
        ("ResourceClaims", "resourceClaims", List("core.PodResourceClaim", None)),
        ("Resources", "resources", To(&REQUIREMENTS)),
    ],
};

/// A template of pods.
pub(super) const TEMPLATE: Struct = Struct {
    name: "core.PodTemplateSpec",
    fields: &[("ObjectMeta", "metadata", Shape::Struct(&META)), ("Spec", "spec", Shape::Struct(&SPEC))],
};

const HOST_PATH: Struct = Struct {
    name: "core.HostPathVolumeSource",
    fields: &[("Path", "path", Text), ("Type", "type", Pointer("core.HostPathType"))],
};

const NFS: Struct = Struct {
    name: "core.NFSVolumeSource",
    fields: &[("Server", "server", Text), ("Path", "path", Text), ("ReadOnly", "readOnly", Bool)],
};

const LOCAL: Struct = Struct {
    name: "core.LocalVolumeSource",
    fields: &[("Path", "path", Text), ("FSType", "fsType", Pointer("string"))],
};

const CSI: Struct = Struct {
    name: "core.CSIPersistentVolumeSource",
    fields: &[
        ("Driver", "driver", Text),
        ("VolumeHandle", "volumeHandle", Text),
        ("ReadOnly", "readOnly", Bool),
        ("FSType", "fsType", Text),
        ("VolumeAttributes", "volumeAttributes", Labels),
        ("ControllerPublishSecretRef", "controllerPublishSecretRef", Pointer("core.SecretReference")),
        ("NodeStageSecretRef", "nodeStageSecretRef", Pointer("core.SecretReference")),
        ("NodePublishSecretRef", "nodePublishSecretRef", Pointer("core.SecretReference")),
        ("ControllerExpandSecretRef", "controllerExpandSecretRef", Pointer("core.SecretReference")),
        ("NodeExpandSecretRef", "nodeExpandSecretRef", Pointer("core.SecretReference")),
    ],
};

/// Where a persistent volume is.
pub(crate) const VOLUME_SOURCE: Struct = Struct {
    name: "core.PersistentVolumeSource",
    fields: &[
        ("GCEPersistentDisk", "gcePersistentDisk", Pointer("core.GCEPersistentDiskVolumeSource")),
        ("AWSElasticBlockStore", "awsElasticBlockStore", Pointer("core.AWSElasticBlockStoreVolumeSource")),
        ("HostPath", "hostPath", To(&HOST_PATH)),
        ("Glusterfs", "glusterfs", Pointer("core.GlusterfsPersistentVolumeSource")),
        ("NFS", "nfs", To(&NFS)),
        ("RBD", "rbd", Pointer("core.RBDPersistentVolumeSource")),
        ("Quobyte", "quobyte", Pointer("core.QuobyteVolumeSource")),
        ("ISCSI", "iscsi", Pointer("core.ISCSIPersistentVolumeSource")),
        ("FlexVolume", "flexVolume", Pointer("core.FlexPersistentVolumeSource")),
        ("Cinder", "cinder", Pointer("core.CinderPersistentVolumeSource")),
        ("CephFS", "cephfs", Pointer("core.CephFSPersistentVolumeSource")),
        ("FC", "fc", Pointer("core.FCVolumeSource")),
        ("Flocker", "flocker", Pointer("core.FlockerVolumeSource")),
        ("AzureFile", "azureFile", Pointer("core.AzureFilePersistentVolumeSource")),
        ("VsphereVolume", "vsphereVolume", Pointer("core.VsphereVirtualDiskVolumeSource")),
        ("AzureDisk", "azureDisk", Pointer("core.AzureDiskVolumeSource")),
        ("PhotonPersistentDisk", "photonPersistentDisk", Pointer("core.PhotonPersistentDiskVolumeSource")),
        ("PortworxVolume", "portworxVolume", Pointer("core.PortworxVolumeSource")),
        ("ScaleIO", "scaleIO", Pointer("core.ScaleIOPersistentVolumeSource")),
        ("Local", "local", To(&LOCAL)),
        ("StorageOS", "storageos", Pointer("core.StorageOSPersistentVolumeSource")),
        ("CSI", "csi", To(&CSI)),
    ],
};

const CLAIM_RESOURCES: Struct = Struct {
    name: "core.VolumeResourceRequirements",
    fields: &[("Limits", "limits", Resources), ("Requests", "requests", Resources)],
};

/// The spec of a claim.
pub(crate) const CLAIM: Struct = Struct {
    name: "core.PersistentVolumeClaimSpec",
    fields: &[
        ("AccessModes", "accessModes", Names("core.PersistentVolumeAccessMode")),
        ("Selector", "selector", Pointer("v1.LabelSelector")),
        ("Resources", "resources", Shape::Struct(&CLAIM_RESOURCES)),
        ("VolumeName", "volumeName", Text),
        ("StorageClassName", "storageClassName", Pointer("string")),
        ("VolumeMode", "volumeMode", Pointer("core.PersistentVolumeMode")),
        ("DataSource", "dataSource", Pointer("core.TypedLocalObjectReference")),
        ("DataSourceRef", "dataSourceRef", Pointer("core.TypedObjectReference")),
        ("VolumeAttributesClassName", "volumeAttributesClassName", Pointer("string")),
    ],
};
