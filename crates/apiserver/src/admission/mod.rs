//! Who may change or refuse a write after it was authorised.

pub(crate) mod authorizer;
pub(crate) mod cel;
mod chain;
mod latest;
pub mod webhooks;

pub(crate) mod matching;
mod nodes;
mod owners;
pub mod plugins;
pub mod policies;
mod rounds;

pub use cel::WrittenExpressions;
pub use chain::Chain;
pub use nodes::NodeRestriction;
pub use owners::OwnerReferences;
pub use rounds::Rounds;

use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::auth::UserInfo;
use crate::catalogue::Resource;
use crate::registry;
use jiff::Timestamp;
use object::{Status, Value};
use std::future::Future;
use std::pin::Pin;

/// What a write does, for admission.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'static str,
    /// The resource.
    pub resource: &'a Resource,
    /// The subresource; often empty.
    pub subresource: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// The object's name; empty until one is generated.
    pub name: &'a str,
    /// Who writes.
    pub user: &'a UserInfo,
    /// Whether nothing is going to be stored.
    pub dry_run: bool,
    /// The object as it is; none for a create.
    pub old: Option<&'a Value>,
    /// The options of the request, for example a `CreateOptions`.
    pub options: &'a Value,
    /// The time.
    pub now: Timestamp,
}

/// A future of an admission step.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// What may be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It may be changed.
    Mutate,
    /// It may be refused.
    Validate,
}

/// Webhooks and policies. Objects are as clients of the request's version see them. Each step gives warnings for the
/// client.
pub trait Admission: Send + Sync + 'static {
    /// May change the object that is to be written (none for a delete); tells whether it did.
    fn mutate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a mut Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        let _ = (server, attributes, object, warnings);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// What [`Admission::mutate`] does, as a step of a [`Chain`]: that one lets its steps change an object in two rounds
    /// if anything changed, and of most steps there is nothing to do in the second.
    fn mutate_in<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a mut Value>,
        rounds: &'a mut Rounds,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        if rounds.is_second() {
            return Box::pin(std::future::ready(Ok(false)));
        }
        self.mutate(server, attributes, object, warnings)
    }

    /// May refuse what is about to be written; `object` is none for a delete.
    fn validate<'a>(
        &'a self,
        server: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        warnings: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        let _ = (server, attributes, object, warnings);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Reads what is configured. Called when the server starts and whenever an object of the group
    /// `admissionregistration.k8s.io` was written.
    fn configure<'a>(&'a self, server: &'a Server) -> Step<'a, ()> {
        let _ = server;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether anything at all might happen to a resource; where nothing does, objects are not prepared for admission.
    fn concerns(&self, resource: &Resource) -> bool {
        let _ = resource;
        false
    }

    /// Upstream's name of the plugin that this is in a phase, under which its time is counted; empty for none.
    fn name(&self, phase: Phase) -> &'static str {
        let _ = phase;
        ""
    }

    /// Whether objects of a resource might be changed.
    fn mutates(&self, resource: &Resource) -> bool {
        self.concerns(resource)
    }
}

/// Lets everything pass as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Admission for AdmitAll {}

/// The answer to a request that is refused.
pub(crate) fn forbidden(attributes: Attributes<'_>, object: Option<&Value>, why: &str) -> Status {
    let own = |object: &Value| match object.name() {
        "" => Some(object.meta_str("generateName").to_owned()).filter(|prefix| !prefix.is_empty()),
        name => Some(name.to_owned()),
    };
    let name = match attributes.name {
        "" => object.and_then(own).unwrap_or_else(|| "Unknown".to_owned()),
        name => name.to_owned(),
    };
    Status::forbidden(attributes.resource.qualified(), &name, why)
}

/// Nothing is created in a namespace that is not there, or going away.
pub(crate) async fn check_namespace(server: &Server, resource: &Resource, namespace: &str, name: &str) -> Outcome<()> {
    // Questions about access are answered everywhere.
    if !resource.namespaced || resource.group == "authorization.k8s.io" {
        return Ok(());
    }
    let namespaces = object::status::Qualified { group: "", name: "namespaces" };
    let entry = server.known(&format!("{NAMESPACES}{namespace}")).await?;
    let Some(entry) = entry else { return Err(Status::not_found(namespaces, namespace).into()) };
    let stored = registry::stored(&entry)?;
    let meta = stored.metadata_of(&["deletionTimestamp"]);
    if meta.get("deletionTimestamp").is_none_or(Value::is_null) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = format!("namespace {namespace} is being terminated");
    let status = Status::forbidden(resource.qualified(), name, &why);
    Err(status.with_cause("NamespaceTerminating", "metadata.namespace", cause).into())
}

/// Nothing is changed in a namespace that is not there. (Objects outlive a namespace that was finalized by force.)
pub(crate) async fn check_presence(server: &Server, resource: &Resource, namespace: &str) -> Outcome<()> {
    if !resource.namespaced {
        return Ok(());
    }
    let key = format!("{NAMESPACES}{namespace}");
    if server.known(&key).await?.is_none() {
        let namespaces = object::status::Qualified { group: "", name: "namespaces" };
        return Err(Status::not_found(namespaces, namespace).into());
    }
    Ok(())
}

/// What the keys of namespaces start with.
pub(crate) const NAMESPACES: &str = "/registry/namespaces/";
/// What the keys of policies, bindings and webhooks begin with: what [`Admission::configure`] reads.
pub(crate) const CONFIGURATION: [&str; 6] = [
    "/registry/mutatingadmissionpolicies/",
    "/registry/mutatingadmissionpolicybindings/",
    "/registry/mutatingwebhookconfigurations/",
    "/registry/validatingadmissionpolicies/",
    "/registry/validatingadmissionpolicybindings/",
    "/registry/validatingwebhookconfigurations/",
];

/// Namespaces that are not to be deleted.
pub(crate) const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];
