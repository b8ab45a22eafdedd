//! The registrations by which other API servers send their writes here.

use super::protection::{CLUSTER, CLUSTER_PREFIXES, MANAGED_BY, MARKER, PROTECTED_BY};
use crate::application::kinds::APPLICATIONS;
use crate::kinds::{
    GLOBAL_PERMIT_TEMPLATES, GLOBAL_TENANT_RESOURCES, GROUP, PERMIT_TEMPLATES, PERMITS, TENANT_RESOURCES,
};
use crate::tenancy::TENANT_LABEL;
use base64::{Engine, engine::general_purpose::STANDARD};
use client::Resource;
use object::{Map, Value, map};

/// MutatingWebhookConfigurations.
pub const MUTATING: Resource = known("mutatingwebhookconfigurations", "MutatingWebhookConfiguration");
/// ValidatingWebhookConfigurations.
pub const VALIDATING: Resource = known("validatingwebhookconfigurations", "ValidatingWebhookConfiguration");
/// What both registrations are called.
pub const NAME: &str = "stanchion-manager";
/// Where changes are asked for.
pub const MUTATE_PATH: &str = "/mutate";
/// Where verdicts are asked for.
pub const VALIDATE_PATH: &str = "/validate";
/// How long a server waits for an answer, in seconds.
const TIMEOUT: i64 = 10;

const fn known(plural: &'static str, kind: &'static str) -> Resource {
    Resource::known("admissionregistration.k8s.io", "v1", plural, kind, false)
}

/// Where API servers reach the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// An `https` URL without a path at its end.
    Url(String),
}

impl Endpoint {
    fn client_config(&self, path: &str, authorities: &str) -> Value {
        let bundle = STANDARD.encode(authorities);
        match self {
            Endpoint::Service { namespace, name, port } => {
                let service = map! {
                    "namespace" => namespace.as_str(), "name" => name.as_str(), "port" => i64::from(*port), "path" => path,
                };
                map! { "service" => service, "caBundle" => bundle }
            }
            Endpoint::Url(url) => map! { "url" => format!("{}{path}", url.trim_end_matches('/')), "caBundle" => bundle },
        }
        .into()
    }
}

/// The registrations: `authorities` (PEM) sign the webhooks' certificate, `user` is whom the manager is to the server. What is
/// protected stays so while no manager answers: such writes are refused then, but not those of the cluster's own controllers.
/// With `authenticates`, who declares Applications is written down.
pub fn registrations(
    endpoint: &Endpoint,
    authorities: &str,
    user: &str,
    authenticates: bool,
) -> [(Resource, Value); 2] {
    let own = |resources: &[&Resource]| resources.iter().map(|r| r.plural.to_string()).collect::<Vec<_>>();
    let replications = [&TENANT_RESOURCES, &GLOBAL_TENANT_RESOURCES];
    let templates = [&PERMIT_TEMPLATES, &GLOBAL_PERMIT_TEMPLATES];
    let written = ["CREATE", "UPDATE"];
    let all = ["CREATE", "UPDATE", "DELETE"];
    let status = vec![PERMITS.plural.to_string(), format!("{}/status", PERMITS.plural)];
    let others = condition("not-the-manager", format!("request.userInfo.username != {}", quoted(user)));
    let outsiders = condition("not-the-cluster", outsiders());
    let marked = condition("is-marked", marked());
    let of_tenants = condition("is-of-a-tenant", of_tenants());
    let make = |path: &str, webhooks: Vec<(&str, Value, Vec<Value>)>| -> Vec<Value> {
        let webhook = |(name, rule, conditions): (&str, Value, Vec<Value>)| {
            let mut webhook = map! {
                "name" => format!("{name}.{NAME}.{GROUP}"),
                "clientConfig" => endpoint.client_config(path, authorities),
                "rules" => vec![rule],
                "failurePolicy" => "Fail", "sideEffects" => "None", "matchPolicy" => "Equivalent",
                "admissionReviewVersions" => vec!["v1"], "timeoutSeconds" => TIMEOUT,
            };
            if !conditions.is_empty() {
                webhook.insert("matchConditions", conditions);
            }
            Value::from(webhook)
        };
        webhooks.into_iter().map(webhook).collect()
    };
    let of_namespaces = vec![others.clone(), outsiders.clone(), of_tenants];
    // Administrators may do everything, with or without a manager.
    let by_people = vec![others.clone(), outsiders.clone(), condition("not-an-administrator", people())];
    let mut mutating = make(
        MUTATE_PATH,
        vec![
            ("defaults", rule(GROUP, own(&replications), &written), Vec::new()),
            ("permits", rule(GROUP, status, &written), vec![others.clone()]),
            ("namespaces", rule("", vec!["namespaces".to_owned()], &written), of_namespaces.clone()),
            ("metadata", rule("*", vec!["*".to_owned()], &written), vec![outsiders.clone()]),
        ],
    );
    if authenticates {
        let of_applications = rule(&APPLICATIONS.group, own(&[&APPLICATIONS]), &written);
        mutating.splice(0..0, make(MUTATE_PATH, vec![("applications", of_applications, vec![others.clone()])]));
    }
    if let Some(metadata) = mutating.last_mut() {
        // Labels are no reason to refuse a write.
        metadata.set_at(&["failurePolicy"], "Ignore".into());
        let expression = map! { "key" => TENANT_LABEL, "operator" => "Exists" };
        metadata.set_at(&["namespaceSelector"], map! { "matchExpressions" => vec![Value::from(expression)] }.into());
        if let Some(rule) = metadata.get_mut("rules").and_then(Value::as_array_mut).and_then(|rules| rules.first_mut())
        {
            rule.set_at(&["scope"], "Namespaced".into());
        }
    }
    let kinds = own(&[replications, templates].concat());
    let statuses = replications.iter().map(|kind| format!("{}/status", kind.plural)).collect();
    let validating = make(
        VALIDATE_PATH,
        vec![
            ("kinds", rule(GROUP, kinds, &written), Vec::new()),
            ("permits", rule(GROUP, own(&[&PERMITS]), &all), vec![others.clone(), outsiders.clone()]),
            ("statuses", rule(GROUP, statuses, &["UPDATE"]), by_people.clone()),
            ("namespaces", rule("", vec!["namespaces".to_owned()], &all), by_people),
            (
                "accounts",
                rule("", vec!["serviceaccounts".to_owned()], &["DELETE"]),
                vec![others.clone(), outsiders.clone()],
            ),
            ("protection", rule("*", vec!["*".to_owned()], &all), vec![others, outsiders, marked]),
        ],
    );
    [(MUTATING, configuration(&MUTATING, mutating)), (VALIDATING, configuration(&VALIDATING, validating))]
}

fn configuration(resource: &Resource, webhooks: Vec<Value>) -> Value {
    map! {
        "apiVersion" => resource.api_version(), "kind" => &*resource.kind,
        "metadata" => map! { "name" => NAME }, "webhooks" => webhooks,
    }
    .into()
}

fn rule(group: &str, resources: Vec<String>, operations: &[&str]) -> Value {
    map! {
        "apiGroups" => vec![group], "apiVersions" => vec!["*"], "resources" => resources,
        "operations" => operations.to_vec(), "scope" => "*",
    }
    .into()
}

fn condition(name: &str, expression: String) -> Value {
    map! { "name" => name, "expression" => expression }.into()
}

/// The cluster's own controllers do what belongs to a kind even while nobody answers here.
fn outsiders() -> String {
    let users: Vec<String> = CLUSTER.iter().map(|user| quoted(user)).collect();
    let prefixes = CLUSTER_PREFIXES.map(|p| format!("!request.userInfo.username.startsWith({})", quoted(p)));
    format!("!(request.userInfo.username in [{}]) && {}", users.join(", "), prefixes.join(" && "))
}

/// Namespaces that are of a tenant, and those that somebody makes who is no administrator of the cluster.
fn of_tenants() -> String {
    let label = quoted(TENANT_LABEL);
    format!(
        "{} || [object, oldObject].exists(o, o != null && \
         has(o.metadata.labels) && {label} in o.metadata.labels)",
        people()
    )
}

fn people() -> String {
    "!('system:masters' in request.userInfo.groups)".to_owned()
}

/// What bears, or is given, a mark of the manager.
fn marked() -> String {
    format!(
        "[object, oldObject].exists(o, o != null && has(o.metadata.labels) && o.metadata.labels.exists(k, \
         k == {} || k.startsWith({}) || k == {} && o.metadata.labels[k] == 'controller'))",
        quoted(PROTECTED_BY),
        quoted(MARKER),
        quoted(MANAGED_BY)
    )
}

/// A text as a literal of CEL.
fn quoted(text: &str) -> String {
    object::go::quote(text)
}

/// What a registration has that is not as it should be; nothing if there is no such thing.
pub fn is_as_wanted(live: &Value, wanted: &Value) -> bool {
    fn within(live: &Value, wanted: &Value) -> bool {
        match (live, wanted) {
            (Value::Object(live), Value::Object(wanted)) => contains(live, wanted),
            (Value::Array(live), Value::Array(wanted)) => {
                live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| within(live, wanted))
            }
            (live, wanted) => live == wanted,
        }
    }
    fn contains(live: &Map, wanted: &Map) -> bool {
        wanted.iter().all(|(key, wanted)| live.get(key).is_some_and(|live| within(live, wanted)))
    }
    within(live.get("webhooks").unwrap_or(&Value::Null), wanted.get("webhooks").unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhooks(of: &Value) -> Vec<String> {
        let all = of.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        let tell = |w: &Value| {
            let text = |path: &[&str]| w.str_at(path).unwrap_or_default().to_owned();
            format!("{} {} {}", text(&["name"]), text(&["failurePolicy"]), text(&["clientConfig", "url"]))
        };
        all.iter().map(tell).collect()
    }

    #[test]
    fn registrations_name_what_is_asked_where() {
        let endpoint = Endpoint::Url("https://here:9443/".to_owned());
        let [(_, mutating), (_, validating)] = registrations(&endpoint, "PEM", "me", false);
        assert_eq!(
            webhooks(&mutating)[..3],
            ["defaults", "permits", "namespaces"]
                .map(|n| format!("{n}.stanchion-manager.capsule.clastix.io Fail https://here:9443/mutate"))
        );
        assert_eq!(
            webhooks(&validating),
            ["kinds", "permits", "statuses", "namespaces", "accounts", "protection"]
                .map(|n| format!("{n}.stanchion-manager.capsule.clastix.io Fail https://here:9443/validate"))
        );
        assert!(webhooks(&mutating)[3].starts_with("metadata.stanchion-manager.capsule.clastix.io Ignore"));
        let endpoint = Endpoint::Service { namespace: "n".into(), name: "s".into(), port: 443 };
        assert_eq!(endpoint.client_config("/x", "PEM").str_at(&["service", "name"]), Some("s"));
        assert_eq!(endpoint.client_config("/x", "PEM").str_at(&["caBundle"]), Some("UEVN"));
    }

    #[test]
    fn what_the_server_adds_is_no_difference() {
        let [(_, wanted), _] = registrations(&Endpoint::Url("https://here".to_owned()), "PEM", "me", false);
        let mut live = wanted.clone();
        if let Some(first) = live.get_mut("webhooks").and_then(Value::as_array_mut).and_then(|w| w.first_mut()) {
            first.set_at(&["reinvocationPolicy"], "Never".into());
        }
        assert!(is_as_wanted(&live, &wanted));
        let [(_, other), _] = registrations(&Endpoint::Url("https://here".to_owned()), "OTHER", "me", false);
        assert!(!is_as_wanted(&live, &other));
    }
}
