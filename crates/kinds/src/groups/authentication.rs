//! The resources of the group `authentication.k8s.io`: questions that are answered and not kept.

use crate::check::Errors;
use crate::read::Read;
use crate::resource::{Resource, Strategy, Version};
use object::Value;
use object::field::{FieldError, Path};

const GROUP: &str = "authentication.k8s.io";

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        ..Resource::review(
            GROUP,
            "SelfSubjectReview",
            "selfsubjectreviews",
            &[Version::stored("v1", "io.k8s.api.authentication.v1.SelfSubjectReview")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::review(
            GROUP,
            "TokenReview",
            "tokenreviews",
            &[Version::stored("v1", "io.k8s.api.authentication.v1.TokenReview")],
        )
    },
];

/// `serviceaccounts/token`: a subresource, and so no resource of its own.
pub(crate) const TOKEN_REQUEST: Resource = Resource {
    strategy: Strategy { validate: validate_token_request, ..Strategy::PLAIN },
    ..Resource::review(
        GROUP,
        "TokenRequest",
        "tokenrequests",
        &[Version::stored("v1", "io.k8s.api.authentication.v1.TokenRequest").with_default(|object| {
            if object.sub("spec").opt_int("expirationSeconds").is_none() {
                object.set_at(&["spec", "expirationSeconds"], Value::Int(3600));
            }
        })],
    )
};

fn validate_token_request(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = Path::ROOT.child("spec");
    let path = spec.child("expirationSeconds");
    let seconds = object.sub("spec").int("expirationSeconds");
    if seconds < 600 {
        out.push(FieldError::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > 1 << 32 {
        out.push(FieldError::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    out
}
