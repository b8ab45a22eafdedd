//! The subcommands.

use super::Join;
use super::probe::{self, Health};
use super::view::{self, Row};
use crate::cluster::{Connections, Failure, Kubeconfig, access};
use crate::terminal::{Output, print, say};
use client::resources::{NAMESPACES, SECRETS};
use client::{Client, DeleteParams, ListParams, Patch, PatchParams};
use futures_util::future::join_all;
use manager::application::clusters::{Connector, former_names, names, records};
use object::{Map, Value, map};
use std::collections::BTreeMap;

/// The cluster in which the Applications are.
pub struct Session {
    pub(super) client: Client,
    pub(super) namespace: String,
}

impl Session {
    /// Works with the clusters whose Secrets are in a namespace.
    pub fn new(client: Client, namespace: String) -> Self {
        let client = client.with_user_agent(concat!("stanchion/", env!("CARGO_PKG_VERSION")));
        Session { client, namespace }
    }

    /// The Secrets of all clusters, by name.
    async fn secrets(&self) -> Result<Vec<Value>, Failure> {
        let params = ListParams { label_selector: names::CREDENTIAL_TYPE.to_owned(), ..ListParams::default() };
        Ok(self.client.api(&SECRETS).list(&self.namespace, &params).await?.items)
    }

    /// The Secret of a cluster.
    pub(super) async fn secret(&self, name: &str) -> Result<Option<Value>, Failure> {
        if name == names::LOCAL {
            return Err("local is the cluster in which the Applications are".into());
        }
        let found = self.client.api(&SECRETS).find(&self.namespace, name).await?;
        Ok(found.filter(|secret| secret.label(names::CREDENTIAL_TYPE).is_some()))
    }

    async fn known(&self, name: &str) -> Result<Value, Failure> {
        Ok(self.secret(name).await?.ok_or_else(|| format!("there is no cluster {name}"))?)
    }

    pub(super) async fn change(&self, name: &str, patch: Map) -> Result<(), Failure> {
        let patch = Patch::Merge(map! { "metadata" => patch }.into());
        self.client.api(&SECRETS).patch(&self.namespace, name, &patch, &PatchParams::default()).await?;
        Ok(())
    }

    /// Joins a cluster: tries it, notes who it is, makes the namespace there, and writes its Secret.
    pub async fn join(&self, join: Join) -> Result<(), Failure> {
        let config = Kubeconfig::read(&join.file, join.from_context.as_deref())?;
        let name = join.name.unwrap_or_else(|| config.cluster.clone());
        check_name(&name)?;
        let labels = pairs(&join.labels)?;
        let secrets = self.secrets().await?;
        let former = secrets.iter().find(|other| former_names(other).any(|former| former == name));
        if secrets.iter().any(|other| other.name() == name) {
            return Err(format!("there is a cluster {name} already").into());
        }
        if let Some(other) = former.filter(|_| !join.take_name) {
            let other = other.name();
            return Err(format!(
                "{name} is what cluster {other} was called before, and still means it; --take-name changes that"
            )
            .into());
        }
        let access = access(&config)?;
        let client = Client::new(Connections.connect(&access)?);
        let version = probe::ask(&client, "/version").await.map_err(|e| format!("the cluster does not answer: {e}"))?;
        probe::ask(&client, "/apis").await.map_err(|e| format!("the cluster refuses the credentials: {e}"))?;
        let identity = identity(&client).await?;
        if let Some(identity) = &identity {
            if self::identity(&self.client).await?.as_ref() == Some(identity) {
                return Err("this is the cluster in which the Applications are: it is called local".into());
            }
            if let Some(same) = secrets.iter().find(|other| other.annotation(names::IDENTITY) == Some(identity)) {
                return Err(format!("this cluster has joined already, as {}", same.name()).into());
            }
        }
        if !join.create_namespace.is_empty() {
            make_namespace(&client, &join.create_namespace).await?;
        }
        make_namespace(&self.client, &self.namespace).await?;
        if let Some(other) = former {
            let rest: Vec<&str> = former_names(other).filter(|former| *former != name).collect();
            self.change(other.name(), map! { "annotations" => map! { names::FORMER_NAMES => rest.join(",") } }).await?;
        }
        let mut secret = access.to_secret(&name, &self.namespace, &labels);
        let annotations = [
            (names::ALIAS, join.alias),
            (names::IDENTITY, identity),
            (names::VERSION, Some(object::json::to_string(&version))),
        ];
        for (key, value) in annotations {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                secret.set_at(&["metadata", "annotations", key], value.into());
            }
        }
        self.client.api(&SECRETS).create(&self.namespace, &secret).await?;
        let version = version.str_at(&["gitVersion"]).unwrap_or_default();
        say!("cluster {name} joined: {} ({version})", access.endpoint);
        Ok(())
    }

    /// Lists clusters, the local one first.
    pub async fn list(&self, output: Option<Output>, is_probed: bool) -> Result<(), Failure> {
        let secrets = self.secrets().await?;
        let counts = match output {
            None => BTreeMap::new(),
            // Where there are no Applications, there are no trackers either.
            Some(_) => records::counts(&self.client).await.or_else(nothing_if_missing)?,
        };
        let count = |name: &str| counts.get(name).copied().unwrap_or_default();
        let health = join_all(secrets.iter().map(async |secret| match is_probed {
            true => probe::of(secret).await,
            false => Health::Unknown,
        }))
        .await;
        let begin = std::time::Instant::now();
        let own = probe::ask(&self.client, "/version").await?;
        let version = own.str_at(&["gitVersion"]).unwrap_or_default().to_owned();
        let mut rows = vec![Row::local(Health::Ready { version, latency: begin.elapsed() }, count(""))];
        let others = secrets.iter().zip(health);
        rows.extend(others.map(|(secret, health)| Row::of(secret, endpoint(secret), health, count(secret.name()))));
        print(&view::list(&rows, output));
        Ok(())
    }

    /// Asks clusters how they are.
    pub async fn probe(&self, all: &[String]) -> Result<(), Failure> {
        let mut failed = Vec::new();
        for name in all {
            let secret = self.known(name).await?;
            match probe::of(&secret).await {
                Health::Ready { version, latency } => {
                    say!("{name}: ready, {version}, {:.1} ms", latency.as_secs_f64() * 1000.0);
                }
                health => {
                    say!("{name}: {}", view::health(&health));
                    failed.push(name.as_str());
                }
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(format!("not ready: {}", failed.join(", ")).into()) }
    }

    /// Gives a cluster another name. From the moment the new Secret is there, the former name means the new one, so that
    /// nothing is taken for another cluster's; the rest can be done again should it break off.
    pub async fn rename(&self, name: &str, to: &str) -> Result<(), Failure> {
        check_name(to)?;
        let secrets = self.secrets().await?;
        let is_former = |secret: &&Value| former_names(secret).any(|former| former == to);
        match secrets.iter().find(is_former) {
            Some(other) if other.name() != name => {
                return Err(
                    format!("{to} is what cluster {} was called before, and still means it", other.name()).into()
                );
            }
            _ => {}
        }
        let old = self.secret(name).await?;
        let new = self.secret(to).await?;
        let continues = new.as_ref().is_some_and(|new| former_names(new).any(|former| former == name));
        match (&old, &new) {
            (_, Some(_)) if !continues => return Err(format!("there is a cluster {to} already").into()),
            (None, None) => return Err(format!("there is no cluster {name}").into()),
            (Some(old), None) => {
                let mut copy = old.clone();
                for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                    copy.remove_at(&["metadata", field]);
                }
                copy.set_at(&["metadata", "name"], to.into());
                let former: Vec<&str> = former_names(old).filter(|former| *former != to).chain([name]).collect();
                copy.set_at(&["metadata", "annotations", names::FORMER_NAMES], former.join(",").into());
                self.client.api(&SECRETS).create(&self.namespace, &copy).await?;
            }
            _ => {}
        }
        let changed = records::rewrite(&self.client, name, Some(to)).await.or_else(nothing_if_missing)?;
        if let Some(old) = old {
            self.remove(&old).await?;
        }
        say!("cluster {name} is now {to}; {changed} trackers changed");
        Ok(())
    }

    /// Deletes the Secret of a cluster.
    pub(super) async fn remove(&self, secret: &Value) -> Result<(), Failure> {
        let params = DeleteParams { uid: secret.meta_str("uid").to_owned(), ..DeleteParams::default() };
        match self.client.api(&SECRETS).delete(&self.namespace, secret.name(), &params).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Gives a cluster a name for people.
    pub async fn alias(&self, name: &str, alias: &str) -> Result<(), Failure> {
        self.known(name).await?;
        let given = if alias.is_empty() { Value::Null } else { alias.into() };
        self.change(name, map! { "annotations" => map! { names::ALIAS => given } }).await?;
        match alias {
            "" => say!("cluster {name} has no alias"),
            alias => say!("cluster {name} has the alias {alias}"),
        }
        Ok(())
    }

    /// Sets labels of a cluster.
    pub async fn add_labels(&self, name: &str, labels: &[String]) -> Result<(), Failure> {
        let secret = self.known(name).await?;
        let labels = pairs(labels)?;
        if labels.iter().all(|(key, value)| secret.label(key) == value.as_str()) {
            say!("cluster {name} not labeled: it has them already");
            return Ok(());
        }
        self.change(name, map! { "labels" => labels }).await?;
        say!("cluster {name} labeled");
        Ok(())
    }

    /// Takes labels of a cluster away.
    pub async fn drop_labels(&self, name: &str, keys: &[String]) -> Result<(), Failure> {
        let secret = self.known(name).await?;
        if let Some(key) = keys.iter().find(|key| secret.label(key).is_none()) {
            return Err(format!("cluster {name} has no label {key}").into());
        }
        let labels = keys.iter().map(|key| check_key(key).map(|()| (key.as_str(), Value::Null)));
        let labels: Map = labels.collect::<Result<_, _>>()?;
        self.change(name, map! { "labels" => labels }).await?;
        say!("cluster {name} unlabeled");
        Ok(())
    }
}

/// What is found where the kind is not there: nothing.
pub(super) fn nothing_if_missing<T: Default>(error: client::Error) -> Result<T, client::Error> {
    if error.is_not_found() { Ok(T::default()) } else { Err(error) }
}

/// The server's URL, as the Secret has it; whatever else it lacks.
fn endpoint(secret: &Value) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = STANDARD.decode(secret.str_at(&["data", "endpoint"]).unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// By what a cluster is known whatever its address; nothing if it does not tell.
async fn identity(client: &Client) -> Result<Option<String>, Failure> {
    match client.api(&NAMESPACES).find("", "kube-system").await {
        Ok(found) => Ok(found.map(|namespace| namespace.meta_str("uid").to_owned())),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn make_namespace(client: &Client, name: &str) -> Result<(), Failure> {
    if client.api(&NAMESPACES).find("", name).await?.is_some() {
        return Ok(());
    }
    let namespace = map! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => map! { "name" => name } };
    match client.api(&NAMESPACES).create("", &namespace.into()).await {
        Err(error) if !error.is_already_exists() => Err(format!("cannot make namespace {name}: {error}").into()),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), Failure> {
    if name == names::LOCAL {
        return Err("local is the cluster in which the Applications are; choose another name with --name".into());
    }
    match object::names::dns1123_subdomain(name).first() {
        Some(why) => Err(format!("{name:?} cannot be the name of a cluster; choose one with --name: {why}").into()),
        None => Ok(()),
    }
}

/// Labels as they are written: `KEY=VALUE`.
fn pairs(written: &[String]) -> Result<Map, Failure> {
    let mut labels = Map::new();
    for pair in written.iter().map(|pair| pair.trim()).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is no KEY=VALUE"))?;
        check_key(key)?;
        if let Some(why) = object::names::label_value(value).first() {
            return Err(format!("{value:?} cannot be the value of a label: {why}").into());
        }
        labels.insert(key, value);
    }
    Ok(labels)
}

fn check_key(key: &str) -> Result<(), Failure> {
    if key.starts_with(names::PREFIX) {
        return Err(format!("the label {key} is not for users").into());
    }
    match object::names::qualified_name(key).first() {
        Some(why) => Err(format!("{key:?} cannot be the key of a label: {why}").into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_and_checked() {
        let read = |written: &[&str]| pairs(&written.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["a=b", " tier=prod"]).unwrap(), map! { "a" => "b", "tier" => "prod" });
        for (written, expected) in [
            ("a", "\"a\" is no KEY=VALUE"),
            ("a=!", "\"!\" cannot be the value of a label"),
            ("cluster.core.oam.dev/control-plane=true", "is not for users"),
        ] {
            let error = read(&[written]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(check_name("local").is_err() && check_name("E U").is_err() && check_name("eu-1").is_ok());
    }
}
