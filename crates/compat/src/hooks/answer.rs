//! The answers of webhooks, as cases declare them:
//!
//! | member | meaning |
//! |---|---|
//! | `times` | applies to that many requests only |
//! | `if` | `{DOTTED PATH: VALUE}`: applies only where the request has these values |
//! | `delay` | seconds before the answer |
//! | `close` | true: the connection is closed without an answer |
//! | `status`, `headers`, `raw` | the HTTP status (200), more headers, the text of the body as it is |
//! | `review` | fields laid over the review; null removes one |
//! | `response` | fields laid over the response |
//! | `patch` | a JSON patch: fills in `allowed`, `patchType` and `patch` |
//! | `convert` | `{DESIRED VERSION, or "*" for any other: EDITS}`, done on each object after its `apiVersion` is set |
//!
//! An edit is `["set", PATH, VALUE]`, `["del", PATH]`, `["move", PATH, PATH]`, `["copy", PATH, PATH]` with a path as
//! in `/spec/a`; or, for the list of objects, `["cut", N]`, `["again"]`, `["reverse"]`.

use crate::case::body_text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::{Map, Value, map};

/// The review that answers a review.
pub fn review(body: &Value, rule: &Value) -> Value {
    let nothing = Value::Null;
    let request = body.get("request").unwrap_or(&nothing);
    let mut response = map! { "uid" => request.get("uid").cloned().unwrap_or_default() };
    if rule.get("convert").is_some() || body.str_at(&["kind"]) == Some("ConversionReview") {
        response.insert("result", Value::Object(map! { "status" => "Success" }));
        response.insert("convertedObjects", convert(request, rule.get("convert").unwrap_or(&nothing)));
    }
    if let Some(patch) = rule.get("patch") {
        response.insert("allowed", true);
        response.insert("patchType", "JSONPatch");
        response.insert("patch", STANDARD.encode(body_text(patch)));
    }
    let response = lay(response, rule.get("response"));
    let review = map! {
        "apiVersion" => body.get("apiVersion").cloned().unwrap_or_default(),
        "kind" => body.get("kind").cloned().unwrap_or_default(),
        "response" => Value::Object(response),
    };
    Value::Object(lay(review, rule.get("review")))
}

/// One object's fields over another's, without those that are null.
fn lay(mut base: Map, over: Option<&Value>) -> Map {
    for (key, value) in over.and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        base.insert(key, value.clone());
    }
    base.retain(|_, value| !value.is_null());
    base
}

/// The objects of a conversion request in the version that it asks for.
fn convert(request: &Value, rules: &Value) -> Vec<Value> {
    let mut objects = request.get("objects").and_then(Value::as_array).unwrap_or_default().to_vec();
    let wanted = request.str_at(&["desiredAPIVersion"]).unwrap_or_default();
    let version = wanted.rsplit('/').next().unwrap_or_default();
    for object in &mut objects {
        object.set_at(&["apiVersion"], wanted.into());
    }
    let edits = rules.get(version).or_else(|| rules.get("*")).and_then(Value::as_array).unwrap_or_default();
    for step in edits {
        let Some(step) = step.as_array() else { continue };
        match (step.first().and_then(Value::as_str), step.get(1)) {
            (Some("cut"), Some(Value::Int(count))) => objects.truncate(usize::try_from(*count).unwrap_or(0)),
            (Some("again"), _) => objects.extend(objects.last().cloned()),
            (Some("reverse"), _) => objects.reverse(),
            _ => objects.iter_mut().for_each(|object| edit(object, step)),
        }
    }
    objects
}

fn edit(object: &mut Value, step: &[Value]) {
    let path = |i: usize| step.get(i).and_then(Value::as_str).map(keys).unwrap_or_default();
    match step.first().and_then(Value::as_str) {
        Some("set") => put(object, &path(1), step.get(2).cloned().unwrap_or_default()),
        Some("del") => {
            take(object, &path(1), true);
        }
        Some(verb @ ("move" | "copy")) => {
            if let Some(value) = take(object, &path(1), verb == "move") {
                put(object, &path(2), value);
            }
        }
        _ => {}
    }
}

fn keys(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

/// The holder of a path's last key; objects on the way are made.
fn holder<'v>(object: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    let mut at = object;
    for key in path.get(..path.len().checked_sub(1)?)? {
        at = match at {
            Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?)?,
            Value::Object(members) => members.get_or_insert(key, || Value::Object(Map::new())),
            _ => return None,
        };
    }
    Some(at)
}

fn put(object: &mut Value, path: &[String], value: Value) {
    if let (Some(Value::Object(members)), Some(key)) = (holder(object, path), path.last()) {
        members.insert(key.as_str(), value);
    }
}

fn take(object: &mut Value, path: &[String], remove: bool) -> Option<Value> {
    let Value::Object(members) = holder(object, path)? else { return None };
    let key = path.last()?;
    if remove { members.remove(key) } else { members.get(key).cloned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn answers_are_made_as_cases_declare_them() {
        let request = r#"{"apiVersion":"x/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"g/v2","objects":[{"apiVersion":"g/v1","spec":{"a":1}}]}}"#;
        for (rule, expected) in [
            (
                r#"{"convert":{"v2":[["move","/spec/a","/spec/b"],["again"]]}}"#,
                r#"{"apiVersion":"x/v1","kind":"ConversionReview","response":{"convertedObjects":[{"apiVersion":"g/v2","spec":{"b":1}},{"apiVersion":"g/v2","spec":{"b":1}}],"result":{"status":"Success"},"uid":"u"}}"#,
            ),
            (
                r#"{"convert":{"*":[["cut",0]]},"response":{"uid":null},"review":{"kind":"K"}}"#,
                r#"{"apiVersion":"x/v1","kind":"K","response":{"convertedObjects":[],"result":{"status":"Success"}}}"#,
            ),
        ] {
            let review = review(&json::parse(request.as_bytes()).unwrap(), &json::parse(rule.as_bytes()).unwrap());
            assert_eq!(json::to_string(&review), expected);
        }
    }

    #[test]
    fn patches_are_sent_encoded() {
        let body = json::parse(br#"{"kind":"AdmissionReview","request":{"uid":"u"}}"#).unwrap();
        let rule = json::parse(br#"{"patch":[]}"#).unwrap();
        let expected = r#"{"kind":"AdmissionReview","response":{"allowed":true,"patch":"W10=","patchType":"JSONPatch","uid":"u"}}"#;
        assert_eq!(json::to_string(&review(&body, &rule)), expected);
    }
}
