//! Does what controller-runtime's `envtest` does: starts `etcd` and `kube-apiserver` from a folder of assets with its flags,
//! waits until they are healthy, works as a user with a certificate of its own authority, and ends both.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request, Target};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stanchion");

/// A program that is killed when the test ends early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(assets: &Path, program: &str, flags: &[String]) -> Self {
        Running(Command::new(assets.join(program)).args(flags).spawn().unwrap())
    }

    /// Ends the program as test environments do.
    fn end(&mut self) -> bool {
        assert!(Command::new("kill").arg(self.0.id().to_string()).status().unwrap().success());
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match self.0.try_wait().unwrap() {
                Some(status) => return status.success(),
                None if Instant::now() > until => return false,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn connectable(port: u16) {
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "nothing listens on port {port}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn assets(folder: &Path) -> Output {
    Command::new(PROGRAM).args(["envtest", "assets"]).arg(folder).output().unwrap()
}

/// An authority, and what it signs.
struct Authority {
    pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).unwrap();
        Authority { pem: own.pem(), der: own.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn sign(&self, names: &[&str], user: &str, group: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

#[test]
fn assets_are_links_and_files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let made = assets(folder.path());
    assert!(made.status.success());
    assert!(String::from_utf8_lossy(&made.stdout).starts_with("export KUBEBUILDER_ASSETS=/"));
    assert!(assets(folder.path()).status.success(), "a second time is no mistake");
    for (program, flag) in [("etcd", "--unsafe-no-fsync"), ("kube-apiserver", "--client-ca-file")] {
        let help = Command::new(folder.path().join(program)).arg("--help").output().unwrap();
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(help.status.success() && text.lines().any(|l| l.trim() == flag), "{program}: {text}");
    }
    std::fs::remove_file(folder.path().join("etcd")).unwrap();
    std::fs::write(folder.path().join("etcd"), "mine").unwrap();
    let refused = assets(folder.path());
    assert!(!refused.status.success());
    assert_eq!(std::fs::read_to_string(folder.path().join("etcd")).unwrap(), "mine");
}

#[tokio::test]
async fn a_test_environment_starts_works_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    assert!(assets(&place("assets")).status.success());

    let (etcd_port, port) = (free_port(), free_port());
    let etcd_url = format!("http://127.0.0.1:{etcd_port}");
    let mut etcd = Running::start(
        &place("assets"),
        "etcd",
        &[
            format!("--advertise-client-urls={etcd_url}"),
            format!("--data-dir={}", place("etcd").display()),
            format!("--listen-client-urls={etcd_url}"),
            "--listen-peer-urls=http://localhost:0".to_owned(),
            "--unsafe-no-fsync=true".to_owned(),
        ],
    );
    connectable(etcd_port);
    let mut health = TcpStream::connect(("127.0.0.1", etcd_port)).unwrap();
    health.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    health.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 OK") && answer.contains("\"health\":\"true\""), "{answer}");

    let (serving, clients) = (Authority::new(), Authority::new());
    let certificates = place("certificates");
    std::fs::create_dir(&certificates).unwrap();
    let (certificate, key) = serving.sign(&["localhost", "127.0.0.1"], "server", "");
    std::fs::write(certificates.join("apiserver.crt"), certificate.pem()).unwrap();
    std::fs::write(certificates.join("apiserver.key"), key.serialize_pem()).unwrap();
    std::fs::write(certificates.join("client-cert-auth-ca.crt"), &clients.pem).unwrap();
    let flags = [
        "--allow-privileged=true".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", certificates.display()),
        format!("--client-ca-file={}", certificates.join("client-cert-auth-ca.crt").display()),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--etcd-servers={etcd_url}"),
        format!("--secure-port={port}"),
        format!("--service-account-issuer=https://127.0.0.1:{port}/"),
        format!("--service-account-key-file={}", certificates.join("sa-signer.crt").display()),
        format!("--service-account-signing-key-file={}", certificates.join("sa-signer.key").display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
    ];
    let mut server = Running::start(&place("assets"), "kube-apiserver", &flags);
    connectable(port);

    let (certificate, key) = clients.sign(&[], "admin", "system:masters");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(serving.der.clone()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let mut client = Client::new(Target { address: SocketAddr::from(([127, 0, 0, 1], port)), tls: Arc::new(tls) });
    let ready = client.send(&Request::new("GET", "/readyz")).await.unwrap();
    assert_eq!((ready.code, &ready.body[..]), (200, &b"ok"[..]));
    let created = Request::new("POST", "/api/v1/namespaces/default/configmaps")
        .body("application/json", r#"{"metadata":{"name":"made"}}"#);
    assert_eq!(client.send(&created).await.unwrap().code, 201);

    assert!(server.end(), "kube-apiserver ends when it is told to");
    assert!(etcd.end(), "etcd ends when it is told to");
}
