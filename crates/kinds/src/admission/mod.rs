//! The rules of a real server's admission plugins, as pure functions over objects in the stored form. Who calls them
//! brings the other objects that they look at: limit ranges, quotas, accounts, classes, namespaces.

pub mod additions;
pub mod limits;
pub mod pod_security;
pub mod quota;
mod quota_usage;
pub mod service_account;
mod totals;
