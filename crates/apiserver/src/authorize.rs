//! Who may do what: the seam between requests and an authoriser.

use crate::auth::UserInfo;
use std::future::Future;
use std::pin::Pin;

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

/// What an authoriser says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes; why may be empty.
    Allow(String),
    /// Not that it knows of; the reason may be empty.
    Deny(String),
}

/// Decides who may do what.
pub trait Authorizer: Send + Sync + 'static {
    /// Whether the request is allowed.
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;
}

/// Allows everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: Attributes<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(std::future::ready(Decision::Allow(String::new())))
    }
}
