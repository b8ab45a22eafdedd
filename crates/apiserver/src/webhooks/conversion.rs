//! Conversion webhooks: objects of definitions whose `spec.conversion.strategy` is `Webhook` in another version.
//!
//! Each object is sent by itself, as upstream does: one that cannot be converted fails no other. What comes back may
//! differ in everything but its identity; of its metadata only labels and annotations count.

use super::client::{ClientConfig, WebhookClient};
use super::review::Review;
use crate::conversion::Converter;
use crate::handlers::uid;
use object::field::{Path, aggregate};
use object::metadata::{validate_annotations, validate_labels};
use object::{Map, Value, go, json, map};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Converts by calling the webhooks that definitions name.
pub struct WebhookConverter {
    client: Arc<WebhookClient>,
}

impl WebhookConverter {
    /// A converter that calls webhooks by a client.
    pub fn new(client: Arc<WebhookClient>) -> Self {
        WebhookConverter { client }
    }

    async fn ask(&self, definition: &Value, object: Value, wanted: &str) -> Result<Value, String> {
        // Upstream passes empty objects by.
        let empty = object.as_object().is_some_and(|o| o.len() == 2 && o.contains_key("kind"));
        if empty || object.str_at(&["apiVersion"]) == Some(wanted) {
            let mut object = object;
            object.set_at(&["apiVersion"], wanted.into());
            return Ok(object);
        }
        let webhook = definition.at(&["spec", "conversion", "webhook"]).unwrap_or(&Value::Null);
        let review = review_version(webhook)?;
        let about = describe(&object);
        let failed = |why: String| format!("conversion webhook for {about} failed: {why}");
        let config = ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null));
        let uid = uid().map_err(|_| failed("no random numbers".to_owned()))?;
        let body = json::to_vec(&request(review, &uid, &object, wanted));
        let answer = self.client.call(&config, review, body, TIMEOUT).await.map_err(failed)?;
        let converted = objects(review, &answer, &uid).map_err(failed)?;
        let [converted] = converted else {
            return Err(format!("conversion webhook for {about} returned {} objects, expected 1", converted.len()));
        };
        let converted = unstructured(converted)?;
        check(&object, &converted, wanted)
            .map_err(|why| format!("conversion webhook for {about} returned invalid object{why}"))?;
        restore_metadata(object, converted)
            .map_err(|why| format!("conversion webhook for {about} returned invalid metadata: {why}"))
    }
}

impl Converter for WebhookConverter {
    fn convert<'a>(
        &'a self,
        definition: &'a Value,
        object: Value,
        wanted: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>> {
        Box::pin(self.ask(definition, object, wanted))
    }
}

/// The first version of reviews that both sides know.
fn review_version(webhook: &Value) -> Result<&'static Review, String> {
    let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array).unwrap_or_default();
    let known = versions.iter().find_map(|v| match v.as_str() {
        Some("v1") => Some(&Review::CONVERSION_V1),
        Some("v1beta1") => Some(&Review::CONVERSION_V1BETA1),
        _ => None,
    });
    known.ok_or_else(|| "no supported conversion review versions".to_owned())
}

/// `GROUP/VERSION, Kind=KIND`.
fn describe(object: &Value) -> String {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

/// The review that is sent; upstream sends an empty response with it.
fn request(review: &Review, uid: &str, object: &Value, wanted: &str) -> Value {
    let result = map! { "metadata" => Value::Object(Map::new()) };
    let response = map! { "convertedObjects" => Value::Null, "result" => Value::Object(result), "uid" => "" };
    let request = map! { "desiredAPIVersion" => wanted, "objects" => vec![object.clone()], "uid" => uid };
    Value::Object(map! {
        "apiVersion" => review.api_version(),
        "kind" => review.kind,
        "request" => Value::Object(request),
        "response" => Value::Object(response),
    })
}

/// The objects of an answer.
fn objects<'a>(review: &Review, answer: &'a Value, uid: &str) -> Result<&'a [Value], String> {
    // Webhooks of the older version never had to care for kind and uid.
    let strict = review.version == "v1";
    if strict {
        review.check_kind(answer)?;
    }
    let response = answer.get("response").ok_or("no response provided")?;
    let given = response.str_at(&["uid"]).unwrap_or_default();
    if strict && given != uid {
        return Err(format!("expected response.uid={}, got {}", go::quote(uid), go::quote(given)));
    }
    let status = response.str_at(&["result", "status"]).unwrap_or_default();
    if status != "Success" {
        return Err(match response.str_at(&["result", "message"]) {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    Ok(response.get("convertedObjects").and_then(Value::as_array).unwrap_or_default())
}

/// An error unless the value is an object of some kind.
fn unstructured(value: &Value) -> Result<Value, String> {
    let wrong = |kind: &str| format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}");
    match value {
        Value::Object(_) if value.str_at(&["kind"]).unwrap_or_default().is_empty() => {
            Err(format!("Object 'Kind' is missing in '{}'", json::to_string(value)))
        }
        Value::Object(_) => Ok(value.clone()),
        Value::Null => Err("unexpected end of JSON input".to_owned()),
        Value::Bool(_) => Err(wrong("bool")),
        Value::Int(_) | Value::Float(_) => Err(wrong("number")),
        Value::String(_) => Err(wrong("string")),
        Value::Array(_) => Err(wrong("array")),
    }
}

/// An error unless the converted object is the same one in the wanted version.
fn check(object: &Value, converted: &Value, wanted: &str) -> Result<(), String> {
    let text = |value: &Value, key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
    let version = text(converted, "apiVersion");
    if version != wanted {
        return Err(format!(" at index 0: invalid groupVersion (expected {wanted}, received {version})"));
    }
    let (expected, received) = (text(object, "kind"), text(converted, "kind"));
    if expected != received {
        return Err(format!(" at index 0: invalid kind (expected {expected}, received {received})"));
    }
    for (what, key) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let (expected, received) = (object.meta_str(key), converted.meta_str(key));
        if expected != received {
            return Err(format!(": must have the same {what}: {expected} != {received}"));
        }
    }
    Ok(())
}

/// The converted object with the metadata that it had, but for labels and annotations.
fn restore_metadata(object: Value, mut converted: Value) -> Result<Value, String> {
    let Some(given) = converted.remove_at(&["metadata"]) else {
        return Err("missing metadata in converted object".to_owned());
    };
    let Value::Object(mut given) = given else {
        return Err(format!("invalid metadata of type {} in converted object", go::type_name(&given)));
    };
    let mut original = object;
    let kept = original.remove_at(&["metadata"]).unwrap_or_else(|| Value::Object(Map::new()));
    let Value::Object(mut kept) = kept else {
        return Err(format!("invalid metadata of type {} in input object", go::type_name(&kept)));
    };
    for field in ["labels", "annotations"] {
        let new = match given.remove(field) {
            None | Some(Value::Null) => {
                kept.remove(field);
                continue;
            }
            Some(Value::Object(new)) => new,
            Some(other) => {
                return Err(format!("invalid metadata.{field} of type {} in converted object", go::type_name(&other)));
            }
        };
        if let Some((key, value)) = new.iter().find(|(_, v)| v.as_str().is_none()) {
            let ty = go::type_name(value);
            return Err(format!("metadata.{field}[{key}] must be a string, but is {ty} in converted object"));
        }
        if kept.get(field).and_then(Value::as_object) != Some(&new) {
            let metadata = Path::ROOT.child("metadata");
            let errors = match field {
                "labels" => validate_labels(&new, &metadata.child("labels")),
                _ => validate_annotations(&new, &metadata.child("annotation")),
            };
            if !errors.is_empty() {
                return Err(aggregate(&errors));
            }
        }
        kept.insert(field, Value::Object(new));
    }
    converted.set_at(&["metadata"], Value::Object(kept));
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn metadata_is_kept_but_for_labels_and_annotations() {
        let object = value(r#"{"metadata":{"name":"a","labels":{"l":"1"},"annotations":{"x":"y"},"generation":2}}"#);
        let converted = value(r#"{"metadata":{"name":"a","annotations":{"b":"c"},"generation":9},"spec":1}"#);
        let restored = restore_metadata(object, converted).unwrap();
        let expected = r#"{"metadata":{"annotations":{"b":"c"},"generation":2,"name":"a"},"spec":1}"#;
        assert_eq!(json::to_string(&restored), expected);
    }

    #[test]
    fn bad_metadata_is_told() {
        for (converted, expected) in [
            (r#"{}"#, "missing metadata in converted object"),
            (r#"{"metadata":5}"#, "invalid metadata of type int64 in converted object"),
            (r#"{"metadata":{"labels":[]}}"#, "invalid metadata.labels of type []interface {} in converted object"),
            (
                r#"{"metadata":{"labels":{"l":5}}}"#,
                "metadata.labels[l] must be a string, but is int64 in converted object",
            ),
        ] {
            let object = value(r#"{"metadata":{"name":"a"}}"#);
            assert_eq!(restore_metadata(object, value(converted)).unwrap_err(), expected);
        }
    }

    #[test]
    fn only_the_newer_review_has_to_name_itself() {
        let answer = value(r#"{"response":{"result":{"status":"Success"},"convertedObjects":[1]}}"#);
        assert_eq!(objects(&Review::CONVERSION_V1BETA1, &answer, "u").unwrap().len(), 1);
        let error = objects(&Review::CONVERSION_V1, &answer, "u").unwrap_err();
        assert_eq!(error, "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=");
    }
}
