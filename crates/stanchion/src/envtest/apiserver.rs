//! The flags of `kube-apiserver`, and what they mean here.

use super::Error;
use super::flags::Flags;
use crate::server;
use crate::terminal::say;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::path::Path;

/// Flags of kube-apiserver that need nothing here: what they set up is not there, or is always so.
const WITHOUT_MEANING: &[&str] = &[
    "advertise-address",
    "allow-privileged",
    "alsologtostderr",
    "cert-dir",
    "default-watch-cache-size",
    "delete-collection-workers",
    "enable-aggregator-routing",
    "enable-bootstrap-token-auth",
    "enable-garbage-collector",
    "enable-logs-handler",
    "enable-priority-and-fairness",
    "endpoint-reconciler-type",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-compaction-interval",
    "etcd-count-metric-poll-period",
    "etcd-healthcheck-timeout",
    "etcd-keyfile",
    "etcd-prefix",
    "etcd-servers",
    "etcd-servers-overrides",
    "event-ttl",
    "external-hostname",
    "goaway-chance",
    "http2-max-streams-per-connection",
    "insecure-port",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "kubelet-preferred-address-types",
    "kubelet-timeout",
    "log-flush-frequency",
    "logging-format",
    "logtostderr",
    "min-request-timeout",
    "profiling",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "request-timeout",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-username-headers",
    "service-account-key-file",
    "service-account-lookup",
    "service-account-max-token-expiration",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "service-node-port-range",
    "storage-backend",
    "storage-media-type",
    "stderrthreshold",
    "tls-cipher-suites",
    "tls-min-version",
    "vmodule",
    "watch-cache",
    "watch-cache-sizes",
];

/// Flags that are read here and become others.
const READ: &[&str] = &["bind-address", "secure-port", "cert-dir", "help", "version"];

/// `stanchion server` by itself, to read its flags and to know their names.
#[derive(Debug, Parser)]
#[command(name = "kube-apiserver", disable_version_flag = true)]
struct Server {
    #[command(flatten)]
    args: server::Args,
}

/// Serves as the flags say, with its data in memory.
pub fn run(words: &[String]) -> Result<(), Error> {
    let mut flags = Flags::read(words)?;
    if flags.has("help") {
        help();
        return Ok(());
    }
    if flags.take("version").is_some() {
        say!("Kubernetes v1.33.13+stanchion-{}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let command = Server::command();
    let own: Vec<&str> = command.get_arguments().filter_map(|a| a.get_long()).collect();
    let words = translate(&mut flags, &own)?;
    let matches = command.try_get_matches_from(words)?;
    let args = server::Args::from_arg_matches(&matches)?;
    server::run(args)
}

/// The flags of `stanchion server` that mean what these flags of kube-apiserver do. `own` are those that there are.
fn translate(flags: &mut Flags, own: &[&str]) -> Result<Vec<String>, Error> {
    let address = flags.take("bind-address").unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = flags.take("secure-port").unwrap_or_else(|| "6443".to_owned());
    let address = if address.contains(':') { format!("[{address}]") } else { address };
    let mut out: Vec<String> =
        ["kube-apiserver", "--in-memory", &format!("--listen={address}:{port}")].map(str::to_owned).to_vec();
    // Test environments put the certificate where kube-apiserver looks by itself.
    let folder = flags.take("cert-dir").unwrap_or_else(|| "/var/run/kubernetes".to_owned());
    let (certificate, key) = (Path::new(&folder).join("apiserver.crt"), Path::new(&folder).join("apiserver.key"));
    if !flags.has("tls-cert-file") && certificate.is_file() && key.is_file() {
        out.push(format!("--tls-cert-file={}", certificate.display()));
        out.push(format!("--tls-private-key-file={}", key.display()));
    }
    // Beside a kube-apiserver alone no controllers run.
    if std::env::var_os("STANCHION_CONTROLLERS").is_none() && !flags.has("controllers") {
        out.push("--controllers=-*".to_owned());
    }
    for (name, values) in std::mem::take(flags).rest() {
        if own.contains(&name.as_str()) {
            let values: Vec<String> = values.into_iter().filter(|v| !v.is_empty()).collect();
            if !values.is_empty() {
                out.push(format!("--{name}={}", values.join(",")));
            }
        } else if !WITHOUT_MEANING.contains(&name.as_str()) {
            eprintln!("kube-apiserver: the flag --{name} is not known to Stanchion and is left out");
        }
    }
    Ok(out)
}

/// Test environments look into the help to learn which flags there are.
fn help() {
    say!("The API server of Stanchion, called by the name of kube-apiserver. It takes these flags:\n");
    let command = Server::command();
    let mut names: Vec<&str> = command.get_arguments().filter_map(|a| a.get_long()).collect();
    // A flag that releases long gone took away is accepted, but not offered.
    names.extend(WITHOUT_MEANING.iter().chain(READ).filter(|n| **n != "insecure-port"));
    names.sort_unstable();
    names.dedup();
    names.iter().for_each(|name| say!("      --{name}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let mut flags = Flags::read(&words).unwrap();
        translate(&mut flags, &["authorization-mode", "client-ca-file", "tls-cert-file"]).unwrap()
    }

    #[test]
    fn what_a_test_environment_passes_is_understood() {
        let words = translated(&[
            "--secure-port=4443",
            "--bind-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--client-ca-file=/x/ca.crt",
            "--etcd-servers=http://127.0.0.1:1",
            "--allow-privileged=true",
        ]);
        assert!(words.contains(&"--listen=127.0.0.1:4443".to_owned()));
        assert!(words.contains(&"--authorization-mode=RBAC".to_owned()));
        assert!(words.contains(&"--client-ca-file=/x/ca.crt".to_owned()));
        assert!(!words.iter().any(|w| w.contains("etcd") || w.contains("privileged")));
    }

    #[test]
    fn version_6_addresses_and_repeated_flags_are_joined() {
        let words = translated(&["--bind-address=::1", "--authorization-mode=Node", "--authorization-mode=RBAC"]);
        assert!(words.contains(&"--listen=[::1]:6443".to_owned()));
        assert!(words.contains(&"--authorization-mode=Node,RBAC".to_owned()));
    }
}
