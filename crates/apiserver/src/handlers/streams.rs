//! The subresources of pods that lead to the node where the pod runs: `log`, `exec`, `attach`, `portforward`. There are
//! no nodes behind this server, so only what is answered without one is.

use super::Request;
use super::get;
use super::present;
use crate::answer::{Body, Outcome, Response};
use crate::registry;
use bytes::Bytes;
use object::field::{FieldError, Path};
use object::status::Qualified;
use object::{Status, Value, go};

/// Whether the path names one of them.
pub(crate) fn is_stream(request: &Request<'_>) -> bool {
    request.resource.group.is_empty()
        && request.resource.plural == "pods"
        && matches!(request.info.subresource.as_str(), "log" | "exec" | "attach" | "portforward")
}

/// Answers for a pod that no node runs; for others says that their node is not to be reached.
pub(crate) async fn handle(request: &mut Request<'_>) -> Outcome<Response> {
    let subresource = request.info.subresource.as_str();
    if subresource == "log" {
        check_log(request)?;
    }
    let pod = present::sent(request, &get::read(request).await?).await?;
    if subresource != "portforward" {
        check_container(&pod, request.text("container"))?;
    }
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
    if node.is_empty() {
        if subresource == "log" {
            return Ok(crate::answer::with_body(204, "text/plain", Body::Whole(Bytes::new())));
        }
        return Err(Status::bad_request(format!("pod {} does not have a host assigned", pod.name())).into());
    }
    let key = format!("/registry/nodes/{node}");
    let Some(entry) = request.server.store.get(&key, None).await.map_err(registry::read_failure)? else {
        return Err(Status::not_found(Qualified { group: "", name: "nodes" }, node).into());
    };
    let address = node_address(&registry::stored(&entry)?.value(0), "").map_err(Status::unknown)?;
    let why = format!("dial tcp {address}: this server connects to no nodes");
    if subresource == "log" {
        let container = request.text("container");
        let place = format!("{}/{}/{container}", request.info.namespace, pod.name());
        return Err(Status::unknown(format!("Get \"https://{address}/containerLogs/{place}\": {why}")).into());
    }
    if !request.parts.headers.contains_key(http::header::UPGRADE) {
        return Err(Status::bad_request("Upgrade request required").into());
    }
    Err(Status::unknown(format!("error dialing backend: {why}")).into())
}

/// Where a node's kubelet listens; the error is upstream's. An empty port is the node's own.
pub(super) fn node_address(node: &Value, port: &str) -> Result<String, String> {
    // In the order of `--kubelet-preferred-address-types`.
    const PREFERRED: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
    let addresses = node.at(&["status", "addresses"]).and_then(Value::as_array).unwrap_or_default();
    let of = |ty: &&str| addresses.iter().find(|a| a.str_at(&["type"]) == Some(ty));
    let found = PREFERRED.iter().find_map(of).and_then(|a| a.str_at(&["address"]));
    let Some(address) = found else {
        let known = addresses.iter().map(|a| {
            let text = |key: &str| a.str_at(&[key]).unwrap_or_default();
            format!("{{{} {}}}", text("type"), text("address"))
        });
        let known: Vec<String> = known.collect();
        return Err(format!("no preferred addresses found; known addresses: [{}]", known.join(" ")));
    };
    let own = node.at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).and_then(Value::as_int);
    let own = own.filter(|p| *p != 0).unwrap_or(10250).to_string();
    Ok(format!("{address}:{}", if port.is_empty() { &own } else { port }))
}

/// 422 for options of `log` that contradict each other or are out of range.
fn check_log(request: &Request<'_>) -> Outcome<()> {
    let number = |key: &str| -> Outcome<Option<i64>> {
        let text = request.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let parsed = text.parse::<i64>().map(Some);
        let why = format!("strconv.ParseInt: parsing {}: invalid syntax", go::quote(text));
        parsed.map_err(|_| Status::bad_request(why).into())
    };
    let (tail, limit, seconds) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
    let time = request.text("sinceTime");
    let errors = log_errors(tail, limit, seconds, !time.is_empty());
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Qualified { group: "", name: "PodLogOptions" }, &request.info.name, &errors).into())
}

fn log_errors(tail: Option<i64>, limit: Option<i64>, seconds: Option<i64>, time: bool) -> Vec<FieldError> {
    let root = Path::ROOT;
    let mut errors = Vec::new();
    if let Some(tail) = tail.filter(|t| *t < 0) {
        errors.push(FieldError::invalid(&root.child("tailLines"), tail, "must be greater than or equal to 0"));
    }
    if let Some(limit) = limit.filter(|l| *l < 1) {
        errors.push(FieldError::invalid(&root.child("limitBytes"), limit, "must be greater than 0"));
    }
    match seconds {
        Some(_) if time => {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden(&root, why));
        }
        Some(seconds) if seconds < 1 => {
            errors.push(FieldError::invalid(&root.child("sinceSeconds"), seconds, "must be greater than 0"));
        }
        _ => {}
    }
    errors
}

/// 400 unless it is clear which container is meant.
fn check_container(pod: &Value, name: &str) -> Outcome<()> {
    let of = |list: &str| pod.at(&["spec", list]).and_then(Value::as_array).unwrap_or_default();
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let names: Vec<&str> = lists.iter().flat_map(|l| of(l)).filter_map(|c| c.str_at(&["name"])).collect();
    let pod_name = pod.name();
    let why = match (name, of("containers").len()) {
        ("", 1) => return Ok(()),
        ("", 0) => format!("a container name must be specified for pod {pod_name}"),
        ("", _) => {
            format!("a container name must be specified for pod {pod_name}, choose one of: [{}]", names.join(" "))
        }
        (name, _) if names.contains(&name) => return Ok(()),
        (name, _) => format!("container {name} is not valid for pod {pod_name}"),
    };
    Err(Status::bad_request(why).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Failure;
    use object::json;

    fn refusal(pod: &str, container: &str) -> String {
        match check_container(&json::parse(pod.as_bytes()).unwrap(), container) {
            Err(Failure::Status(status)) => status.message,
            _ => String::new(),
        }
    }

    #[test]
    fn a_container_is_named_where_there_are_several() {
        let one = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"}]}}"#;
        let two = r#"{"metadata":{"name":"p"},"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"a"},{"name":"b"}]}}"#;
        assert_eq!(refusal(one, ""), "");
        assert_eq!(refusal(two, "i"), "");
        assert_eq!(refusal(two, ""), "a container name must be specified for pod p, choose one of: [i a b]");
        assert_eq!(refusal(one, "z"), "container z is not valid for pod p");
    }

    #[test]
    fn options_of_logs_are_in_range() {
        assert!(log_errors(Some(0), Some(1), Some(1), false).is_empty());
        assert_eq!(log_errors(Some(-1), Some(0), Some(0), false).len(), 3);
        assert_eq!(log_errors(None, None, Some(1), true).len(), 1);
    }
}
