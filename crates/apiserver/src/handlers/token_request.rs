//! Tokens of service accounts, made on request.

use super::Request;
use super::own_kind::{self, OwnKind};
use super::present;
use super::reviews::admitted;
use super::write;
use crate::answer::{Failure, Outcome, Response};
use crate::auth::{Bound, Claims};
use crate::registry::{self, Stored};
use crate::request::Verb;
use crate::request::options::{self, FieldValidation, WriteOptions};
use crate::strategy::Part;
use object::field::{FieldError, Path};
use object::status::Qualified;
use object::{Status, Value, go, json, map};

/// How long a token is good when nobody says, in seconds.
const SECONDS: i64 = 3600;
/// The shortest life of a token, in seconds.
const LEAST: i64 = 600;
/// The longest life of a token, in seconds.
const MOST: i64 = 1 << 32;
const KIND: OwnKind = OwnKind { group: "authentication.k8s.io", name: "TokenRequest", versions: &["v1"] };

/// Whether the request wants a token.
pub(crate) fn is_token_request(request: &Request<'_>) -> bool {
    let (resource, info) = (&request.resource, request.info);
    info.verb == Verb::Create
        && info.subresource == "token"
        && resource.plural == "serviceaccounts"
        && resource.group.is_empty()
}

/// Makes a token.
pub(crate) async fn create(request: &mut Request<'_>) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Create)?;
    let mut object = read(request, options.validation)?;
    write::match_namespace(request, &mut object)?;
    let mut object = admitted(request, Part::Other("token"), object, &options).await?;
    let name = request.info.name.clone();
    match_name(&object, &name)?;
    let account = find(request, "serviceaccounts", &name).await?;
    let server = request.server.clone();
    let tokens = &server.options.tokens;
    let Some(signer) = &tokens.accounts else {
        return Err(Status::internal("the server signs no tokens of service accounts").into());
    };
    if object.at(&["spec", "audiences"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty) {
        let own = tokens.audiences.iter().map(|a| Value::from(a.as_str())).collect();
        object.set_at(&["spec", "audiences"], Value::Array(own));
    }
    let (given_name, given_namespace) = (object.name().to_owned(), object.namespace().to_owned());
    let meta = object.metadata_mut();
    if given_name.is_empty() {
        meta.insert("name", name.as_str());
    }
    if given_namespace.is_empty() {
        meta.insert("namespace", request.info.namespace.as_str());
    }
    meta.insert("creationTimestamp", super::time(request.now));
    let seconds = object.at(&["spec", "expirationSeconds"]).and_then(Value::as_int).unwrap_or(SECONDS);
    let errors = invalid(seconds);
    if !errors.is_empty() {
        return Err(Status::invalid(KIND.qualified(), "", &errors).into());
    }
    let mut claims = Claims {
        namespace: request.info.namespace.clone(),
        account: Bound { name: name.clone(), uid: account.meta_str("uid").to_owned() },
        audiences: strings(object.at(&["spec", "audiences"])),
        seconds,
        pod: None,
        secret: None,
        node: None,
        id: super::uid()?,
    };
    bind(request, &object, &name, &mut claims).await?;
    let token = signer.sign(&claims).map_err(Status::internal)?;
    let end = request.now.as_second().saturating_add(seconds);
    let end = jiff::Timestamp::from_second(end).unwrap_or(request.now);
    object.set_at(&["status"], Value::Object(map! { "expirationTimestamp" => super::time(end), "token" => token }));
    // Not of the resource's version: the answer says what it is itself.
    Ok(present::finish(request.form, 201, json::to_vec(&object)))
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// 422 for a request that names another account than the path.
fn match_name(object: &Value, name: &str) -> Outcome<()> {
    let given = object.name();
    if given.is_empty() || given == name {
        return Ok(());
    }
    let meta = Path::ROOT.child("metadata");
    let why = "must match the service account name if specified";
    let error = FieldError::invalid(&meta.child("name"), given, why);
    Err(Status::invalid(KIND.qualified(), name, &[error]).into())
}

fn invalid(seconds: i64) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = Path::ROOT.child("spec");
    let path = spec.child("expirationSeconds");
    if seconds < LEAST {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > MOST {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    errors
}

/// Reads the body.
fn read(request: &mut Request<'_>, validation: FieldValidation) -> Outcome<Value> {
    let mut object = own_kind::read(request, KIND, validation)?;
    if object.at(&["spec", "expirationSeconds"]).is_none_or(Value::is_null) {
        object.set_at(&["spec", "expirationSeconds"], Value::from(SECONDS));
    }
    if object.at(&["spec", "boundObjectRef"]).is_none() {
        object.set_at(&["spec", "boundObjectRef"], Value::Null);
    }
    let status = map! { "expirationTimestamp" => Value::Null, "token" => "" };
    object.set_at(&["status"], Value::Object(status));
    Ok(object)
}

/// Binds the token to the object that the request names.
async fn bind(request: &Request<'_>, object: &Value, account: &str, claims: &mut Claims) -> Outcome<()> {
    let Some(reference) = object.at(&["spec", "boundObjectRef"]).filter(|r| !r.is_null()) else { return Ok(()) };
    let text = |key: &str| reference.str_at(&[key]).unwrap_or_default();
    let (kind, name, wanted) = (text("kind"), text("name"), text("uid"));
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    let plural = match (group, kind) {
        ("", "Pod") => "pods",
        ("", "Secret") => "secrets",
        ("", "Node") => "nodes",
        _ => {
            let shown = format!("{group}/{version}, Kind={kind}");
            return Err(Status::bad_request(format!("cannot bind token to object of type {shown}")).into());
        }
    };
    let found = find(request, plural, name).await?;
    let bound = Bound { name: name.to_owned(), uid: found.meta_str("uid").to_owned() };
    if plural == "pods" {
        let owner = found.str_at(&["spec", "serviceAccountName"]).unwrap_or_default();
        if owner != account {
            let account = go::quote(account);
            let why = format!(
                "cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
            );
            return Err(Status::bad_request(why).into());
        }
        let node = found.str_at(&["spec", "nodeName"]).unwrap_or_default();
        if !node.is_empty() {
            // The node may be gone; the token names it nevertheless.
            let uid = match find(request, "nodes", node).await {
                Ok(node) => node.meta_str("uid").to_owned(),
                Err(_) => String::new(),
            };
            claims.node = Some(Bound { name: node.to_owned(), uid });
        }
    }
    if !wanted.is_empty() && wanted != bound.uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(Qualified { group, name: kind }, name, &why).into());
    }
    match plural {
        "pods" => claims.pod = Some(bound),
        "secrets" => claims.secret = Some(bound),
        _ => claims.node = Some(bound),
    }
    Ok(())
}

/// An object in the request's namespace (nodes are in none); 404 if it is not there.
async fn find(request: &Request<'_>, plural: &str, name: &str) -> Outcome<Value> {
    let resource = request.catalogue.resource("", "v1", plural);
    let resource = resource.ok_or_else(|| Failure::from(Status::internal(format!("{plural} are not known"))))?;
    let key = registry::key(resource, &request.info.namespace, name);
    let entry = request.server.store.get(&key, None).await.map_err(registry::read_failure)?;
    let stored = entry.and_then(|e| Stored::read(e.value)).map(|s| s.value(0));
    stored.ok_or_else(|| Status::not_found(resource.qualified(), name).into())
}
