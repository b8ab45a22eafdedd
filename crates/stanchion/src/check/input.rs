//! The files to check, and the objects in them.

use super::report::{Finding, Severity};
use object::{Value, json, yaml};
use std::path::{Path, PathBuf};

/// A file and the objects in it.
#[derive(Debug)]
pub struct Source {
    /// Its name for people.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The objects.
    pub objects: Vec<Document>,
}

/// An object of a file.
#[derive(Debug)]
pub struct Document {
    /// The object.
    pub value: Value,
    /// Which document of the file it is in, from 0; empty ones are not counted.
    pub number: usize,
    /// Where it is within the document: nowhere, or at an item of a list.
    pub within: Vec<String>,
    /// The line on which the document starts.
    pub line: usize,
}

/// Reads everything; what cannot be read is a finding.
pub fn read(paths: &[PathBuf]) -> (Vec<Source>, Vec<Finding>) {
    let (mut sources, mut findings) = (Vec::new(), Vec::new());
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            let mut text = Vec::new();
            let outcome = std::io::Read::read_to_end(&mut std::io::stdin(), &mut text);
            take("(standard input)", outcome.map(|_| text), &mut sources, &mut findings);
        } else if let Err(error) = collect(path, true, &mut files) {
            findings.push(unreadable(&error.0.display().to_string(), error.1.to_string()));
        }
    }
    for file in files {
        take(&file.display().to_string(), std::fs::read(&file), &mut sources, &mut findings);
    }
    (sources, findings)
}

/// A file, or the files below a folder in order of their names. Links to folders are not followed below the first.
fn collect(path: &Path, named: bool, out: &mut Vec<PathBuf>) -> Result<(), (PathBuf, std::io::Error)> {
    let error = |e| (path.to_owned(), e);
    let kind = if named { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) }.map_err(error)?;
    if !kind.is_dir() {
        let wanted = path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if named || wanted {
            out.push(path.to_owned());
        }
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(error)?;
    let mut entries: Vec<PathBuf> = entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(error)?;
    entries.sort();
    entries.iter().try_for_each(|entry| collect(entry, false, out))
}

fn unreadable(file: &str, message: String) -> Finding {
    Finding { file: file.to_owned(), message, ..Finding::new(Severity::Unreadable) }
}

fn take(name: &str, text: std::io::Result<Vec<u8>>, sources: &mut Vec<Source>, findings: &mut Vec<Finding>) {
    let text = match text.map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return findings.push(unreadable(name, format!("not UTF-8: {error}"))),
        Err(error) => return findings.push(unreadable(name, error.to_string())),
    };
    let is_json = text.trim_start().starts_with('{');
    let documents = match json::parse(text.as_bytes()) {
        Ok(value) if is_json => vec![(value, 1)],
        _ => match yaml::parse_all(text.as_bytes()) {
            Ok(documents) => documents,
            Err(error) => return findings.push(unreadable(name, error)),
        },
    };
    let mut objects = Vec::new();
    for (number, (value, line)) in documents.into_iter().enumerate() {
        spread(Document { value, number, within: Vec::new(), line }, &mut objects);
    }
    sources.push(Source { name: name.to_owned(), text, objects });
}

/// Takes a `List` apart into its items.
fn spread(document: Document, out: &mut Vec<Document>) {
    let is_list = document.value.str_at(&["kind"]) == Some("List");
    let Document { mut value, number, within, line } = document;
    match value.remove_at(&["items"]) {
        Some(Value::Array(items)) if is_list => {
            for (i, value) in items.into_iter().enumerate() {
                let within = [&within[..], &["items".to_owned(), i.to_string()]].concat();
                spread(Document { value, number, within, line }, out);
            }
        }
        Some(items) => {
            value.set_at(&["items"], items);
            out.push(Document { value, number, within, line });
        }
        None => out.push(Document { value, number, within, line }),
    }
}
