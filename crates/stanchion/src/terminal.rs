//! What the commands for people have in common: tables, colours, progress, waiting.

use crate::cluster::Failure;
use clap::{Args, ValueEnum};
use object::{Value, json, map};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// How often a waiting command looks.
pub const LOOK: Duration = Duration::from_millis(250);

/// Whether, and how long, to wait.
#[derive(Clone, Copy, Debug, Args)]
pub struct Wait {
    /// Wait until it is done
    #[arg(short, long)]
    pub wait: bool,
    /// How long to wait: seconds, or a time like 5m
    #[arg(long, value_name = "TIME", default_value = "300", value_parser = seconds)]
    pub timeout: u64,
}

/// A number of seconds, or a time as Go writes it, in seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| object::duration::go(text).map(|time| time.as_secs()))
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table with more columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// What kubectl takes as the name of an object
    Name,
}

/// A form for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// JSON, in one line.
    Json,
    /// YAML.
    Yaml,
    /// Names of objects, one a line.
    Name,
}

impl Document {
    /// The document that somebody asked for; `None` if it is a table for people.
    pub fn of(output: Option<Output>) -> Option<Self> {
        match output? {
            Output::Wide => None,
            Output::Json => Some(Document::Json),
            Output::Yaml => Some(Document::Yaml),
            Output::Name => Some(Document::Name),
        }
    }

    /// A value as text. An object's managed fields, which nobody asks for, are left out.
    pub fn one(self, mut value: Value) -> String {
        value.remove_at(&["metadata", "managedFields"]);
        match self {
            Document::Json => json::to_string(&value) + "\n",
            Document::Yaml => template::yaml::to_string(&value),
            Document::Name => names(&value),
        }
    }

    /// Objects as text.
    pub fn list(self, mut items: Vec<Value>) -> String {
        items.iter_mut().for_each(|item| drop(item.remove_at(&["metadata", "managedFields"])));
        let list = map! { "apiVersion" => "v1", "kind" => "List", "metadata" => map! {}, "items" => items };
        self.one(list.into())
    }
}

/// `KIND.GROUP/NAME` of an object, and of each that a list holds; of what is no object the name that it has.
fn names(value: &Value) -> String {
    if let Some(all) = value.as_array().or_else(|| value.get("items").and_then(Value::as_array)) {
        return all.iter().map(names).collect();
    }
    let text = |key| value.str_at(&[key]).unwrap_or_default();
    if value.name().is_empty() {
        return format!("{}\n", text("name"));
    }
    let group = text("apiVersion").split_once('/').map_or_else(String::new, |(group, _)| format!(".{group}"));
    format!("{}{group}/{}\n", text("kind").to_lowercase(), value.name())
}

/// The bytes of a file, or of standard input for `-`.
pub fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    if file == Path::new("-") {
        return Ok(std::io::read_to_string(std::io::stdin())?.into_bytes());
    }
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Lines of columns, as wide as they have to be.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("   ").trim_end().to_owned() + "\n"
    };
    let mut out = line(&mut head.iter().copied());
    for row in rows {
        out += &line(&mut row.iter().map(String::as_str));
    }
    out
}

/// How far something has come, on standard error: on a terminal one line that changes, elsewhere a line for each change.
pub struct Progress {
    what: String,
    said: String,
    is_terminal: bool,
}

impl Progress {
    /// The progress of something.
    pub fn new(what: &str) -> Self {
        Progress { what: what.to_owned(), said: String::new(), is_terminal: std::io::stderr().is_terminal() }
    }

    /// Tells how far it has come, if that is news.
    pub fn say(&mut self, text: &str) {
        if text == self.said {
            return;
        }
        text.clone_into(&mut self.said);
        let mut out = std::io::stderr().lock();
        // Whoever does not listen misses nothing that the result does not say.
        let _ = if self.is_terminal {
            write!(out, "\r\x1b[K{}: {text}", self.what).and_then(|()| out.flush())
        } else {
            writeln!(out, "{}: {text}", self.what)
        };
    }

    /// What was told last.
    pub fn said(&self) -> &str {
        &self.said
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_terminal && !self.said.is_empty() {
            eprintln!();
        }
    }
}

/// A colour of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// What is wrong, or goes.
    Red,
    /// What is well, or comes.
    Green,
    /// What waits.
    Yellow,
    /// What leads to something else.
    Cyan,
    /// Headings.
    Bold,
}

/// Whether texts are coloured.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// Coloured where standard output is a terminal and `NO_COLOR` is not set.
    pub fn of_stdout() -> Self {
        Style { coloured: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    /// Without colours.
    #[cfg(test)]
    pub fn plain() -> Self {
        Style { coloured: false }
    }

    /// A text in a colour.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            _ if !self.coloured || text.is_empty() => return text.to_owned(),
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Cyan => 36,
            Colour::Bold => 1,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Prints a line to standard output, as `println!` does; see [`print`].
macro_rules! say {
    ($($text:tt)*) => {
        $crate::terminal::print(&(format!($($text)*) + "\n"))
    };
}
pub(crate) use say;

/// Prints to standard output. A reader that went away (`head`, for example) is no failure.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_as_kubectl_takes() {
        let read = |text: &str| object::yaml::parse(text.as_bytes()).unwrap_or_default();
        for (value, expected) in [
            ("{apiVersion: v1, kind: Pod, metadata: {name: a}}", "pod/a\n"),
            ("{kind: List, items: [{apiVersion: g/v1, kind: A, metadata: {name: a}}]}", "a.g/a\n"),
            ("[{name: eu}, {name: us}]", "eu\nus\n"),
        ] {
            assert_eq!(Document::Name.one(read(value)), expected);
        }
    }

    #[test]
    fn a_wait_is_given_in_seconds_or_with_units() {
        for (text, expected) in [("20", Some(20)), ("20s", Some(20)), ("1m30s", Some(90)), ("soon", None), ("-1", None)]
        {
            assert_eq!(seconds(text).ok(), expected, "{text}");
        }
    }
}
