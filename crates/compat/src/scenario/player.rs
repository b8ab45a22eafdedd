//! The client's side of one scenario: paths in short forms, references to saved fields, requests.

use super::field::select;
use super::names::{Names, items};
use crate::client::{Client, Request};
use object::{Map, Value, json};

/// The short forms of paths: where a resource is served, and whether it lies in the scenario's namespace.
const SHORT: [(&str, bool, &str); 15] = [
    (
        "/api/v1",
        true,
        "pods services endpoints configmaps secrets serviceaccounts events persistentvolumeclaims resourcequotas \
         limitranges replicationcontrollers podtemplates bindings",
    ),
    ("/apis/apps/v1", true, "deployments replicasets statefulsets daemonsets controllerrevisions"),
    ("/apis/batch/v1", true, "jobs cronjobs"),
    ("/apis/policy/v1", true, "poddisruptionbudgets"),
    ("/apis/discovery.k8s.io/v1", true, "endpointslices"),
    ("/apis/rbac.authorization.k8s.io/v1", true, "roles rolebindings"),
    ("/apis/coordination.k8s.io/v1", true, "leases"),
    ("/apis/networking.k8s.io/v1", true, "ingresses networkpolicies"),
    ("/apis/autoscaling/v2", true, "horizontalpodautoscalers"),
    ("/api/v1", false, "namespaces nodes persistentvolumes"),
    ("/apis/rbac.authorization.k8s.io/v1", false, "clusterroles clusterrolebindings"),
    ("/apis/apiextensions.k8s.io/v1", false, "customresourcedefinitions"),
    ("/apis/storage.k8s.io/v1", false, "storageclasses csidrivers"),
    ("/apis/scheduling.k8s.io/v1", false, "priorityclasses"),
    ("/apis/admissionregistration.k8s.io/v1", false, "validatingwebhookconfigurations"),
];

/// One scenario's client, with what it knows.
pub(crate) struct Player {
    client: Client,
    /// The identities met so far.
    pub(crate) names: Names,
    /// Remembered revisions.
    pub(crate) marks: Vec<(String, String)>,
    /// Paths of objects made, to be deleted at the end.
    pub(crate) made: Vec<String>,
}

/// The present moment as objects have it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The path with everything escaped that may not stand in a request line.
fn escape(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"_.-/?&=%:,+!()*~@;$'".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

impl Player {
    pub(crate) fn new(client: Client, namespace: String) -> Self {
        Player { client, names: Names::new(namespace), marks: Vec::new(), made: Vec::new() }
    }

    /// Sends a request as the administrator; gives the code and the answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&(&str, Value)>,
    ) -> Result<(u16, Value), String> {
        self.send_as("admin", method, path, body).await
    }

    /// Sends a request as a user of the recordings.
    pub(crate) async fn send_as(
        &mut self,
        user: &str,
        method: &str,
        path: &str,
        body: Option<&(&str, Value)>,
    ) -> Result<(u16, Value), String> {
        let mut request = Request { method: method.to_owned(), path: escape(path), headers: Vec::new(), body: None }
            .header("Accept", "application/json")
            .header("User-Agent", "kscenario/1.0")
            .header("Authorization", &format!("Bearer {user}token"));
        if let Some((media_type, body)) = body {
            let text = match body {
                Value::String(s) => s.as_bytes().to_vec(),
                other => json::to_string(other).into_bytes(),
            };
            request = request.body(media_type, text);
        }
        let response = self.client.send(&request).await?;
        let raw = || Value::Object(object::map! { "raw" => String::from_utf8_lossy(&response.body).into_owned() });
        let answer = if path.contains("watch=1") {
            let text = String::from_utf8_lossy(&response.body);
            let lines = text.lines().filter(|l| !l.trim().is_empty());
            let events: Result<Vec<Value>, _> = lines.map(|l| json::parse(l.as_bytes())).collect();
            events.map_or_else(|_| raw(), |events| object::map! { "events" => events }.into())
        } else {
            json::parse(&response.body).unwrap_or_else(|_| raw())
        };
        Ok((response.code, answer))
    }

    /// Reads a path, in short form or not, and learns what it shows.
    pub(crate) async fn get(&mut self, path: &str) -> Result<(u16, Value), String> {
        let path = self.path(path)?;
        let (code, mut answer) = self.send("GET", &path, None).await?;
        self.names.learn(&items(&mut answer));
        Ok((code, answer))
    }

    /// The full path of a short form.
    pub(crate) fn path(&self, short: &str) -> Result<String, String> {
        let path = match self.fill(&short.into()) {
            Value::String(s) => s.to_string(),
            _ => short.to_owned(),
        };
        if path.starts_with('/') {
            return Ok(path);
        }
        let head = path.split(['/', '?']).next().unwrap_or_default();
        let place = SHORT.iter().find(|(_, _, names)| names.split_whitespace().any(|n| n == head));
        let (prefix, namespaced, _) = place.ok_or_else(|| format!("unknown short form {head}"))?;
        Ok(if *namespaced {
            format!("{prefix}/namespaces/{}/{path}", self.names.namespace)
        } else {
            format!("{prefix}/{path}")
        })
    }

    /// A value with `{{NAME}}` replaced by what was saved.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(k, v)| {
                        let key = self.fill(&k.into()).as_str().unwrap_or(k).to_owned();
                        (key, self.fill(v))
                    })
                    .collect::<Map>(),
            ),
            Value::Array(items) => Value::Array(items.iter().map(|v| self.fill(v)).collect()),
            Value::String(s) if s.contains("{{") => self.fill_text(s),
            other => other.clone(),
        }
    }

    fn fill_text(&self, text: &str) -> Value {
        let look = |name: &str| match name {
            "ns" => self.names.namespace.as_str().into(),
            name => {
                let saved = self.names.saved.iter().find(|(n, _)| n == name);
                saved.map_or_else(|| format!("?{name}").into(), |(_, v)| v.clone())
            }
        };
        let is_name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_alphanumeric() || c == '_');
        let whole = text.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
        if let Some(name) = whole.filter(|n| is_name(n)) {
            return look(name);
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let (before, after) = rest.split_at(start);
            out.push_str(before);
            match after[2..].split_once("}}").filter(|(name, _)| is_name(name)) {
                Some((name, end)) => {
                    out.push_str(&crate::case::python_text(&look(name)));
                    rest = end;
                }
                None => {
                    out.push_str("{{");
                    rest = &after[2..];
                }
            }
        }
        out.push_str(rest);
        out.into()
    }

    /// Keeps the fields that a step saves.
    pub(crate) fn save(&mut self, step: &Value, answer: &Value) {
        for (name, field) in super::names::members(step.get("save").unwrap_or(&Value::Null)) {
            let found = select(answer, field.as_str().unwrap_or_default()).first().copied().cloned();
            self.names.save(name, found.unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_stand_in_a_request_line_is_escaped() {
        assert_eq!(escape("/a b?l=x in (y)&f={z}"), "/a%20b?l=x%20in%20(y)&f=%7Bz%7D");
    }
}
