//! The webhooks that configurations name.

use crate::admission::cel::Expression;
use crate::admission::matching::Criteria;
use crate::registry;
use crate::webhooks::{ClientConfig, Review};
use object::Value;
use std::time::Duration;
use store::{ListOptions, Range, ReadError, Store};

const MUTATING: &str = "/registry/mutatingwebhookconfigurations/";
const VALIDATING: &str = "/registry/validatingwebhookconfigurations/";

/// All configured webhooks, in the order in which they are called.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Those that may change objects.
    pub mutating: Vec<Hook>,
    /// Those that may refuse them.
    pub validating: Vec<Hook>,
}

/// A webhook.
#[derive(Debug)]
pub(super) struct Hook {
    /// Tells webhooks apart: configuration, name, and a number among those of the name.
    pub uid: String,
    /// The name.
    pub name: String,
    /// Where it is.
    pub client: ClientConfig,
    /// What it is called for.
    pub criteria: Criteria,
    /// Whether a request fails with it.
    pub required: bool,
    /// Further conditions.
    pub conditions: Vec<Expression>,
    /// How long it may take.
    pub timeout: Duration,
    /// What it is sent; none if it knows no version that is known here.
    pub review: Option<&'static Review>,
    /// Whether it is called again when a later one changed the object.
    pub reinvoked: bool,
}

impl Configured {
    /// Reads all configurations.
    pub async fn read(store: &dyn Store) -> Result<Self, ReadError> {
        Ok(Configured { mutating: hooks(store, MUTATING).await?, validating: hooks(store, VALIDATING).await? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    /// Whether any webhook might be called for a resource, in any of its versions.
    pub fn concern(&self, group: &str, resource: &str) -> bool {
        self.mutating.iter().chain(&self.validating).any(|hook| hook.criteria.concern(group, resource))
    }
}

async fn hooks(store: &dyn Store, prefix: &str) -> Result<Vec<Hook>, ReadError> {
    let page = store.list(&Range::prefix(prefix), ListOptions::default()).await?;
    let mut hooks: Vec<Hook> = Vec::new();
    // Keys come in order, and so do the names of configurations.
    for entry in &page.entries {
        let Ok(stored) = registry::stored(entry) else { continue };
        let configuration = stored.value(0);
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        for webhook in webhooks {
            let name = webhook.str_at(&["name"]).unwrap_or_default();
            let prefix = format!("{}/{name}/", configuration.name());
            let same = hooks.iter().filter(|h| h.uid.starts_with(&prefix)).count();
            hooks.push(Hook::read(webhook, format!("{prefix}{same}")));
        }
    }
    Ok(hooks)
}

impl Hook {
    fn read(webhook: &Value, uid: String) -> Self {
        let text = |key: &str| webhook.str_at(&[key]).unwrap_or_default();
        let list = |key: &str| webhook.get(key).and_then(Value::as_array).unwrap_or_default();
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_int).unwrap_or(10);
        let conditions = list("matchConditions").iter();
        Hook {
            uid,
            name: text("name").to_owned(),
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            criteria: Criteria::of_webhook(webhook),
            required: text("failurePolicy") != "Ignore",
            conditions: conditions
                .map(|c| Expression::condition(c.str_at(&["expression"]).unwrap_or_default()))
                .collect(),
            timeout: Duration::from_secs(u64::try_from(seconds).unwrap_or(10)),
            review: list("admissionReviewVersions").iter().find_map(|version| match version.as_str() {
                Some("v1") => Some(&Review::ADMISSION_V1),
                Some("v1beta1") => Some(&Review::ADMISSION_V1BETA1),
                _ => None,
            }),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
        }
    }
}
