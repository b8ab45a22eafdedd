//! The checks of the level `restricted` beside those of `baseline`, in the order of upstream's identifiers.

use super::Violation;
use super::checks::{Pod, containers, context, plural, quoted, set, setters, violation};
use crate::read::Read;
use object::{Map, Value};

/// Kinds of volumes that bring nothing of the node's.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// What a pod violates.
pub(super) fn violations(pod: &Pod<'_>) -> Vec<Violation> {
    let mut out = Vec::new();
    let linux = !pod.is_windows();
    if linux && pod.minor >= 8 {
        let bad = pod.named(|c| context(c).get("allowPrivilegeEscalation").and_then(Value::as_bool) != Some(false));
        if !bad.is_empty() {
            let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad));
            out.push(violation("allowPrivilegeEscalation != false", detail));
        }
    }
    out.extend(capabilities(pod).filter(|_| linux && pod.minor >= 22));
    out.extend(volumes(pod));
    out.extend(non_root(pod));
    out.extend(user(pod).filter(|_| pod.minor >= 23));
    out.extend(seccomp(pod).filter(|_| linux && pod.minor >= 19));
    out
}

fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let of = |c: &'_ Value, key: &str| -> Vec<String> {
        context(c).sub("capabilities").strings(key).into_iter().map(str::to_owned).collect()
    };
    let keeping = pod.named(|c| !of(c, "drop").iter().any(|name| name == "ALL"));
    let added = |c: &Value| of(c, "add").into_iter().filter(|n| n != "NET_BIND_SERVICE").collect::<Vec<_>>();
    let adding = pod.named(|c| !added(c).is_empty());
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    }
    if !adding.is_empty() {
        let all: Vec<String> = pod.containers().flat_map(added).collect();
        let all = quoted(&set(all.iter().map(String::as_str)));
        details.push(format!("{} must not include {all} in securityContext.capabilities.add", containers(&adding)));
    }
    (!details.is_empty()).then(|| violation("unrestricted capabilities", details.join("; ")))
}

fn volumes(pod: &Pod<'_>) -> Option<Violation> {
    let kind = |volume: &'_ Value| -> Option<String> {
        let members = volume.as_object().into_iter().flat_map(Map::iter);
        let sources: Vec<&str> = members.filter(|(k, v)| *k != "name" && !v.is_null()).map(|(k, _)| k).collect();
        if sources.iter().any(|s| VOLUMES.contains(s)) {
            return None;
        }
        Some(sources.first().map_or("unknown", |s| *s).to_owned())
    };
    let bad: Vec<(&str, String)> =
        pod.spec.list("volumes").iter().filter_map(|v| Some((v.text("name"), kind(v)?))).collect();
    (!bad.is_empty()).then(|| {
        let names: Vec<&str> = bad.iter().map(|(name, _)| *name).collect();
        let types = set(bad.iter().map(|(_, kind)| kind.as_str()));
        let detail = format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural("restricted volume type", "restricted volume types", types.len()),
            quoted(&types)
        );
        violation("restricted volume types", detail)
    })
}

fn non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let says = |context: &Value| context.get("runAsNonRoot").and_then(Value::as_bool);
    let own = says(pod.context());
    let explicit = pod.named(|c| says(context(c)) == Some(false));
    if let Some(who) = setters(own == Some(false), &explicit) {
        return Some(violation(REASON, format!("{who} must not set securityContext.runAsNonRoot=false")));
    }
    let silent = pod.named(|c| own != Some(true) && says(context(c)).is_none());
    (!silent.is_empty()).then(|| {
        let who = containers(&silent);
        violation(REASON, format!("pod or {who} must set securityContext.runAsNonRoot=true"))
    })
}

fn user(pod: &Pod<'_>) -> Option<Violation> {
    let root = |context: &Value| context.opt_int("runAsUser") == Some(0);
    let bad = pod.named(|c| root(context(c)));
    let who = setters(root(pod.context()), &bad)?;
    Some(violation("runAsUser=0", format!("{who} must not set runAsUser=0")))
}

fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "seccompProfile";
    let profile = |context: &'_ Value| context.sub("seccompProfile").text("type").to_owned();
    let good = |ty: &str| matches!(ty, "RuntimeDefault" | "Localhost");
    let is_bad = |ty: &str| !ty.is_empty() && !good(ty);
    let own = profile(pod.context());
    let explicit = pod.named(|c| is_bad(&profile(context(c))));
    if let Some(who) = setters(is_bad(&own), &explicit) {
        let all: Vec<String> = std::iter::once(own).chain(pod.containers().map(|c| profile(context(c)))).collect();
        let values = quoted(&set(all.iter().map(String::as_str).filter(|ty| is_bad(ty))));
        return Some(violation(REASON, format!("{who} must not set securityContext.seccompProfile.type to {values}")));
    }
    let silent = pod.named(|c| !good(&own) && profile(context(c)).is_empty());
    (!silent.is_empty()).then(|| {
        let who = containers(&silent);
        let detail =
            format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
        violation(REASON, detail)
    })
}
