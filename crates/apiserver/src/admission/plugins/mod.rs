//! The admission plugins that a real server has built in, by its names. The rules that need only objects are in
//! [`kinds::admission`]; here the objects are found, and asked about in the order in which upstream asks.

mod certificates;
mod classes;
mod limits;
mod pod_security;
mod pods;
mod quota;
mod runtime_class;
mod service_account;
mod storage;

pub(crate) use quota::Charge;

use super::Phase::{self, Mutate, Validate};
use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::auth::UserInfo;
use crate::catalogue::Resource;
use crate::registry::{self, Stored};
use jiff::Timestamp;
use object::{Status, Value};
use std::sync::Arc;
use store::{ListOptions, Page, Range, ReadError};

/// A built-in plugin that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Plugin {
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    DefaultStorageClass,
    DefaultTolerationSeconds,
    LimitRanger,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    NodeRestriction,
    OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize,
    PodSecurity,
    Priority,
    ResourceQuota,
    RuntimeClass,
    ServiceAccount,
    StorageObjectInUseProtection,
    TaintNodesByCondition,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
}

/// All of them, with upstream's names.
const PLUGINS: [(Plugin, &str); 21] = [
    (Plugin::CertificateApproval, "CertificateApproval"),
    (Plugin::CertificateSigning, "CertificateSigning"),
    (Plugin::CertificateSubjectRestriction, "CertificateSubjectRestriction"),
    (Plugin::DefaultIngressClass, "DefaultIngressClass"),
    (Plugin::DefaultStorageClass, "DefaultStorageClass"),
    (Plugin::DefaultTolerationSeconds, "DefaultTolerationSeconds"),
    (Plugin::LimitRanger, "LimitRanger"),
    (Plugin::MutatingAdmissionPolicy, "MutatingAdmissionPolicy"),
    (Plugin::MutatingAdmissionWebhook, "MutatingAdmissionWebhook"),
    (Plugin::NodeRestriction, "NodeRestriction"),
    (Plugin::OwnerReferencesPermissionEnforcement, "OwnerReferencesPermissionEnforcement"),
    (Plugin::PersistentVolumeClaimResize, "PersistentVolumeClaimResize"),
    (Plugin::PodSecurity, "PodSecurity"),
    (Plugin::Priority, "Priority"),
    (Plugin::ResourceQuota, "ResourceQuota"),
    (Plugin::RuntimeClass, "RuntimeClass"),
    (Plugin::ServiceAccount, "ServiceAccount"),
    (Plugin::StorageObjectInUseProtection, "StorageObjectInUseProtection"),
    (Plugin::TaintNodesByCondition, "TaintNodesByCondition"),
    (Plugin::ValidatingAdmissionPolicy, "ValidatingAdmissionPolicy"),
    (Plugin::ValidatingAdmissionWebhook, "ValidatingAdmissionWebhook"),
];

impl Plugin {
    /// Upstream's name.
    pub fn name(self) -> &'static str {
        PLUGINS.iter().find(|(plugin, _)| *plugin == self).map_or("", |(_, name)| name)
    }
}

/// Plugins of upstream that are always on here, or have nothing to do without nodes.
const FIXED: [&str; 3] = ["ClusterTrustBundleAttest", "NamespaceLifecycle", "PodTopologyLabels"];

/// Plugins of upstream that are off by default, and not there.
const ABSENT: [&str; 13] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "PodNodeSelector",
    "PodTolerationRestriction",
    "SecurityContextDeny",
];

/// Which plugins are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plugins(u32);

impl Default for Plugins {
    /// Those that are on by default in 1.33.
    fn default() -> Self {
        let off = [Plugin::NodeRestriction, Plugin::OwnerReferencesPermissionEnforcement];
        off.into_iter().fold(Plugins((1 << PLUGINS.len()) - 1), |plugins, plugin| plugins.switched(plugin, false))
    }
}

impl Plugins {
    /// The default ones with `enabled` and without `disabled`. The error names what is unknown or not there.
    pub fn new(enabled: &[String], disabled: &[String]) -> Result<Self, String> {
        let mut plugins = Self::default();
        for (names, on) in [(enabled, true), (disabled, false)] {
            for name in names {
                match PLUGINS.iter().find(|(_, known)| known == name) {
                    Some((plugin, _)) => plugins = plugins.switched(*plugin, on),
                    None if FIXED.contains(&name.as_str()) => {
                        if !on {
                            tracing::warn!(plugin = %name, "this admission plugin cannot be switched off");
                        }
                    }
                    None if ABSENT.contains(&name.as_str()) && !on => {}
                    None => return Err(format!("there is no admission plugin {name:?}")),
                }
            }
        }
        Ok(plugins)
    }

    /// With one plugin on or off.
    pub fn switched(self, plugin: Plugin, on: bool) -> Self {
        let bit = 1 << plugin as u32;
        Plugins(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// Whether a plugin is on.
    pub fn has(self, plugin: Plugin) -> bool {
        self.0 & (1 << plugin as u32) != 0
    }
}

/// A write that plugins are asked about. Objects are in the form that is worked on.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The server.
    pub server: &'a Arc<Server>,
    /// The resource.
    pub resource: &'a Resource,
    /// The subresource; often empty.
    pub subresource: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// Who writes.
    pub user: &'a UserInfo,
    /// Whether nothing is going to be stored.
    pub dry_run: bool,
    /// The object as it is; none for a create.
    pub old: Option<&'a Value>,
    /// The time.
    pub now: Timestamp,
}

impl Asked<'_> {
    fn has(&self, plugin: Plugin) -> bool {
        self.server.options.plugins.has(plugin)
    }

    /// Does what a plugin does, and counts how long that takes.
    async fn during<T>(&self, plugin: Plugin, phase: Phase, doing: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        let operation = if self.old.is_none() { "CREATE" } else { "UPDATE" };
        self.server.metrics.admission.during(plugin.name(), operation, phase, doing).await
    }

    fn creates(&self) -> bool {
        self.old.is_none() && self.subresource.is_empty()
    }

    fn updates(&self) -> bool {
        self.old.is_some() && self.subresource.is_empty()
    }

    /// 403 for an object. One whose name is still to be generated is called by how that begins.
    fn forbid(&self, object: &Value, why: &str) -> Failure {
        let name = match (object.name(), object.meta_str("generateName")) {
            ("", "") => "Unknown",
            ("", prefix) => prefix,
            (name, _) => name,
        };
        Status::forbidden(self.resource.qualified(), name, why).into()
    }

    /// An object of a built-in kind by its key.
    async fn get(&self, key: &str) -> Outcome<Option<Value>> {
        let entry = self.server.known(key).await?;
        Ok(entry.and_then(|e| Stored::read(e.value)).map(|s| s.value(0)))
    }

    /// The objects of a built-in kind whose keys begin so, with their versions, as far as this server knows.
    fn list(&self, prefix: &str) -> Outcome<Vec<Value>> {
        objects(self.server.store.replica().list(&Range::prefix(prefix), &ListOptions::default()))
    }

    /// As [`Asked::list`], with what other servers wrote last.
    async fn newest(&self, prefix: &str) -> Outcome<Vec<Value>> {
        objects(self.server.store.list(&Range::prefix(prefix), ListOptions::default()).await)
    }
}

fn objects(page: Result<Page, ReadError>) -> Outcome<Vec<Value>> {
    let entries = page.map_err(registry::read_failure)?.entries;
    Ok(entries.into_iter().filter_map(|e| Some(Stored::read(e.value)?.value(e.mod_revision))).collect())
}

/// Completes an object that is to be written, or refuses it.
pub(crate) async fn mutate(asked: Asked<'_>, object: &mut Value) -> Outcome<()> {
    match (asked.resource.group.as_str(), asked.resource.plural.as_str()) {
        ("", "pods") => {
            asked.during(Plugin::LimitRanger, Mutate, limits::set_defaults(asked, object)).await?;
            asked.during(Plugin::ServiceAccount, Mutate, service_account::complete(asked, object)).await?;
            asked.during(Plugin::Priority, Mutate, pods::prioritise(asked, object)).await?;
            pods::tolerate(asked, object);
            asked.during(Plugin::RuntimeClass, Mutate, runtime_class::complete(asked, object)).await
        }
        ("", "nodes") => {
            pods::taint(asked, object);
            Ok(())
        }
        ("", "persistentvolumes") => {
            storage::protect(asked, object, "kubernetes.io/pv-protection");
            Ok(())
        }
        ("", "persistentvolumeclaims") => {
            asked.during(Plugin::DefaultStorageClass, Mutate, classes::default_storage(asked, object)).await?;
            storage::protect(asked, object, "kubernetes.io/pvc-protection");
            Ok(())
        }
        ("networking.k8s.io", "ingresses") => {
            asked.during(Plugin::DefaultIngressClass, Mutate, classes::default_ingress(asked, object)).await
        }
        _ => Ok(()),
    }
}

/// Refuses what must not be written as it is then; gives warnings.
pub(crate) async fn validate(asked: Asked<'_>, object: &Value, warnings: &mut Vec<String>) -> Outcome<()> {
    match (asked.resource.group.as_str(), asked.resource.plural.as_str()) {
        ("", "pods") => {
            asked.during(Plugin::LimitRanger, Validate, limits::check(asked, object)).await?;
            asked.during(Plugin::ServiceAccount, Validate, service_account::check(asked, object)).await?;
            asked.during(Plugin::PodSecurity, Validate, pod_security::check_pod(asked, object, warnings)).await
        }
        ("", "persistentvolumeclaims") => {
            asked.during(Plugin::LimitRanger, Validate, limits::check(asked, object)).await?;
            asked.during(Plugin::PersistentVolumeClaimResize, Validate, storage::check_resize(asked, object)).await
        }
        ("", "namespaces") => {
            asked.during(Plugin::PodSecurity, Validate, pod_security::check_namespace(asked, object, warnings)).await
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            asked.during(Plugin::Priority, Validate, pods::check_class(asked, object)).await
        }
        ("certificates.k8s.io", "certificatesigningrequests") => certificates::check(asked, object).await,
        ("" | "apps" | "batch", _) => pod_security::check_template(asked, object, warnings).await,
        _ => Ok(()),
    }
}

/// Charges quotas for what is about to be written: the last question of all.
pub(crate) async fn charge(asked: Asked<'_>, object: &Value) -> Outcome<Charge> {
    asked.during(Plugin::ResourceQuota, Validate, quota::charge(asked, object)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_switched_by_name() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert!(Plugins::default().has(Plugin::ServiceAccount));
        assert!(!Plugins::default().has(Plugin::NodeRestriction));
        let plugins = Plugins::new(&names(&["NodeRestriction"]), &names(&["ServiceAccount", "LimitRanger"])).unwrap();
        assert!(plugins.has(Plugin::NodeRestriction));
        assert!(!plugins.has(Plugin::ServiceAccount) && !plugins.has(Plugin::LimitRanger));
        assert!(plugins.has(Plugin::ResourceQuota) && plugins.has(Plugin::TaintNodesByCondition));
        assert!(Plugins::new(&[], &names(&["NamespaceLifecycle", "AlwaysPullImages"])).is_ok());
        assert!(Plugins::new(&names(&["AlwaysPullImages"]), &[]).is_err());
        assert!(Plugins::new(&names(&["Nonsense"]), &[]).unwrap_err().contains("\"Nonsense\""));
    }
}
