//! Who we are to a cluster: what stands in the kubeconfig, a token in a file that changes, or what a program says.

use super::client::Failure;
use super::kubeconfig::{Exec, Kubeconfig};
use http::HeaderValue;
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long the token of a file is good before the file is read again (client-go's time).
const FILE_LIFE: Duration = Duration::from_secs(60);

/// The credentials of a kubeconfig's user.
pub struct Credentials {
    source: Source,
    kept: Mutex<Option<Kept>>,
}

enum Source {
    Fixed(Arc<Proof>),
    File { path: PathBuf, certificate: Vec<u8>, key: Vec<u8> },
    Program { exec: Exec, cluster: String },
}

struct Kept {
    proof: Arc<Proof>,
    ends: Ends,
}

enum Ends {
    At(Instant),
    Wall(Timestamp),
    Never,
}

/// What proves who we are.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// What the header `Authorization` says.
    pub authorization: Option<HeaderValue>,
    /// Our certificate, in PEM form; empty where there is none.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

impl Credentials {
    /// Those of a kubeconfig. No program is run yet.
    pub fn new(config: &Kubeconfig) -> Result<Self, Failure> {
        let (certificate, key) = (config.certificate.clone(), config.key.clone());
        let source = match (&config.exec, &config.token_file) {
            (Some(exec), _) => Source::Program { exec: exec.clone(), cluster: config.cluster_info() },
            (None, Some(path)) => Source::File { path: path.clone(), certificate, key },
            (None, None) => Source::Fixed(Arc::new(Proof { authorization: bearer(&config.token)?, certificate, key })),
        };
        Ok(Credentials { source, kept: Mutex::default() })
    }

    /// The proof that is good now.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the program fails.
    pub async fn proof(&self) -> Result<Arc<Proof>, Failure> {
        if let Source::Fixed(proof) = &self.source {
            return Ok(proof.clone());
        }
        // Others wait here for the one that asks; nobody runs a program twice at once.
        let mut kept = self.kept.lock().await;
        if let Some(known) = kept.as_ref().filter(|kept| kept.is_good()) {
            return Ok(known.proof.clone());
        }
        let next = self.ask().await?;
        Ok(kept.insert(next).proof.clone())
    }

    /// The server refused a proof: if another one can be had, the next one is. Says whether it can.
    pub async fn refused(&self, proof: &Arc<Proof>) -> bool {
        if matches!(self.source, Source::Fixed(_)) {
            return false;
        }
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(&kept.proof, proof)) {
            *kept = None;
        }
        true
    }

    async fn ask(&self) -> Result<Kept, Failure> {
        match &self.source {
            Source::Fixed(proof) => Ok(Kept { proof: proof.clone(), ends: Ends::Never }),
            Source::File { path, certificate, key } => {
                let token = tokio::fs::read_to_string(path).await.map_err(|e| format!("{}: {e}", path.display()))?;
                let (certificate, key) = (certificate.clone(), key.clone());
                let proof = Arc::new(Proof { authorization: bearer(token.trim())?, certificate, key });
                Ok(Kept { proof, ends: Ends::At(Instant::now() + FILE_LIFE) })
            }
            Source::Program { exec, cluster } => {
                let (exec, cluster) = (exec.clone(), cluster.clone());
                let said = tokio::task::spawn_blocking(move || exec.run(&cluster)).await??;
                let (certificate, key) = (said.certificate.into_bytes(), said.key.into_bytes());
                let proof = Arc::new(Proof { authorization: bearer(&said.token)?, certificate, key });
                Ok(Kept { proof, ends: said.ends.map_or(Ends::Never, Ends::Wall) })
            }
        }
    }
}

impl Kept {
    fn is_good(&self) -> bool {
        match self.ends {
            Ends::At(end) => Instant::now() < end,
            Ends::Wall(end) => Timestamp::now() < end,
            Ends::Never => true,
        }
    }
}

fn bearer(token: &str) -> Result<Option<HeaderValue>, Failure> {
    if token.is_empty() {
        return Ok(None);
    }
    let mut value =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "the token is no text for a header")?;
    value.set_sensitive(true);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn token(credentials: &Credentials) -> String {
        let proof = credentials.proof().await.unwrap();
        proof.authorization.as_ref().unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_token_file_is_read_again_when_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "a\n").unwrap();
        let config = Kubeconfig { token_file: Some(path.clone()), ..Kubeconfig::default() };
        let credentials = Credentials::new(&config).unwrap();
        assert_eq!(token(&credentials).await, "Bearer a");
        std::fs::write(&path, "b").unwrap();
        assert_eq!(token(&credentials).await, "Bearer a");
        if let Some(kept) = credentials.kept.lock().await.as_mut() {
            kept.ends = Ends::At(Instant::now());
        }
        assert_eq!(token(&credentials).await, "Bearer b");
        std::fs::write(&path, "c").unwrap();
        assert!(credentials.refused(&credentials.proof().await.unwrap()).await);
        assert_eq!(token(&credentials).await, "Bearer c");
    }

    #[tokio::test]
    async fn a_program_is_run_until_what_it_said_ends() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = |ends: &str| {
            format!(
                "echo x >> {0}; echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"t'$(wc -l < {0})'\"{ends}}}}}'",
                count.display()
            )
        };
        for (ends, second) in [("", "Bearer t1"), (",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"", "Bearer t2")] {
            let _ = std::fs::remove_file(&count);
            let exec = Exec::for_test("sh", &["-c", &script(ends)]);
            let credentials = Credentials::new(&Kubeconfig { exec: Some(exec), ..Kubeconfig::default() }).unwrap();
            assert_eq!(token(&credentials).await, "Bearer t1");
            assert_eq!(token(&credentials).await, second);
        }
    }

    #[tokio::test]
    async fn what_stands_in_the_file_cannot_be_refreshed() {
        let credentials = Credentials::new(&Kubeconfig { token: "t".into(), ..Kubeconfig::default() }).unwrap();
        assert!(!credentials.refused(&credentials.proof().await.unwrap()).await);
        assert!(Credentials::new(&Kubeconfig { token: "a\nb".into(), ..Kubeconfig::default() }).is_err());
    }
}
