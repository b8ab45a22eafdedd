//! Files of a volume that get in each other's way.

use crate::read::Read;
use object::{Value, go};
use std::collections::BTreeSet;

/// Warns of files of a volume that are at one path, or one below the other.
pub(super) fn overlaps(volumes: &[Value], out: &mut Vec<String>) {
    for volume in volumes {
        let name = go::quote(volume.text("name"));
        for (key, kind, named) in KINDS {
            let source = volume.sub(key);
            // In a volume of its own a secret is named in another member than in a projected one.
            let named = if key == "secret" { "secretName" } else { named };
            if !source.list("items").is_empty() {
                check(paths(source), &what(&name, "", kind, source, named), out);
            }
        }
        if volume.has("projected") {
            projected(&name, volume.sub("projected").list("sources"), out);
        }
    }
}

/// Member, what it is called, and what names it.
const KINDS: [(&str, &str, &str); 3] =
    [("configMap", "ConfigMap", "name"), ("secret", "Secret", "name"), ("downwardAPI", "DownwardAPI", "")];

fn what(volume: &str, prefix: &str, kind: &str, source: &Value, named: &str) -> String {
    let name = if named.is_empty() { String::new() } else { format!(" {}", go::quote(source.text(named))) };
    format!("volume {volume} ({prefix}{kind}{name}): overlapping paths")
}

fn paths(source: &Value) -> Vec<&str> {
    source.list("items").iter().map(|item| item.text("path")).collect()
}

fn projected(volume: &str, sources: &[Value], out: &mut Vec<String>) {
    const PREFIX: &str = "Projected ";
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for source in sources {
        if source.as_object().is_none_or(|members| members.iter().all(|(_, part)| part.is_null())) {
            out.push(format!("volume {volume} (Projected) has no sources provided"));
            continue;
        }
        let listed = KINDS.into_iter().find(|(key, ..)| !source.sub(key).list("items").is_empty());
        let (found, text) = if let Some((key, kind, named)) = listed {
            (paths(source.sub(key)), what(volume, PREFIX, kind, source.sub(key), named))
        } else if source.has("serviceAccountToken") {
            let token = source.sub("serviceAccountToken");
            (vec![token.text("path")], what(volume, PREFIX, "ServiceAccountToken", token, ""))
        } else {
            continue;
        };
        check(found.clone(), &text, out);
        // Once more with those of the sources before.
        let own: BTreeSet<&str> = found.into_iter().collect();
        let mut together: Vec<&str> = own.iter().chain(&all).copied().collect();
        together.sort_unstable();
        check(together, &text, out);
        all.extend(own);
    }
}

fn check(paths: Vec<&str>, what: &str, out: &mut Vec<String>) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for path in paths {
        let path = path.trim_end_matches('/');
        if let Some(other) = collision(&seen, path) {
            out.push(format!("{what}: {} with {}", go::quote(path), go::quote(other)));
        }
        seen.insert(path);
    }
}

fn collision<'p>(seen: &BTreeSet<&'p str>, path: &str) -> Option<&'p str> {
    if path.is_empty() || seen.contains("") {
        return None;
    }
    seen.iter().copied().find(|other| other.starts_with(path) || path.starts_with(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn files_that_get_in_each_others_way_are_named() {
        let found = |volume: &str| {
            let volume = json::parse(format!(r#"{{"name":"v",{volume}}}"#).as_bytes()).unwrap();
            let mut out = Vec::new();
            overlaps(&[volume], &mut out);
            out
        };
        let items = |a: &str, b: &str| format!(r#""items":[{{"path":"{a}"}},{{"path":"{b}"}}]"#);
        for (volume, expected) in [
            (format!(r#""configMap":{{"name":"c",{}}}"#, items("a", "b")), vec![]),
            (
                format!(r#""configMap":{{"name":"c",{}}}"#, items("a", "a/b")),
                vec![r#"volume "v" (ConfigMap "c"): overlapping paths: "a/b" with "a""#],
            ),
            (
                format!(r#""secret":{{"secretName":"s",{}}}"#, items("a", "a/")),
                vec![r#"volume "v" (Secret "s"): overlapping paths: "a" with "a""#],
            ),
            (
                format!(r#""downwardAPI":{{{}}}"#, items("a/b", "a")),
                vec![r#"volume "v" (DownwardAPI): overlapping paths: "a" with "a/b""#],
            ),
            (r#""projected":{"sources":[{}]}"#.to_owned(), vec![r#"volume "v" (Projected) has no sources provided"#]),
            (
                r#""projected":{"sources":[{"serviceAccountToken":{"path":"a"}},{"secret":{"name":"s","items":[{"path":"a"}]}}]}"#
                    .to_owned(),
                vec![r#"volume "v" (Projected Secret "s"): overlapping paths: "a" with "a""#],
            ),
            (
                r#""projected":{"sources":[{"serviceAccountToken":{"path":"token"}},{"configMap":{"items":[{"path":"ca.crt"}]}}]}"#
                    .to_owned(),
                vec![],
            ),
        ] {
            assert_eq!(found(&volume), expected, "{volume}");
        }
    }
}
