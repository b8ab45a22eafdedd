//! The managed-resource controllers inside the server (`--manager`).

use ::controllers::InProcess;
use ::manager::Manager;
use ::manager::application;
use apiserver::Server;
use apiserver::admission::{Admission, Attributes, Step};
use apiserver::answer::Failure;
use apiserver::auth::UserInfo;
use apiserver::catalogue::Resource;
use client::Client;
use object::{Status, Value};
use std::future::ready;
use std::sync::Arc;

/// The user as whom the controllers work.
const USER: &str = "system:serviceaccount:capsule-system:capsule";

/// What the manager has to say of a write.
pub(super) struct Managed(pub manager::Admission);

/// Writes the definitions of the kinds, so that they are served when the server says that it is ready.
pub(super) async fn install(server: &Arc<Server>) {
    let client = Client::new(Arc::new(InProcess::controller_manager(server.clone())));
    let outcome = async {
        manager::kinds::install(&client).await?;
        manager::roles::grant(&client).await;
        application::kinds::install(&client).await
    };
    if let Err(error) = outcome.await {
        tracing::error!(%error, "the kinds of tenants and applications cannot be written");
    }
}

/// What the manager works with.
#[derive(Clone)]
pub(super) struct Setup {
    /// Its part in admission.
    pub(super) admission: manager::Admission,
    /// Where its measurements go.
    pub(super) metrics: manager::Metrics,
    pub(super) applications: application::Options,
}

/// Opens the manager: from then on admission knows what it has to, whoever runs the controllers. Without the kinds there
/// is no manager.
pub(super) async fn open(server: &Arc<Server>, setup: Setup) -> Option<Manager> {
    let opened = Manager::open(client(server), options(setup)).await;
    opened.inspect_err(|error| tracing::error!(%error, "the managed-resource controllers cannot run")).ok()
}

fn client(server: &Arc<Server>) -> Client {
    let groups = ["system:masters", "system:serviceaccounts", "system:serviceaccounts:capsule-system"];
    let user = UserInfo { name: USER.to_owned(), groups: groups.map(str::to_owned).to_vec(), ..UserInfo::default() };
    Client::new(Arc::new(InProcess::new(server.clone(), user)))
}

fn options(setup: Setup) -> manager::Options {
    let Setup { admission, metrics, applications } = setup;
    let user = USER.to_owned();
    manager::Options { user, admission, metrics, applications, install: false, ..manager::Options::default() }
}

fn request<'a>(attributes: &Attributes<'a>) -> manager::admission::Request<'a> {
    manager::admission::Request {
        operation: attributes.operation,
        group: &attributes.resource.group,
        resource: &attributes.resource.plural,
        kind: &attributes.resource.kind,
        subresource: attributes.subresource,
        namespace: attributes.namespace,
        name: attributes.name,
        user: &attributes.user.name,
        groups: &attributes.user.groups,
        old: attributes.old,
        now: attributes.now,
    }
}

fn refused(attributes: &Attributes<'_>, why: &str) -> Failure {
    Status::forbidden(attributes.resource.qualified(), attributes.name, why).into()
}

impl Admission for Managed {
    fn mutate<'a>(
        &'a self,
        _: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a mut Value>,
        _: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        let changed = object.map_or(Ok(false), |object| self.0.mutate(&request(&attributes), object));
        Box::pin(ready(changed.map_err(|why| refused(&attributes, &why))))
    }

    fn validate<'a>(
        &'a self,
        _: &'a Server,
        attributes: Attributes<'a>,
        object: Option<&'a Value>,
        _: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        let verdict = self.0.validate(&request(&attributes), object);
        Box::pin(ready(verdict.map_err(|why| refused(&attributes, &why))))
    }

    fn concerns(&self, _: &Resource) -> bool {
        // Objects of any kind may be protected.
        true
    }

    fn mutates(&self, resource: &Resource) -> bool {
        // Namespaces go to tenants, and what is in them is labelled.
        resource.group == ::manager::kinds::GROUP || resource.namespaced || resource.plural == "namespaces"
    }
}
