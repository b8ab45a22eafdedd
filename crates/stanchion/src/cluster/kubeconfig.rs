//! Kubeconfig files: the server, how to trust it, and who we are there.

use base64::{Engine, engine::general_purpose::STANDARD};
use object::{Value, yaml};
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

    fn from_value(file: &Value, context: Option<&str>, folder: &Path) -> Result<Self, String> {
        let name = context
            .or_else(|| file.str_at(&["current-context"]).filter(|c| !c.is_empty()))
            .ok_or("there is no current context")?;
        let context = entry(file, "contexts", "context", name)?;
        let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let cluster = entry(file, "clusters", "cluster", &text(context, "cluster"))?;
        let none = Value::Null;
        let user = match text(context, "user") {
            name if name.is_empty() => &none,
            name => entry(file, "users", "user", &name)?,
        };
        if user.get("exec").is_some() || user.get("auth-provider").is_some() {
            return Err("users with exec or auth-provider credentials are not supported".to_owned());
        }
        let mut token = text(user, "token");
        if let Some(file) = user.str_at(&["tokenFile"]) {
            let path = folder.join(file);
            token = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?.trim().to_owned();
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
            namespace: if namespace.is_empty() { "default".to_owned() } else { namespace },
        })
    }
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
clusters:
- {name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: aGk=}}
users:
- {name: u, user: {token: t}}
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
    fn what_is_missing_is_named() {
        assert_eq!(read(Some("x")).unwrap_err(), "contexts has no context \"x\"");
        assert_eq!(read(Some("broken")).unwrap_err(), "clusters has no cluster \"absent\"");
    }
}
