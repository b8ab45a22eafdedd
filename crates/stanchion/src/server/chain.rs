//! The admission chain of this server: what its flags switch on, in upstream's order.

use super::{Args, features, manager};
use apiserver::admission::plugins::{Plugin, Plugins};
use apiserver::admission::policies::{MutatingPolicies, Policies};
use apiserver::admission::webhooks::Webhooks;
use apiserver::admission::{Chain, NodeRestriction, OwnerReferences};
use apiserver::webhooks::WebhookClient;
use std::sync::Arc;

/// The chain; `managed` is what the manager says of what clients write, if it runs here.
pub(super) fn chain(
    args: &Args,
    plugins: Plugins,
    features: &features::Features,
    managed: Option<::manager::Admission>,
    webhooks: &Arc<WebhookClient>,
) -> Chain {
    let mut chain = Chain::new();
    if let Some(managed) = managed {
        chain = chain.with(manager::Managed(managed));
    }
    if plugins.has(Plugin::NodeRestriction) {
        chain = chain.with(NodeRestriction);
    }
    if features.mutating_policies && plugins.has(Plugin::MutatingAdmissionPolicy) {
        chain = chain.with(MutatingPolicies::default());
    }
    if plugins.has(Plugin::ValidatingAdmissionPolicy) {
        chain = chain.with(Policies::default());
    }
    chain = chain.with(Webhooks::new(webhooks.clone(), args.attribute_webhook_changes).switched(plugins));
    if plugins.has(Plugin::OwnerReferencesPermissionEnforcement) {
        chain = chain.with(OwnerReferences);
    }
    chain
}
