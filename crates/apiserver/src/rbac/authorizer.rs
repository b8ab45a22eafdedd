//! The authoriser over the roles and bindings of a store.

use super::index::Index;
use super::rule::Rule;
use crate::auth::UserInfo;
use crate::authorize::{Answer, Attributes, Authorizer, Decision, Resolved};
use crate::registry::Stored;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use store::{ListOptions, Range, ReadError, Revision, Store, Watch};
use tokio::sync::Mutex;

/// What the keys of the four kinds start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ClusterRole,
    Role,
    ClusterRoleBinding,
    RoleBinding,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::ClusterRole, Kind::Role, Kind::ClusterRoleBinding, Kind::RoleBinding];

    /// The name in paths.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Kind::ClusterRole => "clusterroles",
            Kind::Role => "roles",
            Kind::ClusterRoleBinding => "clusterrolebindings",
            Kind::RoleBinding => "rolebindings",
        }
    }

    /// What the keys start with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Kind::ClusterRole => "/registry/clusterroles/",
            Kind::Role => "/registry/roles/",
            Kind::ClusterRoleBinding => "/registry/clusterrolebindings/",
            Kind::RoleBinding => "/registry/rolebindings/",
        }
    }

    fn is_namespaced(self) -> bool {
        matches!(self, Kind::Role | Kind::RoleBinding)
    }
}

/// Decides by the roles and bindings in a store. A change is in force as soon as its write is answered: before each
/// decision the changes are read that the store has told meanwhile.
pub struct Rbac {
    store: Arc<dyn Store>,
    index: RwLock<Index>,
    /// The store's revision up to which the index is complete.
    seen: AtomicU64,
    feed: Mutex<Vec<Feed>>,
}

/// The changes of one kind.
struct Feed {
    kind: Kind,
    watch: Watch,
}

impl Rbac {
    /// Reads the roles and bindings of a store.
    pub async fn open(store: Arc<dyn Store>) -> Result<Arc<Self>, ReadError> {
        let (index, feeds, revision) = read(&*store).await?;
        let (index, feed) = (RwLock::new(index), Mutex::new(feeds));
        Ok(Arc::new(Rbac { store, index, seen: AtomicU64::new(revision), feed }))
    }

    /// Brings the index to what the store holds now.
    async fn refresh(&self) {
        let now = self.store.revision();
        if self.seen.load(Ordering::Acquire) >= now {
            return;
        }
        let mut feeds = self.feed.lock().await;
        if !self.drain(&mut feeds) {
            // The watch fell behind what the store remembers, or the store is closed.
            match read(&*self.store).await {
                Ok((index, new, _)) => {
                    *self.index.write() = index;
                    *feeds = new;
                }
                Err(error) => {
                    tracing::error!(%error, "the roles cannot be read");
                    return;
                }
            }
        }
        self.seen.fetch_max(now, Ordering::AcqRel);
    }

    /// Takes over the changes that are there; false when they cannot be told any more.
    fn drain(&self, feeds: &mut [Feed]) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        for feed in feeds {
            loop {
                match feed.watch.poll_next(&mut context) {
                    Poll::Pending => break,
                    Poll::Ready(Err(_)) => return false,
                    Poll::Ready(Ok(batch)) => {
                        let mut index = self.index.write();
                        for event in batch.events.iter() {
                            put(&mut index, feed.kind, &event.key, event.value.as_ref());
                        }
                    }
                }
            }
        }
        true
    }
}

impl std::fmt::Debug for Rbac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rbac").finish_non_exhaustive()
    }
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> Answer<'a, Decision> {
        Box::pin(async move {
            self.refresh().await;
            self.index.read().decide(&attributes)
        })
    }

    fn rules<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> Answer<'a, Resolved> {
        Box::pin(async move {
            self.refresh().await;
            let (rules, errors) = self.index.read().rules_for(user, namespace);
            Resolved { rules, errors, incomplete: false }
        })
    }

    fn role<'a>(&'a self, namespace: &'a str, cluster_role: bool, name: &'a str) -> Answer<'a, Option<Vec<Rule>>> {
        Box::pin(async move {
            self.refresh().await;
            self.index.read().role(namespace, cluster_role, name).map(|rules| rules.to_vec())
        })
    }
}

/// Reads everything and watches what follows. Gives the revision up to which the index is complete.
async fn read(store: &dyn Store) -> Result<(Index, Vec<Feed>, Revision), ReadError> {
    let mut index = Index::default();
    let mut feeds = Vec::new();
    let mut complete = Revision::MAX;
    for kind in Kind::ALL {
        let range = Range::prefix(kind.prefix());
        loop {
            let page = store.list(&range, ListOptions::default()).await?;
            match store.watch(&range, page.revision).await {
                Ok(watch) => {
                    for entry in &page.entries {
                        put(&mut index, kind, &entry.key, Some(&entry.value));
                    }
                    complete = complete.min(page.revision);
                    feeds.push(Feed { kind, watch });
                    break;
                }
                // What was read is forgotten already; it is read again.
                Err(store::WatchError::Compacted { .. } | store::WatchError::Lagged { .. }) => {}
                Err(error) => return Err(ReadError::Unavailable(error.to_string())),
            }
        }
    }
    Ok((index, feeds, complete))
}

/// Puts an object into the index, or takes it out.
fn put(index: &mut Index, kind: Kind, key: &str, value: Option<&bytes::Bytes>) {
    let Some(place) = key.strip_prefix(kind.prefix()) else { return };
    let (namespace, name) =
        if kind.is_namespaced() { place.split_once('/').unwrap_or(("", place)) } else { ("", place) };
    let object = value.and_then(|v| Stored::read(v.clone())).map(|stored| stored.value(0));
    match (kind, object) {
        (Kind::ClusterRole | Kind::Role, Some(role)) => index.put_role(namespace, name, &role),
        (Kind::ClusterRole | Kind::Role, None) => index.remove_role(namespace, name),
        (_, Some(binding)) => index.put_binding(namespace, name, &binding),
        (_, None) => index.remove_binding(namespace, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use store::{Embedded, Expect, Options, Write};

    async fn put(store: &dyn Store, key: &str, text: &str) {
        let object = json::parse(text.as_bytes()).unwrap();
        let value = Stored::new(&object, 1).raw().clone();
        store.write(Write::put(format!("/registry/{key}"), Expect::Any, value)).await.unwrap();
    }

    async fn delete(store: &dyn Store, key: &str) {
        store.write(Write::delete(format!("/registry/{key}"), Expect::Any)).await.unwrap();
    }

    async fn may(rbac: &Rbac, name: &str, namespace: &str) -> bool {
        let user = UserInfo { name: name.to_owned(), ..UserInfo::default() };
        let attributes = Attributes {
            user: &user,
            verb: "get",
            group: "",
            version: "v1",
            resource: "pods",
            subresource: "",
            name: "p",
            namespace,
            path: "",
        };
        matches!(rbac.authorize(attributes).await, Decision::Allow(_))
    }

    const RULES: &str = r#"{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}"#;

    fn binding(role: &str, user: &str) -> String {
        format!(r#"{{"roleRef":{{"kind":"Role","name":"{role}"}},"subjects":[{{"kind":"User","name":"{user}"}}]}}"#)
    }

    #[tokio::test]
    async fn changes_are_in_force_at_once() {
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(Options::default()));
        put(&*store, "roles/a/r", RULES).await;
        let rbac = Rbac::open(store.clone()).await.unwrap();
        assert!(!may(&rbac, "u", "a").await);
        put(&*store, "rolebindings/a/b", &binding("r", "u")).await;
        assert!(may(&rbac, "u", "a").await && !may(&rbac, "u", "b").await && !may(&rbac, "v", "a").await);
        put(&*store, "rolebindings/a/b", &binding("r", "v")).await;
        assert!(!may(&rbac, "u", "a").await && may(&rbac, "v", "a").await);
        put(&*store, "roles/a/r", r#"{"rules":[]}"#).await;
        assert!(!may(&rbac, "v", "a").await);
        put(&*store, "roles/a/r", RULES).await;
        delete(&*store, "rolebindings/a/b").await;
        assert!(!may(&rbac, "v", "a").await);
    }

    #[tokio::test]
    async fn what_was_missed_is_read_again() {
        let store: Arc<dyn Store> =
            Arc::new(Embedded::in_memory(Options { history_bytes: 2000, ..Options::default() }));
        let rbac = Rbac::open(store.clone()).await.unwrap();
        put(&*store, "roles/a/r", RULES).await;
        put(&*store, "rolebindings/a/b", &binding("r", "u")).await;
        for i in 0..50 {
            put(&*store, &format!("roles/other/{i}"), RULES).await;
        }
        assert!(may(&rbac, "u", "a").await);
        delete(&*store, "rolebindings/a/b").await;
        assert!(!may(&rbac, "u", "a").await);
    }
}
