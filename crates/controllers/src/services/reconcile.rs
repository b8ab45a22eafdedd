//! How EndpointSlices come to hold what they should, with few and small writes.

use crate::pods;
use kinds::read::Read;
use object::{Map, Value, json, map};
use std::collections::HashMap;

/// Endpoints that offer the same ports.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The family of their addresses.
    pub family: &'static str,
    /// The ports.
    pub ports: Vec<Value>,
    /// The endpoints.
    pub endpoints: Vec<Value>,
}

/// What slices have besides endpoints and ports.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The object that they are for.
    pub owner: &'a Value,
    /// Its kind.
    pub kind: &'static str,
    /// Their labels.
    pub labels: Map,
    /// Their annotations; none where those that are there do not matter.
    pub annotations: Option<Map>,
    /// The most endpoints of a slice.
    pub most: usize,
}

/// What has to be done about the slices of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Slices to create.
    pub create: Vec<Value>,
    /// Slices to change.
    pub update: Vec<Value>,
    /// Slices to delete.
    pub delete: Vec<Value>,
}

/// Compares what slices of one family hold with what they should hold. With `placeholder` there is always one, be it
/// empty.
pub fn reconcile(
    frame: &Frame<'_>,
    family: &'static str,
    existing: &[&Value],
    groups: Vec<Group>,
    placeholder: bool,
) -> Changes {
    let mut by_ports: HashMap<String, Vec<&Value>> = HashMap::new();
    for slice in existing {
        by_ports.entry(ports_key(slice.list("ports"))).or_default().push(slice);
    }
    let mut out = Changes::default();
    for group in groups {
        let held = by_ports.remove(&ports_key(&group.ports)).unwrap_or_default();
        frame.reconcile_group(&held, group, &mut out);
    }
    // Nobody offers these ports any more.
    let unwanted = existing.iter().filter(|s| by_ports.contains_key(&ports_key(s.list("ports"))));
    out.delete.extend(unwanted.map(|slice| (*slice).clone()));
    if placeholder && out.delete.len() == existing.len() && out.create.is_empty() {
        let empty = frame.slice(family, Vec::new());
        match out.delete.as_slice() {
            [slice] if frame.is_placeholder(slice) => out.delete.clear(),
            _ => out.create.push(empty),
        }
    }
    out.reuse(frame.owner.meta_str("uid"));
    out
}

fn ports_key(ports: &[Value]) -> String {
    let mut texts: Vec<String> = ports.iter().map(json::to_string).collect();
    texts.sort();
    texts.join(",")
}

/// What an endpoint is known by.
fn identity(endpoint: &Value) -> String {
    let mut addresses = endpoint.strings("addresses");
    addresses.sort_unstable();
    let target = endpoint.sub("targetRef");
    format!("{} {}/{}", addresses.join(","), target.text("namespace"), target.text("name"))
}

fn is_same(a: &Value, b: &Value) -> bool {
    static NOTHING: Value = Value::Null;
    let field = |endpoint: &Value, key: &str| {
        let mut value = endpoint.get(key).unwrap_or(&NOTHING).clone();
        value.remove_at(&["resourceVersion"]);
        value
    };
    ["conditions", "hostname", "nodeName", "zone", "targetRef", "hints"]
        .iter()
        .all(|key| field(a, key) == field(b, key))
}

/// Endpoints that have to be placed, in order.
struct Pending {
    order: Vec<String>,
    endpoints: HashMap<String, Value>,
}

impl Pending {
    fn new(endpoints: Vec<Value>) -> Self {
        let mut out = Pending { order: Vec::new(), endpoints: HashMap::new() };
        for endpoint in endpoints {
            let key = identity(&endpoint);
            if out.endpoints.insert(key.clone(), endpoint).is_none() {
                out.order.push(key);
            }
        }
        out.order.reverse();
        out
    }

    fn len(&self) -> usize {
        self.endpoints.len()
    }

    fn take(&mut self, like: &Value) -> Option<Value> {
        self.endpoints.remove(&identity(like))
    }

    /// Puts as many into a slice as it takes.
    fn fill(&mut self, slice: &mut Value, most: usize) {
        let mut room = most.saturating_sub(slice.list("endpoints").len());
        while room > 0 {
            let Some(key) = self.order.pop() else { break };
            let Some(endpoint) = self.endpoints.remove(&key) else { continue };
            match slice.get_mut("endpoints").and_then(Value::as_array_mut) {
                Some(endpoints) => endpoints.push(endpoint),
                None => slice.set_at(&["endpoints"], vec![endpoint].into()),
            }
            room -= 1;
        }
    }
}

impl Frame<'_> {
    /// Places the endpoints of a group: those that are in a slice stay there; the others fill slices that change anyway,
    /// then one that has room, then new ones.
    fn reconcile_group(&self, existing: &[&Value], group: Group, out: &mut Changes) {
        let family = group.family;
        let mut pending = Pending::new(group.endpoints);
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        for slice in existing {
            let mut moved = false;
            let mut kept = Vec::new();
            for old in slice.list("endpoints") {
                match pending.take(old) {
                    Some(new) => {
                        moved |= !is_same(&new, old);
                        kept.push(new);
                    }
                    None => moved = true,
                }
            }
            if moved && kept.is_empty() {
                out.delete.push((*slice).clone());
            } else if moved || !self.fits(slice) {
                let mut slice = self.framed(slice);
                slice.set_at(&["endpoints"], kept.into());
                changed.push(slice);
            } else {
                unchanged.push(*slice);
            }
        }
        // The fullest ones first.
        changed.sort_by_key(|slice| std::cmp::Reverse(slice.list("endpoints").len()));
        changed.iter_mut().for_each(|slice| pending.fill(slice, self.most));
        out.update.append(&mut changed);
        while pending.len() > 0 {
            let room = |slice: &Value| self.most.checked_sub(pending.len() + slice.list("endpoints").len());
            let at = (0..unchanged.len())
                .filter_map(|i| Some((room(unchanged.get(i)?).filter(|r| *r < self.most)?, i)))
                .min()
                .map(|(_, i)| i);
            match at {
                Some(at) => {
                    let mut slice = unchanged.swap_remove(at).clone();
                    pending.fill(&mut slice, self.most);
                    out.update.push(slice);
                }
                None => {
                    let mut slice = self.slice(family, group.ports.clone());
                    pending.fill(&mut slice, self.most);
                    out.create.push(slice);
                }
            }
        }
    }

    /// Whether labels and annotations are as they should be.
    fn fits(&self, slice: &Value) -> bool {
        let meta = slice.sub("metadata");
        let annotations = self.annotations.as_ref().is_none_or(|wanted| meta.members("annotations") == wanted);
        meta.members("labels") == &self.labels && annotations
    }

    /// A slice with the right labels and annotations.
    pub fn framed(&self, slice: &Value) -> Value {
        let mut slice = slice.clone();
        slice.set_at(&["metadata", "labels"], self.labels.clone().into());
        if let Some(annotations) = &self.annotations {
            slice.set_at(&["metadata", "annotations"], annotations.clone().into());
        }
        slice
    }

    /// A new slice without endpoints.
    pub fn slice(&self, family: &str, ports: Vec<Value>) -> Value {
        let owner = self.owner;
        let prefix = pods::name_prefix(owner.name());
        let meta = map! {
            "generateName" => prefix, "namespace" => owner.namespace(),
            "ownerReferences" => vec![pods::controller_reference(owner, "v1", self.kind)],
        };
        let ports = if ports.is_empty() { Value::Null } else { ports.into() };
        let slice = map! {
            "apiVersion" => "discovery.k8s.io/v1", "kind" => "EndpointSlice", "metadata" => meta,
            "addressType" => family, "endpoints" => Value::Null, "ports" => ports,
        };
        self.framed(&slice.into())
    }

    /// Whether a slice holds nothing, as it should.
    fn is_placeholder(&self, slice: &Value) -> bool {
        let owners: Vec<&Value> = slice.sub("metadata").list("ownerReferences").iter().collect();
        slice.list("endpoints").is_empty()
            && slice.list("ports").is_empty()
            && slice.sub("metadata").members("labels") == &self.labels
            && owners.len() == 1
            && pods::is_controlled_by(slice, self.owner.meta_str("uid"))
    }
}

impl Changes {
    /// Where some slices go and others come, the former become the latter.
    fn reuse(&mut self, owner: &str) {
        for i in (0..self.delete.len()).rev() {
            let Some(old) = self.delete.get(i) else { continue };
            let fits = self.create.last().is_some_and(|new| new.text("addressType") == old.text("addressType"));
            if !fits || !pods::is_controlled_by(old, owner) {
                continue;
            }
            let old = self.delete.remove(i);
            if let Some(mut new) = self.create.pop() {
                for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
                    if let Some(value) = old.sub("metadata").get(field) {
                        new.metadata_mut().insert(field, value.clone());
                    }
                }
                self.update.push(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn endpoint(name: &str, ready: bool) -> Value {
        parse(&format!(
            r#"{{"addresses":["{name}"],"conditions":{{"ready":{ready}}},"targetRef":{{"name":"{name}"}}}}"#
        ))
    }

    fn owner() -> Value {
        parse(r#"{"metadata":{"name":"s","namespace":"n","uid":"u"}}"#)
    }

    fn frame(owner: &Value) -> Frame<'_> {
        Frame { owner, kind: "Service", labels: map! { "a" => "b" }, annotations: None, most: 3 }
    }

    fn group(port: i64, endpoints: &str) -> Group {
        let endpoint = |text: &str| endpoint(text.trim_end_matches('!'), !text.ends_with('!'));
        let ports = if port == 0 { vec![] } else { vec![map! { "port" => port }.into()] };
        Group { family: "IPv4", ports, endpoints: endpoints.split_whitespace().map(endpoint).collect() }
    }

    /// A slice `name` with a port and endpoints.
    fn held(owner: &Value, name: &str, port: i64, endpoints: &str) -> Value {
        let group = group(port, endpoints);
        let mut slice = frame(owner).slice("IPv4", group.ports);
        slice.metadata_mut().insert("name", name);
        slice.set_at(&["endpoints"], group.endpoints.into());
        slice
    }

    /// `name[endpoints]` of each slice that is created, changed (`!`) or deleted (`-`).
    fn run(existing: &[(&str, i64, &str)], groups: Vec<Group>) -> String {
        let owner = owner();
        let existing: Vec<Value> = existing.iter().map(|(n, p, e)| held(&owner, n, *p, e)).collect();
        let existing: Vec<&Value> = existing.iter().collect();
        let changes = reconcile(&frame(&owner), "IPv4", &existing, groups, true);
        let show = |mark: &str, slice: &Value| {
            let names: Vec<&str> = slice.list("endpoints").iter().map(|e| e.sub("targetRef").text("name")).collect();
            format!("{}{mark}[{}]", slice.name(), names.join(" "))
        };
        let create = changes.create.iter().map(|s| show("+", s));
        let update = changes.update.iter().map(|s| show("!", s));
        let delete = changes.delete.iter().map(|s| show("-", s));
        create.chain(update).chain(delete).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn slices_come_to_hold_what_they_should() {
        for (existing, groups, expected) in [
            (vec![], vec![], "+[]"),
            (vec![("e", 0, "")], vec![], ""),
            (vec![("e", 0, "")], vec![group(80, "x")], "e![x]"),
            (vec![], vec![group(80, "x y")], "+[x y]"),
            (vec![], vec![group(80, "a b c d")], "+[a b c] +[d]"),
            (vec![("s", 80, "x")], vec![group(80, "x")], ""),
            (vec![("s", 80, "x")], vec![group(80, "x!")], "s![x]"),
            (vec![("s", 80, "x y")], vec![group(80, "y")], "s![y]"),
            (vec![("s", 80, "x")], vec![], "s![]"),
            (vec![("s", 80, "x"), ("t", 80, "y z")], vec![group(80, "x y z w")], "t![y z w]"),
            (vec![("s", 80, "x y"), ("t", 80, "a b")], vec![group(80, "y a b w")], "s![y w]"),
            (vec![("s", 80, "a b c"), ("t", 80, "d")], vec![group(80, "a b c d e f g")], "+[e f g]"),
            (vec![("s", 80, "x")], vec![group(81, "x")], "s![x]"),
            (vec![("s", 80, "x"), ("t", 81, "y")], vec![group(80, "x")], "t-[y]"),
            (vec![("s", 80, "x")], vec![group(80, "")], "s![]"),
        ] {
            assert_eq!(run(&existing, groups.clone()), expected, "{existing:?} {groups:?}");
        }
    }

    #[test]
    fn labels_are_kept_right() {
        let owner = owner();
        let mut slice = held(&owner, "s", 80, "x");
        slice.remove_at(&["metadata", "labels"]);
        let changes = reconcile(&frame(&owner), "IPv4", &[&slice], vec![group(80, "x")], true);
        assert_eq!(changes.update.first().and_then(|s| s.label("a")), Some("b"));
    }
}
