//! What the signers of `kubernetes.io` sign.

use super::request::Request;

/// What a signer says to a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is signed.
    Sign,
    /// It is somebody else's.
    Ignore,
    /// It is never signed; why.
    Refuse(String),
}

/// For clients of the API server.
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// For kubelets as clients of the API server.
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// For kubelets as servers.
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// For requests from before there were signers.
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// Whether this server signs a request to a signer.
pub(super) fn verdict(signer: &str, request: &Request, usages: &[&str]) -> Verdict {
    let outcome = match signer {
        CLIENT => client(usages),
        KUBELET_CLIENT => kubelet_client(request, usages),
        KUBELET_SERVING => kubelet_serving(request, usages),
        LEGACY => Ok(()),
        _ => return Verdict::Ignore,
    };
    outcome.map_or_else(Verdict::Refuse, |()| Verdict::Sign)
}

fn client(usages: &[&str]) -> Result<(), String> {
    for usage in usages {
        if !["digital signature", "key encipherment", "client auth"].contains(usage) {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
    }
    if usages.contains(&"client auth") {
        Ok(())
    } else {
        Err("missing required usage for client certificate: client auth".to_owned())
    }
}

/// Whether a request is one for a kubelet as a client.
pub(super) fn kubelet_client(request: &Request, usages: &[&str]) -> Result<(), String> {
    organisation(request)?;
    for (there, kind) in [
        (request.has_host_names(), "DNS"),
        (request.has_mail_addresses(), "Email"),
        (request.has_addresses(), "IP"),
        (request.has_uris(), "URI"),
    ] {
        not_allowed(there, kind)?;
    }
    common_name(request)?;
    exactly(usages, "client auth")
}

fn kubelet_serving(request: &Request, usages: &[&str]) -> Result<(), String> {
    organisation(request)?;
    if !request.has_host_names() && !request.has_addresses() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    not_allowed(request.has_mail_addresses(), "Email")?;
    not_allowed(request.has_uris(), "URI")?;
    exactly(usages, "server auth")?;
    common_name(request)
}

fn organisation(request: &Request) -> Result<(), String> {
    if request.subject.organizations == ["system:nodes"] {
        Ok(())
    } else {
        Err("subject organization is not system:nodes".to_owned())
    }
}

fn common_name(request: &Request) -> Result<(), String> {
    if request.subject.common_name.starts_with("system:node:") {
        Ok(())
    } else {
        Err("subject common name does not begin with system:node:".to_owned())
    }
}

fn not_allowed(there: bool, kind: &str) -> Result<(), String> {
    if there { Err(format!("{kind} subjectAltNames are not allowed")) } else { Ok(()) }
}

/// The usages of a kubelet: signatures and this purpose, with or without the encipherment of keys, which only RSA has.
fn exactly(usages: &[&str], purpose: &str) -> Result<(), String> {
    let needed = [purpose, "digital signature"];
    let optional = "key encipherment";
    let known = usages.iter().all(|usage| needed.contains(usage) || *usage == optional);
    if known && needed.iter().all(|usage| usages.contains(usage)) {
        return Ok(());
    }
    let mut all = [purpose, "digital signature", optional];
    all.sort_unstable();
    Err(format!("usages did not match [{}]", all.join(" ")))
}
