//! Tokens of an OpenID Connect issuer (`--oidc-…`).
//!
//! The issuer's keys are read when a token asks for one that is not known, and kept. A token counts only if its issuer,
//! its audience, its times and its signature are good.

use super::UserInfo;
use crate::server::Clock;
use crate::webhooks::WebhookClient;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use object::{Value, go, json};
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How much earlier than `nbf` a token may come, in seconds (upstream's).
const LEEWAY: i64 = 300;
/// How long the issuer may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often keys are read again at most, in seconds.
const PAUSE: i64 = 10;

/// What tokens have to be, and how users are made of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OidcOptions {
    /// Who the tokens are from: an https URL.
    pub issuer: String,
    /// For whom they have to be.
    pub client_id: String,
    /// The claim that names the user; `sub` where it is empty.
    pub username_claim: String,
    /// What goes before it: the issuer and `#` where it is empty and the claim is not `email`, nothing for `-`.
    pub username_prefix: String,
    /// The claim with the groups; none where it is empty.
    pub groups_claim: String,
    /// What goes before each.
    pub groups_prefix: String,
    /// Claims that a token must have, with their values.
    pub required_claims: Vec<(String, String)>,
    /// The authorities of the issuer's certificate, in PEM form; empty for the system's.
    pub authorities: String,
    /// The algorithms that tokens may be signed with; `RS256` where there are none.
    pub algorithms: Vec<String>,
}

/// Checks the tokens of an issuer.
pub struct Oidc {
    options: OidcOptions,
    client: Arc<WebhookClient>,
    clock: Clock,
    keys: Mutex<Keys>,
}

#[derive(Default)]
struct Keys {
    /// Where they are, once that is known.
    address: String,
    keys: Arc<Vec<Value>>,
    /// When they were read, in seconds; 0 for never.
    read: i64,
}

/// The algorithms that can be checked.
const ALGORITHMS: [&str; 8] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384"];

impl Oidc {
    /// Checks the options; the error names the flag.
    pub fn new(mut options: OidcOptions, client: Arc<WebhookClient>, clock: Clock) -> Result<Self, String> {
        if !options.issuer.starts_with("https://") {
            return Err(format!("--oidc-issuer-url: {:?} must use the https scheme", options.issuer));
        }
        if options.client_id.is_empty() {
            return Err("--oidc-client-id: it must be set along with --oidc-issuer-url".to_owned());
        }
        if options.username_claim.is_empty() {
            options.username_claim = "sub".to_owned();
        }
        if options.algorithms.is_empty() {
            options.algorithms = vec!["RS256".to_owned()];
        }
        if let Some(unknown) = options.algorithms.iter().find(|a| !ALGORITHMS.contains(&a.as_str())) {
            return Err(format!("--oidc-signing-algs: there is no {unknown:?}, there are: {}", ALGORITHMS.join(", ")));
        }
        options.username_prefix = match options.username_prefix.as_str() {
            "" if options.username_claim != "email" => format!("{}#", options.issuer),
            "-" => String::new(),
            prefix => prefix.to_owned(),
        };
        Ok(Oidc { options, client, clock, keys: Mutex::default() })
    }

    /// The user of a token; nothing if the token is not of this issuer, an error if it is and is not good.
    pub async fn authenticate(&self, token: &str) -> Option<Result<UserInfo, String>> {
        let (text, _) = token.rsplit_once('.')?;
        let (_, body) = text.split_once('.')?;
        let claims = json::parse(&BASE64.decode(body).ok()?).ok()?;
        if claims.str_at(&["iss"]) != Some(self.options.issuer.as_str()) {
            return None;
        }
        let verified = self.verify(token).await.map_err(|why| format!("oidc: verify token: {why}"));
        Some(verified.and_then(|()| self.judge(&claims)).and_then(|()| self.user(&claims)))
    }

    /// Checks the signature.
    async fn verify(&self, token: &str) -> Result<(), String> {
        const MALFORMED: &str = "malformed jwt";
        let (text, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
        let (head, _) = text.split_once('.').ok_or(MALFORMED)?;
        let head = BASE64.decode(head).ok().and_then(|h| json::parse(&h).ok()).ok_or(MALFORMED)?;
        let signature = BASE64.decode(signature).map_err(|_| MALFORMED)?;
        let algorithm = head.str_at(&["alg"]).unwrap_or_default();
        if !self.options.algorithms.iter().any(|a| a == algorithm) {
            return Err(format!("id token signed with unsupported algorithm, got {}", go::quote(algorithm)));
        }
        let id = head.str_at(&["kid"]).unwrap_or_default();
        let good = |keys: &[Value]| {
            let mut named = keys.iter().filter(|key| id.is_empty() || key.str_at(&["kid"]) == Some(id));
            named.any(|key| check(key, algorithm, text.as_bytes(), &signature))
        };
        let held = self.keys.lock().await.keys.clone();
        if good(&held) {
            return Ok(());
        }
        let fresh = self.fresh_keys().await.map_err(|why| format!("fetching keys {why}"))?;
        if good(&fresh) { Ok(()) } else { Err("failed to verify id token signature".to_owned()) }
    }

    /// The issuer's keys, read again unless they just were.
    async fn fresh_keys(&self) -> Result<Arc<Vec<Value>>, String> {
        let now = (self.clock)().as_second();
        let mut keys = self.keys.lock().await;
        if keys.read != 0 && now - keys.read < PAUSE {
            return Ok(keys.keys.clone());
        }
        keys.read = now.max(1);
        if keys.address.is_empty() {
            let issuer = self.options.issuer.trim_end_matches('/');
            let document = self.read(&format!("{issuer}/.well-known/openid-configuration")).await?;
            let named = document.str_at(&["issuer"]).unwrap_or_default();
            if named != self.options.issuer {
                let (wanted, named) = (go::quote(&self.options.issuer), go::quote(named));
                return Err(format!(
                    "oidc: issuer did not match the issuer returned by provider, expected {wanted} got {named}"
                ));
            }
            keys.address = document.str_at(&["jwks_uri"]).unwrap_or_default().to_owned();
        }
        let set = self.read(&keys.address).await?;
        let all = set.get("keys").and_then(Value::as_array).unwrap_or_default();
        keys.keys = Arc::new(all.to_vec());
        Ok(keys.keys.clone())
    }

    async fn read(&self, url: &str) -> Result<Value, String> {
        let authorities = &self.options.authorities;
        let bundle = if authorities.is_empty() { String::new() } else { STANDARD.encode(authorities) };
        let text = self.client.get(url, &bundle, TIMEOUT).await?;
        json::parse(&text).map_err(|e| format!("Get {}: {e}", go::quote(url)))
    }

    /// Whether claims hold now, for this server.
    fn judge(&self, claims: &Value) -> Result<(), String> {
        let audiences: Vec<&str> = match claims.get("aud") {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ => Vec::new(),
        };
        let client = &self.options.client_id;
        if !audiences.contains(&client.as_str()) {
            let client = go::quote(client);
            let audiences: Vec<String> = audiences.iter().map(|a| go::quote(a)).collect();
            return Err(format!("oidc: verify token: oidc: expected audience {client} got [{}]", audiences.join(" ")));
        }
        let now = (self.clock)().as_second();
        let time = |key: &str| match claims.get(key) {
            Some(Value::Int(seconds)) => Some(*seconds),
            Some(Value::Float(seconds)) => Some(*seconds as i64),
            _ => None,
        };
        let end = time("exp").unwrap_or(0);
        if end < now {
            return Err("oidc: verify token: oidc: token is expired".to_owned());
        }
        if time("nbf").is_some_and(|start| now + LEEWAY < start) {
            return Err("oidc: verify token: oidc: current time is before the nbf (not before) time".to_owned());
        }
        for (claim, wanted) in &self.options.required_claims {
            let quoted = go::quote(claim);
            match claims.get(claim).and_then(Value::as_str) {
                None => return Err(format!("oidc: required claim {claim} not present in ID token")),
                Some(found) if found != wanted => {
                    return Err(format!(
                        "oidc: required claim {quoted} value does not match. Got = {}, want = {}",
                        go::quote(found),
                        go::quote(wanted)
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The user that claims name.
    fn user(&self, claims: &Value) -> Result<UserInfo, String> {
        let options = &self.options;
        let claim = &options.username_claim;
        let name = claims.get(claim).and_then(Value::as_str);
        let name =
            name.ok_or_else(|| format!("oidc: parse username claims {}: claim not present", go::quote(claim)))?;
        if claim == "email" {
            match claims.get("email_verified") {
                None | Some(Value::Bool(true)) => {}
                Some(Value::Bool(false)) => return Err("oidc: email not verified".to_owned()),
                Some(_) => return Err("oidc: parse 'email_verified' claim: it is not a boolean".to_owned()),
            }
        }
        if name.is_empty() {
            return Err("oidc: the name of the user is empty".to_owned());
        }
        let groups = match claims.get(&options.groups_claim).filter(|_| !options.groups_claim.is_empty()) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(one)) => vec![one.to_string()],
            Some(Value::Array(items)) => {
                let texts: Option<Vec<String>> = items.iter().map(|g| g.as_str().map(str::to_owned)).collect();
                texts.ok_or_else(|| self.bad_groups())?
            }
            Some(_) => return Err(self.bad_groups()),
        };
        let groups = groups.into_iter().map(|g| format!("{}{g}", options.groups_prefix)).collect();
        Ok(UserInfo { name: format!("{}{name}", options.username_prefix), groups, ..UserInfo::default() })
    }

    fn bad_groups(&self) -> String {
        let claim = go::quote(&self.options.groups_claim);
        format!("oidc: parse groups claim {claim}: it is neither a string nor a list of strings")
    }
}

/// Whether a key of a key set signed a text.
fn check(key: &Value, algorithm: &str, text: &[u8], signature: &[u8]) -> bool {
    let part = |name: &str| BASE64.decode(key.str_at(&[name]).unwrap_or_default()).unwrap_or_default();
    if !matches!(key.str_at(&["use"]), None | Some("" | "sig")) {
        return false;
    }
    let rsa = |parameters: &'static RsaParameters| {
        let key = RsaPublicKeyComponents { n: part("n"), e: part("e") };
        key.verify(parameters, text, signature).is_ok()
    };
    let curve = |name: &str, size: usize, algorithm: &'static dyn VerificationAlgorithm| {
        let (x, y) = (part("x"), part("y"));
        if key.str_at(&["crv"]) != Some(name) || x.len() != size || y.len() != size {
            return false;
        }
        let point: Vec<u8> = [&[4u8][..], &x, &y].concat();
        UnparsedPublicKey::new(algorithm, point).verify(text, signature).is_ok()
    };
    match (key.str_at(&["kty"]).unwrap_or_default(), algorithm) {
        ("RSA", "RS256") => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        ("RSA", "RS384") => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        ("RSA", "RS512") => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        ("RSA", "PS256") => rsa(&signature::RSA_PSS_2048_8192_SHA256),
        ("RSA", "PS384") => rsa(&signature::RSA_PSS_2048_8192_SHA384),
        ("RSA", "PS512") => rsa(&signature::RSA_PSS_2048_8192_SHA512),
        ("EC", "ES256") => curve("P-256", 32, &signature::ECDSA_P256_SHA256_FIXED),
        ("EC", "ES384") => curve("P-384", 48, &signature::ECDSA_P384_SHA384_FIXED),
        _ => false,
    }
}

impl std::fmt::Debug for Oidc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Oidc").field("issuer", &self.options.issuer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    const ISSUER: &str = "https://id.example.com";

    struct Issuer(EcdsaKeyPair);

    impl Issuer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            Issuer(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
        }

        fn key(&self) -> Value {
            let point = self.0.public_key().as_ref();
            let half = |from: usize| BASE64.encode(&point[from..from + 32]);
            let text =
                format!(r#"{{"kty":"EC","crv":"P-256","kid":"k","use":"sig","x":"{}","y":"{}"}}"#, half(1), half(33));
            json::parse(text.as_bytes()).unwrap()
        }

        fn sign(&self, algorithm: &str, claims: &str) -> String {
            let head = format!(r#"{{"alg":"{algorithm}","kid":"k"}}"#);
            let text = format!("{}.{}", BASE64.encode(head), BASE64.encode(claims));
            let signature = self.0.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
            format!("{text}.{}", BASE64.encode(signature))
        }
    }

    async fn oidc(issuer: &Issuer, options: OidcOptions) -> Oidc {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let clock: Clock = Arc::new(|| jiff::Timestamp::from_second(1000).unwrap());
        let options = OidcOptions {
            issuer: ISSUER.to_owned(),
            client_id: "me".to_owned(),
            algorithms: vec!["ES256".to_owned()],
            ..options
        };
        let oidc = Oidc::new(options, Arc::new(WebhookClient::new(store)), clock).unwrap();
        *oidc.keys.lock().await = Keys { address: String::new(), keys: Arc::new(vec![issuer.key()]), read: 1000 };
        oidc
    }

    fn claims(more: &str) -> String {
        format!(r#"{{"iss":"{ISSUER}","aud":["me","you"],"exp":2000,"sub":"s"{more}}}"#)
    }

    #[tokio::test]
    async fn a_token_names_its_user() {
        let issuer = Issuer::new();
        let plain = oidc(&issuer, OidcOptions::default()).await;
        let user = plain.authenticate(&issuer.sign("ES256", &claims(""))).await.unwrap().unwrap();
        assert_eq!(user.name, "https://id.example.com#s");
        let options = OidcOptions {
            username_claim: "email".to_owned(),
            groups_claim: "groups".to_owned(),
            groups_prefix: "oidc:".to_owned(),
            required_claims: vec![("hd".to_owned(), "x.io".to_owned())],
            ..OidcOptions::default()
        };
        let mapped = oidc(&issuer, options).await;
        let ask = |more: &str| {
            let token = issuer.sign("ES256", &claims(more));
            let mapped = &mapped;
            async move { mapped.authenticate(&token).await.unwrap() }
        };
        let user = ask(r#","email":"a@x.io","email_verified":true,"groups":["g","h"],"hd":"x.io""#).await.unwrap();
        assert_eq!((user.name.as_str(), user.groups), ("a@x.io", vec!["oidc:g".to_owned(), "oidc:h".to_owned()]));
        for (more, why) in [
            (r#","email":"a@x.io","email_verified":false,"hd":"x.io""#, "oidc: email not verified"),
            (r#","email":"a@x.io""#, "oidc: required claim hd not present in ID token"),
            (
                r#","email":"a@x.io","hd":"y.io""#,
                "oidc: required claim \"hd\" value does not match. Got = \"y.io\", want = \"x.io\"",
            ),
            (r#","hd":"x.io""#, "oidc: parse username claims \"email\": claim not present"),
        ] {
            assert_eq!(ask(more).await.unwrap_err(), why);
        }
    }

    #[tokio::test]
    async fn forged_and_foreign_tokens_are_refused() {
        let issuer = Issuer::new();
        let oidc = oidc(&issuer, OidcOptions::default()).await;
        let good = issuer.sign("ES256", &claims(""));
        let parts: Vec<&str> = good.split('.').collect();
        let none = format!("{}.{}.", BASE64.encode(r#"{"alg":"none"}"#), parts[1]);
        let hmac = issuer.sign("HS256", &claims(""));
        let changed = format!("{}.{}.{}", parts[0], BASE64.encode(claims(r#","groups":["system:masters"]"#)), parts[2]);
        for token in
            [none, hmac, changed, Issuer::new().sign("ES256", &claims("")), format!("{}.{}.", parts[0], parts[1])]
        {
            let error = oidc.authenticate(&token).await.unwrap().unwrap_err();
            assert!(error.starts_with("oidc: verify token"), "{error}");
        }
        for (claims, why) in [
            (
                format!(r#"{{"iss":"{ISSUER}","aud":"you","exp":2000,"sub":"s"}}"#),
                "expected audience \"me\" got [\"you\"]",
            ),
            (format!(r#"{{"iss":"{ISSUER}","aud":"me","exp":999,"sub":"s"}}"#), "token is expired"),
            (format!(r#"{{"iss":"{ISSUER}","aud":"me","sub":"s"}}"#), "token is expired"),
            (format!(r#"{{"iss":"{ISSUER}","aud":"me","exp":2000,"nbf":1301,"sub":"s"}}"#), "before the nbf"),
        ] {
            let error = oidc.authenticate(&issuer.sign("ES256", &claims)).await.unwrap().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(oidc.authenticate(&issuer.sign("ES256", r#"{"iss":"https://other"}"#)).await, None);
        assert_eq!(oidc.authenticate("x").await, None);
    }

    #[test]
    fn options_are_checked() {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let client = Arc::new(WebhookClient::new(store));
        for (issuer, id, algorithm, why) in [
            ("http://x", "me", "RS256", "https scheme"),
            ("https://x", "", "RS256", "--oidc-client-id"),
            ("https://x", "me", "none", "--oidc-signing-algs"),
        ] {
            let options = OidcOptions {
                issuer: issuer.to_owned(),
                client_id: id.to_owned(),
                algorithms: vec![algorithm.to_owned()],
                ..OidcOptions::default()
            };
            let error = Oidc::new(options, client.clone(), Arc::new(jiff::Timestamp::now)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
