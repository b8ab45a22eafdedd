//! The server's own certificates: an authority, the server's certificate and the administrator's, written once to the
//! data directory and renewed before they end.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::X509Certificate;

/// How long the authority is good for.
const AUTHORITY_LIFE: Duration = Duration::days(3650);
/// How long the other certificates are good for (as kubeadm's).
const LIFE: Duration = Duration::days(365);
/// Certificates with less than this left are made anew at start.
const RENEW_BEFORE: Duration = Duration::days(30);

/// Where the certificates are.
#[derive(Clone, Debug)]
pub struct Pki {
    /// The folder that holds them.
    pub folder: PathBuf,
}

/// Why certificates cannot be read or made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A certificate or key is malformed.
    #[error("{}: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rcgen::Error,
    },
    /// The authority's certificate is of another key than the one beside it.
    #[error("{} is not the key of {}: put back the one that belongs to it, or delete both to have a new authority made", key.display(), certificate.display())]
    Strange {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
}

impl Pki {
    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes what is missing or about to end. `names` are the host names and addresses that the server is reached by;
    /// its certificate is made anew when one of them is not in it yet.
    pub fn ensure(&self, names: &[String]) -> Result<(), PkiError> {
        fs::create_dir_all(&self.folder).map_err(|source| PkiError::File { path: self.folder.clone(), source })?;
        let now = OffsetDateTime::now_utc();
        let (authority_file, authority_key_file) = (self.file("ca.crt"), self.file("ca.key"));
        if !authority_file.exists() || !authority_key_file.exists() {
            let key = key(&authority_key_file)?;
            let certificate =
                authority_params("stanchion-ca", now, AUTHORITY_LIFE).self_signed(&key).map_err(at(&authority_file))?;
            write(&authority_key_file, &key.serialize_pem(), 0o600)?;
            write(&authority_file, &certificate.pem(), 0o644)?;
            // What the old authority signed is worth nothing under the new one.
            for name in ["server.crt", "admin.crt"] {
                let _ = fs::remove_file(self.file(name));
            }
        }
        let authority_key = KeyPair::from_pem(&read(&authority_key_file)?).map_err(at(&authority_key_file))?;
        let text = read(&authority_file)?;
        if !is_of(&text, &authority_key) {
            return Err(PkiError::Strange { certificate: authority_file, key: authority_key_file });
        }
        let authority = Issuer::from_ca_cert_pem(&text, authority_key).map_err(at(&authority_file))?;
        if !self.is_fresh("server", now, names) {
            self.issue(
                "server",
                server_params("kube-apiserver", now, LIFE, names).map_err(at(&self.file("server.crt")))?,
                &authority,
            )?;
        }
        if !self.is_fresh("admin", now, &[]) {
            self.issue("admin", admin_params(now), &authority)?;
        }
        Ok(())
    }

    /// The key that signs the tokens of service accounts, in PKCS #8 form. It is made once and never renewed: tokens that
    /// are out are good for their time.
    pub fn service_account_key(&self) -> Result<Vec<u8>, PkiError> {
        let file = self.file("sa.key");
        if !file.exists() {
            write(&file, &key(&file)?.serialize_pem(), 0o600)?;
        }
        let key = KeyPair::from_pem(&read(&file)?).map_err(at(&file))?;
        Ok(key.serialize_der())
    }

    fn issue(&self, name: &str, params: CertificateParams, authority: &Issuer<'_, KeyPair>) -> Result<(), PkiError> {
        let (file, key_file) = (self.file(&format!("{name}.crt")), self.file(&format!("{name}.key")));
        let key = key(&key_file)?;
        let certificate = params.signed_by(&key, authority).map_err(at(&file))?;
        write(&key_file, &key.serialize_pem(), 0o600)?;
        write(&file, &certificate.pem(), 0o644)
    }

    fn is_fresh(&self, name: &str, now: OffsetDateTime, names: &[String]) -> bool {
        let (file, key_file) = (self.file(&format!("{name}.crt")), self.file(&format!("{name}.key")));
        let Ok(text) = fs::read(&file) else { return false };
        let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(&text) else { return false };
        let Ok(certificate) = pem.parse_x509() else { return false };
        let ends = certificate.validity().not_after.to_datetime();
        let held = names_of(&certificate);
        key_file.exists() && ends - now > RENEW_BEFORE && names.iter().all(|n| held.contains(n))
    }
}

/// Whether a certificate is of a key. What cannot be read says so when it is used.
fn is_of(certificate: &str, key: &KeyPair) -> bool {
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()) else { return true };
    pem.parse_x509().map_or(true, |c| *c.subject_pki.subject_public_key.data == *key.public_key_raw())
}

/// The host names and addresses that a certificate is for.
pub fn names_of(certificate: &X509Certificate<'_>) -> Vec<String> {
    match certificate.subject_alternative_name() {
        Ok(Some(extension)) => extension.value.general_names.iter().filter_map(general_name).collect(),
        _ => Vec::new(),
    }
}

fn general_name(name: &x509_parser::extensions::GeneralName<'_>) -> Option<String> {
    use x509_parser::extensions::GeneralName;
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|b| IpAddr::from(b).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|b| IpAddr::from(b).to_string()),
            _ => None,
        },
        _ => None,
    }
}

fn key(file: &Path) -> Result<KeyPair, PkiError> {
    KeyPair::generate().map_err(at(file))
}

fn at(path: &Path) -> impl FnOnce(rcgen::Error) -> PkiError {
    let path = path.to_owned();
    move |source| PkiError::Certificate { path, source }
}

fn params(common_name: &str, organisation: Option<&str>, now: OffsetDateTime, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    // A clock that is a little behind must not refuse a certificate just made.
    params.not_before = now - Duration::hours(1);
    params.not_after = now + life;
    params
}

/// An authority of this name.
pub fn authority_params(name: &str, now: OffsetDateTime, life: Duration) -> CertificateParams {
    let mut params = params(name, None, now, life);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    params
}

/// A server's certificate: its own name, and the host names and addresses that it is for.
pub fn server_params(
    name: &str,
    now: OffsetDateTime,
    life: Duration,
    names: &[String],
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(name, None, now, life);
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into()?),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn admin_params(now: OffsetDateTime) -> CertificateParams {
    let mut params = params("kubernetes-admin", Some(apiserver::auth::MASTERS), now, LIFE);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    params
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String, PkiError> {
    fs::read_to_string(path).map_err(|source| PkiError::File { path: path.to_owned(), source })
}

/// Writes a file beside its place and moves it there, so that nobody ever reads half of it.
pub fn write(path: &Path, text: &str, mode: u32) -> Result<(), PkiError> {
    let error = |source| PkiError::File { path: path.to_owned(), source };
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&temporary).map_err(error)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(error)?;
    fs::rename(&temporary, path).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_made_once_and_again_for_a_new_name() {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki { folder: dir.path().join("pki") };
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        pki.ensure(&names).unwrap();
        let (first, admin) = (read(&pki.file("server.crt")).unwrap(), read(&pki.file("admin.crt")).unwrap());
        pki.ensure(&names).unwrap();
        assert_eq!(read(&pki.file("server.crt")).unwrap(), first);
        pki.ensure(&["localhost".to_owned(), "other.example.com".to_owned()]).unwrap();
        assert_ne!(read(&pki.file("server.crt")).unwrap(), first);
        assert_eq!(read(&pki.file("admin.crt")).unwrap(), admin);
    }

    #[test]
    fn keys_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki { folder: dir.path().to_owned() };
        pki.ensure(&["localhost".to_owned()]).unwrap();
        pki.service_account_key().unwrap();
        for name in ["ca.key", "server.key", "admin.key", "sa.key"] {
            assert_eq!(fs::metadata(pki.file(name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_authority_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki { folder: dir.path().to_owned() };
        pki.ensure(&["localhost".to_owned()]).unwrap();
        fs::write(pki.file("ca.key"), "nonsense").unwrap();
        assert!(pki.ensure(&["localhost".to_owned()]).unwrap_err().to_string().contains("ca.key: "));
    }

    #[test]
    fn an_authority_with_the_key_of_another_is_refused() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [pki, other] = dirs.each_ref().map(|dir| Pki { folder: dir.path().to_owned() });
        for pki in [&pki, &other] {
            pki.ensure(&["localhost".to_owned()]).unwrap();
        }
        fs::copy(other.file("ca.key"), pki.file("ca.key")).unwrap();
        let error = pki.ensure(&["localhost".to_owned()]).unwrap_err().to_string();
        let (key, certificate) = (pki.file("ca.key"), pki.file("ca.crt"));
        assert!(
            error.starts_with(&format!("{} is not the key of {}: ", key.display(), certificate.display())),
            "{error}"
        );
    }
}
