//! The forms in which permits are printed.

use super::view;
use crate::terminal::print;
use clap::ValueEnum;
use jiff::Timestamp;
use manager::kinds::{GROUP, PERMITS};
use object::{Value, json, map};

/// A form.
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

/// Prints permits, as a list where there may be several.
pub fn permits(all: Vec<Value>, output: Option<Output>, with_namespace: bool) {
    match output {
        None | Some(Output::Wide) => {
            print(&view::permits(&all, with_namespace, output == Some(Output::Wide), Timestamp::now()))
        }
        Some(Output::Name) => all.iter().for_each(|permit| print(&format!("{}\n", name(permit)))),
        Some(output) => {
            let list = map! { "apiVersion" => "v1", "kind" => "List", "metadata" => map! {}, "items" => all };
            document(&list.into(), output);
        }
    }
}

/// Prints one permit; `text` is what people are told.
pub fn permit(permit: &Value, output: Option<Output>, text: &str) {
    match output {
        None => print(text),
        Some(Output::Wide) => permits(vec![permit.clone()], output, false),
        Some(Output::Name) => print(&format!("{}\n", name(permit))),
        Some(output) => document(permit, output),
    }
}

fn document(value: &Value, output: Output) {
    match output {
        Output::Yaml => print(&template::yaml::to_string(value)),
        _ => print(&format!("{}\n", json::to_string(value))),
    }
}

fn name(permit: &Value) -> String {
    format!("{}.{GROUP}/{}", PERMITS.kind.to_lowercase(), permit.name())
}
