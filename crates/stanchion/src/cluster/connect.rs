//! Connections to the clusters into which Applications deploy.

use super::client::Failure;
use super::{Connection, Kubeconfig};
use client::Transport;
use manager::application::clusters::{Access, Connector, Credential};
use std::sync::Arc;

/// Makes connections as Secrets ask for them.
pub struct Connections;

impl Connector for Connections {
    fn connect(&self, access: &Access) -> Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(Connection::new(&config(access)).map_err(|error| error.to_string())?))
    }
}

fn config(access: &Access) -> Kubeconfig {
    let mut config = Kubeconfig {
        server: access.endpoint.clone(),
        authority: access.authority.clone(),
        insecure: access.authority.is_empty(),
        ..Kubeconfig::default()
    };
    match &access.credential {
        Credential::Certificate { certificate, key } => {
            config.certificate.clone_from(certificate);
            config.key.clone_from(key);
        }
        Credential::Token(token) => config.token.clone_from(token),
    }
    config
}

/// How the cluster of a kubeconfig is reached.
///
/// # Errors
///
/// If the user has neither a certificate nor a token.
pub fn access(config: &Kubeconfig) -> Result<Access, Failure> {
    if config.exec.is_some() || config.token_file.is_some() {
        return Err(
            "credentials that change (exec, tokenFile) cannot be kept for a cluster: use a token or a certificate"
                .into(),
        );
    }
    if !config.insecure && config.authority.is_empty() {
        return Err("the cluster has no certificate-authority".into());
    }
    let credential = if !config.certificate.is_empty() {
        Credential::Certificate { certificate: config.certificate.clone(), key: config.key.clone() }
    } else if !config.token.is_empty() {
        Credential::Token(config.token.clone())
    } else {
        return Err("the user of the context has neither a client certificate nor a token".into());
    };
    let authority = if config.insecure { Vec::new() } else { config.authority.clone() };
    Ok(Access { endpoint: config.server.clone(), authority, credential })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_says_how_a_cluster_is_reached() {
        let bare = Kubeconfig { server: "https://a".into(), authority: b"ca".to_vec(), ..Kubeconfig::default() };
        assert!(access(&bare).is_err());
        let token = Kubeconfig { token: "t".into(), ..bare.clone() };
        let certificate = Kubeconfig { certificate: b"crt".to_vec(), key: b"key".to_vec(), ..token.clone() };
        for (from, expected) in [
            (token, Credential::Token("t".into())),
            (certificate, Credential::Certificate { certificate: b"crt".to_vec(), key: b"key".to_vec() }),
        ] {
            let access = access(&from).unwrap();
            assert_eq!(access.credential, expected);
            let back = config(&access);
            assert_eq!((back.server, back.authority), (from.server, from.authority));
        }
    }
}
