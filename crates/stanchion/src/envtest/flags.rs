//! Flags as Go programs take them: `--name=value`, `--name value`, `--name`.

use std::collections::BTreeMap;

/// The flags of a command line: the values of each, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// Reads words. A flag without `=` has the next word as its value, unless that is a flag too: then it is `true`.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let mut out = Flags::default();
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|f| !f.is_empty())
            else {
                return Err(format!("{word:?} is not a flag"));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (flag, rest.next_if(|w| !w.starts_with('-')).cloned().unwrap_or_else(|| "true".to_owned())),
            };
            out.0.entry(name.to_owned()).or_default().push(value);
        }
        Ok(out)
    }

    /// Takes the last value of a flag out.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)?.pop().filter(|v| !v.is_empty())
    }

    /// Whether a flag is given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// What is left, by name.
    pub fn rest(self) -> impl Iterator<Item = (String, Vec<String>)> {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Flags, String> {
        Flags::read(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_have_values_in_both_ways() {
        let mut flags = read(&["--a=1", "--b", "2", "--c", "--a=3=4", "-v", "5", "--empty="]).unwrap();
        assert_eq!(flags.take("a").as_deref(), Some("3=4"));
        assert_eq!(flags.take("b").as_deref(), Some("2"));
        assert_eq!(flags.take("c").as_deref(), Some("true"));
        assert_eq!(flags.take("v").as_deref(), Some("5"));
        assert!(flags.has("empty") && flags.take("empty").is_none() && flags.take("d").is_none());
    }

    #[test]
    fn other_words_are_refused() {
        assert!(read(&["x"]).unwrap_err().contains("\"x\""));
        assert!(read(&["--"]).is_err() && read(&["-"]).is_err());
    }
}
