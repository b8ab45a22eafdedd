//! Questions that are asked by creating an object: who am I, may I, whose token is this.

use super::Request;
use super::incoming;
use super::present::{self, Shown};
use super::review_checks;
use super::write;
use crate::answer::{Outcome, Response};
use crate::auth::UserInfo;
use crate::authorize::{Attributes, Decision};
use crate::catalogue::Resource;
use crate::rbac::Rule;
use crate::registry::Stored;
use crate::request::options::{self, WriteOptions};
use crate::strategy::Part;
use object::status::Qualified;
use object::{Map, Status, Value, map};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Whether a resource is a question.
pub(crate) fn is_review(resource: &Resource) -> bool {
    !resource.is_custom() && matches!(resource.group.as_str(), AUTHENTICATION | AUTHORIZATION)
}

/// Answers a question.
pub(crate) async fn create(request: &mut Request<'_>) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Create)?;
    let mut object = incoming::read_body(request, options.validation)?;
    write::match_namespace(request, &mut object)?;
    let mut object = admitted(request, Part::Main, object, &options).await?;
    if object.at(&["metadata", "creationTimestamp"]).is_none() {
        object.metadata_mut().insert("creationTimestamp", Value::Null);
    }
    let answer = match request.resource.kind.as_str() {
        "SelfSubjectReview" => who_am_i(request),
        "TokenReview" => token(request, object).await?,
        "SelfSubjectRulesReview" => rules(request, &object).await?,
        kind => {
            let errors = review_checks::invalid(kind, &object);
            if !errors.is_empty() {
                let nameless = Qualified { group: AUTHORIZATION, name: "" };
                return Err(Status::invalid(nameless, "", &errors).into());
            }
            let manager = request.manager(&options.field_manager);
            let ownership = request.resource.strategy.ownership();
            let object = ownership.created(object, &manager, request.now.as_second());
            access(request, object).await
        }
    };
    shown(request, &answer).await
}

/// An object that is not stored, as an answer.
async fn shown(request: &Request<'_>, object: &Value) -> Outcome<Response> {
    let stored = Stored::new(object, request.resource.strategy.fingerprint());
    present::object(request, 201, &Shown { stored, version: 0 }).await
}

/// What webhooks and policies make of an object that is not stored.
pub(crate) async fn admitted(
    request: &mut Request<'_>,
    part: Part,
    mut object: Value,
    options: &WriteOptions,
) -> Outcome<Value> {
    let server = request.server.clone();
    let admission = &server.options.admission;
    if !admission.concerns(&request.resource) {
        return Ok(object);
    }
    let given = write::options_object("CreateOptions", options);
    let mut warnings = Vec::new();
    let attributes = write::attributes(request, "CREATE", part, options, &given);
    let mut outcome = admission.mutate(&server, attributes, Some(&mut object), &mut warnings).await.map(drop);
    if outcome.is_ok() {
        outcome = admission.validate(&server, attributes, Some(&object), &mut warnings).await;
    }
    request.warnings.extend(warnings);
    outcome.map(|()| object)
}

/// A user as reviews show it.
fn user_info(user: &UserInfo) -> Value {
    let mut out = map! { "username" => user.name.as_str() };
    if !user.uid.is_empty() {
        out.insert("uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        out.insert("groups", strings(&user.groups));
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.as_str(), strings(values));
        }
        out.insert("extra", extra);
    }
    Value::Object(out)
}

fn strings(items: &[String]) -> Value {
    Value::Array(items.iter().map(|s| Value::from(s.as_str())).collect())
}

fn who_am_i(request: &Request<'_>) -> Value {
    Value::Object(map! {
        "apiVersion" => request.resource.api_version(),
        "kind" => "SelfSubjectReview",
        "metadata" => map! { "creationTimestamp" => super::time(request.now) },
        "status" => map! { "userInfo" => user_info(request.user) },
    })
}

async fn token(request: &Request<'_>, mut object: Value) -> Outcome<Value> {
    let token = object.str_at(&["spec", "token"]).unwrap_or_default().to_owned();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication").into());
    }
    let wanted = texts(object.at(&["spec", "audiences"]));
    let tokens = &request.server.options.tokens;
    let status = match tokens.authenticate(&token, &wanted).await {
        Ok(found) => map! {
            "authenticated" => true,
            "user" => user_info(&found.user.authenticated()),
            "audiences" => strings(&found.audiences),
        },
        Err(why) => map! { "user" => Map::new(), "error" => why },
    };
    object.set_at(&["status"], Value::Object(status));
    Ok(object)
}

async fn rules(request: &Request<'_>, object: &Value) -> Outcome<Value> {
    let namespace = object.str_at(&["spec", "namespace"]).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request").into());
    }
    let found = request.server.options.authorizer.rules(request.user, namespace).await;
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in &found.rules {
        if !rule.resources.is_empty() {
            resources.push(Rule { paths: Vec::new(), ..rule.clone() }.to_value());
        }
        if !rule.paths.is_empty() {
            paths.push(Rule { verbs: rule.verbs.clone(), paths: rule.paths.clone(), ..Rule::default() }.to_value());
        }
    }
    let mut status = map! {
        "resourceRules" => Value::Array(resources),
        "nonResourceRules" => Value::Array(paths),
        "incomplete" => found.incomplete,
    };
    if !found.errors.is_empty() {
        status.insert("evaluationError", object::field::aggregate(&found.errors));
    }
    Ok(Value::Object(map! {
        "apiVersion" => request.resource.api_version(),
        "kind" => "SelfSubjectRulesReview",
        "metadata" => map! { "creationTimestamp" => Value::Null },
        "spec" => Map::new(),
        "status" => status,
    }))
}

/// Asks the authoriser, and puts its answer into the question.
async fn access(request: &Request<'_>, mut object: Value) -> Value {
    let asked = match request.resource.kind.as_str() {
        "SelfSubjectAccessReview" => request.user.clone(),
        _ => subject(&object),
    };
    let text = |path: [&str; 3]| object.str_at(&path).unwrap_or_default();
    let is_page = object.at(&["spec", "nonResourceAttributes"]).is_some_and(|p| !p.is_null());
    let of = |key| text(["spec", "resourceAttributes", key]);
    let page = |key| text(["spec", "nonResourceAttributes", key]);
    let attributes = if is_page {
        Attributes {
            user: &asked,
            verb: page("verb"),
            group: "",
            version: "",
            resource: "",
            subresource: "",
            name: "",
            namespace: "",
            path: page("path"),
        }
    } else {
        Attributes {
            user: &asked,
            verb: of("verb"),
            group: of("group"),
            // A resource without a version is one in any; the authoriser tells pages from resources by it.
            version: Some(of("version")).filter(|v| !v.is_empty()).unwrap_or("*"),
            resource: of("resource"),
            subresource: of("subresource"),
            name: of("name"),
            namespace: of("namespace"),
            path: "",
        }
    };
    let (allowed, reason) = match request.server.options.authorizer.authorize(attributes).await {
        Decision::Allow(reason) => (true, reason.to_string()),
        Decision::Deny(reason) => (false, reason),
    };
    let mut status = map! { "allowed" => allowed };
    if !reason.is_empty() {
        status.insert("reason", reason);
    }
    let ignored = review_checks::ignored_selectors(&object);
    if !ignored.is_empty() {
        status.insert("evaluationError", ignored);
    }
    object.set_at(&["status"], Value::Object(status));
    object
}

/// The user that a question is about.
fn subject(object: &Value) -> UserInfo {
    let spec = |key: &str| object.str_at(&["spec", key]).unwrap_or_default().to_owned();
    let extra = object.at(&["spec", "extra"]).and_then(Value::as_object);
    UserInfo {
        name: spec("user"),
        uid: spec("uid"),
        groups: texts(object.at(&["spec", "groups"])),
        extra: extra.into_iter().flat_map(Map::iter).map(|(k, v)| (k.to_owned(), texts(Some(v)))).collect(),
    }
}

/// The texts of a list.
pub(super) fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
