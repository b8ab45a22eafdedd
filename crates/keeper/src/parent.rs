//! Who manages: the parent of an inventory, and the names under which it owns fields.

use compact_str::CompactString;
use object::Value;

/// The field manager of writes that are not content: labels and annotations of tracking on objects of others.
pub const LIFECYCLE_MANAGER: &str = "projectcapsule.dev/resource/controller";

/// The longest name of a field manager, in bytes.
pub const MANAGER_LENGTH: usize = 128;

/// The controllers that mark what they manage, each with its own value of the tracking labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// TenantResource and GlobalTenantResource.
    Replications,
    /// ResourcePermit.
    ResourcePermit,
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 2] = [Family::Replications, Family::ResourcePermit];

    /// What the label `app.kubernetes.io/managed-by` says on what the family renders, if it does.
    pub fn application(self) -> Option<&'static str> {
        match self {
            Family::Replications => None,
            Family::ResourcePermit => Some("resource-permit-controller"),
        }
    }

    /// The value of the labels `created-by`, `managed-by` and `protected-by`.
    pub fn label(self) -> &'static str {
        match self {
            Family::Replications => "replications",
            Family::ResourcePermit => "resource-permit",
        }
    }
}

/// What manages a set of targets. Everything about it that the keeper has to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// Its name within one keeper; never that of another parent, never changing. Also what drift is reported under.
    pub key: CompactString,
    /// The family whose labels its targets carry.
    pub family: Family,
    /// How its field managers are called.
    pub naming: Naming,
    /// The owner reference that objects get that it created: one of a cluster-scoped parent, without `controller`.
    pub owner_reference: Option<Value>,
    /// The user name of the service account that writes its protected targets, for the annotation of permits.
    pub service_account: Option<String>,
    /// What becomes of items of older versions, which have no stored policy: whether the object is deleted.
    pub prune_without_policy: bool,
}

/// How field managers are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// One for each namespace and tenant: `HASH/NAMESPACE/TENANT/SLOT/`.
    Replication {
        /// The parent's namespace, or `Cluster`.
        namespace: CompactString,
        /// The parent's name.
        name: CompactString,
    },
    /// One for the whole parent: `projectcapsule.dev/resource/resourcepermit/UID`.
    Permit {
        /// The parent's uid.
        uid: CompactString,
    },
}

/// What every manager of a permit begins with.
const PERMIT_PREFIX: &str = "projectcapsule.dev/resource/resourcepermit/";

impl Naming {
    /// The naming of a permit; one without uid is told apart by its namespace and name.
    pub fn permit(uid: &str, namespace: &str, name: &str) -> Self {
        let uid = if uid.is_empty() { hash(namespace, name) } else { uid.into() };
        Naming::Permit { uid }
    }

    /// The field manager for a target in `namespace` (empty for a cluster-scoped one) that was rendered for `tenant`.
    ///
    /// It does not depend on the place of the item in its parent, only on `slot`, which tells the items of one parent
    /// about the same object apart. It never exceeds [`MANAGER_LENGTH`]: what is too long is hashed.
    pub fn manager(&self, namespace: &str, tenant: &str, slot: u32) -> String {
        match self {
            Naming::Replication { namespace: parent, name } => {
                let parent = hash(parent, name);
                let manager = format!("{parent}/{namespace}/{tenant}/{slot}/");
                if manager.len() <= MANAGER_LENGTH {
                    return manager;
                }
                format!("{parent}/{}/{slot}/", hash(namespace, tenant))
            }
            Naming::Permit { uid } if slot == 0 => format!("{PERMIT_PREFIX}{uid}"),
            Naming::Permit { uid } => format!("{PERMIT_PREFIX}{uid}/{slot}"),
        }
    }
}

/// Whether a field manager is that of some permit.
pub(crate) fn is_permit_manager(manager: &str) -> bool {
    manager.starts_with(PERMIT_PREFIX)
}

/// FNV-1a (64 bits) of two texts with a NUL between, in base 36.
fn hash(first: &str, second: &str) -> CompactString {
    let bytes = first.bytes().chain([0]).chain(second.bytes());
    let mut hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mut digits = Vec::new();
    loop {
        let digit = u8::try_from(hash % 36).unwrap_or_default();
        digits.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
        hash /= 36;
        if hash == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_are_stable_short_and_told_apart() {
        let parent = |name: &str| Naming::Replication { namespace: "Cluster".into(), name: name.into() };
        let manager = parent("defaults").manager("solar-test", "solar", 0);
        assert_eq!(manager, parent("defaults").manager("solar-test", "solar", 0));
        assert!(manager.ends_with("/solar-test/solar/0/"), "{manager}");
        assert_ne!(manager, parent("other").manager("solar-test", "solar", 0));
        assert_ne!(manager, parent("defaults").manager("solar-test", "solar", 1));
        let long = "x".repeat(63);
        for (namespace, tenant) in [(long.as_str(), long.as_str()), (long.as_str(), "")] {
            let manager = parent(&long).manager(namespace, tenant, u32::MAX);
            assert!(manager.len() <= MANAGER_LENGTH, "{manager}");
        }
        assert_ne!(parent("a").manager(&long, &long, 0), parent("a").manager(&long, &"y".repeat(63), 0));
    }

    #[test]
    fn a_permit_is_told_apart_by_its_uid_or_else_by_its_name() {
        let uid = "0f1e2d3c-0000-4000-8000-000000000000";
        assert_eq!(Naming::permit(uid, "n", "a").manager("n", "", 0), format!("{PERMIT_PREFIX}{uid}"));
        let nameless = Naming::permit("", "n", "a").manager("n", "", 0);
        assert_ne!(nameless, Naming::permit("", "n", "b").manager("n", "", 0));
        assert!(is_permit_manager(&nameless));
    }

    #[test]
    fn hashes_are_fnv_1a_in_base_36() {
        // FNV-1a of one NUL is 0xaf63bd4c8601b7df.
        assert_eq!(hash("", ""), radix(0xaf63_bd4c_8601_b7df));
    }

    fn radix(mut number: u64) -> String {
        let mut text = String::new();
        while number > 0 {
            let digit = char::from_digit(u32::try_from(number % 36).unwrap_or_default(), 36).unwrap_or_default();
            text.insert(0, digit);
            number /= 36;
        }
        text
    }
}
