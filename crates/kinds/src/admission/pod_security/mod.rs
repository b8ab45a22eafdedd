//! The plugin PodSecurity: the Pod Security Standards, as the labels of a namespace choose them.

mod baseline;
mod checks;
mod restricted;

use self::checks::Pod;
use crate::pod::SECCOMP_POD;
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Map, Value};

/// How much is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    Privileged,
    /// What is known to give rights over the node.
    Baseline,
    /// What is not known to be good practice.
    Restricted,
}

/// The minor version of Kubernetes whose rules are meant; none for the latest.
pub type Minor = Option<u32>;

/// A level in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Minor,
}

/// What is asked of the pods of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What is refused.
    pub enforce: Standard,
    /// What is noted in the audit log.
    pub audit: Standard,
    /// What the client is warned of.
    pub warn: Standard,
}

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

fn level(text: &str) -> Result<Level, &'static str> {
    match text {
        "privileged" => Ok(Level::Privileged),
        "baseline" => Ok(Level::Baseline),
        "restricted" => Ok(Level::Restricted),
        _ => Err("must be one of privileged, baseline, restricted"),
    }
}

fn version(text: &str) -> Result<Minor, &'static str> {
    const WHY: &str = "must be \"latest\" or \"v1.x\"";
    if text == "latest" {
        return Ok(None);
    }
    let digits = text.strip_prefix("v1.").ok_or(WHY)?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let plain = plain && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().map(Some).map_err(|_| WHY) } else { Err(WHY) }
}

impl Policy {
    /// Reads the labels of a namespace; what is wrong with them makes errors, and the strictest policy.
    pub fn of_labels(labels: &Map) -> (Self, Vec<FieldError>) {
        let lax = Standard { level: Level::Privileged, version: None };
        let mut policy = Policy { enforce: lax, audit: lax, warn: lax };
        let mut errors = Vec::new();
        let (root, mut enforced) = (Path::ROOT.child("metadata"), (false, false));
        let path = root.child("labels");
        for mode in ["enforce", "audit", "warn"] {
            let enforce = policy.enforce;
            let standard = match mode {
                "enforce" => &mut policy.enforce,
                "audit" => &mut policy.audit,
                _ => &mut policy.warn,
            };
            let (key, version_key) =
                (format!("pod-security.kubernetes.io/{mode}"), format!("pod-security.kubernetes.io/{mode}-version"));
            let text = |key: &str| labels.get(key).and_then(Value::as_str);
            if let Some(text) = text(&key) {
                match level(text) {
                    Ok(level) => {
                        standard.level = level;
                        enforced.0 |= mode == "enforce";
                    }
                    Err(why) => {
                        // Whoever only looks on fails open.
                        standard.level = if mode == "enforce" { Level::Restricted } else { Level::Privileged };
                        errors.push(FieldError::invalid(&path.key(&key), text, why));
                    }
                }
            } else if mode == "warn" && enforced.0 && enforce.level > standard.level {
                standard.level = enforce.level;
            }
            if let Some(text) = text(&version_key) {
                match version(text) {
                    Ok(version) => {
                        standard.version = version;
                        enforced.1 |= mode == "enforce";
                    }
                    Err(why) => errors.push(FieldError::invalid(&path.key(&version_key), text, why)),
                }
            } else if mode == "warn" && enforced.1 {
                standard.version = enforce.version;
            }
        }
        (policy, errors)
    }
}

/// What a pod violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub reason: String,
    /// Who violates it; may be empty.
    pub detail: String,
}

/// What a pod, or a template of pods, violates of a standard.
pub fn violations(standard: Standard, template: &Value) -> Vec<Violation> {
    if standard.level == Level::Privileged {
        return Vec::new();
    }
    let minor = standard.version.unwrap_or(u32::MAX);
    let pod = Pod::new(template, minor);
    let mut out = baseline::violations(&pod, standard.level == Level::Restricted);
    if standard.level == Level::Restricted {
        out.extend(restricted::violations(&pod));
    }
    out
}

/// Violations as messages tell them: `privileged (container "c" must not …), hostPort (…)`.
pub fn describe(violations: &[Violation]) -> String {
    let told = violations.iter().map(|v| match v.detail.as_str() {
        "" => v.reason.clone(),
        detail => format!("{} ({detail})", v.reason),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Only the rules that are violated: `privileged, hostPort`.
pub fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|v| v.reason.as_str()).collect::<Vec<_>>().join(", ")
}

/// Whether a change of a pod can change what it violates.
pub fn is_significant(pod: &Value, old: &Value) -> bool {
    let annotation = |pod: &Value, key: &str| pod.sub("metadata").sub("annotations").text(key).to_owned();
    if annotation(pod, SECCOMP_POD) != annotation(old, SECCOMP_POD) {
        return true;
    }
    ["containers", "initContainers", "ephemeralContainers"].iter().any(|list| {
        let (new, before) = (pod.sub("spec").list(list), old.sub("spec").list(list));
        new.len() != before.len() || new.iter().zip(before).any(|(a, b)| a.text("image") != b.text("image"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn told(level: Level, version: Minor, pod: &str) -> String {
        describe(&violations(Standard { level, version }, &value(pod)))
    }

    #[test]
    fn a_plain_pod_is_baseline_and_not_restricted() {
        let pod = r#"{"spec":{"containers":[{"name":"c"}]}}"#;
        assert_eq!(told(Level::Baseline, None, pod), "");
        let wanted = "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
        assert_eq!(told(Level::Restricted, None, pod), wanted);
        let good = r#"{"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"c","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}"#;
        assert_eq!(told(Level::Restricted, None, good), "");
    }

    #[test]
    fn what_gives_rights_over_the_node_is_told() {
        for (spec, wanted) in [
            (r#"{"hostNetwork":true,"hostPID":true}"#, "host namespaces (hostNetwork=true, hostPID=true)"),
            (
                r#"{"volumes":[{"name":"a","hostPath":{}},{"name":"b","hostPath":{}}]}"#,
                "hostPath volumes (volumes \"a\", \"b\")",
            ),
            (
                r#"{"containers":[{"name":"c","ports":[{"hostPort":80},{"hostPort":443}]}]}"#,
                "hostPort (container \"c\" uses hostPorts 443, 80)",
            ),
            (
                r#"{"initContainers":[{"name":"c","securityContext":{"privileged":true}}]}"#,
                "privileged (container \"c\" must not set securityContext.privileged=true)",
            ),
            (
                r#"{"containers":[{"name":"c","securityContext":{"capabilities":{"add":["SYS_ADMIN","KILL"]}}}]}"#,
                "non-default capabilities (container \"c\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add)",
            ),
            (
                r#"{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}"#,
                "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
            ),
            (
                r#"{"securityContext":{"seLinuxOptions":{"user":"u","type":"spc_t"}}}"#,
                "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
            ),
            (r#"{"securityContext":{"sysctls":[{"name":"kernel.msgmax"}]}}"#, "forbidden sysctls (kernel.msgmax)"),
            (
                r#"{"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]}"#,
                "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
            ),
            (
                r#"{"securityContext":{"windowsOptions":{"hostProcess":true}}}"#,
                "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            ),
        ] {
            assert_eq!(told(Level::Baseline, None, &format!(r#"{{"spec":{spec}}}"#)), wanted);
        }
    }

    #[test]
    fn versions_have_their_own_rules() {
        let sysctl = r#"{"spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}]}}}"#;
        assert_eq!(told(Level::Baseline, Some(32), sysctl), "");
        assert_eq!(told(Level::Baseline, Some(31), sysctl), "forbidden sysctls (net.ipv4.tcp_rmem)");
        let windows =
            r#"{"spec":{"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true},"containers":[{"name":"c"}]}}"#;
        assert_eq!(told(Level::Restricted, None, windows), "");
        assert!(told(Level::Restricted, Some(24), windows).starts_with("allowPrivilegeEscalation"));
    }

    #[test]
    fn labels_choose_a_policy() {
        let labels = |text: &str| value(text).as_object().cloned().unwrap();
        let (policy, errors) = Policy::of_labels(&labels(
            r#"{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/enforce-version":"v1.24"}"#,
        ));
        assert!(errors.is_empty());
        assert_eq!(
            (policy.enforce.to_string(), policy.warn.to_string()),
            ("baseline:v1.24".into(), "baseline:v1.24".into())
        );
        assert_eq!(policy.audit.to_string(), "privileged:latest");
        let (policy, errors) = Policy::of_labels(&labels(r#"{"pod-security.kubernetes.io/enforce":"x"}"#));
        assert_eq!(policy.enforce.level, Level::Restricted);
        let wanted = "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, baseline, restricted";
        assert_eq!(errors[0].to_string(), wanted);
        for (text, good) in
            [("latest", true), ("v1.0", true), ("v1.33", true), ("v1.01", false), ("v2.1", false), ("v1.", false)]
        {
            assert_eq!(version(text).is_ok(), good, "{text}");
        }
    }
}
