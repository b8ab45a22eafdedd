//! What webhooks are asked, and what their answers mean.

use super::Refusal;
use super::configured::Hook;
use crate::answer::Failure;
use crate::handlers::uid;
use crate::webhooks::{Review, WebhookClient};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::{Map, Value, go, json};

/// What a webhook said to a request that it lets pass.
pub(super) struct Admitted {
    /// The patch for the object, if there is one.
    pub patch: Option<Vec<u8>>,
}

/// A call of a webhook.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    /// By whom.
    pub client: &'a WebhookClient,
    /// The webhook.
    pub hook: &'a Hook,
    /// Whether it may change the object.
    pub mutating: bool,
    /// The request without its objects.
    pub request: &'a Value,
    /// The object.
    pub object: Option<&'a Value>,
    /// The object as it was.
    pub old: Option<&'a Value>,
    /// The options of the request.
    pub options: &'a Value,
}

impl Call<'_> {
    /// Calls the webhook. Its warnings are added to `warnings`.
    pub async fn send(self, warnings: &mut Vec<String>) -> Result<Admitted, Refusal> {
        let Call { client, hook, mutating, .. } = self;
        let failed = |why: String| Refusal::Call(format!("failed calling webhook {}: {why}", go::quote(&hook.name)));
        let review = hook.review.ok_or_else(|| {
            failed(
                "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
                    .to_owned(),
            )
        })?;
        client.check(&hook.client).map_err(|why| failed(format!("could not get REST client: {why}")))?;
        let uid = uid()?;
        let body = self.body(review, &uid);
        let answer = client.call(&hook.client, review, body, hook.timeout).await;
        let answer = answer.map_err(|why| failed(format!("failed to call webhook: {why}")))?;
        let response = verify(review, &answer, &uid, mutating)
            .map_err(|why| failed(format!("received invalid webhook response: {why}")))?;
        let given = response.get("warnings").and_then(Value::as_array).unwrap_or_default();
        warnings.extend(given.iter().filter_map(Value::as_str).map(str::to_owned));
        if response.get("allowed").and_then(Value::as_bool) != Some(true) {
            return Err(Refusal::Request(denial(&hook.name, response.get("status"))));
        }
        let patch = response.str_at(&["patch"]).filter(|_| mutating);
        let patch = patch.and_then(|p| STANDARD.decode(p).ok()).filter(|p| !p.is_empty());
        Ok(Admitted { patch })
    }

    /// The review as it is sent. Objects are written in place, not copied.
    fn body(&self, review: &Review, uid: &str) -> Vec<u8> {
        let mut out =
            format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"request\":", review.kind, review.api_version());
        let members = json::to_string(self.request);
        out.push_str(members.strip_suffix('}').unwrap_or(&members));
        for (key, value) in [("object", self.object), ("oldObject", self.old), ("options", Some(self.options))] {
            out.push_str(",\"");
            out.push_str(key);
            out.push_str("\":");
            json::write(&mut out, value.unwrap_or(&Value::Null));
        }
        out.push_str(",\"uid\":");
        json::write_string(&mut out, uid);
        out.push_str("}}");
        out.into_bytes()
    }
}

/// The response of an answer, if it is one.
fn verify<'a>(review: &Review, answer: &'a Value, uid: &str, mutating: bool) -> Result<&'a Value, String> {
    let response = answer.get("response").ok_or("webhook response was absent")?;
    // Webhooks of the older version never had to care for these.
    if review.version != "v1" {
        return Ok(response);
    }
    let given = response.str_at(&["uid"]).unwrap_or_default();
    if given != uid {
        return Err(format!("expected response.uid={}, got {}", go::quote(uid), go::quote(given)));
    }
    review.check_kind(answer)?;
    let patch = response.str_at(&["patch"]).is_some_and(|p| !p.is_empty());
    let patch_type = response.str_at(&["patchType"]);
    if !mutating {
        if patch {
            return Err("validating webhook may not return response.patch".to_owned());
        }
        if patch_type.is_some() {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
        return Ok(response);
    }
    match (patch, patch_type) {
        (true, None) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (false, Some(_)) => Err("webhook returned response.patchType but not response.patch".to_owned()),
        (true, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
        (true, Some(other)) if other != "JSONPatch" => Err(format!("unsupported patch type {}", go::quote(other))),
        _ => Ok(response),
    }
}

/// The status of a refused request.
fn denial(name: &str, status: Option<&Value>) -> Failure {
    let mut status = status.and_then(Value::as_object).cloned().unwrap_or_default();
    let code = status.get("code").and_then(Value::as_int).filter(|code| *code >= 400).unwrap_or(400);
    status.insert("code", code);
    if matches!(status.get("status").and_then(Value::as_str), None | Some("" | "Success")) {
        status.insert("status", "Failure");
    }
    let denied = format!("admission webhook {} denied the request", go::quote(name));
    let text = |key: &str| status.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let message = match text("message").or_else(|| text("reason")) {
        Some(why) => format!("{denied}: {why}"),
        None => format!("{denied} without explanation"),
    };
    status.insert("message", message);
    status.retain(|_, value| value.as_str() != Some(""));
    status.insert("kind", "Status");
    status.insert("apiVersion", "v1");
    status.get_or_insert("metadata", || Value::Object(Map::new()));
    Failure::Object(u16::try_from(code).unwrap_or(500), Box::new(Value::Object(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn denials_are_worded_as_upstream_does() {
        for (status, expected) in [
            (
                r#"{"message":"m","code":418,"reason":"R"}"#,
                r#"{"apiVersion":"v1","code":418,"kind":"Status","message":"admission webhook \"a.b.c\" denied the request: m","metadata":{},"reason":"R","status":"Failure"}"#,
            ),
            (
                r#"{"reason":"R","code":0}"#,
                r#"{"apiVersion":"v1","code":400,"kind":"Status","message":"admission webhook \"a.b.c\" denied the request: R","metadata":{},"reason":"R","status":"Failure"}"#,
            ),
            (
                "{}",
                r#"{"apiVersion":"v1","code":400,"kind":"Status","message":"admission webhook \"a.b.c\" denied the request without explanation","metadata":{},"status":"Failure"}"#,
            ),
        ] {
            let Failure::Object(_, object) = denial("a.b.c", Some(&value(status))) else { panic!() };
            assert_eq!(json::to_string(&object), expected);
        }
    }

    #[test]
    fn answers_are_verified() {
        let wrap = |response: &str| {
            value(&format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#))
        };
        for (response, mutating, expected) in [
            (r#"{"uid":"x"}"#, true, r#"expected response.uid="u", got "x""#),
            (r#"{"uid":"u","patch":"W10="}"#, true, "webhook returned response.patch but not response.patchType"),
            (
                r#"{"uid":"u","patchType":"JSONPatch"}"#,
                true,
                "webhook returned response.patchType but not response.patch",
            ),
            (r#"{"uid":"u","patch":"W10="}"#, false, "validating webhook may not return response.patch"),
            (r#"{"uid":"u","patchType":""}"#, false, "validating webhook may not return response.patchType"),
        ] {
            let error = verify(&Review::ADMISSION_V1, &wrap(response), "u", mutating).unwrap_err();
            assert_eq!(error, expected);
        }
        let answer = value(r#"{"response":{"patch":"W10="}}"#);
        assert!(verify(&Review::ADMISSION_V1BETA1, &answer, "u", true).is_ok());
    }
}
