//! The types of components and traits that come with the program.

use crate::cluster::Failure;
use crate::terminal::{Document, Output, print, table};
use manager::application::library;
use object::Value;

/// Shows all types, or those of a name.
pub fn show(name: Option<&str>, output: Option<Output>) -> Result<(), Failure> {
    let all: Vec<&Value> = library::all().filter(|one| name.is_none_or(|name| one.name() == name)).collect();
    let document = match (all.as_slice(), name) {
        ([], name) => {
            return Err(format!(
                "no type {} comes along; stanchion app definitions lists those that do",
                name.unwrap_or_default()
            )
            .into());
        }
        // Of one there is not much to say in a table.
        (_, Some(_)) => Document::of(output).or(Some(Document::Yaml)),
        (_, None) => Document::of(output),
    };
    match (document, all.as_slice()) {
        (Some(document), [one]) => print(&document.one(Value::clone(one))),
        (Some(document), _) => print(&document.list(all.into_iter().cloned().collect())),
        (None, _) => print(&list(&all)),
    }
    Ok(())
}

fn list(all: &[&Value]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            let kind = one.str_at(&["kind"]).unwrap_or_default();
            let kind = kind.strip_suffix("Definition").unwrap_or(kind).to_lowercase();
            let description = one.annotation("definition.oam.dev/description").unwrap_or_default();
            vec![one.name().to_owned(), kind, description.to_owned()]
        })
        .collect();
    table(&["NAME", "KIND", "DESCRIPTION"], &rows)
}
