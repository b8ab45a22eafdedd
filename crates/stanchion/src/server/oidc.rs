//! `--oidc-…`: users of an OpenID Connect issuer.

use super::Error;
use apiserver::auth::{Oidc, OidcOptions};
use apiserver::webhooks::WebhookClient;
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::sync::Arc;

/// The flags about an OpenID Connect issuer, with the names that kube-apiserver has for them.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub struct Args {
    /// OpenID Connect issuer whose tokens are accepted: an https URL
    #[arg(long, value_name = "URL", requires = "oidc_client_id", env = "STANCHION_OIDC_ISSUER_URL")]
    oidc_issuer_url: Option<String>,

    /// Client that the issuer's tokens have to be for
    #[arg(long, value_name = "NAME", requires = "oidc_issuer_url", env = "STANCHION_OIDC_CLIENT_ID")]
    oidc_client_id: Option<String>,

    /// Claim that names the user
    #[arg(long, value_name = "NAME", default_value = "sub", env = "STANCHION_OIDC_USERNAME_CLAIM")]
    oidc_username_claim: String,

    /// What goes before the user's name; - for nothing [default: the issuer and #, nothing for the claim email]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true,
        env = "STANCHION_OIDC_USERNAME_PREFIX"
    )]
    oidc_username_prefix: String,

    /// Claim with the user's groups
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        env = "STANCHION_OIDC_GROUPS_CLAIM"
    )]
    oidc_groups_claim: String,

    /// What goes before the groups' names
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        env = "STANCHION_OIDC_GROUPS_PREFIX"
    )]
    oidc_groups_prefix: String,

    /// Claims that a token must have
    #[arg(long, value_name = "NAME=VALUE,...", value_delimiter = ',', env = "STANCHION_OIDC_REQUIRED_CLAIM")]
    oidc_required_claim: Vec<String>,

    /// Authorities of the issuer's certificate, in PEM form [default: the system's]
    #[arg(long, value_name = "FILE", env = "STANCHION_OIDC_CA_FILE")]
    oidc_ca_file: Option<PathBuf>,

    /// Algorithms that tokens may be signed with
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "RS256",
        env = "STANCHION_OIDC_SIGNING_ALGS"
    )]
    oidc_signing_algs: Vec<String>,
}

impl Args {
    /// What checks the issuer's tokens, if there is an issuer.
    pub fn open(&self, client: &Arc<WebhookClient>) -> Result<Option<Oidc>, Error> {
        let Some(issuer) = self.oidc_issuer_url.clone() else { return Ok(None) };
        let required = self.oidc_required_claim.iter().map(|claim| {
            let pair = claim.split_once('=').ok_or_else(|| format!("--oidc-required-claim: {claim:?} has no value"));
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let authorities = match &self.oidc_ca_file {
            Some(file) => std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?,
            None => String::new(),
        };
        let options = OidcOptions {
            issuer,
            client_id: self.oidc_client_id.clone().unwrap_or_default(),
            username_claim: self.oidc_username_claim.clone(),
            username_prefix: self.oidc_username_prefix.clone(),
            groups_claim: self.oidc_groups_claim.clone(),
            groups_prefix: self.oidc_groups_prefix.clone(),
            required_claims: required.collect::<Result<_, String>>()?,
            authorities,
            algorithms: self.oidc_signing_algs.clone(),
        };
        Ok(Some(Oidc::new(options, client.clone(), apiserver::Options::default().clock)?))
    }
}
