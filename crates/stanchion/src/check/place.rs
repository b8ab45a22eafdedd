//! From the path in an error to a line of the file.

use super::input::{Document, Source};
use object::yaml;

/// The line of the field that an error is about; that of the object where the field is nowhere.
pub fn line(source: &Source, document: &Document, field: &str) -> usize {
    let mut path = document.within.clone();
    path.extend(steps(&published(field)));
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    yaml::locate(&source.text, document.number, &path).unwrap_or(document.line)
}

/// The path as the author wrote it: errors of definitions name the fields of an internal form.
fn published(field: &str) -> String {
    for (internal, public) in [
        ("spec.validation.", "spec.versions[0].schema."),
        ("spec.subresources", "spec.versions[0].subresources"),
        ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
        ("spec.selectableFields", "spec.versions[0].selectableFields"),
        ("spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"),
        ("spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"),
    ] {
        if let Some(rest) = field.strip_prefix(internal) {
            return format!("{public}{rest}").replace(".JSONPath", ".jsonPath");
        }
    }
    field.replace(".JSONPath", ".jsonPath")
}

/// The steps of a path: names between dots, keys and indices in brackets.
fn steps(field: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = field;
    while !rest.is_empty() && rest != "<nil>" {
        if let Some(after) = rest.strip_prefix('[') {
            let end = after.find(']').unwrap_or(after.len());
            out.push(after[..end].to_owned());
            rest = after.get(end + 1..).unwrap_or_default();
        } else {
            let start = rest.strip_prefix('.').unwrap_or(rest);
            let end = start.find(['.', '[']).unwrap_or(start.len());
            if end > 0 {
                out.push(start[..end].to_owned());
            }
            if end == 0 && start.len() == rest.len() {
                break;
            }
            rest = &start[end..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        for (field, expected) in [
            ("spec.a[0].b", vec!["spec", "a", "0", "b"]),
            ("metadata.annotations[a.b/c]", vec!["metadata", "annotations", "a.b/c"]),
            ("<nil>", vec![]),
            ("", vec![]),
            ("a..b", vec!["a", "b"]),
        ] {
            assert_eq!(steps(field), expected, "{field}");
        }
    }

    #[test]
    fn internal_paths_become_those_of_the_file() {
        assert_eq!(
            published("spec.validation.openAPIV3Schema.properties[a]"),
            "spec.versions[0].schema.openAPIV3Schema.properties[a]"
        );
        assert_eq!(
            published("spec.additionalPrinterColumns[1].JSONPath"),
            "spec.versions[0].additionalPrinterColumns[1].jsonPath"
        );
    }
}
