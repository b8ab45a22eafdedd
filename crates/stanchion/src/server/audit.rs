//! `--audit-…`: what is written down of requests.

use super::Error;
use apiserver::audit::{Log, Policy, Rotation};
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::sync::Arc;

/// The flags about the audit log, with the names that kube-apiserver has for them.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub struct Args {
    /// Audit policy (audit.k8s.io/v1): what is written of which requests
    #[arg(long, value_name = "FILE", requires = "audit_log_path", env = "STANCHION_AUDIT_POLICY_FILE")]
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
}

impl Args {
    /// The audit log, if one is asked for.
    pub fn open(&self) -> Result<Option<Arc<Log>>, Error> {
        let (Some(policy), Some(path)) = (&self.audit_policy_file, &self.audit_log_path) else { return Ok(None) };
        let named = |e: &dyn std::fmt::Display, file: &PathBuf| format!("{}: {e}", file.display());
        let text = std::fs::read_to_string(policy).map_err(|e| named(&e, policy))?;
        let policy = Policy::parse(&text).map_err(|e| named(&e, policy))?;
        let rotation = Rotation {
            max_size: self.audit_log_maxsize.saturating_mul(1024 * 1024),
            max_backups: self.audit_log_maxbackup,
            max_age: i64::from(self.audit_log_maxage),
        };
        let log =
            Log::open(path, policy, rotation, apiserver::Options::default().clock).map_err(|e| named(&e, path))?;
        Ok(Some(Arc::new(log)))
    }
}
