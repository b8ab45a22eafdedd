//! Where components go, and in which form: topologies, overrides, replications.

use object::{Map, Value, map};

use super::clusters::Fleet;
use super::declared::{Attached, Component, bare, text, texts};

/// Where a component goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The cluster; empty for the one in which the application is.
    pub cluster: String,
    /// The namespace; empty for that of the application.
    pub namespace: String,
}

/// A policy that says where, or in which form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// The parameters.
    pub properties: Value,
}

impl Policy {
    /// Reads a policy of an application, or of a step, the `index`th there.
    pub fn read(policy: &Value, index: usize) -> Self {
        let (name, kind) = (text(policy, "name"), bare(&text(policy, "type")).to_owned());
        let name = if name.is_empty() { format!("inline-{kind}-policy-{index}") } else { name };
        Policy { name, kind, properties: policy.get("properties").cloned().unwrap_or_default() }
    }

    fn is_topology(&self) -> bool {
        self.kind == "topology"
    }

    fn selector(&self) -> Option<&Value> {
        ["clusterLabelSelector", "clusterSelector"].iter().find_map(|key| self.properties.get(key))
    }
}

/// Which clusters there are.
pub trait Directory {
    /// How a cluster is called that may have been renamed; empty for the one in which the applications are.
    fn name_now(&self, name: &str) -> String;
    /// Whether there is a cluster of this name.
    fn has(&self, name: &str) -> bool;
    /// The clusters with all these labels, by name.
    fn select(&self, labels: &[(String, String)]) -> Vec<String>;
}

impl Directory for Fleet {
    fn name_now(&self, name: &str) -> String {
        Fleet::name_now(self, name).into()
    }

    fn has(&self, name: &str) -> bool {
        Fleet::has(self, name)
    }

    fn select(&self, labels: &[(String, String)]) -> Vec<String> {
        Fleet::select(self, labels)
    }
}

/// The clusters and namespaces that topologies name, each once; without topologies the cluster and the namespace of the
/// application.
///
/// # Errors
///
/// If a cluster is not there, or a selector is empty or finds none (unless that is allowed).
pub fn placements(policies: &[Policy], directory: &dyn Directory) -> Result<Vec<Placement>, String> {
    let mut all: Vec<Placement> = Vec::new();
    let mut is_any = false;
    for policy in policies.iter().filter(|policy| policy.is_topology()) {
        is_any = true;
        let namespace = text(&policy.properties, "namespace");
        for cluster in clusters(policy, directory)? {
            let placement = Placement { cluster: directory.name_now(&cluster), namespace: namespace.clone() };
            if !all.contains(&placement) {
                all.push(placement);
            }
        }
    }
    if !is_any {
        all.push(Placement::default());
    }
    Ok(all)
}

/// The clusters of one topology.
fn clusters(policy: &Policy, directory: &dyn Directory) -> Result<Vec<String>, String> {
    let Policy { name, properties, .. } = policy;
    if properties.is_null() {
        return Err(format!("topology policy {name} must not have empty properties"));
    }
    let named = properties.get("clusters").filter(|clusters| !clusters.is_null());
    let selector = policy.selector().filter(|selector| !selector.is_null());
    match (named, selector) {
        (Some(_), Some(_)) => {
            Err(format!("topology policy {name}: clusters and clusterLabelSelector exclude each other"))
        }
        (Some(_), None) => {
            let named = texts(properties, "clusters");
            match named.iter().find(|cluster| !directory.has(cluster)) {
                Some(missing) => Err(format!("failed to get cluster {missing}: no such cluster")),
                None => Ok(named),
            }
        }
        (None, Some(selector)) => {
            let found = directory.select(&labels(name, selector)?);
            let may_be_empty = properties.get("allowEmpty").and_then(Value::as_bool) == Some(true);
            if found.is_empty() && !may_be_empty {
                return Err(format!("topology policy {name}: failed to find any cluster matches given labels"));
            }
            Ok(found)
        }
        (None, None) => Ok(vec![String::new()]),
    }
}

fn labels(name: &str, selector: &Value) -> Result<Vec<(String, String)>, String> {
    let wanted = selector.as_object().filter(|labels| !labels.is_empty());
    let wanted = wanted
        .ok_or_else(|| format!("topology policy {name}: clusterLabelSelector: an empty selector matches nothing"))?;
    let pair = |(key, value): (&str, &Value)| match value.as_str() {
        Some(value) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("topology policy {name}: clusterLabelSelector[{key}]: must be a string")),
    };
    wanted.iter().map(pair).collect()
}

/// All policies that an application writes down: its own, and those of its steps.
fn written(application: &Value) -> Vec<Policy> {
    let list = |value: &Value, path: &[&str]| -> Vec<Value> {
        value.at(path).and_then(Value::as_array).unwrap_or_default().to_vec()
    };
    let mut all = list(application, &["spec", "policies"]);
    let mut steps = list(application, &["spec", "workflow", "steps"]);
    while let Some(step) = steps.pop() {
        all.extend(list(&step, &["properties", "inlinePolicies"]));
        steps.extend(list(&step, &["subSteps"]));
    }
    all.iter().enumerate().map(|(index, policy)| Policy::read(policy, index)).collect()
}

/// What overrides bring into components, as components: types that no component may have itself, and traits.
pub fn overriding(application: &Value) -> Vec<Component> {
    let overrides = written(application).into_iter().filter(|policy| policy.kind == "override");
    let patches = overrides.flat_map(|policy| {
        let patches = policy.properties.get("components").and_then(Value::as_array).unwrap_or_default();
        patches.iter().map(Component::read).collect::<Vec<Component>>()
    });
    patches.collect()
}

/// Puts policies from outside into an application, as far as they say where something goes, or in which form. Those about
/// objects only count where an application has them itself.
pub fn inline(application: &mut Value, policies: &Map) {
    let placing = |policy: &Value| ["topology", "override", "replication"].contains(&bare(&text(policy, "type")));
    let new = policies.iter().filter(|(_, policy)| placing(policy)).map(|(name, policy)| {
        let properties = policy.get("properties").cloned().unwrap_or_default();
        map! { "name" => name, "type" => text(policy, "type"), "properties" => properties }.into()
    });
    let mut new: Vec<Value> = new.collect();
    if new.is_empty() {
        return;
    }
    let spec = application.object_entry("spec");
    let mut all = spec.get("policies").and_then(Value::as_array).unwrap_or_default().to_vec();
    all.append(&mut new);
    spec.insert("policies", all);
}

/// Whether an application goes to clusters that have certain labels, whichever these are.
pub fn selects(application: &Value) -> bool {
    written(application).iter().any(|policy| policy.is_topology() && policy.selector().is_some())
}

/// The clusters that the selectors of an application find now, each once, by name; nothing if it has no selectors.
pub fn selection(application: &Value, directory: &dyn Directory) -> Option<Vec<String>> {
    let written = written(application);
    let mut selecting = written.iter().filter(|policy| policy.is_topology() && policy.selector().is_some()).peekable();
    selecting.peek()?;
    // What cannot be read finds nothing; the step that needs it says why.
    let mut all: Vec<String> = selecting.flat_map(|policy| clusters(policy, directory).unwrap_or_default()).collect();
    all.sort();
    all.dedup();
    Some(all)
}

/// The clusters into which the topologies and steps of an application may bring something, by the names of now.
pub fn reach(application: &Value, directory: &dyn Directory) -> Vec<String> {
    let topologies = written(application).into_iter().filter(Policy::is_topology);
    let mut all: Vec<String> = topologies.flat_map(|policy| clusters(&policy, directory).unwrap_or_default()).collect();
    let mut steps: Vec<Value> =
        application.at(&["spec", "workflow", "steps"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    while let Some(step) = steps.pop() {
        all.extend(step.str_at(&["properties", "cluster"]).map(str::to_owned));
        steps.extend(step.get("subSteps").and_then(Value::as_array).unwrap_or_default().iter().cloned());
    }
    all.push(String::new());
    all.iter().map(|cluster| directory.name_now(cluster)).collect()
}

/// The components, as override and replication policies change them: overrides first, in their order, then copies.
///
/// # Errors
///
/// If an override says nothing, or something that overrides do not know.
pub fn overridden(mut all: Vec<Component>, policies: &[Policy]) -> Result<Vec<Component>, String> {
    for Policy { name, properties, .. } in policies.iter().filter(|policy| policy.kind == "override") {
        let members = properties.as_object().filter(|members| !members.is_empty());
        let members = members.ok_or_else(|| format!("override policy {name} must not have empty properties"))?;
        if let Some(unknown) = members.keys().find(|key| !["components", "selector"].contains(key)) {
            return Err(format!("override policy {name}: unknown field {unknown:?}"));
        }
        for patch in properties.get("components").and_then(Value::as_array).unwrap_or_default() {
            override_by(&mut all, patch);
        }
        let selector = texts(properties, "selector");
        if !selector.is_empty() {
            all.retain(|component| selector.contains(&component.name));
        }
    }
    for Policy { properties, .. } in policies.iter().filter(|policy| policy.kind == "replication") {
        let (keys, selector) = (texts(properties, "keys"), texts(properties, "selector"));
        all = all
            .into_iter()
            .flat_map(|component| {
                let is_meant = selector.is_empty() || selector.contains(&component.name);
                let copies: Vec<Component> = if is_meant && !keys.is_empty() {
                    keys.iter().map(|key| Component { replica_key: key.clone(), ..component.clone() }).collect()
                } else {
                    vec![component]
                };
                copies
            })
            .collect();
    }
    Ok(all)
}

/// Whether a name is what a pattern says, in which each `*` stands for anything.
fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn override_by(all: &mut Vec<Component>, patch: &Value) {
    let (name, kind) = (text(patch, "name"), text(patch, "type"));
    let matches = |component: &Component| {
        if name.is_empty() { kind.is_empty() || component.kind == kind } else { is_like(&component.name, &name) }
    };
    let mut is_met = false;
    for component in all.iter_mut().filter(|component| matches(component)) {
        is_met = true;
        let properties = patch.get("properties").cloned();
        if !kind.is_empty() && component.kind != kind {
            component.kind.clone_from(&kind);
            component.properties = properties.unwrap_or_default();
        } else if let Some(properties) = properties {
            component.properties = patch::merge::apply(std::mem::take(&mut component.properties), properties);
        }
        for changed in patch.get("traits").and_then(Value::as_array).unwrap_or_default() {
            let attached = Attached::read(changed);
            let known = component.traits.iter().position(|known| known.kind == attached.kind);
            let is_off = changed.get("disable").and_then(Value::as_bool) == Some(true);
            match (known, is_off) {
                (Some(position), true) => _ = component.traits.remove(position),
                (Some(position), false) => {
                    let known = &mut component.traits[position].properties;
                    *known = patch::merge::apply(std::mem::take(known), attached.properties);
                }
                (None, true) => {}
                (None, false) => component.traits.push(attached),
            }
        }
    }
    if !is_met && !name.is_empty() && !name.contains('*') && !kind.is_empty() {
        all.push(Component::read(patch));
    }
}

#[cfg(test)]
mod tests {
    use super::super::declared::components;
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    fn policies(text: &str) -> Vec<Policy> {
        let all = parse(text);
        all.as_array().unwrap_or_default().iter().enumerate().map(|(index, p)| Policy::read(p, index)).collect()
    }

    /// `eu` and `us` (which was `old`), of the regions of their names; both are of the tier `prod`.
    struct Two;

    impl Directory for Two {
        fn name_now(&self, name: &str) -> String {
            match name {
                "local" => "",
                "old" => "us",
                name => name,
            }
            .to_owned()
        }

        fn has(&self, name: &str) -> bool {
            ["", "local", "eu", "us", "old"].contains(&name)
        }

        fn select(&self, labels: &[(String, String)]) -> Vec<String> {
            let has = |cluster: &str, (key, value): &(String, String)| {
                key == "region" && value == cluster || key == "tier" && value == "prod"
            };
            let all = ["eu", "us"].iter().filter(|cluster| labels.iter().all(|label| has(cluster, label)));
            all.map(|cluster| (*cluster).to_owned()).collect()
        }
    }

    #[test]
    fn overrides_change_select_and_copy_components() {
        let application = parse(
            r#"{"spec":{"components":[{"name":"web","type":"t","properties":{"a":1,"b":{"c":1}},"traits":[{"type":"x"},{"type":"y"}]},{"name":"db","type":"t"}]}}"#,
        );
        let with = |text: &str| {
            let all = overridden(components(&application).unwrap_or_default(), &policies(text))?;
            let told = all.iter().map(|c| {
                let traits: Vec<&str> = c.traits.iter().map(|t| t.kind.as_str()).collect();
                format!("{}{}:{}:{}{}", c.name, c.replica_key, c.kind, json::to_string(&c.properties), traits.join(""))
            });
            Ok::<_, String>(told.collect::<Vec<_>>().join(" "))
        };
        for (policies, expected) in [
            (
                r#"[{"type":"override","properties":{"components":[{"name":"web","properties":{"b":{"c":2}}}]}}]"#,
                r#"web:t:{"a":1,"b":{"c":2}}xy db:t:null"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"properties":{"z":1}}],"selector":["db"]}}]"#,
                r#"db:t:{"z":1}"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"name":"w*","type":"u","properties":{"z":1}}]}}]"#,
                r#"web:u:{"z":1}xy db:t:null"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"name":"new","type":"u"}]}}]"#,
                r#"web:t:{"a":1,"b":{"c":1}}xy db:t:null new:u:null"#,
            ),
            (
                r#"[{"type":"override","properties":{"components":[{"name":"web","traits":[{"type":"x","disable":true},{"type":"z"}]}]}}]"#,
                r#"web:t:{"a":1,"b":{"c":1}}yz db:t:null"#,
            ),
            (
                r#"[{"type":"replication","properties":{"keys":["x","y"],"selector":["db"]}}]"#,
                r#"web:t:{"a":1,"b":{"c":1}}xy dbx:t:null dby:t:null"#,
            ),
            // Copies are made of what overrides have left, in whichever order they are written.
            (
                r#"[{"type":"replication","properties":{"keys":["x"]}},{"type":"override","properties":{"selector":["db"]}}]"#,
                "dbx:t:null",
            ),
        ] {
            assert_eq!(with(policies), Ok(expected.to_owned()), "{policies}");
        }
        for (policies, expected) in [
            (r#"[{"name":"o","type":"override"}]"#, "override policy o must not have empty properties"),
            (
                r#"[{"type":"override","properties":{"x":1}}]"#,
                "override policy inline-override-policy-0: unknown field \"x\"",
            ),
        ] {
            assert_eq!(with(policies), Err(expected.to_owned()), "{policies}");
        }
    }

    #[test]
    fn a_pattern_stands_for_names() {
        for (name, pattern, expected) in [
            ("web", "web", true),
            ("web", "we", false),
            ("web", "*", true),
            ("web-a-1", "web-*-1", true),
            ("web-1", "web-*-1", false),
            ("a-b-c", "a*b*c", true),
            ("a-c", "a*b*c", false),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
        }
    }

    #[test]
    fn topologies_name_places() {
        let of = |properties: &str| {
            let text = format!(r#"[{{"name":"t","type":"topology","properties":{properties}}}]"#);
            let placed = placements(&policies(&text), &Two)?;
            Ok(placed.iter().map(|p| format!("{}/{}", p.cluster, p.namespace)).collect::<Vec<_>>().join(" "))
        };
        for (properties, expected) in [
            (r#"{"clusters":["local","eu"],"namespace":"x"}"#, Ok("/x eu/x")),
            (r#"{"clusters":["eu","us","old"]}"#, Ok("eu/ us/")),
            ("{}", Ok("/")),
            (r#"{"namespace":"x"}"#, Ok("/x")),
            (r#"{"clusterLabelSelector":{"tier":"prod"}}"#, Ok("eu/ us/")),
            (r#"{"clusterSelector":{"tier":"prod","region":"eu"}}"#, Ok("eu/")),
            (r#"{"clusterLabelSelector":{"tier":"test"},"allowEmpty":true}"#, Ok("")),
            (
                r#"{"clusterLabelSelector":{"tier":"test"}}"#,
                Err("topology policy t: failed to find any cluster matches given labels"),
            ),
            (
                r#"{"clusterLabelSelector":{}}"#,
                Err("topology policy t: clusterLabelSelector: an empty selector matches nothing"),
            ),
            (
                r#"{"clusterLabelSelector":{"tier":1}}"#,
                Err("topology policy t: clusterLabelSelector[tier]: must be a string"),
            ),
            (
                r#"{"clusters":["eu"],"clusterLabelSelector":{"tier":"prod"}}"#,
                Err("topology policy t: clusters and clusterLabelSelector exclude each other"),
            ),
            (r#"{"clusters":["eu","asia"]}"#, Err("failed to get cluster asia: no such cluster")),
            ("null", Err("topology policy t must not have empty properties")),
        ] {
            assert_eq!(of(properties), expected.map(str::to_owned).map_err(str::to_owned), "{properties}");
        }
        assert_eq!(placements(&[], &Two), Ok(vec![Placement::default()]));
    }

    #[test]
    fn what_selectors_find_and_where_steps_reach_is_known_without_running_them() {
        let application = parse(
            r#"{"spec":{"policies":[{"type":"topology","properties":{"clusterLabelSelector":{"region":"us"}}}],
            "workflow":{"steps":[{"type":"step-group","subSteps":[{"type":"deploy","properties":{"inlinePolicies":
            [{"type":"topology","properties":{"clusters":["eu"]}}]}},{"properties":{"cluster":"old"}}]}]}}}"#,
        );
        assert!(selects(&application));
        assert_eq!(selection(&application, &Two), Some(vec!["us".to_owned()]));
        assert_eq!(reach(&application, &Two), ["us", "eu", "us", ""]);
        let named = parse(r#"{"spec":{"policies":[{"type":"topology","properties":{"clusters":["eu"]}}]}}"#);
        assert_eq!((selects(&named), selection(&named, &Two)), (false, None));
    }
}
