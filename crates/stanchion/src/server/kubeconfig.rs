//! The administrator's kubeconfig.

use super::pki::{Pki, PkiError, read, write};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::path::Path;

/// Writes a kubeconfig that reaches the server at `url` as its administrator; the credentials are inside it, so the
/// file can be copied anywhere.
pub fn write_admin(path: &Path, url: &str, pki: &Pki) -> Result<(), PkiError> {
    let data = |name: &str| read(&pki.file(name)).map(|text| STANDARD.encode(text));
    let (authority, certificate, key) = (data("ca.crt")?, data("admin.crt")?, data("admin.key")?);
    let text = format!(
        "apiVersion: v1
kind: Config
clusters:
- name: stanchion
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: stanchion
  context:
    cluster: stanchion
    user: kubernetes-admin
current-context: stanchion
"
    );
    write(path, &text, 0o600)
}
