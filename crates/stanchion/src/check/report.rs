//! Findings, for people and for programs.

use crate::terminal::say;
use object::{Map, Value, json, map};
use std::io::IsTerminal;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input cannot be read.
    Unreadable,
    /// The server would refuse the object.
    Error,
    /// The server would take it with a warning.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Unreadable | Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Severity::Unreadable | Severity::Error => "\x1b[31m",
            Severity::Warning => "\x1b[33m",
            Severity::Note => "\x1b[36m",
        }
    }
}

/// Something to tell about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub file: String,
    /// The line, from 1; 0 where there is none.
    pub line: usize,
    /// The object's kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// The field, as the server names it.
    pub field: String,
    /// What the server would say.
    pub message: String,
}

impl Finding {
    /// A finding about nothing yet.
    pub fn new(severity: Severity) -> Self {
        let none = String::new;
        Finding { severity, file: none(), line: 0, kind: none(), name: none(), field: none(), message: none() }
    }
}

/// All findings, and what they are about.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many files were read.
    pub files: usize,
    /// How many definitions were in them.
    pub definitions: usize,
    /// How many other objects.
    pub objects: usize,
    /// The findings in the order of the input.
    pub findings: Vec<Finding>,
}

impl Outcome {
    /// How many findings are that bad.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == severity).count()
    }
}

/// Prints a line for each finding, and a summary to standard error.
pub fn text(outcome: &Outcome) {
    let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut out = String::new();
    for finding in &outcome.findings {
        let (colour, plain) = if coloured { (finding.severity.colour(), "\x1b[0m") } else { ("", "") };
        let line = if finding.line > 0 { format!(":{}", finding.line) } else { String::new() };
        let object = match (finding.kind.as_str(), finding.name.as_str()) {
            ("", _) => String::new(),
            (kind, "") => format!("{kind}: "),
            (kind, name) => format!("{kind} {name}: "),
        };
        let severity = finding.severity.name();
        out.push_str(&format!("{}{line}: {colour}{severity}{plain}: {object}{}\n", finding.file, finding.message));
    }
    // A reader that went away (head, for example) is no failure.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), out.as_bytes());
    let errors = outcome.count(Severity::Error) + outcome.count(Severity::Unreadable);
    eprintln!(
        "{}, {}, {}: {}, {}",
        counted(outcome.files, "file"),
        counted(outcome.definitions, "definition"),
        counted(outcome.objects, "object"),
        counted(errors, "error"),
        counted(outcome.count(Severity::Warning), "warning")
    );
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Prints everything as one JSON object.
pub fn json(outcome: &Outcome) {
    let count = |n: usize| n as i64;
    let findings = outcome.findings.iter().map(|f| {
        let mut out =
            map! { "severity" => f.severity.name(), "file" => f.file.as_str(), "message" => f.message.as_str() };
        if f.line > 0 {
            out.insert("line", count(f.line));
        }
        for (key, text) in [("kind", &f.kind), ("name", &f.name), ("field", &f.field)] {
            if !text.is_empty() {
                out.insert(key, text.as_str());
            }
        }
        out
    });
    let document = map! {
        "files" => count(outcome.files),
        "definitions" => count(outcome.definitions),
        "objects" => count(outcome.objects),
        "findings" => findings.collect::<Vec<Map>>(),
    };
    say!("{}", json::to_string(&Value::Object(document)));
}
