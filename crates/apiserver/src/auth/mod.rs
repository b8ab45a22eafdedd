//! Who sends a request: client certificates, static tokens, or nobody.

mod certificate;
mod certificate_request;
pub mod impersonation;
mod issued_certificates;
mod oidc;
mod pages;
mod service_accounts;
mod tokens;

pub use certificate::{Certified, Subject, user_of_certificate};
pub use certificate_request::{check_request, request_der};
pub(crate) use issued_certificates::check_certificates;
pub use oidc::{Oidc, OidcOptions};
pub(crate) use pages::respond;
pub use service_accounts::{Bound, Claims, KeyError, ServiceAccounts};
pub use tokens::{StaticTokens, TokenFileError};

use std::collections::BTreeMap;
use std::sync::Arc;

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

    /// The server itself.
    pub(crate) fn server() -> Self {
        let groups = vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()];
        UserInfo { name: "system:apiserver".to_owned(), groups, ..UserInfo::default() }
    }

    /// The user as Go prints one: `&{NAME UID [GROUPS] map[EXTRA]}`.
    pub(crate) fn go_text(&self) -> String {
        let extra: Vec<String> =
            self.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
        format!("&{{{} {} [{}] map[{}]}}", self.name, self.uid, self.groups.join(" "), extra.join(" "))
    }

    /// Whether the user is in `group`.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// The user as one that gave credentials.
    pub fn authenticated(mut self) -> Self {
        if !self.in_group(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// All tokens that the server accepts.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The tokens of `--token-auth-file`.
    pub fixed: StaticTokens,
    /// Those of service accounts.
    pub accounts: Option<ServiceAccounts>,
    /// Those of an OpenID Connect issuer.
    pub oidc: Option<Oidc>,
    /// The audiences that the server itself is.
    pub audiences: Vec<String>,
}

/// The user of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The user.
    pub user: UserInfo,
    /// The audiences, of those asked for, that the token is good for.
    pub audiences: Vec<String>,
}

impl Tokens {
    /// The user of a token, or why there is none. `audiences` are those that somebody asks about; none for the server's.
    pub async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Found, String> {
        let wanted = if audiences.is_empty() { &self.audiences } else { audiences };
        if let Some(user) = self.fixed.find(token) {
            // A static token is good for the server only.
            let audiences = self.shared(wanted);
            if audiences.is_empty() && !wanted.is_empty() {
                return Err(INVALID.to_owned());
            }
            return Ok(Found { user, audiences });
        }
        let mut refusals = vec![INVALID.to_owned()];
        if let Some(accounts) = &self.accounts {
            match accounts.authenticate(token, wanted, &self.audiences).await {
                Some(Ok((user, audiences))) => return Ok(Found { user, audiences }),
                Some(Err(why)) => refusals.push(why),
                None => {}
            }
        }
        if let Some(oidc) = &self.oidc {
            // Boxed: what talks to the issuer is large, and would be carried through every request.
            match Box::pin(oidc.authenticate(token)).await {
                Some(Ok(user)) => return Ok(Found { user, audiences: self.shared(wanted) }),
                Some(Err(why)) => refusals.push(why),
                None => {}
            }
        }
        Err(object::field::aggregate(&refusals))
    }

    /// The audiences, of those asked for, that are the server's own: tokens without audiences are good for these.
    fn shared(&self, wanted: &[String]) -> Vec<String> {
        wanted.iter().filter(|a| self.audiences.contains(a)).cloned().collect()
    }
}

/// What upstream says of a token that nobody knows.
const INVALID: &str = "invalid bearer token";

/// Finds the user behind a request.
#[derive(Debug, Default)]
pub struct Authenticator {
    /// The tokens that are accepted.
    pub tokens: Arc<Tokens>,
    /// Whether requests without credentials are let in as `system:anonymous`.
    pub anonymous: bool,
}

impl Authenticator {
    /// The user, or nothing when credentials are wrong (or missing, and anonymous requests are off).
    ///
    /// `certified` is the user of the connection's certificate, if it has one that names a user. A certificate goes
    /// before a token, as upstream's union does.
    pub async fn authenticate(&self, certified: Option<&UserInfo>, headers: &http::HeaderMap) -> Option<UserInfo> {
        if let Some(user) = certified {
            return Some(user.clone());
        }
        match headers.get(http::header::AUTHORIZATION).map(bearer) {
            Some(Some(token)) => match self.tokens.authenticate(token, &[]).await {
                Ok(found) => Some(found.user.authenticated()),
                Err(why) => {
                    tracing::debug!(why, "a token is refused");
                    None
                }
            },
            _ => self.anonymous.then(UserInfo::anonymous),
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

    fn with_header(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
    }

    #[tokio::test]
    async fn tokens_name_users_and_wrong_ones_nobody() {
        let tokens = StaticTokens::parse("secret,alice,u1,\"dev,ops\"\n", "tokens.csv").unwrap();
        let tokens = Tokens { fixed: tokens, ..Tokens::default() };
        let authenticator = Authenticator { tokens: Arc::new(tokens), anonymous: true };
        let alice = authenticator.authenticate(None, &with_header("Bearer secret")).await.unwrap();
        assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "u1"));
        assert_eq!(alice.groups, ["dev", "ops", AUTHENTICATED]);
        assert_eq!(authenticator.authenticate(None, &with_header("Bearer wrong")).await, None);
        assert_eq!(authenticator.authenticate(None, &HeaderMap::new()).await, Some(UserInfo::anonymous()));
        assert_eq!(authenticator.authenticate(None, &with_header("Basic x")).await, Some(UserInfo::anonymous()));
    }

    #[tokio::test]
    async fn nobody_is_let_in_when_anonymous_requests_are_off() {
        assert_eq!(Authenticator::default().authenticate(None, &HeaderMap::new()).await, None);
    }
}
