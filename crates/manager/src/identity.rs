//! Who does the work for a parent.

use crate::replication::Account;
use client::Client;
use object::Value;

/// The service accounts that stand in where an object names none: `spec.impersonation` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// For what is cluster-scoped.
    pub global: Option<Account>,
    /// The name of the account, in the namespace of what is namespaced.
    pub local: Option<String>,
}

impl Defaults {
    /// Reads a configuration. The global account counts only if it is whole.
    pub fn read(configuration: Option<&Value>) -> Self {
        let text = |key| {
            configuration
                .and_then(|c| c.str_at(&["spec", "impersonation", key]))
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
        };
        let (name, namespace) = (text("globalDefaultServiceAccount"), text("globalDefaultServiceAccountNamespace"));
        Defaults {
            global: name.zip(namespace).map(|(name, namespace)| Account { namespace, name }),
            local: text("tenantDefaultServiceAccount"),
        }
    }

    /// The account that works for an object in a namespace (empty: cluster-scoped); none for the manager itself.
    pub fn resolve(&self, own: Option<&Account>, namespace: &str) -> Option<Account> {
        own.cloned().or_else(|| {
            if namespace.is_empty() {
                return self.global.clone();
            }
            self.local.as_ref().map(|name| Account { namespace: namespace.to_owned(), name: name.clone() })
        })
    }
}

/// A client that acts as an account, or as itself.
pub fn acting_as(client: &Client, account: Option<&Account>) -> Client {
    let Some(account) = account else { return client.clone() };
    let namespace = format!("system:serviceaccounts:{}", account.namespace);
    client.acting_as(&account.user(), &["system:serviceaccounts", &namespace, "system:authenticated"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn an_object_without_an_account_gets_the_default() {
        let account = |namespace: &str, name: &str| Account { namespace: namespace.into(), name: name.into() };
        let text = b"spec: {impersonation: {globalDefaultServiceAccount: g, globalDefaultServiceAccountNamespace: sys, tenantDefaultServiceAccount: default}}";
        let defaults = Defaults::read(Some(&yaml::parse(text).unwrap()));
        assert_eq!(defaults.resolve(None, ""), Some(account("sys", "g")));
        assert_eq!(defaults.resolve(None, "n"), Some(account("n", "default")));
        assert_eq!(defaults.resolve(Some(&account("n", "own")), "n"), Some(account("n", "own")));
        let half =
            Defaults::read(Some(&yaml::parse(b"spec: {impersonation: {globalDefaultServiceAccount: g}}").unwrap()));
        assert_eq!((half.resolve(None, ""), half.resolve(None, "n")), (None, None));
    }
}
