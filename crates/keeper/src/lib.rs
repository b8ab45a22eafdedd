//! The managed-resource engine: what is declared stays as declared.
//!
//! A *parent* (a tenant's resources, a permit) declares objects. The [`Keeper`] makes the cluster so: it applies what is
//! declared by server-side apply, lets go of what no longer is, and puts back what others change, told by one
//! metadata-only watch for each kind under management.
//!
//! * [`Keeper`], [`Run`], [`Outcome`]: the engine, a run for one parent, and what came of it;
//! * [`Item`]: an entry of the inventory, recorded through the [`Journal`] before its target is written;
//! * [`Parent`], [`Naming`], [`Family`]: who declares, under which field manager and labels;
//! * [`Desired`], [`Policy`], [`Condition`]: what is declared, and what may be done for it;
//! * [`plan`], [`tracking`], [`matching`], [`managed`]: the decisions, as pure functions;
//! * [`Cluster`]: what the keeper asks of a cluster.
//!
//! ```
//! use keeper::{Naming, Policy};
//! let naming = Naming::Replication { namespace: "Cluster".into(), name: "defaults".into() };
//! assert!(naming.manager("solar-test", "solar", 0).ends_with("/solar-test/solar/0/"));
//! assert!(Policy::default().protect);
//! ```
//!
//! What always holds: a target is in the inventory before it is written, and until it is gone, so that a crash at any
//! point loses and leaks nothing; everything is applied before anything is released; an object that somebody else still
//! wants is handed over, never deleted and made again; a deletion names the uid and the version that were looked at;
//! labels alone prove nothing.
//!
//! The crate knows nothing of tenants, permits and applications, and renders nothing.

mod apply;
mod cluster;
mod fight;
mod identity;
mod index;
mod item;
mod keep;
mod keeper;
pub mod managed;
pub mod matching;
mod parent;
pub mod plan;
mod policy;
mod release;
mod resync;
mod seen;
pub mod tracking;
mod turns;
mod watch;

pub use cluster::{Answer, Cluster, Deleted, Events, FieldConflict, Scope};
pub use identity::{Identity, Kind, ObjectKey};
pub use item::{Item, State};
pub use keeper::{Condition, Desired, Drift, Extent, Journal, Keeper, Options, Outcome, Run};
pub use parent::{Family, LIFECYCLE_MANAGER, MANAGER_LENGTH, Naming, Parent};
pub use policy::{Creation, Deletion, Policy};
pub use resync::jittered;
