//! The controllers of ResourcePermitTemplate and GlobalResourcePermitTemplate: whether they are right, and where they count.

use crate::kinds::{GLOBAL_PERMIT_TEMPLATES, PERMIT_TEMPLATES};
use crate::manager::Shared;
use crate::permit::template::PermitTemplate;
use crate::replications::Record;
use crate::runner::Reconciler;
use crate::status::{self, Condition};
use client::Error;
use object::{Value, map};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct PermitTemplates {
    shared: Arc<Shared>,
}

impl PermitTemplates {
    pub fn new(shared: Arc<Shared>) -> Self {
        PermitTemplates { shared }
    }
}

impl Reconciler for PermitTemplates {
    const NAME: &'static str = "permit-templates";

    async fn sync(&self, key: &str) -> Result<Option<Duration>, Error> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let resource = if namespace.is_empty() { &GLOBAL_PERMIT_TEMPLATES } else { &PERMIT_TEMPLATES };
        let api = self.shared.client.api(resource);
        let Some(object) = api.find(namespace, name).await? else { return Ok(None) };
        let read = PermitTemplate::read(&object);
        let condition = match &read {
            Ok(_) => Condition::ready(),
            Err(error) => Condition::failed(error.as_str()),
        };
        let (generation, now) = (status::generation(&object), self.shared.now());
        let old = object.at(&["status", "conditions"]);
        let mut wanted = map! {
            "observedGeneration" => generation,
            "conditions" => status::with_conditions(old, &[condition], generation, now),
        };
        if namespace.is_empty() {
            wanted.insert("namespaces", self.namespaces(read.as_ref().ok()));
        }
        Record::new(&api, &object).status(wanted).await?;
        Ok(None)
    }
}

impl PermitTemplates {
    /// The namespaces that may use a template; nothing for one that is not right, so that no access outlives its grounds.
    fn namespaces(&self, template: Option<&PermitTemplate>) -> Vec<Value> {
        let Some(template) = template else { return Vec::new() };
        if template.namespaces.is_none() {
            return vec!["*".into()];
        }
        let all = self.shared.tenancy.every_namespace();
        all.iter().filter(|n| template.is_for(n)).map(|n| n.name().into()).collect()
    }
}
