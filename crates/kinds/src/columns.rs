//! What a server says of the columns of its tables.

use crate::resource::Resource;
use std::borrow::Cow;

/// A line a column, `RESOURCE|COLUMN|TEXT`, with `*` for every resource; `\n` and `\\` are escaped. The texts are those
/// of a 1.33 server's answers.
static TEXT: &str = include_str!("columns.txt");

impl Resource {
    /// The descriptions of [`Resource::columns`], in their order; empty where a server gives none.
    pub fn column_descriptions(&self) -> Vec<Cow<'static, str>> {
        let mut out = vec![Cow::Borrowed(""); self.columns.len()];
        for line in TEXT.lines() {
            let mut parts = line.splitn(3, '|');
            let (Some(resource), Some(name), Some(text)) = (parts.next(), parts.next(), parts.next()) else { continue };
            if resource != "*" && resource != self.plural {
                continue;
            }
            for (column, description) in self.columns.iter().zip(&mut out).filter(|(c, _)| c.name == name) {
                let own = resource != "*";
                if own || description.is_empty() || matches!(column.name, "Name" | "Age") {
                    *description = unescape(text);
                }
            }
        }
        out
    }
}

fn unescape(text: &'static str) -> Cow<'static, str> {
    if text.contains('\\') { text.replace("\\n", "\n").replace("\\\\", "\\").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_column_has_a_description() {
        for resource in crate::resources().chain(crate::optional()).filter(|r| r.storage.is_some()) {
            for (column, text) in resource.columns.iter().zip(resource.column_descriptions()) {
                // Upstream looks for the one of handlers in the wrong place.
                let none = (resource.plural, column.name) == ("runtimeclasses", "Handler");
                assert_eq!(text.is_empty(), none, "{} {}", resource.plural, column.name);
            }
        }
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let now = "2025-01-01T00:00:00Z".parse().unwrap();
        for resource in crate::resources().chain(crate::optional()) {
            let object = object::Value::Object(resource.stored_definition().map(|d| d.zero()).unwrap_or_default());
            // The columns of addresses lack the age.
            let more = usize::from(resource.plural == "ipaddresses");
            assert_eq!((resource.cells)(&object, now).len(), resource.columns.len() + more, "{}", resource.plural);
        }
    }

    #[test]
    fn rows_of_pods_that_ended_say_so() {
        let pods = crate::resources().find(|r| r.plural == "pods").unwrap();
        for (phase, wanted) in [
            ("Succeeded", Some("The pod has completed successfully.")),
            ("Failed", Some("The pod failed.")),
            ("Running", None),
        ] {
            let pod = object::json::parse(format!(r#"{{"status":{{"phase":"{phase}"}}}}"#).as_bytes()).unwrap();
            let ended = (pods.ended)(&pod);
            assert_eq!(ended.map(|e| (e.reason, e.message)), wanted.map(|message| (phase, message)));
        }
    }

    /// The cell of one column, of an object written as JSON.
    fn cell(plural: &str, column: &str, text: &str) -> String {
        let now = "2025-01-01T00:00:00Z".parse().unwrap();
        let resource = crate::resources().find(|r| r.plural == plural).unwrap();
        let object = object::json::parse(text.as_bytes()).unwrap();
        let at = resource.columns.iter().position(|c| c.name == column).unwrap();
        match &(resource.cells)(&object, now)[at] {
            object::Value::String(text) => text.to_string(),
            other => object::json::to_string(other),
        }
    }

    #[test]
    fn cells_are_computed_as_upstream_does() {
        const ENDED: &str = r#"{"terminated":{"finishedAt":"2024-12-31T23:59:00Z"}}"#;
        let stuck = r#"{"name":"a","restartCount":2,"state":{"waiting":{"reason":"Stuck"}}}"#;
        let pod = |init: &str, rest: &str| {
            format!(r#"{{"spec":{{"containers":[{{"name":"c"}}],"initContainers":[{init}]}},"status":{{{rest}}}}}"#)
        };
        let plain = r#"{"name":"a"}"#;
        let init_restarted =
            format!(r#""initContainerStatuses":[{{"restartCount":2,"lastState":{ENDED},"state":{{}}}}]"#);
        let initialised = format!(
            r#""initContainerStatuses":[{stuck}],"conditions":[{{"type":"Initialized","status":"True"}}],
               "containerStatuses":[{{"name":"c","ready":true,"state":{{"running":{{}}}}}}]"#
        );
        let beside = r#""initContainerStatuses":[{"name":"a","restartCount":2,"started":true,"state":{"running":{}}},
            {"name":"b","restartCount":3,"state":{"terminated":{"exitCode":0}}}]"#;
        for (plural, column, text, wanted) in [
            ("pods", "Restarts", pod(plain, &init_restarted), "2 (60s ago)"),
            ("pods", "Ready", pod(plain, &initialised), "1/1"),
            ("pods", "Restarts", pod(plain, &initialised), "0"),
            ("pods", "Restarts", pod(r#"{"name":"a","restartPolicy":"Always"},{"name":"b"}"#, beside), "2"),
            ("ingresses", "Hosts", r#"{"spec":{"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{}]}}"#.into(), "a,b,c + 1 more..."),
            ("ingresses", "Hosts", r#"{"spec":{"rules":[{},{"host":"a"},{"host":"b"},{"host":"c"}]}}"#.into(), "a,b,c"),
            ("ingresses", "Class", r#"{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}}}"#.into(), "<none>"),
            ("ingresses", "Address", r#"{"status":{"loadBalancer":{"ingress":[{"ip":"9.9.9.9"},{"hostname":"1"}]}}}"#.into(), "1,9.9.9.9"),
            ("endpoints", "Endpoints", r#"{"subsets":[{"addresses":[{"ip":"a"},{"ip":"b"}],"ports":[{"port":1},{"port":2}]}]}"#.into(), "a:1,b:1,a:2 + 1 more..."),
            ("endpoints", "Endpoints", r#"{"subsets":[{"notReadyAddresses":[{"ip":"a"}]}]}"#.into(), ""),
            ("endpoints", "Endpoints", "{}".into(), "<none>"),
            ("endpointslices", "Ports", r#"{"ports":[{"name":""}]}"#.into(), "<unset>"),
            ("endpointslices", "Ports", r#"{"ports":[{"protocol":"TCP"}]}"#.into(), "*"),
            ("persistentvolumeclaims", "Capacity", r#"{"spec":{"volumeName":"v"}}"#.into(), "0"),
            (
                "horizontalpodautoscalers",
                "Targets",
                r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}},
                    {"type":"Pods","pods":{"target":{"averageValue":"5"}}}]},
                    "status":{"currentMetrics":[{"resource":{"current":{"averageUtilization":7}}}]}}"#
                    .into(),
                "cpu: 7%/<auto>, <unknown>/5",
            ),
            ("persistentvolumeclaims", "VolumeMode", "{}".into(), "<unset>"),
            ("prioritylevelconfigurations", "NominalConcurrencyShares", r#"{"spec":{"exempt":{"nominalConcurrencyShares":5}}}"#.into(), "<none>"),
            ("events", "Last Seen", r#"{"lastTimestamp":"2024-12-31T23:59:00Z","series":{"count":3}}"#.into(), "<unknown>"),
            ("events", "Count", r#"{"count":7,"series":{"count":3}}"#.into(), "3"),
            ("networkpolicies", "Pod-Selector", r#"{"spec":{"podSelector":{"matchLabels":{"b":"1"},"matchExpressions":[{"key":"a","operator":"Exists"}]}}}"#.into(), "a,b=1"),
            ("validatingadmissionpolicybindings", "ParamRef", r#"{"spec":{"paramRef":{"name":"p"}}}"#.into(), "*/p"),
            ("validatingadmissionpolicybindings", "ParamRef", r#"{"spec":{"paramRef":{"selector":{"matchLabels":{"a":"b"}}}}}"#.into(),
             "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"),
        ] {
            assert_eq!(cell(plural, column, &text), wanted, "{plural} {column} {text}");
        }
    }
}
