//! `stanchion server`: flags, wiring, start and end.

mod audit;
mod chain;
mod controllers;
mod ending;
mod features;
mod gates;
mod kubeconfig;
pub mod logging;
mod manager;
mod oidc;
pub mod pki;
mod reload;
mod work;

use self::ending::Ending;
use self::reload::Reload;
use crate::storage::{self, Storage};
use crate::terminal::say;
use ::controllers::{Authority, Settings, Simulated};
use apiserver::MoreMetrics;
use apiserver::admission::plugins::Plugins;
use apiserver::auth::{Authenticator, ServiceAccounts, StaticTokens, Tokens};
use apiserver::authorize::{AlwaysAllow, AlwaysDeny, Authorizer, Union};
use apiserver::debug::Verbosity;
use apiserver::http::{Listener, Tls, TlsFiles, server_config};
use apiserver::limits::Limits;
use apiserver::rbac::Rbac;
use apiserver::webhooks::WebhookClient;
use apiserver::webhooks::conversion::WebhookConverter;
use clap::{Args as ClapArgs, ValueEnum};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How long controllers may take to end.
const END: Duration = Duration::from_secs(1);
/// How long requests that are in flight may take when the server ends.
const DRAIN: Duration = Duration::from_secs(10);
/// Room for the deepest object that JSON may nest; the memory is touched only where it is needed.
const STACK: usize = 16 * 1024 * 1024;

/// The flags of `stanchion server`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// YAML file of flags and their values, such as `in-memory: true`; flags and environment variables count more
    #[arg(long, value_name = "FILE", env = "STANCHION_CONFIG")]
    config: Option<PathBuf>,

    /// Folder for the data, the certificates and admin.kubeconfig [default: stanchion in the user's data folder]
    #[arg(long, value_name = "DIR", env = "STANCHION_DATA_DIR")]
    data_dir: Option<PathBuf>,

    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443", env = "STANCHION_LISTEN")]
    listen: SocketAddr,

    /// Keep the data in memory only; it is gone when the server ends
    #[arg(long, env = "STANCHION_IN_MEMORY", conflicts_with = "storage")]
    in_memory: bool,

    #[command(flatten)]
    storage: storage::Args,

    /// File of static tokens: lines of token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE", env = "STANCHION_TOKEN_AUTH_FILE")]
    token_auth_file: Option<PathBuf>,

    /// More authorities whose client certificates are accepted, in PEM form
    #[arg(long, value_name = "FILE", env = "STANCHION_CLIENT_CA_FILE")]
    client_ca_file: Option<PathBuf>,

    /// Certificate to serve with, in PEM form, in place of the one that the server makes itself
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file", env = "STANCHION_TLS_CERT_FILE")]
    tls_cert_file: Option<PathBuf>,

    /// Key of --tls-cert-file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file", env = "STANCHION_TLS_PRIVATE_KEY_FILE")]
    tls_private_key_file: Option<PathBuf>,

    /// Further host names and addresses for the server's own certificate
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', env = "STANCHION_TLS_SAN")]
    tls_san: Vec<String>,

    /// Who decides who may do what; several are asked in turn. Node has no opinion: there are no nodes
    #[arg(
        long,
        value_name = "MODE,...",
        value_enum,
        value_delimiter = ',',
        default_value = "RBAC",
        env = "STANCHION_AUTHORIZATION_MODE"
    )]
    authorization_mode: Vec<AuthorizationMode>,

    /// Who the tokens of service accounts are from
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://kubernetes.default.svc",
        env = "STANCHION_SERVICE_ACCOUNT_ISSUER"
    )]
    service_account_issuer: String,

    /// For whom tokens have to be to be accepted [default: the issuer]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', env = "STANCHION_API_AUDIENCES")]
    api_audiences: Vec<String>,

    /// Controllers that run: * for all, NAME for one, -NAME for all but that one
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true,
        env = "STANCHION_CONTROLLERS"
    )]
    controllers: Vec<String>,

    /// Whether workloads such as Deployments and Jobs do something
    #[arg(long, value_name = "MODE", value_enum, default_value = "off", env = "STANCHION_WORKLOADS")]
    workloads: controllers::Workloads,

    /// How many nodes are pretended with --workloads simulated
    #[arg(long, value_name = "NUMBER", default_value_t = 3, env = "STANCHION_SIMULATED_NODES")]
    simulated_nodes: usize,

    /// How long a pretended pod takes to run and be ready, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = object::duration::go, env = "STANCHION_SIMULATED_POD_START")]
    simulated_pod_start: std::time::Duration,

    /// How long a pretended pod runs that is to end, such as a Job's
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = object::duration::go, env = "STANCHION_SIMULATED_POD_RUN")]
    simulated_pod_run: std::time::Duration,

    /// Admission plugins that are on beside the default ones
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', env = "STANCHION_ENABLE_ADMISSION_PLUGINS")]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins that are off though they are on by default
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', env = "STANCHION_DISABLE_ADMISSION_PLUGINS")]
    disable_admission_plugins: Vec<String>,

    #[command(flatten)]
    features: features::Args,

    #[command(flatten)]
    oidc: oidc::Args,

    #[command(flatten)]
    audit: audit::Args,

    /// Run the controllers of tenants, their resources and permits, and of Applications
    #[arg(long, env = "STANCHION_MANAGER")]
    manager: bool,

    #[command(flatten)]
    applications: crate::manager::ApplicationArgs,

    /// Let requests without credentials in as system:anonymous
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, env = "STANCHION_ANONYMOUS_AUTH")]
    anonymous_auth: bool,

    /// Let what a mutating webhook changes be owned by the webhook, by its name, in managedFields
    #[arg(long, env = "STANCHION_ATTRIBUTE_WEBHOOK_CHANGES")]
    attribute_webhook_changes: bool,

    /// How many requests that only read are handled at the same time; 0 for any number
    #[arg(long, value_name = "NUMBER", default_value_t = 400, env = "STANCHION_MAX_REQUESTS_INFLIGHT")]
    max_requests_inflight: usize,

    /// How many requests that change something are handled at the same time; 0 for any number
    #[arg(long, value_name = "NUMBER", default_value_t = 200, env = "STANCHION_MAX_MUTATING_REQUESTS_INFLIGHT")]
    max_mutating_requests_inflight: usize,

    /// How long the server goes on after SIGTERM while /readyz says that it ends, such as 10s; a second signal ends the wait
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = object::duration::go, env = "STANCHION_SHUTDOWN_DELAY_DURATION")]
    shutdown_delay_duration: std::time::Duration,

    /// How much is logged, as a number as klog has it; counts more than --log-level
    #[arg(short = 'v', long = "v", value_name = "NUMBER", env = "STANCHION_V")]
    verbosity: Option<u8>,

    /// What is logged: error, warn, info, debug or trace, or a filter such as info,apiserver=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn", env = "STANCHION_LOG_LEVEL")]
    log_level: String,

    /// How it is logged
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = logging::Format::Text, env = "STANCHION_LOG_FORMAT")]
    log_format: logging::Format,
}

/// Who decides who may do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthorizationMode {
    /// Roles and bindings
    #[value(name = "RBAC", alias = "rbac")]
    Rbac,
    /// Nodes' rights; there are none
    #[value(name = "Node", alias = "node")]
    Node,
    /// Everybody may do everything
    #[value(name = "AlwaysAllow", alias = "alwaysallow")]
    AlwaysAllow,
    /// Nobody may do anything but the group system:masters
    #[value(name = "AlwaysDeny", alias = "alwaysdeny")]
    AlwaysDeny,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Runs the server until SIGTERM or SIGINT.
pub fn run(args: Args) -> Result<(), Error> {
    let started = Instant::now();
    let level = match args.verbosity {
        Some(number) => logging::filter(&number.to_string(), &args.log_level)?,
        None => args.log_level.clone(),
    };
    let verbosity = logging::start(&level, args.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
    let outcome = runtime.block_on(serve(args, verbosity, started));
    // Whatever still runs must not hold the process back.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}

async fn serve(args: Args, verbosity: Verbosity, started: Instant) -> Result<(), Error> {
    // Signals are caught before anything is written, so that an early one ends the server as cleanly as a late one.
    let mut ending = Ending::catch()?;
    let hangup = signal(SignalKind::hangup())?;
    let features = args.features.read()?;
    // Before anything is written, too: of two servers at one address the second one leaves no traces.
    let socket = TcpListener::bind(args.listen).await.map_err(|e| format!("cannot listen on {}: {e}", args.listen))?;
    let address = socket.local_addr()?;
    let folder = Folder::of(&args)?;
    let pki = pki::Pki { folder: folder.path.join("pki") };
    pki.ensure(&names(&args))?;
    let storage = if args.in_memory { Storage::Memory } else { args.storage.storage(&folder.path)? };
    let store = storage.open().await?;
    let files = tls_files(&args, &pki);
    let tls = Arc::new(Tls::new(server_config(&files)?));
    let webhooks = Arc::new(WebhookClient::new(store.clone()));
    let tokens = Tokens { oidc: args.oidc.open(&webhooks)?, ..tokens(&args, &store, &pki)? };
    let tokens = Arc::new(tokens);
    let authenticator = Authenticator { tokens: tokens.clone(), anonymous: args.anonymous_auth };
    let listener = Listener::over(socket, Some(tls.clone()), authenticator);
    let authorizer = authorizer(&args.authorization_mode, &store).await?;
    let controllers = controllers::Controllers::new(&args.controllers, args.workloads)?;
    let managed = ::manager::Admission::default().authenticating(args.applications.authenticate_applications);
    let measured = ::manager::Metrics::default();
    let plugins = Plugins::new(&args.enable_admission_plugins, &args.disable_admission_plugins)?;
    let admission = chain::chain(&args, plugins, &features, args.manager.then(|| managed.clone()), &webhooks);
    let audit = args.audit.open(&webhooks)?;
    let queues = measured.queues().clone();
    let options = apiserver::Options {
        authorizer,
        tokens: tokens.clone(),
        verbosity: Some(verbosity),
        admission: Arc::new(admission),
        plugins,
        optional: features.optional(),
        audit: audit.clone(),
        converter: Arc::new(WebhookConverter::new(webhooks)),
        limits: Limits { reading: args.max_requests_inflight, mutating: args.max_mutating_requests_inflight },
        advertised: address.to_string(),
        shared: storage.is_shared(),
        client_ca: client_authorities(&files)?,
        more_metrics: more_metrics(measured.clone(), features.gates.metric()),
        role_aggregation: controllers.has("clusterrole-aggregation-controller"),
        ..apiserver::Options::default()
    };
    let server = apiserver::Server::new(store.clone(), options).await?;
    let settings = Settings { queues, ..settings(&args, &pki)? };
    if args.manager {
        manager::install(&server).await;
    }
    let managed = args.manager.then(|| {
        let applications = args.applications.options();
        manager::Setup { admission: managed, metrics: measured, applications }
    });
    let (stop, stopped) = watch::channel(false);
    let work = work::Work { server: server.clone(), settings, controllers, managed };
    let mut working = work.start(storage.is_shared(), stopped.clone());
    let serving = tokio::spawn(listener.serve(server.clone(), stopped, DRAIN));

    let url = url(address);
    let kubeconfig = folder.path.join("admin.kubeconfig");
    kubeconfig::write_admin(&kubeconfig, &url, &pki)?;
    let reload = Reload {
        names: names(&args),
        pki,
        files,
        tls,
        token_file: args.token_auth_file.clone(),
        tokens,
        kubeconfig: (kubeconfig.clone(), url.clone()),
    };
    let reloading = tokio::spawn(reload.run(hangup));
    announce(&url, &kubeconfig, started.elapsed(), args.in_memory);

    ending.signalled().await;
    server.announce_end();
    let _ = tokio::time::timeout(args.shutdown_delay_duration, ending.signalled()).await;
    reloading.abort();
    let _ = stop.send(true);
    if tokio::time::timeout(END, &mut working).await.is_err() {
        working.abort();
    }
    server.shutdown();
    let finished = tokio::select! {
        finished = serving => finished.unwrap_or(false),
        () = ending.signalled() => false,
    };
    if !finished {
        tracing::warn!("some requests were cut off at the end");
    }
    if let Some(audit) = audit {
        audit.finish(END).await;
    }
    store.close().await;
    Ok(())
}

/// What is told of this server beside what it counts of requests.
fn more_metrics(measured: ::manager::Metrics, gates: String) -> MoreMetrics {
    Arc::new(move |text: &mut String| {
        text.push_str(&gates);
        measured.write(text);
    })
}

/// What the controllers have to know of flags and certificates.
fn settings(args: &Args, pki: &pki::Pki) -> Result<Settings, Error> {
    let simulated =
        Simulated { nodes: args.simulated_nodes, pod_start: args.simulated_pod_start, pod_run: args.simulated_pod_run };
    let root_ca = std::fs::read_to_string(pki.file("ca.crt"))?;
    let authority = Authority::from_pem(&root_ca, &std::fs::read_to_string(pki.file("ca.key"))?)
        .inspect_err(|error| tracing::warn!("CertificateSigningRequests are not signed: {error}"))
        .ok()
        .map(Arc::new);
    Ok(Settings { root_ca, authority, simulated, ..Settings::default() })
}

/// The folder for everything that the server keeps. One made for a server in memory goes with it.
struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    fn of(args: &Args) -> Result<Self, Error> {
        let (path, temporary) = match &args.data_dir {
            Some(path) => (path.clone(), false),
            None if args.in_memory => (std::env::temp_dir().join(format!("stanchion-{}", std::process::id())), true),
            None => (storage::default_folder()?, false),
        };
        // What is in it is for whoever runs the server alone: Secrets are kept in clear text.
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => format!("{} is not a folder", path.display()),
            _ => format!("{}: {e}", path.display()),
        })?;
        let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Folder { path, temporary })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The names by which clients on this machine, and programs made for clusters, reach the server.
fn names(args: &Args) -> Vec<String> {
    let mut names: Vec<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "::1",
        "10.0.0.1",
    ]
    .map(str::to_owned)
    .to_vec();
    let listen = args.listen.ip();
    if !listen.is_unspecified() {
        names.push(listen.to_string());
    }
    names.extend(args.tls_san.iter().cloned());
    let mut seen = std::collections::HashSet::new();
    names.retain(|n| seen.insert(n.clone()));
    names
}

fn tls_files(args: &Args, pki: &pki::Pki) -> TlsFiles {
    let (certificate, key) = match (&args.tls_cert_file, &args.tls_private_key_file) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        _ => (pki.file("server.crt"), pki.file("server.key")),
    };
    let mut client_authorities = vec![pki.file("ca.crt")];
    client_authorities.extend(args.client_ca_file.clone());
    TlsFiles { certificate, key, client_authorities }
}

/// The authorities of clients' certificates, in PEM form.
fn client_authorities(files: &TlsFiles) -> Result<String, Error> {
    Ok(files.client_authorities.iter().map(std::fs::read_to_string).collect::<Result<String, _>>()?)
}

/// Those who decide who may do what.
async fn authorizer(modes: &[AuthorizationMode], store: &Arc<dyn Store>) -> Result<Arc<dyn Authorizer>, Error> {
    let mut all: Vec<Arc<dyn Authorizer>> = Vec::new();
    for mode in modes {
        all.push(match mode {
            AuthorizationMode::Rbac => Rbac::open(store.clone()).await?,
            AuthorizationMode::Node => continue,
            AuthorizationMode::AlwaysAllow => Arc::new(AlwaysAllow),
            AuthorizationMode::AlwaysDeny => Arc::new(AlwaysDeny),
        });
    }
    Ok(Arc::new(Union::new(all)))
}

/// The tokens that are accepted: those of the file, and those that the server signs for service accounts.
fn tokens(args: &Args, store: &Arc<dyn Store>, pki: &pki::Pki) -> Result<Tokens, Error> {
    let fixed = match &args.token_auth_file {
        None => StaticTokens::default(),
        Some(path) => reload::static_tokens(path)?,
    };
    let (issuer, key) = (&args.service_account_issuer, pki.service_account_key()?);
    let accounts = ServiceAccounts::new(store.clone(), apiserver::Options::default().clock, issuer, &key)?;
    let audiences = match args.api_audiences.is_empty() {
        true => vec![issuer.clone()],
        false => args.api_audiences.clone(),
    };
    Ok(Tokens { fixed, accounts: Some(accounts), oidc: None, audiences })
}

/// The URL for clients on this machine; a server on all addresses is reached by loopback.
fn url(address: SocketAddr) -> String {
    let mut reached = address;
    if address.ip().is_unspecified() {
        reached.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    format!("https://{reached}")
}

/// Tells people that the server is ready, and how to use it.
fn announce(url: &str, kubeconfig: &Path, took: Duration, in_memory: bool) {
    let kept = if in_memory { ", nothing is kept" } else { "" };
    say!("Stanchion {} is ready on {url} after {} ms{kept}", env!("CARGO_PKG_VERSION"), took.as_millis());
    say!("export KUBECONFIG={}", shell_word(&kubeconfig.display().to_string()));
}

/// A word that a shell reads back as it is.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_one_that_clients_can_reach() {
        assert_eq!(url("127.0.0.1:6443".parse().unwrap()), "https://127.0.0.1:6443");
        assert_eq!(url("0.0.0.0:1".parse().unwrap()), "https://127.0.0.1:1");
        assert_eq!(url("[::]:1".parse().unwrap()), "https://[::1]:1");
    }

    #[test]
    fn odd_paths_are_quoted_for_the_shell() {
        assert_eq!(shell_word("/a/b.c"), "/a/b.c");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
    }
}
