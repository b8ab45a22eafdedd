//! Which of the server's controllers run.

/// The controllers, by the names that upstream's have.
pub const NAMES: [&str; 2] = ["namespace-controller", "clusterrole-aggregation-controller"];

/// A list as upstream takes it: `*` for all, a name for one, `-` and a name for all but that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers(Vec<String>);

impl Controllers {
    /// Reads the words of a list; the error says which names there are.
    pub fn new(words: &[String]) -> Result<Self, String> {
        for word in words {
            let name = word.strip_prefix('-').unwrap_or(word);
            if name != "*" && !NAMES.contains(&name) {
                return Err(format!("--controllers: there is no controller {name:?}, there are: {}", NAMES.join(", ")));
            }
        }
        Ok(Controllers(words.to_vec()))
    }

    /// Whether a controller runs.
    pub fn has(&self, name: &str) -> bool {
        let given = |word: &str| self.0.iter().any(|w| w == word);
        given(name) || !given(&format!("-{name}")) && given("*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let list = Controllers::new(&words).unwrap();
        NAMES.into_iter().filter(|n| list.has(n)).collect()
    }

    #[test]
    fn lists_say_what_runs() {
        assert_eq!(running(&["*"]), NAMES);
        assert_eq!(running(&["*", "-namespace-controller"]), ["clusterrole-aggregation-controller"]);
        assert_eq!(running(&["namespace-controller"]), ["namespace-controller"]);
        assert!(running(&["-*"]).is_empty() && running(&[]).is_empty());
    }

    #[test]
    fn unknown_names_are_told() {
        let error = Controllers::new(&["nonsense".to_owned()]).unwrap_err();
        assert!(error.contains("\"nonsense\"") && error.contains("namespace-controller"));
    }
}
