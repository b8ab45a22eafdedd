//! Makes `src/protobuf/tags.txt` from the sources of the crate `k8s-pb`, which has the field numbers of Kubernetes' types.
//!
//! `cargo run -p kinds --example tags -- FOLDER-OF-K8S-PB/src > crates/kinds/src/protobuf/tags.txt`

use std::collections::BTreeMap;
use std::path::Path;

/// A field: its number, its name without marks, the message that it holds if it is one.
type Field = (String, String, Option<String>);

fn main() {
    let Some(root) = std::env::args().nth(1) else {
        eprintln!("usage: tags FOLDER");
        std::process::exit(2);
    };
    let mut messages = BTreeMap::new();
    for definition in kinds::definitions().iter() {
        if let Some((package, name)) = definition.name.rsplit_once('.') {
            let package = package.to_owned();
            read(&root, &package, name, &mut messages);
        }
    }
    // Messages whose fields JSON has in the message around them.
    let mut lines = BTreeMap::new();
    for definition in kinds::definitions().iter().filter(|d| !d.fields.is_empty()) {
        let names: Vec<&str> = definition.fields.iter().map(|f| f.name).collect();
        line(definition.name, &names, &messages, &mut lines);
    }
    for (name, fields) in lines {
        println!("{name} {fields}");
    }
}

fn line(name: &str, names: &[&str], messages: &BTreeMap<String, Vec<Field>>, lines: &mut BTreeMap<String, String>) {
    let Some(fields) = messages.get(name) else { return };
    let mut parts = Vec::new();
    for (tag, field, message) in fields {
        if let Some(json) = names.iter().find(|n| plain(n) == *field) {
            parts.push(format!("{tag}={json}"));
        } else if let Some(message) = message.as_ref().filter(|m| messages.contains_key(*m)) {
            let inner = messages.get(message).map(Vec::as_slice).unwrap_or_default();
            // Newer fields of the source are not inlined ones.
            if inner.iter().any(|(_, f, _)| names.iter().any(|n| plain(n) == *f)) {
                parts.push(format!("{tag}+{message}"));
                line(message, names, messages, lines);
            }
        }
    }
    lines.insert(name.to_owned(), parts.join(" "));
}

/// Letters and digits only, small: what JSON's and Rust's names of a field have in common.
fn plain(name: &str) -> String {
    name.trim_start_matches("r#").chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// Reads the messages of the package.
fn read(root: &str, package: &str, name: &str, messages: &mut BTreeMap<String, Vec<Field>>) {
    if messages.contains_key(&format!("{package}.{name}")) {
        return;
    }
    let path = package.trim_start_matches("io.k8s.").replace("apiextensions-apiserver", "apiextensions_apiserver");
    let path = path.replace("kube-aggregator", "kube_aggregator").replace('.', "/");
    let Ok(text) = std::fs::read_to_string(Path::new(root).join(path).join("mod.rs")) else { return };
    let mut message = String::new();
    let mut tag = None;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            let rust = rest.split([' ', '{']).next().unwrap_or_default();
            // Rust's `JsonSchemaProps` is Go's `JSONSchemaProps`.
            let go = kinds::definitions()
                .iter()
                .filter_map(|d| d.name.rsplit_once('.'))
                .find(|(p, n)| *p == package && n.eq_ignore_ascii_case(rust));
            message = format!("{package}.{}", go.map_or(rust, |(_, n)| n));
            messages.insert(message.clone(), Vec::new());
        } else if let Some((_, rest)) = line.split_once("tag = \"") {
            tag = rest.split('"').next().map(str::to_owned);
        } else if let Some((field, ty)) = line.strip_prefix("pub ").and_then(|l| l.split_once(':'))
            && let Some(tag) = tag.take()
        {
            let mut ty = ty.to_owned();
            while !ty.ends_with(',') {
                let Some(more) = lines.next() else { break };
                ty.push_str(more);
                if more == "}" {
                    break;
                }
            }
            let inner = ty.trim_end_matches([',', '>']).rsplit(['<', ':', ' ']).next().unwrap_or_default().to_owned();
            let inlined = inner.chars().next().is_some_and(char::is_uppercase) && inner != "String";
            // `super::v1::X` is a message of the package beside this one.
            let beside = ty.split_once("super::").and_then(|(_, path)| path.split_once("::"));
            let inner = inlined.then(|| match (beside, package.rsplit_once('.')) {
                (Some((version, _)), Some((group, _))) if version.starts_with('v') => {
                    format!("{group}.{version}.{inner}")
                }
                _ => format!("{package}.{inner}"),
            });
            if let Some(fields) = messages.get_mut(&message) {
                fields.push((tag, plain(field), inner));
            }
        }
    }
}
