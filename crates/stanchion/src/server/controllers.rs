//! Which controllers run.

use ::controllers::{Area, Entry, REGISTRY};
use clap::ValueEnum;

/// Whether workloads do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Workloads {
    /// They are kept as they are; nothing is made of them
    Off,
    /// Their controllers run: a Deployment gets its ReplicaSets and Pods, which wait for a scheduler
    Controllers,
    /// Besides, pods are scheduled and run for show, without nodes
    Simulated,
}

/// A list as upstream takes it: `*` for all, a name for one, `-` and a name for all but that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers {
    words: Vec<String>,
    workloads: Workloads,
}

impl Controllers {
    /// Reads the words of a list; the error says which names there are. `*` means the workloads' controllers only if
    /// they are asked for.
    pub fn new(words: &[String], workloads: Workloads) -> Result<Self, String> {
        let known = |name: &str| REGISTRY.iter().any(|entry| entry.name == name);
        for word in words {
            let name = word.strip_prefix('-').unwrap_or(word);
            if name != "*" && !known(name) {
                let names: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
                return Err(format!("--controllers: there is no controller {name:?}, there are: {}", names.join(", ")));
            }
        }
        Ok(Controllers { words: words.to_vec(), workloads })
    }

    /// Whether the controller of this name runs.
    pub fn has(&self, name: &str) -> bool {
        REGISTRY.iter().any(|entry| entry.name == name && self.chosen(entry))
    }

    fn chosen(&self, entry: &Entry) -> bool {
        let given = |word: &str| self.words.iter().any(|w| w == word);
        let meant = match entry.area {
            Area::Base => true,
            Area::Workloads => self.workloads >= Workloads::Controllers,
            Area::Simulated => self.workloads >= Workloads::Simulated,
        };
        given(entry.name) || !given(&format!("-{}", entry.name)) && given("*") && meant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(words: &[&str], workloads: Workloads) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let list = Controllers::new(&words, workloads).unwrap();
        REGISTRY.iter().map(|entry| entry.name).filter(|name| list.has(name)).collect()
    }

    #[test]
    fn lists_say_what_runs() {
        let all = running(&["*"], Workloads::Simulated);
        assert_eq!(all.len(), REGISTRY.len());
        assert_eq!(running(&["*", "-namespace-controller"], Workloads::Simulated).len(), all.len() - 1);
        assert_eq!(running(&["namespace-controller"], Workloads::Off), ["namespace-controller"]);
        assert!(running(&["-*"], Workloads::Simulated).is_empty() && running(&[], Workloads::Simulated).is_empty());
        let base: Vec<&str> = REGISTRY.iter().filter(|e| e.area == Area::Base).map(|e| e.name).collect();
        assert_eq!(running(&["*"], Workloads::Off), base);
    }

    #[test]
    fn unknown_names_are_told() {
        let error = Controllers::new(&["nonsense".to_owned()], Workloads::Off).unwrap_err();
        assert!(error.contains("\"nonsense\"") && error.contains("namespace-controller"));
    }
}
