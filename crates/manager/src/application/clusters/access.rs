//! What a Secret says of a cluster.

use base64::{Engine, engine::general_purpose::STANDARD};
use object::{Map, Value, map};

/// Labels and annotations of cluster Secrets, as KubeVela's cluster-gateway has them, and our own.
pub mod names {
    /// Label: which kind of credential the Secret has; what makes a Secret a cluster's.
    pub const CREDENTIAL_TYPE: &str = "cluster.core.oam.dev/cluster-credential-type";
    /// Label: how the endpoint is reached; `Const` for an address.
    pub const ENDPOINT_TYPE: &str = "cluster.core.oam.dev/cluster-endpoint-type";
    /// Label that selectors see: `true` for the cluster in which the applications are, `false` for all others.
    pub const CONTROL_PLANE: &str = "cluster.core.oam.dev/control-plane";
    /// Annotation: a name for people.
    pub const ALIAS: &str = "cluster.core.oam.dev/cluster-alias";
    /// Annotation: what `/version` answered, as JSON.
    pub const VERSION: &str = "cluster.core.oam.dev/cluster-version";
    /// Annotation of ours: the names that the cluster had before, with commas between. They still mean it.
    pub const FORMER_NAMES: &str = "cluster.stanchion.dev/former-names";
    /// Annotation of ours: the cluster is being detached; nothing is written to it any more.
    pub const DETACHING: &str = "cluster.stanchion.dev/detaching";
    /// Annotation of ours: the uid of the cluster's namespace `kube-system`, by which a cluster is known whatever its
    /// address.
    pub const IDENTITY: &str = "cluster.stanchion.dev/identity";
    /// The start of all labels that are not for selectors of users.
    pub const PREFIX: &str = "cluster.core.oam.dev/";
    /// The namespace of cluster Secrets, unless another is given.
    pub const NAMESPACE: &str = "vela-system";
    /// The name of the cluster in which the applications are.
    pub const LOCAL: &str = "local";
}

/// Who we are in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A certificate and its key, in PEM form.
    Certificate {
        /// The certificate.
        certificate: Vec<u8>,
        /// Its key.
        key: Vec<u8>,
    },
    /// A token.
    Token(String),
}

/// How a cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The server's URL.
    pub endpoint: String,
    /// The authority that signs the server's certificate, in PEM form; empty for one that is not looked at.
    pub authority: Vec<u8>,
    /// Who we are there.
    pub credential: Credential,
}

impl Access {
    /// Reads a Secret.
    ///
    /// # Errors
    ///
    /// What it lacks, in words for whoever wrote it.
    pub fn read(secret: &Value) -> Result<Self, String> {
        let kind = secret.label(names::CREDENTIAL_TYPE).unwrap_or_default();
        let credential = match kind {
            "X509Certificate" => {
                Credential::Certificate { certificate: required(secret, "tls.crt")?, key: required(secret, "tls.key")? }
            }
            "ServiceAccountToken" => Credential::Token(text(required(secret, "token")?, "token")?),
            other => return Err(format!("credentials of type {other:?} are not supported")),
        };
        if !bytes(secret, "proxy-url")?.is_empty() {
            return Err("a proxy (proxy-url) is not supported".to_owned());
        }
        let endpoint = text(required(secret, "endpoint")?, "endpoint")?;
        if !endpoint.starts_with("https://") {
            return Err(format!("endpoint {endpoint:?} is no https URL"));
        }
        Ok(Access { endpoint, authority: bytes(secret, "ca.crt")?, credential })
    }

    /// The Secret of a cluster of this name.
    pub fn to_secret(&self, name: &str, namespace: &str, labels: &Map) -> Value {
        let encoded = |data: &[u8]| STANDARD.encode(data);
        let mut data = map! { "endpoint" => encoded(self.endpoint.as_bytes()) };
        if !self.authority.is_empty() {
            data.insert("ca.crt", encoded(&self.authority));
        }
        let kind = match &self.credential {
            Credential::Certificate { certificate, key } => {
                data.insert("tls.crt", encoded(certificate));
                data.insert("tls.key", encoded(key));
                "X509Certificate"
            }
            Credential::Token(token) => {
                data.insert("token", encoded(token.as_bytes()));
                "ServiceAccountToken"
            }
        };
        let mut labels = labels.clone();
        labels.insert(names::CREDENTIAL_TYPE, kind);
        labels.insert(names::ENDPOINT_TYPE, "Const");
        map! {
            "apiVersion" => "v1",
            "kind" => "Secret",
            "metadata" => map! { "name" => name, "namespace" => namespace, "labels" => labels },
            "type" => "Opaque",
            "data" => data,
        }
        .into()
    }
}

/// The names that a cluster had before.
pub fn former_names(secret: &Value) -> impl Iterator<Item = &str> {
    let all = secret.annotation(names::FORMER_NAMES).unwrap_or_default().split(',');
    all.map(str::trim).filter(|name| !name.is_empty())
}

fn bytes(secret: &Value, key: &str) -> Result<Vec<u8>, String> {
    let text = secret.str_at(&["data", key]).unwrap_or_default();
    STANDARD.decode(text).map_err(|error| format!("data[{key}]: {error}"))
}

fn required(secret: &Value, key: &str) -> Result<Vec<u8>, String> {
    let found = bytes(secret, key)?;
    if found.is_empty() { Err(format!("data[{key}]: Required value")) } else { Ok(found) }
}

fn text(bytes: Vec<u8>, key: &str) -> Result<String, String> {
    String::from_utf8(bytes).map(|text| text.trim().to_owned()).map_err(|_| format!("data[{key}]: is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> Access {
        Access {
            endpoint: "https://10.0.0.1:6443".into(),
            authority: b"ca".to_vec(),
            credential: Credential::Certificate { certificate: b"crt".to_vec(), key: b"key".to_vec() },
        }
    }

    #[test]
    fn a_secret_is_read_as_it_is_written() {
        let token = Access { credential: Credential::Token("t".into()), authority: Vec::new(), ..certificate() };
        for access in [certificate(), token] {
            let secret = access.to_secret("eu", "vela-system", &map! { "region" => "eu" });
            assert_eq!((secret.name(), secret.label("region")), ("eu", Some("eu")));
            assert_eq!(Access::read(&secret), Ok(access));
        }
    }

    #[test]
    fn what_a_secret_lacks_is_said() {
        let whole = certificate().to_secret("eu", "n", &Map::new());
        let without = |path: &[&str]| {
            let mut secret = whole.clone();
            secret.remove_at(path);
            Access::read(&secret)
        };
        let with = |key: &str, value: &str| {
            let mut secret = whole.clone();
            secret.set_at(&["data", key], value.into());
            Access::read(&secret)
        };
        for (read, expected) in [
            (without(&["data", "tls.key"]), "data[tls.key]: Required value"),
            (without(&["data", "endpoint"]), "data[endpoint]: Required value"),
            (without(&["metadata", "labels"]), "credentials of type \"\" are not supported"),
            (with("endpoint", "aHR0cDovL2E="), "endpoint \"http://a\" is no https URL"),
            (with("proxy-url", "aGk="), "a proxy (proxy-url) is not supported"),
            (with("tls.crt", "!"), "data[tls.crt]: Invalid symbol 33, offset 0."),
        ] {
            assert_eq!(read, Err(expected.to_owned()));
        }
        assert_eq!(without(&["data", "ca.crt"]).map(|access| access.authority), Ok(vec![]));
    }
}
