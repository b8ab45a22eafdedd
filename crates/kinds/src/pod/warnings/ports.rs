//! Ports of a pod's containers that get in each other's way.

use super::MOST;
use crate::read::Read;
use object::field::Path;
use object::{Value, go};
use std::collections::HashMap;

/// How many pairs of ports are compared: more than one pod has that ever ran, and what a body could hold takes minutes.
const COMPARED: usize = 1_000_000;

/// Warns of ports of all containers of a pod that are the same, or might be, or are called the same.
pub(super) fn overlaps(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut all: Vec<(String, &Value)> = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = path.child(list);
        for (i, container) in spec.list(list).iter().enumerate() {
            let item = containers.index(i);
            let ports = item.child("ports");
            let list = container.list("ports").iter().enumerate();
            all.extend(list.map(|(j, port)| (ports.index(j).to_string(), port)));
        }
    }
    numbers(&all, out);
    names(&all, out);
}

fn numbers(all: &[(String, &Value)], out: &mut Vec<String>) {
    let mut seen: HashMap<(i64, &str), Vec<(&str, &Value)>> = HashMap::new();
    let mut left = COMPARED;
    for (at, port) in all {
        if !port.text("hostIP").is_empty() && port.int("hostPort") == 0 {
            out.push(format!("{at}: hostIP set without hostPort: {}", shown(port)));
        }
        let others = seen.entry((port.int("containerPort"), port.text("protocol"))).or_default();
        for (other, before) in others.iter() {
            if left == 0 || out.len() >= MOST {
                return;
            }
            left -= 1;
            if let Some(how) = overlap(port, before) {
                out.push(format!("{at}: {how} port definition with {other}"));
            }
        }
        others.push((at, port));
    }
}

fn names(all: &[(String, &Value)], out: &mut Vec<String>) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (at, port) in all {
        let name = port.text("name");
        if name.is_empty() || out.len() >= MOST {
            continue;
        }
        match seen.get(name) {
            Some(first) => out.push(format!(
                "{at}: duplicate port name {} with {first}, services and probes that select ports by name will use {first}",
                go::quote(name)
            )),
            None => {
                seen.insert(name, at);
            }
        }
    }
}

/// How two ports with the same number and protocol get in each other's way.
fn overlap(port: &Value, other: &Value) -> Option<&'static str> {
    let (ip, number) = (port.text("hostIP"), port.int("hostPort"));
    let (other_ip, other_number) = (other.text("hostIP"), other.int("hostPort"));
    if ip == other_ip && number == other_number {
        Some("duplicate")
    } else if number == 0 || other_number == 0 {
        Some("overlapping")
    } else if number == other_number && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// A port as Go prints it with `%+v`.
fn shown(port: &Value) -> String {
    let (name, ip, protocol) = (port.text("name"), port.text("hostIP"), port.text("protocol"));
    let (host, number) = (port.int("hostPort"), port.int("containerPort"));
    format!("{{Name:{name} HostPort:{host} ContainerPort:{number} Protocol:{protocol} HostIP:{ip}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn ports_that_get_in_each_others_way_are_named() {
        const DUPLICATE: &str =
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]";
        const OVERLAPPING: &str =
            "spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]";
        const AMBIGUOUS: &str =
            "spec.containers[1].ports[0]: dangerously ambiguous port definition with spec.containers[0].ports[0]";
        const NO_PORT: &str = "spec.containers[1].ports[0]: hostIP set without hostPort: \
                               {Name:a HostPort:0 ContainerPort:81 Protocol:TCP HostIP:1.1.1.1}";
        const SAME_NAME: &str = "spec.containers[1].ports[0]: duplicate port name \"a\" with spec.containers[0].ports[0], \
                                 services and probes that select ports by name will use spec.containers[0].ports[0]";
        for (one, two, expected) in [
            (r#""containerPort":80,"name":"a""#, r#""containerPort":81,"name":"a""#, Some(SAME_NAME)),
            (r#""containerPort":80,"name":"a""#, r#""containerPort":81,"name":"b""#, None),
            (r#""containerPort":80"#, r#""containerPort":80"#, Some(DUPLICATE)),
            (r#""containerPort":80"#, r#""containerPort":81"#, None),
            (r#""containerPort":80"#, r#""containerPort":80,"hostPort":80"#, Some(OVERLAPPING)),
            (
                r#""containerPort":80,"hostPort":80"#,
                r#""containerPort":80,"hostPort":80,"hostIP":"1.1.1.1""#,
                Some(AMBIGUOUS),
            ),
            (r#""containerPort":80,"hostPort":80"#, r#""containerPort":80,"hostPort":81"#, None),
            (r#""containerPort":80"#, r#""containerPort":81,"hostIP":"1.1.1.1","name":"a""#, Some(NO_PORT)),
        ] {
            let port = |text: &str| format!(r#"{{"ports":[{{"protocol":"TCP",{text}}}]}}"#);
            let spec = format!(r#"{{"containers":[{},{}]}}"#, port(one), port(two));
            let mut out = Vec::new();
            overlaps(&json::parse(spec.as_bytes()).unwrap(), &Path::ROOT.child("spec"), &mut out);
            assert_eq!(out, expected.into_iter().collect::<Vec<_>>(), "{one} {two}");
        }
    }

    #[test]
    fn a_body_full_of_ports_is_looked_through_in_bounded_time() {
        let warnings = |port: &dyn Fn(usize) -> String| {
            let ports: Vec<String> = (0..40_000).map(port).collect();
            let spec = format!(r#"{{"containers":[{{"ports":[{}]}}]}}"#, ports.join(","));
            let mut out = Vec::new();
            overlaps(&json::parse(spec.as_bytes()).unwrap(), &Path::ROOT.child("spec"), &mut out);
            out.len()
        };
        assert_eq!(warnings(&|_| r#"{"containerPort":80}"#.to_owned()), MOST);
        assert_eq!(warnings(&|i| format!(r#"{{"containerPort":80,"hostPort":1,"hostIP":"{i}"}}"#)), 0);
    }
}
