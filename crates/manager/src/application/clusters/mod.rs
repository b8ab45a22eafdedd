//! The clusters into which applications deploy: which there are, how they are reached, and whether they are.
//!
//! * [`Access`]: what a Secret says of a cluster, in the form that KubeVela's cluster-gateway gives it;
//! * [`Circuit`]: when a cluster is asked, and when it is left alone;
//! * [`Remote`]: a cluster that is asked through a circuit, so that an unreachable one delays only itself;
//! * [`Fleet`]: all of them, kept up to date;
//! * [`records`]: what trackers say of a cluster.

mod access;
mod circuit;
mod fleet;
pub mod records;
mod remote;

pub use access::{Access, Credential, former_names, names};
pub use circuit::Circuit;
pub use fleet::{Connector, Fleet, News, Site};
pub use remote::Remote;
