//! Acting as somebody else: the `Impersonate-…` headers.

use super::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, UserInfo};
use crate::answer::Failure;
use crate::authorize::{Attributes, Authorizer, Decision};
use http::{HeaderMap, HeaderValue};
use object::Status;
use object::status::Qualified;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
/// The prefix of the names of service accounts' users.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Something that a request wants to be.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    /// The kind, as upstream names it in messages.
    kind: &'static str,
    group: &'static str,
    resource: &'static str,
    /// The key of an extra.
    key: String,
    namespace: String,
    name: String,
}

/// The user that a request acts as: the one who sends it, unless its headers name another and the sender may be that
/// one. `uri` is the request's target, for messages.
pub async fn user(
    authorizer: &dyn Authorizer,
    sender: UserInfo,
    headers: &HeaderMap,
    uri: &str,
) -> Result<UserInfo, Failure> {
    let wishes = wishes(headers);
    if wishes.is_empty() {
        return Ok(sender);
    }
    if headers.get(USER).and_then(text).is_none_or(|name| name.is_empty()) {
        return Err(without_user(&wishes, uri));
    }
    for wish in &wishes {
        allow(authorizer, &sender, wish).await?;
    }
    Ok(become_user(wishes, headers.contains_key(GROUP)))
}

fn text(value: &HeaderValue) -> Option<String> {
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// What the headers ask for, in the order in which it is checked.
fn wishes(headers: &HeaderMap) -> Vec<Wish> {
    let mut out = Vec::new();
    let wish = |kind, resource, name: String| Wish {
        kind,
        group: "",
        resource,
        key: String::new(),
        namespace: String::new(),
        name,
    };
    let name = headers.get(USER).and_then(text).unwrap_or_default();
    if !name.is_empty() {
        out.push(match account(&name) {
            Some((namespace, name)) => {
                Wish { namespace: namespace.to_owned(), ..wish("ServiceAccount", "serviceaccounts", name.to_owned()) }
            }
            None => wish("User", "users", name),
        });
    }
    out.extend(headers.get_all(GROUP).iter().filter_map(text).map(|group| wish("Group", "groups", group)));
    let mut extras: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode_str(key).decode_utf8().map_or(key.to_owned(), |k| k.into_owned());
            extras.push((key, text(value).unwrap_or_default()));
        }
    }
    let authentication = "authentication.k8s.io";
    out.extend(extras.into_iter().map(|(key, value)| Wish {
        group: authentication,
        key,
        ..wish("UserExtra", "userextras", value)
    }));
    let uid = headers.get(UID).and_then(text).unwrap_or_default();
    if !uid.is_empty() {
        out.push(Wish { group: authentication, ..wish("UID", "uids", uid) });
    }
    out
}

/// The namespace and name in a service account's user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let valid = object::names::dns1123_label(namespace).is_empty() && object::names::dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

/// Upstream answers with an internal error, as plain text.
fn without_user(wishes: &[Wish], uri: &str) -> Failure {
    let shown: Vec<String> = wishes
        .iter()
        .map(|w| {
            let version = if w.group.is_empty() { String::new() } else { format!("{}/v1", w.group) };
            format!("{{{} {} {}  {version}  {}}}", w.kind, w.namespace, w.name, w.key)
        })
        .collect();
    let uri = object::go::quote(uri);
    let why = format!("Internal Server Error: {uri}: requested [{}] without impersonating a user\n", shown.join(" "));
    Failure::Text(500, why.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

async fn allow(authorizer: &dyn Authorizer, sender: &UserInfo, wish: &Wish) -> Result<(), Failure> {
    let attributes = Attributes {
        user: sender,
        verb: "impersonate",
        group: wish.group,
        version: "v1",
        resource: wish.resource,
        subresource: &wish.key,
        name: &wish.name,
        namespace: &wish.namespace,
        path: "",
    };
    match authorizer.authorize(attributes).await {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) => {
            let why = crate::authorize::denial(&attributes, &reason);
            let resource = Qualified { group: wish.group, name: wish.resource };
            Err(Status::forbidden(resource, &wish.name, &why).into())
        }
    }
}

/// The user that the wishes make.
fn become_user(wishes: Vec<Wish>, groups_given: bool) -> UserInfo {
    let mut user = UserInfo::default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for wish in wishes {
        match wish.kind {
            "ServiceAccount" => {
                user.name = format!("{SERVICE_ACCOUNT}{}:{}", wish.namespace, wish.name);
                if !groups_given {
                    user.groups = super::service_account_groups(&wish.namespace);
                }
            }
            "User" => user.name = wish.name,
            "Group" => user.groups.push(wish.name),
            "UserExtra" => extra.entry(wish.key).or_default().push(wish.name),
            _ => user.uid = wish.name,
        }
    }
    user.extra = extra;
    let implied = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    let given = user.in_group(UNAUTHENTICATED) || implied == AUTHENTICATED && user.in_group(AUTHENTICATED);
    if !given {
        user.groups.push(implied.to_owned());
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::{AlwaysAllow, AlwaysDeny};
    use http::HeaderName;

    fn act(authorizer: &dyn Authorizer, headers: &[(&str, &str)]) -> Result<UserInfo, Failure> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let sender = UserInfo { name: "root".to_owned(), ..UserInfo::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(user(authorizer, sender, &map, "/api?a=<b>"))
    }

    #[test]
    fn users_become_others_with_the_groups_that_go_with_them() {
        for (headers, name, groups) in [
            (vec![], "root", vec![]),
            (vec![("Impersonate-User", "a")], "a", vec![AUTHENTICATED]),
            (vec![("Impersonate-User", "a"), ("Impersonate-Group", "g")], "a", vec!["g", AUTHENTICATED]),
            (vec![("Impersonate-User", "a"), ("Impersonate-Group", AUTHENTICATED)], "a", vec![AUTHENTICATED]),
            (vec![("Impersonate-User", ANONYMOUS)], ANONYMOUS, vec![UNAUTHENTICATED]),
            (
                vec![("Impersonate-User", "system:serviceaccount:n:s")],
                "system:serviceaccount:n:s",
                vec!["system:serviceaccounts", "system:serviceaccounts:n", AUTHENTICATED],
            ),
        ] {
            let user = act(&AlwaysAllow, &headers).unwrap();
            assert_eq!((user.name.as_str(), user.groups), (name, groups.into_iter().map(str::to_owned).collect()));
        }
    }

    #[test]
    fn a_group_without_a_user_is_an_internal_error() {
        let Err(Failure::Text(500, text)) = act(&AlwaysAllow, &[("Impersonate-Group", "g")]) else { panic!() };
        let wanted =
            "Internal Server Error: \"/api?a=&lt;b&gt;\": requested [{Group  g    }] without impersonating a user\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn who_may_not_is_told_what() {
        let headers = [("Impersonate-User", "a"), ("Impersonate-Extra-x%2fy", "v")];
        let Err(Failure::Status(status)) = act(&AlwaysDeny, &headers) else { panic!() };
        assert_eq!(
            status.message,
            "users \"a\" is forbidden: User \"root\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope: Everything is forbidden."
        );
        let user = act(&AlwaysAllow, &headers).unwrap();
        assert_eq!(user.extra.get("x/y").unwrap(), &["v"]);
    }
}
