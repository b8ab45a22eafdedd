//! Who may do what: the seam between requests and an authoriser.

use crate::auth::{MASTERS, UserInfo};
use crate::rbac::{Granted, Rule};
use object::go;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What a request wants to do, for an authoriser.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// `get`, `list`, `create`, … or, for a page, the HTTP method in small letters.
    pub verb: &'a str,
    /// The resource's group.
    pub group: &'a str,
    /// The resource's version.
    pub version: &'a str,
    /// The plural of the resource; empty for a page.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The path of a page.
    pub path: &'a str,
}

impl Attributes<'_> {
    /// Whether the request is for a page, not for a resource.
    pub fn is_page(&self) -> bool {
        self.resource.is_empty() && self.version.is_empty()
    }
}

/// Why a request is refused, as upstream words it; `reason` is what the authoriser says, perhaps nothing.
pub fn denial(attributes: &Attributes<'_>, reason: &str) -> String {
    let user = go::quote(&attributes.user.name);
    let verb = attributes.verb;
    let mut why = if attributes.is_page() {
        format!("User {user} cannot {verb} path {}", go::quote(attributes.path))
    } else {
        let mut resource = attributes.resource.to_owned();
        if !attributes.subresource.is_empty() {
            resource = format!("{resource}/{}", attributes.subresource);
        }
        let place = match attributes.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", go::quote(namespace)),
        };
        let (resource, group) = (go::quote(&resource), go::quote(attributes.group));
        format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    why
}

/// Why a request is allowed. It is put into words only for those who want to read it.
#[derive(Clone, Debug)]
pub enum Reason {
    /// As it says; perhaps nothing.
    Text(Cow<'static, str>),
    /// A role gives the right.
    Granted(Granted),
}

impl Reason {
    /// No reason.
    pub const NONE: Reason = Reason::Text(Cow::Borrowed(""));
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Text(text) => f.write_str(text),
            Reason::Granted(granted) => granted.fmt(f),
        }
    }
}

/// What an authoriser says.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Yes, and why.
    Allow(Reason),
    /// Not that it knows of; the reason may be empty.
    Deny(String),
}

/// The rules of a user, as far as an authoriser can tell them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The rules.
    pub rules: Vec<Rule>,
    /// What could not be resolved, for example roles that are bound but not there.
    pub errors: Vec<String>,
    /// Whether there may be more rights than the rules say.
    pub incomplete: bool,
}

/// What an authoriser answers, later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Decides who may do what.
pub trait Authorizer: Send + Sync + 'static {
    /// Whether the request is allowed.
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> Answer<'a, Decision>;

    /// The rules of a user in a namespace, and in the cluster.
    fn rules<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> Answer<'a, Resolved> {
        let _ = (user, namespace);
        Box::pin(std::future::ready(Resolved { incomplete: true, ..Resolved::default() }))
    }

    /// The rules of a role that a binding in a namespace (empty for a binding of the cluster) would refer to.
    fn role<'a>(&'a self, namespace: &'a str, cluster_role: bool, name: &'a str) -> Answer<'a, Option<Vec<Rule>>> {
        let _ = (namespace, cluster_role, name);
        Box::pin(std::future::ready(None))
    }
}

/// Allows everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: Attributes<'a>) -> Answer<'a, Decision> {
        Box::pin(std::future::ready(Decision::Allow(Reason::NONE)))
    }

    fn rules<'a>(&'a self, _: &'a UserInfo, _: &'a str) -> Answer<'a, Resolved> {
        Box::pin(std::future::ready(Resolved { rules: Rule::all(), ..Resolved::default() }))
    }
}

/// Allows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _: Attributes<'a>) -> Answer<'a, Decision> {
        Box::pin(std::future::ready(Decision::Deny("Everything is forbidden.".to_owned())))
    }

    fn rules<'a>(&'a self, _: &'a UserInfo, _: &'a str) -> Answer<'a, Resolved> {
        Box::pin(std::future::ready(Resolved::default()))
    }
}

/// Authorisers that are asked in turn until one allows. The group `system:masters` may do everything, whatever they say.
pub struct Union(Vec<Arc<dyn Authorizer>>);

impl Union {
    /// Asks these, in this order.
    pub fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Union(authorizers)
    }
}

impl fmt::Debug for Union {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Union({})", self.0.len())
    }
}

impl Authorizer for Union {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> Answer<'a, Decision> {
        if attributes.user.in_group(MASTERS) {
            return Box::pin(std::future::ready(Decision::Allow(Reason::NONE)));
        }
        Box::pin(async move {
            let mut reasons: Vec<String> = Vec::new();
            for authorizer in &self.0 {
                match authorizer.authorize(attributes).await {
                    Decision::Deny(reason) if reason.is_empty() => {}
                    Decision::Deny(reason) => reasons.push(reason),
                    allowed => return allowed,
                }
            }
            Decision::Deny(reasons.join("\n"))
        })
    }

    fn rules<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> Answer<'a, Resolved> {
        Box::pin(async move {
            let mut all = Resolved::default();
            for authorizer in &self.0 {
                let found = authorizer.rules(user, namespace).await;
                all.rules.extend(found.rules);
                all.errors.extend(found.errors);
                all.incomplete |= found.incomplete;
            }
            all
        })
    }

    fn role<'a>(&'a self, namespace: &'a str, cluster_role: bool, name: &'a str) -> Answer<'a, Option<Vec<Rule>>> {
        Box::pin(async move {
            for authorizer in &self.0 {
                if let Some(rules) = authorizer.role(namespace, cluster_role, name).await {
                    return Some(rules);
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a request is allowed; why not otherwise.
    fn ask(authorizer: &dyn Authorizer, user: &UserInfo) -> Result<(), String> {
        let attributes = Attributes {
            user,
            verb: "get",
            group: "",
            version: "v1",
            resource: "pods",
            subresource: "",
            name: "p",
            namespace: "a",
            path: "",
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(authorizer.authorize(attributes)) {
            Decision::Allow(_) => Ok(()),
            Decision::Deny(why) => Err(why),
        }
    }

    #[test]
    fn masters_may_whatever_the_modes_say() {
        let deny = Union::new(vec![Arc::new(AlwaysDeny)]);
        let master = UserInfo { groups: vec![MASTERS.to_owned()], ..UserInfo::default() };
        assert_eq!(ask(&deny, &master), Ok(()));
        assert_eq!(ask(&deny, &UserInfo::default()), Err("Everything is forbidden.".to_owned()));
    }

    #[test]
    fn the_first_that_allows_decides() {
        let both = Union::new(vec![Arc::new(AlwaysDeny), Arc::new(AlwaysAllow)]);
        assert_eq!(ask(&both, &UserInfo::default()), Ok(()));
    }
}
