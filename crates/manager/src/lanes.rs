//! Whose work waits for whose. Of one tenant only so much is worked on at a time, however much it declares, however slow or
//! wrong that is: the other workers are there for the others.

use crate::tenancy::TENANT_LABEL;
use client::{Cache, Lane, Queue};
use std::sync::Arc;

/// Workers of each controller of what people declare.
pub(crate) const WORKERS: usize = 16;
/// How many of them work for one tenant, or for one namespace that belongs to none.
const OF_A_TENANT: usize = 2;
/// How many work for what is declared in no namespace, which only administrators do.
const OF_THE_CLUSTER: usize = 6;

/// A queue of what people declare, by `NAMESPACE/NAME` or `NAME`. The namespaces may hold the queue.
pub(crate) fn queue(namespaces: &Arc<Cache>) -> Queue {
    let namespaces = Arc::downgrade(namespaces);
    Queue::fair(move |key: &String| {
        lane(key, |namespace| namespaces.upgrade()?.get("", namespace)?.label(TENANT_LABEL).map(str::to_owned))
    })
}

fn lane(key: &str, tenant_of: impl Fn(&str) -> Option<String>) -> Lane {
    let Some((namespace, _)) = key.split_once('/') else {
        return Lane { name: Arc::default(), width: OF_THE_CLUSTER };
    };
    let name = match tenant_of(namespace) {
        Some(tenant) => format!("tenant/{tenant}"),
        None => format!("namespace/{namespace}"),
    };
    Lane { name: name.into(), width: OF_A_TENANT }
}

/// Does what only computes, and perhaps for seconds: where other work waits for the same thread, that goes on elsewhere.
pub(crate) fn compute<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_tenant_is_in_one_lane() {
        let tenant_of = |namespace: &str| namespace.strip_suffix("-of-a").map(|_| "a".to_owned());
        let keys = ["1-of-a/x", "2-of-a/y", "own/x", "own/y", "x", "y"];
        let names = keys.map(|key| lane(key, tenant_of).name.to_string());
        assert_eq!(names, ["tenant/a", "tenant/a", "namespace/own", "namespace/own", "", ""]);
    }
}
