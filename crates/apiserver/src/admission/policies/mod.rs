//! ValidatingAdmissionPolicies: CEL expressions that refuse requests, or warn of them.
//!
//! Policies and bindings are read when the server starts and whenever one is written, before that write is answered; a
//! policy's expressions are compiled when a request is first meant by it, and kept until the policy changes. Where no
//! binding is, a request costs nothing more.

mod binding;
mod check;
mod configured;
mod definition;
mod dispatch;
mod params;
mod verdict;

pub(crate) use check::expression_errors;

use self::configured::Configured;
use super::{Admission, Attributes, Step};
use crate::Server;
use crate::catalogue::Resource;
use crate::registry;
use arc_swap::ArcSwap;
use object::Value;
use std::sync::Arc;

/// What policies never refuse: themselves, lest nobody could mend them, and questions without which nobody gets in.
const EXEMPT: [(&str, &str); 10] = [
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Holds requests against the policies that are bound.
#[derive(Debug, Default)]
pub struct Policies {
    configured: ArcSwap<Configured>,
    /// Held while policies are read, so that an older reading never takes the place of a newer one.
    reading: tokio::sync::Mutex<()>,
}

impl Admission for Policies {
    fn validate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        Box::pin(async move {
            if !self.concerns(attributes.resource) {
                return Ok(());
            }
            let configured = self.configured.load_full();
            dispatch::dispatch(server, &configured, attributes, object, warnings).await
        })
    }

    fn concerns(&self, resource: &Resource) -> bool {
        let configured = self.configured.load();
        configured.concern(&resource.group, &resource.plural)
            && !EXEMPT.contains(&(resource.group.as_str(), resource.plural.as_str()))
    }

    fn mutates(&self, _: &Resource) -> bool {
        false
    }

    fn configure<'a>(&'a self, server: &'a Server) -> Step<'a, ()> {
        Box::pin(async move {
            let _reading = self.reading.lock().await;
            let held = self.configured.load_full();
            let configured = Configured::read(&*server.store, &held).await.map_err(registry::read_failure)?;
            self.configured.store(Arc::new(configured));
            Ok(())
        })
    }
}
