//! Libraries of Kubernetes for authorization checks. CRD rules have no `authorizer` variable; admission policies
//! and match conditions have.

use super::{Library, Version};
use crate::env::{FunctionDecl, OverloadDecl};
use crate::types::Type;

/// Checks, their builders and their decisions.
pub(super) fn authorizer() -> Library {
    use Type::{Bool, String};
    let authorizer = || Type::object("kubernetes.authorization.Authorizer");
    let path = || Type::object("kubernetes.authorization.PathCheck");
    let group = || Type::object("kubernetes.authorization.GroupCheck");
    let resource = || Type::object("kubernetes.authorization.ResourceCheck");
    let decision = || Type::object("kubernetes.authorization.Decision");
    let build = |name: &str, id: &str, on: Type, result: Type| {
        FunctionDecl::new(name, [OverloadDecl::member(id, [on, String], result)])
    };
    let read =
        |name: &str, id: &str, result: Type| FunctionDecl::new(name, [OverloadDecl::member(id, [decision()], result)]);
    let functions = vec![
        build("path", "authorizer_path", authorizer(), path()),
        build("group", "authorizer_group", authorizer(), group()),
        FunctionDecl::new(
            "serviceAccount",
            [OverloadDecl::member("authorizer_serviceaccount", [authorizer(), String, String], authorizer())],
        ),
        build("resource", "groupcheck_resource", group(), resource()),
        build("subresource", "resourcecheck_subresource", resource(), resource()),
        build("namespace", "resourcecheck_namespace", resource(), resource()),
        build("name", "resourcecheck_name", resource(), resource()),
        FunctionDecl::new(
            "check",
            [
                OverloadDecl::member("pathcheck_check", [path(), String], decision()),
                OverloadDecl::member("resourcecheck_check", [resource(), String], decision()),
            ],
        ),
        read("errored", "decision_errored", Bool),
        read("error", "decision_error", String),
        read("allowed", "decision_allowed", Bool),
        read("reason", "decision_reason", String),
    ];
    Library::new("kubernetes.authz", Version(1, 27), functions)
}

/// Field and label selectors of a check.
pub(super) fn selectors() -> Library {
    let resource = || Type::object("kubernetes.authorization.ResourceCheck");
    let functions = [("fieldSelector", "authorizer_fieldselector"), ("labelSelector", "authorizer_labelselector")];
    let functions = functions
        .into_iter()
        .map(|(name, id)| FunctionDecl::new(name, [OverloadDecl::member(id, [resource(), Type::String], resource())]));
    Library::new("kubernetes.authzSelectors", Version(1, 32), functions.collect())
}
