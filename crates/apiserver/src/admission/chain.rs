//! One admission step after the other.

use super::Phase::{Mutate, Validate};
use super::{Admission, Attributes, Rounds, Step};
use crate::Server;
use crate::catalogue::Resource;
use object::Value;

/// Several steps of admission, each of which sees what the one before made. The first that refuses a request ends it.
#[derive(Default)]
pub struct Chain(Vec<Box<dyn Admission>>);

impl Chain {
    /// A chain without steps, which lets everything pass.
    pub fn new() -> Self {
        Chain::default()
    }

    /// With a further step at the end.
    pub fn with(mut self, step: impl Admission) -> Self {
        self.0.push(Box::new(step));
        self
    }
}

impl Admission for Chain {
    fn mutate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        mut object: Option<&'a mut Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        let (metrics, operation) = (&server.metrics.admission, attributes.operation);
        let all = async move {
            let (mut rounds, mut changed) = (Rounds::default(), false);
            loop {
                for step in self.0.iter().filter(|step| step.mutates(attributes.resource)) {
                    let object = object.as_deref_mut();
                    let one = step.mutate_in(server, attributes, object, &mut rounds, warnings);
                    changed |= metrics.during(step.name(Mutate), operation, Mutate, one).await?;
                }
                if !rounds.next() {
                    return Ok(changed);
                }
            }
        };
        Box::pin(metrics.during_all(operation, Mutate, all))
    }

    fn validate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        let (metrics, operation) = (&server.metrics.admission, attributes.operation);
        let all = async move {
            for step in self.0.iter().filter(|step| step.concerns(attributes.resource)) {
                let one = step.validate(server, attributes, object, warnings);
                metrics.during(step.name(Validate), operation, Validate, one).await?;
            }
            Ok(())
        };
        Box::pin(metrics.during_all(operation, Validate, all))
    }

    fn configure<'a>(&'a self, server: &'a Server) -> Step<'a, ()> {
        Box::pin(async move {
            for step in &self.0 {
                step.configure(server).await?;
            }
            Ok(())
        })
    }

    fn concerns(&self, resource: &Resource) -> bool {
        self.0.iter().any(|step| step.concerns(resource))
    }

    fn mutates(&self, resource: &Resource) -> bool {
        self.0.iter().any(|step| step.mutates(resource))
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("steps", &self.0.len()).finish()
    }
}
