//! `--config FILE`: flags written down in a YAML file. A flag on the command line counts more than its environment variable, and that
//! more than the file.

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use object::{Value, yaml};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The flag that names the file.
const FLAG: &str = "config";

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {what}", file.display(), line.map(|l| format!(":{l}")).unwrap_or_default())]
pub struct ConfigError {
    file: PathBuf,
    line: Option<usize>,
    what: String,
}

/// The words of a command line, and those that its configuration file adds.
#[derive(Debug)]
pub struct Words {
    given: Vec<OsString>,
    added: Vec<OsString>,
    file: PathBuf,
}

/// Gives the words of a command line with those flags added that its configuration file sets and nothing else does.
/// `command` knows the flags; without `--config` the words stay as they are.
pub fn expand(command: &Command, given: Vec<OsString>) -> Result<Words, ConfigError> {
    let mut words = Words { given, added: Vec::new(), file: PathBuf::new() };
    // What is wrong with the words is told when they are read for good.
    let Ok(matches) = command.clone().try_get_matches_from(&words.given) else { return Ok(words) };
    let Some((name, matches)) = matches.subcommand() else { return Ok(words) };
    let Some(command) = command.find_subcommand(name) else { return Ok(words) };
    if !command.get_arguments().any(|a| a.get_id() == FLAG) {
        return Ok(words);
    }
    let Some(file) = matches.get_one::<PathBuf>(FLAG) else { return Ok(words) };
    words.added = flags(command, matches, file)?;
    words.file.clone_from(file);
    Ok(words)
}

impl Words {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &OsString> + Clone {
        self.given.iter().chain(&self.added)
    }

    /// Where the flag is set that an error is about, if that is not the command line.
    pub fn source(&self, command: &Command, error: &clap::Error) -> Option<String> {
        let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return None };
        let flag = shown.split([' ', '=']).next().filter(|flag| flag.starts_with("--"))?;
        let sets = |word: &OsString| {
            word.to_str()
                .and_then(|w| w.strip_prefix(flag))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        if self.given.iter().any(sets) {
            return None;
        }
        if self.added.iter().any(sets) {
            return Some(format!("{flag} is set in {}", self.file.display()));
        }
        let name = flag.strip_prefix("--")?;
        let name = subcommand(command, &self.given)?.get_arguments().find(|a| a.get_long() == Some(name))?.get_env()?;
        std::env::var_os(name)?;
        Some(format!("{flag} is set by the environment variable {}", name.display()))
    }
}

/// The subcommand that words are for.
fn subcommand<'c>(command: &'c Command, words: &[OsString]) -> Option<&'c Command> {
    words.iter().skip(1).find_map(|word| command.find_subcommand(word))
}

/// The flags of a file that nothing else sets.
fn flags(command: &Command, matches: &ArgMatches, file: &Path) -> Result<Vec<OsString>, ConfigError> {
    let fail = |line: Option<usize>, what: String| ConfigError { file: file.to_owned(), line, what };
    let text = std::fs::read_to_string(file).map_err(|e| fail(None, e.to_string()))?;
    let settings = match yaml::parse(text.as_bytes()).map_err(|e| fail(None, e))? {
        Value::Object(settings) => settings,
        Value::Null => return Ok(Vec::new()),
        _ => return Err(fail(Some(1), "it has to be a mapping of flags to their values".to_owned())),
    };
    let mut out = Vec::new();
    for (name, value) in settings.iter() {
        let line = yaml::locate(&text, 0, &[name]);
        let Some(flag) = command.get_arguments().find(|a| a.get_long() == Some(name) && a.get_id() != FLAG) else {
            return Err(fail(line, format!("stanchion {} has no flag --{name}", command.get_name())));
        };
        let text = text_of(flag, value).map_err(|what| fail(line, format!("{name}: {what}")))?;
        let given = matches.value_source(flag.get_id().as_str());
        if matches!(given, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            continue;
        }
        match (flag.get_action().takes_values(), text.as_str()) {
            (true, _) => out.push(format!("--{name}={text}").into()),
            (false, "true") => out.push(format!("--{name}").into()),
            (false, "false") => {}
            (false, _) => return Err(fail(line, format!("{name}: it has to be true or false"))),
        }
    }
    Ok(out)
}

/// A value as the command line would say it: lists are joined by commas.
fn text_of(flag: &Arg, value: &Value) -> Result<String, String> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Ok(text.to_string()),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(object::json::to_string(value)),
        _ => Err("it has to be a text, a number, or true or false".to_owned()),
    };
    match value {
        Value::Array(items) if flag.get_value_delimiter().is_some() => {
            Ok(items.iter().map(scalar).collect::<Result<Vec<String>, String>>()?.join(","))
        }
        other => scalar(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    fn command() -> Command {
        let server = Command::new("server")
            .arg(Arg::new("config").long("config").value_parser(clap::value_parser!(PathBuf)))
            .arg(Arg::new("listen").long("listen").default_value("x"))
            .arg(Arg::new("names").long("names").value_delimiter(','))
            .arg(Arg::new("fast").long("fast").action(ArgAction::SetTrue));
        Command::new("stanchion").subcommand(server)
    }

    fn expanded(file: &str, words: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("stanchion.yaml");
        std::fs::write(&place, file).unwrap();
        let mut all: Vec<OsString> = ["stanchion", "server", "--config"].map(OsString::from).to_vec();
        all.push(place.clone().into());
        all.extend(words.iter().map(OsString::from));
        let words = expand(&command(), all).map_err(|e| e.to_string().replace(&place.display().to_string(), "FILE"))?;
        Ok(words.all().skip(4).map(|w| w.clone().into_string().unwrap()).collect())
    }

    #[test]
    fn a_file_sets_what_the_command_line_leaves_open() {
        let file = "listen: 127.0.0.1:1\nnames: [a, b]\nfast: true\n";
        assert_eq!(expanded(file, &[]).unwrap(), ["--fast", "--listen=127.0.0.1:1", "--names=a,b"]);
        assert_eq!(expanded(file, &["--listen=y"]).unwrap(), ["--listen=y", "--fast", "--names=a,b"]);
        assert_eq!(expanded("fast: false\n", &[]).unwrap(), Vec::<String>::new());
        assert_eq!(expanded("", &[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (file, wanted) in [
            ("listen: a\nlissten: b\n", "FILE:2: stanchion server has no flag --lissten"),
            ("config: x\n", "FILE:1: stanchion server has no flag --config"),
            ("fast: 7\n", "FILE:1: fast: it has to be true or false"),
            ("listen: [a]\n", "FILE:1: listen: it has to be a text, a number, or true or false"),
            ("- a\n", "FILE:1: it has to be a mapping of flags to their values"),
        ] {
            assert_eq!(expanded(file, &[]).unwrap_err(), wanted);
        }
        assert!(expanded("a: [\n", &[]).unwrap_err().starts_with("FILE: "));
    }

    #[test]
    fn errors_say_where_the_flag_is_set() {
        let words = |given: &[&str], added: &[&str]| Words {
            given: given.iter().map(OsString::from).collect(),
            added: added.iter().map(OsString::from).collect(),
            file: "FILE".into(),
        };
        let command = command().mut_subcommand("server", |server| {
            let variable = std::env::vars().next().map_or_else(|| "PATH".to_owned(), |(name, _)| name);
            let number = Arg::new("number").long("number").value_parser(clap::value_parser!(u8));
            server.arg(number.env(&*variable.leak()))
        });
        let source = |words: Words| {
            let error = command.clone().try_get_matches_from(words.all()).unwrap_err();
            words.source(&command, &error)
        };
        assert_eq!(source(words(&["stanchion", "server", "--number", "x"], &[])), None);
        assert_eq!(source(words(&["stanchion", "server"], &["--number=x"])).unwrap(), "--number is set in FILE");
        // Whatever the first variable is, it is hardly a small number.
        let by_variable = source(words(&["stanchion", "server"], &[])).unwrap();
        assert!(by_variable.starts_with("--number is set by the environment variable "), "{by_variable}");
    }
}
