//! Files of a volume that get in each other's way.

use super::MOST;
use crate::read::Read;
use object::{Value, go};
use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};

/// How many bytes of paths and texts are looked at: ordinary pods have far fewer, and as a source is compared with all
/// before it, what a body could hold takes minutes.
const BYTES: usize = 16 << 20;
/// What a path costs beside its bytes.
const PATH: usize = 16;

/// Warns of files of a volume that are at one path, or one below the other.
pub(super) fn overlaps(volumes: &[Value], out: &mut Vec<String>) {
    let mut look = Look { out, left: BYTES };
    for volume in volumes {
        let name = go::quote(volume.text("name"));
        for (key, kind, named) in KINDS {
            let source = volume.sub(key);
            // In a volume of its own a secret is named in another member than in a projected one.
            let named = if key == "secret" { "secretName" } else { named };
            if !source.list("items").is_empty() {
                look.check(paths(source), &what(&name, "", kind, source, named));
            }
        }
        if volume.has("projected") {
            projected(&name, volume.sub("projected").list("sources"), &mut look);
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

fn projected(volume: &str, sources: &[Value], look: &mut Look<'_>) {
    const PREFIX: &str = "Projected ";
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for source in sources {
        if look.is_over() {
            return;
        }
        if source.as_object().is_none_or(|members| members.iter().all(|(_, part)| part.is_null())) {
            look.out.push(format!("volume {volume} (Projected) has no sources provided"));
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
        look.check(found.clone(), &text);
        // Once more with those of the sources before.
        let own: BTreeSet<&str> = found.into_iter().collect();
        let mut together: Vec<&str> = own.iter().chain(&all).copied().collect();
        together.sort_unstable();
        look.check(together, &text);
        all.extend(own);
    }
}

/// The warnings, and how much more is looked at.
struct Look<'o> {
    out: &'o mut Vec<String>,
    left: usize,
}

impl Look<'_> {
    fn is_over(&self) -> bool {
        self.left == 0 || self.out.len() >= MOST
    }

    fn check(&mut self, paths: Vec<&str>, what: &str) {
        let mut seen = Seen::default();
        for path in paths {
            if self.is_over() {
                return;
            }
            self.left = self.left.saturating_sub(path.len() + PATH);
            let path = path.trim_end_matches('/');
            if let Some(other) = seen.collision(path) {
                self.left = self.left.saturating_sub(what.len());
                self.out.push(format!("{what}: {} with {}", go::quote(path), go::quote(other)));
            }
            seen.insert(path);
        }
    }
}

/// Paths, but none that begins with another: that one stands for it.
#[derive(Default)]
struct Seen<'p>(BTreeSet<&'p str>);

impl<'p> Seen<'p> {
    /// The one that a path begins with. Whatever sorts between the two begins with it too, so that it is the last before.
    fn start(&self, path: &str) -> Option<&'p str> {
        self.0.range::<str, _>((Unbounded, Included(path))).next_back().copied().filter(|other| path.starts_with(other))
    }

    /// The first that begins with a path.
    fn below(&self, path: &str) -> Option<&'p str> {
        self.0.range::<str, _>((Included(path), Unbounded)).next().copied().filter(|other| other.starts_with(path))
    }

    /// The first, in their order, of all paths that begin with this one or that it begins with.
    fn collision(&self, path: &str) -> Option<&'p str> {
        if path.is_empty() || self.0.contains("") {
            return None;
        }
        self.start(path).or_else(|| self.below(path))
    }

    fn insert(&mut self, path: &'p str) {
        if self.start(path).is_some() {
            return;
        }
        while let Some(other) = self.below(path) {
            self.0.remove(other);
        }
        self.0.insert(path);
    }
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

    #[test]
    fn the_first_path_in_the_way_is_found() {
        let all = ["b", "", "a/b", "ab", "a", "a/b/c", "abc", "é", "éa", "a/"];
        // Each sequence of four, against a plain look at all that were seen.
        for n in 0..all.len().pow(4) {
            let (mut seen, mut plain) = (Seen::default(), BTreeSet::new());
            for at in 0..4 {
                let path = all[n / all.len().pow(at) % all.len()];
                let first =
                    plain.iter().copied().find(|other: &&str| other.starts_with(path) || path.starts_with(other));
                let expected = first.filter(|_| !path.is_empty() && !plain.contains(""));
                assert_eq!(seen.collision(path), expected, "{path} {plain:?}");
                seen.insert(path);
                plain.insert(path);
            }
        }
    }

    #[test]
    fn a_body_full_of_files_is_looked_through_in_bounded_time() {
        let warnings = |path: &dyn Fn(usize) -> String| {
            let source = |i| format!(r#"{{"secret":{{"items":[{{"path":"{}"}}]}}}}"#, path(i));
            let sources: Vec<String> = (0..40_000).map(source).collect();
            let volume = format!(r#"{{"name":"v","projected":{{"sources":[{}]}}}}"#, sources.join(","));
            let mut out = Vec::new();
            overlaps(&[json::parse(volume.as_bytes()).unwrap()], &mut out);
            out.len()
        };
        assert_eq!(warnings(&|i| format!("{i:05}")), 0);
        assert_eq!(warnings(&|_| "a".to_owned()), MOST);
    }
}
