//! Kubeconfig files: the server, how to trust it, and who we are there.

pub use super::exec::Exec;
use base64::{Engine, engine::general_purpose::STANDARD};
use object::{Value, json, map, yaml};
use std::path::{Path, PathBuf};

/// One context of a kubeconfig file, with its data read.
#[derive(Clone, Debug, Default)]
pub struct Kubeconfig {
    /// The name that the file gives the cluster.
    pub cluster: String,
    /// The server's URL.
    pub server: String,
    /// The authority that signs the server's certificate, in PEM form; empty for the system's.
    pub authority: Vec<u8>,
    /// Whether the server's certificate is not looked at.
    pub insecure: bool,
    /// Our certificate, in PEM form; empty where there is none.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// Our token; empty where there is none.
    pub token: String,
    /// The file of our token, which may change.
    pub token_file: Option<PathBuf>,
    /// The program that says who we are.
    pub exec: Option<Exec>,
    /// The name for which the server's certificate has to be; empty for the host's.
    pub tls_server_name: String,
    /// What the cluster has for the program that says who we are.
    pub exec_config: Value,
    /// The namespace of the context.
    pub namespace: String,
}

/// The file that kubectl would read: the first of `KUBECONFIG`, or `~/.kube/config`.
pub fn default_path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    match set("KUBECONFIG") {
        Some(paths) => std::env::split_paths(&paths).find(|p| p.exists()),
        None => set("HOME").map(|home| PathBuf::from(home).join(".kube/config")),
    }
}

impl Kubeconfig {
    /// Reads a context, or the current one.
    pub fn read(path: &Path, context: Option<&str>) -> Result<Self, String> {
        let named = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read(path).map_err(|e| named(e.to_string()))?;
        let file = yaml::parse(&text).map_err(named)?;
        Self::from_value(&file, context, path.parent().unwrap_or(Path::new("."))).map_err(named)
    }

    /// The cluster in which this program runs as a pod; nothing if it does not.
    pub fn in_cluster() -> Option<Result<Self, String>> {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let (host, port) = set("KUBERNETES_SERVICE_HOST").zip(set("KUBERNETES_SERVICE_PORT"))?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let read = |name: &str| {
            let path = Path::new(ACCOUNT).join(name);
            std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        let read_all = || {
            let namespace = String::from_utf8_lossy(&read("namespace")?).trim().to_owned();
            Ok(Kubeconfig {
                server: format!("https://{host}:{port}"),
                authority: read("ca.crt")?,
                token: String::from_utf8_lossy(&read("token")?).trim().to_owned(),
                token_file: Some(Path::new(ACCOUNT).join("token")),
                namespace,
                ..Kubeconfig::default()
            })
        };
        Some(read_all())
    }

    /// What a program that says who we are may know of the cluster, as JSON.
    pub fn cluster_info(&self) -> String {
        let mut info = map! { "server" => self.server.as_str() };
        if !self.tls_server_name.is_empty() {
            info.insert("tls-server-name", self.tls_server_name.as_str());
        }
        if self.insecure {
            info.insert("insecure-skip-tls-verify", true);
        }
        if !self.authority.is_empty() {
            info.insert("certificate-authority-data", STANDARD.encode(&self.authority));
        }
        if !self.exec_config.is_null() {
            info.insert("config", self.exec_config.clone());
        }
        json::to_string(&info.into())
    }

    fn from_value(file: &Value, context: Option<&str>, folder: &Path) -> Result<Self, String> {
        let name = context
            .or_else(|| file.str_at(&["current-context"]).filter(|c| !c.is_empty()))
            .ok_or("there is no current context")?;
        let context = entry(file, "contexts", "context", name)?;
        let cluster = entry(file, "clusters", "cluster", &text(context, "cluster"))?;
        let none = Value::Null;
        let user = match text(context, "user") {
            name if name.is_empty() => &none,
            name => entry(file, "users", "user", &name)?,
        };
        if user.get("auth-provider").is_some_and(|v| !v.is_null()) {
            return Err("users with an auth-provider are not supported: use exec, as kubectl since 1.26".to_owned());
        }
        if !text(user, "username").is_empty() {
            return Err("users with a password are not supported: no API server takes them since 1.19".to_owned());
        }
        let proxy = text(cluster, "proxy-url");
        if !proxy.is_empty() {
            return Err(format!("proxy-url {proxy} is not supported: connections are made directly"));
        }
        let exec = user.get("exec").filter(|exec| !exec.is_null()).map(|exec| Exec::read(exec, folder)).transpose()?;
        let mut token = text(user, "token");
        let token_file = user.str_at(&["tokenFile"]).filter(|file| !file.is_empty()).map(|file| folder.join(file));
        if let Some(path) = &token_file {
            token = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?.trim().to_owned();
        }
        let namespace = text(context, "namespace");
        Ok(Kubeconfig {
            cluster: text(context, "cluster"),
            server: text(cluster, "server"),
            authority: data(cluster, "certificate-authority", folder)?,
            insecure: cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool).unwrap_or(false),
            certificate: data(user, "client-certificate", folder)?,
            key: data(user, "client-key", folder)?,
            token,
            token_file,
            exec,
            tls_server_name: text(cluster, "tls-server-name"),
            exec_config: extension(cluster),
            namespace: if namespace.is_empty() { "default".to_owned() } else { namespace },
        })
    }
}

/// Where a pod finds the token of its service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A member that is a text; empty where it is not.
pub(super) fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a cluster has for the programs that say who we are.
fn extension(cluster: &Value) -> Value {
    let all = cluster.get("extensions").and_then(Value::as_array).unwrap_or_default();
    let own = all.iter().find(|e| e.str_at(&["name"]) == Some("client.authentication.k8s.io/exec"));
    own.and_then(|e| e.get("extension")).cloned().unwrap_or_default()
}

/// The entry of a name in one of the file's lists.
fn entry<'v>(file: &'v Value, list: &str, part: &str, name: &str) -> Result<&'v Value, String> {
    let items = file.get(list).and_then(Value::as_array).unwrap_or_default();
    items
        .iter()
        .find(|i| i.str_at(&["name"]) == Some(name))
        .and_then(|i| i.get(part))
        .ok_or_else(|| format!("{list} has no {part} {}", object::go::quote(name)))
}

/// Data that stand in the file itself (`KEY-data`) or in another one (`KEY`).
fn data(value: &Value, key: &str, folder: &Path) -> Result<Vec<u8>, String> {
    if let Some(text) = value.str_at(&[&format!("{key}-data")]).filter(|t| !t.is_empty()) {
        return STANDARD.decode(text).map_err(|e| format!("{key}-data: {e}"));
    }
    match value.str_at(&[key]).filter(|t| !t.is_empty()) {
        Some(file) => {
            let path = folder.join(file);
            std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
        }
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
current-context: a
contexts:
- {name: a, context: {cluster: c, user: u}}
- {name: b, context: {cluster: c, user: u, namespace: other}}
- {name: broken, context: {cluster: absent}}
- {name: proxied, context: {cluster: p}}
- {name: named, context: {cluster: m, user: e}}
- {name: old, context: {cluster: c, user: o}}
clusters:
- {name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: aGk=}}
- {name: p, cluster: {server: 'https://127.0.0.1:1', proxy-url: 'socks5://p'}}
- {name: m, cluster: {server: 'https://s', tls-server-name: api, insecure-skip-tls-verify: true, extensions: [{name: client.authentication.k8s.io/exec, extension: {a: 1}}]}}
users:
- {name: u, user: {token: t}}
- {name: e, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}
- {name: o, user: {auth-provider: {name: gcp}}}
";

    fn read(context: Option<&str>) -> Result<Kubeconfig, String> {
        Kubeconfig::from_value(&yaml::parse(FILE.as_bytes()).unwrap(), context, Path::new("."))
    }

    #[test]
    fn the_context_that_is_asked_for_is_read() {
        let a = read(None).unwrap();
        assert_eq!(
            (a.server.as_str(), a.token.as_str(), a.namespace.as_str()),
            ("https://127.0.0.1:1", "t", "default")
        );
        assert_eq!(a.authority, b"hi");
        assert_eq!(read(Some("b")).unwrap().namespace, "other");
    }

    #[test]
    fn what_a_program_may_know_of_the_cluster_is_told() {
        let named = read(Some("named")).unwrap();
        assert!(named.exec.is_some());
        assert_eq!(
            named.cluster_info(),
            r#"{"config":{"a":1},"insecure-skip-tls-verify":true,"server":"https://s","tls-server-name":"api"}"#
        );
    }

    #[test]
    fn what_is_not_supported_is_refused_in_clear_words() {
        assert!(read(Some("proxied")).unwrap_err().starts_with("proxy-url socks5://p is not supported"));
        assert!(read(Some("old")).unwrap_err().starts_with("users with an auth-provider are not supported"));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(read(Some("x")).unwrap_err(), "contexts has no context \"x\"");
        assert_eq!(read(Some("broken")).unwrap_err(), "clusters has no cluster \"absent\"");
    }
}
