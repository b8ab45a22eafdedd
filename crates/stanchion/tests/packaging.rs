//! What `packaging/` says of the program is true.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use regex::Regex;
use std::path::PathBuf;
use std::process::Command;

fn packaged(name: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

fn help() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stanchion")).args(["server", "--help"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn flags_and_variables_that_are_named_exist() {
    let help = help();
    let mut named = 0;
    let variables = Regex::new(r"STANCHION_[A-Z_]+").unwrap();
    for file in ["stanchion.service", "Containerfile"] {
        let (_, text) = packaged(file);
        let runs = text.lines().filter(|line| line.contains("stanchion server"));
        let flags: Vec<&str> = runs.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")).collect();
        for name in flags.into_iter().chain(variables.find_iter(&text).map(|found| found.as_str())) {
            named += 1;
            let end = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-';
            assert!(help.split(end).any(|word| word == name), "{file}: there is no {name}");
        }
    }
    assert!(named >= 5);
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let (unit, text) = packaged("stanchion.service");
    assert!(text.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("stanchion.service");
    std::fs::write(&copy, text.replace("/usr/local/bin/stanchion", env!("CARGO_BIN_EXE_stanchion"))).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&copy).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && !said.contains("stanchion.service"), "{}: {said}", unit.display());
        }
        Err(_) => println!("skipped: there is no systemd-analyze"),
    }
}
