//! Bindings of pods to nodes: the subresource `binding` of pods, and the resource `bindings`.

use super::Request;
use super::eviction::pod_condition;
use super::own_kind::{self, OwnKind};
use super::reviews;
use super::write;
use crate::answer::{Failure, Outcome, Response};
use crate::registry;
use crate::request::Verb;
use crate::request::options::{self, WriteOptions};
use crate::strategy::Part;
use object::status::Qualified;
use object::{Map, Status, Value, go, map};

const KIND: OwnKind = OwnKind { group: "", name: "Binding", versions: &["v1"] };

/// Whether the request binds a pod.
pub(crate) fn is_binding(request: &Request<'_>) -> bool {
    let (resource, info) = (&request.resource, request.info);
    resource.group.is_empty()
        && info.verb == Verb::Create
        && match resource.plural.as_str() {
            "pods" => info.subresource == "binding",
            plural => plural == "bindings",
        }
}

/// Binds a pod.
pub(crate) async fn create(request: &mut Request<'_>) -> Outcome<Response> {
    let options = WriteOptions::read(request.query, options::Write::Create)?;
    let mut binding = own_kind::read(request, KIND, options.validation)?;
    write::match_namespace(request, &mut binding)?;
    let of_pod = request.resource.plural == "pods";
    let name = if of_pod { request.info.name.clone() } else { binding.name().to_owned() };
    write::check_place(request, &name).await?;
    let part = if of_pod { Part::Other("binding") } else { Part::Main };
    let binding = reviews::admitted(request, part, binding, &options).await?;
    if of_pod && binding.name() != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object").into());
    }
    let errors = kinds::find("", "v1", "bindings").map(|(r, _)| (r.strategy.validate)(&binding)).unwrap_or_default();
    if !errors.is_empty() {
        return Err(Status::unknown(object::field::aggregate(&errors)).into());
    }
    let name = binding.name().to_owned();
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required.").into());
    }
    bind(request, &name, &binding, options.dry_run).await?;
    Ok(own_kind::success(request))
}

async fn bind(request: &Request<'_>, name: &str, binding: &Value, dry_run: bool) -> Outcome<()> {
    let server = request.server;
    let pods = request.catalogue.resource("", "v1", "pods");
    let pods = pods.ok_or_else(|| Failure::from(Status::internal("pods are not known")))?;
    let key = registry::key(pods, &request.info.namespace, name);
    let time = super::time(request.now);
    let mut refusal = None;
    let bound = server
        .rewrite(&key, |pod| {
            let made = unmet(binding, pod, &key).map_or_else(|| bound(pod, binding, &time), Err);
            match made {
                Ok(pod) => Some(pod).filter(|_| !dry_run),
                Err(why) => {
                    refusal = Some(why);
                    None
                }
            }
        })
        .await?;
    match (refusal, bound) {
        (Some(why), _) => {
            let resource = if why.starts_with("StorageError") { "pods" } else { "pods/binding" };
            Err(Status::conflict(Qualified { group: "", name: resource }, name, &why).into())
        }
        (None, None) => Err(Status::not_found(pods.qualified(), name).into()),
        (None, Some(_)) if dry_run => Ok(()),
        (None, Some(_)) => {
            server.committed(pods, &key).await;
            Ok(())
        }
    }
}

/// Why the pod is not the one that the binding means.
fn unmet(binding: &Value, pod: &Value, key: &str) -> Option<String> {
    let error = |what: &str, wanted: &str, found: &str| {
        format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        )
    };
    let pairs = [("UID", "uid"), ("ResourceVersion", "resourceVersion")];
    pairs.iter().find_map(|(what, member)| {
        let (wanted, found) = (binding.meta_str(member), pod.meta_str(member));
        (!wanted.is_empty() && wanted != found).then(|| error(what, wanted, found))
    })
}

/// The pod with its node; the error says why it cannot have one.
fn bound(pod: &Value, binding: &Value, now: &str) -> Result<Value, String> {
    let name = pod.name();
    if !pod.meta_str("deletionTimestamp").is_empty() {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
    if !node.is_empty() {
        return Err(format!("pod {name} is already assigned to node {}", go::quote(node)));
    }
    let gates = pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array).unwrap_or_default();
    if !gates.is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut pod = pod.clone();
    let target = binding.str_at(&["target", "name"]).unwrap_or_default();
    pod.set_at(&["spec", "nodeName"], target.into());
    let annotations = binding.metadata().and_then(|m| m.get("annotations")).and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flat_map(Map::iter) {
        pod.set_at(&["metadata", "annotations", key], value.clone());
    }
    let mut conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    pod_condition(&mut conditions, map! { "type" => "PodScheduled", "status" => "True" }, now);
    pod.set_at(&["status", "conditions"], Value::Array(conditions));
    Ok(pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_pod_gets_its_node_and_the_annotations() {
        let pod = value(r#"{"metadata":{"name":"p","annotations":{"a":"1"}}}"#);
        let binding = value(r#"{"metadata":{"annotations":{"b":"2"}},"target":{"name":"n"}}"#);
        let wanted = r#"{"metadata":{"annotations":{"a":"1","b":"2"},"name":"p"},"spec":{"nodeName":"n"},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"t","status":"True","type":"PodScheduled"}]}}"#;
        assert_eq!(json::to_string(&bound(&pod, &binding, "t").unwrap()), wanted);
    }

    #[test]
    fn some_pods_cannot_be_bound() {
        let binding = value(r#"{"target":{"name":"n"}}"#);
        for (pod, why) in [
            (r#"{"metadata":{"name":"p"},"spec":{"nodeName":"m"}}"#, "pod p is already assigned to node \"m\""),
            (
                r#"{"metadata":{"name":"p"},"spec":{"schedulingGates":[{"name":"g"}]}}"#,
                "pod p has non-empty .spec.schedulingGates",
            ),
            (
                r#"{"metadata":{"name":"p","deletionTimestamp":"2020-01-01T00:00:00Z"}}"#,
                "pod p is being deleted, cannot be assigned to a host",
            ),
        ] {
            assert_eq!(bound(&value(pod), &binding, "t").unwrap_err(), why);
        }
        let other = value(r#"{"metadata":{"uid":"v"}}"#);
        assert!(unmet(&value(r#"{"metadata":{"uid":"u"}}"#), &other, "k").is_some());
        assert!(unmet(&value("{}"), &other, "k").is_none());
    }
}
