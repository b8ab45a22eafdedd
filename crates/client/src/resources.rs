//! The built-in resources that programs name, in the versions that a 1.33 server stores or prefers.

use crate::Resource;

/// `pods` of `v1`.
pub const PODS: Resource = Resource::known("", "v1", "pods", "Pod", true);

/// `services` of `v1`.
pub const SERVICES: Resource = Resource::known("", "v1", "services", "Service", true);

/// `endpoints` of `v1`.
pub const ENDPOINTS: Resource = Resource::known("", "v1", "endpoints", "Endpoints", true);

/// `configmaps` of `v1`.
pub const CONFIG_MAPS: Resource = Resource::known("", "v1", "configmaps", "ConfigMap", true);

/// `secrets` of `v1`.
pub const SECRETS: Resource = Resource::known("", "v1", "secrets", "Secret", true);

/// `serviceaccounts` of `v1`.
pub const SERVICE_ACCOUNTS: Resource = Resource::known("", "v1", "serviceaccounts", "ServiceAccount", true);

/// `events` of `v1`.
pub const EVENTS: Resource = Resource::known("", "v1", "events", "Event", true);

/// `persistentvolumeclaims` of `v1`.
pub const PERSISTENT_VOLUME_CLAIMS: Resource =
    Resource::known("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true);

/// `persistentvolumes` of `v1`.
pub const PERSISTENT_VOLUMES: Resource = Resource::known("", "v1", "persistentvolumes", "PersistentVolume", false);

/// `resourcequotas` of `v1`.
pub const RESOURCE_QUOTAS: Resource = Resource::known("", "v1", "resourcequotas", "ResourceQuota", true);

/// `limitranges` of `v1`.
pub const LIMIT_RANGES: Resource = Resource::known("", "v1", "limitranges", "LimitRange", true);

/// `replicationcontrollers` of `v1`.
pub const REPLICATION_CONTROLLERS: Resource =
    Resource::known("", "v1", "replicationcontrollers", "ReplicationController", true);

/// `podtemplates` of `v1`.
pub const POD_TEMPLATES: Resource = Resource::known("", "v1", "podtemplates", "PodTemplate", true);

/// `namespaces` of `v1`.
pub const NAMESPACES: Resource = Resource::known("", "v1", "namespaces", "Namespace", false);

/// `nodes` of `v1`.
pub const NODES: Resource = Resource::known("", "v1", "nodes", "Node", false);

/// `deployments` of `apps/v1`.
pub const DEPLOYMENTS: Resource = Resource::known("apps", "v1", "deployments", "Deployment", true);

/// `replicasets` of `apps/v1`.
pub const REPLICA_SETS: Resource = Resource::known("apps", "v1", "replicasets", "ReplicaSet", true);

/// `statefulsets` of `apps/v1`.
pub const STATEFUL_SETS: Resource = Resource::known("apps", "v1", "statefulsets", "StatefulSet", true);

/// `daemonsets` of `apps/v1`.
pub const DAEMON_SETS: Resource = Resource::known("apps", "v1", "daemonsets", "DaemonSet", true);

/// `controllerrevisions` of `apps/v1`.
pub const CONTROLLER_REVISIONS: Resource =
    Resource::known("apps", "v1", "controllerrevisions", "ControllerRevision", true);

/// `jobs` of `batch/v1`.
pub const JOBS: Resource = Resource::known("batch", "v1", "jobs", "Job", true);

/// `cronjobs` of `batch/v1`.
pub const CRON_JOBS: Resource = Resource::known("batch", "v1", "cronjobs", "CronJob", true);

/// `poddisruptionbudgets` of `policy/v1`.
pub const POD_DISRUPTION_BUDGETS: Resource =
    Resource::known("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true);

/// `endpointslices` of `discovery.k8s.io/v1`.
pub const ENDPOINT_SLICES: Resource =
    Resource::known("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true);

/// `leases` of `coordination.k8s.io/v1`.
pub const LEASES: Resource = Resource::known("coordination.k8s.io", "v1", "leases", "Lease", true);

/// `storageclasses` of `storage.k8s.io/v1`.
pub const STORAGE_CLASSES: Resource = Resource::known("storage.k8s.io", "v1", "storageclasses", "StorageClass", false);

/// `volumeattachments` of `storage.k8s.io/v1`.
pub const VOLUME_ATTACHMENTS: Resource =
    Resource::known("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false);

/// `clusterroles` of `rbac.authorization.k8s.io/v1`.
pub const CLUSTER_ROLES: Resource =
    Resource::known("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false);

/// `clusterrolebindings` of `rbac.authorization.k8s.io/v1`.
pub const CLUSTER_ROLE_BINDINGS: Resource =
    Resource::known("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false);

/// `roles` of `rbac.authorization.k8s.io/v1`.
pub const ROLES: Resource = Resource::known("rbac.authorization.k8s.io", "v1", "roles", "Role", true);

/// `rolebindings` of `rbac.authorization.k8s.io/v1`.
pub const ROLE_BINDINGS: Resource =
    Resource::known("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true);

/// `customresourcedefinitions` of `apiextensions.k8s.io/v1`.
pub const CUSTOM_RESOURCE_DEFINITIONS: Resource =
    Resource::known("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false);

/// `priorityclasses` of `scheduling.k8s.io/v1`.
pub const PRIORITY_CLASSES: Resource =
    Resource::known("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false);

/// `validatingadmissionpolicies` of `admissionregistration.k8s.io/v1`.
pub const VALIDATING_ADMISSION_POLICIES: Resource = Resource::known(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    false,
);

/// `certificatesigningrequests` of `certificates.k8s.io/v1`.
pub const CERTIFICATE_SIGNING_REQUESTS: Resource =
    Resource::known("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false);

/// `servicecidrs` of `networking.k8s.io/v1`.
pub const SERVICE_CIDRS: Resource = Resource::known("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", false);

/// `ipaddresses` of `networking.k8s.io/v1`.
pub const IP_ADDRESSES: Resource = Resource::known("networking.k8s.io", "v1", "ipaddresses", "IPAddress", false);

/// `subjectaccessreviews` of `authorization.k8s.io/v1`.
pub const SUBJECT_ACCESS_REVIEWS: Resource =
    Resource::known("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", false);
