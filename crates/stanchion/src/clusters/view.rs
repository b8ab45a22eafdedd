//! What is shown of clusters.

use super::probe::Health;
use crate::terminal::{Document, Output, table};
use manager::application::clusters::names;
use object::{Map, Value, map};

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name.
    pub name: String,
    /// The name for people.
    pub alias: String,
    /// The type of its credentials.
    pub kind: String,
    /// The server's URL.
    pub endpoint: String,
    /// The labels that users gave.
    pub labels: Map,
    /// How it is.
    pub health: Health,
    /// How many objects Applications have there.
    pub objects: usize,
}

impl Row {
    /// The cluster in which the Applications are.
    pub fn local(health: Health, objects: usize) -> Self {
        Row {
            name: names::LOCAL.to_owned(),
            alias: String::new(),
            kind: "Internal".to_owned(),
            endpoint: "-".to_owned(),
            labels: Map::new(),
            health,
            objects,
        }
    }

    /// The cluster of a Secret.
    pub fn of(secret: &Value, endpoint: String, health: Health, objects: usize) -> Self {
        let labels = secret.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let own = labels.into_iter().filter(|(key, _)| !key.starts_with(names::PREFIX));
        Row {
            name: secret.name().to_owned(),
            alias: secret.annotation(names::ALIAS).unwrap_or_default().to_owned(),
            kind: secret.label(names::CREDENTIAL_TYPE).unwrap_or_default().to_owned(),
            endpoint,
            labels: own.collect(),
            health,
            objects,
        }
    }

    fn labels(&self) -> String {
        let all = self.labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
        all.collect::<Vec<_>>().join(",")
    }

    fn to_value(&self) -> Value {
        let (state, rest) = match &self.health {
            Health::Ready { version, latency } => {
                let milliseconds = i64::try_from(latency.as_millis()).unwrap_or(i64::MAX);
                ("Ready", map! { "version" => version.as_str(), "latencyMilliseconds" => milliseconds })
            }
            Health::Unreachable(why) => ("Unreachable", map! { "message" => why.as_str() }),
            Health::Detaching => ("Detaching", Map::new()),
            Health::Unknown => ("Unknown", Map::new()),
        };
        let health: Map = map! { "state" => state }.into_iter().chain(rest).collect();
        map! {
            "name" => self.name.as_str(),
            "alias" => self.alias.as_str(),
            "type" => self.kind.as_str(),
            "endpoint" => self.endpoint.as_str(),
            "accepted" => true,
            "labels" => self.labels.clone(),
            "objects" => i64::try_from(self.objects).unwrap_or(i64::MAX),
            "health" => health,
        }
        .into()
    }
}

/// How a cluster is, in a few words.
pub fn health(health: &Health) -> String {
    match health {
        Health::Ready { .. } => "Ready".to_owned(),
        Health::Unreachable(why) => format!("Unreachable: {why}"),
        Health::Detaching => "Detaching".to_owned(),
        Health::Unknown => "Unknown".to_owned(),
    }
}

/// The list in a form.
pub fn list(rows: &[Row], output: Option<Output>) -> String {
    match Document::of(output) {
        Some(document) => document.one(Value::Array(rows.iter().map(Row::to_value).collect())),
        None => {
            let is_wide = output == Some(Output::Wide);
            let row = |row: &Row| {
                let accepted = "true".to_owned();
                let (name, alias) = (row.name.clone(), row.alias.clone());
                let mut cells = vec![
                    name,
                    alias,
                    row.kind.clone(),
                    row.endpoint.clone(),
                    accepted,
                    row.labels(),
                    health(&row.health),
                ];
                if is_wide {
                    let (version, latency) = match &row.health {
                        Health::Ready { version, latency } => (version.clone(), format!("{} ms", latency.as_millis())),
                        _ => Default::default(),
                    };
                    cells.extend([version, latency, row.objects.to_string()]);
                }
                cells
            };
            let head = [
                "CLUSTER", "ALIAS", "TYPE", "ENDPOINT", "ACCEPTED", "LABELS", "HEALTH", "VERSION", "LATENCY", "OBJECTS",
            ];
            let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
            table(if is_wide { &head } else { &head[..7] }, &rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use std::time::Duration;

    fn rows() -> Vec<Row> {
        let ready = Health::Ready { version: "v1.33.1".into(), latency: Duration::from_millis(3) };
        let secret = json::parse(
            br#"{"metadata":{"name":"eu","labels":{"cluster.core.oam.dev/cluster-credential-type":"X509Certificate","region":"eu"},
            "annotations":{"cluster.core.oam.dev/cluster-alias":"Europe"}}}"#,
        )
        .unwrap();
        let away = Health::Unreachable("refused".into());
        vec![Row::local(ready, 2), Row::of(&secret, "https://eu".into(), away, 1)]
    }

    #[test]
    fn a_table_shows_a_line_for_each_cluster() {
        let squeezed = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let short = [
            "CLUSTER ALIAS TYPE ENDPOINT ACCEPTED LABELS HEALTH",
            "local Internal - true Ready",
            "eu Europe X509Certificate https://eu true region=eu Unreachable: refused",
        ];
        assert_eq!(squeezed(&list(&rows(), None)), short);
        let wide = squeezed(&list(&rows(), Some(Output::Wide)));
        assert_eq!(wide[1], "local Internal - true Ready v1.33.1 3 ms 2");
    }

    #[test]
    fn data_hold_no_credentials() {
        let text = list(&rows(), Some(Output::Json));
        let expected = r#"{"accepted":true,"alias":"Europe","endpoint":"https://eu","health":{"message":"refused","state":"Unreachable"},"labels":{"region":"eu"},"name":"eu","objects":1,"type":"X509Certificate"}"#;
        assert!(text.contains(expected), "{text}");
    }
}
