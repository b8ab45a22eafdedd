//! Who sends a request: client certificates, static tokens, or nobody.

pub mod impersonation;
mod tokens;

pub use tokens::{StaticTokens, TokenFileError};

use std::collections::BTreeMap;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The name of a user that gave no credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of users that gave credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of users that gave none.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// The groups of a service account in a namespace.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// The user behind a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// A name that stays when the user is renamed; often empty.
    pub uid: String,
    /// The groups, `system:authenticated` included.
    pub groups: Vec<String>,
    /// What else the authenticator knows, for example a credential's id.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// Somebody without credentials.
    pub fn anonymous() -> Self {
        UserInfo { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..UserInfo::default() }
    }

    /// Whether the user is in `group`.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    fn authenticated(mut self) -> Self {
        if !self.in_group(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// Finds the user behind a request.
#[derive(Debug, Default)]
pub struct Authenticator {
    /// The tokens of `--token-auth-file`.
    pub tokens: StaticTokens,
    /// Whether requests without credentials are let in as `system:anonymous`.
    pub anonymous: bool,
}

impl Authenticator {
    /// The user, or nothing when credentials are wrong (or missing, and anonymous requests are off).
    ///
    /// `certificate` is the client's certificate in DER form; the TLS layer has verified it against the client CA.
    /// A certificate goes before a token, as upstream's union does.
    pub fn authenticate(&self, certificate: Option<&[u8]>, headers: &http::HeaderMap) -> Option<UserInfo> {
        if let Some(user) = certificate.and_then(user_of_certificate) {
            return Some(user.authenticated());
        }
        match headers.get(http::header::AUTHORIZATION) {
            Some(value) => match bearer(value) {
                Some(token) => self.tokens.find(token).map(UserInfo::authenticated),
                None => self.anonymous.then(UserInfo::anonymous),
            },
            None => self.anonymous.then(UserInfo::anonymous),
        }
    }
}

/// The token of `Authorization: Bearer TOKEN`; other schemes and an empty token are no credentials.
fn bearer(value: &http::HeaderValue) -> Option<&str> {
    let mut words = value.to_str().ok()?.trim().split(' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The common name is the user, the organisations are the groups; a certificate without a common name is nobody.
fn user_of_certificate(der: &[u8]) -> Option<UserInfo> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    if name.is_empty() {
        return None;
    }
    let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    Some(UserInfo { name, groups, ..UserInfo::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

    fn with_header(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
    }

    #[test]
    fn tokens_name_users_and_wrong_ones_nobody() {
        let tokens = StaticTokens::parse("secret,alice,u1,\"dev,ops\"\n", "tokens.csv").unwrap();
        let authenticator = Authenticator { tokens, anonymous: true };
        let alice = authenticator.authenticate(None, &with_header("Bearer secret")).unwrap();
        assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "u1"));
        assert_eq!(alice.groups, ["dev", "ops", AUTHENTICATED]);
        assert_eq!(authenticator.authenticate(None, &with_header("Bearer wrong")), None);
        assert_eq!(authenticator.authenticate(None, &HeaderMap::new()), Some(UserInfo::anonymous()));
        assert_eq!(authenticator.authenticate(None, &with_header("Basic x")), Some(UserInfo::anonymous()));
    }

    #[test]
    fn nobody_is_let_in_when_anonymous_requests_are_off() {
        assert_eq!(Authenticator::default().authenticate(None, &HeaderMap::new()), None);
    }
}
