//! The plugin ServiceAccount: which account a pod runs as, its token, and the secrets that it may use.

use crate::read::{Read, default_text, list_mut, object_mut};
use object::{Map, Value, map};

/// The account of pods that name none.
pub const DEFAULT: &str = "default";
/// What the names of volumes with tokens start with.
const VOLUME: &str = "kube-api-access-";
/// Where tokens are mounted.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a mounted token is good, in seconds.
const SECONDS: i64 = 3607;
/// Marks pods that a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Lets an account's pods use only the secrets that the account lists.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Whether a pod is the image of one that a node runs by itself: nothing is added to it.
pub fn is_mirror(pod: &Value) -> bool {
    pod.sub("metadata").members("annotations").contains_key(MIRROR)
}

/// The name of a pod's account, set to the default where the pod names none.
pub fn account_of(pod: &mut Value) -> String {
    let Some(spec) = object_mut(pod, &["spec"]) else { return String::new() };
    default_text(spec, "serviceAccountName", DEFAULT);
    let name = spec.text("serviceAccountName").to_owned();
    spec.set_at(&["serviceAccount"], name.as_str().into());
    name
}

/// Gives a pod what its account brings: a volume with a token, under a name that ends in `suffix` unless there is one,
/// and secrets for pulling images.
pub fn equip(pod: &mut Value, account: &Value, suffix: &str) {
    let Some(spec) = object_mut(pod, &["spec"]) else { return };
    let wanted = |v: &Value| v.get("automountServiceAccountToken").and_then(Value::as_bool);
    if wanted(spec).or_else(|| wanted(account)).unwrap_or(true) {
        mount(spec, suffix);
    }
    if spec.list("imagePullSecrets").is_empty() {
        let secrets = account.list("imagePullSecrets").iter().map(|s| Value::Object(map! { "name" => s.text("name") }));
        let secrets: Vec<Value> = secrets.collect();
        if !secrets.is_empty() {
            spec.set_at(&["imagePullSecrets"], Value::Array(secrets));
        }
    }
}

fn mount(spec: &mut Value, suffix: &str) {
    let held = spec.list("volumes").iter().map(|v| v.text("name")).find(|name| name.starts_with(VOLUME));
    let (name, there) = match held {
        Some(name) => (name.to_owned(), true),
        None => (format!("{VOLUME}{suffix}"), false),
    };
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in list_mut(spec, list) {
            if container.list("volumeMounts").iter().any(|m| m.text("mountPath") == MOUNT) {
                continue;
            }
            push(container, "volumeMounts", map! { "name" => name.as_str(), "readOnly" => true, "mountPath" => MOUNT });
            needed = true;
        }
    }
    if needed && !there {
        push(spec, "volumes", map! { "name" => name, "projected" => token_volume() });
    }
}

fn token_volume() -> Map {
    let field = map! { "apiVersion" => "v1", "fieldPath" => "metadata.namespace" };
    let sources: Vec<Map> = vec![
        map! { "serviceAccountToken" => map! { "expirationSeconds" => SECONDS, "path" => "token" } },
        map! { "configMap" => map! {
            "name" => "kube-root-ca.crt", "items" => vec![map! { "key" => "ca.crt", "path" => "ca.crt" }],
        } },
        map! { "downwardAPI" => map! { "items" => vec![map! { "path" => "namespace", "fieldRef" => field }] } },
    ];
    map! { "defaultMode" => 0o644, "sources" => sources }
}

fn push(object: &mut Value, key: &str, item: Map) {
    let Some(members) = object.as_object_mut() else { return };
    match members.get_or_insert(key, || Value::Array(Vec::new())) {
        Value::Array(list) => list.push(item.into()),
        other => *other = vec![item].into(),
    }
}

/// Why a mirror pod is refused; nothing if it is not.
pub fn mirror_refusal(pod: &Value) -> Option<&'static str> {
    let spec = pod.sub("spec");
    let projects = |v: &Value| v.sub("projected").list("sources").iter().any(|s| s.has("serviceAccountToken"));
    if !spec.text("serviceAccountName").is_empty() {
        Some("a mirror pod may not reference service accounts")
    } else if uses_secrets(spec) {
        Some("a mirror pod may not reference secrets")
    } else if spec.list("volumes").iter().any(projects) {
        Some("a mirror pod may not use ServiceAccountToken volume projections")
    } else {
        None
    }
}

fn uses_secrets(spec: &Value) -> bool {
    let volume = |v: &Value| v.has("secret") || v.sub("projected").list("sources").iter().any(|s| s.has("secret"));
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let container = |c: &Value| {
        c.list("env").iter().any(|e| e.sub("valueFrom").has("secretKeyRef"))
            || c.list("envFrom").iter().any(|e| e.has("secretRef"))
    };
    !spec.list("imagePullSecrets").is_empty()
        || spec.list("volumes").iter().any(volume)
        || lists.iter().flat_map(|l| spec.list(l)).any(container)
}

/// Whether an account's pods may use only the secrets that it lists.
pub fn enforces(account: &Value) -> bool {
    let text = account.sub("metadata").sub("annotations").text(ENFORCE);
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Why a pod may not use a secret of an account that [`enforces`]; nothing if it may use all that it names. Of a pod
/// that gets containers for debugging only those are looked at (`ephemeral`).
pub fn secret_refusal(pod: &Value, account: &Value, ephemeral: bool) -> Option<String> {
    let spec = pod.sub("spec");
    let names = |list: &str| account.list(list).iter().map(|s| s.text("name")).collect::<Vec<_>>();
    let (mountable, own) = (names("secrets"), account.name());
    let end = format!("is not allowed because service account {own} does not reference that secret");
    let containers = |list: &str, what: &str| {
        spec.list(list).iter().find_map(|container| {
            let name = container.text("name");
            let env = container.list("env").iter().find_map(|variable| {
                let reference = variable.sub("valueFrom").get("secretKeyRef").filter(|r| !r.is_null())?;
                let secret = reference.text("name");
                let told = format!("envVar {} referencing secret.secretName=\"{secret}\"", variable.text("name"));
                (!mountable.contains(&secret)).then(|| format!("{what} {name} with {told} {end}"))
            });
            env.or_else(|| {
                container.list("envFrom").iter().find_map(|source| {
                    let secret = source.get("secretRef").filter(|r| !r.is_null())?.text("name");
                    let told = format!("envFrom referencing secret.secretName=\"{secret}\"");
                    (!mountable.contains(&secret)).then(|| format!("{what} {name} with {told} {end}"))
                })
            })
        })
    };
    if ephemeral {
        return containers("ephemeralContainers", "ephemeral container");
    }
    let volume = spec.list("volumes").iter().find_map(|volume| {
        let secret = volume.get("secret").filter(|s| !s.is_null())?.text("secretName");
        (!mountable.contains(&secret)).then(|| format!("volume with secret.secretName=\"{secret}\" {end}"))
    });
    let pull = || {
        let allowed = names("imagePullSecrets");
        let mut named = spec.list("imagePullSecrets").iter().map(|s| s.text("name")).enumerate();
        named.find(|(_, name)| !allowed.contains(name)).map(|(i, name)| {
            format!("imagePullSecrets[{i}].name=\"{name}\" is not allowed because service account {own} does not reference that imagePullSecret")
        })
    };
    volume
        .or_else(|| containers("initContainers", "init container"))
        .or_else(|| containers("containers", "container"))
        .or_else(pull)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_pod_gets_a_token_and_pull_secrets() {
        let account = value(r#"{"imagePullSecrets":[{"name":"p"}]}"#);
        let mut pod = value(r#"{"spec":{"containers":[{"name":"c"}]}}"#);
        assert_eq!(account_of(&mut pod), "default");
        equip(&mut pod, &account, "abcde");
        let spec = pod.sub("spec");
        assert_eq!((spec.text("serviceAccount"), spec.list("imagePullSecrets").len()), ("default", 1));
        assert_eq!(spec.list("volumes")[0].text("name"), "kube-api-access-abcde");
        assert_eq!(spec.list("containers")[0].list("volumeMounts")[0].text("mountPath"), MOUNT);
        let held = pod.clone();
        equip(&mut pod, &account, "other");
        assert_eq!(pod, held, "once is enough");
    }

    #[test]
    fn pods_and_accounts_can_do_without_a_token() {
        for (spec, account) in [
            (r#"{"containers":[{}],"automountServiceAccountToken":false}"#, "{}"),
            (r#"{"containers":[{}]}"#, r#"{"automountServiceAccountToken":false}"#),
            (
                r#"{"containers":[{"volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}]}"#,
                "{}",
            ),
        ] {
            let mut pod = value(&format!(r#"{{"spec":{spec}}}"#));
            equip(&mut pod, &value(account), "x");
            assert!(pod.sub("spec").list("volumes").is_empty(), "{spec}");
        }
    }

    #[test]
    fn secrets_that_an_account_does_not_list_are_refused() {
        let account = value(
            r#"{"metadata":{"name":"s","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},"secrets":[{"name":"a"}]}"#,
        );
        assert!(enforces(&account) && !enforces(&Value::Null));
        for (spec, start) in [
            (r#"{"volumes":[{"secret":{"secretName":"b"}}]}"#, "volume with secret.secretName=\"b\" is not allowed"),
            (
                r#"{"containers":[{"name":"c","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"b"}}}]}]}"#,
                "container c with envVar E referencing secret.secretName=\"b\"",
            ),
            (
                r#"{"initContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"b"}}]}]}"#,
                "init container c with envFrom referencing secret.secretName=\"b\"",
            ),
            (r#"{"imagePullSecrets":[{"name":"a"}]}"#, "imagePullSecrets[0].name=\"a\" is not allowed"),
        ] {
            let pod = value(&format!(r#"{{"spec":{spec}}}"#));
            let why = secret_refusal(&pod, &account, false).unwrap();
            assert!(why.starts_with(start), "{why}");
        }
        let fine = value(r#"{"spec":{"volumes":[{"secret":{"secretName":"a"}}]}}"#);
        assert_eq!(secret_refusal(&fine, &account, false), None);
    }
}
