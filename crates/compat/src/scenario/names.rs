//! What one scenario knows about generated identities, and how it writes them.

use super::field::select;
use crate::case::body_text;
use base64::Engine;
use object::{Map, Value};
use regex::Regex;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The letters of generated name ends.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Generated names and what stands for them, the longest first.
#[derive(Clone, Default)]
pub(crate) struct Generated(Vec<(String, String)>);

impl Generated {
    fn new(mut names: Vec<(String, String)>) -> Self {
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Generated(names)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, shown)| shown.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, shown: String) {
        if let Some(entry) = self.0.iter_mut().find(|(n, _)| n == name) {
            entry.1 = shown;
        }
    }
}

/// The identities of a scenario.
pub(crate) struct Names {
    /// The scenario's namespace.
    pub(crate) namespace: String,
    /// Fields that steps saved, in order.
    pub(crate) saved: Vec<(String, Value)>,
    /// IP -> name of the pod.
    pub(crate) addresses: HashMap<String, String>,
    uids: HashMap<String, String>,
    /// Hash, or minute of a CronJob -> what stands for it.
    hashes: Vec<(String, String)>,
    /// Generated name -> its `generateName`.
    generated: Vec<(String, String)>,
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        #[allow(clippy::unwrap_used, reason = "the pattern is a constant")]
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).unwrap());
    };
}
pattern!(UUID, r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b");
pattern!(TIME, r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z");
pattern!(GO_TIME, r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC( m=\+[\d.]+)?");
pattern!(VERSION, r#"(resourceVersion|ResourceVersion|resource version)((?:\\*"|[^0-9"\\]){0,12})\d+"#);
pattern!(ADDRESS, r"\b10\.(8[89]|9\d)\.\d+\.\d+\b");
pattern!(FORBIDDEN_POD, r#"(pods "[a-z0-9<>-]+-)[bcdfghjklmnpqrstvwxz2456789]{5}(" is forbidden)"#);
pattern!(TOKEN_VOLUME, r"kube-api-access-[a-z0-9]{5}\b");
pattern!(POINTER, r"\b0xc[0-9a-f]{6,}\b");

impl Names {
    pub(crate) fn new(namespace: String) -> Self {
        Names {
            namespace,
            saved: Vec::new(),
            addresses: HashMap::new(),
            uids: HashMap::new(),
            hashes: Vec::new(),
            generated: Vec::new(),
        }
    }

    /// Keeps a field under a name.
    pub(crate) fn save(&mut self, name: &str, value: Value) {
        match self.saved.iter_mut().find(|(n, _)| n == name) {
            Some(entry) => entry.1 = value,
            None => self.saved.push((name.to_owned(), value)),
        }
    }

    /// Takes in the identities of objects.
    pub(crate) fn learn(&mut self, objects: &[&Value]) {
        for object in objects {
            let kind = object.str_at(&["kind"]).unwrap_or_default();
            let name = name_of(object);
            if let Some(uid) = object.str_at(&["metadata", "uid"]) {
                self.uids.insert(uid.to_owned(), format!("{kind}/{name}"));
            }
            if let Some(address) = object.str_at(&["status", "podIP"]).filter(|_| kind == "Pod") {
                self.addresses.insert(address.to_owned(), name.to_owned());
            }
            let base = object.str_at(&["metadata", "generateName"]).unwrap_or_default();
            let end = name.strip_prefix(base).filter(|_| !base.is_empty());
            if end.is_some_and(|end| end.len() == 5 && end.chars().all(|c| LETTERS.contains(c)))
                && self.generated.iter().all(|(n, _)| n != name)
            {
                self.generated.push((name.to_owned(), base.to_owned()));
            }
        }
        let versioned = |o: &&&Value| matches!(o.str_at(&["kind"]), Some("ReplicaSet" | "ControllerRevision"));
        let mut sorted: Vec<&Value> = objects.iter().filter(versioned).copied().collect();
        sorted.sort_by_key(|o| revision_key(o));
        sorted.extend(objects.iter().filter(|o| !versioned(o)).copied());
        for hash in sorted.into_iter().flat_map(hashes_of) {
            self.number_hash(&hash, 'h');
        }
        let mut minutes: Vec<&str> = objects.iter().filter_map(|o| minute_of(o)).collect();
        minutes.sort_unstable();
        for minute in minutes {
            self.number_hash(minute, 'm');
        }
    }

    fn number_hash(&mut self, hash: &str, letter: char) {
        if self.hashes.iter().all(|(h, _)| h != hash) {
            let number = 1 + self.hashes.iter().filter(|(_, n)| n.starts_with(letter)).count();
            self.hashes.push((hash.to_owned(), format!("{letter}{number}")));
        }
    }

    /// Generated names, each written without its end.
    pub(crate) fn anonymous(&self) -> Generated {
        Generated::new(self.generated.iter().map(|(name, base)| (name.clone(), format!("{base}<r>"))).collect())
    }

    /// [`Names::anonymous`] without the names that steps saved.
    pub(crate) fn unsaved(&self) -> Generated {
        let saved = |name: &str| self.saved.iter().any(|(_, v)| v.as_str() == Some(name));
        let names = self.generated.iter().filter(|(name, _)| !saved(name));
        Generated::new(names.map(|(name, base)| (name.clone(), format!("{base}<r>"))).collect())
    }

    /// Generated names of these objects, numbered by the objects' content.
    pub(crate) fn numbered(&self, objects: &[&Value]) -> Generated {
        let anonymous = self.unsaved();
        let mut groups: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for object in objects {
            let name = name_of(object);
            let Some(shown) = anonymous.get(name) else { continue };
            let content = body_text(&sort_inner(self.value(object, &anonymous)));
            groups.entry(self.text(shown, &Generated::default())).or_default().push((content, name.to_owned()));
        }
        let mut out = anonymous;
        for mut group in groups.into_values() {
            group.sort();
            for (i, (_, name)) in group.iter().enumerate() {
                let shown = out.get(name).unwrap_or_default().replace("<r>", &format!("<r{}>", i + 1));
                out.set(name, shown);
            }
        }
        out
    }

    /// A text without what differs from run to run.
    pub(crate) fn text(&self, text: &str, generated: &Generated) -> String {
        if text == self.namespace {
            return "<ns>".to_owned();
        }
        let mut s = UUID
            .replace_all(text, |c: &regex::Captures<'_>| match self.uids.get(&c[0]) {
                Some(object) => format!("<uid:{object}>"),
                None => "<uid>".to_owned(),
            })
            .into_owned();
        if s.contains('.') {
            let pod =
                |c: &regex::Captures<'_>| format!("<ip:{}>", self.addresses.get(&c[0]).map_or("?", String::as_str));
            s = ADDRESS.replace_all(&s, pod).into_owned();
        }
        let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        for (name, value) in &self.saved {
            if let Some(value) = value.as_str().filter(|v| v.len() > 3 && !is_uuid(v)) {
                s = replace_word(&s, value, &format!("<{name}>"), in_name);
            }
        }
        for (name, shown) in &generated.0 {
            s = replace_word(&s, name, shown, in_name);
        }
        for (hash, name) in &self.hashes {
            s = replace_word(&s, hash, &format!("<{name}>"), |c| c.is_ascii_alphanumeric());
        }
        s = s.replace(&self.namespace, "<ns>");
        for (pattern, by) in [
            (&*FORBIDDEN_POD, "${1}<r>$2"),
            (&*TOKEN_VOLUME, "kube-api-access-<r>"),
            (&*POINTER, "<ptr>"),
            (&*TIME, "<time>"),
            (&*GO_TIME, "<time>"),
            (&*VERSION, "$1$2<rv>"),
        ] {
            s = pattern.replace_all(&s, by).into_owned();
        }
        s
    }

    /// A value without what differs from run to run.
    pub(crate) fn value(&self, value: &Value, generated: &Generated) -> Value {
        self.member("", value, generated)
    }

    fn member(&self, key: &str, value: &Value, generated: &Generated) -> Value {
        match value {
            Value::Object(members) => Value::Object(
                members.iter().map(|(k, v)| (self.text(k, generated), self.member(k, v, generated))).collect(),
            ),
            Value::Array(items) => Value::Array(items.iter().map(|v| self.member("", v, generated)).collect()),
            Value::String(s) => match key {
                "resourceVersion" => "<rv>".into(),
                "ca.crt" if s.len() > 100 => "<ca>".into(),
                "token" if s.len() > 100 => "<token>".into(),
                "namespace" if *s == base64::engine::general_purpose::STANDARD.encode(&self.namespace) => {
                    "<base64 of ns>".into()
                }
                _ => self.text(s, generated).into(),
            },
            other => other.clone(),
        }
    }

    /// The message of an event without the ends of generated names, of lost objects too.
    pub(crate) fn message(&self, message: &str) -> String {
        let mut out = message.replace("(combined from similar events): ", "");
        for (_, base) in &self.generated {
            let base = self.text(base, &Generated::default());
            let end = format!("{}[{LETTERS}]{{5}}\\b", regex::escape(&base));
            if let Ok(pattern) = Regex::new(&end) {
                out = pattern.replace_all(&out, regex::NoExpand(&format!("{base}<r>"))).into_owned();
            }
        }
        out
    }
}

fn is_uuid(text: &str) -> bool {
    UUID.find(text).is_some_and(|m| m.len() == text.len())
}

/// Replaces a word wherever no letter of words stands beside it.
fn replace_word(text: &str, word: &str, by: &str, in_word: impl Fn(char) -> bool) -> String {
    if word.is_empty() || !text.contains(word) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find(word) {
        let (start, end) = (at + found, at + found + word.len());
        let beside = text[..start].chars().next_back().into_iter().chain(text[end..].chars().next());
        out.push_str(&text[at..start]);
        out.push_str(if beside.into_iter().any(&in_word) { word } else { by });
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

pub(crate) fn name_of(object: &Value) -> &str {
    object.str_at(&["metadata", "name"]).unwrap_or_default()
}

/// The objects of an answer: the items of a list, each with its kind, or the object itself.
pub(crate) fn items(answer: &mut Value) -> Vec<&Value> {
    let kind = answer.str_at(&["kind"]).unwrap_or_default().to_owned();
    match kind.strip_suffix("List") {
        Some(kind) if matches!(answer.get("items"), Some(Value::Array(_))) => {
            let items = answer.get_mut("items").and_then(Value::as_array_mut);
            let items = items.map(|items| {
                for item in items.iter_mut() {
                    if let Some(members) = item.as_object_mut() {
                        members.get_or_insert("kind", || kind.into());
                    }
                }
                &*items
            });
            items.into_iter().flatten().collect()
        }
        _ if answer.get("metadata").is_some() && answer.get("kind").is_some() => vec![answer],
        _ => Vec::new(),
    }
}

/// ReplicaSets and ControllerRevisions are numbered by revision, then by age and name.
fn revision_key(object: &Value) -> (i64, String, String) {
    let annotation = object.str_at(&["metadata", "annotations", "deployment.kubernetes.io/revision"]);
    let revision = match annotation {
        Some(text) => text.parse().unwrap_or_default(),
        None => object.get("revision").and_then(Value::as_int).unwrap_or_default(),
    };
    let made = object.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default();
    (revision, made.to_owned(), name_of(object).to_owned())
}

fn hashes_of(object: &Value) -> Vec<String> {
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    let label = |name: &str| object.str_at(&["metadata", "labels", name]);
    let last = |text: &str| text.rsplit('-').next().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    if matches!(kind, "ReplicaSet" | "Pod") {
        found.extend(label("pod-template-hash").map(str::to_owned));
    }
    if kind == "ControllerRevision" {
        let hash = label("controller.kubernetes.io/hash").or(label("controller-revision-hash"));
        found.extend(hash.map(last));
    }
    if kind == "Pod" {
        found.extend(label("controller-revision-hash").map(last));
    }
    if kind == "StatefulSet" {
        found.extend(object.str_at(&["status", "currentRevision"]).map(last));
        found.extend(object.str_at(&["status", "updateRevision"]).map(last));
    }
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    found.retain(|hash| (5..=10).contains(&hash.len()) && hash.chars().all(lower));
    found
}

/// The minute in the name of a CronJob's Job.
fn minute_of(object: &Value) -> Option<&str> {
    let owners = select(object, "metadata.ownerReferences[*].kind");
    if object.str_at(&["kind"]) != Some("Job") || owners.iter().all(|kind| kind.as_str() != Some("CronJob")) {
        return None;
    }
    let end = name_of(object).rsplit_once('-')?.1;
    (end.len() == 8 && end.chars().all(|c| c.is_ascii_digit())).then_some(end)
}

/// An object with lists sorted whose order means nothing.
pub(crate) fn sort_inner(mut object: Value) -> Value {
    fn sort(object: &mut Value, key: &str) {
        if let Some(items) = object.get_mut(key).and_then(Value::as_array_mut) {
            items.sort_by_cached_key(body_text);
        }
    }
    match object.str_at(&["kind"]) {
        Some("Endpoints") => {
            for subset in object.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
                for key in ["addresses", "notReadyAddresses", "ports"] {
                    sort(subset, key);
                }
            }
            sort(&mut object, "subsets");
        }
        Some("EndpointSlice") => {
            sort(&mut object, "endpoints");
            sort(&mut object, "ports");
        }
        _ => {}
    }
    object
}

/// The members of an object, or none.
pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn identities_are_written_as_what_stands_for_them() {
        let mut names = Names::new("case-x".to_owned());
        let uid = "0d5f4c3e-1111-2222-3333-444455556666";
        let mut pod = json::parse(
            br#"{"kind":"Pod","metadata":{"name":"web-7959dd7956-bcdfg","generateName":"web-7959dd7956-",
                "labels":{"pod-template-hash":"7959dd7956"},"uid":"0d5f4c3e-1111-2222-3333-444455556666"},"status":{"podIP":"10.88.0.2"}}"#,
        )
        .unwrap();
        names.learn(&items(&mut pod));
        names.save("first", "saved-name".into());
        let shown = names.anonymous();
        for (text, want) in [
            ("case-x", "<ns>"),
            (uid, "<uid:Pod/web-<h1>-<r>>"),
            ("web-7959dd7956-bcdfg", "web-<h1>-<r>"),
            ("10.88.0.2", "<ip:web-<h1>-<r>>"),
            ("a saved-name b", "a <first> b"),
            ("a saved-names", "a saved-names"),
            ("at 2026-01-02T03:04:05Z", "at <time>"),
            ("resourceVersion: 12", "resourceVersion: <rv>"),
        ] {
            assert_eq!(names.text(text, &shown), want, "{text}");
        }
        let numbered = names.numbered(&[&pod]);
        assert_eq!(names.text("web-7959dd7956-bcdfg", &numbered), "web-<h1>-<r1>");
    }
}
