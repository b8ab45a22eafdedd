//! MutatingAdmissionPolicies: CEL expressions that make patches of requests' objects.

mod definition;
mod dispatch;
mod patch;
mod value;

use self::definition::Definition;
use super::Kept;
use crate::Server;
use crate::admission::plugins::Plugin;
use crate::admission::{Admission, Attributes, Phase, Rounds, Step};
use crate::catalogue::Resource;
use object::Value;

/// Lets the mutating policies that are bound change objects.
#[derive(Debug, Default)]
pub struct MutatingPolicies(Kept<Definition>);

impl Admission for MutatingPolicies {
    fn mutate_in<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a mut Value>,
        rounds: &'a mut Rounds,
        _warnings: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        Box::pin(async move {
            // Where an object is deleted there is nothing to change.
            if object.is_none() || !self.0.concern(attributes.resource) {
                return Ok(false);
            }
            let configured = self.0.get();
            dispatch::dispatch(server, &configured, attributes, object, rounds.of_policies()).await
        })
    }

    fn name(&self, _: Phase) -> &'static str {
        Plugin::MutatingAdmissionPolicy.name()
    }

    fn concerns(&self, resource: &Resource) -> bool {
        self.0.concern(resource)
    }

    fn configure<'a>(&'a self, server: &'a Server) -> Step<'a, ()> {
        Box::pin(self.0.read(server))
    }
}
