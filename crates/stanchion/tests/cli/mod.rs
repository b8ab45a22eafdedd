//! The program's commands against one server, as somebody types them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_stanchion");

/// Commands against one server.
pub struct Cli {
    kubeconfig: PathBuf,
}

impl Cli {
    pub fn new(kubeconfig: &Path) -> Self {
        Cli { kubeconfig: kubeconfig.to_owned() }
    }

    /// Runs a command; whether it went well, and all that it said.
    pub fn run(&self, words: &str) -> (bool, String) {
        let words = words.split(' ').filter(|word| !word.is_empty());
        let output = Command::new(PROGRAM).args(words).arg("--kubeconfig").arg(&self.kubeconfig).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), said.concat())
    }

    /// Runs a command that must go well.
    pub fn ok(&self, words: &str) -> String {
        let (is_ok, said) = self.run(words);
        assert!(is_ok, "stanchion {words}: {said}");
        said
    }

    /// Runs a command that must fail, and say this.
    pub fn fails(&self, words: &str, why: &str) {
        let (is_ok, said) = self.run(words);
        assert!(!is_ok && said.contains(why), "stanchion {words}: {said}");
    }

    /// Runs a command until it says something.
    pub fn until(&self, words: &str, what: &str) -> String {
        for _ in 0..600 {
            let (_, said) = self.run(words);
            if said.contains(what) {
                return said;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("stanchion {words} never says {what}: {}", self.run(words).1);
    }
}
