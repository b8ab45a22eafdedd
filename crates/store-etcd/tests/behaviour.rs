//! What the interface promises, on etcd. Without an installed etcd the tests are skipped.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

#[path = "../../store/tests/suite/mod.rs"]
mod suite;

use compat::etcd;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use store::{Expect, ListOptions, Range, ReadError, Write, WriteError};
use store_etcd::{Etcd, OpenError, Options};
use suite::{put, seen};
use tokio::time::timeout;

/// Options for a store that has etcd alone: its revisions have no gaps, and keys are called as they are.
fn options(server: &etcd::Etcd) -> Options {
    let options = Options::at([server.endpoint.as_str()]);
    Options { root: String::new(), prefix: "/t/".to_owned(), compaction: Duration::ZERO, ..options }
}

async fn open(options: Options) -> suite::Shared {
    Arc::new(Etcd::open(options).await.unwrap())
}

async fn fresh() -> Option<(suite::Shared, etcd::Etcd)> {
    let server = etcd::Etcd::start()?;
    Some((open(options(&server)).await, server))
}

suite!(fresh);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_sees_what_was_written_elsewhere() {
    let Some((one, server)) = fresh().await else { return };
    let two = open(options(&server)).await;
    let other = open(Options { prefix: "/other/".to_owned(), ..options(&server) }).await;
    let mut watch = two.watch(&Range::prefix("a/"), two.revision()).await.unwrap();
    for n in 0..50 {
        let key = format!("a/{n}");
        let revision = put(&one, &key, "x").await;
        assert_eq!(two.get(&key, None).await.unwrap().unwrap().mod_revision, revision);
        let page = two.list(&Range::prefix("a/"), ListOptions::default()).await.unwrap();
        assert_eq!((page.entries.len(), page.revision >= revision), (n + 1, true));
        two.write(Write::put(key.as_str(), Expect::Revision(revision), "y")).await.unwrap();
        assert_eq!(&one.get(&key, None).await.unwrap().unwrap().value[..], b"y");
        // Others' keys move the revision, too.
        put(&other, &key, "z").await;
    }
    assert_eq!(other.count(&Range::prefix("")).await.unwrap(), 50);
    let revisions: Vec<u64> = seen(&mut watch, 100).await.iter().map(|event| event.0).collect();
    assert!(revisions.is_sorted_by(|a, b| a < b));
    assert_eq!(one.count(&Range::prefix("")).await.unwrap(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_decisions_about_the_same_thing_one_is_written() {
    let Some((one, server)) = fresh().await else { return };
    let two = open(options(&server)).await;
    let mut held = Vec::new();
    for store in [&one, &two] {
        held.push(store.claim("numbers").await.unwrap());
    }
    let elsewhere = two.claim("names").await.unwrap();
    let mut watch = two.watch(&Range::prefix(""), two.revision()).await.unwrap();
    let write = |key: &str| Write::put(key, Expect::Absent, "1");
    one.write_claimed(write("a"), held[0].clone()).await.unwrap();
    assert!(matches!(two.write_claimed(write("b"), held[1].clone()).await, Err(WriteError::Overtaken)));
    assert!(matches!(one.write_claimed(write("b"), held[0].clone()).await, Err(WriteError::Overtaken)));
    // What is wrong with the key itself is told first.
    assert!(matches!(two.write_claimed(write("a"), held[1].clone()).await, Err(WriteError::Conflict { .. })));
    two.write_claimed(write("c"), elsewhere).await.unwrap();
    let again = two.claim("numbers").await.unwrap();
    two.write_claimed(write("b"), again).await.unwrap();
    let keys: Vec<String> = seen(&mut watch, 3).await.into_iter().map(|event| event.1).collect();
    assert_eq!(keys, ["a", "c", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_expire_as_deletes() {
    let Some((store, _server)) = fresh().await else { return };
    let mut watch = store.watch(&Range::prefix(""), store.revision()).await.unwrap();
    let soon = SystemTime::now() + Duration::from_secs(1);
    for key in ["stays", "goes", "goes too"] {
        store.write(Write::put(key, Expect::Absent, "x").expiring(soon)).await.unwrap();
    }
    put(&store, "stays", "y").await;
    let events = seen(&mut watch, 6).await;
    let mut gone: Vec<&str> = events[4..].iter().filter(|e| e.2.is_none()).map(|e| e.1.as_str()).collect();
    gone.sort_unstable();
    assert_eq!(gone, ["goes", "goes too"]);
    assert_eq!(store.count(&Range::prefix("")).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_after_etcd_was_killed() {
    let Some((store, mut server)) = fresh().await else { return };
    let base = store.revision();
    let mut watch = store.watch(&Range::prefix("a/"), base).await.unwrap();
    put(&store, "a/1", "x").await;
    server.kill();
    timeout(Duration::from_secs(5), async {
        while store.trouble().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    // Requests wait: etcd is back before they give up.
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { (store.get("a/1", None).await, store.write(Write::put("a/2", Expect::Absent, "x")).await) }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(server.restart());
    let (read, written) = waiting.await.unwrap();
    assert_eq!(read.unwrap().unwrap().mod_revision, base + 1);
    assert_eq!(written.unwrap(), base + 2);
    assert!(seen(&mut watch, 2).await.iter().map(|event| event.0).eq([base + 1, base + 2]));
    assert_eq!(store.trouble(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_give_up_in_time() {
    let Some(mut server) = etcd::Etcd::start() else { return };
    let store = open(Options { patience: Duration::from_secs(1), ..options(&server) }).await;
    server.kill();
    let read = store.get("a", None);
    let write = store.write(Write::put("a", Expect::Any, "x"));
    let (read, write) = timeout(Duration::from_secs(4), async { (read.await, write.await) }).await.unwrap();
    assert!(matches!(read, Err(ReadError::Unavailable(why)) if why == "etcdserver: request timed out"));
    match write.unwrap_err() {
        WriteError::Unavailable(why) | WriteError::Uncertain(why) => assert_eq!(why, "etcdserver: request timed out"),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_the_last_interval_is_there_after_opening_again() {
    let Some(server) = etcd::Etcd::start() else { return };
    // The first turn of compaction says from where on everything stays.
    let long = Options { compaction: Duration::from_secs(300), ..options(&server) };
    let first = open(long.clone()).await;
    first.wait_for(2).await.unwrap();
    let after = put(&first, "a", "1").await;
    put(&first, "a", "2").await;
    first.close().await;
    let second = open(long).await;
    let mut watch = second.watch(&Range::prefix("a"), after).await.unwrap();
    let events = seen(&mut watch, 1).await;
    assert_eq!((events[0].2.as_deref(), events[0].3.as_deref()), (Some(&b"2"[..]), Some(&b"1"[..])));
    assert_eq!(&second.get("a", Some(after)).await.unwrap().unwrap().value[..], b"1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_compact_in_turn() {
    let Some(server) = etcd::Etcd::start() else { return };
    let often = Options { compaction: Duration::from_millis(200), ..options(&server) };
    let stores = [open(often.clone()).await, open(often).await];
    let early = put(&stores[0], "a", "0").await;
    // A store that does not follow any more reads what etcd still has, and no more.
    for n in 0..20 {
        put(&stores[n % 2], "a", "x").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let late = open(options(&server)).await;
    assert!(late.compacted() > early, "{} {early}", late.compacted());
    assert_eq!(late.get("a", None).await.unwrap().unwrap().version, 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_etcd_finds_too_large_is_too_large() {
    let Some((store, _server)) = fresh().await else { return };
    for size in [1_600_000, 5_000_000] {
        let refused = store.write(Write::put("a", Expect::Absent, vec![b'x'; size])).await;
        assert!(matches!(refused, Err(WriteError::TooLarge { what: "value", .. })), "{refused:?}");
    }
    put(&store, "a", &"x".repeat(1_400_000)).await;
    assert_eq!(store.get("a", None).await.unwrap().unwrap().value.len(), 1_400_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_shows_who_is_who_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let pair = |name: &str| (KeyPair::generate().unwrap(), CertificateParams::new(vec![name.to_owned()]).unwrap());
    let (authority_key, mut params) = pair("authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);
    let issued = |name: &str| {
        let (key, params) = pair(name);
        (params.signed_by(&key, &issuer).unwrap(), key)
    };
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = issued("127.0.0.1");
    let (ca, cert, key) =
        (file("ca", authority.pem()), file("cert", certificate.pem()), file("key", key.serialize_pem()));
    let flags = ["--trusted-ca-file", &ca, "--cert-file", &cert, "--key-file", &key, "--client-cert-auth"];
    let Some(server) = etcd::Etcd::start_with("https", &flags) else { return };

    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let (certificate, key) = issued("client");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let store = open(Options { tls: Some(Arc::new(tls)), ..options(&server) }).await;
    let revision = put(&store, "a", "x").await;
    assert_eq!(store.get("a", None).await.unwrap().unwrap().mod_revision, revision);
}

#[tokio::test]
async fn nobody_there_is_an_error_that_names_the_address() {
    assert!(matches!(Etcd::open(Options::at([""; 0])).await, Err(OpenError::NoEndpoint)));
    tokio::time::pause();
    let error = Etcd::open(Options::at(["127.0.0.1:1", "127.0.0.1:2"])).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("etcd at 127.0.0.1:1, 127.0.0.1:2 does not answer: "), "{text}");
}
