//! Tokens of service accounts: signed by the server, bound to objects, good for a time.

use super::{UserInfo, service_account_groups};
use crate::registry::Stored;
use crate::server::Clock;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use object::{Map, Value, json, map};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use std::collections::HashMap;
use std::sync::Arc;
use store::Store;

/// Who tokens of Secrets are from.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// How much clocks may differ, in seconds (upstream's).
const LEEWAY: i64 = 60;
/// How many tokens are remembered whose signature was found good.
const REMEMBERED: usize = 4096;
/// What a P-256 key starts with in its DER form.
const KEY_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Signs and checks the tokens of a store's service accounts.
pub struct ServiceAccounts {
    store: Arc<dyn Store>,
    clock: Clock,
    issuer: String,
    key: EcdsaKeyPair,
    key_id: String,
    random: SystemRandom,
    /// The claims of tokens whose signature is good, by the digest of the token.
    good: Mutex<HashMap<[u8; 32], Arc<Value>>>,
}

/// A key that cannot be used or made.
#[derive(Debug, thiserror::Error)]
#[error("the key for service account tokens cannot be used: {0}")]
pub struct KeyError(String);

/// An object that a token lives and dies with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The namespace of the account.
    pub namespace: String,
    /// The account.
    pub account: Bound,
    /// For whom the token is.
    pub audiences: Vec<String>,
    /// How long it is good, in seconds.
    pub seconds: i64,
    /// The pod that it is bound to.
    pub pod: Option<Bound>,
    /// The secret that it is bound to.
    pub secret: Option<Bound>,
    /// The node that it is bound to, or that its pod is on.
    pub node: Option<Bound>,
    /// The token's own id.
    pub id: String,
}

impl ServiceAccounts {
    /// A new key, in PKCS #8 form.
    pub fn new_key() -> Result<Vec<u8>, KeyError> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        made.map(|key| key.as_ref().to_vec()).map_err(|e| KeyError(e.to_string()))
    }

    /// Signs with a key in PKCS #8 form, as `issuer`.
    pub fn new(store: Arc<dyn Store>, clock: Clock, issuer: &str, key: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random)
            .map_err(|e| KeyError(e.to_string()))?;
        let mut der = KEY_HEAD.to_vec();
        der.extend_from_slice(key.public_key().as_ref());
        let key_id = BASE64.encode(digest(&SHA256, &der));
        Ok(ServiceAccounts { store, clock, issuer: issuer.to_owned(), key, key_id, random, good: Mutex::default() })
    }

    /// Signs a token.
    pub fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let now = (self.clock)().as_second();
        let bound = |b: &Bound| map! { "name" => b.name.as_str(), "uid" => b.uid.as_str() };
        let mut own = map! { "namespace" => claims.namespace.as_str(), "serviceaccount" => bound(&claims.account) };
        for (key, object) in [("pod", &claims.pod), ("secret", &claims.secret), ("node", &claims.node)] {
            if let Some(object) = object {
                own.insert(key, bound(object));
            }
        }
        let audiences = claims.audiences.iter().map(|a| Value::from(a.as_str())).collect();
        let body = Value::Object(map! {
            "aud" => Value::Array(audiences),
            "exp" => now.saturating_add(claims.seconds),
            "iat" => now,
            "iss" => self.issuer.as_str(),
            "jti" => claims.id.as_str(),
            "kubernetes.io" => own,
            "nbf" => now,
            "sub" => format!("system:serviceaccount:{}:{}", claims.namespace, claims.account.name),
        });
        self.seal(&body)
    }

    /// Signs the token of a Secret that holds the token of an account; it is good as long as both are there.
    pub fn sign_legacy(&self, namespace: &str, account: &Bound, secret: &str) -> Result<String, KeyError> {
        self.seal(&Value::Object(map! {
            "iss" => LEGACY_ISSUER,
            "kubernetes.io/serviceaccount/namespace" => namespace,
            "kubernetes.io/serviceaccount/secret.name" => secret,
            "kubernetes.io/serviceaccount/service-account.name" => account.name.as_str(),
            "kubernetes.io/serviceaccount/service-account.uid" => account.uid.as_str(),
            "sub" => format!("system:serviceaccount:{namespace}:{}", account.name),
        }))
    }

    /// A signed token with these claims.
    fn seal(&self, body: &Value) -> Result<String, KeyError> {
        let head = Value::Object(map! { "alg" => "ES256", "kid" => self.key_id.as_str() });
        let encode = |value: &Value| BASE64.encode(json::to_string(value));
        let text = format!("{}.{}", encode(&head), encode(body));
        let signature = self.key.sign(&self.random, text.as_bytes()).map_err(|e| KeyError(e.to_string()))?;
        Ok(format!("{text}.{}", BASE64.encode(signature)))
    }

    /// The user of a token and the audiences that it is for; nothing if the token is not of this issuer, an error if it
    /// is and is not good (any more). `wanted` are the audiences that somebody asks about, `own` those of the server, for
    /// which a token is that names none.
    pub async fn authenticate(
        &self,
        token: &str,
        wanted: &[String],
        own: &[String],
    ) -> Option<Result<(UserInfo, Vec<String>), String>> {
        let claims = match self.read(token)? {
            Ok(claims) => claims,
            Err(error) => return Some(Err(error)),
        };
        if claims.str_at(&["iss"]) == Some(LEGACY_ISSUER) {
            return Some(self.judge_legacy(&claims, token, wanted, own).await);
        }
        Some(self.judge(&claims, wanted).await)
    }

    /// The claims of a token that this server signed.
    fn read(&self, token: &str) -> Option<Result<Arc<Value>, String>> {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(claims) = self.good.lock().get(&key) {
            return Some(Ok(claims.clone()));
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (head, body) = text.split_once('.')?;
        let decode = |part: &str| json::parse(&BASE64.decode(part).ok()?).ok();
        let claims = decode(body)?;
        if claims.str_at(&["iss"]).is_none_or(|iss| iss != self.issuer && iss != LEGACY_ISSUER) {
            return None;
        }
        let bad = || Some(Err("failed to verify signature".to_owned()));
        if decode(head).is_none_or(|head| head.str_at(&["alg"]) != Some("ES256")) {
            return bad();
        }
        let Ok(signature) = BASE64.decode(signature) else { return bad() };
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        if public.verify(text.as_bytes(), &signature).is_err() {
            return bad();
        }
        let claims = Arc::new(claims);
        let mut good = self.good.lock();
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(key, claims.clone());
        Some(Ok(claims))
    }

    /// Whether claims hold now: the time, the audience, and that all they are bound to is there.
    async fn judge(&self, claims: &Value, wanted: &[String]) -> Result<(UserInfo, Vec<String>), String> {
        let own: Vec<&str> = match claims.get("aud") {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => Vec::new(),
        };
        let shared = shared_audiences(&own, wanted)?;
        let now = (self.clock)().as_second();
        let time = |key: &str| claims.get(key).and_then(Value::as_int);
        if time("exp").is_none_or(|end| now - LEEWAY > end) {
            return Err("service account token has expired".to_owned());
        }
        if time("nbf").is_some_and(|start| now + LEEWAY < start) {
            return Err("service account token is not valid yet".to_owned());
        }
        let text = |path: &[&str]| claims.str_at(path).unwrap_or_default().to_owned();
        let namespace = text(&["kubernetes.io", "namespace"]);
        let of = |kind: &str| {
            claims.at(&["kubernetes.io", kind])?;
            let part = |key: &str| text(&["kubernetes.io", kind, key]);
            Some(Bound { name: part("name"), uid: part("uid") })
        };
        let account = of("serviceaccount").ok_or("service account token has no account")?;
        match self.find("serviceaccounts", &namespace, &account.name).await {
            None => return Err(format!("serviceaccounts {} not found", object::go::quote(&account.name))),
            Some(uid) if uid != account.uid => {
                return Err(format!("service account UID ({uid}) does not match claim ({})", account.uid));
            }
            Some(_) => {}
        }
        for (kind, plural, place, word) in [
            ("secret", "secrets", namespace.as_str(), "secret"),
            ("pod", "pods", namespace.as_str(), "pod"),
            ("node", "nodes", "", "node"),
        ] {
            let Some(bound) = of(kind) else { continue };
            // A pod's token says on which node the pod is; it does not end with that node.
            if kind == "node" && of("pod").is_some() {
                continue;
            }
            match self.find(plural, place, &bound.name).await {
                None => return Err("service account token has been invalidated".to_owned()),
                Some(uid) if uid != bound.uid => {
                    let claim = &bound.uid;
                    return Err(format!(
                        "{word} UID ({uid}) does not match service account {word} ref claim ({claim})"
                    ));
                }
                Some(_) => {}
            }
        }
        let mut user = UserInfo {
            name: format!("system:serviceaccount:{namespace}:{}", account.name),
            uid: account.uid,
            groups: service_account_groups(&namespace),
            ..UserInfo::default()
        };
        let mut extra = |key: &str, value: String| {
            user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        };
        for (kind, bound) in [("pod", of("pod")), ("node", of("node"))] {
            if let Some(bound) = bound {
                extra(&format!("{kind}-name"), bound.name);
                extra(&format!("{kind}-uid"), bound.uid);
            }
        }
        let id = text(&["jti"]);
        if !id.is_empty() {
            extra("credential-id", format!("JTI={id}"));
        }
        Ok((user, shared))
    }

    /// Whether the token of a Secret holds: the Secret has it, and the account is there.
    async fn judge_legacy(
        &self,
        claims: &Value,
        token: &str,
        wanted: &[String],
        own: &[String],
    ) -> Result<(UserInfo, Vec<String>), String> {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let shared = shared_audiences(&own, wanted)?;
        let claim = |key: &str| {
            let text = claims.str_at(&[&format!("kubernetes.io/serviceaccount/{key}")]).unwrap_or_default();
            if text.is_empty() { Err(format!("{key} claim is missing")) } else { Ok(text) }
        };
        let (namespace, secret) = (claim("namespace")?, claim("secret.name")?);
        let (name, uid) = (claim("service-account.name")?, claim("service-account.uid")?);
        let key = format!("/registry/secrets/{namespace}/{secret}");
        let entry = self.store.get(&key, None).await.ok().flatten();
        let held = entry.and_then(|e| Stored::read(e.value)).map(|stored| stored.value(0));
        let held = held.filter(|secret| secret.meta_str("deletionTimestamp").is_empty());
        let held = held.ok_or("service account token has been invalidated")?;
        let text = held.str_at(&["data", "token"]).unwrap_or_default();
        if base64::engine::general_purpose::STANDARD.decode(text).is_ok_and(|held| held != token.as_bytes()) {
            return Err("service account token does not match server's copy".to_owned());
        }
        match self.find("serviceaccounts", namespace, name).await {
            None => return Err(format!("serviceaccounts {} not found", object::go::quote(name))),
            Some(own) if own != uid => return Err(format!("service account UID ({own}) does not match claim ({uid})")),
            Some(_) => {}
        }
        let user = UserInfo {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: service_account_groups(namespace),
            ..UserInfo::default()
        };
        Ok((user, shared))
    }

    /// The uid of an object that is there and has not been going away for longer than clocks may differ.
    async fn find(&self, plural: &str, namespace: &str, name: &str) -> Option<String> {
        let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let entry = self.store.get(&format!("/registry/{plural}/{place}{name}"), None).await.ok()??;
        let meta = Stored::read(entry.value)?.metadata();
        let deleted = meta.get("deletionTimestamp").and_then(Value::as_str);
        if let Some(deleted) = deleted.and_then(|t| t.parse::<jiff::Timestamp>().ok())
            && (self.clock)().as_second() - LEEWAY > deleted.as_second()
        {
            return None;
        }
        meta.get("uid").and_then(Value::as_str).map(str::to_owned)
    }

    /// `/openid/v1/jwks`: the key that others check tokens with.
    pub fn key_set(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let half = |from: usize| BASE64.encode(point.get(from..from + 32).unwrap_or_default());
        let key = Value::Object(map! {
            "use" => "sig", "kty" => "EC", "kid" => self.key_id.as_str(), "crv" => "P-256", "alg" => "ES256",
            "x" => half(1), "y" => half(33),
        });
        Value::Object(map! { "keys" => Value::Array(vec![key]) })
    }

    /// `/.well-known/openid-configuration`; `address` is where clients reach the server.
    pub fn discovery(&self, address: &str) -> Value {
        let one = |text: &str| Value::Array(vec![Value::from(text)]);
        let mut out = Map::new();
        out.insert("issuer", self.issuer.as_str());
        out.insert("jwks_uri", format!("https://{address}/openid/v1/jwks"));
        out.insert("response_types_supported", one("id_token"));
        out.insert("subject_types_supported", one("public"));
        out.insert("id_token_signing_alg_values_supported", one("ES256"));
        Value::Object(out)
    }
}

/// The audiences of a token that somebody asks about; an error if there are none.
fn shared_audiences(own: &[&str], wanted: &[String]) -> Result<Vec<String>, String> {
    let shared: Vec<String> = own.iter().filter(|a| wanted.iter().any(|w| w == *a)).map(|a| (*a).to_owned()).collect();
    if shared.is_empty() {
        let list = |items: &[&str]| items.iter().map(|a| object::go::quote(a)).collect::<Vec<_>>().join(" ");
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        return Err(format!("token audiences [{}] is invalid for the target audiences [{}]", list(own), list(&wanted)));
    }
    Ok(shared)
}

impl std::fmt::Debug for ServiceAccounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccounts").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use store::{Embedded, Expect, Options, Write};

    const ISSUER: &str = "https://kubernetes.default.svc";

    struct Fixture {
        accounts: ServiceAccounts,
        store: Arc<dyn Store>,
        time: Arc<AtomicI64>,
    }

    async fn fixture() -> Fixture {
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(Options::default()));
        put(&store, "serviceaccounts/n/s", "u1").await;
        put(&store, "pods/n/p", "u2").await;
        let time = Arc::new(AtomicI64::new(1000));
        let told = time.clone();
        let clock: Clock =
            Arc::new(move || jiff::Timestamp::from_second(told.load(Ordering::Relaxed)).unwrap_or_default());
        let key = ServiceAccounts::new_key().unwrap();
        let accounts = ServiceAccounts::new(store.clone(), clock, ISSUER, &key).unwrap();
        Fixture { accounts, store, time }
    }

    async fn put(store: &Arc<dyn Store>, place: &str, uid: &str) {
        let object = json::parse(format!(r#"{{"metadata":{{"uid":"{uid}"}}}}"#).as_bytes()).unwrap();
        let value = Stored::new(&object, 1).raw().clone();
        store.write(Write::put(format!("/registry/{place}"), Expect::Any, value)).await.unwrap();
    }

    fn claims() -> Claims {
        let bound = |name: &str, uid: &str| Bound { name: name.to_owned(), uid: uid.to_owned() };
        Claims {
            namespace: "n".to_owned(),
            account: bound("s", "u1"),
            audiences: vec!["a".to_owned(), "b".to_owned()],
            seconds: 600,
            pod: Some(bound("p", "u2")),
            secret: None,
            node: None,
            id: "j".to_owned(),
        }
    }

    async fn ask(fixture: &Fixture, token: &str) -> Option<Result<(UserInfo, Vec<String>), String>> {
        fixture.accounts.authenticate(token, &["b".to_owned(), "c".to_owned()], &["b".to_owned()]).await
    }

    #[tokio::test]
    async fn a_token_names_its_account() {
        let f = fixture().await;
        let token = f.accounts.sign(&claims()).unwrap();
        let (user, audiences) = ask(&f, &token).await.unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:s", "u1"));
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:n"]);
        assert_eq!(user.extra.get("authentication.kubernetes.io/pod-name").unwrap(), &["p"]);
        assert_eq!(user.extra.get("authentication.kubernetes.io/credential-id").unwrap(), &["JTI=j"]);
        assert_eq!(audiences, ["b"]);
    }

    #[tokio::test]
    async fn forged_tokens_are_refused() {
        let f = fixture().await;
        let token = f.accounts.sign(&claims()).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let other = fixture().await.accounts.sign(&claims()).unwrap();
        let unsigned = BASE64.encode(r#"{"alg":"none"}"#);
        let changed = BASE64.encode(
            json::to_string(&json::parse(&BASE64.decode(parts[1]).unwrap()).unwrap()).replace("\"s\"", "\"t\""),
        );
        for forged in [
            other,
            format!("{}.{}.", parts[0], parts[1]),
            format!("{unsigned}.{}.", parts[1]),
            format!("{}.{changed}.{}", parts[0], parts[2]),
        ] {
            assert_eq!(ask(&f, &forged).await, Some(Err("failed to verify signature".to_owned())), "{forged}");
        }
        for none in ["", "x", "a.b", "a.b.c", "..", &format!("{}.{}.x", parts[0], BASE64.encode("{\"iss\":\"me\"}"))] {
            assert_eq!(ask(&f, none).await, None, "{none}");
        }
    }

    #[tokio::test]
    async fn tokens_end() {
        let f = fixture().await;
        let token = f.accounts.sign(&claims()).unwrap();
        f.time.store(1000 + 600 + LEEWAY, Ordering::Relaxed);
        assert!(ask(&f, &token).await.unwrap().is_ok());
        f.time.store(1000 + 601 + LEEWAY, Ordering::Relaxed);
        assert_eq!(ask(&f, &token).await, Some(Err("service account token has expired".to_owned())));
        f.time.store(900, Ordering::Relaxed);
        assert_eq!(ask(&f, &token).await, Some(Err("service account token is not valid yet".to_owned())));
    }

    #[tokio::test]
    async fn tokens_die_with_what_they_are_bound_to() {
        let f = fixture().await;
        let token = f.accounts.sign(&claims()).unwrap();
        put(&f.store, "pods/n/p", "u3").await;
        let why = "pod UID (u3) does not match service account pod ref claim (u2)";
        assert_eq!(ask(&f, &token).await, Some(Err(why.to_owned())));
        f.store.write(Write::delete("/registry/pods/n/p", Expect::Any)).await.unwrap();
        assert_eq!(ask(&f, &token).await, Some(Err("service account token has been invalidated".to_owned())));
        put(&f.store, "serviceaccounts/n/s", "u9").await;
        let why = "service account UID (u9) does not match claim (u1)";
        assert_eq!(ask(&f, &token).await, Some(Err(why.to_owned())));
    }

    #[tokio::test]
    async fn tokens_of_secrets_live_in_their_secret() {
        let f = fixture().await;
        let account = Bound { name: "s".to_owned(), uid: "u1".to_owned() };
        let token = f.accounts.sign_legacy("n", &account, "key").unwrap();
        assert_eq!(ask(&f, &token).await, Some(Err("service account token has been invalidated".to_owned())));
        let secret = map! { "data" => map! { "token" => base64::engine::general_purpose::STANDARD.encode(&token) } };
        let value = Stored::new(&Value::Object(secret), 1).raw().clone();
        f.store.write(Write::put("/registry/secrets/n/key", Expect::Any, value)).await.unwrap();
        let (user, audiences) = ask(&f, &token).await.unwrap().unwrap();
        assert_eq!((user.name.as_str(), audiences[0].as_str()), ("system:serviceaccount:n:s", "b"));
        put(&f.store, "serviceaccounts/n/s", "u9").await;
        let why = "service account UID (u9) does not match claim (u1)";
        assert_eq!(ask(&f, &token).await, Some(Err(why.to_owned())));
    }

    #[tokio::test]
    async fn other_audiences_are_refused() {
        let f = fixture().await;
        let token = f.accounts.sign(&claims()).unwrap();
        let why = "token audiences [\"a\" \"b\"] is invalid for the target audiences [\"x\"]";
        assert_eq!(f.accounts.authenticate(&token, &["x".to_owned()], &[]).await, Some(Err(why.to_owned())));
    }
}
