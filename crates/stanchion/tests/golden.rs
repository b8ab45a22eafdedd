//! Replays the recorded cases of a real server, a theme a test, each against a server of its own; those about what is
//! stored a second time, with the data in etcd (skipped where that is not installed).
//!
//! `compat/known-failures/THEME.txt` lists the cases that are known to fail; a case that starts to pass must leave its
//! list. `STANCHION_COMPAT=update` rewrites the lists, `STANCHION_COMPAT_ONLY=REGEX` replays only some cases and prints
//! all their differences, `STANCHION_COMPAT_SERVER_FLAGS` are further flags for the server.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::case::{Case, read};
use compat::etcd::Etcd;
use compat::expectations::KnownFailures;
use compat::run::{Outcome, replay};
use compat::server::Server;
use std::path::{Path, PathBuf};

/// How many cases run side by side.
const JOBS: usize = 8;
/// How many differing cases a failing test prints.
const SHOWN: usize = 20;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat")
}

fn outcomes(theme: &str, only: Option<&str>, etcd: Option<&Etcd>) -> Vec<Outcome> {
    let file = read(&folder().join(format!("golden/{theme}.json"))).unwrap();
    assert_eq!(file.name, theme);
    let pattern = only.map(|only| regex::Regex::new(only).unwrap());
    let wanted = |case: &Case| pattern.as_ref().is_none_or(|p| p.is_match(&case.id));
    let cases: Vec<Case> = file.cases.into_iter().filter(wanted).collect();
    let flags = std::env::var("STANCHION_COMPAT_SERVER_FLAGS").unwrap_or_default();
    // What was recorded was the API server alone, without accounts for pods.
    let own = ["--controllers=-*", "--disable-admission-plugins=ServiceAccount"];
    let flags: Vec<&str> = own.into_iter().chain(flags.split_whitespace()).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_stanchion"));
    let server = match etcd {
        None => Server::start(program, &flags),
        Some(etcd) => {
            let storage = format!("--storage=etcd://{}", etcd.endpoint);
            Server::start_durable(program, &[&[storage.as_str()], &flags[..]].concat())
        }
    };
    let server = server.unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut outcomes = runtime.block_on(replay(&server.target, cases.clone(), JOBS));
    // The cases were recorded one at a time; a few see each other's objects, or a clock that ticks between two answers,
    // when they run side by side. What differs is replayed alone before it counts.
    let differing: Vec<usize> = (0..outcomes.len()).filter(|i| !outcomes[*i].differences.is_empty()).collect();
    let again = differing.iter().map(|i| cases[*i].clone()).collect();
    for (i, outcome) in differing.into_iter().zip(runtime.block_on(replay(&server.target, again, 1))) {
        outcomes[i] = outcome;
    }
    outcomes
}

fn check(theme: &str, etcd: Option<&Etcd>) {
    let only = std::env::var("STANCHION_COMPAT_ONLY").ok();
    let outcomes = outcomes(theme, only.as_deref(), etcd);
    let list = folder().join(format!("known-failures/{theme}.txt"));
    let known = KnownFailures::read(&list);
    if std::env::var("STANCHION_COMPAT").is_ok_and(|v| v == "update") && only.is_none() && etcd.is_none() {
        known.write(&list, &outcomes, "not done yet").unwrap();
        return;
    }
    let verdict = known.judge(&outcomes);
    println!("{theme}: {} of {} as recorded, {} known to differ", verdict.passed, outcomes.len(), verdict.known);
    let shown = |o: &&Outcome| only.is_some() && !o.differences.is_empty() || verdict.unexpected.contains(&o.id);
    for outcome in outcomes.iter().filter(shown).take(if only.is_some() { usize::MAX } else { SHOWN }) {
        println!("--- {}: {}\n{}", outcome.id, outcome.about, outcome.differences.join("\n"));
    }
    assert!(
        verdict.unexpected.is_empty(),
        "{} cases differ: {}",
        verdict.unexpected.len(),
        verdict.unexpected.join(" ")
    );
    assert!(verdict.mended.is_empty(), "these cases pass now, take them off the list: {}", verdict.mended.join(" "));
}

macro_rules! themes {
    ($($name:ident: $theme:literal,)*) => {
        $(#[test] fn $name() { check($theme, None); })*

        #[test]
        fn every_theme_has_a_test() {
            let mut files: Vec<String> = std::fs::read_dir(folder().join("golden")).unwrap()
                .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
            files.sort();
            assert_eq!(files, [$($theme),*]);
        }
    };
}

themes! {
    admission_policies: "admission-policies",
    admission_webhooks: "admission-webhooks",
    builtin: "builtin",
    cel_compile: "cel-compile",
    cel_cost: "cel-cost",
    cel_eval: "cel-eval",
    conversion_webhooks: "conversion-webhooks",
    cr_validate: "cr-validate",
    crd_schema: "crd-schema",
    generic_api: "generic-api",
    managed_fields: "managed-fields",
    prune_default: "prune-default",
    ratchet: "ratchet",
    ssa: "ssa",
    storage_versions: "storage-versions",
    watch: "watch",
}

macro_rules! over_etcd {
    ($($name:ident: $theme:literal,)*) => {
        $(#[test] fn $name() {
            if let Some(etcd) = Etcd::start() {
                check($theme, Some(&etcd));
            }
        })*
    };
}

over_etcd! {
    builtin_over_etcd: "builtin",
    generic_api_over_etcd: "generic-api",
    ssa_over_etcd: "ssa",
    storage_versions_over_etcd: "storage-versions",
    watch_over_etcd: "watch",
}
