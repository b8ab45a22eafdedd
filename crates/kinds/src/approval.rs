//! Who may say what in the status of a CertificateSigningRequest: approvals come through `approval` alone, certificates
//! through `status` alone, and neither is taken back.

use crate::check::Errors;
use crate::read::{Read, list_mut};
use crate::resource::{Context, Parts};
use object::Value;
use object::field::{FieldError, Path};

/// What nobody owns through `approval`.
pub const RESET_BY_APPROVAL: Parts = &[&["spec"], &["status", "certificate"]];
/// What nobody owns through `status`.
pub const RESET_BY_STATUS: Parts = &[&["spec"], &["status", "conditions"]];

/// Conditions that only `approval` sets.
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

/// Takes from what was sent to `approval` nothing but the conditions.
pub fn prepare(object: &mut Value, old: &Value, context: &Context<'_>) {
    object.set_at(&["spec"], old.sub("spec").clone());
    let conditions = object.at(&["status", "conditions"]).cloned();
    object.set_at(&["status"], old.sub("status").clone());
    match conditions {
        Some(conditions) => object.set_at(&["status", "conditions"], conditions),
        None => {
            object.remove_at(&["status", "conditions"]);
        }
    }
    stamp(object, old, context);
}

/// Keeps the approvals that are there as they are in what was sent to `status`.
pub(crate) fn prepare_status(object: &mut Value, old: &Value, context: &Context<'_>) {
    for kind in APPROVALS {
        let held = of(old, kind);
        let Some(status) = object.get_mut("status") else { continue };
        let sent: Vec<&mut Value> =
            list_mut(status, "conditions").iter_mut().filter(|c| c.text("type") == kind).collect();
        if sent.len() == held.len() {
            sent.into_iter().zip(held).for_each(|(sent, held)| *sent = held.clone());
        }
    }
    stamp(object, old, context);
}

/// The conditions of a type.
fn of<'v>(object: &'v Value, kind: &str) -> Vec<&'v Value> {
    object.sub("status").list("conditions").iter().filter(|c| c.text("type") == kind).collect()
}

/// Gives conditions the times that they lack.
fn stamp(object: &mut Value, old: &Value, context: &Context<'_>) {
    let now = context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let Some(status) = object.get_mut("status") else { return };
    for condition in list_mut(status, "conditions") {
        if !condition.has("lastUpdateTime") {
            condition.set_at(&["lastUpdateTime"], now.as_str().into());
        }
        if !condition.has("lastTransitionTime") {
            let same = |c: &&Value| c.text("status") == condition.text("status") && c.has("lastTransitionTime");
            let held = of(old, condition.text("type")).into_iter().find(same).map(|c| c.text("lastTransitionTime"));
            condition.set_at(&["lastTransitionTime"], held.unwrap_or(&now).into());
        }
    }
}

/// An error about the bytes of a request for a certificate, which whoever can read them finds.
pub fn unfit_request(bytes: &[u8], path: &Path<'_>, why: String) -> FieldError {
    crate::groups::certificates::unfit_request(bytes, path, why)
}

/// Checks what was sent to `approval`.
pub fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = crate::groups::certificates::validate(new, Some(old));
    kept(new, old, &mut out);
    certificate(new, old, "updates may not set certificate content", &mut out);
    out
}

/// Checks what was sent to `status`.
pub(crate) fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut out = crate::groups::certificates::validate(new, Some(old));
    kept(new, old, &mut out);
    let path = Path::ROOT.child("status");
    let path = path.child("conditions");
    for kind in APPROVALS {
        let (now, before) = (of(new, kind), of(old, kind));
        if now.len() > before.len() {
            out.push(FieldError::forbidden(&path, format!("updates may not add a condition of type {kind:?}")));
        } else if now.len() == before.len() && now != before {
            out.push(FieldError::forbidden(&path, format!("updates may not modify a condition of type {kind:?}")));
        }
    }
    if !issued(old).is_empty() {
        certificate(new, old, "updates may not modify existing certificate content", &mut out);
    }
    out
}

/// No condition is taken back.
fn kept(new: &Value, old: &Value, out: &mut Errors) {
    let path = Path::ROOT.child("status");
    let path = path.child("conditions");
    for kind in ["Approved", "Denied", "Failed"] {
        if of(new, kind).len() < of(old, kind).len() {
            out.push(FieldError::forbidden(&path, format!("updates may not remove a condition of type {kind:?}")));
        }
    }
}

/// An error about the certificate, where an update changes it.
fn certificate(new: &Value, old: &Value, why: &str, out: &mut Errors) {
    if issued(new) != issued(old) {
        let path = Path::ROOT.child("status");
        out.push(FieldError::forbidden(&path.child("certificate"), why));
    }
}

fn issued(object: &Value) -> &str {
    object.sub("status").text("certificate")
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn context() -> Context<'static> {
        Context { now: jiff::Timestamp::UNIX_EPOCH, user: None }
    }

    #[test]
    fn approval_takes_conditions_and_nothing_else() {
        let old = value(r#"{"spec":{"signerName":"a.b/c"},"status":{"certificate":"x"}}"#);
        let mut new = value(
            r#"{"spec":{"signerName":"d.e/f"},"status":{"certificate":"y","conditions":[{"status":"True","type":"Approved"}]}}"#,
        );
        prepare(&mut new, &old, &context());
        let wanted = r#"{"spec":{"signerName":"a.b/c"},"status":{"certificate":"x","conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","lastUpdateTime":"1970-01-01T00:00:00Z","status":"True","type":"Approved"}]}}"#;
        assert_eq!(json::to_string(&new), wanted);
    }

    #[test]
    fn status_cannot_approve_and_nobody_takes_back() {
        let pending = value(r#"{"status":{}}"#);
        let approved = value(r#"{"status":{"conditions":[{"status":"True","type":"Approved"}]}}"#);
        let has = |errors: Errors, why: &str| errors.iter().any(|e| e.body().contains(why));
        assert!(has(validate_status(&approved, &pending), "may not add a condition of type \"Approved\""));
        assert!(!has(validate(&approved, &pending), "condition of type"));
        assert!(has(validate(&pending, &approved), "may not remove a condition of type \"Approved\""));
        let mut other = value(r#"{"status":{"conditions":[{"reason":"x","status":"False","type":"Approved"}]}}"#);
        prepare_status(&mut other, &approved, &context());
        assert_eq!(other.at(&["status", "conditions"]).unwrap().as_array().unwrap()[0].text("status"), "True");
    }

    #[test]
    fn a_certificate_is_set_once_and_by_status() {
        let with = |certificate: &str| value(&format!(r#"{{"status":{{"certificate":"{certificate}"}}}}"#));
        let why = |errors: Errors| {
            let found = errors.iter().find(|e| e.field == "status.certificate").map(ToString::to_string);
            found.unwrap_or_default()
        };
        let set = "status.certificate: Forbidden: updates may not set certificate content";
        let modify = "status.certificate: Forbidden: updates may not modify existing certificate content";
        for (old, new, by_approval, by_status) in
            [("", "YQ==", set, ""), ("YQ==", "YQ==", "", ""), ("YQ==", "Yg==", set, modify), ("YQ==", "", set, modify)]
        {
            assert_eq!(why(validate(&with(new), &with(old))), by_approval, "{old} {new}");
            assert_eq!(why(validate_status(&with(new), &with(old))), by_status, "{old} {new}");
        }
    }
}
