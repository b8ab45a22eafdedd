//! Labels, annotations and finalizers of Applications.

/// Label: the name of the application that owns an object; with [`APP_NAMESPACE`] the mark of ownership.
pub const APP_NAME: &str = "app.oam.dev/name";
/// Label: the namespace of the application that owns an object.
pub const APP_NAMESPACE: &str = "app.oam.dev/namespace";
/// Label of a tracker: the uid of its application.
pub const APP_UID: &str = "app.oam.dev/uid";
/// Label: the ApplicationRevision.
pub const APP_REVISION: &str = "app.oam.dev/appRevision";
/// Label: the component.
pub const COMPONENT: &str = "app.oam.dev/component";
/// Label: the key that a replication policy set.
pub const REPLICA_KEY: &str = "app.oam.dev/replicaKey";
/// Label: `WORKLOAD` or `TRAIT`.
pub const RESOURCE_TYPE: &str = "app.oam.dev/resourceType";
/// Label: the cluster.
pub const CLUSTER: &str = "app.oam.dev/cluster";
/// Label of a revision: the digest of what it holds.
pub const REVISION_HASH: &str = "app.oam.dev/app-revision-hash";
/// Label: the component's definition.
pub const WORKLOAD_TYPE: &str = "workload.oam.dev/type";
/// Label: the trait's definition, or `AuxiliaryWorkload`.
pub const TRAIT_TYPE: &str = "trait.oam.dev/type";
/// Label: which of a template's outputs an object is.
pub const TRAIT_RESOURCE: &str = "trait.oam.dev/resource";
/// Label: a digest of what was rendered.
pub const RENDER_HASH: &str = "oam.dev/render-hash";
/// Label of an application: `true` stops the controller.
pub const PAUSE: &str = "controller.core.oam.dev/pause";
/// Label of applications that are addons; they are applied once.
pub const ADDON: &str = "addons.oam.dev/name";

/// Annotation: what was applied last, for the three-way merge; `-` or `skip` on a rendered object keeps it from being
/// recorded.
pub const LAST_APPLIED: &str = "app.oam.dev/last-applied-configuration";
/// Annotation: when the object was made.
pub const LAST_APPLIED_TIME: &str = "app.oam.dev/last-applied-time";
/// Annotation: the applications that share an object, `NAMESPACE/NAME` with commas between.
pub const SHARED_BY: &str = "app.oam.dev/shared-by";
/// Annotation: the version that the user gave.
pub const PUBLISH_VERSION: &str = "app.oam.dev/publishVersion";
/// Annotation of an application: how often it is looked at.
pub const RECONCILE_INTERVAL: &str = "app.oam.dev/reconcile-interval";
/// Annotation of an application: the version of the controller that may handle it.
pub const VERSION_REQUIRED: &str = "app.oam.dev/controller-version-require";
/// Annotation of an application: `true` carries it out anew when its definitions change.
pub const AUTO_UPDATE: &str = "app.oam.dev/autoUpdate";
/// Annotation of a definition: the name of its revision, which then never changes.
pub const DEFINITION_REVISION: &str = "definitionrevision.oam.dev/name";
/// Annotation of an application: the service account of its namespace that writes its objects.
pub const SERVICE_ACCOUNT: &str = "app.oam.dev/service-account-name";
/// Annotation of an application: the user as whom its objects are written.
pub const USERNAME: &str = "app.oam.dev/username";
/// Annotation of an application: the groups of that user, with commas between.
pub const GROUP: &str = "app.oam.dev/group";
/// Annotation of an application: keeps policies for everybody from changing it.
pub const SKIP_GLOBAL: &str = "policy.oam.dev/skip-global";
/// Annotation of an application: what its policies change makes a revision.
pub const AUTO_REVISION: &str = "policy.oam.dev/auto-revision";
/// Annotation of an application: runs the workflow again.
pub const RESTART_WORKFLOW: &str = "app.oam.dev/restart-workflow";
/// Annotation of a tracker whose objects are gone, but whose record serves a rollback.
pub const ARCHIVED: &str = "tracker.stanchion.dev/archived";

/// Finalizer of an application: its trackers are cleaned up.
pub const FINALIZER: &str = "app.oam.dev/resource-tracker-finalizer";
/// Finalizer of an application: its objects stay when it is deleted.
pub const ORPHAN_FINALIZER: &str = "app.oam.dev/orphan-resource";
/// Finalizer of a tracker: its objects are gone, or handed on.
pub const TRACKER_FINALIZER: &str = "resourcetracker.core.oam.dev/finalizer";

/// The selector of everything that applications manage, for the watches that heal.
pub const SELECTOR: &str = "app.oam.dev/name,app.oam.dev/namespace";
