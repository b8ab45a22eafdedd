//! Replays the recorded scenarios of real controllers: all side by side, against one server that runs the controllers.
//!
//! `compat/known-failures/scenarios/FILE.txt` lists the scenarios that are known to differ; one that starts to pass must
//! leave its list. `STANCHION_COMPAT=update` rewrites the lists, `STANCHION_COMPAT_ONLY=REGEX` replays only some and
//! prints all their differences, `STANCHION_COMPAT_SERVER_FLAGS` are further flags for the server.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::expectations::KnownFailures;
use compat::run::Outcome;
use compat::scenario::{Group, Scenario, replay, set_up, tear_down};
use compat::server::Server;
use std::path::{Path, PathBuf};

/// How many scenarios run side by side, besides those that wait for minutes.
const JOBS: usize = 40;
/// How many run side by side when what differed is tried again.
const JOBS_AGAIN: usize = 8;
/// How many differing scenarios a failing test prints.
const SHOWN: usize = 20;

const FILES: [&str; 6] = ["accounts-and-roles", "deployments", "gc", "jobs", "namespaces", "sets-and-services"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat")
}

fn list(file: &str) -> PathBuf {
    folder().join(format!("known-failures/scenarios/{file}.txt"))
}

/// The outcomes of each file.
fn outcomes(only: Option<&str>) -> Vec<(&'static str, Vec<Outcome>)> {
    let pattern = only.map(|only| regex::Regex::new(only).unwrap());
    let mut groups: Vec<Group> =
        FILES.iter().map(|file| Group::read(&folder().join(format!("scenarios/{file}.json"))).unwrap()).collect();
    for group in &mut groups {
        group.scenarios.retain(|s| pattern.as_ref().is_none_or(|p| p.is_match(&s.id)));
    }
    let flags = std::env::var("STANCHION_COMPAT_SERVER_FLAGS").unwrap_or_default();
    let flags: Vec<&str> = ["--workloads", "controllers"].into_iter().chain(flags.split_whitespace()).collect();
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), &flags).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let setup: Vec<_> = groups.iter().filter(|g| !g.scenarios.is_empty()).flat_map(|g| g.setup.clone()).collect();
    let made = runtime.block_on(set_up(&server.target, &setup)).unwrap();
    let all: Vec<Scenario> = groups.iter().flat_map(|g| g.scenarios.clone()).collect();
    let mut outcomes = runtime.block_on(replay(&server.target, all.clone(), JOBS));
    // A loaded machine shifts what happens between two looks; what differs unexpectedly is tried once more.
    let known: Vec<KnownFailures> = FILES.iter().map(|file| KnownFailures::read(&list(file))).collect();
    let differs = |o: &Outcome| !o.differences.is_empty() && known.iter().all(|k| !k.names(&o.id));
    let again: Vec<usize> = (0..outcomes.len()).filter(|i| only.is_none() && differs(&outcomes[*i])).collect();
    let scenarios = again.iter().map(|i| all[*i].clone()).collect();
    for (i, outcome) in again.into_iter().zip(runtime.block_on(replay(&server.target, scenarios, JOBS_AGAIN))) {
        outcomes[i] = outcome;
    }
    runtime.block_on(tear_down(&server.target, &made)).unwrap();
    let mut rest = outcomes.into_iter();
    FILES.into_iter().zip(groups).map(|(file, g)| (file, rest.by_ref().take(g.scenarios.len()).collect())).collect()
}

#[test]
fn scenarios_go_as_with_real_controllers() {
    let only = std::env::var("STANCHION_COMPAT_ONLY").ok();
    let update = std::env::var("STANCHION_COMPAT").is_ok_and(|v| v == "update") && only.is_none();
    let (mut unexpected, mut mended) = (Vec::new(), Vec::new());
    for (file, outcomes) in outcomes(only.as_deref()) {
        let known = KnownFailures::read(&list(file));
        if update {
            known.write(&list(file), &outcomes, "not done yet").unwrap();
            continue;
        }
        let verdict = known.judge(&outcomes);
        println!("{file}: {} of {} as recorded, {} known to differ", verdict.passed, outcomes.len(), verdict.known);
        let shown = |o: &&Outcome| only.is_some() && !o.differences.is_empty() || verdict.unexpected.contains(&o.id);
        for outcome in outcomes.iter().filter(shown).take(if only.is_some() { usize::MAX } else { SHOWN }) {
            println!("--- {}: {}\n{}", outcome.id, outcome.about, outcome.differences.join("\n"));
        }
        unexpected.extend(verdict.unexpected);
        mended.extend(verdict.mended);
    }
    assert!(unexpected.is_empty(), "{} scenarios differ: {}", unexpected.len(), unexpected.join(" "));
    assert!(mended.is_empty(), "these scenarios pass now, take them off the list: {}", mended.join(" "));
}

#[test]
fn every_file_of_scenarios_is_replayed() {
    let mut files: Vec<String> = std::fs::read_dir(folder().join("scenarios"))
        .unwrap()
        .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(files, FILES);
}
