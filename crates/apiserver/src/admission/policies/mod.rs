//! Policies in CEL: ValidatingAdmissionPolicies refuse requests, or warn of them; MutatingAdmissionPolicies
//! ([`MutatingPolicies`]) change objects.
//!
//! Policies and bindings are read when the server starts and whenever one is written, before that write is answered; a
//! policy's expressions are compiled when a request is first meant by it, and kept until the policy changes. Where no
//! binding is, a request costs nothing more.

mod authorization;
mod binding;
mod configured;
mod definition;
mod dispatch;
mod mutating;
mod params;
mod policy;
mod select;
mod type_check;
mod verdict;

pub(crate) use authorization::reading_error;
pub use mutating::MutatingPolicies;

pub use type_check::{Warning, check_types};

use self::configured::Configured;
use self::definition::Definition;
use self::policy::Sort;
use super::latest::Latest;
use super::{Admission, Attributes, Phase, Step};
use crate::Server;
use crate::admission::plugins::Plugin;
use crate::answer::Outcome;
use crate::catalogue::Resource;
use crate::registry;
use object::Value;
use std::sync::Arc;

/// What policies never see: themselves, lest nobody could mend them, and questions without which nobody gets in.
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

/// The bound policies of a sort, read again whenever one changes.
#[derive(Debug)]
struct Kept<S>(Latest<Configured<S>>);

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Kept(Latest::default())
    }
}

impl<S: Sort> Kept<S> {
    /// Whether any might be about a resource.
    fn concern(&self, resource: &Resource) -> bool {
        self.0.look().concern(&resource.group, &resource.plural)
            && !EXEMPT.contains(&(resource.group.as_str(), resource.plural.as_str()))
    }

    /// The policies as they are now.
    fn get(&self) -> Arc<Configured<S>> {
        self.0.get()
    }

    async fn read(&self, server: &Server) -> Outcome<()> {
        let read = async |held: &_| Configured::read(&*server.store, held).await.map_err(registry::read_failure);
        self.0.renew(read).await
    }
}

/// Holds requests against the validating policies that are bound.
#[derive(Debug, Default)]
pub struct Policies(Kept<Definition>);

impl Admission for Policies {
    fn validate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        Box::pin(async move {
            if !self.0.concern(attributes.resource) {
                return Ok(());
            }
            let configured = self.0.get();
            dispatch::dispatch(server, &configured, attributes, object, warnings).await
        })
    }

    fn name(&self, _: Phase) -> &'static str {
        Plugin::ValidatingAdmissionPolicy.name()
    }

    fn concerns(&self, resource: &Resource) -> bool {
        self.0.concern(resource)
    }

    fn mutates(&self, _: &Resource) -> bool {
        false
    }

    fn configure<'a>(&'a self, server: &'a Server) -> Step<'a, ()> {
        Box::pin(async move {
            self.0.read(server).await?;
            let configured = self.0.get();
            let is_bound = |name: &str| configured.bound.iter().any(|bound| bound.policy.policy.name == name);
            server.metrics.admission.keep_policies(is_bound);
            Ok(())
        })
    }
}
