//! `--audit-…`: what is written down of requests, and where it goes.

use super::Error;
use crate::cluster::{Credentials, Kubeconfig, tls};
use apiserver::audit::{Log, Policy, Receiver, Rotation, Settings, Unsent, Webhook};
use apiserver::webhooks::{Endpoint, WebhookClient};
use bytes::Bytes;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long the webhook may take for a list of events (upstream's).
const PATIENCE: Duration = Duration::from_secs(30);

/// The flags about audit, with the names that kube-apiserver has for them.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub struct Args {
    /// Audit policy (audit.k8s.io/v1): what is written of which requests
    #[arg(long, value_name = "FILE", env = "STANCHION_AUDIT_POLICY_FILE")]
    audit_policy_file: Option<PathBuf>,

    /// File that audit events are appended to, a JSON object a line; - for standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file", env = "STANCHION_AUDIT_LOG_PATH")]
    audit_log_path: Option<PathBuf>,

    /// Megabytes at which the audit log is put aside and a new file begun; 0 for never
    #[arg(long, value_name = "MEGABYTES", default_value_t = 100, env = "STANCHION_AUDIT_LOG_MAXSIZE")]
    audit_log_maxsize: u64,

    /// How many older audit logs are kept; 0 for all
    #[arg(long, value_name = "NUMBER", default_value_t = 0, env = "STANCHION_AUDIT_LOG_MAXBACKUP")]
    audit_log_maxbackup: usize,

    /// For how many days older audit logs are kept; 0 for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, env = "STANCHION_AUDIT_LOG_MAXAGE")]
    audit_log_maxage: u16,

    /// Kubeconfig that says to which https URL audit events are sent, and with which credentials
    #[arg(long, value_name = "FILE", requires = "audit_policy_file", env = "STANCHION_AUDIT_WEBHOOK_CONFIG_FILE")]
    audit_webhook_config_file: Option<PathBuf>,

    /// How audit events are sent
    #[arg(long, value_enum, default_value_t = Mode::Batch, env = "STANCHION_AUDIT_WEBHOOK_MODE")]
    audit_webhook_mode: Mode,

    /// How many audit events may wait for the webhook; those that find no room are lost, and counted
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, env = "STANCHION_AUDIT_WEBHOOK_BATCH_BUFFER_SIZE")]
    audit_webhook_batch_buffer_size: usize,

    /// The most audit events of a batch
    #[arg(long, value_name = "NUMBER", default_value_t = 400, env = "STANCHION_AUDIT_WEBHOOK_BATCH_MAX_SIZE")]
    audit_webhook_batch_max_size: usize,

    /// How long a batch waits for further audit events
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = object::duration::go, env = "STANCHION_AUDIT_WEBHOOK_BATCH_MAX_WAIT")]
    audit_webhook_batch_max_wait: Duration,

    /// How many batches are sent a second; 0 for any number
    #[arg(long, value_name = "NUMBER", default_value_t = 10.0, env = "STANCHION_AUDIT_WEBHOOK_BATCH_THROTTLE_QPS")]
    audit_webhook_batch_throttle_qps: f64,

    /// How many batches may be sent at once after a quiet time
    #[arg(long, value_name = "NUMBER", default_value_t = 15, env = "STANCHION_AUDIT_WEBHOOK_BATCH_THROTTLE_BURST")]
    audit_webhook_batch_throttle_burst: u32,

    /// How long after a failure audit events are sent again; each further attempt waits half as long again
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = object::duration::go, env = "STANCHION_AUDIT_WEBHOOK_INITIAL_BACKOFF")]
    audit_webhook_initial_backoff: Duration,
}

/// How events are sent to the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Several together; no request waits
    Batch,
    /// Each by itself, before the request goes on
    Blocking,
}

impl Args {
    /// What writes events down, if that is asked for. Webhooks are called by `client`.
    pub fn open(&self, client: &Arc<WebhookClient>) -> Result<Option<Arc<Log>>, Error> {
        let Some(policy) = &self.audit_policy_file else { return Ok(None) };
        if self.audit_log_path.is_none() && self.audit_webhook_config_file.is_none() {
            return Err("--audit-policy-file needs --audit-log-path or --audit-webhook-config-file".into());
        }
        let named = |e: &dyn std::fmt::Display, file: &Path| format!("{}: {e}", file.display());
        let text = std::fs::read_to_string(policy).map_err(|e| named(&e, policy))?;
        let chosen = Policy::parse(&text).map_err(|e| named(&e, policy))?;
        let mut log = Log::new(chosen, apiserver::Options::default().clock);
        if let Some(path) = &self.audit_log_path {
            let rotation = Rotation {
                max_size: self.audit_log_maxsize.saturating_mul(1024 * 1024),
                max_backups: self.audit_log_maxbackup,
                max_age: i64::from(self.audit_log_maxage),
            };
            log = log.to_file(path, rotation).map_err(|e| named(&e, path))?;
        }
        if let Some(path) = &self.audit_webhook_config_file {
            let receiver = Elsewhere::open(path, client).map_err(|e| named(&e, path))?;
            log = log.to_webhook(Webhook::start(Arc::new(receiver), self.settings()));
        }
        Ok(Some(Arc::new(log)))
    }

    fn settings(&self) -> Settings {
        Settings {
            blocking: self.audit_webhook_mode == Mode::Blocking,
            buffer: self.audit_webhook_batch_buffer_size,
            batch: self.audit_webhook_batch_max_size,
            wait: self.audit_webhook_batch_max_wait,
            rate: self.audit_webhook_batch_throttle_qps,
            burst: self.audit_webhook_batch_throttle_burst,
            backoff: self.audit_webhook_initial_backoff,
        }
    }
}

/// The program of a kubeconfig.
struct Elsewhere {
    endpoint: Endpoint,
    credentials: Credentials,
}

impl Elsewhere {
    fn open(path: &Path, client: &Arc<WebhookClient>) -> Result<Self, Error> {
        let config = Kubeconfig::read(path, None)?;
        if config.exec.is_some() {
            return Err("credentials of a program (exec) are not possible here".into());
        }
        if !config.tls_server_name.is_empty() {
            return Err("tls-server-name is not possible here: the certificate has to be for the URL's host".into());
        }
        let endpoint = Endpoint::new(client.clone(), &config.server, Arc::new(tls(&config)?))?;
        Ok(Elsewhere { endpoint, credentials: Credentials::new(&config)? })
    }
}

impl Receiver for Elsewhere {
    fn send(&self, list: Bytes) -> Pin<Box<dyn Future<Output = Result<(), Unsent>> + Send + '_>> {
        Box::pin(async move {
            let later = |why: String| Unsent { why, again: true };
            let proof = self.credentials.proof().await.map_err(|e| later(e.to_string()))?;
            match self.endpoint.post(proof.authorization.as_ref(), list, PATIENCE).await.map_err(later)? {
                200..=299 => Ok(()),
                code => {
                    let again = matches!(code, 401 | 429 | 500..);
                    if code == 401 {
                        self.credentials.refused(&proof).await;
                    }
                    Err(Unsent { why: format!("the answer has code {code}"), again })
                }
            }
        })
    }
}
