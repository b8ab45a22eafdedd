//! Programs that give credentials, as `client.authentication.k8s.io` says (kubectl's exec plugins).

use super::client::Failure;
use super::kubeconfig::text;
use jiff::Timestamp;
use object::{Value, json, map};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const GROUP: &str = "client.authentication.k8s.io";

/// A program, and how it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    api_version: String,
    command: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    hint: String,
    interactive: Interactive,
    wants_cluster: bool,
}

/// Whether a program may ask people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interactive {
    Never,
    IfAvailable,
    Always,
}

/// What a program said.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// A token; often empty.
    pub token: String,
    /// A certificate in PEM form; often empty.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Until when this is good; until the server refuses it if nothing is said.
    pub ends: Option<Timestamp>,
}

impl Exec {
    /// Reads `exec` of a kubeconfig's user, whose file is in `folder`.
    pub fn read(value: &Value, folder: &Path) -> Result<Self, String> {
        let api_version = text(value, "apiVersion");
        let version = api_version.strip_prefix(GROUP).and_then(|v| v.strip_prefix('/'));
        if !matches!(version, Some("v1" | "v1beta1")) {
            return Err(format!(
                "exec: apiVersion {api_version:?} is not supported: it has to be {GROUP}/v1 or v1beta1"
            ));
        }
        let interactive = match text(value, "interactiveMode").as_str() {
            "Never" => Interactive::Never,
            "Always" => Interactive::Always,
            "IfAvailable" => Interactive::IfAvailable,
            "" if version == Some("v1beta1") => Interactive::IfAvailable,
            "" => return Err("exec: interactiveMode must be specified".to_owned()),
            other => return Err(format!("exec: invalid interactiveMode: {other:?}")),
        };
        let command = text(value, "command");
        if command.is_empty() {
            return Err("exec: command must be specified".to_owned());
        }
        // A path is meant from where the file is; a name is looked for in PATH.
        let command = if command.contains('/') { folder.join(command) } else { PathBuf::from(command) };
        let list = |key: &str| value.get(key).and_then(Value::as_array).unwrap_or_default();
        Ok(Exec {
            command,
            args: list("args").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            env: list("env").iter().map(|e| (text(e, "name"), text(e, "value"))).collect(),
            hint: text(value, "installHint"),
            interactive,
            wants_cluster: value.get("provideClusterInfo").and_then(Value::as_bool).unwrap_or(false),
            api_version,
        })
    }

    #[cfg(test)]
    pub fn for_test(command: &str, args: &[&str]) -> Self {
        Exec {
            api_version: format!("{GROUP}/v1"),
            command: command.into(),
            args: args.iter().map(|&a| a.to_owned()).collect(),
            env: Vec::new(),
            hint: String::new(),
            interactive: Interactive::Never,
            wants_cluster: false,
        }
    }

    /// Runs the program to its end. `cluster` is what it may learn of the cluster, as JSON.
    pub fn run(&self, cluster: &str) -> Result<Said, Failure> {
        let shown = self.command.display();
        let is_terminal = std::io::stdin().is_terminal();
        if self.interactive == Interactive::Always && !is_terminal {
            return Err(format!(
                "exec plugin {shown} cannot support interactive mode: standard input is not a terminal"
            )
            .into());
        }
        let may_ask = is_terminal && self.interactive != Interactive::Never;
        let mut spec = map! { "interactive" => may_ask };
        if self.wants_cluster {
            spec.insert("cluster", json::parse(cluster.as_bytes())?);
        }
        let info = map! { "apiVersion" => self.api_version.as_str(), "kind" => "ExecCredential", "spec" => spec };
        let output = Command::new(&self.command)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("KUBERNETES_EXEC_INFO", json::to_string(&info.into()))
            .stdin(if may_ask { Stdio::inherit() } else { Stdio::null() })
            .stderr(Stdio::inherit())
            .output();
        let output = output.map_err(|error| self.helped(format!("exec: {shown}: {error}")))?;
        if !output.status.success() {
            return Err(self.helped(format!("exec: executable {shown} failed: {}", output.status)).into());
        }
        self.understand(&output.stdout).map_err(|error| format!("exec: {shown}: {error}").into())
    }

    fn helped(&self, error: String) -> String {
        if self.hint.is_empty() { error } else { format!("{error}\n{}", self.hint) }
    }

    fn understand(&self, output: &[u8]) -> Result<Said, String> {
        let credential = json::parse(output).map_err(|e| format!("what it wrote is no JSON: {e}"))?;
        let version = text(&credential, "apiVersion");
        if version != self.api_version {
            let wanted = &self.api_version;
            return Err(format!("plugin is configured to use API version {wanted}, plugin returned version {version}"));
        }
        let status = credential.get("status").filter(|s| s.as_object().is_some());
        let status = status.ok_or("plugin didn't return a status field")?;
        let said = Said {
            token: text(status, "token"),
            certificate: text(status, "clientCertificateData"),
            key: text(status, "clientKeyData"),
            ends: match text(status, "expirationTimestamp").as_str() {
                "" => None,
                time => Some(time.parse().map_err(|_| format!("expirationTimestamp {time:?} is no time"))?),
            },
        };
        match (said.token.is_empty(), said.certificate.is_empty(), said.key.is_empty()) {
            (true, true, true) => Err("plugin didn't return a token or cert/key pair".to_owned()),
            (_, false, true) | (_, true, false) => Err("plugin returned only certificate or key, not both".to_owned()),
            _ => Ok(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(text: &str) -> Result<Exec, String> {
        Exec::read(&yaml::parse(text.as_bytes()).unwrap(), Path::new("/folder"))
    }

    #[test]
    fn an_entry_is_checked_before_anything_is_run() {
        for (entry, wrong) in [
            ("{command: a, apiVersion: v1}", "apiVersion \"v1\" is not supported"),
            ("{command: a, apiVersion: client.authentication.k8s.io/v1alpha1}", "is not supported"),
            ("{command: a, apiVersion: client.authentication.k8s.io/v1}", "interactiveMode must be specified"),
            ("{apiVersion: client.authentication.k8s.io/v1beta1}", "command must be specified"),
            (
                "{command: a, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Perhaps}",
                "invalid interactiveMode",
            ),
        ] {
            assert!(read(entry).unwrap_err().contains(wrong), "{entry}");
        }
        let exec = read(
            "{command: bin/a, args: [x], env: [{name: N, value: v}], apiVersion: client.authentication.k8s.io/v1beta1}",
        );
        let exec = exec.unwrap();
        assert_eq!((exec.command.to_str(), exec.args.len(), exec.env.len()), (Some("/folder/bin/a"), 1, 1));
    }

    #[test]
    fn a_program_is_told_what_it_may_know_and_answers() {
        let script = "test \"$N\" = v && echo \"$KUBERNETES_EXEC_INFO\" | grep -q '\"server\":\"https://s\"' && echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\",\"expirationTimestamp\":\"2030-01-01T00:00:00Z\"}}'";
        let exec = Exec {
            wants_cluster: true,
            env: vec![("N".to_owned(), "v".to_owned())],
            ..Exec::for_test("sh", &["-c", script])
        };
        let said = exec.run("{\"server\":\"https://s\"}").unwrap();
        assert_eq!((said.certificate.as_str(), said.key.as_str(), said.ends.is_some()), ("c", "k", true));
    }

    #[test]
    fn what_a_program_does_wrong_is_told() {
        let answer =
            |status: &str| format!("echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{status}}}'");
        for (script, wrong) in [
            ("exit 3".to_owned(), "failed: exit status: 3\ninstall it"),
            ("echo no".to_owned(), "is no JSON"),
            ("echo '{\"apiVersion\":\"v1\"}'".to_owned(), "plugin returned version v1"),
            (answer("null"), "didn't return a status field"),
            (answer("{}"), "didn't return a token or cert/key pair"),
            (answer("{\"clientKeyData\":\"k\"}"), "not both"),
            (answer("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"), "is no time"),
        ] {
            let exec = Exec { hint: "install it".to_owned(), ..Exec::for_test("sh", &["-c", &script]) };
            let error = exec.run("{}").unwrap_err().to_string();
            assert!(error.contains(wrong), "{script}: {error}");
        }
        let exec = Exec { hint: "install it".to_owned(), ..Exec::for_test("no-such-program-here", &[]) };
        assert!(exec.run("{}").unwrap_err().to_string().ends_with("install it"));
        let exec = Exec { interactive: Interactive::Always, ..Exec::for_test("true", &[]) };
        if !std::io::stdin().is_terminal() {
            assert!(exec.run("{}").unwrap_err().to_string().contains("is not a terminal"));
        }
    }
}
